/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_INGEST_TIME_H
#define PROFILE_STORES_INGEST_TIME_H

#include "base/bytes.h"

/*
 * The parameters `from` and `until` of Pyroscope's /ingest as nanoseconds since the epoch. Digits
 * (`_`, `,` and blanks between them are ignored) are a date YYYYMMDD in UTC if there are eight and
 * they are one; else Unix time, in milliseconds if there are 13, microseconds if 16, nanoseconds if
 * 19, and seconds otherwise. Other forms are `now`, `now-<n><unit>` and `now+<n><unit>` with the
 * units s, m or min, h, d, w, mon or M (30 days) and y (365 days). Everything else, and times that
 * do not fit, are `now`, as in Pyroscope.
 */
uint64_t ingest_time(struct view text, uint64_t now);

#endif
