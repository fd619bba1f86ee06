/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_client.h"

#include <assert.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "net/compress.h"
#include "net/http/http_attempt.h"
#include "net/http/http_cause.h"
#include "net/http/http_connection.h"
#include "net/http/http_cookies.h"
#include "net/http/http_curl.h"
#include "net/http/http_sockets.h"
#include "net/proxy.h"

/* The maximum number of flights that wait for a later request. */
enum { SPARE_MAX = 16 };

struct http_client {
	struct http_client_options options;
	_Atomic uint32_t refs;    /* references: of the owner, and of each request */
	_Atomic uint64_t numbers; /* the number of the last request */
	pthread_mutex_t lock;     /* guards identity, spare, spares */
	struct http_identity *identity;
	struct flight *spare; /* flights that have ended, the last one first */
	unsigned spares;
	/* Loop thread: */
	CURLM *multi;
	struct loop_timer *timer;
	struct http_sockets sockets;
	struct flight *flights;
	struct http_cookies cookies;
	bool closed;
};

/*
 * One request. To set up libcurl's handle takes a third of libcurl's instructions for a small
 * request. All requests to POST have the same options, except for the body and some headers, so a
 * flight that has ended well serves another one.
 */
struct flight {
	struct http_client *client;
	struct http_identity *identity;
	uint64_t number;
	struct flight *next, **link; /* in client->flights (link NULL: not in it), or the spare */
	CURL *curl;
	struct curl_slist *headers, *connect_to;
	struct curl_slist *common; /* the last of the headers that each request of the flight has */
	struct bytes answer, *into; /* into: the caller's buffer (GET), or answer */
	size_t header_bytes;
	/* the header of the reply is complete; libcurl takes a truncated one for an empty reply */
	bool headed;
	bool full; /* the reply was longer than the maximum */
	struct http_attempt attempt;
	void (*done)(void *argument, const struct http_result *result);
	void *argument;
};

static void client_unref(struct http_client *client)
{
	if (atomic_fetch_sub(&client->refs, 1) != 1)
		return;
	assert(!client->spare);
	http_identity_unref(&client->identity);
	pthread_mutex_destroy(&client->lock);
	memory_free(client);
}

static void flight_free(struct flight *flight)
{
	curl_easy_cleanup(flight->curl);
	curl_slist_free_all(flight->headers);
	curl_slist_free_all(flight->connect_to);
	http_identity_unref(&flight->identity);
	bytes_fini(&flight->answer);
	memory_free(flight);
}

/*
 * May it serve another request? libcurl's handle may remember a failure. It also counts, as long as
 * it exists, how often it has repeated a request on a new connection, and does so only five times.
 * Handles that share cookies belong to the loop thread.
 */
static bool is_as_new(const struct flight *flight, CURLcode code)
{
	long connects = 0;
	curl_easy_getinfo(flight->curl, CURLINFO_NUM_CONNECTS, &connects);
	return code == CURLE_OK && !connects && flight->into == &flight->answer &&
	       !flight->client->cookies.jar;
}

static void end_flight(struct flight *flight, bool as_new)
{
	struct http_client *client = flight->client;
	bytes_fini(&flight->answer);
	pthread_mutex_lock(&client->lock);
	bool keep = as_new && !client->closed && client->spares < SPARE_MAX;
	if (keep) {
		flight->next = client->spare;
		client->spare = flight;
		client->spares++;
	}
	pthread_mutex_unlock(&client->lock);
	if (!keep)
		flight_free(flight);
	client_unref(client);
}

/* NULL: there is none. */
static struct flight *take_spare(struct http_client *client)
{
	pthread_mutex_lock(&client->lock);
	struct flight *flight = client->spare;
	if (flight) {
		client->spare = flight->next;
		client->spares--;
	}
	pthread_mutex_unlock(&client->lock);
	return flight;
}

static enum coding coding_of(struct flight *flight)
{
	struct curl_header *header;
	CURLHcode code =
		curl_easy_header(flight->curl, "Content-Encoding", 0, CURLH_HEADER, -1, &header);
	return code == CURLHE_OK ? compress_named(header->value) : CODING_IDENTITY;
}

/* Some servers compress replies without a request to do so. A reply that cannot be decompressed
 * becomes empty. */
static void inflate_answer(struct flight *flight, enum coding coding)
{
	struct bytes plain;
	if (coding == CODING_IDENTITY)
		return;
	bytes_init(&plain, flight->answer.max);
	if (!compress_inflate(coding, bytes_view(&flight->answer), &plain, NULL))
		plain.len = 0;
	bytes_fini(&flight->answer);
	flight->answer = plain;
}

static void conclude(struct flight *flight, CURLcode code)
{
	long status = 0;
	struct http_result result = { .retry_after_ms = http_curl_retry_after_ms(flight->curl) };
	curl_easy_getinfo(flight->curl, CURLINFO_RESPONSE_CODE, &status);
	/* status codes below 200 are interim replies */
	bool answered = flight->headed && status >= 200;
	result.status = answered ? (int)status : 0;
	if (code == CURLE_OK && !answered)
		code = CURLE_PARTIAL_FILE;
	if ((code != CURLE_OK && !flight->full) || !answered) {
		result.failure = http_cause_failure(&flight->attempt, code);
		result.cause = http_cause_of(&flight->attempt, code);
	}
	result.coding = coding_of(flight);
	curl_easy_getinfo(flight->curl, CURLINFO_CONTENT_TYPE, &result.content_type);
	if (flight->into == &flight->answer)
		inflate_answer(flight, result.coding);
	else if (!result.failure && flight->full)
		result.failure = "too_large";
	result.body = bytes_view(flight->into);
	bool as_new = is_as_new(flight, code);
	http_cookies_bound(&flight->client->cookies, flight->curl);
	flight->done(flight->argument, &result);
	end_flight(flight, as_new);
}

static void unlink_flight(struct flight *flight)
{
	curl_multi_remove_handle(flight->client->multi, flight->curl);
	*flight->link = flight->next;
	if (flight->next)
		flight->next->link = flight->link;
}

static void cancel(struct flight *flight)
{
	const struct http_result result = { .failure = "cancelled", .retry_after_ms = -1 };
	flight->done(flight->argument, &result);
	end_flight(flight, false);
}

static void reap(struct http_client *client)
{
	int left;
	CURLMsg *message;
	while ((message = curl_multi_info_read(client->multi, &left))) {
		struct flight *flight;
		CURLcode code = message->data.result;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&flight);
		unlink_flight(flight);
		conclude(flight, code);
	}
}

static void on_socket_ready(void *context, int fd, unsigned events)
{
	struct http_client *client = context;
	int running, mask = (events & LOOP_READABLE ? CURL_CSELECT_IN : 0) |
			    (events & LOOP_WRITABLE ? CURL_CSELECT_OUT : 0);
	curl_multi_socket_action(client->multi, fd, mask, &running);
	reap(client);
}

/* Is it the socket of a connection that libcurl keeps for later requests? */
static bool is_kept(CURL *curl, curl_socket_t fd)
{
	curl_socket_t kept = CURL_SOCKET_BAD;
	return !curl_easy_getinfo(curl, CURLINFO_ACTIVESOCKET, &kept) && kept == fd;
}

static int on_socket(CURL *curl, curl_socket_t fd, int what, void *context, void *unused)
{
	struct http_client *client = context;
	(void)unused;
	if (what == CURL_POLL_REMOVE && !is_kept(curl, fd))
		http_sockets_forget(&client->sockets, fd);
	else /* CURL_POLL_REMOVE contains neither */
		http_sockets_watch(&client->sockets, fd,
				   (what & CURL_POLL_IN ? LOOP_READABLE : 0) |
					   (what & CURL_POLL_OUT ? LOOP_WRITABLE : 0));
	return 0;
}

static int on_timer_wanted(CURLM *multi, long ms, void *context)
{
	struct http_client *client = context;
	(void)multi;
	if (ms < 0)
		loop_timer_cancel(client->timer);
	else
		loop_timer_start(client->timer, (uint64_t)ms * 1000000);
	return 0;
}

static void on_timeout(void *context)
{
	struct http_client *client = context;
	int running;
	curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	reap(client);
}

/* The connections of gateways that started together must not all end at the same time. */
static uint64_t about(uint64_t ns)
{
	uint64_t random;
	hash_random(&random, sizeof random);
	return ns - ns / 10 + random % (ns / 5 + 1);
}

struct http_client *http_client_new(const struct http_client_options *options, struct error *err)
{
	http_curl_start();
	if (!options->proxy && !proxy_check_environment(err))
		return NULL;
	struct http_identity *identity = http_identity_new(options->tls, err);
	if (!identity)
		return NULL;
	struct http_client *client = memory_new(sizeof *client);
	client->options = *options;
	client->options.max_age_ns = about(options->max_age_ns);
	client->identity = identity;
	client->refs = 1;
	pthread_mutex_init(&client->lock, NULL);
	http_cookies_init(&client->cookies, options->cookies);
	http_sockets_init(&client->sockets, options->loop, on_socket_ready, client);
	client->timer = loop_timer_new(options->loop, on_timeout, client);
	client->multi = curl_multi_init();
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
	if (options->idle_max)
		curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)options->idle_max);
	curl_multi_setopt(client->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)options->server_max);
	return client;
}

/* If the reply is too long, the transfer ends: the status is already known. */
static size_t take_answer(char *data, size_t size, size_t count, void *context)
{
	struct flight *flight = context;
	flight->full = !bytes_add(flight->into, data, size * count);
	return flight->full ? 0 : size * count;
}

/* Each reply begins with its status, also an interim one. Trailers follow the body. */
static size_t see_header(char *line, size_t size, size_t count, void *context)
{
	struct flight *flight = context;
	if (size * count > 5 && !memcmp(line, "HTTP/", 5))
		flight->headed = false;
	else if (size * count <= 2 && (*line == '\r' || *line == '\n'))
		flight->headed = true;
	flight->header_bytes += size * count;
	http_cookies_see(&flight->client->cookies, line, size * count);
	return flight->header_bytes <= HTTP_ANSWER_HEADERS_MAX ? size * count : 0;
}

static void add_header(struct flight *flight, const char *name, const char *value)
{
	flight->headers = http_curl_header(flight->headers, name, value);
}

/* The headers of the client. Those of the request follow. */
static void set_common_headers(struct flight *flight)
{
	const struct http_client_options *o = &flight->client->options;
	if (flight->into == &flight->answer)
		add_header(flight, "Content-Type", o->content_type);
	if (o->one_request)
		add_header(flight, "Connection", "close");
	for (size_t i = 0; o->headers && i < o->headers->count; i++)
		add_header(flight, o->headers->at[i].name, o->headers->at[i].value.text);
	flight->headers = curl_slist_append(flight->headers, "Expect:");
	flight->common = flight->headers;
	while (flight->common->next)
		flight->common = flight->common->next;
}

/* Replaces those of the flight's last request. */
static void set_headers(struct flight *flight, const struct metadatum *more)
{
	curl_slist_free_all(flight->common->next);
	flight->common->next = NULL;
	for (const struct metadatum *h = more; h && h->name; h++)
		add_header(flight, h->name, h->value);
}

static void set_credentials(CURL *curl, const struct http_client_options *o)
{
	if (o->username) {
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
		curl_easy_setopt(curl, CURLOPT_USERNAME, o->username);
		curl_easy_setopt(curl, CURLOPT_PASSWORD, o->password ? o->password : "");
	} else if (o->bearer) {
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
		curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, o->bearer);
	}
}

/* The connection may have outlived the request that has opened it. */
static int close_socket(void *context, curl_socket_t fd)
{
	struct http_client *client = context;
	for (struct flight *flight = client->flights; flight; flight = flight->next)
		http_attempt_closing(&flight->attempt, fd);
	http_sockets_forget(&client->sockets, fd);
	return close(fd);
}

static void set_transfer(struct flight *flight)
{
	struct http_client *client = flight->client;
	CURL *curl = flight->curl;
	curl_easy_setopt(curl, CURLOPT_PRIVATE, flight);
	curl_easy_setopt(curl, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
	curl_easy_setopt(curl, CURLOPT_CLOSESOCKETDATA, client);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	/* The loop would wait for a look-up that outlives its request. */
	curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, client->options.user_agent);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, flight);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, see_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, flight);
}

/* libcurl verifies and sends the server name of the URL. The URL therefore gets the overriding
 * name, CONNECT_TO the real host, and so does the Host header. */
static void override_name(struct flight *flight, CURLU *url, const char *name)
{
	char *host = NULL, *port = NULL;
	if (!curl_url_get(url, CURLUPART_HOST, &host, 0) &&
	    !curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) &&
	    !curl_url_set(url, CURLUPART_HOST, name, 0)) {
		char *way = memory_format("%s:%s:%s:%s", name, port, host, port);
		char *header = memory_format("Host: %s:%s", host, port);
		flight->connect_to = curl_slist_append(NULL, way);
		flight->headers = curl_slist_append(flight->headers, header);
		curl_easy_setopt(flight->curl, CURLOPT_CONNECT_TO, flight->connect_to);
		memory_free(way);
		memory_free(header);
	}
	curl_free(host);
	curl_free(port);
}

/* If the text is not a URL, the URL stays unset, which libcurl reports. */
static void set_url(struct flight *flight, const char *text)
{
	const struct tls_client_config *tls = flight->client->options.tls;
	CURLU *url = curl_url();
	char *whole = NULL;
	if (!curl_url_set(url, CURLUPART_URL, text, 0)) {
		if (tls && tls->server_name_override && *tls->server_name_override)
			override_name(flight, url, tls->server_name_override);
		if (!curl_url_get(url, CURLUPART_URL, &whole, 0))
			curl_easy_setopt(flight->curl, CURLOPT_URL, whole);
	}
	curl_free(whole);
	curl_url_cleanup(url);
}

static void set_post(struct flight *flight, const struct http_post *post)
{
	CURL *curl = flight->curl;
	if (post->content_encoding)
		add_header(flight, "Content-Encoding", post->content_encoding);
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS,
			 post->body.len ? (const void *)post->body.at : "");
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->body.len);
}

static void begin_flight(void *argument)
{
	struct flight *flight = argument;
	struct http_client *client = flight->client;
	if (client->closed) {
		cancel(flight);
		return;
	}
	flight->next = client->flights;
	flight->link = &client->flights;
	if (flight->next)
		flight->next->link = &flight->next;
	client->flights = flight;
	http_cookies_use(&client->cookies, flight->curl);
	curl_multi_add_handle(client->multi, flight->curl);
}

static struct http_identity *identity_of(struct http_client *client)
{
	pthread_mutex_lock(&client->lock);
	struct http_identity *identity = client->identity;
	atomic_fetch_add(&identity->refs, 1);
	pthread_mutex_unlock(&client->lock);
	return identity;
}

/* into: NULL: it posts. */
static struct flight *flight_new(struct http_client *client, const char *url, struct bytes *into)
{
	struct flight *flight = memory_new(sizeof *flight);
	*flight = (struct flight){ .client = client,
				   .identity = identity_of(client),
				   .curl = curl_easy_init() };
	bytes_init(&flight->answer, HTTP_ANSWER_MAX);
	flight->into = into ? into : &flight->answer;
	set_url(flight, url);
	set_transfer(flight);
	http_connection_set(flight->curl, &client->options, url, flight->identity);
	set_common_headers(flight);
	set_credentials(flight->curl, &client->options);
	return flight;
}

/* A spare one, unless the certificates have changed since. */
static struct flight *flight_to_post(struct http_client *client)
{
	struct http_identity *identity = identity_of(client);
	struct flight *flight;
	while ((flight = take_spare(client)) && flight->identity != identity)
		flight_free(flight);
	http_identity_unref(&identity);
	return flight ? flight : flight_new(client, client->options.url, NULL);
}

/* Returns its number. */
static uint64_t launch(struct flight *flight, const char *url, uint64_t timeout_ns,
		       void (*done)(void *argument, const struct http_result *result),
		       void *argument)
{
	struct http_client *client = flight->client;
	uint64_t number = atomic_fetch_add(&client->numbers, 1) + 1;
	atomic_fetch_add(&client->refs, 1);
	flight->number = number;
	flight->header_bytes = 0;
	flight->headed = flight->full = false;
	flight->done = done;
	flight->argument = argument;
	http_attempt_init(&flight->attempt, flight->curl, url);
	curl_easy_setopt(flight->curl, CURLOPT_HTTPHEADER, flight->headers);
	curl_easy_setopt(flight->curl, CURLOPT_TIMEOUT_MS, (long)((timeout_ns + 999999) / 1000000));
	loop_post(client->options.loop, begin_flight, flight);
	return number;
}

void http_client_post(struct http_client *client, const struct http_post *post,
		      void (*done)(void *argument, const struct http_result *result),
		      void *argument)
{
	struct flight *flight = flight_to_post(client);
	set_headers(flight, post->headers);
	set_post(flight, post);
	launch(flight, client->options.url, post->timeout_ns, done, argument);
}

uint64_t http_client_get(struct http_client *client, const struct http_get *get,
			 void (*done)(void *argument, const struct http_result *result),
			 void *argument)
{
	struct flight *flight = flight_new(client, get->url, get->body);
	set_headers(flight, get->headers);
	curl_easy_setopt(flight->curl, CURLOPT_HTTPGET, 1L);
	return launch(flight, get->url, get->timeout_ns, done, argument);
}

struct cancellation {
	struct http_client *client;
	uint64_t number;
};

static void cancel_number(void *argument)
{
	struct cancellation *c = argument;
	struct flight *flight = c->client->closed ? NULL : c->client->flights;
	while (flight && flight->number != c->number)
		flight = flight->next;
	if (flight) {
		unlink_flight(flight);
		cancel(flight);
	}
	client_unref(c->client);
	memory_free(c);
}

void http_client_cancel(struct http_client *client, uint64_t number)
{
	struct cancellation *c = memory_new(sizeof *c);
	atomic_fetch_add(&client->refs, 1);
	*c = (struct cancellation){ client, number };
	loop_post(client->options.loop, cancel_number, c);
}

bool http_client_reopen(struct http_client *client, bool *changed, struct error *err)
{
	struct http_identity *fresh = http_identity_new(client->options.tls, err);
	*changed = false;
	if (!fresh)
		return false;
	pthread_mutex_lock(&client->lock);
	*changed = !tls_equal(&fresh->material, &client->identity->material);
	if (*changed) {
		struct http_identity *old = client->identity;
		client->identity = fresh;
		fresh = old;
	}
	pthread_mutex_unlock(&client->lock);
	http_identity_unref(&fresh);
	return true;
}

static void close_client(void *argument)
{
	struct http_client *client = argument;
	client->closed = true;
	while (client->flights) {
		struct flight *flight = client->flights;
		unlink_flight(flight);
		cancel(flight);
	}
	for (struct flight *flight; (flight = take_spare(client));)
		flight_free(flight);
	curl_multi_cleanup(client->multi);
	http_sockets_fini(&client->sockets);
	http_cookies_fini(&client->cookies);
	loop_timer_unref(&client->timer);
}

void http_client_unref(struct http_client **slot)
{
	struct http_client *client = *slot;
	*slot = NULL;
	if (!client)
		return;
	loop_call(client->options.loop, close_client, client);
	client_unref(client);
}
