/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_KAFKA_KAFKA_CLIENT_H
#define NET_KAFKA_KAFKA_CLIENT_H

#include "base/log.h"
#include "config/table.h"
#include "net/cause.h"
#include "net/tls/tls.h"

/*
 * What all clients of Kafka have in common: the Collector's keys (configkafka), and the meaning of
 * Kafka's error codes. The library is librdkafka. Its threads never enter code outside of this
 * folder, and its log is discarded: its lines may repeat what a broker sent.
 */
struct kafka_sasl_config {
	struct optional present;
	char *username, *mechanism;
	struct secret password;
	int64_t version;
	const struct node *aws_msk, *token_source;
};

struct kafka_auth_config {
	struct kafka_sasl_config sasl;
	const struct node *kerberos, *plain_text, *tls;
};

struct kafka_retry_config {
	int64_t max;
	struct duration backoff;
};

struct kafka_metadata_config {
	bool full;
	struct duration refresh_interval;
	struct kafka_retry_config retry;
};

struct kafka_client_config {
	struct strings brokers;
	char *client_id, *protocol_version;
	bool resolve_canonical;
	struct duration conn_idle_timeout; /* without effect */
	bool use_leader_epoch;             /* the same */
	struct tls_client_config tls;
	struct kafka_auth_config auth;
	struct kafka_metadata_config metadata;
};

extern const struct config_table kafka_auth_table, kafka_metadata_table;

/* The rows of a component's table: KAFKA_CLIENT_ROWS(struct kafka_config, client). */
/* clang-format off */
#define KAFKA_CLIENT_ROWS(type, member) \
	CONFIG_ROW(type, member.brokers, .key = "brokers", .role = ROLE_CONNECTS, .def = "[localhost:9092]", \
		   .help = "`host:port` of the brokers to ask for the others."), \
	CONFIG_ROW(type, member.client_id, .key = "client_id", .def = "otel-collector", \
		   .help = "Names the client in the brokers' logs, metrics and quotas."), \
	CONFIG_ROW(type, member.protocol_version, .key = "protocol_version", .inert = true, \
		   .help = "Client and broker negotiate the version."), \
	CONFIG_ROW(type, member.resolve_canonical, .key = "resolve_canonical_bootstrap_servers_only", .def = "false", \
		   .help = "Only `false` is supported."), \
	CONFIG_ROW(type, member.conn_idle_timeout, .key = "conn_idle_timeout", .def = "9m", .inert = true, \
		   .help = "Brokers close idle connections (`connections.max.idle.ms`), and the client opens them again."), \
	CONFIG_ROW(type, member.use_leader_epoch, .key = "use_leader_epoch", .def = "true", .inert = true, \
		   .help = "librdkafka uses it where the brokers have it."), \
	CONFIG_SECTION(type, member.tls, tls_client_optional_table, .key = "tls", .presence = PRESENCE_DEFAULT, \
		       .help = "Turns TLS on, unless `insecure: true`. Without the section, connections are plaintext."), \
	CONFIG_SECTION(type, member.auth, kafka_auth_table, .key = "auth", .help = "How the client authenticates."), \
	CONFIG_SECTION(type, member.metadata, kafka_metadata_table, .key = "metadata", \
		       .help = "What the client asks of the cluster.")
/* clang-format on */

void kafka_client_check(const struct kafka_client_config *config, struct faults *faults);
bool kafka_client_uses_tls(const struct kafka_client_config *config);
/* Logs what will not work with the librdkafka of this machine. */
void kafka_client_warn(const struct kafka_client_config *config, const struct log *log);
/* Reads the certificates; `material` is empty without TLS, and after a failure. */
bool kafka_client_load(const struct kafka_client_config *config, struct tls_material *material,
		       struct error *err);

/* A configuration of librdkafka (rd_kafka_conf_t) with these keys; material: loaded for `tls`, NULL
 * without TLS. NULL: err says why. */
struct rd_kafka_conf_s;
struct rd_kafka_conf_s *kafka_client_conf(const struct kafka_client_config *config,
					  const struct tls_material *material, struct error *err);
/* "a,b,c"; the caller frees it. */
char *kafka_client_join(const struct strings *list);
/* Sets one property; false: librdkafka of this machine does not accept it. */
bool kafka_client_set(struct rd_kafka_conf_s *conf, const char *name, const char *value,
		      struct error *err);
/* The same, unless the value is NULL or empty. */
bool kafka_client_set_some(struct rd_kafka_conf_s *conf, const char *name, const char *value,
			   struct error *err);
/* The same, if this release of librdkafka has it. */
bool kafka_client_set_known(struct rd_kafka_conf_s *conf, const char *name, const char *value,
			    struct error *err);
bool kafka_client_set_number(struct rd_kafka_conf_s *conf, const char *name, int64_t value,
			     struct error *err);
/* In milliseconds, rounded up: to librdkafka, 0 is no limit or no time at all. */
int64_t kafka_client_ms(int64_t ns);

/* 1 to 249 letters, digits, '.', '_' and '-', and not "." or ".." (Kafka, Topic.java). */
bool kafka_topic_ok(struct view name);

/* Host and port of the first broker, for labels; the caller frees both. */
void kafka_client_place(const struct kafka_client_config *config, char **host, char **port);

/* Of a message: what a consumer reads, and a producer's exporter keeps to. */
enum {
	KAFKA_HEADERS_MAX = 64,
	KAFKA_HEADERS_BYTES_MAX = 16384, /* names and values */
	KAFKA_HEADER_NAME_MAX = 256,
	KAFKA_HEADER_VALUE_MAX = 4096
};

/*
 * What an error code of librdkafka or of a broker means for a message. Codes that Kafka's protocol
 * calls retriable (kafka.apache.org/protocol, "Error Codes") are retryable, and so are lost
 * connections and timeouts. A code that is not known is permanent.
 */
enum kafka_outcome { KAFKA_OK, KAFKA_RETRY, KAFKA_PERMANENT, KAFKA_TOO_LARGE };

struct kafka_result {
	enum kafka_outcome outcome;
	const char *reason; /* one of a few fixed words */
	int code;           /* above 0: a broker has answered it; below: it is librdkafka's */
	struct cause cause;
};

struct kafka_result kafka_judge(int code);

/* The same of an error that a client reports. `text` is what librdkafka says, which may repeat a
 * broker's text (NULL: nothing). It is only compared with phrases, and may replace the code by a
 * more precise one. noted: what kafka_instance_tls_cause has found;
 * CAUSE_NONE: nothing. */
struct kafka_result kafka_explain(int code, const char *text, enum cause_kind noted);

#endif
