/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/commands.h"

#include "base/clock.h"
#include "base/memory.h"
#include "gateway/service.h"
#include "pipeline/delivery/book.h"
#include "pipeline/delivery/dead_letters.h"
#include "pipeline/delivery/letter_files.h"
#include "pipeline/graph/lone.h"
#include "pipeline/graph/service_config.h"
#include "pipeline/intake/screen.h"
#include "profile/collect/collect.h"
#include "profile/otlp/decode_otlp.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

/*
 * `portcullis replay DIR --to EXPORTER`: sends dead letters again, oldest first, one at a time. A
 * letter is removed when the destination has accepted all of it. If it accepts only some requests
 * of it, the others become letters in its place. So the command can be repeated after any end: at
 * most the letter that was in flight when it was killed is sent twice. No processor runs again:
 * what is in a letter has left the policy. It is decoded and collected anew, so nothing else can
 * leave. The file of the kill switch is obeyed.
 *
 * Everything runs on the loop, except `answered` and, before it, `keep_lost`.
 */
#define TABLES_FACTOR 20
#define TABLES_SPARE ((size_t)1 << 20)

enum result { SENT, PARTLY, REJECTED, SKIPPED, RESULTS };

struct replay {
	const struct options *options;
	struct service service;
	struct lone *lone;
	struct ack ack;
	_Atomic enum ack_outcome outcome;
	struct screening screening;
	const char *path;
	int directory;
	struct letter_names names;
	size_t next;                   /* the letter in flight is the one before it */
	struct letter_content content; /* of the letter in flight */
	int64_t accepted;              /* samples, before it */
	uint64_t samples;              /* of it */
	struct letter *rest;           /* what the destination has not accepted of it, */
	size_t rest_count;
	uint64_t lost; /* and its samples, without requests that were accepted in part */
	size_t count[RESULTS];
	struct error *err;
	bool failed;
};

/* ---- a letter */

/* Does the kill switch leave all of the letter's data alone? */
static bool is_permitted(struct replay *r, struct profiles *p, struct error *err)
{
	const struct screen screen = { .kills = r->service.runtime.kills };
	const struct quota_sender nobody = { 0 };
	if (screen_document(&screen, &r->screening, &nobody, p, p->input.len, err) &&
	    r->screening.refusal == REFUSAL_NONE)
		return true;
	return error_set(err, ERROR_FORBIDDEN, "the kill switch stops its data");
}

/* Canonical OTLP of what the letter says, with its tenant and metadata; NULL: err. */
static struct packet *collect_packet(struct replay *r, struct packet *kept, struct error *err)
{
	struct profiles p = { 0 };
	struct request request = { .receiver = "replay",
				   .transport = TRANSPORT_FILE,
				   .tenant = kept->origin ? kept->origin->tenant : NULL,
				   .arrival = kept->oldest_arrival };
	struct collect *collect = collect_new(&(struct collect_limits){ .hard_bytes = INT32_MAX });
	struct collect_added added;
	struct view body = bytes_view(&kept->otlp);
	size_t cap = body.len * TABLES_FACTOR + TABLES_SPARE;
	struct packet *packet = NULL;
	bool ok = profiles_reset(&p, &request, body, cap) ? decode_otlp(&p, err)
							  : profiles_over_cap(&p, err);
	ok = ok && is_permitted(r, &p, err);
	if (ok && collect_add(collect, &p, false, &added, err) == COLLECT_ADDED)
		packet = collect_seal(collect);
	else if (!err->kind)
		error_set(err, ERROR_INVALID, "it contains no samples");
	collect_unref(&collect);
	profiles_fini(&p);
	if (packet) {
		packet->origin = origin_ref(kept->origin);
		packet_set_id(packet, packet_id(kept)); /* receivers recognise a repetition */
	}
	return packet;
}

/* Waits for the destination. */
static void expect_answer(struct replay *r, struct packet *packet)
{
	memory_free(packet->contributions);
	packet->contributions = memory_array(1, sizeof *packet->contributions);
	packet->contribution_count = 1;
	packet->contributions[0] = (struct contribution){ .receiver = "replay",
							  .profiles = packet->profiles,
							  .samples_in = packet->samples,
							  .ack = &r->ack,
							  .mode = r->ack.mode };
}

static bool is_sendable(const struct replay *r, const struct letter_content *c, struct error *err)
{
	if (*c->made_for && strcmp(c->made_for, lone_type(r->lone)) != 0)
		return error_set(err, ERROR_INVALID, "it was made for an exporter of type %s",
				 c->made_for);
	if (!strcmp(c->reason, LETTER_PARTIAL) && !r->options->include_partial)
		return error_set(err, ERROR_INVALID,
				 "the destination has accepted part of it; --include-partial sends "
				 "all of it again");
	return true;
}

/* NULL: it is not sent. The caller has the packet, and the content of the letter. */
static struct packet *read_packet(struct replay *r, const char *name, struct error *err)
{
	struct letter_content *c = &r->content;
	if (!letter_read(r->directory, name, c, err) || !is_sendable(r, c, err))
		return NULL;
	struct packet *packet = collect_packet(r, c->packet, err);
	if (packet)
		packet->planned = *c->made_for != '\0';
	return packet;
}

/* ---- progress */

static void print_letter(const struct replay *r, const char *what, uint64_t samples)
{
	printf("[%zu/%zu] %s: %s, %llu samples, reason %s\n", r->next, r->names.count,
	       r->names.at[r->next - 1], what, (unsigned long long)samples, r->content.reason);
	fflush(stdout);
}

static void skip(struct replay *r, const char *name, const struct error *why)
{
	r->count[SKIPPED]++;
	printf("[%zu/%zu] %s: skipped: %s\n", r->next, r->names.count, name, why->text);
	fflush(stdout);
}

static void print_begin(const struct replay *r)
{
	printf("%zu dead letters in %s, to %s. They are sent as they left the policy: no processor "
	       "runs again.\n",
	       r->names.count, r->path, r->options->to);
	if (r->names.others)
		printf("%zu other files are left alone.\n", r->names.others);
	fflush(stdout);
}

static void print_end(const struct replay *r)
{
	size_t done = r->count[SENT] + r->count[PARTLY] + r->count[REJECTED] + r->count[SKIPPED];
	printf("%zu sent, %zu accepted in part, %zu rejected, %zu skipped, %zu not tried\n",
	       r->count[SENT], r->count[PARTLY], r->count[REJECTED], r->count[SKIPPED],
	       r->names.count - done);
}

/* ---- one after the other */

static void stopped(void *argument)
{
	loop_stop(((struct replay *)argument)->service.runtime.loop);
}

static void send_next(struct replay *r);

static void end(struct replay *r)
{
	if (r->options->dry_run)
		stopped(r); /* nothing was started */
	else
		lone_stop(r->lone, stopped, r);
}

static const char *made_for(const struct replay *r)
{
	return *r->content.made_for ? r->content.made_for : NULL;
}

static void add_rest(struct replay *r, const struct letter *letter)
{
	size_t size = (r->rest_count + 1) * sizeof *r->rest;
	r->rest = memory_resize(r->rest, size);
	r->rest[r->rest_count] = *letter;
	r->rest[r->rest_count].origin = letter->packet->origin; /* as it was in the letter */
	r->rest[r->rest_count].destination = r->options->to;
	r->rest[r->rest_count].pipeline = "replay";
	r->rest[r->rest_count].dropped = clock_wall();
	packet_ref(r->rest[r->rest_count++].packet);
}

/* On any thread. */
static void keep_lost(void *context, const struct loss *loss, uint64_t rejected_profiles)
{
	struct replay *r = context;
	if (!loss->packet || !loss->samples)
		return;
	r->lost += rejected_profiles ? 0 : loss->samples;
	add_rest(r,
		 &(struct letter){
			 .packet = loss->packet,
			 .reason = rejected_profiles ? LETTER_PARTIAL : ledger_reason(loss->reason),
			 .error = loss->error,
			 .made_for = loss->planned ? lone_type(r->lone) : made_for(r),
			 .samples = loss->samples,
			 .rejected_profiles = rejected_profiles,
			 .attempts = loss->attempts,
		 });
}

static void forget_letter(struct replay *r)
{
	for (size_t i = 0; i < r->rest_count; i++)
		packet_unref(&r->rest[i].packet);
	memory_free(r->rest);
	r->rest = NULL;
	r->rest_count = r->lost = 0;
	letter_content_fini(&r->content);
}

/* The destination has accepted this many samples of the letter. The rest takes its place. If some
 * of it is in no packet, because the exporter cannot represent it, the whole letter stays too, as
 * one that was accepted in part. */
static void keep_rest(struct replay *r, uint64_t taken)
{
	struct error err;
	error_clear(&err);
	r->count[PARTLY]++;
	print_letter(r, "accepted in part", r->samples);
	if (taken + r->lost < r->samples)
		add_rest(r, &(struct letter){ .packet = r->content.packet,
					      .reason = LETTER_PARTIAL,
					      .made_for = made_for(r),
					      .samples = r->content.packet->samples,
					      .attempts = 1 });
	if (!letter_replace(r->directory, r->names.at[r->next - 1], r->rest, r->rest_count, &err))
		fprintf(stderr, "%s\n", err.text);
}

static int64_t accepted(const struct replay *r)
{
	return ledger_get(delivery_book(lone_delivery(r->lone), "replay", NULL)->row, LEDGER_OUT);
}

/* The destination does not accept data now. */
static void give_up(struct replay *r)
{
	r->failed = true;
	error_set(r->err, ERROR_BUSY, "the destination does not accept data now");
	end(r);
}

static void conclude(void *argument)
{
	struct replay *r = argument;
	bool whole = r->outcome == ACK_TAKEN && !r->rest_count, failed = r->outcome == ACK_FAILED;
	uint64_t taken = (uint64_t)(accepted(r) - r->accepted);
	if (whole) {
		letter_remove(r->directory, r->names.at[r->next - 1]);
		r->count[SENT]++;
		print_letter(r, "sent", r->samples);
	} else if (taken) {
		keep_rest(r, taken);
	} else if (failed) {
		r->next--; /* not tried */
	} else {
		r->count[REJECTED]++;
		print_letter(r, "rejected", r->samples);
	}
	forget_letter(r);
	if (failed)
		give_up(r);
	else
		send_next(r);
}

/* On any thread. */
static void answered(struct ack *ack, enum ack_outcome outcome)
{
	struct replay *r = (struct replay *)((char *)ack - offsetof(struct replay, ack));
	r->outcome = outcome;
	loop_post(r->service.runtime.loop, conclude, r);
}

static void send_packet(struct replay *r, struct packet *packet)
{
	struct delivery *d = lone_delivery(r->lone);
	r->accepted = accepted(r);
	r->samples = packet->samples;
	ack_init(&r->ack, ACK_DELIVERED, answered);
	expect_answer(r, packet);
	struct book *book = delivery_book(d, "replay", NULL);
	ledger_enter(book->ledger);
	book_receive(book, packet->samples, false);
	ledger_leave(book->ledger);
	delivery_enqueue(d, packet, book, ENTRY_ALWAYS);
	packet_unref(&packet);
	ack_release(&r->ack, ACK_TAKEN);
}

/* The rules may change at any time. */
static bool is_killed(struct replay *r)
{
	const struct kill_switch *kills = r->service.runtime.kills;
	if (!kill_switch_is_total(kills) && !kill_switch_kills_destination(kills, r->options->to))
		return false;
	r->failed = true;
	error_set(r->err, ERROR_FORBIDDEN, "the kill switch stops this destination");
	return true;
}

static void send_next(struct replay *r)
{
	while (r->next < r->names.count && !is_killed(r)) {
		const char *name = r->names.at[r->next++];
		struct error err;
		error_clear(&err);
		struct packet *packet = read_packet(r, name, &err);
		if (packet && !r->options->dry_run) {
			send_packet(r, packet);
			return;
		}
		if (packet)
			print_letter(r, "would be sent", packet->samples);
		else
			skip(r, name, &err);
		packet_unref(&packet);
		letter_content_fini(&r->content);
	}
	end(r);
}

static void begin(void *argument)
{
	struct replay *r = argument;
	if (r->options->dry_run || lone_start(r->lone, r->err)) {
		send_next(r);
		return;
	}
	r->failed = true;
	end(r);
}

/* ---- the command */

static bool open_letters(struct replay *r, struct error *err)
{
	r->directory = letter_directory(r->path, err);
	if (r->directory < 0)
		return false;
	if (flock(r->directory, LOCK_EX | LOCK_NB) != 0)
		return error_set(err, ERROR_CONFIG, "%s: %s", r->path,
				 errno == EWOULDBLOCK ? "another replay is running"
						      : strerror(errno));
	return letter_list(r->directory, !r->options->dry_run, &r->names, err);
}

static bool obey_kills(struct replay *r, const struct graph *graph, struct error *err)
{
	struct kill_change *change = kill_switch_prepare(r->service.runtime.kills,
							 &graph_service(graph)->kill_switch, err);
	if (!change)
		return false;
	kill_switch_apply(&change);
	return true;
}

static bool run(struct replay *r, struct error *err)
{
	struct graph *graph = r->service.reload.running->graph;
	r->lone = lone_new(graph, r->options->to, keep_lost, r, err);
	if (!r->lone || !open_letters(r, err) || !obey_kills(r, graph, err))
		return false;
	signal(SIGPIPE, SIG_IGN);
	print_begin(r);
	loop_post(r->service.runtime.loop, begin, r);
	loop_run(r->service.runtime.loop);
	if (r->options->dry_run && !r->failed)
		return !r->count[SKIPPED] ||
		       error_set(err, ERROR_INVALID, "%zu of %zu dead letters would be skipped",
				 r->count[SKIPPED], r->names.count);
	print_end(r);
	size_t left = r->names.count - r->count[SENT];
	if (r->failed)
		return error_prefix(err, "%zu of %zu dead letters remain", left, r->names.count);
	return !left || error_set(err, ERROR_INVALID, "%zu of %zu dead letters remain", left,
				  r->names.count);
}

bool command_replay(const struct options *options, struct error *err)
{
	struct replay r = { .options = options, .directory = -1, .err = err };
	if (!options->arguments || !options->to)
		return error_set(err, ERROR_CONFIG,
				 "replay requires a directory and --to with the ID of an exporter");
	r.path = options->arguments[0];
	bool ok = service_open(&r.service, options, err) && run(&r, err);
	lone_unref(&r.lone);
	letter_names_fini(&r.names);
	screening_fini(&r.screening);
	if (r.directory >= 0)
		close(r.directory);
	service_close(&r.service);
	return ok;
}
