/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_question.h"

#include <limits.h>

#include "base/memory.h"
#include "base/thread.h"
#include "net/kafka/kafka_instance.h"

struct asking {
	struct kafka_question question;
	rd_kafka_t *rk;
	pthread_t thread;
	struct kafka_result result;
	void (*done)(void *argument, struct kafka_result result);
	void *argument;
};

/* An answer that did not come has no reason of its own: that is in the last error of a connection.
 * That no broker can be reached follows from these. */
static struct kafka_result find_reason(const struct asking *a, int code)
{
	struct kafka_result reason = kafka_judge(code);
	rd_kafka_queue_t *queue = rd_kafka_queue_get_main(a->rk);
	rd_kafka_event_t *event;
	while ((event = rd_kafka_queue_poll(queue, 0))) {
		struct kafka_result found = kafka_explain(rd_kafka_event_error(event),
							  rd_kafka_event_error_string(event),
							  kafka_instance_tls_cause(a->rk));
		reason = found.code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ? found : reason;
		rd_kafka_event_destroy(event);
	}
	rd_kafka_queue_destroy(queue);
	return reason;
}

static struct kafka_result ask_about(const struct asking *a, rd_kafka_topic_t *topic)
{
	const struct rd_kafka_metadata *metadata;
	int64_t ms = kafka_client_ms((int64_t)a->question.timeout_ns);
	rd_kafka_resp_err_t code =
		rd_kafka_metadata(a->rk, 0, topic, &metadata, ms < INT_MAX ? (int)ms : INT_MAX);
	if (code)
		return find_reason(a, code);
	if (metadata->topic_cnt)
		code = metadata->topics[0].err;
	rd_kafka_metadata_destroy(metadata);
	bool lacks = code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	return kafka_judge(lacks && a->question.may_lack ? RD_KAFKA_RESP_ERR_NO_ERROR : code);
}

/* On the loop thread. */
static void asked(void *argument)
{
	struct asking *a = argument;
	if (a->rk)
		pthread_join(a->thread, NULL);
	a->done(a->argument, a->result);
	memory_free(a);
}

/* On a thread of its own: librdkafka waits for the answer, and the threads of the pool are few. */
static void *ask(void *argument)
{
	struct asking *a = argument;
	rd_kafka_topic_t *topic = rd_kafka_topic_new(a->rk, a->question.topic, NULL);
	a->result = topic ? ask_about(a, topic) : kafka_judge(rd_kafka_last_error());
	if (topic)
		rd_kafka_topic_destroy(topic);
	kafka_instance_free(a->rk);
	loop_post(a->question.loop, asked, a);
	return NULL;
}

static bool open_client(struct asking *a)
{
	const struct kafka_client_config *config = a->question.config;
	struct tls_material material;
	struct error err;
	rd_kafka_conf_t *conf = kafka_client_load(config, &material, &err)
					? kafka_client_conf(config, &material, &err)
					: NULL;
	if (conf && kafka_client_set(conf, "allow.auto.create.topics", "false", &err)) {
		rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_ERROR);
		a->rk = kafka_instance_new(RD_KAFKA_PRODUCER, conf, &err);
	} else if (conf) {
		rd_kafka_conf_destroy(conf);
	}
	tls_release(&material);
	return a->rk != NULL;
}

void kafka_question_ask(const struct kafka_question *question,
			void (*done)(void *argument, struct kafka_result result), void *argument)
{
	struct asking *a = memory_new(sizeof *a);
	a->question = *question;
	a->done = done;
	a->argument = argument;
	a->result = kafka_judge(RD_KAFKA_RESP_ERR__FAIL);
	if (open_client(a) && thread_start(&a->thread, ask, a, NULL))
		return;
	if (a->rk)
		kafka_instance_free(a->rk);
	a->rk = NULL;
	loop_post(question->loop, asked, a);
}
