/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/letter.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/quote.h"
#include "pipeline/delivery/record.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FORMAT = 1, DEPTH_MAX = 8, COUNTER_END = 1000000 };
#define NS UINT64_C(1000000000)

/* ---- names */

void letter_name(char name[LETTER_NAME])
{
	static _Atomic uint32_t counter;
	uint64_t now = clock_wall();
	time_t seconds = (time_t)(now / NS);
	struct tm tm;
	size_t len = strftime(name, LETTER_NAME, "%Y%m%dT%H%M%S", gmtime_r(&seconds, &tm));
	snprintf(name + len, LETTER_NAME - len, ".%09u-%06u", (unsigned)(now % NS),
		 counter++ % COUNTER_END);
}

bool letter_name_fits(const char *name, const char *suffix)
{
	static const char pattern[LETTER_NAME] = "00000000T000000.000000000-000000";
	for (size_t i = 0; i < LETTER_NAME - 1; i++)
		if (pattern[i] == '0' ? !isdigit((unsigned char)name[i]) : name[i] != pattern[i])
			return false;
	return !strcmp(name + LETTER_NAME - 1, suffix);
}

/* ---- writing */

static void put_name(struct bytes *out, const char *name)
{
	bytes_format(out, "%s\n  \"%s\": ", out->at[out->len - 1] == '{' ? "" : ",", name);
}

static void put_text(struct bytes *out, const char *name, const char *text)
{
	put_name(out, name);
	if (text)
		quote_json(out, text, strlen(text));
	else
		bytes_add_text(out, "null");
}

static void put_number(struct bytes *out, const char *name, uint64_t number)
{
	put_name(out, name);
	bytes_format(out, "%llu", (unsigned long long)number);
}

/* 0: unknown. */
static void put_time(struct bytes *out, const char *name, uint64_t ns)
{
	char text[64];
	time_t seconds = (time_t)(ns / NS);
	struct tm tm;
	size_t len = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
	snprintf(text + len, sizeof text - len, ".%03uZ", (unsigned)(ns % NS / 1000000));
	put_text(out, name, ns ? text : NULL);
}

static uint64_t arrival_of(const struct packet *packet)
{
	uint64_t now = clock_now(), wall = clock_wall(), arrival = packet->oldest_arrival;
	return arrival && arrival <= now && now - arrival < wall ? wall - (now - arrival) : 0;
}

static bool put_record(struct bytes *out, const struct letter *l)
{
	struct bytes head;
	bytes_init(&head, LETTER_REASON_MAX);
	bool ok = record_encode(l->packet, l->origin, l->pipeline, RECORD_ACCOUNT_UNKNOWN, &head);
	put_name(out, "record");
	ok = ok && bytes_add_byte(out, '"') && base64_add(out, bytes_view(&head), true) &&
	     bytes_add_byte(out, '"');
	bytes_fini(&head);
	return ok;
}

bool letter_encode(const struct letter *l, struct bytes *out)
{
	const struct packet *p = l->packet;
	if (!bytes_add_byte(out, '{'))
		return false;
	put_number(out, "format", FORMAT);
	put_text(out, "destination", l->destination);
	put_text(out, "pipeline", l->pipeline);
	put_text(out, "reason", l->reason);
	put_text(out, "error", l->error);
	put_number(out, "attempts", l->attempts);
	put_time(out, "arrived", arrival_of(p));
	put_time(out, "dropped", l->dropped);
	put_time(out, "oldest_profile", p->oldest);
	put_time(out, "newest_profile", p->newest);
	put_number(out, "samples", l->samples);
	put_number(out, "profiles", p->profiles);
	put_number(out, "rejected_profiles", l->rejected_profiles);
	put_number(out, "bytes", p->otlp.len);
	put_text(out, "tenant", p->origin ? p->origin->tenant : NULL);
	put_text(out, "made_for", l->made_for);
	return put_record(out, l) && bytes_add_text(out, "\n}\n");
}

/* ---- reading */

/* Appends a regular file of at most `max` bytes. Nothing else is opened: a pipe would block. */
static bool read_file(int directory, const char *name, const char *suffix, size_t max,
		      struct bytes *out, struct error *err)
{
	char path[LETTER_NAME + 8];
	struct stat is;
	snprintf(path, sizeof path, "%s%s", name, suffix);
	int fd = openat(directory, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, ERROR_INVALID, "%s",
				 errno == ELOOP ? "it is a symbolic link" : strerror(errno));
	bool ok = fstat(fd, &is) == 0 && S_ISREG(is.st_mode);
	const char *fault = ok ? NULL : "it is not a regular file";
	if (ok && (uint64_t)is.st_size > max)
		fault = "it is too large";
	size_t left = fault ? 0 : (size_t)is.st_size;
	if (left && !bytes_reserve(out, left))
		fault = "it is too large";
	while (left && !fault) {
		ssize_t got = read(fd, out->at + out->len, left);
		if (got <= 0 && !(got < 0 && errno == EINTR))
			fault = got ? strerror(errno) : "it became shorter";
		out->len += got > 0 ? (size_t)got : 0;
		left -= got > 0 ? (size_t)got : 0;
	}
	close(fd);
	return !fault || error_set(err, ERROR_INVALID, "%s", fault);
}

/* One of our words. null leaves it empty. */
static bool take_word(struct json *j, char word[LETTER_WORD])
{
	struct view text;
	enum json_token token = json_value(j, &text);
	if (token == JSON_NULL)
		return true;
	if (token != JSON_STRING || text.len >= LETTER_WORD)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (!islower(text.at[i]) && !isdigit(text.at[i]) && text.at[i] != '_')
			return false;
	memcpy(word, text.at, text.len);
	word[text.len] = '\0';
	return true;
}

static bool take_record(struct json *j, struct bytes *record)
{
	struct view text;
	return !record->len && json_value(j, &text) == JSON_STRING && base64_decode(record, text);
}

static bool take_format(struct json *j, bool *known)
{
	struct view text;
	if (json_value(j, &text) != JSON_NUMBER)
		return false;
	*known = view_is(text, "1");
	return true;
}

static bool read_reason(struct view text, struct letter_content *c, bool *known)
{
	static const struct json none;
	struct json j = none;
	struct error err;
	struct view name;
	bool ok = true;
	error_clear(&err);
	if (!json_begin(&j, text, DEPTH_MAX, &err) || *j.at != '{' || !json_enter(&j))
		return false;
	while (ok && json_key(&j, &name)) {
		if (view_is(name, "format"))
			ok = take_format(&j, known);
		else if (view_is(name, "reason"))
			ok = take_word(&j, c->reason);
		else if (view_is(name, "made_for"))
			ok = take_word(&j, c->made_for);
		else if (view_is(name, "record"))
			ok = take_record(&j, &c->record);
		else
			ok = json_skip(&j);
	}
	return ok && !j.fault;
}

bool letter_parse(struct view reason, struct letter_content *c, struct error *err)
{
	bool known = false;
	*c = (struct letter_content){ .packet = NULL };
	bytes_init(&c->record, (size_t)LETTER_REASON_MAX + LETTER_BODY_MAX);
	if (!read_reason(reason, c, &known))
		return error_set(err, ERROR_INVALID, "it is not a reason file");
	return (known && c->record.len && *c->reason) ||
	       error_set(err, ERROR_INVALID, "it is incomplete, or of a newer version");
}

bool letter_open(struct letter_content *c, struct error *err)
{
	static const char *const faults[RECORD_FAULTS] = {
		[RECORD_FOREIGN] = "the record in its reason file is not one of this version",
		[RECORD_TORN] = "it is not as long as its reason file says",
		[RECORD_CORRUPT] = "its checksum does not match its reason file",
	};
	struct record record;
	enum record_fault fault = record_check(bytes_view(&c->record), &record);
	if (fault != RECORD_SOUND)
		return error_set(err, ERROR_INVALID, "%s", faults[fault]);
	c->packet = record_packet(&record);
	return true;
}

bool letter_read(int directory, const char *name, struct letter_content *c, struct error *err)
{
	struct bytes reason;
	bytes_init(&reason, LETTER_REASON_MAX);
	*c = (struct letter_content){ .packet = NULL };
	const char *suffix = ".json";
	bool ok = read_file(directory, name, suffix, LETTER_REASON_MAX, &reason, err) &&
		  letter_parse(bytes_view(&reason), c, err);
	bytes_fini(&reason);
	if (ok) {
		suffix = ".otlp";
		ok = read_file(directory, name, suffix, LETTER_BODY_MAX, &c->record, err) &&
		     letter_open(c, err);
	}
	return ok || error_prefix(err, "%s", suffix);
}

void letter_content_fini(struct letter_content *c)
{
	packet_unref(&c->packet);
	bytes_fini(&c->record);
}
