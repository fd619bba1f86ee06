/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/packet_attribute.h"

#include "profile/wire.h"

/* opentelemetry-proto 1.11. Sealed bytes contain the keys and values of resources inline. */
enum {
	RESOURCE_PROFILES = 1, /* ExportProfilesServiceRequest */
	RESOURCE = 1,          /* ResourceProfiles */
	ATTRIBUTES = 1,        /* Resource */
	KEY = 1,               /* KeyValue */
	VALUE = 2,
	STRING_VALUE = 1 /* AnyValue */
};

/* The first field of this number. */
static bool find(struct view message, uint32_t number, struct view *found)
{
	struct wire w = wire_of(message);
	struct wire_field field;
	while (wire_next(&w, &field))
		if (field.number == number && field.type == WIRE_LEN) {
			*found = field.view;
			return true;
		}
	return false;
}

bool packet_attribute(const struct packet *packet, const char *key, struct view *value)
{
	struct view resource, name;
	struct wire_field field;
	if (!find(bytes_view(&packet->otlp), RESOURCE_PROFILES, &resource) ||
	    !find(resource, RESOURCE, &resource))
		return false;
	struct wire w = wire_of(resource);
	while (wire_next(&w, &field))
		if (field.number == ATTRIBUTES && field.type == WIRE_LEN &&
		    find(field.view, KEY, &name) && view_is(name, key))
			return find(field.view, VALUE, value) && find(*value, STRING_VALUE, value);
	return false;
}
