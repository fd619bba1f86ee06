/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_HTTP_COMPRESSION_H
#define PIPELINE_DELIVERY_HTTP_COMPRESSION_H

#include "config/table.h"
#include "profile/packet.h"

/* The Collector's keys `compression` and `compression_params` of HTTP clients (configcompression),
 * as a part of struct http_sender_config. */
struct http_level_config {
	int64_t level;
};

struct http_compression_config {
	char *name;
	struct http_level_config params;
};

extern const struct config_table http_level_table;

/* clang-format off */
#define HTTP_COMPRESSION_ROWS(type, member, names) \
	CONFIG_ROW(type, member.name, .key = "compression", .def = "gzip", \
		   .help = "Compression of requests: " names "."), \
	CONFIG_SECTION(type, member.params, http_level_table, .key = "compression_params", \
		       .help = "Options of the compression.")
/* clang-format on */

/* For the argument `codings`: 1 << coding each. */
#define HTTP_COMPRESSION_GZIP (1u << CODING_IDENTITY | 1u << CODING_GZIP)
#define HTTP_COMPRESSION_ALL ((1u << CODING_COUNT) - 1)

/* Is it one of the codings that the destination accepts, and does it have this level? */
void http_compression_check(const struct http_compression_config *config, unsigned codings,
			    struct faults *faults);
/* The form of a checked configuration. */
struct packet_form http_compression_form(const struct http_compression_config *config,
					 enum packet_encoding encoding);
/* For Content-Encoding; NULL: none. */
const char *http_compression_header(const struct http_compression_config *config);

#endif
