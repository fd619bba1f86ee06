/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_CLIENT_H
#define NET_HTTP_HTTP_CLIENT_H

#include "base/bytes.h"
#include "base/error.h"
#include "config/table.h"
#include "net/cause.h"
#include "net/compress.h"
#include "net/loop.h"
#include "net/tls/tls.h"
#include "profile/request.h"

/*
 * Asynchronous requests, many at once, on the program's loop: POST to one URL, and GET from any
 * number of servers. An idle server costs nothing but its connection, if that is kept. Connections
 * are reused. Redirects are not followed. Only http and https are supported. The strings and the
 * TLS section of the options are borrowed for the client's life.
 */
struct http_client_options {
	struct loop *loop;
	const char *url; /* of POST requests; NULL: the client only sends GET requests */
	const struct tls_client_config *tls; /* NULL: the system's CAs, no client certificate */
	const struct pairs *headers;         /* sent with each request; may be NULL */
	const char *content_type;            /* of posted bodies */
	const char *user_agent;
	const char *username, *password; /* basic authentication; NULL: none */
	const char *bearer;              /* a token; NULL: none */
	const char *proxy;               /* NULL: from the environment (net/proxy.h) */
	uint32_t idle_max;               /* idle connections that are kept; 0: libcurl's default */
	uint32_t server_max; /* connections to one server; further requests wait; 0: any number */
	/* a connection that was idle for longer is not used again; 0: libcurl's default */
	uint64_t idle_ns;
	/* a connection that is older is not used again; each client changes it by up to a tenth at
	 * random; 0: no limit */
	uint64_t max_age_ns;
	bool cookies;     /* cookies that servers set are sent with later requests */
	bool one_request; /* each connection serves one request, and is then closed */
};

/* Posts to the client's URL. At most HTTP_ANSWER_MAX bytes of the reply are read. */
struct http_post {
	struct view body;             /* valid until done was called */
	const char *content_encoding; /* NULL: none */
	/* additional headers; ends with name == NULL; may be NULL; copied */
	const struct metadatum *headers;
	uint64_t timeout_ns; /* for the whole request; 0: none */
};

#define HTTP_ANSWER_MAX 65536
/* The maximum size of the headers of a reply; a reply with more fails as "unavailable". */
#define HTTP_ANSWER_HEADERS_MAX 65536

/* Gets a document. */
struct http_get {
	const char *url;                 /* complete, "http://host:6060/debug/pprof/heap"; copied */
	const struct metadatum *headers; /* as in http_post */
	uint64_t timeout_ns;             /* for the whole request; 0: none */
	/* The caller's, until done was called: the body is appended as it arrives, as sent. If it
	 * cannot grow, the transfer ends with the failure "too_large"; its meter knows why. [loop
	 * thread] */
	struct bytes *body;
};

/* Valid during done. */
struct http_result {
	int status; /* 0: there was no reply, see `failure` */
	/*
	 * One of a fixed set: "deadline_exceeded", "tls", "unresolved", "proxy", "cut",
	 * "cancelled", "unavailable". http_get adds "too_large" and "url" (the URL is invalid).
	 * NULL: the reply is complete, or (http_post) exceeds the maximum that is read.
	 */
	const char *failure;
	struct cause cause; /* of the failure, as far as it is known */
	/* http_post: decompressed, for classification only, never logged. http_get: as sent, also
	 * the beginning of an incomplete one. */
	struct view body;
	enum coding coding;       /* Content-Encoding */
	const char *content_type; /* NULL: none was sent */
	int64_t retry_after_ms;   /* from Retry-After; -1: none was sent */
};

struct http_client;

/* Reports what is wrong with the URL, which `key` has (NULL: there is none), and with the names and
 * values of the headers. */
void http_client_check(const char *key, const char *url, const struct pairs *headers,
		       struct faults *faults);
/* Can these headers be sent with a request? At most HTTP_HEADERS_MAX of them, HTTP_HEADERS_BYTES in
 * total. err contains names, never values. [any thread] */
enum { HTTP_HEADERS_MAX = 32, HTTP_HEADERS_BYTES = 16384 };
bool http_client_check_headers(const struct metadatum *headers, struct error *err);
bool http_client_check_proxy(const char *url, struct error *err); /* accepts NULL and "" */
/* "host" and "port" of a valid URL, with the default port of the scheme if it contains none. The
 * caller frees both. */
void http_client_place(const char *url, char **host, char **port);

/* [loop thread, or before it runs] ERROR_CONFIG: the TLS files, or the URLs of
 * proxies in the environment, are invalid. */
struct http_client *http_client_new(const struct http_client_options *options, struct error *err);
/* [any thread] done is called exactly once, on the loop thread, and must not block. */
void http_client_post(struct http_client *client, const struct http_post *post,
		      void (*done)(void *argument, const struct http_result *result),
		      void *argument);
/* [any thread] The same. Returns the request's number, which is never 0. */
uint64_t http_client_get(struct http_client *client, const struct http_get *get,
			 void (*done)(void *argument, const struct http_result *result),
			 void *argument);
/* [any thread] Ends a request with the failure "cancelled", on the loop thread. A completed request
 * is not changed. */
void http_client_cancel(struct http_client *client, uint64_t number);
/* [any thread] Reads the TLS files again. If they changed, later requests use new connections. If a
 * file is invalid, nothing changes, and err contains the reason. */
bool http_client_reopen(struct http_client *client, bool *changed, struct error *err);
/* [any thread but done's] When it returns, all requests in flight are done, with the failure
 * "cancelled". No requests may be made during or after the call. */
void http_client_unref(struct http_client **client);

#endif
