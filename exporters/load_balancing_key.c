/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/load_balancing_key.h"

#include <string.h>

#include "exporters/load_balancing_choice.h"
#include "profile/value_text.h"

static const struct attribute *find(const struct profiles *p, const struct resource *r,
				    const char *key)
{
	for (uint32_t i = 0; i < r->attributes.count; i++) {
		const struct attribute *a =
			&p->attributes.at[p->indices.at[r->attributes.first + i]];
		if (string_is(p, a->key, key))
			return a;
	}
	return NULL;
}

/* Without an attribute, or with a value that is larger than the packet may be, nothing. */
static uint64_t hash_of_value(const struct profiles *p, const struct attribute *a)
{
	char room[VALUE_TEXT_ROOM];
	struct view text;
	struct bytes all;
	if (!a)
		return 0;
	if (value_text_scalar(p, a, room, &text))
		return load_balancing_hash(text.at, text.len);
	bytes_init(&all, INT32_MAX);
	value_text_add(p, a, &all);
	uint64_t hash = load_balancing_hash(all.at, all.len);
	bytes_fini(&all);
	return hash;
}

uint64_t load_balancing_key_of_resource(const struct profiles *p, const struct resource *r,
					const struct strings *attributes)
{
	uint64_t key = 0;
	for (size_t i = 0; i < attributes->count; i++) {
		const uint64_t both[] = { key, hash_of_value(p, find(p, r, attributes->at[i])) };
		key = load_balancing_hash(both, sizeof both);
	}
	return key;
}

uint64_t load_balancing_key_of_tenant(const struct packet *packet)
{
	const char *tenant = packet->origin ? packet->origin->tenant : NULL;
	return tenant ? load_balancing_hash(tenant, strlen(tenant)) : 0;
}
