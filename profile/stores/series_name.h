/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_SERIES_NAME_H
#define PROFILE_STORES_SERIES_NAME_H

#include "profile/stores/label_set.h"

/*
 * The name of a series in Pyroscope's /ingest: `service{key=value,key2=value2}`. Keys consist of
 * letters, digits, `_` and `.`; the service also of `-` and `/`. Values are any characters but `,`
 * and `}`; there is no quoting. Blanks around keys and values are ignored. Of equal keys the last
 * one counts. The label __name__ replaces the service.
 *
 * *service becomes the service, and `set` the other labels. ERROR_INVALID if the name has another
 * form, an empty service, or labels that exceed the limits.
 */
bool series_name_parse(struct view name, const struct label_limits *limits, struct view *service,
		       struct label_set *set, struct error *err);

#endif
