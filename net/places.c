/* SPDX-License-Identifier: Apache-2.0 */
#include "net/places.h"

#include "base/memory.h"

#include <pthread.h>
#include <string.h>

struct joined {
	struct joined *next;
	struct places_server server;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of this */
static struct joined *servers;
static bool (*find_place)(const char *asked, struct place *place);

void places_know(bool (*find)(const char *asked, struct place *place))
{
	pthread_mutex_lock(&lock);
	find_place = find;
	pthread_mutex_unlock(&lock);
}

void places_join(const struct places_server *server)
{
	struct joined *j = memory_new(sizeof *j);
	pthread_mutex_lock(&lock);
	*j = (struct joined){ servers, *server };
	servers = j;
	pthread_mutex_unlock(&lock);
}

void places_leave(const void *server)
{
	pthread_mutex_lock(&lock);
	struct joined **at = &servers;
	while (*at && (*at)->server.server != server)
		at = &(*at)->next;
	struct joined *j = *at;
	if (j)
		*at = j->next;
	pthread_mutex_unlock(&lock);
	memory_free(j);
}

/* Under the lock. *route: the server's own string. */
static const struct places_server *find_server(const char *path, const char **route)
{
	for (const struct joined *j = servers; j; j = j->next)
		if ((*route = j->server.route(j->server.server, path)))
			return &j->server;
	return NULL;
}

/* Of a Unix socket, the whole address. */
static void add_server(const struct places_server *server, const char *route, struct bytes *text)
{
	const char *colon = strrchr(server->address, ':');
	bytes_format(text, "; %s is served by ", route);
	if (server->id)
		bytes_format(text, "the %s %s", server->kind, server->id);
	else
		bytes_add_text(text, "this process");
	bytes_format(text, colon ? " at port %s" : " at %s", colon ? colon + 1 : server->address);
}

static void add_place(const struct place *place, struct bytes *text)
{
	bytes_format(text, "; the receiver %s takes %s", place->receiver, place->path);
	if (place->section)
		bytes_format(text, " in %s", place->section);
	bytes_add_text(text, ", but none is configured");
}

void places_hint(const char *asked, struct bytes *text)
{
	struct place place;
	const char *route;
	pthread_mutex_lock(&lock);
	bool known = find_place && find_place(asked, &place);
	const struct places_server *server = find_server(known ? place.path : asked, &route);
	if (server)
		add_server(server, route, text);
	else if (known)
		add_place(&place, text);
	pthread_mutex_unlock(&lock);
}
