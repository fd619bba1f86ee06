/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_TEXT_TEXT_H
#define PROFILE_TEXT_TEXT_H

#include "profile/profiles.h"

/*
 * Formats that name the frames of a stack by strings and give it one number: those that Pyroscope's
 * /ingest takes beside pprof. They do not say what the number measures. The request does: by the
 * application's name, the sample rate and the times.
 *
 * Facts: github.com/grafana/pyroscope v2, pkg/og/convert (parser.go, profile, speedscope),
 * pkg/og/structs/transporttrie, pkg/og/storage/tree, pkg/ingester/pyroscope/ingest_adapter.go;
 * speedscope's file-format-spec.ts. Aggregation is not among them: Pyroscope ignores it here.
 */

/*
 * What an application counts, named by what follows the last dot of its name (ingest_adapter.go,
 * convertMetadata). Constant.
 */
struct text_kind {
	const char *suffix;
	const char *metric; /* the series' __name__ */
	const char *type, *unit;
	/* Samples of this clock ("cpu" or "wall"): with a sample rate the type is the clock in
	 * nanoseconds, each count is multiplied by 1e9 / rate, and that is the period, of type
	 * cpu/nanoseconds. NULL: the counts stay as they are, and there is no period. */
	const char *clock;
};

/* The kind of an application: `cpu` if its name has no dot. *service (may be NULL) is the name
 * without the suffix. NULL: the suffix is unknown; Pyroscope rejects such a request. */
const struct text_kind *text_kind_of(struct view application, struct view *service);

struct text_source {
	const struct text_kind *kind;
	uint32_t sample_rate; /* Hz; 0: unknown */
	uint64_t from, until; /* ns since the epoch; the time and, if later, the end; 0: unknown */
	/* Become resource attributes with string values; ends with name == NULL; may be NULL. Of
	 * several with one name the first counts. */
	const struct metadatum *attributes;
	/* The key of a resource attribute that holds the metric of the kind; NULL: none. */
	const char *metric_key;
};

/*
 * Each decodes a document (p->input or within it) into open tables, behind what they hold already:
 * one resource, scope and Profile for a document with samples; none, and success, for one without.
 * Equal stacks are one sample, with the sum of their numbers; a stack whose sum is 0 is none. A
 * frame becomes a location with one line and its function; one without a name is left out. Strings
 * that are not UTF-8 are repaired.
 *
 * Accepted or rejected whole: false with ERROR_INVALID and the line or the field named, or
 * ERROR_TOO_LARGE; the tables are then as they were before. Memory for decoding and the tables
 * together stay within the tables' cap. The time is linear in the bytes of the document and of the
 * tables.
 */
enum {
	TEXT_FRAMES_MAX = 4096,   /* of one stack */
	TEXT_FRAME_BYTES = 65535, /* of one frame's name; also of a file name */
	/* bytes of tables for each byte of the densest legitimate document (pipeline/inbound.h) */
	TEXT_TABLES_FACTOR = 96
};

/* `main;run;work 12` in each line: frames from the root, one space, a decimal number. Empty lines
 * are skipped. The formats `groups` and `folded`, the output of `py-spy record -f raw`,
 * stackcollapse-*.pl and async-profiler's `collapsed`. */
bool decode_folded(struct profiles *p, struct view document, const struct text_source *source,
		   struct error *err);

/* The same without the number: each line counts 1. */
bool decode_lines(struct profiles *p, struct view document, const struct text_source *source,
		  struct error *err);

/* Folded stacks, joined by common prefixes of their bytes: nodes in preorder, each as the varint
 * length of a string, the string, the varint number of the stack that ends there, and the varint
 * number of children. */
bool decode_trie(struct profiles *p, struct view document, const struct text_source *source,
		 struct error *err);

/* A call tree: nodes in the same form, each string a frame; the first node is the root and no
 * frame. */
bool decode_tree(struct profiles *p, struct view document, const struct text_source *source,
		 struct error *err);

/*
 * speedscope's JSON, `sampled` and `evented` profiles. Profiles of one name, type, unit and start
 * become one Profile, with the name as resource attribute `profile_name`. Files and lines of frames
 * are kept.
 *
 * Weights and times in a unit of time become nanoseconds, rounded. Their kind is source->kind if
 * that has a clock and the file holds one profile, else `wall`; so Pyroscope does. Bytes likewise
 * have source->kind if its unit is bytes and the file holds one profile, else `bytes`. Weights
 * without a unit are counts of source->kind.
 */
bool decode_speedscope(struct profiles *p, struct view document, const struct text_source *source,
		       struct error *err);

#endif
