/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/named_auths.h"

#include "base/memory.h"

static struct authenticator *find(void *context, const char *id)
{
	struct named_auths *named = context;
	struct authenticator *a = named->graph.find(named->graph.context, id);
	if (!a)
		return NULL;
	named->at = memory_resize(named->at, (named->count + 1) * sizeof *named->at);
	named->at[named->count++] = (struct named_auth){ memory_text(id), a };
	return a;
}

struct authenticators named_auths_record(struct named_auths *named, struct authenticators graph)
{
	named->graph = graph;
	return (struct authenticators){ named, find };
}

bool named_auths_same(const struct named_auths *named, struct authenticators graph)
{
	for (size_t i = 0; i < named->count; i++) {
		struct authenticator *a = graph.find(graph.context, named->at[i].id);
		bool same = a == named->at[i].found;
		authenticator_unref(&a);
		if (!same)
			return false;
	}
	return true;
}

const char *const *named_auths_context_keys(const struct named_auths *named)
{
	const char *const *keys = NULL;
	for (size_t i = 0; i < named->count; i++)
		if (named->at[i].found->context_keys)
			keys = named->at[i].found->context_keys;
	return keys;
}

void named_auths_fini(struct named_auths *named)
{
	for (size_t i = 0; i < named->count; i++)
		memory_free(named->at[i].id);
	memory_free(named->at);
	*named = (struct named_auths){ 0 };
}
