/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROFILE_PPROF_PPROF_BODY_H
#define TESTS_PROFILE_PPROF_PPROF_BODY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "profile/pprof/decode_pprof.h"
#include "profile/pprof/encode_pprof.h"
#include "profile/pprof/pprof.h"
#include "profile/wire.h"

/* Shared by the tests of both directions: a body under construction, its tables, and the way
 * back. */

enum { CAP = 1 << 20 };

/* Building a body: every message is written from number, value pairs. */

static struct bytes body;
static struct profiles p;
static struct error err;

static inline void plain(uint32_t field, size_t count, const uint64_t *pairs)
{
	struct bytes message;
	bytes_init(&message, 4096);
	for (size_t i = 0; i < count; i += 2)
		assert_true(wire_add_varint(&message, (uint32_t)pairs[i], pairs[i + 1]));
	assert_true(wire_add_len(&body, field, bytes_view(&message)));
	bytes_fini(&message);
}

#define MESSAGE(field, ...) \
	plain((field), sizeof((uint64_t[]){ __VA_ARGS__ }) / 8, (uint64_t[]){ __VA_ARGS__ })

static inline void text(const char *value)
{
	assert_true(wire_add_len(&body, PPROF_STRING, view_of(value)));
}

static inline void number(uint32_t field, uint64_t value)
{
	assert_true(wire_add_varint(&body, field, value));
}

struct label {
	uint64_t key, str, num, unit;
};

static inline void sample(uint64_t location, size_t values, const uint64_t *value, size_t labels,
			  const struct label *label)
{
	struct bytes message, nested;
	bytes_init(&message, 4096);
	bytes_init(&nested, 4096);
	wire_add_varint(&message, PPROF_SAMPLE_LOCATIONS, location);
	for (size_t i = 0; i < values; i++)
		wire_add_varint(&message, PPROF_SAMPLE_VALUES, value[i]);
	for (size_t i = 0; i < labels; i++) {
		nested.len = 0;
		wire_add_varint(&nested, PPROF_LABEL_KEY, label[i].key);
		wire_add_varint(&nested, PPROF_LABEL_STR, label[i].str);
		wire_add_varint(&nested, PPROF_LABEL_NUM, label[i].num);
		wire_add_varint(&nested, PPROF_LABEL_UNIT, label[i].unit);
		wire_add_len(&message, PPROF_SAMPLE_LABEL, bytes_view(&nested));
	}
	wire_add_len(&body, PPROF_SAMPLE, bytes_view(&message));
	bytes_fini(&message);
	bytes_fini(&nested);
}

enum {
	NOTHING,
	SAMPLES,
	COUNT,
	CPU,
	NANOSECONDS,
	MAIN,
	KEY,
	VALUE,
	TRACE,
	SPAN,
	TRACE_ID,
	SPAN_ID,
	UPPER_SPAN_ID,
	BUILD_ID,
	GO_BUILD_ID,
	COMMENT
};

static const char *const words[] = {
	"",
	"samples",
	"count",
	"cpu",
	"nanoseconds",
	"main",
	"key",
	"value",
	"trace_id",
	"span_id",
	"0123456789abcdef0123456789abcdef",
	"fedcba9876543210",
	"FEDCBA9876543210",
	"a1b2",
	"a-_/Zz/0",
	"a comment",
};

/* Two sample types, a mapping, a location with one line, and a function, but no sample. */
static inline void begin(void)
{
	bytes_fini(&body);
	bytes_init(&body, CAP);
	error_clear(&err);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		text(words[i]);
	MESSAGE(PPROF_SAMPLE_TYPE, 1, SAMPLES, 2, COUNT);
	MESSAGE(PPROF_SAMPLE_TYPE, 1, CPU, 2, NANOSECONDS);
	MESSAGE(PPROF_MAPPING, 1, 1, 2, 4096, 3, 8192, 6, BUILD_ID, 7, 1);
	MESSAGE(PPROF_FUNCTION, 1, 1, 2, MAIN, 5, 7);
}

static inline void location(uint64_t id, uint64_t mapping, uint64_t function, uint64_t folded)
{
	struct bytes message, line;
	bytes_init(&message, 4096);
	bytes_init(&line, 4096);
	wire_add_varint(&message, PPROF_LOCATION_ID, id);
	wire_add_varint(&message, PPROF_LOCATION_MAPPING, mapping);
	wire_add_varint(&message, PPROF_LOCATION_FOLDED, folded);
	wire_add_varint(&line, PPROF_LINE_FUNCTION, function);
	wire_add_varint(&line, PPROF_LINE_LINE, 42);
	wire_add_len(&message, PPROF_LOCATION_LINE, bytes_view(&line));
	wire_add_len(&body, PPROF_LOCATION, bytes_view(&message));
	bytes_fini(&message);
	bytes_fini(&line);
}

#define SAMPLE(...) \
	sample(1, 2, (uint64_t[]){ 3, 30 }, \
	       sizeof((struct label[]){ __VA_ARGS__ }) / sizeof(struct label), \
	       (struct label[]){ __VA_ARGS__ })

static inline bool decode(void)
{
	bytes_reserve(&body, 1);
	assert_true(profiles_reset(&p, NULL, bytes_view(&body), CAP));
	return decode_pprof(&p, p.input, NULL, &err);
}

static inline void must_decode(void)
{
	if (!decode())
		fail_msg("%s", err.text);
}

static inline const struct attribute *attribute_at(struct list list, uint32_t i)
{
	assert_true(i < list.count);
	return &p.attributes.at[p.indices.at[list.first + i]];
}

static inline const struct sample *sample_of(uint32_t profile, uint32_t i)
{
	assert_true(i < p.profiles.at[profile].samples.count);
	return &p.samples.at[p.profiles.at[profile].samples.first + i];
}

static inline uint64_t value_of(const struct sample *s)
{
	struct wire w = wire_of(span_view(&p, s->values));
	return wire_varint(&w);
}

#define assert_text(string, expected) assert_true(string_is(&p, (string), (expected)))

/* Collects the output of encode_pprof. `again` decodes the first one into p. */

static struct {
	struct bytes pprof;
	uint32_t count;
	uint64_t samples;
} out;

static inline bool keep(const struct pprof_out *o, void *context)
{
	(void)context;
	if (out.count++ == 0)
		assert_true(bytes_add(&out.pprof, o->bytes.at, o->bytes.len));
	out.samples += o->samples;
	return true;
}

static inline void encode(void)
{
	bytes_fini(&out.pprof);
	bytes_init(&out.pprof, CAP);
	out.count = 0;
	out.samples = 0;
	if (!encode_pprof(&p, false, keep, NULL, &err))
		fail_msg("%s", err.text);
}

static inline void again(void)
{
	encode();
	bytes_fini(&body);
	bytes_init(&body, CAP);
	bytes_add(&body, out.pprof.at, out.pprof.len);
	must_decode();
}

static inline const struct attribute *mapping_attribute(const char *key)
{
	struct list list = p.mappings.at[1].attributes;
	for (uint32_t i = 0; i < list.count; i++)
		if (string_is(&p, attribute_at(list, i)->key, key))
			return attribute_at(list, i);
	return NULL;
}

static inline int forget(void **state)
{
	(void)state;
	bytes_fini(&body);
	bytes_fini(&out.pprof);
	profiles_fini(&p);
	return 0;
}

#endif
