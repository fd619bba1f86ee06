/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/load_balancing_choice.h"

#include "base/hash.h"

uint64_t load_balancing_hash(const void *data, size_t len)
{
	return hash_content(data, len);
}

static uint64_t score(uint64_t key, uint64_t member)
{
	const uint64_t both[] = { key, member };
	return hash_content(both, sizeof both);
}

/* Of equal scores the lower hash wins, so that the order of the candidates does not matter. */
static bool is_better(uint64_t a, uint64_t a_hash, uint64_t b, uint64_t b_hash)
{
	return a > b || (a == b && a_hash < b_hash);
}

static uint32_t choose(const struct load_balancing_candidate *at, size_t count, uint64_t key,
		       bool avoided_too)
{
	uint64_t best = 0, best_hash = 0;
	uint32_t number = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t its = score(key, at[i].hash);
		if (at[i].avoided && !avoided_too)
			continue;
		if (number && !is_better(its, at[i].hash, best, best_hash))
			continue;
		best = its;
		best_hash = at[i].hash;
		number = at[i].number;
	}
	return number;
}

uint32_t load_balancing_choose(const struct load_balancing_candidate *at, size_t count,
			       uint64_t key)
{
	uint32_t number = choose(at, count, key, false);
	return number ? number : choose(at, count, key, true);
}
