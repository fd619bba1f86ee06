/* SPDX-License-Identifier: Apache-2.0 */
#include "connectors/routing_condition.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* A condition of `routing` is refused with the place of the error, or decides every resource; its
 * opposite decides the other way. The first byte selects context and form. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void fill(struct profiles *p)
{
	static const char *const keys[] = { "a", "b", "" };
	profiles_reset(p, NULL, (struct view){ 0 }, (size_t)1 << 20);
	struct list list = profiles_list_copy(p, (struct list){ 0 }, 3);
	list.count = 3;
	for (uint32_t i = 0; i < 3; i++) {
		struct attribute a = { .key = profiles_text_new(p, keys[i], strlen(keys[i])),
				       .type = i ? VALUE_INT : VALUE_STRING };
		if (i)
			attribute_set_integer(&a, i);
		else
			a.string = a.key;
		p->indices.at[list.first + i] = profiles_attribute_new(p, a);
	}
	if (!profiles_room(p, &p->resources, 1))
		abort();
	p->resources.at[p->resources.count++] = (struct resource){ .attributes = list };
}

static bool decide(const struct routing_condition *c, struct profiles *p)
{
	return routing_condition_holds(c, p, &p->resources.at[0]);
}

static void check(const char *text, enum routing_context context, struct profiles *p)
{
	struct error err = { 0 };
	struct routing_condition *c = routing_condition_parse(text, false, context, &err);
	if (!c != (err.kind == ERROR_CONFIG))
		abort();
	if (!c)
		return;
	char *negated = memory_format("not (%s)", text);
	struct routing_condition *other = routing_condition_parse(negated, false, context, &err);
	if (other && decide(other, p) == decide(c, p))
		abort();
	memory_free(negated);
	routing_condition_free(&other);
	routing_condition_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct profiles p = { 0 };
	struct error err = { 0 };
	if (!len)
		return 0;
	char *text = memory_text_of((const char *)data + 1, len - 1);
	fill(&p);
	if (data[0] & 1) {
		struct routing_condition *c =
			routing_condition_parse(text, true, ROUTING_RESOURCE, &err);
		routing_condition_free(&c);
	} else {
		check(text, data[0] & 2 ? ROUTING_REQUEST : ROUTING_RESOURCE, &p);
	}
	memory_free(text);
	profiles_fini(&p);
	return 0;
}
