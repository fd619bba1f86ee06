/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "config/load.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/graph/exporters.h"
#include "pipeline/graph/graph.h"

/* A graph whose exporters share an authenticator that has to be started. How each is asked is
 * counted; what it answers is in its configuration. */
static struct {
	int started, running, asked;
} world;

struct key {
	struct authenticator authenticator;
};

static void free_key(struct authenticator *a)
{
	(void)a;
}

static bool create_key(void *self, const void *config, const struct host *host, struct error *err)
{
	static const struct authenticator_ops ops = { .free = free_key };
	(void)config, (void)host, (void)err;
	authenticator_init(&((struct key *)self)->authenticator, &ops);
	return true;
}

static struct authenticator *authenticator_of(void *self)
{
	return &((struct key *)self)->authenticator;
}

static bool start_key(void *self, struct error *err)
{
	(void)self, (void)err;
	world.started++;
	world.running++;
	return true;
}

static void stop_key(void *self)
{
	(void)self;
	world.running--;
}

struct shop_config {
	char *endpoint, *answer;
	struct delivery_config delivery;
};

struct shop {
	const struct shop_config *config;
	struct authenticator *authenticator;
};

static bool create_shop(void *self, const void *config, const struct host *host, struct error *err)
{
	struct shop *shop = self;
	(void)err;
	shop->config = config;
	shop->authenticator = host->authenticators.find(host->authenticators.context, "key");
	return true;
}

static void destroy_shop(void *self)
{
	authenticator_unref(&((struct shop *)self)->authenticator);
}

static bool start_shop(void *self, struct error *err)
{
	const struct shop *shop = self;
	assert_int_equal(world.running, 1);
	return strcmp(shop->config->answer, "start") != 0 ||
	       error_set(err, ERROR_CONFIG, "answer: it does not start");
}

static void send_nothing(void *self, const struct part *part, uint64_t timeout_ns,
			 struct sending *sending)
{
	(void)self, (void)part, (void)timeout_ns, (void)sending;
	abort();
}

static void ask(void *self, const struct part *part, uint64_t timeout_ns, struct sending *sending)
{
	const struct shop *shop = self;
	bool ok = !strcmp(shop->config->answer, "ok");
	assert_int_equal(world.running, 1);
	assert_int_equal(timeout_ns, 5000000000);
	assert_int_equal(part->packet->profiles, 0);
	world.asked++;
	sending_done(sending, &(struct send_result){ .outcome = ok ? SEND_OK : SEND_PERMANENT,
						     .reason = ok ? "ok" : "no",
						     .retry_after_ms = -1 });
}

static const struct config_row no_rows[] = { { 0 } };
static const struct config_table no_table = { sizeof(struct key), no_rows };
static const struct config_row shop_rows[] = {
	CONFIG_ROW(struct shop_config, endpoint, .key = "endpoint", .help = "Where."),
	CONFIG_ROW(struct shop_config, answer, .key = "answer", .help = "What."),
	DELIVERY_ROWS(struct shop_config, delivery, "5s"),
	{ 0 }
};
static const struct config_table shop_table = { sizeof(struct shop_config), shop_rows };

static const struct extension_ops key_ops = { .authenticator = authenticator_of,
					      .start = start_key,
					      .stop = stop_key };
static const struct component_factory key = { .type = "key",
					      .kind = COMPONENT_EXTENSION,
					      .extension = &key_ops,
					      .size = sizeof(struct key),
					      .config = &no_table,
					      .create = create_key };
static const struct exporter_ops shop_ops = {
	.delivery_offset = offsetof(struct shop_config, delivery),
	.start = start_shop,
	.send = send_nothing,
	.probe = ask,
};
static const struct component_factory shop = { .type = "shop",
					       .kind = COMPONENT_EXPORTER,
					       .exporter = &shop_ops,
					       .size = sizeof(struct shop),
					       .config = &shop_table,
					       .create = create_shop,
					       .destroy = destroy_shop };
static const struct exporter_ops drain_ops = { .delivery_offset =
						       offsetof(struct shop_config, delivery),
					       .send = send_nothing };
static const struct component_factory drain = { .type = "drain",
						.kind = COMPONENT_EXPORTER,
						.exporter = &drain_ops,
						.size = sizeof(struct shop),
						.config = &shop_table,
						.create = create_shop,
						.destroy = destroy_shop };

/* ---- an exporter of two members, which are found at the second look, ten milliseconds later */

#define TIMEOUT_NS UINT64_C(60000000000)

static _Atomic int looks, members_asked;

static uint32_t chain_lanes(void *self)
{
	(void)self;
	return 2;
}

static uint32_t chain_count(void *self)
{
	(void)self;
	return looks++ ? 2 : 0;
}

static bool chain_serves(void *self, uint32_t member)
{
	(void)self;
	return member == 1 || member == 2;
}

static uint32_t chain_number(void *self, uint32_t index)
{
	(void)self;
	return index + 1;
}

static void chain_watch(void *self, void (*changed)(void *context), void *context)
{
	(void)self, (void)changed, (void)context;
}

static char *chain_endpoint(void *self, uint32_t member)
{
	(void)self, (void)member;
	return memory_text("member");
}

static void ask_member(void *self, const struct part *part, uint64_t timeout_ns,
		       struct sending *sending)
{
	(void)self;
	assert_true(chain_serves(self, part->group));
	assert_in_range(timeout_ns, 1, TIMEOUT_NS - 10000000);
	members_asked++;
	sending_done(sending, &(struct send_result){
				      .outcome = SEND_OK, .reason = "ok", .retry_after_ms = -1 });
}

static const struct member_ops chain_members = { chain_lanes,  chain_count, chain_serves,
						 chain_number, chain_watch, chain_endpoint };
static const struct exporter_ops chain_ops = { .delivery_offset =
						       offsetof(struct shop_config, delivery),
					       .send = send_nothing,
					       .members = &chain_members,
					       .probe = ask_member };
static const struct component_factory chain = { .type = "chain",
						.kind = COMPONENT_EXPORTER,
						.exporter = &chain_ops,
						.size = sizeof(struct shop),
						.config = &shop_table,
						.create = create_shop,
						.destroy = destroy_shop };

/* ---- a configuration and its graph */

extern const struct component_factory nop_receiver;
static const struct component_factory *const factories[] = { &nop_receiver, &key,   &shop,
							     &drain,        &chain, NULL };

static struct rig {
	struct budget budget;
	struct loop *loop;
	struct metrics *metrics;
	struct ledger *ledger;
	struct exporters *exporters;
	struct node *root;
	struct graph *graph;
} rig;

static void rig_build(const char *yaml)
{
	struct error err = { 0 };
	rig = (struct rig){ .loop = loop_new(NULL), .metrics = metrics_new() };
	rig.ledger = ledger_new(rig.metrics);
	rig.exporters = exporters_new(rig.loop, rig.metrics, rig.ledger, &rig.budget);
	rig.root = config_parse("c.yaml", yaml, strlen(yaml), &err);
	rig.graph = graph_build(&(struct graph_options){ .root = rig.root,
							 .factories = factories,
							 .loop = rig.loop,
							 .metrics = rig.metrics,
							 .ledger = rig.ledger,
							 .budget = &rig.budget,
							 .exporters = rig.exporters,
							 .workers = 1 },
				&err);
	assert_non_null(rig.graph);
}

static void rig_fini(void)
{
	graph_unref(&rig.graph);
	node_unref(&rig.root);
	exporters_unref(&rig.exporters);
	loop_unref(&rig.loop);
	ledger_unref(&rig.ledger);
	metrics_unref(&rig.metrics);
}

static const char yaml[] = "receivers: {nop: }\n"
			   "extensions: {key: }\n"
			   "exporters:\n"
			   "  shop/closed: {endpoint: a, answer: no}\n"
			   "  shop/open: {endpoint: a, answer: ok}\n"
			   "  shop/unused: {endpoint: a, answer: no}\n"
			   "  shop/broken: {answer: start}\n"
			   "  shop/nameless: {answer: no}\n"
			   "  drain: {}\n"
			   "service:\n"
			   "  extensions: [key]\n"
			   "  pipelines: {profiles: {receivers: [nop], exporters: [drain, "
			   "shop/nameless, shop/broken, shop/open, shop/closed]}}\n";

static void those_in_use_are_asked_and_reported_in_order(void **state)
{
	static const struct {
		const char *line, *text;
	} expected[] = {
		{ "c.yaml:4:", "exporters::shop/closed::endpoint: the destination does not accept "
			       "data: no" },
		{ "c.yaml:7:", "exporters::shop/broken::answer: it does not start" },
		{ "c.yaml:8:", "exporters::shop/nameless::endpoint: the destination does not "
			       "accept data: no" },
	};
	struct problems problems = { 0 };
	(void)state;
	rig_build(yaml);
	assert_false(graph_probe(rig.graph, 0, &problems));
	assert_int_equal(problems.count, sizeof expected / sizeof *expected);
	for (size_t i = 0; i < problems.count; i++) {
		assert_memory_equal(problems.at[i], expected[i].line, strlen(expected[i].line));
		assert_string_equal(strstr(problems.at[i], ": ") + 2, expected[i].text);
	}
	assert_int_equal(world.asked, 3);
	assert_int_equal(world.started, 1);
	assert_int_equal(world.running, 0);
	problems_fini(&problems);
	rig_fini();
}

static void members_get_what_is_left_of_the_timeout_after_they_were_found(void **state)
{
	struct problems problems = { 0 };
	(void)state;
	rig_build("receivers: {nop: }\nextensions: {key: }\nexporters: {chain: {}}\n"
		  "service: {extensions: [key], pipelines: {profiles: {receivers: [nop], "
		  "exporters: [chain]}}}\n");
	assert_true(graph_probe(rig.graph, TIMEOUT_NS, &problems));
	assert_int_equal(members_asked, 2);
	problems_fini(&problems);
	rig_fini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_in_use_are_asked_and_reported_in_order),
		cmocka_unit_test(members_get_what_is_left_of_the_timeout_after_they_were_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
