/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_IDEMPOTENCY_KEY_H
#define NET_IDEMPOTENCY_KEY_H

#include "base/bytes.h"
#include "base/hash.h"
#include "profile/request.h"

/*
 * The request header Idempotency-Key (IETF draft-ietf-httpapi-idempotency-key-header), also as gRPC
 * metadata: requests with the same key are attempts to send the same data. The draft's value is a
 * string in double quotes. Keys without quotes are common, and are read too.
 *
 * What is read has 16 to 64 letters, digits, "-" and "_": UUIDs and hexadecimal numbers.
 */
#define IDEMPOTENCY_KEY_HEADER "idempotency-key"

enum {
	IDEMPOTENCY_KEY_MIN = 16,
	IDEMPOTENCY_KEY_MAX = 64,
	IDEMPOTENCY_KEY_SIZE = 35 /* of idempotency_key_write, with the NUL */
};

enum idempotency_key { IDEMPOTENCY_KEY_NONE, IDEMPOTENCY_KEY_INVALID, IDEMPOTENCY_KEY_VALID };

/* 32 lower-case hexadecimal digits in double quotes. */
void idempotency_key_write(struct hash128 id, char out[IDEMPOTENCY_KEY_SIZE]);

/* The key among these headers (ends with name == NULL; may be NULL). The view is one of a header's
 * value, without quotes. More than one such header is invalid. */
enum idempotency_key idempotency_key_find(const struct metadatum *headers, struct view *key);

#endif
