/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/request.h"

#include <strings.h>

const char *const transport_names[TRANSPORT_COUNT] = {
	[TRANSPORT_GRPC] = "grpc",     [TRANSPORT_HTTP] = "http",   [TRANSPORT_FILE] = "file",
	[TRANSPORT_SCRAPE] = "scrape", [TRANSPORT_KAFKA] = "kafka",
};

static const char *find(const struct metadatum *list, const char *name)
{
	for (; list && list->name; list++)
		if (strcasecmp(list->name, name) == 0)
			return list->value;
	return NULL;
}

const char *request_metadata(const struct request *request, const char *name)
{
	size_t prefix = sizeof REQUEST_AUTH_PREFIX - 1;
	if (!request)
		return NULL;
	/* Never from a header of that name, which anybody could send. */
	if (strncasecmp(name, REQUEST_AUTH_PREFIX, prefix) == 0)
		return find(request->auth, name + prefix);
	return find(request->metadata, name);
}

void ack_init(struct ack *ack, enum ack_mode mode,
	      void (*done)(struct ack *ack, enum ack_outcome outcome))
{
	ack->mode = mode;
	atomic_init(&ack->holds, 1);
	atomic_init(&ack->refused, false);
	atomic_init(&ack->failed, false);
	ack->done = done;
}

void ack_hold(struct ack *ack)
{
	atomic_fetch_add_explicit(&ack->holds, 1, memory_order_relaxed);
}

static enum ack_outcome outcome_of(struct ack *ack)
{
	if (atomic_load_explicit(&ack->failed, memory_order_relaxed))
		return ACK_FAILED;
	return atomic_load_explicit(&ack->refused, memory_order_relaxed) ? ACK_REFUSED : ACK_TAKEN;
}

void ack_note(struct ack *ack, enum ack_outcome outcome)
{
	if (outcome)
		atomic_store_explicit(outcome == ACK_REFUSED ? &ack->refused : &ack->failed, true,
				      memory_order_relaxed);
}

void ack_release(struct ack *ack, enum ack_outcome outcome)
{
	ack_note(ack, outcome);
	if (atomic_fetch_sub_explicit(&ack->holds, 1, memory_order_acq_rel) == 1)
		ack->done(ack, outcome_of(ack));
}
