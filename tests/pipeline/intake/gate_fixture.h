/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PIPELINE_INTAKE_GATE_FIXTURE_H
#define TESTS_PIPELINE_INTAKE_GATE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "pipeline/intake/entrance.h"
#include "tests/support/open.h"

/* A gate with real workers, one pipeline whose only destination keeps packets, and a scripted
 * receiver. */
struct fixture {
	struct loop *loop;
	struct metrics *metrics;
	struct ledger *ledger;
	struct log log;
	struct budget budget;
	struct peers peers;
	struct pipeline pipeline;
	struct route route; /* of the pipeline */
	struct pipeline *pipelines[2];
	struct workers *workers;
	struct gate *gate;
	struct entrance *entrance; /* leads to the gate */
	struct duplicates_config deduplicate;
	struct duplicates *duplicates; /* of the receiver; NULL: none */
	_Atomic uint32_t packets;
	bool full;  /* no destination has room */
	bool fills; /* nor has any after the next packet */
	bool hold;  /* the sender waits for the packet */
	enum ack_mode ack;
	struct packet *held;
	struct delivery *deliveries[2];
	int draining;
};

struct fake { /* a receiver's request */
	struct inbound in;
	size_t body;
	uint32_t bad;          /* Profiles that the decoder rejects */
	enum error_kind fails; /* the result of decoding, for all documents or for `failing` */
	uint32_t documents, found, failing; /* 0 documents: one; failing: bits of indices */
	int64_t charged;                    /* maximum while a document is decoded */
	bool replied, refused;
	enum error_kind kind;
	uint32_t retry_after_ms, rejected;
	char text[160]; /* of the error or the rejection */
};

static inline void collected(void *context, const struct collect_added *added)
{
	pipeline_collected(&((struct fixture *)context)->route, added);
}

static inline bool keep(void *context, struct packet *packet, struct request *request)
{
	(void)request;
	struct fixture *f = context;
	ledger_enter(f->ledger);
	ledger_move(f->pipeline.row, LEDGER_BATCHED, LEDGER_PASSED, packet->samples);
	ledger_leave(f->ledger);
	f->packets++;
	if (f->hold)
		f->held = packet;
	else
		packet_unref(&packet);
	bool room = !f->full;
	f->full = f->full || f->fills;
	return room;
}

static bool load(struct inbound *in, struct body *body, struct error *err)
{
	struct fake *fake = (struct fake *)in;
	bytes_init(&body->raw, 1 << 20);
	if (!bytes_reserve(&body->raw, fake->body) || !gate_charge(in->gate, in, fake->body, err))
		return false;
	body->raw.len = fake->body;
	return true;
}

/* Each document is the whole body. */
static enum inbound_next next(struct inbound *in, struct body *body, struct view *document,
			      struct error *err)
{
	struct fake *fake = (struct fake *)in;
	(void)err;
	*document = bytes_view(&body->raw);
	return fake->found++ < (fake->documents ? fake->documents : 1) ? INBOUND_DOCUMENT
								       : INBOUND_END;
}

static bool decode(struct inbound *in, struct profiles *p, struct error *err)
{
	struct fake *fake = (struct fake *)in;
	fake->charged = in->charged > fake->charged ? in->charged : fake->charged;
	if (fake->fails && (!fake->failing || fake->failing >> (fake->found - 1) & 1))
		return error_set(err, fake->fails, "scripted");
	uint32_t stack = open_frame(p, "main");
	open_resource(p, (struct list){ 0 });
	open_scope(p, "");
	open_profile(p, "cpu", "ns");
	open_value(p, stack, (struct list){ 0 }, 7);
	p->rejected_profiles = fake->bad;
	p->rejected_samples = fake->bad * 2;
	if (fake->bad)
		snprintf(p->rejection, sizeof p->rejection, "scripted fault");
	return true;
}

static void reply(struct inbound *in, const struct outcome *outcome)
{
	struct fake *fake = (struct fake *)in;
	fake->replied = true;
	fake->refused = outcome->error != NULL;
	fake->kind = outcome->error ? outcome->error->kind : ERROR_NONE;
	fake->retry_after_ms = outcome->error ? outcome->error->retry_after_ms : 0;
	fake->rejected = outcome->rejected_profiles;
	const char *text = outcome->error ? outcome->error->text : outcome->rejection;
	snprintf(fake->text, sizeof fake->text, "%s", text ? text : "");
}

static const struct inbound_ops ops = {
	.load = load, .next = next, .decode = decode, .reply = reply, .tables_factor = 16
};

static inline struct fake fake_request(size_t body)
{
	return (struct fake){ .in = { .ops = &ops, .request = { .transport = TRANSPORT_GRPC } },
			      .body = body };
}

static inline struct workers *start_workers(struct fixture *f)
{
	return workers_start(&(struct workers_options){ .count = 2,
							.queue_max = 64,
							.budget = &f->budget,
							.run = gate_run },
			     NULL);
}

static inline int setup(void **state)
{
	struct fixture *f = memory_new(sizeof *f);
	f->loop = loop_new(NULL);
	f->metrics = metrics_new();
	budget_init(&f->budget, 8 << 20, 0);
	peers_init(&f->peers);
	f->entrance = entrance_new(&f->budget);
	f->pipeline.id = "profiles";
	f->pipeline.routes = &f->route;
	f->pipeline.route_count = 1;
	f->route.path = &f->pipeline;
	f->ledger = ledger_new(f->metrics);
	f->pipeline.ledger = f->ledger;
	f->pipeline.row = ledger_pipeline(f->ledger, f->pipeline.id);
	f->route.leads = true;
	f->pipelines[0] = f->pipelines[1] = &f->pipeline;
	f->workers = start_workers(f);
	*state = f;
	return 0;
}

static inline void make_batcher(struct fixture *f)
{
	f->route.batcher =
		batcher_new(&(struct batcher_options){ .settings = &f->route.settings,
						       .shards = 1,
						       .loop = f->loop,
						       .budget = &f->budget,
						       .collected = collected,
						       .hold_acks = f->hold ? ACK_MODE_ANY : 0,
						       .emit = keep,
						       .context = f });
}

/* pipelines 0: admission does not ask destinations, because there are none here. */
static inline void open_gate(struct fixture *f, uint32_t pipelines)
{
	if (!f->route.batcher)
		make_batcher(f);
	f->gate = gate_new(&(struct gate_options){ .receiver = "fake",
						   .paths = f->pipelines,
						   .pipeline_count = pipelines,
						   .budget = &f->budget,
						   .peers = &f->peers,
						   .workers = &f->workers,
						   .ack = f->ack,
						   .duplicates = f->duplicates,
						   .metrics = f->metrics,
						   .ledger = f->ledger,
						   .log = &f->log });
	entrance_lead(f->entrance, f->gate);
}

static inline void reopen_gate(struct fixture *f, uint32_t pipelines)
{
	gate_unref(&f->gate);
	open_gate(f, pipelines);
}

static inline int64_t read_metric(struct fixture *f, const char *line)
{
	struct bytes text;
	bytes_init(&text, 1 << 20);
	metrics_write(f->metrics, &text);
	bytes_add_byte(&text, 0);
	const char *at = strstr((char *)text.at, line);
	int64_t value = at ? strtoll(at + strlen(line), NULL, 10) : -1;
	bytes_fini(&text);
	return value;
}

#define LABELS "{receiver=\"fake\",transport=\"grpc\"} "
#define REASON(reason) \
	"otelcol_receiver_refused_requests{reason=\"" reason \
	"\",receiver=\"fake\",transport=\"grpc\"} "
#define OUTCOME(outcome) \
	"otelcol_receiver_requests{outcome=\"" outcome "\",receiver=\"fake\",transport=\"grpc\"} "

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	workers_stop(&f->workers);
	gate_unref(&f->gate);
	duplicates_unref(&f->duplicates);
	batcher_unref(&f->route.batcher);
	assert_int_equal(f->budget.charged, 0);
	peers_fini(&f->peers);
	entrance_unref(&f->entrance);
	loop_unref(&f->loop);
	assert_int_equal(ledger_check(f->ledger, false), 0);
	ledger_unref(&f->ledger);
	metrics_unref(&f->metrics);
	memory_free(f);
	return 0;
}

/* All steps except admission, for which there may be no room. */
static inline void submit(struct fixture *f, struct fake *fake)
{
	fake->in.peer = peers_hold(&f->peers, &fake->in.request);
	gate_submit(f->gate, &fake->in);
}

static inline void run(struct fixture *f, struct fake *fake)
{
	submit(f, fake);
	workers_stop(&f->workers);
	assert_true(fake->replied);
}

#endif
