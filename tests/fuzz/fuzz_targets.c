/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/pprof_targets.h"

#include <stdlib.h>
#include <string.h>

/* What a target file says is refused with a reason and leaves nothing, or becomes targets with
 * complete attributes, each once. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { TARGETS_MAX = 50 };

static void check_target(const struct pprof_target *t)
{
	bool named = false;
	if (strncmp(t->base, "http://", 7) && strncmp(t->base, "https://", 8))
		abort();
	if (!*t->place || strpbrk(t->place, "/?#@ ") || strlen(t->host) > strlen(t->place))
		abort();
	for (const struct metadatum *a = t->attributes; a->name; a++) {
		named = named || !strcmp(a->name, "service.name");
		if (!a->value || !strncmp(a->name, "__", 2))
			abort();
	}
	if (!named)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct pprof_targets_defaults defaults = { "http", "job", TARGETS_MAX };
	struct pprof_targets list = { 0 }, again = { 0 };
	struct error err = { 0 };
	bool ok = pprof_targets_parse(&list, (struct view){ data, len }, &defaults, &err);
	if (ok == (err.kind != ERROR_NONE) || (!ok && list.count) || list.count > TARGETS_MAX)
		abort();
	pprof_targets_join(&again, &list);
	pprof_targets_join(&again, &list);
	pprof_targets_sort(&list);
	pprof_targets_sort(&again);
	if (again.count != list.count || again.bytes != list.bytes)
		abort();
	for (size_t i = 0; i < list.count; i++)
		check_target(list.at[i]);
	pprof_targets_fini(&again);
	pprof_targets_fini(&list);
	return 0;
}
