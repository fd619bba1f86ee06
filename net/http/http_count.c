/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_internal.h"

bool http_count_in(struct http_server *server, const char *peer, enum http_over *why)
{
	struct hash128 key = peer_key_of_address(peer);
	*why = HTTP_OVER_LIMIT;
	if (atomic_load(&server->connected) >= server->config->max_connections)
		return false;
	*why = HTTP_OVER_PEER_LIMIT;
	uint32_t count = peer_count_add(server->peers, key, server->peer_limit);
	if (!count)
		return false;
	*why = HTTP_OVER_MEMORY;
	if (!http_memory_hold(server, count)) {
		peer_count_remove(server->peers, key);
		return false;
	}
	atomic_fetch_add(&server->connected, 1);
	metric_add(server->connections, 1);
	return true;
}

void http_count_out(struct http_server *server, const char *peer)
{
	peer_count_remove(server->peers, peer_key_of_address(peer));
	metric_add(server->connections, -1);
	if (atomic_fetch_sub(&server->connected, 1) == 1 && atomic_load(&server->retiring))
		http_listener_wake(server->listener);
}
