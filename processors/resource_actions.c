/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/resource_actions.h"

#include "base/ordinal.h"
#include "config/node.h"
#include "profile/profiles.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { VALUES_MAX = 500, BYTES_MAX = 16384 };

static const char *const verbs[VERB_COUNT] = { "insert", "update",  "upsert", "delete",
					       "hash",   "extract", "convert" };
static const char *const types[TYPE_COUNT] = { "int", "double", "string" };

static const struct config_row rows[] = {
	CONFIG_ROW(struct resource_action_config, key, .key = "key",
		   .help = "Key of the attribute."),
	CONFIG_ROW(struct resource_action_config, action, .key = "action",
		   .help = "`insert` (if absent), `update` (if present), `upsert`, `delete`, "
			   "`hash` (SHA-256 in hex), `extract` or `convert`."),
	CONFIG_ROW(struct resource_action_config, value, .key = "value",
		   .help = "For insert, update, upsert: a string, a number, a boolean, or a "
			   "list or map of these."),
	CONFIG_ROW(struct resource_action_config, from_attribute, .key = "from_attribute",
		   .help = "Takes the value from another attribute of the resource instead of "
			   "`value`. If that attribute is absent, nothing changes."),
	CONFIG_ROW(struct resource_action_config, from_context, .key = "from_context",
		   .help = "Takes the value from the request instead of `value`: "
			   "`metadata.<header>`, `client.address` or `auth.<attr>`. Several "
			   "values of a header are joined with `;`. Binary gRPC metadata "
			   "(`-bin`) is decoded; it counts as absent if it is not UTF-8. "
			   "`auth.<attr>` comes from the verified client certificate: "
			   "`auth.subject` (RFC 4514, in UTF-8), `auth.common_name` and, from "
			   "the subject alternative names, `auth.uri` (the SPIFFE ID), "
			   "`auth.email` and `auth.dns`. Several names are joined too, up to 32 "
			   "values of 1023 bytes. `auth.username` comes from `basicauth`. If the "
			   "source is absent, nothing changes."),
	CONFIG_ROW(struct resource_action_config, pattern, .key = "pattern",
		   .help = "A regular expression. For delete and hash, it is searched for in "
			   "keys. For extract, it has named groups and is searched for in the "
			   "value of `key`; each group becomes an attribute with the name of "
			   "the group. An expression that a hostile string could make expensive "
			   "is an error."),
	CONFIG_ROW(struct resource_action_config, converted_type, .key = "converted_type",
		   .help = "For convert: `int`, `double` or `string` (bytes become base64, "
			   "lists and maps JSON). A value that cannot be converted stays "
			   "unchanged."),
	{ 0 }
};

static const struct config_hint hints[] = { { "name", .use = "key" }, { 0 } };

const struct config_table resource_action_table = { sizeof(struct resource_action_config), rows,
						    NULL, .hints = hints };

static bool given(const char *text)
{
	return text && *text;
}

/* An action being checked. */
struct draft {
	const struct resource_action_config *config;
	const char *action;       /* its name as the Collector would print it */
	char which[ORDINAL_TEXT]; /* "first" */
	size_t index;
	int sources;
	struct faults *faults;
};

/* key: the one at fault, with ": "; "": the action as a whole. */
static bool refuse(const struct draft *d, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static bool refuse(const struct draft *d, const char *key, const char *format, ...)
{
	char text[300];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return faults_add(d->faults, "attributes[%zu]: %s%s", d->index, key, text);
}

static bool unused_source(const struct draft *d, bool pattern_too, const char *fields)
{
	if (!d->sources && !(pattern_too && given(d->config->pattern)))
		return true;
	return refuse(d, "", "the %s action, \"%s\", does not use %s", d->which, d->action, fields);
}

static bool unused_type(const struct draft *d)
{
	if (!given(d->config->converted_type))
		return true;
	return refuse(d, "converted_type: ", "the action \"%s\" does not use it", d->action);
}

static bool compile(const struct draft *d, struct resource_action *action)
{
	struct error why;
	action->pattern = regex_new(d->config->pattern, 0, &why);
	if (!action->pattern)
		return refuse(d, "pattern: ", "%s", why.text);
	return regex_check_cost(d->config->pattern, 0, &why) ||
	       refuse(d, "pattern: ", "%s", why.text);
}

static void init_context(struct resource_action *action, const char *from)
{
	static const char metadata[] = "metadata.", auth[] = "auth.";
	if (strcmp(from, "client.address") == 0) {
		action->source = SOURCE_CLIENT_ADDRESS;
	} else if (strncmp(from, auth, sizeof auth - 1) == 0) {
		action->source = SOURCE_AUTH;
		action->from = from + sizeof auth - 1;
	} else {
		/* Without prefix it is metadata too, as in the Collector. */
		bool prefixed = strncmp(from, metadata, sizeof metadata - 1) == 0;
		action->source = SOURCE_METADATA;
		action->from = prefixed ? from + sizeof metadata - 1 : from;
	}
}

static int depth_of(const struct node *node)
{
	int deepest = 0;
	for (size_t i = 0; i < node->count; i++) {
		int depth = depth_of(node->children[i]);
		deepest = depth > deepest ? depth : deepest;
	}
	return deepest + (node->kind == NODE_LIST || node->kind == NODE_MAP);
}

/* Of each request's tables the constants are a part. */
static bool fits(const struct node *node, int *values, size_t *bytes)
{
	++*values;
	*bytes += (node->key ? strlen(node->key) : 0) + (node->text ? strlen(node->text) : 0);
	for (size_t i = 0; i < node->count && *values <= VALUES_MAX; i++)
		fits(node->children[i], values, bytes);
	return *values <= VALUES_MAX && *bytes <= BYTES_MAX;
}

static bool check_tree(const struct draft *d, const struct node *tree)
{
	int values = 0;
	size_t bytes = 0;
	if (depth_of(tree) > VALUE_DEPTH_MAX)
		return refuse(d, "value: ", "is nested deeper than %d levels", VALUE_DEPTH_MAX);
	return fits(tree, &values, &bytes) ||
	       refuse(d, "value: ", "has more than %d values or %d bytes", VALUES_MAX, BYTES_MAX);
}

static bool init_setter(const struct draft *d, struct resource_action *action)
{
	const struct resource_action_config *c = d->config;
	if (!d->sources)
		return refuse(d, "",
			      "the %s action, \"%s\", requires \"value\", \"from_attribute\" or "
			      "\"from_context\"",
			      d->which, d->action);
	if (d->sources > 1)
		return refuse(d, "",
			      "the %s action has more than one of \"value\", \"from_attribute\" "
			      "and \"from_context\"",
			      d->which);
	if (given(c->pattern))
		return refuse(d, "pattern: ", "the action \"%s\" does not use it", d->action);
	if (c->value.kind == ANY_TREE && !check_tree(d, c->value.tree))
		return false;
	action->source = given(c->from_attribute) ? SOURCE_ATTRIBUTE : SOURCE_VALUE;
	action->from = c->from_attribute;
	action->value = &c->value;
	if (given(c->from_context))
		init_context(action, c->from_context);
	return unused_type(d);
}

static bool init_remover(const struct draft *d, struct resource_action *action)
{
	if (!unused_source(d, false, "\"value\", \"from_attribute\" or \"from_context\""))
		return false;
	if (given(d->config->pattern) && !compile(d, action))
		return false;
	return unused_type(d);
}

static bool init_extract(const struct draft *d, struct resource_action *action)
{
	if (!unused_source(d, false, "\"value\", \"from_attribute\" or \"from_context\""))
		return false;
	if (!given(d->config->pattern))
		return refuse(d, "", "the %s action, \"%s\", requires \"pattern\"", d->which,
			      d->action);
	if (!unused_type(d) || !compile(d, action))
		return false;
	if (!regex_groups(action->pattern))
		return refuse(d, "pattern: ", "must have a named group, as in (?P<name>...)");
	for (unsigned i = 1; i <= regex_groups(action->pattern); i++)
		if (!regex_group_name(action->pattern, i))
			return refuse(d, "pattern: ",
				      "each group must have a name, as in (?P<name>...)");
	return true;
}

static bool init_convert(const struct draft *d, struct resource_action *action)
{
	const char *type = d->config->converted_type;
	if (!unused_source(d, true,
			   "\"value\", \"from_attribute\", \"from_context\" or \"pattern\""))
		return false;
	if (!given(type))
		return refuse(d, "",
			      "the %s action, \"%s\", requires \"converted_type\"; use int, "
			      "double or string",
			      d->which, d->action);
	for (; action->type < TYPE_COUNT; action->type++)
		if (strcmp(type, types[action->type]) == 0)
			return true;
	return refuse(d, "converted_type: ", "must be int, double or string");
}

static bool check_key(const struct draft *d, enum resource_verb verb)
{
	if (given(d->config->key))
		return true;
	if (verb != VERB_DELETE && verb != VERB_HASH)
		return refuse(d, "", "the %s action requires \"key\"", d->which);
	if (given(d->config->pattern))
		return true;
	return refuse(d, "", "the %s action, \"%s\", requires \"key\" or \"pattern\"", d->which,
		      d->action);
}

bool resource_action_init(struct resource_action *action,
			  const struct resource_action_config *config, size_t index,
			  struct faults *faults)
{
	static bool (*const inits[VERB_COUNT])(const struct draft *, struct resource_action *) = {
		init_setter,  init_setter,  init_setter,  init_remover,
		init_remover, init_extract, init_convert,
	};
	const char *name = config->action ? config->action : "";
	*action = (struct resource_action){ .key = given(config->key) ? config->key : NULL };
	while (action->verb < VERB_COUNT && strcasecmp(name, verbs[action->verb]) != 0)
		action->verb++;
	struct draft d = {
		.config = config,
		.action = action->verb < VERB_COUNT ? verbs[action->verb] : name,
		.index = index,
		.sources = (config->value.kind != ANY_ABSENT) + given(config->from_attribute) +
			   given(config->from_context),
		.faults = faults,
	};
	ordinal_text(index, d.which);
	bool keyed = check_key(&d, action->verb);
	if (action->verb == VERB_COUNT)
		return refuse(&d, "action: ",
			      "must be insert, update, upsert, delete, hash, extract or convert");
	return inits[action->verb](&d, action) && keyed;
}

void resource_action_fini(struct resource_action *action)
{
	regex_unref(&action->pattern);
}
