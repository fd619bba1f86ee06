/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_client.h"

#include <ctype.h>
#include <curl/curl.h>
#include <strings.h>

#include "base/memory.h"
#include "net/proxy.h"

/* Checks of an endpoint and its headers that need no connection. */

static bool is_token(const char *text)
{
	static const char more[] = "!#$%&'*+-.^_`|~";
	size_t len = strlen(text);
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr(more, text[i]))
			return false;
	return len > 0;
}

static bool is_field_value(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' && *text != '\t')
			return false;
	return true;
}

static bool check_header(const char *name, const char *value, size_t index, struct error *err)
{
	static const char *const ours[] = { "content-type",   "content-encoding",
					    "content-length", "transfer-encoding",
					    "host",           "connection",
					    "expect" };
	if (!is_token(name))
		return error_set(err, ERROR_CONFIG, "headers[%zu]: invalid header name", index);
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (!strcasecmp(name, ours[i]))
			return error_set(err, ERROR_CONFIG, "headers[%zu]: %s cannot be set", index,
					 ours[i]);
	return is_field_value(value ? value : "") ||
	       error_set(err, ERROR_CONFIG,
			 "headers[%zu]: the value contains control "
			 "characters",
			 index);
}

static bool has_part(CURLU *url, CURLUPart part)
{
	char *text = NULL;
	bool has = !curl_url_get(url, part, &text, 0) && *text;
	curl_free(text);
	return has;
}

static void check_url(const char *key, const char *text, struct faults *faults)
{
	CURLU *url = curl_url();
	bool good = text && !curl_url_set(url, CURLUPART_URL, text, 0) &&
		    has_part(url, CURLUPART_HOST) &&
		    (!strncasecmp(text, "http://", 7) || !strncasecmp(text, "https://", 8));
	bool bare = good && !has_part(url, CURLUPART_USER) && !has_part(url, CURLUPART_QUERY) &&
		    !has_part(url, CURLUPART_FRAGMENT);
	curl_url_cleanup(url);
	if (!good)
		faults_add(faults, "%s must be an http:// or https:// URL", key);
	else if (!bare)
		faults_add(faults, "%s must not contain a user, query or fragment", key);
}

void http_client_check(const char *key, const char *url, const struct pairs *headers,
		       struct faults *faults)
{
	struct error why;
	if (url)
		check_url(key, url, faults);
	for (size_t i = 0; i < headers->count; i++)
		if (!check_header(headers->at[i].name, headers->at[i].value.text, i, &why))
			faults_take(faults, &why);
}

bool http_client_check_headers(const struct metadatum *headers, struct error *err)
{
	size_t bytes = 0;
	for (size_t i = 0; headers && headers[i].name; i++) {
		const char *name = headers[i].name, *value = headers[i].value;
		bytes += strlen(name) + strlen(value ? value : "");
		if (i >= HTTP_HEADERS_MAX || bytes > HTTP_HEADERS_BYTES)
			return error_set(err, ERROR_TOO_LARGE, "too many headers");
		if (!check_header(name, value, i, err))
			return false;
	}
	return true;
}

bool http_client_check_proxy(const char *text, struct error *err)
{
	struct proxy proxy = { 0 };
	bool good =
		!text || !*text || proxy_parse(text, &proxy, err) || error_prefix(err, "proxy_url");
	proxy_fini(&proxy);
	return good;
}

void http_client_place(const char *text, char **host, char **port)
{
	CURLU *url = curl_url();
	char *name = NULL, *number = NULL;
	curl_url_set(url, CURLUPART_URL, text, 0);
	curl_url_get(url, CURLUPART_HOST, &name, 0);
	curl_url_get(url, CURLUPART_PORT, &number, CURLU_DEFAULT_PORT);
	*host = memory_text(name ? name : "");
	*port = memory_text(number ? number : "");
	curl_free(name);
	curl_free(number);
	curl_url_cleanup(url);
}
