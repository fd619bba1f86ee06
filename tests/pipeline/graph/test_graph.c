/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "config/load.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/graph/exporters.h"
#include "pipeline/graph/graph.h"
#include "pipeline/inbound.h"
#include "tests/support/open.h"

/* Graphs of scripted components: a receiver that submits requests when it starts, a processor
 * without effect, an exporter that keeps or rejects packets, and an extension. Each counts its
 * starts and stops. */
static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER; /* guards holds, stops, held */
static struct {
	_Atomic int created, started, stopped, destroyed;
	const char *start_fails; /* the component that does not start */
	bool holds;              /* the exporter reports no result before its stop */
	bool stops;              /* the exporter has begun its stop */
	int requests;            /* the number that the receiver submits */
	_Atomic int sent, replied, refused;
	struct sending *held[8];
	int held_count;
} world;

struct fake {
	const struct host *host;
	struct fake_request {
		struct inbound in;
		bool found; /* its only document was read */
		_Atomic bool replied;
	} requests[4];
};

struct fake_config {
	struct delivery_config delivery;
};

static bool create(void *self, const void *config, const struct host *host, struct error *err)
{
	(void)config;
	(void)err;
	((struct fake *)self)->host = host;
	world.created++;
	return true;
}

static bool start(void *self, struct error *err)
{
	struct fake *fake = self;
	world.started++;
	if (world.start_fails && !strcmp(world.start_fails, fake->host->id))
		return error_set(err, ERROR_CONFIG, "scripted");
	return true;
}

static void stop(void *self)
{
	(void)self;
	world.stopped++;
}

static void destroy(void *self)
{
	(void)self;
	world.destroyed++;
}

static bool load(struct inbound *in, struct body *body, struct error *err)
{
	(void)in;
	(void)err;
	body->raw.len = 0;
	body->raw.max = 4096;
	bytes_reserve(&body->raw, 1);
	return true;
}

static enum inbound_next next(struct inbound *in, struct body *body, struct view *document,
			      struct error *err)
{
	struct fake_request *request = (struct fake_request *)in;
	bool found = request->found;
	(void)err;
	request->found = true;
	*document = bytes_view(&body->raw);
	return found ? INBOUND_END : INBOUND_DOCUMENT;
}

static bool decode(struct inbound *in, struct profiles *p, struct error *err)
{
	(void)in;
	(void)err;
	uint32_t stack = open_frame(p, "main");
	open_resource(p, (struct list){ 0 });
	open_scope(p, "");
	open_profile(p, "cpu", "ns");
	open_value(p, stack, (struct list){ 0 }, 7);
	return true;
}

static void reply(struct inbound *in, const struct outcome *outcome)
{
	gate_leave(in->gate);
	((struct fake_request *)in)->replied = true;
	world.replied++;
	world.refused += outcome->error != NULL;
}

static const struct inbound_ops ops = {
	.load = load, .next = next, .decode = decode, .reply = reply, .tables_factor = 16
};

static bool start_receiver(void *self, struct error *err)
{
	struct fake *fake = self;
	for (int i = 0; i < world.requests; i++) {
		struct inbound *in = &fake->requests[i].in;
		*in = (struct inbound){ .ops = &ops, .request = { .transport = TRANSPORT_GRPC } };
		struct gate *gate = entrance_take(fake->host->entrance);
		if (!gate_admit(gate, in, 0, err))
			return false;
		gate_submit(gate, in);
	}
	return start(self, err);
}

/* The stop of a receiver waits until its senders have replies. */
static void stop_receiver(void *self)
{
	struct fake *fake = self;
	for (int i = 0; i < world.requests; i++)
		while (!fake->requests[i].replied)
			usleep(1000);
	stop(self);
}

static void send_part(void *self, const struct part *part, uint64_t timeout_ns,
		      struct sending *sending)
{
	(void)self;
	(void)part;
	(void)timeout_ns;
	world.sent++;
	pthread_mutex_lock(&held_lock);
	bool holds = world.holds;
	const struct send_result result = { .outcome = world.stops ? SEND_RETRY : SEND_OK,
					    .retry_after_ms = -1,
					    .reason = "stopped" };
	if (holds)
		world.held[world.held_count++] = sending;
	pthread_mutex_unlock(&held_lock);
	if (!holds)
		sending_done(sending, &result);
}

static void stop_exporter(void *self)
{
	const struct send_result cancelled = { .outcome = SEND_RETRY,
					       .retry_after_ms = -1,
					       .reason = "cancelled" };
	pthread_mutex_lock(&held_lock);
	world.holds = false;
	for (int i = 0; i < world.held_count; i++)
		sending_done(world.held[i], &cancelled);
	world.stops = true;
	pthread_mutex_unlock(&held_lock);
	stop(self);
}

static void settle(void *self, struct path_settings *settings)
{
	(void)self;
	settings->batch.on = true;
	settings->batch.timeout.ns = INT64_C(3600000000000);
	settings->batch.size = 1000000;
}

static const struct config_row rows[] = { { 0 } };
static const struct config_table table = { sizeof(struct fake_config), rows };
static const struct config_row exporter_rows[] = {
	DELIVERY_ROWS(struct fake_config, delivery, "5s"), { 0 }
};
static const struct config_table exporter_table = { sizeof(struct fake_config), exporter_rows };

#define LIFE .size = sizeof(struct fake), .create = create, .destroy = destroy

static const struct receiver_ops receiver_ops = { .start = start_receiver, .stop = stop_receiver };
static const struct component_factory fake_receiver = { .type = "fake",
							.kind = COMPONENT_RECEIVER,
							.receiver = &receiver_ops,
							.config = &table,
							LIFE };
static const struct processor_ops idle_ops = { 0 };
static const struct component_factory fake_processor = {
	.type = "fake", .kind = COMPONENT_PROCESSOR, .processor = &idle_ops, .config = &table, LIFE
};
static const struct processor_ops batch_ops = { .settle = settle, .once = true };
static const struct component_factory fake_batch = { .type = "batch",
						     .kind = COMPONENT_PROCESSOR,
						     .processor = &batch_ops,
						     .config = &table,
						     LIFE };
static const struct exporter_ops exporter_ops = {
	.start = start,
	.stop = stop_exporter,
	.delivery_offset = offsetof(struct fake_config, delivery),
	.send = send_part,
};
static const struct component_factory fake_exporter = { .type = "fake",
							.alias = "old",
							.kind = COMPONENT_EXPORTER,
							.exporter = &exporter_ops,
							.config = &exporter_table,
							LIFE };
static const struct extension_ops extension_ops = { .start = start, .stop = stop };
static const struct component_factory fake_extension = { .type = "fake",
							 .kind = COMPONENT_EXTENSION,
							 .extension = &extension_ops,
							 .config = &table,
							 LIFE };
extern const struct component_factory memory_limiter_processor;
static const struct component_factory *const factories[] = {
	&fake_receiver, &fake_processor, &fake_batch, &memory_limiter_processor,
	&fake_exporter, &fake_extension, NULL
};

struct fixture {
	struct loop *loop;
	struct metrics *metrics;
	struct ledger *ledger;
	struct budget budget;
	struct exporters *exporters;
	struct io *io;
	struct node *root;
	struct graph *graph, *second;
	int running; /* the number of running graphs, of two */
	struct error err;
};

static int setup(void **state)
{
	struct fixture *f = memory_new(sizeof *f);
	memset(&world, 0, sizeof world);
	f->loop = loop_new(NULL);
	f->metrics = metrics_new();
	f->ledger = ledger_new(f->metrics);
	f->exporters = exporters_new(f->loop, f->metrics, f->ledger, &f->budget);
	f->io = io_start(2, NULL);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	graph_unref(&f->graph);
	graph_unref(&f->second);
	io_stop(&f->io);
	node_unref(&f->root);
	exporters_unref(&f->exporters);
	loop_unref(&f->loop);
	ledger_unref(&f->ledger);
	metrics_unref(&f->metrics);
	memory_free(f);
	assert_int_equal(world.created, world.destroyed);
	return 0;
}

static struct graph *build_graph(struct fixture *f)
{
	return graph_build(
		&(struct graph_options){
			.root = f->root,
			.factories = factories,
			.loop = f->loop,
			.metrics = f->metrics,
			.ledger = f->ledger,
			.budget = &f->budget,
			.exporters = f->exporters,
			.workers = 2,
		},
		&f->err);
}

static bool build(struct fixture *f, const char *yaml)
{
	f->root = config_parse("c.yaml", yaml, strlen(yaml), &f->err);
	assert_non_null(f->root);
	f->graph = build_graph(f);
	return f->graph != NULL;
}

static void ended(void *argument)
{
	loop_stop(((struct fixture *)argument)->loop);
}

static bool start_graph(struct fixture *f, struct graph *graph)
{
	struct problems problems = { 0 };
	graph_start(graph, f->io, &problems);
	return problems_end(&problems, &f->err);
}

/* Starts the graph, and stops it immediately with this grace period. */
static bool run(struct fixture *f, uint64_t grace_ns)
{
	bool ok = start_graph(f, f->graph);
	ok = ok && budget_ready(&f->budget, &f->err);
	budget_show(&f->budget, f->metrics);
	if (ok)
		graph_ready(f->graph);
	graph_stop(f->graph, grace_ns, ended, f);
	loop_run(f->loop);
	return ok;
}

#define PARTS \
	"receivers: {fake: }\nprocessors: {fake: , batch: }\nexporters: {fake: }\n" \
	"extensions: {fake: }\n"
#define SECOND UINT64_C(1000000000)

static void what_is_wrong_is_named_with_file_line_and_column(void **state)
{
	static const char *const cases[][2] = {
		{ "{}", "empty configuration file" },
		{ "receivers: {fake: }",
		  "c.yaml:1:1: no exporter configuration specified in config" },
		{ PARTS,
		  "c.yaml:1:1: service::pipelines: service must have at least one pipeline" },
		{ PARTS "service: {pipelines: {}}",
		  "c.yaml:5:11: service::pipelines: service must have at least one pipeline" },
		{ PARTS "service:\n  pipelines:\n    profiles: {exporters: [fake]}",
		  "c.yaml:7:5: service::pipelines::profiles: must have at least one receiver" },
		{ PARTS "service:\n  pipelines:\n    profiles: {receivers: [fake]}",
		  "c.yaml:7:5: service::pipelines::profiles: must have at least one exporter" },
		{ PARTS "service:\n  pipelines:\n    profiles: {receivers: [fake, fake/2], "
			"exporters: [fake]}",
		  "c.yaml:7:34: service::pipelines::profiles: references receiver \"fake/2\" "
		  "which is not configured" },
		{ PARTS "service:\n  pipelines:\n    profiles/x:\n      receivers: [fake]\n      "
			"exporters: [fake]\n"
			"      processors: [fake, batch, fake]",
		  "c.yaml:10:33: service::pipelines::profiles/x: references processor \"fake\" "
		  "multiple times" },
		{ "receivers: {fake: }\nprocessors: {batch: , batch/2: }\nexporters: {fake: "
		  "}\nservice:\n  pipelines:\n"
		  "    profiles: {receivers: [fake], exporters: [fake], processors: [batch, "
		  "batch/2]}",
		  "c.yaml:6:74: service::pipelines::profiles: processor \"batch/2\" is the "
		  "second of its type; a pipeline may have at most one" },
		{ PARTS "service:\n  extensions: [nope]\n  pipelines: {profiles: {receivers: "
			"[fake], exporters: [fake]}}",
		  "c.yaml:6:16: service::extensions: references extension \"nope\" which is not "
		  "configured" },
		{ PARTS "service: {pipelines: {profile: {receivers: [fake], exporters: [fake]}}}",
		  "c.yaml:5:23: service::pipelines: unknown pipeline signal: \"profile\"; use "
		  "profiles or profiles/NAME" },
		{ "receivers: {fake: }\nexporters: {fake/a b: , fake: }\nservice: {pipelines: "
		  "{profiles: {receivers: [fake], exporters: [fake]}}}",
		  "c.yaml:2:13: exporters: invalid character(s) in name \"a b\"" },
		{ PARTS "service: {pipelines: {profiles: {receivers: [batch], exporters: [fake]}}}",
		  "c.yaml:5:46: service::pipelines::profiles: references receiver \"batch\" which "
		  "is not configured; \"batch\" is a processor" },
	};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		error_clear(&f->err);
		assert_false(build(f, cases[i][0]));
		const char *at = strstr(f->err.text, cases[i][1]);
		if (!at)
			fail_msg("\"%s\" is not \"%s\"", f->err.text, cases[i][1]);
		node_unref(&f->root);
	}
}

static void unused_components_are_checked_but_not_built(void **state)
{
	struct fixture *f = *state;
	assert_true(build(f, PARTS "service: {pipelines: {profiles: {receivers: [fake], "
				   "exporters: [fake]}}}"));
	assert_int_equal(world.created, 2);
}

static void an_exporter_named_twice_gets_everything_once(void **state)
{
	struct fixture *f = *state;
	world.requests = 1;
	assert_true(build(f, PARTS "service: {pipelines: {profiles: {receivers: [fake, fake], "
				   "exporters: [fake, ' fake']}}}"));
	assert_true(run(f, 60 * SECOND));
	assert_int_equal(world.sent, 1);
	assert_int_equal(world.replied, 1);
}

static void a_failed_start_stops_what_was_started(void **state)
{
	struct fixture *f = *state;
	world.start_fails = "fake/b";
	assert_true(build(f, "receivers: {fake: }\nexporters: {fake/a: , fake/b: , fake/c: "
			     "}\nextensions: {fake: }\n"
			     "service: {extensions: [fake], pipelines: {profiles: {receivers: "
			     "[fake], exporters: [fake/a, fake/b, fake/c]}}}"));
	assert_false(run(f, 60 * SECOND));
	assert_string_equal(f->err.text, "c.yaml:2:23: exporters::fake/b: scripted");
	assert_int_equal(world.started, 3);
	assert_int_equal(world.stopped, 3);
}

static void open_batches_and_queues_are_emptied_at_the_end(void **state)
{
	struct fixture *f = *state;
	world.requests = 4;
	assert_true(build(f, PARTS "service: {pipelines: {profiles: {receivers: [fake], "
				   "processors: [batch], exporters: [fake]}}}"));
	assert_true(run(f, 60 * SECOND));
	assert_in_range(world.sent, 1, 2); /* at most one batch for the shard of each worker */
	assert_int_equal(world.replied, 4);
	assert_int_equal(world.refused, 0);
}

#define WAITING \
	"receivers: {fake: }\nprocessors: {batch: }\n" \
	"exporters: {fake: {sending_queue: {wait_for_result: true}}}\n" \
	"service: {pipelines: {profiles: {receivers: [fake], processors: [batch], " \
	"exporters: [fake]}}}"

static void senders_that_wait_for_a_batch_are_not_kept_waiting_by_the_end(void **state)
{
	struct fixture *f = *state;
	world.requests = 4;
	assert_true(build(f, WAITING));
	assert_true(run(f, 60 * SECOND));
	assert_int_equal(world.replied, 4);
	assert_int_equal(world.refused, 0);
}

static void senders_that_wait_for_a_hanging_destination_hear_at_the_deadline(void **state)
{
	struct fixture *f = *state;
	world.requests = 4;
	world.holds = true;
	assert_true(build(f, WAITING));
	assert_true(run(f, SECOND / 10));
	assert_int_equal(world.replied, 4);
	assert_int_equal(world.refused, 4);
}

static void one_has_ended(void *argument)
{
	struct fixture *f = argument;
	if (--f->running == 0)
		loop_stop(f->loop);
}

/* Two graphs of the same configuration run. */
static void start_two(struct fixture *f, const char *yaml)
{
	assert_true(build(f, yaml));
	f->second = build_graph(f);
	assert_non_null(f->second);
	assert_true(start_graph(f, f->graph));
	assert_true(budget_ready(&f->budget, &f->err));
	graph_ready(f->graph);
	assert_true(start_graph(f, f->second));
	graph_ready(f->second);
}

static void a_graph_ends_without_the_exporter_that_another_one_uses(void **state)
{
	struct fixture *f = *state;
	world.requests = 1;
	world.holds = true;
	start_two(f, PARTS "service: {pipelines: {profiles: {receivers: [fake], exporters: "
			   "[fake]}}}");
	assert_int_equal(world.created, 3);
	assert_int_equal(world.started, 3);
	f->running = 1;
	graph_retire(f->graph, 60 * SECOND, one_has_ended, f);
	loop_run(f->loop);
	graph_unref(&f->graph);
	assert_int_equal(world.stopped, 1);
	f->running = 1;
	graph_stop(f->second, SECOND / 10, one_has_ended, f);
	loop_run(f->loop);
	assert_int_equal(world.sent, 2);
	assert_int_equal(world.stopped, 3);
}

static void an_exporter_is_stopped_when_the_deadlines_of_all_its_graphs_have_passed(void **state)
{
	struct fixture *f = *state;
	world.requests = 2;
	world.holds = true;
	start_two(f, WAITING);
	f->running = 2;
	graph_stop(f->graph, SECOND / 10, one_has_ended, f);
	graph_stop(f->second, SECOND / 5, one_has_ended, f);
	loop_run(f->loop);
	assert_int_equal(world.replied, 4);
	assert_int_equal(world.refused, 4);
	assert_int_equal(world.stopped, 3);
}

static void the_lowest_memory_limit_holds_also_above_the_default(void **state)
{
	struct fixture *f = *state;
	assert_true(build(f, "receivers: {fake: }\nexporters: {fake: }\nprocessors:\n"
			     "  memory_limiter: {check_interval: 1s, limit_mib: 1000000000}\n"
			     "  memory_limiter/2: {check_interval: 1s, limit_mib: 900000000}\n"
			     "service: {pipelines: {profiles: {receivers: [fake], processors: "
			     "[memory_limiter/2, memory_limiter], exporters: [fake]}}}"));
	assert_true(run(f, 60 * SECOND));
	struct bytes shown;
	bytes_init(&shown, 1 << 20);
	metrics_write(f->metrics, &shown);
	assert_true(bytes_add(&shown, "", 1));
	/* Four fifths of the lower limit, because the spike has its default. */
	assert_non_null(strstr((const char *)shown.at, "otelcol_memory_soft_limit_bytes "
						       "754974720000000\n"));
	bytes_fini(&shown);
}

static void a_memory_limit_below_what_the_process_needs_is_an_error(void **state)
{
	struct fixture *f = *state;
	assert_true(build(f, "receivers: {fake: }\nexporters: {fake: }\nprocessors:\n"
			     "  memory_limiter: {check_interval: 1s, limit_mib: 2}\n"
			     "service: {pipelines: {profiles: {receivers: [fake], processors: "
			     "[memory_limiter], exporters: [fake]}}}"));
	assert_false(run(f, 60 * SECOND));
	assert_non_null(strstr(f->err.text, "the memory limit is too low: 2 MiB"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_wrong_is_named_with_file_line_and_column),
		TEST(unused_components_are_checked_but_not_built),
		TEST(an_exporter_named_twice_gets_everything_once),
		TEST(the_lowest_memory_limit_holds_also_above_the_default),
		TEST(a_memory_limit_below_what_the_process_needs_is_an_error),
		TEST(a_failed_start_stops_what_was_started),
		TEST(open_batches_and_queues_are_emptied_at_the_end),
		TEST(senders_that_wait_for_a_batch_are_not_kept_waiting_by_the_end),
		TEST(senders_that_wait_for_a_hanging_destination_hear_at_the_deadline),
		TEST(a_graph_ends_without_the_exporter_that_another_one_uses),
		TEST(an_exporter_is_stopped_when_the_deadlines_of_all_its_graphs_have_passed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
