/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/config/fixture.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Loads, binds and prints. NULL: the text was refused. */
static char *effective(const char *yaml, bool json)
{
	struct error err;
	char *location = memory_format("yaml:%s", yaml), *text = NULL;
	struct config_sources sources = { .locations = (const char *[]){ location },
					  .location_count = 1 };
	struct node *tree = config_load(&sources, &err);
	struct whole_config config = { 0 };
	struct bytes out;
	bytes_init(&out, 64 << 20);
	if (tree && config_bind(&whole_table, tree, "", &config, &err)) {
		if (json)
			config_print_json(&whole_table, &config, tree, false, &out);
		else
			config_print(&whole_table, &config, tree, 0, false, &out);
		text = memory_text_of(out.at, out.len);
	}
	bytes_fini(&out);
	config_release(&whole_table, &config);
	node_unref(&tree);
	memory_free(location);
	return text;
}

/* YAML accepts a key without "?" only up to 1024 characters. Longer keys are valid JSON, but not
 * valid YAML. */
static bool reads_as_yaml(const char *json)
{
	for (const char *open; (open = strchr(json, '"')); json++) {
		for (json = open + 1; *json != '"'; json++)
			json += *json == '\\';
		if (json - open > 1000 && json[1] == ':')
			return false;
	}
	return true;
}

/* A configuration that binds must print as YAML that binds to the same, and as JSON that loads. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err;
	struct node *tree = config_parse("fuzz", (const char *)data, size, &err);
	node_unref(&tree);
	char *input = memory_text_of(data, size), *once = effective(input, false);
	char *twice = once ? effective(once, false) : NULL;
	char *json = once ? effective(once, true) : NULL;
	char *back = json ? effective(json, false) : NULL;
	if (once && (!twice || (!back && reads_as_yaml(json)) || strcmp(once, twice) != 0))
		abort();
	char *const texts[] = { input, once, twice, json, back };
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		memory_free(texts[i]);
	return 0;
}
