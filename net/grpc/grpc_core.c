/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_core.h"

#include "base/clock.h"
#include "base/log.h"

#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <pthread.h>
#include <string.h>

#define LOG_INTERVAL_NS (60 * UINT64_C(1000000000))
#define LOG_PLACES 32

/* A source line of core that logs. Peers can trigger some of these lines as often as they like. */
struct place {
	const char *file; /* a string literal of core */
	int line;
	uint64_t count, logged_at; /* of all its log lines; the time of our last one */
};

static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static pthread_mutex_t places_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards places */
static struct place places[LOG_PLACES]; /* the last one counts all lines that have no other place */

static struct place *place_of(const char *file, int line)
{
	struct place *p = places;
	for (; p < places + LOG_PLACES - 1 && p->file; p++)
		if (p->line == line && strcmp(p->file, file) == 0)
			return p;
	p->file = file;
	p->line = line;
	return p;
}

/* Counts a log line. Returns the count of its place if it is time to log it, else 0. */
static uint64_t count_line(const char *file, int line)
{
	uint64_t now = clock_now(), due = 0;
	pthread_mutex_lock(&places_mutex);
	struct place *p = place_of(file, line);
	p->count++;
	if (!p->logged_at || now - p->logged_at >= LOG_INTERVAL_NS) {
		p->logged_at = now;
		due = p->count;
	}
	pthread_mutex_unlock(&places_mutex);
	return due;
}

/* Runs on any thread, possibly with locks of core held: it must not call core. */
static void take_log(gpr_log_func_args *args)
{
	static const struct log log;
	const char *slash = strrchr(args->file, '/');
	uint64_t count = count_line(args->file, args->line);
	if (count)
		log_warn(&log, "A library reported a problem; its message is withheld",
			 log_text("library", "gRPC C core"),
			 log_text("file", slash ? slash + 1 : args->file),
			 log_number("line", args->line), log_number("count", count));
}

/* Calls absl::SetMutexDeadlockDetectionMode(OnDeadlockCycle::kIgnore) of Debian 12's absl
 * 20220623. */
static void switch_off_deadlock_detector(void)
{
	void (*set_mode)(int) = NULL;
	*(void **)&set_mode =
		dlsym(RTLD_DEFAULT,
		      "_ZN4absl7debian329SetMutexDeadlockDetectionModeENS0_15OnDeadlockCycleE");
	if (set_mode)
		set_mode(0);
}

static void prepare(void)
{
	switch_off_deadlock_detector();
	gpr_set_log_function(take_log);
}

void grpc_core_init(void)
{
	pthread_once(&prepared, prepare);
	grpc_init();
}

void grpc_core_shutdown(void)
{
	grpc_shutdown();
}
