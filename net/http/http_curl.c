/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_curl.h"

#include <pthread.h>

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
