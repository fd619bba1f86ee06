/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_PLAN_H
#define PIPELINE_DELIVERY_PLAN_H

#include <pthread.h>

#include "pipeline/component.h"

/*
 * Decides which requests a packet becomes at one destination: it knows the destination's limits and
 * passes them to the exporter's plan, or to the splitter. Each delivery has one.
 *
 * A limit comes from the configuration, else from the exporter's preset. A destination that refuses
 * a request as too large teaches a smaller one for some time: what it named, else half of what it
 * refused. When again and again not even the smallest request is taken, size is not what is wrong,
 * and nothing is split until something was taken.
 */
struct limits_config { /* 0: as the exporter has it */
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
	uint64_t told;           /* the last bytes in the log */
	_Atomic uint32_t futile; /* refusals of what cannot be split, since something was taken */
};

void plan_init(struct plan *plan, const struct plan_options *options);
void plan_fini(struct plan *plan);

/* The packet itself is the request, and to find that out costs nothing. [any thread] */
bool plan_is_plain(struct plan *plan, const struct packet *packet);
/* Would the exporter only hand it on? [any thread] */
bool plan_is_prompt(const struct plan *plan, const struct packet *packet);
/* Has a plain and small packet encoded, so that it is prompt: the way to a pool thread costs more.
 * [a worker] */
void plan_encode_small(struct plan *plan, struct packet *packet);
/* About how many bytes its parts will hold until they are sent, besides the packet itself. [any
 * thread] */
int64_t plan_expected(struct plan *plan, const struct packet *packet);
/* May decode and encode, unless it is plain. [any thread] */
bool plan_packet(struct plan *plan, struct packet *packet, struct parts *parts, struct error *err);

/* The destination refused the part as too large. False: it cannot be split, or that would not help.
 * [any thread] */
bool plan_learn(struct plan *plan, const struct part *refused, const struct send_result *result);
/* Then: puts what the part becomes by the smaller limit in its place, and splits those behind it
 * that are over it as well. What nothing can be made of is in parts->dropped. [pool thread] */
void plan_again(struct plan *plan, struct parts *parts, uint32_t refused);
/* The destination took something. [any thread] */
void plan_taken(struct plan *plan);

#endif
