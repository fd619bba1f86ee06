/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/pipeline.h"

#include "base/memory.h"
#include "pipeline/intake/path_results.h"

#include <stdlib.h>
#include <string.h>

static const struct metric incoming_items = { "otelcol_processor_incoming_items", METRIC_COUNTER,
					      "{items}", "Samples passed to the processor." };
static const struct metric outgoing_items = { "otelcol_processor_outgoing_items", METRIC_COUNTER,
					      "{items}", "Samples that the processor passed on." };

const struct metric *const pipeline_metrics[] = { &incoming_items, &outgoing_items, NULL };

void pipeline_stage_metrics(struct stage *stage, struct metrics *metrics, const char *processor,
			    const char *pipeline)
{
	const struct metric_label labels[] = { { "otel_signal", "profiles" },
					       { "pipeline", pipeline },
					       { "processor", processor },
					       { 0 } };
	stage->incoming = metrics_series(metrics, &incoming_items, labels);
	stage->outgoing = metrics_series(metrics, &outgoing_items, labels);
}

unsigned pipeline_held_acks(const struct route *route)
{
	if (route->waits)
		return ACK_MODE_ANY;
	return route->required_count ? ACK_MODE(ACK_DURABLE) | ACK_MODE(ACK_DELIVERED) : 0;
}

void pipeline_expect_senders(struct pipeline *path, enum ack_mode mode)
{
	for (uint32_t i = 0; i < path->route_count && mode != ACK_ENQUEUE; i++) {
		struct route *route = &path->routes[i];
		route->awaited = route->awaited || route->required_count;
		for (uint32_t k = 0; k < route->required_count && mode == ACK_DELIVERED; k++)
			delivery_expect_senders(route->deliveries[k]);
	}
	for (uint32_t i = 0; i < path->connection_count; i++)
		connection_expect_senders(&path->connections[i], mode);
}

static bool requires_routes(const struct pipeline *path)
{
	return path->route_count && path->routes[0].required_count;
}

bool pipeline_is_required(const struct pipeline *path)
{
	bool required = requires_routes(path);
	for (uint32_t i = 0; i < path->connection_count && !required; i++)
		required = connection_is_required(&path->connections[i]);
	return required;
}

uint32_t pipeline_batches(const struct pipeline *path)
{
	uint32_t batches = path->route_count;
	for (uint32_t i = 0; i < path->connection_count; i++)
		batches += connection_batches(&path->connections[i]);
	return batches;
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

static bool process(const struct pipeline *path, struct profiles *profiles, void **scratch,
		    struct error *err)
{
	for (uint32_t i = 0; i < path->stage_count; i++) {
		struct stage *stage = &path->stages[i];
		metric_add(stage->incoming, (int64_t)pipeline_count(profiles));
		/* A processor that only contributes settings has no function and passes everything
		 * on. */
		if (stage->ops->process &&
		    !stage->ops->process(stage->self, scratch[stage->scratch], profiles, err))
			return false;
		if (profiles->over_cap)
			return profiles_over_cap(profiles, err);
		metric_add(stage->outgoing, (int64_t)pipeline_count(profiles));
	}
	return true;
}

/* ---- the ledger */

/* Within a transaction: what was being processed is collected by the route that leads. */
static void leave_processing(const struct pipeline *path, const struct collect_added *added,
			     enum ledger_column to)
{
	ledger_move(path->row, LEDGER_PROCESSING, LEDGER_MERGED, added->samples_merged);
	ledger_move(path->row, LEDGER_PROCESSING, to, added->samples_in - added->samples_merged);
}

void pipeline_collected(void *context, const struct collect_added *added)
{
	const struct route *route = context;
	uint64_t samples = added->samples_in - added->samples_merged;
	ledger_enter(route->path->ledger);
	if (route->leads)
		leave_processing(route->path, added, route->own ? LEDGER_PASSED : LEDGER_BATCHED);
	if (route->own)
		ledger_bring(route->row, LEDGER_IN, LEDGER_QUEUED, samples);
	ledger_leave(route->path->ledger);
}

/* The books of the route's destinations. The caller frees the array. */
static struct book **books_of(const struct route *route, const char *tenant)
{
	struct book **books = memory_array(route->delivery_count, sizeof *books);
	for (uint32_t i = 0; i < route->delivery_count; i++)
		books[i] = delivery_book(route->deliveries[i], route->path->id, tenant);
	return books;
}

/* A packet leaves its batch, and is with all destinations of the route in the same instant. */
static struct book **hand_over(const struct route *route, const struct packet *packet)
{
	struct book **books = books_of(route, packet->origin ? packet->origin->tenant : NULL);
	ledger_enter(route->path->ledger);
	if (!route->own)
		ledger_move(route->path->row, LEDGER_BATCHED, LEDGER_PASSED, packet->samples);
	for (uint32_t i = 0; i < route->delivery_count; i++)
		book_receive(books[i], packet->samples, route->own);
	ledger_leave(route->path->ledger);
	return books;
}

/* Another route has accepted the document, but this one could not (an open batch may accept what a
 * new one does not). The document is dropped for the destinations of this route. */
static void drop_at(const struct route *route, const struct request *request,
		    const struct collect_added *added, const struct error *why)
{
	bool passes = why->kind == ERROR_BUSY;
	const struct ack *ack = request ? request->ack : NULL;
	if (ack && pipeline_held_acks(route) & ACK_MODE(ack->mode))
		ack_note(request->ack, passes ? ACK_FAILED : ACK_REFUSED);
	uint64_t samples = added->samples_in - added->samples_merged;
	struct book **books = books_of(route, request ? request->tenant : NULL);
	ledger_enter(route->path->ledger);
	if (route->leads)
		leave_processing(route->path, added, LEDGER_PASSED);
	for (uint32_t i = 0; i < route->delivery_count; i++)
		book_receive(books[i], samples, false);
	ledger_leave(route->path->ledger);
	for (uint32_t i = 0; i < route->delivery_count; i++)
		delivery_drop(route->deliveries[i], samples, books[i],
			      passes ? LEDGER_QUEUE_FULL : LEDGER_TOO_LARGE);
	memory_free(books);
}

/* Calls `each` for the Profiles that the tables lead to. */
static uint64_t sum_profiles(const struct route *route, struct profiles *p,
			     uint64_t (*each)(const struct route *route, struct profiles *p,
					      struct profile *profile))
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < p->resources.count; i++) {
		const struct list scopes = p->resources.at[i].scopes;
		for (uint32_t s = 0; s < scopes.count; s++) {
			const struct list list = p->scopes.at[scopes.first + s].profiles;
			for (uint32_t k = 0; k < list.count; k++)
				sum += each(route, p, &p->profiles.at[list.first + k]);
		}
	}
	return sum;
}

static uint64_t hide(const struct route *route, struct profiles *p, struct profile *profile)
{
	if (profile->fault || profile->dropped || sample_types_pass(route->selection, p, profile))
		return 0;
	profile->dropped = PROFILE_HIDDEN;
	return profile->samples.count;
}

static uint64_t unhide(const struct route *route, struct profiles *p, struct profile *profile)
{
	(void)route, (void)p;
	if (profile->dropped == PROFILE_HIDDEN)
		profile->dropped = PROFILE_KEPT;
	return 0;
}

/* Samples that the route does not select have been handed to its destination, and dropped there. */
static void count_unselected(const struct route *route, uint64_t samples)
{
	ledger_enter(route->path->ledger);
	if (route->leads)
		ledger_move(route->path->row, LEDGER_PROCESSING, LEDGER_PASSED, samples);
	ledger_bring(route->row, LEDGER_IN, LEDGER_POLICY, samples);
	ledger_leave(route->path->ledger);
}

static enum batcher_result add_to_route(const struct route *route, struct profiles *p,
					struct collect_added *added, struct error *err)
{
	if (!route->selection)
		return batcher_add(route->batcher, p, added, err);
	uint64_t unselected = sum_profiles(route, p, hide);
	enum batcher_result result = batcher_add(route->batcher, p, added, err);
	sum_profiles(route, p, unhide);
	if (result == BATCHER_FAILED)
		return result;
	count_unselected(route, unselected);
	added->samples_in += unselected;
	return result;
}

/* The document is accepted if any required route accepted it. What the first route cannot hold is
 * refused. */
static enum batcher_result add_to_routes(const struct pipeline *path, struct profiles *profiles,
					 struct collect_added *added, struct error *err)
{
	enum batcher_result result = add_to_route(&path->routes[0], profiles, added, err);
	for (uint32_t i = 1; i < path->route_count && result != BATCHER_FAILED; i++) {
		struct collect_added same = { 0 };
		struct error why;
		error_clear(&why);
		enum batcher_result also = add_to_route(&path->routes[i], profiles, &same, &why);
		if (also == BATCHER_FAILED)
			drop_at(&path->routes[i], profiles->request, added, &why);
		if (also == BATCHER_TAKEN && path->routes[i].required_count)
			result = also;
	}
	return result;
}

/* Adds what the routes have collected of the tables as they are: of one tenant. */
static enum batcher_result add_tenant(const struct pipeline *path, struct profiles *profiles,
				      struct collect_added *sum, struct error *err)
{
	struct collect_added added = { 0 };
	enum batcher_result result = add_to_routes(path, profiles, &added, err);
	if (result == BATCHER_FAILED)
		return result;
	sum->samples_in += added.samples_in;
	sum->samples_merged += added.samples_merged;
	if (profiles->request)
		tenants_count(path->tenants, profiles->request->tenant,
			      added.samples_in - added.samples_merged);
	return result;
}

static int compare_tenants(const void *left, const void *right, void *context)
{
	const struct profiles *p = context;
	struct view a = string_view(p, ((const struct resource *)left)->tenant);
	struct view b = string_view(p, ((const struct resource *)right)->tenant);
	int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static bool has_tenants(const struct profiles *p)
{
	for (uint32_t i = 0; i < p->resources.count; i++)
		if (p->resources.at[i].tenant)
			return true;
	return false;
}

/* The tables as if the request were one tenant's: the resources [first, first + count). */
static enum batcher_result add_run(const struct pipeline *path, struct profiles *p, uint32_t first,
				   uint32_t count, struct collect_added *sum, struct error *err)
{
	struct request *whole = p->request, part = *whole;
	struct resource *all = p->resources.at;
	uint32_t all_count = p->resources.count;
	struct view name = string_view(p, all[first].tenant);
	char *tenant = name.len ? memory_text_of(name.at, name.len) : NULL;
	part.tenant = tenant;
	p->request = &part;
	p->resources.at = all + first;
	p->resources.count = count;
	enum batcher_result result = add_tenant(path, p, sum, err);
	p->resources.at = all;
	p->resources.count = all_count;
	p->request = whole;
	memory_free(tenant);
	return result;
}

/* A document whose resources have several tenants is collected tenant by tenant. If one of them
 * fails, the sender repeats all. */
static enum batcher_result add_all(const struct pipeline *path, struct profiles *p,
				   struct collect_added *sum, struct error *err)
{
	enum batcher_result result = BATCHER_LOST;
	if (!has_tenants(p))
		return add_tenant(path, p, sum, err);
	qsort_r(p->resources.at, p->resources.count, sizeof *p->resources.at, compare_tenants, p);
	for (uint32_t first = 0, end; first < p->resources.count; first = end) {
		for (end = first + 1; end < p->resources.count; end++)
			if (compare_tenants(&p->resources.at[first], &p->resources.at[end], p))
				break;
		enum batcher_result one = add_run(path, p, first, end - first, sum, err);
		if (one == BATCHER_FAILED)
			return one;
		result = one == BATCHER_TAKEN ? one : result;
	}
	return result;
}

static void count_in(const struct pipeline *path, uint64_t in, uint64_t sampled)
{
	ledger_enter(path->ledger);
	ledger_bring(path->row, LEDGER_IN, LEDGER_PROCESSING, in);
	ledger_bring(path->row, LEDGER_IN, LEDGER_QUOTA, sampled);
	ledger_leave(path->ledger);
}

/* What was not collected. */
static void count_rest(const struct pipeline *path, uint64_t samples, enum ledger_column why)
{
	ledger_enter(path->ledger);
	ledger_move(path->row, LEDGER_PROCESSING, why, samples);
	ledger_leave(path->ledger);
}

static bool no_room(struct error *err)
{
	return error_set(err, ERROR_BUSY, "the queues of the destinations have no room");
}

/* Gives the document to the routes, if there are any, and then to the connectors. It counts as
 * passed on by the routes, or else by the first connector. *left: the samples that are not in
 * `processing` any more. */
static bool share(const struct pipeline *path, struct profiles *p, void **scratch, uint64_t *left,
		  struct error *err)
{
	struct path_results results = { 0 };
	struct request *request = p->request;
	bool required = pipeline_is_required(path);
	struct collect_added added = { 0 }, rest = { 0 };
	enum batcher_result own = BATCHER_TAKEN;
	struct error own_error, why;
	error_clear(&own_error);
	*left = pipeline_count(p);
	if (path->route_count) {
		own = add_all(path, p, &added, &own_error);
		bool taken = own == BATCHER_TAKEN || (own == BATCHER_LOST && no_room(&own_error));
		path_results_note(&results, taken, !required || requires_routes(path), &own_error);
	}
	for (uint32_t i = 0; i < path->connection_count; i++) {
		const struct connection *c = &path->connections[i];
		bool last = i + 1 == path->connection_count;
		error_clear(&why);
		bool taken = connection_run(path, c, p, last, scratch, &why);
		path_results_note(&results, taken, !required || connection_is_required(c), &why);
	}
	rest.samples_in = *left - added.samples_in;
	if (own != BATCHER_FAILED && path->route_count)
		*left = added.samples_in;
	if (own == BATCHER_FAILED && !results.taken)
		count_rest(path, rest.samples_in, LEDGER_REFUSED);
	for (uint32_t i = 0; i < path->route_count && own == BATCHER_FAILED && results.taken; i++)
		drop_at(&path->routes[i], request, &rest, &own_error);
	return path_results_end(&results, request, err);
}

bool pipeline_continue(const struct pipeline *path, struct profiles *profiles, void **scratch,
		       struct error *err)
{
	uint64_t in = pipeline_count(profiles), left;
	struct collect_added added = { 0 };
	enum batcher_result result = BATCHER_FAILED;
	bool processed = process(path, profiles, scratch, err);
	if (processed && path->connection_count) {
		bool taken = share(path, profiles, scratch, &left, err);
		count_rest(path, in - left, LEDGER_POLICY);
		return taken;
	}
	if (processed)
		result = add_all(path, profiles, &added, err);
	count_rest(path, in - added.samples_in,
		   result == BATCHER_FAILED ? LEDGER_REFUSED : LEDGER_POLICY);
	if (result == BATCHER_FAILED)
		return false;
	return result == BATCHER_TAKEN || no_room(err);
}

bool pipeline_run(struct pipeline *path, struct profiles *profiles, uint64_t sampled,
		  void **scratch, struct error *err)
{
	count_in(path, pipeline_count(profiles), sampled);
	return pipeline_continue(path, profiles, scratch, err);
}

void pipeline_refuse(const struct pipeline *path, uint64_t samples)
{
	count_rest(path, samples, LEDGER_REFUSED);
}

/* Does some required queue have room for it, and every queue that must not drop? That is every
 * required one if a sender waits for all of them: a queue that accepted what its sender has to
 * repeat would get it twice. */
static bool finds_room(const struct route *route, struct packet *packet)
{
	bool found = !route->required_count;
	bool all = packet_has_acks(packet, ACK_MODE(ACK_DURABLE) | ACK_MODE(ACK_DELIVERED));
	for (uint32_t i = 0; i < route->required_count; i++) {
		enum delivery_room room = delivery_room(route->deliveries[i], packet);
		if (room == ROOM_SOON || (all && room != ROOM_SOME))
			return false;
		found = found || room == ROOM_SOME;
	}
	return found;
}

/* True if none is required. */
static bool routes_have_room(const struct pipeline *path)
{
	for (uint32_t i = 0; i < path->route_count; i++)
		for (uint32_t k = 0; k < path->routes[i].required_count; k++)
			if (delivery_room(path->routes[i].deliveries[k], NULL) == ROOM_SOME)
				return true;
	return !requires_routes(path);
}

static bool routes_block(const struct pipeline *path, enum ack_mode mode)
{
	for (uint32_t i = 0; i < path->route_count; i++)
		for (uint32_t k = 0; k < path->routes[i].required_count; k++) {
			enum delivery_room room =
				delivery_room(path->routes[i].deliveries[k], NULL);
			if (room == ROOM_SOON || (room == ROOM_NONE && mode != ACK_ENQUEUE))
				return true;
		}
	return false;
}

static const struct delivery *least_full(const struct route *route)
{
	const struct delivery *least = route->required_count ? route->deliveries[0] : NULL;
	for (uint32_t i = 1; i < route->required_count; i++)
		if (delivery_load(route->deliveries[i]) < delivery_load(least))
			least = route->deliveries[i];
	return least;
}

/*
 * Senders of this batch have already been answered, so it must enter a queue. Every queue that has
 * any room accepts it, and a queue that must not drop always does. If no required queue has room,
 * the least full one is stretched by the amount that was open and in transit; meanwhile the gate
 * refuses new requests.
 */
static bool emit_promised(const struct route *route, struct packet *packet, struct book **books)
{
	const struct pipeline *path = route->path;
	bool kept = routes_have_room(path) || routes_block(path, ACK_ENQUEUE);
	const struct delivery *keeper = kept ? NULL : least_full(route);
	bool taken = false;
	for (uint32_t i = 0; i < route->delivery_count; i++) {
		struct delivery *d = route->deliveries[i];
		bool last = !taken && i + 1 == route->required_count && path->route_count == 1;
		bool always = last || d == keeper || delivery_room(d, packet) == ROOM_SOON;
		bool entered = delivery_enqueue(d, packet, books[i],
						always ? ENTRY_ALWAYS : ENTRY_PROMISED);
		taken = taken || (entered && i < route->required_count);
	}
	return taken;
}

/* ---- what its sender may have to repeat */

static bool enter_all(const struct route *route, struct packet *packet, struct book **books,
		      enum queue_entry entry)
{
	bool taken = false;
	for (uint32_t i = 0; i < route->delivery_count; i++) {
		bool entered = delivery_enqueue(route->deliveries[i], packet, books[i], entry);
		taken = taken || (entered && i < route->required_count);
	}
	return taken;
}

/* A packet of one document, whose sender has no answer yet. */
struct refused {
	struct refused *next;
	const struct route *route;
	struct packet *packet; /* a reference */
	struct book **books;
};

static bool postpone(const struct route *route, struct packet *packet, struct book **books,
		     struct request *request)
{
	if (!request || !request->refused || packet->contribution_count != 1 ||
	    packet->contributions[0].ack)
		return false;
	struct refused *refused = memory_new(sizeof *refused);
	*refused = (struct refused){ .next = *request->refused,
				     .route = route,
				     .packet = packet_ref(packet),
				     .books = books };
	*request->refused = refused;
	return true;
}

void pipeline_conclude(struct refused **list, bool accepted)
{
	while (*list) {
		struct refused *refused = *list;
		*list = refused->next;
		enter_all(refused->route, refused->packet, refused->books,
			  accepted ? ENTRY_IF_FITS : ENTRY_REFUSED);
		packet_unref(&refused->packet);
		memory_free(refused->books);
		memory_free(refused);
	}
}

/* If there is no room, no queue accepts the packet, not even one that gets room at this moment: the
 * sender then retries, and the packet is not lost for the others. Clears the books if they are
 * needed longer. */
static bool emit_unanswered(const struct route *route, struct packet *packet, struct book ***books,
			    struct request *request)
{
	if (finds_room(route, packet))
		return enter_all(route, packet, *books, ENTRY_IF_FITS);
	if (!postpone(route, packet, *books, request))
		return enter_all(route, packet, *books, ENTRY_REFUSED);
	*books = NULL;
	return false;
}

/* Has some sender of it been answered? */
static bool is_promised(const struct route *route, const struct packet *packet)
{
	bool waiting = packet->contribution_count > 0;
	for (uint32_t i = 0; i < packet->contribution_count; i++)
		waiting = waiting && packet->contributions[i].ack;
	return route->settings.on && !route->waits && !waiting;
}

bool pipeline_emit(void *context, struct packet *packet, struct request *request)
{
	const struct route *route = context;
	_Atomic int64_t bytes = 0;
	/* Keeps an encoding that several destinations read until the last of them has the
	 * packet. */
	struct packet_holder all = { .bytes = &bytes, .reads = FORM_JSON };
	packet_charge_to(packet, budget_charge, route->path->budget);
	packet_attach(packet, &all);
	struct book **books = hand_over(route, packet);
	bool taken = is_promised(route, packet) ? emit_promised(route, packet, books)
						: emit_unanswered(route, packet, &books, request);
	memory_free(books);
	packet_detach(packet, &all);
	packet_release_acks(packet, ACK_MODE_ANY, ACK_TAKEN);
	packet_unref(&packet);
	return taken || !route->required_count;
}

bool pipeline_has_room(const struct pipeline *path)
{
	if (!path->connection_count)
		return routes_have_room(path);
	bool room = requires_routes(path) && routes_have_room(path);
	for (uint32_t i = 0; i < path->connection_count && !room; i++)
		room = connection_is_required(&path->connections[i]) &&
		       connection_has_room(&path->connections[i]);
	return room || !pipeline_is_required(path);
}

bool pipeline_blocks(const struct pipeline *path, enum ack_mode mode)
{
	for (uint32_t i = 0; i < path->connection_count; i++)
		if (connection_blocks(&path->connections[i], mode))
			return true;
	return routes_block(path, mode);
}
