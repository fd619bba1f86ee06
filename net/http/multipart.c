/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/multipart.h"

#include <strings.h>

enum { PARTS_MAX = 32, HEADERS_MAX = 4096, BOUNDARY_MAX = 70 };

static const char media_type[] = "multipart/form-data";

bool multipart_is(const char *content_type)
{
	size_t len = sizeof media_type - 1;
	return content_type && !strncasecmp(content_type, media_type, len) &&
	       (!content_type[len] || strchr("; \t", content_type[len]));
}

static struct view rest(struct view v, size_t from)
{
	return (struct view){ v.at + from, v.len - from };
}

static struct view skip_blanks(struct view v)
{
	while (v.len && (*v.at == ' ' || *v.at == '\t'))
		v = rest(v, 1);
	return v;
}

static bool view_is_word(struct view v, const char *word)
{
	return v.len == strlen(word) && !strncasecmp((const char *)v.at, word, v.len);
}

/* The value of a parameter: a token, or a quoted string (taken verbatim; an escaped quote is
 * rejected). */
static bool take_value(struct view *line, struct view *value)
{
	bool quoted = line->len && *line->at == '"';
	if (quoted)
		*line = rest(*line, 1);
	size_t len = 0;
	while (len < line->len &&
	       (quoted ? line->at[len] != '"' : !strchr("; \t", line->at[len]))) {
		if (line->at[len] == '\\' && quoted)
			return false;
		len++;
	}
	if (quoted && len == line->len)
		return false;
	*value = (struct view){ line->at, len };
	*line = rest(*line, len + quoted);
	return true;
}

/* Finds ";name=value" after the first word of a header's value; false if it is absent or
 * malformed. */
static bool parameter(struct view line, const char *name, struct view *value)
{
	const uint8_t *semicolon = line.len ? memchr(line.at, ';', line.len) : NULL;
	line = semicolon ? rest(line, (size_t)(semicolon - line.at)) : rest(line, line.len);
	while (line.len && *line.at == ';') {
		line = skip_blanks(rest(line, 1));
		const uint8_t *equals = line.len ? memchr(line.at, '=', line.len) : NULL;
		if (!equals)
			return false;
		struct view key = { line.at, (size_t)(equals - line.at) };
		line = rest(line, key.len + 1);
		if (!take_value(&line, value))
			return false;
		if (view_is_word(key, name))
			return true;
		line = skip_blanks(line);
	}
	return false;
}

/* Finds the delimiter at or after `from`; SIZE_MAX if there is none. */
static size_t find_delimiter(const struct multipart *m, size_t from)
{
	struct view left = rest(m->body, from);
	const uint8_t *hit =
		left.len ? memmem(left.at, left.len, m->delimiter, m->delimiter_len) : NULL;
	return hit ? (size_t)(hit - m->body.at) : SIZE_MAX;
}

bool multipart_begin(struct multipart *m, const char *content_type, struct view body,
		     struct error *err)
{
	*m = (struct multipart){ .body = body };
	struct view boundary = { 0 };
	if (!multipart_is(content_type) ||
	    !parameter(view_of(content_type), "boundary", &boundary) || !boundary.len ||
	    boundary.len > BOUNDARY_MAX)
		return error_set(err, ERROR_INVALID,
				 "Content-Type: multipart/form-data must have a boundary of 1 "
				 "to 70 characters");
	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, boundary.at, boundary.len);
	m->delimiter_len = 4 + boundary.len;
	/* The first delimiter needs no CRLF before it when nothing precedes it. */
	size_t bare = m->delimiter_len - 2;
	if (body.len >= bare && !memcmp(body.at, m->delimiter + 2, bare)) {
		m->at = bare;
		return true;
	}
	size_t first = find_delimiter(m, 0);
	if (first == SIZE_MAX)
		return error_set(err, ERROR_INVALID,
				 "the multipart body does not contain its boundary");
	m->at = first + m->delimiter_len;
	return true;
}

static bool fault(const struct multipart *m, struct error *err, const char *text)
{
	return error_set(err, ERROR_INVALID, "multipart part %u: %s", m->parts, text);
}

static bool take_disposition(struct multipart_part *part, struct view value)
{
	struct view ignored, word = { value.at, 0 };
	while (word.len < value.len && !strchr("; \t", value.at[word.len]))
		word.len++;
	part->is_file = parameter(value, "filename", &ignored);
	return view_is_word(word, "form-data") && parameter(value, "name", &part->name);
}

static bool encoding_is_plain(struct view value)
{
	return view_is_word(value, "binary") || view_is_word(value, "8bit") ||
	       view_is_word(value, "7bit");
}

static bool take_header(struct multipart *m, struct view line, struct multipart_part *part,
			bool *named, struct error *err)
{
	const uint8_t *colon = memchr(line.at, ':', line.len);
	if (!colon)
		return fault(m, err, "a header line has no colon");
	struct view name = { line.at, (size_t)(colon - line.at) };
	struct view value = skip_blanks(rest(line, name.len + 1));
	if (view_is_word(name, "Content-Disposition")) {
		if (*named || !take_disposition(part, value))
			return fault(m, err,
				     "Content-Disposition is repeated or is not form-data with "
				     "a name");
		*named = true;
	} else if (view_is_word(name, "Content-Transfer-Encoding") && !encoding_is_plain(value)) {
		return fault(m, err, "Content-Transfer-Encoding must be binary");
	}
	return true;
}

/* m->at is after the delimiter's line end; on success, at the content. */
static bool take_headers(struct multipart *m, struct multipart_part *part, struct error *err)
{
	bool named = false;
	for (size_t start = m->at;;) {
		struct view left = rest(m->body, m->at);
		const uint8_t *end = left.len ? memmem(left.at, left.len, "\r\n", 2) : NULL;
		if (!end || (size_t)(end - m->body.at) - start > HEADERS_MAX)
			return fault(m, err, "its headers exceed 4096 bytes");
		struct view line = { left.at, (size_t)(end - left.at) };
		m->at += line.len + 2;
		if (!line.len)
			return named || fault(m, err, "missing Content-Disposition");
		if (!take_header(m, line, part, &named, err))
			return false;
	}
}

enum multipart_more multipart_next(struct multipart *m, struct multipart_part *part,
				   struct error *err)
{
	*part = (struct multipart_part){ 0 };
	struct view left = rest(m->body, m->at);
	if (left.len >= 2 && !memcmp(left.at, "--", 2))
		return MULTIPART_END;
	m->parts++;
	if (m->parts > PARTS_MAX) {
		error_set(err, ERROR_TOO_LARGE, "more than %d multipart parts", PARTS_MAX);
		return MULTIPART_ERROR;
	}
	size_t blanks = left.len - skip_blanks(left).len;
	left = rest(left, blanks);
	if (left.len < 2 || memcmp(left.at, "\r\n", 2)) {
		fault(m, err, "the delimiter is not followed by a line break");
		return MULTIPART_ERROR;
	}
	m->at += blanks + 2;
	if (!take_headers(m, part, err))
		return MULTIPART_ERROR;
	/* If the content is empty, only the CRLF that ended the headers precedes the next
	 * delimiter. */
	size_t end = find_delimiter(m, m->at - 2);
	if (end == SIZE_MAX) {
		fault(m, err, "no closing delimiter: the body is truncated");
		return MULTIPART_ERROR;
	}
	part->content = (struct view){ m->body.at + m->at, end > m->at ? end - m->at : 0 };
	m->at = end + m->delimiter_len;
	return MULTIPART_PART;
}
