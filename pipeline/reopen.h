/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_REOPEN_H
#define PIPELINE_REOPEN_H

#include "config/table.h"
#include "pipeline/component.h"

/*
 * Reads the certificates of a client again, on demand (SIGHUP) and at an interval, and logs the
 * result. Part of grpc_sender, http_sender and the scraper.
 */
struct reopen {
	const struct host *host;
	/* Reads the files. False: they are broken, the old ones stay in use, err names the cause.
	 * [any thread] */
	bool (*read)(void *sender, bool *changed, struct error *err);
	void *sender;
	int64_t interval_ns;
	struct loop_timer *timer; /* NULL: on demand only */
};

/* Starts the timer if the interval is positive. Everything is borrowed until reopen_fini. */
void reopen_start(struct reopen *reopen);
void reopen_fini(struct reopen *reopen); /* also of a zeroed one */
/* [any thread] Now. */
bool reopen_now(struct reopen *reopen, struct error *err);

#endif
