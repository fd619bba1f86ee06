/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/watched_file.h"
#include "extensions/htpasswd.h"
#include "pipeline/component.h"

/*
 * HTTP basic authentication (RFC 7617), with the keys of the Collector's extension. Servers check
 * against a password file; clients send one user and password.
 *
 * A slow hash such as bcrypt takes tens of milliseconds, on the thread that serves other
 * connections too. Passwords that matched are therefore remembered, by a keyed digest, and slow
 * checks may take a tenth of the time of one thread, in bursts of SLOW_BURST_NS / 10. Beyond that,
 * senders get a retry hint.
 */
enum { REMEMBERED = 256, CREDENTIALS_MAX = 1024 };

#define SLOW_SHARE 10
#define SLOW_BURST_NS UINT64_C(2000000000)

struct htpasswd_config {
	struct optional present;
	char *file;
	struct secret inline_text;
};

struct client_auth_config {
	struct optional present;
	char *username, *username_file, *password_file;
	struct secret password;
};

struct basic_config {
	struct htpasswd_config htpasswd;
	struct client_auth_config client;
};

struct basic_auth { /* refcounted: outlives the extension */
	struct authenticator authenticator;
	char *id, *path, *username_path, *password_path, *inline_text, *username, *password;
	bool server;
	struct log log;
	struct watched_file file, username_file, password_file;
	struct digest_key key; /* of remembered credentials */
	pthread_rwlock_t lock; /* of the passwords, the username and the password */
	struct htpasswd *passwords;
	pthread_mutex_t memory; /* of all that follows */
	uint8_t remembered[REMEMBERED][DIGEST_SIZE];
	uint32_t remembered_next;
	/* clock_now: when the slow checks so far have had their share of the time */
	uint64_t slow_until;
};

struct basic_extension {
	struct basic_auth *auth;
};

/* ---- what was read ---- */

/* The content of the file, followed by the inline text, which has precedence in the Collector too:
 * the first entry of a user counts. */
static bool set_passwords(struct basic_auth *a, const struct bytes *content, struct error *err)
{
	struct bytes all;
	size_t more = content ? content->len : 0;
	bytes_init(&all, more + strlen(a->inline_text) + 1);
	bytes_add_text(&all, a->inline_text);
	bytes_add_byte(&all, '\n');
	if (content)
		bytes_add(&all, content->at, content->len);
	struct htpasswd *fresh = htpasswd_new(bytes_view(&all), err);
	bytes_fini(&all);
	if (!fresh)
		return error_prefix(err, "htpasswd");
	pthread_rwlock_wrlock(&a->lock);
	struct htpasswd *old = a->passwords;
	a->passwords = fresh;
	pthread_rwlock_unlock(&a->lock);
	htpasswd_unref(&old);
	return true;
}

static bool set_text(struct basic_auth *a, char **slot, const struct bytes *content,
		     struct error *err)
{
	size_t len = content->len;
	while (len && strchr("\r\n \t", content->at[len - 1]))
		len--;
	if (!len || memchr(content->at, '\0', len))
		return error_set(err, ERROR_CONFIG, "client_auth: the file is empty or not text");
	pthread_rwlock_wrlock(&a->lock);
	memory_free(*slot);
	*slot = memory_text_of(content->at, len);
	pthread_rwlock_unlock(&a->lock);
	return true;
}

static bool take(struct basic_auth *a, struct watched_file *file, const struct bytes *content,
		 struct error *err)
{
	if (file == &a->file)
		return set_passwords(a, content, err);
	return set_text(a, file == &a->username_file ? &a->username : &a->password, content, err);
}

static void refresh(struct basic_auth *a)
{
	struct watched_file *const files[] = { &a->file, &a->username_file, &a->password_file };
	struct bytes content;
	bytes_init(&content, WATCHED_FILE_MAX);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct error err = { 0 };
		enum watched_state state = watched_file_look(files[i], &content, &err);
		if (state == WATCHED_CHANGED && take(a, files[i], &content, &err))
			log_info(&a->log, "Credentials were read again");
		else if (state != WATCHED_SAME)
			log_error(&a->log,
				  "Failed to read the credentials again; keeping the current ones",
				  log_text("error", err.text));
	}
	bytes_fini(&content);
}

/* Each file, whether it has changed or not. */
static bool read_files(struct basic_auth *a, struct error *err)
{
	static const char *const keys[] = { "htpasswd::file", "client_auth::username_file",
					    "client_auth::password_file" };
	struct watched_file *const files[] = { &a->file, &a->username_file, &a->password_file };
	struct bytes content;
	bool ok = true;
	bytes_init(&content, WATCHED_FILE_MAX);
	for (size_t i = 0; ok && i < sizeof files / sizeof *files; i++)
		if (files[i]->path)
			ok = (watched_file_read(files[i], &content, err) ||
			      error_prefix(err, "%s", keys[i])) &&
			     take(a, files[i], &content, err);
	bytes_fini(&content);
	return ok;
}

/* ---- servers ---- */

static bool is_remembered(struct basic_auth *a, const uint8_t digest[DIGEST_SIZE])
{
	bool found = false;
	pthread_mutex_lock(&a->memory);
	for (size_t i = 0; i < REMEMBERED; i++)
		found |= digest_equal(a->remembered[i], digest);
	pthread_mutex_unlock(&a->memory);
	return found;
}

static void remember(struct basic_auth *a, const uint8_t digest[DIGEST_SIZE])
{
	pthread_mutex_lock(&a->memory);
	memcpy(a->remembered[a->remembered_next++ % REMEMBERED], digest, DIGEST_SIZE);
	pthread_mutex_unlock(&a->memory);
}

static bool may_take_long(struct basic_auth *a)
{
	pthread_mutex_lock(&a->memory);
	bool may = a->slow_until <= clock_now() + SLOW_BURST_NS;
	pthread_mutex_unlock(&a->memory);
	return may;
}

static void took_long(struct basic_auth *a, uint64_t since)
{
	uint64_t now = clock_now();
	pthread_mutex_lock(&a->memory);
	if (a->slow_until < now)
		a->slow_until = now;
	a->slow_until += SLOW_SHARE * (now - since);
	pthread_mutex_unlock(&a->memory);
}

/* The user's hash is copied: a check may take long. */
static char *hash_of(struct basic_auth *a, const char *user)
{
	pthread_rwlock_rdlock(&a->lock);
	const char *hash = a->passwords ? htpasswd_find(a->passwords, user) : NULL;
	char *copy = memory_text(hash);
	pthread_rwlock_unlock(&a->lock);
	return copy;
}

/* What is remembered of a match: with the hash, so that it ends when the password changes. */
static void digest_of(const struct basic_auth *a, const char *hash, struct view credentials,
		      uint8_t digest[DIGEST_SIZE])
{
	struct bytes text;
	bytes_init(&text, strlen(hash) + 1 + credentials.len);
	bytes_add(&text, hash, strlen(hash) + 1);
	bytes_add(&text, credentials.at, credentials.len);
	digest_hmac(&a->key, bytes_view(&text), digest);
	bytes_fini(&text);
}

static bool check_slowly(struct basic_auth *a, const char *hash, const char *password,
			 struct view credentials, struct error *err)
{
	uint8_t digest[DIGEST_SIZE];
	digest_of(a, hash, credentials, digest);
	if (is_remembered(a, digest))
		return true;
	if (!may_take_long(a))
		return error_set(err, ERROR_BUSY, "too many passwords to check; try again later");
	uint64_t since = clock_now();
	bool ok = htpasswd_matches(hash, password);
	took_long(a, since);
	if (ok)
		remember(a, digest);
	return ok;
}

static bool check_password(struct basic_auth *a, const char *user, const char *password,
			   struct view credentials, struct error *err)
{
	char *hash = hash_of(a, user);
	bool ok =
		hash && (htpasswd_is_slow(hash) ? check_slowly(a, hash, password, credentials, err)
						: htpasswd_matches(hash, password));
	memory_free(hash);
	if (!ok && err->kind != ERROR_BUSY)
		error_set(err, ERROR_UNAUTHENTICATED, "invalid credentials");
	return ok;
}

static bool check_credentials(struct basic_auth *a, struct bytes *credentials,
			      struct fields *identity, struct error *err)
{
	char *colon = memchr(credentials->at, ':', credentials->len);
	if (!colon || memchr(credentials->at, '\0', credentials->len))
		return error_set(err, ERROR_UNAUTHENTICATED, "invalid credentials");
	struct view whole = bytes_view(credentials);
	char *user = memory_text_of(whole.at, (size_t)(colon - (const char *)whole.at));
	char *password = memory_text_of(colon + 1, whole.len - strlen(user) - 1);
	bool ok = check_password(a, user, password, whole, err) &&
		  fields_add(identity, view_of("username"), view_of(user), err);
	memory_free(user);
	memory_free(password);
	return ok;
}

static bool basic_authenticate(struct authenticator *authenticator,
			       const struct auth_request *request, struct fields *identity,
			       struct error *err)
{
	struct basic_auth *a = (struct basic_auth *)authenticator;
	struct bytes credentials;
	bool repeated;
	const char *value = authenticator_header(request->headers, "authorization", &repeated);
	refresh(a);
	if (!value)
		return error_set(err, ERROR_UNAUTHENTICATED, "%s",
				 repeated ? "the header authorization is repeated"
					  : "missing or empty header: authorization");
	if (strncasecmp(value, "basic ", 6) != 0)
		return error_set(err, ERROR_UNAUTHENTICATED, "the scheme must be Basic");
	bytes_init(&credentials, CREDENTIALS_MAX);
	bool ok = base64_decode(&credentials, view_of(value + 6 + strspn(value + 6, " "))) &&
				  credentials.len
			  ? check_credentials(a, &credentials, identity, err)
			  : error_set(err, ERROR_UNAUTHENTICATED, "invalid credentials");
	bytes_fini(&credentials);
	return ok;
}

static const char *basic_challenge(struct authenticator *authenticator)
{
	(void)authenticator;
	return "Basic realm=\"portcullis\", charset=\"UTF-8\"";
}

/* ---- clients ---- */

static bool add_credentials(struct basic_auth *a, struct fields *out)
{
	struct bytes value;
	pthread_rwlock_rdlock(&a->lock);
	char *plain = memory_format("%s:%s", a->username, a->password);
	pthread_rwlock_unlock(&a->lock);
	bytes_init(&value, 2 * strlen(plain) + 16);
	bool ok = bytes_add_text(&value, "Basic ") && base64_add(&value, view_of(plain), true) &&
		  fields_add(out, view_of("authorization"), bytes_view(&value), NULL);
	bytes_fini(&value);
	memory_free(plain);
	return ok;
}

static bool basic_decorate(struct authenticator *authenticator, const struct metadatum *context,
			   const struct metadatum *in, struct fields *out, struct error *err)
{
	struct basic_auth *a = (struct basic_auth *)authenticator;
	(void)context;
	(void)err;
	refresh(a);
	for (; in->name; in++)
		if (strcasecmp(in->name, "authorization") != 0 &&
		    !fields_add(out, view_of(in->name), view_of(in->value), NULL))
			return false;
	return add_credentials(a, out);
}

/* ---- life ---- */

static void basic_free(struct authenticator *authenticator)
{
	struct basic_auth *a = (struct basic_auth *)authenticator;
	char *const texts[] = { a->id,          a->path,     a->username_path, a->password_path,
				a->inline_text, a->username, a->password };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		memory_free(texts[i]);
	htpasswd_unref(&a->passwords);
	watched_file_fini(&a->file);
	watched_file_fini(&a->username_file);
	watched_file_fini(&a->password_file);
	pthread_rwlock_destroy(&a->lock);
	pthread_mutex_destroy(&a->memory);
	memory_free(a);
}

/* What only one side can do is NULL for the other. */
static const struct authenticator_ops server_ops = { .challenge = basic_challenge,
						     .authenticate = basic_authenticate,
						     .free = basic_free };
static const struct authenticator_ops client_ops = { .decorate = basic_decorate,
						     .free = basic_free };

static char *copy_given(const char *text)
{
	return text && *text ? memory_text(text) : NULL;
}

static bool basic_create(void *self, const void *config, const struct host *host, struct error *err)
{
	struct basic_extension *e = self;
	const struct basic_config *c = config;
	struct basic_auth *a = memory_new(sizeof *a);
	uint8_t seed[DIGEST_SIZE];
	hash_random(seed, sizeof seed);
	a->server = c->htpasswd.present.enabled;
	authenticator_init(&a->authenticator, a->server ? &server_ops : &client_ops);
	digest_key_init(&a->key, (struct view){ seed, sizeof seed });
	a->id = memory_text(host->id);
	a->log = host->log;
	a->log.component_id = a->id;
	a->path = copy_given(c->htpasswd.file);
	a->inline_text =
		memory_text(c->htpasswd.inline_text.text ? c->htpasswd.inline_text.text : "");
	a->username_path = copy_given(c->client.username_file);
	a->password_path = copy_given(c->client.password_file);
	a->username = memory_text(c->client.username ? c->client.username : "");
	a->password = memory_text(c->client.password.text ? c->client.password.text : "");
	pthread_rwlock_init(&a->lock, NULL);
	pthread_mutex_init(&a->memory, NULL);
	watched_file_init(&a->file, a->path);
	watched_file_init(&a->username_file, a->username_path);
	watched_file_init(&a->password_file, a->password_path);
	e->auth = a;
	return read_files(a, err) && (!a->server || a->passwords || set_passwords(a, NULL, err));
}

static void basic_destroy(void *self)
{
	struct basic_extension *e = self;
	struct authenticator *a = e->auth ? &e->auth->authenticator : NULL;
	authenticator_unref(&a);
}

static struct authenticator *basic_authenticator(void *self)
{
	return &((struct basic_extension *)self)->auth->authenticator;
}

static bool basic_reopen(void *self, struct error *err)
{
	return read_files(((struct basic_extension *)self)->auth, err);
}

static bool is_given(const char *text)
{
	return text && *text;
}

static void basic_check(const void *config, struct faults *faults)
{
	const struct basic_config *c = config;
	bool server = c->htpasswd.present.enabled, client = c->client.present.enabled;
	if (server && client)
		faults_add(faults, "only one of htpasswd and client_auth can be set");
	if (!server && !client)
		faults_relate(faults, "htpasswd client_auth",
			      "htpasswd or client_auth must be set");
	if (server && !is_given(c->htpasswd.file) && !is_given(c->htpasswd.inline_text.text))
		faults_relate(faults, "htpasswd::file htpasswd::inline",
			      "htpasswd: file or inline must be set");
	if (client && !is_given(c->client.username) && !is_given(c->client.username_file))
		faults_relate(faults, "client_auth::username client_auth::username_file",
			      "client_auth: username or username_file must be set");
}

static const struct config_row htpasswd_rows[] = {
	CONFIG_ROW(struct htpasswd_config, file, .key = "file",
		   .help = "A password file, as htpasswd writes it. It is read again within a "
			   "second of a change."),
	CONFIG_ROW(struct htpasswd_config, inline_text, .key = "inline",
		   .help = "Lines of the same form. They override those of the file."),
	{ 0 }
};
static const struct config_table htpasswd_table = { sizeof(struct htpasswd_config), htpasswd_rows,
						    .optional = true };
static const struct config_row client_rows[] = {
	CONFIG_ROW(struct client_auth_config, username, .key = "username", .help = "The user."),
	CONFIG_ROW(struct client_auth_config, password, .key = "password", .help = "The password."),
	CONFIG_ROW(struct client_auth_config, username_file, .key = "username_file",
		   .help = "A file with the user, instead of `username`; read again when it "
			   "changes."),
	CONFIG_ROW(struct client_auth_config, password_file, .key = "password_file",
		   .help = "A file with the password, instead of `password`; read again when it "
			   "changes."),
	{ 0 }
};
static const struct config_table client_table = { sizeof(struct client_auth_config), client_rows,
						  .optional = true };
static const struct config_row rows[] = {
	CONFIG_SECTION(struct basic_config, htpasswd, htpasswd_table, .key = "htpasswd",
		       .presence = PRESENCE_NONE, .help = "For servers: the users and passwords."),
	CONFIG_SECTION(struct basic_config, client, client_table, .key = "client_auth",
		       .presence = PRESENCE_NONE, .help = "For clients: what they send."),
	{ 0 }
};
static const struct config_table table = { sizeof(struct basic_config), rows, basic_check };

static const struct extension_ops basic_ops = { .authenticator = basic_authenticator };

const struct component_factory basic_auth_extension = {
	.type = "basicauth",
	.help = "HTTP basic authentication: of senders by a password file, or at stores.",
	.manual =
		"Servers and clients name it in `auth.authenticator`. Accepted hashes are bcrypt "
		"(up to a cost of 12), SHA-256 and SHA-512 crypt, MD5 (`$1$`, `$apr1$`), `{SHA}` "
		"and `{SSHA}`. Other values are plain passwords, unless they begin with `$`. "
		"bcrypt and crypt hashes are slow to check on purpose. A password that matched is "
		"remembered until its hash changes. Slow checks get a tenth of the time of one "
		"thread; beyond that, requests are refused with a retry hint.\n\nThe identity has "
		"the attribute `auth.username`.\n",
	.kind = COMPONENT_EXTENSION,
	.extension = &basic_ops,
	.size = sizeof(struct basic_extension),
	.config = &table,
	.create = basic_create,
	.destroy = basic_destroy,
	.reopen = basic_reopen,
};
