/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "profile/json_wire.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/otlp/otlp_json.h"
#include "profile/wire.h"

#include <stdlib.h>

/* JSON that is translated is well-formed protobuf, within the levels and the size that the
 * translation promises; what is not is refused with a reason. The first byte chooses the table: of
 * OTLP, or one with every kind of field. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { CAP = 16 << 20 };

static const struct json_wire_enum names[] = { { "NONE", 0 }, { "SOME", -5 }, { 0 } };
static const struct json_wire_message all;
/* clang-format off */
static const struct json_wire_field all_fields[] = {
	JSON_WIRE_FIELD(1, "s", STRING),
	JSON_WIRE_FIELD(2, "b", BASE64),
	JSON_WIRE_FIELD(3, "h", HEX),
	JSON_WIRE_FIELD(4, "t", BOOL),
	JSON_WIRE_FIELD(5, "i32", INT32),
	JSON_WIRE_FIELD(6, "i64", INT64),
	JSON_WIRE_FIELD(7, "u32", UINT32),
	JSON_WIRE_FIELD(8, "u64", UINT64),
	JSON_WIRE_FIELD(9, "f64", FIXED64),
	JSON_WIRE_FIELD(10, "d", DOUBLE),
	JSON_WIRE_NAMES(11, "e", names),
	JSON_WIRE_LIST(12, "is", INT64),
	JSON_WIRE_LIST(13, "fs", FIXED64),
	JSON_WIRE_LIST(14, "ss", STRING),
	JSON_WIRE_LIST(15, "ds", DOUBLE),
	JSON_WIRE_ONE(16, "m", all),
	JSON_WIRE_MANY(17, "ms", all),
	JSON_WIRE_FIELD(3, "x", MARK),
	JSON_WIRE_ONE_NOT_LIST(19, "notList", all, 4),
};
/* clang-format on */
static const struct json_wire_message all = { sizeof all_fields / sizeof *all_fields, all_fields };

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check_lists(const struct wire_field *f)
{
	uint32_t count;
	if (f->number == 12)
		must(f->view.len && wire_packed_ok(f->view, &count));
	if (f->number == 13 || f->number == 15)
		must(f->view.len && f->view.len % 8 == 0);
}

/* Every field has the wire type of its table's row. */
static void check_message(struct view message, unsigned depth)
{
	struct wire w = wire_of(message);
	struct wire_field f;
	must(depth <= JSON_WIRE_DEPTH);
	while (wire_next(&w, &f)) {
		bool fixed = f.number == 9 || f.number == 10;
		bool len = f.number <= 3 || f.number >= 12;
		must(f.number >= 1 && f.number <= 19);
		must(f.type == (fixed ? WIRE_FIXED64 : len ? WIRE_LEN : WIRE_VARINT));
		check_lists(&f);
		if (f.number >= 16)
			check_message(f.view, depth + 1);
	}
	must(wire_done(&w));
}

static void every_kind(struct view json)
{
	struct error err = { 0 };
	struct bytes out;
	uint32_t mark = 0;
	bytes_init(&out, CAP);
	bool ok = json_wire_translate(&all, json, &out, &mark, &err);
	if (ok)
		check_message(bytes_view(&out), 1);
	else
		must((err.kind == ERROR_INVALID && err.text[0]) != (mark == 3 || mark == 4));
	must(out.len <= 4 * json.len);
	bytes_fini(&out);
}

static void otlp(struct view json)
{
	static struct profiles p;
	struct error err = { 0 };
	struct bytes out;
	enum otlp_generation generation;
	bytes_init(&out, CAP);
	if (otlp_json_translate(json, &out, &generation, &err)) {
		must(profiles_reset(&p, NULL, bytes_view(&out), 64 * CAP));
		if (!decode_otlp(&p, &err))
			must(err.kind == ERROR_INVALID || err.kind == ERROR_TOO_LARGE);
	} else {
		must(err.kind == ERROR_INVALID && err.text[0]);
	}
	bytes_fini(&out);
}

/* A document as large as the input: nothing behind it can be read. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (!len)
		return 0;
	uint8_t *copy = memory_resize(NULL, len);
	memcpy(copy, data + 1, len - 1);
	struct view json = { copy, len - 1 };
	if (data[0] % 2)
		otlp(json);
	else
		every_kind(json);
	memory_free(copy);
	return 0;
}
