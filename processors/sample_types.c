/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/sample_types.h"
#include "pipeline/component.h"
#include "profile/sites.h"

/* Drops Profiles by their sample type. What only they refer to does not leave: collect copies what
 * is reachable. */
struct sample_types {
	const struct sample_types_config *config;
};

static bool sample_types_create(void *instance, const void *config, const struct host *host,
				struct error *err)
{
	struct sample_types *self = instance;
	(void)host, (void)err;
	self->config = config;
	return true;
}

/* An audit gets the type if the configuration names it. Any other is a string of the sender. */
static void drop(const struct sample_types *self, struct profiles *p, struct profile *profile)
{
	bool excluded = sample_types_named(&self->config->exclude, p, profile);
	profile->dropped = PROFILE_DROPPED;
	if (p->audit)
		p->audit->note(p->audit, SITE_SAMPLE_TYPE, "dropped",
			       excluded ? string_view(p, profile->sample_type.type) : view_of(""),
			       (struct audit_rule){ .row = excluded ? "exclude" : "include" });
}

static bool sample_types_process(void *instance, void *scratch, struct profiles *p,
				 struct error *err)
{
	const struct sample_types *self = instance;
	(void)scratch, (void)err;
	for (uint32_t i = 0; i < p->profiles.count; i++)
		if (!sample_types_pass(self->config, p, &p->profiles.at[i]))
			drop(self, p, &p->profiles.at[i]);
	return true;
}

static const struct processor_ops sample_types_ops = { .process = sample_types_process };

const struct component_factory sample_types_processor = {
	.type = "sample_types",
	.help = "Keeps or drops Profiles by their sample type.",
	.manual =
		"The samples of dropped Profiles count as `policy` in the ledger. Strings, stacks "
		"and all else that only they refer to do not leave either. Profiles that are kept "
		"are not changed: neither their values nor their temporality.\n\n"
		"To select for one destination only, see `sample_types` of its exporter. To send "
		"types to different destinations, see the connector `routing`. The Collector has "
		"no such processor.\n",
	.kind = COMPONENT_PROCESSOR,
	.processor = &sample_types_ops,
	.size = sizeof(struct sample_types),
	.config = &sample_types_table,
	.create = sample_types_create,
};
