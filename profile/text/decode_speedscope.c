/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "profile/json_number.h"
#include "profile/text/stacks.h"

#include <math.h>

/*
 * The file's objects may have their members in any order, and profiles refer to frames by number.
 * The document is therefore read twice: first its frames, then its profiles. A profile is collected
 * in the buffers, and counted where it ends.
 */
enum buffer {
	FRAMES,  /* uint32_t: the location of each frame of the file */
	ITEMS,   /* uint32_t: frames of the samples, one sample after the other */
	ENDS,    /* uint32_t: the number of items up to the end of each sample */
	WEIGHTS, /* double */
	EVENTS,  /* struct event */
	DECODED  /* the last string, if it has escapes */
};

struct event {
	double at;
	uint32_t frame;
	bool opens, has_type, has_at, has_frame;
};

/* The object or array that is being read. */
enum place {
	OTHER,
	ROOT,
	SHARED,
	FRAME_LIST,
	FRAME,
	PROFILE_LIST,
	PROFILE,
	SAMPLE_LIST,
	SAMPLE,
	WEIGHT_LIST,
	EVENT_LIST,
	EVENT,
	PLACES
};

enum { DEPTH_MAX = 32 };

struct speedscope;

struct member { /* of an object, or (key: NULL) the elements of an array */
	const char *key;
	enum json_token token; /* of its value */
	enum place place;      /* of a value that is an object or array */
	bool (*take)(struct speedscope *f, struct view value);
};

enum type { TYPE_NONE, TYPE_SAMPLED, TYPE_EVENTED };

/* Of weights and times. */
static const struct unit {
	const char *name;
	double ns; /* 0: is no time */
} units[] = { { "", 0 },
	      { "none", 0 },
	      { "bytes", 0 },
	      { "nanoseconds", 1 },
	      { "microseconds", 1e3 },
	      { "milliseconds", 1e6 },
	      { "seconds", 1e9 } };

enum { UNIT_ABSENT, UNIT_NONE, UNIT_BYTES, UNITS = sizeof units / sizeof *units };

struct speedscope {
	struct json json;
	struct stacks *s;
	int pass;
	enum place places[DEPTH_MAX + 1]; /* by depth; the last is where the reader is */
	const struct member *member;      /* whose value comes next; NULL: ignored */
	uint32_t profiles;                /* whose objects have begun */
	bool has_profiles;                /* their list */
	/* what is read */
	struct stacks_frame frame;
	struct event event;
	struct stacks_group group;
	enum type type;
	uint32_t unit;
};

static uint32_t items(const struct speedscope *f, enum buffer buffer, size_t size)
{
	return (uint32_t)(f->s->buffer[buffer].len / size);
}

static bool add(struct speedscope *f, enum buffer buffer, const void *item, size_t size)
{
	return bytes_add(&f->s->buffer[buffer], item, size) || stacks_too_large(f->s);
}

static bool refuse(struct speedscope *f, const char *what)
{
	return error_set(f->s->err, ERROR_INVALID, "%s", what);
}

static bool read_integer(struct speedscope *f, struct view text, uint64_t below, uint64_t above,
			 uint64_t *value)
{
	const struct json_number_range range = { below, above };
	const char *wrong = json_number_integer(text, &range, value);
	return !wrong || refuse(f, wrong);
}

static bool read_double(struct speedscope *f, struct view text, double *value)
{
	const char *wrong = json_number_double(text, value);
	return !wrong || refuse(f, wrong);
}

static bool read_frame(struct speedscope *f, struct view text, uint32_t *frame)
{
	uint64_t number;
	if (!read_integer(f, text, 0, UINT32_MAX, &number))
		return false;
	*frame = (uint32_t)number;
	return number < items(f, FRAMES, sizeof(uint32_t)) || refuse(f, "no such frame");
}

/* Frames. */

static bool take_name(struct speedscope *f, struct view value)
{
	return stacks_string(f->s, value, &f->frame.name);
}

static bool take_file(struct speedscope *f, struct view value)
{
	return stacks_string(f->s, value, &f->frame.file);
}

/* Some writers say -1 where they do not know. */
static bool take_place(struct speedscope *f, struct view text, int64_t *number)
{
	uint64_t value;
	bool ok = read_integer(f, text, INT64_MAX, INT64_MAX, &value);
	*number = (int64_t)value > 0 ? (int64_t)value : 0;
	return ok;
}

static bool take_line(struct speedscope *f, struct view value)
{
	return take_place(f, value, &f->frame.line);
}

static bool take_column(struct speedscope *f, struct view value)
{
	return take_place(f, value, &f->frame.column);
}

static bool end_frame(struct speedscope *f)
{
	uint32_t location;
	return stacks_location(f->s, f->frame, &location) &&
	       add(f, FRAMES, &location, sizeof location);
}

/* Members of profiles. */

static bool take_profile_name(struct speedscope *f, struct view value)
{
	return stacks_string(f->s, value, &f->group.name);
}

static bool take_type(struct speedscope *f, struct view value)
{
	f->type = view_is(value, "sampled")   ? TYPE_SAMPLED
		  : view_is(value, "evented") ? TYPE_EVENTED
					      : TYPE_NONE;
	return f->type || refuse(f, "is neither sampled nor evented");
}

static bool take_unit(struct speedscope *f, struct view value)
{
	for (f->unit = UNIT_NONE; f->unit < UNITS; f->unit++)
		if (view_is(value, units[f->unit].name))
			return true;
	return refuse(f, "is not a unit of speedscope");
}

static bool take_start(struct speedscope *f, struct view value)
{
	return read_double(f, value, &f->group.start);
}

static bool take_item(struct speedscope *f, struct view value)
{
	uint32_t frame;
	return read_frame(f, value, &frame) && add(f, ITEMS, &frame, sizeof frame);
}

static bool end_sample(struct speedscope *f)
{
	uint32_t end = items(f, ITEMS, sizeof end);
	return add(f, ENDS, &end, sizeof end);
}

static bool take_weight(struct speedscope *f, struct view value)
{
	double weight;
	return read_double(f, value, &weight) && add(f, WEIGHTS, &weight, sizeof weight);
}

static bool take_event_type(struct speedscope *f, struct view value)
{
	f->event.opens = view_is(value, "O");
	f->event.has_type = f->event.opens || view_is(value, "C");
	return f->event.has_type || refuse(f, "is neither O nor C");
}

static bool take_at(struct speedscope *f, struct view value)
{
	f->event.has_at = read_double(f, value, &f->event.at);
	return f->event.has_at;
}

static bool take_event_frame(struct speedscope *f, struct view value)
{
	f->event.has_frame = read_frame(f, value, &f->event.frame);
	return f->event.has_frame;
}

static bool end_event(struct speedscope *f)
{
	if (!f->event.has_type || !f->event.has_at || !f->event.has_frame)
		return refuse(f, "lacks type, at or frame");
	return add(f, EVENTS, &f->event, sizeof f->event);
}

/* Counting. */

/* In nanoseconds, if it is a time. */
static bool convert(struct speedscope *f, double value, uint64_t *number)
{
	double ns = units[f->unit].ns, converted = round(value * (ns != 0 ? ns : 1));
	if (!(converted >= 0 && converted < 9223372036854775808.0))
		return refuse(f, "is negative or too large");
	*number = (uint64_t)converted;
	return true;
}

static bool count_sample(struct speedscope *f, uint32_t node, uint32_t first, uint32_t end,
			 double weight)
{
	const uint32_t *frames = (const uint32_t *)f->s->buffer[ITEMS].at;
	uint64_t number = 0;
	for (uint32_t i = first; i < end; i++)
		if (!stacks_push(f->s, &node, ((uint32_t *)f->s->buffer[FRAMES].at)[frames[i]]))
			return false;
	return convert(f, weight, &number) && stacks_count(f->s, node, number);
}

static bool count_samples(struct speedscope *f, uint32_t root)
{
	const uint32_t *ends = (const uint32_t *)f->s->buffer[ENDS].at;
	const double *weights = (const double *)f->s->buffer[WEIGHTS].at;
	uint32_t count = items(f, ENDS, sizeof *ends), first = 0;
	if (count != items(f, WEIGHTS, sizeof *weights))
		return refuse(f, "has different numbers of samples and weights");
	for (uint32_t i = 0; i < count; i++) {
		if (!count_sample(f, root, first, ends[i], weights[i]))
			return error_prefix(f->s->err, "samples[%u]", i);
		first = ends[i];
	}
	return true;
}

struct open { /* in ITEMS: the frames that are open */
	uint32_t frame, node;
};

/* The time since the last event belongs to the frames that are open. */
static bool pass_time(struct speedscope *f, double at, uint32_t node, bool any, uint64_t *now)
{
	uint64_t last = *now;
	if (!convert(f, at - f->group.start, now))
		return false;
	if (*now < last)
		return refuse(f, "is earlier than the previous event");
	return !any || stacks_count(f->s, node, *now - last);
}

static bool open_frame(struct speedscope *f, uint32_t frame, uint32_t node)
{
	uint32_t location = ((const uint32_t *)f->s->buffer[FRAMES].at)[frame];
	struct open open = { frame, node };
	return stacks_push(f->s, &open.node, location) && add(f, ITEMS, &open, sizeof open);
}

static bool count_event(struct speedscope *f, uint32_t root, const struct event *event,
			uint64_t *now)
{
	struct bytes *opened = &f->s->buffer[ITEMS];
	const struct open *top =
		opened->len ? (const struct open *)(opened->at + opened->len) - 1 : NULL;
	uint32_t node = top ? top->node : root;
	if (!pass_time(f, event->at, node, top != NULL, now))
		return false;
	if (event->opens)
		return open_frame(f, event->frame, node);
	if (!top || top->frame != event->frame)
		return refuse(f, "closes a frame that is not the innermost open one");
	opened->len -= sizeof *top;
	return true;
}

static bool count_events(struct speedscope *f, uint32_t root)
{
	const struct event *events = (const struct event *)f->s->buffer[EVENTS].at;
	uint32_t count = items(f, EVENTS, sizeof *events);
	uint64_t now = 0;
	f->s->buffer[ITEMS].len = 0;
	for (uint32_t i = 0; i < count; i++)
		if (!count_event(f, root, &events[i], &now))
			return error_prefix(f->s->err, "events[%u]", i);
	return true;
}

static bool begin_profile(struct speedscope *f)
{
	f->profiles++;
	f->group = (struct stacks_group){ .kind = f->s->source->kind };
	f->type = TYPE_NONE;
	f->unit = UNIT_ABSENT;
	for (int i = ITEMS; i <= EVENTS; i++)
		f->s->buffer[i].len = 0;
	return true;
}

static bool end_profile(struct speedscope *f)
{
	uint32_t root;
	if (!f->type || !f->unit)
		return refuse(f, "lacks type or unit");
	f->group.exact = units[f->unit].ns != 0;
	f->group.tags[0] = (uint8_t)f->type;
	f->group.tags[1] = (uint8_t)f->unit;
	return stacks_root(f->s, f->group, &root) &&
	       (f->type == TYPE_SAMPLED ? count_samples : count_events)(f, root);
}

/* The shape of the file. */

static const struct member root_members[] = {
	{ "shared", JSON_OBJECT, SHARED, NULL },
	{ "profiles", JSON_ARRAY, PROFILE_LIST, NULL },
	{ 0 },
};
static const struct member shared_members[] = {
	{ "frames", JSON_ARRAY, FRAME_LIST, NULL },
	{ 0 },
};
static const struct member frame_members[] = {
	{ "name", JSON_STRING, OTHER, take_name },
	{ "file", JSON_STRING, OTHER, take_file },
	{ "line", JSON_NUMBER, OTHER, take_line },
	{ "col", JSON_NUMBER, OTHER, take_column },
	{ 0 },
};
static const struct member profile_members[] = {
	{ "type", JSON_STRING, OTHER, take_type },
	{ "unit", JSON_STRING, OTHER, take_unit },
	{ "name", JSON_STRING, OTHER, take_profile_name },
	{ "startValue", JSON_NUMBER, OTHER, take_start },
	{ "samples", JSON_ARRAY, SAMPLE_LIST, NULL },
	{ "weights", JSON_ARRAY, WEIGHT_LIST, NULL },
	{ "events", JSON_ARRAY, EVENT_LIST, NULL },
	{ 0 },
};
static const struct member event_members[] = {
	{ "type", JSON_STRING, OTHER, take_event_type },
	{ "at", JSON_NUMBER, OTHER, take_at },
	{ "frame", JSON_NUMBER, OTHER, take_event_frame },
	{ 0 },
};

static const struct shape {
	const char *name; /* for error messages */
	/* of an object; of an array one, without a key */
	const struct member *members;
	bool (*end)(struct speedscope *f);
	enum buffer counted; /* for error messages: the element is the next item of this buffer */
	size_t size;
} shapes[PLACES] = {
	[ROOT] = { .members = root_members },
	[SHARED] = { .members = shared_members },
	[FRAME_LIST] = { .members = &(const struct member){ NULL, JSON_OBJECT, FRAME, NULL } },
	[FRAME] = { "shared.frames", frame_members, end_frame, FRAMES, sizeof(uint32_t) },
	[PROFILE_LIST] = { .members = &(const struct member){ NULL, JSON_OBJECT, PROFILE, NULL } },
	[PROFILE] = { .members = profile_members, .end = end_profile },
	[SAMPLE_LIST] = { .members = &(const struct member){ NULL, JSON_ARRAY, SAMPLE, NULL } },
	[SAMPLE] = { "samples", &(const struct member){ NULL, JSON_NUMBER, OTHER, take_item },
		     end_sample, ENDS, sizeof(uint32_t) },
	[WEIGHT_LIST] = { "weights",
			  &(const struct member){ NULL, JSON_NUMBER, OTHER, take_weight }, NULL,
			  WEIGHTS, sizeof(double) },
	[EVENT_LIST] = { .members = &(const struct member){ NULL, JSON_OBJECT, EVENT, NULL } },
	[EVENT] = { "events", event_members, end_event, EVENTS, sizeof(struct event) },
};

static const struct member *find_member(enum place place, struct view key)
{
	const struct member *member = shapes[place].members;
	while (member && member->key && !view_is(key, member->key))
		member++;
	return member && member->key ? member : NULL;
}

/* Names the place of an error. */
static bool explain(struct speedscope *f, enum place place, const struct member *member)
{
	const struct shape *shape = &shapes[place];
	if (member && member->key)
		error_prefix(f->s->err, "%s", member->key);
	if (shape->name)
		error_prefix(f->s->err, "%s[%u]", shape->name,
			     items(f, shape->counted, shape->size));
	if (f->pass == 2)
		error_prefix(f->s->err, "profiles[%u]", f->profiles - 1);
	return false;
}

static bool begin(struct speedscope *f, enum json_token token)
{
	const struct member *member = f->member;
	enum place place = member ? member->place : OTHER;
	if (member && member->token != token)
		return refuse(f, "has the wrong type") ||
		       explain(f, f->places[f->json.depth - 1], member);
	if (f->json.depth == 1 && token != JSON_OBJECT)
		return refuse(f, "the JSON is not an object");
	if (f->json.depth == 1)
		place = ROOT;
	f->has_profiles = f->has_profiles || place == PROFILE_LIST;
	if (place == (f->pass == 1 ? PROFILE_LIST : SHARED))
		place = OTHER;
	f->places[f->json.depth] = place;
	f->member = NULL;
	f->frame = (struct stacks_frame){ 0 };
	f->event = (struct event){ 0 };
	return place != PROFILE || begin_profile(f);
}

static bool end(struct speedscope *f)
{
	enum place place = f->places[f->json.depth + 1];
	return !shapes[place].end || shapes[place].end(f) || explain(f, place, NULL);
}

/* What the elements of an array are; nothing in an object, where a key comes first. */
static const struct member *element_of(enum place place)
{
	const struct member *member = shapes[place].members;
	return member && !member->key ? member : NULL;
}

static bool take_value(struct speedscope *f, enum json_token token, struct view value)
{
	enum place place = f->places[f->json.depth];
	const struct member *member = f->member;
	if (!member || token == JSON_NULL)
		return true;
	if (token != member->token || !member->take)
		return refuse(f, "has the wrong type") || explain(f, place, member);
	return member->take(f, value) || explain(f, place, member);
}

/* A string or name with escapes, as it is meant. */
static bool decode(struct speedscope *f, struct view *text)
{
	struct bytes *decoded = &f->s->buffer[DECODED];
	decoded->len = 0;
	if (!bytes_reserve(decoded, text->len))
		return stacks_too_large(f->s);
	*text = (struct view){ decoded->at, json_unescape(*text, decoded->at) };
	return true;
}

static bool take(struct speedscope *f, enum json_token token, struct view text)
{
	bool ok = true;
	if ((token == JSON_KEY || token == JSON_STRING) && f->json.escaped && !decode(f, &text))
		return false;
	if (token == JSON_KEY) {
		f->member = find_member(f->places[f->json.depth], text);
		return true;
	}
	if (token == JSON_OBJECT || token == JSON_ARRAY)
		ok = begin(f, token);
	else if (token == JSON_OBJECT_END || token == JSON_ARRAY_END)
		ok = end(f);
	else
		ok = take_value(f, token, text);
	f->member = element_of(f->places[f->json.depth]);
	return ok;
}

static bool read_document(struct speedscope *f)
{
	enum json_token token;
	struct view text;
	if (!json_begin(&f->json, f->s->document, DEPTH_MAX, f->s->err))
		return false;
	while ((token = json_next(&f->json, &text)) != JSON_DONE)
		if (token == JSON_FAULT || !take(f, token, text))
			return false;
	return true;
}

/* What a profile measures, where the request's kind contradicts its unit or is that of another. */
static void choose_kinds(struct stacks *s)
{
	const struct text_kind *given = s->source->kind;
	bool one = stacks_groups(s) == 1;
	for (uint32_t i = 0; i < stacks_groups(s); i++) {
		struct stacks_group *group = stacks_group(s, i);
		bool bytes = group->tags[1] == UNIT_BYTES;
		if (group->exact && !(one && given->clock))
			group->kind = text_kind_of(view_of(".wall"), NULL);
		else if (bytes && !(one && !strcmp(given->unit, "bytes")))
			group->kind = text_kind_of(view_of(".bytes"), NULL);
	}
}

static bool read_speedscope(struct stacks *s)
{
	struct speedscope f = { .s = s };
	for (f.pass = 1; f.pass <= 2; f.pass++)
		if (!read_document(&f))
			return false;
	if (!f.has_profiles)
		return refuse(&f, "the JSON has no profiles");
	choose_kinds(s);
	return true;
}

bool decode_speedscope(struct profiles *p, struct view document, const struct text_source *source,
		       struct error *err)
{
	return stacks_decode(p, document, source, "speedscope", read_speedscope, err);
}
