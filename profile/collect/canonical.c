/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/collect/canonical.h"

void canonical_init(struct canonical *k, size_t max)
{
	*k = (struct canonical){ .max = max };
	bytes_init(&k->out, max);
	intern_init(&k->keys, 0, max);
}

void canonical_fini(struct canonical *k)
{
	bytes_fini(&k->out);
	intern_fini(&k->keys);
}

void canonical_begin(struct canonical *k, size_t max)
{
	k->left = k->out.max = max < k->max ? max : k->max;
}

static bool add_number(struct bytes *out, uint8_t tag, uint64_t v)
{
	if (!bytes_reserve(out, PUT_MAX))
		return false;
	out->len = (size_t)(put_number(out->at + out->len, tag, v) - out->at);
	return true;
}

/* Written even if empty. */
static bool add_bytes(struct bytes *out, uint8_t tag, struct view v)
{
	if (!bytes_reserve(out, PUT_MAX + v.len))
		return false;
	uint8_t *at = put_header(out->at + out->len, tag, v.len);
	out->len = (size_t)((v.len ? put_copy(at, v.at, v.len) : at) - out->at);
	return true;
}

static bool add_text(struct bytes *out, uint8_t tag, const struct profiles *p, uint32_t string)
{
	struct view v = string_view(p, string);
	return v.len == 0 || add_bytes(out, tag, v);
}

/* A submessage: everything that is added between open and close. */
static bool open_field(struct bytes *out, size_t *header)
{
	*header = out->len;
	if (!bytes_reserve(out, PUT_MAX))
		return false;
	out->len += PUT_HEADER;
	return true;
}

static bool close_field(struct bytes *out, uint8_t tag, size_t header)
{
	if (!bytes_reserve(out, PUT_MAX))
		return false;
	out->len = (size_t)(put_close(out->at + header, tag, out->at + out->len) - out->at);
	return true;
}

static bool add_value(struct bytes *out, uint8_t tag, const struct profiles *p,
		      const struct attribute *a);

static bool add_key_value(struct bytes *out, uint8_t tag, const struct profiles *p,
			  const struct attribute *a)
{
	size_t header;
	return open_field(out, &header) && add_text(out, PUT_LEN(1), p, a->key) &&
	       add_value(out, PUT_LEN(2), p, a) && close_field(out, tag, header);
}

static bool add_children(struct bytes *out, uint8_t tag, const struct profiles *p,
			 const struct attribute *a)
{
	bool (*add)(struct bytes *, uint8_t, const struct profiles *, const struct attribute *) =
		a->type == VALUE_ARRAY ? add_value : add_key_value;
	size_t header;
	if (!open_field(out, &header))
		return false;
	for (uint32_t i = 0; i < a->children.count; i++)
		if (!add(out, PUT_LEN(1), p, &p->attributes.at[a->children.first + i]))
			return false;
	return close_field(out, tag, header);
}

/* A member of AnyValue's oneof is written even with its default value. */
static bool add_scalar(struct bytes *out, uint8_t tag, uint64_t v)
{
	if (!bytes_reserve(out, PUT_MAX))
		return false;
	out->len = (size_t)(wire_put_varint(wire_put_varint(out->at + out->len, tag), v) - out->at);
	return true;
}

static bool add_double(struct bytes *out, const struct attribute *a)
{
	uint8_t tag = PUT_FIXED64(4);
	return bytes_add(out, &tag, 1) && bytes_add(out, &a->bits, 8);
}

static bool add_content(struct bytes *out, const struct profiles *p, const struct attribute *a)
{
	switch ((enum value_type)a->type) {
	case VALUE_EMPTY:
		return true;
	case VALUE_STRING:
		return add_bytes(out, PUT_LEN(1), string_view(p, a->string));
	case VALUE_BOOL:
		return add_scalar(out, PUT_VARINT(2), a->boolean != 0);
	case VALUE_INT:
		return add_scalar(out, PUT_VARINT(3), (uint64_t)attribute_integer(a));
	case VALUE_DOUBLE:
		return add_double(out, a);
	case VALUE_ARRAY:
		return add_children(out, PUT_LEN(5), p, a);
	case VALUE_KVLIST:
		return add_children(out, PUT_LEN(6), p, a);
	case VALUE_BYTES:
		return add_bytes(out, PUT_LEN(7), span_view(p, a->bytes));
	}
	return false;
}

static bool add_value(struct bytes *out, uint8_t tag, const struct profiles *p,
		      const struct attribute *a)
{
	size_t header;
	return open_field(out, &header) && add_content(out, p, a) && close_field(out, tag, header);
}

static bool add_key(struct canonical *k, struct view key, bool *repeated)
{
	uint32_t before = k->keys.count;
	uint32_t index = intern_put(&k->keys, key.at, key.len);
	*repeated = index < before;
	return index != 0;
}

static bool add_attributes(struct canonical *k, uint8_t tag, const struct profiles *p,
			   struct list list)
{
	const uint32_t *indices = p->indices.at + list.first;
	if (list.count > 1)
		intern_reset(&k->keys);
	for (uint32_t i = 0; i < list.count; i++) {
		const struct attribute *a = &p->attributes.at[indices[i]];
		bool repeated = false;
		if (list.count > 1 && !add_key(k, string_view(p, a->key), &repeated))
			return false;
		if (!repeated && !add_key_value(&k->out, tag, p, a))
			return false;
	}
	return true;
}

static bool add_entity_keys(struct bytes *out, uint8_t tag, const struct profiles *p,
			    struct list keys)
{
	for (uint32_t i = 0; i < keys.count; i++)
		if (!add_bytes(out, tag, string_view(p, p->indices.at[keys.first + i])))
			return false;
	return true;
}

/* False: no room. Unknown keys get an index too; all of these are above those of `known`. */
static bool find_keys(struct canonical *k, const struct profiles *p, struct list keys,
		      uint32_t known, bool *found)
{
	for (uint32_t i = 0; i < keys.count && *found; i++) {
		struct view key = string_view(p, p->indices.at[keys.first + i]);
		uint32_t index = intern_put(&k->keys, key.at, key.len);
		if (!index)
			return false;
		*found = index < known;
	}
	return true;
}

/* Entity keys are checked here rather than where keys are removed: regardless of which processor
 * removed a key, and of its position in the list, the output names only keys that are in the
 * output. */
static bool add_entities(struct canonical *k, uint8_t tag, const struct profiles *p,
			 const struct resource *r)
{
	struct bytes *out = &k->out;
	if (!r->entities.count)
		return true;
	intern_reset(&k->keys);
	for (uint32_t i = 0; i < r->attributes.count; i++) {
		bool repeated;
		uint32_t key = p->attributes.at[p->indices.at[r->attributes.first + i]].key;
		if (!add_key(k, string_view(p, key), &repeated))
			return false;
	}
	uint32_t known = k->keys.count;
	for (uint32_t i = 0; i < r->entities.count; i++) {
		const struct entity *e = &p->entities.at[r->entities.first + i];
		bool found = e->id_keys.count > 0;
		size_t header;
		if (!find_keys(k, p, e->id_keys, known, &found) ||
		    !find_keys(k, p, e->description_keys, known, &found))
			return false;
		if (!found)
			continue;
		if (!open_field(out, &header) || !add_text(out, PUT_LEN(1), p, e->schema_url) ||
		    !add_text(out, PUT_LEN(2), p, e->type) ||
		    !add_entity_keys(out, PUT_LEN(3), p, e->id_keys) ||
		    !add_entity_keys(out, PUT_LEN(4), p, e->description_keys) ||
		    !close_field(out, tag, header))
			return false;
	}
	return true;
}

/* Subtracts what was written from `left`; `complete` is false if it did not fit into out. */
static bool charge(struct canonical *k, bool complete)
{
	bool within = complete && k->out.len < k->left;
	k->left = within ? k->left - k->out.len : 0;
	return within;
}

bool canonical_attribute(struct canonical *k, const struct profiles *p, const struct attribute *a,
			 uint32_t key, uint32_t unit)
{
	k->out.len = 0;
	return !canonical_spent(k) && charge(k, add_number(&k->out, PUT_VARINT(1), key) &&
							add_value(&k->out, PUT_LEN(2), p, a) &&
							add_number(&k->out, PUT_VARINT(3), unit));
}

static bool add_resource(struct canonical *k, const struct profiles *p, const struct resource *r,
			 size_t *split)
{
	struct bytes *out = &k->out;
	size_t header;
	if (!open_field(out, &header) || !add_attributes(k, PUT_LEN(1), p, r->attributes) ||
	    !add_number(out, PUT_VARINT(2), r->dropped_attributes) ||
	    !add_entities(k, PUT_LEN(3), p, r) || !close_field(out, PUT_LEN(1), header))
		return false;
	*split = out->len;
	return add_text(out, PUT_LEN(3), p, r->schema_url);
}

bool canonical_resource(struct canonical *k, const struct profiles *p, const struct resource *r,
			size_t *split)
{
	k->out.len = 0;
	return !canonical_spent(k) && charge(k, add_resource(k, p, r, split));
}

static bool add_scope(struct canonical *k, const struct profiles *p, const struct scope *s,
		      uint32_t resource, size_t *split)
{
	struct bytes *out = &k->out;
	size_t header;
	if (!bytes_add(out, &resource, CANONICAL_OWNER) || !open_field(out, &header) ||
	    !add_text(out, PUT_LEN(1), p, s->name) || !add_text(out, PUT_LEN(2), p, s->version) ||
	    !add_attributes(k, PUT_LEN(3), p, s->attributes) ||
	    !add_number(out, PUT_VARINT(4), s->dropped_attributes) ||
	    !close_field(out, PUT_LEN(1), header))
		return false;
	*split = out->len;
	return add_text(out, PUT_LEN(3), p, s->schema_url);
}

bool canonical_scope(struct canonical *k, const struct profiles *p, const struct scope *s,
		     uint32_t resource, size_t *split)
{
	k->out.len = 0;
	return !canonical_spent(k) && charge(k, add_scope(k, p, s, resource, split));
}
