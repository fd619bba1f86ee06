/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_NAME_WATCH_H
#define NET_NAME_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/loop.h"

/*
 * Resolves a name again and again, on a thread of its own: a look-up may hang for as long as the
 * servers of resolv.conf do not answer, and cannot be cancelled. A loop that does not run yet gets
 * the first result when it does.
 */
struct name_watch_options {
	const char *name; /* borrowed during name_watch_new */
	/* between look-ups; and how long one server may take to answer, in whole seconds, at least
	 * one */
	uint64_t interval_ns, timeout_ns;
	struct loop *loop;
	/* Each result: numeric addresses, sorted, each once; borrowed. NULL: the look-up failed.
	 * [loop thread] */
	void (*resolved)(void *context, char *const *addresses, size_t count);
	void *context;
};

struct name_watch;

/* The first look-up begins at once. */
struct name_watch *name_watch_new(const struct name_watch_options *options, struct error *err);
/* Ends it. `resolved` is not called any more when it returns. A look-up that is under way is left
 * to its thread, which ends with it. Accepts NULL; clears. [not the loop thread; the loop runs] */
void name_watch_stop(struct name_watch **watch);

#endif
