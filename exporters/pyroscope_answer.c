/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/pyroscope_answer.h"

#include <ctype.h>
#include <string.h>

#include "pipeline/delivery/store_limits.h"

static bool says(struct view text, const char *words)
{
	return text.len && memmem(text.at, text.len, words, strlen(words));
}

/* What follows the last occurrence of the words; empty if there is none. */
static struct view after(struct view text, const char *words)
{
	struct view rest = { 0 };
	for (uint8_t *at; text.len && (at = memmem(text.at, text.len, words, strlen(words)));) {
		size_t past = (size_t)(at - text.at) + strlen(words);
		text = rest = (struct view){ text.at + past, text.len - past };
	}
	return rest;
}

static bool begins(struct view text, const char *words)
{
	return text.len >= strlen(words) && !memcmp(text.at, words, strlen(words));
}

static double unit_of(struct view rest)
{
	return begins(rest, " kB")   ? 1e3
	       : begins(rest, " MB") ? 1e6
	       : begins(rest, " GB") ? 1e9
				     : 1;
}

/* "4194304", or "4.2 MB": that one was rounded, to a tenth and then perhaps to a whole: less than
 * it can mean. 0: none. */
static uint64_t number_in(struct view text)
{
	uint64_t number = 0, tenths = 0;
	size_t i = 0;
	for (; i < text.len && i < 15 && isdigit(text.at[i]); i++)
		number = number * 10 + (uint64_t)(text.at[i] - '0');
	bool fraction = i + 1 < text.len && text.at[i] == '.' && isdigit(text.at[i + 1]);
	if (fraction)
		tenths = (uint64_t)(text.at[i + 1] - '0');
	i += fraction ? 2 : 0;
	double unit = i < text.len ? unit_of((struct view){ text.at + i, text.len - i }) : 1;
	double least = ((double)number + (double)tenths / 10 -
			(unit == 1  ? 0
			 : fraction ? .05
				    : .55)) *
		       unit;
	return least > 0 && least < 1e18 ? (uint64_t)least : 0;
}

bool pyroscope_found_nothing(const struct http_result *result)
{
	return result->status == 400 && begins(result->body, "{\"code\":\"invalid_argument\"");
}

/* Older stores quote labels, which a sender chose: only the beginning of the message, where no
 * label can stand, and its last words count. */
void pyroscope_judge(const struct http_result *result, uint64_t bytes, struct send_result *verdict)
{
	static const char labelled[] = "\"message\":\"the profile with labels '";
	static const char *const newer[] = { "\"message\":\"uncompressed profile payload size "
					     "exceeds limit of ",
					     "\"message\":\"uncompressed batched profile payload "
					     "size exceeds limit of " };
	struct view text = result->body,
		    last = says(text, labelled) ? after(text, " exceeds the ") : (struct view){ 0 };
	bool over_bytes = begins(last, "size limit ("),
	     over_samples = begins(last, "samples count limit (");
	struct view shown = after(text, newer[says(text, newer[1])]);
	bool over_burst =
		result->status == 429 && bytes > STORE_PYROSCOPE_BURST && says(text, "rate limit");
	if (result->status < 300 ||
	    (result->status != 413 && !over_bytes && !over_samples && !shown.len && !over_burst))
		return;
	uint64_t limit = number_in(shown.len ? shown : after(last, "limit: "));
	verdict->outcome = SEND_TOO_LARGE;
	verdict->reason = "too_large";
	verdict->stated_bytes = over_burst                ? STORE_PYROSCOPE_BURST
				: over_bytes || shown.len ? limit
							  : 0;
	verdict->stated_samples = over_samples ? limit : 0;
}
