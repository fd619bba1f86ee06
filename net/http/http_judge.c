/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <strings.h>

#include "net/http/http_internal.h"

/* Checks before any route is asked. If the end of a request is disputable (RFC 9112 §6.3, §11.2:
 * both lengths, several lengths, unsupported codings, blanks before a colon), the request is
 * refused and its connection closed, so that nothing after it can be taken for a request. */
bool http_is_token(const char *text)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";
	size_t len = 0;
	for (; text[len]; len++) {
		char c = text[len];
		bool alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
		if (!alnum && !strchr(marks, c))
			return false;
	}
	return len > 0;
}

static bool has_controls(const char *text)
{
	for (; *text; text++)
		if (((uint8_t)*text < 0x20 && *text != '\t') || *text == 0x7f)
			return true;
	return false;
}

static bool target_is_sound(const char *target)
{
	for (; *target; target++)
		if ((uint8_t)*target <= 0x20 || *target == 0x7f)
			return false;
	return true;
}

/* The headers that determine the end of a request, and its host. */
struct framing {
	unsigned lengths, encodings, hosts;
	const char *length, *encoding, *expect;
};

static void collect(struct framing *f, const struct metadatum *header)
{
	if (!strcmp(header->name, "content-length")) {
		f->lengths++;
		f->length = header->value;
	} else if (!strcmp(header->name, "transfer-encoding")) {
		f->encodings++;
		f->encoding = header->value;
	} else if (!strcmp(header->name, "host")) {
		f->hosts++;
	} else if (!strcmp(header->name, "expect")) {
		f->expect = header->value;
	}
}

static bool parse_length(const char *text, int64_t *length)
{
	size_t digits = strspn(text, "0123456789");
	if (!digits || digits > 18 || text[digits])
		return false;
	*length = strtoll(text, NULL, 10);
	return true;
}

static const struct http_fault *judge_framing(struct http_exchange *x, const struct framing *f)
{
	static const struct http_fault both = { 400, "both Content-Length and Transfer-Encoding" };
	static const struct http_fault repeated = { 400, "repeated Content-Length, "
							 "Transfer-Encoding or Host" };
	static const struct http_fault host = { 400, "missing Host header" };
	static const struct http_fault length = { 400, "Content-Length is not a number" };
	static const struct http_fault coding = { 501, "Transfer-Encoding: only chunked is "
						       "supported" };
	static const struct http_fault version = { 400, "Transfer-Encoding is not allowed in "
							"HTTP/1.0" };
	static const struct http_fault expectation = { 417, "Expect: only 100-continue is "
							    "supported" };
	if (f->lengths && f->encodings)
		return &both;
	if (f->lengths > 1 || f->encodings > 1 || f->hosts > 1)
		return &repeated;
	if (!f->hosts && x->version == HTTP_1_1)
		return &host;
	if (f->encodings && strcasecmp(f->encoding, "chunked") != 0)
		return &coding;
	if (f->encodings && x->version == HTTP_1_0)
		return &version;
	bool announced = x->version == HTTP_2 ? x->without_body : !f->encodings;
	x->content_length = announced ? 0 : -1;
	if (f->lengths && !parse_length(f->length, &x->content_length))
		return &length;
	if (f->expect && strcasecmp(f->expect, "100-continue") != 0)
		return &expectation;
	x->expects_continue = f->expect && x->version != HTTP_1_0;
	return NULL;
}

const struct http_fault *http_judge(struct http_exchange *x)
{
	static const struct http_fault long_target = { 414, "the request target is longer than "
							    "8192 bytes" };
	static const struct http_fault target = { 400, "the request target contains a space or "
						       "control character" };
	/* http_exchange.c adds the limits */
	static const struct http_fault many = { 431, "too many headers" };
	static const struct http_fault name = { 400, "invalid header name" };
	static const struct http_fault value = { 400, "a header value contains a control "
						      "character" };
	struct framing framing = { 0 };
	if (x->target_too_long)
		return &long_target;
	if (!target_is_sound(x->target) || (x->query_text && !target_is_sound(x->query_text)))
		return &target;
	if (x->headers_over)
		return &many;
	for (const struct metadatum *h = fields_list(&x->headers); h->name; h++) {
		if (!http_is_token(h->name))
			return &name;
		if (has_controls(h->value))
			return &value;
		collect(&framing, h);
	}
	return judge_framing(x, &framing);
}
