/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool error_set(struct error *err, enum error_kind kind, const char *format, ...)
{
	if (!err)
		return false;
	va_list args;
	va_start(args, format);
	err->kind = kind;
	err->place = (struct error_place){ 0 };
	err->retry_after_ms = 0;
	err->short_of_memory = err->over_quota = false;
	vsnprintf(err->text, sizeof err->text, format, args);
	va_end(args);
	return false;
}

bool error_prefix(struct error *err, const char *format, ...)
{
	if (!err)
		return false;
	char text[sizeof err->text];
	va_list args;
	va_start(args, format);
	int used = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (used < 0 || (size_t)used >= sizeof text)
		return false;
	snprintf(text + used, sizeof text - (size_t)used, ": %s", err->text);
	err->place = (struct error_place){ 0 };
	memcpy(err->text, text, sizeof text);
	return false;
}
