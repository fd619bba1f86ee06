/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_STORAGE_STORAGE_H
#define PIPELINE_STORAGE_STORAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"

/*
 * Queues on disk: one database in a directory of its own, which one process uses at a time. A queue
 * belongs to an exporter ID and is first in, first out by sequence numbers.
 *
 * One thread per storage writes. All changes that arrive while a commit is under way go into the
 * next one (group commit), so the number of commits does not grow with the number of senders. With
 * `sync`, a commit ends when the disk has it. A process that is killed loses nothing that was
 * committed, with or without `sync`; only a machine that fails needs it.
 *
 * Beside the records, each commit updates one small record per queue with the totals of its
 * accounts (one for each pipeline and tenant). Opening a queue therefore costs the same for any
 * backlog.
 *
 * A database that is damaged, foreign, or of a newer format is renamed (set aside) and a new one
 * begun; the log and a metric say so. This can also happen while it is used.
 *
 * While the disk fails or is full, no append is accepted (storage_takes). The writer tries again
 * once per second, and logs when it works again.
 */
struct storages;
struct storage;
struct storage_queue;

/* What the queues do with data that cannot be stored. */
enum storage_on_error {
	STORAGE_REFUSE, /* senders have to retry */
	STORAGE_MEMORY  /* the queue continues in memory */
};

struct storage_options {
	const char *id;        /* of the extension */
	const char *directory; /* an absolute or relative path; copied, as are all strings */
	bool create_directory;
	unsigned directory_mode;
	uint64_t lock_timeout_ns; /* how long to wait for another process to end */
	bool sync;
	uint64_t max_bytes; /* of the records */
	enum storage_on_error on_error;
};

/* The storages of the process, by directory. [loop thread] */
struct storages *storages_new(struct metrics *metrics);
void storages_unref(struct storages **storages); /* none is left */

/* The worst that is true of a storage. */
enum storage_condition {
	STORAGE_HEALTHY,
	STORAGE_SET_ASIDE, /* since the start, a database was set aside */
	STORAGE_FULL,      /* max_bytes is reached */
	STORAGE_FAILING    /* the last write failed: the disk is full, read-only or fails */
};
/* Calls for each storage that is open. `report` must not come back to the storages. [any thread] */
void storages_each(struct storages *storages,
		   void (*report)(void *context, const char *id, enum storage_condition condition,
				  enum storage_on_error on_error),
		   void *context);

/* A reference to the storage of this directory. A new one opens nothing; an existing one keeps its
 * options. [loop thread] */
struct storage *storages_get(struct storages *storages, const struct storage_options *options);
struct storage *storage_ref(struct storage *storage);
/* The last one writes what is pending, and closes. [loop thread] */
void storage_unref(struct storage **storage);

/* Opens the directory and the database; nothing if that was done before. False: another process
 * uses it, it does not exist, or (STORAGE_REFUSE) it cannot be written. [loop thread] */
bool storage_open(struct storage *storage, struct error *err);
enum storage_on_error storage_on_error(const struct storage *storage);
/* Would an append be accepted now? [any thread] */
bool storage_takes(const struct storage *storage);

/* ---- a queue */

/* Totals of the records of one pipeline and tenant. */
struct storage_totals {
	int64_t records, samples, bytes; /* bytes: of packets */
	int64_t space;                   /* on disk */
};

/* Belongs to its queue. */
struct storage_account {
	struct storage_account *next;
	char *name;
	struct storage_totals committed, change; /* change: in the commit under way */
	int64_t left;                            /* storage_queue_leave */
};

enum storage_state {
	STORAGE_NEW,
	STORAGE_WAITING,  /* for the next commit */
	STORAGE_WRITING,  /* the commit is under way */
	STORAGE_STORED,   /* or was read */
	STORAGE_FAILED,   /* it was not stored */
	STORAGE_REMOVING, /* waits to be removed, or is being removed */
	STORAGE_CANCELLED /* removed before it was written */
};

/*
 * A record of a queue. The caller allocates it. From storage_append (or storage_adopt) on the
 * storage uses it, until `release`. Both callbacks run without locks; `done` on the writer's
 * thread, `release` there or on the thread that removes.
 */
struct storage_entry {
	struct storage_entry *next;
	struct storage_queue *queue;
	struct storage_account *account;
	enum storage_state state; /* under the storage's lock */
	bool unwanted;
	uint64_t sequence;
	struct view head, body; /* what is written, until `done` or `release` */
	uint64_t samples, bytes;
	int64_t space;
	const char *quarantine; /* why it is moved to quarantine when it is removed; NULL: it is not
				 */
	/* The commit with it ended. Not called for an entry that was removed before. */
	void (*done)(struct storage_entry *entry, bool stored);
	void (*release)(struct storage_entry *entry);
};

/* What the owner of a queue learns. */
struct storage_owner {
	void *context;
	/* The queue has a database, with records that the owner has no entries of. Called once, by
	 * storage_queue_open or, if the disk did not allow it then, later from the writer's thread;
	 * and again from there after the database was replaced. All records of before are gone
	 * then. Not called when the same database was opened again. */
	void (*attached)(void *context, struct storage_queue *queue, uint64_t records);
	/* Appends are accepted again, or not any more; records can be read again; or the queue is
	 * settled after storage_queue_end. Writer's thread. */
	void (*changed)(void *context);
};

/* The queue of this name, which must not be open. NULL: it is, its name is too long, or there are
 * too many queues. While the disk does not allow to create it, it is open, but nothing is appended
 * or read. [loop thread] */
struct storage_queue *storage_queue_open(struct storage *storage, const char *name,
					 const struct storage_owner *owner, struct error *err);
/* No entry is waiting, being written or being removed, and none will be: a removal that fails is
 * given up from now on. [any thread] */
bool storage_queue_settled(struct storage_queue *queue);
/* It is settled, and no thread reads. [loop thread] */
void storage_queue_close(struct storage_queue **queue);
/* Removals that fail are given up from now on: the records are delivered again after a restart. */
void storage_queue_end(struct storage_queue *queue);

/* Finds or creates it. [any thread] */
struct storage_account *storage_queue_account(struct storage_queue *queue, const char *name);
/* The accounts as they were at `attached`, from there only. */
struct storage_account *storage_queue_accounts(const struct storage_queue *queue);

/* Samples that the ledger counts as queued, and that an owner leaves to the next one of this
 * process before it closes the queue. [loop thread] That one takes them over in `attached`. */
void storage_queue_leave(struct storage_queue *queue, const char *account, int64_t samples);
int64_t storage_queue_take(struct storage *storage, struct storage_account *account);
/* The sum of what was left and not taken over. [any thread] */
int64_t storages_left(const struct storages *storages);

/* Takes a place in the queue; the entry has head, body, account, samples, bytes and callbacks.
 * False: not accepted, and the entry is still the caller's. [any thread] */
bool storage_append(struct storage_queue *queue, struct storage_entry *entry);
/* The entry stands for a record that was read. [any thread] */
void storage_adopt(struct storage_queue *queue, struct storage_entry *entry, size_t size);
/* Removes the record; `release` follows. [any thread] */
void storage_remove(struct storage_entry *entry);

/* The first record at or after a sequence number, or the last one at or before it
 * (pipeline/storage/database.h). */
enum storage_read { STORAGE_READ, STORAGE_NOTHING, STORAGE_UNREADABLE };
enum storage_read storage_read(struct storage_queue *queue, uint64_t from,
			       void (*use)(void *context, uint64_t sequence, struct view record),
			       void *context);
enum storage_read storage_read_back(struct storage_queue *queue, uint64_t upto,
				    void (*use)(void *context, uint64_t sequence,
						struct view record),
				    void *context);

extern const struct metric *const storage_metrics[]; /* for the manual; NULL-terminated */

#endif
