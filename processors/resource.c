/* SPDX-License-Identifier: Apache-2.0 */
#include "base/digest.h"
#include "base/memory.h"
#include "config/scalar.h"
#include "pipeline/component.h"
#include "processors/resource_actions.h"
#include "processors/value.h"
#include "profile/sites.h"
#include "profile/value_text.h"
#include "profile/wire.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

/*
 * The Collector's `resource` processor: a list of actions on the attributes of each resource, in
 * order. A key that stands several times counts as its first attribute: what is set replaces that
 * one and removes the others; delete and hash take all.
 *
 * Attribute records are shared, so a constant value is made once per request and its index put into
 * each resource's list.
 */
struct resource_config {
	struct config_items attributes;
};

struct processor {
	struct resource_action *actions;
	size_t count;
};

struct scratch {
	struct regex_memory *regex;
	struct made {
		uint32_t attribute; /* of a value that is the same for all resources of a request */
		uint32_t key;       /* string */
		bool tried;
	} * made; /* one per action */
};

#define CONTEXT_MAX 65536
#define SPARE 8 /* places that a grown list gets for later additions */

/* One resource being changed. */
struct edit {
	struct profiles *p;
	struct resource *resource;
	struct scratch *scratch;
	uint32_t spare; /* places behind its list that are its own */
	size_t number;  /* of the action, from 1 */
};

static uint32_t *index_at(struct edit *e, uint32_t i)
{
	return &e->p->indices.at[e->resource->attributes.first + i];
}

static struct view key_at(struct edit *e, uint32_t i)
{
	return string_view(e->p, e->p->attributes.at[*index_at(e, i)].key);
}

/* The place of a key in the list; the list's length if it is absent. */
static uint32_t find(struct edit *e, struct view key)
{
	uint32_t i = 0;
	while (i < e->resource->attributes.count && !view_equal(key_at(e, i), key))
		i++;
	return i;
}

static void append(struct edit *e, uint32_t attribute)
{
	struct list *list = &e->resource->attributes;
	if (!e->spare) {
		struct list grown = profiles_list_copy(e->p, *list, SPARE);
		if (e->p->over_cap)
			return;
		*list = grown;
		e->spare = SPARE;
	}
	e->spare--;
	*index_at(e, list->count++) = attribute;
	e->resource->changed = 1;
}

static void note(struct edit *e, const char *what, struct view key)
{
	if (e->p->audit)
		e->p->audit->note(e->p->audit, SITE_RESOURCE, what, key,
				  (struct audit_rule){ .row = "attributes", .number = e->number });
}

/* Puts the attribute in the place of its key, or behind the list, and removes repetitions of the
 * key. what: for audits. */
static void put(struct edit *e, uint32_t attribute, const char *what)
{
	if (!attribute)
		return;
	struct list *list = &e->resource->attributes;
	struct view key = string_view(e->p, e->p->attributes.at[attribute].key);
	uint32_t at = find(e, key), kept = at + 1;
	note(e, what, key);
	if (at == list->count) {
		append(e, attribute);
		return;
	}
	*index_at(e, at) = attribute;
	for (uint32_t i = at + 1; i < list->count; i++)
		if (!view_equal(key_at(e, i), key))
			*index_at(e, kept++) = *index_at(e, i);
	list->count = kept;
	e->resource->changed = 1;
}

static struct attribute text_of(struct profiles *p, const char *text)
{
	return (struct attribute){ .type = VALUE_STRING,
				   .string = profiles_text_new(p, text, strlen(text)) };
}

static struct attribute integer_of(int64_t integer)
{
	struct attribute a = { .type = VALUE_INT };
	attribute_set_integer(&a, integer);
	return a;
}

static struct attribute number_of(double number)
{
	struct attribute a = { .type = VALUE_DOUBLE };
	attribute_set_number(&a, number);
	return a;
}

static struct attribute bool_of(bool truth)
{
	return (struct attribute){ .type = VALUE_BOOL, .boolean = truth };
}

static struct attribute scalar_value(struct profiles *p, const struct node *node)
{
	struct scalar s = scalar_of(node);
	switch (s.kind) {
	case SCALAR_INT:
		return integer_of(s.integer);
	case SCALAR_FLOAT:
		return number_of(s.number);
	case SCALAR_BOOL:
		return bool_of(s.truth);
	default:
		return text_of(p, node->text);
	}
}

/* Children stand side by side, and what they hold behind them. resource_actions.c has seen to the
 * depth. */
static struct attribute tree_value(struct profiles *p, const struct node *node)
{
	if (node->kind == NODE_NULL)
		return (struct attribute){ .type = VALUE_EMPTY };
	if (node->kind == NODE_SCALAR)
		return scalar_value(p, node);
	struct attribute a = { .type = node->kind == NODE_LIST ? VALUE_ARRAY : VALUE_KVLIST };
	if (!profiles_room(p, &p->attributes, node->count))
		return a;
	a.children = (struct list){ p->attributes.count, (uint32_t)node->count };
	p->attributes.count += (uint32_t)node->count;
	memset(&p->attributes.at[a.children.first], 0, node->count * sizeof *p->attributes.at);
	for (uint32_t i = 0; i < a.children.count && !p->over_cap; i++) {
		struct attribute child = tree_value(p, node->children[i]);
		const char *key = node->children[i]->key;
		child.key = a.type == VALUE_KVLIST ? profiles_text_new(p, key, strlen(key)) : 0;
		p->attributes.at[a.children.first + i] = child;
	}
	return a;
}

static struct attribute constant_of(struct profiles *p, const struct config_any *value)
{
	switch (value->kind) {
	case ANY_INT:
		return integer_of(value->integer);
	case ANY_BOOL:
		return bool_of(value->integer != 0);
	case ANY_DOUBLE:
		return number_of(value->number);
	case ANY_TREE:
		return tree_value(p, value->tree);
	default:
		return text_of(p, value->text);
	}
}

/* All values of a name, joined with ";"; false if there is none. */
static bool join(const struct metadatum *m, const char *name, struct bytes *out)
{
	bool found = false;
	for (; m && m->name; m++) {
		if (strcasecmp(m->name, name) != 0)
			continue;
		if (found)
			bytes_add_text(out, ";");
		bytes_add_text(out, m->value);
		found = true;
	}
	return found;
}

static bool context_text(const struct request *request, const struct resource_action *action,
			 struct bytes *out)
{
	if (!request)
		return false;
	if (action->source == SOURCE_CLIENT_ADDRESS)
		return request->peer && bytes_add_text(out, request->peer);
	return join(action->source == SOURCE_AUTH ? request->auth : request->metadata, action->from,
		    out);
}

/* False if the request has no such value. */
static bool context_of(struct profiles *p, const struct resource_action *action,
		       struct attribute *a)
{
	struct bytes text, valid;
	bytes_init(&text, CONTEXT_MAX);
	bytes_init(&valid, 3 * CONTEXT_MAX);
	bool found = context_text(p->request, action, &text) &&
		     wire_utf8_repair(&valid, bytes_view(&text));
	if (found)
		*a = (struct attribute){ .type = VALUE_STRING,
					 .string = profiles_text_new(p, valid.at, valid.len) };
	bytes_fini(&text);
	bytes_fini(&valid);
	return found;
}

static uint32_t key_of(struct edit *e, const struct resource_action *action, struct made *made)
{
	if (!made->key)
		made->key = profiles_text_new(e->p, action->key, strlen(action->key));
	return made->key;
}

/* What an action sets; 0: there is no value. */
static uint32_t value_of(struct edit *e, const struct resource_action *action, struct made *made)
{
	struct attribute a = { 0 };
	if (action->source == SOURCE_ATTRIBUTE) {
		uint32_t at = find(e, view_of(action->from));
		if (at == e->resource->attributes.count)
			return 0;
		a = e->p->attributes.at[*index_at(e, at)];
		a.bad_key = 0;
	} else if (made->tried) {
		return made->attribute;
	} else {
		made->tried = true;
		if (action->source == SOURCE_VALUE)
			a = constant_of(e->p, action->value);
		else if (!context_of(e->p, action, &a))
			return 0;
	}
	a.key = key_of(e, action, made);
	a.changed = 1;
	uint32_t index = profiles_attribute_new(e->p, a);
	if (action->source != SOURCE_ATTRIBUTE)
		made->attribute = index;
	return index;
}

static void set(struct edit *e, const struct resource_action *action, struct made *made)
{
	bool present = find(e, view_of(action->key)) < e->resource->attributes.count;
	if (present ? action->verb == VERB_INSERT : action->verb == VERB_UPDATE)
		return;
	uint32_t index = value_of(e, action, made);
	if (index)
		put(e, index, "set");
}

/* By key or pattern; what the pattern's engine cannot decide is a hit. */
static bool is_meant(struct edit *e, const struct resource_action *action, struct view key)
{
	if (action->key && view_is(key, action->key))
		return true;
	return action->pattern &&
	       regex_find(action->pattern, e->scratch->regex, key, 0) != REGEX_NO;
}

static void delete (struct edit *e, const struct resource_action *action, struct made *made)
{
	(void)made;
	struct list *list = &e->resource->attributes;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < list->count; i++) {
		if (is_meant(e, action, key_at(e, i)))
			note(e, "deleted", key_at(e, i));
		else
			*index_at(e, kept++) = *index_at(e, i);
	}
	e->resource->changed |= kept != list->count;
	list->count = kept;
}

/* Strings as they are, numbers as eight little-endian bytes, a bool as one byte; other types have
 * none. */
static struct view hashed_bytes(const struct profiles *p, const struct attribute *a,
				uint8_t room[8])
{
	if (a->type == VALUE_STRING)
		return string_view(p, a->string);
	if (a->type == VALUE_BOOL) {
		room[0] = (uint8_t)a->boolean;
		return (struct view){ room, 1 };
	}
	if (a->type != VALUE_INT && a->type != VALUE_DOUBLE)
		return (struct view){ room, 0 };
	wire_put_fixed64(room, (uint64_t)attribute_integer(a));
	return (struct view){ room, 8 };
}

static void hash(struct edit *e, const struct resource_action *action, struct made *made)
{
	(void)made;
	for (uint32_t i = 0; i < e->resource->attributes.count; i++) {
		struct attribute a = e->p->attributes.at[*index_at(e, i)];
		if (!is_meant(e, action, string_view(e->p, a.key)))
			continue;
		uint8_t room[8], digest[DIGEST_SIZE];
		char hex[2 * DIGEST_SIZE];
		struct view bytes = hashed_bytes(e->p, &a, room);
		digest_sha256(bytes, digest);
		digest_hex(digest, sizeof digest, hex);
		a.type = VALUE_STRING;
		a.string = profiles_text_new(e->p, hex, bytes.len ? sizeof hex : 0);
		a.changed = 1;
		*index_at(e, i) = profiles_attribute_new(e->p, a);
		e->resource->changed = 1;
		note(e, "hashed", key_at(e, i));
	}
}

static void extract(struct edit *e, const struct resource_action *action, struct made *made)
{
	(void)made;
	uint32_t at = find(e, view_of(action->key));
	if (at == e->resource->attributes.count)
		return;
	struct attribute source = e->p->attributes.at[*index_at(e, at)];
	if (source.type != VALUE_STRING ||
	    regex_find(action->pattern, e->scratch->regex, string_view(e->p, source.string), 0) !=
		    REGEX_YES)
		return;
	for (unsigned i = 1; i <= regex_groups(action->pattern); i++) {
		const char *name = regex_group_name(action->pattern, i);
		struct regex_span span = regex_group(e->scratch->regex, i);
		/* The bytes may lie in `added`, which moves when it grows. */
		char *text = memory_text_of(string_view(e->p, source.string).at + span.start,
					    span.end - span.start);
		struct attribute a = { .type = VALUE_STRING, .changed = 1 };
		a.key = profiles_text_new(e->p, name, strlen(name));
		a.string = profiles_text_new(e->p, text, span.end - span.start);
		memory_free(text);
		put(e, profiles_attribute_new(e->p, a), "extracted");
	}
}

/* The whole text as a number; no blanks around it. */
static bool parse_number(struct view text, enum resource_type type, struct attribute *out)
{
	char copy[64], *end;
	if (!text.len || text.len >= sizeof copy || text.at[0] <= ' ')
		return false;
	memcpy(copy, text.at, text.len);
	copy[text.len] = '\0';
	errno = 0;
	if (type == TYPE_INT)
		attribute_set_integer(out, strtoll(copy, &end, 10));
	else
		attribute_set_number(out, strtod(copy, &end));
	return !errno && end == copy + text.len;
}

static bool to_integer(const struct profiles *p, const struct attribute *a, struct attribute *out)
{
	double number = attribute_number(a);
	switch (a->type) {
	case VALUE_DOUBLE:
		if (!(number >= -0x1p63 && number < 0x1p63))
			return false;
		attribute_set_integer(out, (int64_t)number);
		return true;
	case VALUE_BOOL:
		attribute_set_integer(out, a->boolean != 0);
		return true;
	default:
		return a->type == VALUE_STRING &&
		       parse_number(string_view(p, a->string), TYPE_INT, out);
	}
}

static bool to_number(const struct profiles *p, const struct attribute *a, struct attribute *out)
{
	switch (a->type) {
	case VALUE_INT:
		attribute_set_number(out, (double)attribute_integer(a));
		return true;
	case VALUE_BOOL:
		attribute_set_number(out, a->boolean != 0);
		return true;
	default:
		return a->type == VALUE_STRING &&
		       parse_number(string_view(p, a->string), TYPE_DOUBLE, out);
	}
}

static bool to_text(struct profiles *p, const struct attribute *a, struct attribute *out)
{
	struct bytes text;
	bytes_init(&text, p->table_bytes_max);
	bool ok = a->type != VALUE_STRING && value_text_add(p, a, &text);
	if (ok)
		out->string = profiles_text_new(p, text.at, text.len);
	bytes_fini(&text);
	return ok;
}

static void convert(struct edit *e, const struct resource_action *action, struct made *made)
{
	(void)made;
	static const uint8_t types[TYPE_COUNT] = { VALUE_INT, VALUE_DOUBLE, VALUE_STRING };
	uint32_t at = find(e, view_of(action->key));
	if (at == e->resource->attributes.count)
		return;
	struct attribute old = e->p->attributes.at[*index_at(e, at)], a = old;
	bool done = action->type == TYPE_INT      ? to_integer(e->p, &old, &a)
		    : action->type == TYPE_DOUBLE ? to_number(e->p, &old, &a)
						  : to_text(e->p, &old, &a);
	if (!done)
		return;
	a.type = types[action->type];
	a.changed = 1;
	put(e, profiles_attribute_new(e->p, a), "converted");
}

static bool resource_process(void *instance, void *worker, struct profiles *p, struct error *err)
{
	static void (*const acts[VERB_COUNT])(struct edit *, const struct resource_action *,
					      struct made *) = { set,  set,     set,    delete,
								 hash, extract, convert };
	const struct processor *self = instance;
	struct scratch *scratch = worker;
	if (!scratch->regex) {
		scratch->regex = regex_memory_new();
		scratch->made = memory_array(self->count, sizeof *scratch->made);
	}
	memset(scratch->made, 0, self->count * sizeof *scratch->made);
	for (uint32_t r = 0; r < p->resources.count && !p->over_cap; r++) {
		struct edit edit = { p, &p->resources.at[r], scratch, 0, 0 };
		for (size_t i = 0; i < self->count; i++) {
			edit.number = i + 1;
			acts[self->actions[i].verb](&edit, &self->actions[i], &scratch->made[i]);
		}
	}
	return !p->over_cap || profiles_over_cap(p, err);
}

static void resource_scratch_fini(void *instance, void *worker)
{
	(void)instance;
	struct scratch *scratch = worker;
	regex_memory_unref(&scratch->regex);
	memory_free(scratch->made);
}

static void init_actions(struct processor *self, const struct resource_config *config,
			 struct faults *faults)
{
	const struct resource_action_config *actions = config->attributes.at;
	self->actions = memory_array(config->attributes.count, sizeof *self->actions);
	for (; self->count < config->attributes.count; self->count++)
		resource_action_init(&self->actions[self->count], &actions[self->count],
				     self->count, faults);
}

static void resource_destroy(void *instance)
{
	struct processor *self = instance;
	for (size_t i = 0; i < self->count; i++)
		resource_action_fini(&self->actions[i]);
	memory_free(self->actions);
}

static bool resource_create(void *instance, const void *settings, const struct host *host,
			    struct error *err)
{
	struct problems problems = { 0 };
	struct faults faults = { .path = "", .problems = &problems };
	(void)host;
	init_actions(instance, settings, &faults);
	return problems_end(&problems, err);
}

static void resource_check(const void *settings, struct faults *faults)
{
	const struct resource_config *config = settings;
	struct processor trial = { 0 };
	if (!config->attributes.count)
		faults_relate(faults, "attributes", "missing required field \"attributes\"");
	init_actions(&trial, config, faults);
	resource_destroy(&trial);
}

static const struct config_row rows[] = {
	CONFIG_ITEMS(struct resource_config, attributes, CONFIG_LIST, resource_action_table,
		     .key = "attributes", .help = "The actions, in order."),
	{ 0 }
};

static const struct config_table table = { sizeof(struct resource_config), rows, resource_check,
					   false };

/* By `insert` and `upsert`. */
static const char *resource_sets(const void *settings, size_t number)
{
	const struct resource_config *config = settings;
	const struct resource_action_config *actions = config->attributes.at;
	if (number >= config->attributes.count)
		return NULL;
	const char *verb = actions[number].action;
	bool sets = !strcasecmp(verb, "insert") || !strcasecmp(verb, "upsert");
	return sets ? actions[number].key : "";
}

static const struct processor_ops resource_ops = {
	.scratch_size = sizeof(struct scratch),
	.process = resource_process,
	.scratch_fini = resource_scratch_fini,
	.sets = resource_sets,
};

#define INSTEAD "use `resource`, with ${env:NAME} for what machines differ in"
static const struct config_hint resource_hints[] = { { "resourcedetection", .text = INSTEAD },
						     { "resource_detection", .text = INSTEAD },
						     { 0 } };

const struct component_factory resource_processor = {
	.type = "resource",
	.hints = resource_hints,
	.help = "Changes the attributes of resources.",
	.manual = "Changes resource attributes only, never the attributes of scopes, Profiles, "
		  "samples, mappings or locations. If a key occurs several times, its first "
		  "attribute is the one that counts. Strings larger than 8 KiB are not "
		  "searched: `delete` and `hash` treat them as a match, `extract` leaves them "
		  "unchanged.",
	.kind = COMPONENT_PROCESSOR,
	.processor = &resource_ops,
	.size = sizeof(struct processor),
	.config = &table,
	.create = resource_create,
	.destroy = resource_destroy,
};
