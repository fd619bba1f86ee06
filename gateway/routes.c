/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/routes.h"

#include "base/memory.h"
#include "base/quote.h"
#include "gateway/service.h"

#include <string.h>

/* 10,000 rules with the longest names and notes, all escaped */
#define LIST_MAX ((size_t)1 << 28)
/* some hundred bytes for each exporter and storage of the configuration */
#define STATUS_MAX ((size_t)1 << 24)

static void status(void *context, struct admin_call *call)
{
	struct service *s = context;
	struct bytes json;
	bytes_init(&json, STATUS_MAX);
	service_status(s, &json);
	admin_reply(call, 200, bytes_view(&json));
	bytes_fini(&json);
}

static void add_json(const struct kill_rule *rule, void *context)
{
	struct bytes *json = context, line;
	bytes_init(&line, 8 * KILL_NAME_MAX);
	kill_rule_print(rule, &line);
	bytes_add_text(json, json->at[json->len - 1] == '[' ? "{\"rule\":" : ",{\"rule\":");
	quote_json(json, (const char *)line.at, line.len);
	if (rule->note) {
		bytes_add_text(json, ",\"note\":");
		quote_json(json, rule->note, strlen(rule->note));
	}
	bytes_add_byte(json, '}');
	bytes_fini(&line);
}

static void list_rules(const struct kill_switch *kills, struct admin_call *call)
{
	struct bytes json;
	bytes_init(&json, LIST_MAX);
	bytes_add_text(&json, "{\"rules\":[");
	kill_switch_each(kills, add_json, &json);
	bytes_add_text(&json, "]}");
	admin_reply(call, 200, bytes_view(&json));
	bytes_fini(&json);
}

/* POST: the body replaces the rules that came this way. All rules in force are listed. */
static void kill_switch(void *context, struct admin_call *call)
{
	struct service *s = context;
	struct kill_switch *kills = s->runtime.kills;
	const char *by = admin_parameter(call, "by");
	struct error err;
	if (!strcmp(admin_method(call), "POST")) {
		char *who = memory_format("admin endpoint%s%.100s", by ? ", " : "", by ? by : "");
		bool ok = kill_switch_set(kills, admin_body(call), who, &err);
		memory_free(who);
		if (!ok) {
			admin_refuse(call, 400, err.text);
			return;
		}
	}
	list_rules(kills, call);
}

static void reload(void *context, struct admin_call *call)
{
	service_reload(context, call);
}

void routes_of(struct service *service, struct admin_route routes[ADMIN_ROUTES_MAX])
{
	const struct admin_route all[] = {
		{ "/-/reload", "POST", reload, service },
		{ "/-/status", "GET", status, service },
		{ "/-/kill-switch", "GET,POST", kill_switch, service },
		{ 0 },
	};
	_Static_assert(sizeof all / sizeof *all <= ADMIN_ROUTES_MAX, "too many routes");
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		routes[i] = all[i];
}
