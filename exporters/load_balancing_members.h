/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_LOAD_BALANCING_MEMBERS_H
#define EXPORTERS_LOAD_BALANCING_MEMBERS_H

#include <pthread.h>

#include "exporters/load_balancing_choice.h"
#include "pipeline/delivery/grpc_sender.h"

/*
 * The members of a load_balancing exporter: a gRPC client for each. The list changes on the loop
 * thread; all other functions may be called by any thread.
 *
 * A member has a place in the table, and a number that contains the place: place + 1, plus the size
 * of the table for each member that had the place before. Numbers are not used again, so what waits
 * for a member that has left is never taken for that of its successor. The series of metrics belong
 * to places, so that their number is bounded although addresses come and go.
 *
 * A member that has left ends when its calls have: after the timeout of a call.
 */
enum { LOAD_BALANCING_MEMBERS_MAX = 64 };

struct load_balancing_members;

/* Of which load_balancing_members_use has made sure that it does not end. */
struct load_balancing_member {
	struct grpc_sender sender;
	struct grpc_sender_config config; /* that of all, with its endpoint */
	struct load_balancing_members *all;
	struct load_balancing_member *next; /* of those that have left */
	char *endpoint;
	uint64_t hash;
	uint32_t number;
	_Atomic bool avoided;         /* others get what is new for it */
	_Atomic bool logged;          /* the log says so */
	_Atomic uint64_t quiet_until; /* clock_now: when it may say so again */
	_Atomic uint32_t users;       /* threads that are in grpc_sender_send */
	uint64_t ends_at;             /* clock_now, after it has left */
	bool ending;                  /* a pool thread stops it */
	struct metric_series *succeeded, *failed, *latency, *diverts;
};

struct load_balancing_place {
	struct load_balancing_member *member; /* NULL: free */
	char *endpoint;                       /* of the series: that of the last member */
	uint32_t members;                     /* how many it had */
	struct metric_series *succeeded, *failed, *latency, *diverts;
};

struct load_balancing_members_options {
	const struct host *host;
	const struct grpc_sender_config *config;
	const struct grpc_method *method; /* `exporter` is the struct load_balancing_member */
	const char *resolver;             /* the label */
	uint64_t call_ns;                 /* the longest time that a call takes */
};

/* Called on the loop thread, after each change of the list. */
struct load_balancing_watcher {
	void (*changed)(void *context);
	void *context;
};

struct load_balancing_members {
	struct load_balancing_members_options options;
	struct load_balancing_watcher watcher; /* set before the first change */
	struct host host; /* of the senders: with the authenticator that was found at the start */
	struct authenticator *authenticator;
	pthread_mutex_t changing; /* held while the list changes; guards the following members */
	pthread_cond_t ended;
	uint32_t ending; /* members that pool threads stop */
	bool closed;
	pthread_rwlock_t lock; /* guards the following members */
	struct load_balancing_place places[LOAD_BALANCING_MEMBERS_MAX];
	uint32_t count;
	struct load_balancing_member *left;
	struct loop_timer *timer; /* loop thread */
	struct metric_series *backends, *updates;
	bool too_many; /* and it was logged */
};

extern const struct metric load_balancing_backends, load_balancing_updates, load_balancing_outcome,
	load_balancing_latency, load_balancing_diverted;

/* In create: finds the authenticator. */
void load_balancing_members_init(struct load_balancing_members *members,
				 const struct load_balancing_members_options *options);
/* Also of zeroed memory. */
void load_balancing_members_fini(struct load_balancing_members *members);

/* From now on these are the members: "host:port". Only the first 64 count. False: one of them could
 * not be made; the others are members. [loop thread] */
bool load_balancing_members_set(struct load_balancing_members *members, char *const *endpoints,
				size_t count, struct error *err);
/* Cancels calls in flight, and waits for their ends and for load_balancing_members_used. There are
 * no changes any more. [not the loop thread] */
void load_balancing_members_stop(struct load_balancing_members *members);
bool load_balancing_members_reopen(struct load_balancing_members *members, struct error *err);

/* Returns the number of candidates. `avoided`: limits.avoided. */
size_t load_balancing_members_list(
	struct load_balancing_members *members, const uint32_t *avoided,
	struct load_balancing_candidate candidates[LOAD_BALANCING_MEMBERS_MAX]);
uint32_t load_balancing_members_count(struct load_balancing_members *members);
bool load_balancing_members_has(struct load_balancing_members *members, uint32_t number);
/* NULL: it is no member any more. load_balancing_members_used follows. */
struct load_balancing_member *load_balancing_members_use(struct load_balancing_members *members,
							 uint32_t number);
void load_balancing_members_used(struct load_balancing_member *member);

#endif
