/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/otlp_answer.h"

#include <strings.h>

#include "otlp_service.pb-c.h"
#include "pipeline/delivery/status_message.h"
#include "profile/json_wire.h"
#include "status.pb-c.h"

JSON_WIRE_TABLE(partial_success, JSON_WIRE_FIELD(1, "rejectedProfiles", INT64),
		JSON_WIRE_FIELD(2, "errorMessage", STRING));
JSON_WIRE_TABLE(response_message, JSON_WIRE_ONE(1, "partialSuccess", partial_success));
JSON_WIRE_TABLE(status_table, JSON_WIRE_FIELD(1, "code", INT32),
		JSON_WIRE_FIELD(2, "message", STRING));

uint64_t otlp_answer_rejected(const struct log *log, struct view response, uint64_t profiles)
{
	typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceResponse
		answer_type;
	answer_type *answer =
		opentelemetry__proto__collector__profiles__v1development__export_profiles_service_response__unpack(
			NULL, response.len, response.at);
	if (!answer || !answer->partial_success) {
		if (answer)
			protobuf_c_message_free_unpacked(&answer->base, NULL);
		return 0;
	}
	int64_t said = answer->partial_success->rejected_profiles;
	uint64_t rejected = said < 0 ? 0 : (uint64_t)said;
	if (rejected > profiles)
		rejected = profiles;
	if (rejected || *answer->partial_success->error_message)
		log_warn(log, "Partial success response", log_number("dropped_profiles", rejected));
	protobuf_c_message_free_unpacked(&answer->base, NULL);
	return rejected;
}

/* "application/json; charset=utf-8" is application/json. */
static bool is_media(const char *type, const char *wanted)
{
	size_t len = strlen(wanted);
	return type && !strncasecmp(type, wanted, len) && strchr("; \t", type[len]);
}

/* The body in protobuf. Empty: it is in another encoding, or cannot be read. `room` holds it if it
 * was translated. */
static struct view message_of(const struct http_result *result,
			      const struct json_wire_message *table, struct bytes *room)
{
	uint32_t mark;
	if (is_media(result->content_type, "application/x-protobuf") ||
	    is_media(result->content_type, "application/protobuf"))
		return result->body;
	if (is_media(result->content_type, "application/json") &&
	    json_wire_translate(table, result->body, room, &mark, NULL))
		return bytes_view(room);
	return (struct view){ 0 };
}

/* Servers without a limit of their own in front of the decoder answer 400; a retry would not help
 * after a 429 without a time. */
static bool may_be_size(const struct send_result *verdict, int status)
{
	return status == 400 || status == 413 || (status == 429 && verdict->retry_after_ms < 0);
}

static void read_status(struct view message, int http_status, struct send_result *verdict)
{
	Google__Rpc__Status *status = google__rpc__status__unpack(NULL, message.len, message.at);
	if (!status)
		return;
	if (verdict->outcome != SEND_TOO_LARGE && status->code)
		verdict->reason = status_message_word(status->code);
	if (may_be_size(verdict, http_status))
		status_message_too_large(status->message, verdict);
	google__rpc__status__free_unpacked(status, NULL);
}

void otlp_answer_judge(const struct log *log, const struct http_result *result, uint64_t profiles,
		       struct send_result *verdict)
{
	struct bytes room;
	bytes_init(&room, HTTP_ANSWER_MAX);
	bool good = verdict->outcome == SEND_OK;
	struct view message = message_of(result, good ? &response_message : &status_table, &room);
	if (good && message.len)
		verdict->rejected_profiles = otlp_answer_rejected(log, message, profiles);
	else if (message.len && result->status >= 400)
		read_status(message, result->status, verdict);
	bytes_fini(&room);
}
