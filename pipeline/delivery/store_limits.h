/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_STORE_LIMITS_H
#define PIPELINE_DELIVERY_STORE_LIMITS_H

#include "config/table.h"
#include "profile/parts.h"

/* The limits that stores have in their default configuration, for the presets of all exporters that
 * can send to them. */
enum store { STORE_ANY, STORE_PYROSCOPE, STORE_PARCA };
extern const char *const store_names[]; /* "none", ...; ends with NULL */

/* Pyroscope's rate limit permits bursts of 2 MiB. The size that it counts exceeds that of the
 * request by its own labels. */
#define STORE_PYROSCOPE_BURST (UINT64_C(1920) << 10)

/* STORE_ANY: no limits. The window for times of profiles begins and ends relative to now. [any
 * thread] */
void store_limits(enum store store, struct limits *limits);

/* The row `preset` of an exporter of OTLP; `member` is a struct choice. */
/* clang-format off */
#define STORE_PRESET_ROW(type, member) \
	CONFIG_ROW(type, member, .key = "preset", .def = "none", .choices = store_names, \
		   .help = "`pyroscope`, `parca`: sets those `limits` that the store has by default, unless `limits` sets them. " \
			   "`pyroscope`: 1920 KiB and 16000 samples in a request; Profiles older than 1 h or more than " \
			   "10 min ahead are dropped. `parca`: 16 MiB in a request. Not a key of the Collector.")
/* clang-format on */

#endif
