/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONNECTORS_ROUTING_CONDITION_H
#define CONNECTORS_ROUTING_CONDITION_H

#include "profile/profiles.h"

/*
 * The part of OTTL (the OpenTelemetry Transformation Language, pkg/ottl of
 * opentelemetry-collector-contrib) that conditions of `routing` may use:
 *
 *   condition  = term { "or" term }
 *   term       = factor { "and" factor }
 *   factor     = [ "not" ] ( comparison | "(" condition ")" )
 *   comparison = path ( "==" | "!=" ) literal
 *   path       = [ "resource" "." ] "attributes" "[" string "]"     (context resource)
 *              | "request" "[" string "]"                           (context request)
 *   literal    = string | integer | "true" | "false" | "nil"
 *   statement  = "route" "(" ")" "where" condition
 *
 * All of it means what it means in OTTL: values of different types are not equal, except that an
 * integer equals a double of the same value; a missing attribute is nil. Everything else is an
 * error: functions, other operators, doubles, and escapes other than \" and \\.
 *
 * A condition cannot fail when it is evaluated. Its cost is at most one look at each attribute of
 * the resource for each comparison.
 */
enum routing_context { ROUTING_RESOURCE, ROUTING_REQUEST };

enum {
	ROUTING_CONDITION_BYTES = 4096,
	ROUTING_CONDITION_DEPTH = 16,
	ROUTING_CONDITION_NODES = 256
};

struct routing_condition;

/* statement: the text is one, rather than a condition. Errors name the place in the text, and never
 * repeat it. NULL: an error. */
struct routing_condition *routing_condition_parse(const char *text, bool statement,
						  enum routing_context context, struct error *err);
void routing_condition_free(struct routing_condition **condition);
/* [any thread] */
bool routing_condition_holds(const struct routing_condition *condition, const struct profiles *p,
			     const struct resource *resource);

#endif
