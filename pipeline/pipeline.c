/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/pipeline.h"

static const struct metric incoming_items = {
	"otelcol_processor_incoming_items", METRIC_COUNTER, "{items}", "Samples passed to the processor."
};
static const struct metric outgoing_items = {
	"otelcol_processor_outgoing_items", METRIC_COUNTER, "{items}", "Samples that the processor let through."
};

const struct metric *const pipeline_metrics[] = { &incoming_items, &outgoing_items, NULL };

void pipeline_stage_metrics(struct stage *stage, struct metrics *metrics, const char *processor, const char *pipeline)
{
	const struct metric_label labels[] = {
		{ "otel_signal", "profiles" }, { "pipeline", pipeline }, { "processor", processor }, { 0 }
	};
	stage->incoming = metrics_series(metrics, &incoming_items, labels);
	stage->outgoing = metrics_series(metrics, &outgoing_items, labels);
}

uint64_t pipeline_count(const struct profiles *profiles)
{
	uint64_t samples = 0;
	for (uint32_t i = 0; i < profiles->profiles.count; i++) {
		const struct profile *p = &profiles->profiles.at[i];
		if (!p->fault && !p->dropped)
			samples += p->samples.count;
	}
	return samples;
}

static bool process(struct pipeline *path, struct profiles *profiles, void **scratch, struct error *err)
{
	for (uint32_t i = 0; i < path->stage_count; i++) {
		struct stage *stage = &path->stages[i];
		series_add(stage->incoming, (int64_t)pipeline_count(profiles));
		/* What is a setting of the pipeline, whatever its place, lets all through here. */
		if (stage->factory->process && !stage->factory->process(stage->self, scratch[stage->scratch], profiles, err))
			return false;
		if (profiles->over_cap)
			return profiles_over_cap(profiles, err);
		series_add(stage->outgoing, (int64_t)pipeline_count(profiles));
	}
	return true;
}

/* One that holds for itself alone what another route could hold: a batch that is open may fit what a new one does not. */
static void drop_at(const struct route *route, const struct request *request, const struct collect_added *added,
		    const struct error *why)
{
	bool passes = why->kind == ERROR_BUSY;
	if (route->waits && request && request->ack) {
		ack_hold(request->ack);
		ack_release(request->ack, passes ? ACK_FAILED : ACK_REFUSED);
	}
	for (uint32_t i = 0; i < route->delivery_count; i++)
		delivery_drop(route->deliveries[i], added->samples_in - added->samples_merged, &route->path->ledger,
			      passes ? LEDGER_QUEUE_FULL : LEDGER_TOO_LARGE);
}

/* Taken when any route took it; what the first one cannot hold is refused. */
static enum batcher_result add_to_routes(const struct pipeline *path, const struct profiles *profiles,
					 struct collect_added *added, struct error *err)
{
	enum batcher_result result = batcher_add(path->routes[0].batcher, profiles, added, err);
	for (uint32_t i = 1; i < path->route_count && result != BATCHER_FAILED; i++) {
		struct collect_added same = { 0 };
		struct error why;
		error_clear(&why);
		enum batcher_result also = batcher_add(path->routes[i].batcher, profiles, &same, &why);
		if (also == BATCHER_FAILED)
			drop_at(&path->routes[i], profiles->request, added, &why);
		result = also == BATCHER_TAKEN ? also : result;
	}
	return result;
}

bool pipeline_run(struct pipeline *path, struct profiles *profiles, void **scratch, struct error *err)
{
	uint64_t in = pipeline_count(profiles);
	struct collect_added added = { 0 };
	enum batcher_result result = BATCHER_FAILED;
	series_add(path->ledger.in, (int64_t)in);
	if (process(path, profiles, scratch, err))
		result = add_to_routes(path, profiles, &added, err);
	if (result == BATCHER_FAILED) {
		series_add(path->ledger.dropped[LEDGER_REFUSED], (int64_t)in);
		return false;
	}
	series_add(path->ledger.merged, (int64_t)added.samples_merged);
	series_add(path->ledger.dropped[LEDGER_POLICY], (int64_t)(in - added.samples_in));
	return result == BATCHER_TAKEN || error_set(err, ERROR_BUSY, "the queues of all destinations are full");
}

static void charge(void *memory, int64_t bytes, bool claim)
{
	if (!claim)
		memory_add(memory, bytes);
	else if (bytes > 0)
		memory_claim(memory, bytes);
	else
		memory_release(memory, -bytes);
}

bool pipeline_emit(void *context, struct packet *packet)
{
	const struct route *route = context;
	const struct pipeline *path = route->path;
	/* The senders of a batch have their answers. So a queue that is not full takes it whatever its size, and one that
	 * must not drop takes it always; when no queue has room, all do: the gate lets nobody in meanwhile, so that they
	 * stretch by what was open and on its way. */
	bool promised = route->settings.on && !route->waits, taken = false;
	bool anyway = promised && !pipeline_has_room(path);
	packet_charge_to(packet, charge, path->memory);
	for (uint32_t i = 0; i < route->delivery_count; i++) {
		struct delivery *d = route->deliveries[i];
		bool last = !taken && i + 1 == route->delivery_count && path->route_count == 1;
		bool stretch = promised && (last || delivery_must_block(d) || delivery_has_room(d));
		taken = delivery_enqueue(d, packet, &path->ledger, anyway || stretch) || taken;
	}
	packet_release_acks(packet, ACK_TAKEN);
	packet_unref(&packet);
	return taken;
}

bool pipeline_has_room(const struct pipeline *path)
{
	for (uint32_t i = 0; i < path->route_count; i++)
		for (uint32_t k = 0; k < path->routes[i].delivery_count; k++)
			if (delivery_has_room(path->routes[i].deliveries[k]))
				return true;
	return false;
}

static bool blocks(const struct delivery *delivery)
{
	return delivery_must_block(delivery) && !delivery_has_room(delivery);
}

bool pipeline_blocks(const struct pipeline *path)
{
	for (uint32_t i = 0; i < path->route_count; i++)
		for (uint32_t k = 0; k < path->routes[i].delivery_count; k++)
			if (blocks(path->routes[i].deliveries[k]))
				return true;
	return false;
}
