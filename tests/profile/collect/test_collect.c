/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "tests/support/collecting.h"

static void everything_that_is_named_leaves(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	uint32_t build = open_attribute(p, "build", "abc");
	uint32_t mapping = open_mapping(p, "libc.so", LIST(build));
	p->mappings.at[mapping].start = 4096;
	p->mappings.at[mapping].limit = 8192;
	p->mappings.at[mapping].offset = 1;
	uint32_t function = open_function(p, "main");
	p->functions.at[function].system_name = open_text(p, "_main");
	p->functions.at[function].filename = open_text(p, "main.c");
	p->functions.at[function].start_line = 10;
	uint32_t location =
		open_location(p, mapping, 0x1234, function, LIST(open_attribute(p, "frame", "c")));
	p->lines.at[0].line = 12;
	p->lines.at[0].column = 3;
	uint32_t stack = open_stack(p, LIST(location));
	struct resource *r = open_resource(p, LIST(open_attribute(p, "service.name", "shop"),
						   open_integer(p, "pid", 7, "")));
	r->schema_url = open_text(p, "http://r");
	r->dropped_attributes = 2;
	struct scope *s = open_scope(p, "agent");
	s->version = open_text(p, "1.0");
	s->schema_url = open_text(p, "http://s");
	s->dropped_attributes = 3;
	s->attributes = LIST(open_attribute(p, "scope.key", "v"));
	struct profile *profile = open_profile(p, "cpu", "ns");
	profile->has_period_type = 1;
	profile->period_type = (struct value_kind){ open_text(p, "wall"), open_text(p, "ms") };
	profile->period = 99;
	profile->time = 1000;
	profile->duration = 500;
	profile->dropped_attributes = 4;
	profile->profile_id = profiles_bytes_new(p, "0123456789abcdef", 16);
	profile->attributes = LIST(open_attribute(p, "note", "n"));
	open_sample(p, stack, LIST(open_integer(p, "size", 512, "bytes")), open_link(p, 0xaa, 0xbb),
		    TIMES(1, 2), TIMES(1001, 1002));
	assert_collects(
		f, "resource schema=http://r dropped=2 {service.name=\"shop\" pid=7}\n"
		   " scope name=agent version=1.0 schema=http://s dropped=3 {scope.key=\"v\"}\n"
		   "  profile type=cpu/ns period_type=wall/ms period=99 time=1000 duration=500 "
		   "dropped=4"
		   " id=30313233343536373839616263646566 {note=\"n\"}\n"
		   "   1234:main(_main)@main.c+10/12.3!libc.so start=4096 limit=8192 offset=1 "
		   "{build=\"abc\"}"
		   " {frame=\"c\"} {size=512 bytes}"
		   " link=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/bbbbbbbbbbbbbbbb 1 2 @1001 @1002\n");
}

static void nothing_is_invented(void **state)
{
	struct fixture *f = *state;
	open_resource(&f->p, NONE);
	open_scope(&f->p, "");
	open_profile(&f->p, "", "")->has_sample_type = 0;
	assert_collects(f, "resource\n scope\n  profile\n");
}

static void values_of_all_types_leave_inline(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	uint32_t key = open_text(p, "k");
	uint32_t first = p->attributes.count;
	profiles_attribute_new(p,
			       (struct attribute){ .key = key, .type = VALUE_BOOL, .boolean = 1 });
	profiles_attribute_new(p,
			       (struct attribute){ .key = key,
						   .type = VALUE_BYTES,
						   .bytes = profiles_bytes_new(p, "\x01\x02", 2) });
	profiles_attribute_new(p, (struct attribute){ .key = key });
	uint32_t list = profiles_attribute_new(p, (struct attribute){ .key = open_text(p, "array"),
								      .type = VALUE_ARRAY,
								      .children = { first, 3 } });
	uint32_t map = profiles_attribute_new(p, (struct attribute){ .key = open_text(p, "map"),
								     .type = VALUE_KVLIST,
								     .children = { first, 2 } });
	struct attribute number = { .key = open_text(p, "double"), .type = VALUE_DOUBLE };
	attribute_set_number(&number, -0.5);
	uint32_t real = profiles_attribute_new(p, number);
	char long_text[301] = { 0 };
	memset(long_text, 'x', 300);
	open_resource(p, LIST(list, map, real, open_integer(p, "int", INT64_MIN, ""),
			      open_attribute(p, "empty", "")));
	open_scope(p, "");
	open_profile(p, "", "")->attributes = LIST(list, open_attribute(p, "long", long_text));
	char expected[1024];
	snprintf(expected, sizeof expected,
		 "resource {array=[true 0102 empty] map={k=true k=0102} double=-0.5"
		 " int=-9223372036854775808 empty=\"\"}\n scope\n"
		 "  profile type=/ {array=[true 0102 empty] long=\"%s\"}\n",
		 long_text);
	assert_collects(f, expected);
}

/* Promise 1: a sender's entry 0, entries without references, and entries that a policy removed from
 * a list. */
static void what_nothing_refers_to_stays_behind(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	uint32_t canary = open_text(p, "CANARY");
	uint32_t denied = open_attribute(p, "CANARY.key", "CANARY.value");
	open_location(p, open_mapping(p, "CANARY.so", LIST(denied)), 1,
		      open_function(p, "CANARY_orphan"), LIST(denied));
	open_link(p, 'C', 'A');
	uint32_t kept = open_attribute(p, "kept", "yes");
	struct list list = LIST(kept, denied);
	list.count = 1;
	struct resource *r = open_resource(p, list);
	r->changed = 1;
	open_scope(p, "");
	struct profile *profile = open_profile(p, "cpu", "ns");
	profile->period_type = (struct value_kind){ canary, canary };
	struct sample *s = open_value(p, open_frame(p, "main"), list, 1);
	s->changed = 1;
	open_profile(p, "CANARY.type", "CANARY.unit")->dropped = 1;
	open_value(p, open_frame(p, "CANARY_dropped"), NONE, 1);
	open_profile(p, "CANARY.type", "CANARY.unit")->fault = FAULT_INDEX;
	open_value(p, open_frame(p, "CANARY_fault"), LIST(denied), 1);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	assert_int_equal(f->added.dropped_profiles, 1);
	assert_int_equal(f->added.samples_dropped, 1);
	assert_int_equal(f->added.profiles, 1);
	struct packet *packet = collect_seal(f->c);
	assert_null(memmem(packet->otlp.at, packet->otlp.len, "CANARY", 6));
	assert_non_null(memmem(packet->otlp.at, packet->otlp.len, "main", 4));
	assert_null(oracle_breach(bytes_view(&packet->otlp)));
	packet_unref(&packet);
}

/* Each table begins with its entry 0, under its own field. */
static void a_packet_says_where_its_tables_begin(void **state)
{
	struct fixture *f = *state;
	collecting_profile(f);
	open_value(&f->p, open_frame(&f->p, "main"),
		   LIST(open_attribute(&f->p, "thread.name", "x")), 1);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	struct packet *packet = collect_seal(f->c);
	for (int t = 0; t < PACKET_TABLES; t++) {
		assert_true(packet->tables[t] > (t ? packet->tables[t - 1] : 0) &&
			    packet->tables[t] < packet->otlp.len);
		assert_int_equal(packet->otlp.at[packet->tables[t]], (t + 1) << 3 | 2);
	}
	packet_unref(&packet);
}

/* The next packet starts empty, although buffers are reused. */
static void a_packet_keeps_nothing_of_the_one_before(void **state)
{
	struct fixture *f = *state;
	collecting_profile(f);
	open_value(&f->p, open_frame(&f->p, "CANARY"), LIST(open_attribute(&f->p, "CANARY", "x")),
		   1);
	assert_collects(f, HEAD "   0:CANARY {CANARY=\"x\"} 1\n");
	open_begin(&f->p, NULL);
	collecting_profile(f);
	open_value(&f->p, open_frame(&f->p, "main"), NONE, 2);
	assert_collects(f, HEAD "   0:main 2\n");
}

static void a_changed_request_becomes_the_same_bytes_in_any_collector(void **state)
{
	struct fixture *f = *state;
	collecting_profile(f);
	open_value(&f->p, open_frame(&f->p, "main"), LIST(open_attribute(&f->p, "k", "v")), 1);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	struct packet *first = collect_seal(f->c);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	struct packet *second = collect_seal(f->c);
	assert_int_equal(first->otlp.len, second->otlp.len);
	assert_memory_equal(first->otlp.at, second->otlp.at, first->otlp.len);
	packet_unref(&first);
	packet_unref(&second);
}

static void empty_stacks_and_stack_0_get_an_index_of_their_own(void **state)
{
	struct fixture *f = *state;
	collecting_profile(f);
	open_value(&f->p, 0, NONE, 1);
	open_value(&f->p, open_stack(&f->p, NONE), NONE, 2);
	assert_collects(f, HEAD "   - 1\n   - 2\n");
}

static void location_0_keeps_its_place_in_the_stack(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	uint32_t leaf = open_location(p, 0, 0x10, 0, NONE);
	uint32_t root = open_location(p, 0, 0x20, 0, NONE);
	collecting_profile(f);
	open_value(p, open_stack(p, LIST(leaf, 0, root)), NONE, 1);
	assert_collects(f, HEAD "   10;0;20 1\n");
}

static void a_line_without_function_has_none(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	uint32_t location = open_location(p, 0, 0x10, open_function(p, "gone"), NONE);
	p->lines.at[0] = (struct line){ .function = 0, .line = 5 };
	collecting_profile(f);
	open_value(p, open_stack(p, LIST(location)), NONE, 1);
	assert_collects(f, HEAD "   10:/5.0 1\n");
}

static void a_link_without_ids_is_none(void **state)
{
	struct fixture *f = *state;
	collecting_profile(f);
	open_sample(&f->p, open_frame(&f->p, "a"), NONE, open_link(&f->p, 0, 0), TIMES(1), NULL);
	open_sample(&f->p, open_frame(&f->p, "b"), NONE, open_link(&f->p, 7, 0), TIMES(2), NULL);
	assert_collects(f,
			HEAD "   0:a 1\n"
			     "   0:b link=07070707070707070707070707070707/0000000000000000 2\n");
}

static void a_key_stands_once_in_a_list_and_the_first_stays(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	uint32_t a = open_attribute(p, "k", "1"), b = open_attribute(p, "k", "2"),
		 c = open_attribute(p, "other", "3");
	open_resource(p, LIST(a, c, b));
	open_scope(p, "")->attributes = LIST(b, a);
	open_profile(p, "cpu", "ns")->attributes = LIST(c, a, b, c);
	open_value(p, open_frame(p, "main"), LIST(b, a, c, 0), 1);
	assert_collects(
		f,
		"resource {k=\"1\" other=\"3\"}\n scope {k=\"2\"}\n"
		"  profile type=cpu/ns {other=\"3\" k=\"1\"}\n   0:main {k=\"2\" other=\"3\"} 1\n");
}

/* The table of keys grows with the strings, and may move in the middle of a list. */
static void a_key_stands_once_however_many_strings_came_between(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	uint32_t a = open_attribute(p, "k", "1"), b = open_attribute(p, "k", "2"),
		 c = open_attribute(p, "other", "3"), d = open_attribute(p, "other", "4");
	struct bytes expected;
	bytes_init(&expected, 1 << 20);
	bytes_add_text(&expected, HEAD "   0:first {k=\"1\" other=\"3\"} 1\n");
	collecting_profile(f);
	open_value(p, open_frame(p, "first"), LIST(a, c), 1);
	for (int i = 0; i < 1000; i++) {
		char name[16];
		snprintf(name, sizeof name, "f%d", i);
		open_value(p, open_frame(p, name), NONE, 1);
		bytes_format(&expected, "   0:%s 1\n", name);
	}
	open_value(p, open_frame(p, "last"), LIST(a, b, c, d), 1);
	bytes_add(&expected, "   0:last {k=\"1\" other=\"3\"} 1\n",
		  sizeof "   0:last {k=\"1\" other=\"3\"} 1\n");
	assert_collects(f, (const char *)expected.at);
	bytes_fini(&expected);
}

static void lists_that_begin_alike_stay_different(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	uint32_t a = open_attribute(p, "a", "1"), b = open_attribute(p, "b", "2");
	uint32_t one = open_location(p, open_mapping(p, "m", LIST(a)), 1, 0, LIST(a));
	uint32_t two = open_location(p, open_mapping(p, "m", LIST(a, b)), 1, 0, LIST(a, b));
	collecting_profile(f);
	open_value(p, open_stack(p, LIST(one, two)), LIST(a), 1);
	open_value(p, open_stack(p, LIST(two)), LIST(a, b), 1);
	assert_collects(f, HEAD "   1!m {a=\"1\"} {a=\"1\"};1!m {a=\"1\" b=\"2\"} {a=\"1\" b=\"2\"}"
				" {a=\"1\"} 1\n"
				"   1!m {a=\"1\" b=\"2\"} {a=\"1\" b=\"2\"} {a=\"1\" b=\"2\"} 1\n");
}

static void entities_without_id_keys_or_with_keys_of_no_attribute_go(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	struct resource *r = open_resource(p, LIST(open_attribute(p, "host.id", "h"),
						   open_attribute(p, "host.name", "n")));
	uint32_t id = open_text(p, "host.id"), gone = open_text(p, "CANARY.gone");
	assert_true(profiles_room(p, &p->entities, 5));
	r->entities = (struct list){ 0, 5 };
	p->entities.count = 5;
	p->entities.at[0] = (struct entity){ .type = open_text(p, "CANARY"),
					     .description_keys = LIST(open_text(p, "CANARY.key")) };
	p->entities.at[1] = (struct entity){ .type = open_text(p, "host"),
					     .schema_url = open_text(p, "u"),
					     .id_keys = LIST(open_text(p, "host.id")),
					     .description_keys = LIST(open_text(p, "host.name")) };
	p->entities.at[2] = (struct entity){ .id_keys = LIST(gone) };
	p->entities.at[3] = (struct entity){ .id_keys = LIST(id, gone) };
	p->entities.at[4] = (struct entity){ .id_keys = LIST(id), .description_keys = LIST(gone) };
	open_scope(p, "");
	open_profile(p, "cpu", "ns");
	assert_collects(f, "resource {host.id=\"h\" host.name=\"n\"} entity=host/u id=host.id "
			   "description=host.name\n"
			   " scope\n  profile type=cpu/ns\n");
}

static void resources_and_scopes_without_profiles_do_not_appear(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	open_resource(p, LIST(open_attribute(p, "empty", "1")));
	open_scope(p, "none");
	open_resource(p, LIST(open_attribute(p, "broken", "1")))->fault = FAULT_INDEX;
	open_scope(p, "bad");
	open_profile(p, "CANARY", "");
	open_resource(p, LIST(open_attribute(p, "good", "1")));
	open_scope(p, "dropped");
	open_profile(p, "x", "y")->dropped = 1;
	open_scope(p, "kept");
	open_profile(p, "cpu", "ns");
	assert_collects(f, "resource {good=\"1\"}\n scope name=kept\n  profile type=cpu/ns\n");
}

static void nothing_left_is_nothing(void **state)
{
	struct fixture *f = *state;
	collecting_profile(f);
	f->p.profiles.at[0].dropped = 1;
	open_value(&f->p, open_frame(&f->p, "CANARY"), NONE, 1);
	size_t before = collect_bytes(f->c);
	assert_int_equal(collecting_add(f), COLLECT_NOTHING);
	assert_int_equal(f->added.samples_dropped, 1);
	assert_true(collect_empty(f->c));
	assert_int_equal(collect_bytes(f->c), before);
}

static void request_of_service(struct fixture *f, const char *service, const char *type,
			       int64_t value)
{
	open_begin(&f->p, NULL);
	/* a new dictionary each time: equal entries have different indices */
	for (int64_t i = 0; i < value; i++)
		open_function(&f->p, "orphan");
	open_resource(&f->p, LIST(open_attribute(&f->p, "service.name", service)));
	open_scope(&f->p, "agent");
	open_profile(&f->p, type, "ns");
	open_value(&f->p, open_frame(&f->p, "main"), LIST(open_attribute(&f->p, "t", "1")), value);
	open_profile(&f->p, type, "count");
	open_value(&f->p, open_frame(&f->p, "main"), NONE, value);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
}

static void requests_of_one_service_become_one_resource(void **state)
{
	struct fixture *f = *state;
	request_of_service(f, "a", "cpu", 1);
	request_of_service(f, "b", "cpu", 2);
	request_of_service(f, "a", "cpu", 3);
	assert_leaves(f, "resource {service.name=\"a\"}\n scope name=agent\n"
			 "  profile type=cpu/ns\n   0:main {t=\"1\"} 1\n  profile type=cpu/count\n "
			 "  0:main 1\n"
			 "  profile type=cpu/ns\n   0:main {t=\"1\"} 3\n  profile type=cpu/count\n "
			 "  0:main 3\n"
			 "resource {service.name=\"b\"}\n scope name=agent\n"
			 "  profile type=cpu/ns\n   0:main {t=\"1\"} 2\n  profile type=cpu/count\n "
			 "  0:main 2\n");
}

static void a_hundred_requests_share_every_entry(void **state)
{
	struct fixture *f = *state;
	request_of_service(f, "a", "cpu", 1);
	size_t one = collect_bytes(f->c);
	request_of_service(f, "a", "cpu", 1);
	size_t each = collect_bytes(f->c) - one;
	for (int i = 2; i < 100; i++)
		request_of_service(f, "a", "cpu", 1);
	/* two Profiles and nothing else, except the lengths before them, which grow once or
	 * twice */
	assert_in_range(collect_bytes(f->c), one + 99 * each, one + 99 * each + 4);
	struct packet *packet = collect_seal(f->c);
	assert_int_equal(packet->resources, 1);
	assert_int_equal(packet->profiles, 200);
	assert_int_equal(packet->samples, 200);
	assert_int_equal(packet->contribution_count, 100);
	assert_null(oracle_breach(bytes_view(&packet->otlp)));
	packet_unref(&packet);
}

/* In the form in which pii stores them: see struct string. */
static void texts_with_and_without_a_known_hash_are_the_same(void **state)
{
	struct fixture *f = *state;
	request_of_service(f, "a", "cpu", 1);
	for (uint32_t i = 0; i < f->p.strings.count; i++) {
		struct view text = string_view(&f->p, i);
		f->p.strings.at[i].hash = (uint32_t)hash_bytes_128(text.at, text.len).low;
	}
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	struct packet *packet = collect_seal(f->c);
	assert_null(oracle_breach(bytes_view(&packet->otlp)));
	packet_unref(&packet);
}

static void equal_scopes_of_different_resources_stay_apart(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	for (int i = 0; i < 2; i++) {
		open_resource(p, LIST(open_integer(p, "pid", i, "")));
		open_scope(p, "agent");
		open_profile(p, "cpu", "ns")->period = i + 1;
		open_scope(p, "other");
		open_profile(p, "cpu", "ns")->period = i + 3;
		open_scope(p, "agent");
		open_profile(p, "cpu", "ns")->period = i + 5;
	}
	assert_collects(f, "resource {pid=0}\n scope name=agent\n"
			   "  profile type=cpu/ns period=1\n  profile type=cpu/ns period=5\n"
			   " scope name=other\n  profile type=cpu/ns period=3\n"
			   "resource {pid=1}\n scope name=agent\n"
			   "  profile type=cpu/ns period=2\n  profile type=cpu/ns period=6\n"
			   " scope name=other\n  profile type=cpu/ns period=4\n");
}

/* Lengths of two and three bytes, at every level that has a length. */
static void long_messages_have_long_lengths(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	char name[20001] = { 0 };
	memset(name, 'n', 20000);
	struct list locations = { 0 };
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t location = open_location(p, 0, i, 0, NONE);
		locations = profiles_list_copy(p, locations, 1);
		p->indices.at[locations.first + locations.count++] = location;
	}
	open_resource(p, LIST(open_attribute(p, "k", name)));
	open_scope(p, name)->attributes = LIST(open_attribute(p, "k", name));
	open_profile(p, "cpu", "ns");
	int64_t times[41];
	for (int i = 0; i < 40; i++)
		times[i] = 1000 + i;
	times[40] = -1;
	for (int i = 0; i < 600; i++)
		open_sample(p, open_stack(p, locations), NONE, 0, NULL, times);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	struct packet *packet = collect_seal(f->c);
	assert_null(oracle_breach(bytes_view(&packet->otlp)));
	assert_int_equal(packet->samples, 600);
	packet_unref(&packet);
}

/* Indices of one, two and three bytes. */
static void frames_keep_their_order_whatever_their_indices(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	static const uint32_t count = 0x4000 + 100;
	struct list locations = profiles_list_copy(p, NONE, count);
	struct bytes expected;
	bytes_init(&expected, 1 << 20);
	bytes_add_text(&expected, HEAD "   ");
	for (uint32_t i = 0; i < count; i++) {
		uint32_t location = open_location(p, 0, i + 1, 0, NONE);
		p->indices.at[locations.first + locations.count++] = location;
		bytes_format(&expected, "%s%x", i ? ";" : "", i + 1);
	}
	bytes_add(&expected, " 1\n", sizeof " 1\n");
	collecting_profile(f);
	open_sample(p, open_stack(p, locations), NONE, 0, TIMES(1), NULL);
	assert_collects(f, (const char *)expected.at);
	bytes_fini(&expected);
}

/* They come before the strings of the stacks, because most Profiles refer to them. */
static void period_types_have_short_indices(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	collecting_profile(f);
	p->profiles.at[0].has_period_type = 1;
	p->profiles.at[0].period_type =
		(struct value_kind){ open_text(p, "wall"), open_text(p, "ms") };
	for (uint32_t i = 0; i < 200; i++) {
		char name[16];
		snprintf(name, sizeof name, "f%u", i);
		uint32_t location = open_location(p, 0, i, open_function(p, name), NONE);
		open_sample(p, open_stack(p, LIST(location)), NONE, 0, TIMES(1), NULL);
	}
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	struct packet *packet = collect_seal(f->c);
	static const uint8_t period_type[] = { 5 << 3 | 2, 4, 1 << 3, 3, 2 << 3, 4 };
	assert_non_null(memmem(packet->otlp.at, packet->otlp.len, period_type, sizeof period_type));
	packet_unref(&packet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(everything_that_is_named_leaves),
		TEST(nothing_is_invented),
		TEST(values_of_all_types_leave_inline),
		TEST(what_nothing_refers_to_stays_behind),
		TEST(a_packet_says_where_its_tables_begin),
		TEST(a_packet_keeps_nothing_of_the_one_before),
		TEST(a_changed_request_becomes_the_same_bytes_in_any_collector),
		TEST(empty_stacks_and_stack_0_get_an_index_of_their_own),
		TEST(location_0_keeps_its_place_in_the_stack),
		TEST(a_line_without_function_has_none),
		TEST(a_link_without_ids_is_none),
		TEST(a_key_stands_once_in_a_list_and_the_first_stays),
		TEST(a_key_stands_once_however_many_strings_came_between),
		TEST(lists_that_begin_alike_stay_different),
		TEST(entities_without_id_keys_or_with_keys_of_no_attribute_go),
		TEST(resources_and_scopes_without_profiles_do_not_appear),
		TEST(nothing_left_is_nothing),
		TEST(requests_of_one_service_become_one_resource),
		TEST(a_hundred_requests_share_every_entry),
		TEST(texts_with_and_without_a_known_hash_are_the_same),
		TEST(equal_scopes_of_different_resources_stay_apart),
		TEST(long_messages_have_long_lengths),
		TEST(frames_keep_their_order_whatever_their_indices),
		TEST(period_types_have_short_indices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
