/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_EXPORTERS_FILE_EXPORTER_H
#define TESTS_EXPORTERS_FILE_EXPORTER_H

#include <sys/resource.h>

#include "tests/exporters/exporter.h"

extern const struct component_factory file_exporter;

static inline void start(const char *yaml)
{
	exporter_start(&file_exporter, yaml);
}

static inline void send_ok(struct packet *packet)
{
	assert_int_equal(exporter_send(packet).outcome, SEND_OK);
}

/* No file can grow beyond the limit, as on a disk that becomes full during a write. */
static inline void limit_files(rlim_t bytes)
{
	struct rlimit limit;
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

#endif
