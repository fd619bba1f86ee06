/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/memory.h"
#include "pipeline/component.h"

/*
 * Accepts senders by the names in their client certificate, which TLS has verified
 * (`client_ca_file`). Without names, any verified certificate is accepted.
 */
struct names {
	struct strings subjects, common_names, uris, emails, dns;
};

struct certificate_auth { /* refcounted: outlives the extension */
	struct authenticator authenticator;
	struct metadatum *accepted; /* ends with name == NULL; one allocation each */
	size_t count;
};

struct certificate_extension {
	struct certificate_auth *auth;
};

static bool is_accepted(const struct certificate_auth *a, const struct metadatum *name)
{
	for (size_t i = 0; i < a->count; i++)
		if (!strcmp(a->accepted[i].name, name->name) &&
		    !strcmp(a->accepted[i].value, name->value))
			return true;
	return false;
}

static bool certificate_authenticate(struct authenticator *authenticator,
				     const struct auth_request *request, struct fields *identity,
				     struct error *err)
{
	const struct certificate_auth *a = (const struct certificate_auth *)authenticator;
	const struct metadatum *name = request->certificate;
	(void)identity;
	if (!name || !name->name)
		return error_set(err, ERROR_UNAUTHENTICATED, "a client certificate is required");
	for (; name->name && a->count; name++)
		if (is_accepted(a, name))
			return true;
	return !a->count || error_set(err, ERROR_UNAUTHENTICATED,
				      "the client certificate has none of the accepted names");
}

static void certificate_free(struct authenticator *authenticator)
{
	struct certificate_auth *a = (struct certificate_auth *)authenticator;
	for (size_t i = 0; i < a->count; i++)
		memory_free((char *)a->accepted[i].value);
	memory_free(a->accepted);
	memory_free(a);
}

static const struct authenticator_ops authenticator_ops = {
	.authenticate = certificate_authenticate,
	.free = certificate_free,
};

static void accept_names(struct certificate_auth *a, const char *kind, const struct strings *names)
{
	a->accepted = memory_resize(a->accepted, (a->count + names->count) * sizeof *a->accepted);
	for (size_t i = 0; i < names->count; i++)
		a->accepted[a->count++] = (struct metadatum){ kind, memory_text(names->at[i]) };
}

static bool certificate_create(void *self, const void *config, const struct host *host,
			       struct error *err)
{
	struct certificate_extension *e = self;
	const struct names *c = config;
	(void)host;
	(void)err;
	e->auth = memory_new(sizeof *e->auth);
	authenticator_init(&e->auth->authenticator, &authenticator_ops);
	accept_names(e->auth, "subject", &c->subjects);
	accept_names(e->auth, "common_name", &c->common_names);
	accept_names(e->auth, "uri", &c->uris);
	accept_names(e->auth, "email", &c->emails);
	accept_names(e->auth, "dns", &c->dns);
	return true;
}

static void certificate_destroy(void *self)
{
	struct certificate_extension *e = self;
	struct authenticator *a = e->auth ? &e->auth->authenticator : NULL;
	authenticator_unref(&a);
}

static struct authenticator *certificate_authenticator(void *self)
{
	return &((struct certificate_extension *)self)->auth->authenticator;
}

static const struct config_row rows[] = {
	CONFIG_ROW(struct names, subjects, .key = "subjects",
		   .help = "Accepted subjects, as RFC 4514 writes them (`CN=agent,O=Example`)."),
	CONFIG_ROW(struct names, common_names, .key = "common_names",
		   .help = "Accepted common names of the subject."),
	CONFIG_ROW(struct names, uris, .key = "uris",
		   .help = "Accepted URIs among the alternative names, such as SPIFFE IDs."),
	CONFIG_ROW(struct names, emails, .key = "emails",
		   .help = "Accepted e-mail addresses among the alternative names."),
	CONFIG_ROW(struct names, dns, .key = "dns",
		   .help = "Accepted DNS names among the alternative names."),
	{ 0 }
};

static const struct config_table table = { sizeof(struct names), rows };

static const struct extension_ops certificate_ops = { .authenticator = certificate_authenticator };

const struct component_factory client_certificate_auth_extension = {
	.type = "client_certificate_auth",
	.help = "Authenticates senders by their TLS client certificate.",
	.manual =
		"Servers name it in `auth.authenticator`; they need `tls` with `client_ca_file`. A "
		"certificate is accepted if one of its names is listed here. If nothing is "
		"listed, any certificate that the CA has signed is accepted. The names of the "
		"certificate are the attributes of the identity: `auth.subject`, "
		"`auth.common_name`, `auth.uri`, `auth.email`, `auth.dns`. Not a component of the "
		"Collector.\n",
	.kind = COMPONENT_EXTENSION,
	.extension = &certificate_ops,
	.size = sizeof(struct certificate_extension),
	.config = &table,
	.create = certificate_create,
	.destroy = certificate_destroy,
};
