/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_index.h"

#define PAGE_MAX 65536

/* HTML, section 13.3: paths may be configured. */
static void add_escaped(struct bytes *out, const char *text)
{
	for (; *text; text++)
		switch (*text) {
		case '&':
			bytes_add_text(out, "&amp;");
			break;
		case '<':
			bytes_add_text(out, "&lt;");
			break;
		case '"':
			bytes_add_text(out, "&quot;");
			break;
		default:
			bytes_add_byte(out, (uint8_t)*text);
		}
}

void http_index_reply(struct http_exchange *exchange, int status,
		      const struct http_index_link *links)
{
	struct bytes page;
	bytes_init(&page, PAGE_MAX);
	bytes_add_text(&page, "<!DOCTYPE html>\n<title>Portcullis</title>\n<ul>\n");
	for (const struct http_index_link *l = links; l->path; l++) {
		bytes_add_text(&page, "<li><a href=\"");
		add_escaped(&page, l->path);
		bytes_add_text(&page, "\">");
		add_escaped(&page, l->path);
		bytes_format(&page, "</a>: %s\n", l->text);
	}
	bytes_add_text(&page, "</ul>\n");
	http_exchange_reply(exchange, &(struct http_reply){
					      .status = status,
					      .content_type = "text/html; charset=utf-8",
					      .body = bytes_view(&page),
				      });
	bytes_fini(&page);
}
