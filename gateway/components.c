/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/components.h"

#include "net/places.h"

#include <string.h>

/* What this build has: for each component the constant in which its file ends. */
#define COMPONENTS(_) \
	_(otlp_receiver) \
	_(pprof_receiver) \
	_(pyroscope_receiver) \
	_(parca_receiver) \
	_(otlp_json_file_receiver) \
	_(kafka_receiver) \
	_(nop_receiver) \
	_(memory_limiter_processor) \
	_(resource_processor) \
	_(allowlist_processor) \
	_(pii_processor) \
	_(redaction_processor) \
	_(batch_processor) \
	_(sample_types_processor) \
	_(otlp_grpc_exporter) \
	_(otlp_http_exporter) \
	_(pyroscope_exporter) \
	_(parca_exporter) \
	_(kafka_exporter) \
	_(file_exporter) \
	_(debug_exporter) \
	_(nop_exporter) \
	_(load_balancing_exporter) \
	_(forward_connector) \
	_(routing_connector) \
	_(health_check_extension) \
	_(pprof_extension) \
	_(bearer_token_auth_extension) \
	_(basic_auth_extension) \
	_(client_certificate_auth_extension) \
	_(headers_setter_extension) \
	_(file_storage_extension)

#define DECLARE(name) extern const struct component_factory name;
#define ENTRY(name) &(name),

COMPONENTS(DECLARE)

const struct component_factory *const components[] = { COMPONENTS(ENTRY) NULL };

bool components_find_place(const char *asked, struct place *place)
{
	for (const struct component_factory *const *f = components; *f; f++) {
		const struct receiver_path *p = (*f)->receiver ? (*f)->receiver->paths : NULL;
		for (; p && p->asked; p++) {
			if (strcmp(p->asked, asked) != 0)
				continue;
			*place = (struct place){ p->path, (*f)->type, (*f)->receiver->http };
			return true;
		}
	}
	return false;
}
