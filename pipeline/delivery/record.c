/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/record.h"

#include "base/clock.h"
#include "base/memory.h"

#include <assert.h>

/*
 * A string is its length plus one (4 bytes; 0: there is none), its bytes and a zero byte. A
 * contribution is the receiver's ID as a string, then profiles, samples_in, samples_merged (8
 * bytes each): the sum of all contributions of that receiver.
 */
enum {
	FORMAT_WITHOUT_ID = 1,
	FORMAT = 2,
	AT_LENGTH = 8,
	AT_METADATA = 12,
	AT_BODY = 16,
	AT_CONTENT = 24,
	AT_ARRIVAL = 40,
	AT_CHECKSUM = 48,
	AT_SAMPLES = 56,
	AT_RESOURCES = 64,
	AT_PROFILES = 68,
	AT_OLDEST = 72,
	AT_NEWEST = 80,
	AT_TABLES = 88,
	AT_CONTRIBUTIONS = 144,
	AT_ACCOUNT = 148,
	AT_ID = 152,
	FIXED_WITHOUT_ID = AT_ID,
	FIXED = 168,
	STRING_MAX = 1 << 20,
	METADATA_MAX = 1024,
	RECEIVERS_MAX = 4096,
	HEAD_MAX = 64 << 20
};
static const char magic[] = { 'P', 'C', 'Q', 'R' };

const char *const record_faults[RECORD_FAULTS] = {
	[RECORD_SOUND] = "sound",
	[RECORD_FOREIGN] = "foreign",
	[RECORD_TORN] = "torn",
	[RECORD_CORRUPT] = "corrupt",
};

static void set_number(uint8_t *at, uint64_t number, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		at[i] = (uint8_t)(number >> (8 * i));
}

static uint64_t number_at(const uint8_t *at, unsigned size)
{
	uint64_t number = 0;
	for (unsigned i = size; i-- > 0;)
		number = number << 8 | at[i];
	return number;
}

/* ---- writing */

static bool put_number(struct bytes *out, uint64_t number, unsigned size)
{
	uint8_t bytes[8];
	set_number(bytes, number, size);
	return bytes_add(out, bytes, size);
}

static bool put_string(struct bytes *out, const char *text)
{
	size_t len = text ? strlen(text) : 0;
	if (len > STRING_MAX)
		return false;
	return put_number(out, text ? len + 1 : 0, 4) && (!text || bytes_add(out, text, len + 1));
}

static uint32_t count_metadata(const struct origin *origin)
{
	uint32_t count = 0;
	while (origin && origin->metadata[count].name)
		count++;
	return count;
}

static bool put_origin(struct bytes *out, const struct origin *origin)
{
	bool ok = put_string(out, origin ? origin->key : NULL) &&
		  put_string(out, origin ? origin->tenant : NULL);
	for (uint32_t i = 0; i < count_metadata(origin) && ok; i++)
		ok = put_string(out, origin->metadata[i].name) &&
		     put_string(out, origin->metadata[i].value);
	return ok;
}

/* Receivers are few; their requests may be thousands. */
static bool is_first_of_receiver(const struct packet *p, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (p->contributions[k].receiver == p->contributions[i].receiver)
			return false;
	return true;
}

static bool put_receiver(struct bytes *out, const struct packet *p, uint32_t first)
{
	const char *receiver = p->contributions[first].receiver;
	uint64_t profiles = 0, in = 0, merged = 0;
	for (uint32_t i = first; i < p->contribution_count; i++) {
		const struct contribution *c = &p->contributions[i];
		if (c->receiver != receiver)
			continue;
		profiles += c->profiles;
		in += c->samples_in;
		merged += c->samples_merged;
	}
	return put_string(out, receiver ? receiver : "") && put_number(out, profiles, 8) &&
	       put_number(out, in, 8) && put_number(out, merged, 8);
}

static bool put_contributions(struct bytes *out, const struct packet *p, uint32_t *receivers)
{
	*receivers = 0;
	for (uint32_t i = 0; i < p->contribution_count; i++) {
		if ((i && p->contributions[i].receiver == p->contributions[i - 1].receiver) ||
		    !is_first_of_receiver(p, i))
			continue;
		if (!put_receiver(out, p, i) || ++*receivers > RECEIVERS_MAX)
			return false;
	}
	return true;
}

static uint64_t wall_of(uint64_t arrival)
{
	uint64_t now = clock_now(), wall = clock_wall();
	return !arrival || arrival > now || now - arrival > wall ? wall : wall - (now - arrival);
}

/* Of the head, except the checksum itself. */
static uint64_t checksum_of(const uint8_t *head, size_t length)
{
	const uint64_t parts[] = { hash_content(head, AT_CHECKSUM),
				   hash_content(head + AT_SAMPLES, length - AT_SAMPLES) };
	uint8_t bytes[16];
	set_number(bytes, parts[0], 8);
	set_number(bytes + 8, parts[1], 8);
	return hash_content(bytes, sizeof bytes);
}

/* The fixed part; the checksum last. */
static void set_fixed(uint8_t *at, size_t length, struct packet *p, uint32_t metadata,
		      uint32_t receivers, enum record_account account)
{
	struct hash128 id = packet_id(p);
	struct hash128 content = hash_content_128(p->otlp.at, p->otlp.len);
	memcpy(at, magic, sizeof magic);
	set_number(at + sizeof magic, FORMAT, 4);
	set_number(at + AT_LENGTH, length, 4);
	set_number(at + AT_METADATA, metadata, 4);
	set_number(at + AT_BODY, p->otlp.len, 8);
	set_number(at + AT_CONTENT, content.low, 8);
	set_number(at + AT_CONTENT + 8, content.high, 8);
	set_number(at + AT_ARRIVAL, wall_of(p->oldest_arrival), 8);
	set_number(at + AT_SAMPLES, p->samples, 8);
	set_number(at + AT_RESOURCES, p->resources, 4);
	set_number(at + AT_PROFILES, p->profiles, 4);
	set_number(at + AT_OLDEST, p->oldest, 8);
	set_number(at + AT_NEWEST, p->newest, 8);
	for (unsigned t = 0; t < PACKET_TABLES; t++)
		set_number(at + AT_TABLES + 8 * t, p->tables[t], 8);
	set_number(at + AT_CONTRIBUTIONS, receivers, 4);
	set_number(at + AT_ACCOUNT, account, 4);
	set_number(at + AT_ID, id.low, 8);
	set_number(at + AT_ID + 8, id.high, 8);
	set_number(at + AT_CHECKSUM, checksum_of(at, length), 8);
}

bool record_encode(struct packet *packet, const struct origin *origin, const char *pipeline,
		   enum record_account account, struct bytes *head)
{
	static const uint8_t zero[FIXED];
	uint32_t metadata = count_metadata(origin), receivers;
	if (metadata > METADATA_MAX || !bytes_add(head, zero, FIXED) ||
	    !put_string(head, pipeline) || !put_origin(head, origin) ||
	    !put_contributions(head, packet, &receivers) || head->len > HEAD_MAX)
		return false;
	set_fixed(head->at, head->len, packet, metadata, receivers, account);
	return true;
}

/* ---- reading */

struct reader {
	const uint8_t *at, *end;
	bool failed;
};

static uint64_t read_number(struct reader *r, unsigned size)
{
	if (r->failed || (size_t)(r->end - r->at) < size) {
		r->failed = true;
		return 0;
	}
	uint64_t number = number_at(r->at, size);
	r->at += size;
	return number;
}

/* NULL: there is none, or the reader has failed. */
static const char *read_string(struct reader *r)
{
	uint64_t room = read_number(r, 4);
	if (r->failed || !room)
		return NULL;
	const char *text = (const char *)r->at;
	r->failed = room > STRING_MAX + 1 || room > (size_t)(r->end - r->at) ||
		    strnlen(text, room) != room - 1;
	if (r->failed)
		return NULL;
	r->at += room;
	return text;
}

static void skip_strings(struct reader *r, uint64_t count)
{
	for (uint64_t i = 0; i < count && !r->failed; i++)
		r->failed = !read_string(r);
}

/* The length of the part of the head that precedes the strings; 0: the format is unknown. */
static size_t fixed_of(const uint8_t *head)
{
	uint64_t format = number_at(head + sizeof magic, 4);
	return format == FORMAT ? FIXED : format == FORMAT_WITHOUT_ID ? FIXED_WITHOUT_ID : 0;
}

static struct reader reader_of(const struct record *record)
{
	return (struct reader){ record->head.at + fixed_of(record->head.at),
				record->head.at + record->head.len, false };
}

/* All that the packet is made of can be read, and nothing is left over. */
static bool is_readable(const struct record *record)
{
	struct reader r = reader_of(record);
	uint64_t metadata = number_at(record->head.at + AT_METADATA, 4),
		 receivers = number_at(record->head.at + AT_CONTRIBUTIONS, 4), last = 0;
	if (metadata > METADATA_MAX || receivers > RECEIVERS_MAX)
		return false;
	skip_strings(&r, 1);
	bool keyed = read_string(&r);
	bool has_tenant = read_string(&r);
	skip_strings(&r, 2 * metadata);
	for (uint64_t i = 0; i < receivers && !r.failed; i++) {
		skip_strings(&r, 1);
		for (int k = 0; k < 3; k++)
			read_number(&r, 8);
	}
	for (unsigned t = 0; t < PACKET_TABLES; t++) {
		uint64_t table = number_at(record->head.at + AT_TABLES + 8 * t, 8);
		r.failed = r.failed || table < last || table > record->body.len;
		last = table;
	}
	return !r.failed && r.at == r.end && (keyed || (!has_tenant && !metadata));
}

static enum record_fault check_head(struct view data)
{
	if (data.len < sizeof magic + 4)
		return RECORD_TORN;
	size_t fixed = memcmp(data.at, magic, sizeof magic) == 0 ? fixed_of(data.at) : 0;
	if (!fixed)
		return RECORD_FOREIGN;
	if (data.len < fixed)
		return RECORD_TORN;
	uint64_t length = number_at(data.at + AT_LENGTH, 4), body = number_at(data.at + AT_BODY, 8);
	if (length < fixed || length > HEAD_MAX || length > data.len || body != data.len - length)
		return RECORD_TORN;
	return number_at(data.at + AT_CHECKSUM, 8) == checksum_of(data.at, length) ? RECORD_SOUND
										   : RECORD_CORRUPT;
}

static struct hash128 id_of(struct view head)
{
	if (fixed_of(head.at) == FIXED_WITHOUT_ID)
		return hash_content_128(head.at, head.len);
	return (struct hash128){ number_at(head.at + AT_ID, 8), number_at(head.at + AT_ID + 8, 8) };
}

static enum record_account account_of(const uint8_t *head)
{
	uint64_t account = number_at(head + AT_ACCOUNT, 4);
	return account <= RECORD_ACCOUNT_SHARED ? (enum record_account)account
						: RECORD_ACCOUNT_UNKNOWN;
}

enum record_fault record_check(struct view data, struct record *record)
{
	*record = (struct record){ .samples = 0 };
	enum record_fault fault = check_head(data);
	if (fault != RECORD_SOUND)
		return fault;
	size_t length = number_at(data.at + AT_LENGTH, 4);
	*record = (struct record){
		.account = account_of(data.at),
		.samples = number_at(data.at + AT_SAMPLES, 8),
		.content = { number_at(data.at + AT_CONTENT, 8),
			     number_at(data.at + AT_CONTENT + 8, 8) },
		.id = id_of((struct view){ data.at, length }),
		.arrival = number_at(data.at + AT_ARRIVAL, 8),
		.head = { data.at, length },
		.body = { data.at + length, data.len - length },
	};
	struct reader r = reader_of(record);
	const char *pipeline = is_readable(record) ? read_string(&r) : NULL;
	if (!pipeline) {
		*record = (struct record){ .samples = 0 };
		return RECORD_CORRUPT;
	}
	record->pipeline = view_of(pipeline);
	read_string(&r); /* the key of the batch */
	const char *tenant = read_string(&r);
	record->tenant = tenant ? view_of(tenant) : (struct view){ 0 };
	struct hash128 content = hash_content_128(record->body.at, record->body.len);
	bool same = content.low == record->content.low && content.high == record->content.high;
	return same ? RECORD_SOUND : RECORD_CORRUPT;
}

static struct origin *read_origin(struct reader *r, uint32_t count)
{
	const char *key = read_string(r), *tenant = read_string(r);
	struct metadatum *metadata = memory_array(count + 1, sizeof *metadata);
	for (uint32_t i = 0; i < count; i++) {
		metadata[i].name = read_string(r);
		metadata[i].value = read_string(r);
	}
	struct origin *origin = key ? origin_new(key, tenant, metadata) : NULL;
	memory_free(metadata);
	return origin;
}

/* The receivers' IDs are behind the contributions, in the same allocation. */
static void read_contributions(struct reader *r, struct packet *p)
{
	size_t rows = p->contribution_count * sizeof *p->contributions,
	       text = (size_t)(r->end - r->at);
	p->contributions = memory_resize(p->contributions, rows + text + 1);
	char *at = (char *)p->contributions + rows;
	for (uint32_t i = 0; i < p->contribution_count; i++) {
		const char *receiver = read_string(r);
		size_t size = strlen(receiver) + 1;
		p->contributions[i] = (struct contribution){
			.receiver = memcpy(at, receiver, size),
			.profiles = (uint32_t)read_number(r, 8),
			.samples_in = read_number(r, 8),
			.samples_merged = read_number(r, 8),
		};
		at += size;
	}
}

static uint64_t arrival_of(uint64_t arrival)
{
	uint64_t now = clock_now(), wall = clock_wall();
	uint64_t age = wall > arrival ? wall - arrival : 0;
	return age < now ? now - age : 1;
}

uint64_t record_arrival(struct view data)
{
	return check_head(data) == RECORD_SOUND ? arrival_of(number_at(data.at + AT_ARRIVAL, 8))
						: 0;
}

struct packet *record_packet(const struct record *record)
{
	const uint8_t *head = record->head.at;
	struct reader r = reader_of(record);
	struct packet *p =
		packet_new(record->body.len, (uint32_t)number_at(head + AT_CONTRIBUTIONS, 4));
	memcpy(p->otlp.at, record->body.at, record->body.len);
	p->otlp.len = record->body.len;
	packet_set_id(p, record->id);
	p->oldest_arrival = arrival_of(record->arrival);
	p->samples = record->samples;
	p->resources = (uint32_t)number_at(head + AT_RESOURCES, 4);
	p->profiles = (uint32_t)number_at(head + AT_PROFILES, 4);
	p->oldest = number_at(head + AT_OLDEST, 8);
	p->newest = number_at(head + AT_NEWEST, 8);
	for (unsigned t = 0; t < PACKET_TABLES; t++)
		p->tables[t] = number_at(head + AT_TABLES + 8 * t, 8);
	read_string(&r);
	p->origin = read_origin(&r, (uint32_t)number_at(head + AT_METADATA, 4));
	read_contributions(&r, p);
	assert(!r.failed);
	return p;
}
