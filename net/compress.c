/* SPDX-License-Identifier: Apache-2.0 */
#include "net/compress.h"

#include "net/compress_lz4.h"
#include "net/compress_output.h"
#include "net/compress_snappy.h"
#include "net/deflate_codes.h"

#include <assert.h>
#include <isa-l/igzip_lib.h>
#include <libdeflate.h>
#include <pthread.h>
#include <strings.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/memory.h"

enum { GZIP_END = 8, GZIP_MIN = 18, ZSTD_HEADER = 4 };

/*
 * Gzip of level 1 is made of runs of deflate. What takes the time of a small body is making its
 * Huffman code, so one of up to WHOLE_MAX bytes gets a code that was made before
 * (net/deflate_codes.h), and so does a larger one that is text for a third, the text a code for
 * text: that fits better than one code for all that was made of the body itself. The others, and
 * content that is nothing like what the codes were made of, get a code of their own. A body of up
 * to SINGLE_MAX is ISA-L's at its fastest, in a third to a half of libdeflate's time.
 *
 * Larger profiles repeat themselves more, and ISA-L would make up to 7 % more bytes of them than
 * libdeflate; so each of their sections is a run of its own, whose codes fit its content, ISA-L
 * looks for repeats the harder the larger the body is, and the last section, which repeats itself
 * over the longest distances (the stacks), is libdeflate's unless it is small.
 */
enum {
	WHOLE_MAX = 16 << 10,
	SINGLE_MAX = 96 << 10,
	MIDDLE_MAX = 512 << 10, /* bytes of a body */
	/* text below one part in this number is not treated separately */
	TEXT_SHARE = 3,
	SECTION_MIN = 2 << 10, /* a smaller one goes with the next */
	LAST_QUICK_MAX = 16 << 10,
	QUICK_TOKENS = 32 << 10 /* of one block, at least */
};

struct quick {
	struct isal_zstream stream;
	/* level 3 needs most */
	uint8_t level_buffer[ISAL_DEF_LVL3_REQ + QUICK_TOKENS * ISAL_DEF_LVL3_TOKEN_SIZE];
};

/* A thread's working memory for all codecs, made at first use, freed when the thread ends. */
struct tools {
	struct libdeflate_decompressor *inflater;
	struct libdeflate_compressor *deflater;
	int deflater_level;
	struct quick *quick;
	ZSTD_DCtx *unzstd;
	ZSTD_CCtx *zstd;
};

static pthread_key_t tools_key;
static pthread_once_t tools_once = PTHREAD_ONCE_INIT;

static void tools_free(void *old)
{
	struct tools *tools = old;
	libdeflate_free_decompressor(tools->inflater);
	libdeflate_free_compressor(tools->deflater);
	memory_free(tools->quick);
	ZSTD_freeDCtx(tools->unzstd);
	ZSTD_freeCCtx(tools->zstd);
	memory_free(tools);
}

static void tools_init(void)
{
	pthread_key_create(&tools_key, tools_free);
}

static struct tools *tools_here(void)
{
	pthread_once(&tools_once, tools_init);
	struct tools *tools = pthread_getspecific(tools_key);
	if (!tools) {
		tools = memory_new(sizeof *tools);
		pthread_setspecific(tools_key, tools);
	}
	return tools;
}

enum coding compress_sniff(struct view body)
{
	static const struct {
		enum coding coding;
		size_t len;
		const char *magic;
	} magics[] = {
		{ CODING_GZIP, 2, "\x1f\x8b" },
		{ CODING_ZSTD, 4, "\x28\xb5\x2f\xfd" },
		{ CODING_SNAPPY_FRAMED, 10, "\xff\x06\x00\x00sNaPpY" },
	};
	for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
		if (body.len >= magics[i].len && !memcmp(body.at, magics[i].magic, magics[i].len))
			return magics[i].coding;
	return CODING_IDENTITY;
}

static size_t gzip_stated_size(struct view body)
{
	if (body.len < 18) /* RFC 1952: header and trailer */
		return SIZE_MAX;
	const uint8_t *end = body.at + body.len;
	return end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 | (size_t)end[-1] << 24;
}

size_t compress_stated_size(enum coding coding, struct view body)
{
	if (coding == CODING_IDENTITY)
		return body.len;
	if (coding == CODING_GZIP)
		return gzip_stated_size(body);
	if (coding == CODING_SNAPPY)
		return compress_snappy_stated_size(body);
	if (coding != CODING_ZSTD)
		return SIZE_MAX;
	unsigned long long size = ZSTD_getFrameContentSize(body.at, body.len);
	/* unknown and error are the largest numbers */
	return size > SIZE_MAX / 2 ? SIZE_MAX : (size_t)size;
}

/* The first name of a coding is the one to send. */
static const struct {
	const char *name;
	enum coding coding;
} coding_names[] = {
	{ "identity", CODING_IDENTITY },
	{ "", CODING_IDENTITY },
	{ "gzip", CODING_GZIP },
	{ "x-gzip", CODING_GZIP },
	{ "deflate", CODING_ZLIB },
	{ "zlib", CODING_ZLIB },
	{ "zstd", CODING_ZSTD },
	{ "snappy", CODING_SNAPPY },
	{ "x-snappy-framed", CODING_SNAPPY_FRAMED },
	{ "lz4", CODING_LZ4 },
};
enum { CODING_NAMES = sizeof coding_names / sizeof *coding_names };

enum coding compress_named(const char *name)
{
	for (size_t i = 0; i < CODING_NAMES; i++)
		if (!strcasecmp(name, coding_names[i].name))
			return coding_names[i].coding;
	return CODING_UNKNOWN;
}

const char *compress_name(enum coding coding)
{
	size_t i = 0;
	assert(coding < CODING_UNKNOWN);
	while (coding_names[i].coding != coding)
		i++;
	return coding_names[i].name;
}

/* Inflates one stream at the start of `in`; *used tells where the next may begin. */
typedef enum libdeflate_result inflate_one(struct libdeflate_decompressor *, const void *, size_t,
					   void *, size_t, size_t *, size_t *);

static bool inflate_stream(inflate_one *inflate, const char *coding, struct view in, size_t *at,
			   struct bytes *out, struct error *err)
{
	struct tools *tools = tools_here();
	if (!tools->inflater)
		tools->inflater = libdeflate_alloc_decompressor();
	for (;;) {
		size_t used = 0, made = 0;
		enum libdeflate_result result =
			inflate(tools->inflater, in.at + *at, in.len - *at, out->at + out->len,
				out->room - out->len, &used, &made);
		if (result == LIBDEFLATE_SUCCESS) {
			out->len += made;
			*at += used;
			return true;
		}
		if (result != LIBDEFLATE_INSUFFICIENT_SPACE)
			return compress_output_damaged(coding, *at, err);
		if (!compress_output_grow(out))
			return compress_output_exceeded(out, err);
	}
}

/* The last four bytes of a gzip member are its inflated size modulo 2^32: a hint, nothing more. */
static uint32_t gzip_claim(struct view in)
{
	if (in.len < GZIP_MIN)
		return 0;
	const uint8_t *end = in.at + in.len - 4;
	return (uint32_t)end[0] | (uint32_t)end[1] << 8 | (uint32_t)end[2] << 16 |
	       (uint32_t)end[3] << 24;
}

static bool inflate_gzip(struct view in, struct bytes *out, struct error *err)
{
	compress_output_reserve(out, compress_output_guess(in, gzip_claim(in)));
	size_t at = 0;
	do {
		if (!inflate_stream(libdeflate_gzip_decompress_ex, "gzip", in, &at, out, err))
			return false;
	} while (at < in.len);
	return true;
}

/* RFC 1950 2.2: the method, and the check bits of the header. */
static bool has_zlib_header(struct view in)
{
	return in.len < 2 || ((in.at[0] & 15) == 8 && (in.at[0] << 8 | in.at[1]) % 31 == 0);
}

/* Some clients call a stream without this header "deflate". */
static bool inflate_zlib(struct view in, struct bytes *out, struct error *err)
{
	inflate_one *inflate = has_zlib_header(in) ? libdeflate_zlib_decompress_ex
						   : libdeflate_deflate_decompress_ex;
	compress_output_reserve(out, compress_output_guess(in, (uint64_t)in.len * 4));
	size_t at = 0;
	if (!inflate_stream(inflate, "zlib", in, &at, out, err))
		return false;
	return at == in.len || compress_output_damaged("zlib", at, err);
}

/*
 * Whole frames into the output itself: no window is ever allocated, whatever a frame demands. The
 * library also reads the formats of its first years; those are refused, nobody sends them.
 */
static bool is_zstd_frame(const uint8_t *at, size_t len)
{
	if (len < ZSTD_HEADER)
		return false;
	return !memcmp(at, "\x28\xb5\x2f\xfd", 4) ||
	       ((at[0] & 0xf0) == 0x50 && !memcmp(at + 1, "\x2a\x4d\x18", 3));
}

static bool inflate_frame(struct view frame, size_t offset, struct bytes *out, struct error *err)
{
	struct tools *tools = tools_here();
	if (!tools->unzstd)
		tools->unzstd = ZSTD_createDCtx();
	unsigned long long size = ZSTD_getFrameContentSize(frame.at, frame.len);
	if (size == ZSTD_CONTENTSIZE_ERROR)
		return compress_output_damaged("zstd", offset, err);
	bool known = size != ZSTD_CONTENTSIZE_UNKNOWN;
	if (known && size > out->max - out->len)
		return compress_output_exceeded(out, err);
	compress_output_reserve(out, compress_output_guess(frame,
							   known ? size : (uint64_t)frame.len * 4));
	for (;;) {
		size_t made = ZSTD_decompressDCtx(tools->unzstd, out->at + out->len,
						  out->room - out->len, frame.at, frame.len);
		if (!ZSTD_isError(made)) {
			out->len += made;
			return true;
		}
		if (ZSTD_getErrorCode(made) != ZSTD_error_dstSize_tooSmall)
			return compress_output_damaged("zstd", offset, err);
		if (!compress_output_grow(out))
			return compress_output_exceeded(out, err);
	}
}

static bool inflate_zstd(struct view in, struct bytes *out, struct error *err)
{
	size_t at = 0;
	do {
		if (!is_zstd_frame(in.at + at, in.len - at))
			return compress_output_damaged("zstd", at, err);
		size_t len = ZSTD_findFrameCompressedSize(in.at + at, in.len - at);
		if (ZSTD_isError(len))
			return compress_output_damaged("zstd", at, err);
		if (!inflate_frame((struct view){ in.at + at, len }, at, out, err))
			return false;
		at += len;
	} while (at < in.len);
	return true;
}

static bool unknown(struct error *err)
{
	return error_set(err, ERROR_UNSUPPORTED,
			 "unknown content coding: send gzip, zstd, zlib, snappy, lz4 or identity");
}

static bool inflate_any(enum coding coding, struct view in, struct bytes *out, struct error *err)
{
	switch (coding) {
	case CODING_IDENTITY:
		return bytes_add(out, in.at, in.len) || compress_output_exceeded(out, err);
	case CODING_GZIP:
		return inflate_gzip(in, out, err);
	case CODING_ZLIB:
		return inflate_zlib(in, out, err);
	case CODING_ZSTD:
		return inflate_zstd(in, out, err);
	case CODING_SNAPPY:
		return compress_snappy_inflate(in, out, err);
	case CODING_SNAPPY_FRAMED:
		return compress_snappy_inflate_framed(in, out, err);
	case CODING_LZ4:
		return compress_lz4_inflate(in, out, err);
	case CODING_UNKNOWN:
		break;
	}
	return unknown(err);
}

bool compress_inflate(enum coding coding, struct view in, struct bytes *out, struct error *err)
{
	static const uint8_t nothing[1];
	if (!in.len)
		in.at = nothing; /* an empty body has no address, and nothing is added to NULL */
	bool ok = inflate_any(coding, in, out, err);
	if (out->at)
		memset(out->at + out->len, 0, BYTES_SLACK);
	return ok;
}

static struct libdeflate_compressor *deflater(int level)
{
	struct tools *tools = tools_here();
	if (tools->deflater && tools->deflater_level != level) {
		libdeflate_free_compressor(tools->deflater);
		tools->deflater = NULL;
	}
	if (!tools->deflater)
		tools->deflater = libdeflate_alloc_compressor(level);
	tools->deflater_level = level;
	return tools->deflater;
}

/* Of ISA-L's scale, which ends at 3. */
static uint32_t quick_level(size_t body)
{
	return body <= SINGLE_MAX ? 1 : body <= MIDDLE_MAX ? 2 : 3;
}

static struct isal_zstream *quick_stream(struct view in, bool last, uint8_t *to, size_t room)
{
	struct tools *tools = tools_here();
	if (!tools->quick)
		tools->quick = memory_new(sizeof *tools->quick);
	struct isal_zstream *s = &tools->quick->stream;
	isal_deflate_stateless_init(s);
	s->level_buf = tools->quick->level_buffer;
	s->level_buf_size = sizeof tools->quick->level_buffer;
	s->end_of_stream = last;
	s->flush = last ? NO_FLUSH : FULL_FLUSH;
	s->next_in = (uint8_t *)in.at;
	s->avail_in = (uint32_t)in.len;
	s->next_out = to;
	s->avail_out = (uint32_t)(room < UINT32_MAX ? room : UINT32_MAX);
	return s;
}

/* A run by ISA-L, with a code of its own; one that is not the last ends at a whole byte. 0: it does
 * not fit. */
static size_t deflate_quick(uint32_t level, struct view in, bool last, uint8_t *to, size_t room)
{
	if (in.len > INT32_MAX)
		return 0; /* it counts in 32 bits */
	struct isal_zstream *s = quick_stream(in, last, to, room);
	s->level = level;
	return isal_deflate_stateless(s) == COMP_OK ? s->total_out : 0;
}

/* The same with a code that was made before; unless it comes out as no profile does, which that
 * code does not fit. */
static size_t deflate_known(enum deflate_code code, struct view in, bool last, uint8_t *to,
			    size_t room)
{
	struct isal_zstream *s = quick_stream(in, last, to, room);
	isal_deflate_set_hufftables(s, deflate_code(code), IGZIP_HUFFTABLE_CUSTOM);
	bool fits = isal_deflate_stateless(s) == COMP_OK && s->total_out >= in.len / 4 &&
		    s->total_out <= in.len / 8 * 5;
	return fits ? s->total_out : deflate_quick(1, in, last, to, room);
}

static size_t put_gzip_end(struct view in, uint8_t *to)
{
	uint32_t words[] = { libdeflate_crc32(0, in.at, in.len), (uint32_t)in.len };
	for (unsigned i = 0; i < GZIP_END; i++)
		to[i] = (uint8_t)(words[i / 4] >> 8 * (i % 4));
	return GZIP_END;
}

/* What lies around the text, with its code, and the text with its own. 0: it does not fit. */
static size_t deflate_text(struct view in, size_t text, size_t behind, uint8_t *to, size_t room)
{
	const size_t ends[] = { text, behind, in.len };
	size_t from = 0, made = 0;
	for (unsigned i = 0; i < 3; i++) {
		struct view part = { in.at + from, ends[i] - from };
		size_t run = deflate_known(i == 1 ? DEFLATE_TEXT : DEFLATE_RECORDS, part, i == 2,
					   to + made, room - made);
		if (!run)
			return 0;
		from = ends[i];
		made += run;
	}
	return made;
}

static size_t deflate_small(struct view in, const struct cuts *cuts, uint8_t *to, size_t room)
{
	if (in.len <= WHOLE_MAX)
		return deflate_known(DEFLATE_WHOLE, in, true, to, room);
	size_t text = cuts->at[cuts->text], behind = cuts->at[cuts->text + 1];
	assert(text <= behind && behind <= in.len);
	return behind - text < in.len / TEXT_SHARE ? deflate_quick(1, in, true, to, room)
						   : deflate_text(in, text, behind, to, room);
}

/* 0: it does not fit. */
static size_t deflate_sections(struct view in, const struct cuts *cuts, uint8_t *to, size_t room)
{
	size_t from = 0, made = 0;
	for (size_t i = 0; i < cuts->count; i++) {
		assert(cuts->at[i] <= in.len);
		if (cuts->at[i] < from + SECTION_MIN)
			continue;
		struct view section = { in.at + from, cuts->at[i] - from };
		size_t run =
			deflate_quick(quick_level(in.len), section, false, to + made, room - made);
		if (!run)
			return 0;
		from = cuts->at[i];
		made += run;
	}
	struct view last = { in.at + from, in.len - from };
	size_t run =
		last.len <= LAST_QUICK_MAX
			? deflate_quick(quick_level(in.len), last, true, to + made, room - made)
			: libdeflate_deflate_compress(deflater(1), last.at, last.len, to + made,
						      room - made);
	return run ? made + run : 0;
}

/* Content that nobody knows more of. 0: it does not fit. */
static size_t deflate_any(struct view in, uint8_t *to, size_t room)
{
	return in.len <= SINGLE_MAX
		       ? deflate_quick(1, in, true, to, room)
		       : libdeflate_deflate_compress(deflater(1), in.at, in.len, to, room);
}

/* 0: it does not fit. */
static size_t deflate_runs(struct view in, const struct cuts *cuts, uint8_t *to, size_t room)
{
	/* RFC 1952 2.3: no time, fastest, no system */
	static const uint8_t begin[] = { 0x1f, 0x8b, 8, [8] = 4, 0xff };
	if (room < GZIP_MIN)
		return 0;
	memcpy(to, begin, sizeof begin);
	uint8_t *runs = to + sizeof begin;
	room -= GZIP_MIN;
	size_t made = !cuts                  ? deflate_any(in, runs, room)
		      : in.len <= SINGLE_MAX ? deflate_small(in, cuts, runs, room)
					     : deflate_sections(in, cuts, runs, room);
	return made ? sizeof begin + made + put_gzip_end(in, runs + made) : 0;
}

static size_t deflate_gzip(int level, struct view in, const struct cuts *cuts, struct bytes *out)
{
	struct libdeflate_compressor *c = deflater(level);
	compress_output_reserve(out, libdeflate_gzip_compress_bound(c, in.len));
	uint8_t *to = out->at + out->len;
	size_t room = out->room - out->len,
	       made = level == 1 ? deflate_runs(in, cuts, to, room) : 0;
	return made ? made : libdeflate_gzip_compress(c, in.at, in.len, to, room);
}

static size_t deflate_zlib(int level, struct view in, struct bytes *out)
{
	struct libdeflate_compressor *c = deflater(level);
	compress_output_reserve(out, libdeflate_zlib_compress_bound(c, in.len));
	return libdeflate_zlib_compress(c, in.at, in.len, out->at + out->len, out->room - out->len);
}

static size_t deflate_zstd(int level, struct view in, struct bytes *out)
{
	struct tools *tools = tools_here();
	if (!tools->zstd)
		tools->zstd = ZSTD_createCCtx();
	compress_output_reserve(out, ZSTD_compressBound(in.len));
	size_t made = ZSTD_compressCCtx(tools->zstd, out->at + out->len, out->room - out->len,
					in.at, in.len, level);
	return ZSTD_isError(made) ? 0 : made;
}

static bool finish(size_t made, struct bytes *out, struct error *err)
{
	out->len += made;
	return made ||
	       error_set(err, ERROR_TOO_LARGE, "the compressed body exceeds %zu bytes", out->max);
}

bool compress_deflate(enum coding coding, int level, struct view in, struct bytes *out,
		      struct error *err)
{
	level = level ? level : 1;
	switch (coding) {
	case CODING_IDENTITY:
		return bytes_add(out, in.at, in.len) || compress_output_exceeded(out, err);
	case CODING_GZIP:
		return finish(deflate_gzip(level, in, NULL, out), out, err);
	case CODING_ZLIB:
		return finish(deflate_zlib(level, in, out), out, err);
	case CODING_ZSTD:
		return finish(deflate_zstd(level, in, out), out, err);
	case CODING_SNAPPY:
		return finish(compress_snappy_deflate(in, out), out, err);
	case CODING_SNAPPY_FRAMED:
		return finish(compress_snappy_deflate_framed(in, out), out, err);
	case CODING_LZ4:
		return finish(compress_lz4_deflate(level, in, out), out, err);
	case CODING_UNKNOWN:
		break;
	}
	return unknown(err);
}

bool compress_gzip(struct view in, const struct cuts *cuts, struct bytes *out, struct error *err)
{
	return finish(deflate_gzip(1, in, cuts, out), out, err);
}
