/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/kafka_config.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/intake/otlp_documents.h"

static const char *const encodings[] = { "otlp_proto", "otlp_json", "pprof", NULL };
static const char *const strategies[] = { "cooperative-sticky", "range", "roundrobin", NULL };

/* ---- checks ---- */

static bool is_pattern(const char *topic)
{
	return *topic == '^';
}

static void check_pattern(const char *key, size_t index, const char *pattern, struct faults *faults)
{
	regex_t compiled;
	if (!strchr(pattern, ',') && !regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB))
		regfree(&compiled);
	else
		faults_add(faults,
			   "%s[%zu]: must be a POSIX extended regular expression without commas",
			   key, index);
}

static void check_topics(const void *config, struct faults *faults)
{
	const struct kafka_topics_config *c = config;
	bool any_pattern = false;
	if (!c->topics.count)
		faults_add(faults, "topics must be specified");
	for (size_t i = 0; i < c->topics.count; i++) {
		bool pattern = is_pattern(c->topics.at[i]);
		any_pattern |= pattern;
		if (pattern)
			check_pattern("topics", i, c->topics.at[i], faults);
		else if (!kafka_topic_ok(view_of(c->topics.at[i])))
			faults_add(faults,
				   "topics[%zu]: must be 1 to 249 letters, digits, '.', '_' "
				   "and '-', or a regular expression that begins with '^'",
				   i);
	}
	if (c->exclude_topics.count && !any_pattern)
		faults_relate(faults, "topics",
			      "exclude_topics: needs a regular expression in topics");
	for (size_t i = 0; i < c->exclude_topics.count; i++)
		check_pattern("exclude_topics", i, c->exclude_topics.at[i], faults);
}

static void check_extraction(const void *config, struct faults *faults)
{
	const struct kafka_extraction_config *c = config;
	if (c->extract_headers && !c->headers.count)
		faults_add(faults, "headers must be specified with extract_headers");
}

static void check_partitions(const void *config, struct faults *faults)
{
	const struct kafka_partitions_config *c = config;
	if (c->independent)
		faults_add(faults, "independent: must be false; a message that is refused for now "
				   "pauses all partitions");
}

static bool is_strategy(const char *name)
{
	size_t i = 0;
	while (strategies[i] && strcmp(strategies[i], name))
		i++;
	return strategies[i] != NULL;
}

static void check_strategies(const struct strings *list, struct faults *faults)
{
	bool cooperative = false;
	for (size_t i = 0; i < list->count; i++) {
		cooperative |= !strcmp(list->at[i], strategies[0]);
		if (!is_strategy(list->at[i]))
			faults_add(faults,
				   "group_rebalance_strategies[%zu]: must be cooperative-sticky, "
				   "range or roundrobin",
				   i);
	}
	if (!list->count || list->count > 2 || (cooperative && list->count > 1))
		faults_add(faults, "group_rebalance_strategies: must be [cooperative-sticky], or "
				   "range, roundrobin or both");
}

/* From 1 s to 5 min: librdkafka's max.poll.interval.ms is 5 min. */
static void check_times(const struct kafka_receiver_config *c, struct faults *faults)
{
	if (c->session_timeout.ns < INT64_C(1000000000) ||
	    c->session_timeout.ns > INT64_C(300000000000))
		faults_add(faults, "session_timeout: must be from 1s to 5m");
	if (c->heartbeat_interval.ns < 1000000 || c->heartbeat_interval.ns >= c->session_timeout.ns)
		faults_relate(faults, "session_timeout",
			      "heartbeat_interval: must be at least 1ms, and less than "
			      "session_timeout");
	if (c->max_fetch_wait.ns < 0 || c->max_fetch_wait.ns > INT64_C(300000000000))
		faults_add(faults, "max_fetch_wait: must be from 0s to 5m");
	if (c->autocommit.interval.ns < 1000000 ||
	    c->autocommit.interval.ns > INT64_C(86400000000000))
		faults_add(faults, "autocommit::interval: must be from 1ms to 24h");
}

static void check(const void *config, struct faults *faults)
{
	const struct kafka_receiver_config *c = config;
	if (!c->group_id || !*c->group_id)
		faults_add(faults, "group_id must be specified");
	if (strcmp(c->initial_offset, "earliest") && strcmp(c->initial_offset, "latest"))
		faults_add(faults, "initial_offset: must be earliest or latest");
	if (!c->autocommit.enable)
		faults_add(faults, "autocommit::enable: must be true; offsets are committed at "
				   "autocommit::interval, up to what was acknowledged");
	check_times(c, faults);
	check_strategies(&c->group_rebalance_strategies, faults);
	kafka_client_check(&c->client, faults);
}

/* ---- keys ---- */

#define ROW(type, member, ...) CONFIG_ROW(struct type, member, .key = #member, __VA_ARGS__)
#define OTHER_SIGNAL .inert = true, .help = "Only profiles are read."

static const struct config_row topics_rows[] = {
	ROW(kafka_topics_config, topics, .def = "[otlp_profiles]",
	    .help = "Topics to read. What begins with `^` is a POSIX extended regular expression; "
		    "new topics that match are found at `metadata::refresh_interval`."),
	ROW(kafka_topics_config, exclude_topics,
	    .help = "Regular expressions of topics that are not read. Needs a regular expression "
		    "in `topics`."),
	ROW(kafka_topics_config, encoding, .def = "otlp_proto", .choices = encodings,
	    .help = "What a message is: `otlp_proto` or `otlp_json` (an OTLP request of any "
		    "generation), or `pprof` (one pprof profile, compressed or not; not an "
		    "encoding of the Collector)."),
	ROW(kafka_topics_config, schema, .def = "auto", .choices = otlp_schemas,
	    .help = "The generation of OTLP to assume for messages whose content does not show "
		    "it; `auto`: the one that earlier messages have shown. Not a key of the "
		    "Collector."),
	{ 0 }
};
static const struct config_table topics_table = { sizeof(struct kafka_topics_config), topics_rows,
						  check_topics };

static const struct config_row autocommit_rows[] = {
	ROW(kafka_autocommit_config, enable, .def = "true", .help = "Must be `true`."),
	ROW(kafka_autocommit_config, interval, .def = "1s",
	    .help = "How often offsets are committed. They are also committed when partitions are "
		    "taken away, and at shutdown."),
	{ 0 }
};
static const struct config_table autocommit_table = { sizeof(struct kafka_autocommit_config),
						      autocommit_rows };

static const struct config_row marking_rows[] = {
	ROW(kafka_marking_config, after, .def = "true", .inert = true,
	    .help = "An offset is committed only after the message was acknowledged, as `ack` "
		    "says. The Collector's default is `false`, which loses messages when the "
		    "process ends."),
	ROW(kafka_marking_config, on_error, .def = "false",
	    .help = "Gives up a message that was postponed for longer than "
		    "`error_backoff::max_elapsed_time`: it is lost, and counted as failed."),
	ROW(kafka_marking_config, on_permanent_error, .def = "true",
	    .help = "Skips a message that can never be accepted, such as one that cannot be "
		    "decoded: it is logged and counted as failed. `false`: the receiver stops "
		    "there, and tries again and again. The Collector's default is the value of "
		    "`on_error`."),
	{ 0 }
};
static const struct config_table marking_table = { sizeof(struct kafka_marking_config),
						   marking_rows };

static const struct config_row extraction_rows[] = {
	ROW(kafka_extraction_config, extract_headers, .def = "false",
	    .help = "Adds the headers below to each resource, as attributes `kafka.header.NAME`."),
	ROW(kafka_extraction_config, headers,
	    .help = "Names of headers, in any case. Names of attributes are in lower case."),
	{ 0 }
};
static const struct config_table extraction_table = { sizeof(struct kafka_extraction_config),
						      extraction_rows, check_extraction };

static const struct config_row partitions_rows[] = {
	ROW(kafka_partitions_config, independent, .def = "false",
	    .help = "Must be `false`: messages of all partitions are processed side by side "
		    "(`max_in_flight`), and one that is refused for now pauses them all."),
	ROW(kafka_partitions_config, max_buffered_batches, .def = "1", .inert = true,
	    .help = "Only with `independent: true`."),
	{ 0 }
};
static const struct config_table partitions_table = { sizeof(struct kafka_partitions_config),
						      partitions_rows, check_partitions };

static const struct config_row rows[] = {
	KAFKA_CLIENT_ROWS(struct kafka_receiver_config, client),
	CONFIG_SECTION(struct kafka_receiver_config, profiles, topics_table, .key = "profiles",
		       .help = "What is read."),
	ROW(kafka_receiver_config, group_id, .def = "otel-collector",
	    .help = "The consumer group. Its members share the partitions of the topics."),
	ROW(kafka_receiver_config, group_instance_id,
	    .help = "Makes the client a static member of the group: a restart within "
		    "`session_timeout` moves no partition. Each member needs another one."),
	ROW(kafka_receiver_config, rack_id,
	    .help = "The client's rack: messages are read from a replica in it, if there is one."),
	ROW(kafka_receiver_config, initial_offset, .def = "latest",
	    .help = "Where a group begins that has no offset yet: `earliest` or `latest`. "
		    "`latest` also skips what partitions that are added to a topic have before "
		    "they are assigned."),
	ROW(kafka_receiver_config, group_rebalance_strategies, .def = "[cooperative-sticky]",
	    .help = "How partitions are assigned: `[cooperative-sticky]`, or `range`, "
		    "`roundrobin` or both. All members must have one in common."),
	ROW(kafka_receiver_config, session_timeout, .def = "10s",
	    .help = "A member without heartbeats for this time leaves the group."),
	ROW(kafka_receiver_config, heartbeat_interval, .def = "3s",
	    .help = "Time between heartbeats."),
	ROW(kafka_receiver_config, min_fetch_size, .def = "1", .unit = "bytes", .limited = true,
	    .min = 1, .max = 100000000, .help = "A broker waits until it has this much."),
	ROW(kafka_receiver_config, max_fetch_size, .def = "1048576", .unit = "bytes",
	    .limited = true, .min = 1024, .max = 500000000,
	    .help = "Maximum size of a broker's response. A larger message is fetched alone. "
		    "Four times this size is charged to the memory budget: half of it for what "
		    "the client has fetched, half for messages that are processed or wait."),
	ROW(kafka_receiver_config, max_partition_fetch_size, .def = "1048576", .unit = "bytes",
	    .limited = true, .min = 1024, .max = 500000000,
	    .help = "The same for one partition of the response."),
	ROW(kafka_receiver_config, max_fetch_wait, .def = "250ms",
	    .help = "A broker waits this long for `min_fetch_size`."),
	CONFIG_SECTION(struct kafka_receiver_config, autocommit, autocommit_table,
		       .key = "autocommit", .help = "When offsets are committed."),
	CONFIG_SECTION(struct kafka_receiver_config, message_marking, marking_table,
		       .key = "message_marking", .help = "Which messages count as read."),
	CONFIG_SECTION(struct kafka_receiver_config, header_extraction, extraction_table,
		       .key = "header_extraction", .help = "Headers that become attributes."),
	CONFIG_SECTION(struct kafka_receiver_config, error_backoff, retry_table,
		       .key = "error_backoff", .presence = PRESENCE_DEFAULT,
		       .help = "When a message that was refused for now is tried again. Without "
			       "the section, or with `enabled: false`, after 500 ms, then after "
			       "delays that grow to 30 s. `max_elapsed_time` matters only with "
			       "`message_marking::on_error`; without the section it is 5 min."),
	CONFIG_SECTION(struct kafka_receiver_config, partition_processing, partitions_table,
		       .key = "partition_processing", .help = "How partitions depend on another."),
	ROW(kafka_receiver_config, max_in_flight, .def = "64", .limited = true, .min = 1,
	    .max = 10000,
	    .help = "Maximum number of messages that are processed at a time. No further one is "
		    "begun once they have twice `max_fetch_size` together. Not a key of the "
		    "Collector."),
	ROW(kafka_receiver_config, max_message_bytes, .def = "20971520", .unit = "bytes",
	    .limited = true, .min = 1024, .max = 1000000000,
	    .help = "Maximum size of a message, after decompression. A larger one can never be "
		    "accepted. Not a key of the Collector."),
	ACK_ROW(struct kafka_receiver_config, ack),
	DEDUPLICATE_ROW(struct kafka_receiver_config, deduplicate),
	ROW(kafka_receiver_config, logs, OTHER_SIGNAL),
	ROW(kafka_receiver_config, metrics, OTHER_SIGNAL),
	ROW(kafka_receiver_config, traces, OTHER_SIGNAL),
	ROW(kafka_receiver_config, telemetry, .inert = true,
	    .help = "All metrics are always there."),
	{ 0 }
};
static const struct config_hint hints[] = { { "topic", .use = "profiles::topics" }, { 0 } };

const struct config_table kafka_receiver_table = { sizeof(struct kafka_receiver_config), rows,
						   check, .hints = hints };

const struct retry_config *kafka_receiver_backoff(const struct kafka_receiver_config *c)
{
	static const struct retry_config usual = { .initial_interval = { INT64_C(500000000) },
						   .max_interval = { INT64_C(30000000000) },
						   .max_elapsed_time = { INT64_C(300000000000) },
						   .randomization_factor = 0.5,
						   .multiplier = 1.5 };
	return c->error_backoff.present.enabled ? &c->error_backoff : &usual;
}

struct kafka_consumer_options kafka_receiver_options(const struct kafka_receiver_config *c,
						     char out[KAFKA_STRATEGIES_ROOM])
{
	const struct strings *list = &c->group_rebalance_strategies;
	snprintf(out, KAFKA_STRATEGIES_ROOM, "%s%s%s", list->at[0], list->count > 1 ? "," : "",
		 list->count > 1 ? list->at[1] : "");
	return (struct kafka_consumer_options){
		.config = &c->client,
		.topics = &c->profiles.topics,
		.exclude_topics = &c->profiles.exclude_topics,
		.group = c->group_id,
		.instance = c->group_instance_id,
		.rack = c->rack_id,
		.strategies = out,
		.initial_offset = c->initial_offset,
		.session_timeout_ns = c->session_timeout.ns,
		.heartbeat_ns = c->heartbeat_interval.ns,
		.commit_interval_ns = c->autocommit.interval.ns,
		.fetch_wait_ns = c->max_fetch_wait.ns,
		.fetch_min_bytes = c->min_fetch_size,
		.fetch_max_bytes = c->max_fetch_size,
		.partition_fetch_max_bytes = c->max_partition_fetch_size,
		.in_flight_max = (uint32_t)c->max_in_flight,
		.in_hand_bytes_max = 2 * c->max_fetch_size,
	};
}
