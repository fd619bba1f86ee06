/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/pyroscope_answer.h"
#include "net/http/http_internal.h"
#include "net/http/multipart.h"
#include "net/idempotency_key.h"
#include "net/tls/tls_hello.h"
#include "pipeline/delivery/http_sender.h"

#include <stdlib.h>

#include "base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct fields_limits limits = {
	.count = 64, .name = 256, .value = 4096, .total = 16384
};

static void list(bool (*add)(struct fields *, const char *, struct error *), const char *text)
{
	struct fields f;
	struct error err;
	fields_init(&f, &limits);
	if (add(&f, text, &err) && fields_unique(&f, &err) && f.count > limits.count)
		abort();
	fields_fini(&f);
}

static void find_key(const struct metadatum *headers)
{
	static const char allowed[] =
		"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
	struct view key = { 0 };
	if (idempotency_key_find(headers, &key) != IDEMPOTENCY_KEY_VALID)
		return;
	if (key.len < IDEMPOTENCY_KEY_MIN || key.len > IDEMPOTENCY_KEY_MAX)
		abort();
	for (size_t i = 0; i < key.len; i++)
		if (!memchr(allowed, key.at[i], sizeof allowed - 1))
			abort();
}

/* "target\nName: value\nName: value" in the form in which libmicrohttpd or nghttp2 passes it. */
static void judge(char *text, enum http_version version)
{
	static const struct http_carrier carrier;
	struct http_server server = { .holds = 2 };
	http_state_limit_headers(&server);
	char *next = strchr(text, '\n');
	if (next)
		*next++ = '\0';
	struct http_exchange exchange = { .version = version }, *x = &exchange;
	http_exchange_init(x, &server, &carrier, text);
	for (char *line = next; line; line = next) {
		if ((next = strchr(line, '\n')))
			*next++ = '\0';
		char *value = strchr(line, ':');
		if (value)
			*value++ = '\0';
		if (!fields_add(&x->headers, view_of(line), view_of(value ? value : ""), NULL))
			x->headers_over = true;
	}
	fields_lower(&x->headers);
	find_key(fields_list(&x->headers));
	const struct http_fault *fault = http_judge(x);
	if (!fault && (http_exchange_header(x, "content-length") &&
		       http_exchange_header(x, "transfer-encoding")))
		abort();
	http_exchange_fini(x);
}

/* The content type is the first line. A part may end at the end of the body, never after it. */
static void form(const uint8_t *data, size_t len)
{
	const uint8_t *end = memchr(data, '\n', len);
	struct multipart m;
	struct multipart_part part;
	struct error err;
	if (!end)
		return;
	char *type = memory_text_of(data, (size_t)(end - data));
	struct view body = { end + 1, len - (size_t)(end - data) - 1 };
	if (multipart_begin(&m, type, body, &err))
		while (multipart_next(&m, &part, &err) == MULTIPART_PART)
			if (part.content.at < body.at ||
			    part.content.at + part.content.len > body.at + body.len)
				abort();
	memory_free(type);
}

static void answer(const uint8_t *data, size_t len)
{
	const struct http_result result = { .status = 400,
					    .body = { len ? data : NULL, len },
					    .retry_after_ms = -1 };
	struct send_result verdict = http_sender_judge(&result);
	pyroscope_judge(&result, len, &verdict);
	if (verdict.outcome != SEND_TOO_LARGE && (verdict.stated_bytes || verdict.stated_samples))
		abort();
}

/* The first byte selects the parser. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (!len)
		return 0;
	char *text = memory_text_of(data + 1, len - 1);
	switch (data[0] % 8) {
	case 0:
		list(fields_add_query, text);
		break;
	case 1:
		list(fields_add_pairs, text);
		break;
	case 2:
		judge(text, HTTP_1_1);
		break;
	case 5:
		judge(text, HTTP_2);
		break;
	case 6:
		tls_hello_look((struct view){ data + 1, len - 1 }, "h2");
		break;
	case 3:
		form(data + 1, len - 1);
		break;
	default:
		answer(data + 1, len - 1);
	}
	memory_free(text);
	return 0;
}
