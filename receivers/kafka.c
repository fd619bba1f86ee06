/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/kafka_config.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/idempotency_key.h"
#include "pipeline/intake/otlp_documents.h"
#include "pipeline/intake/source.h"
#include "pipeline/reopen.h"
#include "profile/otlp/otlp_json.h"
#include "profile/pprof/decode_pprof.h"
#include "profile/strings.h"
#include "receivers/kafka_manual.h"

#include <string.h>

/*
 * Reads messages of Kafka's topics. Each is a request, which passes through the gate, and whose
 * offset is committed when it has been acknowledged. A message that is refused for now waits here:
 * consumption pauses, and all that wait are tried again after a delay.
 *
 * librdkafka's copies of messages are charged in advance: the consumer takes no further one when
 * what it has handed out reaches that charge. A large message may exceed it. That excess is charged
 * with its request, and while it waits; during attempts, what waits holds nothing, because one
 * message might need all of the memory.
 *
 * All on the loop thread, except decoding and the outcome of a request.
 */
struct item { /* a message that is not finished */
	struct kafka *self;
	struct item *next; /* of those that wait */
	struct kafka_message_in *message;
	struct fields headers;
	struct fields attributes; /* of each resource */
	bool read;                /* both are complete */
	uint64_t first_refused;   /* 0: it was not */
	int64_t held;             /* bytes that are charged while it waits */
	bool retried;
	struct error err; /* of the last attempt */
};

enum message_result { MESSAGE_SUCCESS, MESSAGE_POSTPONED, MESSAGE_FAILED, MESSAGE_RESULTS };

struct kafka {
	const struct kafka_receiver_config *config;
	const struct host *host;
	char strategies[KAFKA_STRATEGIES_ROOM];
	struct source *source;
	struct otlp_documents documents;
	struct kafka_consumer *consumer;
	struct reopen reopen;
	struct loop_timer *timer;
	struct item *waiting, **last;
	uint32_t retrying;  /* items that were tried again, and have no outcome yet */
	bool pausing;       /* until all that wait are accepted */
	int64_t delay_ns;   /* the next one */
	uint64_t logged_at; /* the last pause that was logged */
	bool announced;     /* this pause was */
	int64_t held;       /* bytes that are charged for what librdkafka fetches and keeps */
	bool stopping;
	struct metric_series *results[MESSAGE_RESULTS], *unmarshal_failed;
	struct metric_series *started, *closed, *partitions, *lag;
};

struct kafka_request {
	struct source_request source;
	struct item *item;
};

#define ANNOUNCE_NS UINT64_C(60000000000)

static const struct fields_limits header_limits = {
	.count = KAFKA_HEADERS_MAX,
	.name = KAFKA_HEADER_NAME_MAX,
	.value = KAFKA_HEADER_VALUE_MAX,
	.total = KAFKA_HEADERS_BYTES_MAX,
};

/* ---- metrics ---- */

static const struct metric messages_metric = {
	"otelcol_kafka_receiver_messages", METRIC_COUNTER, "{messages}",
	"Messages that were read, by outcome: success, postponed (refused for now; they are tried "
	"again), failed (rejected, or given up)."
};
static const struct metric unmarshal_metric = { "otelcol_kafka_receiver_unmarshal_failed_profiles",
						METRIC_COUNTER, "{messages}",
						"Messages that could not be decoded." };
static const struct metric started_metric = { "otelcol_kafka_receiver_partition_start",
					      METRIC_COUNTER, "{partitions}",
					      "Partitions that the group has assigned." };
static const struct metric closed_metric = { "otelcol_kafka_receiver_partition_close",
					     METRIC_COUNTER, "{partitions}",
					     "Partitions that the group has taken away." };
static const struct metric partitions_metric = { "otelcol_kafka_receiver_partitions", METRIC_GAUGE,
						 "{partitions}", "Partitions that it reads." };
static const struct metric lag_metric = {
	"otelcol_kafka_receiver_offset_lag", METRIC_GAUGE, "{messages}",
	"Messages in these partitions that are not acknowledged, as of the last fetch."
};
static const struct metric errors_metric = {
	"otelcol_kafka_receiver_client_errors", METRIC_COUNTER, "{errors}",
	"Errors of the Kafka client, by the name that exporters give them: unavailable, "
	"unresolved, tls, unauthenticated, permission_denied, unknown_topic, and others."
};
static const struct metric *const metrics[] = { &messages_metric, &unmarshal_metric,
						&errors_metric,   &started_metric,
						&closed_metric,   &partitions_metric,
						&lag_metric,      NULL };

static struct metric_series *series(const struct host *host, const struct metric *metric,
				    const char *label, const char *value)
{
	return metrics_series(host->metrics, metric,
			      (const struct metric_label[]){
				      { "receiver", host->id }, { label, value }, { 0 } });
}

static void make_metrics(struct kafka *k)
{
	static const char *const outcomes[] = { [MESSAGE_SUCCESS] = "success",
						[MESSAGE_POSTPONED] = "postponed",
						[MESSAGE_FAILED] = "failed" };
	for (int i = 0; i < MESSAGE_RESULTS; i++)
		k->results[i] = series(k->host, &messages_metric, "outcome", outcomes[i]);
	k->unmarshal_failed = series(k->host, &unmarshal_metric, NULL, NULL);
	k->started = series(k->host, &started_metric, NULL, NULL);
	k->closed = series(k->host, &closed_metric, NULL, NULL);
	k->partitions = series(k->host, &partitions_metric, NULL, NULL);
	k->lag = series(k->host, &lag_metric, NULL, NULL);
}

/* ---- documents [worker] ---- */

static struct item *item_of(const struct inbound *in)
{
	return ((const struct kafka_request *)in)->item;
}

static bool add_attributes(struct profiles *p, const struct metadatum *attributes)
{
	struct list added = { 0 };
	if (!attributes || !attributes->name)
		return true;
	for (uint32_t i = 0; i < p->resources.count; i++) {
		struct resource *r = &p->resources.at[i];
		added = r->attributes = profiles_list_copy(p, r->attributes, 0);
		if (!strings_attributes(p, attributes, &added))
			return false;
		r->attributes = added;
	}
	return !p->over_cap;
}

static bool proto_decode(struct inbound *in, struct profiles *p, struct error *err)
{
	return otlp_documents_decode(in, p, err) &&
	       (add_attributes(p, fields_list(&item_of(in)->attributes)) ||
		profiles_over_cap(p, err));
}

static bool json_translate(struct inbound *in, struct view *body, struct bytes *out,
			   struct error *err)
{
	enum otlp_generation generation;
	if (!otlp_json_translate(*body, out, &generation, err))
		return false;
	otlp_documents_settle(in, generation);
	*body = bytes_view(out);
	return true;
}

static bool pprof_decode(struct inbound *in, struct profiles *p, struct error *err)
{
	return p->input.len ? decode_pprof(p, p->input, fields_list(&item_of(in)->attributes), err)
			    : error_set(err, ERROR_INVALID, "the profile is empty");
}

static const struct document_format formats[] = {
	[KAFKA_RECEIVER_PROTO] = { .translate = otlp_documents_translate,
				   .decode = proto_decode,
				   .tables_factor = 16 },
	[KAFKA_RECEIVER_JSON] = { .translate = json_translate,
				  .decode = proto_decode,
				  .tables_factor = 16 },
	/* A zero among many values is a byte, and becomes a sample. */
	[KAFKA_RECEIVER_PPROF] = { .decode = pprof_decode,
				   .packed = true,
				   .tables_factor = sizeof(struct sample) + 4 },
};

/* ---- items ---- */

/* While it waits. If memory is short, others are refused already. */
static void hold_excess(struct item *i)
{
	int64_t bytes = (int64_t)i->message->excess;
	if (bytes && entrance_hold(i->self->host->entrance, bytes))
		i->held = bytes;
}

static void release_excess(struct item *i)
{
	if (i->held)
		entrance_release(i->self->host->entrance, i->held);
	i->held = 0;
}

static void item_free(struct item *i)
{
	release_excess(i);
	fields_fini(&i->headers);
	fields_fini(&i->attributes);
	memory_free(i);
}

static void finish(struct item *i)
{
	struct kafka_message_in *message = i->message;
	item_free(i);
	kafka_message_finish(&message);
}

/* The attribute that a header becomes, behind the prefix; NULL: none. Of OTLP, with the name that
 * the configuration has. */
static const char *attribute_of(const struct kafka_receiver_config *c, const char *header)
{
	const struct strings *list = &c->header_extraction.headers;
	if (c->profiles.encoding.index == KAFKA_RECEIVER_PPROF)
		return strcasecmp(header, IDEMPOTENCY_KEY_HEADER) ? header : NULL;
	for (size_t i = 0; c->header_extraction.extract_headers && i < list->count; i++)
		if (!strcasecmp(list->at[i], header))
			return list->at[i];
	return NULL;
}

/* The headers that become attributes of resources. */
static bool extract(struct item *i, struct error *err)
{
	const struct kafka_receiver_config *c = i->self->config;
	bool is_pprof = c->profiles.encoding.index == KAFKA_RECEIVER_PPROF;
	bool ok = true;
	for (const struct metadatum *m = fields_list(&i->headers); ok && m->name; m++) {
		const char *attribute = attribute_of(c, m->name);
		if (!attribute)
			continue;
		char *name = memory_format("%s%s", is_pprof ? "" : "kafka.header.", attribute);
		ok = fields_add(&i->attributes, view_of(name), view_of(m->value), err);
		memory_free(name);
	}
	return ok;
}

/* ---- outcomes ---- */

static void offer(struct item *i);

/* At most one pause a minute is logged. */
static void announce(struct kafka *k, const struct error *err)
{
	uint64_t now = clock_now();
	k->announced = !k->logged_at || now - k->logged_at >= ANNOUNCE_NS;
	if (!k->announced)
		return;
	k->logged_at = now;
	log_warn(&k->host->log, "Consumption pauses until messages are accepted again.",
		 log_text("error", err->text));
}

static void wait_for_retry(struct item *i)
{
	struct kafka *k = i->self;
	const struct retry_config *backoff = kafka_receiver_backoff(k->config);
	if (!k->pausing) {
		k->pausing = true;
		k->delay_ns = backoff->initial_interval.ns;
		kafka_consumer_pause(k->consumer);
		announce(k, &i->err);
	}
	if (!k->waiting) {
		loop_timer_start(k->timer,
				 retry_delay(backoff, k->delay_ns, i->err.retry_after_ms));
		k->delay_ns = retry_next_interval(backoff, k->delay_ns);
	}
	hold_excess(i);
	i->next = NULL;
	*k->last = i;
	k->last = &i->next;
}

static void resume_if_clear(struct kafka *k)
{
	if (!k->pausing || k->waiting || k->retrying || k->stopping)
		return;
	k->pausing = false;
	if (k->announced)
		log_info(&k->host->log, "Consumption continues.");
	kafka_consumer_resume(k->consumer);
}

static bool is_given_up(const struct item *i)
{
	const struct kafka_receiver_config *c = i->self->config;
	uint64_t max = (uint64_t)kafka_receiver_backoff(c)->max_elapsed_time.ns;
	return c->message_marking.on_error && max && clock_now() - i->first_refused >= max;
}

static void reject(struct item *i)
{
	struct kafka *k = i->self;
	const struct kafka_message_in *m = i->message;
	metric_add(k->results[MESSAGE_FAILED], 1);
	metric_add(k->unmarshal_failed, i->err.kind == ERROR_INVALID);
	log_warn(&k->host->log, "A message was rejected.", log_text("topic", m->topic),
		 log_number("partition", m->partition), log_number("offset", m->offset),
		 log_text("error", i->err.text));
	finish(i);
}

/* An attempt has ended. */
static void conclude(struct item *i)
{
	struct kafka *k = i->self;
	bool skips = k->config->message_marking.on_permanent_error;
	k->retrying -= i->retried;
	i->retried = false;
	if (i->err.kind == ERROR_NONE) {
		metric_add(k->results[MESSAGE_SUCCESS], 1);
		finish(i);
	} else if (i->err.kind != ERROR_BUSY && skips) {
		reject(i);
	} else {
		if (!i->first_refused)
			i->first_refused = clock_now();
		if (is_given_up(i)) {
			reject(i);
		} else {
			metric_add(k->results[MESSAGE_POSTPONED], 1);
			wait_for_retry(i);
		}
	}
	resume_if_clear(k);
}

static void concluded(void *argument)
{
	conclude(argument);
}

/* [any thread] */
static void request_done(struct source_request *r, const struct outcome *outcome)
{
	struct item *i = ((struct kafka_request *)r)->item;
	error_clear(&i->err);
	if (outcome->error)
		i->err = *outcome->error;
	loop_post(i->self->host->loop, concluded, i);
}

/* ---- attempts ---- */

/* False: they exceed the limits, and will at each attempt. */
static bool read_headers(struct item *i)
{
	if (i->read)
		return true;
	fields_fini(&i->headers);
	fields_fini(&i->attributes);
	fields_init(&i->headers, &header_limits);
	fields_init(&i->attributes, &header_limits);
	i->read = kafka_message_headers(i->message, &i->headers, &i->err) && extract(i, &i->err);
	if (i->read)
		fields_lower(&i->headers);
	return i->read;
}

static void offer(struct item *i)
{
	struct kafka *k = i->self;
	struct view value = i->message->value;
	error_clear(&i->err);
	if (!read_headers(i)) {
		conclude(i);
		return;
	}
	struct source_request *r = source_request_new(k->source);
	((struct kafka_request *)r)->item = i;
	r->in.receiver = &k->documents;
	r->in.headers = r->in.request.metadata = fields_list(&i->headers);
	r->in.overhead = i->message->excess;
	if (!source_admit(r, value.len, &i->err)) {
		conclude(i);
		return;
	}
	if (value.len && !bytes_add(&r->body, value.at, value.len)) {
		i->err = r->err;
		source_forget(r, i->err.kind == ERROR_TOO_LARGE ? REFUSAL_TOO_LARGE : REFUSAL_NONE);
		conclude(i);
		return;
	}
	source_submit(r);
}

static void arrived(void *context, struct kafka_message_in *message)
{
	struct kafka *k = context;
	if (k->stopping) {
		kafka_message_abandon(&message);
		return;
	}
	struct item *i = memory_new(sizeof *i);
	i->self = k;
	i->message = message;
	offer(i);
}

static void on_timer(void *context)
{
	struct kafka *k = context;
	struct item *next, *all = k->waiting;
	if (k->stopping)
		return;
	k->waiting = NULL;
	k->last = &k->waiting;
	for (struct item *i = all; i; i = i->next) {
		release_excess(i);
		i->retried = true;
		k->retrying++;
	}
	for (struct item *i = all; i; i = next) {
		next = i->next;
		offer(i);
	}
}

/* ---- the consumer ---- */

static void partitions_changed(void *context, uint32_t started, uint32_t closed)
{
	struct kafka *k = context;
	metric_add(k->started, started);
	metric_add(k->closed, closed);
	log_info(&k->host->log, "The group has changed the assignment.",
		 log_number("assigned", started), log_number("revoked", closed));
}

static void observed(void *context, const struct kafka_consumer_state *state)
{
	struct kafka *k = context;
	metric_set(k->partitions, state->partitions);
	metric_set(k->lag, state->lag);
}

static void client_failed(void *context, const char *reason)
{
	const struct kafka *k = context;
	metric_add(series(k->host, &errors_metric, "error", reason), 1);
}

static struct kafka_consumer_options consumer_options(struct kafka *k)
{
	struct kafka_consumer_options options = kafka_receiver_options(k->config, k->strategies);
	options.loop = k->host->loop;
	options.log = &k->host->log;
	options.arrived = arrived;
	options.partitions = partitions_changed;
	options.observed = observed;
	options.failed = client_failed;
	options.context = k;
	return options;
}

/* ---- life ---- */

static bool read_certificates(void *context, bool *changed, struct error *err)
{
	struct kafka *k = context;
	return kafka_consumer_reopen(k->consumer, changed, err);
}

static bool kafka_create(void *instance, const void *settings, const struct host *host,
			 struct error *err)
{
	struct kafka *k = instance;
	const struct kafka_receiver_config *c = k->config = settings;
	(void)err;
	k->host = host;
	k->last = &k->waiting;
	k->reopen = (struct reopen){ .host = host,
				     .read = read_certificates,
				     .sender = k,
				     .interval_ns = c->client.tls.reload_interval.ns };
	make_metrics(k);
	otlp_documents_init(&k->documents, host, (enum otlp_generation)c->profiles.schema.index);
	k->source = source_new(&(struct source_options){
		.host = host,
		.transport = TRANSPORT_KAFKA,
		.documents = &formats[c->profiles.encoding.index],
		.request_size = sizeof(struct kafka_request),
		.body_limit = { (size_t)c->max_message_bytes, "max_message_bytes",
				c->max_message_bytes },
		.done = request_done,
	});
	return true;
}

static bool kafka_start(void *instance, struct error *err)
{
	struct kafka *k = instance;
	struct kafka_consumer_options options = consumer_options(k);
	int64_t fetched = 2 * k->config->max_fetch_size;
	int64_t kept = fetched + options.in_hand_bytes_max;
	if (!entrance_hold(k->host->entrance, kept))
		return error_set(err, ERROR_CONFIG,
				 "max_fetch_size: four times its value does not fit into the "
				 "memory limit");
	k->held = kept;
	k->timer = loop_timer_new(k->host->loop, on_timer, k);
	k->consumer = kafka_consumer_new(&options, err);
	if (k->consumer && kafka_client_uses_tls(&k->config->client))
		reopen_start(&k->reopen);
	return k->consumer != NULL;
}

static bool kafka_reopen(void *instance, struct error *err)
{
	struct kafka *k = instance;
	return k->stopping || !kafka_client_uses_tls(&k->config->client) ||
	       reopen_now(&k->reopen, err);
}

static void stop_consuming(void *argument)
{
	struct kafka *k = argument;
	k->stopping = true;
	reopen_fini(&k->reopen);
	if (k->consumer)
		kafka_consumer_pause(k->consumer);
}

/* What waits is read again by whoever reads the partitions next. */
static void abandon_waiting(void *argument)
{
	struct kafka *k = argument;
	if (k->timer)
		loop_timer_unref(&k->timer);
	for (struct item *i = k->waiting, *next; i; i = next) {
		next = i->next;
		kafka_message_abandon(&i->message);
		item_free(i);
	}
	k->waiting = NULL;
	k->last = &k->waiting;
}

static void kafka_stop(void *instance)
{
	struct kafka *k = instance;
	loop_call(k->host->loop, stop_consuming, k);
	source_stop(k->source);
	loop_call(k->host->loop, abandon_waiting, k); /* after all outcomes */
	kafka_consumer_unref(&k->consumer);
	entrance_release(k->host->entrance, k->held);
	k->held = 0;
}

static void kafka_destroy(void *instance)
{
	struct kafka *k = instance;
	source_unref(&k->source);
}

static const struct receiver_ops kafka_ops = {
	.ack_offset = offsetof(struct kafka_receiver_config, ack),
	.deduplicate_offset = offsetof(struct kafka_receiver_config, deduplicate),
	.start = kafka_start,
	.stop = kafka_stop,
};

const struct component_factory kafka_receiver = {
	.type = "kafka",
	.help = "Reads profiles from Kafka.",
	.manual = KAFKA_RECEIVER_MANUAL,
	.kind = COMPONENT_RECEIVER,
	.receiver = &kafka_ops,
	.metrics = metrics,
	.size = sizeof(struct kafka),
	.config = &kafka_receiver_table,
	.create = kafka_create,
	.destroy = kafka_destroy,
	.reopen = kafka_reopen,
};
