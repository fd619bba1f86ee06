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
 * Asynchronous requests to one server, many at once, on the program's loop. Connections are kept
 * and reused; redirects are not followed; only http and https are spoken. The strings and the TLS
 * section of the options are borrowed for the client's life.
 */
struct http_client_options {
	struct loop *loop;
	const char *url;
	const struct tls_client_config *tls; /* NULL: the system's CAs, no certificate of our own */
	const struct pairs *headers;         /* with each request; may be NULL */
	const char *content_type;            /* of what is posted; NULL: the client only gets */
	const char *user_agent;
	const char *username, *password; /* basic authentication; NULL: none */
	const char *bearer;              /* a token; NULL: none */
	const char *proxy;               /* NULL: by the environment */
};

/* Posts to the client's URL. At most HTTP_ANSWER_MAX bytes of the answer are read. */
struct http_post {
	struct view body;             /* until done */
	const char *content_encoding; /* NULL: none */
	/* of this request; ends with name == NULL; may be NULL; copied */
	const struct metadatum *headers;
	uint64_t timeout_ns; /* for everything; 0: none */
};

#define HTTP_ANSWER_MAX 65536

/* Gets a document. */
struct http_get {
	/* Path and query on the client's server, "/debug/pprof/heap?seconds=5"; NULL: its URL */
	const char *target;
	const struct metadatum *headers; /* as in http_post */
	uint64_t timeout_ns;             /* for everything; 0: none */
	/* of the body, as sent and inflated; a longer one is the failure "too_large". The caller
	 * charges this much before. */
	size_t max_bytes;
};

/* Valid during done. */
struct http_result {
	int status; /* 0: no answer came, `failure` says why */
	/*
	 * One of a few fixed words: "deadline_exceeded", "tls", "unresolved", "cut", "cancelled",
	 * "unavailable"; of http_get also "too_large", "encoding" (it cannot be inflated) and
	 * "url" (of the target). NULL: the answer is complete, or (http_post) longer than what is
	 * read of it.
	 */
	const char *failure;
	/* Inflated. Of http_post: for classification only, never logged. Of http_get: empty with a
	 * failure. */
	struct view body;
	int64_t retry_after_ms; /* of Retry-After; -1: none was sent */
};

struct http_client;

/* Can requests be sent so? URL, and names and values of headers; err names keys, never values. */
bool http_client_check(const char *url, const struct pairs *headers, struct error *err);
/* Can these be sent with a request? At most HTTP_HEADERS_MAX of them, HTTP_HEADERS_BYTES in all.
 * err has names, never values. [any thread] */
enum { HTTP_HEADERS_MAX = 32, HTTP_HEADERS_BYTES = 16384 };
bool http_client_check_headers(const struct metadatum *headers, struct error *err);
bool http_client_check_proxy(const char *url, struct error *err); /* NULL and "" are good */
/* "host" and "port" of a good URL, the scheme's port where it names none; freed by the caller. */
void http_client_place(const char *url, char **host, char **port);

/* [loop thread, or before it runs] ERROR_CONFIG: the TLS files. */
struct http_client *http_client_new(const struct http_client_options *options, struct error *err);
/* [any thread] done is called once, on the loop thread, and must not block. */
void http_client_post(struct http_client *client, const struct http_post *post,
		      void (*done)(void *argument, const struct http_result *result),
		      void *argument);
/* [any thread] The same. Returns the request's number, which is never 0. */
uint64_t http_client_get(struct http_client *client, const struct http_get *get,
			 void (*done)(void *argument, const struct http_result *result),
			 void *argument);
/* [any thread] Ends a request with the failure "cancelled", on the loop thread; a request that is
 * done stays done. */
void http_client_cancel(struct http_client *client, uint64_t number);
/* [any thread] Reads the TLS files again; if they changed, later requests use connections of their
 * own. What is broken stays as it was, and err says why. */
bool http_client_reload(struct http_client *client, bool *changed, struct error *err);
/* [any thread but done's] Requests that are under way are done, with the failure "cancelled", when
 * it returns; nobody posts any more. */
void http_client_unref(struct http_client **client);

#endif
