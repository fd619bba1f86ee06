/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdio.h>
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

/* As the fields of the log have it; each item begins with a separator. */
static void describe(const struct send_result *r, struct bytes *out)
{
	if (r->cause.kind)
		bytes_format(out, ", error %s, stage %s", r->reason, cause_stage(r->cause.kind));
	if (r->cause.os_error)
		bytes_format(out, ", errno %s", strerrorname_np(r->cause.os_error));
	if (r->http_status)
		bytes_format(out, ", HTTP status %d", r->http_status);
	if (r->grpc_status)
		bytes_format(out, ", gRPC status %d", r->grpc_status);
}

static bool refuse(const struct send_result *r, struct error *err)
{
	struct bytes details;
	const char *cause = r->cause.kind ? cause_text(r->cause.kind) : r->reason;
	bytes_init(&details, sizeof err->text);
	describe(r, &details);
	error_set(err, ERROR_BUSY, "the destination does not accept data: %s", cause);
	if (details.len > 2) {
		size_t used = strlen(err->text);
		snprintf(err->text + used, sizeof err->text - used, " (%.*s)", (int)details.len - 2,
			 (const char *)details.at + 2);
	}
	bytes_fini(&details);
	return false;
}

bool delivery_probe_judge(const struct send_result *r, struct error *err)
{
	/* Some stores reject a request without data as invalid. That status is the protocol's, so
	 * only a server of the protocol answers with it. */
	return r->outcome == SEND_OK || !strcmp(r->reason, "invalid_argument") || refuse(r, err);
}
