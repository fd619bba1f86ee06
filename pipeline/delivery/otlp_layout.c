/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/otlp_layout.h"

enum { V1_8, V1_9, V1_10 };
enum { INLINE, INDEX };

const char *const otlp_layout_schemas[] = { "v1.8", "v1.9", "v1.10", NULL };
const char *const otlp_layout_references[] = { "inline", "index", NULL };

void otlp_layout_check(const struct otlp_layout_config *config, struct faults *faults)
{
	if (config->schema.index != V1_10 && config->references.index != INLINE)
		faults_relate(
			faults, "schema",
			"references: `index` requires `schema: v1.10`, because earlier releases "
			"of OTLP have no references");
}

enum packet_encoding otlp_layout_encoding(const struct otlp_layout_config *config, bool json)
{
	if (config->references.index == INDEX)
		return json ? PACKET_REFERENCES_JSON : PACKET_REFERENCES;
	switch (config->schema.index) {
	case V1_8:
		return json ? PACKET_JSON_1_8 : PACKET_OTLP_1_8;
	case V1_9:
		return json ? PACKET_JSON : PACKET_OTLP_1_9;
	default:
		return json ? PACKET_JSON : PACKET_OTLP;
	}
}
