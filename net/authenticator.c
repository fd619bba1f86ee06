/* SPDX-License-Identifier: Apache-2.0 */
#include "net/authenticator.h"

#include <string.h>
#include <strings.h>

/* An identity has the names of a certificate and a few more. */
const struct fields_limits authenticator_identity_limits = {
	.count = 64, .name = 256, .value = 4096, .total = 16384
};
const struct fields_limits authenticator_header_limits = {
	.count = 64, .name = 256, .value = 16384, .total = 65536
};

void authenticator_init(struct authenticator *a, const struct authenticator_ops *ops)
{
	a->ops = ops;
	atomic_init(&a->refs, 1);
}

struct authenticator *authenticator_ref(struct authenticator *a)
{
	if (a)
		atomic_fetch_add(&a->refs, 1);
	return a;
}

void authenticator_unref(struct authenticator **slot)
{
	struct authenticator *a = *slot;
	*slot = NULL;
	if (a && atomic_fetch_sub(&a->refs, 1) == 1)
		a->ops->free(a);
}

bool authenticator_check_client(const struct authenticator *a, const char *id, struct error *err)
{
	return !a || a->ops->decorate ||
	       error_set(err, ERROR_CONFIG, "auth: \"%s\" authenticates senders only", id);
}

const char *authenticator_header(const struct metadatum *headers, const char *name, bool *repeated)
{
	const char *found = NULL;
	*repeated = false;
	for (const struct metadatum *h = headers; h && h->name; h++) {
		if (strcasecmp(h->name, name) != 0)
			continue;
		*repeated = found != NULL;
		found = h->value;
	}
	return *repeated ? NULL : found;
}

static void check_name(const char *authenticator, struct faults *faults)
{
	if (!authenticator || !*authenticator)
		faults_add(faults, "authenticator must be the ID of an extension");
}

static void auth_check(const void *config, struct faults *faults)
{
	check_name(((const struct auth_config *)config)->authenticator, faults);
}

static void auth_server_check(const void *config, struct faults *faults)
{
	check_name(((const struct auth_server_config *)config)->authenticator, faults);
}

#define AUTHENTICATOR_HELP \
	"ID of the extension, which must also be listed in `service::extensions`."

static const struct config_row auth_rows[] = { CONFIG_ROW(struct auth_config, authenticator,
							  .key = "authenticator",
							  .help = AUTHENTICATOR_HELP),
					       { 0 } };
static const struct config_row auth_server_rows[] = {
	CONFIG_ROW(struct auth_server_config, authenticator, .key = "authenticator",
		   .help = AUTHENTICATOR_HELP),
	CONFIG_ROW(struct auth_server_config, request_params, .key = "request_params",
		   .help = "Query parameters that the extension gets as if they were headers."),
	{ 0 }
};

const struct config_table auth_table = { sizeof(struct auth_config), auth_rows, auth_check,
					 .optional = true };
const struct config_table auth_server_table = { sizeof(struct auth_server_config), auth_server_rows,
						auth_server_check, .optional = true };
