/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/details.h"

#include "base/memory.h"
#include "base/quote.h"
#include "pipeline/delivery/outage.h"

#include <string.h>

struct state {
	const char *name;
	const char *detail; /* NULL: it is as it should be */
};

static const struct state reload_states[] = {
	{ "healthy", NULL },
	{ "failed", "the last reload of the configuration failed; an earlier one is in use" },
};

static const struct state storage_states[] = {
	[STORAGE_HEALTHY] = { "healthy", NULL },
	[STORAGE_SET_ASIDE] = { "set_aside",
				"a damaged or foreign database was renamed; a new one is in use" },
	[STORAGE_FULL] = { "full", "max_size_mib is reached" },
	[STORAGE_FAILING] = { "failing", "the disk is full, read-only or fails" },
};

/* What follows from a storage that takes nothing. */
static const char *const consequences[] = {
	[STORAGE_REFUSE] = "senders have to retry", [STORAGE_MEMORY] = "queues continue in memory"
};

static const struct state circuit_states[] = {
	[CIRCUIT_CLOSED] = { "closed", NULL },
	[CIRCUIT_HALF_OPEN] = { "half_open",
				"the destination answers again; the number of requests in flight "
				"increases" },
	[CIRCUIT_OPEN] = { "open",
			   "the destination does not answer; only one probe at a time is sent" },
};

struct details {
	struct bytes *json;
	bool all, begun;
};

/* In the words of the log. */
static void add_cause(struct details *list, const struct send_result *why)
{
	struct log_field fields[OUTAGE_CAUSE_FIELDS];
	size_t count = outage_cause(why, fields);
	for (size_t i = 0; i < count; i++) {
		bytes_format(list->json, ",\"%s\":", fields[i].key);
		if (fields[i].kind == LOG_FIELD_TEXT)
			quote_json(list->json, fields[i].text, strlen(fields[i].text));
		else
			bytes_format(list->json, "%ld", (long)fields[i].integer);
	}
}

/* why: of a destination that fails; or NULL */
static void add(struct details *list, const char *component, const struct state *state,
		const char *consequence, const struct send_result *why)
{
	if (!state->detail && !list->all)
		return;
	bytes_add_text(list->json, list->begun ? ",{\"component\":" : "{\"component\":");
	list->begun = true;
	quote_json(list->json, component, strlen(component));
	bytes_format(list->json, ",\"state\":\"%s\"", state->name);
	if (state->detail)
		bytes_format(list->json, ",\"detail\":\"%s%s%s\"", state->detail,
			     consequence ? "; " : "", consequence ? consequence : "");
	if (state->detail && why)
		add_cause(list, why);
	bytes_add_byte(list->json, '}');
}

static void add_named(struct details *list, const char *kind, const char *id,
		      const struct state *state, const char *consequence,
		      const struct send_result *why)
{
	char *component = memory_format("%s::%s", kind, id);
	add(list, component, state, consequence, why);
	memory_free(component);
}

static void add_storage(void *context, const char *id, enum storage_condition condition,
			enum storage_on_error on_error)
{
	add_named(context, "extensions", id, &storage_states[condition],
		  condition >= STORAGE_FULL ? consequences[on_error] : NULL, NULL);
}

static void add_exporter(void *context, const char *id, enum circuit_state circuit,
			 const struct send_result *why)
{
	add_named(context, "exporters", id, &circuit_states[circuit], NULL, why);
}

void details_write(const struct service *s, bool all, struct bytes *json)
{
	struct details list = { .json = json, .all = all };
	bytes_add_byte(json, '[');
	add(&list, "service", &reload_states[s->reload.failed], NULL, NULL);
	storages_each(s->runtime.storages, add_storage, &list);
	exporters_each(s->runtime.exporters, add_exporter, &list);
	bytes_add_byte(json, ']');
}
