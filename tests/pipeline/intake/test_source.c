/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/source.h"

#include "net/compress.h"
#include "tests/pipeline/intake/gate_fixture.h"

/* Requests of a receiver that fetches its data. */

struct fetched { /* the receiver's request */
	struct source_request source;
	uint32_t number;
};

static struct {
	uint32_t number, rejected;
	enum error_kind kind;
	size_t document;
	uint32_t done;
	uint8_t first;
} last;

static bool decode_one(struct inbound *in, struct profiles *p, struct error *err)
{
	last.document = p->input.len;
	last.first = p->input.len ? *p->input.at : 0;
	last.number = ((struct fetched *)in)->number;
	if (last.first == '!')
		return error_set(err, ERROR_INVALID, "scripted");
	uint32_t stack = open_frame(p, "main");
	open_resource(p, (struct list){ 0 });
	open_scope(p, "");
	open_profile(p, "cpu", "ns");
	open_value(p, stack, (struct list){ 0 }, 7);
	return true;
}

static void on_done(struct source_request *r, const struct outcome *outcome)
{
	last.kind = outcome->error ? outcome->error->kind : ERROR_NONE;
	last.done++;
	assert_int_equal(((struct fetched *)r)->number, 7);
}

static const struct document_format format = { .decode = decode_one,
					       .packed = true,
					       .tables_factor = 16 };

struct scene {
	struct fixture *f;
	struct host host;
	struct source *source;
	struct error err;
};

/* Admission does not ask destinations, because there are none here. */
static void begin(struct scene *s, struct fixture *f, size_t body_max)
{
	last.done = 0;
	last.document = 0;
	last.kind = ERROR_NONE;
	*s = (struct scene){ .f = f, .host = { .id = "fake" } };
	open_gate(f, 0);
	s->host.entrance = f->entrance;
	s->source = source_new(&(struct source_options){
		.host = &s->host,
		.transport = TRANSPORT_SCRAPE,
		.documents = &format,
		.request_size = sizeof(struct fetched),
		.body_limit = { body_max, "max_body_size", (int64_t)body_max },
		.done = on_done });
}

static struct source_request *admit(struct scene *s)
{
	struct source_request *r = source_request_new(s->source);
	((struct fetched *)r)->number = 7;
	assert_true(source_admit(r, 0, &s->err));
	return r;
}

static void finish(struct scene *s, struct source_request *r)
{
	reopen_gate(s->f, 1);
	r->in.gate = entrance_take(s->f->entrance);
	source_submit(r);
	source_stop(s->source); /* waits for the outcome */
	assert_int_equal(last.done, 1);
	workers_stop(&s->f->workers);
	source_unref(&s->source);
}

#define SCRAPE_REASON(reason) \
	"otelcol_receiver_refused_requests{reason=\"" reason \
	"\",receiver=\"fake\",transport=\"scrape\"} "
#define SCRAPE_SUCCESS \
	"otelcol_receiver_requests{outcome=\"success\",receiver=\"fake\",transport=\"scrape\"} "

static void a_fetched_body_passes_through_the_gate(void **state)
{
	struct scene s;
	begin(&s, *state, 1 << 20);
	struct source_request *r = admit(&s);
	for (int i = 0; i < 100; i++)
		assert_true(bytes_add(&r->body, "0123456789", 10));
	finish(&s, r);
	assert_int_equal(last.kind, ERROR_NONE);
	assert_int_equal(last.document, 1000);
	assert_int_equal(last.number, 7);
	assert_int_equal(s.f->packets, 1);
	assert_int_equal(read_metric(s.f, SCRAPE_SUCCESS), 1);
}

static void a_compressed_body_is_decompressed_by_a_worker(void **state)
{
	struct scene s;
	char plain[5000];
	struct bytes gzip;
	memset(plain, 'x', sizeof plain);
	bytes_init(&gzip, 10000);
	assert_true(compress_deflate(CODING_GZIP, 0,
				     (struct view){ (uint8_t *)plain, sizeof plain }, &gzip, NULL));
	for (int coded = 0; coded < 2; coded++) {
		struct fixture *f = *state;
		begin(&s, f, 1 << 20);
		struct source_request *r = admit(&s);
		r->coding = coded ? CODING_GZIP : CODING_IDENTITY;
		assert_true(bytes_add(&r->body, gzip.at, gzip.len));
		finish(&s, r);
		assert_int_equal(last.document, sizeof plain);
		f->workers = start_workers(f);
		gate_unref(&f->gate);
	}
	bytes_fini(&gzip);
}

static void the_body_is_charged_before_it_grows(void **state)
{
	struct scene s;
	begin(&s, *state, 2 << 20);
	struct source_request *r = admit(&s);
	char block[4096] = { 0 };
	size_t len = 0;
	while (bytes_add(&r->body, block, sizeof block)) {
		len += sizeof block;
		assert_true(s.f->budget.charged >= (int64_t)r->body.room);
		assert_true(len <= 2 << 20);
	}
	assert_int_equal(len, 2 << 20);
	assert_int_equal(r->err.kind, ERROR_TOO_LARGE);
	assert_non_null(strstr(r->err.text, "2097152 bytes"));
	source_forget(r, REFUSAL_TOO_LARGE);
	assert_int_equal(s.f->budget.charged, 0);
	assert_int_equal(read_metric(s.f, SCRAPE_REASON("too_large")), 1);
	source_unref(&s.source);
}

static void a_body_that_finds_no_memory_is_postponed(void **state)
{
	struct scene s;
	begin(&s, *state, 2 << 20);
	struct source_request *r = admit(&s);
	assert_true(bytes_add(&r->body, "x", 1));
	int64_t rest = 8 << 20;
	budget_add(&s.f->budget, rest);
	static const char block[100000];
	assert_false(bytes_add(&r->body, block, sizeof block));
	assert_int_equal(r->err.kind, ERROR_BUSY);
	assert_true(r->err.retry_after_ms > 0);
	source_forget(r, REFUSAL_NONE);
	assert_int_equal(read_metric(s.f, SCRAPE_REASON("memory")), 1);
	struct source_request *refused = source_request_new(s.source);
	assert_false(source_admit(refused, 0, &s.err));
	assert_int_equal(s.err.kind, ERROR_BUSY);
	budget_give(&s.f->budget, rest);
	assert_int_equal(read_metric(s.f, SCRAPE_REASON("memory")), 2);
	source_unref(&s.source);
}

static void the_receiver_learns_why_its_document_was_refused(void **state)
{
	struct scene s;
	begin(&s, *state, 1 << 20);
	struct source_request *r = admit(&s);
	assert_true(bytes_add(&r->body, "!", 1));
	finish(&s, r);
	assert_int_equal(last.kind, ERROR_INVALID);
	assert_int_equal(read_metric(s.f, SCRAPE_REASON("invalid")), 1);
	assert_int_equal(s.f->packets, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_fetched_body_passes_through_the_gate),
		TEST(a_compressed_body_is_decompressed_by_a_worker),
		TEST(the_body_is_charged_before_it_grows),
		TEST(a_body_that_finds_no_memory_is_postponed),
		TEST(the_receiver_learns_why_its_document_was_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
