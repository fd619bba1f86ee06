/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/components.h"

extern const struct component_factory otlp_receiver, pprof_receiver;
extern const struct component_factory memory_limiter_processor, resource_processor, allowlist_processor;
extern const struct component_factory pii_processor, batch_processor;
extern const struct component_factory otlp_grpc_exporter, file_exporter, debug_exporter;
extern const struct component_factory health_check_extension, pprof_extension;

const struct component_factory *const components[] = {
	&otlp_receiver,
	&pprof_receiver,

	&memory_limiter_processor,
	&resource_processor,
	&allowlist_processor,
	&pii_processor,
	&batch_processor,

	&otlp_grpc_exporter,
	&file_exporter,
	&debug_exporter,

	&health_check_extension,
	&pprof_extension,
	NULL
};
