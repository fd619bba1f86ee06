/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/body.h"

#include <assert.h>

#include "net/compress.h"
#include "profile/otlp/encode_json.h"
#include "profile/otlp/encode_older.h"
#include "profile/otlp/encode_references.h"

typedef bool encode_packet(const struct packet *packet, struct bytes *out, struct error *err);

/* First `rewrite`, then `json`, each if it is there. */
static const struct recipe {
	encode_packet *rewrite, *json;
	bool keeps_tables; /* packet->tables applies to the bytes */
} recipes[PACKET_ENCODINGS] = {
	[PACKET_OTLP] = { NULL, NULL, true },
	[PACKET_JSON] = { NULL, encode_json, false },
	[PACKET_REFERENCES] = { encode_references, NULL, false },
	/* the same names of the same message */
	[PACKET_REFERENCES_JSON] = { encode_references, encode_json, false },
	[PACKET_OTLP_1_8] = { encode_1_8, NULL, true },
	[PACKET_OTLP_1_9] = { encode_1_9, NULL, true },
	[PACKET_JSON_1_8] = { NULL, encode_json_1_8, false },
};

static bool encode_body(const struct recipe *r, const struct packet *packet, struct bytes *out,
			struct error *err)
{
	struct packet rewritten = { 0 };
	if (!r->rewrite || !r->json)
		return (r->rewrite ? r->rewrite : r->json)(packet, out, err);
	bytes_init(&rewritten.otlp, packet_form_max(packet));
	bool ok = r->rewrite(packet, &rewritten.otlp, err) && r->json(&rewritten, out, err);
	bytes_fini(&rewritten.otlp);
	return ok;
}

static bool compress(const struct packet *packet, const struct packet_form *form, struct view body,
		     struct bytes *out, struct error *err)
{
	const struct cuts cuts = { packet->tables, PACKET_TABLES, PACKET_STRINGS };
	if (form->coding == CODING_GZIP && form->level == 1 && recipes[form->encoding].keeps_tables)
		return compress_gzip(body, &cuts, out, err);
	return compress_deflate(form->coding, form->level, body, out, err);
}

static bool encode(const void *context, const struct packet *packet, struct bytes *out,
		   struct error *err)
{
	const struct packet_form *form = context;
	const struct recipe *r = &recipes[form->encoding];
	struct bytes body;
	if (form->coding == CODING_IDENTITY)
		return encode_body(r, packet, out, err);
	if (!r->rewrite && !r->json)
		return compress(packet, form, bytes_view(&packet->otlp), out, err);
	bytes_init(&body, packet_form_max(packet));
	bool ok = encode_body(r, packet, &body, err) &&
		  compress(packet, form, bytes_view(&body), out, err);
	bytes_fini(&body);
	return ok;
}

const struct bytes *body_of(struct packet *packet, struct packet_form form, struct error *err)
{
	assert(form.encoding != PACKET_REQUEST);
	return packet_form(packet, form, encode, &form, err);
}

void body_prepare(struct packet *packet, struct packet_form form)
{
	if (form.encoding == PACKET_OTLP && form.level <= 1)
		body_of(packet, form, NULL);
}
