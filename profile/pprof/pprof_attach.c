/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof/pprof_attach.h"
#include "profile/strings.h"

static uint32_t key_of(struct pprof_reader *r, enum pprof_key key)
{
	if (!r->keys[key])
		r->keys[key] = profiles_text_new(r->p, pprof_keys[key], strlen(pprof_keys[key]));
	return r->keys[key];
}

static bool list_add(struct pprof_reader *r, struct list *list, uint32_t index)
{
	return strings_list_add(r->p, list, index) || pprof_reader_too_large(r);
}

static bool list_add_text(struct pprof_reader *r, struct list *list, enum pprof_key key,
			  uint32_t string)
{
	struct attribute attribute = { .key = key_of(r, key),
				       .type = VALUE_STRING,
				       .string = string };
	return !string_view(r->p, string).len ||
	       list_add(r, list, profiles_attribute_new(r->p, attribute));
}

/* Labels. */

static struct pprof_label *label_at(const struct pprof_reader *r, uint32_t position)
{
	return (struct pprof_label *)r->labels.at + position;
}

static uint32_t label_count(const struct pprof_reader *r)
{
	return (uint32_t)(r->labels.len / sizeof(struct pprof_label));
}

/* The one label with this key; its position + 1, 0 if there is none or there are several. */
static uint32_t only_label(const struct pprof_reader *r, const char *key)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < label_count(r); i++) {
		if (!string_is(r->p, label_at(r, i)->key, key))
			continue;
		if (found)
			return 0;
		found = i + 1;
	}
	return found;
}

static int hex_digit(uint8_t c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* An id in the one spelling that can be restored: lower-case hex of exact length, not all zero. */
static bool read_id(struct view text, uint8_t *id, size_t size)
{
	uint8_t any = 0;
	if (text.len != 2 * size)
		return false;
	for (size_t i = 0; i < size; i++) {
		int high = hex_digit(text.at[2 * i]), low = hex_digit(text.at[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		id[i] = (uint8_t)(high << 4 | low);
		any |= id[i];
	}
	return any;
}

static void remove_label(struct pprof_reader *r, uint32_t position)
{
	size_t behind = label_count(r) - position - 1;
	memmove(label_at(r, position), label_at(r, position + 1),
		behind * sizeof(struct pprof_label));
	r->labels.len -= sizeof(struct pprof_label);
}

/* A Link has both ids, so a lone trace_id or span_id stays an attribute. */
static bool take_link(struct pprof_reader *r, uint32_t *index)
{
	struct profiles *p = r->p;
	struct link link = { 0 };
	uint32_t trace = only_label(r, "trace_id"), span = trace ? only_label(r, "span_id") : 0;
	if (!span || !read_id(string_view(p, label_at(r, trace - 1)->text), link.trace_id, 16) ||
	    !read_id(string_view(p, label_at(r, span - 1)->text), link.span_id, 8))
		return true;
	remove_label(r, (trace > span ? trace : span) - 1);
	remove_label(r, (trace > span ? span : trace) - 1);
	struct memo_entry *entry = memo_enter(&r->memo, PPROF_MEMO_LINK, &link, sizeof link);
	if (!entry || !profiles_room(p, &p->links, 1))
		return pprof_reader_too_large(r);
	if (!entry->first) {
		entry->first = p->links.count;
		p->links.at[p->links.count++] = link;
	}
	*index = entry->first;
	return true;
}

/* Chains the labels of each key, in order. */
static bool chain_labels(struct pprof_reader *r, uint32_t set)
{
	for (uint32_t i = 0; i < label_count(r); i++) {
		struct view key = string_view(r->p, label_at(r, i)->key);
		struct memo_entry *entry = memo_enter(&r->memo, PPROF_MEMO_KEY, key.at, key.len);
		if (!entry)
			return pprof_reader_too_large(r);
		label_at(r, i)->head = entry->first != set;
		if (entry->first == set)
			label_at(r, entry->second)->next = i;
		entry->first = set;
		entry->second = i;
	}
	return true;
}

static struct attribute value_of(const struct pprof_label *label)
{
	struct attribute value = { .type = VALUE_STRING, .string = label->text };
	if (!label->text) {
		value.type = VALUE_INT;
		attribute_set_integer(&value, (int64_t)label->number);
	}
	return value;
}

/* An attribute has one unit: a number with another one than the first becomes the pair [number,
 * unit]. */
static bool add_pair(struct pprof_reader *r, const struct pprof_label *label, uint32_t element)
{
	struct profiles *p = r->p;
	struct attribute unit = { .type = VALUE_STRING, .string = label->unit };
	if (!profiles_room(p, &p->attributes, 2))
		return pprof_reader_too_large(r);
	p->attributes.at[element] =
		(struct attribute){ .type = VALUE_ARRAY, .children = { p->attributes.count, 2 } };
	p->attributes.at[p->attributes.count++] = value_of(label);
	p->attributes.at[p->attributes.count++] = unit;
	return true;
}

static bool make_array(struct pprof_reader *r, uint32_t head, struct attribute *array)
{
	struct profiles *p = r->p;
	const struct pprof_label *label = label_at(r, head);
	uint32_t count = 1;
	for (uint32_t i = label->next; i; i = label_at(r, i)->next)
		count++;
	if (!profiles_room(p, &p->attributes, count))
		return pprof_reader_too_large(r);
	uint32_t element = p->attributes.count;
	array->type = VALUE_ARRAY;
	array->children = (struct list){ element, count };
	p->attributes.count += count;
	bool has_unit = false;
	for (;; label = label_at(r, label->next)) {
		p->attributes.at[element] = value_of(label);
		if (!label->text && !has_unit) {
			array->unit = label->unit;
			has_unit = true;
		}
		if (!label->text && label->unit != array->unit && !add_pair(r, label, element))
			return false;
		element++;
		if (!label->next)
			return true;
	}
}

/* The attribute of a chain of labels; that of a single one is made once. */
static bool make_attribute(struct pprof_reader *r, uint32_t head, uint32_t *index)
{
	const struct pprof_label *label = label_at(r, head);
	struct profiles *p = r->p;
	struct memo_entry *entry = NULL;
	struct attribute attribute = { 0 };
	if (label->next) {
		if (!make_array(r, head, &attribute))
			return false;
	} else {
		entry = memo_enter(&r->memo, PPROF_MEMO_ATTRIBUTE, label, sizeof *label);
		if (!entry)
			return pprof_reader_too_large(r);
		*index = entry->first;
		if (*index)
			return true;
		attribute = value_of(label);
		attribute.unit = label->unit;
	}
	attribute.key = label->key;
	attribute.bad_key = (uint8_t)p->strings.at[label->key].repaired;
	*index = profiles_attribute_new(p, attribute);
	if (entry)
		entry->first = *index;
	return *index || pprof_reader_too_large(r);
}

static bool make_label_set(struct pprof_reader *r, uint32_t number, struct pprof_label_set *set)
{
	*set = (struct pprof_label_set){ 0 };
	if (!take_link(r, &set->link) || !chain_labels(r, number))
		return false;
	for (uint32_t i = 0; i < label_count(r); i++) {
		uint32_t index = 0;
		if (label_at(r, i)->head &&
		    (!make_attribute(r, i, &index) || !list_add(r, &set->attributes, index)))
			return false;
	}
	return bytes_add(&r->label_sets, set, sizeof *set) || pprof_reader_too_large(r);
}

bool pprof_attach_labels(struct pprof_reader *r, struct pprof_label_set *set)
{
	struct memo_entry *entry =
		memo_enter(&r->memo, PPROF_MEMO_LABELS, r->labels.at, r->labels.len);
	if (!entry)
		return pprof_reader_too_large(r);
	if (!entry->first) {
		entry->first = (uint32_t)(r->label_sets.len / sizeof *set) + 1;
		return make_label_set(r, entry->first, set);
	}
	*set = ((const struct pprof_label_set *)r->label_sets.at)[entry->first - 1];
	return true;
}

/* Mappings and locations. */

static uint32_t flag_of(struct pprof_reader *r, uint32_t flag, enum pprof_key key, bool value)
{
	if (!r->flags[flag])
		r->flags[flag] =
			profiles_attribute_new(r->p, (struct attribute){ .key = key_of(r, key),
									 .type = VALUE_BOOL,
									 .boolean = value });
	return r->flags[flag];
}

/* Go's build ids are parts in base64url, joined by slashes; all others are taken for GNU's hex. */
static enum pprof_key build_id_key(struct view text)
{
	bool slash = false;
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = text.at[i], lower = c | 0x20;
		slash |= c == '/';
		if (!((c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '-' ||
		      c == '_' || c == '/'))
			return PPROF_KEY_BUILD_ID_GNU;
	}
	return slash ? PPROF_KEY_BUILD_ID_GO : PPROF_KEY_BUILD_ID_GNU;
}

bool pprof_attach_mapping(struct pprof_reader *r, struct mapping *mapping, uint32_t build_id,
			  const uint64_t *flags)
{
	enum pprof_key key = build_id_key(string_view(r->p, build_id));
	if (!list_add_text(r, &mapping->attributes, key, build_id))
		return false;
	for (uint32_t i = 0; i < PPROF_FLAG_COUNT; i++)
		if (flags[i] && !list_add(r, &mapping->attributes,
					  flag_of(r, i, PPROF_KEY_HAS_FUNCTIONS + i, true)))
			return false;
	return true;
}

bool pprof_attach_main(struct pprof_reader *r, struct mapping *mapping)
{
	struct attribute is_main = { .key = key_of(r, PPROF_KEY_IS_MAIN),
				     .type = VALUE_BOOL,
				     .boolean = 1 };
	return list_add(r, &mapping->attributes, profiles_attribute_new(r->p, is_main));
}

bool pprof_attach_no_flags(struct pprof_reader *r, struct mapping *mapping)
{
	struct profiles *p = r->p;
	for (uint32_t i = 0; i < mapping->attributes.count; i++) {
		uint32_t index = p->indices.at[mapping->attributes.first + i];
		for (uint32_t flag = 0; flag <= PPROF_FLAG_COUNT; flag++)
			if (index == r->flags[flag])
				return true;
	}
	mapping->attributes = profiles_list_copy(p, mapping->attributes, 0);
	return list_add(r, &mapping->attributes,
			flag_of(r, PPROF_FLAG_COUNT, PPROF_KEY_HAS_FUNCTIONS, false));
}

bool pprof_attach_folded(struct pprof_reader *r, struct location *location)
{
	if (!r->folded)
		r->folded =
			profiles_attribute_new(r->p, (struct attribute){
							     .key = key_of(r, PPROF_KEY_IS_FOLDED),
							     .type = VALUE_BOOL,
							     .boolean = 1 });
	return list_add(r, &location->attributes, r->folded);
}

/* Profile, scope, resource. */

static bool attach_comments(struct pprof_reader *r, struct list *list)
{
	struct profiles *p = r->p;
	uint32_t count = (uint32_t)(r->comments.len / sizeof(uint32_t));
	if (!count)
		return true;
	struct attribute array = { .key = key_of(r, PPROF_KEY_COMMENT),
				   .type = VALUE_ARRAY,
				   .children = { p->attributes.count, count } };
	if (!profiles_room(p, &p->attributes, count))
		return pprof_reader_too_large(r);
	for (uint32_t i = 0; i < count; i++)
		p->attributes.at[p->attributes.count++] =
			(struct attribute){ .type = VALUE_STRING,
					    .string = ((const uint32_t *)r->comments.at)[i] };
	return list_add(r, list, profiles_attribute_new(p, array));
}

bool pprof_attach_profile(struct pprof_reader *r, struct profile *profile)
{
	struct list *list = &profile->attributes;
	return attach_comments(r, list) &&
	       list_add_text(r, list, PPROF_KEY_DROP_FRAMES,
			     (uint32_t)r->number[PPROF_DROP_FRAMES]) &&
	       list_add_text(r, list, PPROF_KEY_KEEP_FRAMES,
			     (uint32_t)r->number[PPROF_KEEP_FRAMES]) &&
	       list_add_text(r, list, PPROF_KEY_DOC_URL, (uint32_t)r->number[PPROF_DOC_URL]);
}

static bool types_repeat(const struct pprof_reader *r)
{
	const struct profiles *p = r->p;
	for (uint32_t i = 1; i < pprof_reader_types(r); i++)
		for (uint32_t j = 0; j < i; j++) {
			struct value_kind a = pprof_reader_profile(r, i)->sample_type;
			struct value_kind b = pprof_reader_profile(r, j)->sample_type;
			if (view_equal(string_view(p, a.type), string_view(p, b.type)) &&
			    view_equal(string_view(p, a.unit), string_view(p, b.unit)))
				return true;
		}
	return false;
}

/* At each Profile's place, where its sample type stood. */
static bool attach_order(struct pprof_reader *r, struct list *list)
{
	struct profiles *p = r->p;
	uint32_t count = pprof_reader_types(r);
	if (!r->default_type && !types_repeat(r))
		return true;
	struct attribute array = { .key = key_of(r, PPROF_KEY_SAMPLE_TYPE_ORDER),
				   .type = VALUE_ARRAY,
				   .children = { p->attributes.count, count } };
	if (!profiles_room(p, &p->attributes, count))
		return pprof_reader_too_large(r);
	for (uint32_t i = 0; i < count; i++) {
		struct attribute *element =
			&p->attributes.at[array.children.first + pprof_reader_place(r, i)];
		*element = (struct attribute){ .type = VALUE_INT };
		attribute_set_integer(element, i);
	}
	p->attributes.count += count;
	return list_add(r, list, profiles_attribute_new(p, array));
}

bool pprof_attach_scope(struct pprof_reader *r, struct scope *scope)
{
	uint32_t named = (uint32_t)r->number[PPROF_DEFAULT_SAMPLE_TYPE];
	return list_add_text(r, &scope->attributes, PPROF_KEY_DEFAULT_SAMPLE_TYPE, named) &&
	       attach_order(r, &scope->attributes);
}

bool pprof_attach_resource(struct pprof_reader *r, struct resource *resource,
			   const struct metadatum *attributes)
{
	return strings_attributes(r->p, attributes, &resource->attributes) ||
	       pprof_reader_too_large(r);
}
