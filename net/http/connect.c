/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/connect.h"

#include "base/quote.h"

const char *connect_code(const struct error *err)
{
	static const char *const codes[] = {
		[ERROR_NONE] = "unknown",
		[ERROR_CONFIG] = "internal",
		[ERROR_INVALID] = "invalid_argument",
		[ERROR_TOO_LARGE] = "invalid_argument",
		[ERROR_UNSUPPORTED] = "unimplemented",
		[ERROR_UNAUTHENTICATED] = "unauthenticated",
		[ERROR_FORBIDDEN] = "permission_denied",
		[ERROR_BUSY] = "unavailable",
		[ERROR_INTERNAL] = "internal",
	};
	return err->over_quota ? "resource_exhausted" : codes[err->kind];
}

void connect_refuse(struct http_exchange *x, int status, const struct error *err)
{
	uint32_t wait = err->retry_after_ms ? (err->retry_after_ms + 999) / 1000 : 1;
	struct bytes body;
	bytes_init(&body, 128 + 6 * sizeof err->text); /* an escape has six characters */
	bytes_format(&body, "{\"code\":\"%s\",\"message\":", connect_code(err));
	quote_json(&body, err->text, strlen(err->text));
	bytes_add_byte(&body, '}');
	http_exchange_reply(x, &(struct http_reply){
				       .status = status ? status : http_status_of(err),
				       .content_type = "application/json",
				       .body = bytes_view(&body),
				       .retry_after_s = err->kind == ERROR_BUSY ? wait : 0,
			       });
	bytes_fini(&body);
}
