/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/rpc_channel.h"

#include <assert.h>
#include <grpc/grpc_security.h>

#include "base/memory.h"
#include "net/grpc/grpc_allowance.h"
#include "net/grpc/grpc_reply.h"

enum {
	BACKOFF_FIRST_MS = 500,
	BACKOFF_LAST_MS = 10000, /* a backend that is available again is found within this time */
	NEVER_MS = INT32_MAX - 1,
	RESOLVE_AGAIN_MS = 5000, /* after a failure, at the earliest; core's default is 30 s */
	STALLED_MS = 10000,
	ARGS_MAX = 24
};

/* TLS without verification of the server's certificate. Only the newer interface of core supports
 * it. */
static grpc_channel_credentials *unverified_credentials(const struct tls_material *m)
{
	grpc_tls_credentials_options *options = grpc_tls_credentials_options_create();
	grpc_tls_certificate_verifier *verifier = grpc_tls_certificate_verifier_no_op_create();
	grpc_tls_credentials_options_set_verify_server_cert(options, 0);
	grpc_tls_credentials_options_set_check_call_host(options, 0);
	grpc_tls_credentials_options_set_certificate_verifier(options, verifier);
	grpc_tls_certificate_verifier_release(verifier);
	if (m->cert) {
		grpc_tls_identity_pairs *pairs = grpc_tls_identity_pairs_create();
		grpc_tls_identity_pairs_add_pair(pairs, m->key, m->cert);
		grpc_tls_certificate_provider *provider =
			grpc_tls_certificate_provider_static_data_create(NULL, pairs);
		grpc_tls_credentials_options_set_certificate_provider(options, provider);
		grpc_tls_credentials_options_watch_identity_key_cert_pairs(options);
		grpc_tls_certificate_provider_release(provider);
	}
	return grpc_tls_credentials_create(options);
}

static grpc_channel_credentials *credentials_of(const struct grpc_endpoint *endpoint,
						const struct tls_client_config *tls,
						const struct tls_material *m)
{
	if (grpc_endpoint_is_plaintext(endpoint, tls))
		return grpc_insecure_credentials_create();
	if (tls && tls->insecure_skip_verify)
		return unverified_credentials(m);
	grpc_ssl_pem_key_cert_pair pair = { m->key, m->cert };
	return grpc_ssl_credentials_create_ex(m->ca, m->cert ? &pair : NULL, NULL, NULL);
}

struct args {
	grpc_arg at[ARGS_MAX];
	size_t count;
};

static void add_number(struct args *args, const char *key, int64_t value)
{
	assert(args->count < ARGS_MAX);
	args->at[args->count++] =
		(grpc_arg){ .type = GRPC_ARG_INTEGER,
			    .key = (char *)key,
			    .value.integer = value > INT32_MAX ? INT32_MAX : (int)value };
}

static void add_text(struct args *args, const char *key, const char *value)
{
	assert(args->count < ARGS_MAX);
	if (value && *value)
		args->at[args->count++] = (grpc_arg){ .type = GRPC_ARG_STRING,
						      .key = (char *)key,
						      .value.string = (char *)value };
}

/* Core would take 0 for "immediately". */
static int64_t at_least_1_ms(struct duration d)
{
	return d.ns < 1000000 ? 1 : d.ns / 1000000;
}

/* Core's own names, which it uses when it finds a proxy in the environment. That is switched off,
 * because its rules differ from those of the Collector (net/proxy.h). The caller frees the result
 * when the channel exists. */
static char *add_proxy(struct args *args, const struct grpc_endpoint *endpoint,
		       const struct grpc_client_options *o)
{
	char *header = NULL;
	add_number(args, GRPC_ARG_ENABLE_HTTP_PROXY, 0);
	if (endpoint->proxy_authorization)
		header = memory_format("Proxy-Authorization:%s", endpoint->proxy_authorization);
	add_text(args, "grpc.http_connect_server", endpoint->proxied ? endpoint->authority : NULL);
	add_text(args, "grpc.http_connect_headers", header);
	/* not that of the target; also the name in the server's certificate */
	add_text(args, GRPC_ARG_DEFAULT_AUTHORITY,
		 o->authority ? o->authority : endpoint->authority);
	return header;
}

/* With a keepalive time, core sets TCP_USER_TIMEOUT of each socket to the keepalive timeout.
 * Without it, a peer that stops reading would delay a half-written message, and the shutdown of its
 * exporter, for a quarter of an hour. */
static void add_keepalive(struct args *args, const struct grpc_client_options *o)
{
	add_number(args, GRPC_ARG_KEEPALIVE_TIME_MS,
		   o->keepalive ? at_least_1_ms(o->keepalive_time) : NEVER_MS);
	add_number(args, GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
		   o->keepalive ? at_least_1_ms(o->keepalive_timeout) : STALLED_MS);
	add_number(args, GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, o->permit_without_stream);
	add_number(args, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

struct rpc_channel *rpc_channel_new(const struct grpc_endpoint *endpoint,
				    const struct grpc_client_options *o,
				    const struct tls_material *material,
				    struct grpc_allowance *allowance)
{
	struct args args = { .at = { grpc_allowance_argument(allowance) }, .count = 1 };
	add_number(&args, GRPC_ARG_ENABLE_RETRIES, 0);
	add_number(&args, GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
	add_number(&args, GRPC_ARG_ENABLE_CHANNELZ, 0);
	add_number(&args, GRPC_ARG_HTTP2_BDP_PROBE, 0);
	add_number(&args, GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
	/* Core checks the length of a message only after all of it has arrived. The allowance
	 * bounds what it receives. */
	add_number(&args, GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1);
	add_number(&args, GRPC_ARG_MAX_METADATA_SIZE, GRPC_REPLY_METADATA_MAX);
	add_number(&args, GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, BACKOFF_FIRST_MS);
	add_number(&args, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, BACKOFF_LAST_MS);
	add_number(&args, GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, RESOLVE_AGAIN_MS);
	add_text(&args, GRPC_ARG_LB_POLICY_NAME, o->balancer);
	add_text(&args, GRPC_ARG_PRIMARY_USER_AGENT_STRING, o->user_agent);
	add_text(&args, GRPC_SSL_TARGET_NAME_OVERRIDE_ARG,
		 o->tls ? o->tls->server_name_override : NULL);
	add_keepalive(&args, o);
	char *header = add_proxy(&args, endpoint, o);

	grpc_channel_credentials *credentials = credentials_of(endpoint, o->tls, material);
	grpc_channel_args all = { args.count, args.at };
	struct rpc_channel *channel = memory_new(sizeof *channel);
	channel->refs = 1;
	channel->core = grpc_channel_create(endpoint->target, credentials, &all);
	channel->method = grpc_channel_register_call(channel->core, o->method, NULL, NULL);
	grpc_channel_credentials_release(credentials);
	memory_free(header);
	return channel;
}

struct rpc_channel *rpc_channel_ref(struct rpc_channel *channel)
{
	atomic_fetch_add(&channel->refs, 1);
	return channel;
}

void rpc_channel_unref(struct rpc_channel **slot)
{
	struct rpc_channel *channel = *slot;
	*slot = NULL;
	if (!channel)
		return;
	if (atomic_fetch_sub(&channel->refs, 1) > 1)
		return;
	grpc_channel_destroy(channel->core);
	memory_free(channel);
}
