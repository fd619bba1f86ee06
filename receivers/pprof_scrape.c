/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/pprof_scrape.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/schedule.h"
#include "pipeline/intake/source.h"
#include "profile/delta.h"
#include "profile/pprof/decode_pprof.h"
#include "receivers/pprof_client.h"
#include "receivers/pprof_report.h"

/* What a scrape in flight costs besides its body: a connection and libcurl's buffers. */
enum { FLIGHT_BYTES = 40960 };

/* One profile of one target. */
struct scrape {
	struct schedule_entry entry; /* the first member */
	struct active *active;
	const struct pprof_scrape_profile *profile;
	struct scrape *next; /* in its queue */
	uint64_t tick;       /* when it is to be scraped; postponed ones are scraped later */
	uint64_t begun;      /* of the current scrape */
	uint64_t succeeded;  /* of the last success, or since when it is a target */
	struct delta *delta;
	enum scrape_state state;
	bool suspect; /* the current scrape counts as one of a failing profile */
	/* The outcome of the current scrape: written by whoever has it, read by finish. */
	enum scrape_result result;
	int status;
	uint32_t retry_after_ms;
	char *why; /* the error of a profile; NULL: none */
	struct delta *fresh;
};

/* A target. It is freed when it is gone and no scrape of it waits or is in flight. */
struct active {
	struct pprof_scraper *scraper;
	struct pprof_target *target;
	uint32_t uses; /* scrapes that wait or are in flight */
	bool gone;
	struct scrape scrapes[];
};

struct queue {
	struct scrape *head, **tail;
	uint32_t count;
};

struct pprof_scraper {
	struct pprof_scraper_options options;
	uint32_t refs; /* of the owner, and of each scrape in flight [loop thread] */
	struct source *source;
	struct pprof_client client;
	struct schedule *schedule;
	struct loop_timer *period;
	struct active **actives; /* sorted by the identity of their targets */
	size_t count;
	int64_t held; /* bytes charged for the targets */
	/* scrapes that are due, oldest first: of profiles that fail, and of the others */
	struct queue failing, ready;
	uint32_t in_flight, suspects; /* suspects: of failing profiles */
	bool stopped;
	struct pprof_report report;
};

struct scrape_request {
	struct source_request source;
	struct scrape *scrape;
};

static struct entrance *entrance_of(const struct pprof_scraper *p)
{
	return p->options.host->entrance;
}

static void delta_release(const struct pprof_scraper *p, struct delta **delta)
{
	if (*delta)
		entrance_release(entrance_of(p), (int64_t)delta_bytes(*delta));
	delta_unref(delta);
}

static void scraper_release(struct pprof_scraper *p)
{
	if (--p->refs)
		return;
	source_unref(&p->source);
	pprof_client_fini(&p->client);
	memory_free(p);
}

static void active_release(struct active *a)
{
	struct pprof_scraper *p = a->scraper;
	if (!a->gone || a->uses)
		return;
	for (size_t i = 0; i < p->options.profile_count; i++)
		delta_release(p, &a->scrapes[i].delta);
	pprof_target_unref(&a->target);
	memory_free(a);
}

/* ---- decoding [worker] ---- */

/* Replaces the values by what was added since the last profile that was accepted. If that is
 * nothing, or if there is a new beginning, there is nothing to send. */
static bool subtract(struct scrape *s, struct profiles *p, const struct profiles_mark *mark,
		     struct error *err)
{
	struct pprof_scraper *scraper = s->active->scraper;
	enum delta_result result;
	struct delta *now = delta_apply(p, s->delta, &result, err);
	delta_release(scraper, &s->fresh); /* of another pipeline of the receiver */
	if (!now)
		return false;
	if (!entrance_hold(entrance_of(scraper), (int64_t)delta_bytes(now))) {
		delta_unref(&now);
		error_set(err, ERROR_BUSY, "no memory for the values of a cumulative profile");
		err->short_of_memory = true;
		return false;
	}
	s->fresh = now;
	if (result != DELTA_DIFFERENCE)
		profiles_rewind(p, mark);
	s->result = result == DELTA_FIRST   ? SCRAPE_FIRST
		    : result == DELTA_RESET ? SCRAPE_RESTARTED
					    : SCRAPE_SUCCESS;
	return true;
}

/* Those of the target, and the name of the profile. */
static void list_attributes(const struct scrape *s, struct metadatum *out)
{
	const struct metadatum *of_target = s->active->target->attributes;
	if (s->profile->series)
		*out++ = (struct metadatum){ "__name__", s->profile->series };
	do
		*out++ = *of_target;
	while (of_target++->name);
}

static bool scrape_decode(struct inbound *in, struct profiles *p, struct error *err)
{
	struct scrape *s = ((struct scrape_request *)in)->scrape;
	struct profiles_mark mark = profiles_mark(p);
	struct metadatum attributes[PPROF_TARGET_ATTRIBUTES + 1];
	if (!p->input.len)
		return error_set(err, ERROR_INVALID, "the profile is empty");
	list_attributes(s, attributes);
	return decode_pprof(p, p->input, attributes, err) &&
	       (!s->profile->delta || subtract(s, p, &mark, err));
}

static const struct document_format documents = {
	.decode = scrape_decode,
	.packed = true,
	/* A zero among many values is a byte, and becomes a sample. */
	.tables_factor = sizeof(struct sample) + 4,
};

/* ---- scrapes ---- */

static void pump(struct pprof_scraper *p);

static void enqueue(struct pprof_scraper *p, struct scrape *s)
{
	struct queue *q = s->state == SCRAPE_DOWN ? &p->failing : &p->ready;
	s->next = NULL;
	s->active->uses++;
	*q->tail = s;
	q->tail = &s->next;
	q->count++;
}

static struct scrape *dequeue(struct queue *q)
{
	struct scrape *s = q->head;
	q->head = s->next;
	if (!q->head)
		q->tail = &q->head;
	q->count--;
	return s;
}

static void on_due(void *context, struct schedule_entry *entry)
{
	struct pprof_scraper *p = context;
	enqueue(p, (struct scrape *)entry);
	pump(p);
}

/* When it is due next. Missed times are left out. */
static void plan_next(struct pprof_scraper *p, struct scrape *s)
{
	uint64_t now = clock_now(), interval = p->options.interval_ns;
	uint64_t retry = s->retry_after_ms * UINT64_C(1000000);
	if (p->stopped || s->active->gone)
		return;
	if (s->retry_after_ms) {
		schedule_add(p->schedule, &s->entry, now + (retry < interval ? retry : interval));
		return;
	}
	s->tick += interval;
	if (s->tick <= now)
		s->tick += (now - s->tick) / interval * interval + interval;
	schedule_add(p->schedule, &s->entry, s->tick);
}

static void keep_delta(struct pprof_scraper *p, struct scrape *s)
{
	if (s->result <= SCRAPE_RESTARTED && s->fresh) {
		delta_release(p, &s->delta);
		s->delta = s->fresh;
		s->fresh = NULL;
	}
	delta_release(p, &s->fresh);
	if (p->stopped)
		delta_release(p, &s->delta);
}

static void report(struct pprof_scraper *p, struct scrape *s)
{
	uint64_t now = clock_now();
	enum scrape_state before = s->state;
	pprof_report_result(&p->report, s->result, now - s->begun);
	s->state = pprof_report_state(before, s->result);
	if (s->state == SCRAPE_UP)
		s->succeeded = now;
	bool change = s->state == SCRAPE_DOWN ? before != SCRAPE_DOWN
					      : s->state == SCRAPE_UP && before == SCRAPE_DOWN;
	if (change && !s->active->gone)
		pprof_report_change(&p->report, s->active->target->place, s->profile->name,
				    s->result, s->status, s->why);
}

/* The scrape is over: s->result says how. [loop thread] */
static void finish(void *argument)
{
	struct scrape *s = argument;
	struct active *a = s->active;
	struct pprof_scraper *p = a->scraper;
	keep_delta(p, s);
	p->in_flight--;
	p->suspects -= s->suspect;
	if (!p->stopped) {
		report(p, s);
		plan_next(p, s);
	}
	memory_free(s->why);
	s->why = NULL;
	a->uses--;
	active_release(a);
	if (!p->stopped)
		pump(p);
	scraper_release(p);
}

static enum scrape_result result_of(const struct error *err)
{
	switch (err->kind) {
	case ERROR_BUSY:
		return err->short_of_memory ? SCRAPE_NO_MEMORY : SCRAPE_BUSY;
	case ERROR_INVALID:
		return SCRAPE_INVALID;
	case ERROR_TOO_LARGE:
		return SCRAPE_TOO_LARGE;
	case ERROR_UNSUPPORTED:
		return SCRAPE_ENCODING;
	default:
		return SCRAPE_REFUSED;
	}
}

static void fail(struct scrape *s, const struct error *err)
{
	memory_free(s->why);
	s->why = memory_text(err->text);
	s->result = result_of(err);
	s->retry_after_ms = 0;
	if (err->kind == ERROR_BUSY)
		s->retry_after_ms = err->retry_after_ms ? err->retry_after_ms : 1000;
}

/* On the loop thread, the graph may end right afterwards, so nothing is posted. [any thread] */
static void scrape_done(struct source_request *r, const struct outcome *outcome)
{
	struct scrape *s = ((struct scrape_request *)r)->scrape;
	if (outcome->error)
		fail(s, outcome->error);
	struct loop *loop = s->active->scraper->options.host->loop;
	if (loop_here(loop))
		finish(s);
	else
		loop_post(loop, finish, s);
}

/* Why there is nothing to submit; SCRAPE_SUCCESS: there is. */
static enum scrape_result judge(const struct http_result *result)
{
	if (result->failure)
		return pprof_report_failure(result->failure);
	if (result->status >= 300 && result->status < 400)
		return SCRAPE_REDIRECTED;
	if (result->status != 200)
		return SCRAPE_STATUS;
	return result->coding == CODING_UNKNOWN ? SCRAPE_ENCODING : SCRAPE_SUCCESS;
}

static void on_answer(void *argument, const struct http_result *result)
{
	struct scrape_request *request = argument;
	struct source_request *r = &request->source;
	struct scrape *s = request->scrape;
	s->result = judge(result);
	s->status = result->status;
	r->coding = result->coding;
	if (s->result == SCRAPE_SUCCESS && !s->active->scraper->stopped) {
		source_submit(r);
		return;
	}
	if (s->result == SCRAPE_TOO_LARGE)
		fail(s, &r->err);
	source_forget(r, s->result == SCRAPE_TOO_LARGE ? REFUSAL_TOO_LARGE : REFUSAL_NONE);
	finish(s);
}

static bool fetch(struct pprof_scraper *p, struct scrape *s, struct source_request *r)
{
	char *url = memory_format("%s%s", s->active->target->base, s->profile->path);
	struct http_get get = { .url = url,
				.timeout_ns = s->profile->timeout_ns,
				.body = &r->body };
	bool begun = pprof_client_get(&p->client, &get, on_answer, r);
	memory_free(url);
	return begun;
}

static void launch(struct pprof_scraper *p, struct scrape *s)
{
	struct error err = { 0 };
	struct source_request *r = source_request_new(p->source);
	((struct scrape_request *)r)->scrape = s;
	r->in.request.peer = s->active->target->host;
	r->in.overhead = FLIGHT_BYTES;
	s->begun = clock_now();
	s->suspect = s->state == SCRAPE_DOWN;
	s->status = 0;
	s->retry_after_ms = 0;
	p->in_flight++;
	p->suspects += s->suspect;
	p->refs++;
	bool admitted = source_admit(r, 0, &err);
	if (admitted && fetch(p, s, r))
		return;
	if (admitted) {
		source_forget(r, REFUSAL_NONE);
		s->result = SCRAPE_AUTH;
	} else {
		fail(s, &err);
	}
	loop_post(p->options.host->loop, finish, s);
}

/* The scrape that has waited longest and may begin; NULL: none. */
static struct scrape *next_of(struct pprof_scraper *p)
{
	uint32_t max = p->options.concurrent_max;
	struct queue *from = NULL;
	if (p->in_flight >= max)
		return NULL;
	if (p->ready.head)
		from = &p->ready;
	bool suspect = p->failing.head && p->suspects < (max + 3) / 4;
	if (suspect && (!from || p->failing.head->entry.due < from->head->entry.due))
		from = &p->failing;
	return from ? dequeue(from) : NULL;
}

static void pump(struct pprof_scraper *p)
{
	struct scrape *s;
	while ((s = next_of(p))) {
		if (!s->active->gone) {
			launch(p, s);
			continue;
		}
		s->active->uses--;
		active_release(s->active);
	}
}

/* ---- targets ---- */

static uint64_t jitter(const struct pprof_scraper *p)
{
	uint64_t random;
	hash_random(&random, sizeof random);
	return p->options.jitter_ns ? random % p->options.jitter_ns : 0;
}

static struct active *active_new(struct pprof_scraper *p, struct pprof_target *target)
{
	size_t count = p->options.profile_count;
	struct active *a = memory_new(sizeof *a + count * sizeof(struct scrape));
	uint64_t now = clock_now();
	a->scraper = p;
	a->target = pprof_target_ref(target);
	for (size_t i = 0; i < count; i++) {
		struct scrape *s = &a->scrapes[i];
		s->active = a;
		s->profile = &p->options.profiles[i];
		s->succeeded = now;
		s->tick = now + p->options.delay_ns + jitter(p);
		schedule_add(p->schedule, &s->entry, s->tick);
	}
	return a;
}

static void active_end(struct active *a)
{
	struct pprof_scraper *p = a->scraper;
	a->gone = true;
	for (size_t i = 0; i < p->options.profile_count; i++)
		schedule_remove(p->schedule, &a->scrapes[i].entry);
	active_release(a);
}

static int64_t bytes_of(const struct pprof_scraper *p, const struct pprof_targets *targets)
{
	size_t each = sizeof(struct active) + sizeof(struct active *) +
		      p->options.profile_count * (sizeof(struct scrape) + 2 * sizeof(void *));
	return (int64_t)(targets->bytes + targets->count * each);
}

/* Both lists are sorted: what is in one only is added or ended. */
static void merge(struct pprof_scraper *p, const struct pprof_targets *targets)
{
	struct active **fresh = memory_array(targets->count, sizeof(struct active *));
	size_t old = 0;
	for (size_t i = 0; i < targets->count; i++) {
		int order = 1;
		while (old < p->count &&
		       (order = pprof_target_compare(p->actives[old]->target, targets->at[i])) < 0)
			active_end(p->actives[old++]);
		fresh[i] = old < p->count && order == 0 ? p->actives[old++]
							: active_new(p, targets->at[i]);
	}
	while (old < p->count)
		active_end(p->actives[old++]);
	memory_free(p->actives);
	p->actives = fresh;
	p->count = targets->count;
}

bool pprof_scraper_set_targets(struct pprof_scraper *p, const struct pprof_targets *targets)
{
	int64_t bytes = bytes_of(p, targets);
	if (!entrance_hold(entrance_of(p), bytes))
		return false;
	entrance_release(entrance_of(p), p->held);
	p->held = bytes;
	merge(p, targets);
	return true;
}

/* ---- the state of all ---- */

static void count_target(const struct pprof_scraper *p, const struct active *a, uint64_t now,
			 struct scrape_numbers *n)
{
	enum scrape_state state = SCRAPE_UP;
	for (size_t i = 0; i < p->options.profile_count; i++) {
		const struct scrape *s = &a->scrapes[i];
		int64_t age = (int64_t)(now - s->succeeded);
		n->oldest_ns = age > n->oldest_ns ? age : n->oldest_ns;
		n->delta_bytes += (int64_t)delta_bytes(s->delta);
		if (s->state == SCRAPE_DOWN || state == SCRAPE_DOWN)
			state = SCRAPE_DOWN;
		else if (s->state == SCRAPE_UNKNOWN)
			state = SCRAPE_UNKNOWN;
	}
	n->targets[state]++;
}

static void on_period(void *context)
{
	struct pprof_scraper *p = context;
	struct scrape_numbers numbers = { .in_flight = p->in_flight,
					  .waiting = p->ready.count + p->failing.count };
	uint64_t now = clock_now();
	for (size_t i = 0; i < p->count; i++)
		count_target(p, p->actives[i], now, &numbers);
	pprof_report_period(&p->report, &numbers);
	loop_timer_start(p->period, REPORT_PERIOD_NS);
}

void pprof_scraper_bad_files(struct pprof_scraper *p, uint32_t count)
{
	metric_set(p->report.bad_files, count);
}

/* ---- life ---- */

static void queue_init(struct queue *q)
{
	*q = (struct queue){ .tail = &q->head };
}

struct pprof_scraper *pprof_scraper_new(const struct pprof_scraper_options *options)
{
	struct pprof_scraper *p = memory_new(sizeof *p);
	p->options = *options;
	p->refs = 1;
	p->source =
		source_new(&(struct source_options){ .host = options->host,
						     .transport = TRANSPORT_SCRAPE,
						     .documents = &documents,
						     .request_size = sizeof(struct scrape_request),
						     .body_limit = options->body_limit,
						     .done = scrape_done });
	pprof_client_init(&p->client, options->client, options->host);
	queue_init(&p->ready);
	queue_init(&p->failing);
	pprof_report_init(&p->report, options->host);
	return p;
}

bool pprof_scraper_start(struct pprof_scraper *p, struct error *err)
{
	if (!pprof_client_start(&p->client, err))
		return false;
	p->schedule = schedule_new(p->options.host->loop, on_due, p);
	p->period = loop_timer_new(p->options.host->loop, on_period, p);
	loop_timer_start(p->period, REPORT_PERIOD_NS);
	return true;
}

static void stop_scraping(void *argument)
{
	struct pprof_scraper *p = argument;
	p->stopped = true;
	schedule_unref(&p->schedule);
	loop_timer_unref(&p->period);
	pprof_client_rest(&p->client);
}

static void forget_targets(void *argument)
{
	struct pprof_scraper *p = argument;
	while (p->ready.head)
		dequeue(&p->ready)->active->uses--;
	while (p->failing.head)
		dequeue(&p->failing)->active->uses--;
	for (size_t i = 0; i < p->count; i++) {
		p->actives[i]->gone = true;
		active_release(p->actives[i]);
	}
	memory_free(p->actives);
	p->actives = NULL;
	p->count = 0;
	entrance_release(entrance_of(p), p->held);
	p->held = 0;
}

void pprof_scraper_stop(struct pprof_scraper *p)
{
	struct loop *loop = p->options.host->loop;
	loop_call(loop, stop_scraping, p);
	pprof_client_stop(&p->client);
	source_stop(p->source);
	loop_call(loop, forget_targets, p);
}

bool pprof_scraper_reopen(struct pprof_scraper *p, struct error *err)
{
	return reopen_now(&p->client.reopen, err);
}

void pprof_scraper_unref(struct pprof_scraper **slot)
{
	struct pprof_scraper *p = *slot;
	*slot = NULL;
	if (p)
		scraper_release(p);
}
