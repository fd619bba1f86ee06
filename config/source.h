/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_SOURCE_H
#define CONFIG_SOURCE_H

#include "base/bytes.h"
#include "config/load.h"

/*
 * The sources of configuration: env:NAME[:-default], file:PATH, yaml:TEXT, and http: and https:
 * URLs, which the caller that loads the configuration fetches.
 */
/* Length of the scheme before the ":" of a URI, 0 if it has none ("C:\x" and plain paths have
 * none). */
size_t source_scheme(const char *uri);
/* The schemes that can be read, in the order in which they are listed; NULL after the last. */
const char *source_scheme_name(size_t i);

/*
 * Appends the content of a URI that has a scheme. An unset variable has no content (*unset is set).
 * At most 16 MiB. The error has no position. shown: the name for messages if the URI itself may be
 * secret, else NULL.
 */
bool source_read(const struct config_sources *sources, const char *uri, const char *shown,
		 struct bytes *out, bool *unset, struct error *err);

enum { SOURCE_MAX = 16 * 1024 * 1024 };

#endif
