/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/label_limits.h"

#define LIMIT_ROW(name, value, maximum, text) \
	CONFIG_ROW(struct label_limits, name, .key = #name, .def = value, .limited = true, \
		   .min = 1, .max = maximum, .help = text)

static const struct config_row rows[] = {
	LIMIT_ROW(max_profiles, "4096", 1000000,
		  "Maximum number of profiles of one request. A request with more is rejected."),
	LIMIT_ROW(max_labels, "100", LABEL_SET_MAX - LABEL_SET_OWN,
		  "Maximum number of labels of a series. A series with more is rejected."),
	LIMIT_ROW(max_name_length, "1024", 65536,
		  "Maximum length of a label's name in bytes. A series with a longer one is "
		  "rejected."),
	LIMIT_ROW(max_value_length, "2048", 65536,
		  "Maximum length of a label's value in bytes. A series with a longer one is "
		  "rejected."),
	{ 0 }
};

const struct config_table label_limits_table = { sizeof(struct label_limits), rows };
