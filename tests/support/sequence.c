/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/sequence.h"
#include "base/array.h"
#include "base/hash.h"
#include "tests/support/oracle.h"

#include <string.h>

struct reader {
	struct sequence *out;
	uint64_t heads[3]; /* resource, scope, profile */
	bool bare;         /* the profile has no sample yet */
};

static void put(struct reader *r, uint64_t sample)
{
	uint64_t all[] = { r->heads[0], r->heads[1], r->heads[2], sample };
	array_push(r->out) = hash_bytes(all, sizeof all);
}

static void read_line(void *context, const char *line, size_t len)
{
	struct reader *r = context;
	size_t level = strspn(line, " ");
	uint64_t digest = hash_bytes(line, len);
	if (level == 3) {
		r->bare = false;
		put(r, digest);
		return;
	}
	if (r->bare)
		put(r, 0);
	r->bare = level == 2;
	r->heads[level] = digest;
}

void sequence_read(struct view otlp, struct sequence *out)
{
	struct reader r = { .out = out };
	oracle_lines(otlp, read_line, &r);
	if (r.bare)
		put(&r, 0);
}

int64_t sequence_missing(const struct sequence *all, const struct sequence *some)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < all->count && found < some->count; i++)
		found += all->at[i] == some->at[found];
	return found == some->count ? (int64_t)all->count - found : -1;
}
