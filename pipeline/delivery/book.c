/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/book.h"

#include "base/memory.h"

#include <string.h>

/* Between pipeline and tenant; no tenant has it (pipeline/intake/tenant.h). */
#define SEPARATOR '\t'

static struct book *add_book(struct book **list, struct ledger *ledger, const char *exporter,
			     const char *pipeline, struct ledger_row *tenant)
{
	struct book *book = memory_new(sizeof *book);
	book->ledger = ledger;
	book->pipeline = memory_text(pipeline);
	book->row = ledger_destination(ledger, pipeline, exporter);
	book->tenant = tenant;
	book->account =
		tenant ? memory_format("%s%c%s", pipeline, SEPARATOR, ledger_row_name(tenant))
		       : memory_text(pipeline);
	book->next = *list;
	*list = book;
	return book;
}

static struct book *find(struct book *list, const char *pipeline, const struct ledger_row *tenant,
			 uint32_t *count)
{
	*count = 0;
	for (struct book *book = list; book; book = book->next, ++*count)
		if (book->tenant == tenant && !strcmp(book->pipeline, pipeline))
			return book;
	return NULL;
}

struct book *book_of(struct book **list, struct ledger *ledger, const char *exporter,
		     const char *pipeline, const char *tenant)
{
	uint32_t count;
	struct ledger_row *row = ledger_tenant(ledger, tenant);
	struct book *book = find(*list, pipeline, row, &count);
	if (!book && row && count >= BOOKS_MAX) {
		row = ledger_tenant(ledger, "other");
		book = find(*list, pipeline, row, &count);
	}
	return book ? book : add_book(list, ledger, exporter, pipeline, row);
}

struct book *book_of_account(struct book **list, struct ledger *ledger, const char *exporter,
			     const char *account)
{
	const char *end = strchr(account, SEPARATOR);
	if (!end)
		return book_of(list, ledger, exporter, account, NULL);
	char *pipeline = memory_text_of(account, (size_t)(end - account));
	struct book *book = book_of(list, ledger, exporter, pipeline, end + 1);
	memory_free(pipeline);
	return book;
}

struct book *book_with_disk(struct book *list, struct ledger *ledger, const char *pipeline,
			    const char *tenant, uint64_t samples)
{
	const char *const names[] = { tenant, "other", NULL };
	for (int i = 0; i < 3; i++) {
		uint32_t count;
		struct ledger_row *row = ledger_tenant(ledger, names[i]);
		struct book *book = find(list, pipeline, row, &count);
		if (book && book->disk >= (int64_t)samples)
			return book;
	}
	return NULL;
}

void books_free(struct book **list)
{
	for (struct book *book = *list, *next; book; book = next) {
		next = book->next;
		memory_free(book->pipeline);
		memory_free(book->account);
		memory_free(book);
	}
	*list = NULL;
}

void book_receive(struct book *book, uint64_t samples, bool batched)
{
	if (!batched)
		ledger_bring(book->row, LEDGER_IN, LEDGER_QUEUED, samples);
	ledger_bring(book->tenant, LEDGER_IN, LEDGER_QUEUED, samples);
	book->queued += (int64_t)samples;
}

void book_restore(struct book *book, uint64_t samples)
{
	ledger_enter(book->ledger);
	ledger_bring(book->row, LEDGER_RESTORED, LEDGER_QUEUED, samples);
	ledger_bring(book->tenant, LEDGER_RESTORED, LEDGER_QUEUED, samples);
	book->queued += (int64_t)samples;
	ledger_leave(book->ledger);
}

void book_inherit(struct book *book, uint64_t samples)
{
	book->queued += (int64_t)samples;
}

void book_leave(struct book *book, uint64_t samples)
{
	book->queued -= (int64_t)samples;
}

void book_settle(struct book *book, enum ledger_column end, uint64_t samples)
{
	ledger_enter(book->ledger);
	ledger_move(book->row, LEDGER_QUEUED, end, samples);
	ledger_move(book->tenant, LEDGER_QUEUED, end, samples);
	book->queued -= (int64_t)samples;
	ledger_leave(book->ledger);
}
