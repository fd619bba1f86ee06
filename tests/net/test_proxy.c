/* SPDX-License-Identifier: Apache-2.0 */
#include "net/proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* "scheme host port user password" */
static const char *shown(const struct proxy *p)
{
	static char text[400];
	snprintf(text, sizeof text, "%s %s %s %s %s", p->scheme, p->host, p->port,
		 p->user ? p->user : "-", p->password ? p->password : "-");
	return text;
}

static void urls_are_parsed(void **state)
{
	(void)state;
	static const struct {
		const char *url, *expected;
	} rows[] = {
		{ "http://proxy:3128", "http proxy 3128 - -" },
		{ "HTTP://proxy", "http proxy 80 - -" },
		{ "https://proxy/", "https proxy 443 - -" },
		{ "socks5://10.1.2.3", "socks5h 10.1.2.3 1080 - -" },
		{ "socks5h://proxy:1", "socks5h proxy 1 - -" },
		{ "http://proxy:/path?query#fragment", "http proxy 80 - -" },
		{ "http://[::1]", "http ::1 80 - -" },
		{ "http://[fd00::7]:65535", "http fd00::7 65535 - -" },
		{ "http://me@proxy", "http proxy 80 me " },
		{ "http://me:pass:word@proxy:8", "http proxy 8 me pass:word" },
		{ "http://m%65:%40%2f%C3%A9@proxy", "http proxy 80 me @/\xc3\xa9" },
		{ "http://a@b:c@proxy", "http proxy 80 a@b c" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct proxy p;
		struct error err = { 0 };
		if (!proxy_parse(rows[i].url, &p, &err))
			fail_msg("%s: %s", rows[i].url, err.text);
		assert_string_equal(shown(&p), rows[i].expected);
		proxy_fini(&p);
	}
}

static void other_text_is_an_error_that_does_not_repeat_it(void **state)
{
	(void)state;
	static const char *const rows[] = {
		"",
		"hunter",
		"http://",
		"http:///hunter",
		"ftp://hunter",
		"http:hunter",
		"http://hunter:0",
		"http://hunter:65536",
		"http://hunter:99999999999999999999",
		"http://hunter:x",
		"http://hunter:1:2",
		"http://hunter two",
		"http://[hunter]",
		"http://[::1",
		"http://[::1]hunter",
		"http://[::1::1::1::1::1::1::1::1::1::1::1::1::1::1::1::1::1::1]",
		"http://::1",
		"http://a%zzhunter@proxy",
		"http://a:%00hunter@proxy",
		"http://hunter%4@proxy",
		"http://hunter%@proxy",
		"http://me:hunter@",
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct proxy p;
		struct error err = { 0 };
		if (proxy_parse(rows[i], &p, &err))
			fail_msg("%s: %s", rows[i], shown(&p));
		assert_null(p.host);
		assert_null(strstr(err.text, "hunter"));
	}
}

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* "host:port" of the proxy of this destination; "": none */
static const char *found(bool secure, const char *host, const char *port)
{
	static char text[100];
	struct proxy p;
	struct error err = { 0 };
	if (!proxy_of_environment(secure, host, port, &p, &err))
		fail_msg("%s", err.text);
	snprintf(text, sizeof text, "%s%s%s", p.host ? p.host : "", p.host ? ":" : "",
		 p.host ? p.port : "");
	proxy_fini(&p);
	return text;
}

static void variables_have_an_order(void **state)
{
	(void)state;
	static const struct {
		const char *upper, *lower;
		const char *expected;
	} rows[] = {
		{ NULL, NULL, "" },
		{ "", "", "" },
		{ "http://upper:1", NULL, "upper:1" },
		{ NULL, "http://lower:2", "lower:2" },
		{ "http://upper:1", "http://lower:2", "upper:1" },
		{ "", "http://lower:2", "lower:2" },
		{ "upper:1", NULL, "upper:1" },
		{ "me:secret@upper", NULL, "upper:80" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		for (int secure = 0; secure < 2; secure++) {
			set(secure ? "HTTPS_PROXY" : "HTTP_PROXY", rows[i].upper);
			set(secure ? "https_proxy" : "http_proxy", rows[i].lower);
			assert_string_equal(found(secure, "store.test", "443"), rows[i].expected);
			assert_int_equal(proxy_is_in_environment(secure), *rows[i].expected != 0);
			set(secure ? "HTTPS_PROXY" : "HTTP_PROXY", NULL);
			set(secure ? "https_proxy" : "http_proxy", NULL);
			assert_string_equal(found(secure, "store.test", "443"), "");
		}
	}
}

static void an_invalid_variable_is_named_and_not_repeated(void **state)
{
	(void)state;
	static const char *const names[] = { "HTTP_PROXY", "http_proxy", "HTTPS_PROXY",
					     "https_proxy" };
	for (size_t i = 0; i < COUNT(names); i++) {
		struct error err = { 0 };
		struct proxy p;
		assert_true(proxy_check_environment(&err));
		set(names[i], "ftp://hunter");
		assert_false(proxy_check_environment(&err));
		assert_non_null(strstr(err.text, names[i]));
		assert_null(strstr(err.text, "hunter"));
		assert_false(proxy_of_environment(i >= 2, "store.test", "443", &p, &err));
		assert_null(p.host);
		set(names[i], NULL);
	}
}

/* golang.org/x/net/http/httpproxy, documentation of Config.NoProxy. */
static void destinations_of_no_proxy_have_none(void **state)
{
	(void)state;
	static const struct {
		const char *list, *host, *port;
		bool proxied;
	} rows[] = {
		{ "", "store.test", "443", true },
		{ "store.test", "store.test", "443", false },
		{ "store.test", "a.store.test", "443", false },
		{ "store.test", "mystore.test", "443", true },
		{ "store.test", "store.test.example", "443", true },
		{ "STORE.Test", "sTore.tesT", "443", false },
		{ ".store.test", "store.test", "443", true },
		{ ".store.test", "a.store.test", "443", false },
		{ "*.store.test", "store.test", "443", true },
		{ "*.store.test", "a.b.store.test", "443", false },
		{ "store.test:443", "store.test", "443", false },
		{ "store.test:443", "store.test", "444", true },
		{ "other.test, store.test ,x", "store.test", "443", false },
		{ ",,  ,", "store.test", "443", true },
		{ "*", "store.test", "443", false },
		{ "a,*", "10.1.2.3", "443", false },
		{ ".", "store.test", "443", true },
		{ "*.", "store.test", "443", true },
		{ ":443", "store.test", "443", true },
		{ "10.1.2.3", "10.1.2.3", "443", false },
		{ "10.1.2.3", "10.1.2.4", "443", true },
		{ "10.1.2.3:443", "10.1.2.3", "443", false },
		{ "10.1.2.3:443", "10.1.2.3", "80", true },
		{ "2.3", "10.1.2.3", "443", true },
		{ "10.0.0.0/8", "10.1.2.3", "443", false },
		{ "10.0.0.0/8", "11.1.2.3", "443", true },
		{ "10.1.2.0/23", "10.1.3.255", "443", false },
		{ "10.1.2.0/23", "10.1.4.0", "443", true },
		{ "0.0.0.0/0", "10.1.2.3", "443", false },
		{ "0.0.0.0/0", "fd00::1", "443", true },
		{ "::/0", "10.1.2.3", "443", true },
		{ "fd00::/8", "fd00::1", "443", false },
		{ "fd00::/8", "[fd00::1]", "443", false },
		{ "fd00::/8", "fe00::1", "443", true },
		{ "fd00::1", "[fd00:0::1]", "443", false },
		{ "[fd00::1]:443", "fd00::1", "443", false },
		{ "[fd00::1]:443", "fd00::1", "80", true },
		{ "10.0.0.0/33", "10.1.2.3", "443", true },
		{ "10.0.0.0/-1", "10.1.2.3", "443", true },
		{ "10.0.0.0/", "10.1.2.3", "443", true },
		{ "10.0.0.0/18446744073709551615", "10.1.2.3", "443", true },
		{ "fd00::/129", "fd00::1", "443", true },
		{ "store.test/8", "store.test", "443", true },
		{ "", "localhost", "443", false },
		{ "", "LocalHost", "443", false },
		{ "", "127.0.0.1", "443", false },
		{ "", "127.8.9.10", "443", false },
		{ "", "::1", "443", false },
		{ "", "[::1]", "443", false },
		{ "", "::ffff:127.0.0.1", "443", false },
		{ "", "128.0.0.1", "443", true },
		{ "", "fd00::1", "443", true },
	};
	set("HTTPS_PROXY", "http://proxy:1");
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *const names[] = { "NO_PROXY", "no_proxy" };
		for (size_t n = 0; n < COUNT(names); n++) {
			set(names[n], rows[i].list);
			const char *proxy = found(true, rows[i].host, rows[i].port);
			if (strcmp(proxy, rows[i].proxied ? "proxy:1" : "") != 0)
				fail_msg("%s, %s:%s: '%s'", rows[i].list, rows[i].host,
					 rows[i].port, proxy);
			set(names[n], NULL);
		}
	}
	set("HTTPS_PROXY", NULL);
}

static void a_name_that_is_too_long_for_an_entry_is_no_overflow(void **state)
{
	(void)state;
	char host[1000], list[1200];
	memset(host, 'a', sizeof host - 1);
	host[sizeof host - 1] = '\0';
	snprintf(list, sizeof list, "%s,store.test", host);
	set("HTTPS_PROXY", "http://proxy:1");
	set("NO_PROXY", list);
	assert_string_equal(found(true, "store.test", "443"), "");
	assert_string_equal(found(true, "other.test", "443"), "proxy:1");
	assert_string_equal(found(true, host, "443"), "proxy:1");
	set("HTTPS_PROXY", NULL);
	set("NO_PROXY", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_parsed),
		cmocka_unit_test(other_text_is_an_error_that_does_not_repeat_it),
		cmocka_unit_test(variables_have_an_order),
		cmocka_unit_test(an_invalid_variable_is_named_and_not_repeated),
		cmocka_unit_test(destinations_of_no_proxy_have_none),
		cmocka_unit_test(a_name_that_is_too_long_for_an_entry_is_no_overflow),
	};
	static const char *const names[] = { "HTTP_PROXY",  "http_proxy", "HTTPS_PROXY",
					     "https_proxy", "NO_PROXY",   "no_proxy" };
	for (size_t i = 0; i < COUNT(names); i++)
		unsetenv(names[i]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
