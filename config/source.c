/* SPDX-License-Identifier: Apache-2.0 */
#include "config/source.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/quote.h"

size_t source_scheme(const char *uri)
{
	size_t len = 0;
	while (isalnum((unsigned char)uri[len]) || (uri[len] && strchr("+.-", uri[len])))
		len++;
	return len > 1 && uri[len] == ':' && isalpha((unsigned char)uri[0]) ? len : 0;
}

static bool is_variable_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalpha((unsigned char)name[i]) && name[i] != '_' &&
		    !(i && isdigit((unsigned char)name[i])))
			return false;
	return len > 0;
}

/* What follows the characters of a name is not repeated: it may be a default, as in a shell's
 * ${NAME-DEFAULT}. */
static bool refuse_name(const char *name, size_t len, struct error *err)
{
	size_t known = 0;
	while (isalnum((unsigned char)name[known]) || name[known] == '_')
		known++;
	return error_set(err, ERROR_CONFIG,
			 "environment variable \"%.*s%s\" has invalid name: must match regex "
			 "^[a-zA-Z_][a-zA-Z0-9_]*$",
			 (int)(known < 100 ? known : 100), name, known < len ? "..." : "");
}

static bool read_env(const struct config_sources *sources, const char *rest, struct bytes *out,
		     bool *unset, struct error *err)
{
	(void)sources;
	const char *mark = strstr(rest, ":-");
	size_t len = mark ? (size_t)(mark - rest) : strlen(rest);
	size_t colon = strcspn(rest, ":");
	if (colon < len && is_variable_name(rest, colon))
		return error_set(err, ERROR_CONFIG,
				 "environment variable \"%.*s\": a default begins with :-, as in "
				 "${env:NAME:-DEFAULT}",
				 (int)(colon < 100 ? colon : 100), rest);
	if (!is_variable_name(rest, len))
		return refuse_name(rest, len, err);
	char *name = memory_text_of(rest, len);
	const char *value = getenv(name);
	if (!value && mark)
		value = mark + 2;
	*unset = !value;
	bool ok = !value || bytes_add_text(out, value) ||
		  error_set(err, ERROR_CONFIG,
			    "environment variable \"%.100s\" is larger than 16 MiB", name);
	memory_free(name);
	return ok;
}

static bool read_all(int fd, struct bytes *out)
{
	for (;;) {
		if (!bytes_reserve(out, out->len < out->max ? 1 : 0)) {
			errno = EFBIG;
			return false;
		}
		uint8_t spare;
		bool full = out->len == out->max;
		ssize_t n = full ? read(fd, &spare, 1)
				 : read(fd, out->at + out->len, out->room - out->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0 && full)
			errno = EFBIG;
		if (n <= 0 || full)
			return n == 0;
		out->len += (size_t)n;
	}
}

static bool read_file(const struct config_sources *sources, const char *path, struct bytes *out,
		      bool *unset, struct error *err)
{
	(void)sources;
	(void)unset;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && read_all(fd, out);
	if (!ok)
		error_set(err, ERROR_CONFIG, "unable to read the file file:%.200s: %s", path,
			  strerror(errno));
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool read_yaml(const struct config_sources *sources, const char *text, struct bytes *out,
		      bool *unset, struct error *err)
{
	(void)sources;
	(void)unset;
	return bytes_add_text(out, text) ||
	       error_set(err, ERROR_CONFIG, "yaml: larger than 16 MiB");
}

static bool read_url(const struct config_sources *sources, const char *scheme, const char *rest,
		     struct bytes *out, struct error *err)
{
	if (strncmp(rest, "//", 2) != 0)
		return error_set(err, ERROR_CONFIG, "a URL must begin with http:// or https://");
	if (!sources->fetch)
		return error_set(err, ERROR_CONFIG,
				 "loading over http or https is not supported here");
	char *url = memory_format("%s:%s", scheme, rest);
	bool ok = sources->fetch(sources->context, url, out, err);
	memory_free(url);
	return ok;
}

static bool read_http(const struct config_sources *sources, const char *rest, struct bytes *out,
		      bool *unset, struct error *err)
{
	(void)unset;
	return read_url(sources, "http", rest, out, err);
}

static bool read_https(const struct config_sources *sources, const char *rest, struct bytes *out,
		       bool *unset, struct error *err)
{
	(void)unset;
	return read_url(sources, "https", rest, out, err);
}

static bool refuse_scheme(const char *uri, struct error *err)
{
	char *shown = quote_place(uri);
	error_set(err, ERROR_CONFIG,
		  "unsupported scheme on URI \"%.100s\"; use env, file, yaml, http or https",
		  shown);
	memory_free(shown);
	return false;
}

static const struct {
	const char *scheme;
	bool (*read)(const struct config_sources *sources, const char *rest, struct bytes *out,
		     bool *unset, struct error *err);
} schemes[] = {
	{ "env", read_env },   { "file", read_file },   { "yaml", read_yaml },
	{ "http", read_http }, { "https", read_https },
};

const char *source_scheme_name(size_t i)
{
	return i < sizeof schemes / sizeof schemes[0] ? schemes[i].scheme : NULL;
}

static bool read_scheme(const struct config_sources *sources, const char *uri, struct bytes *out,
			bool *unset, struct error *err)
{
	size_t len = source_scheme(uri), i = 0;
	size_t count = sizeof schemes / sizeof schemes[0];
	while (i < count &&
	       (strlen(schemes[i].scheme) != len || memcmp(schemes[i].scheme, uri, len) != 0))
		i++;
	if (i == count)
		return refuse_scheme(uri, err);
	return schemes[i].read(sources, uri + len + 1, out, unset, err);
}

bool source_read(const struct config_sources *sources, const char *uri, const char *shown,
		 struct bytes *out, bool *unset, struct error *err)
{
	bool ok = read_scheme(sources, uri, out, unset, err);
	if (!ok && shown)
		error_set(err, ERROR_CONFIG, "\"%.200s\" cannot be read", shown);
	return ok;
}
