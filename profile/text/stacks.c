/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/text/stacks.h"
#include "profile/strings.h"
#include "profile/wire.h"

enum memo_kind {                /* what a memo entry's `first` is */
		 MEMO_STRING,   /* string; second: location of a frame that is only this name */
		 MEMO_FUNCTION, /* function */
		 MEMO_LINE,     /* location */
		 MEMO_NODE,     /* node */
		 MEMO_GROUP     /* root node + 1 */
};

struct node {
	uint32_t parent, location; /* a root has location 0 */
	uint32_t group, depth;
	uint64_t number;
};

struct group {
	struct stacks_group is;
	uint32_t samples; /* number of them */
	uint32_t next;    /* the sample that the next stack becomes */
};

static struct node *node_at(const struct stacks *s, uint32_t node)
{
	return (struct node *)s->nodes.at + node;
}

static uint32_t node_count(const struct stacks *s)
{
	return (uint32_t)(s->nodes.len / sizeof(struct node));
}

static struct group *group_at(const struct stacks *s, uint32_t group)
{
	return (struct group *)s->groups.at + group;
}

uint32_t stacks_groups(const struct stacks *s)
{
	return (uint32_t)(s->groups.len / sizeof(struct group));
}

struct stacks_group *stacks_group(const struct stacks *s, uint32_t number)
{
	return &group_at(s, number)->is;
}

bool stacks_too_large(struct stacks *s)
{
	return error_set(s->err, ERROR_TOO_LARGE,
			 "the stacks and the tables made of them would need more than %zu bytes "
			 "of memory",
			 s->budget);
}

/* Memory that one part has taken is not available to the others. */
static void share_budget(struct stacks *s)
{
	struct profiles *p = s->p;
	struct bytes *parts[STACKS_BUFFERS + 2] = { &s->nodes, &s->groups };
	for (int i = 0; i < STACKS_BUFFERS; i++)
		parts[i + 2] = &s->buffer[i];
	size_t scratch = s->memo.room * sizeof *s->memo.at;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		scratch += parts[i]->room;
	if (scratch == s->scratch)
		return;
	size_t taken = scratch + profiles_used(p), left = s->budget > taken ? s->budget - taken : 0;
	s->scratch = scratch;
	s->memo.max_bytes = s->memo.room * sizeof *s->memo.at + left;
	p->table_bytes_max = profiles_used(p) + left;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		parts[i]->max = parts[i]->room + left;
}

static bool add_node(struct stacks *s, struct node node, uint32_t *index)
{
	share_budget(s);
	*index = node_count(s);
	return bytes_add(&s->nodes, &node, sizeof node) || stacks_too_large(s);
}

bool stacks_root(struct stacks *s, struct stacks_group group, uint32_t *node)
{
	struct memo_entry *entry = memo_enter(&s->memo, MEMO_GROUP, &group, sizeof group);
	if (!entry)
		return stacks_too_large(s);
	if (!entry->first) {
		struct group made = { .is = group };
		if (!add_node(s, (struct node){ .group = stacks_groups(s) }, node) ||
		    !bytes_add(&s->groups, &made, sizeof made))
			return stacks_too_large(s);
		entry->first = *node + 1;
	}
	*node = entry->first - 1;
	return true;
}

/* Frames. */

static bool new_string(struct stacks *s, struct view text, uint32_t *string)
{
	struct profiles *p = s->p;
	const struct view input = p->input;
	bool inside = text.at >= input.at && text.at < input.at + input.len;
	if (text.len > TEXT_FRAME_BYTES)
		return error_set(s->err, ERROR_INVALID, "a name has more than %d bytes",
				 TEXT_FRAME_BYTES);
	struct span span = { (uint32_t)(inside ? text.at - input.at : 0), (uint32_t)text.len };
	return (inside ? strings_add(p, text, span, string) : strings_copy(p, text, string)) ||
	       stacks_too_large(s);
}

static struct memo_entry *string_entry(struct stacks *s, struct view text)
{
	struct memo_entry *entry = memo_enter(&s->memo, MEMO_STRING, text.at, text.len);
	share_budget(s);
	if (!entry)
		stacks_too_large(s);
	else if (!entry->first && text.len && !new_string(s, text, &entry->first))
		entry = NULL;
	return entry;
}

bool stacks_string(struct stacks *s, struct view text, uint32_t *string)
{
	const struct memo_entry *entry = string_entry(s, text);
	*string = entry ? entry->first : 0;
	return entry != NULL;
}

static bool new_function(struct stacks *s, uint32_t name, uint32_t file, uint32_t *function)
{
	struct profiles *p = s->p;
	if (!profiles_room(p, &p->functions, 1))
		return stacks_too_large(s);
	*function = p->functions.count++;
	p->functions.at[*function] = (struct function){ .name = name, .filename = file };
	return true;
}

static bool function_of(struct stacks *s, uint32_t name, uint32_t file, uint32_t *function)
{
	const uint32_t key[] = { name, file };
	struct memo_entry *entry = memo_enter(&s->memo, MEMO_FUNCTION, key, sizeof key);
	if (!entry)
		return stacks_too_large(s);
	if (!entry->first && !new_function(s, name, file, &entry->first))
		return false;
	*function = entry->first;
	return true;
}

static bool new_location(struct stacks *s, struct line line, uint32_t *location)
{
	struct profiles *p = s->p;
	if (!profiles_room(p, &p->lines, 1) || !profiles_room(p, &p->locations, 1))
		return stacks_too_large(s);
	*location = p->locations.count++;
	p->locations.at[*location] = (struct location){ .lines = { p->lines.count, 1 } };
	p->lines.at[p->lines.count++] = line;
	return true;
}

bool stacks_location(struct stacks *s, struct stacks_frame frame, uint32_t *location)
{
	struct line line = { .line = frame.line, .column = frame.column };
	*location = 0;
	if (!frame.name)
		return true;
	if (!function_of(s, frame.name, frame.file, &line.function))
		return false;
	struct memo_entry *entry = memo_enter(&s->memo, MEMO_LINE, &line, sizeof line);
	if (!entry)
		return stacks_too_large(s);
	if (!entry->first && !new_location(s, line, &entry->first))
		return false;
	*location = entry->first;
	return true;
}

/* Nodes. */

bool stacks_push(struct stacks *s, uint32_t *node, uint32_t location)
{
	const uint32_t key[] = { *node, location };
	const struct node caller = *node_at(s, *node);
	if (!location)
		return true;
	if (caller.depth == TEXT_FRAMES_MAX)
		return error_set(s->err, ERROR_INVALID, "a stack has more than %d frames",
				 TEXT_FRAMES_MAX);
	struct memo_entry *entry = memo_enter(&s->memo, MEMO_NODE, key, sizeof key);
	if (!entry)
		return stacks_too_large(s);
	if (!entry->first && !add_node(s,
				       (struct node){ .parent = *node,
						      .location = location,
						      .group = caller.group,
						      .depth = caller.depth + 1 },
				       &entry->first))
		return false;
	*node = entry->first;
	return true;
}

/* Files and lines are unknown, so the name alone makes the location. */
static bool name_location(struct stacks *s, struct view name, uint32_t *location)
{
	struct memo_entry *entry = string_entry(s, name);
	struct line line = { 0 };
	if (!entry)
		return false;
	if (!entry->second && entry->first &&
	    (!new_function(s, entry->first, 0, &line.function) ||
	     !new_location(s, line, &entry->second)))
		return false;
	*location = entry->second;
	return true;
}

bool stacks_push_name(struct stacks *s, uint32_t *node, struct view name)
{
	uint32_t location;
	return name_location(s, name, &location) && stacks_push(s, node, location);
}

bool stacks_count(struct stacks *s, uint32_t node, uint64_t number)
{
	uint64_t *sum = &node_at(s, node)->number;
	if (number > INT64_MAX - *sum)
		return error_set(s->err, ERROR_INVALID,
				 "the numbers of one stack add up to more than 2^63 - 1");
	*sum += number;
	return true;
}

/* From the trees to the tables. */

/* ns of one count; 0: counts stay counts. */
static uint64_t period_of(const struct stacks *s, const struct group *group)
{
	uint32_t rate = s->source->sample_rate;
	return group->is.kind->clock && rate ? 1000000000 / rate : 0;
}

static uint64_t factor_of(const struct stacks *s, const struct group *group)
{
	uint64_t period = period_of(s, group);
	return period && !group->is.exact ? period : 1;
}

/* Leaf first. */
static uint32_t make_stack(struct stacks *s, uint32_t leaf)
{
	struct profiles *p = s->p;
	struct list locations = { p->indices.count, node_at(s, leaf)->depth };
	if (!locations.count || !profiles_room(p, &p->indices, locations.count) ||
	    !profiles_room(p, &p->stacks, 1))
		return 0;
	for (const struct node *n = node_at(s, leaf); n->location; n = node_at(s, n->parent))
		p->indices.at[p->indices.count++] = n->location;
	p->stacks.at[p->stacks.count] = (struct stack){ .locations = locations };
	return p->stacks.count++;
}

static bool make_sample(struct stacks *s, uint32_t index)
{
	struct profiles *p = s->p;
	const struct node *node = node_at(s, index);
	struct group *group = group_at(s, node->group);
	uint64_t factor = factor_of(s, group);
	uint8_t value[10];
	if (node->number > INT64_MAX / factor)
		return error_set(s->err, ERROR_INVALID,
				 "the number of a stack, in nanoseconds, exceeds 2^63 - 1");
	size_t len = (size_t)(wire_put_varint(value, node->number * factor) - value);
	p->samples.at[group->next++] = (struct sample){
		.stack = make_stack(s, index),
		.values = profiles_bytes_new(p, value, len),
	};
	return !p->over_cap || stacks_too_large(s);
}

/* The samples of a group stand together. */
static bool make_samples(struct stacks *s)
{
	struct profiles *p = s->p;
	uint32_t total = 0;
	for (uint32_t i = 0; i < node_count(s); i++)
		group_at(s, node_at(s, i)->group)->samples += node_at(s, i)->number != 0;
	for (uint32_t i = 0; i < stacks_groups(s); i++) {
		group_at(s, i)->next = p->samples.count + total;
		total += group_at(s, i)->samples;
	}
	if (!profiles_room(p, &p->samples, total))
		return stacks_too_large(s);
	p->samples.count += total;
	for (uint32_t i = 0; i < node_count(s); i++)
		if (node_at(s, i)->number && !make_sample(s, i))
			return false;
	return true;
}

static bool attach(struct stacks *s, struct list *list, const char *key, uint32_t string)
{
	struct attribute attribute = { .type = VALUE_STRING, .string = string };
	return stacks_string(s, view_of(key), &attribute.key) &&
	       (strings_list_add(s->p, list, profiles_attribute_new(s->p, attribute)) ||
		stacks_too_large(s));
}

/* These come first, and so take precedence over the request's. */
static bool attach_own(struct stacks *s, const struct group *group, struct list *list)
{
	const char *metric_key = s->source->metric_key;
	uint32_t metric = 0;
	if (group->is.name && !attach(s, list, "profile_name", group->is.name))
		return false;
	return !metric_key || (stacks_string(s, view_of(group->is.kind->metric), &metric) &&
			       attach(s, list, metric_key, metric));
}

/* The attributes of the request are created once, and all resources refer to them. */
static bool attach_resource(struct stacks *s, const struct group *group, struct list *shared,
			    struct list *list)
{
	struct profiles *p = s->p;
	if (!attach_own(s, group, list))
		return false;
	uint32_t own = list->count;
	if (!shared->count && !strings_attributes(p, s->source->attributes, list))
		return stacks_too_large(s);
	for (uint32_t i = 0; i < shared->count; i++)
		if (!strings_list_add(p, list, p->indices.at[shared->first + i]))
			return stacks_too_large(s);
	*shared = (struct list){ list->first + own, list->count - own };
	return true;
}

static bool make_profile(struct stacks *s, const struct group *group, struct profile *profile)
{
	const struct text_source *source = s->source;
	const struct text_kind *kind = group->is.kind;
	uint64_t period = period_of(s, group);
	bool time = period || group->is.exact;
	*profile = (struct profile){
		.has_sample_type = 1,
		.has_period_type = period != 0,
		.time = source->from,
		.duration = source->until > source->from ? source->until - source->from : 0,
		.period = (int64_t)period,
		.samples = { group->next - group->samples, group->samples },
	};
	struct value_kind *is = &profile->sample_type, *per = &profile->period_type;
	return stacks_string(s, view_of(time ? kind->clock : kind->type), &is->type) &&
	       stacks_string(s, view_of(time ? "nanoseconds" : kind->unit), &is->unit) &&
	       (!period || (stacks_string(s, view_of("cpu"), &per->type) &&
			    stacks_string(s, view_of("nanoseconds"), &per->unit)));
}

static bool make_resource(struct stacks *s, const struct group *group, struct list *shared)
{
	struct profiles *p = s->p;
	struct profile profile;
	struct resource resource = { .scopes = { p->scopes.count, 1 } };
	struct scope scope = { .profiles = { p->profiles.count, 1 } };
	if (!make_profile(s, group, &profile) ||
	    !attach_resource(s, group, shared, &resource.attributes))
		return false;
	if (!profiles_room(p, &p->profiles, 1) || !profiles_room(p, &p->scopes, 1) ||
	    !profiles_room(p, &p->resources, 1))
		return stacks_too_large(s);
	p->profiles.at[p->profiles.count++] = profile;
	p->scopes.at[p->scopes.count++] = scope;
	p->resources.at[p->resources.count++] = resource;
	return true;
}

static bool make_tables(struct stacks *s)
{
	struct list shared = { 0 };
	if (!make_samples(s))
		return false;
	for (uint32_t i = 0; i < stacks_groups(s); i++)
		if (group_at(s, i)->samples && !make_resource(s, group_at(s, i), &shared))
			return false;
	return profiles_within_cap(s->p) || stacks_too_large(s);
}

bool stacks_decode(struct profiles *p, struct view document, const struct text_source *source,
		   const char *format, bool (*read)(struct stacks *s), struct error *err)
{
	const size_t max = p->table_bytes_max;
	const struct profiles_mark before = profiles_mark(p);
	struct stacks s = { .p = p,
			    .source = source,
			    .err = err,
			    .document = document,
			    .memo.max_bytes = max,
			    .budget = max };
	bytes_init(&s.nodes, max);
	bytes_init(&s.groups, max);
	for (int i = 0; i < STACKS_BUFFERS; i++)
		bytes_init(&s.buffer[i], max);
	bool ok = (read(&s) && make_tables(&s)) || error_prefix(err, "%s", format);
	for (int i = 0; i < STACKS_BUFFERS; i++)
		bytes_fini(&s.buffer[i]);
	bytes_fini(&s.groups);
	bytes_fini(&s.nodes);
	memo_fini(&s.memo);
	p->table_bytes_max = max;
	if (!ok)
		profiles_rewind(p, &before);
	return ok;
}
