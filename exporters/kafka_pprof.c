/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/kafka_pprof.h"

#include <strings.h>

#include "base/memory.h"
#include "net/compress.h"
#include "net/fields.h"
#include "net/kafka/kafka_client.h"
#include "pipeline/delivery/idempotency.h"
#include "profile/pprof/encode_pprof.h"
#include "profile/pprof/pprof_run.h"
#include "profile/value_text.h"

#define UNSUPPORTED \
	(UNSUPPORTED_BY_PPROF | 1u << UNSUPPORTED_RESOURCE_ATTRIBUTE | \
	 1u << UNSUPPORTED_SCOPE_ATTRIBUTE | 1u << UNSUPPORTED_PROFILE_ATTRIBUTE)

/* Of the headers that a receiver of ours reads, some are for others than attributes. */
static const struct fields_limits limits_of_attributes = {
	.count = KAFKA_HEADERS_MAX - 16,
	.name = KAFKA_HEADER_NAME_MAX,
	.value = KAFKA_HEADER_VALUE_MAX,
	.total = KAFKA_HEADERS_BYTES_MAX - 4096,
};

enum { LENGTH_BYTES = 4 };

/* ---- attributes as headers ---- */

static bool add_attribute(const struct profiles *p, const struct attribute *a, struct fields *list)
{
	static const char reserved[] = IDEMPOTENCY_KEY_HEADER;
	struct view name = string_view(p, a->key);
	struct bytes text;
	if (!name.len || (name.len == sizeof reserved - 1 &&
			  !strncasecmp((const char *)name.at, reserved, name.len)))
		return false;
	bytes_init(&text, KAFKA_HEADER_VALUE_MAX);
	bool ok = value_text_add(p, a, &text) && fields_add(list, name, bytes_view(&text), NULL);
	bytes_fini(&text);
	return ok;
}

/* Returns the number of attributes that no header can carry. */
static uint64_t add_attributes(const struct profiles *p, const struct resource *r,
			       struct fields *list)
{
	uint64_t left_out = 0;
	for (uint32_t i = 0; i < r->attributes.count; i++)
		left_out +=
			!add_attribute(p, &p->attributes.at[p->indices.at[r->attributes.first + i]],
				       list);
	return left_out;
}

/* ---- the request ---- */

struct writing {
	const struct profiles *p;
	struct bytes *out;
	struct error *err;
};

static bool write_headers(const struct writing *w, const struct resource *r)
{
	struct fields list;
	fields_init(&list, &limits_of_attributes);
	add_attributes(w->p, r, &list);
	size_t len = list.text.len;
	const uint8_t length[LENGTH_BYTES] = { 0, 0, (uint8_t)(len >> 8), (uint8_t)len };
	bool ok = bytes_add(w->out, length, sizeof length) &&
		  bytes_add(w->out, list.text.at, list.text.len);
	fields_fini(&list);
	return ok;
}

static bool write_request(const struct pprof_out *pprof, void *context)
{
	const struct writing *w = context;
	struct bytes value;
	if (w->out->len)
		return error_set(w->err, ERROR_INTERNAL, "the packet is more than one pprof");
	bytes_init(&value, w->out->max);
	bool ok = write_headers(w, &w->p->resources.at[pprof->resource]) &&
		  compress_deflate(CODING_GZIP, 0, pprof->bytes, &value, w->err) &&
		  bytes_add(w->out, value.at, value.len);
	bytes_fini(&value);
	return ok;
}

static bool encode(const void *context, const struct packet *packet, struct bytes *out,
		   struct error *err)
{
	struct profiles p = { 0 };
	struct writing writing = { &p, out, err };
	(void)context;
	bool ok = split_open(packet, &p, err) &&
		  encode_pprof(&p, false, write_request, &writing, err);
	profiles_fini(&p);
	return ok;
}

bool kafka_pprof_read(struct packet *packet, struct kafka_content *out, struct error *err)
{
	const struct bytes *request = packet_form(packet, FORM_REQUEST, encode, NULL, err);
	if (!request || request->len < LENGTH_BYTES)
		return false;
	size_t len = (size_t)request->at[2] << 8 | request->at[3];
	out->headers = request->at + LENGTH_BYTES;
	out->headers_end = out->headers + len;
	out->value = (struct view){ out->headers_end, request->len - LENGTH_BYTES - len };
	return true;
}

bool kafka_pprof_header(struct kafka_content *content, struct metadatum *header)
{
	if (content->headers == content->headers_end)
		return false;
	header->name = (const char *)content->headers;
	header->value = header->name + strlen(header->name) + 1;
	content->headers = (const uint8_t *)header->value + strlen(header->value) + 1;
	return true;
}

/* ---- plan ---- */

void kafka_pprof_init(struct unsupported *unsupported, struct metrics *metrics,
		      const char *exporter)
{
	unsupported_init(unsupported, UNSUPPORTED, metrics, exporter);
}

static void count(const struct unsupported *unsupported, const struct profiles *p)
{
	struct unsupported_counts counts;
	unsupported_look(p, &counts);
	counts.at[UNSUPPORTED_RESOURCE_ATTRIBUTE] = 0;
	for (uint32_t i = 0; i < p->resources.count; i++) {
		struct fields list;
		fields_init(&list, &limits_of_attributes);
		counts.at[UNSUPPORTED_RESOURCE_ATTRIBUTE] +=
			add_attributes(p, &p->resources.at[i], &list);
		fields_fini(&list);
	}
	unsupported_count(unsupported, &counts);
}

bool kafka_pprof_plan(const struct packet *packet, const struct limits *wanted,
		      const struct split_measure *measure, const struct unsupported *unsupported,
		      struct parts *parts, struct error *err)
{
	struct limits limits = *wanted;
	struct profiles p = { 0 };
	uint32_t *runs = NULL;
	bool ok = split_open(packet, &p, err);
	if (ok) {
		limits.runs = runs = pprof_runs(&p);
		ok = split_profiles(&p, packet, &limits, measure, parts, err);
	}
	if (ok)
		count(unsupported, &p);
	memory_free(runs);
	profiles_fini(&p);
	return ok;
}
