/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PPROF_PPROF_LABELS_H
#define PROFILE_PPROF_PPROF_LABELS_H

#include "profile/pprof/pprof_writer.h"

/* Appends the labels of the sample's attributes and link to w->part. */
void pprof_labels_add(struct pprof_writer *w, const struct sample *sample);

#endif
