/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/book.h"

#include "base/memory.h"

#include <string.h>

/* Between pipeline and tenant; no tenant has it (pipeline/intake/tenant.h). */
#define SEPARATOR '\t'

static struct book *add_book(struct book **list, struct ledger *ledger, const char *exporter,
			     const char *pipeline, struct ledger_row *tenant, const char *name)
{
	struct book *book = memory_new(sizeof *book);
	book->ledger = ledger;
	book->pipeline = memory_text(pipeline);
	book->row = ledger_destination(ledger, pipeline, exporter);
	book->tenant = tenant;
	book->name = memory_text(name);
	book->account =
		name ? memory_format("%s%c%s", pipeline, SEPARATOR, name) : memory_text(pipeline);
	book->next = *list;
	*list = book;
	return book;
}

static bool is_named(const struct book *book, const char *name)
{
	return name && book->name ? !strcmp(book->name, name) : !name && !book->name;
}

static struct book *find(struct book *list, const char *pipeline, const char *name, uint32_t *count)
{
	*count = 0;
	for (struct book *book = list; book; book = book->next, ++*count)
		if (is_named(book, name) && !strcmp(book->pipeline, pipeline))
			return book;
	return NULL;
}

struct book *book_of(struct book **list, struct ledger *ledger, const char *exporter,
		     const char *pipeline, const char *tenant)
{
	uint32_t count;
	struct ledger_row *row = ledger_tenant(ledger, tenant);
	const char *name = row ? ledger_row_name(row) : NULL;
	struct book *book = find(*list, pipeline, name, &count);
	if (!book && row && count >= BOOKS_MAX) {
		name = LEDGER_OTHER;
		row = ledger_tenant(ledger, name);
		book = find(*list, pipeline, name, &count);
	}
	return book ? book : add_book(list, ledger, exporter, pipeline, row, name);
}

struct book *book_of_account(struct book **list, struct ledger *ledger, const char *exporter,
			     const char *account)
{
	uint32_t count;
	const char *end = strchr(account, SEPARATOR), *name = end ? end + 1 : NULL;
	char *pipeline = memory_text_of(account, end ? (size_t)(end - account) : strlen(account));
	struct book *book = find(*list, pipeline, name, &count);
	if (!book)
		book = add_book(list, ledger, exporter, pipeline,
				ledger_restored_tenant(ledger, name), name);
	memory_free(pipeline);
	return book;
}

bool book_is_shared(const struct book *book)
{
	return book->name && !strcmp(book->name, LEDGER_OTHER);
}

struct book *book_of_record(struct book *list, const char *pipeline, const char *tenant,
			    enum record_account account, uint64_t samples)
{
	const char *const names[] = { tenant, LEDGER_OTHER };
	int first = account == RECORD_ACCOUNT_SHARED, last = account != RECORD_ACCOUNT_OWN;
	for (int i = first; i <= last; i++) {
		uint32_t count;
		struct book *book = find(list, pipeline, names[i], &count);
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
		memory_free(book->name);
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
