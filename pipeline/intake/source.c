/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/source.h"

#include "base/clock.h"
#include "base/memory.h"

#include <assert.h>
#include <pthread.h>

struct source {
	struct source_options options;
	struct inbound_ops ops;
	pthread_mutex_t lock; /* guards submitted */
	pthread_cond_t answered;
	uint32_t submitted; /* requests without an outcome */
};

static struct gate *gate_of(const struct source_request *r)
{
	return r->in.gate;
}

static void request_free(struct source_request *r)
{
	bytes_fini(&r->body);
	gate_leave(gate_of(r));
	memory_free(r);
}

static bool load(struct inbound *in, struct body *buffers, struct error *err)
{
	struct source_request *r = (struct source_request *)in;
	const struct source_options *o = &r->source->options;
	return gate_charge(in->gate, in, r->body.room, err) &&
	       documents_load(&r->documents, o->documents, in, buffers, r->coding,
			      bytes_view(&r->body), &o->body_limit, o->body_limit.max, err);
}

static enum inbound_next next(struct inbound *in, struct body *buffers, struct view *document,
			      struct error *err)
{
	struct source_request *r = (struct source_request *)in;
	return documents_next(&r->documents, r->source->options.documents, in, buffers, document,
			      err);
}

static void reply(struct inbound *in, const struct outcome *outcome)
{
	struct source_request *r = (struct source_request *)in;
	struct source *source = r->source;
	source->options.done(r, outcome);
	request_free(r);
	pthread_mutex_lock(&source->lock);
	if (!--source->submitted)
		pthread_cond_broadcast(&source->answered);
	pthread_mutex_unlock(&source->lock);
}

struct source *source_new(const struct source_options *options)
{
	struct source *source = memory_new(sizeof *source);
	assert(options->request_size >= sizeof(struct source_request));
	source->options = *options;
	source->ops = (struct inbound_ops){ .load = load,
					    .next = next,
					    .decode = options->documents->decode,
					    .reply = reply,
					    .tables_factor = options->documents->tables_factor };
	pthread_mutex_init(&source->lock, NULL);
	pthread_cond_init(&source->answered, NULL);
	return source;
}

void source_stop(struct source *source)
{
	pthread_mutex_lock(&source->lock);
	while (source->submitted)
		pthread_cond_wait(&source->answered, &source->lock);
	pthread_mutex_unlock(&source->lock);
}

void source_unref(struct source **slot)
{
	struct source *source = *slot;
	*slot = NULL;
	if (!source)
		return;
	assert(!source->submitted);
	pthread_cond_destroy(&source->answered);
	pthread_mutex_destroy(&source->lock);
	memory_free(source);
}

static bool raise_body(struct bytes_meter *meter, struct bytes *b, size_t need)
{
	struct source_request *r =
		(struct source_request *)((char *)meter - offsetof(struct source_request, meter));
	const struct size_limit *limit = &r->source->options.body_limit;
	if (need > limit->max)
		return size_limit_exceeded(limit, "the body", 0, &r->err);
	return gate_grow(gate_of(r), &r->in, need, limit->max, &b->max, &r->err);
}

struct source_request *source_request_new(struct source *source)
{
	const struct source_options *o = &source->options;
	struct source_request *r = memory_new(o->request_size);
	r->source = source;
	r->meter.raise = raise_body;
	bytes_init(&r->body, 0);
	r->body.meter = &r->meter;
	r->in.gate = entrance_take(o->host->entrance);
	r->in.ops = &source->ops;
	r->in.request = (struct request){ .receiver = o->host->id,
					  .transport = o->transport,
					  .arrival = clock_now(),
					  .ack = &r->in.ack };
	return r;
}

bool source_admit(struct source_request *r, size_t announced, struct error *err)
{
	bool ok = gate_admit(gate_of(r), &r->in, announced, err);
	if (!ok)
		request_free(r);
	return ok;
}

void source_forget(struct source_request *r, enum refusal reason)
{
	gate_forget(gate_of(r), &r->in, reason);
	request_free(r);
}

void source_submit(struct source_request *r)
{
	struct source *source = r->source;
	pthread_mutex_lock(&source->lock);
	source->submitted++;
	pthread_mutex_unlock(&source->lock);
	gate_submit(gate_of(r), &r->in);
}
