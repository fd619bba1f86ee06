/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/pprof_targets.h"

#include "base/memory.h"
#include "config/load.h"
#include "net/fields.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* As for the attributes of pprof's server. */
static const struct fields_limits label_limits = {
	.count = 64, .name = 256, .value = 4096, .total = 16384
};

enum { ADDRESS_MAX = 300 };

/* ---- one target ---- */

struct pprof_target *pprof_target_ref(struct pprof_target *target)
{
	atomic_fetch_add(&target->refs, 1);
	return target;
}

void pprof_target_unref(struct pprof_target **slot)
{
	struct pprof_target *target = *slot;
	*slot = NULL;
	if (target && atomic_fetch_sub(&target->refs, 1) == 1)
		memory_free(target);
}

int pprof_target_compare(const struct pprof_target *a, const struct pprof_target *b)
{
	if (a->identity.high != b->identity.high)
		return a->identity.high < b->identity.high ? -1 : 1;
	return a->identity.low < b->identity.low ? -1 : a->identity.low > b->identity.low;
}

static char *copy(char **end, const char *text)
{
	size_t size = strlen(text) + 1;
	char *at = memcpy(*end, text, size);
	*end += size;
	return at;
}

/* "host", "host:port", "[address]:port" */
static void put_host(char *at, const char *place)
{
	size_t bracket = *place == '[';
	size_t len = strcspn(place + bracket, bracket ? "]" : ":");
	memcpy(at, place + bracket, len);
}

/* One block: the struct, the attributes, and their strings, of which `text` is the size. The
 * strings that are hashed come last. */
static struct pprof_target *target_new(const char *base, const struct metadatum *attributes)
{
	size_t count = 0, text = strlen(base) + 1;
	for (; attributes[count].name; count++)
		text += strlen(attributes[count].name) + strlen(attributes[count].value) + 2;
	size_t arrays = sizeof(struct pprof_target) + (count + 1) * sizeof(struct metadatum);
	size_t head = arrays + strlen(base) + 1;
	struct pprof_target *t = memory_new(head + text);
	struct metadatum *copies = (struct metadatum *)(t + 1);
	char *end = (char *)t + head;
	t->refs = 1;
	t->bytes = head + text;
	t->base = copy(&end, base);
	t->place = strstr(t->base, "://") + 3;
	t->host = (char *)t + arrays;
	put_host((char *)t + arrays, t->place);
	t->attributes = copies;
	for (size_t i = 0; i < count; i++) {
		copies[i].name = copy(&end, attributes[i].name);
		copies[i].value = copy(&end, attributes[i].value);
	}
	t->identity = hash_bytes_128((char *)t + head, text);
	return t;
}

/* ---- lists ---- */

static void push(struct pprof_targets *list, struct pprof_target *target)
{
	if (list->count == list->room) {
		list->room = list->room ? list->room * 2 : 16;
		list->at = memory_resize(list->at, list->room * sizeof(struct pprof_target *));
	}
	list->at[list->count++] = target;
	list->bytes += target->bytes + sizeof(struct pprof_target *);
}

static void cut(struct pprof_targets *list, size_t count)
{
	while (list->count > count) {
		struct pprof_target *last = list->at[--list->count];
		list->bytes -= last->bytes + sizeof(struct pprof_target *);
		pprof_target_unref(&last);
	}
}

void pprof_targets_join(struct pprof_targets *list, const struct pprof_targets *more)
{
	for (size_t i = 0; i < more->count; i++)
		push(list, pprof_target_ref(more->at[i]));
}

static int compare(const void *a, const void *b)
{
	return pprof_target_compare(*(struct pprof_target *const *)a,
				    *(struct pprof_target *const *)b);
}

void pprof_targets_sort(struct pprof_targets *list)
{
	size_t kept = 0;
	if (list->count)
		qsort(list->at, list->count, sizeof(struct pprof_target *), compare);
	list->bytes = 0;
	for (size_t i = 0; i < list->count; i++) {
		struct pprof_target *target = list->at[i];
		if (kept && !pprof_target_compare(list->at[kept - 1], target)) {
			pprof_target_unref(&target);
			continue;
		}
		list->at[kept++] = target;
		list->bytes += target->bytes + sizeof(struct pprof_target *);
	}
	list->count = kept;
}

void pprof_targets_fini(struct pprof_targets *list)
{
	cut(list, 0);
	memory_free(list->at);
	*list = (struct pprof_targets){ 0 };
}

/* ---- groups ---- */

/* One group while it is read. */
struct group {
	const struct pprof_targets_defaults *defaults;
	const char *scheme, *job, *instance; /* instance NULL: host:port */
	bool has_service;
	struct fields labels;
	size_t index;
	const char *root; /* the key of the list of groups; NULL: it has none */
	struct faults *faults;
};

/* key: that in the group, or "". */
static bool refuse(const struct group *g, const char *key, const char *what)
{
	if (g->root)
		return faults_add(g->faults, "%s[%zu]%s%s: %s", g->root, g->index, *key ? "::" : "",
				  key, what);
	return faults_add(g->faults, "group %zu: %s%s%s", g->index, key, *key ? ": " : "", what);
}

static bool refuse_item(const struct group *g, const char *list, size_t index, const char *what)
{
	char key[32];
	snprintf(key, sizeof key, "%s[%zu]", list, index);
	return refuse(g, key, what);
}

static bool is_address(const char *text)
{
	size_t len = strlen(text);
	bool host = len > 0 && len <= ADDRESS_MAX && *text != ':';
	for (size_t i = 0; host && i < len; i++)
		host = isalnum((unsigned char)text[i]) || strchr(".-_:[]", text[i]);
	return host;
}

static bool is_scheme(const char *text)
{
	return !strcmp(text, "http") || !strcmp(text, "https");
}

static bool take_label(struct group *g, const struct node *label, size_t index)
{
	struct error why;
	const char *name = label->key, *value = label->text;
	if (label->kind != NODE_SCALAR)
		return refuse_item(g, "labels", index, "a value is not a string");
	if (strlen(value) > label_limits.value)
		return refuse_item(g, "labels", index, "a value has more than 4096 bytes");
	if (!strcmp(name, "__scheme__")) {
		g->scheme = value;
		return is_scheme(value) ||
		       refuse_item(g, "labels", index, "__scheme__ must be http or https");
	}
	if (!strncmp(name, "__", 2) || !*value)
		return true;
	if (!strcmp(name, "job")) {
		g->job = value;
		return true;
	}
	if (!strcmp(name, "instance")) {
		g->instance = value;
		return true;
	}
	g->has_service = g->has_service || !strcmp(name, "service.name");
	return fields_add(&g->labels, view_of(name), view_of(value), &why) ||
	       refuse_item(g, "labels", index, why.text);
}

static bool add_target(struct pprof_targets *list, struct group *g, const char *address)
{
	const struct metadatum *labels = fields_list(&g->labels);
	struct metadatum attributes[PPROF_TARGET_ATTRIBUTES];
	size_t count = 0;
	if (list->count >= g->defaults->max)
		return faults_relate(g->faults, g->root ? "max_targets" : "",
				     "%s%smore than max_targets (%zu)", g->root ? g->root : "",
				     g->root ? ": " : "", g->defaults->max);
	if (!g->has_service)
		attributes[count++] = (struct metadatum){ "service.name", g->job };
	attributes[count++] =
		(struct metadatum){ "service.instance.id", g->instance ? g->instance : address };
	for (; labels->name; labels++)
		attributes[count++] = *labels;
	attributes[count] = (struct metadatum){ 0 };
	char *base = memory_format("%s://%s", g->scheme, address);
	push(list, target_new(base, attributes));
	memory_free(base);
	return true;
}

static bool add_targets(struct pprof_targets *list, struct group *g, const struct node *targets)
{
	bool ok = true;
	if (!targets || targets->kind != NODE_LIST)
		return refuse(g, "targets", "not a list");
	for (size_t i = 0; i < targets->count; i++) {
		const struct node *target = targets->children[i];
		if (target->kind != NODE_SCALAR || !is_address(target->text))
			ok = refuse_item(g, "targets", i, "must be host:port");
		else if (!add_target(list, g, target->text))
			return false;
	}
	return ok;
}

static bool check_keys(const struct group *g, const struct node *map)
{
	if (map->kind != NODE_MAP)
		return refuse(g, "", "not a map of targets and labels");
	for (size_t i = 0; i < map->count; i++)
		if (strcmp(map->children[i]->key, "targets") &&
		    strcmp(map->children[i]->key, "labels"))
			return refuse(g, "", "has a key that is neither targets nor labels");
	return true;
}

static bool add_group(struct pprof_targets *list, struct group *g, const struct node *map)
{
	const struct node *labels = node_get(map, "labels");
	if (!check_keys(g, map))
		return false;
	if (labels && labels->kind != NODE_MAP && labels->kind != NODE_NULL)
		return refuse(g, "labels", "not a map");
	bool ok = true;
	for (size_t i = 0; labels && i < labels->count; i++)
		ok &= take_label(g, labels->children[i], i);
	return add_targets(list, g, node_get(map, "targets")) && ok;
}

static void add_groups(struct pprof_targets *list, const struct node *groups, const char *root,
		       const struct pprof_targets_defaults *defaults, struct faults *faults)
{
	if (groups->kind != NODE_LIST && groups->kind != NODE_NULL) {
		faults_add(faults, "%s%snot a list of groups of targets", root ? root : "",
			   root ? ": " : "");
		return;
	}
	for (size_t i = 0; i < groups->count; i++) {
		struct group g = { .defaults = defaults,
				   .scheme = defaults->scheme,
				   .job = defaults->job,
				   .index = i,
				   .root = root,
				   .faults = faults };
		fields_init(&g.labels, &label_limits);
		add_group(list, &g, groups->children[i]);
		fields_fini(&g.labels);
	}
}

bool pprof_targets_add(struct pprof_targets *list, const struct node *groups,
		       const struct pprof_targets_defaults *defaults, struct error *err)
{
	struct problems problems = { 0 };
	struct faults faults = { .path = "", .problems = &problems };
	size_t before = list->count;
	add_groups(list, groups, NULL, defaults, &faults);
	if (problems_end(&problems, err))
		return true;
	cut(list, before);
	return false;
}

void pprof_targets_check(const struct node *groups, const char *key,
			 const struct pprof_targets_defaults *defaults, struct faults *faults)
{
	struct pprof_targets list = { 0 };
	add_groups(&list, groups, key, defaults, faults);
	pprof_targets_fini(&list);
}

bool pprof_targets_parse(struct pprof_targets *list, struct view text,
			 const struct pprof_targets_defaults *defaults, struct error *err)
{
	struct error unshown; /* its text may repeat what is in the file */
	struct node *root = config_parse("targets", (const char *)text.at, text.len, &unshown);
	bool ok = root ? pprof_targets_add(list, root, defaults, err)
		       : error_set(err, ERROR_CONFIG, "neither YAML nor JSON");
	node_unref(&root);
	return ok;
}

bool pprof_targets_add_url(struct pprof_targets *list, const char *url,
			   const struct pprof_targets_defaults *defaults, struct error *err)
{
	const char *colon = strstr(url, "://");
	struct problems problems = { 0 };
	struct faults faults = { .path = "", .problems = &problems };
	struct group g = { .defaults = defaults, .job = defaults->job, .faults = &faults };
	char scheme[8] = { 0 }, address[ADDRESS_MAX + 1] = { 0 };
	if (colon && colon - url < (long)sizeof scheme) {
		for (size_t i = 0; url + i < colon; i++)
			scheme[i] = (char)tolower((unsigned char)url[i]);
		size_t len = strcspn(colon + 3, "/?#");
		if (len <= ADDRESS_MAX)
			memcpy(address, colon + 3, len);
	}
	if (!is_scheme(scheme) || !is_address(address))
		return error_set(err, ERROR_CONFIG, "must be http:// or https://, with host:port");
	g.scheme = scheme;
	fields_init(&g.labels, &label_limits);
	add_target(list, &g, address);
	fields_fini(&g.labels);
	return problems_end(&problems, err);
}
