/* SPDX-License-Identifier: Apache-2.0 */
#include "net/decorated.h"

static bool add_all(struct decorated *d, const struct pairs *configured,
		    const struct metadatum *headers)
{
	bool ok = true;
	for (size_t i = 0; configured && i < configured->count && ok; i++) {
		const struct pair *p = &configured->at[i];
		ok = fields_add(&d->in, view_of(p->name),
				view_of(p->value.text ? p->value.text : ""), NULL);
	}
	for (; headers && headers->name && ok; headers++)
		ok = fields_add(&d->in, view_of(headers->name), view_of(headers->value), NULL);
	return ok;
}

bool decorated_init(struct decorated *d, struct authenticator *a, const struct pairs *configured,
		    const struct metadatum *headers, const struct metadatum *context)
{
	*d = (struct decorated){ .headers = headers };
	fields_init(&d->in, &authenticator_header_limits);
	fields_init(&d->out, &authenticator_header_limits);
	if (!a)
		return true;
	bool ok = a->ops->decorate && add_all(d, configured, headers) &&
		  a->ops->decorate(a, context, fields_list(&d->in), &d->out, NULL);
	if (!ok)
		return false;
	fields_lower(&d->out); /* gRPC metadata must be */
	d->headers = fields_list(&d->out);
	return true;
}

void decorated_fini(struct decorated *d)
{
	fields_fini(&d->in);
	fields_fini(&d->out);
}
