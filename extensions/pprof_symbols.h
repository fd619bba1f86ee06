/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXTENSIONS_PPROF_SYMBOLS_H
#define EXTENSIONS_PPROF_SYMBOLS_H

#include <stddef.h>

#include "extensions/pprof_sampler.h"

/*
 * What this process is made of, by elfutils' libdwfl: stacks from snapshots (by .eh_frame, which
 * every library has), and names of addresses. One thread. All texts belong to the symbols.
 */
struct symbols;

struct symbols *symbols_new(struct error *err);
void symbols_unref(struct symbols **symbols);

/*
 * The stack, innermost first: addresses inside the instruction that runs, then of each call. It
 * ends where the caller cannot be told: what would come next lies in no file.
 */
size_t symbols_unwind(struct symbols *symbols, const struct snapshot *snapshot, uint64_t *pcs,
		      size_t max);

struct symbol_module {
	uint64_t start, end;
	const char *path;  /* may be "" */
	char build_id[80]; /* hex; "" if it has none */
	bool has_debug;    /* files, lines and inlined functions are known */
};

struct symbol_line {
	const char *function, *file; /* never NULL; file may be "" */
	int line;                    /* 0: unknown */
};

/* False: the address belongs to no file. */
bool symbols_module(struct symbols *symbols, uint64_t pc, struct symbol_module *out);
/* The function of an address, and those into which it was inlined behind it. 0: it has no name. */
size_t symbols_lines(struct symbols *symbols, uint64_t pc, struct symbol_line *out, size_t max);

#endif
