/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/exporters.h"

#include "base/memory.h"
#include "pipeline/graph/private.h"

#include <assert.h>
#include <string.h>

/* Of the exporters that no graph has, this many may wait for their destinations. */
enum { ALONE_MAX = 32 };

struct exporter {
	struct exporters *all;
	struct exporter *next;
	struct declared declared; /* its own copy */
	struct storage *storage;  /* the delivery has a reference */
	void *self;
	struct host host;
	struct delivery *delivery;
	struct named_auths auths;
	const char **context_keys; /* ends with NULL; the texts are of others */
	/* The numbers of graphs that have borrowed it and that use it, and the numbers of users
	 * that have begun to end and whose deadline has passed. */
	uint32_t borrowers, users, ending, late;
	_Atomic bool started;
	_Atomic bool closing; /* it can no longer be borrowed */
	bool cut;             /* the deadline of a user has passed that ends with the program */
	bool alone;           /* no graph has it; it ends when its queue is empty */
	bool hastened, stopping, stopped, drained;
	struct exporter *next_stop;
	void (*gone)(void *argument);
	void *argument;
};

struct exporters {
	struct loop *loop;
	struct metrics *metrics;
	struct ledger *ledger;
	struct budget *budget;
	struct kill_switch *kills; /* NULL: none */
	pthread_mutex_t lock;      /* the list changes under it, on the loop thread */
	struct exporter *first;
	uint32_t count;
	struct exporter *stops; /* the queue of stops; the first one is running on the pool */
	uint32_t alone;
	bool ending;                        /* the program ends */
	bool keeping;                       /* and half of its time is over */
	void (*none_alone)(void *argument); /* then: none is left */
	void *argument;
};

struct exporters *exporters_new(struct loop *loop, struct metrics *metrics, struct ledger *ledger,
				struct budget *budget)
{
	struct exporters *all = memory_new(sizeof *all);
	*all = (struct exporters){ .loop = loop,
				   .metrics = metrics,
				   .ledger = ledger,
				   .budget = budget,
				   .lock = PTHREAD_MUTEX_INITIALIZER };
	return all;
}

static void obey(struct exporter *e)
{
	struct kill_switch *kills = e->all->kills;
	enum delivery_kill kill = DELIVERY_ALIVE;
	if (!kills)
		return;
	if (kill_switch_kills_destination(kills, e->declared.id))
		kill = kill_switch_drops(kills) ? DELIVERY_DISCARDS : DELIVERY_HOLDS;
	delivery_set_kill(e->delivery, kill);
}

static void obey_all(void *context)
{
	struct exporters *all = context;
	for (struct exporter *e = all->first; e; e = e->next)
		if (e->started)
			obey(e);
}

void exporters_obey(struct exporters *all, struct kill_switch *kills)
{
	all->kills = kills;
	kill_switch_notify(kills, obey_all, all);
}

void exporters_unref(struct exporters **exporters)
{
	struct exporters *all = *exporters;
	*exporters = NULL;
	if (!all)
		return;
	assert(!all->first);
	pthread_mutex_destroy(&all->lock);
	memory_free(all);
}

void exporters_each(struct exporters *all,
		    void (*report)(void *context, const char *id, enum circuit_state circuit,
				   const struct send_result *why),
		    void *context)
{
	struct send_result why;
	pthread_mutex_lock(&all->lock);
	for (const struct exporter *e = all->first; e; e = e->next)
		if (e->started && !e->closing)
			report(context, e->declared.id, delivery_circuit(e->delivery),
			       delivery_is_failing(e->delivery, &why) ? &why : NULL);
	pthread_mutex_unlock(&all->lock);
}

static void link_exporter(struct exporter *e)
{
	pthread_mutex_lock(&e->all->lock);
	e->next = e->all->first;
	e->all->first = e;
	e->all->count++;
	pthread_mutex_unlock(&e->all->lock);
}

static void unlink_exporter(struct exporter *e)
{
	pthread_mutex_lock(&e->all->lock);
	struct exporter **link = &e->all->first;
	while (*link != e)
		link = &(*link)->next;
	*link = e->next;
	e->all->count--;
	pthread_mutex_unlock(&e->all->lock);
}

static void destroy(struct exporter *e)
{
	const struct component_factory *factory = e->declared.factory;
	unlink_exporter(e);
	delivery_unref(&e->delivery);
	if (e->self && factory->destroy)
		factory->destroy(e->self);
	memory_free(e->self);
	declared_fini(&e->declared);
	named_auths_fini(&e->auths);
	memory_free(e->context_keys);
	memory_free(e);
}

static struct exporter *find(const struct exporters *all, const struct declared *declared,
			     const struct storage *storage, struct authenticators authenticators)
{
	for (struct exporter *e = all->first; e; e = e->next)
		if (!e->closing && e->storage == storage && declared_same(&e->declared, declared) &&
		    named_auths_same(&e->auths, authenticators))
			return e;
	return NULL;
}

static size_t count_keys(const char *const *keys)
{
	size_t count = 0;
	while (keys && keys[count])
		count++;
	return count;
}

/* The exporter's own keys, then those of its authenticator. */
static void join_context_keys(struct exporter *e)
{
	const struct exporter_ops *ops = e->declared.factory->exporter;
	const char *const *own = ops->context_keys ? ops->context_keys(e->self) : NULL;
	const char *const *of_auth = named_auths_context_keys(&e->auths);
	size_t first = count_keys(own), second = count_keys(of_auth);
	e->context_keys = memory_array(first + second + 1, sizeof *e->context_keys);
	for (size_t i = 0; i < first; i++)
		e->context_keys[i] = own[i];
	for (size_t i = 0; i < second; i++)
		e->context_keys[first + i] = of_auth[i];
}

static bool create(struct exporter *e, const struct declared *declared,
		   struct authenticators authenticators, struct error *err)
{
	const struct component_factory *factory = declared->factory;
	struct exporters *all = e->all;
	if (!declared_copy(&e->declared, declared, err))
		return false;
	e->host = (struct host){
		.id = e->declared.id,
		.log = {
			.component_kind = component_kind_names[COMPONENT_EXPORTER],
			.component_id = e->declared.id,
			.signal = "profiles",
		},
		.metrics = all->metrics,
		.loop = all->loop,
		.authenticators = named_auths_record(&e->auths, authenticators),
	};
	e->self = memory_new(factory->size);
	if (!factory->create(e->self, e->declared.config, &e->host, err))
		return declared_blame(&e->declared, err);
	join_context_keys(e);
	e->delivery = delivery_new(&(struct delivery_options){
		.ops = factory->exporter,
		.exporter = e->self,
		.config = inventory_delivery(&e->declared),
		.id = e->declared.id,
		.type = factory->type,
		.log = &e->host.log,
		.metrics = e->all->metrics,
		.ledger = e->all->ledger,
		.loop = e->all->loop,
		.budget = e->all->budget,
		.storage = e->storage,
		.auth_keys = named_auths_context_keys(&e->auths),
	});
	return true;
}

const char *const *exporters_context_keys(const struct exporter *e)
{
	return e->context_keys;
}

static struct exporter *add(struct exporters *all, const struct declared *declared,
			    struct storage *storage, struct authenticators authenticators,
			    struct error *err)
{
	struct exporter *e = memory_new(sizeof *e);
	e->all = all;
	e->storage = storage;
	link_exporter(e);
	if (create(e, declared, authenticators, err))
		return e;
	destroy(e);
	return NULL;
}

struct exporter *exporters_borrow(struct exporters *all, const struct declared *declared,
				  struct storage *storage, struct authenticators authenticators,
				  struct error *err)
{
	struct exporter *e = find(all, declared, storage, authenticators);
	if (!e)
		e = add(all, declared, storage, authenticators, err);
	if (e)
		e->borrowers++;
	return e;
}

static bool has_ended(const struct exporter *e)
{
	return e->drained && e->stopped;
}

void exporters_return(struct exporter **exporter)
{
	struct exporter *e = *exporter;
	*exporter = NULL;
	if (!e || --e->borrowers || (e->alone && !has_ended(e)))
		return;
	assert(!e->users && e->stopped == e->started);
	destroy(e);
}

bool exporters_start(struct exporter *e, struct error *err)
{
	const struct exporter_ops *ops = e->declared.factory->exporter;
	assert(!e->closing);
	e->users++;
	if (e->started)
		return true;
	e->started = true;
	obey(e);
	if ((!ops->start || ops->start(e->self, err)) && delivery_start(e->delivery, err))
		return true;
	e->closing = true;
	return declared_blame(&e->declared, err);
}

struct delivery *exporters_delivery(const struct exporter *e)
{
	return e->delivery;
}

int64_t exporters_share(struct exporters *all, uint32_t workers)
{
	int64_t share = budget_share(all->budget, workers, all->count);
	for (struct exporter *e = all->first; e; e = e->next)
		delivery_set_share(e->delivery, share);
	return share;
}

void exporters_reopen(struct exporters *all)
{
	for (struct exporter *e = all->first; e; e = e->next)
		if (e->started && !e->stopping)
			component_reopen(e->declared.factory, e->self, &e->host.log);
}

static void end_alone(struct exporter *e)
{
	struct exporters *all = e->all;
	log_info(&e->host.log, "The exporter has ended");
	all->alone--;
	if (!e->borrowers)
		destroy(e);
	if (!all->alone && all->none_alone)
		loop_post(all->loop, all->none_alone, all->argument);
}

/* The last access to the exporter on behalf of its last user. */
static void finish(struct exporter *e)
{
	if (!has_ended(e))
		return;
	if (e->alone)
		end_alone(e);
	else
		e->gone(e->argument);
}

static void run_stop(void *argument)
{
	struct exporter *e = argument;
	const struct exporter_ops *ops = e->declared.factory->exporter;
	if (ops->stop)
		ops->stop(e->self);
}

static void has_stopped(void *argument)
{
	struct exporter *e = argument;
	struct exporters *all = e->all;
	all->stops = e->next_stop;
	if (all->stops)
		loop_work(all->loop, run_stop, has_stopped, all->stops);
	e->stopped = true;
	finish(e);
}

/* Stops run one at a time: a stop may wait for work that also needs the pool. */
static void begin_stop(struct exporter *e)
{
	struct exporter **link = &e->all->stops;
	if (e->stopping)
		return;
	e->stopping = true;
	while (*link)
		link = &(*link)->next_stop;
	*link = e;
	if (e->all->stops == e)
		loop_work(e->all->loop, run_stop, has_stopped, e);
}

static void has_drained(void *argument)
{
	struct exporter *e = argument;
	e->drained = true;
	begin_stop(e);
	finish(e);
}

/* The deadline of one user has passed. */
static void cut_short(struct exporter *e)
{
	bool all = e->late >= e->users && e->cut;
	if (all || delivery_waits(e->delivery))
		delivery_abandon(e->delivery);
	else if (delivery_is_awaited(e->delivery))
		delivery_release_senders(e->delivery);
	if (all)
		begin_stop(e);
}

void exporters_end(struct exporter *e, bool retires)
{
	if (++e->ending < e->users)
		return;
	e->closing = true;
	if (!retires && delivery_is_awaited(e->delivery))
		delivery_stop_retrying(e->delivery);
}

void exporters_expire(struct exporter *e, bool retires)
{
	e->late++;
	e->cut = e->cut || !retires;
	cut_short(e);
}

static void drain(struct exporter *e)
{
	delivery_drain(e->delivery, has_drained, e);
	if (e->all->keeping)
		delivery_keep_waiting(e->delivery);
}

/* The graph leaves an exporter that other graphs use. */
static void leave_to_others(struct exporter *e, bool late)
{
	e->late -= late;
	if (e->late)
		cut_short(e);
	else if (!e->closing)
		delivery_resume(e->delivery);
}

bool exporters_leave(struct exporter *e, bool late, void (*gone)(void *argument), void *argument)
{
	e->users--;
	e->ending--;
	if (e->users) {
		leave_to_others(e, late);
		return false;
	}
	e->gone = gone;
	e->argument = argument;
	drain(e);
	if (late)
		cut_short(e);
	return true;
}

/* The maximum number of exporters that no graph uses any more. */
static void hasten_oldest(struct exporters *all)
{
	struct exporter *oldest = NULL;
	for (struct exporter *e = all->first; e; e = e->next)
		if (e->alone && !e->drained && !e->hastened)
			oldest = e;
	if (!oldest)
		return;
	oldest->hastened = true;
	log_warn(&oldest->host.log,
		 "Too many exporters that are no longer configured; each packet of the oldest "
		 "gets one more attempt");
	drain(oldest);
}

void exporters_let_go(struct exporter *e, bool late)
{
	e->users--;
	e->ending--;
	if (e->users) {
		leave_to_others(e, late);
		return;
	}
	e->closing = e->alone = true;
	if (e->storage)
		log_info(&e->host.log,
			 "The exporter is no longer configured; its queue stays on disk, and it "
			 "ends when nothing is left in memory");
	else
		log_info(&e->host.log,
			 "The exporter is no longer configured; it ends when its queue is empty");
	if (e->all->ending)
		drain(e);
	else
		delivery_wait_empty(e->delivery, has_drained, e);
	if (++e->all->alone > ALONE_MAX)
		hasten_oldest(e->all);
	if (e->all->ending && late)
		cut_short(e);
}

void exporters_keep_waiting(struct exporters *all)
{
	all->keeping = true;
	for (struct exporter *e = all->first; e; e = e->next)
		delivery_keep_waiting(e->delivery);
}

void exporters_expire_alone(struct exporters *all)
{
	for (struct exporter *e = all->first; e; e = e->next)
		if (e->alone) {
			delivery_abandon(e->delivery);
			begin_stop(e);
		}
}

void exporters_end_alone(struct exporters *all, void (*none)(void *argument), void *argument)
{
	all->ending = true;
	all->none_alone = none;
	all->argument = argument;
	for (struct exporter *e = all->first; e; e = e->next)
		if (e->alone && !e->drained)
			drain(e);
}

uint32_t exporters_alone(const struct exporters *all)
{
	return all->alone;
}

int64_t exporters_log_stuck(const struct exporters *all,
			    void (*lost)(void *context, const char *id, int64_t samples),
			    void *context)
{
	int64_t kept = 0;
	for (const struct exporter *e = all->first; e; e = e->next) {
		int64_t waiting;
		kept += delivery_log_stuck(e->delivery, &waiting);
		lost(context, e->declared.id, waiting);
	}
	return kept;
}
