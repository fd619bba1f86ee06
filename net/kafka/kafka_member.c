/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_member.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/kafka/kafka_instance.h"

#define CLOSE_NS UINT64_C(5000000000)
#define POLL_MS 100
#define QUEUED_MESSAGES 1000
#define MESSAGE_MAX 1000000 /* librdkafka's default of message.max.bytes */
#define FETCH_BACKOFF_MS "10"
/* librdkafka closes a connection on a response that is larger. The brokers bound what a message
 * may be. */
#define RECEIVE_MAX 1000000000

/* ---- configuration ---- */

static bool set_group(rd_kafka_conf_t *conf, const struct kafka_consumer_options *o,
		      struct error *err)
{
	return kafka_client_set(conf, "group.id", o->group, err) &&
	       kafka_client_set_some(conf, "group.instance.id", o->instance, err) &&
	       kafka_client_set_some(conf, "client.rack", o->rack, err) &&
	       kafka_client_set(conf, "partition.assignment.strategy", o->strategies, err) &&
	       kafka_client_set(conf, "auto.offset.reset", o->initial_offset, err) &&
	       kafka_client_set_number(conf, "session.timeout.ms", o->session_timeout_ns / 1000000,
				       err) &&
	       kafka_client_set_number(conf, "heartbeat.interval.ms", o->heartbeat_ns / 1000000,
				       err) &&
	       kafka_client_set(conf, "enable.auto.offset.store", "false", err) &&
	       kafka_client_set_number(conf, "auto.commit.interval.ms",
				       o->commit_interval_ns / 1000000, err);
}

static bool set_fetches(rd_kafka_conf_t *conf, const struct kafka_consumer_options *o,
			struct error *err)
{
	int64_t queued = o->fetch_max_bytes / 1024;
	/* message.max.bytes is about producers, but may not exceed fetch.max.bytes. */
	int64_t produced = o->fetch_max_bytes < MESSAGE_MAX ? o->fetch_max_bytes : MESSAGE_MAX;
	return kafka_client_set_number(conf, "fetch.min.bytes", o->fetch_min_bytes, err) &&
	       kafka_client_set_number(conf, "message.max.bytes", produced, err) &&
	       kafka_client_set_number(conf, "fetch.max.bytes", o->fetch_max_bytes, err) &&
	       kafka_client_set_number(conf, "fetch.message.max.bytes",
				       o->partition_fetch_max_bytes, err) &&
	       kafka_client_set_number(conf, "fetch.wait.max.ms", o->fetch_wait_ns / 1000000,
				       err) &&
	       kafka_client_set_number(conf, "queued.max.messages.kbytes", queued ? queued : 1,
				       err) &&
	       kafka_client_set_number(conf, "queued.min.messages", QUEUED_MESSAGES, err) &&
	       kafka_client_set_known(conf, "fetch.queue.backoff.ms", FETCH_BACKOFF_MS, err) &&
	       kafka_client_set_number(conf, "receive.message.max.bytes", RECEIVE_MAX, err) &&
	       kafka_client_set(conf, "check.crcs", "true", err);
}

static bool set_excluded(rd_kafka_conf_t *conf, const struct strings *topics, struct error *err)
{
	if (!topics->count)
		return true;
	char *all = kafka_client_join(topics);
	bool ok = kafka_client_set(conf, "topic.blacklist", all, err);
	memory_free(all);
	return ok;
}

static rd_kafka_t *client_new(const struct kafka_consumer_options *o,
			      const struct tls_material *material, struct error *err)
{
	rd_kafka_conf_t *conf = kafka_client_conf(o->config, material, err);
	if (!conf)
		return NULL;
	rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_FETCH | RD_KAFKA_EVENT_REBALANCE |
					       RD_KAFKA_EVENT_OFFSET_COMMIT | RD_KAFKA_EVENT_ERROR);
	if (set_group(conf, o, err) && set_fetches(conf, o, err) &&
	    set_excluded(conf, o->exclude_topics, err))
		return kafka_instance_new(RD_KAFKA_CONSUMER, conf, err);
	rd_kafka_conf_destroy(conf);
	return NULL;
}

/*
 * When its queue is full, librdkafka looks again after a second (its issue 2879), which bounds the
 * throughput to a queue per second. Since 2.3 the delay is a setting. Before, its threads wait for
 * events, and setting the same credentials again is what wakes them.
 */
void member_fetch(struct member *m)
{
	const struct kafka_sasl_config *sasl = &m->options->config->auth.sasl;
	const char *user = sasl->username ? sasl->username : "";
	const char *password = sasl->password.text ? sasl->password.text : "";
	bool was_full = m->taken_bytes >= (uint64_t)m->options->fetch_max_bytes / 2 ||
			m->taken_messages >= QUEUED_MESSAGES / 2;
	if (!was_full)
		return;
	m->taken_bytes = m->taken_messages = 0;
	rd_kafka_error_destroy(rd_kafka_sasl_set_credentials(m->rk, user, password));
}

bool member_subscribe(const struct member *m)
{
	const struct strings *topics = m->options->topics;
	rd_kafka_topic_partition_list_t *list =
		rd_kafka_topic_partition_list_new((int)topics->count);
	for (size_t i = 0; i < topics->count; i++)
		rd_kafka_topic_partition_list_add(list, topics->at[i], RD_KAFKA_PARTITION_UA);
	bool ok = !rd_kafka_subscribe(m->rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	return ok;
}

/* ---- partitions ---- */

static rd_kafka_topic_partition_list_t *list_of(const struct kafka_partitions *all)
{
	rd_kafka_topic_partition_list_t *list =
		rd_kafka_topic_partition_list_new((int)all->count + 1);
	for (const struct kafka_partition *p = all->first; p; p = p->next)
		rd_kafka_topic_partition_list_add(list, p->topic, p->number);
	return list;
}

void member_set_paused(struct member *m, bool paused)
{
	rd_kafka_topic_partition_list_t *list = list_of(&m->partitions);
	if (list->cnt && paused)
		rd_kafka_pause_partitions(m->rk, list);
	else if (list->cnt)
		rd_kafka_resume_partitions(m->rk, list);
	rd_kafka_topic_partition_list_destroy(list);
}

static bool is_cooperative(const struct member *m)
{
	const char *protocol = rd_kafka_rebalance_protocol(m->rk);
	return protocol && !strcmp(protocol, "COOPERATIVE");
}

static void drop_error(rd_kafka_error_t *error)
{
	if (error)
		rd_kafka_error_destroy(error);
}

void member_assign(struct member *m, const rd_kafka_topic_partition_list_t *list)
{
	if (is_cooperative(m))
		drop_error(rd_kafka_incremental_assign(m->rk, list));
	else
		rd_kafka_assign(m->rk, list);
}

void member_unassign(struct member *m, const rd_kafka_topic_partition_list_t *list)
{
	if (list && is_cooperative(m))
		drop_error(rd_kafka_incremental_unassign(m->rk, list));
	else
		rd_kafka_assign(m->rk, NULL);
}

void member_store_offset(struct member *m, const struct kafka_partition *p)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(list, p->topic, p->number)->offset = p->committable;
	rd_kafka_offsets_store(m->rk, list); /* may fail: the partition can be lost already */
	rd_kafka_topic_partition_list_destroy(list);
}

/* ---- life ---- */

struct member *member_new(const struct kafka_consumer_options *options,
			  const struct tls_material *material,
			  void (*ready)(void *argument, int fd, unsigned events), struct error *err)
{
	struct member *m = memory_new(sizeof *m);
	const struct kafka_events_options events = { .loop = options->loop,
						     .log = options->log,
						     .config = options->config,
						     .ready = ready,
						     .argument = m };
	m->options = options;
	m->rk = client_new(options, material, err);
	if (!m->rk) {
		memory_free(m);
		return NULL;
	}
	rd_kafka_poll_set_consumer(m->rk);
	bool ok = member_subscribe(m) ||
		  error_set(err, ERROR_CONFIG, "librdkafka does not accept the topics");
	if (ok && kafka_events_open(&m->events, rd_kafka_queue_get_consumer(m->rk), &events, err))
		return m;
	kafka_instance_free(m->rk);
	memory_free(m);
	return NULL;
}

void member_close(struct member *m)
{
	uint64_t end = clock_now() + CLOSE_NS;
	kafka_events_leave(&m->events);
	if (m->revocation)
		rd_kafka_event_destroy(m->revocation);
	drop_error(rd_kafka_consumer_close_queue(m->rk, m->events.queue));
	while (!rd_kafka_consumer_closed(m->rk) && clock_now() < end) {
		rd_kafka_event_t *event = rd_kafka_queue_poll(m->events.queue, POLL_MS);
		if (event && rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE)
			member_unassign(m, rd_kafka_event_topic_partition_list(event));
		rd_kafka_event_destroy(event);
	}
	kafka_events_close(&m->events);
	kafka_instance_free(m->rk);
	while (m->partitions.first)
		kafka_partitions_remove(&m->partitions, m->partitions.first);
	memory_free(m);
}
