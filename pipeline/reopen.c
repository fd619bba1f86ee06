/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/reopen.h"

bool reopen_now(struct reopen *r, struct error *err)
{
	bool changed = false;
	bool ok = r->read(r->sender, &changed, err);
	if (changed)
		log_info(&r->host->log, "Certificates reloaded");
	return ok;
}

static void is_due(void *argument)
{
	struct reopen *r = argument;
	struct error err = { 0 };
	if (!reopen_now(r, &err))
		log_error(&r->host->log, "Failed to reload certificates; keeping the current ones",
			  log_text("error", err.text));
	loop_timer_start(r->timer, (uint64_t)r->interval_ns);
}

void reopen_start(struct reopen *r)
{
	if (r->interval_ns <= 0)
		return;
	r->timer = loop_timer_new(r->host->loop, is_due, r);
	loop_timer_start(r->timer, (uint64_t)r->interval_ns);
}

void reopen_fini(struct reopen *r)
{
	loop_timer_unref(&r->timer);
}
