/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "exporters/kafka_config.h"
#include "exporters/kafka_pprof.h"
#include "net/kafka/kafka_question.h"
#include "pipeline/delivery/body.h"
#include "pipeline/delivery/idempotency.h"
#include "pipeline/reopen.h"
#include "profile/collect/split.h"

#include <strings.h>

/*
 * Sends each request as one message to Kafka. Plan splits a packet so that each message is within
 * max_message_bytes, as encoded, with its key and headers. If the topic or key depends on an
 * attribute, each resource becomes messages of its own. The packet keeps the value until Kafka's
 * answer, so librdkafka copies nothing.
 */
/* Framing of a batch with one record (kafka.apache.org, "Record Batch"), and Idempotency-Key. */
#define RECORD_BYTES 192

struct kafka {
	const struct kafka_config *config;
	const struct host *host;
	struct packet_form form;
	bool sends_key;
	const char **context_keys;      /* metadata that its messages need; ends with NULL */
	struct unsupported unsupported; /* by pprof */
	struct kafka_topics topics;
	char *address, *port, *brokers; /* brokers: as configured, for the log */
	struct reopen reopen;
	pthread_rwlock_t lock; /* guards producer: a send that starts after stop finds none */
	struct kafka_producer *producer;
};

/* ---- content ---- */

static bool is_pprof(const struct kafka *self)
{
	return self->form.encoding == PACKET_REQUEST;
}

static bool content_of(const struct kafka *self, struct packet *packet,
		       struct kafka_content *content, struct error *err)
{
	if (is_pprof(self))
		return kafka_pprof_read(packet, content, err);
	const struct bytes *body = body_of(packet, self->form, err);
	*content =
		(struct kafka_content){ .value = { body ? body->at : NULL, body ? body->len : 0 } };
	return body != NULL;
}

static const char *metadata_of(const struct packet *packet, const char *name)
{
	const struct metadatum *m = packet->origin ? packet->origin->metadata : NULL;
	for (; m && m->name; m++)
		if (!strcasecmp(m->name, name))
			return m->value;
	return NULL;
}

/* Those that the content, the configuration and metadata give; borrowed from there. There is room
 * for one more, and the end. The caller frees the list. */
static struct metadatum *headers_of(const struct kafka *self, const struct packet *packet,
				    struct kafka_content content, size_t *number)
{
	const struct kafka_config *c = self->config;
	size_t room = c->record_headers.count + c->include_metadata_keys.count + 3 +
		      (is_pprof(self) ? KAFKA_HEADERS_MAX : 0);
	size_t count = 0;
	struct metadatum *list = memory_array(room, sizeof *list);
	for (size_t i = 0; i < c->record_headers.count; i++) {
		const struct pair *pair = &c->record_headers.at[i];
		list[count++] = (struct metadatum){ pair->name, pair->value.text };
	}
	for (size_t i = 0; i < c->include_metadata_keys.count; i++) {
		const char *name = c->include_metadata_keys.at[i];
		const char *value = metadata_of(packet, name);
		if (value)
			list[count++] = (struct metadatum){ name, value };
	}
	if (c->signal_header)
		list[count++] = (struct metadatum){ KAFKA_SIGNAL_HEADER, "profiles" };
	while (kafka_pprof_header(&content, &list[count]))
		count++;
	*number = count;
	return list;
}

/* ---- plan ---- */

static uint64_t record_bytes(const struct kafka *self, const struct packet *packet,
			     const struct kafka_content *content)
{
	struct kafka_route route = { 0 };
	uint64_t bytes = RECORD_BYTES + content->value.len;
	size_t count;
	struct metadatum *headers = headers_of(self, packet, *content, &count);
	for (const struct metadatum *m = headers; m->name; m++)
		bytes += strlen(m->name) + (m->value ? strlen(m->value) : 0) + 10;
	memory_free(headers);
	kafka_route_find(&self->config->profiles, self->config->topic_from_attribute, NULL, packet,
			 &route);
	return bytes + route.key.len;
}

static bool measure(void *context, struct packet *candidate, struct split_size *size,
		    struct error *err)
{
	const struct kafka *self = context;
	struct kafka_content content;
	if (!content_of(self, candidate, &content, err))
		return false;
	size->bytes = record_bytes(self, candidate, &content);
	size->samples = candidate->samples;
	return true;
}

static void kafka_preset(void *instance, struct limits *limits)
{
	const struct kafka *self = instance;
	*limits = (struct limits){ .bytes = (uint64_t)self->config->producer.max_message_bytes };
}

static bool kafka_plan(void *instance, const struct part *whole, const struct limits *wanted,
		       struct parts *parts, struct error *err)
{
	struct kafka *self = instance;
	struct limits limits = *wanted;
	const struct split_measure by = { measure, self };
	if (is_pprof(self))
		return kafka_pprof_plan(whole->packet, &limits, &by, &self->unsupported, parts,
					err);
	if (kafka_route_is_by_resource(&self->config->profiles, self->config->topic_from_attribute))
		limits.resources = 1;
	return split_packet(whole->packet, &limits, &by, parts, err);
}

static struct packet_form kafka_reads(void *instance)
{
	return ((struct kafka *)instance)->form;
}

static bool kafka_prompt(void *instance, const struct packet *packet)
{
	return packet_has(packet, ((struct kafka *)instance)->form);
}

/* ---- send ---- */

struct flight {
	struct sending *sending;
	struct packet *packet;
};

static void fail(struct sending *sending, enum send_outcome outcome, const char *reason)
{
	sending_done(sending, &(struct send_result){
				      .outcome = outcome, .retry_after_ms = -1, .reason = reason });
}

static void on_answer(void *sending, struct kafka_result result)
{
	static const enum send_outcome outcomes[] = { [KAFKA_OK] = SEND_OK,
						      [KAFKA_RETRY] = SEND_RETRY,
						      [KAFKA_PERMANENT] = SEND_PERMANENT,
						      [KAFKA_TOO_LARGE] = SEND_TOO_LARGE };
	sending_done(sending,
		     &(struct send_result){ .outcome = outcomes[result.outcome],
					    .retry_after_ms = -1,
					    .reason = result.reason,
					    .cause = result.cause,
					    .kafka_status = result.code > 0 ? result.code : 0 });
}

static void on_report(void *argument, struct kafka_result result)
{
	struct flight flight = *(struct flight *)argument;
	memory_free(argument);
	packet_unref(&flight.packet);
	on_answer(flight.sending, result);
}

static void hand_over(struct kafka *self, const struct kafka_message *message,
		      struct packet *packet, struct sending *sending)
{
	pthread_rwlock_rdlock(&self->lock);
	bool running = self->producer != NULL;
	if (running) {
		struct flight *flight = memory_new(sizeof *flight);
		*flight = (struct flight){ sending, packet_ref(packet) };
		kafka_producer_send(self->producer, message, on_report, flight);
	}
	pthread_rwlock_unlock(&self->lock);
	if (!running)
		fail(sending, SEND_RETRY, "stopped");
}

static void kafka_send(void *instance, const struct part *part, uint64_t timeout_ns,
		       struct sending *sending)
{
	struct kafka *self = instance;
	const struct kafka_config *c = self->config;
	struct kafka_route route = { 0 };
	struct kafka_content content;
	const char *reason = content_of(self, part->packet, &content, NULL)
				     ? kafka_route_find(&c->profiles, c->topic_from_attribute,
							&self->topics, part->packet, &route)
				     : "encoding";
	(void)timeout_ns; /* of the producer */
	if (reason) {
		fail(sending, SEND_PERMANENT, reason);
		return;
	}
	size_t count;
	char key[IDEMPOTENCY_KEY_SIZE];
	struct metadatum *headers = headers_of(self, part->packet, content, &count);
	if (self->sends_key) {
		idempotency_key_write(packet_id(part->packet), key);
		headers[count] = (struct metadatum){ IDEMPOTENCY_KEY_HEADER, key };
	}
	hand_over(self,
		  &(struct kafka_message){ .topic = route.topic,
					   .key = route.key,
					   .value = content.value,
					   .headers = headers },
		  part->packet, sending);
	memory_free(headers);
}

/* ---- asking ---- */

/* Can the data name the topic? */
static bool names_topic(const struct kafka_config *c)
{
	const struct kafka_profiles_config *p = &c->profiles;
	return (c->topic_from_attribute && *c->topic_from_attribute) || p->topic_from_tenant ||
	       (p->topic_from_metadata_key && *p->topic_from_metadata_key);
}

static void kafka_probe(void *instance, const struct part *part, uint64_t timeout_ns,
			struct sending *sending)
{
	struct kafka *self = instance;
	const struct kafka_config *c = self->config;
	(void)part;
	kafka_question_ask(
		&(struct kafka_question){
			.loop = self->host->loop,
			.config = &c->client,
			.topic = c->profiles.topic,
			.may_lack = c->producer.allow_auto_topic_creation || names_topic(c),
			.timeout_ns = timeout_ns,
		},
		on_answer, sending);
}

static void kafka_blame(void *instance, uint32_t member, struct error *err)
{
	(void)instance;
	(void)member;
	error_prefix(err, "brokers");
}

/* ---- life ---- */

static bool read_certificates(void *context, bool *changed, struct error *err)
{
	struct kafka *self = context;
	pthread_rwlock_rdlock(&self->lock);
	bool ok = !self->producer || kafka_producer_reopen(self->producer, changed, err);
	pthread_rwlock_unlock(&self->lock);
	return ok;
}

static const enum packet_encoding encodings[] = { [KAFKA_PROTO] = PACKET_REFERENCES,
						  [KAFKA_JSON] = PACKET_REFERENCES_JSON,
						  [KAFKA_PPROF] = PACKET_REQUEST };

static void find_context_keys(struct kafka *self)
{
	const struct kafka_config *c = self->config;
	const char *const named[] = { c->profiles.topic_from_metadata_key,
				      c->profiles.message_key_from_metadata_key };
	size_t count = 0;
	self->context_keys = memory_array(c->include_metadata_keys.count + 3, sizeof(char *));
	for (size_t i = 0; i < sizeof named / sizeof *named; i++)
		if (named[i] && *named[i])
			self->context_keys[count++] = named[i];
	for (size_t i = 0; i < c->include_metadata_keys.count; i++)
		self->context_keys[count++] = c->include_metadata_keys.at[i];
}

static const char *const *kafka_context_keys(void *instance)
{
	return ((struct kafka *)instance)->context_keys;
}

static bool kafka_create(void *instance, const void *settings, const struct host *host,
			 struct error *err)
{
	struct kafka *self = instance;
	const struct kafka_config *c = self->config = settings;
	(void)err;
	self->host = host;
	self->form.encoding = encodings[c->profiles.encoding.index];
	find_context_keys(self);
	if (is_pprof(self))
		kafka_pprof_init(&self->unsupported, host->metrics, host->id);
	self->reopen = (struct reopen){ .host = host,
					.read = read_certificates,
					.sender = self,
					.interval_ns = c->client.tls.reload_interval.ns };
	self->sends_key = idempotency_is_on(c->idempotency_key, &c->record_headers);
	kafka_topics_init(&self->topics);
	kafka_client_place(&c->client, &self->address, &self->port);
	self->brokers = kafka_client_join(&c->client.brokers);
	pthread_rwlock_init(&self->lock, NULL);
	return true;
}

static bool kafka_start(void *instance, struct error *err)
{
	struct kafka *self = instance;
	const struct kafka_producer_options options =
		kafka_config_producer(self->config, self->host->loop, &self->host->log);
	self->producer = kafka_producer_new(&options, err);
	if (self->producer && kafka_client_uses_tls(&self->config->client))
		reopen_start(&self->reopen);
	return self->producer != NULL;
}

static bool kafka_reopen(void *instance, struct error *err)
{
	struct kafka *self = instance;
	return !kafka_client_uses_tls(&self->config->client) || reopen_now(&self->reopen, err);
}

static void kafka_stop(void *instance)
{
	struct kafka *self = instance;
	pthread_rwlock_wrlock(&self->lock);
	struct kafka_producer *producer = self->producer;
	self->producer = NULL;
	pthread_rwlock_unlock(&self->lock);
	kafka_producer_unref(&producer);
}

static void kafka_destroy(void *instance)
{
	struct kafka *self = instance;
	reopen_fini(&self->reopen);
	kafka_topics_fini(&self->topics);
	memory_free(self->context_keys);
	memory_free(self->address);
	memory_free(self->port);
	memory_free(self->brokers);
	pthread_rwlock_destroy(&self->lock);
}

static void kafka_destination(void *instance, const char **address, const char **port)
{
	const struct kafka *self = instance;
	*address = self->address;
	*port = self->port;
}

static const char *kafka_endpoint(void *instance)
{
	return ((const struct kafka *)instance)->brokers;
}

static const char manual[] =
	"Each request is one message. A request that would exceed `producer::max_message_bytes` as "
	"encoded, with its key and headers, is split, and so is one that a broker rejects as too "
	"large. Each part has a dictionary of its own. What cannot be split is dropped and "
	"counted.\n\n"
	"With encoding `pprof`, each message is one pprof, as the sender of the profile made it. "
	"The resource attributes are headers, at most 48 of them with 12288 bytes, and the "
	"receiver `kafka` turns headers into resource attributes. What pprof does not support is "
	"counted in `otelcol_exporter_unsupported_items`.\n\n"
	"With `required_acks: all`, the default, the producer is idempotent: neither lost "
	"connections nor new leaders duplicate or reorder messages. A message that is not "
	"acknowledged within `timeout` is sent again after the delay of `retry_on_failure`. If the "
	"cluster had stored it, it is there twice, with the same header `Idempotency-Key`: the "
	"receiver `kafka` with `deduplicate` drops the second.\n\n"
	"Errors that Kafka's protocol calls retriable are retried, and so are lost connections, "
	"rejected credentials and missing topics. Missing permissions for a topic, invalid topics "
	"and records that a broker rejects drop the data. The Kafka client repeats requests that "
	"were answered so, for three quarters of `timeout`, and then the answer counts: the log "
	"and `otelcol_exporter_last_error` have its `cause`, `kafka_status` is its number, and "
	"nothing repeats a broker's text.\n\n"
	"The queue is the exporter's own `sending_queue`. The Kafka client holds only what is in "
	"flight: at most one message for each of `num_consumers`.\n\n"
	"Senders that choose metadata, a tenant or a resource attribute can choose the topic, if "
	"the configuration says so. A value that is no name of a topic drops the data "
	"(`invalid_topic`), and so does one more topic than `max_topics` (`too_many_topics`).\n\n"
	"Certificates and keys are read again on SIGHUP and at `tls::reload_interval`. If they "
	"have changed, a new client is used, and the old one ends with its last message. What it "
	"has not delivered a minute later is sent again through the new one.";

static const struct metric *const metrics[] = { &unsupported_metric, NULL };

static const struct exporter_ops kafka_ops = {
	.start = kafka_start,
	.stop = kafka_stop,
	.delivery_offset = offsetof(struct kafka_config, delivery),
	.preset = kafka_preset,
	.plan = kafka_plan,
	.destination = kafka_destination,
	.endpoint = kafka_endpoint,
	.prompt = kafka_prompt,
	.context_keys = kafka_context_keys,
	.reads = kafka_reads,
	.send = kafka_send,
	.probe = kafka_probe,
	.blame = kafka_blame,
};

const struct component_factory kafka_exporter = {
	.type = "kafka",
	.help = "Sends profiles to Kafka.",
	.manual = manual,
	.kind = COMPONENT_EXPORTER,
	.exporter = &kafka_ops,
	.size = sizeof(struct kafka),
	.config = &kafka_exporter_table,
	.metrics = metrics,
	.create = kafka_create,
	.destroy = kafka_destroy,
	.reopen = kafka_reopen,
};
