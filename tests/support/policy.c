/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/policy.h"
#include "base/memory.h"
#include "config/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

bool policy_open(struct policy *policy, const struct component_factory *factory, const char *yaml)
{
	*policy = (struct policy){ .factory = factory, .host = { .id = factory->type } };
	policy->config = memory_new(factory->config->size);
	policy->self = memory_new(factory->size);
	policy->scratch = memory_new(factory->processor->scratch_size);
	policy->host.metrics = metrics_new();
	policy->tree = config_parse("test", yaml, strlen(yaml), &policy->err);
	return policy->tree &&
	       config_bind(factory->config, policy->tree, factory->type, policy->config,
			   &policy->err) &&
	       factory->create(policy->self, policy->config, &policy->host, &policy->err);
}

void policy_must_open(struct policy *policy, const struct component_factory *factory,
		      const char *yaml)
{
	if (!policy_open(policy, factory, yaml))
		fail_msg("%s", policy->err.text);
}

void policy_close(struct policy *policy)
{
	if (policy->factory->processor->scratch_fini)
		policy->factory->processor->scratch_fini(policy->self, policy->scratch);
	if (policy->factory->destroy)
		policy->factory->destroy(policy->self);
	config_release(policy->factory->config, policy->config);
	node_unref(&policy->tree);
	metrics_unref(&policy->host.metrics);
	memory_free(policy->config);
	memory_free(policy->self);
	memory_free(policy->scratch);
}

bool policy_run(struct policy *policy, struct profiles *p)
{
	error_clear(&policy->err);
	return policy->factory->processor->process(policy->self, policy->scratch, p, &policy->err);
}

int64_t policy_count(struct policy *policy, const char *metric, const char *label,
		     const char *value)
{
	struct bytes text;
	char want[100];
	int64_t sum = 0;
	bytes_init(&text, 1 << 20);
	metrics_write(policy->host.metrics, &text);
	bytes_add_byte(&text, 0);
	snprintf(want, sizeof want, "%s=\"%s\"", label, value);
	for (char *rest = (char *)text.at, *line; (line = strsep(&rest, "\n"));)
		if (strncmp(line, metric, strlen(metric)) == 0 && strstr(line, want))
			sum += strtoll(strrchr(line, ' '), NULL, 10);
	bytes_fini(&text);
	return sum;
}

void tables_init(struct profiles *p, struct request *request, uint32_t samples)
{
	assert_true(profiles_reset(p, request, (struct view){ 0 }, 64 << 20));
	assert_true(profiles_room(p, &p->resources, 1) && profiles_room(p, &p->scopes, 1) &&
		    profiles_room(p, &p->profiles, 1) && profiles_room(p, &p->samples, samples));
	p->resources.at[p->resources.count++] = (struct resource){ .scopes = { 0, 1 } };
	p->scopes.at[p->scopes.count++] = (struct scope){ .profiles = { 0, 1 } };
	p->profiles.at[p->profiles.count++] = (struct profile){
		.sample_type = { tables_text(p, "cpu"), tables_text(p, "nanoseconds") },
		.has_sample_type = 1,
		.samples = { 0, samples },
	};
	memset(p->samples.at, 0, samples * sizeof *p->samples.at);
	p->samples.count = samples;
}

uint32_t tables_text(struct profiles *p, const char *text)
{
	return profiles_text_new(p, text, strlen(text));
}

uint32_t tables_attribute(struct profiles *p, const char *key, const char *value)
{
	return profiles_attribute_new(p, (struct attribute){ .key = tables_text(p, key),
							     .type = VALUE_STRING,
							     .string = tables_text(p, value) });
}

uint32_t tables_integer(struct profiles *p, const char *key, int64_t value)
{
	struct attribute a = { .key = tables_text(p, key), .type = VALUE_INT };
	attribute_set_integer(&a, value);
	return profiles_attribute_new(p, a);
}

uint32_t tables_nested(struct profiles *p, enum value_type type, const char *key, ...)
{
	struct attribute a = { .key = tables_text(p, key), .type = (uint8_t)type };
	va_list args;
	va_start(args, key);
	a.children.first = p->attributes.count;
	for (uint32_t child; (child = va_arg(args, uint32_t)); a.children.count++)
		profiles_attribute_new(p, p->attributes.at[child]);
	va_end(args);
	return profiles_attribute_new(p, a);
}

struct list tables_list(struct profiles *p, ...)
{
	struct list list = { p->indices.count, 0 };
	va_list args;
	va_start(args, p);
	for (uint32_t index; (index = va_arg(args, uint32_t)); list.count++) {
		assert_true(profiles_room(p, &p->indices, 1));
		p->indices.at[p->indices.count++] = index;
	}
	va_end(args);
	return list;
}

uint32_t tables_function(struct profiles *p, const char *name, const char *file)
{
	struct function function = { .name = tables_text(p, name),
				     .filename = tables_text(p, file) };
	assert_true(profiles_room(p, &p->functions, 1));
	p->functions.at[p->functions.count] = function;
	return p->functions.count++;
}

uint32_t tables_entity(struct profiles *p, const char *type, const char *id_key,
		       const char *description_key)
{
	struct entity entity = { .type = tables_text(p, type) };
	entity.id_keys = tables_list(p, tables_text(p, id_key), 0);
	entity.description_keys = tables_list(p, tables_text(p, description_key), 0);
	assert_true(profiles_room(p, &p->entities, 1));
	p->entities.at[p->entities.count] = entity;
	return p->entities.count++;
}

const struct attribute *tables_find(struct profiles *p, struct list list, const char *key)
{
	for (uint32_t i = 0; i < list.count; i++) {
		const struct attribute *a = &p->attributes.at[p->indices.at[list.first + i]];
		if (string_is(p, a->key, key))
			return a;
	}
	return NULL;
}

const char *tables_string(struct profiles *p, uint32_t string)
{
	static char text[16][16384];
	static unsigned turn;
	char *room = text[turn++ % 16];
	struct view v = string_view(p, string);
	snprintf(room, sizeof text[0], "%.*s", (int)v.len, v.at);
	return room;
}

const char *tables_value(struct profiles *p, struct list list, const char *key)
{
	const struct attribute *a = tables_find(p, list, key);
	return a && a->type == VALUE_STRING ? tables_string(p, a->string) : "";
}

static void dump_text(struct profiles *p, uint32_t string, struct bytes *out)
{
	struct view text = string_view(p, string);
	bytes_add(out, text.at, text.len);
	bytes_add_byte(out, '\n');
}

static void dump_attribute(struct profiles *p, const struct attribute *a, struct bytes *out)
{
	dump_text(p, a->key, out);
	dump_text(p, a->unit, out);
	if (a->type == VALUE_STRING)
		dump_text(p, a->string, out);
	if (a->type == VALUE_BYTES)
		bytes_add(out, span_view(p, a->bytes).at, a->bytes.len);
	if (a->type == VALUE_INT)
		bytes_format(out, "%lld\n", (long long)attribute_integer(a));
	if (a->type == VALUE_ARRAY || a->type == VALUE_KVLIST)
		for (uint32_t i = 0; i < a->children.count; i++)
			dump_attribute(p, &p->attributes.at[a->children.first + i], out);
}

static void dump_list(struct profiles *p, struct list *list, uint8_t *changed, void *out)
{
	(void)changed;
	for (uint32_t i = 0; i < list->count; i++)
		dump_attribute(p, &p->attributes.at[p->indices.at[list->first + i]], out);
}

static void dump_site_text(struct profiles *p, uint32_t *string, uint8_t *changed, void *out)
{
	(void)changed;
	dump_text(p, *string, out);
}

static void dump_entities(struct profiles *p, struct bytes *out)
{
	for (uint32_t r = 0; r < p->resources.count; r++) {
		struct list entities = p->resources.at[r].entities;
		for (uint32_t i = 0; i < entities.count; i++) {
			const struct entity *entity = &p->entities.at[entities.first + i];
			for (uint32_t n = 0; n < entity->id_keys.count; n++)
				dump_text(p, p->indices.at[entity->id_keys.first + n], out);
			for (uint32_t n = 0; n < entity->description_keys.count; n++)
				dump_text(p, p->indices.at[entity->description_keys.first + n],
					  out);
		}
	}
}

void tables_dump(struct profiles *p, struct bytes *out)
{
	for (enum site site = SITE_RESOURCE; site <= SITE_MAPPING; site++)
		sites_each_list(p, site, dump_list, out);
	for (enum site site = SITE_SCOPE_NAME; site < SITE_COUNT; site++)
		sites_each_text(p, site, (struct sites_settled){ 0 }, dump_site_text, out);
	dump_entities(p, out);
	for (uint32_t i = 0; i < p->samples.count; i++)
		if (p->samples.at[i].link)
			bytes_add(out, &p->links.at[p->samples.at[i].link], sizeof(struct link));
}

bool tables_reach(struct profiles *p, const char *text)
{
	struct bytes all;
	bytes_init(&all, 64 << 20);
	tables_dump(p, &all);
	bool found = memmem(all.at, all.len, text, strlen(text)) != NULL;
	bytes_fini(&all);
	return found;
}
