/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_KAFKA_ROUTE_H
#define EXPORTERS_KAFKA_ROUTE_H

#include <pthread.h>

#include "config/table.h"
#include "profile/packet.h"

/* Which topic and which key a packet gets: from metadata of its requests, an attribute of its
 * resource, or its tenant, in this order. */
struct kafka_profiles_config {
	char *topic;
	struct choice encoding;
	char *topic_from_metadata_key, *message_key_from_metadata_key;
	char *message_key_from_attribute;
	bool topic_from_tenant, message_key_from_tenant;
	int64_t max_topics;
};

#define KAFKA_TOPIC_ROOM 250

struct kafka_route {
	char topic[KAFKA_TOPIC_ROOM];
	struct view key; /* without an address: none; of the packet */
};

/* The topics that senders have named, so that they cannot name any number of them. */
struct kafka_topics {
	pthread_mutex_t lock;
	char **at;
	size_t count;
};

void kafka_topics_init(struct kafka_topics *topics);
void kafka_topics_fini(struct kafka_topics *topics);

/* Needs every packet one resource? Else attributes would not decide. */
bool kafka_route_is_by_resource(const struct kafka_profiles_config *config,
				const char *topic_from_attribute);
/* NULL, or why the packet cannot be sent, as a fixed word. topics: NULL: any number of them. [any
 * thread] */
const char *kafka_route_find(const struct kafka_profiles_config *config,
			     const char *topic_from_attribute, struct kafka_topics *topics,
			     const struct packet *packet, struct kafka_route *route);

#endif
