/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BENCH_POLICY_H
#define TESTS_BENCH_POLICY_H

#include <string.h>

#include "base/memory.h"
#include "config/load.h"
#include "pipeline/component.h"

/* The policy that benches apply: an allow-list and every detector that is on by default. One
 * thread. */
extern const struct component_factory allowlist_processor, pii_processor;

static const char bench_policy[] =
	"allowlist: {keys: [service.name, service.version, service.namespace, "
	"deployment.environment, region, thread.name, process.executable.name, container.id]}\n"
	"pii: {}\n";

struct policy_stage {
	const struct component_factory *factory;
	void *config, *self, *scratch;
	struct host host;
};

struct policy {
	struct policy_stage stages[2];
};

static bool policy_open(struct policy *policy, struct error *err)
{
	struct metrics *metrics = metrics_new();
	struct node *root = config_parse("policy", bench_policy, strlen(bench_policy), err);
	bool ok = root != NULL;
	policy->stages[0].factory = &allowlist_processor;
	policy->stages[1].factory = &pii_processor;
	for (struct policy_stage *s = policy->stages; ok && s < policy->stages + 2; s++) {
		s->config = memory_new(s->factory->config->size);
		s->self = memory_new(s->factory->size);
		s->scratch = memory_new(s->factory->processor->scratch_size);
		s->host = (struct host){ .id = s->factory->type,
					 .pipeline = "profiles",
					 .metrics = metrics };
		ok = config_bind(s->factory->config, node_get(root, s->factory->type),
				 s->factory->type, s->config, err) &&
		     s->factory->create(s->self, s->config, &s->host, err);
	}
	return ok;
}

static bool policy_apply(const struct policy *policy, struct profiles *p, struct error *err)
{
	for (const struct policy_stage *s = policy->stages; s < policy->stages + 2; s++)
		if (!s->factory->processor->process(s->self, s->scratch, p, err))
			return false;
	return true;
}

#endif
