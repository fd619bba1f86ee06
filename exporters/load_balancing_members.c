/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/load_balancing_members.h"

#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

/* After the last call must have ended. */
#define SPARE_NS UINT64_C(1000000000)
/* For one without a timeout. */
#define CALL_NS UINT64_C(30000000000)
/* Not each time if too much waits for a member again and again. */
#define LINE_NS UINT64_C(60000000000)

const struct metric load_balancing_backends = { "otelcol_loadbalancer_num_backends", METRIC_GAUGE,
						"{backends}", "Current number of members." };
const struct metric load_balancing_updates = {
	"otelcol_loadbalancer_num_backend_updates", METRIC_COUNTER, "{updates}",
	"The number of times that the list of members changed."
};
const struct metric load_balancing_outcome = {
	"otelcol_loadbalancer_backend_outcome", METRIC_COUNTER, "{requests}",
	"Requests to each member that succeeded or failed, attempts counted one by one."
};
const struct metric load_balancing_latency = {
	"otelcol_loadbalancer_backend_latency", METRIC_COUNTER, "ms",
	"Time that each member took to answer, summed over all attempts. Divided by the outcomes, "
	"it is the average."
};
const struct metric load_balancing_diverted = {
	"otelcol_loadbalancer_backend_diverted", METRIC_GAUGE, "",
	"1 while other members get the new data of this one, because too much waits for it."
};

/* ---- life */

static struct authenticator *find(void *context, const char *id)
{
	struct load_balancing_members *m = context;
	(void)id;
	return authenticator_ref(m->authenticator);
}

void load_balancing_members_init(struct load_balancing_members *m,
				 const struct load_balancing_members_options *options)
{
	const struct host *host = options->host;
	const struct auth_config *auth = &options->config->auth;
	const struct metric_label labels[] = { { "exporter", host->id },
					       { "resolver", options->resolver },
					       { 0 } };
	m->options = *options;
	pthread_mutex_init(&m->changing, NULL);
	pthread_cond_init(&m->ended, NULL);
	pthread_rwlock_init(&m->lock, NULL);
	m->authenticator = host_authenticator(host, &auth->present, auth->authenticator);
	m->host = *host;
	m->host.authenticators = (struct authenticators){ m, find };
	m->backends = metrics_series(host->metrics, &load_balancing_backends, labels);
	m->updates = metrics_series(host->metrics, &load_balancing_updates, labels);
}

static void free_member(struct load_balancing_member *member)
{
	if (!member)
		return;
	grpc_sender_fini(&member->sender);
	memory_free(member->endpoint);
	memory_free(member);
}

void load_balancing_members_fini(struct load_balancing_members *m)
{
	if (!m->options.host)
		return;
	loop_timer_unref(&m->timer);
	for (size_t i = 0; i < LOAD_BALANCING_MEMBERS_MAX; i++) {
		free_member(m->places[i].member);
		memory_free(m->places[i].endpoint);
	}
	while (m->left) {
		struct load_balancing_member *member = m->left;
		m->left = member->next;
		free_member(member);
	}
	authenticator_unref(&m->authenticator);
	pthread_rwlock_destroy(&m->lock);
	pthread_cond_destroy(&m->ended);
	pthread_mutex_destroy(&m->changing);
}

/* ---- members that have left */

static void look_for_ends(void *argument);

/* On the loop thread, with `changing`. */
static void start_timer(struct load_balancing_members *m)
{
	uint64_t now = clock_now(), next = UINT64_MAX;
	for (const struct load_balancing_member *l = m->left; l; l = l->next)
		if (!l->ending && l->ends_at < next)
			next = l->ends_at;
	if (next == UINT64_MAX || m->closed)
		return;
	if (!m->timer)
		m->timer = loop_timer_new(m->options.host->loop, look_for_ends, m);
	loop_timer_start(m->timer, next > now ? next - now : 0);
}

static void unlink_member(struct load_balancing_members *m, struct load_balancing_member *member)
{
	pthread_rwlock_wrlock(&m->lock);
	struct load_balancing_member **link = &m->left;
	while (*link != member)
		link = &(*link)->next;
	*link = member->next;
	pthread_rwlock_unlock(&m->lock);
}

/* Cancels its calls, and waits for their ends, and for the threads that have begun them: a call may
 * end before load_balancing_members_used. */
static void stop_member(struct load_balancing_member *member)
{
	grpc_sender_stop(&member->sender);
	while (member->users)
		sched_yield();
}

/* On a pool thread. */
static void end_member(void *argument)
{
	struct load_balancing_member *member = argument;
	struct load_balancing_members *m = member->all;
	stop_member(member);
	unlink_member(m, member);
	free_member(member);
	pthread_mutex_lock(&m->changing);
	m->ending--;
	pthread_cond_signal(&m->ended);
	pthread_mutex_unlock(&m->changing);
}

static void look_for_ends(void *argument)
{
	struct load_balancing_members *m = argument;
	uint64_t now = clock_now();
	pthread_mutex_lock(&m->changing);
	pthread_rwlock_rdlock(&m->lock);
	for (struct load_balancing_member *l = m->closed ? NULL : m->left; l; l = l->next) {
		if (l->ending || l->ends_at > now)
			continue;
		l->ending = true;
		m->ending++;
		loop_work(m->options.host->loop, end_member, NULL, l);
	}
	start_timer(m);
	pthread_rwlock_unlock(&m->lock);
	pthread_mutex_unlock(&m->changing);
}

/* Under the lock. */
static void leave(struct load_balancing_members *m, struct load_balancing_place *place)
{
	struct load_balancing_member *member = place->member;
	place->member = NULL;
	m->count--;
	metric_set(member->diverts, 0);
	member->ends_at =
		clock_now() + (m->options.call_ns ? m->options.call_ns : CALL_NS) + SPARE_NS;
	member->next = m->left;
	m->left = member;
}

/* ---- joining */

/* The place that this endpoint had last, else one that had none, else any. */
static struct load_balancing_place *place_for(struct load_balancing_members *m,
					      const char *endpoint)
{
	struct load_balancing_place *unused = NULL, *used = NULL;
	for (size_t i = 0; i < LOAD_BALANCING_MEMBERS_MAX; i++) {
		struct load_balancing_place *place = &m->places[i];
		if (place->member)
			continue;
		if (place->endpoint && !strcmp(place->endpoint, endpoint))
			return place;
		if (!place->endpoint && !unused)
			unused = place;
		used = used ? used : place;
	}
	return unused ? unused : used;
}

static void label(struct load_balancing_members *m, const struct metric *metric,
		  struct metric_series **series, const char *endpoint, const char *success)
{
	const struct metric_label labels[] = { { "exporter", m->options.host->id },
					       { "endpoint", endpoint },
					       { success ? "success" : NULL, success },
					       { 0 } };
	struct metrics *metrics = m->options.host->metrics;
	if (*series)
		metric_set(*series, 0);
	*series = *series ? metrics_relabel(metrics, metric, *series, labels)
			  : metrics_series(metrics, metric, labels);
}

static void label_place(struct load_balancing_members *m, struct load_balancing_place *place,
			const char *endpoint)
{
	if (place->endpoint && !strcmp(place->endpoint, endpoint))
		return;
	label(m, &load_balancing_outcome, &place->succeeded, endpoint, "true");
	label(m, &load_balancing_outcome, &place->failed, endpoint, "false");
	label(m, &load_balancing_latency, &place->latency, endpoint, NULL);
	label(m, &load_balancing_diverted, &place->diverts, endpoint, NULL);
	memory_free(place->endpoint);
	place->endpoint = memory_text(endpoint);
}

static struct load_balancing_member *new_member(struct load_balancing_members *m,
						const char *endpoint, struct error *err)
{
	struct load_balancing_member *member = memory_new(sizeof *member);
	member->all = m;
	member->endpoint = memory_text(endpoint);
	member->hash = load_balancing_hash(endpoint, strlen(endpoint));
	member->config = *m->options.config;
	member->config.endpoint = member->endpoint;
	if (grpc_sender_init(&member->sender, &member->config, m->options.method, member, &m->host,
			     err) &&
	    grpc_sender_start(&member->sender, NULL, err))
		return member;
	free_member(member);
	return NULL;
}

static bool join(struct load_balancing_members *m, const char *endpoint, struct error *err)
{
	struct load_balancing_member *member = new_member(m, endpoint, err);
	if (!member)
		return false;
	pthread_rwlock_wrlock(&m->lock);
	struct load_balancing_place *place = place_for(m, endpoint);
	uint32_t index = (uint32_t)(place - m->places);
	member->number = place->members++ * LOAD_BALANCING_MEMBERS_MAX + index + 1;
	label_place(m, place, endpoint);
	member->succeeded = place->succeeded;
	member->failed = place->failed;
	member->latency = place->latency;
	member->diverts = place->diverts;
	place->member = member;
	m->count++;
	pthread_rwlock_unlock(&m->lock);
	return true;
}

static bool is_listed(const char *endpoint, char *const *endpoints, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(endpoints[i], endpoint))
			return true;
	return false;
}

static bool is_member(const struct load_balancing_members *m, const char *endpoint)
{
	for (size_t i = 0; i < LOAD_BALANCING_MEMBERS_MAX; i++)
		if (m->places[i].member && !strcmp(m->places[i].member->endpoint, endpoint))
			return true;
	return false;
}

static uint32_t leave_all_but(struct load_balancing_members *m, char *const *endpoints,
			      size_t count)
{
	uint32_t before = m->count;
	pthread_rwlock_wrlock(&m->lock);
	for (size_t i = 0; i < LOAD_BALANCING_MEMBERS_MAX; i++) {
		struct load_balancing_place *place = &m->places[i];
		if (place->member && !is_listed(place->member->endpoint, endpoints, count))
			leave(m, place);
	}
	if (m->count < before)
		start_timer(m);
	pthread_rwlock_unlock(&m->lock);
	return before - m->count;
}

static size_t bound(struct load_balancing_members *m, size_t count)
{
	if (count <= LOAD_BALANCING_MEMBERS_MAX)
		return count;
	if (!m->too_many)
		log_warn(&m->options.host->log,
			 "The name has too many addresses. The first 64 in alphabetical order are "
			 "the members.",
			 log_number("addresses", count));
	m->too_many = true;
	return LOAD_BALANCING_MEMBERS_MAX;
}

static bool set(struct load_balancing_members *m, char *const *endpoints, size_t count,
		bool *changed, struct error *err)
{
	bool ok = true;
	count = bound(m, count);
	uint32_t left = leave_all_but(m, endpoints, count), joined = 0;
	for (size_t i = 0; i < count; i++) {
		if (is_member(m, endpoints[i]))
			continue;
		if (join(m, endpoints[i], err))
			joined++;
		else
			ok = false;
	}
	*changed = left || joined;
	if (!*changed)
		return ok;
	metric_set(m->backends, m->count);
	metric_add(m->updates, 1);
	log_info(&m->options.host->log, "The members have changed.",
		 log_number("members", m->count), log_number("joined", joined),
		 log_number("left", left));
	return ok;
}

bool load_balancing_members_set(struct load_balancing_members *m, char *const *endpoints,
				size_t count, struct error *err)
{
	bool changed = false;
	pthread_mutex_lock(&m->changing);
	bool ok = m->closed || set(m, endpoints, count, &changed, err);
	pthread_mutex_unlock(&m->changing);
	if (changed && m->watcher.changed)
		m->watcher.changed(m->watcher.context);
	return ok;
}

/* ---- all of them */

void load_balancing_members_stop(struct load_balancing_members *m)
{
	pthread_mutex_lock(&m->changing);
	m->closed = true;
	while (m->ending)
		pthread_cond_wait(&m->ended, &m->changing);
	pthread_mutex_unlock(&m->changing);
	loop_timer_unref(&m->timer);
	for (size_t i = 0; i < LOAD_BALANCING_MEMBERS_MAX; i++)
		if (m->places[i].member)
			stop_member(m->places[i].member);
	for (struct load_balancing_member *l = m->left; l; l = l->next)
		stop_member(l);
}

bool load_balancing_members_reopen(struct load_balancing_members *m, struct error *err)
{
	bool ok = true;
	pthread_mutex_lock(&m->changing);
	for (size_t i = 0; i < LOAD_BALANCING_MEMBERS_MAX; i++)
		if (m->places[i].member)
			ok = grpc_sender_reopen(&m->places[i].member->sender, err) && ok;
	pthread_mutex_unlock(&m->changing);
	return ok;
}

static bool is_in(const uint32_t *list, uint32_t number)
{
	while (list && *list && *list != number)
		list++;
	return list && *list;
}

static void log_avoided(const struct load_balancing_members *m,
			struct load_balancing_member *member, bool on)
{
	uint64_t now = clock_now();
	if (!on && atomic_exchange(&member->logged, false))
		log_info(&m->options.host->log, "The member gets its new data again.",
			 log_text("endpoint", member->endpoint));
	if (!on || now < member->quiet_until)
		return;
	member->quiet_until = now + LINE_NS;
	member->logged = true;
	log_warn(&m->options.host->log, "Too much waits for a member. Others get its new data.",
		 log_text("endpoint", member->endpoint));
}

/* Under the lock. */
static void avoid(const struct load_balancing_members *m, struct load_balancing_member *member,
		  bool on)
{
	if (atomic_exchange(&member->avoided, on) == on)
		return;
	metric_set(member->diverts, on);
	log_avoided(m, member, on);
}

size_t load_balancing_members_list(struct load_balancing_members *m, const uint32_t *list,
				   struct load_balancing_candidate at[LOAD_BALANCING_MEMBERS_MAX])
{
	size_t count = 0;
	pthread_rwlock_rdlock(&m->lock);
	for (size_t i = 0; i < LOAD_BALANCING_MEMBERS_MAX; i++) {
		struct load_balancing_member *member = m->places[i].member;
		if (!member)
			continue;
		bool avoided = is_in(list, member->number);
		avoid(m, member, avoided);
		at[count++] =
			(struct load_balancing_candidate){ member->hash, member->number, avoided };
	}
	pthread_rwlock_unlock(&m->lock);
	return count;
}

uint32_t load_balancing_members_count(struct load_balancing_members *m)
{
	pthread_rwlock_rdlock(&m->lock);
	uint32_t count = m->count;
	pthread_rwlock_unlock(&m->lock);
	return count;
}

/* Under the lock. */
static struct load_balancing_member *member_of(struct load_balancing_members *m, uint32_t number)
{
	struct load_balancing_member *member =
		number ? m->places[(number - 1) % LOAD_BALANCING_MEMBERS_MAX].member : NULL;
	return member && member->number == number ? member : NULL;
}

bool load_balancing_members_has(struct load_balancing_members *m, uint32_t number)
{
	pthread_rwlock_rdlock(&m->lock);
	bool has = member_of(m, number) != NULL;
	pthread_rwlock_unlock(&m->lock);
	return has;
}

struct load_balancing_member *load_balancing_members_use(struct load_balancing_members *m,
							 uint32_t number)
{
	pthread_rwlock_rdlock(&m->lock);
	struct load_balancing_member *member = member_of(m, number);
	if (member)
		member->users++;
	pthread_rwlock_unlock(&m->lock);
	return member;
}

void load_balancing_members_used(struct load_balancing_member *member)
{
	member->users--;
}
