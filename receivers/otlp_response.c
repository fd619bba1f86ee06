/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/otlp_response.h"

#include "base/quote.h"
#include "otlp_service.pb-c.h"

#include <assert.h>

size_t otlp_response_pack(const struct outcome *outcome, uint8_t *out)
{
	Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceResponse response =
		OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_SERVICE_RESPONSE__INIT;
	Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesPartialSuccess partial =
		OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_PARTIAL_SUCCESS__INIT;
	if (!outcome->rejected_profiles)
		return 0;
	partial.rejected_profiles = outcome->rejected_profiles;
	if (outcome->rejection)
		partial.error_message = (char *)outcome->rejection;
	response.partial_success = &partial;
	size_t len = protobuf_c_message_get_packed_size(&response.base);
	assert(len <= OTLP_RESPONSE_MAX);
	return protobuf_c_message_pack(&response.base, out) == len ? len : 0;
}

void otlp_response_json(const struct outcome *outcome, struct bytes *out)
{
	const char *why = outcome->rejection ? outcome->rejection : "";
	bytes_add_text(out, "{\"partialSuccess\":{");
	if (outcome->rejected_profiles) {
		bytes_format(out, "\"rejectedProfiles\":\"%u\",\"errorMessage\":",
			     outcome->rejected_profiles);
		quote_json(out, why, strlen(why));
	}
	bytes_add_text(out, "}}");
}
