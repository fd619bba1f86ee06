/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_instance.h"

#include <time.h>

#include "base/memory.h"
#include "base/thread.h"
#include "net/tls/tls_failure.h"

/* How long an end is waited for: more than the threads need when no name hangs. */
#define PATIENCE_S 2

/* ---- why TLS fails: the opaque of each client, written by its threads, and freed with it */

static void note_failure(void *noted, enum cause_kind kind)
{
	*(_Atomic enum cause_kind *)noted = kind;
}

static rd_kafka_resp_err_t on_thread(rd_kafka_t *rk, rd_kafka_thread_type_t type, const char *name,
				     void *noted)
{
	(void)rk, (void)type, (void)name;
	tls_failure_watch(note_failure, noted);
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *noted,
				  char *text, size_t room)
{
	(void)conf, (void)text, (void)room;
	return rd_kafka_interceptor_add_on_thread_start(rk, "tls", on_thread, noted);
}

enum cause_kind kafka_instance_tls_cause(rd_kafka_t *rk)
{
	return *(const _Atomic enum cause_kind *)rd_kafka_opaque(rk);
}

rd_kafka_t *kafka_instance_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, struct error *err)
{
	char text[8]; /* librdkafka's text may repeat what is in the configuration */
	_Atomic enum cause_kind *noted = memory_new(sizeof *noted);
	rd_kafka_conf_set_opaque(conf, noted);
	rd_kafka_conf_interceptor_add_on_new(conf, "tls", on_new, noted);
	rd_kafka_t *rk = rd_kafka_new(type, conf, text, sizeof text);
	if (rk)
		return rk;
	rd_kafka_conf_destroy(conf);
	memory_free(noted);
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
	void *noted = rd_kafka_opaque(rk);
	rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	memory_free(noted);
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
