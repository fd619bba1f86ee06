/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_PROFILES_ONLY_H
#define GATEWAY_PROFILES_ONLY_H

#include "base/log.h"
#include "config/node.h"
#include "config/problems.h"

/*
 * --profiles-only: removes from a configuration, before it is checked, what a Collector with other
 * signals may have: their pipelines, the components that no pipeline for profiles uses, and
 * extensions of types that this build does not have. Logs one warning for each. If an error leaves
 * open which components are used, none is called unused: only those go, without a warning, that
 * this build does not have and that no pipeline names. problems: those of the reading of the
 * sources.
 */
void profiles_only_apply(struct node *root, const struct problems *problems, const struct log *log);

#endif
