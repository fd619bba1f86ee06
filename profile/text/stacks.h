/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_TEXT_STACKS_H
#define PROFILE_TEXT_STACKS_H

#include "profile/memo.h"
#include "profile/text/text.h"

/*
 * The stacks of one document while it is decoded. They are call trees: a stack is a node, and its
 * caller is the node's parent. A decoder goes from a root towards a leaf (stacks_push), adds
 * numbers to nodes (stacks_count), and need not know whether a stack occurred before. At the end
 * each node with a number becomes a sample.
 *
 * A tree belongs to a group, which becomes a Profile with a resource of its own. Formats that hold
 * one profile have one group. One thread.
 *
 * Functions that return bool return false with s->err set.
 */
struct stacks_group {
	const struct text_kind *kind;
	double start;
	uint32_t name; /* string: the attribute profile_name; 0: none */
	bool exact;    /* the numbers are nanoseconds, not counts */
	uint8_t tags[3];
};

struct stacks_frame {
	uint32_t name, file; /* strings */
	int64_t line, column;
};

enum { STACKS_BUFFERS = 6 };

struct stacks {
	struct profiles *p;
	const struct text_source *source;
	struct error *err;
	/* Memory of the decoder, freed at the end. It shares the tables' cap with all the rest. */
	struct bytes buffer[STACKS_BUFFERS];
	/* own */
	struct memo memo;
	struct bytes nodes, groups;
	struct view document;
	size_t budget, scratch;
};

/* Runs `read` on the document and makes samples of the result. `format` is the first word of all
 * error messages. */
bool stacks_decode(struct profiles *p, struct view document, const struct text_source *source,
		   const char *format, bool (*read)(struct stacks *s), struct error *err);

bool stacks_too_large(struct stacks *s);

/* The root of a group; equal groups (compared byte by byte, so `start` and `tags` may keep them
 * apart) have one. Groups are numbered in the order in which they are created. */
bool stacks_root(struct stacks *s, struct stacks_group group, uint32_t *node);
uint32_t stacks_groups(const struct stacks *s);
/* What the decoder may still change; valid until the next stacks_root. */
struct stacks_group *stacks_group(const struct stacks *s, uint32_t number);

/* The string of these bytes, which lie in the document or are copied. */
bool stacks_string(struct stacks *s, struct view text, uint32_t *string);

/* The location of a frame; 0 for a frame without a name. */
bool stacks_location(struct stacks *s, struct stacks_frame frame, uint32_t *location);

/* Goes on to the callee at this location; stays at the node if that is 0. */
bool stacks_push(struct stacks *s, uint32_t *node, uint32_t location);

/* The two together, for a format whose frames are only names. */
bool stacks_push_name(struct stacks *s, uint32_t *node, struct view name);

/* Adds to the number of a stack. */
bool stacks_count(struct stacks *s, uint32_t node, uint64_t number);

#endif
