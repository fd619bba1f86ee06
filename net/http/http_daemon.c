/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/http/http_internal.h"
#include "net/tls/tls_choice.h"

/* -- one request, on the daemon's thread -- */

static void *session_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	return info ? info->tls_session : NULL;
}

static struct http_connection *connection_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info->socket_context;
}

static struct http_server *server_of(const struct http_loop *loop)
{
	return loop->daemon->server;
}

static void note_call(struct http_loop *loop)
{
	if (loop->thread)
		loop->called_back = true;
}

/*
 * The request line has arrived: creates the request, which has a copy of the query. The query is
 * hidden from the library, in whose buffer the target is: it would parse the query into its own
 * memory, and would never answer a query that does not fit there.
 */
static void *begin_request(void *context, const char *target, struct MHD_Connection *mhd)
{
	struct http_server *server = server_of(context);
	struct http_connection *connection = connection_of(mhd);
	note_call(context);
	http_deadline_enter(&server->deadlines, &connection->deadline, HTTP_PHASE_HEADER);
	pthread_mutex_lock(&server->mutex);
	server->open++;
	pthread_mutex_unlock(&server->mutex);
	struct http_request *r = http_request_new(server, connection, target);
	char *query = strchr(target, '?');
	if (query)
		query[1] = '\0';
	return r;
}

static enum MHD_Result take_header(void *context, enum MHD_ValueKind kind, const char *name,
				   size_t name_len, const char *value, size_t value_len)
{
	struct http_exchange *x = context;
	(void)kind;
	x->header_count++;
	x->header_bytes += name_len + value_len;
	if (!x->headers_over)
		x->headers_over =
			!fields_add(&x->headers, (struct view){ (const uint8_t *)name, name_len },
				    (struct view){ (const uint8_t *)value, value_len }, NULL);
	return MHD_YES;
}

static void enter(struct http_request *r, enum http_phase phase)
{
	http_deadline_enter(&r->x.server->deadlines, &r->connection->deadline, phase);
}

static void add_header(void *response, const char *name, const char *value)
{
	MHD_add_response_header(response, name, value);
}

static void add_headers(struct http_request *r, struct MHD_Response *response)
{
	const struct http_server *server = r->x.server;
	http_exchange_each_header(&r->x, add_header, response);
	if (atomic_load(&server->stopping) || atomic_load(&r->connection->loop->daemon->draining) ||
	    !server->config->keep_alives_enabled)
		MHD_add_response_header(response, "Connection", "close");
}

/* If called before the body is read, it closes the connection after the reply. */
static enum MHD_Result send_answer(struct http_request *r, struct MHD_Connection *mhd)
{
	struct http_exchange *x = &r->x;
	x->stage = HTTP_STAGE_REPLYING;
	enter(r, HTTP_PHASE_WRITE);
	/* The exchange keeps the reply's body until the request is completed. */
	struct MHD_Response *response =
		MHD_create_response_from_buffer(x->answer.body_len, x->answer.body,
						MHD_RESPMEM_PERSISTENT);
	if (!response)
		return MHD_NO;
	add_headers(r, response);
	enum MHD_Result result = MHD_queue_response(mhd, (unsigned)x->answer.status, response);
	MHD_destroy_response(response);
	return result;
}

/* The library uses edge-triggered events and takes a short read for the last one. It never sees the
 * end of a connection that arrived together with the last bytes. Shutting down our reading side
 * causes another edge; a reply can still be sent. */
static void notice_end(const struct http_connection *c)
{
	uint8_t byte;
	if (recv(c->deadline.socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		shutdown(c->deadline.socket, SHUT_RD);
}

static enum MHD_Result open_request(struct http_request *r, struct MHD_Connection *mhd,
				    const char *method, const char *version)
{
	struct http_exchange *x = &r->x;
	void *session = session_of(mhd);
	bool sound;
	x->method = memory_text(method);
	x->peer = memory_text(r->connection->peer);
	if (session)
		http_tls_owner(session, x);
	x->version = strcmp(version, "HTTP/1.0") ? HTTP_1_1 : HTTP_1_0;
	MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, take_header, x);
	fields_lower(&x->headers);
	bool accepted = http_exchange_open(x, &sound);
	struct http_loop *loop = r->connection->loop;
	if (accepted && x->content_length < 0 && loop->thread)
		http_stall_watch(&loop->stalls, r);
	if (accepted || x->content_length)
		enter(r, HTTP_PHASE_BODY);
	if (accepted) {
		notice_end(r->connection);
		return MHD_YES;
	}
	x->stage = HTTP_STAGE_SWALLOW;
	http_exchange_forget_headers(x);
	bool small = x->content_length >= 0 && x->content_length <= HTTP_SWALLOW_MAX &&
		     !x->expects_continue;
	if (sound && small)
		return MHD_YES;
	r->connection->linger = true;
	return send_answer(r, mhd);
}

/* libmicrohttpd cannot reply in the middle of a body: writes the reply itself. The library must
 * close the connection then. */
static void write_answer(struct http_request *r)
{
	void *session = r->connection->session;
	struct bytes text;
	bytes_init(&text, 65536);
	http_request_print(r, &text);
	if (session)
		http_tls_send(session, text.at, text.len);
	else
		send(r->connection->deadline.socket, text.at, text.len,
		     MSG_NOSIGNAL | MSG_DONTWAIT);
	bytes_fini(&text);
	r->connection->linger = true;
}

/* The library cannot continue the body, and closes the connection after a second. */
static void end_stalled(struct http_request *r)
{
	http_exchange_answer_stalled(&r->x);
	enter(r, HTTP_PHASE_WRITE);
	write_answer(r);
	MHD_set_connection_option(r->connection->mhd, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
}

/* Replies, or suspends the connection until there is a reply. */
static enum MHD_Result settle(struct http_request *r, struct MHD_Connection *mhd)
{
	struct http_exchange *x = &r->x;
	struct http_server *server = x->server;
	pthread_mutex_lock(&server->mutex);
	bool answered = x->answer.status, lost = !answered && server->cutting;
	if (lost) {
		x->stage = HTTP_STAGE_LOST;
	} else if (!answered) {
		http_request_suspend(r);
	}
	pthread_mutex_unlock(&server->mutex);
	return answered ? send_answer(r, mhd) : lost ? MHD_NO : MHD_YES;
}

/*
 * A connection that is suspended here would be read from when it is resumed, and if the client has
 * shut down its sending side by then, the library would close it without sending the response. If
 * nothing is suspended, the library notes that the connection waits for a response, and calls
 * handle() again at once. A connection that is suspended then is not read from.
 */
static enum MHD_Result deliver(struct http_request *r, struct MHD_Connection *mhd)
{
	struct http_exchange *x = &r->x;
	struct http_server *server = x->server;
	enter(r, HTTP_PHASE_NONE);
	x->stage = HTTP_STAGE_HANDED;
	http_stall_unwatch(&r->connection->loop->stalls, r);
	x->route->body(x->route->context, x, bytes_view(&x->body));
	pthread_mutex_lock(&server->mutex);
	bool answered = x->answer.status;
	pthread_mutex_unlock(&server->mutex);
	return answered ? send_answer(r, mhd) : MHD_YES;
}

/* Takes a piece of the body; the library passes again what was not taken. */
static enum MHD_Result feed(struct http_request *r, const char *data, size_t *len)
{
	enum http_feed fed = http_exchange_feed(&r->x, data, *len);
	if (fed == HTTP_FEED_LATER)
		return http_memory_wait(r) ? MHD_YES : MHD_NO;
	http_memory_waited(r);
	if (fed == HTTP_FEED_OVER) {
		write_answer(r);
		return MHD_NO;
	}
	atomic_fetch_add(&r->connection->deadline.received, *len);
	*len = 0;
	notice_end(r->connection);
	return MHD_YES;
}

/* libmicrohttpd calls this when the headers have arrived, for each piece of the body, at its end,
 * and after a resume. */
static enum MHD_Result handle(void *context, struct MHD_Connection *mhd, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *len, void **request)
{
	struct http_request *r = *request;
	size_t got = *len;
	(void)url;
	note_call(context);
	if (r->x.stage == HTTP_STAGE_BODY && got)
		return feed(r, data, len);
	*len = 0;
	switch (r->x.stage) {
	case HTTP_STAGE_HEADERS:
		return open_request(r, mhd, method, version);
	case HTTP_STAGE_BODY:
		return deliver(r, mhd);
	case HTTP_STAGE_SWALLOW:
		atomic_fetch_add(&r->connection->deadline.received, got);
		return got ? MHD_YES : send_answer(r, mhd);
	case HTTP_STAGE_HANDED:
		return settle(r, mhd);
	default:
		return MHD_NO;
	}
}

/* The library has replied itself: headers or trailers do not fit into its memory, or the request is
 * malformed. */
static void count_rejection(struct http_server *server, struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_HTTP_STATUS);
	if (!info)
		return;
	bool large = info->http_status == 431 || info->http_status == 414;
	metric_add(server->misdirected[large ? HTTP_HEADER_SIZE : HTTP_MALFORMED], 1);
}

static void end_request(void *context, struct MHD_Connection *mhd, void **request,
			enum MHD_RequestTerminationCode why)
{
	struct http_request *r = *request;
	struct http_server *server = server_of(context);
	note_call(context);
	if (!r)
		return;
	struct http_exchange *x = &r->x;
	*request = NULL;
	http_stall_unwatch(&r->connection->loop->stalls, r);
	http_memory_waited(r);
	if (x->stage == HTTP_STAGE_HEADERS || x->stage == HTTP_STAGE_BODY)
		count_rejection(server, mhd);
	if (why == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
		enter(r, HTTP_PHASE_IDLE);
		notice_end(r->connection);
	}
	if (x->stage == HTTP_STAGE_BODY)
		x->route->lost(x->route->context, x, false);
	pthread_mutex_lock(&server->mutex);
	if (x->stage == HTTP_STAGE_HANDED)
		x->stage = HTTP_STAGE_LOST;
	bool waits = x->stage == HTTP_STAGE_LOST && !x->answer.status;
	r->connection = NULL;
	if (!--server->open)
		pthread_cond_broadcast(&server->quiet);
	pthread_mutex_unlock(&server->mutex);
	if (!waits)
		http_request_free(r);
}

/* -- connections -- */

void http_peer_text(const struct sockaddr *address, socklen_t len, char *out, size_t room)
{
	static const char mapped[] = "::ffff:";
	if (address->sa_family == AF_UNIX ||
	    getnameinfo(address, len, out, (socklen_t)room, NULL, 0, NI_NUMERICHOST) != 0)
		out[0] = '\0';
	if (!strncmp(out, mapped, sizeof mapped - 1) && strchr(out, '.'))
		memmove(out, out + sizeof mapped - 1, strlen(out) - sizeof mapped + 2);
}

static socklen_t length_of(const struct sockaddr *address)
{
	return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					      : sizeof(struct sockaddr_in);
}

/* The library has kept what http_daemon_add gave it as the address. */
static const struct http_origin *origin_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	return (const void *)info->client_addr;
}

static struct http_connection *open_connection(struct http_loop *loop, struct MHD_Connection *mhd)
{
	struct http_connection *c = memory_new(sizeof *c);
	void *session = session_of(mhd);
	const struct http_origin *origin = origin_of(mhd);
	const struct sockaddr *address = (const void *)&origin->address;
	c->loop = loop;
	c->mhd = mhd;
	c->session = session;
	http_loop_connect(c);
	http_peer_text(address, length_of(address), c->peer, sizeof c->peer);
	if (loop->daemon->material.ca)
		http_tls_require(session);
	if (session)
		http_tls_watch(session, c);
	http_deadline_join(
		&server_of(loop)->deadlines, &c->deadline,
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
		session ? HTTP_PHASE_HANDSHAKE : HTTP_PHASE_HEADER, origin->since);
	return c;
}

static void count_closed(struct http_loop *loop, const char *peer, bool replaced)
{
	struct http_daemon *daemon = loop->daemon;
	struct http_server *server = daemon->server;
	atomic_fetch_sub(&loop->connections, 1);
	http_memory_release(server, replaced);
	http_count_out(server, peer);
	if (atomic_fetch_sub(&daemon->connections, 1) == 1 && atomic_load(&daemon->draining))
		http_listener_wake(server->listener);
}

/* The library closes the socket next. If that would reset the connection, a copy of the socket
 * stays open. */
static void close_connection(struct http_connection *c)
{
	struct http_server *server = server_of(c->loop);
	int unread = 0;
	bool ended = http_deadline_leave(&server->deadlines, &c->deadline);
	if (!ended && (c->linger || (!ioctl(c->deadline.socket, FIONREAD, &unread) && unread))) {
		int copy = fcntl(c->deadline.socket, F_DUPFD_CLOEXEC, 0);
		if (copy >= 0)
			http_listener_linger(server->listener, copy);
	}
	count_closed(c->loop, c->peer, c->deadline.replaced);
	memory_free(c);
}

static void notify(void *context, struct MHD_Connection *mhd, void **own,
		   enum MHD_ConnectionNotificationCode what)
{
	note_call(context);
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		*own = open_connection(context, mhd);
	else
		close_connection(*own);
}

/* -- daemons -- */

/* The library's log lines may contain data of a peer: they are counted, not logged. */
static void complain(void *context, const char *format, va_list arguments)
{
	struct http_server *server = context;
	(void)format;
	(void)arguments;
	atomic_fetch_add(&server->complaints, 1);
}

/* Paths and queries are decoded by net/fields.c, which can fail. */
static size_t leave_escaped(void *context, struct MHD_Connection *mhd, char *text)
{
	(void)context;
	(void)mhd;
	return strlen(text);
}

void http_daemon_unref(struct http_daemon **daemon)
{
	for (uint32_t i = 0; i < (*daemon)->loop_count; i++)
		http_loop_stop(&(*daemon)->loops[i]);
	tls_release(&(*daemon)->material);
	memory_free(*daemon);
	*daemon = NULL;
}

#define POINTER(option, pointer) \
	{ \
		option, 0, (void *)(pointer) \
	}
#define CALLBACK(option, function, context) \
	{ \
		option, (intptr_t)(function), (context) \
	}

/* The library has closed the socket, because there was no memory. */
static void lose_connection(struct http_loop *loop, const struct sockaddr *address)
{
	char peer[HTTP_PEER_MAX];
	http_peer_text(address, length_of(address), peer, sizeof peer);
	metric_add(server_of(loop)->over[HTTP_OVER_MEMORY], 1);
	count_closed(loop, peer, false);
}

static struct MHD_Daemon *start_library(struct http_loop *loop, char *priorities)
{
	struct http_daemon *daemon = loop->daemon;
	struct http_server *server = daemon->server;
	const struct tls_material *material = &daemon->material;
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET |
			 MHD_USE_ERROR_LOG | (loop->thread ? 0 : MHD_USE_INTERNAL_POLLING_THREAD) |
			 (material->cert ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[] = {
		POINTER(MHD_OPTION_HTTPS_MEM_CERT, material->cert),
		POINTER(MHD_OPTION_HTTPS_MEM_KEY, material->key),
		POINTER(MHD_OPTION_HTTPS_PRIORITIES, priorities),
		POINTER(material->ca ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, material->ca),
		{ MHD_OPTION_END, 0, NULL }
	};
	struct MHD_OptionItem options[] = {
		CALLBACK(MHD_OPTION_EXTERNAL_LOGGER, complain, server),
		CALLBACK(MHD_OPTION_NOTIFY_CONNECTION, notify, loop),
		CALLBACK(MHD_OPTION_URI_LOG_CALLBACK, begin_request, loop),
		CALLBACK(MHD_OPTION_NOTIFY_COMPLETED, end_request, loop),
		CALLBACK(MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL),
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		  HTTP_CONNECTION_MEMORY + (intptr_t)server->header_limits.total, NULL },
		{ MHD_OPTION_CONNECTION_LIMIT, server->config->max_connections + 1, NULL },
		POINTER(material->cert ? MHD_OPTION_ARRAY : MHD_OPTION_END, tls),
		{ MHD_OPTION_END, 0, NULL }
	};
	return MHD_start_daemon(flags, 0, NULL, NULL, handle, loop, MHD_OPTION_ARRAY, options,
				MHD_OPTION_END);
}

static bool start_loop(struct http_loop *loop, char *priorities, struct error *err)
{
	errno = 0;
	loop->library = start_library(loop, priorities);
	if (loop->library)
		return http_loop_start(loop, err);
	return error_set(err, ERROR_CONFIG, "cannot start libmicrohttpd: %s",
			 errno ? strerror(errno) : "it rejected the certificate or the key");
}

static bool start_loops(struct http_daemon *daemon, struct error *err)
{
	struct io *io = daemon->server->io;
	bool ok = true;
	char *priorities = tls_choice_gnutls(&daemon->server->config->tls, err);
	if (!priorities)
		return false;
	http_tls_silence();
	for (uint32_t i = 0; ok && i < daemon->loop_count; i++) {
		daemon->loops[i] = (struct http_loop){
			.daemon = daemon,
			.thread = io ? io_thread_at(io, IO_HTTP_1, i) : NULL,
			.lost = lose_connection,
			.stalls.stalled = end_stalled,
		};
		ok = start_loop(&daemon->loops[i], priorities, err);
	}
	memory_free(priorities);
	return ok;
}

struct http_daemon *http_daemon_new(struct http_server *server, const struct tls_material *material,
				    struct error *err)
{
	uint32_t count = server->io ? io_count(server->io) : 1;
	struct http_daemon *daemon = memory_new(sizeof *daemon + count * sizeof *daemon->loops);
	daemon->server = server;
	daemon->material = *material;
	daemon->loop_count = count;
	if (!start_loops(daemon, err))
		http_daemon_unref(&daemon);
	return daemon;
}

/* Only the listener's thread frees daemons while it runs. */
static struct http_daemon *current_daemon(struct http_server *server)
{
	pthread_mutex_lock(&server->mutex);
	struct http_daemon *daemon = server->daemons;
	pthread_mutex_unlock(&server->mutex);
	return daemon;
}

static int64_t connections_of(const void *daemon, uint32_t index)
{
	return atomic_load(&((const struct http_daemon *)daemon)->loops[index].connections);
}

static struct http_loop *least_busy(struct http_daemon *daemon)
{
	struct io *io = daemon->server->io;
	return &daemon->loops[io ? io_least_busy(io, IO_HTTP_1, connections_of, daemon) : 0];
}

void http_daemon_add(struct http_server *server, int socket, const struct http_origin *origin)
{
	struct http_loop *loop = least_busy(current_daemon(server));
	atomic_fetch_add(&loop->daemon->connections, 1);
	atomic_fetch_add(&loop->connections, 1);
	http_loop_add(loop, socket, origin);
}
