/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/dead_letters.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/secret_name.h"
#include "pipeline/delivery/delivery_private.h"
#include "pipeline/delivery/letter_files.h"

#include <strings.h>

#define PENDING_SHARE 4                   /* of the destination's memory */
#define PENDING_BYTES ((int64_t)64 << 20) /* without a share */
#define MEBIBYTE ((uint64_t)1 << 20)

static const struct metric letters_written = {
	"otelcol_exporter_dead_letters", METRIC_COUNTER, "{letters}",
	"Dead letters written, by the reason for which the destination did not get the data."
};
static const struct metric letters_failed = {
	"otelcol_exporter_dead_letters_failed", METRIC_COUNTER, "{letters}",
	"Dead letters that could not be written, so that their data was dropped: the directory is "
	"full, too many wait for the disk (`busy`), or a write failed (`error`)."
};
static const struct metric letters_now = {
	"otelcol_exporter_dead_letter_count", METRIC_GAUGE, "{letters}",
	"Dead letters in the directory when the last one was written. What others have removed may "
	"still count for a minute."
};
static const struct metric bytes_now = { "otelcol_exporter_dead_letter_bytes", METRIC_GAUGE, "By",
					 "The size of these files." };

const struct metric *const dead_letter_metrics[] = { &letters_written, &letters_failed,
						     &letters_now, &bytes_now, NULL };

/* One that waits to be written. */
struct dead_letter {
	struct dead_letter *next;
	struct item *item;     /* a hold */
	struct packet *packet; /* a reference */
	struct loss loss;
	bool partial;
	uint64_t rejected_profiles, dropped;
};

void dead_letters_init(struct delivery *d)
{
	static const char *const failures[DEAD_LETTER_FAILURES] = {
		[DEAD_LETTER_FULL] = "full",
		[DEAD_LETTER_BUSY] = "busy",
		[DEAD_LETTER_ERROR] = "error",
	};
	const struct dead_letter_config *c = &d->options.config->dead_letter;
	struct dead_letters *l = &d->letters;
	struct metrics *m = d->options.metrics;
	struct metric_label labels[] = { { "exporter", d->options.id }, { "reason", NULL }, { 0 } };
	pthread_mutex_init(&l->turn, NULL);
	l->last = &l->first;
	l->on = c->present.enabled;
	if (!l->on)
		return;
	for (unsigned i = LEDGER_QUEUE_FULL; i < DEAD_LETTER_KINDS; i++) {
		labels[1].value = i < LEDGER_COLUMNS ? ledger_reason(i) : LETTER_PARTIAL;
		l->written[i] = metrics_series(m, &letters_written, labels);
	}
	for (unsigned i = 0; i < DEAD_LETTER_FAILURES; i++) {
		labels[1].value = failures[i];
		l->failed[i] = metrics_series(m, &letters_failed, labels);
	}
	labels[1].name = NULL;
	l->letters = metrics_series(m, &letters_now, labels);
	l->used = metrics_series(m, &bytes_now, labels);
}

static void show(struct dead_letters *l)
{
	metric_set(l->letters, (int64_t)l->box->letters);
	metric_set(l->used, (int64_t)l->box->bytes);
}

bool dead_letters_start(struct delivery *d, struct error *err)
{
	const struct dead_letter_config *c = &d->options.config->dead_letter;
	if (!d->letters.on)
		return true;
	d->letters.box = letter_box_open(c->directory, (uint64_t)c->max_size_mib * MEBIBYTE,
					 (uint64_t)c->max_letters, err);
	return d->letters.box || error_prefix(err, "dead_letter");
}

void dead_letters_fini(struct delivery *d)
{
	letter_box_unref(&d->letters.box);
	pthread_mutex_destroy(&d->letters.turn);
}

/* ---- writing */

/* Logs a failure once, until letters are written again. [any thread] */
static void fail(struct delivery *d, enum dead_letter_failure failure, const char *why)
{
	struct dead_letters *l = &d->letters;
	pthread_mutex_lock(&d->lock);
	bool news = !l->failing[failure];
	l->failing[failure] = true;
	pthread_mutex_unlock(&d->lock);
	metric_add(l->failed[failure], 1);
	if (news)
		log_error(d->options.log, "Dead letters cannot be written. Dropping data.",
			  log_text("error", why));
}

static void recover(struct delivery *d)
{
	struct dead_letters *l = &d->letters;
	bool news = false;
	pthread_mutex_lock(&d->lock);
	for (unsigned i = 0; i < DEAD_LETTER_FAILURES; i++) {
		news = news || l->failing[i];
		l->failing[i] = false;
	}
	pthread_mutex_unlock(&d->lock);
	if (news)
		log_info(d->options.log, "Dead letters are written again.");
}

static bool is_in(const char *const *names, const char *name)
{
	while (names && *names && strcasecmp(*names, name))
		names++;
	return names && *names;
}

/* What is written of it: neither the key of its batch, which repeats the values, nor credentials of
 * senders, unless the authenticator sends them. The caller's reference; NULL: there is none. */
static struct origin *origin_of(const struct delivery *d, const struct origin *origin)
{
	size_t count = 0, kept = 0;
	while (origin && origin->metadata[count].name)
		count++;
	struct metadatum *list = memory_array(count + 1, sizeof *list);
	for (size_t i = 0; i < count; i++) {
		const char *name = origin->metadata[i].name;
		if (!secret_name_is(name) || is_in(d->options.auth_keys, name))
			list[kept++] = origin->metadata[i];
	}
	struct origin *written = origin ? origin_new("", origin->tenant, list) : NULL;
	memory_free(list);
	return written;
}

static struct letter letter_of(const struct delivery *d, const struct dead_letter *dead,
			       const struct origin *origin)
{
	return (struct letter){
		.packet = dead->packet,
		.origin = origin,
		.destination = d->options.id,
		.pipeline = dead->item->book->pipeline,
		.reason = dead->partial ? LETTER_PARTIAL : ledger_reason(dead->loss.reason),
		.error = dead->loss.error,
		.made_for = dead->loss.planned ? d->options.type : NULL,
		.samples = dead->loss.samples,
		.rejected_profiles = dead->rejected_profiles,
		.attempts = dead->loss.attempts,
		.dropped = dead->dropped,
	};
}

static void note_result(struct delivery *d, const struct dead_letter *dead,
			enum letter_result result, const char *why)
{
	struct dead_letters *l = &d->letters;
	if (result == LETTER_WRITTEN) {
		metric_add(l->written[dead->partial ? LEDGER_COLUMNS : dead->loss.reason], 1);
		recover(d);
	} else if (result == LETTER_FULL) {
		fail(d, DEAD_LETTER_FULL, "the directory is full");
	} else {
		fail(d, DEAD_LETTER_ERROR, why);
	}
}

static void end_one(struct delivery *d, struct dead_letter *dead, bool written)
{
	if (!dead->partial)
		delivery_settle_loss(d, dead->item, &dead->loss, written);
	packet_unref(&dead->packet);
	delivery_release_item(d, dead->item);
	memory_free(dead);
}

/* Returns the bytes of the packets. */
static int64_t write_group(struct delivery *d, struct dead_letter **group, uint32_t count)
{
	struct letter letters[LETTER_GROUP_MAX] = { { NULL } };
	struct origin *origins[LETTER_GROUP_MAX];
	enum letter_result results[LETTER_GROUP_MAX];
	struct error err;
	int64_t bytes = 0;
	error_clear(&err);
	for (uint32_t i = 0; i < count; i++) {
		origins[i] = origin_of(d, group[i]->packet->origin);
		letters[i] = letter_of(d, group[i], origins[i]);
	}
	letter_box_add(d->letters.box, letters, count, results, &err);
	show(&d->letters);
	for (uint32_t i = 0; i < count; i++) {
		origin_unref(&origins[i]);
		bytes += (int64_t)group[i]->packet->otlp.len;
		note_result(d, group[i], results[i], err.text);
		end_one(d, group[i], results[i] == LETTER_WRITTEN);
	}
	return bytes;
}

/* The lock is held, except while they are written. */
static void write_next(struct delivery *d)
{
	struct dead_letters *l = &d->letters;
	struct dead_letter *group[LETTER_GROUP_MAX];
	uint32_t count = 0;
	while (l->first && count < LETTER_GROUP_MAX) {
		group[count++] = l->first;
		l->first = l->first->next;
	}
	l->last = l->first ? l->last : &l->first;
	pthread_mutex_unlock(&d->lock);
	int64_t bytes = write_group(d, group, count);
	pthread_mutex_lock(&d->lock);
	l->bytes -= bytes;
	l->pending -= count;
}

static void write_all(void *argument)
{
	struct delivery *d = argument;
	struct dead_letters *l = &d->letters;
	letter_box_look(l->box);
	show(l);
	pthread_mutex_lock(&d->lock);
	while (l->first)
		write_next(d);
	pthread_mutex_unlock(&d->lock);
}

/* On the loop thread: the delivery may end when `writing` is false. */
static void has_written(void *argument)
{
	struct delivery *d = argument;
	struct dead_letters *l = &d->letters;
	pthread_mutex_lock(&d->lock);
	bool more = l->writing = l->first != NULL;
	pthread_mutex_unlock(&d->lock);
	if (more)
		loop_work(d->options.loop, write_all, has_written, d);
	else
		delivery_wake(d);
}

void dead_letters_look(struct delivery *d)
{
	struct dead_letters *l = &d->letters;
	pthread_mutex_lock(&d->lock);
	bool idle = l->on && !l->writing;
	l->writing = l->writing || idle;
	pthread_mutex_unlock(&d->lock);
	if (idle)
		loop_work(d->options.loop, write_all, has_written, d);
}

/* ---- taking */

/* Do all of its senders wait for this destination, and get an error that asks for a retry? */
static bool all_will_repeat(const struct delivery *d, const struct packet *packet,
			    enum ledger_column reason)
{
	if (!packet->contribution_count ||
	    (packet->contribution_count == 1 && !sending_may_be_repeated(reason)))
		return false;
	for (uint32_t i = 0; i < packet->contribution_count; i++) {
		const struct contribution *c = &packet->contributions[i];
		if (!c->ack || !(d->acks & ACK_MODE(c->mode)))
			return false;
	}
	return true;
}

/* Will its senders repeat it? */
static bool will_be_repeated(struct delivery *d, const struct item *item, enum ledger_column reason)
{
	const struct item *root = item->parent ? item->parent : item;
	pthread_mutex_lock(&d->lock);
	bool repeated = !root->answered && all_will_repeat(d, root->packet, reason);
	pthread_mutex_unlock(&d->lock);
	return repeated;
}

/* Under the lock. */
static bool has_room(const struct delivery *d, int64_t bytes)
{
	const struct dead_letters *l = &d->letters;
	int64_t share = d->backlog.bytes_max;
	int64_t max = share ? share / PENDING_SHARE : PENDING_BYTES;
	return !l->pending || d->draining || l->bytes + bytes <= max;
}

static bool put(struct delivery *d, struct dead_letter *dead)
{
	struct dead_letters *l = &d->letters;
	int64_t bytes = (int64_t)dead->packet->otlp.len;
	pthread_mutex_lock(&d->lock);
	bool ok = has_room(d, bytes), idle = !l->writing;
	if (ok) {
		*l->last = dead;
		l->last = &dead->next;
		l->pending++;
		l->bytes += bytes;
		l->writing = true;
		dead->item->holds++;
	}
	pthread_mutex_unlock(&d->lock);
	if (ok && idle)
		loop_work(d->options.loop, write_all, has_written, d);
	return ok;
}

static bool take(struct delivery *d, struct item *item, const struct loss *loss, bool partial,
		 uint64_t rejected)
{
	struct dead_letter *dead = memory_new(sizeof *dead);
	*dead = (struct dead_letter){ .item = item,
				      .packet = packet_ref(loss->packet),
				      .loss = *loss,
				      .partial = partial,
				      .rejected_profiles = rejected,
				      .dropped = clock_wall() };
	if (put(d, dead))
		return true;
	packet_unref(&dead->packet);
	memory_free(dead);
	fail(d, DEAD_LETTER_BUSY, "too many wait for the disk");
	return false;
}

/* What the operator wants to be discarded, and what must leave memory at once, is not kept. */
static bool may_keep(enum ledger_column reason)
{
	return reason != LEDGER_KILLED && reason != LEDGER_SHED;
}

static void report(struct delivery *d, const struct loss *loss, uint64_t rejected)
{
	if (!d->options.lost)
		return;
	pthread_mutex_lock(&d->letters.turn);
	d->options.lost(d->options.lost_context, loss, rejected);
	pthread_mutex_unlock(&d->letters.turn);
}

bool dead_letters_take(struct delivery *d, struct item *item, const struct loss *loss)
{
	report(d, loss, 0);
	return d->letters.on && loss->packet && loss->samples && may_keep(loss->reason) &&
	       !will_be_repeated(d, item, loss->reason) && take(d, item, loss, false, 0);
}

void dead_letters_take_partial(struct delivery *d, struct item *item, const struct loss *loss,
			       uint64_t rejected_profiles)
{
	report(d, loss, rejected_profiles);
	if (d->letters.on)
		take(d, item, loss, true, rejected_profiles);
}
