/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/packet.h"
#include "base/memory.h"

#include <assert.h>

struct packet *packet_new(size_t bytes, uint32_t contributions)
{
	struct packet *packet = memory_new(sizeof *packet);
	atomic_init(&packet->refs, 1);
	packet->otlp = (struct bytes){
		.at = memory_resize(NULL, bytes + BYTES_SLACK), .room = bytes, .max = bytes,
	};
	memset(packet->otlp.at + bytes, 0, BYTES_SLACK);
	packet->contributions = memory_array(contributions, sizeof *packet->contributions);
	packet->contribution_count = contributions;
	for (unsigned f = 0; f < FORM_COUNT; f++)
		pthread_mutex_init(&packet->forms[f].lock, NULL);
	return packet;
}

struct packet *packet_ref(struct packet *packet)
{
	atomic_fetch_add_explicit(&packet->refs, 1, memory_order_relaxed);
	return packet;
}

void packet_fail(struct packet *packet)
{
	atomic_store_explicit(&packet->failed, true, memory_order_relaxed);
}

static void release_acks(struct packet *packet)
{
	bool failed = atomic_load_explicit(&packet->failed, memory_order_relaxed);
	for (uint32_t i = 0; i < packet->contribution_count; i++)
		if (packet->contributions[i].ack)
			ack_release(packet->contributions[i].ack, failed);
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
	release_acks(packet);
	for (unsigned f = 0; f < FORM_COUNT; f++) {
		drop_form(packet->forms[f].made);
		pthread_mutex_destroy(&packet->forms[f].lock);
	}
	bytes_fini(&packet->otlp);
	memory_free(packet->contributions);
	memory_free(packet->tenant);
	memory_free(packet);
}

size_t packet_footprint(struct packet *packet)
{
	size_t held = sizeof *packet + packet->otlp.room + BYTES_SLACK +
		      packet->contribution_count * sizeof *packet->contributions;
	for (unsigned f = 0; f < FORM_COUNT; f++) {
		const struct bytes *form = packet->forms[f].made;
		held += form ? sizeof *form + form->room + BYTES_SLACK : 0;
	}
	return held;
}

/* No encoding of ours is longer than this: the dearest two bytes become some thirty characters of JSON. */
static size_t form_max(const struct packet *packet)
{
	return packet->otlp.len * 32 + 4096;
}

static struct bytes *make_form(const struct packet *packet,
			       bool (*encode)(const struct packet *, struct bytes *, struct error *),
			       struct error *err)
{
	struct bytes *form = memory_new(sizeof *form);
	bytes_init(form, form_max(packet));
	if (encode(packet, form, err))
		return form;
	drop_form(form);
	return NULL;
}

const struct bytes *packet_form(struct packet *packet, enum packet_form form,
				bool (*encode)(const struct packet *packet, struct bytes *out,
					       struct error *err),
				struct error *err)
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
		made = make_form(packet, encode, err);
		packet->forms[form].made = made;
	}
	pthread_mutex_unlock(&packet->forms[form].lock);
	return made;
}
