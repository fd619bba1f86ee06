/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_KAFKA_KAFKA_QUESTION_H
#define NET_KAFKA_KAFKA_QUESTION_H

#include "net/kafka/kafka_client.h"
#include "net/loop.h"

/*
 * Asks a cluster about a topic, without sending a message: can it be reached, does it accept the
 * credentials, and is the topic there? It has a client of its own, with the keys of all clients,
 * that creates no topic.
 */
struct kafka_question {
	struct loop *loop;
	const struct kafka_client_config *config;
	const char *topic;
	bool may_lack; /* a topic that does not exist is no error */
	uint64_t timeout_ns;
};

/* Config and topic are borrowed until the answer. KAFKA_OK: messages can be sent there. Calls done
 * once, later. [loop thread] */
void kafka_question_ask(const struct kafka_question *question,
			void (*done)(void *argument, struct kafka_result result), void *argument);

#endif
