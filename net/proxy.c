/* SPDX-License-Identifier: Apache-2.0 */
#include "net/proxy.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

/* ---- URLs */

static const struct scheme {
	const char *prefix, *name, *port;
} schemes[] = {
	{ "http://", "http", "80" },
	{ "https://", "https", "443" },
	{ "socks5://", "socks5h", "1080" },
	{ "socks5h://", "socks5h", "1080" },
};

static const struct scheme *scheme_of(const char *url)
{
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
		if (!strncasecmp(url, schemes[i].prefix, strlen(schemes[i].prefix)))
			return &schemes[i];
	return NULL;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* Without percent-encoding. NULL: it is invalid, or contains a NUL byte. */
static char *decode(const char *text, size_t len)
{
	char *plain = memory_text_of(text, len);
	size_t used = 0;
	for (size_t i = 0; i < len; i++) {
		int high = -1, low = -1;
		plain[used++] = text[i];
		if (text[i] != '%')
			continue;
		if (len - i > 2) {
			high = digit_of(text[i + 1]);
			low = digit_of(text[i + 2]);
		}
		if (high < 0 || low < 0 || !(high | low)) {
			memory_free(plain);
			return NULL;
		}
		plain[used - 1] = (char)(high << 4 | low);
		i += 2;
	}
	plain[used] = '\0';
	return plain;
}

static bool parse_user(const char *text, size_t len, struct proxy *out)
{
	const char *colon = memchr(text, ':', len);
	size_t user = colon ? (size_t)(colon - text) : len;
	out->user = decode(text, user);
	out->password = colon ? decode(colon + 1, len - user - 1) : memory_text("");
	return out->user && out->password;
}

static bool is_port(const char *text, size_t len)
{
	unsigned number = 0;
	for (size_t i = 0; i < len && number <= 65535; i++) {
		if (!isdigit((unsigned char)text[i]))
			return false;
		number = number * 10 + (unsigned)(text[i] - '0');
	}
	return number >= 1 && number <= 65535;
}

static bool is_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] <= ' ' || strchr(":@[]%\"<>\\^`{|}\x7f", text[i]))
			return false;
	return len > 0;
}

static bool is_ipv6(const char *text, size_t len)
{
	struct in6_addr address;
	char copy[INET6_ADDRSTRLEN] = { 0 };
	if (len >= sizeof copy)
		return false;
	memcpy(copy, text, len);
	return inet_pton(AF_INET6, copy, &address) == 1;
}

/* "host", "host:port", "[::1]:port" */
static bool parse_place(const char *text, size_t len, const char *default_port, struct proxy *out)
{
	const char *end = *text == '[' ? memchr(text, ']', len) : NULL;
	const char *colon = end ? end + 1 : memchr(text, ':', len);
	size_t rest = colon ? len - (size_t)(colon - text) : 0;
	if (rest && *colon != ':')
		return false;
	if (end ? !is_ipv6(text + 1, (size_t)(end - text) - 1) : !is_name(text, len - rest))
		return false;
	if (rest > 1 && !is_port(colon + 1, rest - 1))
		return false;
	out->host = end ? memory_text_of(text + 1, (size_t)(end - text) - 1)
			: memory_text_of(text, len - rest);
	out->port = rest > 1 ? memory_text_of(colon + 1, rest - 1) : memory_text(default_port);
	return true;
}

bool proxy_parse(const char *url, struct proxy *out, struct error *err)
{
	const struct scheme *scheme = scheme_of(url);
	const char *text = scheme ? url + strlen(scheme->prefix) : "";
	size_t len = strcspn(text, "/?#");
	const char *at = memrchr(text, '@', len);
	size_t user = at ? (size_t)(at - text) : 0, skip = at ? user + 1 : 0;
	*out = (struct proxy){ .scheme = scheme ? scheme->name : NULL };
	if (scheme && (!at || parse_user(text, user, out)) &&
	    parse_place(text + skip, len - skip, scheme->port, out))
		return true;
	proxy_fini(out);
	return error_set(err, ERROR_CONFIG,
			 "must be a URL with a host, and with the scheme http, https, socks5 or "
			 "socks5h");
}

char *proxy_place(const char *host, const char *port)
{
	return memory_format(strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

void proxy_fini(struct proxy *proxy)
{
	memory_free(proxy->host);
	memory_free(proxy->port);
	memory_free(proxy->user);
	memory_free(proxy->password);
	*proxy = (struct proxy){ 0 };
}

/* ---- NO_PROXY */

enum { NAME_MAX_BYTES = 256, IPV4_BITS = 96 };

struct destination {
	char host[NAME_MAX_BYTES]; /* in lower case */
	const char *port;
	bool is_address;
	struct in6_addr address;
};

/* An IPv4 address becomes the IPv6 address that stands for it. */
static bool address_of(const char *text, struct in6_addr *out)
{
	struct in_addr v4;
	if (inet_pton(AF_INET6, text, out) == 1)
		return true;
	if (inet_pton(AF_INET, text, &v4) != 1)
		return false;
	*out = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
	memcpy(out->s6_addr + IPV4_BITS / 8, &v4, sizeof v4);
	return true;
}

static bool is_loopback(const struct in6_addr *address)
{
	return IN6_IS_ADDR_LOOPBACK(address) ||
	       (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[IPV4_BITS / 8] == 127);
}

/* Copies in lower case. False: there is no room. */
static bool lower(char *out, const char *text, size_t len)
{
	if (len >= NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < len; i++)
		out[i] = (char)tolower((unsigned char)text[i]);
	out[len] = '\0';
	return true;
}

static bool same_bits(const struct in6_addr *a, const struct in6_addr *b, size_t bits)
{
	size_t whole = bits / 8;
	if (memcmp(a, b, whole))
		return false;
	return bits % 8 == 0 || (a->s6_addr[whole] ^ b->s6_addr[whole]) >> (8 - bits % 8) == 0;
}

/* "10.0.0.0/8", "fd00::/8"; `slash` is in `entry`. */
static bool in_network(char *entry, char *slash, const struct destination *d)
{
	struct in6_addr network;
	const char *digits = slash + 1;
	size_t count = strlen(digits);
	*slash = '\0';
	if (!d->is_address || !address_of(entry, &network) || !count || count > 3 ||
	    digits[strspn(digits, "0123456789")])
		return false;
	bool v4 = IN6_IS_ADDR_V4MAPPED(&network);
	size_t bits = strtoul(digits, NULL, 10) + (v4 ? IPV4_BITS : 0);
	return v4 == IN6_IS_ADDR_V4MAPPED(&d->address) && bits <= 128 &&
	       same_bits(&network, &d->address, bits);
}

/* Cuts the port, and the brackets of an IPv6 address, off. NULL: there is no port. */
static char *cut_port(char **entry)
{
	char *text = *entry, *end = *text == '[' ? strchr(text, ']') : NULL;
	if (end) {
		*entry = text + 1;
		*end = '\0';
		return end[1] == ':' ? end + 2 : NULL;
	}
	char *colon = strchr(text, ':');
	if (!colon || strchr(colon + 1, ':'))
		return NULL;
	*colon = '\0';
	return colon + 1;
}

/* "a.test" is that host and those below it; ".a.test" and "*.a.test" are those below it. */
static bool names(const char *entry, const char *host)
{
	size_t below = strlen(host), len;
	bool itself = true;
	if (!strncmp(entry, "*.", 2))
		entry++;
	if (*entry == '.') {
		itself = false;
		entry++;
	}
	len = strlen(entry);
	if (!len || below < len || strcmp(host + below - len, entry) != 0)
		return false;
	return below == len ? itself : host[below - len - 1] == '.';
}

static bool entry_matches(char *entry, const struct destination *d)
{
	struct in6_addr address;
	char *slash = strchr(entry, '/'), *port;
	if (!strcmp(entry, "*"))
		return true;
	if (slash)
		return in_network(entry, slash, d);
	port = cut_port(&entry);
	if (port && strcmp(port, d->port) != 0)
		return false;
	if (address_of(entry, &address))
		return d->is_address && same_bits(&address, &d->address, 128);
	return !d->is_address && names(entry, d->host);
}

static bool is_exempt(const char *list, const struct destination *d)
{
	char entry[NAME_MAX_BYTES];
	while (list && *list) {
		size_t len = strcspn(list, ",");
		const char *from = list, *end = list + len;
		list = *end ? end + 1 : end;
		while (from < end && isspace((unsigned char)*from))
			from++;
		while (end > from && isspace((unsigned char)end[-1]))
			end--;
		if (lower(entry, from, (size_t)(end - from)) && *entry && entry_matches(entry, d))
			return true;
	}
	return false;
}

/* ---- the environment */

/* The value of the first of these that is not empty, and its name. */
static const char *variable(const char *upper, const char *lower_case, const char **name)
{
	const char *value = getenv(upper);
	*name = upper;
	if (value && *value)
		return value;
	value = getenv(lower_case);
	*name = lower_case;
	return value && *value ? value : NULL;
}

static const char *url_for(bool secure, const char **name)
{
	return secure ? variable("HTTPS_PROXY", "https_proxy", name)
		      : variable("HTTP_PROXY", "http_proxy", name);
}

static bool needs_proxy(const char *host, const char *port)
{
	struct destination d = { .port = port };
	const char *name;
	size_t len = strlen(host), bracket = len > 1 && *host == '[';
	if (!lower(d.host, host + bracket, len - 2 * bracket))
		return true; /* no entry is that long */
	if (!strcmp(d.host, "localhost"))
		return false;
	d.is_address = address_of(d.host, &d.address);
	return !(d.is_address && is_loopback(&d.address)) &&
	       !is_exempt(variable("NO_PROXY", "no_proxy", &name), &d);
}

/* "proxy:3128" is "http://proxy:3128". */
static bool parse_variable(const char *name, const char *value, struct proxy *out,
			   struct error *err)
{
	char *url = memory_format(strstr(value, "://") ? "%s" : "http://%s", value);
	bool ok = proxy_parse(url, out, err) || error_prefix(err, "environment variable %s", name);
	memory_free(url);
	return ok;
}

bool proxy_is_in_environment(bool secure)
{
	const char *name;
	return url_for(secure, &name) != NULL;
}

bool proxy_of_environment(bool secure, const char *host, const char *port, struct proxy *out,
			  struct error *err)
{
	const char *name, *value = url_for(secure, &name);
	*out = (struct proxy){ 0 };
	return !value || !needs_proxy(host, port) || parse_variable(name, value, out, err);
}

bool proxy_check_environment(struct error *err)
{
	for (int secure = 0; secure < 2; secure++) {
		struct proxy proxy = { 0 };
		const char *name, *value = url_for(secure, &name);
		bool ok = !value || parse_variable(name, value, &proxy, err);
		proxy_fini(&proxy);
		if (!ok)
			return false;
	}
	return true;
}
