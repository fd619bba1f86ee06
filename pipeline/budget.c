/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/budget.h"
#include "base/clock.h"
#include "base/system.h"

#include <inttypes.h>
#include <malloc.h>
#include <time.h>

#define MIB ((int64_t)1 << 20)
/* minimum above the resident memory at rest: with less, most requests would be refused */
#define ROOM_MIN (4 * MIB)
/* a pprof of 64 KiB, with tables of forty times its size, and its part of a batch */
#define REQUEST_BYTES (4 * MIB)
#define LARGE_BYTES MIB /* from this size on, a claim waits, and the resident size is checked */
#define RESERVE_SHARE 8 /* idle connections leave this fraction of the budget to requests */
#define SHED_SHARE 4    /* best-effort data leaves this fraction of it to the rest */
/* Of the room: little is charged below CALM_SHARE for CALM_CHECKS; much is resident that nobody was
 * charged for above TRIM_SHARE. */
#define CALM_SHARE 4
#define CALM_CHECKS 3
#define TRIM_SHARE 32
#define VAIN_MAX 20 /* a trim that returns little doubles the pause before the next one */
#define SECOND_NS UINT64_C(1000000000)
/* how long after a refusal memory counts as short: the refused request will be sent again */
#define REFUSED_NS UINT64_C(2000000000)
/* to wait for memory that others release without a claim */
#define CLAIM_PATIENCE_NS UINT64_C(100000000)
/* to wait for the next release by the holder of a claim, which may wait for a disk */
#define CLAIM_WAIT_NS SECOND_NS

static _Thread_local unsigned held_here; /* the number of large claims of this thread */

static const struct metric charged_bytes = {
	"otelcol_memory_charged_bytes", METRIC_GAUGE, "By",
	"Bytes charged for requests, batches and queues. Together with the baseline, they stay "
	"below the soft limit."
};
static const struct metric soft_limit_bytes = {
	"otelcol_memory_soft_limit_bytes", METRIC_GAUGE, "By",
	"Soft limit: the hard limit minus the spike limit. Above it, requests are refused."
};
static const struct metric resting_bytes = { "otelcol_memory_baseline_bytes", METRIC_GAUGE, "By",
					     "Resident memory when the program became ready." };

static const struct metric shedding_state = {
	"otelcol_memory_shedding", METRIC_GAUGE, "{state}",
	"1 while best-effort destinations and senders give way because memory is short."
};

const struct metric *const budget_metrics[] = { &charged_bytes, &soft_limit_bytes, &resting_bytes,
						&shedding_state, NULL };

int64_t budget_ceiling(void)
{
	return (int64_t)(system_memory() / 5 * 4);
}

void budget_init(struct budget *b, int64_t limit, int64_t spike)
{
	*b = (struct budget){ .limit = limit,
			      .soft = limit - spike,
			      .mutex = PTHREAD_MUTEX_INITIALIZER,
			      .changed = PTHREAD_COND_INITIALIZER,
			      .relieving = PTHREAD_MUTEX_INITIALIZER };
}

static int between(int64_t min, int64_t value, int64_t max)
{
	return (int)(value < min ? min : value > max ? max : value);
}

/* Bodies, tables and packets are allocated and freed with each request. If malloc returns their
 * pages early, they are faulted in again each time. If memory is short, that is the better choice.
 * glibc accepts at most 32 MiB for the first of these options. */
void budget_tune(const struct budget *b)
{
	mallopt(M_MMAP_THRESHOLD, between(MIB / 4, b->limit / 128, 32 * MIB));
	mallopt(M_TRIM_THRESHOLD, between(MIB / 4, b->limit / 128, 256 * MIB));
	/* A small free block in a list of its own keeps its neighbours from the top of the heap;
	 * when malloc_trim joins them, it returns them in the first heap only. */
	mallopt(M_MXFAST, 0);
	mallopt(M_TOP_PAD, between(MIB / 4, b->limit / 256, 4 * MIB));
}

static int64_t mib_above(int64_t bytes)
{
	return (bytes + MIB - 1) / MIB;
}

static bool refuse_limit(const struct budget *b, int64_t baseline, struct error *err)
{
	int64_t missing = baseline + ROOM_MIN - b->soft;
	/* The spike may be a share of the limit. */
	int64_t limit =
		b->limit + (int64_t)((double)missing * ((double)b->limit / (double)b->soft));
	return error_set(err, ERROR_CONFIG,
			 "the memory limit is too low: %" PRId64 " MiB, minus a spike of %" PRId64
			 " MiB, and the process needs "
			 "%" PRId64 " MiB at rest and %" PRId64
			 " MiB for requests; the limit must be at least %" PRId64 " MiB",
			 b->limit / MIB, mib_above(b->limit - b->soft), mib_above(baseline),
			 ROOM_MIN / MIB, mib_above(limit));
}

bool budget_ready(struct budget *b, struct error *err)
{
	/* Receivers may have started: bytes that are already charged must not count twice. */
	int64_t resident = system_resident(), charged = atomic_load(&b->charged);
	int64_t baseline = resident > charged ? resident - charged : 0;
	atomic_store(&b->baseline, baseline);
	return b->soft - baseline >= ROOM_MIN || refuse_limit(b, baseline, err);
}

int64_t budget_allowance(const struct budget *b)
{
	int64_t baseline = atomic_load(&b->baseline);
	int64_t room = b->soft - (baseline ? baseline : system_resident());
	return room > ROOM_MIN ? room : ROOM_MIN;
}

int64_t budget_share(const struct budget *b, uint32_t workers, uint32_t destinations)
{
	int64_t room = budget_allowance(b), reserve = REQUEST_BYTES * workers;
	if (reserve < room / 4)
		reserve = room / 4;
	return (room - (reserve < room / 2 ? reserve : room / 2)) / destinations;
}

int64_t budget_batch_max(const struct budget *b, int64_t share)
{
	int64_t of_room = budget_allowance(b) / 32, of_share = share / 10;
	return of_room < of_share ? of_room : of_share;
}

/* What is resident, and charged to nobody. */
static int64_t unaccounted(const struct budget *b, int64_t resident)
{
	return resident - atomic_load(&b->baseline) - atomic_load(&b->charged);
}

/* Was much allocated or freed since the last trim? */
static bool has_changed(const struct budget *b, int64_t resident, int64_t much)
{
	return unaccounted(b, resident) - b->unaccounted_then > much ||
	       b->charged_then - atomic_load(&b->charged) > much;
}

/* After a burst, malloc keeps most of it. While requests come and go, that saves page faults. What
 * others than malloc hold (gRPC core, for example) comes back later, which nobody reports. */
static bool should_trim(struct budget *b, int64_t resident)
{
	int64_t room = b->soft - atomic_load(&b->baseline), much = room / TRIM_SHARE;
	b->calm = atomic_load(&b->charged) < room / CALM_SHARE ? b->calm + 1 : 0;
	if (has_changed(b, resident, much))
		b->vain = 0;
	return unaccounted(b, resident) > much && b->calm >= (uint64_t)CALM_CHECKS << b->vain;
}

static int64_t trim(struct budget *b, int64_t before)
{
	malloc_trim(0);
	int64_t resident = system_resident();
	bool vain = before - resident < (b->soft - atomic_load(&b->baseline)) / TRIM_SHARE / 2;
	b->vain = !vain ? 0 : b->vain + (b->vain < VAIN_MAX);
	b->calm = 0;
	b->charged_then = atomic_load(&b->charged);
	b->unaccounted_then = unaccounted(b, resident);
	return resident;
}

static bool relieve(struct budget *b);

void budget_check(struct budget *b)
{
	int64_t resident = system_resident();
	if (should_trim(b, resident) || resident > b->soft)
		resident = trim(b, resident);
	atomic_store(&b->over, resident > b->limit);
	if (budget_sheds(b))
		relieve(b);
	b->shedding = atomic_exchange(&b->shed, false) || (b->shedding && budget_sheds(b));
}

/* Memory that was freed but is still resident is charged to nobody. The same is true for what the
 * allocator loses between blocks, and for what gRPC core holds of incomplete messages. Most of the
 * spike is for these. */
static bool really_fits(const struct budget *b, int64_t bytes)
{
	int64_t max = b->soft + (b->limit - b->soft) / 4;
	if (!atomic_load(&b->baseline) || system_resident() + bytes <= max)
		return true;
	malloc_trim(0);
	return system_resident() + bytes <= max;
}

/* A thread that waits adds to `claimed` before it reads `charged`: either it sees the change, or it
 * is woken. */
static int64_t change(struct budget *b, int64_t bytes)
{
	int64_t before = atomic_fetch_add(&b->charged, bytes);
	if (bytes < 0 && atomic_load(&b->claimed)) {
		pthread_mutex_lock(&b->mutex);
		pthread_cond_broadcast(&b->changed);
		pthread_mutex_unlock(&b->mutex);
	}
	return before;
}

void budget_add(struct budget *b, int64_t bytes)
{
	change(b, bytes);
}

void budget_give(struct budget *b, int64_t bytes)
{
	change(b, -bytes);
}

static bool try_take(struct budget *b, int64_t bytes, int64_t soft)
{
	int64_t before = change(b, bytes);
	if (bytes <= 0)
		return true;
	int64_t used = before + bytes + atomic_load(&b->baseline) + atomic_load(&b->claimed);
	bool short_of = bytes >= LARGE_BYTES && used > soft / 2;
	if (!atomic_load(&b->over) && used <= soft && (!short_of || really_fits(b, bytes)))
		return true;
	budget_give(b, bytes);
	return false;
}

void budget_on_short(struct budget *b, struct budget_relief *relief)
{
	pthread_mutex_lock(&b->relieving);
	relief->next = b->reliefs;
	b->reliefs = relief;
	pthread_mutex_unlock(&b->relieving);
}

void budget_off_short(struct budget *b, struct budget_relief *relief)
{
	pthread_mutex_lock(&b->relieving);
	struct budget_relief **at = &b->reliefs;
	while (*at != relief)
		at = &(*at)->next;
	*at = relief->next;
	pthread_mutex_unlock(&b->relieving);
}

/* False: there was nothing to drop. */
static bool relieve(struct budget *b)
{
	bool dropped = false;
	pthread_mutex_lock(&b->relieving);
	for (struct budget_relief *r = b->reliefs; r; r = r->next)
		dropped = r->shed(r->context) || dropped;
	pthread_mutex_unlock(&b->relieving);
	if (dropped)
		budget_note_shed(b);
	return dropped;
}

void budget_note_shed(struct budget *b)
{
	atomic_store(&b->shed, true);
}

/* What does not fit because of a lower limit, such as the share of a peer, sheds nothing while
 * there is memory. */
bool budget_take(struct budget *b, int64_t bytes, int64_t soft)
{
	if (try_take(b, bytes, soft))
		return true;
	bool is_short = budget_room(b) < bytes || budget_sheds(b);
	return is_short && relieve(b) && try_take(b, bytes, soft);
}

int64_t budget_room(const struct budget *b)
{
	return b->soft - atomic_load(&b->charged) - atomic_load(&b->baseline) -
	       atomic_load(&b->claimed);
}

static int64_t reserve(const struct budget *b)
{
	return (b->soft - atomic_load(&b->baseline)) / RESERVE_SHARE;
}

static bool has_less_than(const struct budget *b, int64_t room)
{
	uint64_t refused = atomic_load(&b->refused);
	return atomic_load(&b->over) || budget_room(b) < room ||
	       (refused && clock_now() < refused + REFUSED_NS);
}

bool budget_is_short(const struct budget *b)
{
	return has_less_than(b, reserve(b));
}

bool budget_sheds(const struct budget *b)
{
	return has_less_than(b, (b->soft - atomic_load(&b->baseline)) / SHED_SHARE);
}

int64_t budget_spare(const struct budget *b)
{
	int64_t room = budget_room(b) - reserve(b), own = reserve(b) - atomic_load(&b->spare);
	return room > own ? room : own;
}

bool budget_take_spare(struct budget *b, int64_t bytes)
{
	int64_t before = atomic_fetch_add(&b->spare, bytes);
	if (budget_take(b, bytes, b->soft - reserve(b)))
		return true;
	if (before + bytes <= reserve(b) && !atomic_load(&b->over)) {
		budget_add(b, bytes);
		return true;
	}
	atomic_fetch_sub(&b->spare, bytes);
	return false;
}

void budget_give_spare(struct budget *b, int64_t bytes)
{
	atomic_fetch_sub(&b->spare, bytes);
	budget_give(b, bytes);
}

bool budget_could_take(const struct budget *b, int64_t bytes)
{
	return bytes + atomic_load(&b->baseline) <= b->soft;
}

bool budget_refuse(struct budget *b, int64_t bytes, struct error *err)
{
	int64_t baseline = atomic_load(&b->baseline);
	if (!budget_could_take(b, bytes))
		return error_set(err, ERROR_TOO_LARGE,
				 "the request needs %ld bytes of memory; memory_limiter leaves %ld "
				 "for requests",
				 bytes, b->soft - baseline);
	atomic_store(&b->refused, clock_now());
	error_set(err, ERROR_BUSY,
		  "data refused due to high memory usage: %ld bytes are in use; the soft limit of "
		  "memory_limiter is %ld",
		  atomic_load(&b->charged) + baseline, b->soft);
	err->short_of_memory = true;
	return false;
}

static bool has_room(const struct budget *b, int64_t bytes)
{
	return atomic_load(&b->charged) + atomic_load(&b->baseline) + bytes <= b->soft;
}

/* The time until which a claim waits. It has waited since `begun`. */
static uint64_t patience_ends(const struct budget *b, uint64_t begun)
{
	uint64_t released = atomic_load(&b->released);
	return (released > begun ? released : begun) +
	       (atomic_load(&b->holders) ? CLAIM_WAIT_NS : CLAIM_PATIENCE_NS);
}

static void wait_until(struct budget *b, uint64_t until)
{
	struct timespec at = { (time_t)(until / SECOND_NS), (long)(until % SECOND_NS) };
	pthread_cond_clockwait(&b->changed, &b->mutex, CLOCK_MONOTONIC, &at);
}

/* Claims take turns in order of arrival. */
static void wait_for_turn(struct budget *b, int64_t bytes)
{
	pthread_mutex_lock(&b->mutex);
	uint64_t turn = b->arrived++;
	while (b->turn != turn)
		pthread_cond_wait(&b->changed, &b->mutex);
	uint64_t begun = clock_now(), until;
	while (!has_room(b, bytes) && clock_now() < (until = patience_ends(b, begun)))
		wait_until(b, until);
	pthread_mutex_unlock(&b->mutex);
}

static void end_turn(struct budget *b)
{
	pthread_mutex_lock(&b->mutex);
	b->turn++;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->mutex);
}

void budget_claim(struct budget *b, int64_t bytes)
{
	if (bytes >= LARGE_BYTES && !held_here++) {
		atomic_fetch_add(&b->claimed, bytes);
		wait_for_turn(b, bytes);
		really_fits(b, bytes); /* makes malloc return freed memory to the system */
		atomic_fetch_add(&b->holders, 1);
		budget_add(b, bytes);
		end_turn(b);
		atomic_fetch_sub(&b->claimed, bytes);
	} else {
		budget_add(b, bytes);
	}
}

void budget_release(struct budget *b, int64_t bytes)
{
	if (bytes >= LARGE_BYTES && !--held_here) {
		atomic_store(&b->released, clock_now());
		atomic_fetch_sub(&b->holders, 1);
	}
	budget_give(b, bytes);
}

void budget_charge(void *budget, int64_t bytes, bool claim)
{
	if (!claim)
		budget_add(budget, bytes);
	else if (bytes > 0)
		budget_claim(budget, bytes);
	else
		budget_release(budget, -bytes);
}

static void refresh(void *argument)
{
	struct budget *b = argument;
	metric_set(b->charged_now, atomic_load(&b->charged));
	metric_set(b->at_rest, atomic_load(&b->baseline));
	metric_set(b->sheds_now, b->shedding);
}

void budget_show(struct budget *b, struct metrics *metrics)
{
	b->charged_now = metrics_series(metrics, &charged_bytes, NULL);
	b->at_rest = metrics_series(metrics, &resting_bytes, NULL);
	b->sheds_now = metrics_series(metrics, &shedding_state, NULL);
	metric_set(metrics_series(metrics, &soft_limit_bytes, NULL), b->soft);
	metrics_on_scrape(metrics, refresh, b);
}

void budget_hide(struct budget *b, struct metrics *metrics)
{
	metrics_off_scrape(metrics, b);
}
