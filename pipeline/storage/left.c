/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "pipeline/storage/storage_private.h"

/* What the ledger counts as queued in a queue that nobody has open (storage_account.left). */
struct left {
	struct left *next;
	char *path, *queue;
	struct storage_account *accounts;
};

static void remove_one(struct left **at)
{
	struct left *l = *at;
	*at = l->next;
	totals_free(&l->accounts);
	memory_free(l->path);
	memory_free(l->queue);
	memory_free(l);
}

void left_free(struct left **list)
{
	while (*list)
		remove_one(list);
}

void left_take(struct storage_queue *q)
{
	struct left **at = &q->storage->all->left;
	while (*at && (strcmp((*at)->path, q->storage->path) || strcmp((*at)->queue, q->name)))
		at = &(*at)->next;
	if (!*at)
		return;
	q->accounts = (*at)->accounts;
	(*at)->accounts = NULL;
	remove_one(at);
}

void left_add(struct storage_queue *q)
{
	struct storages *all = q->storage->all;
	bool any = false;
	for (const struct storage_account *a = q->accounts; a; a = a->next)
		any = any || a->left;
	if (!any)
		return;
	struct left *l = memory_new(sizeof *l);
	*l = (struct left){ all->left, memory_text(q->storage->path), memory_text(q->name),
			    q->accounts };
	q->accounts = NULL;
	all->left = l;
}

void storage_queue_leave(struct storage_queue *q, const char *account, int64_t samples)
{
	if (!samples)
		return;
	storage_queue_account(q, account)->left += samples;
	q->storage->all->left_samples += samples;
}

int64_t storage_queue_take(struct storage *s, struct storage_account *a)
{
	int64_t samples = a->left;
	a->left = 0;
	s->all->left_samples -= samples;
	return samples;
}

int64_t storages_left(const struct storages *all)
{
	return all->left_samples;
}
