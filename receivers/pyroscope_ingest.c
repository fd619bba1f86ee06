/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/connect.h"
#include "net/http/multipart.h"
#include "profile/pprof/decode_pprof.h"
#include "profile/stores/ingest_kind.h"
#include "profile/stores/ingest_time.h"
#include "profile/stores/series_name.h"
#include "profile/text/text.h"
#include "receivers/pyroscope_private.h"

#include "base/clock.h"

#include <stdlib.h>
#include <strings.h>

/*
 * Pyroscope's older protocol (pyroscope, pkg/ingester/pyroscope): the series stands in the query,
 * the body is one profile in one of several formats. The response to what is accepted is 200 with
 * an empty body: Go's client takes any other status for a failure.
 */
enum format { GROUPS, LINES, TRIE, TREE, SPEEDSCOPE, PPROF, FORM, JFR };

struct ingest {
	struct http_intake_request http;
	enum format format;
	const char *name, *spy; /* of the query; live as long as the exchange */
	uint64_t from, until;   /* ns since the epoch */
	uint32_t sample_rate;
	bool settled; /* lost labels have been counted */
	bool bad_name;
	struct label_set labels;
	struct view displays; /* the part sample_type_config; .at NULL: there is none */
};

static struct ingest *ingest_of(struct inbound *in)
{
	return (struct ingest *)in;
}

/* ---- query */

static const struct {
	const char *name, *media_type;
	enum format format;
} formats[] = {
	{ "trie", "binary/octet-stream+trie", TRIE },
	{ "tree", "binary/octet-stream+tree", TREE },
	{ "lines", NULL, LINES },
	{ "jfr", NULL, JFR },
	{ "pprof", NULL, PPROF },
	{ "speedscope", NULL, SPEEDSCOPE },
};

/* As Pyroscope: the first that fits, and the media type of the two oldest formats before the other
 * names. A pprof is accepted whatever the media type is. */
static enum format format_of(const char *name, const char *media_type)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if ((name && !strcmp(name, formats[i].name)) ||
		    (media_type && formats[i].media_type &&
		     !strcasecmp(media_type, formats[i].media_type)))
			return formats[i].format;
	return multipart_is(media_type) ? FORM : GROUPS;
}

/* The first parameter of that name, as Pyroscope takes it; NULL: there is none. */
static const char *parameter(const struct metadatum *query, const char *name)
{
	for (; query->name; query++)
		if (!strcmp(query->name, name))
			return query->value;
	return NULL;
}

static uint64_t time_of(const struct metadatum *query, const char *name)
{
	const char *text = parameter(query, name);
	return ingest_time(view_of(text ? text : ""), clock_wall());
}

/* 100 if it is absent or not a natural number. */
static uint32_t sample_rate_of(const char *text)
{
	char *end = NULL;
	long rate = text && *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
	return rate >= 0 && rate <= INT32_MAX && !*end ? (uint32_t)rate : 100;
}

static bool ingest_examine(struct http_intake_request *http, struct error *err)
{
	struct ingest *r = (struct ingest *)http;
	const struct metadatum *query;
	struct view service;
	if (!http_exchange_query(http->exchange, &query, err))
		return false;
	const char *name = parameter(query, "name");
	r->name = name ? name : "";
	r->spy = parameter(query, "spyName");
	r->from = time_of(query, "from");
	r->until = time_of(query, "until");
	r->sample_rate = sample_rate_of(parameter(query, "sampleRate"));
	r->format = format_of(parameter(query, "format"),
			      http_exchange_header(http->exchange, "content-type"));
	http->in.overhead += sizeof *r;
	if (r->format == JFR)
		return error_set(err, ERROR_UNSUPPORTED,
				 "format=jfr is not supported; see \"Java\" in the manual's "
				 "section about the receiver pyroscope");
	return series_name_parse(view_of(r->name), pyroscope_of(http)->limits, &service, &r->labels,
				 err);
}

static void put(struct label_set *set, const char *name, struct view value)
{
	label_set_put(set, (struct label_text){ view_of(name), value });
}

/* What Pyroscope makes of the labels, and service.name of service_name. In the name of an
 * application that sends a text format, `kind` is the last part. False: that part is unknown. */
static bool settle_labels(struct ingest *r, const struct text_kind **kind, struct error *err)
{
	struct label_set *set = &r->labels;
	struct view service;
	series_name_parse(view_of(r->name), pyroscope_of(&r->http)->limits, &service, set, NULL);
	if (kind && !(*kind = text_kind_of(service, &service))) {
		r->bad_name = true;
		return error_set(err, ERROR_INVALID,
				 "name: what follows the last dot of the service name is not a "
				 "known type of profile, such as cpu or alloc_space");
	}
	uint32_t reserved = label_set_drop_reserved(set);
	const struct label_text *given = label_set_find(set, view_of("service_name"));
	if (!given || !given->value.len)
		put(set, "service_name", service);
	else if (kind)
		put(set, "app_name", service);
	put(set, "pyroscope_spy", view_of(r->spy && *r->spy ? r->spy : "unknown"));
	put(set, "__delta__", view_of("false"));
	uint32_t duplicates = label_set_name_service(set);
	if (!r->settled) {
		pyroscope_lose(&r->http, PYROSCOPE_RESERVED, reserved);
		pyroscope_lose(&r->http, PYROSCOPE_DUPLICATE, duplicates);
	}
	r->settled = true;
	return true;
}

/* ---- documents */

static bool take_part(struct ingest *r, const struct multipart_part *part, struct view *profile,
		      struct error *err)
{
	if (view_is(part->name, "profile")) {
		if (profile->at)
			return error_set(err, ERROR_INVALID,
					 "the form has more than one part named profile");
		*profile = part->content;
	} else if (view_is(part->name, "sample_type_config")) {
		r->displays = part->content;
	} else if (view_is(part->name, "prev_profile") && part->content.len) {
		return error_set(err, ERROR_INVALID,
				 "prev_profile is not supported: update the client");
	}
	return true;
}

static bool read_form(struct ingest *r, struct view form, struct view *profile, struct error *err)
{
	struct multipart m;
	struct multipart_part part;
	enum multipart_more more;
	*profile = (struct view){ 0 };
	if (!multipart_begin(&m, http_exchange_header(r->http.exchange, "content-type"), form, err))
		return false;
	while ((more = multipart_next(&m, &part, err)) == MULTIPART_PART)
		if (!take_part(r, &part, profile, err))
			return false;
	if (more == MULTIPART_ERROR)
		return false;
	return profile->at || error_set(err, ERROR_INVALID, "the form has no part named profile");
}

/* An empty profile is accepted: clients send one when there is nothing to report. */
static enum inbound_next ingest_next(struct inbound *in, uint32_t index, struct view body,
				     struct view *document, struct error *err)
{
	struct ingest *r = ingest_of(in);
	if (index)
		return INBOUND_END;
	*document = body;
	if (r->format == FORM && !read_form(r, body, document, err))
		return INBOUND_REJECTED;
	return document->len ? INBOUND_DOCUMENT : INBOUND_END;
}

/* ---- tables */

/* Does it begin as gzip was unpacked from pprof: with a sample type, a message of a few bytes? */
static bool looks_like_pprof(struct view document)
{
	return document.len > 4 && document.at[0] == 0x0a && document.at[1] < 16 &&
	       document.at[2] == 0x08;
}

static bool spy_is(const struct ingest *r, const char *const *names)
{
	for (; r->spy && *names; names++)
		if (!strcmp(r->spy, *names))
			return true;
	return false;
}

/* For scripting languages, Pyroscope names functions by file and name, but not those of Python
 * whose file is an absolute path. It cuts names that are longer than this. */
enum { NAME_MAX_BYTES = 65535 };

static void join_names(struct profiles *p, bool is_python)
{
	struct bytes text;
	bytes_init(&text, NAME_MAX_BYTES);
	for (uint32_t i = 1; i < p->functions.count; i++) {
		struct function *f = &p->functions.at[i];
		struct view file = string_view(p, f->filename), name = string_view(p, f->name);
		text.len = 0;
		if (!file.len || (is_python && file.at[0] == '/'))
			continue;
		if (bytes_add(&text, file.at, file.len) && bytes_add_byte(&text, ' ') &&
		    bytes_add(&text, name.at, name.len))
			f->name = profiles_text_new(p, text.at, text.len);
	}
	bytes_fini(&text);
}

static void replace_dashes(struct profiles *p)
{
	char text[256];
	for (uint32_t i = 0; i < p->profiles.count; i++) {
		uint32_t *type = &p->profiles.at[i].sample_type.type;
		struct view old = string_view(p, *type);
		if (!old.len || old.len > sizeof text || !memchr(old.at, '-', old.len))
			continue;
		for (size_t k = 0; k < old.len; k++)
			text[k] = old.at[k] == '-' ? '_' : (char)old.at[k];
		*type = profiles_text_new(p, text, old.len);
	}
}

/* Clients that do not set the time leave it at 0, or count from their start. */
static void set_times(const struct ingest *r, struct profiles *p)
{
	const uint64_t year = UINT64_C(365) * 86400 * 1000000000;
	for (uint32_t i = 0; i < p->profiles.count; i++)
		if (p->profiles.at[i].time < year)
			p->profiles.at[i].time = r->from;
}

static bool finish_pprof(struct ingest *r, struct profiles *p, struct error *err)
{
	static const char *const scripting[] = { "pyspy", "rbspy", "scripting", NULL };
	static const char *const python[] = { "pyspy", NULL }, *const dotnet[] = { "dotnetspy",
										   NULL };
	struct ingest_displays displays = { 0 };
	struct resource *resource = &p->resources.at[0];
	if (r->displays.at && !ingest_displays_parse(r->displays, &displays, err))
		return false;
	if (spy_is(r, scripting))
		join_names(p, spy_is(r, python));
	if (spy_is(r, dotnet))
		replace_dashes(p);
	set_times(r, p);
	put(&r->labels, "__name__",
	    ingest_kind_name(p, &p->scopes.at[resource->scopes.first], &displays));
	return label_set_attach(&r->labels, p, resource, err);
}

/* The others are text formats. */
static bool is_pprof(const struct ingest *r, struct view document)
{
	return r->format == PPROF || r->format == FORM ||
	       (r->format == GROUPS && looks_like_pprof(document));
}

static bool decode_text(struct ingest *r, struct profiles *p, struct error *err)
{
	static bool (*const decoders[])(struct profiles *, struct view, const struct text_source *,
					struct error *) = {
		[GROUPS] = decode_folded, [LINES] = decode_lines,           [TRIE] = decode_trie,
		[TREE] = decode_tree,     [SPEEDSCOPE] = decode_speedscope,
	};
	struct text_source source = { .sample_rate = r->sample_rate,
				      .from = r->from,
				      .until = r->until,
				      .metric_key = "__name__" };
	if (!settle_labels(r, &source.kind, err) || !decoders[r->format](p, p->input, &source, err))
		return false;
	for (uint32_t i = 0; i < p->resources.count; i++)
		if (!label_set_attach(&r->labels, p, &p->resources.at[i], err))
			return false;
	return true;
}

static bool ingest_decode(struct inbound *in, struct profiles *p, struct error *err)
{
	struct ingest *r = ingest_of(in);
	if (!is_pprof(r, p->input))
		return decode_text(r, p, err);
	return settle_labels(r, NULL, err) && decode_pprof(p, p->input, NULL, err) &&
	       finish_pprof(r, p, err);
}

/* ---- response */

/* Faults of the query are 400, and those of the profile 422, as in Pyroscope. Before a request is
 * admitted, the exchange has no user. */
static void ingest_reply(struct http_exchange *x, const struct outcome *outcome)
{
	const struct error *err = outcome->error;
	const struct ingest *r = http_exchange_user(x);
	if (err)
		connect_refuse(x, r && !r->bad_name && err->kind == ERROR_INVALID ? 422 : 0, err);
	else
		http_exchange_reply(x, &(struct http_reply){ .status = 200 });
}

#define INGEST_ROUTE(path_) \
	{ \
		.path = path_, .request_size = sizeof(struct ingest), .examine = ingest_examine, \
		.documents = { \
			.next = ingest_next, \
			.decode = ingest_decode, \
			.packed = true, \
			.tables_factor = TEXT_TABLES_FACTOR, \
		}, \
		.reply = ingest_reply, \
	}

const struct http_intake_route pyroscope_ingest_routes[2] = {
	INGEST_ROUTE("/ingest"),
	INGEST_ROUTE("/pyroscope/ingest"),
};
