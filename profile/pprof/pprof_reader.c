/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof/pprof_reader.h"
#include "profile/wire.h"

bool pprof_reader_refuse(struct pprof_reader *r, const char *what)
{
	return error_set(r->err, ERROR_INVALID, "%s", what);
}

bool pprof_reader_too_large(struct pprof_reader *r)
{
	return profiles_over_cap(r->p, r->err);
}

bool pprof_reader_add_string(struct pprof_reader *r, struct view text, struct span span)
{
	struct profiles *p = r->p;
	if (!profiles_room(p, &p->strings, 1))
		return pprof_reader_too_large(r);
	struct string *string = &p->strings.at[p->strings.count++];
	*string = (struct string){ .text = span };
	if (wire_utf8_ok(text))
		return true;
	uint32_t at = (uint32_t)p->added.len;
	string->repaired = 1;
	p->repaired_strings++;
	if (!wire_utf8_repair(&p->added, text))
		return pprof_reader_too_large(r);
	string->text = (struct span){ at | SPAN_ADDED, (uint32_t)p->added.len - at };
	return true;
}
