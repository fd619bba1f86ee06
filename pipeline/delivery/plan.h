/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_PLAN_H
#define PIPELINE_DELIVERY_PLAN_H

#include <pthread.h>

#include "pipeline/component.h"

/*
 * Decides which requests a packet becomes at one destination: it knows the destination's limits and
 * passes them to the exporter's plan, or to the splitter. Each delivery has one.
 *
 * A limit comes from the configuration, else from the exporter's preset. When a destination rejects
 * a request as too large, a smaller limit is learned for some time: the one that it named, else
 * half of the request. If even the smallest requests are rejected repeatedly, size is not the
 * cause, and nothing is split until a request is accepted.
 */
struct limits_config { /* 0: the exporter's preset */
	int64_t max_bytes, max_samples, max_profiles, max_resources, max_series;
	struct duration max_age, max_ahead;
};

extern const struct config_table limits_table;
extern const struct metric plan_learned_bytes, plan_learned_samples, plan_refused;

/* All borrowed for the plan's life, except `metrics` and `id`, which only plan_init uses. */
struct plan_options {
	const struct exporter_ops *ops;
	void *exporter; /* the instance */
	const struct limits_config *limits;
	/* A request holds at most one batch of the exporter's own; 0: any number. */
	uint64_t batch_bytes, batch_samples;
	const char *id; /* exporter ID */
	struct log *log;
	struct metrics *metrics;
};

struct plan {
	struct plan_options options;
	struct metric_series *bytes_gauge, *samples_gauge, *refused;

	pthread_mutex_t lock;    /* guards what was learned */
	uint64_t bytes, samples; /* 0: nothing */
	bool guessed;            /* bytes: nobody named it */
	uint64_t until;          /* clock_now */
	uint64_t logged;         /* sum of the limits that were logged last */
	_Atomic uint32_t
		futile; /* rejections of what cannot be split, since a request was accepted */
};

void plan_init(struct plan *plan, const struct plan_options *options);
void plan_fini(struct plan *plan);

/* Has the exporter a plan of its own? [any thread] */
bool plan_is_own(const struct plan *plan);
/* The packet itself is the request, and to find that out costs nothing. [any thread] */
bool plan_is_plain(struct plan *plan, const struct packet *packet);
/* Would the exporter only hand the packet on? [any thread] */
bool plan_is_prompt(const struct plan *plan, const struct packet *packet);
/* Has a plain and small packet encoded, so that it is prompt: the way to a pool thread costs more.
 * [a worker] */
void plan_encode_small(struct plan *plan, struct packet *packet);
/* About how many bytes its parts will hold until they are sent, besides the packet itself. [any
 * thread] */
int64_t plan_expected(struct plan *plan, const struct packet *packet);
/* May decode and encode, unless it is plain. `group`: that of the part which the packet was, if it
 * was one; 0: none. `avoided`: limits.avoided. [any thread] */
bool plan_packet(struct plan *plan, struct packet *packet, uint32_t group, const uint32_t *avoided,
		 struct parts *parts, struct error *err);
/* Plans these parts and all later ones anew, as packets without a group. The ones before are gone
 * then. False: nothing has changed. [pool thread] */
bool plan_rest(struct plan *plan, const uint32_t *avoided, struct parts *parts, uint32_t from,
	       struct error *err);

/* The destination rejected the part as too large. False: it cannot be split, or splitting would not
 * help. [any thread] */
bool plan_learn(struct plan *plan, const struct part *refused, const struct send_result *result);
/* Then: replaces the part by smaller ones, and splits later parts that exceed the new limit as
 * well. What cannot be split is counted in parts->dropped. [pool thread] */
void plan_again(struct plan *plan, struct parts *parts, uint32_t refused);
/* The destination accepted a request. [any thread] */
void plan_taken(struct plan *plan);

#endif
