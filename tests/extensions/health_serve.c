/* SPDX-License-Identifier: Apache-2.0 */
/* The health_check extension for test_health_check.py: health_serve YAML. Commands on stdin: ready,
 * unready, details. */
#include "base/clock.h"
#include "base/memory.h"
#include "config/load.h"
#include "pipeline/component.h"

#include <stdio.h>

extern const struct component_factory health_check_extension;

static _Atomic bool is_ready, has_details;

static bool ready(void *context)
{
	(void)context;
	return is_ready;
}

/* The start was one day and one and a half seconds ago. */
static void details(void *context, bool all, struct bytes *json)
{
	(void)context, (void)all;
	bytes_add_text(json, "[");
	if (has_details)
		bytes_add_text(json, "{\"component\":\"exporters::a\",\"state\":\"open\"}");
	bytes_add_text(json, "]");
}

static uint64_t up_since(void *context)
{
	(void)context;
	return clock_wall() - 86401500000000;
}

int main(int argc, char **argv)
{
	const struct component_factory *f = &health_check_extension;
	const struct service_view service = { NULL, ready, up_since, details };
	const struct host host = { .id = "health_check",
				   .metrics = metrics_new(),
				   .service = &service };
	void *extension = memory_new(f->size), *config = memory_new(f->config->size);
	struct metrics *metrics = host.metrics;
	struct error err = { 0 };
	char line[100];
	struct node *node = config_parse("test", argv[argc - 1], strlen(argv[argc - 1]), &err);
	bool ok = node && config_bind(f->config, node, "extensions::health_check", config, &err) &&
		  f->create(extension, config, &host, &err) && f->extension->start(extension, &err);
	node_unref(&node);
	printf("%s\n", ok ? "started" : err.text);
	fflush(stdout);
	while (ok && fgets(line, sizeof line, stdin)) {
		if (!strcmp(line, "details\n"))
			has_details = true;
		else
			is_ready = !strcmp(line, "ready\n");
		puts("ok");
		fflush(stdout);
	}
	if (ok)
		f->extension->stop(extension);
	config_release(f->config, config);
	metrics_unref(&metrics);
	memory_free(config);
	memory_free(extension);
	return 0;
}
