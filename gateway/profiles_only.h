/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_PROFILES_ONLY_H
#define GATEWAY_PROFILES_ONLY_H

#include "base/log.h"
#include "config/node.h"
#include "config/problems.h"

/*
 * --profiles-only: removes from a configuration, before it is checked, what a Collector with other
 * signals may have: their pipelines, the components that no pipeline for profiles uses, and
 * extensions of types that this build does not have. Logs one warning for each. problems: those of
 * the reading of the sources. If one could not be read, it is not known which components are used.
 */
void profiles_only_apply(struct node *root, const struct problems *problems, const struct log *log);

#endif
