/* SPDX-License-Identifier: Apache-2.0 */
#include "extensions/pprof_symbols.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

#if defined(__x86_64__)
enum { REGISTERS = 17 };
#else
enum { REGISTERS = 32 };
#endif

struct symbols {
	Dwfl *dwfl;
	/* Of the current unwinding. */
	const struct snapshot *snapshot;
	uint64_t *pcs;
	size_t count, max;
};

/* By its build id: the program may have been replaced since it was started. */
static bool is_debug_of(Dwfl_Module *module, int fd)
{
	const void *id;
	const unsigned char *wanted;
	GElf_Addr where;
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	ssize_t len = elf ? dwelf_elf_gnu_build_id(elf, &id) : -1;
	bool same = len > 0 && len == dwfl_module_build_id(module, &wanted, &where) &&
		    memcmp(id, wanted, (size_t)len) == 0;
	elf_end(elf);
	return same;
}

/* The file that .gnu_debuglink names, in the directory of the module's own. None is looked for
 * elsewhere, least of all on a server: a library without has the names that it exports. libdwfl
 * closes the descriptor and frees the path. */
static int open_debug_file(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
			   const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)user, (void)name, (void)base, (void)crc;
	const char *slash = file && link ? strrchr(file, '/') : NULL;
	if (!slash)
		return -1;
	char *path = memory_format("%.*s/%s", (int)(slash - file), file, link);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && is_debug_of(module, fd)) {
		*found = path;
		return fd;
	}
	memory_free(path);
	if (fd >= 0)
		close(fd);
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = open_debug_file,
};

/* libdwfl takes what lies behind the last module for a part of it, and what follows one up to the
 * next page. */
static Dwfl_Module *module_at(const struct symbols *symbols, uint64_t pc)
{
	Dwarf_Addr start = 0, end = 0;
	Dwfl_Module *module = dwfl_addrmodule(symbols->dwfl, pc);
	if (module)
		dwfl_module_info(module, NULL, &start, &end, NULL, NULL, NULL, NULL);
	return start <= pc && pc < end ? module : NULL;
}

/* ---- unwinding: one thread, whose registers and memory are the snapshot's ---- */

static pid_t next_thread(Dwfl *dwfl, void *symbols, void **thread)
{
	(void)dwfl;
	bool first = !*thread;
	*thread = symbols;
	return first;
}

static bool get_thread(Dwfl *dwfl, pid_t id, void *symbols, void **thread)
{
	(void)dwfl;
	(void)id;
	*thread = symbols;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *word, void *argument)
{
	(void)dwfl;
	const struct snapshot *s = ((struct symbols *)argument)->snapshot;
	if (at < s->sp || at - s->sp > s->stack_len || s->stack_len - (at - s->sp) < sizeof *word)
		return false;
	memcpy(word, s->stack + (at - s->sp), sizeof *word);
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *argument)
{
	const struct snapshot *s = ((struct symbols *)argument)->snapshot;
	Dwarf_Word words[REGISTERS];
	for (int i = 0; i < REGISTERS; i++)
		words[i] = s->registers[i];
	dwfl_thread_state_register_pc(thread, s->pc);
	return dwfl_thread_state_registers(thread, 0, REGISTERS, words);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static int note_frame(Dwfl_Frame *frame, void *argument)
{
	struct symbols *symbols = argument;
	Dwarf_Addr pc;
	bool interrupted;
	if (!dwfl_frame_pc(frame, &pc, &interrupted) || !pc || symbols->count == symbols->max)
		return DWARF_CB_ABORT;
	/* A return address may already belong to the next function. */
	pc -= !interrupted;
	if (symbols->count && !module_at(symbols, pc))
		/* the caller cannot be determined: the value is not a return address */
		return DWARF_CB_ABORT;
	symbols->pcs[symbols->count++] = pc;
	return DWARF_CB_OK;
}

size_t symbols_unwind(struct symbols *symbols, const struct snapshot *snapshot, uint64_t *pcs,
		      size_t max)
{
	symbols->snapshot = snapshot;
	symbols->pcs = pcs;
	symbols->count = 0;
	symbols->max = max;
	dwfl_getthread_frames(symbols->dwfl, 1, note_frame, symbols);
	if (!symbols->count && max)
		pcs[symbols->count++] = snapshot->pc;
	return symbols->count;
}

/* ---- */

struct symbols *symbols_new(struct error *err)
{
	struct symbols *symbols = memory_new(sizeof *symbols);
	symbols->dwfl = dwfl_begin(&callbacks);
	bool ok = symbols->dwfl && dwfl_linux_proc_report(symbols->dwfl, getpid()) == 0 &&
		  dwfl_report_end(symbols->dwfl, NULL, NULL) == 0 &&
		  dwfl_attach_state(symbols->dwfl, NULL, getpid(), &thread_callbacks, symbols);
	if (ok)
		return symbols;
	error_set(err, ERROR_INTERNAL,
		  "cannot read the mappings of this process (/proc/self/maps)");
	symbols_unref(&symbols);
	return NULL;
}

void symbols_unref(struct symbols **slot)
{
	struct symbols *symbols = *slot;
	*slot = NULL;
	if (!symbols)
		return;
	dwfl_end(symbols->dwfl);
	memory_free(symbols);
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static void add_hex(char *out, size_t size, const unsigned char *bytes, int count)
{
	static const char digits[] = "0123456789abcdef";
	size_t at = 0;
	for (int i = 0; i < count && at + 2 < size; i++) {
		out[at++] = digits[bytes[i] >> 4];
		out[at++] = digits[bytes[i] & 15];
	}
	out[at] = '\0';
}

bool symbols_module(struct symbols *symbols, uint64_t pc, struct symbol_module *out)
{
	const unsigned char *id = NULL;
	GElf_Addr where;
	Dwarf_Addr start, end, bias;
	const char *file = NULL;
	Dwfl_Module *module = module_at(symbols, pc);
	if (!module)
		return false;
	const char *name = dwfl_module_info(module, NULL, &start, &end, NULL, NULL, &file, NULL);
	*out = (struct symbol_module){ .start = start,
				       .end = end,
				       .path = file ? file : or_empty(name),
				       .has_debug = dwfl_module_getdwarf(module, &bias) != NULL };
	int id_len = dwfl_module_build_id(module, &id, &where);
	add_hex(out->build_id, sizeof out->build_id, id, id_len);
	return true;
}

/* Where the inlined function was called. */
static void read_call(Dwarf_Die *inlined, Dwarf_Files *files, struct symbol_line *line)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;
	line->file = "";
	line->line = 0;
	if (files && dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &value) == 0)
		line->file = or_empty(dwarf_filesrc(files, value, NULL, NULL));
	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &value) == 0)
		line->line = (int)value;
}

/* From the innermost scope of the address outwards to its function. */
static size_t read_scopes(Dwarf_Die *unit, Dwarf_Die *scopes, int count, struct symbol_line *out,
			  size_t max)
{
	Dwarf_Files *files = NULL;
	size_t used = 0;
	dwarf_getsrcfiles(unit, &files, NULL);
	for (int i = 0; i < count && used < max; i++) {
		int tag = dwarf_tag(&scopes[i]);
		const char *name = dwarf_diename(&scopes[i]);
		if ((tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) || !name)
			continue;
		out[used++].function = name;
		if (tag == DW_TAG_subprogram)
			return used;
		if (used < max)
			read_call(&scopes[i], files, &out[used]);
	}
	return used;
}

static size_t read_debug_lines(Dwfl_Module *module, uint64_t pc, struct symbol_line *out,
			       size_t max)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = dwfl_module_addrdie(module, pc, &bias), *around, *scopes;
	if (!unit)
		return 0;
	Dwfl_Line *line = dwfl_module_getsrc(module, pc);
	out[0] = (struct symbol_line){ .file = "" };
	if (line)
		out[0].file = or_empty(dwfl_lineinfo(line, NULL, &out[0].line, NULL, NULL, NULL));
	if (dwarf_getscopes(unit, pc - bias, &around) <= 0)
		return 0;
	/* These lead outwards through the text of the innermost function; its own parents lead
	 * through the code. */
	int count = dwarf_getscopes_die(&around[0], &scopes);
	memory_free(around); /* malloc'ed by libdw */
	if (count <= 0)
		return 0;
	size_t used = read_scopes(unit, scopes, count, out, max);
	memory_free(scopes);
	return used;
}

size_t symbols_lines(struct symbols *symbols, uint64_t pc, struct symbol_line *out, size_t max)
{
	GElf_Off offset;
	GElf_Sym symbol;
	Dwfl_Module *module = module_at(symbols, pc);
	if (!module || !max)
		return 0;
	size_t used = read_debug_lines(module, pc, out, max);
	if (used)
		return used;
	const char *name = dwfl_module_addrinfo(module, pc, &offset, &symbol, NULL, NULL, NULL);
	out[0] = (struct symbol_line){ .function = name, .file = "" };
	return name != NULL;
}
