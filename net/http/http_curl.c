/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_curl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void start_library(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

void http_curl_start(void)
{
	pthread_once(&once, start_library);
}

struct curl_slist *http_curl_header(struct curl_slist *list, const char *name, const char *value)
{
	char *line = memory_format("%s: %s", name, value ? value : "");
	list = curl_slist_append(list, line);
	memory_free(line);
	return list;
}

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* libcurl's own value is also a number at the beginning of other text. */
int64_t http_curl_retry_after_ms(CURL *curl)
{
	struct curl_header *header;
	if (curl_easy_header(curl, "Retry-After", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
		return -1;
	int64_t seconds = is_number(header->value)
				  ? (int64_t)strtoll(header->value, NULL, 10) /* or LLONG_MAX */
				  : (int64_t)(curl_getdate(header->value, NULL) - time(NULL));
	if (seconds <= 0)
		return -1;
	return (seconds < INT32_MAX ? seconds : INT32_MAX) * 1000;
}
