/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_client.h"

#include <ctype.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* github.com/confluentinc/librdkafka/pull/4895: before this version, the final message of SCRAM
 * repeats the client's nonce. Kafka 4.0 and later reject that. */
#define SCRAM_FIXED 0x02060100

#define RECEIVE_MAX (16 << 20) /* of a broker's response that is not a fetch */

/* ---- codes ---- */

#define RETRY(code, word) \
	{ \
		RD_KAFKA_RESP_ERR_##code, \
		{ \
			KAFKA_RETRY, word \
		} \
	}
#define PERMANENT(code, word) \
	{ \
		RD_KAFKA_RESP_ERR_##code, \
		{ \
			KAFKA_PERMANENT, word \
		} \
	}
#define TOO_LARGE(code) \
	{ \
		RD_KAFKA_RESP_ERR_##code, \
		{ \
			KAFKA_TOO_LARGE, "too_large" \
		} \
	}

static const struct meaning {
	rd_kafka_resp_err_t code;
	struct kafka_result result;
} meanings[] = {
	{ RD_KAFKA_RESP_ERR_NO_ERROR, { KAFKA_OK, "ok" } },
	TOO_LARGE(MSG_SIZE_TOO_LARGE),
	TOO_LARGE(RECORD_LIST_TOO_LARGE),
	/* of the client */
	RETRY(_MSG_TIMED_OUT, "timeout"),
	RETRY(_TIMED_OUT, "timeout"),
	RETRY(_TIMED_OUT_QUEUE, "timeout"),
	RETRY(_TRANSPORT, "unavailable"),
	RETRY(_ALL_BROKERS_DOWN, "unavailable"),
	RETRY(_RESOLVE, "unresolved"),
	RETRY(_SSL, "tls"),
	RETRY(_AUTHENTICATION, "unauthenticated"),
	RETRY(_QUEUE_FULL, "queue_full"),
	RETRY(_PURGE_QUEUE, "cancelled"),
	RETRY(_PURGE_INFLIGHT, "cancelled"),
	RETRY(_DESTROY, "stopped"),
	RETRY(_FATAL, "producer_fenced"),
	RETRY(_UNKNOWN_TOPIC, "unknown_topic"),
	RETRY(_UNKNOWN_PARTITION, "unknown_topic"),
	RETRY(_RETRY, "unavailable"),
	/* of the broker: retriable by the protocol */
	RETRY(INVALID_MSG, "corrupt"),
	RETRY(UNKNOWN_TOPIC_OR_PART, "unknown_topic"),
	RETRY(LEADER_NOT_AVAILABLE, "unavailable"),
	RETRY(NOT_LEADER_FOR_PARTITION, "unavailable"),
	RETRY(REQUEST_TIMED_OUT, "timeout"),
	RETRY(BROKER_NOT_AVAILABLE, "unavailable"),
	RETRY(REPLICA_NOT_AVAILABLE, "unavailable"),
	RETRY(NETWORK_EXCEPTION, "unavailable"),
	RETRY(COORDINATOR_LOAD_IN_PROGRESS, "unavailable"),
	RETRY(COORDINATOR_NOT_AVAILABLE, "unavailable"),
	RETRY(NOT_COORDINATOR, "unavailable"),
	RETRY(NOT_ENOUGH_REPLICAS, "not_enough_replicas"),
	RETRY(NOT_ENOUGH_REPLICAS_AFTER_APPEND, "not_enough_replicas"),
	RETRY(NOT_CONTROLLER, "unavailable"),
	RETRY(KAFKA_STORAGE_ERROR, "disk"),
	RETRY(FENCED_LEADER_EPOCH, "unavailable"),
	RETRY(UNKNOWN_LEADER_EPOCH, "unavailable"),
	RETRY(THROTTLING_QUOTA_EXCEEDED, "resource_exhausted"),
	/* a new session of the idempotent producer begins */
	RETRY(OUT_OF_ORDER_SEQUENCE_NUMBER, "producer_fenced"),
	RETRY(UNKNOWN_PRODUCER_ID, "producer_fenced"),
	RETRY(INVALID_PRODUCER_EPOCH, "producer_fenced"),
	/* of the broker: the same message will never be accepted */
	PERMANENT(TOPIC_AUTHORIZATION_FAILED, "permission_denied"),
	PERMANENT(CLUSTER_AUTHORIZATION_FAILED, "permission_denied"),
	PERMANENT(GROUP_AUTHORIZATION_FAILED, "permission_denied"),
	PERMANENT(TOPIC_EXCEPTION, "invalid_topic"),
	PERMANENT(POLICY_VIOLATION, "invalid"),
	PERMANENT(INVALID_RECORD, "invalid"),
	PERMANENT(INVALID_TIMESTAMP, "invalid"),
	PERMANENT(UNSUPPORTED_COMPRESSION_TYPE, "unsupported"),
	PERMANENT(UNSUPPORTED_FOR_MESSAGE_FORMAT, "unsupported"),
	PERMANENT(UNSUPPORTED_VERSION, "unsupported"),
};

struct kafka_result kafka_judge(int code)
{
	for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
		if ((int)meanings[i].code == code)
			return meanings[i].result;
	return (struct kafka_result){ KAFKA_PERMANENT, "refused" };
}

/* The first row applies whose code is this one and whose phrase is in librdkafka's text. Rows
 * with `any` apply to any code, and their own code replaces it: librdkafka reports the same failure
 * of a handshake sometimes as _SSL and sometimes as _TRANSPORT. */
static const struct cause {
	rd_kafka_resp_err_t code;
	bool any;
	const char *phrase, *cause;
} causes[] = {
	{ RD_KAFKA_RESP_ERR__AUTHENTICATION, false, "mechanism handshake failed",
	  "the broker does not offer auth::sasl::mechanism" },
	{ RD_KAFKA_RESP_ERR__AUTHENTICATION, false, "",
	  "the broker rejected the user or the password of auth::sasl" },
	{ RD_KAFKA_RESP_ERR__SSL, true, "certificate verify failed",
	  "the broker's certificate is not signed by a CA of tls::ca_file, or is not valid for the "
	  "broker's name" },
	{ RD_KAFKA_RESP_ERR__SSL, true, "PLAINTEXT broker listener",
	  "the broker does not speak TLS at this port" },
	{ RD_KAFKA_RESP_ERR__SSL, true, "wrong version number",
	  "the broker does not speak TLS at this port" },
	{ RD_KAFKA_RESP_ERR__TRANSPORT, false, "SSL listener",
	  "the broker closed the connection; it may require TLS at this port" },
	{ RD_KAFKA_RESP_ERR__SSL, true, "SSL alert number",
	  "the broker ended the TLS handshake; it may require another client certificate" },
	{ RD_KAFKA_RESP_ERR__SSL, true, "in state SSL_HANDSHAKE",
	  "the broker closed the connection in the TLS handshake; it may not speak TLS at this "
	  "port" },
	{ RD_KAFKA_RESP_ERR__SSL, false, "", "the TLS handshake failed" },
	{ RD_KAFKA_RESP_ERR__RESOLVE, false, "", "the name of a broker has no address" },
	{ RD_KAFKA_RESP_ERR__TRANSPORT, false, "", "a connection to a broker failed" },
	{ RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, false, "", "no broker can be reached" },
	{ RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, false, "",
	  "the user may not use the topic" },
	{ RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, false, "",
	  "the user may not use group_id" },
};

const char *kafka_explain(int *code, const char *text)
{
	for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
		if ((causes[i].any || (int)causes[i].code == *code) &&
		    strstr(text ? text : "", causes[i].phrase)) {
			*code = causes[i].code;
			return causes[i].cause;
		}
	return rd_kafka_err2str((rd_kafka_resp_err_t)*code);
}

/* ---- names ---- */

bool kafka_topic_ok(struct view name)
{
	bool good = name.len > 0 && name.len <= 249 && !view_is(name, ".") && !view_is(name, "..");
	for (size_t i = 0; i < name.len && good; i++)
		good = isalnum(name.at[i]) || (name.at[i] && strchr("._-", name.at[i]));
	return good;
}

/* NULL: it is not host:port. Brackets of IPv6 belong to the host. */
static const char *port_of(const char *broker)
{
	const char *colon = strrchr(broker, ':');
	bool good = colon && colon > broker && colon[1] && strspn(colon + 1, "0123456789") <= 5 &&
		    !colon[1 + strspn(colon + 1, "0123456789")];
	return good ? colon + 1 : NULL;
}

void kafka_client_place(const struct kafka_client_config *config, char **host, char **port)
{
	const char *broker = config->brokers.at[0], *number = port_of(broker);
	*host = memory_text_of(broker, (size_t)(number - broker) - 1);
	*port = memory_text(number);
}

/* ---- librdkafka's configuration ---- */

bool kafka_client_set(rd_kafka_conf_t *conf, const char *name, const char *value, struct error *err)
{
	char text[8];
	/* librdkafka's text may repeat the value */
	return rd_kafka_conf_set(conf, name, value, text, sizeof text) == RD_KAFKA_CONF_OK ||
	       error_set(err, ERROR_CONFIG, "librdkafka does not accept its property %s", name);
}

bool kafka_client_set_known(rd_kafka_conf_t *conf, const char *name, const char *value,
			    struct error *err)
{
	char text[8];
	size_t len = sizeof text;
	return rd_kafka_conf_get(conf, name, text, &len) == RD_KAFKA_CONF_UNKNOWN ||
	       kafka_client_set(conf, name, value, err);
}

bool kafka_client_set_number(rd_kafka_conf_t *conf, const char *name, int64_t value,
			     struct error *err)
{
	char text[24];
	snprintf(text, sizeof text, "%lld", (long long)value);
	return kafka_client_set(conf, name, text, err);
}

bool kafka_client_uses_tls(const struct kafka_client_config *c)
{
	return c->tls.present.enabled && !c->tls.insecure;
}

void kafka_client_warn(const struct kafka_client_config *c, const struct log *log)
{
	const struct kafka_sasl_config *sasl = &c->auth.sasl;
	if (sasl->present.enabled && !strncmp(sasl->mechanism, "SCRAM", 5) &&
	    rd_kafka_version() < SCRAM_FIXED)
		log_warn(log, "SCRAM of this librdkafka is rejected by Kafka 4.0 and later.",
			 log_text("librdkafka", rd_kafka_version_str()),
			 log_text("needed", "2.6.1"));
}

bool kafka_client_load(const struct kafka_client_config *c, struct tls_material *material,
		       struct error *err)
{
	*material = (struct tls_material){ 0 };
	return !kafka_client_uses_tls(c) || tls_load_client(&c->tls, material, err) ||
	       error_prefix(err, "tls");
}

char *kafka_client_join(const struct strings *list)
{
	char *all = memory_text(list->at[0]);
	for (size_t i = 1; i < list->count; i++) {
		char *more = memory_format("%s,%s", all, list->at[i]);
		memory_free(all);
		all = more;
	}
	return all;
}

static bool set_brokers(rd_kafka_conf_t *conf, const struct strings *brokers, struct error *err)
{
	char *all = kafka_client_join(brokers);
	bool ok = kafka_client_set(conf, "bootstrap.servers", all, err);
	memory_free(all);
	return ok;
}

bool kafka_client_set_some(rd_kafka_conf_t *conf, const char *name, const char *value,
			   struct error *err)
{
	return !value || !*value || kafka_client_set(conf, name, value, err);
}

static bool set_security(rd_kafka_conf_t *conf, const struct kafka_client_config *c,
			 const struct tls_material *m, struct error *err)
{
	static const char *const protocols[2][2] = { { "plaintext", "ssl" },
						     { "sasl_plaintext", "sasl_ssl" } };
	const struct kafka_sasl_config *sasl = &c->auth.sasl;
	bool tls = kafka_client_uses_tls(c), with_sasl = sasl->present.enabled;
	if (!kafka_client_set(conf, "security.protocol", protocols[with_sasl][tls], err))
		return false;
	if (tls && (!kafka_client_set_some(conf, "ssl.ca.pem", m->ca, err) ||
		    !kafka_client_set_some(conf, "ssl.certificate.pem", m->cert, err) ||
		    !kafka_client_set_some(conf, "ssl.key.pem", m->key, err) ||
		    !kafka_client_set(conf, "enable.ssl.certificate.verification",
				      c->tls.insecure_skip_verify ? "false" : "true", err)))
		return false;
	return !with_sasl || (kafka_client_set(conf, "sasl.mechanism", sasl->mechanism, err) &&
			      kafka_client_set(conf, "sasl.username", sasl->username, err) &&
			      kafka_client_set(conf, "sasl.password", sasl->password.text, err));
}

static void discard_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk, (void)level, (void)facility, (void)text;
}

rd_kafka_conf_t *kafka_client_conf(const struct kafka_client_config *c,
				   const struct tls_material *material, struct error *err)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_conf_set_log_cb(conf, discard_log);
	bool ok = set_brokers(conf, &c->brokers, err) &&
		  kafka_client_set_some(conf, "client.id", c->client_id, err) &&
		  set_security(conf, c, material, err) &&
		  kafka_client_set_number(conf, "receive.message.max.bytes", RECEIVE_MAX, err) &&
		  kafka_client_set_number(conf, "topic.metadata.refresh.interval.ms",
					  c->metadata.refresh_interval.ns / 1000000, err) &&
		  kafka_client_set_number(conf, "retry.backoff.ms",
					  c->metadata.retry.backoff.ns / 1000000, err);
	if (!ok) {
		rd_kafka_conf_destroy(conf);
		conf = NULL;
	}
	return conf;
}

rd_kafka_t *kafka_client_new(int type, rd_kafka_conf_t *conf, struct error *err)
{
	char text[8]; /* librdkafka's text may repeat what is in the configuration */
	rd_kafka_t *rk = rd_kafka_new((rd_kafka_type_t)type, conf, text, sizeof text);
	if (rk)
		return rk;
	rd_kafka_conf_destroy(conf);
	error_set(err, ERROR_CONFIG,
		  "librdkafka does not accept the configuration (brokers, tls or auth)");
	return NULL;
}

/* ---- the Collector's keys ---- */

static bool is_set(const struct node *node)
{
	return node && node->kind != NODE_NULL;
}

static bool check_sasl(const void *config, struct error *err)
{
	const struct kafka_sasl_config *c = config;
	if (strcmp(c->mechanism, "PLAIN") && strcmp(c->mechanism, "SCRAM-SHA-256") &&
	    strcmp(c->mechanism, "SCRAM-SHA-512"))
		return error_set(err, ERROR_CONFIG,
				 "mechanism: must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512");
	if (is_set(c->aws_msk))
		return error_set(err, ERROR_CONFIG,
				 "aws_msk: credentials of AWS are not supported");
	if (!c->username || !*c->username)
		return error_set(err, ERROR_CONFIG, "username must be specified");
	if (!c->password.text || !*c->password.text)
		return error_set(err, ERROR_CONFIG, "password must be specified");
	return true;
}

static bool check_auth(const void *config, struct error *err)
{
	const struct kafka_auth_config *c = config;
	if (is_set(c->kerberos))
		return error_set(err, ERROR_CONFIG,
				 "kerberos: not supported; use sasl with SCRAM, or a client "
				 "certificate");
	if (is_set(c->plain_text))
		return error_set(err, ERROR_CONFIG,
				 "plain_text: deprecated; use sasl with mechanism PLAIN");
	if (is_set(c->tls))
		return error_set(err, ERROR_CONFIG,
				 "tls: deprecated; use the section tls beside auth");
	return true;
}

static bool check_metadata(const void *config, struct error *err)
{
	const struct kafka_metadata_config *c = config;
	if (c->refresh_interval.ns < 1000000 || c->refresh_interval.ns > INT64_C(3600000000000))
		return error_set(err, ERROR_CONFIG, "refresh_interval: must be from 1ms to 1h");
	if (c->retry.backoff.ns < 1000000 || c->retry.backoff.ns > INT64_C(300000000000))
		return error_set(err, ERROR_CONFIG, "retry::backoff: must be from 1ms to 5m");
	return true;
}

bool kafka_client_check(const struct kafka_client_config *c, struct error *err)
{
	if (!c->brokers.count)
		return error_set(err, ERROR_CONFIG, "brokers must be specified");
	for (size_t i = 0; i < c->brokers.count; i++)
		if (!port_of(c->brokers.at[i]) || strpbrk(c->brokers.at[i], ", /@"))
			return error_set(err, ERROR_CONFIG, "brokers[%zu]: must be host:port", i);
	if (c->resolve_canonical)
		return error_set(err, ERROR_CONFIG,
				 "resolve_canonical_bootstrap_servers_only: this version of "
				 "librdkafka does not support it");
	if (c->tls.server_name_override && *c->tls.server_name_override)
		return error_set(err, ERROR_CONFIG,
				 "tls::server_name_override: librdkafka verifies the name of each "
				 "broker and cannot use another");
	return true;
}

#define ROW(type, member, ...) CONFIG_ROW(struct type, member, .key = #member, __VA_ARGS__)

static const struct config_row sasl_rows[] = {
	ROW(kafka_sasl_config, username, .help = "The user."),
	ROW(kafka_sasl_config, password, .help = "The password."),
	ROW(kafka_sasl_config, mechanism, .def = "PLAIN",
	    .help = "`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`. With `PLAIN`, use TLS too. Kafka "
		    "4.0 and later reject SCRAM of librdkafka before 2.6.1; Debian 12 has 2.0.2."),
	ROW(kafka_sasl_config, version, .def = "0", .inert = true,
	    .help = "Client and broker negotiate the version."),
	ROW(kafka_sasl_config, aws_msk, .help = "Not supported: setting it is an error."),
	{ 0 }
};
static const struct config_table sasl_table = { sizeof(struct kafka_sasl_config), sasl_rows,
						check_sasl, .optional = true };

static const struct config_row auth_rows[] = {
	CONFIG_SECTION(struct kafka_auth_config, sasl, sasl_table, .key = "sasl",
		       .presence = PRESENCE_NONE, .help = "Authenticates with SASL."),
	ROW(kafka_auth_config, kerberos, .help = "Not supported: setting it is an error."),
	ROW(kafka_auth_config, plain_text, .help = "Deprecated, and an error: use `sasl`."),
	ROW(kafka_auth_config, tls, .help = "Deprecated, and an error: use `tls` beside `auth`."),
	{ 0 }
};
const struct config_table kafka_auth_table = { sizeof(struct kafka_auth_config), auth_rows,
					       check_auth };

static const struct config_row retry_rows[] = {
	ROW(kafka_retry_config, max, .def = "3", .inert = true,
	    .help = "Metadata is requested until it is there."),
	ROW(kafka_retry_config, backoff, .def = "250ms",
	    .help = "Delay before a request is repeated."),
	{ 0 }
};
static const struct config_table retry_requests_table = { sizeof(struct kafka_retry_config),
							  retry_rows };

static const struct config_row metadata_rows[] = {
	ROW(kafka_metadata_config, full, .def = "true", .inert = true,
	    .help = "Only the metadata of the topics in use is requested."),
	ROW(kafka_metadata_config, refresh_interval, .def = "10m",
	    .help = "How often leaders and partitions are asked for, besides after errors."),
	CONFIG_SECTION(struct kafka_metadata_config, retry, retry_requests_table, .key = "retry",
		       .help = "Repeated requests."),
	{ 0 }
};
const struct config_table kafka_metadata_table = { sizeof(struct kafka_metadata_config),
						   metadata_rows, check_metadata };
