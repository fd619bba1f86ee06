/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/hash.h"
#include "net/http/http_internal.h"

#define MS_NS UINT64_C(1000000)
#define ASK_NS (50 * MS_NS)         /* interval at which a waiting body asks for memory */
#define SHORT_LOOK_NS (100 * MS_NS) /* interval of checks of the budget while it is short */
#define LOOK_NS (1000 * MS_NS)      /* and otherwise */
/* this fraction of all connections is closed at the same time */
#define CLOSE_SHARE 8
#define CLOSE_MIN 16

bool http_memory_hold(struct http_server *server, uint32_t count)
{
	int64_t cost = server->connection_cost;
	if (count * cost <= net_budget_room(&server->budget) &&
	    net_budget_hold(&server->budget, cost))
		return true;
	if (server->h2)
		h2_server_close_idle(server->h2);
	return http_deadlines_replace_oldest(&server->deadlines);
}

void http_memory_release(struct http_server *server, bool replaced)
{
	if (!replaced)
		net_budget_release(&server->budget, server->connection_cost);
}

/* One to three seconds, at random, so that waiting bodies do not give up together: each that does
 * makes room for the others. */
static uint64_t patience(void)
{
	uint32_t random;
	hash_random(&random, sizeof random);
	return (1000 + random % 2000) * MS_NS;
}

bool http_memory_begin_wait(struct http_exchange *x)
{
	if (x->waiting_since)
		return false;
	x->waiting_since = clock_now();
	x->patience_ns = patience();
	metric_add(x->server->paused, 1);
	return true;
}

bool http_memory_wait(struct http_request *r)
{
	struct http_server *server = r->x.server;
	bool first = http_memory_begin_wait(&r->x);
	if (first) {
		atomic_fetch_add(&server->waiting, 1);
		http_deadline_pause(&server->deadlines, &r->connection->deadline);
	}
	pthread_mutex_lock(&server->mutex);
	bool waits = !server->cutting;
	if (waits)
		http_request_suspend(r);
	pthread_mutex_unlock(&server->mutex);
	if (first)
		http_listener_wake(server->listener);
	return waits;
}

void http_memory_waited(struct http_request *r)
{
	struct http_server *server = r->x.server;
	if (!r->x.waiting_since)
		return;
	r->x.waiting_since = 0;
	atomic_fetch_sub(&server->waiting, 1);
	http_deadline_resume(&server->deadlines, &r->connection->deadline);
}

static void ask_again(struct http_server *server)
{
	struct http_request *next;
	pthread_mutex_lock(&server->mutex);
	for (struct http_request *r = server->suspended; r; r = next) {
		next = r->next;
		if (r->x.stage == HTTP_STAGE_BODY)
			http_request_resume(r);
	}
	pthread_mutex_unlock(&server->mutex);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t http_memory_relieve(struct http_server *server, uint64_t now)
{
	int64_t connected = atomic_load(&server->connected);
	uint64_t next = UINT64_MAX;
	if (atomic_load(&server->waiting)) {
		if (now >= server->ask_next) {
			ask_again(server);
			server->ask_next = now + ASK_NS;
		}
		next = server->ask_next;
	}
	if (!connected || !server->budget.is_short)
		return next;
	if (now >= server->look_next) {
		bool is_short = net_budget_is_short(&server->budget);
		uint32_t share = (uint32_t)(connected / CLOSE_SHARE);
		if (is_short)
			http_deadlines_end_oldest(&server->deadlines,
						  share > CLOSE_MIN ? share : CLOSE_MIN);
		if (is_short && server->h2)
			h2_server_close_idle(server->h2);
		server->look_next = now + (is_short ? SHORT_LOOK_NS : LOOK_NS);
	}
	return earlier(next, server->look_next);
}
