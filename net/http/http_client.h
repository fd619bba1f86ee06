/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_CLIENT_H
#define NET_HTTP_HTTP_CLIENT_H

#include "base/bytes.h"
#include "base/error.h"
#include "config/table.h"
#include "net/loop.h"
#include "net/tls/tls.h"
#include "profile/request.h"

/*
 * One HTTP request, start to end, on the calling thread: for commands of ours, not for exporters.
 * Redirects are not followed; only http and https are spoken.
 */
struct http_call {
	const char *url;
	const char *content_type;        /* with a body; NULL: application/octet-stream */
	const struct metadatum *headers; /* more of them; ends with name == NULL; may be NULL */
	struct view body;                /* at == NULL: GET, else POST */
	uint64_t timeout_ns;             /* for everything; 0: none */
};

/*
 * True when there was a reply, whatever its status; its body is appended to `out`, whose maximum
 * bounds it. Else ERROR_CONFIG (a bad URL), ERROR_BUSY (no connection, too late) or
 * ERROR_TOO_LARGE.
 */
bool http_call(const struct http_call *call, int *status, struct bytes *out, struct error *err);

/*
 * For exporters: posts to one URL, many at once, on the program's loop; connections are kept and
 * used again. The texts and the TLS section of the options are borrowed for the client's life.
 */
struct http_client_options {
	struct loop *loop;
	const char *url;
	const struct tls_client_config *tls; /* NULL: the system's CAs, no certificate of our own */
	const struct pairs *headers;         /* with each request; may be NULL */
	const char *content_type, *user_agent;
	const char *username, *password; /* basic authentication; NULL: none */
	const char *bearer;              /* a token; NULL: none */
	const char *proxy;               /* NULL: by the environment */
};

struct http_post {
	struct view body;             /* until done */
	const char *content_encoding; /* NULL: none */
	/* of this request; ends with name == NULL; may be NULL; copied */
	const struct metadatum *headers;
	uint64_t timeout_ns; /* for everything; 0: none */
};

#define HTTP_ANSWER_MAX 65536

/* Valid during done. */
struct http_result {
	int status; /* 0: no answer came, `failure` says why */
	/* one of a few fixed words; NULL: the answer came whole, or more than is taken of it */
	const char *failure;
	/* inflated; at most HTTP_ANSWER_MAX bytes: for classification only, never logged */
	struct view body;
	int64_t retry_after_ms; /* of Retry-After; -1: none was sent */
};

struct http_client;

/* Can requests be sent so? URL, and names and values of headers; err names keys, never values. */
bool http_client_check(const char *url, const struct pairs *headers, struct error *err);
bool http_client_check_proxy(const char *url, struct error *err); /* NULL and "" are good */
/* "host" and "port" of a good URL, the scheme's port where it names none; freed by the caller. */
void http_client_place(const char *url, char **host, char **port);

/* [loop thread, or before it runs] ERROR_CONFIG: the TLS files. */
struct http_client *http_client_new(const struct http_client_options *options, struct error *err);
/* [any thread] done is called once, on the loop thread, and must not block. */
void http_client_post(struct http_client *client, const struct http_post *post,
		      void (*done)(void *argument, const struct http_result *result),
		      void *argument);
/* [any thread] Reads the TLS files again; if they changed, later requests use connections of their
 * own. What is broken stays as it was, and err says why. */
bool http_client_reload(struct http_client *client, bool *changed, struct error *err);
/* [any thread but done's] Requests that are under way are done, with the failure "cancelled", when
 * it returns; nobody posts any more. */
void http_client_unref(struct http_client **client);

#endif
