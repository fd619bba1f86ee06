/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/text/text.h"

#define WALL "wall", "samples", "count", "wall"

static const struct text_kind kinds[] = {
	{ "cpu", "process_cpu", "samples", "count", "cpu" },
	{ "itimer", "process_cpu", "samples", "count", "cpu" },
	{ "wall", WALL },
	{ "seconds", WALL },
	{ "milliseconds", WALL },
	{ "microseconds", WALL },
	{ "nanoseconds", WALL },
	{ "inuse_objects", "memory", "inuse_objects", "count", NULL },
	{ "inuse_space", "memory", "inuse_space", "bytes", NULL },
	{ "alloc_objects", "memory", "alloc_objects", "count", NULL },
	{ "alloc_space", "memory", "alloc_space", "bytes", NULL },
	{ "alloc_in_new_tlab_objects", "memory", "alloc_in_new_tlab_objects", "count", NULL },
	{ "alloc_in_new_tlab_bytes", "memory", "alloc_in_new_tlab_bytes", "bytes", NULL },
	{ "alloc_outside_tlab_objects", "memory", "alloc_outside_tlab_objects", "count", NULL },
	{ "alloc_outside_tlab_bytes", "memory", "alloc_outside_tlab_bytes", "bytes", NULL },
	{ "live", "memory", "live", "count", NULL },
	{ "bytes", "memory", "samples", "bytes", NULL },
	{ "goroutines", "goroutine", "goroutines", "count", NULL },
	{ "mutex_count", "mutex", "contentions", "count", NULL },
	{ "mutex_duration", "mutex", "delay", "nanoseconds", NULL },
	{ "block_count", "block", "contentions", "count", NULL },
	{ "block_duration", "block", "delay", "nanoseconds", NULL },
	{ "lock_count", "block", "contentions", "count", NULL },
	{ "lock_duration", "block", "delay", "nanoseconds", NULL },
	{ "exceptions", "exceptions", "samples", "count", NULL },
};

const struct text_kind *text_kind_of(struct view application, struct view *service)
{
	size_t dot = application.len;
	while (dot && application.at[dot - 1] != '.')
		dot--;
	struct view suffix =
		dot ? (struct view){ application.at + dot, application.len - dot } : view_of("cpu");
	if (service)
		*service = dot ? (struct view){ application.at, dot - 1 } : application;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (view_is(suffix, kinds[i].suffix))
			return &kinds[i];
	return NULL;
}
