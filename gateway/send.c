/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/commands.h"

#include "base/memory.h"
#include "base/quote.h"
#include "gateway/files.h"
#include "net/http/http_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * `portcullis send FROM TO`: carries one profile. FROM is read (a URL by GET), TO is written (a URL
 * by POST); --repeat posts it again and again.
 */
#define BODY_MAX ((size_t)256 << 20)
#define TIMEOUT_NS (120 * UINT64_C(1000000000))

/* What is no URL is not repeated: nobody knows which part of it is the password. */
static bool fail_at(const char *place, struct error *err)
{
	if (quote_is_url(place) && err->kind == ERROR_CONFIG)
		return false;
	char *shown = quote_place(place);
	error_prefix(err, "%s", shown);
	memory_free(shown);
	return false;
}

static bool check_status(const char *url, int status, const struct bytes *reply, struct error *err)
{
	if (status >= 200 && status < 300)
		return true;
	size_t len = reply->len < 200 ? reply->len : 200;
	while (len && (reply->at[len - 1] == '\n' || reply->at[len - 1] == '\r'))
		len--;
	error_set(err, ERROR_INVALID, "status %d: %.*s", status, (int)len,
		  len ? (char *)reply->at : "");
	return fail_at(url, err);
}

static bool take(const char *from, struct bytes *body, struct error *err)
{
	int status;
	if (!quote_is_url(from))
		return files_read(from, body, err);
	if (!http_call(&(struct http_call){ .url = from, .timeout_ns = TIMEOUT_NS }, &status, body,
		       err))
		return fail_at(from, err);
	return check_status(from, status, body, err);
}

static bool post(const char *url, struct view body, long times, struct error *err)
{
	struct bytes reply;
	bool ok = true;
	bytes_init(&reply, BODY_MAX);
	for (long i = 0; ok && i < times; i++) {
		int status = 0;
		reply.len = 0;
		const struct http_call call = { .url = url,
						.body = body,
						.timeout_ns = TIMEOUT_NS };
		ok = http_call(&call, &status, &reply, err) ? check_status(url, status, &reply, err)
							    : fail_at(url, err);
	}
	bytes_fini(&reply);
	return ok;
}

bool command_send(const struct options *options, struct error *err)
{
	const char **places = options->arguments;
	long times = options->repeat ? strtol(options->repeat, NULL, 10) : 1;
	struct bytes body;
	if (!places || !places[1] || places[2])
		return error_set(err, ERROR_CONFIG, "send requires two arguments: FROM TO");
	if (times < 1)
		return error_set(err, ERROR_CONFIG,
				 "--repeat: must be a positive number, got "
				 "\"%s\"",
				 options->repeat);
	bytes_init(&body, BODY_MAX);
	bool ok = take(places[0], &body, err);
	if (ok && quote_is_url(places[1]))
		ok = post(places[1], bytes_view(&body), times, err);
	else if (ok)
		ok = files_write(places[1], bytes_view(&body), err);
	bytes_fini(&body);
	return ok;
}
