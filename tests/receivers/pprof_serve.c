/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * The pprof receiver with a gate that only counts, for test_pprof.py: pprof_serve YAML LIMIT. It
 * prints "listening ADDRESS" and executes the commands that it reads from stdin:
 *
 *	last      prints the result of the last request: profiles, samples, resource attributes,
 *	          peer, x-tenant
 *	charged   prints the bytes charged now, their maximum, and the reasons of refusals
 *	held      prints the bytes charged for connections
 *	limit N   sets the limit of the bytes that may be charged; 0 refuses at the headers
 *	stop      stops the receiver
 *	overhead  prints the bytes that the last admitted request holds in addition to its body
 */
/* clang-format on */
#include "base/memory.h"
#include "config/load.h"
#include "pipeline/component.h"
#include "pipeline/inbound.h"
#include "pipeline/intake/request_limits.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct gate {
	_Atomic int64_t limit, now, most, held, overhead;
};

extern const struct component_factory pprof_receiver;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct inbound *queue;
static bool ending;
static char last[4096] = "none", reasons[512];

bool gate_charge(struct gate *gate, struct inbound *in, size_t bytes, struct error *err)
{
	int64_t delta = (int64_t)bytes - in->charged;
	if (gate->now + delta > gate->limit) {
		error_set(err, ERROR_BUSY, "over the memory limit");
		return false;
	}
	in->charged = (int64_t)bytes;
	gate->now += delta;
	if (gate->now > gate->most)
		gate->most = (int64_t)gate->now;
	return true;
}

const struct request_limiter *gate_limiter(const struct gate *gate)
{
	static const struct request_limiter none;
	(void)gate;
	return &none;
}

bool gate_wants_headers(const struct gate *gate)
{
	(void)gate;
	return false;
}

bool gate_admit(struct gate *gate, struct inbound *in, size_t announced, struct error *err)
{
	(void)announced;
	gate->overhead = (int64_t)in->overhead;
	return gate->limit || error_set(err, ERROR_BUSY, "over the memory limit");
}

struct gate *entrance_take(struct entrance *entrance)
{
	return (struct gate *)entrance;
}

void gate_leave(struct gate *gate)
{
	(void)gate;
}

bool entrance_hold(struct entrance *entrance, int64_t bytes)
{
	((struct gate *)entrance)->held += bytes;
	return true;
}

void entrance_release(struct entrance *entrance, int64_t bytes)
{
	((struct gate *)entrance)->held -= bytes;
}

/* Each connection is charged to `held`. */
static bool hold(void *context, int64_t bytes)
{
	return entrance_hold(context, bytes);
}

static void release(void *context, int64_t bytes)
{
	entrance_release(context, bytes);
}

static bool is_short(void *context)
{
	(void)context;
	return false;
}

struct net_budget entrance_net_budget(struct entrance *entrance)
{
	return (struct net_budget){
		.hold = hold, .release = release, .is_short = is_short, .context = entrance
	};
}

void gate_forget(struct gate *gate, struct inbound *in, enum refusal reason)
{
	gate->now -= in->charged;
	in->charged = 0;
	pthread_mutex_lock(&mutex);
	size_t used = strlen(reasons);
	snprintf(reasons + used, sizeof reasons - used, " %s:%s",
		 transport_names[in->request.transport], reason ? refusal_names[reason] : "-");
	pthread_mutex_unlock(&mutex);
}

void gate_submit(struct gate *gate, struct inbound *in)
{
	in->gate = gate;
	pthread_mutex_lock(&mutex);
	in->next = queue;
	queue = in;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&mutex);
}

/* No document of this receiver is small enough to be run by an I/O thread. */
void gate_run_here(struct gate *gate, struct inbound *in, uint32_t io_thread)
{
	(void)gate, (void)in, (void)io_thread;
	abort();
}

static void add_attributes(const struct profiles *p, struct bytes *out)
{
	const struct resource *r = &p->resources.at[0];
	for (uint32_t i = 0; i < r->attributes.count; i++) {
		const struct attribute *a =
			&p->attributes.at[p->indices.at[r->attributes.first + i]];
		struct view key = string_view(p, a->key), value = string_view(p, a->string);
		bytes_format(out, " %.*s=%.*s", (int)key.len, key.at, (int)value.len, value.at);
	}
}

static void remember(const struct profiles *p, const struct request *request)
{
	const char *tenant = request_metadata(request, "x-tenant");
	struct bytes text;
	bytes_init(&text, sizeof last - 1);
	bytes_format(&text,
		     "profiles=%u "
		     "samples=%u "
		     "peer=%s tenant=%s",
		     p->profiles.count, p->samples.count, request->peer, tenant ? tenant : "none");
	add_attributes(p, &text);
	pthread_mutex_lock(&mutex);
	memcpy(last, text.at, text.len);
	last[text.len] = '\0';
	pthread_mutex_unlock(&mutex);
	bytes_fini(&text);
}

static void work_on(struct inbound *in, struct body *body, struct profiles *p)
{
	struct view view;
	struct outcome outcome = { 0 };
	struct error *err = &in->error;
	bool ok = in->ops->load(in, body, err) &&
		  in->ops->next(in, body, &view, err) == INBOUND_DOCUMENT &&
		  profiles_reset(p, &in->request, view, 1 << 28) && in->ops->decode(in, p, err);
	if (ok)
		remember(p, &in->request);
	else
		outcome.error = err;
	in->gate->now -= in->charged;
	in->ops->reply(in, &outcome);
}

static void *work(void *argument)
{
	struct body body = { 0 };
	struct profiles p = { 0 };
	for (;;) {
		pthread_mutex_lock(&mutex);
		while (!queue && !ending)
			pthread_cond_wait(&more, &mutex);
		struct inbound *in = queue;
		if (in)
			queue = in->next;
		pthread_mutex_unlock(&mutex);
		if (!in)
			break;
		work_on(in, &body, &p);
	}
	bytes_fini(&body.raw);
	bytes_fini(&body.translated);
	bytes_fini(&body.inflated);
	profiles_fini(&p);
	return argument;
}

static void obey(const char *line, struct gate *gate, void *receiver)
{
	pthread_mutex_lock(&mutex);
	if (!strncmp(line, "limit ", 6)) {
		gate->limit = strtoll(line + 6, NULL, 10);
		puts("limited");
	} else if (!strcmp(line, "last"))
		printf("%s\n", last);
	else if (!strcmp(line, "charged"))
		printf("now=%ld most=%ld%s\n", (long)gate->now, (long)gate->most, reasons);
	else if (!strcmp(line, "held"))
		printf("%ld\n", (long)gate->held);
	else if (!strcmp(line, "overhead"))
		printf("%ld\n", (long)gate->overhead);
	fflush(stdout);
	pthread_mutex_unlock(&mutex);
	if (!strcmp(line, "stop"))
		pprof_receiver.receiver->stop(receiver);
}

static bool start(const char *yaml, void *receiver, void *config, const struct host *host,
		  struct error *err)
{
	struct node *node = config_parse("test", yaml, strlen(yaml), err);
	bool ok = node &&
		  config_bind(pprof_receiver.config, node, "receivers::pprof", config, err) &&
		  pprof_receiver.create(receiver, config, host, err) &&
		  pprof_receiver.receiver->start(receiver, err);
	node_unref(&node);
	return ok;
}

int main(int argc, char **argv)
{
	void *receiver = memory_new(pprof_receiver.size),
	     *config = memory_new(pprof_receiver.config->size);
	struct gate gate = { .limit = argc == 3 ? strtoll(argv[2], NULL, 10) : 0 };
	struct error err = { 0 };
	struct io *io = io_start(2, &err);
	struct host host = { .id = "pprof",
			     .metrics = metrics_new(),
			     .entrance = (struct entrance *)&gate,
			     .io = io };
	pthread_t worker;
	char line[100];
	pthread_create(&worker, NULL, work, NULL);
	bool ok = argc == 3 && start(argv[1], receiver, config, &host, &err);
	printf("%s\n", ok ? "started" : err.text);
	fflush(stdout);
	while (ok && fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = '\0';
		obey(line, &gate, receiver);
	}
	if (ok)
		pprof_receiver.receiver->stop(receiver);
	pthread_mutex_lock(&mutex);
	ending = true;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&mutex);
	pthread_join(worker, NULL);
	pprof_receiver.destroy(receiver);
	config_release(pprof_receiver.config, config);
	io_stop(&io);
	metrics_unref(&host.metrics);
	memory_free(config);
	memory_free(receiver);
	return 0;
}
