/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/lint.h"

#include "base/secret_name.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct lint {
	const struct inventory *inventory;
	const struct lint_check *check;
	void (*found)(void *context, const struct lint_finding *finding);
	void *context;
	const char *variable;
	uint32_t count;
};

__attribute__((format(printf, 4, 5))) static void report(struct lint *lint, const struct node *at,
							 const char *path, const char *format, ...)
{
	struct error placed;
	char text[300];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	error_clear(&placed);
	node_error(at, path, &placed, "%s", text);
	lint->found(lint->context, &(struct lint_finding){ .id = lint->check->id,
							   .text = placed.text,
							   .variable = lint->variable });
	lint->count++;
}

/* ---- the pipelines */

static const struct pipeline_config *pipeline_at(const struct inventory *inventory, size_t index)
{
	return (const struct pipeline_config *)inventory->service.pipelines.at + index;
}

static const struct node *pipeline_node(const struct inventory *inventory, size_t index)
{
	const struct node *service = node_get(inventory->root, "service");
	const struct node *pipelines = node_get(service, "pipelines");
	return pipelines && index < pipelines->count ? pipelines->children[index] : service;
}

static const char *pipeline_path(const struct inventory *inventory, size_t index,
				 char out[PATH_TEXT])
{
	struct path top = { NULL, "service::pipelines", 0 };
	struct path step = path_step(&top, pipeline_node(inventory, index), index);
	return path_text(&step, out);
}

static const struct declared *processor_at(const struct inventory *inventory,
					   const struct pipeline_config *pipeline, size_t index)
{
	return inventory_find(inventory, COMPONENT_PROCESSOR, pipeline->processors.at[index]);
}

/* ---- no-policy */

static bool has_own_policy(const struct inventory *inventory, const struct pipeline_config *p)
{
	for (size_t i = 0; i < p->processors.count; i++) {
		const struct declared *d = processor_at(inventory, p, i);
		const struct processor_ops *ops = d->factory->processor;
		if (ops->keeps && !ops->keeps(d->config, NULL))
			return true;
	}
	return false;
}

static bool has_policy(const struct inventory *inventory, size_t index);

/* Have all pipelines that lead to this connector a policy? */
static bool brings_policed(const struct inventory *inventory, const char *connector)
{
	if (!inventory_find(inventory, COMPONENT_CONNECTOR, connector))
		return false;
	for (size_t i = 0; i < inventory->service.pipelines.count; i++)
		if (config_lists(&pipeline_at(inventory, i)->exporters, connector) &&
		    !has_policy(inventory, i))
			return false;
	return true;
}

/* Connectors form no cycle (inventory_check_connectors). */
static bool has_policy(const struct inventory *inventory, size_t index)
{
	const struct pipeline_config *p = pipeline_at(inventory, index);
	if (has_own_policy(inventory, p))
		return true;
	for (size_t i = 0; i < p->receivers.count; i++)
		if (!brings_policed(inventory, p->receivers.at[i]))
			return false;
	return true;
}

/* Not if connectors alone take what it has. */
static bool sends_away(const struct inventory *inventory, const struct pipeline_config *p)
{
	bool away = false;
	for (size_t i = 0; i < p->exporters.count; i++)
		away |= !inventory_find(inventory, COMPONENT_CONNECTOR, p->exporters.at[i]);
	return away;
}

static bool lacks_policy(const struct inventory *inventory, size_t index)
{
	return sends_away(inventory, pipeline_at(inventory, index)) &&
	       !has_policy(inventory, index);
}

static const char no_policy[] =
	"every attribute passes, because no processor `allowlist`, and no `redaction` without "
	"allow_all_keys, stands in the pipeline";

static void find_no_policy(struct lint *lint)
{
	char path[PATH_TEXT];
	for (size_t i = 0; i < lint->inventory->service.pipelines.count; i++)
		if (lacks_policy(lint->inventory, i))
			report(lint, pipeline_node(lint->inventory, i),
			       pipeline_path(lint->inventory, i, path), no_policy);
}

void lint_require_policy(const struct inventory *inventory, struct problems *problems)
{
	char path[PATH_TEXT];
	struct error why;
	for (size_t i = 0; inventory->connected && inventory->service.require_policy &&
			   i < inventory->service.pipelines.count;
	     i++) {
		if (!lacks_policy(inventory, i))
			continue;
		node_error(pipeline_node(inventory, i), pipeline_path(inventory, i, path), &why,
			   "%s; service::require_policy requires one", no_policy);
		problems_add(problems, &why);
	}
}

/* ---- denied-attribute */

/* The first scalar with this text below the node; NULL: there is none. */
static const struct node *find_text(const struct node *node, const char *text)
{
	const struct node *found = NULL;
	if (node && node->kind == NODE_SCALAR && node->text && strcmp(node->text, text) == 0)
		return node;
	for (size_t i = 0; node && i < node->count && !found; i++)
		found = find_text(node->children[i], text);
	return found;
}

static void look_behind(struct lint *lint, const struct pipeline_config *p, size_t place,
			const struct declared *setter, const char *key)
{
	for (size_t i = place + 1; i < p->processors.count; i++) {
		const struct declared *d = processor_at(lint->inventory, p, i);
		const struct processor_ops *ops = d->factory->processor;
		if (!ops->keeps || ops->keeps(d->config, key))
			continue;
		const struct node *at = find_text(setter->node, key);
		report(lint, at ? at : setter->node, setter->path,
		       "sets the attribute \"%s\", which %s then removes",
		       at ? node_shown(at) : "?", d->path);
		return;
	}
}

static void find_denied_attributes(struct lint *lint)
{
	for (size_t i = 0; i < lint->inventory->service.pipelines.count; i++) {
		const struct pipeline_config *p = pipeline_at(lint->inventory, i);
		for (size_t n = 0; n < p->processors.count; n++) {
			const struct declared *d = processor_at(lint->inventory, p, n);
			const struct processor_ops *ops = d->factory->processor;
			const char *key;
			for (size_t k = 0; ops->sets && (key = ops->sets(d->config, k)); k++)
				if (*key)
					look_behind(lint, p, n, d, key);
		}
	}
}

/* ---- the keys of a component */

typedef void visit_row(void *context, const struct config_spot *spot);

static void visit_declared(struct lint *lint, const struct declared *d, visit_row *visit)
{
	config_walk(d->factory->config, d->config, d->node, d->path, visit, lint);
}

/* Of the key `endpoint`; NULL: it is another key, or not set. */
static const char *endpoint_of(const struct config_spot *spot)
{
	bool endpoint = spot->row->type == CONFIG_STRING && !strcmp(spot->row->key, "endpoint");
	return endpoint ? *(char *const *)spot->member : NULL;
}

/* ---- otlp-to-parca */

/* The default port of Parca. */
#define PARCA_PORT ":7070"

static bool is_parca(const char *endpoint)
{
	size_t len = strlen(endpoint), port = sizeof PARCA_PORT - 1;
	return strcasestr(endpoint, "parca") || strcasestr(endpoint, "polarsignals") ||
	       (len > port && strcmp(endpoint + len - port, PARCA_PORT) == 0);
}

static void look_for_parca(void *context, const struct config_spot *spot)
{
	const char *endpoint = endpoint_of(spot);
	if (endpoint && is_parca(endpoint))
		report(context, spot->node, spot->path,
		       "looks like Parca, which shows wrong function names for what it gets "
		       "by OTLP; use the exporter `parca`");
}

static void find_otlp_to_parca(struct lint *lint)
{
	for (size_t i = 0; i < lint->inventory->count; i++) {
		const struct declared *d = &lint->inventory->at[i];
		if (d->factory->kind == COMPONENT_EXPORTER && inventory_uses(lint->inventory, d) &&
		    strncmp(d->factory->type, "otlp_", 5) == 0)
			visit_declared(lint, d, look_for_parca);
	}
}

/* ---- open-listener */

static bool is_every_interface(const char *endpoint)
{
	static const char *const hosts[] = { "0.0.0.0:", "[::]:", ":::", ":" };
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		size_t len = strlen(hosts[i]);
		if (strncmp(endpoint, hosts[i], len) == 0 &&
		    strspn(endpoint + len, "0123456789") == strlen(endpoint + len))
			return true;
	}
	return false;
}

/* Is there such a section beside the key, and is it on? */
static bool is_on(const struct config_spot *spot, const char *key)
{
	const struct config_row *row = config_find_row(spot->table, key);
	return row && row->type == CONFIG_TABLE && row->table->optional &&
	       ((const struct optional *)((const char *)spot->config + row->offset))->enabled;
}

static void look_for_listener(void *context, const struct config_spot *spot)
{
	const char *endpoint = endpoint_of(spot);
	if (endpoint && config_find_row(spot->table, "tls") && is_every_interface(endpoint) &&
	    !is_on(spot, "tls") && !is_on(spot, "auth"))
		report(context, spot->node, spot->path,
		       "listens on every interface without `tls` and without `auth`: anyone "
		       "on the network can send to it, and what is sent can be read");
}

static void find_open_listeners(struct lint *lint)
{
	for (size_t i = 0; i < lint->inventory->count; i++) {
		const struct declared *d = &lint->inventory->at[i];
		if (d->factory->kind == COMPONENT_RECEIVER && inventory_uses(lint->inventory, d))
			visit_declared(lint, d, look_for_listener);
	}
}

/* ---- plain-secret */

static const char plain_secret[] =
	"is a secret written out in the configuration; use ${env:NAME} or ${file:PATH}";

/* --set comes from a command line, which is a matter of its own. */
static bool is_plain(const struct node *node)
{
	return node->kind == NODE_SCALAR && !node->reference && node->text && *node->text &&
	       node->source && strncmp(node->source, "--set", 5) != 0;
}

/* Peers see it in each handshake. */
static bool is_certificate(const struct node *node)
{
	return node->text && strstr(node->text, "-----BEGIN CERTIFICATE-----") &&
	       !strstr(node->text, "PRIVATE KEY");
}

static void report_plain(struct lint *lint, const struct path *path, const struct node *at)
{
	char room[PATH_TEXT];
	report(lint, at, path_text(path, room), "%s", plain_secret);
}

/* A map of names to values, or a list of {name, value}. */
static void look_for_headers(struct lint *lint, const struct node *headers, const struct path *path)
{
	for (size_t i = 0; i < headers->count; i++) {
		const struct node *entry = headers->children[i], *name = node_get(entry, "name");
		struct path item = path_step(path, entry, i), value = { &item, "value", 0 };
		bool map = headers->kind == NODE_MAP;
		const char *key = map ? entry->key : name ? name->text : NULL;
		const struct node *secret = map ? entry : node_get(entry, "value");
		if (key && secret && secret_name_is(key) && is_plain(secret))
			report_plain(lint, map ? &item : &value, secret);
	}
}

/* A list of secrets, or one string that has them all. */
static void look_for_items(struct lint *lint, const struct node *list, const struct path *path)
{
	if (is_plain(list))
		report_plain(lint, path, list);
	for (size_t i = 0; i < list->count; i++) {
		struct path item = path_step(path, list->children[i], i);
		if (is_plain(list->children[i]))
			report_plain(lint, &item, list->children[i]);
	}
}

static void look_for_secrets(void *context, const struct config_spot *spot)
{
	const struct path path = { NULL, spot->path, 0 };
	if (!spot->given)
		return;
	if (spot->row->type == CONFIG_SECRET && is_plain(spot->node) && !is_certificate(spot->node))
		report_plain(context, &path, spot->node);
	else if (spot->row->type == CONFIG_SECRETS)
		look_for_items(context, spot->node, &path);
	else if (spot->row->type == CONFIG_PAIRS)
		look_for_headers(context, spot->node, &path);
}

static void find_plain_secrets(struct lint *lint)
{
	for (size_t i = 0; i < lint->inventory->count; i++)
		visit_declared(lint, &lint->inventory->at[i], look_for_secrets);
}

/* ---- unset-variable */

static void look_for_variables(struct lint *lint, const struct node *node, const struct path *path)
{
	char room[PATH_TEXT];
	lint->variable = node->unset;
	if (node->unset)
		report(lint, node, path_text(path, room),
		       "a reference without a default expands to nothing");
	lint->variable = NULL;
	for (size_t i = 0; i < node->count; i++) {
		struct path below = path_step(path, node->children[i], i);
		look_for_variables(lint, node->children[i], &below);
	}
}

static void find_unset_variables(struct lint *lint)
{
	const struct path top = { NULL, "", 0 };
	look_for_variables(lint, lint->inventory->root, &top);
}

/* ---- all of them */

const struct lint_check lint_checks[] = {
	{ "no-policy",
	  "A pipeline has neither `allowlist` nor `redaction` without `allow_all_keys`, and sends "
	  "to an exporter, so every attribute passes. A pipeline behind a connector needs none if "
	  "all pipelines that lead there have one. `require_policy` makes this an error.",
	  find_no_policy },
	{ "denied-attribute",
	  "The processor `resource` inserts an attribute that a later processor of the same "
	  "pipeline removes.",
	  find_denied_attributes },
	{ "otlp-to-parca",
	  "The endpoint of an OTLP exporter contains `parca` or `polarsignals`, or has Parca's "
	  "port 7070. Parca shows wrong function names for profiles that it gets by OTLP. Use the "
	  "exporter `parca`.",
	  find_otlp_to_parca },
	{ "open-listener",
	  "A receiver listens on every interface (`0.0.0.0`, `[::]` or no host) without `tls` "
	  "and without `auth`.",
	  find_open_listeners },
	{ "plain-secret",
	  "A password, token, key, or a header such as `authorization` is written out in the "
	  "configuration instead of being read with `${env:NAME}` or `${file:PATH}`.",
	  find_plain_secrets },
	{ "unset-variable",
	  "`${env:NAME}` has no default, and the environment variable is not set. The value is "
	  "then empty, as in the Collector: 0, `false`, or a string without this part. "
	  "`${env:NAME:-}` says that this is intended.",
	  find_unset_variables },
	{ 0 }
};

void lint_check_silence(const struct strings *ids, struct faults *faults)
{
	char valid[200] = "";
	for (const struct lint_check *check = lint_checks; check->id; check++)
		snprintf(valid + strlen(valid), sizeof valid - strlen(valid), "%s%s",
			 *valid ? ", " : "", check->id);
	for (size_t i = 0; i < ids->count; i++) {
		const struct lint_check *check = lint_checks;
		while (check->id && strcmp(check->id, ids->at[i]) != 0)
			check++;
		if (!check->id)
			faults_add(faults, "silence[%zu]: unknown warning (valid warnings: %s)", i,
				   valid);
	}
}

uint32_t lint_inventory(const struct inventory *inventory,
			void (*found)(void *context, const struct lint_finding *finding),
			void *context)
{
	struct lint lint = { .inventory = inventory, .found = found, .context = context };
	for (lint.check = lint_checks; lint.check->id; lint.check++)
		if (!config_lists(&inventory->service.silence, lint.check->id))
			lint.check->look(&lint);
	return lint.count;
}
