/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_STORAGE_DATABASE_H
#define PIPELINE_STORAGE_DATABASE_H

#include "base/bytes.h"
#include "base/error.h"

/*
 * One LMDB environment: the only code that includes lmdb.h. Tables map numbers to records, in the
 * order of the numbers; one more table maps names to records (`database_set`).
 *
 * LMDB trusts its file, and maps it. A page that is damaged or that the disk cannot return makes it
 * fail an assertion or access memory that is not there. Every call is therefore guarded: such a
 * fault (SIGSEGV or SIGBUS on the calling thread) ends the call with DATABASE_BROKEN. From then on
 * every call returns that, and the environment's memory is never touched again nor freed.
 *
 * A single thread writes: database_begin, any number of changes, then database_commit, which
 * returns when the changes are on disk (with `sync`), or database_abort. After a failed change,
 * only database_abort is allowed. Any thread may read at any time.
 */
struct database;

enum database_result {
	DATABASE_OK,
	DATABASE_NONE,   /* there is no such record */
	DATABASE_FULL,   /* max_bytes reached */
	DATABASE_DISK,   /* the disk is full, read-only, or fails; the text of err says which */
	DATABASE_REOPEN, /* the file may be sound, but must be opened again after an error */
	DATABASE_BROKEN  /* damaged, or no database of ours */
};

struct database_options {
	const char *path;   /* of the file; "-lock" is appended for LMDB's table of readers */
	uint64_t max_bytes; /* of the file */
	bool sync;          /* a commit waits for the disk */
};

/* Opens or creates it, with mode 0600. The directory belongs to this process alone. */
enum database_result database_open(struct database **database,
				   const struct database_options *options, struct error *err);
/* The caller knows that no other thread uses it. */
void database_close(struct database **database);

/* Opens or creates a table, in a transaction of its own: not between begin and commit of the same
 * thread. At most DATABASE_TABLES. */
enum { DATABASE_TABLES = 250, DATABASE_NAME_MAX = 511 /* bytes */ };
enum database_result database_table(struct database *database, const char *name, unsigned *table,
				    struct error *err);

enum database_result database_begin(struct database *database, struct error *err);
/* Room for a record, which the caller fills before the next call. The number must be larger than
 * all numbers in the table. */
enum database_result database_append(struct database *database, unsigned table, uint64_t number,
				     size_t size, uint8_t **room, struct error *err);
enum database_result database_remove(struct database *database, unsigned table, uint64_t number,
				     struct error *err);
/* Moves a record (its first `max` bytes) to the end of another table, after a line with the reason.
 */
enum database_result database_move(struct database *database, unsigned table, uint64_t number,
				   unsigned to, const char *reason, size_t max, struct error *err);
/* Removes the first record. */
enum database_result database_shift(struct database *database, unsigned table, struct error *err);
enum database_result database_set(struct database *database, const char *name, struct view value,
				  struct error *err);
enum database_result database_commit(struct database *database, struct error *err);
void database_abort(struct database *database);

/* Appends the value of a name to `out`. */
enum database_result database_get(struct database *database, const char *name, struct bytes *out,
				  struct error *err);
/* The number of records, and the largest number (0: none). Costs the same for any table. */
enum database_result database_extent(struct database *database, unsigned table, uint64_t *records,
				     uint64_t *last, struct error *err);

/*
 * Calls `use` with the first record whose number is at least `from` (database_read), or with the
 * last one whose number is at most `upto` (database_read_back). The bytes are those of the
 * file's map: valid only until `use` returns, and possibly damaged. A fault may end `use` at any
 * access to them, so it must hold no lock, and memory that it has allocated must be reachable from
 * `context`.
 */
typedef void database_use(void *context, uint64_t number, struct view record);
enum database_result database_read(struct database *database, unsigned table, uint64_t from,
				   database_use *use, void *context, struct error *err);
enum database_result database_read_back(struct database *database, unsigned table, uint64_t upto,
					database_use *use, void *context, struct error *err);

#endif
