/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PPROF_PPROF_TABLES_H
#define PROFILE_PPROF_PPROF_TABLES_H

#include "profile/pprof/pprof_writer.h"

/* The mappings, locations and functions of a pprof, numbered from 1 in order of first use. */

/* Notes which mappings say that they are the program's own. Once, before the first run. */
void pprof_tables_find_main(struct pprof_writer *w);
/* pprof's first mapping is the program's own: numbers it before the others, if the samples use one.
 */
void pprof_tables_number_main_first(struct pprof_writer *w, struct list samples);
/* The number of a location, which is written with its functions when it is first used; changes
 * w->packed. */
uint32_t pprof_tables_location(struct pprof_writer *w, uint32_t location);
/* After the last location of a run: writes the mappings. Their flags, where they have none of the
 * attributes, follow from what the lines of their locations show. */
void pprof_tables_add_mappings(struct pprof_writer *w);

#endif
