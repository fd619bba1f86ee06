/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/letter.h"

#include <stdlib.h>

/* A dead letter as `replay` reads it: two bytes with the length of the reason file, that file, the
 * request. What is accepted is encoded again and read back; what is refused has a reason. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void must(bool condition)
{
	if (!condition)
		abort();
}

static bool read_letter(struct view reason, struct view body, struct letter_content *c)
{
	struct error err;
	error_clear(&err);
	bool ok = letter_parse(reason, c, &err) && bytes_add(&c->record, body.at, body.len) &&
		  letter_open(c, &err);
	must(ok == !err.kind && ok == (c->packet != NULL));
	return ok;
}

static void check(const struct letter_content *c)
{
	struct letter_content again;
	struct bytes reason;
	const struct letter letter = { .packet = c->packet,
				       .origin = c->packet->origin,
				       .destination = "a",
				       .pipeline = "b",
				       .reason = c->reason,
				       .made_for = *c->made_for ? c->made_for : NULL };
	bytes_init(&reason, LETTER_REASON_MAX);
	must(letter_encode(&letter, &reason));
	must(read_letter(bytes_view(&reason), bytes_view(&c->packet->otlp), &again));
	must(!strcmp(again.reason, c->reason) && !strcmp(again.made_for, c->made_for));
	letter_content_fini(&again);
	bytes_fini(&reason);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct letter_content c;
	size_t size = len < 2 ? 0 : (size_t)data[0] | (size_t)data[1] << 8;
	size_t rest = len < 2 ? 0 : len - 2;
	size = size < rest ? size : rest;
	/* Of their exact sizes, so that sanitizers find reads past their ends. */
	uint8_t *reason = malloc(size ? size : 1), *body = malloc(rest > size ? rest - size : 1);
	if (rest) {
		memcpy(reason, data + 2, size);
		memcpy(body, data + 2 + size, rest - size);
	}
	if (read_letter((struct view){ reason, size }, (struct view){ body, rest - size }, &c))
		check(&c);
	letter_content_fini(&c);
	free(reason);
	free(body);
	return 0;
}
