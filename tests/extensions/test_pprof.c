/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "config/load.h"
#include "extensions/pprof_symbols.h"
#include "net/compress.h"
#include "pipeline/component.h"
#include "pprof.pb-c.h"
#include "tests/support/shell.h"

typedef Perftools__Profiles__Profile Profile;

extern const struct component_factory pprof_extension;

enum { ROUNDS_MAX = 2000000 };

struct fixture {
	struct host host;
	struct node *tree;
	void *config, *self;
	int port;
};

struct fetch {
	struct fixture *fixture;
	const char *target;
	int status;
	struct bytes reply;
	struct view body;
	_Atomic bool done;
	pthread_t thread;
};

static int free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	int s = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof a), 0);
	getsockname(s, (struct sockaddr *)&a, &len);
	close(s);
	return ntohs(a.sin_port);
}

static int begin(void **state)
{
	struct fixture *f = memory_new(sizeof *f);
	struct error err = { 0 };
	char yaml[60];
	f->port = free_port();
	snprintf(yaml, sizeof yaml, "endpoint: 127.0.0.1:%d", f->port);
	f->host = (struct host){ .id = "pprof", .metrics = metrics_new() };
	f->config = memory_new(pprof_extension.config->size);
	f->self = memory_new(pprof_extension.size);
	f->tree = config_parse("test", yaml, strlen(yaml), &err);
	*state = f;
	return config_bind(pprof_extension.config, f->tree, "extensions::pprof", f->config, &err) &&
			       pprof_extension.create(f->self, f->config, &f->host, &err) &&
			       pprof_extension.extension->start(f->self, &err)
		       ? 0
		       : -1;
}

static int end(void **state)
{
	struct fixture *f = *state;
	pprof_extension.extension->stop(f->self);
	pprof_extension.destroy(f->self);
	config_release(pprof_extension.config, f->config);
	node_unref(&f->tree);
	metrics_unref(&f->host.metrics);
	memory_free(f->config);
	memory_free(f->self);
	memory_free(f);
	return 0;
}

static void *run_fetch(void *argument)
{
	struct fetch *fetch = argument;
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons((uint16_t)fetch->fixture->port) };
	struct bytes request;
	int s = socket(AF_INET, SOCK_STREAM, 0);
	ssize_t got = connect(s, (struct sockaddr *)&a, sizeof a);
	bytes_init(&request, 4096);
	bytes_format(&request,
		     "GET %s HTTP/1.1\r\nHost: a\r\nConnection: "
		     "close\r\n\r\n",
		     fetch->target);
	got = got ? got : write(s, request.at, request.len);
	bytes_fini(&request);
	bytes_init(&fetch->reply, 16 << 20);
	while (got > 0 && bytes_reserve(&fetch->reply, 65536)) {
		got = read(s, fetch->reply.at + fetch->reply.len, 65536);
		fetch->reply.len += got > 0 ? (size_t)got : 0;
	}
	close(s);
	fetch->done = true;
	return NULL;
}

static void fetch_begin(struct fetch *fetch, struct fixture *f, const char *target)
{
	*fetch = (struct fetch){ .fixture = f, .target = target };
	assert_int_equal(pthread_create(&fetch->thread, NULL, run_fetch, fetch), 0);
}

static void fetch_end(struct fetch *fetch)
{
	pthread_join(fetch->thread, NULL);
	bytes_add_byte(&fetch->reply, 0);
	const char *text = (const char *)fetch->reply.at, *body = strstr(text, "\r\n\r\n");
	assert_non_null(body);
	sscanf(text, "HTTP/1.1 %d", &fetch->status);
	size_t head = (size_t)(body + 4 - text);
	fetch->body = (struct view){ fetch->reply.at + head, fetch->reply.len - 1 - head };
}

static int get(struct fixture *f, const char *target)
{
	struct fetch fetch;
	fetch_begin(&fetch, f, target);
	fetch_end(&fetch);
	bytes_fini(&fetch.reply);
	return fetch.status;
}

/* The function that the profile must contain by name, and its caller. */
double burn_the_cpu(double x);
double caller_of_burn_the_cpu(const struct fetch *fetch);

__attribute__((noinline)) double burn_the_cpu(double x)
{
	for (int i = 1; i < 100000; i++)
		x += 1.0 / (x + i);
	return x;
}

__attribute__((noinline)) double caller_of_burn_the_cpu(const struct fetch *fetch)
{
	double x = 1;
	for (int i = 0; i < ROUNDS_MAX && !fetch->done; i++)
		x = burn_the_cpu(x);
	return x + 1;
}

static Profile *profile_of(const struct fetch *fetch, struct bytes *plain)
{
	struct error err = { 0 };
	bytes_init(plain, 64 << 20);
	assert_int_equal(fetch->status, 200);
	if (!compress_inflate(CODING_GZIP, fetch->body, plain, &err))
		fail_msg("%s", err.text);
	Profile *profile = perftools__profiles__profile__unpack(NULL, plain->len, plain->at);
	assert_non_null(profile);
	return profile;
}

/* Compares the function names of a location, innermost first. Returns the position of this name in
 * them, or -1. */
static int place_of(const Profile *p, uint64_t location, const char *name)
{
	const Perftools__Profiles__Location *l = p->location[location - 1];
	assert_int_equal(l->id, location);
	for (size_t i = 0; i < l->n_line; i++) {
		const Perftools__Profiles__Function *f = p->function[l->line[i]->function_id - 1];
		assert_int_equal(f->id, l->line[i]->function_id);
		if (!strcmp(p->string_table[f->name], name))
			return (int)i;
	}
	return -1;
}

static int64_t seen_with_caller(const Profile *p)
{
	int64_t seen = 0;
	for (size_t i = 0; i < p->n_sample; i++) {
		const Perftools__Profiles__Sample *s = p->sample[i];
		bool callee = false;
		for (size_t k = 0; k < s->n_location_id; k++) {
			callee = callee || place_of(p, s->location_id[k], "burn_the_cpu") >= 0;
			if (callee &&
			    place_of(p, s->location_id[k], "caller_of_burn_the_cpu") >= 0) {
				seen += s->value[0];
				assert_int_equal(s->value[1], s->value[0] * 10000000);
				break;
			}
		}
	}
	return seen;
}

static bool has_text(const Profile *p, int64_t index, const char *text)
{
	return !strcmp(p->string_table[index], text);
}

static void check_head(const Profile *p)
{
	assert_int_equal(p->n_sample_type, 2);
	assert_true(has_text(p, p->sample_type[0]->type, "samples") &&
		    has_text(p, p->sample_type[0]->unit, "count"));
	assert_true(has_text(p, p->sample_type[1]->type, "cpu") &&
		    has_text(p, p->sample_type[1]->unit, "nanoseconds"));
	assert_true(has_text(p, p->period_type->type, "cpu"));
	assert_int_equal(p->period, 10000000);
	assert_int_equal(p->duration_nanos, 1000000000);
	assert_true(p->time_nanos > INT64_C(1600000000000000000));
	assert_string_equal(p->string_table[0], "");
}

static void check_mappings(const Profile *p)
{
	assert_true(p->n_mapping > 0);
	assert_non_null(strstr(p->string_table[p->mapping[0]->filename], "test_pprof"));
	for (size_t i = 0; i < p->n_mapping; i++) {
		const Perftools__Profiles__Mapping *m = p->mapping[i];
		assert_int_equal(m->id, i + 1);
		assert_true(m->memory_start < m->memory_limit);
	}
	for (size_t i = 0; i < p->n_location; i++) {
		uint64_t id = p->location[i]->mapping_id, at = p->location[i]->address;
		if (id)
			assert_true(p->mapping[id - 1]->memory_start <= at &&
				    at < p->mapping[id - 1]->memory_limit);
	}
}

/* `go tool pprof` is the reader in common use. If it is not installed, the decoder above must
 * suffice. */
static void check_with_go(const struct fetch *fetch)
{
	char path[] = "/tmp/portcullis-profile-XXXXXX";
	if (shell("command -v go >/dev/null") != 0)
		return;
	int file = mkstemp(path);
	assert_int_equal(write(file, fetch->body.at, fetch->body.len), fetch->body.len);
	close(file);
	assert_int_equal(shell("go tool pprof -top %s 2>/dev/null | grep -q "
			       "burn_the_cpu",
			       path),
			 0);
	remove(path);
}

static void what_burns_the_cpu_is_found_by_name_with_its_caller(void **state)
{
	struct fetch fetch;
	struct bytes plain;
	fetch_begin(&fetch, *state, "/debug/pprof/profile?seconds=1");
	assert_true(caller_of_burn_the_cpu(&fetch) > 0);
	fetch_end(&fetch);
	Profile *p = profile_of(&fetch, &plain);
	check_head(p);
	check_mappings(p);
	assert_true(seen_with_caller(p) > 0);
	check_with_go(&fetch);
	perftools__profiles__profile__free_unpacked(p, NULL);
	bytes_fini(&plain);
	bytes_fini(&fetch.reply);
}

/* Unwinds from the first instruction of a function that has this return address. */
static size_t unwind_from_entry(struct symbols *symbols, uint64_t return_address, uint64_t *pcs,
				size_t max)
{
	struct snapshot *s = memory_new(sizeof *s);
	s->pc = (uintptr_t)burn_the_cpu;
	s->sp = 0x10000;
#if defined(__x86_64__)
	s->registers[7] = s->sp;
	s->registers[16] = s->pc;
	memcpy(s->stack, &return_address, sizeof return_address);
#else
	s->registers[30] = return_address;
	s->registers[31] = s->sp;
#endif
	s->stack_len = 64;
	size_t count = symbols_unwind(symbols, s, pcs, max);
	memory_free(s);
	return count;
}

static void what_is_no_return_address_ends_the_stack(void **state)
{
	(void)state;
	uint64_t pcs[8];
	struct error err = { 0 };
	struct symbol_module module;
	struct symbol_line line;
	struct symbols *symbols = symbols_new(&err);
	const uint64_t none[] = { UINT64_MAX, UINT64_MAX - 1,     8,
				  4096,       (uintptr_t)symbols, (uintptr_t)&err };
	assert_non_null(symbols);
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		assert_int_equal(unwind_from_entry(symbols, none[i], pcs, 8), 1);
		assert_int_equal(pcs[0], (uintptr_t)burn_the_cpu);
		assert_false(symbols_module(symbols, none[i], &module));
		assert_int_equal(symbols_lines(symbols, none[i], &line, 1), 0);
	}
	uint64_t after_call = (uintptr_t)caller_of_burn_the_cpu + 8;
	assert_true(unwind_from_entry(symbols, after_call, pcs, 8) >= 2);
	assert_int_equal(pcs[1], after_call - 1);
	assert_true(symbols_module(symbols, pcs[1], &module) && module.start <= pcs[1] &&
		    pcs[1] < module.end);
	symbols_unref(&symbols);
}

static void an_idle_process_gives_a_valid_profile(void **state)
{
	struct fetch fetch;
	struct bytes plain;
	fetch_begin(&fetch, *state, "/debug/pprof/profile?seconds=1");
	fetch_end(&fetch);
	Profile *p = profile_of(&fetch, &plain);
	check_head(p);
	perftools__profiles__profile__free_unpacked(p, NULL);
	bytes_fini(&plain);
	bytes_fini(&fetch.reply);
}

static void there_is_one_profile_at_a_time(void **state)
{
	struct fetch first;
	int status = 200;
	fetch_begin(&first, *state, "/debug/pprof/profile?seconds=2");
	for (int i = 0; i < 1000 && status == 200 && !first.done; i++)
		status = get(*state, "/debug/pprof/profile?seconds=1");
	fetch_end(&first);
	assert_true(first.status == 503 || status == 503);
	assert_true(first.status == 200 || status == 200);
	bytes_fini(&first.reply);
}

static void stop_does_not_wait_for_the_profile(void **state)
{
	struct fixture *f = *state;
	struct fetch fetch;
	fetch_begin(&fetch, f, "/debug/pprof/profile?seconds=60");
	while (get(f, "/debug/pprof/profile?seconds=1") != 503) { /* it overtook the long one */
		fetch_end(&fetch);
		bytes_fini(&fetch.reply);
		fetch_begin(&fetch, f, "/debug/pprof/profile?seconds=60");
	}
	pprof_extension.extension->stop(f->self);
	fetch_end(&fetch);
	assert_int_equal(fetch.status, 503);
	bytes_fini(&fetch.reply);
}

static void only_whole_seconds_up_to_a_minute_are_taken(void **state)
{
	static const char *const bad[] = {
		"0", "61", "-1", "1.5", "x", "", "99999999999999999999"
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char *target = memory_format("/debug/pprof/profile?seconds=%s", bad[i]);
		assert_int_equal(get(*state, target), 400);
		memory_free(target);
	}
}

static void the_index_says_what_there_is(void **state)
{
	struct fetch fetch;
	fetch_begin(&fetch, *state, "/debug/pprof/");
	fetch_end(&fetch);
	assert_int_equal(fetch.status, 200);
	assert_non_null(strstr((const char *)fetch.body.at, "/debug/pprof/profile?seconds="));
	bytes_fini(&fetch.reply);
	assert_int_equal(get(*state, "/debug/pprof/heap"), 404);
}

static void save_to_file_is_refused(void **state)
{
	struct fixture *f = *state;
	struct error err = { 0 };
	static const char yaml[] = "{endpoint: 'localhost:1777', save_to_file: /tmp/x}";
	struct node *tree = config_parse("test", yaml, strlen(yaml), &err);
	void *config = memory_new(pprof_extension.config->size);
	(void)f;
	assert_false(config_bind(pprof_extension.config, tree, "extensions::pprof", config, &err));
	assert_non_null(strstr(err.text, "save_to_file"));
	config_release(pprof_extension.config, config);
	node_unref(&tree);
	memory_free(config);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(what_is_no_return_address_ends_the_stack),
		TEST(what_burns_the_cpu_is_found_by_name_with_its_caller),
		TEST(an_idle_process_gives_a_valid_profile),
		TEST(there_is_one_profile_at_a_time),
		TEST(stop_does_not_wait_for_the_profile),
		TEST(only_whole_seconds_up_to_a_minute_are_taken),
		TEST(the_index_says_what_there_is),
		TEST(save_to_file_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
