/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_PLACES_H
#define NET_HTTP_HTTP_PLACES_H

#include "base/bytes.h"

/*
 * Where the paths of this process are, for hints to those who ask at the wrong port. All servers
 * that listen are known here, and the paths that receivers take whether they are configured or
 * not. [any thread]
 */
struct http_place {
	const char *path;     /* the one that is meant */
	const char *receiver; /* the type of the receiver that takes it */
};

/* For the life of the process; before the first server. find: of a path that a client has asked
 * for; false: no receiver takes it. [any thread] */
void http_places_know(bool (*find)(const char *asked, struct http_place *place));

struct http_server;
/* It listens, until it leaves. */
void http_places_join(const struct http_server *server);
void http_places_leave(const struct http_server *server);

/* Appends a hint for a path that a server does not have, or nothing. It contains paths of the
 * servers and of the list, and never what a client has sent. */
void http_places_hint(const char *asked, struct bytes *text);

#endif
