/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/environment.h"

#include "base/memory.h"
#include "base/path.h"
#include "net/h2/server.h"
#include "net/tls/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct check {
	struct problems *problems;
	bool asks; /* destinations are asked, too */
	bool ok;
	/* of environment_examine */
	const struct error *why;
	bool explained;
};

static void report(struct check *check, const struct config_table *table, const struct node *node,
		   const char *path, const struct error *why)
{
	struct error placed;
	config_blame(table, node, path, why, &placed);
	check->ok = problems_add(check->problems, &placed);
}

/* ---- ports */

/* "endpoint: " stands in the path already. */
static void check_listener(struct check *check, const struct listener *l)
{
	static const char key[] = "endpoint: ";
	struct error why, placed;
	if (h2_listen_probe(l->endpoint, l->transport, &why))
		return;
	bool keyed = !strncmp(why.text, key, strlen(key));
	node_error(l->node, l->path, &placed, "%s", why.text + (keyed ? strlen(key) : 0));
	check->ok = problems_add(check->problems, &placed);
}

static void check_listeners(struct check *check, const struct graph *graph,
			    const struct telemetry *telemetry)
{
	struct listeners listeners;
	listeners_find(&listeners, graph_inventory(graph), telemetry, check->problems);
	for (size_t i = 0; i < listeners.count; i++)
		check_listener(check, &listeners.at[i]);
	listeners_fini(&listeners);
}

/* ---- certificates */

static void check_server_tls(struct check *check, const struct config_spot *spot)
{
	const struct tls_server_config *tls = spot->member;
	struct error why;
	if (tls->present.enabled && !tls_check_server(tls, &why))
		report(check, spot->row->table, spot->node, spot->path, &why);
}

static void check_client_tls(struct check *check, const struct config_spot *spot)
{
	const struct tls_client_config *tls = spot->member;
	bool on = spot->row->table == &tls_client_table || tls->present.enabled;
	struct error why;
	if (on && !tls->insecure && !tls_check_client(tls, &why))
		report(check, spot->row->table, spot->node, spot->path, &why);
}

/* ---- files */

static bool is_there(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0;
}

/* Makes the path that of the directory around it. */
static void cut_name(char *path)
{
	char *slash = strrchr(path, '/');
	if (slash) {
		slash[slash == path] = '\0';
		return;
	}
	path[0] = '.'; /* it has at least one byte */
	path[1] = '\0';
}

/* May the section create directories? Without the key it does, but the log does not. */
static bool creates(const struct config_spot *spot)
{
	if (spot->row->role == ROLE_WRITES_LOG)
		return false;
	const struct config_row *row = config_find_row(spot->table, "create_directory");
	return !row || *(const bool *)((const char *)spot->config + row->offset);
}

/* Names with values of the data in them come after the directory that is checked. Returns whether
 * the path has some. */
static bool cut_placeholders(char *path)
{
	char *first = strpbrk(path, "{*");
	if (first) {
		*first = '\0';
		cut_name(path);
	}
	return first;
}

/* Is the error about this value? Its text begins with the place and path then. */
static bool is_about(const struct error *why, const struct node *node, const char *path)
{
	struct error place;
	node_error(node, path, &place, "%s", "");
	return why && !strncmp(why->text, place.text, strlen(place.text));
}

/* Makes the path that of what must be writable: the file, or the directory where it or a directory
 * is created. Returns whether it must be a directory. */
static bool cut_to_existing(const struct config_spot *spot, char *path)
{
	bool cut = spot->row->role != ROLE_WRITES_LOG && cut_placeholders(path);
	bool directory = cut || spot->row->role == ROLE_WRITES_DIRECTORY;
	if (!directory && !is_there(path) && errno == ENOENT) {
		cut_name(path);
		directory = true;
	}
	while (creates(spot) && !is_there(path) && errno == ENOENT && strcmp(path, "."))
		cut_name(path);
	return directory;
}

/* False: errno has the reason. */
static bool is_writable(const char *path, bool directory)
{
	struct stat status;
	bool found = stat(path, &status) == 0, listed = found && S_ISDIR(status.st_mode);
	if (found && directory && !listed) {
		errno = ENOTDIR;
		return false;
	}
	return faccessat(AT_FDCWD, path, listed ? W_OK | X_OK : W_OK, AT_EACCESS) == 0;
}

static void refuse_file(struct check *check, const struct config_spot *spot,
			const struct node *node, const char *place, const char *path)
{
	struct error why;
	bool to_be_made = errno == ENOENT && !creates(spot) && spot->row->role != ROLE_WRITES_LOG;
	node_error(node, place, &why, "cannot write %.200s: %s%s", path, strerror(errno),
		   to_be_made ? "; to have it created, set create_directory" : "");
	check->ok = problems_add(check->problems, &why);
	check->explained |= is_about(check->why, node, place);
}

static void check_file(struct check *check, const struct config_spot *spot, const struct node *node,
		       const char *place, const char *given)
{
	bool stream = spot->row->role == ROLE_WRITES_LOG && given && log_is_stream(given);
	if (!given || !*given || path_is_device(given) || stream)
		return;
	char *path = memory_text(given);
	bool directory = cut_to_existing(spot, path);
	if (!is_writable(path, directory))
		refuse_file(check, spot, node, place, path);
	memory_free(path);
}

/* ---- names */

/* The host of "host:port" or a URL; NULL: there is none to resolve. */
static char *host_of(const char *text)
{
	const char *scheme = strstr(text, "://"), *host = scheme ? scheme + 3 : text;
	if (!strncmp(text, "unix:", 5) || !strncmp(text, "ipv4:", 5) || !strncmp(text, "ipv6:", 5))
		return NULL;
	host += *host == '/'; /* dns:///host:port */
	if (*host == '[')
		return memory_text_of(host + 1, strcspn(host + 1, "]"));
	size_t len = strcspn(host, ":/");
	return len ? memory_text_of(host, len) : NULL;
}

static void check_name(struct check *check, const struct node *node, const char *place,
		       const char *text)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	struct error why;
	char *host = host_of(text);
	int code = host ? getaddrinfo(host, NULL, &hints, &found) : 0;
	memory_free(host);
	if (found)
		freeaddrinfo(found);
	if (!code)
		return;
	node_error(node, place, &why, "cannot resolve the host: %s", gai_strerror(code));
	check->ok = problems_add(check->problems, &why);
}

/* An exporter that is asked resolves the name itself, or leaves that to its proxy. */
static bool is_asked(const struct check *check, const struct config_spot *spot)
{
	static const char section[] = "exporters::";
	return check->asks && !strncmp(spot->path, section, strlen(section));
}

static void visit_string(struct check *check, const struct config_spot *spot,
			 const struct node *node, const char *place, const char *text)
{
	if (spot->row->role != ROLE_CONNECTS)
		check_file(check, spot, node, place, text);
	else if (text && *text && !is_asked(check, spot))
		check_name(check, node, place, text);
}

/* One string, or each of a list. */
static void visit_strings(struct check *check, const struct config_spot *spot)
{
	const struct strings *list = spot->member;
	const struct node *node = spot->node;
	if (spot->row->type != CONFIG_STRINGS) {
		visit_string(check, spot, node, spot->path, *(char *const *)spot->member);
		return;
	}
	for (size_t i = 0; i < list->count; i++) {
		bool listed = node && node->kind == NODE_LIST && i < node->count;
		char place[PATH_TEXT];
		snprintf(place, sizeof place, "%.170s[%zu]", spot->path, i);
		visit_string(check, spot, listed ? node->children[i] : node,
			     listed ? place : spot->path, list->at[i]);
	}
}

static void visit(void *context, const struct config_spot *spot)
{
	const struct config_table *table =
		spot->row->type == CONFIG_TABLE ? spot->row->table : NULL;
	if (table == &tls_server_table)
		check_server_tls(context, spot);
	else if (table == &tls_client_table || table == &tls_client_optional_table)
		check_client_tls(context, spot);
	else if (spot->row->role != ROLE_NONE && spot->row->role != ROLE_LISTENS)
		visit_strings(context, spot);
}

static void visit_local(void *context, const struct config_spot *spot)
{
	if (spot->row->role != ROLE_CONNECTS)
		visit(context, spot);
}

bool environment_examine(const struct declared *d, const struct error *why,
			 struct problems *problems)
{
	struct check check = { .problems = problems, .ok = true, .why = why };
	config_walk(d->factory->config, d->config, d->node, d->path, visit_local, &check);
	return check.explained;
}

bool environment_check(const struct graph *graph, const struct telemetry *telemetry, bool asks,
		       struct problems *problems)
{
	struct check check = { .problems = problems, .asks = asks, .ok = true };
	check_listeners(&check, graph, telemetry);
	graph_walk(graph, visit, &check);
	telemetry_walk(telemetry, visit, &check);
	return check.ok;
}
