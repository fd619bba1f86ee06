/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/status_message.h"

#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = 2 };

const char *status_message_word(int64_t code)
{
	static const char *const words[] = {
		"ok",
		"cancelled",
		"unknown",
		"invalid_argument",
		"deadline_exceeded",
		"not_found",
		"already_exists",
		"permission_denied",
		"resource_exhausted",
		"failed_precondition",
		"aborted",
		"out_of_range",
		"unimplemented",
		"internal",
		"unavailable",
		"data_loss",
		"unauthenticated",
	};
	bool known = code >= 0 && code < (int64_t)(sizeof words / sizeof *words);
	return words[known ? code : UNKNOWN];
}

/* The words of the C core, grpc-go, grpc-java, tonic and Go's net/http. NULL, or what follows the
 * words. */
static const char *find_too_large(const char *message)
{
	static const char *const words[] = { "larger than max", "exceeds maximum",
					     "exceeds the maximum", "too large" };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		const char *found = strcasestr(message, words[i]);
		if (found)
			return found + strlen(words[i]);
	}
	return NULL;
}

/* They name two numbers in either order, and the limit is the smaller: "(5000 vs. 4096)", "size
 * 4096: 5000". */
static void read_limit(const char *text, struct send_result *verdict)
{
	uint64_t numbers[2] = { 0, 0 };
	for (int i = 0; i < 2; i++) {
		char *end;
		text += strcspn(text, "0123456789");
		numbers[i] = strtoull(text, &end, 10);
		text = end;
	}
	bool swapped = numbers[1] && numbers[1] < numbers[0];
	verdict->stated_bytes = numbers[swapped];
	verdict->seen_bytes = numbers[!swapped];
}

bool status_message_too_large(const char *message, struct send_result *verdict)
{
	const char *limit = find_too_large(message);
	if (!limit)
		return false;
	verdict->outcome = SEND_TOO_LARGE;
	verdict->reason = "too_large";
	read_limit(limit, verdict);
	return true;
}
