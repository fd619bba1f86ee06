/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_PYROSCOPE_PRIVATE_H
#define RECEIVERS_PYROSCOPE_PRIVATE_H

#include "pipeline/intake/duplicates.h"
#include "pipeline/intake/http_intake.h"
#include "profile/stores/label_set.h"

/*
 * The receiver pyroscope: pyroscope.c (factory), pyroscope_ingest.c (POST /ingest),
 * pyroscope_push.c (push.v1.PusherService/Push).
 *
 * In both protocols a profile is one document. Its series' labels become resource attributes with
 * the same keys, except service_name, which becomes service.name.
 */
struct pyroscope_receiver_config {
	struct http_server_config server;
	struct label_limits limits;
	struct choice ack;
	struct duplicates_config deduplicate;
};

enum pyroscope_loss { PYROSCOPE_RESERVED, PYROSCOPE_DUPLICATE, PYROSCOPE_LOSSES };

enum { PYROSCOPE_ROUTES = 3 };

struct pyroscope_receiver {
	struct http_intake *intake;
	struct http_intake_route routes[PYROSCOPE_ROUTES];
	const struct label_limits *limits; /* of the configuration */
	struct metric_series *lost[PYROSCOPE_LOSSES];
};

static inline struct pyroscope_receiver *pyroscope_of(const struct http_intake_request *r)
{
	return r->in.receiver;
}

/* Counts labels that cannot become attributes. */
static inline void pyroscope_lose(const struct http_intake_request *r, enum pyroscope_loss reason,
				  uint32_t count)
{
	if (count)
		metric_add(pyroscope_of(r)->lost[reason], count);
}

extern const struct http_intake_route pyroscope_ingest_routes[2], pyroscope_push_route;

#endif
