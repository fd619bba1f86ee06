/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Kafka for tests, by librdkafka's mock cluster.
 *
 *	kafka_tool broker           prints the address of a cluster, and obeys lines on stdin
 *	kafka_tool read ADDRESS PARTITIONS TOPIC...   prints each message as a line of JSON
 *	kafka_tool write ADDRESS    sends a message for each line on stdin: TOPIC PARTITION VALUE
 *				    [NAME VALUE]..., the partition -1 for any, all else after it in
 *				    hex ("-" for nothing); prints "done" when they are delivered
 *	kafka_tool committed ADDRESS GROUP PARTITIONS TOPIC   prints the offsets of a group
 *	kafka_tool topics ADDRESS   prints the names of all topics
 *
 * The broker ends at the end of stdin, the reader at SIGTERM. Commands: "errors API COUNT CODE"
 * (the next requests of this kind fail), "down 1", "up 1", "delay MS" (each response), "refuse
 * TOPIC CODE". Each is answered with "done".
 */
static rd_kafka_t *client(rd_kafka_type_t type, const char *const properties[][2])
{
	char text[512];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	for (size_t i = 0; properties[i][0]; i++)
		if (rd_kafka_conf_set(conf, properties[i][0], properties[i][1], text,
				      sizeof text) != RD_KAFKA_CONF_OK) {
			fprintf(stderr, "%s\n", text);
			exit(1);
		}
	rd_kafka_t *rk = rd_kafka_new(type, conf, text, sizeof text);
	if (!rk) {
		fprintf(stderr, "%s\n", text);
		exit(1);
	}
	return rk;
}

/* ---- broker ---- */

static void obey(rd_kafka_mock_cluster_t *cluster, const char *line)
{
	char topic[250];
	int api, count, code, broker, delay;
	if (sscanf(line, "errors %d %d %d", &api, &count, &code) == 3)
		while (count--)
			rd_kafka_mock_push_request_errors(cluster, (int16_t)api, 1,
							  (rd_kafka_resp_err_t)code);
	else if (sscanf(line, "down %d", &broker) == 1)
		rd_kafka_mock_broker_set_down(cluster, broker);
	else if (sscanf(line, "up %d", &broker) == 1)
		rd_kafka_mock_broker_set_up(cluster, broker);
	else if (sscanf(line, "delay %d", &delay) == 1)
		rd_kafka_mock_broker_set_rtt(cluster, 1, delay);
	else if (sscanf(line, "refuse %249s %d", topic, &code) == 2)
		rd_kafka_mock_topic_set_error(cluster, topic, (rd_kafka_resp_err_t)code);
	else
		exit(2);
	puts("done");
	fflush(stdout);
}

static int broker(void)
{
	static const char *const properties[][2] = { { "bootstrap.servers", "127.0.0.1:1" },
						     { "log_level", "0" },
						     { NULL, NULL } };
	char line[512];
	rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, properties);
	rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(rk, 1);
	if (!cluster)
		return 1;
	puts(rd_kafka_mock_cluster_bootstraps(cluster));
	fflush(stdout);
	while (fgets(line, sizeof line, stdin))
		obey(cluster, line);
	rd_kafka_mock_cluster_destroy(cluster);
	rd_kafka_destroy(rk);
	return 0;
}

/* ---- read ---- */

static void put_hex(const void *data, size_t len)
{
	const unsigned char *at = data;
	putchar('"');
	for (size_t i = 0; i < len; i++)
		printf("%02x", at[i]);
	putchar('"');
}

static void put_headers(const rd_kafka_message_t *m)
{
	rd_kafka_headers_t *headers;
	const char *name;
	const void *value;
	size_t len;
	printf(",\"headers\":[");
	if (!rd_kafka_message_headers(m, &headers))
		for (size_t i = 0; !rd_kafka_header_get_all(headers, i, &name, &value, &len); i++) {
			printf(i ? ",[" : "[");
			put_hex(name, strlen(name));
			putchar(',');
			put_hex(value, len);
			putchar(']');
		}
	putchar(']');
}

static void put_message(const rd_kafka_message_t *m)
{
	printf("{\"topic\":\"%s\",\"partition\":%" PRId32 ",\"offset\":%" PRId64 ",\"key\":",
	       rd_kafka_topic_name(m->rkt), m->partition, m->offset);
	if (m->key)
		put_hex(m->key, m->key_len);
	else
		printf("null");
	put_headers(m);
	printf(",\"value\":");
	put_hex(m->payload, m->len);
	puts("}");
	fflush(stdout);
}

static void stop(int number)
{
	_exit(number == SIGTERM ? 0 : 1);
}

static _Noreturn void consume(const char *address, int partitions, char **topics)
{
	const char *const properties[][2] = { { "bootstrap.servers", address },
					      { "group.id", "reader" },
					      { "auto.offset.reset", "earliest" },
					      { "enable.auto.commit", "false" },
					      { "fetch.message.max.bytes", "10000000" },
					      { "allow.auto.create.topics", "true" },
					      { "log_level", "0" },
					      { NULL, NULL } };
	rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, properties);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
	signal(SIGTERM, stop);
	for (; *topics; topics++)
		for (int i = 0; i < partitions; i++)
			rd_kafka_topic_partition_list_add(list, *topics, i)->offset =
				RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_poll_set_consumer(rk);
	rd_kafka_assign(rk, list);
	for (;;) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 1000);
		if (m && !m->err)
			put_message(m);
		if (m)
			rd_kafka_message_destroy(m);
	}
}

/* ---- write ---- */

static int digit(char c)
{
	return c >= 'a' ? c - 'a' + 10 : c - '0';
}

/* In place; its length. */
static size_t unhex(char *text)
{
	size_t len = strcmp(text, "-") ? strlen(text) / 2 : 0;
	for (size_t i = 0; i < len; i++)
		text[i] = (char)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
	text[len] = '\0';
	return len;
}

static rd_kafka_headers_t *headers_in(char **rest)
{
	rd_kafka_headers_t *headers = rd_kafka_headers_new(4);
	char *name, *value;
	while ((name = strtok_r(NULL, " \n", rest)) && (value = strtok_r(NULL, " \n", rest))) {
		unhex(name);
		size_t len = unhex(value);
		rd_kafka_header_add(headers, name, -1, value, (ssize_t)len);
	}
	return headers;
}

static void produce(rd_kafka_t *rk, char *line)
{
	char *rest, *topic = strtok_r(line, " \n", &rest);
	int partition = (int)strtol(strtok_r(NULL, " \n", &rest), NULL, 10);
	char *value = strtok_r(NULL, " \n", &rest);
	size_t len = unhex(value);
	rd_kafka_headers_t *headers = headers_in(&rest);
	rd_kafka_resp_err_t code =
		rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
				  RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
				  RD_KAFKA_V_VALUE(value, len), RD_KAFKA_V_HEADERS(headers),
				  RD_KAFKA_V_END);
	if (code) {
		fprintf(stderr, "%s\n", rd_kafka_err2str(code));
		exit(1);
	}
}

static int write_all(const char *address)
{
	const char *const properties[][2] = { { "bootstrap.servers", address },
					      { "enable.idempotence", "true" },
					      { "message.max.bytes", "100000000" },
					      { "linger.ms", "0" },
					      { "log_level", "0" },
					      { NULL, NULL } };
	rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, properties);
	char *line = NULL;
	size_t room = 0;
	while (getline(&line, &room, stdin) > 0) {
		produce(rk, line);
		rd_kafka_flush(rk, 30000);
		puts(rd_kafka_outq_len(rk) ? "failed" : "done");
		fflush(stdout);
	}
	free(line);
	rd_kafka_destroy(rk);
	return 0;
}

/* ---- committed ---- */

static int committed(const char *address, const char *group, int partitions, const char *topic)
{
	const char *const properties[][2] = { { "bootstrap.servers", address },
					      { "group.id", group },
					      { "log_level", "0" },
					      { NULL, NULL } };
	rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, properties);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
	for (int i = 0; i < partitions; i++)
		rd_kafka_topic_partition_list_add(list, topic, i);
	rd_kafka_resp_err_t code = rd_kafka_committed(rk, list, 10000);
	for (int i = 0; i < partitions && !code; i++)
		printf("%" PRId64 "\n", list->elems[i].offset);
	rd_kafka_topic_partition_list_destroy(list);
	rd_kafka_destroy(rk);
	return code != 0;
}

/* ---- topics ---- */

static int topics(const char *address)
{
	const char *const properties[][2] = { { "bootstrap.servers", address },
					      { "log_level", "0" },
					      { NULL, NULL } };
	const struct rd_kafka_metadata *metadata;
	rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, properties);
	rd_kafka_resp_err_t code = rd_kafka_metadata(rk, 1, NULL, &metadata, 10000);
	for (int i = 0; !code && i < metadata->topic_cnt; i++)
		puts(metadata->topics[i].topic);
	if (!code)
		rd_kafka_metadata_destroy(metadata);
	rd_kafka_destroy(rk);
	return code != 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "broker"))
		return broker();
	if (argc > 4 && !strcmp(argv[1], "read"))
		consume(argv[2], (int)strtol(argv[3], NULL, 10), argv + 4);
	if (argc == 3 && !strcmp(argv[1], "write"))
		return write_all(argv[2]);
	if (argc == 6 && !strcmp(argv[1], "committed"))
		return committed(argv[2], argv[3], (int)strtol(argv[4], NULL, 10), argv[5]);
	if (argc == 3 && !strcmp(argv[1], "topics"))
		return topics(argv[2]);
	fprintf(stderr, "usage: kafka_tool broker | read ADDRESS PARTITIONS TOPIC... | write "
			"ADDRESS | committed ADDRESS GROUP PARTITIONS TOPIC | topics ADDRESS\n");
	return 2;
}
