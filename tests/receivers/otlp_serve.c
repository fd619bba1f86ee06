/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The otlp receiver with a gate that only counts, for test_otlp.py. The arguments are YAML=TEXT
 * (the receiver's configuration) and LIMIT=BYTES. `decoding` is a test double; the body determines
 * its result:
 *
 *	"invalid"   ERROR_INVALID "profiles[3]: bad"
 *	"partial N" N profiles rejected
 *	else        accepted, and kept for the command `last`
 *
 *	last      length, hash, metadata x-tenant, peer and subject of the last body
 *	here      the number of requests that an I/O thread has run itself
 *	charged   the current and the maximum charge, and the refusals and losses by reason
 *	limit N   sets the limit
 *	stop      stops the receiver and exits
 */
#include "base/hash.h"
#include "base/memory.h"
#include "config/load.h"
#include "config/node.h"
#include "pipeline/component.h"
#include "pipeline/inbound.h"
#include "pipeline/intake/request_limits.h"
#include "profile/otlp/decode_otlp.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gate {
	_Atomic int64_t limit, now, most;
};

enum { IO_THREADS = 2 };
static _Atomic int runs_here;

static void process(struct inbound *in, struct body *body);

extern const struct component_factory otlp_receiver;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct inbound *queue;
static bool ending;
static char last[512] = "none", reasons[512];

static bool charge(struct gate *gate, struct inbound *in, int64_t bytes, struct error *err)
{
	int64_t delta = bytes - in->charged;
	if (gate->now + delta > gate->limit) {
		error_set(err, ERROR_BUSY, "over the memory limit");
		return false;
	}
	in->charged = bytes;
	gate->now += delta;
	if (gate->now > gate->most)
		gate->most = (int64_t)gate->now;
	return true;
}

static void note(const char *reason)
{
	pthread_mutex_lock(&mutex);
	size_t used = strlen(reasons);
	snprintf(reasons + used, sizeof reasons - used, " %s", reason);
	pthread_mutex_unlock(&mutex);
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
	bool ok = charge(gate, in, GATE_REQUEST_BYTES, err);
	if (!ok)
		note("refused");
	return ok;
}

struct gate *entrance_take(struct entrance *entrance)
{
	return (struct gate *)entrance;
}

void gate_leave(struct gate *gate)
{
	(void)gate;
}

struct net_budget entrance_net_budget(struct entrance *entrance)
{
	(void)entrance;
	return (struct net_budget){ 0 };
}

bool gate_charge(struct gate *gate, struct inbound *in, size_t bytes, struct error *err)
{
	return charge(gate, in, GATE_REQUEST_BYTES + (int64_t)bytes, err);
}

void gate_forget(struct gate *gate, struct inbound *in, enum refusal reason)
{
	gate->now -= in->charged;
	note(refusal_names[reason ? reason : REFUSAL_MEMORY]);
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

void gate_run_here(struct gate *gate, struct inbound *in, uint32_t io_thread)
{
	static struct body bodies[IO_KINDS * IO_THREADS];
	in->gate = gate;
	in->here = true;
	runs_here++;
	process(in, &bodies[io_thread]);
	bytes_fini(&bodies[io_thread].raw);
}

bool decode_otlp_any(struct profiles *p, struct otlp_layout *layout, struct error *err)
{
	layout->candidates = 1 << OTLP_CURRENT;
	const char *text = (const char *)p->input.at;
	if (view_is(p->input, "invalid"))
		return error_set(err, ERROR_INVALID, "profiles[3]: bad");
	if (p->input.len > 8 && memcmp(text, "partial ", 8) == 0)
		p->rejected_profiles = (uint32_t)(text[8] - '0');
	return true;
}

bool decode_otlp_refuse(uint32_t candidates, struct error *err)
{
	(void)candidates;
	return error_set(err, ERROR_INVALID, "ambiguous");
}

static void remember(const struct inbound *in, struct view body)
{
	const struct request *r = &in->request;
	const char *tenant = request_metadata(r, "x-tenant"), *host = request_metadata(r, "host"),
		   *subject = "none";
	for (const struct metadatum *m = r->auth; m && m->name; m++)
		subject = strcmp(m->name, "subject") ? subject : m->value;
	pthread_mutex_lock(&mutex);
	snprintf(last, sizeof last, "%s %s len=%zu first=%02x tenant=%s peer=%s subject=%s host=%s",
		 r->receiver, transport_names[r->transport], body.len, body.len ? body.at[0] : 0,
		 tenant ? tenant : "none", r->peer, subject, host ? host : "none");
	pthread_mutex_unlock(&mutex);
}

/* The pipeline, as far as a receiver sees it. */
static void process(struct inbound *in, struct body *body)
{
	static _Thread_local struct profiles profiles;
	struct view view;
	struct gate *gate = in->gate;
	bool ok = in->ops->load(in, body, &in->error);
	if (in->moves) {
		in->here = in->moves = false;
		gate_submit(gate, in);
		return;
	}
	ok = ok && in->ops->next(in, body, &view, &in->error) == INBOUND_DOCUMENT;
	if (ok) {
		remember(in, view);
		profiles.input = view;
		profiles.rejected_profiles = 0;
		ok = in->ops->decode(in, &profiles, &in->error);
	}
	in->outcome = (struct outcome){ .error = ok ? NULL : &in->error };
	if (ok && profiles.rejected_profiles) {
		in->outcome.rejected_profiles = profiles.rejected_profiles;
		in->outcome.rejection = "profiles[1]: no stack";
	}
	gate->now -= in->charged;
	in->ops->reply(in, &in->outcome);
}

static void *work(void *argument)
{
	struct body body = { 0 };
	(void)argument;
	pthread_mutex_lock(&mutex);
	while (!ending || queue) {
		struct inbound *in = queue;
		if (!in) {
			pthread_cond_wait(&more, &mutex);
			continue;
		}
		queue = in->next;
		pthread_mutex_unlock(&mutex);
		process(in, &body);
		pthread_mutex_lock(&mutex);
	}
	pthread_mutex_unlock(&mutex);
	bytes_fini(&body.raw);
	bytes_fini(&body.translated);
	bytes_fini(&body.inflated);
	return NULL;
}

static void obey(struct gate *gate, const char *line)
{
	pthread_mutex_lock(&mutex);
	if (strcmp(line, "last") == 0) {
		puts(last);
	} else if (strcmp(line, "charged") == 0) {
		printf("%lld %lld%s\n", (long long)gate->now, (long long)gate->most, reasons);
	} else if (strcmp(line, "here") == 0) {
		printf("%d\n", runs_here);
	} else if (strncmp(line, "limit ", 6) == 0) {
		gate->limit = atoll(line + 6);
		printf("%lld\n", (long long)gate->limit);
	}
	pthread_mutex_unlock(&mutex);
}

static void *bind(const char *yaml)
{
	const struct config_table *table = otlp_receiver.config;
	void *config = memory_new(table->size);
	struct error err = { 0 };
	struct node *node = config_parse("test", yaml, strlen(yaml), &err);
	if (!node || !config_bind(table, node, "receivers::otlp", config, &err)) {
		printf("error %s\n", err.text);
		exit(1);
	}
	node_unref(&node);
	return config;
}

static void run(struct gate *gate)
{
	pthread_t worker;
	pthread_create(&worker, NULL, work, NULL);
	char line[256];
	while (fgets(line, sizeof line, stdin) && strcmp(line, "stop\n") != 0) {
		line[strcspn(line, "\n")] = '\0';
		obey(gate, line);
	}
	pthread_mutex_lock(&mutex);
	ending = true;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&mutex);
	pthread_join(worker, NULL);
}

int main(int argc, char **argv)
{
	struct gate gate = { .limit = 256 << 20 };
	const char *yaml = "protocols: {grpc: {endpoint: '127.0.0.1:0'}}";
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "yaml=", 5) == 0)
			yaml = argv[i] + 5;
		else if (strncmp(argv[i], "limit=", 6) == 0)
			gate.limit = atoll(argv[i] + 6);
	setvbuf(stdout, NULL, _IOLBF, 0);
	const char *const outputs[] = { "stdout", NULL }; /* the first line contains the port */
	struct log_config logging = { .level = LOG_INFO, .json = true, .output_paths = outputs };
	void *config = bind(yaml);
	struct error err = { 0 };
	struct host host = { .id = "otlp",
			     .metrics = metrics_new(),
			     .entrance = (struct entrance *)&gate,
			     .io = io_start(IO_THREADS, &err) };
	host.log.component_id = "otlp";
	void *self = memory_new(otlp_receiver.size);
	bool ok = log_configure(&logging, &err) &&
		  otlp_receiver.create(self, config, &host, &err) &&
		  otlp_receiver.receiver->start(self, &err);
	if (!ok)
		printf("error %s\n", err.text);
	else
		run(&gate);
	otlp_receiver.receiver->stop(self);
	otlp_receiver.destroy(self);
	io_stop(&host.io);
	metrics_unref(&host.metrics);
	config_release(otlp_receiver.config, config);
	memory_free(config);
	memory_free(self);
	return ok ? 0 : 1;
}
