/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_call.h"

#include <curl/curl.h>

#include "base/memory.h"
#include "net/http/http_connection.h"
#include "net/http/http_curl.h"
#include "net/proxy.h"

static size_t take(char *data, size_t size, size_t count, void *out)
{
	return bytes_add(out, data, size * count) ? size * count : 0;
}

static struct curl_slist *headers_of(const struct http_call *call)
{
	/* Otherwise libcurl waits one second for 100 Continue if the server does not support it. */
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");
	if (call->body.at)
		list = http_curl_header(list, "Content-Type",
					call->content_type ? call->content_type
							   : "application/octet-stream");
	for (const struct metadatum *h = call->headers; h && h->name; h++)
		list = http_curl_header(list, h->name, h->value);
	return list;
}

static void set_options(CURL *curl, const struct http_call *call, struct curl_slist *headers,
			struct bytes *out)
{
	curl_easy_setopt(curl, CURLOPT_URL, call->url);
	http_connection_set_proxy(curl, NULL, call->url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "portcullis");
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)((call->timeout_ns + 999999) / 1000000));
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, out);
	if (call->body.at) {
		curl_easy_setopt(curl, CURLOPT_POST, 1L);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body.at);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
	}
}

static bool failed(CURLcode code, struct error *err)
{
	if (code == CURLE_WRITE_ERROR)
		return error_set(err, ERROR_TOO_LARGE, "the response is too large");
	enum error_kind kind = code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL
				       ? ERROR_CONFIG
				       : ERROR_BUSY;
	return error_set(err, kind, "%s", curl_easy_strerror(code));
}

bool http_call(const struct http_call *call, int *status, struct bytes *out, struct error *err)
{
	long code = 0;
	if (!proxy_check_environment(err))
		return false;
	http_curl_start();
	CURL *curl = curl_easy_init();
	if (!curl)
		return error_set(err, ERROR_INTERNAL, "cannot initialize libcurl");
	struct curl_slist *headers = headers_of(call);
	set_options(curl, call, headers, out);
	CURLcode result = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	*status = (int)code;
	return result == CURLE_OK || failed(result, err);
}
