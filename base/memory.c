/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *fresh)
{
	if (!fresh) {
		fputs("portcullis: out of memory\n", stderr);
		abort();
	}
	return fresh;
}

void *memory_new(size_t size)
{
	return checked(calloc(1, size ? size : 1));
}

void *memory_array(size_t count, size_t size)
{
	return checked(calloc(count ? count : 1, size ? size : 1));
}

void *memory_resize(void *old, size_t size)
{
	return checked(realloc(old, size ? size : 1));
}

char *memory_text(const char *text)
{
	return text ? memory_text_of(text, strlen(text)) : NULL;
}

char *memory_text_of(const void *data, size_t len)
{
	char *copy = memory_new(len + 1);
	if (len)
		memcpy(copy, data, len);
	return copy;
}

char *memory_format(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char *text = NULL;
	int used = vasprintf(&text, format, args);
	va_end(args);
	return checked(used < 0 ? NULL : text);
}

void memory_free(void *old)
{
	free(old);
}
