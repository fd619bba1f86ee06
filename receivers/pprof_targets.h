/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_PPROF_TARGETS_H
#define RECEIVERS_PPROF_TARGETS_H

#include <stdatomic.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "config/faults.h"
#include "config/node.h"
#include "profile/request.h"

/*
 * The targets of `remote`, from the configuration and from target files, which have the same form:
 * Prometheus' list of groups, [{targets: [host:port, ...], labels: {name: value}}] (Prometheus
 * documentation, "static_config" and "file_sd_config").
 *
 * A target's labels become resource attributes. `job` becomes service.name (unless the group has
 * that label too), `instance` becomes service.instance.id; their defaults are the job's name and
 * host:port. Labels that begin with two underscores are instructions, of which `__scheme__` is
 * obeyed, and are not attributes.
 *
 * Errors name positions, keys and limits, never a name or value from the list.
 */

/* Immutable. Shared by reference count, from any thread. */
struct pprof_target {
	_Atomic uint32_t refs;
	struct hash128 identity;            /* of everything below */
	const char *base;                   /* "https://host:port" */
	const char *place;                  /* "host:port", for logs */
	const char *host;                   /* without port and brackets */
	const struct metadatum *attributes; /* ends with name == NULL */
	size_t bytes;                       /* of memory */
};

/* Maximum number of attributes, with the end of the list. */
enum { PPROF_TARGET_ATTRIBUTES = 64 + 3 };

/* A list that holds its targets. Zeroed memory is an empty one. */
struct pprof_targets {
	struct pprof_target **at;
	size_t count, room;
	size_t bytes;
};

struct pprof_targets_defaults {
	const char *scheme; /* "http", "https" */
	const char *job;
	size_t max; /* targets of one list */
};

/* Appends the targets of a list of groups. On an error the list is as it was. */
bool pprof_targets_add(struct pprof_targets *list, const struct node *groups,
		       const struct pprof_targets_defaults *defaults, struct error *err);
/* The same from the YAML or JSON of a target file. `source` is shown in no message. */
bool pprof_targets_parse(struct pprof_targets *list, struct view text,
			 const struct pprof_targets_defaults *defaults, struct error *err);
/* Reports all that is wrong with a list of groups. key: that of the list. */
void pprof_targets_check(const struct node *groups, const char *key,
			 const struct pprof_targets_defaults *defaults, struct faults *faults);
/* Appends a target for a URL, whose path the profile has: only the scheme and the host are used. */
bool pprof_targets_add_url(struct pprof_targets *list, const char *url,
			   const struct pprof_targets_defaults *defaults, struct error *err);
/* Appends another list's targets. */
void pprof_targets_join(struct pprof_targets *list, const struct pprof_targets *more);
/* Sorts by identity, and removes targets that occur twice. */
void pprof_targets_sort(struct pprof_targets *list);
void pprof_targets_fini(struct pprof_targets *list);

struct pprof_target *pprof_target_ref(struct pprof_target *target);
void pprof_target_unref(struct pprof_target **target);
/* Less than, equal to, or greater than 0. */
int pprof_target_compare(const struct pprof_target *a, const struct pprof_target *b);

#endif
