/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_FILE_PLACE_H
#define EXPORTERS_FILE_PLACE_H

#include "profile/packet.h"
#include "profile/profiles.h"

/*
 * Which file a resource belongs to (`group_by` of the `file` exporter): the operator's path, whose
 * `*` is replaced by the value of a resource attribute, as in the Collector's file exporter
 * (fileexporter README, "Group by attribute").
 *
 * Values are untrusted. As in the Collector, a value may contain `/`, which names folders, and `.`
 * and `..` are resolved without ever leaving the place of the `*`. Beyond that, a value names no
 * file if the result could be the rotated file of another value, if a folder in it could be the
 * file of another value, or if it is empty, contains control characters, or is too long.
 *
 * Constant after file_place_init; any thread.
 */
struct file_place {
	char *before, *after;  /* of the `*` */
	const char *ending;    /* of every file's name; in `after` */
	const char *attribute; /* borrowed */
};

enum file_place_fault {
	FILE_PLACE_OK,
	FILE_PLACE_MISSING, /* the resource has no such attribute, or it is no string */
	FILE_PLACE_INVALID, /* its value names no file */
	FILE_PLACE_FAULTS
};

/* Is it a path for this? ERROR_CONFIG, without the name of the key. */
bool file_place_check(const char *path, struct error *err);

/* `path` has passed the check. */
void file_place_init(struct file_place *place, const char *path, const char *attribute);
void file_place_fini(struct file_place *place); /* also of zeroed memory */

/* The directory that no value leaves: the part of the path in front of the `*`, up to the last `/`.
 * The caller frees it. */
char *file_place_directory(const struct file_place *place);

/* The path for a value, with a NUL. `path` is cleared first, and is only valid after
 * FILE_PLACE_OK. */
enum file_place_fault file_place_of_value(const struct file_place *place, struct view value,
					  struct bytes *path);

/* The same for a sealed packet of which all resources have the same place. */
enum file_place_fault file_place_of_packet(const struct file_place *place,
					   const struct packet *packet, struct bytes *path);

/*
 * Puts the resources with the same path next to each other, in the order of the first of each, and
 * removes those that have none; `faults` counts them by reason. Returns the groups for struct
 * limits, which the caller frees.
 */
uint32_t *file_place_sort(const struct file_place *place, struct profiles *p,
			  uint64_t faults[FILE_PLACE_FAULTS]);

#endif
