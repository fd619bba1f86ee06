/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/oracle.h"
#include "base/hash.h"
#include "base/memory.h"
#include "otlp_profiles.pb-c.h"

#include <inttypes.h>
#include <stdlib.h>

#define PROFILES(name) Opentelemetry__Proto__Profiles__V1development__##name
#define COMMON(name) Opentelemetry__Proto__Common__V1__##name
#define VALUE_IS(name) OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##name

typedef PROFILES(ProfilesData) Data;
typedef PROFILES(ProfilesDictionary) Dictionary;
typedef COMMON(AnyValue) Value;
typedef COMMON(KeyValue) KeyValue;

static Data *unpack(struct view otlp)
{
	return opentelemetry__proto__profiles__v1development__profiles_data__unpack(NULL, otlp.len,
										    otlp.at);
}

static void release(Data *data)
{
	opentelemetry__proto__profiles__v1development__profiles_data__free_unpacked(data, NULL);
}

/* ---- rules ---- */

struct check {
	const Dictionary *d;
	uint8_t *used[8]; /* by field number of the table */
	const char *breach;
};

static void broken(struct check *c, bool is, const char *rule)
{
	if (is && !c->breach)
		c->breach = rule;
}

/* Unknown fields at any depth, according to the descriptors. */
static bool has_unknown(const ProtobufCMessage *m)
{
	if (m->n_unknown_fields)
		return true;
	for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
		const char *member = (const char *)m + f->offset;
		if (f->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
		    *(const uint32_t *)((const char *)m + f->quantifier_offset) != f->id)
			continue;
		size_t n = f->label == PROTOBUF_C_LABEL_REPEATED
				   ? *(const size_t *)((const char *)m + f->quantifier_offset)
				   : 1;
		ProtobufCMessage *const *list = f->label == PROTOBUF_C_LABEL_REPEATED
							? *(ProtobufCMessage * *const *)member
							: (ProtobufCMessage *const *)member;
		for (size_t j = 0; j < n; j++)
			if (list[j] && has_unknown(list[j]))
				return true;
	}
	return false;
}

enum { MAPPING = 1, LOCATION, FUNCTION, LINK, STRING, ATTRIBUTE, STACK };

static size_t table_count(const Dictionary *d, unsigned table)
{
	const size_t counts[] = { 0,
				  d->n_mapping_table,
				  d->n_location_table,
				  d->n_function_table,
				  d->n_link_table,
				  d->n_string_table,
				  d->n_attribute_table,
				  d->n_stack_table };
	return counts[table];
}

static bool use(struct check *c, unsigned table, int32_t index)
{
	bool inside = index >= 0 && (size_t)index < table_count(c->d, table);
	broken(c, !inside, "index out of range");
	if (!inside)
		return false;
	bool before = c->used[table][index];
	c->used[table][index] = 1;
	return !before;
}

static void check_value(struct check *c, const Value *v);

static void check_key_values(struct check *c, KeyValue **list, size_t n, bool unique)
{
	for (size_t i = 0; i < n; i++) {
		broken(c, list[i]->key_strindex != 0, "key by reference");
		check_value(c, list[i]->value);
		for (size_t j = 0; unique && j < i; j++)
			broken(c, strcmp(list[i]->key, list[j]->key) == 0, "key twice in a list");
	}
}

static void check_value(struct check *c, const Value *v)
{
	broken(c, !v, "attribute without value");
	if (!v)
		return;
	broken(c, v->value_case == VALUE_IS(STRING_VALUE_STRINDEX), "value by reference");
	if (v->value_case == VALUE_IS(ARRAY_VALUE))
		for (size_t i = 0; i < v->array_value->n_values; i++)
			check_value(c, v->array_value->values[i]);
	if (v->value_case == VALUE_IS(KVLIST_VALUE))
		check_key_values(c, v->kvlist_value->values, v->kvlist_value->n_values, false);
}

static void check_attributes(struct check *c, const int32_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		broken(c, list[i] == 0, "attribute 0 in use");
		bool first = use(c, ATTRIBUTE, list[i]);
		if (c->breach)
			return;
		const PROFILES(KeyValueAndUnit) *a = c->d->attribute_table[list[i]];
		for (size_t j = 0; j < i; j++)
			broken(c, c->d->attribute_table[list[j]]->key_strindex == a->key_strindex,
			       "key twice in a list");
		if (!first)
			continue;
		use(c, STRING, a->key_strindex);
		use(c, STRING, a->unit_strindex);
		check_value(c, a->value);
	}
}

static void check_function(struct check *c, int32_t index)
{
	if (!use(c, FUNCTION, index))
		return;
	const PROFILES(Function) *f = c->d->function_table[index];
	use(c, STRING, f->name_strindex);
	use(c, STRING, f->system_name_strindex);
	use(c, STRING, f->filename_strindex);
}

static void check_location(struct check *c, int32_t index)
{
	broken(c, index == 0, "location 0 in use");
	if (!use(c, LOCATION, index))
		return;
	const PROFILES(Location) *l = c->d->location_table[index];
	if (use(c, MAPPING, l->mapping_index)) {
		const PROFILES(Mapping) *m = c->d->mapping_table[l->mapping_index];
		use(c, STRING, m->filename_strindex);
		check_attributes(c, m->attribute_indices, m->n_attribute_indices);
	}
	for (size_t i = 0; i < l->n_lines; i++)
		check_function(c, l->lines[i]->function_index);
	check_attributes(c, l->attribute_indices, l->n_attribute_indices);
}

static void check_sample(struct check *c, const PROFILES(Sample) * s)
{
	broken(c, s->stack_index == 0, "stack 0 in use");
	if (use(c, STACK, s->stack_index)) {
		const PROFILES(Stack) *stack = c->d->stack_table[s->stack_index];
		for (size_t i = 0; i < stack->n_location_indices; i++)
			check_location(c, stack->location_indices[i]);
	}
	use(c, LINK, s->link_index);
	check_attributes(c, s->attribute_indices, s->n_attribute_indices);
}

static void check_kind(struct check *c, const PROFILES(ValueType) * kind)
{
	if (!kind)
		return;
	use(c, STRING, kind->type_strindex);
	use(c, STRING, kind->unit_strindex);
}

static void check_profile(struct check *c, const PROFILES(Profile) * p)
{
	check_kind(c, p->sample_type);
	check_kind(c, p->period_type);
	check_attributes(c, p->attribute_indices, p->n_attribute_indices);
	broken(c, p->profile_id.len != 0 && p->profile_id.len != 16,
	       "profile id of a wrong length");
	broken(c, p->original_payload.len || *p->original_payload_format, "original payload");
	for (size_t i = 0; i < p->n_samples; i++)
		check_sample(c, p->samples[i]);
}

static void check_scope(struct check *c, const PROFILES(ScopeProfiles) * s)
{
	broken(c, !s->scope, "no Scope");
	broken(c, !s->n_profiles, "scope without profiles");
	if (s->scope)
		check_key_values(c, s->scope->attributes, s->scope->n_attributes, true);
	for (size_t i = 0; i < s->n_profiles; i++)
		check_profile(c, s->profiles[i]);
}

static void check_resource(struct check *c, const PROFILES(ResourceProfiles) * r)
{
	broken(c, !r->resource, "no Resource");
	broken(c, !r->n_scope_profiles, "resource without scopes");
	if (r->resource)
		check_key_values(c, r->resource->attributes, r->resource->n_attributes, true);
	for (size_t i = 0; i < r->n_scope_profiles; i++)
		check_scope(c, r->scope_profiles[i]);
}

static uint64_t digest_of(const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *packed = memory_array(1, len + 1);
	protobuf_c_message_pack(m, packed);
	uint64_t digest = hash_bytes(packed, len);
	memory_free(packed);
	return digest;
}

static int compare_digests(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void check_unique(struct check *c, uint64_t *digests, size_t n, const char *rule)
{
	qsort(digests, n, sizeof *digests, compare_digests);
	for (size_t i = 1; i < n; i++)
		broken(c, digests[i] == digests[i - 1], rule);
	memory_free(digests);
}

/* Entry 0 may have an equal entry: a real one without content. */
static void check_table(struct check *c, ProtobufCMessage **entries, size_t n)
{
	broken(c, n == 0, "empty table");
	if (!n)
		return;
	broken(c, protobuf_c_message_get_packed_size(entries[0]) != 0, "entry 0 is not zero");
	uint64_t *digests = memory_array(n, sizeof *digests);
	for (size_t i = 1; i < n; i++)
		digests[i - 1] = digest_of(entries[i]);
	check_unique(c, digests, n - 1, "an entry twice");
}

static void check_strings(struct check *c)
{
	const Dictionary *d = c->d;
	broken(c, d->n_string_table == 0 || *d->string_table[0], "no string 0");
	uint64_t *digests = memory_array(d->n_string_table, sizeof *digests);
	for (size_t i = 0; i < d->n_string_table; i++)
		digests[i] = hash_bytes(d->string_table[i], strlen(d->string_table[i]));
	check_unique(c, digests, d->n_string_table, "a string twice");
}

static void check_dictionary(struct check *c)
{
	const Dictionary *d = c->d;
#define TABLE(t) check_table(c, (ProtobufCMessage **)d->t##_table, d->n_##t##_table)
	TABLE(mapping);
	TABLE(location);
	TABLE(function);
	TABLE(link);
	TABLE(attribute);
	TABLE(stack);
#undef TABLE
	check_strings(c);
	for (unsigned t = MAPPING; t <= STACK; t++)
		for (size_t i = 1; i < table_count(d, t); i++)
			broken(c, !c->used[t][i], "an entry that nothing refers to");
	for (size_t i = 1; i < d->n_link_table; i++)
		broken(c,
		       d->link_table[i]->trace_id.len != 16 || d->link_table[i]->span_id.len != 8,
		       "link ids of a wrong length");
}

const char *oracle_breach(struct view otlp)
{
	Data *data = unpack(otlp);
	if (!data || !data->dictionary) {
		release(data);
		return data ? "no dictionary" : "not decodable";
	}
	struct check c = { .d = data->dictionary };
	for (unsigned t = MAPPING; t <= STACK; t++)
		c.used[t] = memory_new(table_count(c.d, t) + 1);
	broken(&c, has_unknown(&data->base), "unknown field");
	broken(&c, !data->n_resource_profiles, "no resources");
	for (size_t i = 0; i < data->n_resource_profiles; i++)
		check_resource(&c, data->resource_profiles[i]);
	check_dictionary(&c);
	for (unsigned t = MAPPING; t <= STACK; t++)
		memory_free(c.used[t]);
	release(data);
	return c.breach;
}

/* ---- text ---- */

static void put_hex(struct bytes *out, ProtobufCBinaryData b)
{
	for (size_t i = 0; i < b.len; i++)
		bytes_format(out, "%02x", b.data[i]);
}

static void put_attribute(struct bytes *out, const char *key, const Value *v);

static void put_list(struct bytes *out, const Value *v)
{
	if (v->value_case == VALUE_IS(ARRAY_VALUE)) {
		bytes_add_text(out, "[");
		for (size_t i = 0; i < v->array_value->n_values; i++)
			put_attribute(out, NULL, v->array_value->values[i]);
		bytes_add_text(out, "]");
		return;
	}
	bytes_add_text(out, "{");
	for (size_t i = 0; i < v->kvlist_value->n_values; i++)
		put_attribute(out, v->kvlist_value->values[i]->key,
			      v->kvlist_value->values[i]->value);
	bytes_add_text(out, "}");
}

static void put_attribute(struct bytes *out, const char *key, const Value *v)
{
	char last = (char)out->at[out->len - 1];
	if (last != '{' && last != '[')
		bytes_add_text(out, " ");
	if (key)
		bytes_format(out, "%s=", key);
	switch ((int)v->value_case) {
	case VALUE_IS(STRING_VALUE):
		bytes_format(out, "\"%s\"", v->string_value);
		break;
	case VALUE_IS(BOOL_VALUE):
		bytes_add_text(out, v->bool_value ? "true" : "false");
		break;
	case VALUE_IS(INT_VALUE):
		bytes_format(out, "%" PRId64, v->int_value);
		break;
	case VALUE_IS(DOUBLE_VALUE):
		bytes_format(out, "%g", v->double_value);
		break;
	case VALUE_IS(BYTES_VALUE):
		put_hex(out, v->bytes_value);
		break;
	case VALUE_IS(ARRAY_VALUE):
	case VALUE_IS(KVLIST_VALUE):
		put_list(out, v);
		break;
	default:
		bytes_add_text(out, "empty");
	}
}

static void put_key_values(struct bytes *out, KeyValue **list, size_t n)
{
	bytes_add_text(out, " {");
	for (size_t i = 0; i < n; i++)
		put_attribute(out, list[i]->key, list[i]->value);
	bytes_add_text(out, "}");
}

static void put_attributes(struct bytes *out, const Dictionary *d, const int32_t *list, size_t n)
{
	if (!n)
		return;
	bytes_add_text(out, " {");
	for (size_t i = 0; i < n; i++) {
		const PROFILES(KeyValueAndUnit) *a = d->attribute_table[list[i]];
		put_attribute(out, d->string_table[a->key_strindex], a->value);
		if (a->unit_strindex)
			bytes_format(out, " %s", d->string_table[a->unit_strindex]);
	}
	bytes_add_text(out, "}");
}

static void put_text(struct bytes *out, const char *name, const char *text)
{
	if (*text)
		bytes_format(out, " %s=%s", name, text);
}

static void put_count(struct bytes *out, const char *name, int64_t n)
{
	if (n)
		bytes_format(out, " %s=%" PRId64, name, n);
}

static void put_line(struct bytes *out, const Dictionary *d, const PROFILES(Line) * line)
{
	const PROFILES(Function) *f = d->function_table[line->function_index];
	bytes_format(out, ":%s", d->string_table[f->name_strindex]);
	if (f->system_name_strindex)
		bytes_format(out, "(%s)", d->string_table[f->system_name_strindex]);
	if (f->filename_strindex)
		bytes_format(out, "@%s", d->string_table[f->filename_strindex]);
	if (f->start_line)
		bytes_format(out, "+%" PRId64, f->start_line);
	if (line->line || line->column)
		bytes_format(out, "/%" PRId64 ".%" PRId64, line->line, line->column);
}

static void put_mapping(struct bytes *out, const Dictionary *d, const PROFILES(Mapping) * m)
{
	bytes_format(out, "!%s", d->string_table[m->filename_strindex]);
	put_count(out, "start", (int64_t)m->memory_start);
	put_count(out, "limit", (int64_t)m->memory_limit);
	put_count(out, "offset", (int64_t)m->file_offset);
	put_attributes(out, d, m->attribute_indices, m->n_attribute_indices);
}

struct lines {
	struct bytes out;        /* the current line */
	struct bytes *locations; /* the text of each, created once: many stacks contain it */
	void (*visit)(void *context, const char *line, size_t len);
	void *context;
};

static void put_location(struct bytes *out, const Dictionary *d, const PROFILES(Location) * l)
{
	bytes_format(out, "%" PRIx64, l->address);
	for (size_t j = 0; j < l->n_lines; j++)
		put_line(out, d, l->lines[j]);
	if (l->mapping_index)
		put_mapping(out, d, d->mapping_table[l->mapping_index]);
	put_attributes(out, d, l->attribute_indices, l->n_attribute_indices);
}

static void put_stack(struct lines *l, const Dictionary *d, int32_t stack)
{
	const PROFILES(Stack) *s = d->stack_table[stack];
	if (!s->n_location_indices)
		bytes_add_text(&l->out, "-");
	for (size_t i = 0; i < s->n_location_indices; i++) {
		struct bytes *text = &l->locations[s->location_indices[i]];
		if (!text->len)
			put_location(text, d, d->location_table[s->location_indices[i]]);
		if (i)
			bytes_add_byte(&l->out, ';');
		bytes_add(&l->out, text->at, text->len);
	}
}

static void end_line(struct lines *l)
{
	l->visit(l->context, (const char *)l->out.at, l->out.len);
	l->out.len = 0;
}

static void put_sample(struct lines *l, const Dictionary *d, const PROFILES(Sample) * s)
{
	struct bytes *out = &l->out;
	bytes_add_text(out, "   ");
	put_stack(l, d, s->stack_index);
	put_attributes(out, d, s->attribute_indices, s->n_attribute_indices);
	if (s->link_index) {
		bytes_add_text(out, " link=");
		put_hex(out, d->link_table[s->link_index]->trace_id);
		bytes_add_text(out, "/");
		put_hex(out, d->link_table[s->link_index]->span_id);
	}
	for (size_t i = 0; i < s->n_values; i++)
		bytes_format(out, " %" PRId64, s->values[i]);
	for (size_t i = 0; i < s->n_timestamps_unix_nano; i++)
		bytes_format(out, " @%" PRIu64, s->timestamps_unix_nano[i]);
	end_line(l);
}

static void put_kind(struct bytes *out, const Dictionary *d, const char *name,
		     const PROFILES(ValueType) * kind)
{
	if (kind)
		bytes_format(out, " %s=%s/%s", name, d->string_table[kind->type_strindex],
			     d->string_table[kind->unit_strindex]);
}

static void put_profile(struct lines *l, const Dictionary *d, const PROFILES(Profile) * p)
{
	struct bytes *out = &l->out;
	bytes_add_text(out, "  profile");
	put_kind(out, d, "type", p->sample_type);
	put_kind(out, d, "period_type", p->period_type);
	put_count(out, "period", p->period);
	put_count(out, "time", (int64_t)p->time_unix_nano);
	put_count(out, "duration", (int64_t)p->duration_nano);
	put_count(out, "dropped", p->dropped_attributes_count);
	if (p->profile_id.len) {
		bytes_add_text(out, " id=");
		put_hex(out, p->profile_id);
	}
	put_attributes(out, d, p->attribute_indices, p->n_attribute_indices);
	end_line(l);
	for (size_t i = 0; i < p->n_samples; i++)
		put_sample(l, d, p->samples[i]);
}

static void put_scope(struct lines *l, const Dictionary *d, const PROFILES(ScopeProfiles) * s)
{
	struct bytes *out = &l->out;
	bytes_add_text(out, " scope");
	put_text(out, "name", s->scope->name);
	put_text(out, "version", s->scope->version);
	put_text(out, "schema", s->schema_url);
	put_count(out, "dropped", s->scope->dropped_attributes_count);
	if (s->scope->n_attributes)
		put_key_values(out, s->scope->attributes, s->scope->n_attributes);
	end_line(l);
	for (size_t i = 0; i < s->n_profiles; i++)
		put_profile(l, d, s->profiles[i]);
}

static void put_entity(struct bytes *out, const COMMON(EntityRef) * e)
{
	bytes_format(out, " entity=%s/%s", e->type, e->schema_url);
	for (size_t i = 0; i < e->n_id_keys; i++)
		bytes_format(out, " id=%s", e->id_keys[i]);
	for (size_t i = 0; i < e->n_description_keys; i++)
		bytes_format(out, " description=%s", e->description_keys[i]);
}

static void put_resource(struct lines *l, const Dictionary *d, const PROFILES(ResourceProfiles) * r)
{
	struct bytes *out = &l->out;
	bytes_add_text(out, "resource");
	put_text(out, "schema", r->schema_url);
	put_count(out, "dropped", r->resource->dropped_attributes_count);
	if (r->resource->n_attributes)
		put_key_values(out, r->resource->attributes, r->resource->n_attributes);
	for (size_t i = 0; i < r->resource->n_entity_refs; i++)
		put_entity(out, r->resource->entity_refs[i]);
	end_line(l);
	for (size_t i = 0; i < r->n_scope_profiles; i++)
		put_scope(l, d, r->scope_profiles[i]);
}

void oracle_lines(struct view otlp, void (*visit)(void *context, const char *line, size_t len),
		  void *context)
{
	Data *data = unpack(otlp);
	size_t locations = data && data->dictionary ? data->dictionary->n_location_table : 0;
	struct lines l = { .visit = visit, .context = context };
	bytes_init(&l.out, 64 << 20);
	l.locations = memory_array(locations + 1, sizeof *l.locations);
	for (size_t i = 0; i < locations; i++)
		bytes_init(&l.locations[i], 1 << 20);
	for (size_t i = 0; data && i < data->n_resource_profiles; i++)
		put_resource(&l, data->dictionary, data->resource_profiles[i]);
	for (size_t i = 0; i < locations; i++)
		bytes_fini(&l.locations[i]);
	memory_free(l.locations);
	release(data);
	bytes_fini(&l.out);
}

static void add_line(void *context, const char *line, size_t len)
{
	bytes_add(context, line, len);
	bytes_add_byte(context, '\n');
}

char *oracle_text(struct view otlp)
{
	struct bytes out;
	bytes_init(&out, 64 << 20);
	oracle_lines(otlp, add_line, &out);
	char *text = memory_text_of(out.at, out.len);
	bytes_fini(&out);
	return text;
}
