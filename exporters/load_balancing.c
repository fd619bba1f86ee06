/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/memory.h"
#include "exporters/load_balancing_config.h"
#include "exporters/load_balancing_key.h"
#include "exporters/load_balancing_manual.h"
#include "exporters/load_balancing_members.h"
#include "net/name_watch.h"
#include "pipeline/delivery/otlp_answer.h"
#include "pipeline/delivery/otlp_sender.h"
#include "profile/collect/split.h"

/*
 * Sends each resource to one of several gateways, always to the same one: its plan orders the
 * resources by member (load_balancing_choice.h), and each part belongs to one. What is sent when is
 * up to the delivery (pipeline/delivery/lanes.h).
 */
struct load_balancing {
	const struct load_balancing_config *config;
	const struct host *host;
	struct packet_form form;
	enum load_balancing_routing routing;
	struct strings attributes; /* whose values are the key; borrowed */
	struct load_balancing_members members;
	struct name_watch *names; /* NULL: the members are fixed */
	bool unresolved;          /* and it was logged; loop thread */
	bool unusable;            /* the same of a member */
	struct metric_series *resolved, *failed;
};

/* ---- dividing ---- */

/* The parts of a packet of which one member gets everything. */
static bool plan_for(uint32_t member, const struct part *whole, const struct limits *limits,
		     struct parts *parts, struct error *err)
{
	uint32_t first = parts->count;
	if (!split_packet(whole->packet, limits, NULL, parts, err))
		return false;
	for (uint32_t i = first; i < parts->count; i++)
		parts->at[i].group = member;
	return true;
}

/* The member of each resource, in the order of members; without resources, any. The caller frees
 * it. */
static uint32_t *sort(const struct load_balancing *self,
		      const struct load_balancing_candidate *candidates, size_t count,
		      struct profiles *p, uint32_t *members)
{
	uint32_t *groups = memory_array(p->resources.count + 1, sizeof *groups);
	groups[0] = load_balancing_choose(candidates, count, 0);
	for (uint32_t i = 0; i < p->resources.count; i++) {
		uint64_t key =
			load_balancing_key_of_resource(p, &p->resources.at[i], &self->attributes);
		groups[i] = load_balancing_choose(candidates, count, key);
	}
	*members = split_groups(p, groups);
	return groups;
}

static bool plan_by_resource(struct load_balancing *self,
			     const struct load_balancing_candidate *candidates, size_t count,
			     const struct part *whole, const struct limits *wanted,
			     struct parts *parts, struct error *err)
{
	struct profiles p = { 0 };
	struct limits limits = *wanted;
	uint32_t members, *groups = NULL;
	bool ok = split_open(whole->packet, &p, err);
	if (ok) {
		limits.groups = groups = sort(self, candidates, count, &p, &members);
		ok = members > 1 ? split_profiles(&p, whole->packet, &limits, NULL, parts, err)
				 : plan_for(groups[0], whole, wanted, parts, err);
	}
	memory_free(groups);
	profiles_fini(&p);
	return ok;
}

static bool load_balancing_plan(void *instance, const struct part *whole,
				const struct limits *limits, struct parts *parts, struct error *err)
{
	struct load_balancing *self = instance;
	struct load_balancing_candidate candidates[LOAD_BALANCING_MEMBERS_MAX];
	if (whole->group && load_balancing_members_has(&self->members, whole->group))
		return plan_for(whole->group, whole, limits, parts, err);
	size_t count = load_balancing_members_list(&self->members, limits->avoided, candidates);
	if (!count) {
		parts_add(parts, packet_ref(whole->packet), whole->samples, 0);
		return true;
	}
	if (self->routing != LOAD_BALANCING_BY_TENANT)
		return plan_by_resource(self, candidates, count, whole, limits, parts, err);
	uint64_t key = load_balancing_key_of_tenant(whole->packet);
	return plan_for(load_balancing_choose(candidates, count, key), whole, limits, parts, err);
}

/* ---- sending ---- */

static void load_balancing_answered(void *instance, const struct grpc_result *result,
				    const struct grpc_asked *asked, struct send_result *verdict)
{
	struct load_balancing_member *member = instance;
	metric_add(verdict->outcome == SEND_OK ? member->succeeded : member->failed, 1);
	metric_add(member->latency, (int64_t)(asked->elapsed_ns / 1000000));
	if (verdict->outcome == SEND_OK)
		verdict->rejected_profiles =
			otlp_answer_rejected(&member->sender.host->log, result->response,
					     asked->profiles);
}

static const struct grpc_method method = { OTLP_SENDER_METHOD, load_balancing_answered };

static uint64_t shorter(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

static void load_balancing_send(void *instance, const struct part *part, uint64_t timeout_ns,
				struct sending *sending)
{
	struct load_balancing *self = instance;
	struct load_balancing_member *member =
		load_balancing_members_use(&self->members, part->group);
	if (!member) {
		sending_done(sending,
			     &(struct send_result){ .outcome = SEND_RETRY,
						    .retry_after_ms = -1,
						    .unsent = true,
						    .reason = part->group ? "member_left"
									  : "unresolved" });
		return;
	}
	timeout_ns = shorter((uint64_t)self->config->protocol.otlp.timeout.ns, timeout_ns);
	otlp_sender_send(&member->sender, part, self->form, timeout_ns, sending);
	load_balancing_members_used(member);
}

static bool load_balancing_prompt(void *instance, const struct packet *packet)
{
	return packet_has(packet, ((struct load_balancing *)instance)->form);
}

/* ---- members ---- */

static uint32_t lanes(void *instance)
{
	const struct load_balancing *self = instance;
	return self->config->resolver.dns.present.enabled
		       ? LOAD_BALANCING_MEMBERS_MAX
		       : (uint32_t)self->config->resolver.fixed.hostnames.count;
}

static uint32_t count(void *instance)
{
	return load_balancing_members_count(&((struct load_balancing *)instance)->members);
}

static bool serves(void *instance, uint32_t member)
{
	return load_balancing_members_has(&((struct load_balancing *)instance)->members, member);
}

static uint32_t number(void *instance, uint32_t index)
{
	struct load_balancing *self = instance;
	struct load_balancing_candidate candidates[LOAD_BALANCING_MEMBERS_MAX];
	size_t found = load_balancing_members_list(&self->members, NULL, candidates);
	return index < found ? candidates[index].number : 0;
}

static void watch(void *instance, void (*changed)(void *context), void *context)
{
	struct load_balancing *self = instance;
	self->members.watcher = (struct load_balancing_watcher){ changed, context };
}

static char *endpoint(void *instance, uint32_t number)
{
	struct load_balancing *self = instance;
	struct load_balancing_member *member = load_balancing_members_use(&self->members, number);
	char *text = member ? memory_text(member->endpoint) : NULL;
	if (member)
		load_balancing_members_used(member);
	return text;
}

static const struct member_ops member_ops = { .lanes = lanes,
					      .count = count,
					      .serves = serves,
					      .number = number,
					      .watch = watch,
					      .endpoint = endpoint };

/* The place of a fixed member in the list. */
static size_t find_fixed(const struct load_balancing *self, const char *endpoint)
{
	const struct strings *names = &self->config->resolver.fixed.hostnames;
	for (size_t i = 0; i < names->count; i++) {
		char *named = load_balancing_config_endpoint(names->at[i], NULL);
		bool same = !strcmp(named, endpoint);
		memory_free(named);
		if (same)
			return i;
	}
	return 0;
}

static void load_balancing_blame(void *instance, uint32_t number, struct error *err)
{
	struct load_balancing *self = instance;
	struct load_balancing_member *member = load_balancing_members_use(&self->members, number);
	if (!self->config->resolver.dns.present.enabled) {
		error_prefix(err, "resolver::static::hostnames[%zu]",
			     member ? find_fixed(self, member->endpoint) : 0);
	} else {
		if (member)
			error_prefix(err, "%s", member->endpoint);
		error_prefix(err, "resolver::dns::hostname");
	}
	if (member)
		load_balancing_members_used(member);
}

/* With the port for those that have none. */
static bool set_members(struct load_balancing *self, char *const *hosts, size_t count,
			const char *port, struct error *err)
{
	char **endpoints = memory_array(count, sizeof *endpoints);
	for (size_t i = 0; i < count; i++)
		endpoints[i] = load_balancing_config_endpoint(hosts[i], port);
	bool ok = load_balancing_members_set(&self->members, endpoints, count, err);
	for (size_t i = 0; i < count; i++)
		memory_free(endpoints[i]);
	memory_free(endpoints);
	return ok;
}

static const struct metric resolutions = {
	"otelcol_loadbalancer_num_resolutions", METRIC_COUNTER, "{resolutions}",
	"The number of times that the name of the members was resolved, or could not be."
};

/* On the loop thread. */
static void has_resolved(void *context, char *const *addresses, size_t count)
{
	struct load_balancing *self = context;
	struct error err;
	error_clear(&err);
	metric_add(addresses ? self->resolved : self->failed, 1);
	if (!addresses && !self->unresolved)
		log_warn(&self->host->log,
			 "The name of the members cannot be resolved. The last members stay.");
	if (addresses && self->unresolved)
		log_info(&self->host->log, "The name of the members can be resolved again.");
	self->unresolved = !addresses;
	if (!addresses)
		return;
	bool usable = set_members(self, addresses, count, self->config->resolver.dns.port, &err);
	if (!usable && !self->unusable)
		log_error(&self->host->log, "A member cannot be used.",
			  log_text("error", err.text));
	self->unusable = !usable;
}

static bool watch_name(struct load_balancing *self, struct error *err)
{
	const struct load_balancing_dns_config *dns = &self->config->resolver.dns;
	self->names = name_watch_new(
		&(struct name_watch_options){
			.name = dns->hostname,
			.interval_ns = (uint64_t)dns->interval.ns,
			.timeout_ns = (uint64_t)dns->timeout.ns,
			.loop = self->host->loop,
			.resolved = has_resolved,
			.context = self,
		},
		err);
	return self->names != NULL;
}

/* ---- life ---- */

static void init_metrics(struct load_balancing *self)
{
	struct metric_label labels[] = {
		{ "exporter", self->host->id }, { "resolver", "dns" }, { "success", "true" }, { 0 }
	};
	if (!self->config->resolver.dns.present.enabled)
		return;
	self->resolved = metrics_series(self->host->metrics, &resolutions, labels);
	labels[2].value = "false";
	self->failed = metrics_series(self->host->metrics, &resolutions, labels);
}

static bool load_balancing_create(void *instance, const void *config, const struct host *host,
				  struct error *err)
{
	static char name[] = "service.name", *names[] = { name };
	struct load_balancing *self = instance;
	(void)err;
	self->config = config;
	self->host = host;
	const struct load_balancing_otlp_config *otlp = &self->config->protocol.otlp;
	self->form = grpc_sender_form(&otlp->client, otlp_layout_encoding(&otlp->layout, false));
	self->routing = load_balancing_config_routing(self->config);
	self->attributes = self->routing == LOAD_BALANCING_BY_ATTRIBUTES
				   ? self->config->routing_attributes
				   : (struct strings){ names, 1 };
	load_balancing_members_init(
		&self->members,
		&(struct load_balancing_members_options){
			.host = host,
			.config = &otlp->client,
			.method = &method,
			.resolver = self->config->resolver.dns.present.enabled ? "dns" : "static",
			.call_ns = shorter((uint64_t)otlp->timeout.ns,
					   (uint64_t)self->config->delivery.timeout.ns),
		});
	init_metrics(self);
	return true;
}

static bool load_balancing_start(void *instance, struct error *err)
{
	struct load_balancing *self = instance;
	const struct strings *names = &self->config->resolver.fixed.hostnames;
	if (!authenticator_check_client(self->members.authenticator,
					self->config->protocol.otlp.client.auth.authenticator, err))
		return false;
	return self->config->resolver.dns.present.enabled
		       ? watch_name(self, err)
		       : set_members(self, names->at, names->count, NULL, err);
}

static void load_balancing_stop(void *instance)
{
	struct load_balancing *self = instance;
	name_watch_stop(&self->names);
	load_balancing_members_stop(&self->members);
}

static void load_balancing_destroy(void *instance)
{
	load_balancing_members_fini(&((struct load_balancing *)instance)->members);
}

static bool load_balancing_reopen(void *instance, struct error *err)
{
	return load_balancing_members_reopen(&((struct load_balancing *)instance)->members, err);
}

static const struct metric *const metrics[] = { &load_balancing_backends,
						&load_balancing_updates,
						&resolutions,
						&load_balancing_outcome,
						&load_balancing_latency,
						&load_balancing_diverted,
						&grpc_sender_replies_too_large,
						NULL };

static const struct exporter_ops load_balancing_ops = {
	.start = load_balancing_start,
	.stop = load_balancing_stop,
	.delivery_offset = offsetof(struct load_balancing_config, delivery),
	.plan = load_balancing_plan,
	.members = &member_ops,
	.prompt = load_balancing_prompt,
	.send = load_balancing_send,
	.probe = load_balancing_send,
	.blame = load_balancing_blame,
};

const struct component_factory load_balancing_exporter = {
	.type = "load_balancing",
	.alias = "loadbalancing",
	.help = "Distributes profiles over several gateways by OTLP/gRPC: equal services always "
		"reach the same gateway.",
	.manual = load_balancing_manual,
	.kind = COMPONENT_EXPORTER,
	.exporter = &load_balancing_ops,
	.size = sizeof(struct load_balancing),
	.config = &load_balancing_table,
	.metrics = metrics,
	.create = load_balancing_create,
	.destroy = load_balancing_destroy,
	.reopen = load_balancing_reopen,
};
