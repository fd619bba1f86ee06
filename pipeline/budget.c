/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/budget.h"
#include "base/clock.h"
#include "base/system.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define MIB ((int64_t)1 << 20)
#define ROOM_LEAST (4 * MIB) /* above what is resident at rest: less would refuse most requests */
/* as a pprof of 64 KiB: its tables at forty times, its part of a batch */
#define REQUEST_BYTES (4 * MIB)
#define LARGE_BYTES MIB /* so much is worth a wait, and a look at the real size */
#define RESERVE_SHARE 8 /* the part of the budget that idle connections leave to requests */
/* for which a refusal means that memory is short: it will be sent again */
#define REFUSED_NS UINT64_C(2000000000)
#define CLAIM_PATIENCE_NS UINT64_C(100000000) /* for what others give back who claim nothing */
/* for the next release of those who claim: one may hang on a disk */
#define CLAIM_WAIT_NS UINT64_C(1000000000)

static _Thread_local unsigned held_here; /* large claims of this thread */

static const struct metric charged_bytes = {
	"otelcol_memory_charged_bytes", METRIC_GAUGE, "By",
	"Bytes charged for requests, batches and queues; with what was resident at the start, they "
	"stay below the soft limit."
};
static const struct metric soft_limit_bytes = {
	"otelcol_memory_soft_limit_bytes", METRIC_GAUGE, "By",
	"Above it requests are refused: the hard limit less the spike."
};
static const struct metric resting_bytes = { "otelcol_memory_resting_bytes", METRIC_GAUGE, "By",
					     "Resident memory when the program became ready." };

const struct metric *const memory_metrics[] = { &charged_bytes, &soft_limit_bytes, &resting_bytes,
						NULL };

int64_t memory_ceiling(void)
{
	return (int64_t)(system_memory() / 5 * 4);
}

int64_t memory_resident(void)
{
	long total = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	if (!file)
		return 0;
	if (fscanf(file, "%ld %ld", &total, &resident) != 2)
		resident = 0;
	fclose(file);
	return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

int64_t memory_heap(int64_t *from_system)
{
	struct mallinfo2 info = mallinfo2();
	*from_system = (int64_t)(info.arena + info.hblkhd);
	return (int64_t)(info.uordblks + info.hblkhd);
}

void memory_init(struct memory *m, int64_t limit, int64_t spike)
{
	*m = (struct memory){ .limit = limit,
			      .soft = limit - spike,
			      .claiming = PTHREAD_MUTEX_INITIALIZER };
}

static int between(int64_t least, int64_t value, int64_t most)
{
	return (int)(value < least ? least : value > most ? most : value);
}

/* Bodies, tables and packets come and go with each request; if malloc gives their pages back early,
 * they are faulted in again each time. Where memory is short that is the better choice. 32 MiB is
 * the most that glibc takes for the first. */
void memory_tune(const struct memory *m)
{
	mallopt(M_MMAP_THRESHOLD, between(MIB / 4, m->limit / 128, 32 * MIB));
	mallopt(M_TRIM_THRESHOLD, between(MIB / 4, m->limit / 128, 256 * MIB));
	mallopt(M_TOP_PAD, between(MIB / 4, m->limit / 256, 4 * MIB));
}

static int64_t mib_above(int64_t bytes)
{
	return (bytes + MIB - 1) / MIB;
}

static bool refuse_limit(const struct memory *m, int64_t baseline, struct error *err)
{
	int64_t missing = baseline + ROOM_LEAST - m->soft;
	/* The spike may be a share of the limit. */
	int64_t limit =
		m->limit + (int64_t)((double)missing * ((double)m->limit / (double)m->soft));
	return error_set(err, ERROR_CONFIG,
			 "the memory limit is too low: %" PRId64 " MiB, less a spike of %" PRId64
			 " MiB, and the process needs "
			 "%" PRId64 " MiB at rest and %" PRId64
			 " MiB for requests; the limit must be at least %" PRId64 " MiB",
			 m->limit / MIB, mib_above(m->limit - m->soft), mib_above(baseline),
			 ROOM_LEAST / MIB, mib_above(limit));
}

bool memory_ready(struct memory *m, struct error *err)
{
	/* Receivers may have begun: what is charged already counts once. */
	int64_t resident = memory_resident(), charged = atomic_load(&m->charged);
	int64_t baseline = resident > charged ? resident - charged : 0;
	atomic_store(&m->baseline, baseline);
	return m->soft - baseline >= ROOM_LEAST || refuse_limit(m, baseline, err);
}

int64_t memory_allowance(const struct memory *m)
{
	int64_t baseline = atomic_load(&m->baseline);
	int64_t room = m->soft - (baseline ? baseline : memory_resident());
	return room > ROOM_LEAST ? room : ROOM_LEAST;
}

int64_t memory_share(const struct memory *m, uint32_t workers, uint32_t destinations)
{
	int64_t room = memory_allowance(m), reserve = REQUEST_BYTES * workers;
	if (reserve < room / 4)
		reserve = room / 4;
	return (room - (reserve < room / 2 ? reserve : room / 2)) / destinations;
}

int64_t memory_batch_max(const struct memory *m, int64_t share)
{
	int64_t of_room = memory_allowance(m) / 32, of_share = share / 10;
	return of_room < of_share ? of_room : of_share;
}

void memory_check(struct memory *m)
{
	int64_t resident = memory_resident();
	if (resident > m->soft) {
		malloc_trim(0);
		resident = memory_resident();
	}
	atomic_store(&m->over, resident > m->limit);
}

/* What was freed and is still resident is charged to nobody. Nor is what the allocator loses
 * between blocks, and what core holds of messages that are not complete: most of the spike is for
 * them. */
static bool really_fits(const struct memory *m, int64_t bytes)
{
	int64_t most = m->soft + (m->limit - m->soft) / 4;
	if (!atomic_load(&m->baseline) || memory_resident() + bytes <= most)
		return true;
	malloc_trim(0);
	return memory_resident() + bytes <= most;
}

bool memory_take(struct memory *m, int64_t bytes, int64_t soft)
{
	int64_t before = atomic_fetch_add(&m->charged, bytes);
	if (bytes <= 0)
		return true;
	int64_t used = before + bytes + atomic_load(&m->baseline) + atomic_load(&m->claimed);
	bool short_of = bytes >= LARGE_BYTES && used > soft / 2;
	if (!atomic_load(&m->over) && used <= soft && (!short_of || really_fits(m, bytes)))
		return true;
	atomic_fetch_sub(&m->charged, bytes);
	return false;
}

int64_t memory_room(const struct memory *m)
{
	return m->soft - atomic_load(&m->charged) - atomic_load(&m->baseline) -
	       atomic_load(&m->claimed);
}

static int64_t reserve(const struct memory *m)
{
	return (m->soft - atomic_load(&m->baseline)) / RESERVE_SHARE;
}

bool memory_is_short(const struct memory *m)
{
	uint64_t refused = atomic_load(&m->refused);
	return atomic_load(&m->over) || memory_room(m) < reserve(m) ||
	       (refused && clock_now() < refused + REFUSED_NS);
}

int64_t memory_spare(const struct memory *m)
{
	int64_t room = memory_room(m) - reserve(m), own = reserve(m) - atomic_load(&m->spare);
	return room > own ? room : own;
}

bool memory_take_spare(struct memory *m, int64_t bytes)
{
	int64_t before = atomic_fetch_add(&m->spare, bytes);
	if (memory_take(m, bytes, m->soft - reserve(m)))
		return true;
	if (before + bytes <= reserve(m) && !atomic_load(&m->over)) {
		memory_add(m, bytes);
		return true;
	}
	atomic_fetch_sub(&m->spare, bytes);
	return false;
}

void memory_give_spare(struct memory *m, int64_t bytes)
{
	atomic_fetch_sub(&m->spare, bytes);
	memory_give(m, bytes);
}

bool memory_could_take(const struct memory *m, int64_t bytes)
{
	return bytes + atomic_load(&m->baseline) <= m->soft;
}

bool memory_refuse(struct memory *m, int64_t bytes, struct error *err)
{
	if (!memory_could_take(m, bytes))
		return error_set(err, ERROR_TOO_LARGE,
				 "the request needs more memory than the "
				 "limit leaves for requests");
	atomic_store(&m->refused, clock_now());
	error_set(err, ERROR_BUSY, "data refused due to high memory usage");
	err->reason = "memory";
	return false;
}

static bool has_room(const struct memory *m, int64_t bytes)
{
	return atomic_load(&m->charged) + atomic_load(&m->baseline) + bytes <= m->soft;
}

/* The turn of the first who came; until then and meanwhile nobody else is let in. */
static void wait_for_room(struct memory *m, int64_t bytes)
{
	static const struct timespec pause = { 0, 1000000 };
	pthread_mutex_lock(&m->claiming);
	uint64_t begun = clock_now();
	while (!has_room(m, bytes)) {
		uint64_t released = atomic_load(&m->released), now = clock_now();
		uint64_t since = now - (released > begun && released < now ? released : begun);
		if (since >= (atomic_load(&m->holders) ? CLAIM_WAIT_NS : CLAIM_PATIENCE_NS))
			break;
		nanosleep(&pause, NULL);
	}
	really_fits(m, bytes); /* gives back what is nobody's */
	atomic_fetch_add(&m->holders, 1);
	memory_add(m, bytes);
	pthread_mutex_unlock(&m->claiming);
}

void memory_claim(struct memory *m, int64_t bytes)
{
	if (bytes >= LARGE_BYTES && !held_here++) {
		atomic_fetch_add(&m->claimed, bytes);
		wait_for_room(m, bytes);
		atomic_fetch_sub(&m->claimed, bytes);
	} else {
		memory_add(m, bytes);
	}
}

void memory_release(struct memory *m, int64_t bytes)
{
	if (bytes >= LARGE_BYTES && !--held_here) {
		atomic_store(&m->released, clock_now());
		atomic_fetch_sub(&m->holders, 1);
	}
	memory_give(m, bytes);
}

void memory_charge(void *memory, int64_t bytes, bool claim)
{
	if (!claim)
		memory_add(memory, bytes);
	else if (bytes > 0)
		memory_claim(memory, bytes);
	else
		memory_release(memory, -bytes);
}

void memory_add(struct memory *m, int64_t bytes)
{
	atomic_fetch_add(&m->charged, bytes);
}

void memory_give(struct memory *m, int64_t bytes)
{
	atomic_fetch_sub(&m->charged, bytes);
}

static void refresh(void *argument)
{
	struct memory *m = argument;
	series_set(m->charged_now, atomic_load(&m->charged));
	series_set(m->at_rest, atomic_load(&m->baseline));
}

void memory_show(struct memory *m, struct metrics *metrics)
{
	m->charged_now = metrics_series(metrics, &charged_bytes, NULL);
	m->at_rest = metrics_series(metrics, &resting_bytes, NULL);
	series_set(metrics_series(metrics, &soft_limit_bytes, NULL), m->soft);
	metrics_on_scrape(metrics, refresh, m);
}

void memory_hide(struct memory *m, struct metrics *metrics)
{
	metrics_off_scrape(metrics, m);
}
