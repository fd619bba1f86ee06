/* SPDX-License-Identifier: Apache-2.0 */
#include "config/problems.h"

#include <string.h>

#include "base/memory.h"

bool problems_add(struct problems *problems, const struct error *err)
{
	for (size_t i = 0; i < problems->count; i++)
		if (!strcmp(problems->at[i], err->text))
			return false;
	if (problems->count == PROBLEMS_MAX) {
		problems->omitted++;
		return false;
	}
	problems->at = memory_resize(problems->at, (problems->count + 1) * sizeof *problems->at);
	problems->at[problems->count++] = memory_text(err->text);
	return false;
}

bool problems_none(const struct problems *problems, struct error *err)
{
	return !problems->count || error_set(err, ERROR_CONFIG, "%s", problems->at[0]);
}

void problems_fini(struct problems *problems)
{
	for (size_t i = 0; i < problems->count; i++)
		memory_free(problems->at[i]);
	memory_free(problems->at);
	*problems = (struct problems){ 0 };
}
