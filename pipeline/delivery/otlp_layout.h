/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_OTLP_LAYOUT_H
#define PIPELINE_DELIVERY_OTLP_LAYOUT_H

#include "config/table.h"
#include "profile/packet.h"

/*
 * The layout in which an exporter sends OTLP, for servers of other releases. Neither key is the
 * Collector's.
 */
struct otlp_layout_config {
	struct choice schema, references;
};

extern const char *const otlp_layout_schemas[], *const otlp_layout_references[];

/* clang-format off */
#define OTLP_LAYOUT_ROWS(type, member) \
	CONFIG_ROW(type, member.schema, .key = "schema", .def = "v1.10", .choices = otlp_layout_schemas, \
		   .help = "The release of OTLP that the server reads; `v1.10` and newer have the same layout. Not a key of " \
			   "the Collector."), \
	CONFIG_ROW(type, member.references, .key = "references", .def = "inline", .choices = otlp_layout_references, \
		   .help = "The keys of resource and scope attributes: `inline` as text, which every server reads; `index` as " \
			   "references into the string table, for servers that resolve them. Not a key of the Collector.")

#define OTLP_LAYOUT_MANUAL \
	"The layout of OTLP profiles has changed in place, and a server drops or misreads profiles of another release, often " \
	"without an error. `schema` selects the release to send. `v1.8` and `v1.9` carry the same data; comments and the " \
	"temporality, which 1.8 has fields for, are sent as attributes.\n\n"
/* clang-format on */

void otlp_layout_check(const struct otlp_layout_config *config, struct faults *faults);
/* Of a checked configuration. */
enum packet_encoding otlp_layout_encoding(const struct otlp_layout_config *config, bool json);

#endif
