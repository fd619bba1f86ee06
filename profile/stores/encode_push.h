/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_ENCODE_PUSH_H
#define PROFILE_STORES_ENCODE_PUSH_H

#include "base/error.h"
#include "profile/packet.h"

/*
 * A push.v1.PushRequest for one series (pyroscope, api/push/v1/push.proto), from a packet with one
 * resource whose attributes are the labels, as profile/stores/regroup.h creates it. Each pprof is
 * one RawSample, not compressed individually. ERROR_TOO_LARGE if the request would exceed
 * encode_push_max bytes; it must then be split. Without Profiles, it is a request without series.
 */
bool encode_push(const struct packet *packet, struct bytes *out, struct error *err);
size_t encode_push_max(const struct packet *packet);

/* For such a request: the number of samples of its largest pprof, because stores count the samples
 * of each pprof; and its labels, as encoded. */
uint64_t encode_push_samples(struct view request);
struct view encode_push_labels(struct view request);

#endif
