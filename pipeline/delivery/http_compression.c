/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/http_compression.h"

#include <string.h>

#include "net/compress.h"

/* Levels as Go's libraries number them, and their nearest ones here. */
enum { LEVEL_DEFAULT = -1, LEVEL_HUFFMAN = -2, DEFLATE_MAX = 9, ZSTD_MAX = 11 };

const char *http_compression_header(const struct http_compression_config *config)
{
	return config->name && *config->name && strcmp(config->name, "none") ? config->name : NULL;
}

static enum coding coding_of(const struct http_compression_config *config)
{
	const char *name = http_compression_header(config);
	return name ? compress_named(name) : CODING_IDENTITY;
}

static bool has_level(enum coding coding, int64_t level)
{
	switch (coding) {
	case CODING_GZIP:
	case CODING_ZLIB:
		return level >= LEVEL_HUFFMAN && level <= DEFLATE_MAX;
	case CODING_ZSTD:
		return true;
	default:
		return level == 0;
	}
}

void http_compression_check(const struct http_compression_config *config, unsigned codings,
			    struct faults *faults)
{
	static const char *const names[] = { "gzip", "zlib",   "deflate",         "zstd",
					     "lz4",  "snappy", "x-snappy-framed", NULL };
	const char *name = http_compression_header(config);
	size_t i = 0;
	while (name && names[i] && strcmp(name, names[i]))
		i++;
	if ((name && !names[i]) || !(codings & 1u << coding_of(config)))
		faults_add(faults, "compression: unsupported type; use %s",
			   codings == HTTP_COMPRESSION_ALL ? "gzip, zstd, zlib, deflate, lz4, "
							     "snappy, x-snappy-framed or none"
							   : "gzip or none");
	else if (!has_level(coding_of(config), config->params.level))
		faults_relate(faults, "compression",
			      "compression_params::level: unsupported for this compression; see "
			      "the manual");
}

static int level_of(enum coding coding, int64_t level)
{
	if (coding != CODING_GZIP && coding != CODING_ZLIB && coding != CODING_ZSTD)
		return 0;
	if (level < 1)
		return 1;
	return level > ZSTD_MAX ? ZSTD_MAX : (int)level;
}

struct packet_form http_compression_form(const struct http_compression_config *config,
					 enum packet_encoding encoding)
{
	enum coding coding = coding_of(config);
	return (struct packet_form){ encoding, coding, level_of(coding, config->params.level) };
}

static const struct config_row level_rows[] = {
	CONFIG_ROW(struct http_level_config, level, .key = "level", .def = "0", .limited = true,
		   .min = INT32_MIN, .max = INT32_MAX,
		   .help = "Compression level; 0: the default, which is 1. `gzip`, `zlib` and "
			   "`deflate` have 1 to 9; -1 and -2 mean 1. `zstd` has 1 to 11; other "
			   "numbers mean the nearest of these. The others have no levels."),
	{ 0 }
};
const struct config_table http_level_table = { sizeof(struct http_level_config), level_rows };
