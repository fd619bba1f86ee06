/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_instance.h"

#include <time.h>

#include "base/memory.h"
#include "base/thread.h"
#include "net/tls/tls_failure.h"

/* How long an end is waited for: more than the threads need when no name hangs. */
#define PATIENCE_S 2

/* ---- the certificate: the opaque of each client, and freed with it */

/* On librdkafka's thread. It decides as OpenSSL has decided, and only takes note of why. */
static int judge_certificate(rd_kafka_t *rk, const char *broker, int32_t number, int *error,
			     int depth, const char *der, size_t len, char *text, size_t room,
			     void *opaque)
{
	(void)rk, (void)broker, (void)number, (void)depth, (void)der, (void)len;
	if (room)
		*text = 0;
	if (*error)
		*(_Atomic enum cause_kind *)opaque = tls_failure_of_verification(*error);
	return *error == 0;
}

enum cause_kind kafka_instance_certificate(rd_kafka_t *rk)
{
	return *(const _Atomic enum cause_kind *)rd_kafka_opaque(rk);
}

rd_kafka_t *kafka_instance_new(rd_kafka_type_t type, const struct kafka_client_config *config,
			       rd_kafka_conf_t *conf, struct error *err)
{
	char text[8]; /* librdkafka's text may repeat what is in the configuration */
	_Atomic enum cause_kind *certificate = memory_new(sizeof *certificate);
	rd_kafka_conf_set_opaque(conf, certificate);
	if (kafka_client_uses_tls(config) && !config->tls.insecure_skip_verify)
		rd_kafka_conf_set_ssl_cert_verify_cb(conf, judge_certificate);
	rd_kafka_t *rk = rd_kafka_new(type, conf, text, sizeof text);
	if (rk)
		return rk;
	rd_kafka_conf_destroy(conf);
	memory_free(certificate);
	error_set(err, ERROR_CONFIG,
		  "librdkafka does not accept the configuration (brokers, tls or auth)");
	return NULL;
}

/* ---- the end */

struct ending {
	rd_kafka_t *rk;
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool ended, abandoned; /* under the lock; abandoned: nobody waits any more */
};

static void destroy(rd_kafka_t *rk)
{
	void *certificate = rd_kafka_opaque(rk);
	rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	memory_free(certificate);
}

static struct ending *ending_new(rd_kafka_t *rk)
{
	struct ending *e = memory_new(sizeof *e);
	pthread_condattr_t attributes;
	e->rk = rk;
	pthread_mutex_init(&e->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&e->done, &attributes);
	pthread_condattr_destroy(&attributes);
	return e;
}

static void ending_free(struct ending *e)
{
	pthread_cond_destroy(&e->done);
	pthread_mutex_destroy(&e->lock);
	memory_free(e);
}

static void *run(void *argument)
{
	struct ending *e = argument;
	destroy(e->rk);
	pthread_mutex_lock(&e->lock);
	e->ended = true;
	bool abandoned = e->abandoned;
	pthread_cond_signal(&e->done);
	pthread_mutex_unlock(&e->lock);
	if (abandoned)
		ending_free(e);
	return NULL;
}

/* False: it takes too long, and the thread has the rest. */
static bool wait_for_end(struct ending *e)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	int code = 0;
	pthread_mutex_lock(&e->lock);
	while (!e->ended && !code)
		code = pthread_cond_timedwait(&e->done, &e->lock, &until);
	e->abandoned = !e->ended;
	bool ended = e->ended;
	pthread_mutex_unlock(&e->lock);
	return ended;
}

void kafka_instance_free(rd_kafka_t *rk)
{
	pthread_t thread;
	struct ending *e = ending_new(rk);
	if (!thread_start(&thread, run, e, NULL)) {
		destroy(rk);
		ending_free(e);
	} else if (wait_for_end(e)) {
		pthread_join(thread, NULL);
		ending_free(e);
	} else {
		pthread_detach(thread);
	}
}
