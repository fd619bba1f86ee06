/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/packed.h"

uint64_t next_noise(uint64_t *noise)
{
	*noise ^= *noise << 13;
	*noise ^= *noise >> 7;
	return *noise ^= *noise << 17;
}

struct bytes sample(size_t len)
{
	struct bytes b;
	uint64_t noise = 88172645463325252u;
	bytes_init(&b, len);
	for (size_t i = 0; i < len; i++) {
		next_noise(&noise);
		bytes_add_byte(&b, i / 64 % 2 ? (uint8_t)noise : (uint8_t)('a' + i % 7));
	}
	return b;
}

struct bytes zeros(size_t len)
{
	struct bytes b;
	bytes_init(&b, len);
	bytes_reserve(&b, len);
	b.len = len;
	return b;
}

struct bytes deflated(enum coding coding, const struct bytes *in)
{
	struct bytes out;
	struct error err;
	bytes_init(&out, in->len * 2 + 1024);
	assert_true(compress_deflate(coding, 0, bytes_view(in), &out, &err));
	return out;
}

bool inflates(enum coding coding, struct view in, size_t max, struct bytes *out,
	      enum error_kind *kind)
{
	struct error err;
	error_clear(&err);
	bytes_init(out, max);
	bool ok = compress_inflate(coding, in, out, &err);
	assert_true(out->room <= max);
	*kind = err.kind;
	return ok;
}

void check_inflates_to(enum coding coding, struct view in, const struct bytes *want, size_t max)
{
	struct bytes out;
	enum error_kind kind;
	assert_true(inflates(coding, in, max, &out, &kind));
	assert_int_equal(out.len, want->len);
	assert_memory_equal(out.at, want->at, want->len);
	bytes_fini(&out);
}
