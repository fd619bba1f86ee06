/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "pipeline/delivery/delivery_private.h"
#include "profile/collect/collect.h"

/* How long a destination without a timeout may take to answer. */
#define PROBE_NS UINT64_C(30000000000)

struct probe {
	struct sending sending;
	struct part part;
	struct send_result result;
	void (*done)(void *context, const struct send_result *result);
	void *context;
};

/* On the loop thread. */
static void end(void *argument)
{
	struct probe *probe = argument;
	probe->done(probe->context, &probe->result);
	packet_unref(&probe->part.packet);
	memory_free(probe);
}

/* On any thread. */
static void answered(struct sending *sending, const struct send_result *result)
{
	struct probe *probe = (struct probe *)((char *)sending - offsetof(struct probe, sending));
	probe->result = *result;
	loop_post(sending->delivery->options.loop, end, probe);
}

static uint64_t patience(const struct delivery *d, uint64_t timeout_ns)
{
	int64_t configured = d->options.config->timeout.ns;
	if (timeout_ns)
		return timeout_ns;
	return configured > 0 ? (uint64_t)configured : PROBE_NS;
}

void delivery_probe(struct delivery *d, uint32_t member, uint64_t timeout_ns,
		    void (*done)(void *context, const struct send_result *result), void *context)
{
	struct probe *probe = memory_new(sizeof *probe);
	probe->sending = (struct sending){ .done = answered, .delivery = d };
	probe->part = (struct part){ .packet = collect_nothing(), .group = member };
	probe->done = done;
	probe->context = context;
	d->options.ops->probe(d->options.exporter, &probe->part, patience(d, timeout_ns),
			      &probe->sending);
}

/* ---- what the result means ---- */

/* The fields of the log that are not in the sentence, each behind a separator. */
static void describe(const struct send_result *r, const char *said, struct bytes *out)
{
	struct log_field fields[OUTAGE_CAUSE_FIELDS];
	size_t count = outage_cause(r, fields);
	for (size_t i = 0; i < count; i++) {
		const struct log_field *f = &fields[i];
		if (f->kind != LOG_FIELD_TEXT)
			bytes_format(out, ", %s %lld", f->key, (long long)f->integer);
		else if (f->text != said)
			bytes_format(out, ", %s %s", f->key, f->text);
	}
}

static bool refuse(const struct send_result *r, struct error *err)
{
	const char *cause = cause_text(r->cause.kind), *said = cause ? cause : r->reason;
	struct bytes rest;
	bytes_init(&rest, sizeof err->text);
	describe(r, said, &rest);
	bool more = rest.len > 2;
	error_set(err, ERROR_BUSY, "the destination does not accept data: %s%s%.*s%s", said,
		  more ? " (" : "", more ? (int)rest.len - 2 : 0,
		  more ? (const char *)rest.at + 2 : "", more ? ")" : "");
	bytes_fini(&rest);
	return false;
}

bool delivery_probe_judge(const struct send_result *r, struct error *err)
{
	/* Some stores reject a request without data as invalid. That status is the protocol's, so
	 * only a server of the protocol answers with it. */
	return r->outcome == SEND_OK || !strcmp(r->reason, "invalid_argument") || refuse(r, err);
}
