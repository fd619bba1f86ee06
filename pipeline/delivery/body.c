/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/body.h"

#include <assert.h>

#include "net/compress.h"
#include "profile/otlp/encode_json.h"
#include "profile/otlp/encode_references.h"

static bool compress_otlp(const struct packet *packet, const struct packet_form *form,
			  struct bytes *out, struct error *err)
{
	const struct cuts cuts = { packet->tables, PACKET_TABLES, PACKET_STRINGS };
	if (form->coding == CODING_GZIP && form->level == 1)
		return compress_gzip(bytes_view(&packet->otlp), &cuts, out, err);
	return compress_deflate(form->coding, form->level, bytes_view(&packet->otlp), out, err);
}

static bool compress_json(const struct packet *packet, const struct packet_form *form,
			  struct bytes *out, struct error *err)
{
	struct bytes json;
	bytes_init(&json, packet_form_max(packet));
	bool ok = encode_json(packet, &json, err) &&
		  compress_deflate(form->coding, form->level, bytes_view(&json), out, err);
	bytes_fini(&json);
	return ok;
}

/* References in JSON: the same names of the same message, so by way of its protobuf. */
static bool encode_references_json(const struct packet *packet, struct bytes *out,
				   struct error *err)
{
	struct packet other = { 0 };
	bytes_init(&other.otlp, packet_form_max(packet));
	bool ok = encode_references(packet, &other.otlp, err) && encode_json(&other, out, err);
	bytes_fini(&other.otlp);
	return ok;
}

static bool encode(const void *context, const struct packet *packet, struct bytes *out,
		   struct error *err)
{
	const struct packet_form *form = context;
	if (form->encoding == PACKET_REFERENCES)
		return encode_references(packet, out, err);
	if (form->encoding == PACKET_REFERENCES_JSON)
		return encode_references_json(packet, out, err);
	if (form->encoding == PACKET_OTLP)
		return compress_otlp(packet, form, out, err);
	return form->coding == CODING_IDENTITY ? encode_json(packet, out, err)
					       : compress_json(packet, form, out, err);
}

const struct bytes *body_of(struct packet *packet, struct packet_form form, struct error *err)
{
	assert(form.encoding != PACKET_REQUEST);
	assert(form.coding == CODING_IDENTITY || form.encoding == PACKET_OTLP ||
	       form.encoding == PACKET_JSON);
	return packet_form(packet, form, encode, &form, err);
}

void body_prepare(struct packet *packet, struct packet_form form)
{
	if (form.encoding == PACKET_OTLP && form.level <= 1)
		body_of(packet, form, NULL);
}
