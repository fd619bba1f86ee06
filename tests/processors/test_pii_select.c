/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/memory.h"
#include "config/load.h"
#include "processors/pii_config.h"
#include "tests/processors/pii_reference.h"
#include "tests/processors/specimens.h"

/* The selection of detectors must never change the result. Each string is scanned with the
 * selection, without it, and through the remembered verdicts, and all three results must be equal.
 * They must also equal the result of a reference implementation made of regular expressions. */
#define TEXTS 40000
#define REFERENCE_TEXTS 200000
#define UNLIMITED 1000000 /* effort: the strings here are dense */

static struct pii_engine engine;
static struct pii_scratch *scratch;
static struct pii_config config;
static struct node *tree;

static uint64_t state_of_random = 0x5eed;

static uint32_t draw(uint32_t below)
{
	state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state_of_random >> 33) % below;
}

static int open_engine(void **state)
{
	(void)state;
	static const char yaml[] = "detectors: {uuid: {}}";
	struct error err;
	scratch = memory_new(sizeof *scratch);
	tree = config_parse("test", yaml, sizeof yaml - 1, &err);
	assert_non_null(tree);
	assert_true(config_bind(&pii_config_table, tree, "pii", &config, &err));
	assert_true(pii_config_engine(&config, &engine, &err));
	engine.effort = UNLIMITED;
	return 0;
}

static int close_engine(void **state)
{
	(void)state;
	pii_engine_fini(&engine);
	pii_scratch_fini(scratch);
	memory_free(scratch);
	config_release(&pii_config_table, &config);
	node_unref(&tree);
	return 0;
}

static const char *any_specimen(void)
{
	switch (draw(4)) {
	case 0:
		return misses[draw(COUNT(misses))];
	case 1:
		return shortest[draw(COUNT(shortest))];
	case 2:
		return paths[draw(COUNT(paths))][0];
	default:
		return hits[draw(COUNT(hits))].in;
	}
}

/* Two samples, or parts of them, joined by a separator and then changed in a few places. */
static size_t make_text(char *out, size_t room)
{
	static const char *const glue[] = { "",  " ",  "/", ":", "_", "-",
					    ".", "\n", "?", "=", "0", "a" };
	static const char alphabet[] = "@.:-/\\?=+_~% \tAZaz09bBfF*\x80\xff";
	size_t len = 0;
	for (uint32_t n = 1 + draw(3); n; n--) {
		struct view part = view_of(any_specimen());
		if (draw(4) == 0)
			part.len = draw((uint32_t)part.len + 1);
		struct view join = view_of(glue[draw(COUNT(glue))]);
		if (len + part.len + join.len + 8 > room)
			break;
		memcpy(out + len, part.at, part.len);
		memcpy(out + len + part.len, join.at, join.len);
		len += part.len + join.len;
	}
	for (uint32_t n = draw(5); n && len; n--) {
		uint32_t at = draw((uint32_t)len);
		if (draw(3) == 0)
			memmove(out + at, out + at + 1, --len - at);
		else
			out[at] = alphabet[draw(sizeof alphabet - 1)];
	}
	return len;
}

static void same_verdict(const struct pii_verdict *a, const struct pii_verdict *b,
			 const uint8_t *text_of_a, struct view text)
{
	if (a->hits == b->hits && a->outcome == b->outcome && a->text.len == b->text.len &&
	    (!a->text.len || memcmp(text_of_a, b->text.at, a->text.len) == 0))
		return;
	fail_msg("hits %llx and %llx on: %.*s", (unsigned long long)a->hits,
		 (unsigned long long)b->hits, (int)text.len, text.at);
}

/* With the limit of effort a string has the same verdict, or it is replaced as a whole. */
static bool is_given_up(enum site_role role, struct view text, const struct pii_verdict *all,
			const uint8_t *text_of_all)
{
	engine.effort = PII_EFFORT;
	struct pii_verdict limited = pii_scan_plain(&engine, scratch, role, text, true);
	engine.effort = UNLIMITED;
	bool given_up = limited.hits >> PII_TOO_LONG & 1;
	if (!given_up)
		same_verdict(all, &limited, text_of_all, text);
	else
		assert_true(view_is(limited.text, PII_MASK_TEXT));
	return given_up;
}

static void selection_and_memory_change_no_verdict(void **state)
{
	(void)state;
	static const enum site_role roles[] = { ROLE_FILE, ROLE_VALUE };
	static uint8_t first[1 << 17];
	char room[1024];
	uint32_t found = 0, known = 0, given_up = 0;
	for (int i = 0; i < TEXTS; i++) {
		struct view text = { (uint8_t *)room, make_text(room, sizeof room) };
		enum site_role role = roles[i % 2];
		struct pii_verdict all = pii_scan_plain(&engine, scratch, role, text, false);
		assert_true(all.text.len <= sizeof first);
		memcpy(first, all.text.at ? all.text.at : (uint8_t *)"", all.text.len);
		found += all.hits != 0;
		struct pii_verdict chosen = pii_scan_plain(&engine, scratch, role, text, true);
		same_verdict(&all, &chosen, first, text);
		for (int again = 0; again < 2; again++) {
			struct pii_verdict kept = pii_scan(&engine, scratch, role, text);
			same_verdict(&all, &kept, first, text);
		}
		bool clean = pii_known_clean(scratch, pii_key(engine.class_of[role], text));
		assert_false(clean && all.outcome != PII_CLEAN);
		known += clean;
		given_up += is_given_up(role, text, &all, first);
	}
	assert_in_range(given_up, 1, TEXTS / 20);
	/* Most strings that were just found clean are in their first slot. */
	assert_in_range(known, (TEXTS - found) / 2, TEXTS - found);
	/* The strings are useful: many have a match, and many do not. */
	assert_in_range(found, TEXTS / 4, TEXTS * 9 / 10);
}

/* The characters and words of the rule for each alphabet. Most of them are nearly a match. */
static const char *const alphabets[][12] = {
	{ "0", "1", "2", "9", "4111", "-", " ", ".", "5555", "000", "34", NULL },
	{ "2", "3", "7", "-", ".", " ", "(", ")", "+", "202", "555-", NULL },
	{ ":", "::", "f", "2001", "fe80", "0", "ab", ".1", "%5B", "_", "1.2.3.4", NULL },
	{ "@", "a", "b.", ".", "-", "co", "v1.2", "\xc3\xa4", "service", "a@b.co", "x1", NULL },
	{ "/", "home", "Users", "a", "/home/", "mnt", "root", "data1", "*", "-", "Volumes", NULL },
	{ "\\", "/", "c:", "users", "USERS", "documents and settings", "a", " ", "d:/a/", "x", "?",
	  NULL },
	{ "/", "builds", "/builds/", "_work", "__w", "work", "jenkins", "agent", "workspace", "a",
	  "-", NULL },
	{ "?", "=", "://", "a", "%20", " ", "'", "/", "[", "http", "&", NULL },
	{ "Bearer", "bearer", " ", "=", "+", "%20", ":", "abcdefg", "1", "-", "x", NULL },
	{ "A", "B", "E", "1234", "0", "AKIA", "ABCPE1234F", "IOSFODNN7EXAMPLE", "-", "Z", "A3T",
	  NULL },
	{ "ImFsZyI", "JhbGci", "iYWxnI", ".", "a", "_", "-", "/", ".x.", "eyJ", "0", NULL },
	{ "sk-", "ghp_", "gho", "k_live_", "s", "xoxb-", "0123456789abcdef", "-", "_", "AIza",
	  "ant-", NULL },
	{ "SG.", "ya29.", "Q~", "1", "0123456789abcdefghijkl", "~", "aaa", ".", "AccountKey=", "=",
	  "glpat-", NULL },
	{ "-----BEGIN ", "-", "PRIVATE", " ", "KEY", "PRIVATE KEY", "RSA ", "X", "\n", "a", "BEGIN",
	  NULL },
	{ "go-build", "/go-build", "1234", "_bazel_", "/_bazel_",
	  "0123456789abcdef0123456789abcdef", "/", "A", "a", "f", "-", NULL },
	{ "%2F", "home", "%5C", "Users", "a", "%20", "%C3", "%2B", "%3D", "token", "1", NULL },
	{ "/home/", "./", "../", "/Users/", "a", "First", " ", "GET ", "-I", "ssh://h", "file://h",
	  NULL },
	{ "\\\\", "\\", "users", "home", "wsl$", "a", "C:", "HarddiskVolume1", " B", "/",
	  "%SystemDrive%", NULL },
	{ "password", "=", "\"", "'", "\\", ":", " ", "-", "X-", "x", "pwd", NULL },
	{ "token", "%3D", "%26", "&", ";", "--", "api_key", "=", " ", "sig", "(", NULL },
	{ "://", "u", ":", "@", "p", "/", "?", "webpack", ".js", "#", "a", NULL },
	{ "Basic", "basic", " ", "%20", "YTpi", "YTpiY2Rl", "=", "x", "_", "QQ", "\t", NULL },
	{ "00", "11", "aa", ":", "-", ".", "0a1b", "00:11:22:33:44:55", "f", "59", "12", NULL },
	{ "ip-", "ec2-", "10", "1", "-", ".", "256", "::1", "lib", ".so", "/", NULL },
	{ "GB82", "WEST", "1234", "5698", "7654", "32", " ", "NO9386011117947", "A", "0", "DE",
	  NULL },
	{ "NO93", "%20", "-", "+", "8601", "1117", "947", "NO93-8601-1117-947", "8601%201117", "%",
	  "0", NULL },
	{ "%2B", "%20", "%28", "%29", "+", "1202", "555", "0143", "-", "2", "x1", NULL },
	{ "api", "auth", "signing", "account", "key", "_key", "=", "%3D", "%253D", "%2526", "x",
	  NULL },
	{ "fe80::", "1", "::", ":", "add", "2001:db8::", "f", ".", "x", "IP-", "1-2-3-4", NULL },
	{ "/Users/", "First", " Last", " -v", "/", "\"", ")", " ", "c%3A", "file://", "a", NULL },
	{ "C:\\Users\\", "alice", ";", ",", "=", "[", " B", "\\", "c:/users/", "]", "+", NULL },
	{ "4111", ".1111", "_1111", "%201111", "+1111", ".", "1", "3782", ".822463", ".10005",
	  ".llvm.", NULL },
	{ "%40", "&#64;", "&#x40;", "\\u0040", "\xef\xbc\xa0", "\xef\xbc\x8e", "a", "b.co", ".",
	  "0x1", "2x.png", NULL },
	{ "%", "25", "40", "a", "b.co", "&#", "0", "64;", "x40;", "X", ";", NULL },
	{ "\\", "x40", "u0040", "u{40}", "U00000040", "a", "b.co", "\"", ".", "u", "40", NULL },
	{ "hvs.", "shpat_", "0123456789abcdef", "0123456789abcdefghijABCDEFGHIJ01", "-", "_",
	  "dapi", "SK", "dop", "_v1_", "hf_", NULL },
	{ "glsa_", "lin_api_", "ATATT3", "xapp-", "0123456789abcdefghijABCDEFGHIJ01", "a", "whsec_",
	  "pypi-AgE", "-", "dckr_", "hooks.slack.com/", NULL },
	{ "/app", ";pwd=", ";token=", "a", "/", "?", "https://", "//", " ", ";", "_PWD=", NULL },
	{ "://", "u", ":", "@b.co", "a", "@", "/", "&commat;", "%2540", "#", "b.co", NULL },
	{ "a.", "A", "a.B@", "1f2e3d", ".get", ".@", "b.", "co", "1f2e3", "x.", "@", NULL },
	{ "a.B", "$", "Bc", "@", "1f2e3d4", "1234567", "deadbee", ".run", ".com", ".cn", "x",
	  NULL },
	{ "?", "v=", "ver=", "t=", "a.js", "://", "1.2", "=true", "&b=False", "a", ".", NULL },
	{ "token", "api_key", ": ", "8f3a9c17", "de42b061", "=", ".", ",", "abcdefgh", "-", ")",
	  NULL },
	{ "00:11:22:33", "aa", ":", "bb:", "cc:dd:ee:ff", "::", "1", "2001", ":00:11", "-", "%5B",
	  NULL },
	{ "00-11-22", "-33-44-55", "-66-77", "-", "aa", "12", "ff-ff-ff", "x", "_", " ", ":",
	  NULL },
	{ "1.2.3.4", "Version=", "Chrome/", " Edg/", "c++-", "\\Program Files", "\\", "jvm", "/",
	  "C:", "5", NULL },
	{ "password", ": ", ":", " ", "hunter", "22", "A", "passphrase", "(", "12345678",
	  "passwd: ", NULL },
	{ "\\/home\\/", "\\/Users\\/", "\\/", "a", "data", "/", " ", "GET ", "\"", "./", "..",
	  NULL },
	{ "3530", "1113", "3330", "0000", "3530111333300000", "378282246310005", " ", "-", "1",
	  "56930902", "5904", NULL },
	{ "ATATT3", "ATCTT3", "0123456789abcdefghijABCDEFGHIJ01", "23456789", "=1C1794EF", "=", "a",
	  "1C1794EF", ",", "-", "z", NULL },
	{ "glpat-", "glrt-", "glagent-", "gl", "t-", "01234567890123456789", "%3D", "\\n",
	  "\\u003d", "a", "-", NULL },
	{ "hooks.slack.com", "\\/", "/", "%2F", "services", "T00000000", "XXXXXXXXXXXX", "+", ".",
	  "%22", "a", NULL },
	{ "password", " = ", " : ", "=>", " =>", "\"", "'", "\\", "Hunter22", "token", " ", NULL },
	{ "token", " = ", "8f3a9c17de42b061", ": ", "\"", "=", " ", "Zk3xQ9b2", "password", ":",
	  ">", NULL },
	{ ":\\/\\/", "u", ":", "p@h", "\\", "/", "@b.co", "://", "a", "%25", "%2Fhome%252F", NULL },
	{ "%2Fhome", "%252Fhome", "%252F", "%25", "25", "alice", "\\t", "/home2/", "/home", "12",
	  "\\/home3\\/", NULL },
	{ "/home/", "rootfs", "/", "mnt", "Users", "data1", "a", "jenkins", "/workspace/", "agent",
	  "\\n", NULL },
	{ "/_work/", "\\_work\\", "/__w/", "a", "\\", "/", "_work", "builds", "/builds/", "agent/",
	  "buildkite-agent", NULL },
	{ "\\\\?\\UNC\\", "server", "\\", "Users", "alice", "?", "UNC", "\\\\", "home", "/", "unc",
	  NULL },
	{ "AccountKey=", "SharedAccessKey=", "0123456789abcdef", "/", "==", "Key=", "+", "Account",
	  "=", "a", ";", NULL },
	{ "webpack", "://", "a", "?", "-internal", "x", ".js", "=", "/", "://a?x", " ", NULL },
	{ "%20", "%3D", "\\n", "\\x3d", "1.2.3.4", "ip-10-1-2-3", "+12025550143", "NO9386011117947",
	  "pwd=a", "AKIAIOSFODNN7EXAMPLE", "n", NULL },
	{ "Bearer", "%20", "abcdefgh1", "%2F", "%2B", "%3d", "Basic", "+", "YTpiY2Rl", "%7E", "x",
	  NULL },
	{ "ImFsZyI", ".", "eyJ", "eyA", "ewo", "a", "ya29.", "c.", "0123456789abcdefghij", "-", "_",
	  NULL },
	{ "Authorization", ": ", "Token ", "abcdefgh1", "%20", "8f3a9c17de42b061", "\"", "=",
	  "Bearer ", "%3A", "key", NULL },
	{ "user", "[", "password", "]", "%5B", "%5D", "=", "%3D", "%25", "x", "token", NULL },
	{ "<", "/", "password", ">", "token", "\\", "![CDATA[", "]]>", "a", " ", "\n", NULL },
	{ "curl", " ", "-u", "--user", "-sku", "a:b", "\"", "'", "\\", ",", ":", NULL },
	{ "curl", " ", "-u", "--proxy-user", "-Lu", "a:b", "=", "-", "s", "[", "U", NULL },
	{ "X-", "Api-Key", ":", "-H", " ", "k1", "\"", "--header", "=", "token", "-", NULL },
	{ "-----BEGIN", "+", "%20", " ", "PRIVATE", "KEY", "RSA", "PRIVATE%20KEY", "X", "-",
	  "BEGIN", NULL },
	{ "%3D", "\\n", "\\u003d", "%22", "%20", "4111111111111111", "219-09-9999", "202-555-0143",
	  "1-", "00:11:22:33:44:55", "2341 2341 2346", NULL },
	{ "%3D", "%20", "\\x2f", "4111", "1111", ".", " ", "\\x3d", "10.1.2.3", "ABCPE1234F",
	  "aa:bb", NULL },
	{ "postgres://", "redis:\\/\\/", "u", ":", "/", "@", "#", "80", "mongodb+srv", "+", "?",
	  NULL },
	{ "sqlplus ", "oracle:thin:", "-s ", "scott", "/", "tiger", "@", "h", "\"", " ", "&",
	  NULL },
	{ "f81d4fae", "-7dec", "-11d0", "-a765", "-00a0c91e6bf6", "-", "f", "0", "_", "g", " ",
	  NULL },
};

static size_t make_near_match(char *out, size_t room)
{
	const char *const *alphabet = alphabets[draw(COUNT(alphabets))];
	size_t len = 0;
	for (uint32_t n = 1 + draw(16); n; n--) {
		struct view part = view_of(alphabet[draw(11)]);
		if (len + part.len > room)
			break;
		memcpy(out + len, part.at, part.len);
		len += part.len;
	}
	return len;
}

static size_t add_part(char *out, size_t len, size_t room, struct view part)
{
	if (part.len > room - len)
		return len;
	memcpy(out + len, part.at, part.len);
	return len + part.len;
}

static struct view any_unit(void)
{
	struct view unit = draw(2) ? view_of(alphabets[draw(COUNT(alphabets))][draw(11)])
				   : view_of(any_specimen());
	if (draw(3) == 0 && unit.len) {
		uint32_t cut = draw((uint32_t)unit.len);
		unit = (struct view){ unit.at + cut, 1 + draw((uint32_t)unit.len - cut) };
	}
	return unit;
}

/* Rows of what is nearly a match, each with a specimen behind it: what a rule has learnt from a row
 * must not hide what follows. */
static size_t make_rows(char *out, size_t room)
{
	static const char *const glue[] = { "",  "",  "",  "",  " ", ":", "-", ".", ",", "_",
					    "/", "0", "a", "=", "A", "%", "@", "?", ";", "\\" };
	size_t len = 0;
	for (uint32_t rows = 1 + draw(3); rows; rows--) {
		struct view unit = any_unit(), join = view_of(glue[draw(COUNT(glue))]);
		for (uint32_t times = 1 + draw(draw(3) ? 4 : 40); times; times--) {
			len = add_part(out, len, room, unit);
			len = add_part(out, len, room, join);
		}
		len -= draw(3) == 0 && len;
		len = add_part(out, len, room, view_of(glue[draw(COUNT(glue))]));
		len = add_part(out, len, room, view_of(any_specimen()));
	}
	return len;
}

/* Of three kinds, by turns. */
static size_t make_any(char *out, size_t room, int turn)
{
	if (turn % 4 == 0)
		return make_text(out, room);
	return turn % 4 == 1 ? make_rows(out, 16 + draw(300)) : make_near_match(out, room);
}

static void the_reference_finds_the_same(void **state)
{
	(void)state;
	static const enum site_role roles[] = { ROLE_FILE, ROLE_VALUE };
	static struct reference reference;
	struct bytes expected;
	char room[1024];
	uint32_t found = 0;
	bytes_init(&expected, 1 << 20);
	assert_true(reference_open(&reference));
	for (int i = 0; i < REFERENCE_TEXTS; i++) {
		struct view text = { (uint8_t *)room, make_any(room, sizeof room, i / 2) };
		const uint8_t *actions = engine.actions[engine.class_of[roles[i % 2]]];
		struct pii_verdict ours =
			pii_scan_plain(&engine, scratch, roles[i % 2], text, i % 3);
		uint64_t expected_hits = reference_mask(&reference, actions, text, &expected);
		found += expected_hits != 0;
		if (expected_hits != ours.hits || !view_equal(bytes_view(&expected), ours.text))
			fail_msg("hits %llx, %llx expected, on: %.*s\n%.*s\n%.*s expected",
				 (unsigned long long)ours.hits, (unsigned long long)expected_hits,
				 (int)text.len, text.at, (int)ours.text.len, ours.text.at,
				 (int)expected.len, expected.at);
	}
	assert_in_range(found, REFERENCE_TEXTS / 8, REFERENCE_TEXTS * 7 / 8);
	reference_close(&reference);
	bytes_fini(&expected);
}

/* Scans one and a half times as many strings as there is room for, twice: forgotten ones are
 * scanned again. */
static void verdicts_hold_when_more_is_clean_than_fits(void **state)
{
	(void)state;
	enum { CLEAN = PII_CLEAN_SETS * PII_CLEAN_WAYS / 2 * 3 };
	uint32_t known = 0;
	for (int i = 0; i < 2 * CLEAN; i++) {
		char room[40 + BYTES_SLACK];
		bool hit = i % 64 == 0;
		int len = snprintf(room, sizeof room, hit ? "user%d@example.com" : "function%d",
				   i % CLEAN);
		struct view text = { (uint8_t *)room, (size_t)len };
		known += pii_known_clean(scratch, pii_key(engine.class_of[ROLE_FUNCTION], text));
		struct pii_verdict verdict = pii_scan(&engine, scratch, ROLE_FUNCTION, text);
		assert_int_equal(verdict.outcome, hit ? PII_CHANGED : PII_CLEAN);
	}
	/* In the second round, not all of them are known. */
	assert_in_range(known, CLEAN / 16, CLEAN * 3 / 4);
}

static void the_shortest_matches_are_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(shortest); i++)
		if (!pii_scan_plain(&engine, scratch, ROLE_FILE, view_of(shortest[i]), true).hits)
			fail_msg("%s", shortest[i]);
}

/* In each of these a specimen becomes what it becomes alone, unless it takes all that follows or is
 * known by what begins the string. */
static const char *const around[] = {
	"see %s",    "k=%s",  "\"%s\"", "{\"k\":\"%s\"}",
	"<b>%s</b>", "x, %s", "\t%s\n", "/bin/x -y %s",
};

static bool needs_its_ends(const char *specimen)
{
	return strstr(specimen, "-----BEGIN") || strstr(specimen, "/cart;pwd=");
}

static void every_specimen_is_found_between_other_words(void **state)
{
	(void)state;
	unsigned wrong = 0;
	engine.effort = PII_EFFORT;
	for (size_t i = 0; i < COUNT(hits) * COUNT(around); i++) {
		char text[400], expected[400];
		const char *in = hits[i / COUNT(around)].in, *out = hits[i / COUNT(around)].out;
		size_t len = (size_t)snprintf(text, sizeof text, around[i % COUNT(around)], in);
		snprintf(expected, sizeof expected, around[i % COUNT(around)], out);
		struct pii_verdict verdict =
			pii_scan_plain(&engine, scratch, ROLE_VALUE,
				       (struct view){ (uint8_t *)text, len }, true);
		if (view_is(verdict.text, expected) || needs_its_ends(in))
			continue;
		print_error("%s -> %.*s\n", text, (int)verdict.text.len, verdict.text.at);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(selection_and_memory_change_no_verdict),
		cmocka_unit_test(the_reference_finds_the_same),
		cmocka_unit_test(verdicts_hold_when_more_is_clean_than_fits),
		cmocka_unit_test(the_shortest_matches_are_found),
		cmocka_unit_test(every_specimen_is_found_between_other_words),
	};
	return cmocka_run_group_tests(tests, open_engine, close_engine);
}
