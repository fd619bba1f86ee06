/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_LABEL_LIMITS_H
#define PIPELINE_INTAKE_LABEL_LIMITS_H

#include "config/table.h"
#include "profile/stores/label_set.h"

/* The section `series_limits` of receivers whose requests carry series: a struct label_limits. */
extern const struct config_table label_limits_table;

#endif
