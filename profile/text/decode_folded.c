/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/text/stacks.h"

/* Frames from the root, separated by ';'. */
static bool push_frames(struct stacks *s, struct view stack, uint32_t *node)
{
	const uint8_t *at = stack.at, *end = at + stack.len;
	while (at < end) {
		const uint8_t *stop = memchr(at, ';', (size_t)(end - at));
		if (!stop)
			stop = end;
		if (!stacks_push_name(s, node, (struct view){ at, (size_t)(stop - at) }))
			return false;
		at = stop + 1;
	}
	return true;
}

/* A decimal number behind the line's last space, which is cut off with it. */
static bool read_number(struct stacks *s, struct view *line, uint64_t *number)
{
	size_t digits = 0;
	uint64_t factor = 1;
	*number = 0;
	for (; digits < line->len && digits < 20; digits++, factor *= 10) {
		uint8_t digit = line->at[line->len - 1 - digits] - '0';
		if (digit > 9)
			break;
		if (digit && (digits == 19 || (*number += factor * digit) > INT64_MAX))
			return error_set(s->err, ERROR_INVALID, "the number exceeds 2^63 - 1");
	}
	if (!digits || digits >= line->len || line->at[line->len - 1 - digits] != ' ')
		return error_set(s->err, ERROR_INVALID,
				 "does not end with a space and a number without a sign");
	line->len -= digits + 1;
	return true;
}

static bool count_folded(struct stacks *s, struct view line, uint32_t root)
{
	uint64_t number;
	return read_number(s, &line, &number) && push_frames(s, line, &root) &&
	       stacks_count(s, root, number);
}

static bool count_line(struct stacks *s, struct view line, uint32_t root)
{
	return push_frames(s, line, &root) && stacks_count(s, root, 1);
}

/* The next line, without its end ("\n" or "\r\n"), and what follows it. */
static struct view cut_line(struct view *rest)
{
	const uint8_t *end = memchr(rest->at, '\n', rest->len);
	struct view line = { rest->at, end ? (size_t)(end - rest->at) : rest->len };
	size_t taken = line.len + (end != NULL);
	*rest = (struct view){ rest->at + taken, rest->len - taken };
	line.len -= line.len && line.at[line.len - 1] == '\r';
	return line;
}

static bool read_lines(struct stacks *s,
		       bool (*count)(struct stacks *s, struct view line, uint32_t root))
{
	struct view rest = s->document;
	uint32_t root;
	if (!stacks_root(s, (struct stacks_group){ .kind = s->source->kind }, &root))
		return false;
	for (uint32_t number = 1; rest.len; number++) {
		struct view line = cut_line(&rest);
		if (line.len && !count(s, line, root))
			return error_prefix(s->err, "line %u", number);
	}
	return true;
}

static bool read_folded(struct stacks *s)
{
	return read_lines(s, count_folded);
}

static bool read_each(struct stacks *s)
{
	return read_lines(s, count_line);
}

bool decode_folded(struct profiles *p, struct view document, const struct text_source *source,
		   struct error *err)
{
	return stacks_decode(p, document, source, "folded", read_folded, err);
}

bool decode_lines(struct profiles *p, struct view document, const struct text_source *source,
		  struct error *err)
{
	return stacks_decode(p, document, source, "lines", read_each, err);
}
