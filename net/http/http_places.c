/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_places.h"

#include "base/memory.h"
#include "net/http/http_internal.h"

#include <string.h>

struct joined {
	struct joined *next;
	const struct http_server *server;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of this */
static struct joined *servers;
static bool (*find_place)(const char *asked, struct http_place *place);

void http_places_know(bool (*find)(const char *asked, struct http_place *place))
{
	pthread_mutex_lock(&lock);
	find_place = find;
	pthread_mutex_unlock(&lock);
}

void http_places_join(const struct http_server *server)
{
	struct joined *j = memory_new(sizeof *j);
	pthread_mutex_lock(&lock);
	*j = (struct joined){ servers, server };
	servers = j;
	pthread_mutex_unlock(&lock);
}

void http_places_leave(const struct http_server *server)
{
	pthread_mutex_lock(&lock);
	struct joined **at = &servers;
	while (*at && (*at)->server != server)
		at = &(*at)->next;
	struct joined *j = *at;
	if (j)
		*at = j->next;
	pthread_mutex_unlock(&lock);
	memory_free(j);
}

static const char *route_of(const struct http_server *server, const char *path)
{
	for (size_t i = 0; i < server->route_count; i++)
		if (server->routes[i].path && !strcmp(server->routes[i].path, path) &&
		    strcmp(path, "/") != 0)
			return server->routes[i].path;
	return NULL;
}

/* Under the lock. *route: the server's own string. */
static const struct http_server *find_server(const char *path, const char **route)
{
	for (const struct joined *j = servers; j; j = j->next)
		if ((*route = route_of(j->server, path)))
			return j->server;
	return NULL;
}

/* Of a Unix socket, the whole address. */
static void add_server(const struct http_server *server, const char *route, struct bytes *text)
{
	const char *address = http_server_address(server), *colon = strrchr(address, ':');
	const struct log *log = server->log;
	bytes_format(text, "; %s is served by ", route);
	if (log->component_id)
		bytes_format(text, "the %s %s", log->component_kind, log->component_id);
	else
		bytes_add_text(text, "this process");
	bytes_format(text, colon ? " at port %s" : " at %s", colon ? colon + 1 : address);
}

void http_places_hint(const char *asked, struct bytes *text)
{
	struct http_place place;
	const char *route;
	pthread_mutex_lock(&lock);
	bool known = find_place && find_place(asked, &place);
	const struct http_server *server = find_server(known ? place.path : asked, &route);
	if (server)
		add_server(server, route, text);
	else if (known)
		bytes_format(text, "; the receiver %s takes %s, but none is configured",
			     place.receiver, place.path);
	pthread_mutex_unlock(&lock);
}
