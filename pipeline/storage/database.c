/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/storage/database.h"

#include "base/memory.h"
#include "pipeline/storage/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lmdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	READERS = 512,
	MODE = 0600,
	PAGE = 4096,
	/* Bytes of the map: what a commit uses beside its records, about; what may stay mapped. */
	COMMIT_BYTES = 512 << 10,
	MAPPED_MAX = 16 << 20,
	/* What is read with a record, and of a size that may be damaged. */
	AHEAD = 256 << 10,
	AHEAD_MAX = 16 << 20,
	/* of ours, beside the numbers of LMDB and of errno */
	FAULT = -1
};
#define NAMES "names"

struct database {
	MDB_env *env;
	void *map; /* of the file; NULL: not known */
	size_t map_size;
	_Atomic size_t mapped; /* about how much of it */
	MDB_dbi names;
	MDB_txn *txn; /* of the writer */
	_Atomic bool broken;
	struct database *next; /* abandoned */
};

/* The damaged ones: nothing of their memory may be used, not even to free it. */
static struct database *_Atomic abandoned;

/* One guarded call: what it needs, and LMDB's result. */
struct call {
	struct database *db;
	const struct database_options *options;
	MDB_txn *txn;
	MDB_dbi table, to;
	MDB_val key, value;
	uint64_t number;
	const char *name;
	size_t max;
	struct bytes *out;
	database_use *use;
	void *context;
	bool back;
	MDB_stat stat;
	int code;
};

static void failed_assertion(MDB_env *env, const char *text)
{
	(void)env;
	(void)text;
	guard_fail();
}

static enum database_result result_of(int code)
{
	switch (code) {
	case MDB_SUCCESS:
		return DATABASE_OK;
	case MDB_NOTFOUND:
		return DATABASE_NONE;
	case MDB_MAP_FULL:
	case MDB_TXN_FULL:
		return DATABASE_FULL;
	case MDB_PANIC:
	case MDB_MAP_RESIZED:
	case MDB_READERS_FULL:
	case MDB_DBS_FULL: /* with tables of queues that were closed since */
		return DATABASE_REOPEN;
	case EINVAL:
		return DATABASE_BROKEN;
	default:
		return code > 0 ? DATABASE_DISK : DATABASE_BROKEN;
	}
}

/* Runs one call under the guard. */
static enum database_result run(struct call *call, void (*function)(void *call), struct error *err)
{
	call->code = FAULT;
	if (!call->db->broken && !guard_run(function, call))
		call->code = FAULT;
	enum database_result result = result_of(call->code);
	if (call->code == FAULT)
		error_set(err, ERROR_CONFIG, "the database is damaged, or the disk cannot read it");
	else if (result > DATABASE_NONE)
		error_set(err, ERROR_CONFIG, "%s", mdb_strerror(call->code));
	call->db->broken = call->db->broken || result == DATABASE_BROKEN;
	return result;
}

/*
 * Pages of the file that were used are mapped, and count as resident memory of the process until
 * they are unmapped. They stay in the page cache. Each page fault maps the pages around it too, so
 * nobody knows which ones are mapped: all are unmapped when enough were used.
 */
static void count_mapped(struct database *db, size_t bytes)
{
	if (atomic_fetch_add(&db->mapped, bytes) + bytes < MAPPED_MAX || !db->map)
		return;
	db->mapped = 0;
	madvise(db->map, db->map_size, MADV_DONTNEED);
}

/* LMDB's API does not return the address of its map. */
static void find_map(struct database *db)
{
	struct stat file;
	MDB_envinfo info;
	int fd;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return;
	if (mdb_env_get_fd(db->env, &fd) || fstat(fd, &file) || mdb_env_info(db->env, &info))
		file.st_ino = 0;
	while (file.st_ino && fgets(line, sizeof line, maps)) {
		uintptr_t first, end;
		uint64_t inode;
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %" SCNu64, &first, &end,
			   &inode) == 3 &&
		    inode == file.st_ino && end - first >= info.me_mapsize) {
			db->map = (void *)first;
			db->map_size = end - first;
		}
	}
	fclose(maps);
}

static void do_open(void *argument)
{
	struct call *c = argument;
	unsigned flags =
		MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD | (c->options->sync ? 0 : MDB_NOSYNC);
	c->code = mdb_env_create(&c->db->env);
	if (c->code)
		return;
	mdb_env_set_assert(c->db->env, failed_assertion);
	mdb_env_set_maxdbs(c->db->env, DATABASE_TABLES + 4);
	mdb_env_set_maxreaders(c->db->env, READERS);
	mdb_env_set_mapsize(c->db->env, c->options->max_bytes);
	c->code = mdb_env_open(c->db->env, c->options->path, flags, MODE);
	if (!c->code)
		find_map(c->db);
}

static void do_table(void *argument)
{
	struct call *c = argument;
	MDB_txn *txn;
	c->code = mdb_txn_begin(c->db->env, NULL, 0, &txn);
	if (c->code)
		return;
	c->code = mdb_dbi_open(txn, c->name, (unsigned)c->max, &c->table);
	if (c->code)
		mdb_txn_abort(txn);
	else
		c->code = mdb_txn_commit(txn);
}

static enum database_result open_table(struct database *db, const char *name, unsigned flags,
				       MDB_dbi *table, struct error *err)
{
	struct call c = { .db = db, .name = name, .max = MDB_CREATE | flags };
	enum database_result result = run(&c, do_table, err);
	*table = c.table;
	/* Of another kind than ours: a foreign database. */
	if (c.code == MDB_INCOMPATIBLE || c.code == MDB_NOTFOUND)
		result = DATABASE_BROKEN;
	return result;
}

enum database_result database_open(struct database **database,
				   const struct database_options *options, struct error *err)
{
	struct database *db = memory_new(sizeof *db);
	guard_prepare();
	struct call c = { .db = db, .options = options };
	enum database_result result = run(&c, do_open, err);
	if (result == DATABASE_OK)
		result = open_table(db, NAMES, 0, &db->names, err);
	if (result == DATABASE_OK)
		*database = db;
	else
		database_close(&db);
	return result;
}

void database_close(struct database **database)
{
	struct database *db = *database;
	*database = NULL;
	if (!db)
		return;
	if (db->broken) {
		db->next = atomic_exchange(&abandoned, db);
		return;
	}
	if (db->txn)
		mdb_txn_abort(db->txn);
	if (db->env)
		mdb_env_close(db->env);
	memory_free(db);
}

enum database_result database_table(struct database *db, const char *name, unsigned *table,
				    struct error *err)
{
	return open_table(db, name, MDB_INTEGERKEY, table, err);
}

static void do_begin(void *argument)
{
	struct call *c = argument;
	c->code = mdb_txn_begin(c->db->env, NULL, 0, &c->db->txn);
}

enum database_result database_begin(struct database *db, struct error *err)
{
	struct call c = { .db = db };
	return run(&c, do_begin, err);
}

static MDB_val key_of(struct call *c)
{
	return (MDB_val){ sizeof c->number, &c->number };
}

static void do_append(void *argument)
{
	struct call *c = argument;
	MDB_val key = key_of(c);
	c->code = mdb_put(c->db->txn, c->table, &key, &c->value, MDB_APPEND | MDB_RESERVE);
	/* The table ends with a number that cannot be there. */
	if (c->code == MDB_KEYEXIST)
		c->code = MDB_CORRUPTED;
}

enum database_result database_append(struct database *db, unsigned table, uint64_t number,
				     size_t size, uint8_t **room, struct error *err)
{
	struct call c = { .db = db, .table = table, .number = number, .value = { size, NULL } };
	enum database_result result = run(&c, do_append, err);
	*room = c.value.mv_data;
	return result;
}

static void do_remove(void *argument)
{
	struct call *c = argument;
	MDB_cursor *cursor;
	MDB_val key = key_of(c);
	c->code = mdb_cursor_open(c->db->txn, c->table, &cursor);
	if (c->code)
		return;
	c->code = mdb_cursor_get(cursor, &key, &c->value, MDB_SET);
	if (!c->code)
		c->code = mdb_cursor_del(cursor, 0);
	mdb_cursor_close(cursor);
}

enum database_result database_remove(struct database *db, unsigned table, uint64_t number,
				     struct error *err)
{
	struct call c = { .db = db, .table = table, .number = number };
	enum database_result result = run(&c, do_remove, err);
	if (result == DATABASE_OK)
		count_mapped(db, c.value.mv_size + PAGE);
	return result;
}

/* Keys are aligned to two bytes. */
static uint64_t number_of(const MDB_val *key)
{
	uint64_t number = 0;
	memcpy(&number, key->mv_data, sizeof number);
	return number;
}

/* The number after the last one of c->to. */
static int next_number(struct call *c, uint64_t *next)
{
	MDB_cursor *cursor;
	MDB_val key, value;
	*next = 1;
	int code = mdb_cursor_open(c->db->txn, c->to, &cursor);
	if (code)
		return code;
	code = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
	if (!code)
		*next = number_of(&key) + 1;
	mdb_cursor_close(cursor);
	return code == MDB_NOTFOUND ? 0 : code;
}

static void do_move(void *argument)
{
	struct call *c = argument;
	MDB_val key = key_of(c), record;
	uint64_t number;
	c->code = mdb_get(c->db->txn, c->table, &key, &record);
	if (!c->code)
		c->code = next_number(c, &number);
	if (c->code)
		return;
	size_t size = record.mv_size < c->max ? record.mv_size : c->max, line = strlen(c->name);
	MDB_val next = { sizeof number, &number }, copy = { line + 1 + size, NULL };
	c->code = mdb_put(c->db->txn, c->to, &next, &copy, MDB_APPEND | MDB_RESERVE);
	if (c->code)
		return;
	memcpy(copy.mv_data, c->name, line);
	((char *)copy.mv_data)[line] = '\n';
	/* The record may have moved within its page. */
	c->code = mdb_get(c->db->txn, c->table, &key, &record);
	if (c->code)
		return;
	memcpy((char *)copy.mv_data + line + 1, record.mv_data, size);
	c->code = mdb_del(c->db->txn, c->table, &key, NULL);
}

enum database_result database_move(struct database *db, unsigned table, uint64_t number,
				   unsigned to, const char *reason, size_t max, struct error *err)
{
	struct call c = {
		.db = db, .table = table, .to = to, .number = number, .name = reason, .max = max
	};
	return run(&c, do_move, err);
}

static void do_shift(void *argument)
{
	struct call *c = argument;
	MDB_cursor *cursor;
	MDB_val key, value;
	c->code = mdb_cursor_open(c->db->txn, c->table, &cursor);
	if (c->code)
		return;
	c->code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
	if (!c->code)
		c->code = mdb_cursor_del(cursor, 0);
	mdb_cursor_close(cursor);
}

enum database_result database_shift(struct database *db, unsigned table, struct error *err)
{
	struct call c = { .db = db, .table = table };
	return run(&c, do_shift, err);
}

static void do_set(void *argument)
{
	struct call *c = argument;
	c->code = mdb_put(c->db->txn, c->db->names, &c->key, &c->value, 0);
}

static MDB_val name_of(const char *name)
{
	return (MDB_val){ strlen(name), (void *)name };
}

enum database_result database_set(struct database *db, const char *name, struct view value,
				  struct error *err)
{
	struct call c = { .db = db,
			  .key = name_of(name),
			  .value = { value.len, (void *)value.at } };
	return run(&c, do_set, err);
}

static void do_commit(void *argument)
{
	struct call *c = argument;
	MDB_txn *txn = c->db->txn;
	c->db->txn = NULL;
	c->code = mdb_txn_commit(txn);
}

enum database_result database_commit(struct database *db, struct error *err)
{
	struct call c = { .db = db };
	count_mapped(db, COMMIT_BYTES);
	return run(&c, do_commit, err);
}

static void do_abort(void *argument)
{
	struct call *c = argument;
	MDB_txn *txn = c->db->txn;
	c->db->txn = NULL;
	c->code = 0;
	if (txn)
		mdb_txn_abort(txn);
}

void database_abort(struct database *db)
{
	struct call c = { .db = db };
	run(&c, do_abort, NULL);
}

/* Within a transaction that reads. */
static void reading(struct call *c, void (*read)(struct call *c))
{
	c->code = mdb_txn_begin(c->db->env, NULL, MDB_RDONLY, &c->txn);
	if (c->code)
		return;
	read(c);
	mdb_txn_abort(c->txn);
}

static void get_value(struct call *c)
{
	MDB_val value;
	c->code = mdb_get(c->txn, c->db->names, &c->key, &value);
	if (!c->code && !bytes_add(c->out, value.mv_data, value.mv_size))
		c->code = MDB_CORRUPTED;
}

static void do_get(void *argument)
{
	reading(argument, get_value);
}

enum database_result database_get(struct database *db, const char *name, struct bytes *out,
				  struct error *err)
{
	struct call c = { .db = db, .key = name_of(name), .out = out };
	return run(&c, do_get, err);
}

static void get_extent(struct call *c)
{
	MDB_cursor *cursor;
	MDB_val key, value;
	c->code = mdb_stat(c->txn, c->table, &c->stat);
	if (c->code || !c->stat.ms_entries)
		return;
	c->code = mdb_cursor_open(c->txn, c->table, &cursor);
	if (c->code)
		return;
	c->code = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
	if (!c->code)
		c->number = number_of(&key);
	else if (c->code == MDB_NOTFOUND)
		c->code = MDB_CORRUPTED;
	mdb_cursor_close(cursor);
}

static void do_extent(void *argument)
{
	reading(argument, get_extent);
}

enum database_result database_extent(struct database *db, unsigned table, uint64_t *records,
				     uint64_t *last, struct error *err)
{
	struct call c = { .db = db, .table = table };
	enum database_result result = run(&c, do_extent, err);
	*records = c.stat.ms_entries;
	*last = c.number;
	return result;
}

/* To the record at or after the number; `back`: at or before it. */
static int seek(struct call *c, MDB_cursor *cursor, MDB_val *key, MDB_val *value)
{
	*key = key_of(c);
	int code = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
	if (c->back && code == MDB_NOTFOUND)
		return mdb_cursor_get(cursor, key, value, MDB_LAST);
	if (c->back && !code && number_of(key) > c->number)
		return mdb_cursor_get(cursor, key, value, MDB_PREV);
	return code;
}

/* The map is for access in any order (MDB_NORDAHEAD): a page fault reads one page. Records are read
 * in the order in which they were written, and mostly lie in it. */
static void read_ahead(const struct database *db, const MDB_val *value)
{
	uintptr_t first = (uintptr_t)value->mv_data & ~(uintptr_t)(PAGE - 1);
	uintptr_t map = (uintptr_t)db->map, end = map + db->map_size;
	size_t len = value->mv_size > AHEAD ? value->mv_size + PAGE : AHEAD;
	if (first < map || first >= end)
		return;
	len = len < AHEAD_MAX ? len : AHEAD_MAX;
	madvise((void *)first, len < end - first ? len : end - first, MADV_WILLNEED);
}

static void read_one(struct call *c)
{
	MDB_cursor *cursor;
	MDB_val key;
	c->code = mdb_cursor_open(c->txn, c->table, &cursor);
	if (c->code)
		return;
	c->code = seek(c, cursor, &key, &c->value);
	if (!c->code) {
		read_ahead(c->db, &c->value);
		c->use(c->context, number_of(&key),
		       (struct view){ c->value.mv_data, c->value.mv_size });
	}
	mdb_cursor_close(cursor);
}

static void do_read(void *argument)
{
	reading(argument, read_one);
}

static enum database_result read_record(struct call *c, struct error *err)
{
	enum database_result result = run(c, do_read, err);
	if (result == DATABASE_OK)
		count_mapped(c->db, c->value.mv_size + PAGE);
	return result;
}

enum database_result database_read(struct database *db, unsigned table, uint64_t from,
				   database_use *use, void *context, struct error *err)
{
	struct call c = {
		.db = db, .table = table, .number = from, .use = use, .context = context
	};
	return read_record(&c, err);
}

enum database_result database_read_back(struct database *db, unsigned table, uint64_t upto,
					database_use *use, void *context, struct error *err)
{
	struct call c = { .db = db,
			  .table = table,
			  .number = upto,
			  .use = use,
			  .context = context,
			  .back = true };
	return read_record(&c, err);
}
