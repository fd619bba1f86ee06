/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_cookies.h"

#include <strings.h>

#define SET_COOKIE "Set-Cookie:"

void http_cookies_init(struct http_cookies *cookies, bool wanted)
{
	*cookies = (struct http_cookies){ .jar = wanted ? curl_share_init() : NULL };
	if (cookies->jar)
		curl_share_setopt(cookies->jar, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
}

void http_cookies_use(const struct http_cookies *cookies, CURL *curl)
{
	if (!cookies->jar)
		return;
	curl_easy_setopt(curl, CURLOPT_SHARE, cookies->jar);
	curl_easy_setopt(curl, CURLOPT_COOKIEFILE, ""); /* no file, but cookies */
}

void http_cookies_see(struct http_cookies *cookies, const char *line, size_t len)
{
	size_t name = sizeof SET_COOKIE - 1;
	if (cookies->jar && len > name && !strncasecmp(line, SET_COOKIE, name))
		cookies->received++;
}

void http_cookies_bound(struct http_cookies *cookies, CURL *curl)
{
	if (cookies->received < HTTP_COOKIES_MAX)
		return;
	curl_easy_setopt(curl, CURLOPT_COOKIELIST, "ALL");
	cookies->received = 0;
}

void http_cookies_fini(struct http_cookies *cookies)
{
	if (cookies->jar)
		curl_share_cleanup(cookies->jar);
	cookies->jar = NULL;
}
