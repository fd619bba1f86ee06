/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_client.h"

#include <ctype.h>
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "net/tls/tls_failure.h"

/* github.com/confluentinc/librdkafka/pull/4895: before this version, the final message of SCRAM
 * repeats the client's nonce. Kafka 4.0 and later reject that. */
#define SCRAM_FIXED 0x02060100

#define RECEIVE_MAX (16 << 20) /* of a broker's response that is not a fetch */

/* ---- codes ---- */

#define RETRY(code, word, kind) \
	{ \
		RD_KAFKA_RESP_ERR_##code, KAFKA_RETRY, word, CAUSE_##kind \
	}
#define PERMANENT(code, word, kind) \
	{ \
		RD_KAFKA_RESP_ERR_##code, KAFKA_PERMANENT, word, CAUSE_##kind \
	}
#define TOO_LARGE(code) \
	{ \
		RD_KAFKA_RESP_ERR_##code, KAFKA_TOO_LARGE, "too_large", CAUSE_MESSAGE_SIZE \
	}

static const struct meaning {
	rd_kafka_resp_err_t code;
	enum kafka_outcome outcome;
	const char *reason;
	enum cause_kind cause;
} meanings[] = {
	{ RD_KAFKA_RESP_ERR_NO_ERROR, KAFKA_OK, "ok", CAUSE_NONE },
	TOO_LARGE(MSG_SIZE_TOO_LARGE),
	TOO_LARGE(RECORD_LIST_TOO_LARGE),
	/* of the client */
	RETRY(_MSG_TIMED_OUT, "timeout", NO_RESPONSE),
	RETRY(_TIMED_OUT, "timeout", NO_RESPONSE),
	RETRY(_TIMED_OUT_QUEUE, "timeout", NO_RESPONSE),
	RETRY(_TRANSPORT, "unavailable", NO_CONNECTION),
	RETRY(_ALL_BROKERS_DOWN, "unavailable", NO_CONNECTION),
	RETRY(_RESOLVE, "unresolved", UNRESOLVED),
	RETRY(_SSL, "tls", TLS_FAILED),
	RETRY(_AUTHENTICATION, "unauthenticated", SASL_REJECTED),
	RETRY(_QUEUE_FULL, "queue_full", NONE),
	RETRY(_PURGE_QUEUE, "cancelled", NONE),
	RETRY(_PURGE_INFLIGHT, "cancelled", NONE),
	RETRY(_DESTROY, "stopped", NONE),
	RETRY(_FATAL, "producer_fenced", SESSION_ENDED),
	RETRY(_UNKNOWN_TOPIC, "unknown_topic", TOPIC_MISSING),
	RETRY(_UNKNOWN_PARTITION, "unknown_topic", TOPIC_MISSING),
	RETRY(_RETRY, "unavailable", NONE),
	/* whether the broker has the message is not known */
	RETRY(_BAD_MSG, "invalid_response", NONE),
	RETRY(_UNDERFLOW, "invalid_response", NONE),
	/* of the broker: retriable by the protocol */
	RETRY(INVALID_MSG, "corrupt", NONE),
	RETRY(UNKNOWN_TOPIC_OR_PART, "unknown_topic", TOPIC_MISSING),
	RETRY(LEADER_NOT_AVAILABLE, "unavailable", NO_LEADER),
	RETRY(NOT_LEADER_FOR_PARTITION, "unavailable", NO_LEADER),
	RETRY(REQUEST_TIMED_OUT, "timeout", REPLICAS),
	RETRY(BROKER_NOT_AVAILABLE, "unavailable", NO_LEADER),
	RETRY(REPLICA_NOT_AVAILABLE, "unavailable", NO_LEADER),
	RETRY(NETWORK_EXCEPTION, "unavailable", NONE),
	RETRY(COORDINATOR_LOAD_IN_PROGRESS, "unavailable", NO_COORDINATOR),
	RETRY(COORDINATOR_NOT_AVAILABLE, "unavailable", NO_COORDINATOR),
	RETRY(NOT_COORDINATOR, "unavailable", NO_COORDINATOR),
	RETRY(NOT_ENOUGH_REPLICAS, "not_enough_replicas", REPLICAS),
	RETRY(NOT_ENOUGH_REPLICAS_AFTER_APPEND, "not_enough_replicas", REPLICAS),
	RETRY(NOT_CONTROLLER, "unavailable", NONE),
	RETRY(KAFKA_STORAGE_ERROR, "disk", BROKER_DISK),
	RETRY(FENCED_LEADER_EPOCH, "unavailable", NO_LEADER),
	RETRY(UNKNOWN_LEADER_EPOCH, "unavailable", NO_LEADER),
	RETRY(THROTTLING_QUOTA_EXCEEDED, "resource_exhausted", BROKER_QUOTA),
	/* a new session of the idempotent producer begins */
	RETRY(OUT_OF_ORDER_SEQUENCE_NUMBER, "producer_fenced", SESSION_ENDED),
	RETRY(UNKNOWN_PRODUCER_ID, "producer_fenced", SESSION_ENDED),
	RETRY(INVALID_PRODUCER_EPOCH, "producer_fenced", SESSION_ENDED),
	/* of the broker: the same message will never be accepted */
	PERMANENT(TOPIC_AUTHORIZATION_FAILED, "permission_denied", TOPIC_DENIED),
	PERMANENT(CLUSTER_AUTHORIZATION_FAILED, "permission_denied", CLUSTER_DENIED),
	PERMANENT(GROUP_AUTHORIZATION_FAILED, "permission_denied", GROUP_DENIED),
	PERMANENT(TOPIC_EXCEPTION, "invalid_topic", TOPIC_INVALID),
	PERMANENT(POLICY_VIOLATION, "invalid", RECORD_REJECTED),
	PERMANENT(INVALID_RECORD, "invalid", RECORD_REJECTED),
	PERMANENT(INVALID_TIMESTAMP, "invalid", RECORD_REJECTED),
	PERMANENT(UNSUPPORTED_COMPRESSION_TYPE, "unsupported", NOT_SUPPORTED),
	PERMANENT(UNSUPPORTED_FOR_MESSAGE_FORMAT, "unsupported", NOT_SUPPORTED),
	PERMANENT(UNSUPPORTED_VERSION, "unsupported", NOT_SUPPORTED),
};

struct kafka_result kafka_judge(int code)
{
	static const struct meaning unknown = { 0, KAFKA_PERMANENT, "refused", CAUSE_NONE };
	const struct meaning *m = &unknown;
	for (size_t i = 0; i < sizeof meanings / sizeof *meanings && m == &unknown; i++)
		if ((int)meanings[i].code == code)
			m = &meanings[i];
	return (struct kafka_result){ m->outcome, m->reason, code, { m->cause, 0 } };
}

/* ---- causes ---- */

#define ALERT "SSL alert number "

/* The first row counts whose code is this one and whose phrase is in librdkafka's text. Those of
 * TLS apply to any code of a connection: librdkafka reports the same failure of a handshake
 * sometimes as _SSL and sometimes as _TRANSPORT. */
static const struct phrase {
	rd_kafka_resp_err_t code;
	const char *text;
	struct cause cause;
	bool noted; /* kafka_instance_tls_cause has it */
} phrases[] = {
	{ RD_KAFKA_RESP_ERR__AUTHENTICATION,
	  "mechanism handshake failed",
	  { CAUSE_SASL_MECHANISM, 0 } },
	{ RD_KAFKA_RESP_ERR__SSL, "certificate verify failed", .noted = true },
	{ RD_KAFKA_RESP_ERR__SSL, "wrong version number", { CAUSE_NOT_TLS, 0 } },
	{ RD_KAFKA_RESP_ERR__SSL, "http request", { CAUSE_NOT_TLS, 0 } },
	{ RD_KAFKA_RESP_ERR__SSL, "packet length too long", { CAUSE_NOT_TLS, 0 } },
	{ RD_KAFKA_RESP_ERR__SSL, "unsupported protocol", { CAUSE_TLS_VERSION, 0 } },
	{ RD_KAFKA_RESP_ERR__SSL, ALERT, .noted = true },
	{ RD_KAFKA_RESP_ERR__SSL, "timed out in state SSL_HANDSHAKE", { CAUSE_TLS_TIMEOUT, 0 } },
	{ RD_KAFKA_RESP_ERR__SSL, "PLAINTEXT broker listener", { CAUSE_TLS_CLOSED, 0 } },
	{ RD_KAFKA_RESP_ERR__SSL, "in state SSL_HANDSHAKE", { CAUSE_TLS_CLOSED, 0 } },
	{ RD_KAFKA_RESP_ERR__TRANSPORT, "Connection refused", { CAUSE_REFUSED, ECONNREFUSED } },
	{ RD_KAFKA_RESP_ERR__TRANSPORT, "Connection reset by peer", { CAUSE_RESET, ECONNRESET } },
	{ RD_KAFKA_RESP_ERR__TRANSPORT, "Broken pipe", { CAUSE_RESET, EPIPE } },
	{ RD_KAFKA_RESP_ERR__TRANSPORT,
	  "Connection timed out",
	  { CAUSE_CONNECT_TIMEOUT, ETIMEDOUT } },
	{ RD_KAFKA_RESP_ERR__TRANSPORT, "No route to host", { CAUSE_UNREACHABLE, EHOSTUNREACH } },
	{ RD_KAFKA_RESP_ERR__TRANSPORT,
	  "Network is unreachable",
	  { CAUSE_UNREACHABLE, ENETUNREACH } },
	{ RD_KAFKA_RESP_ERR__TRANSPORT,
	  "timed out in state CONNECT",
	  { CAUSE_CONNECT_TIMEOUT, 0 } },
	{ RD_KAFKA_RESP_ERR__TRANSPORT, "imed out", { CAUSE_NO_RESPONSE, 0 } },
	{ RD_KAFKA_RESP_ERR__TRANSPORT, "isconnected", { CAUSE_CLOSED, 0 } },
};

static bool applies(const struct phrase *p, int code, const char *text)
{
	bool of_tls = p->code == RD_KAFKA_RESP_ERR__SSL && code == RD_KAFKA_RESP_ERR__TRANSPORT;
	return ((int)p->code == code || of_tls) && strstr(text, p->text);
}

/* Of a failure whose cause only OpenSSL knows: as much as the text says. */
static enum cause_kind cause_of_tls(const char *text)
{
	const char *found = strstr(text, ALERT);
	long number = found ? strtol(found + strlen(ALERT), NULL, 10) : -1;
	if (!found)
		return CAUSE_CERTIFICATE;
	return tls_failure_of_alert(number > 0 && number <= UINT8_MAX ? (int)number : 0, false);
}

struct kafka_result kafka_explain(int code, const char *text, enum cause_kind noted)
{
	const struct phrase *p = phrases, *end = phrases + sizeof phrases / sizeof *phrases;
	text = text ? text : "";
	while (p < end && !applies(p, code, text))
		p++;
	struct kafka_result result = kafka_judge(p < end ? (int)p->code : code);
	if (p < end)
		result.cause = p->cause;
	if (p < end && p->noted)
		result.cause.kind = noted ? noted : cause_of_tls(text);
	return result;
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

int64_t kafka_client_ms(int64_t ns)
{
	return ns / 1000000 + (ns % 1000000 > 0);
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

/* ---- the Collector's keys ---- */

static bool is_set(const struct node *node)
{
	return node && node->kind != NODE_NULL;
}

/* Mechanisms whose credentials are tokens need neither user nor password. */
static bool check_mechanism(const struct kafka_sasl_config *c, struct faults *faults)
{
	bool known = !strcmp(c->mechanism, "PLAIN") || !strcmp(c->mechanism, "SCRAM-SHA-256") ||
		     !strcmp(c->mechanism, "SCRAM-SHA-512");
	if (!known)
		faults_add(faults, "mechanism: must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; no "
				   "extension of this build provides tokens");
	return known;
}

static void check_sasl(const void *config, struct faults *faults)
{
	const struct kafka_sasl_config *c = config;
	if (is_set(c->aws_msk))
		faults_add(faults, "aws_msk: credentials of AWS are not supported");
	if (is_set(c->token_source))
		faults_add(faults, "oauthbearer_token_source: no extension of this build provides "
				   "tokens");
	if (!check_mechanism(c, faults))
		return;
	if (!c->username || !*c->username)
		faults_add(faults, "username must be specified");
	if (!c->password.text || !*c->password.text)
		faults_add(faults, "password must be specified");
}

static void check_auth(const void *config, struct faults *faults)
{
	const struct kafka_auth_config *c = config;
	if (is_set(c->kerberos))
		faults_add(faults, "kerberos: not supported; use sasl with SCRAM, or a client "
				   "certificate");
	if (is_set(c->plain_text))
		faults_add(faults, "plain_text: deprecated; use sasl with mechanism PLAIN");
	if (is_set(c->tls))
		faults_add(faults, "tls: deprecated; use the section tls beside auth");
}

static void check_metadata(const void *config, struct faults *faults)
{
	const struct kafka_metadata_config *c = config;
	if (c->refresh_interval.ns < 1000000 || c->refresh_interval.ns > INT64_C(3600000000000))
		faults_add(faults, "refresh_interval: must be from 1ms to 1h");
	if (c->retry.backoff.ns < 1000000 || c->retry.backoff.ns > INT64_C(300000000000))
		faults_add(faults, "retry::backoff: must be from 1ms to 5m");
}

void kafka_client_check(const struct kafka_client_config *c, struct faults *faults)
{
	if (!c->brokers.count)
		faults_add(faults, "brokers must be specified");
	for (size_t i = 0; i < c->brokers.count; i++)
		if (!port_of(c->brokers.at[i]) || strpbrk(c->brokers.at[i], ", /@"))
			faults_add(faults, "brokers[%zu]: must be host:port", i);
	if (c->resolve_canonical)
		faults_add(faults, "resolve_canonical_bootstrap_servers_only: this version of "
				   "librdkafka does not support it");
	if (c->tls.server_name_override && *c->tls.server_name_override)
		faults_add(faults,
			   "tls::server_name_override: librdkafka verifies the name of each "
			   "broker and cannot use another");
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
	CONFIG_ROW(struct kafka_sasl_config, token_source, .key = "oauthbearer_token_source",
		   .help = "Not supported: setting it is an error. No extension of this build "
			   "provides tokens."),
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
