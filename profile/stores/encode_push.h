/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_ENCODE_PUSH_H
#define PROFILE_STORES_ENCODE_PUSH_H

#include "base/error.h"
#include "profile/packet.h"

/*
 * push.v1.PushRequest of one series (pyroscope, api/push/v1/push.proto): of a packet with one
 * resource, whose attributes are the labels, as profile/stores/regroup.h makes it. Each pprof is
 * one RawSample, not compressed by itself. ERROR_TOO_LARGE when it would have more than
 * encode_push_most bytes: it must be cut then.
 */
bool encode_push(const struct packet *packet, struct bytes *out, struct error *err);
size_t encode_push_max(const struct packet *packet);

/* Of such a request: the samples of the largest pprof, for stores count those of each; and the
 * labels, as they stand there. */
uint64_t encode_push_samples(struct view request);
struct view encode_push_labels(struct view request);

#endif
