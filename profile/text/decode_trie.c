/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/text/stacks.h"
#include "profile/wire.h"

/*
 * Trie and tree are both sequences of nodes in preorder, and differ in what the string of a node
 * is: in a tree a frame, in a trie the next bytes of `main;run;work`. A frame of a trie may thus
 * begin in one node and end in several.
 */
struct place {
	uint32_t children; /* that are still to come */
	uint32_t node;     /* of the call tree: after the last frame that is complete */
	uint32_t path;     /* trie: bytes of the path to here */
	uint32_t frame;    /* trie: where the frame that is not complete begins in the path */
};

struct walk {
	struct stacks *s;
	struct wire wire;
	struct bytes *places; /* struct place, from the root to the parent of the node */
	struct bytes *path;
	uint32_t ordinal; /* of the node; the root is 0 */
	size_t hashed;    /* bytes of frames that were looked up */
	bool (*enter)(struct walk *w, struct place *place, struct view string);
	bool (*count)(struct walk *w, const struct place *place, uint64_t number);
};

/* A tree: the root is no frame. */
static bool tree_enter(struct walk *w, struct place *place, struct view string)
{
	return !w->ordinal || stacks_push_name(w->s, &place->node, string);
}

static bool tree_count(struct walk *w, const struct place *place, uint64_t number)
{
	return stacks_count(w->s, place->node, number);
}

/* A frame of the path ends. Few bytes can make many nodes look up the same long frame, so these
 * look-ups are bounded. */
static bool take_frame(struct walk *w, uint32_t *node, size_t from, size_t to)
{
	w->hashed += to - from;
	if (w->hashed > TEXT_TABLES_FACTOR * w->s->document.len + TEXT_FRAME_BYTES)
		return error_set(w->s->err, ERROR_TOO_LARGE,
				 "the frames of all stacks together have more than %d times the "
				 "bytes of the profile",
				 TEXT_TABLES_FACTOR);
	return from == to ||
	       stacks_push_name(w->s, node, (struct view){ w->path->at + from, to - from });
}

static bool trie_enter(struct walk *w, struct place *place, struct view string)
{
	w->path->len = place->path;
	if (!bytes_add(w->path, string.at, string.len))
		return stacks_too_large(w->s);
	for (size_t i = place->path; i < w->path->len; i++) {
		if (w->path->at[i] != ';')
			continue;
		if (!take_frame(w, &place->node, place->frame, i))
			return false;
		place->frame = (uint32_t)i + 1;
	}
	place->path = (uint32_t)w->path->len;
	return true;
}

static bool trie_count(struct walk *w, const struct place *place, uint64_t number)
{
	uint32_t node = place->node;
	return take_frame(w, &node, place->frame, place->path) && stacks_count(w->s, node, number);
}

/* The numbers of a node; its string has been read. */
static bool read_numbers(struct walk *w, uint64_t *number, uint32_t *children)
{
	enum { NODE_BYTES = 3 }; /* at least */
	struct wire *wire = &w->wire;
	*number = wire_varint(wire);
	uint64_t count = wire_varint(wire);
	if (wire->at > wire->end)
		wire_fail(wire, WIRE_TRUNCATED);
	if (wire->fault)
		return error_set(w->s->err, ERROR_INVALID, "%s", wire_fault_text(wire->fault));
	if (count > (size_t)(wire->end - wire->at) / NODE_BYTES)
		return error_set(w->s->err, ERROR_INVALID, "has more children than bytes follow");
	*children = (uint32_t)count;
	return true;
}

static bool read_node(struct walk *w, struct place place)
{
	struct view string = wire_len(&w->wire);
	uint64_t number;
	if (!read_numbers(w, &number, &place.children) || !w->enter(w, &place, string) ||
	    (number && !w->count(w, &place, number)))
		return error_prefix(w->s->err, "node %u", w->ordinal);
	w->ordinal++;
	return !place.children || bytes_add(w->places, &place, sizeof place) ||
	       stacks_too_large(w->s);
}

static bool read_nodes(struct walk *w)
{
	struct place place = { 0 };
	if (!stacks_root(w->s, (struct stacks_group){ .kind = w->s->source->kind }, &place.node) ||
	    !read_node(w, place))
		return false;
	while (w->places->len) {
		struct place *parent =
			(struct place *)(w->places->at + w->places->len - sizeof *parent);
		place = *parent;
		parent->children--;
		if (!parent->children)
			w->places->len -= sizeof *parent;
		if (!read_node(w, place))
			return false;
	}
	return !wire_more(&w->wire) ||
	       error_set(w->s->err, ERROR_INVALID, "bytes follow the last node");
}

static struct walk walk_of(struct stacks *s)
{
	return (struct walk){
		.s = s, .wire = wire_of(s->document), .places = &s->buffer[0], .path = &s->buffer[1]
	};
}

static bool read_trie(struct stacks *s)
{
	struct walk w = walk_of(s);
	w.enter = trie_enter;
	w.count = trie_count;
	return read_nodes(&w);
}

static bool read_tree(struct stacks *s)
{
	struct walk w = walk_of(s);
	w.enter = tree_enter;
	w.count = tree_count;
	return read_nodes(&w);
}

bool decode_trie(struct profiles *p, struct view document, const struct text_source *source,
		 struct error *err)
{
	return stacks_decode(p, document, source, "trie", read_trie, err);
}

bool decode_tree(struct profiles *p, struct view document, const struct text_source *source,
		 struct error *err)
{
	return stacks_decode(p, document, source, "tree", read_tree, err);
}
