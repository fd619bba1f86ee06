/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/storage/totals.h"

#include "base/hash.h"
#include "base/memory.h"

enum { FORMAT = 1, HEAD = 8, ROW = 4 + 4 * 8, CHECKSUM = 8 };

struct storage_account *totals_account(struct storage_account **list, const char *name, size_t len)
{
	struct storage_account **at = list;
	while (*at && (strlen((*at)->name) != len || memcmp((*at)->name, name, len) != 0))
		at = &(*at)->next;
	if (!*at) {
		*at = memory_new(sizeof **at);
		(*at)->name = memory_text_of(name, len);
	}
	return *at;
}

void totals_free(struct storage_account **list)
{
	while (*list) {
		struct storage_account *next = (*list)->next;
		memory_free((*list)->name);
		memory_free(*list);
		*list = next;
	}
}

static void put_number(struct bytes *out, uint64_t number, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		bytes_add_byte(out, (uint8_t)(number >> (8 * i)));
}

static uint64_t get_number(const uint8_t *at, unsigned size)
{
	uint64_t number = 0;
	for (unsigned i = 0; i < size; i++)
		number |= (uint64_t)at[i] << (8 * i);
	return number;
}

static bool is_empty(const struct storage_account *a)
{
	return a->committed.records + a->change.records <= 0 &&
	       a->committed.samples + a->change.samples <= 0;
}

static void put_account(struct bytes *out, const struct storage_account *a)
{
	const struct storage_totals *is = &a->committed, *more = &a->change;
	put_number(out, strlen(a->name), 4);
	bytes_add_text(out, a->name);
	put_number(out, (uint64_t)(is->records + more->records), 8);
	put_number(out, (uint64_t)(is->samples + more->samples), 8);
	put_number(out, (uint64_t)(is->bytes + more->bytes), 8);
	put_number(out, (uint64_t)(is->space + more->space), 8);
}

void totals_encode(const struct storage_account *list, struct bytes *out)
{
	uint32_t count = 0;
	for (const struct storage_account *a = list; a; a = a->next)
		count += !is_empty(a);
	put_number(out, FORMAT, 4);
	put_number(out, count, 4);
	for (const struct storage_account *a = list; a; a = a->next)
		if (!is_empty(a))
			put_account(out, a);
	put_number(out, hash_content(out->at, out->len), 8);
}

static bool is_sound(struct view data)
{
	return data.len >= HEAD + CHECKSUM && get_number(data.at, 4) == FORMAT &&
	       get_number(data.at + 4, 4) <= TOTALS_ACCOUNTS_MAX &&
	       get_number(data.at + data.len - CHECKSUM, 8) ==
		       hash_content(data.at, data.len - CHECKSUM);
}

/* The length of a row, 0 if there is none. */
static size_t row_length(const uint8_t *at, const uint8_t *end)
{
	size_t left = (size_t)(end - at);
	size_t name = left >= ROW ? get_number(at, 4) : TOTALS_NAME_MAX + 1;
	return name <= TOTALS_NAME_MAX && left >= ROW + name ? ROW + name : 0;
}

static bool has_rows(struct view data, uint32_t count)
{
	const uint8_t *at = data.at + HEAD, *end = data.at + data.len - CHECKSUM;
	for (uint32_t i = 0; i < count; i++) {
		size_t length = row_length(at, end);
		if (!length)
			return false;
		at += length;
	}
	return at == end;
}

bool totals_decode(struct view data, struct storage_account **list, struct error *err)
{
	uint32_t count = is_sound(data) ? (uint32_t)get_number(data.at + 4, 4) : 0;
	if (!is_sound(data) || !has_rows(data, count))
		return error_set(err, ERROR_INVALID, "the totals of the queue are damaged");
	const uint8_t *at = data.at + HEAD;
	for (uint32_t i = 0; i < count; i++) {
		size_t name = get_number(at, 4);
		struct storage_account *a = totals_account(list, (const char *)at + 4, name);
		const uint8_t *numbers = at + 4 + name;
		a->committed = (struct storage_totals){
			.records = (int64_t)get_number(numbers, 8),
			.samples = (int64_t)get_number(numbers + 8, 8),
			.bytes = (int64_t)get_number(numbers + 16, 8),
			.space = (int64_t)get_number(numbers + 24, 8),
		};
		at = numbers + 32;
	}
	return true;
}
