/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_AUTHENTICATOR_H
#define NET_AUTHENTICATOR_H

#include <stdatomic.h>

#include "config/table.h"
#include "net/fields.h"

/*
 * What an extension offers to the servers and clients that name it in `auth.authenticator`, as in
 * the Collector (configauth).
 *
 * A server calls `authenticate` when a request's headers are complete, before its body is read. A
 * client calls `decorate` for each request. Both may be called from any thread and must not wait.
 *
 * An authenticator is refcounted, because an exporter may outlive the graph whose extension created
 * it. It embeds struct authenticator as its first member.
 */
struct authenticator;

/* Of a request, for a server. */
struct auth_request {
	/* Headers, with names in lower case, and the query parameters that request_params names;
	 * ends with name == NULL */
	const struct metadatum *headers;
	/* names of a verified client certificate (net/tls/tls.h); NULL: there is none */
	const struct metadatum *certificate;
};

struct authenticator_ops {
	/* The value of WWW-Authenticate in the 401 response (RFC 9110, section 11.6.1); NULL:
	 * none. */
	const char *(*challenge)(struct authenticator *a);
	/*
	 * Checks a request. Adds what is known of the sender to `identity` (the Collector's
	 * `auth.<attribute>`). False with ERROR_UNAUTHENTICATED, or with ERROR_BUSY if it cannot be
	 * checked now. The error never contains what the sender sent. NULL: clients only.
	 */
	bool (*authenticate)(struct authenticator *a, const struct auth_request *request,
			     struct fields *identity, struct error *err);
	/*
	 * Copies the headers `in` of an outgoing request to `out`, with its own changes. `context`
	 * is the metadata of the requests that the data came from, as far as the batch kept it.
	 * Both lists end with name == NULL. False: the request cannot be sent now. NULL: servers
	 * only.
	 */
	bool (*decorate)(struct authenticator *a, const struct metadatum *context,
			 const struct metadatum *in, struct fields *out, struct error *err);
	void (*free)(struct authenticator *a);
};

struct authenticator {
	const struct authenticator_ops *ops;
	/* The metadata that decorate looks for in its context, which batches must keep; ends with
	 * NULL; NULL: none. */
	const char *const *context_keys;
	_Atomic uint32_t refs;
};

/* One reference, the caller's. */
void authenticator_init(struct authenticator *a, const struct authenticator_ops *ops);
struct authenticator *authenticator_ref(struct authenticator *a);
void authenticator_unref(struct authenticator **slot); /* clears; accepts NULL */

/* The identity of one sender, and the headers of one outgoing request. */
extern const struct fields_limits authenticator_identity_limits, authenticator_header_limits;

/* False with ERROR_CONFIG: it is for servers only. `id` is for the message. NULL is accepted. */
bool authenticator_check_client(const struct authenticator *a, const char *id, struct error *err);

/* The value of a header, NULL if there is none. If there are several, they do not decide: the
 * request is not authenticated, so *repeated is set. */
const char *authenticator_header(const struct metadatum *headers, const char *name, bool *repeated);
/* The section `auth` of servers and clients. */
struct auth_config {
	struct optional present;
	char *authenticator; /* the ID of an extension */
};

struct auth_server_config {
	struct optional present;
	char *authenticator;
	struct strings request_params; /* query parameters that authenticate gets as headers */
};

extern const struct config_table auth_table;        /* of struct auth_config */
extern const struct config_table auth_server_table; /* of struct auth_server_config */

#endif
