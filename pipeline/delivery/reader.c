/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/reader.h"

#include "base/memory.h"

#include <string.h>

void reader_init(struct reader *r, enum queue_order order)
{
	*r = (struct reader){ .order = order };
	pthread_mutex_init(&r->turn, NULL);
	pthread_mutex_init(&r->lock, NULL);
}

void reader_fini(struct reader *r)
{
	memory_free(r->taken);
	pthread_mutex_destroy(&r->lock);
	pthread_mutex_destroy(&r->turn);
}

void reading_fini(struct reading *r)
{
	memory_free(r->pipeline);
	memory_free(r->tenant);
}

static void use(void *context, uint64_t sequence, struct view data)
{
	struct reading *r = context;
	struct record record;
	r->sequence = sequence;
	r->size = data.len;
	r->fault = record_check(data, &record);
	r->samples = record.samples;
	r->account = record.account;
	if (record.pipeline.len)
		r->pipeline = memory_text_of(record.pipeline.at, record.pipeline.len);
	if (record.tenant.len)
		r->tenant = memory_text_of(record.tenant.at, record.tenant.len);
	if (r->fault == RECORD_SOUND)
		r->packet = record_packet(&record);
}

static enum storage_read read_oldest(struct reader *reader, struct storage_queue *queue,
				     struct reading *r)
{
	uint64_t first = reader->first;
	reader->next = first > reader->next ? first : reader->next;
	enum storage_read result = storage_read(queue, reader->next, use, r);
	if (result == STORAGE_READ)
		reader->next = r->sequence + 1;
	return result;
}

/* The newest record that is not among the taken ones. */
struct search {
	struct reading *reading;
	uint64_t first, sequence;
	const uint64_t *taken;
	uint32_t count;
	bool found;
};

static void use_if_free(void *context, uint64_t sequence, struct view data)
{
	struct search *s = context;
	s->sequence = sequence;
	if (sequence < s->first)
		return;
	for (uint32_t i = 0; i < s->count; i++)
		if (s->taken[i] == sequence)
			return;
	s->found = true;
	use(s->reading, sequence, data);
}

static enum storage_read search(struct search *s, struct storage_queue *queue)
{
	enum storage_read result;
	uint64_t upto = UINT64_MAX;
	do {
		result = storage_read_back(queue, upto, use_if_free, s);
		upto = s->sequence - 1;
	} while (result == STORAGE_READ && !s->found && s->sequence > s->first);
	return result == STORAGE_READ && !s->found ? STORAGE_NOTHING : result;
}

/* A record that is removed after this may still be found. */
static uint64_t *copy_taken(struct reader *reader, uint32_t *count)
{
	pthread_mutex_lock(&reader->lock);
	*count = reader->count;
	uint64_t *copy = memory_array(*count + 1, sizeof *copy);
	if (*count)
		memcpy(copy, reader->taken, *count * sizeof *copy);
	pthread_mutex_unlock(&reader->lock);
	return copy;
}

static void add_taken(struct reader *reader, uint64_t sequence)
{
	pthread_mutex_lock(&reader->lock);
	if (reader->count == reader->room) {
		reader->room = reader->room ? 2 * reader->room : 16;
		reader->taken = memory_resize(reader->taken, reader->room * sizeof *reader->taken);
	}
	reader->taken[reader->count++] = sequence;
	pthread_mutex_unlock(&reader->lock);
}

static enum storage_read read_newest(struct reader *reader, struct storage_queue *queue,
				     struct reading *r)
{
	struct search s = { .reading = r, .first = reader->first };
	uint64_t *taken = copy_taken(reader, &s.count);
	s.taken = taken;
	enum storage_read result = search(&s, queue);
	memory_free(taken);
	if (result == STORAGE_READ)
		add_taken(reader, r->sequence);
	return result;
}

enum storage_read reader_next(struct reader *reader, struct storage_queue *queue, struct reading *r)
{
	*r = (struct reading){ .fault = RECORD_TORN };
	pthread_mutex_lock(&reader->turn);
	enum storage_read result =
		(reader->order == ORDER_NEWEST ? read_newest : read_oldest)(reader, queue, r);
	pthread_mutex_unlock(&reader->turn);
	return result;
}

static void use_arrival(void *context, uint64_t sequence, struct view data)
{
	(void)sequence;
	*(uint64_t *)context = record_arrival(data);
}

uint64_t reader_oldest(const struct reader *reader, struct storage_queue *queue)
{
	uint64_t arrival = 0;
	storage_read(queue, reader->first, use_arrival, &arrival);
	return arrival;
}

void reader_removed(struct reader *reader, uint64_t sequence)
{
	pthread_mutex_lock(&reader->lock);
	for (uint32_t i = 0; i < reader->count; i++)
		if (reader->taken[i] == sequence) {
			reader->taken[i] = reader->taken[--reader->count];
			break;
		}
	pthread_mutex_unlock(&reader->lock);
}
