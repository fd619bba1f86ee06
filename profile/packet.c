/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/packet.h"
#include "base/memory.h"

#include <assert.h>

static _Atomic uint64_t encodings[PACKET_ENCODINGS][CODING_COUNT];

const char *const packet_encoding_names[PACKET_ENCODINGS] = {
	[PACKET_OTLP] = "otlp",
	[PACKET_JSON] = "json",
	[PACKET_REQUEST] = "request",
	[PACKET_REFERENCES] = "references",
	[PACKET_REFERENCES_JSON] = "references_json",
	[PACKET_OTLP_1_8] = "otlp_1.8",
	[PACKET_OTLP_1_9] = "otlp_1.9",
	[PACKET_JSON_1_8] = "json_1.8",
};

uint64_t packet_encodings(enum packet_encoding encoding, enum coding coding)
{
	return encodings[encoding][coding];
}

struct packet *packet_new(size_t bytes, uint32_t contributions)
{
	struct packet *packet = memory_new(sizeof *packet);
	atomic_init(&packet->refs, 1);
	packet->otlp = (struct bytes){
		.at = memory_resize(NULL, bytes + BYTES_SLACK),
		.room = bytes,
		.max = bytes,
	};
	memset(packet->otlp.at + bytes, 0, BYTES_SLACK);
	packet->contributions = memory_array(contributions, sizeof *packet->contributions);
	packet->contribution_count = contributions;
	pthread_mutex_init(&packet->lock, NULL);
	return packet;
}

struct packet *packet_ref(struct packet *packet)
{
	atomic_fetch_add_explicit(&packet->refs, 1, memory_order_relaxed);
	return packet;
}

struct hash128 packet_id(struct packet *packet)
{
	if (packet->has_id)
		return packet->id;
	pthread_mutex_lock(&packet->lock);
	if (!packet->has_id)
		hash_random(&packet->id, sizeof packet->id);
	packet->has_id = true;
	pthread_mutex_unlock(&packet->lock);
	return packet->id;
}

void packet_set_id(struct packet *packet, struct hash128 id)
{
	packet->id = id;
	packet->has_id = true;
}

void packet_derive_id(struct packet *part, struct packet *whole, uint32_t number)
{
	struct hash128 root = packet_id(whole),
		       content = hash_content_128(part->otlp.at, part->otlp.len);
	const uint64_t words[] = { root.low, root.high, content.low, content.high, number };
	packet_set_id(part, hash_content_128(words, sizeof words));
}

static bool is_among(const struct contribution *c, unsigned modes)
{
	return c->ack && modes & ACK_MODE(c->mode);
}

void packet_hold_acks(struct packet *packet, unsigned modes)
{
	for (uint32_t i = 0; i < packet->contribution_count; i++)
		if (is_among(&packet->contributions[i], modes))
			ack_hold(packet->contributions[i].ack);
}

bool packet_has_acks(const struct packet *packet, unsigned modes)
{
	for (uint32_t i = 0; i < packet->contribution_count; i++)
		if (packet->contributions[i].ack && modes & ACK_MODE(packet->contributions[i].mode))
			return true;
	return false;
}

void packet_release_acks(struct packet *packet, unsigned modes, enum ack_outcome outcome)
{
	for (uint32_t i = 0; i < packet->contribution_count; i++)
		if (is_among(&packet->contributions[i], modes))
			ack_release(packet->contributions[i].ack, outcome);
}

void packet_charge_to(struct packet *packet, packet_charge *charge, void *context)
{
	packet->charge = charge;
	packet->charge_context = context;
	charge(context, (int64_t)packet_footprint(packet), false);
}

void packet_claim(struct packet *packet, int64_t bytes)
{
	if (packet->charge)
		packet->charge(packet->charge_context, bytes, true);
}

static size_t form_footprint(const struct bytes *form)
{
	return form ? sizeof *form + form->room + BYTES_SLACK : 0;
}

static void drop_bytes(struct bytes *form)
{
	if (form)
		bytes_fini(form);
	memory_free(form);
}

static void made_free(struct packet_made *made)
{
	while (made) {
		struct packet_made *next = made->next;
		drop_bytes(made->bytes);
		pthread_mutex_destroy(&made->lock);
		memory_free(made);
		made = next;
	}
}

void packet_unref(struct packet **slot)
{
	struct packet *packet = *slot;
	*slot = NULL;
	if (!packet || atomic_fetch_sub_explicit(&packet->refs, 1, memory_order_acq_rel) != 1)
		return;
	assert(!packet->holders);
	if (packet->charge)
		packet->charge(packet->charge_context, -(int64_t)packet_footprint(packet), false);
	made_free(packet->made);
	pthread_mutex_destroy(&packet->lock);
	bytes_fini(&packet->otlp);
	memory_free(packet->contributions);
	origin_unref(&packet->origin);
	memory_free(packet);
}

size_t packet_footprint(struct packet *packet)
{
	return sizeof *packet + packet->otlp.room + BYTES_SLACK +
	       packet->contribution_count * sizeof *packet->contributions + packet->encoded;
}

/* Under the lock. An encoding has come, or gone. */
static void count_encoded(struct packet *packet, int64_t bytes)
{
	packet->encoded += (size_t)bytes;
	if (packet->charge)
		packet->charge(packet->charge_context, bytes, false);
	for (struct packet_holder *h = packet->holders; h; h = h->next)
		*h->bytes += bytes;
}

void packet_attach(struct packet *packet, struct packet_holder *holder)
{
	pthread_mutex_lock(&packet->lock);
	*holder->bytes += (int64_t)packet_footprint(packet);
	holder->next = packet->holders;
	packet->holders = holder;
	pthread_mutex_unlock(&packet->lock);
}

static bool is_json(struct packet_form form)
{
	return form.encoding == PACKET_JSON || form.encoding == PACKET_REFERENCES_JSON ||
	       form.encoding == PACKET_JSON_1_8;
}

/* Is the protobuf rewritten before it becomes JSON or is compressed? */
static bool is_rewritten(struct packet_form form)
{
	return form.encoding == PACKET_REFERENCES || form.encoding == PACKET_REFERENCES_JSON ||
	       form.encoding == PACKET_OTLP_1_8 || form.encoding == PACKET_OTLP_1_9;
}

static bool is_same(struct packet_form a, struct packet_form b)
{
	return a.encoding == b.encoding && a.coding == b.coding && a.level == b.level;
}

static struct packet_made *find(const struct packet *packet, struct packet_form form)
{
	struct packet_made *made = packet->made;
	while (made && !is_same(made->form, form))
		made = made->next;
	return made;
}

/* Under the lock. */
static bool is_read(const struct packet *packet, struct packet_form form)
{
	for (const struct packet_holder *h = packet->holders; h; h = h->next)
		if (is_same(h->reads, form))
			return true;
	return false;
}

/* Under the lock. */
static void drop_json(struct packet *packet, struct packet_form read)
{
	struct packet_made *json = find(packet, read);
	struct bytes *form = json ? atomic_exchange(&json->bytes, NULL) : NULL;
	if (form)
		count_encoded(packet, -(int64_t)form_footprint(form));
	drop_bytes(form);
}

void packet_detach(struct packet *packet, struct packet_holder *holder)
{
	pthread_mutex_lock(&packet->lock);
	struct packet_holder **at = &packet->holders;
	while (*at != holder)
		at = &(*at)->next;
	*at = holder->next;
	*holder->bytes -= (int64_t)packet_footprint(packet);
	if (is_json(holder->reads) && holder->reads.coding == CODING_IDENTITY &&
	    !is_read(packet, holder->reads))
		drop_json(packet, holder->reads);
	pthread_mutex_unlock(&packet->lock);
}

/* The place of a form, whether it was made or not. */
static struct packet_made *place_of(struct packet *packet, struct packet_form form)
{
	struct packet_made *made = find(packet, form);
	if (made)
		return made;
	pthread_mutex_lock(&packet->lock);
	made = find(packet, form);
	if (!made) {
		made = memory_new(sizeof *made);
		made->form = form;
		made->next = packet->made;
		pthread_mutex_init(&made->lock, NULL);
		packet->made = made;
	}
	pthread_mutex_unlock(&packet->lock);
	return made;
}

static void publish(struct packet *packet, struct packet_made *made, struct bytes *bytes)
{
	pthread_mutex_lock(&packet->lock);
	made->bytes = bytes;
	count_encoded(packet, (int64_t)form_footprint(bytes));
	pthread_mutex_unlock(&packet->lock);
}

/* No encoding of ours is longer than this: the dearest two bytes become some thirty characters of
 * JSON. */
size_t packet_form_max(const struct packet *packet)
{
	return packet->otlp.len * 32 + 4096;
}

/* JSON of real profiles is three to four times as long, and grows by doubling. The result of each
 * step is there while the next one reads it. */
static int64_t form_expected(const struct packet *packet, struct packet_form form)
{
	bool compressed = form.coding != CODING_IDENTITY, json = is_json(form);
	int64_t times = (json ? 6 : 0) + (!json || compressed ? 1 : 0) +
			(is_rewritten(form) && (json || compressed) ? 1 : 0);
	return (int64_t)packet->otlp.len * times;
}

static struct bytes *make_form(const struct packet *packet, packet_encode *encode,
			       const void *context, struct error *err)
{
	struct bytes *form = memory_new(sizeof *form);
	bytes_init(form, packet_form_max(packet));
	if (encode(context, packet, form, err)) {
		bytes_trim(form); /* a compressor reserves for the worst case */
		return form;
	}
	drop_bytes(form);
	return NULL;
}

bool packet_has(const struct packet *packet, struct packet_form form)
{
	const struct packet_made *made = find(packet, form);
	return is_same(form, FORM_OTLP) || (made && made->bytes);
}

const struct bytes *packet_form(struct packet *packet, struct packet_form form,
				packet_encode *encode, const void *context, struct error *err)
{
	if (is_same(form, FORM_OTLP))
		return &packet->otlp;
	struct packet_made *made = place_of(packet, form);
	struct bytes *bytes = made->bytes;
	if (bytes)
		return bytes;
	pthread_mutex_lock(&made->lock);
	bytes = made->bytes;
	if (!bytes) {
		int64_t expected = form_expected(packet, form);
		packet_claim(packet, expected);
		bytes = make_form(packet, encode, context, err);
		atomic_fetch_add_explicit(&encodings[form.encoding][form.coding], bytes != NULL,
					  memory_order_relaxed);
		publish(packet, made, bytes);
		packet_claim(packet, -expected);
	}
	pthread_mutex_unlock(&made->lock);
	return bytes;
}
