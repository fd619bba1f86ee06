/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/rpc_private.h"

#include "base/base64.h"
#include "profile/wire.h"

#include <string.h>

static const struct fields_limits limits = {
	.count = 1 << 16, .name = 1 << 16, .value = 1 << 20, .total = 1 << 22
};

/* Headers of the protocol rather than of the caller; the same as in grpc-go. */
static bool is_reserved(const char *name)
{
	static const char *const names[] = { ":method",
					     ":path",
					     ":scheme",
					     "te",
					     "grpc-encoding",
					     "grpc-accept-encoding",
					     "grpc-timeout",
					     "grpc-message-type",
					     "grpc-message",
					     "grpc-status",
					     "grpc-status-details-bin" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static bool is_binary(const char *name)
{
	size_t len = strlen(name);
	return len > 4 && strcmp(name + len - 4, "-bin") == 0;
}

static void add_binary(struct rpc_call *call, const struct metadatum *m)
{
	struct bytes decoded;
	bytes_init(&decoded, limits.value);
	if (base64_decode(&decoded, view_of(m->value)) && wire_utf8_ok(bytes_view(&decoded)))
		fields_add(&call->fields, view_of(m->name), bytes_view(&decoded), NULL);
	bytes_fini(&decoded);
}

static void add(struct rpc_call *call, const struct metadatum *m)
{
	if (is_binary(m->name))
		add_binary(call, m);
	else if (!is_reserved(m->name))
		fields_add(&call->fields, view_of(m->name), view_of(m->value), NULL);
}

const struct metadatum *rpc_call_metadata(struct rpc_call *call)
{
	const char *authority = h2_stream_header(&call->stream, ":authority");
	if (call->fields.at)
		return call->fields.at;
	fields_init(&call->fields, &limits);
	for (const struct metadatum *m = call->stream.headers.at; m && m->name; m++)
		add(call, m);
	if (authority && !h2_stream_header(&call->stream, "host"))
		fields_add(&call->fields, view_of("host"), view_of(authority), NULL);
	return fields_list(&call->fields);
}
