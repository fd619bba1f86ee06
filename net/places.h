/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_PLACES_H
#define NET_PLACES_H

#include "base/bytes.h"

/*
 * Where the paths of this process are, for hints to those who ask at the wrong port. All HTTP
 * servers that listen are known here, and the paths that receivers take whether they are configured
 * or not. [any thread]
 */
struct place {
	const char *path;     /* the one that is meant */
	const char *receiver; /* the type of the receiver that takes it */
	const char *section;  /* where that is configured, and the usual port; NULL: itself */
};

/* For the life of the process; before the first server. find: of a path that a client has asked
 * for; false: no receiver takes it. [any thread] */
void places_know(bool (*find)(const char *asked, struct place *place));

/* A server that listens, until it leaves. All strings outlive that. */
struct places_server {
	const char *kind, *id; /* of its component; id NULL: it belongs to no component */
	const char *address;
	/* Its own string for a path that it serves; NULL: it does not. [any thread] */
	const char *(*route)(const void *server, const char *path);
	const void *server;
};
void places_join(const struct places_server *server);
void places_leave(const void *server);

/* Appends a hint for a path that a server does not have, or nothing. It contains paths of the
 * servers and of the list, and never what a client has sent. */
void places_hint(const char *asked, struct bytes *text);

#endif
