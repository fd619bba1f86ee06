/* SPDX-License-Identifier: Apache-2.0 */
#include "net/peer_key.h"

#include <arpa/inet.h>
#include <string.h>

enum { IPV6_PREFIX = 8 };

/* What is hashed begins with what it is, so that no identity is taken for an address. */
static struct hash128 key_of(char kind, const void *data, size_t len)
{
	uint8_t text[257] = { (uint8_t)kind };
	struct hash128 whole;
	if (len >= sizeof text) {
		whole = hash_bytes_128(data, len);
		data = &whole;
		len = sizeof whole;
	}
	memcpy(text + 1, data, len);
	return hash_bytes_128(text, 1 + len);
}

struct hash128 peer_key_of_address(const char *address)
{
	uint8_t binary[sizeof(struct in6_addr)];
	if (!address)
		return key_of('4', "", 0);
	if (inet_pton(AF_INET6, address, binary) == 1)
		return key_of('6', binary, IPV6_PREFIX);
	return key_of('4', address, strlen(address));
}

struct hash128 peer_key_of_identity(const char *identity)
{
	return key_of('i', identity, strlen(identity));
}
