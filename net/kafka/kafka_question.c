/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_question.h"

#include <librdkafka/rdkafka.h>
#include <limits.h>

#include "base/memory.h"

struct asking {
	struct kafka_question question;
	rd_kafka_t *rk;
	struct kafka_result result;
	void (*done)(void *argument, struct kafka_result result);
	void *argument;
};

/* An answer that did not come has no reason of its own: that is in the last error of a connection.
 * That no broker can be reached follows from these. */
static int find_reason(rd_kafka_t *rk, int reason)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_get_main(rk);
	rd_kafka_event_t *event;
	while ((event = rd_kafka_queue_poll(queue, 0))) {
		int code = rd_kafka_event_error(event);
		kafka_explain(&code, rd_kafka_event_error_string(event));
		reason = code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ? code : reason;
		rd_kafka_event_destroy(event);
	}
	rd_kafka_queue_destroy(queue);
	return reason;
}

static int ask_about(const struct asking *a, rd_kafka_topic_t *topic)
{
	const struct rd_kafka_metadata *metadata;
	uint64_t ms = a->question.timeout_ns / 1000000;
	rd_kafka_resp_err_t code =
		rd_kafka_metadata(a->rk, 0, topic, &metadata, ms < INT_MAX ? (int)ms : INT_MAX);
	if (code)
		return find_reason(a->rk, code);
	if (metadata->topic_cnt)
		code = metadata->topics[0].err;
	rd_kafka_metadata_destroy(metadata);
	bool lacks = code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	return lacks && a->question.may_lack ? RD_KAFKA_RESP_ERR_NO_ERROR : code;
}

/* On a pool thread. */
static void ask(void *argument)
{
	struct asking *a = argument;
	rd_kafka_topic_t *topic = rd_kafka_topic_new(a->rk, a->question.topic, NULL);
	a->result = kafka_judge(topic ? ask_about(a, topic) : rd_kafka_last_error());
	if (topic)
		rd_kafka_topic_destroy(topic);
	rd_kafka_destroy(a->rk);
}

static void asked(void *argument)
{
	struct asking a = *(struct asking *)argument;
	memory_free(argument);
	a.done(a.argument, a.result);
}

static rd_kafka_t *client_new(const struct kafka_client_config *config)
{
	struct tls_material material;
	struct error err;
	rd_kafka_t *rk = NULL;
	rd_kafka_conf_t *conf = kafka_client_load(config, &material, &err)
					? kafka_client_conf(config, &material, &err)
					: NULL;
	if (conf && kafka_client_set(conf, "allow.auto.create.topics", "false", &err)) {
		rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_ERROR);
		rk = kafka_client_new(RD_KAFKA_PRODUCER, conf, &err);
	} else if (conf) {
		rd_kafka_conf_destroy(conf);
	}
	tls_release(&material);
	return rk;
}

void kafka_question_ask(const struct kafka_question *question,
			void (*done)(void *argument, struct kafka_result result), void *argument)
{
	rd_kafka_t *rk = client_new(question->config);
	if (!rk) {
		done(argument, kafka_judge(RD_KAFKA_RESP_ERR__FAIL));
		return;
	}
	struct asking *a = memory_new(sizeof *a);
	*a = (struct asking){ *question, .rk = rk, .done = done, .argument = argument };
	loop_work(question->loop, ask, asked, a);
}
