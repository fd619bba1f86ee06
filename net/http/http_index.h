/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_INDEX_H
#define NET_HTTP_HTTP_INDEX_H

#include "net/http/http_server.h"

struct http_index_link {
	const char *path, *text; /* path == NULL ends */
};

/* Replies with a page of links to the paths of a server, for its route "/". */
void http_index_reply(struct http_exchange *exchange, int status,
		      const struct http_index_link *links);

#endif
