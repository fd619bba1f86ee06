/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/listeners.h"

#include "base/memory.h"
#include "net/host_port.h"

#include <string.h>

static void add(struct listeners *l, const char *endpoint, const char *transport, const char *path,
		const struct node *node)
{
	l->at = memory_resize(l->at, (l->count + 1) * sizeof *l->at);
	l->at[l->count++] =
		(struct listener){ memory_text(endpoint), transport, memory_text(path), node };
}

/* The value of the key `transport` in the same section. */
static const char *transport_of(const struct config_spot *spot)
{
	for (const struct config_row *row = spot->table->rows; row->key; row++) {
		const void *member = (const char *)spot->config + row->offset;
		if (row->alias_of || strcmp(row->key, "transport") != 0)
			continue;
		return row->type == CONFIG_CHOICE
			       ? row->choices[((const struct choice *)member)->index]
			       : *(char *const *)member;
	}
	return "tcp";
}

static void visit(void *context, const struct config_spot *spot)
{
	if (spot->row->role != ROLE_LISTENS)
		return;
	const char *endpoint = *(char *const *)spot->member;
	if (endpoint && *endpoint)
		add(context, endpoint, transport_of(spot), spot->path, spot->node);
}

void listeners_find(struct listeners *l, const struct graph *graph,
		    const struct telemetry *telemetry)
{
	char *metrics = telemetry_endpoint(telemetry);
	*l = (struct listeners){ 0 };
	if (metrics)
		add(l, metrics, "tcp", "service::telemetry::metrics", NULL);
	memory_free(metrics);
	graph_walk(graph, visit, l);
}

void listeners_fini(struct listeners *l)
{
	for (size_t i = 0; i < l->count; i++) {
		memory_free(l->at[i].endpoint);
		memory_free(l->at[i].path);
	}
	memory_free(l->at);
	*l = (struct listeners){ 0 };
}

static bool is(const struct host_port *a, const char *host)
{
	return strlen(host) == a->host_len && !memcmp(a->host, host, a->host_len);
}

static bool is_wildcard(const struct host_port *a)
{
	return !a->host_len || is(a, "0.0.0.0") || is(a, "::");
}

static bool is_same_host(const struct host_port *a, const struct host_port *b)
{
	return a->host_len == b->host_len && !memcmp(a->host, b->host, a->host_len);
}

/* The name stands for both loopback addresses. */
static bool is_loopback_of(const struct host_port *name, const struct host_port *address)
{
	return is(name, "localhost") && (is(address, "127.0.0.1") || is(address, "::1"));
}

static bool is_unix(const struct listener *l)
{
	return !strcmp(l->transport, "unix") || !strncmp(l->endpoint, "unix:", strlen("unix:"));
}

static bool collide(const struct listener *x, const struct listener *y)
{
	struct host_port a, b;
	if (is_unix(x) || is_unix(y))
		return !strcmp(x->endpoint, y->endpoint) && is_unix(x) == is_unix(y);
	if (!host_port_parse("endpoint", x->endpoint, 0, &a, NULL) ||
	    !host_port_parse("endpoint", y->endpoint, 0, &b, NULL) || a.number != b.number ||
	    !a.number)
		return false;
	bool apart = (!strcmp(x->transport, "tcp4") && !strcmp(y->transport, "tcp6")) ||
		     (!strcmp(x->transport, "tcp6") && !strcmp(y->transport, "tcp4"));
	return !apart && (is_wildcard(&a) || is_wildcard(&b) || is_same_host(&a, &b) ||
			  is_loopback_of(&a, &b) || is_loopback_of(&b, &a));
}

bool listeners_check(const struct listeners *l, struct problems *problems)
{
	bool ok = true;
	for (size_t i = 1; i < l->count; i++)
		for (size_t k = 0; k < i; k++) {
			struct error why;
			if (!collide(&l->at[k], &l->at[i]))
				continue;
			node_error(l->at[i].node, l->at[i].path, &why,
				   "listens on the same address as %s", l->at[k].path);
			ok = problems_add(problems, &why);
		}
	return ok;
}
