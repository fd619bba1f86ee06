/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/losses.h"

#include "base/memory.h"

#include <string.h>

void losses_add(struct losses *l, const char *exporter, int64_t samples)
{
	size_t i = 0;
	while (i < l->count && strcmp(l->at[i].exporter, exporter) != 0)
		i++;
	if (i == l->count) {
		l->at = memory_resize(l->at, (l->count + 1) * sizeof *l->at);
		l->at[l->count++] = (struct losses_entry){ .exporter = memory_text(exporter) };
	}
	l->at[i].samples += samples;
}

static void add(void *context, const char *exporter, int64_t samples)
{
	losses_add(context, exporter, samples);
}

static void subtract(void *context, const char *exporter, int64_t samples)
{
	losses_add(context, exporter, -samples);
}

void losses_begin(struct losses *l, struct ledger *ledger)
{
	ledger_each_destination(ledger, LEDGER_SHUTDOWN, subtract, l);
}

void losses_end(struct losses *l, struct ledger *ledger)
{
	ledger_each_destination(ledger, LEDGER_SHUTDOWN, add, l);
}

int64_t losses_total(const struct losses *l)
{
	int64_t total = 0;
	for (size_t i = 0; i < l->count; i++)
		total += l->at[i].samples;
	return total;
}

void losses_log(const struct losses *l, const struct log *log)
{
	struct log_field *fields = memory_array(l->count + 1, sizeof *fields);
	char **keys = memory_array(l->count + 1, sizeof *keys);
	size_t count = 0;
	fields[count++] = (struct log_field)log_number("lost_samples", losses_total(l));
	for (size_t i = 0; i < l->count; i++) {
		if (!l->at[i].samples)
			continue;
		keys[i] = memory_format("exporters::%s", l->at[i].exporter);
		fields[count++] = (struct log_field)log_number(keys[i], l->at[i].samples);
	}
	if (losses_total(l))
		log_error_fields(log, "The shutdown lost data.", fields, count);
	for (size_t i = 0; i < l->count; i++)
		memory_free(keys[i]);
	memory_free(keys);
	memory_free(fields);
}

void losses_fini(struct losses *l)
{
	for (size_t i = 0; i < l->count; i++)
		memory_free(l->at[i].exporter);
	memory_free(l->at);
	*l = (struct losses){ 0 };
}
