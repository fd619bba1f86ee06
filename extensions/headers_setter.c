/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/watched_file.h"
#include "pipeline/component.h"

/*
 * Sets headers of outgoing requests, with the keys of the Collector's extension. `from_context`
 * takes the value from the metadata of the requests that the data came from, and `from_attribute`
 * from the identity of their sender, which is metadata with the prefix "auth.". Batches on the way
 * to the exporter keep it (authenticator.context_keys).
 */
enum { HEADERS_MAX = 32 };

static const char *const actions[] = { "upsert", "insert", "update", "delete", NULL };
enum action { UPSERT, INSERT, UPDATE, DELETE };

struct header_config {
	char *key, *from_context, *from_attribute, *value_file;
	struct secret value, default_value;
	struct choice action;
};

struct setter_config {
	struct config_items headers;
	char *additional_auth;
};

struct header { /* strings of its own, but for `value`, which the lock of its file guards */
	char *key, *from_context, *default_value;
	enum action action;
	char *path, *value;
	struct watched_file file;
	pthread_rwlock_t lock;
};

struct headers_setter { /* refcounted: outlives the extension */
	struct authenticator authenticator;
	struct authenticator *additional; /* runs first; NULL: none */
	struct log log;
	char *id;
	struct header headers[HEADERS_MAX];
	size_t count;
	const char *context_keys[HEADERS_MAX + 1]; /* ends with NULL */
};

struct setter_extension {
	struct headers_setter *setter;
};

static bool set_value(struct header *h, const struct bytes *content, struct error *err)
{
	size_t len = content->len;
	while (len && strchr("\r\n", content->at[len - 1]))
		len--;
	if (memchr(content->at, '\0', len) || memchr(content->at, '\n', len))
		return error_set(err, ERROR_CONFIG, "%s is not one line of text", h->path);
	pthread_rwlock_wrlock(&h->lock);
	memory_free(h->value);
	h->value = memory_text_of(content->at, len);
	pthread_rwlock_unlock(&h->lock);
	return true;
}

static void refresh(struct headers_setter *s, struct header *h)
{
	struct bytes content;
	struct error err = { 0 };
	bytes_init(&content, WATCHED_FILE_MAX);
	enum watched_state state = watched_file_look(&h->file, &content, &err);
	if (state == WATCHED_CHANGED && set_value(h, &content, &err))
		log_info(&s->log, "A header's value was read again");
	else if (state != WATCHED_SAME)
		log_error(&s->log, "Failed to read a header's value again; keeping the current one",
			  log_text("error", err.text));
	bytes_fini(&content);
}

/* The header's value for this request, which the caller frees; NULL: it has none. */
static char *value_of(struct header *h, const struct metadatum *context)
{
	const char *value = NULL;
	for (; h->from_context && context && context->name; context++)
		if (!strcasecmp(context->name, h->from_context) && *context->value)
			value = context->value;
	if (h->from_context)
		return memory_text(value ? value : h->default_value);
	pthread_rwlock_rdlock(&h->lock);
	char *copy = memory_text(h->value);
	pthread_rwlock_unlock(&h->lock);
	return copy;
}

static bool has(const struct metadatum *headers, const char *key)
{
	for (; headers->name; headers++)
		if (!strcasecmp(headers->name, key))
			return true;
	return false;
}

/* Copies all headers but the one that is set or deleted. */
static bool apply(struct header *h, const struct metadatum *context, const struct metadatum *in,
		  struct fields *out)
{
	char *value = h->action == DELETE ? NULL : value_of(h, context);
	bool present = has(in, h->key);
	bool set = value && (h->action == UPSERT || (h->action == INSERT && !present) ||
			     (h->action == UPDATE && present));
	bool drop = set || h->action == DELETE, ok = true;
	for (; in->name && ok; in++)
		if (!drop || strcasecmp(in->name, h->key) != 0)
			ok = fields_add(out, view_of(in->name), view_of(in->value), NULL);
	if (set && ok)
		ok = fields_add(out, view_of(h->key), view_of(value), NULL);
	memory_free(value);
	return ok;
}

/* One list after the other: each header is set in a copy of the list before. */
static bool setter_decorate(struct authenticator *authenticator, const struct metadatum *context,
			    const struct metadatum *in, struct fields *out, struct error *err)
{
	struct headers_setter *s = (struct headers_setter *)authenticator;
	struct authenticator *first = s->additional;
	struct fields list, next;
	fields_init(&list, &authenticator_header_limits);
	bool ok = true;
	if (first && first->ops->decorate) {
		ok = first->ops->decorate(first, context, in, &list, err);
		in = ok ? fields_list(&list) : in;
	}
	for (size_t i = 0; i < s->count && ok; i++) {
		refresh(s, &s->headers[i]);
		fields_init(&next, &authenticator_header_limits);
		ok = apply(&s->headers[i], context, in, &next);
		in = fields_list(&next);
		fields_fini(&list);
		list = next;
	}
	for (; ok && in->name; in++)
		ok = fields_add(out, view_of(in->name), view_of(in->value), NULL);
	fields_fini(&list);
	return ok;
}

static void header_fini(struct header *h)
{
	char *const texts[] = { h->key, h->from_context, h->default_value, h->path, h->value };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		memory_free(texts[i]);
	watched_file_fini(&h->file);
	pthread_rwlock_destroy(&h->lock);
}

static void setter_free(struct authenticator *authenticator)
{
	struct headers_setter *s = (struct headers_setter *)authenticator;
	for (size_t i = 0; i < s->count; i++)
		header_fini(&s->headers[i]);
	authenticator_unref(&s->additional);
	memory_free(s->id);
	memory_free(s);
}

static const struct authenticator_ops authenticator_ops = { .decorate = setter_decorate,
							    .free = setter_free };

static bool read_value(struct header *h, struct error *err)
{
	struct bytes content;
	bytes_init(&content, WATCHED_FILE_MAX);
	bool ok = !h->path ||
		  (watched_file_read(&h->file, &content, err) && set_value(h, &content, err));
	bytes_fini(&content);
	return ok;
}

static bool is_given(const char *text)
{
	return text && *text;
}

static char *copy_given(const char *text)
{
	return text && *text ? memory_text(text) : NULL;
}

static bool add_header(struct headers_setter *s, const struct header_config *c, struct error *err)
{
	size_t index = s->count++;
	struct header *h = &s->headers[index];
	h->key = memory_text(c->key);
	h->action = (enum action)c->action.index;
	h->from_context = is_given(c->from_attribute)
				  ? memory_format(REQUEST_AUTH_PREFIX "%s", c->from_attribute)
				  : copy_given(c->from_context);
	h->default_value = copy_given(c->default_value.text);
	h->path = copy_given(c->value_file);
	h->value = copy_given(c->value.text);
	pthread_rwlock_init(&h->lock, NULL);
	watched_file_init(&h->file, h->path);
	return read_value(h, err) || error_prefix(err, "headers[%zu]::value_file", index);
}

static void list_keys(struct headers_setter *s)
{
	size_t count = 0;
	for (size_t i = 0; i < s->count; i++)
		if (s->headers[i].from_context)
			s->context_keys[count++] = s->headers[i].from_context;
	s->authenticator.context_keys = s->context_keys;
}

static bool setter_create(void *self, const void *config, const struct host *host,
			  struct error *err)
{
	struct setter_extension *e = self;
	const struct setter_config *c = config;
	const struct optional named = { c->additional_auth && *c->additional_auth };
	struct headers_setter *s = memory_new(sizeof *s);
	bool ok = true;
	e->setter = s;
	authenticator_init(&s->authenticator, &authenticator_ops);
	s->id = memory_text(host->id);
	s->log = host->log;
	s->log.component_id = s->id;
	s->additional = host_authenticator(host, &named, c->additional_auth);
	for (size_t i = 0; i < c->headers.count && ok; i++)
		ok = add_header(s, (const struct header_config *)c->headers.at + i, err);
	list_keys(s);
	return ok;
}

static void setter_destroy(void *self)
{
	struct setter_extension *e = self;
	struct authenticator *a = e->setter ? &e->setter->authenticator : NULL;
	authenticator_unref(&a);
}

static struct authenticator *setter_authenticator(void *self)
{
	return &((struct setter_extension *)self)->setter->authenticator;
}

static bool setter_reopen(void *self, struct error *err)
{
	struct headers_setter *s = ((struct setter_extension *)self)->setter;
	bool ok = true;
	for (size_t i = 0; i < s->count && ok; i++)
		ok = read_value(&s->headers[i], err);
	return ok;
}

#define SOURCES "value value_file from_context from_attribute"

static void header_check(const void *config, struct faults *faults)
{
	const struct header_config *c = config;
	bool of_sender = is_given(c->from_context) || is_given(c->from_attribute);
	int sources = is_given(c->value.text) + is_given(c->value_file) +
		      is_given(c->from_context) + is_given(c->from_attribute);
	if (is_given(c->from_attribute) && !strcasecmp(c->from_attribute, "raw"))
		faults_add(faults,
			   "from_attribute: the credentials of senders (raw) are not passed on");
	if (!is_given(c->key))
		faults_relate(faults, "key", "missing header name: key");
	if (c->action.index == DELETE)
		return;
	if (sources != 1)
		faults_relate(faults, SOURCES " action",
			      "exactly one of value, value_file, from_context and "
			      "from_attribute must be set");
	if (is_given(c->default_value.text) && !of_sender)
		faults_relate(faults, "from_context from_attribute",
			      "default_value requires from_context or from_attribute");
}

static void setter_check(const void *config, struct faults *faults)
{
	const struct setter_config *c = config;
	if (!c->headers.count)
		faults_add(faults, "headers must not be empty");
	if (c->headers.count > HEADERS_MAX)
		faults_add(faults, "headers: at most %d", (int)HEADERS_MAX);
}

static const struct config_row header_rows[] = {
	CONFIG_ROW(struct header_config, key, .key = "key", .help = "Name of the header."),
	CONFIG_ROW(struct header_config, action, .key = "action", .def = "upsert",
		   .choices = actions,
		   .help = "`insert` only if the header is absent, `update` only if it is present, "
			   "`upsert` in any case, or `delete`."),
	CONFIG_ROW(struct header_config, value, .key = "value", .help = "The value."),
	CONFIG_ROW(struct header_config, value_file, .key = "value_file",
		   .help = "A file with the value, read again when it changes."),
	CONFIG_ROW(struct header_config, from_context, .key = "from_context",
		   .help = "The metadata key whose value is taken. The receiver must set "
			   "`include_metadata`. Batches are split by it, as by `metadata_keys`."),
	CONFIG_ROW(struct header_config, default_value, .key = "default_value",
		   .help = "The value if the metadata key or attribute is absent or empty; "
			   "without it, the "
			   "header is not set."),
	CONFIG_ROW(
		struct header_config, from_attribute, .key = "from_attribute",
		.help = "The attribute of the sender's identity whose value is taken: `username` "
			"of `basicauth`, or `subject`, `common_name`, `uri`, `email` or `dns` of "
			"a verified client certificate; of several values the first. Batches "
			"are split by it. `raw` is an error: credentials are not passed on."),
	{ 0 }
};
static const struct config_hint header_hints[] = { { "name", .use = "key" }, { 0 } };
static const struct config_table header_table = { sizeof(struct header_config), header_rows,
						  header_check, .hints = header_hints };
static const struct config_row rows[] = {
	CONFIG_ITEMS(struct setter_config, headers, CONFIG_LIST, header_table, .key = "headers",
		     .help = "The headers, in the order in which they are set."),
	CONFIG_ROW(
		struct setter_config, additional_auth, .key = "additional_auth",
		.help = "ID of another authenticator, which adds its headers first. It must come "
			"first in `service::extensions`."),
	{ 0 }
};
static const struct config_table table = { sizeof(struct setter_config), rows, setter_check };

static const struct extension_ops setter_ops = { .authenticator = setter_authenticator };

const struct component_factory headers_setter_extension = {
	.type = "headers_setter",
	.help = "Sets headers of an exporter's requests, also from the metadata of senders.",
	.manual = "Exporters name it in `auth.authenticator`. The configured `headers` of the "
		  "exporter are present before the first action.\n",
	.kind = COMPONENT_EXTENSION,
	.extension = &setter_ops,
	.size = sizeof(struct setter_extension),
	.config = &table,
	.create = setter_create,
	.destroy = setter_destroy,
	.reopen = setter_reopen,
};
