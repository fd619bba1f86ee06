/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/kafka_route.h"

#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "net/kafka/kafka_client.h"
#include "profile/packet_attribute.h"

/* ---- sources ---- */

static bool given(const char *text)
{
	return text && *text;
}

static struct view metadata(const struct packet *packet, const char *name)
{
	const struct metadatum *m = packet->origin ? packet->origin->metadata : NULL;
	for (; given(name) && m && m->name; m++)
		if (!strcasecmp(m->name, name) && m->value)
			return view_of(m->value);
	return (struct view){ 0 };
}

static struct view tenant(const struct packet *packet)
{
	const char *name = packet->origin ? packet->origin->tenant : NULL;
	return given(name) ? view_of(name) : (struct view){ 0 };
}

static struct view attribute(const struct packet *packet, const char *key)
{
	struct view value;
	return given(key) && packet_attribute(packet, key, &value) ? value : (struct view){ 0 };
}

/* ---- topics ---- */

void kafka_topics_init(struct kafka_topics *topics)
{
	*topics = (struct kafka_topics){ 0 };
	pthread_mutex_init(&topics->lock, NULL);
}

void kafka_topics_fini(struct kafka_topics *topics)
{
	for (size_t i = 0; i < topics->count; i++)
		memory_free(topics->at[i]);
	memory_free(topics->at);
	pthread_mutex_destroy(&topics->lock);
}

static bool admit(struct kafka_topics *t, const char *name, size_t max)
{
	bool known = false;
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->count && !known; i++)
		known = !strcmp(t->at[i], name);
	if (!known && t->count < max) {
		t->at = memory_resize(t->at, (t->count + 1) * sizeof *t->at);
		t->at[t->count++] = memory_text(name);
		known = true;
	}
	pthread_mutex_unlock(&t->lock);
	return known;
}

/* ---- the route ---- */

bool kafka_route_is_by_resource(const struct kafka_profiles_config *c,
				const char *topic_from_attribute)
{
	return given(topic_from_attribute) || given(c->message_key_from_attribute);
}

static struct view first(struct view a, struct view b, struct view c)
{
	return a.len ? a : b.len ? b : c;
}

const char *kafka_route_find(const struct kafka_profiles_config *c,
			     const char *topic_from_attribute, struct kafka_topics *topics,
			     const struct packet *packet, struct kafka_route *route)
{
	struct view none = { 0 };
	struct view topic = first(metadata(packet, c->topic_from_metadata_key),
				  attribute(packet, topic_from_attribute),
				  c->topic_from_tenant ? tenant(packet) : none);
	route->key = first(metadata(packet, c->message_key_from_metadata_key),
			   attribute(packet, c->message_key_from_attribute),
			   c->message_key_from_tenant ? tenant(packet) : none);
	bool named = topic.len > 0;
	if (!named)
		topic = view_of(c->topic);
	if (!kafka_topic_ok(topic))
		return "invalid_topic";
	memcpy(route->topic, topic.at, topic.len);
	route->topic[topic.len] = '\0';
	return !named || !topics || admit(topics, route->topic, (size_t)c->max_topics)
		       ? NULL
		       : "too_many_topics";
}
