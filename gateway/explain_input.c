/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/explain_input.h"

#include "base/memory.h"
#include "gateway/files.h"
#include "net/compress.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/otlp/otlp_json.h"
#include "profile/pprof/decode_pprof.h"

#define FILE_MAX_BYTES ((size_t)256 << 20)
#define TABLE_FACTOR 64
/* A file of compressed records may be compressed as a whole too. */
enum { NESTING_MAX = 3 };

static bool reset(struct profiles *p, struct request *request, struct view body, struct error *err)
{
	return profiles_reset(p, request, body, body.len * TABLE_FACTOR + 65536) ||
	       profiles_over_cap(p, err);
}

static struct bytes *add(struct explain_input *in, const char *format, bool pprof)
{
	in->format = in->format ? in->format : format;
	in->at = memory_resize(in->at, (in->count + 1) * sizeof *in->at);
	struct explain_document *document = &in->at[in->count++];
	document->pprof = pprof;
	bytes_init(&document->body, PROFILES_INPUT_MAX);
	return &document->body;
}

static bool too_large(struct error *err)
{
	return error_set(err, ERROR_TOO_LARGE, "the file is too large");
}

static bool add_copy(struct explain_input *in, const char *format, bool pprof, struct view body,
		     struct error *err)
{
	struct bytes *copy = add(in, format, pprof);
	return (bytes_add(copy, body.at, body.len) && bytes_reserve(copy, 1)) || too_large(err);
}

static bool add_bridged(struct explain_input *in, const char *format,
			enum otlp_generation generation, struct view body, struct error *err)
{
	struct bytes *out = add(in, format, false);
	return bridge_otlp(generation, body, out, err) || (!err->kind && too_large(err));
}

/* ---- protobuf */

static bool is_pprof(struct profiles *p, struct request *request, struct view body)
{
	struct error ignored;
	error_clear(&ignored);
	return reset(p, request, body, &ignored) && decode_pprof(p, body, NULL, &ignored);
}

static bool add_otlp(struct explain_input *in, struct profiles *p, struct request *request,
		     struct view body, struct error *err)
{
	struct otlp_layout layout = { .known = OTLP_UNKNOWN };
	if (!reset(p, request, body, err))
		return false;
	if (decode_otlp_any(p, &layout, err))
		return add_copy(in, "OTLP", false, body, err);
	if (err->kind)
		return false;
	if (layout.candidates & (layout.candidates - 1))
		return decode_otlp_refuse(layout.candidates, err);
	return add_bridged(in, "OTLP", (enum otlp_generation)__builtin_ctz(layout.candidates), body,
			   err);
}

/* Neither format names itself; a pprof is tried first because its first field cannot be OTLP's. */
static bool take_protobuf(struct explain_input *in, struct view body, struct error *err)
{
	struct request request = { .receiver = "explain", .transport = TRANSPORT_FILE };
	struct profiles p = { 0 };
	bool ok = is_pprof(&p, &request, body)
			  ? add_copy(in, "pprof", true, body, err)
			  : add_otlp(in, &p, &request, body, err) ||
				    error_prefix(err, "the file is neither pprof nor OTLP");
	profiles_fini(&p);
	return ok;
}

/* ---- JSON */

static bool is_space(uint8_t byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static struct view trim(struct view text)
{
	while (text.len && is_space(*text.at))
		text = (struct view){ text.at + 1, text.len - 1 };
	while (text.len && is_space(text.at[text.len - 1]))
		text.len--;
	return text;
}

static bool take_json(struct explain_input *in, struct view text, struct error *err)
{
	enum otlp_generation generation;
	struct bytes body;
	bytes_init(&body, PROFILES_INPUT_MAX);
	bool ok = otlp_json_translate(text, &body, &generation, err) ||
		  (!err->kind && too_large(err));
	if (ok)
		ok = generation == OTLP_CURRENT
			     ? add_copy(in, "OTLP/JSON", false, bytes_view(&body), err)
			     : add_bridged(in, "OTLP/JSON", generation, bytes_view(&body), err);
	bytes_fini(&body);
	return ok;
}

static bool take_json_lines(struct explain_input *in, struct view text, struct error *err)
{
	for (size_t number = 1; text.len; number++) {
		const uint8_t *end = memchr(text.at, '\n', text.len);
		size_t len = end ? (size_t)(end - text.at) : text.len;
		struct view line = trim((struct view){ text.at, len });
		if (line.len && !take_json(in, line, err))
			return error_prefix(err, "line %zu", number);
		len += end != NULL;
		text = (struct view){ text.at + len, text.len - len };
	}
	return true;
}

/* One document on each line, or one on several lines. If it is neither, the error is that of the
 * whole when not even the first line is a document. */
static bool take_json_file(struct explain_input *in, struct view text, struct error *err)
{
	struct error of_lines;
	error_clear(&of_lines);
	if (take_json_lines(in, text, &of_lines))
		return true;
	if (!in->count && take_json(in, trim(text), err))
		return true;
	if (in->count)
		*err = of_lines;
	return error_prefix(err, "the file is not OTLP/JSON");
}

/* ---- frames: of gRPC (a flag and the length), and of the exporter `file` (the length) */

static uint32_t length_at(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool is_framed(struct view body, size_t flag)
{
	if (body.len < flag + 4)
		return false;
	while (body.len >= flag + 4 && (!flag || *body.at <= 1)) {
		size_t whole = flag + 4 + length_at(body.at + flag);
		if (whole > body.len)
			return false;
		body = (struct view){ body.at + whole, body.len - whole };
	}
	return !body.len;
}

static bool take(struct explain_input *in, struct view body, int depth, struct error *err);

static bool take_frames(struct explain_input *in, struct view body, size_t flag, int depth,
			struct error *err)
{
	while (body.len) {
		size_t head = flag + 4, len = length_at(body.at + flag);
		if (!take(in, (struct view){ body.at + head, len }, depth, err))
			return false;
		body = (struct view){ body.at + head + len, body.len - head - len };
	}
	return true;
}

/* ---- any of them */

static bool take_inflated(struct explain_input *in, enum coding coding, struct view body, int depth,
			  struct error *err)
{
	struct bytes inflated;
	bytes_init(&inflated, FILE_MAX_BYTES);
	bool ok = compress_inflate(coding, body, &inflated, err) &&
		  (bytes_reserve(&inflated, 1) || too_large(err)) &&
		  take(in, bytes_view(&inflated), depth, err);
	bytes_fini(&inflated);
	return ok;
}

static bool take(struct explain_input *in, struct view body, int depth, struct error *err)
{
	enum coding coding = compress_sniff(body);
	struct view text = trim(body);
	if (coding != CODING_IDENTITY && depth < NESTING_MAX)
		return take_inflated(in, coding, body, depth + 1, err);
	if (text.len && *text.at == '{')
		return take_json_file(in, body, err);
	for (size_t flag = 0; flag <= 1 && depth < NESTING_MAX; flag++)
		if (is_framed(body, flag))
			return take_frames(in, body, flag, depth + 1, err);
	return take_protobuf(in, body, err);
}

bool explain_input_read(struct explain_input *in, const char *path, struct error *err)
{
	struct bytes raw;
	*in = (struct explain_input){ 0 };
	bytes_init(&raw, FILE_MAX_BYTES);
	bool ok = files_read(path, &raw, err);
	if (ok) {
		in->bytes = raw.len;
		ok = take(in, bytes_view(&raw), 0, err) || error_prefix(err, "%s", path);
	}
	bytes_fini(&raw);
	return ok;
}

void explain_input_fini(struct explain_input *in)
{
	for (size_t i = 0; i < in->count; i++)
		bytes_fini(&in->at[i].body);
	memory_free(in->at);
}

bool explain_input_decode(const struct explain_document *document, struct profiles *p,
			  struct request *request, const struct metadatum *attributes,
			  struct error *err)
{
	struct view body = bytes_view(&document->body);
	struct otlp_layout layout = { .known = OTLP_CURRENT };
	if (!reset(p, request, body, err))
		return false;
	return document->pprof ? decode_pprof(p, body, attributes, err)
			       : decode_otlp_any(p, &layout, err);
}
