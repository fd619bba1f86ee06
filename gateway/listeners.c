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
	const struct config_row *row = config_find_row(spot->table, "transport");
	if (!row)
		return "tcp";
	const void *member = (const char *)spot->config + row->offset;
	return row->type == CONFIG_CHOICE ? row->choices[((const struct choice *)member)->index]
					  : *(char *const *)member;
}

struct finding {
	struct listeners *listeners;
	struct problems *problems;
};

static void visit(void *context, const struct config_spot *spot)
{
	const struct finding *finding = context;
	const struct faults faults = { spot->table, spot->section, "", finding->problems };
	if (spot->row->role != ROLE_LISTENS || !faults_know(&faults, spot->row->key))
		return;
	const char *endpoint = *(char *const *)spot->member;
	if (endpoint && *endpoint)
		add(finding->listeners, endpoint, transport_of(spot), spot->path, spot->node);
}

void listeners_find(struct listeners *l, const struct inventory *inventory,
		    const struct telemetry *telemetry, struct problems *problems)
{
	struct finding finding = { l, problems };
	char *metrics = telemetry ? telemetry_endpoint(telemetry) : NULL;
	*l = (struct listeners){ 0 };
	if (metrics)
		add(l, metrics, "tcp", "service::telemetry::metrics", NULL);
	memory_free(metrics);
	inventory_walk(inventory, visit, &finding);
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

void listeners_check(const struct listeners *l, struct problems *problems)
{
	for (size_t i = 1; i < l->count; i++) {
		const struct listener *at = &l->at[i];
		struct error why;
		size_t k = 0;
		while (k < i && !collide(&l->at[k], at))
			k++;
		if (k == i)
			continue;
		node_error(at->node, at->path, &why, "listens on the same address as %s",
			   l->at[k].path);
		problems_add(problems, &why);
	}
}
