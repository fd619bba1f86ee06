/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_KAFKA_KAFKA_INSTANCE_H
#define NET_KAFKA_KAFKA_INSTANCE_H

#include <librdkafka/rdkafka.h>

#include "net/kafka/kafka_client.h"

/*
 * The life of one client of librdkafka. For this folder only.
 *
 * librdkafka's threads resolve the names of brokers with getaddrinfo, which may hang and cannot be
 * cancelled, and the end of a client waits for its threads.
 */

/* type: RD_KAFKA_PRODUCER or RD_KAFKA_CONSUMER. Takes conf, also on failure: NULL, err says why. */
rd_kafka_t *kafka_instance_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, struct error *err);
/* Why TLS has failed, for kafka_explain; CAUSE_NONE: it has not. [any thread] */
enum cause_kind kafka_instance_tls_cause(rd_kafka_t *rk);
/* Ends it, of a consumer without leaving its group. No callback runs and nothing of the caller is
 * used any more when it returns. If its threads take long, they end by themselves. [pool thread] */
void kafka_instance_free(rd_kafka_t *rk);

#endif
