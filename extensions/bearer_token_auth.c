/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "base/digest.h"
#include "base/memory.h"
#include "base/watched_file.h"
#include "pipeline/component.h"

/*
 * Bearer tokens (RFC 6750, section 2.1), with the keys of the Collector's extension. Servers accept
 * each of the tokens; clients send the first. Tokens are compared by their digests, in constant
 * time.
 */
struct bearer_config {
	char *scheme, *header, *filename;
	struct secret token;
	struct secrets tokens;
};

struct bearer_token_auth { /* refcounted: outlives the extension */
	struct authenticator authenticator;
	char *scheme, *header;
	char *path;
	struct watched_file file;
	struct log log;
	char *id;              /* of the log */
	pthread_rwlock_t lock; /* of the tokens */
	struct secrets tokens;
};

struct bearer_extension {
	struct bearer_token_auth *auth;
};

static void clear(struct secrets *tokens)
{
	for (size_t i = 0; i < tokens->list.count; i++)
		memory_free(tokens->list.at[i]);
	memory_free(tokens->list.at);
	*tokens = (struct secrets){ 0 };
}

static void add(struct secrets *tokens, const char *text, size_t len)
{
	struct strings *list = &tokens->list;
	while (len && strchr(" \t\r", text[len - 1]))
		len--;
	while (len && strchr(" \t", *text)) {
		text++;
		len--;
	}
	if (!len)
		return;
	list->at = memory_resize(list->at, (list->count + 1) * sizeof *list->at);
	list->at[list->count++] = memory_text_of((const uint8_t *)text, len);
}

/* One token on each line. */
static bool parse(const struct bytes *content, struct secrets *tokens, struct error *err)
{
	const char *at = (const char *)content->at, *end = at + content->len;
	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((line_end ? line_end : end) - at);
		add(tokens, at, len);
		at += len + 1;
	}
	return tokens->list.count || error_set(err, ERROR_CONFIG, "the file contains no token");
}

static void replace(struct bearer_token_auth *a, struct secrets *tokens)
{
	pthread_rwlock_wrlock(&a->lock);
	struct secrets old = a->tokens;
	a->tokens = *tokens;
	pthread_rwlock_unlock(&a->lock);
	clear(&old);
}

static void refresh(struct bearer_token_auth *a)
{
	struct bytes content;
	struct secrets fresh = { 0 };
	struct error err = { 0 };
	bytes_init(&content, WATCHED_FILE_MAX);
	enum watched_state state = watched_file_look(&a->file, &content, &err);
	if (state == WATCHED_CHANGED && parse(&content, &fresh, &err)) {
		replace(a, &fresh);
		log_info(&a->log, "Tokens were read again");
	} else if (state != WATCHED_SAME) {
		log_error(&a->log, "Failed to read the tokens again; keeping the current ones",
			  log_text("error", err.text));
	}
	bytes_fini(&content);
}

static bool is_known(struct bearer_token_auth *a, const char *token)
{
	uint8_t sent[DIGEST_SIZE], known[DIGEST_SIZE];
	bool found = false;
	digest_sha256(view_of(token), sent);
	pthread_rwlock_rdlock(&a->lock);
	for (size_t i = 0; i < a->tokens.list.count; i++) {
		digest_sha256(view_of(a->tokens.list.at[i]), known);
		found |= digest_equal(sent, known);
	}
	pthread_rwlock_unlock(&a->lock);
	return found;
}

/* What follows the scheme, whose case does not matter (RFC 9110, section 11.1); NULL: it is another
 * one. */
static const char *credentials(const char *value, const char *scheme)
{
	size_t len = strlen(scheme);
	if (!len)
		return value;
	if (strncasecmp(value, scheme, len) != 0 || value[len] != ' ')
		return NULL;
	return value + len + strspn(value + len, " ");
}

static bool bearer_authenticate(struct authenticator *authenticator,
				const struct auth_request *request, struct fields *identity,
				struct error *err)
{
	struct bearer_token_auth *a = (struct bearer_token_auth *)authenticator;
	bool repeated;
	const char *value = authenticator_header(request->headers, a->header, &repeated);
	const char *token = value ? credentials(value, a->scheme) : NULL;
	(void)identity;
	refresh(a);
	if (repeated)
		return error_set(err, ERROR_UNAUTHENTICATED, "the header %s is repeated",
				 a->header);
	if (!value)
		return error_set(err, ERROR_UNAUTHENTICATED, "missing or empty header: %s",
				 a->header);
	return (token && is_known(a, token)) ||
	       error_set(err, ERROR_UNAUTHENTICATED, "scheme or token does not match");
}

static bool add_token(struct bearer_token_auth *a, struct fields *out)
{
	pthread_rwlock_rdlock(&a->lock);
	const char *token = a->tokens.list.count ? a->tokens.list.at[0] : "";
	char *value = memory_format("%s%s%s", a->scheme, *a->scheme ? " " : "", token);
	pthread_rwlock_unlock(&a->lock);
	bool ok = fields_add(out, view_of(a->header), view_of(value), NULL);
	memory_free(value);
	return ok;
}

static bool bearer_decorate(struct authenticator *authenticator, const struct metadatum *context,
			    const struct metadatum *in, struct fields *out, struct error *err)
{
	struct bearer_token_auth *a = (struct bearer_token_auth *)authenticator;
	(void)context;
	(void)err;
	refresh(a);
	for (; in->name; in++)
		if (strcasecmp(in->name, a->header) != 0 &&
		    !fields_add(out, view_of(in->name), view_of(in->value), NULL))
			return false;
	return add_token(a, out);
}

static const char *bearer_challenge(struct authenticator *authenticator)
{
	struct bearer_token_auth *a = (struct bearer_token_auth *)authenticator;
	return strcasecmp(a->header, "authorization") == 0 && *a->scheme ? a->scheme : NULL;
}

static void bearer_free(struct authenticator *authenticator)
{
	struct bearer_token_auth *a = (struct bearer_token_auth *)authenticator;
	clear(&a->tokens);
	watched_file_fini(&a->file);
	pthread_rwlock_destroy(&a->lock);
	memory_free(a->scheme);
	memory_free(a->header);
	memory_free(a->path);
	memory_free(a->id);
	memory_free(a);
}

static const struct authenticator_ops authenticator_ops = {
	.challenge = bearer_challenge,
	.authenticate = bearer_authenticate,
	.decorate = bearer_decorate,
	.free = bearer_free,
};

static bool load(struct bearer_token_auth *a, const struct bearer_config *c, struct error *err)
{
	struct bytes content;
	if (!a->path) {
		if (c->token.text)
			add(&a->tokens, c->token.text, strlen(c->token.text));
		for (size_t i = 0; i < c->tokens.list.count; i++)
			add(&a->tokens, c->tokens.list.at[i], strlen(c->tokens.list.at[i]));
		return true;
	}
	bytes_init(&content, WATCHED_FILE_MAX);
	bool ok = watched_file_read(&a->file, &content, err) && parse(&content, &a->tokens, err);
	bytes_fini(&content);
	return ok || error_prefix(err, "filename");
}

static bool bearer_create(void *self, const void *config, const struct host *host,
			  struct error *err)
{
	struct bearer_extension *e = self;
	const struct bearer_config *c = config;
	struct bearer_token_auth *a = memory_new(sizeof *a);
	authenticator_init(&a->authenticator, &authenticator_ops);
	a->scheme = memory_text(c->scheme ? c->scheme : "");
	a->header = memory_text(c->header);
	a->path = c->filename && *c->filename ? memory_text(c->filename) : NULL;
	a->id = memory_text(host->id);
	a->log = host->log;
	a->log.component_id = a->id;
	pthread_rwlock_init(&a->lock, NULL);
	watched_file_init(&a->file, a->path);
	e->auth = a;
	return load(a, c, err);
}

static void bearer_destroy(void *self)
{
	struct bearer_extension *e = self;
	struct authenticator *a = e->auth ? &e->auth->authenticator : NULL;
	authenticator_unref(&a);
}

static struct authenticator *bearer_authenticator(void *self)
{
	return &((struct bearer_extension *)self)->auth->authenticator;
}

static bool bearer_reopen(void *self, struct error *err)
{
	struct bearer_token_auth *a = ((struct bearer_extension *)self)->auth;
	struct bytes content;
	struct secrets fresh = { 0 };
	if (!a->path)
		return true;
	bytes_init(&content, WATCHED_FILE_MAX);
	bool ok = watched_file_read(&a->file, &content, err) && parse(&content, &fresh, err);
	if (ok)
		replace(a, &fresh);
	bytes_fini(&content);
	return ok;
}

static void bearer_check(const void *config, struct faults *faults)
{
	const struct bearer_config *c = config;
	bool token = c->token.text && *c->token.text, tokens = c->tokens.list.count != 0;
	bool file = c->filename && *c->filename;
	if (!c->header || !*c->header)
		faults_add(faults, "header must not be empty");
	if (token && tokens)
		faults_add(faults, "either tokens or token should be specified, not both");
	if (!(token || tokens || file))
		faults_relate(faults, "token tokens filename",
			      "no bearer token provided: set token, tokens or filename");
}

static const struct config_row rows[] = {
	CONFIG_ROW(struct bearer_config, scheme, .key = "scheme", .def = "Bearer",
		   .help = "The scheme before the token; empty: none."),
	CONFIG_ROW(struct bearer_config, header, .key = "header", .def = "Authorization",
		   .help = "The header that contains the token."),
	CONFIG_ROW(struct bearer_config, token, .key = "token", .help = "The token."),
	CONFIG_ROW(struct bearer_config, tokens, .key = "tokens",
		   .help = "Several tokens. Servers accept each of them; clients send the first."),
	CONFIG_ROW(
		struct bearer_config, filename, .key = "filename",
		.help = "A file with one token on each line, instead of `token` and `tokens`. It "
			"is read again within a second of a change."),
	{ 0 }
};

static const struct config_table table = { sizeof(struct bearer_config), rows, bearer_check };

static const struct extension_ops bearer_ops = { .authenticator = bearer_authenticator };

const struct component_factory bearer_token_auth_extension = {
	.type = "bearertokenauth",
	.help = "Authenticates by bearer tokens: senders at receivers, and exporters at stores.",
	.manual =
		"Servers and clients name it in `auth.authenticator`. A server reads the token "
		"from the headers, before the body, and refuses other requests with 401 "
		"(`WWW-Authenticate: Bearer`) or UNAUTHENTICATED. Tokens are compared in constant "
		"time. If the file becomes unreadable or empty, the tokens that were read last "
		"stay valid, and an error is logged.\n",
	.kind = COMPONENT_EXTENSION,
	.extension = &bearer_ops,
	.size = sizeof(struct bearer_extension),
	.config = &table,
	.create = bearer_create,
	.destroy = bearer_destroy,
	.reopen = bearer_reopen,
};
