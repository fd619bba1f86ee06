/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/packet.h"
#include "base/memory.h"

#include <assert.h>

static _Atomic uint64_t encodings[FORM_COUNT];

const char *const packet_form_names[FORM_COUNT] = {
	[FORM_OTLP] = "otlp", [FORM_OTLP_GZIP] = "otlp_gzip", [FORM_OTLP_ZSTD] = "otlp_zstd",
	[FORM_JSON] = "json", [FORM_REQUEST] = "request",     [FORM_REQUEST_GZIP] = "request_gzip",
};

uint64_t packet_encodings(enum packet_form form)
{
	return encodings[form];
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
	for (unsigned f = 0; f < FORM_COUNT; f++)
		pthread_mutex_init(&packet->forms[f].lock, NULL);
	return packet;
}

struct packet *packet_ref(struct packet *packet)
{
	atomic_fetch_add_explicit(&packet->refs, 1, memory_order_relaxed);
	return packet;
}

void packet_hold_acks(struct packet *packet)
{
	for (uint32_t i = 0; i < packet->contribution_count; i++)
		if (packet->contributions[i].ack)
			ack_hold(packet->contributions[i].ack);
}

void packet_release_acks(struct packet *packet, enum ack_outcome outcome)
{
	for (uint32_t i = 0; i < packet->contribution_count; i++)
		if (packet->contributions[i].ack)
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

static void drop_form(struct bytes *form)
{
	if (form)
		bytes_fini(form);
	memory_free(form);
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
	for (unsigned f = 0; f < FORM_COUNT; f++) {
		drop_form(packet->forms[f].made);
		pthread_mutex_destroy(&packet->forms[f].lock);
	}
	pthread_mutex_destroy(&packet->lock);
	bytes_fini(&packet->otlp);
	memory_free(packet->contributions);
	memory_free(packet->batch_key);
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

/* Under the lock. */
static void drop_unread(struct packet *packet, unsigned forms)
{
	for (struct packet_holder *h = packet->holders; h; h = h->next)
		forms &= ~h->reads;
	for (unsigned f = 0; f < FORM_COUNT; f++) {
		struct bytes *form =
			forms & 1u << f ? atomic_exchange(&packet->forms[f].made, NULL) : NULL;
		if (form)
			count_encoded(packet, -(int64_t)form_footprint(form));
		drop_form(form);
	}
}

void packet_detach(struct packet *packet, struct packet_holder *holder)
{
	pthread_mutex_lock(&packet->lock);
	struct packet_holder **at = &packet->holders;
	while (*at != holder)
		at = &(*at)->next;
	*at = holder->next;
	*holder->bytes -= (int64_t)packet_footprint(packet);
	drop_unread(packet, holder->reads & PACKET_TRANSIENT);
	pthread_mutex_unlock(&packet->lock);
}

static void publish(struct packet *packet, enum packet_form form, struct bytes *made)
{
	pthread_mutex_lock(&packet->lock);
	packet->forms[form].made = made;
	count_encoded(packet, (int64_t)form_footprint(made));
	pthread_mutex_unlock(&packet->lock);
}

/* No encoding of ours is longer than this: the dearest two bytes become some thirty characters of
 * JSON. */
static size_t form_max(const struct packet *packet)
{
	return packet->otlp.len * 32 + 4096;
}

/* JSON of real profiles is three to four times as long, and grows by doubling. */
static int64_t form_expected(const struct packet *packet, enum packet_form form)
{
	return (int64_t)packet->otlp.len * (form == FORM_JSON ? 6 : 1);
}

static struct bytes *make_form(const struct packet *packet, packet_encode *encode,
			       const void *context, struct error *err)
{
	struct bytes *form = memory_new(sizeof *form);
	bytes_init(form, form_max(packet));
	if (encode(context, packet, form, err)) {
		bytes_trim(form); /* a compressor reserves for the worst case */
		return form;
	}
	drop_form(form);
	return NULL;
}

const struct bytes *packet_form(struct packet *packet, enum packet_form form, packet_encode *encode,
				const void *context, struct error *err)
{
	assert(form < FORM_COUNT);
	if (form == FORM_OTLP)
		return &packet->otlp;
	struct bytes *made = packet->forms[form].made;
	if (made)
		return made;
	pthread_mutex_lock(&packet->forms[form].lock);
	made = packet->forms[form].made;
	if (!made) {
		int64_t expected = form_expected(packet, form);
		packet_claim(packet, expected);
		made = make_form(packet, encode, context, err);
		atomic_fetch_add_explicit(&encodings[form], made != NULL, memory_order_relaxed);
		publish(packet, form, made);
		packet_claim(packet, -expected);
	}
	pthread_mutex_unlock(&packet->forms[form].lock);
	return made;
}
