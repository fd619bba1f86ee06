/* SPDX-License-Identifier: Apache-2.0 */
#include "net/compress.h"
#include "pipeline/intake/documents.h"
#include "tests/pipeline/intake/gate_fixture.h"

/* Requests that carry several documents. */

static struct fake request_of(uint32_t documents, uint32_t failing, enum error_kind fails)
{
	struct fake fake = fake_request(100);
	fake.documents = documents;
	fake.failing = failing;
	fake.fails = fails;
	return fake;
}

static int64_t dropped(struct fixture *f)
{
	return ledger_get(f->pipeline.row, LEDGER_REFUSED);
}

#define BAD_PROFILES "otelcol_receiver_refused_profiles" LABELS
#define ACCEPTED "otelcol_receiver_accepted_profile_samples" LABELS
#define REFUSED "otelcol_receiver_refused_profile_samples" LABELS

static void every_document_goes_through_every_pipeline_under_one_ack(void **state)
{
	struct fixture *f = *state;
	struct fake fake = request_of(3, 0, ERROR_NONE);
	open_gate(f, 2);
	run(f, &fake);
	assert_false(fake.refused);
	assert_int_equal(fake.rejected, 0);
	assert_int_equal(f->packets, 6);
	assert_int_equal(ledger_get(f->pipeline.row, LEDGER_IN), 6);
	assert_int_equal(read_metric(f, OUTCOME("success")), 1);
	assert_int_equal(read_metric(f, ACCEPTED), 3);
}

static void a_batch_joins_the_documents_of_a_request(void **state)
{
	struct fixture *f = *state;
	struct fake fake = request_of(3, 0, ERROR_NONE);
	f->route.settings =
		(struct batch_settings){ .on = true, .timeout = { 3600000000000 }, .size = 1000 };
	open_gate(f, 1);
	run(f, &fake);
	assert_false(fake.refused);
	assert_int_equal(f->packets, 0);
	assert_int_equal(ledger_get(f->pipeline.row, LEDGER_BATCHED), 3);
	batcher_flush(f->route.batcher);
	assert_int_equal(f->packets, 1);
	assert_int_equal(ledger_get(f->pipeline.row, LEDGER_IN), 3);
	assert_int_equal(ledger_get(f->pipeline.row, LEDGER_BATCHED), 0);
}

static void a_bad_document_is_rejected_alone(void **state)
{
	struct fixture *f = *state;
	struct fake fake = request_of(3, 2, ERROR_INVALID);
	open_gate(f, 2);
	run(f, &fake);
	assert_false(fake.refused);
	assert_int_equal(fake.rejected, 1);
	assert_string_equal(fake.text, "document 1: scripted");
	assert_int_equal(f->packets, 4);
	assert_int_equal(ledger_get(f->pipeline.row, LEDGER_IN), 4);
	assert_int_equal(dropped(f), 0);
	assert_int_equal(read_metric(f, OUTCOME("partial")), 1);
	assert_int_equal(read_metric(f, BAD_PROFILES), 1);
	assert_int_equal(read_metric(f, ACCEPTED), 2);
}

static void a_request_of_bad_documents_fails_with_the_first_fault(void **state)
{
	struct fixture *f = *state;
	struct fake fake = request_of(3, 7, ERROR_UNSUPPORTED);
	open_gate(f, 1);
	run(f, &fake);
	assert_true(fake.refused);
	assert_int_equal(fake.kind, ERROR_UNSUPPORTED);
	assert_string_equal(fake.text, "document 0: scripted");
	assert_int_equal(f->packets, 0);
	assert_int_equal(read_metric(f, REASON("unsupported")), 1);
	assert_int_equal(read_metric(f, OUTCOME("refused")), 1);
	assert_int_equal(read_metric(f, BAD_PROFILES), 0);
}

static void what_is_not_the_senders_fault_fails_the_whole_request(void **state)
{
	struct fixture *f = *state;
	struct fake fake = request_of(3, 2, ERROR_BUSY);
	open_gate(f, 1);
	run(f, &fake);
	assert_true(fake.refused);
	assert_int_equal(fake.kind, ERROR_BUSY);
	assert_true(fake.retry_after_ms > 0);
	assert_int_equal(fake.found, 2); /* the third is not read */
	assert_int_equal(read_metric(f, OUTCOME("refused")), 1);
	assert_int_equal(ledger_get(f->pipeline.row, LEDGER_IN), 1);
	assert_int_equal(f->packets, 1);
}

static void a_request_without_documents_is_accepted(void **state)
{
	struct fixture *f = *state;
	struct fake fake = request_of(1, 0, ERROR_NONE);
	fake.found = 1;
	open_gate(f, 1);
	run(f, &fake);
	assert_false(fake.refused);
	assert_int_equal(f->packets, 0);
	assert_int_equal(read_metric(f, ACCEPTED), 0);
}

static void a_document_is_charged_for_its_own_pass_only(void **state)
{
	struct fixture *f = *state;
	struct fake one = request_of(1, 0, ERROR_NONE), three = request_of(3, 0, ERROR_NONE);
	one.body = three.body = 100000;
	open_gate(f, 1);
	submit(f, &one);
	workers_stop(&f->workers);
	f->workers = start_workers(f);
	run(f, &three);
	assert_int_equal(f->packets, 4);
	assert_true(one.charged > 100000 * (int64_t)ops.tables_factor);
	assert_int_equal(three.charged, one.charged);
}

/* -- documents_next -- */

static enum inbound_next halves(struct inbound *in, uint32_t index, struct view body,
				struct view *document, struct error *err)
{
	(void)in;
	(void)err;
	if (index > 1)
		return INBOUND_END;
	*document = (struct view){ body.at + index * body.len / 2, body.len / 2 };
	return INBOUND_DOCUMENT;
}

static void add_packed(struct bytes *body, const char *text)
{
	struct bytes packed;
	bytes_init(&packed, 1 << 16);
	assert_true(compress_deflate(CODING_GZIP, 1, view_of(text), &packed, NULL));
	bytes_add(body, packed.at, packed.len);
	bytes_fini(&packed);
}

static void compressed_documents_are_inflated_one_at_a_time(void **state)
{
	static const struct document_format format = { .next = halves, .packed = true };
	struct fixture *f = *state;
	struct fake fake = fake_request(0);
	struct body buffers = { { 0 }, { 0 } };
	struct bytes body;
	struct view document;
	struct error err;
	open_gate(f, 0);
	bytes_init(&body, 1 << 16);
	add_packed(&body, "one");
	add_packed(&body, "two");
	assert_true(gate_admit(f->gate, &fake.in, 0, &err));
	fake.in.gate = f->gate;
	fake.in.submitted = true;
	struct documents d = { .body = bytes_view(&body),
			       .held = body.len,
			       .limit = { 1000, "max_body_size", 1000 } };
	assert_int_equal(documents_next(&d, &format, &fake.in, &buffers, &document, &err),
			 INBOUND_DOCUMENT);
	assert_true(view_is(document, "one"));
	int64_t charged = fake.in.charged;
	assert_int_equal(charged, GATE_REQUEST_BYTES + body.len + 3);
	assert_int_equal(documents_next(&d, &format, &fake.in, &buffers, &document, &err),
			 INBOUND_DOCUMENT);
	assert_true(view_is(document, "two"));
	assert_int_equal(fake.in.charged, charged);
	assert_int_equal(documents_next(&d, &format, &fake.in, &buffers, &document, &err),
			 INBOUND_END);
	gate_forget(f->gate, &fake.in, REFUSAL_CANCELLED);
	bytes_fini(&buffers.inflated);
	bytes_fini(&body);
}

static void a_document_that_inflates_to_too_much_is_rejected(void **state)
{
	static const struct document_format format = { .packed = true };
	struct fixture *f = *state;
	struct fake fake = fake_request(0);
	struct body buffers = { { 0 }, { 0 } };
	struct bytes body;
	struct view document;
	struct error err;
	open_gate(f, 0);
	bytes_init(&body, 1 << 16);
	add_packed(&body, "more than ten bytes, and more than ten bytes");
	assert_true(gate_admit(f->gate, &fake.in, 0, &err));
	fake.in.gate = f->gate;
	fake.in.submitted = true;
	struct documents d = { .body = bytes_view(&body),
			       .held = body.len,
			       .limit = { 10, "max_body_size", 10 } };
	assert_int_equal(documents_next(&d, &format, &fake.in, &buffers, &document, &err),
			 INBOUND_REJECTED);
	assert_int_equal(err.kind, ERROR_TOO_LARGE);
	assert_int_equal(documents_next(&d, &format, &fake.in, &buffers, &document, &err),
			 INBOUND_END);
	gate_forget(f->gate, &fake.in, REFUSAL_CANCELLED);
	bytes_fini(&buffers.inflated);
	bytes_fini(&body);
}

static enum inbound_next repeat(struct inbound *in, uint32_t index, struct view body,
				struct view *document, struct error *err)
{
	(void)in;
	(void)err;
	*document = body;
	return index < 1000 ? INBOUND_DOCUMENT : INBOUND_END;
}

static void documents_together_inflate_to_a_multiple_of_the_maximum(void **state)
{
	static const struct document_format format = { .next = repeat, .packed = true };
	static const char *const texts[] = { "ten  bytes", "more than ten bytes, and more" };
	struct fixture *f = *state;
	struct body buffers = { { 0 }, { 0 } };
	open_gate(f, 0);
	for (int fails = 0; fails < 2; fails++) {
		struct fake fake = fake_request(0);
		struct bytes body;
		struct view document;
		struct error err;
		bytes_init(&body, 1 << 16);
		add_packed(&body, texts[fails]);
		assert_true(gate_admit(f->gate, &fake.in, 0, &err));
		fake.in.gate = f->gate;
		fake.in.submitted = true;
		struct documents d = { .body = bytes_view(&body),
				       .held = body.len,
				       .limit = { 10, "max_body_size", 10 } };
		for (int i = 0; i < DOCUMENTS_INFLATED_MAX; i++)
			assert_int_equal(documents_next(&d, &format, &fake.in, &buffers, &document,
							&err),
					 fails ? INBOUND_REJECTED : INBOUND_DOCUMENT);
		assert_int_equal(documents_next(&d, &format, &fake.in, &buffers, &document, &err),
				 INBOUND_REJECTED);
		assert_int_equal(err.kind, ERROR_TOO_LARGE);
		assert_non_null(strstr(err.text, "16 times"));
		gate_forget(f->gate, &fake.in, REFUSAL_CANCELLED);
		bytes_fini(&body);
	}
	bytes_fini(&buffers.inflated);
}

/* -- the names -- */

static void every_refusal_and_transport_has_a_name_and_a_series(void **state)
{
	struct fixture *f = *state;
	open_gate(f, 0);
	for (int i = 0; i < TRANSPORT_COUNT; i++) {
		assert_non_null(transport_names[i]);
		for (int reason = REFUSAL_NONE + 1; reason < REFUSAL_COUNT; reason++) {
			struct fake fake = fake_request(0);
			struct error err;
			char line[200];
			fake.in.request.transport = (enum transport)i;
			assert_true(gate_admit(f->gate, &fake.in, 0, &err));
			gate_forget(f->gate, &fake.in, (enum refusal)reason);
			snprintf(line, sizeof line,
				 "otelcol_receiver_refused_requests{reason=\"%s\",receiver="
				 "\"fake\",transport=\"%s\"} ",
				 refusal_names[reason], transport_names[i]);
			assert_int_equal(read_metric(f, line), 1);
		}
	}
}

static void every_error_kind_has_a_refusal(void **state)
{
	(void)state;
	for (int kind = ERROR_NONE; kind <= ERROR_INTERNAL; kind++)
		assert_true(refusal_of(&(struct error){ .kind = (enum error_kind)kind }) !=
			    REFUSAL_NONE);
	assert_int_equal(refusal_of(&(struct error){ .kind = ERROR_BUSY }), REFUSAL_QUEUE_FULL);
	assert_int_equal(refusal_of(&(struct error){ .kind = ERROR_BUSY, .short_of_memory = true }),
			 REFUSAL_MEMORY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_document_goes_through_every_pipeline_under_one_ack),
		TEST(a_batch_joins_the_documents_of_a_request),
		TEST(a_bad_document_is_rejected_alone),
		TEST(a_request_of_bad_documents_fails_with_the_first_fault),
		TEST(what_is_not_the_senders_fault_fails_the_whole_request),
		TEST(a_request_without_documents_is_accepted),
		TEST(a_document_is_charged_for_its_own_pass_only),
		TEST(compressed_documents_are_inflated_one_at_a_time),
		TEST(a_document_that_inflates_to_too_much_is_rejected),
		TEST(documents_together_inflate_to_a_multiple_of_the_maximum),
		TEST(every_refusal_and_transport_has_a_name_and_a_series),
		cmocka_unit_test(every_error_kind_has_a_refusal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
