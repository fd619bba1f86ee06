/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXTENSIONS_PPROF_SYMBOLS_H
#define EXTENSIONS_PPROF_SYMBOLS_H

#include <stddef.h>

#include "extensions/pprof_sampler.h"

/*
 * The symbols of this process, from elfutils' libdwfl: stacks from snapshots (by .eh_frame, which
 * every library has), and names of addresses. One thread. The symbols own all strings.
 */
struct symbols;

struct symbols *symbols_new(struct error *err);
void symbols_unref(struct symbols **symbols);

/*
 * The stack, innermost first: the address of the running instruction, then an address inside each
 * call instruction. It ends where the caller cannot be determined because the next address lies in
 * no file.
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
/* The function of an address, followed by the functions that it was inlined into. 0: it has no
 * name. */
size_t symbols_lines(struct symbols *symbols, uint64_t pc, struct symbol_line *out, size_t max);

#endif
