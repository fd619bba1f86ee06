/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "pipeline/delivery/record.h"
#include "pipeline/storage/totals.h"

/* What a storage reads back: the record of a packet, or the totals of a queue. The first byte says
 * which (bit 0), and whether checksums are corrected first (bit 1), without which nothing but the
 * checksums would be explored. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { TOTALS = 1, CORRECTED = 2, AT_LENGTH = 8, AT_CONTENT = 24, AT_CHECKSUM = 48, FIXED = 152 };

static void put(uint8_t *at, uint64_t number)
{
	for (unsigned i = 0; i < 8; i++)
		at[i] = (uint8_t)(number >> (8 * i));
}

static void correct_record(uint8_t *at, size_t len)
{
	size_t head = 0;
	uint8_t parts[16];
	for (unsigned i = 4; len >= FIXED && i-- > 0;)
		head = head << 8 | at[AT_LENGTH + i];
	if (head < FIXED || head > len)
		return;
	struct hash128 content = hash_content_128(at + head, len - head);
	put(at + AT_CONTENT, content.low);
	put(at + AT_CONTENT + 8, content.high);
	put(parts, hash_content(at, AT_CHECKSUM));
	put(parts + 8, hash_content(at + AT_CHECKSUM + 8, head - AT_CHECKSUM - 8));
	put(at + AT_CHECKSUM, hash_content(parts, sizeof parts));
}

static void read_record(struct view data)
{
	struct record record;
	struct bytes head;
	if (record_check(data, &record) != RECORD_SOUND)
		return;
	struct packet *packet = record_packet(&record);
	assert(packet->otlp.len == record.body.len && packet->samples == record.samples);
	char *pipeline = strndup((const char *)record.pipeline.at, record.pipeline.len);
	bytes_init(&head, SIZE_MAX / 2);
	assert(record_encode(packet, packet->origin, pipeline, record.account, &head));
	const struct hash128 id = packet_id(packet);
	assert(id.low == record.id.low && id.high == record.id.high);
	free(pipeline);
	bytes_fini(&head);
	packet_unref(&packet);
}

static void read_totals(struct view data)
{
	struct storage_account *list = NULL, *same = NULL;
	struct error err;
	struct bytes out;
	bytes_init(&out, SIZE_MAX / 2);
	if (totals_decode(data, &list, &err)) {
		totals_encode(list, &out);
		assert(totals_decode(bytes_view(&out), &same, &err));
	}
	bytes_fini(&out);
	totals_free(&list);
	totals_free(&same);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t how = len ? *data : 0;
	size_t rest = len ? len - 1 : 0;
	uint8_t *copy = malloc(rest ? rest : 1);
	if (rest)
		memcpy(copy, data + 1, rest);
	const struct view view = { copy, rest };
	if (how & CORRECTED && how & TOTALS && rest >= 16)
		put(copy + rest - 8, hash_content(copy, rest - 8));
	else if (how & CORRECTED)
		correct_record(copy, rest);
	if (how & TOTALS)
		read_totals(view);
	else
		read_record(view);
	free(copy);
	return 0;
}
