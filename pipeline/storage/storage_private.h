/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_STORAGE_STORAGE_PRIVATE_H
#define PIPELINE_STORAGE_STORAGE_PRIVATE_H

#include "pipeline/storage/database.h"
#include "pipeline/storage/storage.h"
#include "pipeline/storage/totals.h"

/* Inside a storage: storage.c has the storages and their queues, directory.c the files, writer.c
 * the thread that writes. */
struct storage_counters {
	struct metric_series *used, *limit, *available, *commits, *quarantined, *set_aside;
	struct metric_series *failures;
};

struct storages {
	struct metrics *metrics;
	struct left *left; /* loop thread */
	_Atomic int64_t left_samples;
	pthread_mutex_t lock; /* the list changes under it, on the loop thread */
	struct storage *first;
};

struct storage_queue {
	struct storage *storage;
	struct storage_queue *next;
	char *name;
	struct storage_owner owner;
	/* Of storage.db. Not attached: `table` is not one of it, and nothing is written or read.
	 * These and `known` change under `owners` and `lock`. */
	bool attached;
	unsigned table;
	uint64_t known;                   /* storage.made of what the owner knows; 0: nothing */
	uint64_t last;                    /* the largest sequence number given out */
	int64_t records;                  /* in the table; writer */
	int64_t more_records;             /* in the commit under way; writer */
	bool touched;                     /* by the commit under way; writer */
	struct storage_account *accounts; /* `committed` and `change`: writer */
	uint32_t outstanding;             /* entries that the writer has to see */
	uint32_t readers;
	bool ending;
};

struct storage {
	struct storages *all;
	struct storage *next;
	uint32_t refs; /* loop thread */
	char *id, *path;
	struct storage_options options;
	struct log log;
	struct storage_counters count;
	int directory, lock_file; /* -1: not open */
	pthread_t thread;
	_Atomic bool running;
	_Atomic bool set_aside; /* a database, since the start */

	/* Held while owners are called and while queues open and close. Before `lock`. */
	pthread_mutex_t owners;
	struct storage_queue *queues;
	uint64_t made; /* 1, and one more for each new database */

	/* Guards all of this, and the state of entries. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct database *db; /* NULL: not open now; closed under `owners` */
	uint32_t readers;    /* threads that use db */
	bool broken;         /* who read, or opened a queue, found it damaged */
	struct storage_entry *first, **last;
	bool ended;
	bool hurry; /* the next attempt is due now */

	int64_t pending;      /* bytes of records that wait to be stored */
	_Atomic int64_t used; /* and of those that are; changes under the lock */
	_Atomic bool failing;
	_Atomic bool incomplete; /* a queue that was opened could not be attached */
	_Atomic bool full;       /* a record did not fit */
	/* writer */
	unsigned quarantine;
	uint64_t quarantined;
};

/* ---- directory.c */

/* Opens and locks the directory. False: ERROR_BUSY if the disk does not allow it, else
 * ERROR_CONFIG. Waits for another process only before the writer runs. */
bool directory_open(struct storage *storage, struct error *err);
void directory_close(struct storage *storage);
/* Opens the database, or sets it aside and begins a new one. NULL: the disk does not allow it. */
struct database *directory_database(struct storage *storage, struct error *err);
/* The database is damaged, for this reason. */
void directory_set_aside(struct storage *storage, const char *reason);

/* ---- storage.c */

/* Gets the table, totals and last number of a queue in s->db, and reports what the owner does not
 * know. Held: owners. */
enum database_result queue_attach(struct storage_queue *queue, struct error *err);
/* Adds up what the accounts of all queues have stored. Held: owners and lock. */
void storage_count_stored(struct storage *storage);
/* More bytes wait to be stored, or fewer. Held: lock. */
void storage_count_pending(struct storage *storage, int64_t bytes);

/* ---- left.c */

/* Gives a queue that is being opened the accounts of its predecessor. [loop thread] */
void left_take(struct storage_queue *queue);
/* Takes the accounts of a queue that is being closed, if its owner has left something. [loop
 * thread] */
void left_add(struct storage_queue *queue);
void left_free(struct left **list);

/* ---- writer.c */

/* Opens the database and attaches the queues. Loop thread before the writer runs, then writer. */
bool writer_attach(struct storage *storage, struct error *err);
void *writer_run(void *storage);

#endif
