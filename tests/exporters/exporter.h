/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_EXPORTERS_EXPORTER_H
#define TESTS_EXPORTERS_EXPORTER_H

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/load.h"
#include "pipeline/component.h"
#include "pipeline/delivery/delivery.h"
#include "tests/support/collecting.h"

/* One exporter without a pipeline: it is configured from YAML, in an empty working directory, and
 * gets packets one by one. This file replaces pipeline/delivery/delivery.c. */
void sending_done(struct sending *sending, const struct send_result *result)
{
	*(struct send_result *)sending = *result;
}

struct exporter {
	const struct component_factory *factory;
	struct node *node;
	void *config, *self;
	struct host host;
	struct error err;
	char directory[64];
};

static struct exporter e;

static inline bool exporter_bind(const struct component_factory *factory, const char *yaml)
{
	e.factory = factory;
	e.node = config_parse("test.yaml", yaml, strlen(yaml), &e.err);
	if (!e.node)
		fail_msg("%s", e.err.text);
	e.config = memory_new(factory->config->size);
	return config_bind(factory->config, e.node, "exporters", e.config, &e.err);
}

static inline bool exporter_begin(const struct component_factory *factory, const char *yaml)
{
	if (!exporter_bind(factory, yaml))
		fail_msg("%s", e.err.text);
	e.host = (struct host){ .id = factory->type,
				.log = { "exporter", factory->type },
				.metrics = metrics_new() };
	e.self = memory_new(factory->size);
	return factory->create(e.self, e.config, &e.host, &e.err) &&
	       factory->exporter->start(e.self, &e.err);
}

static inline void exporter_start(const struct component_factory *factory, const char *yaml)
{
	if (!exporter_begin(factory, yaml))
		fail_msg("%s", e.err.text);
}

static inline void exporter_stop(void)
{
	if (e.self && e.factory->exporter->stop)
		e.factory->exporter->stop(e.self);
	if (e.self)
		e.factory->destroy(e.self);
	if (e.config)
		config_release(e.factory->config, e.config);
	memory_free(e.self);
	memory_free(e.config);
	node_unref(&e.node);
	metrics_unref(&e.host.metrics);
	e.self = e.config = NULL;
}

static inline struct send_result exporter_send(struct packet *packet)
{
	struct send_result result = { .outcome = (enum send_outcome) - 1 };
	const struct part part = { .packet = packet, .samples = packet->samples };
	e.factory->exporter->send(e.self, &part, 0, (struct sending *)&result);
	packet_unref(&packet);
	return result;
}

/* A packet of `count` requests. Each has one Profile with one sample, whose function has this
 * name. */
static inline struct packet *packet_of(const char *function, int count)
{
	struct profiles p = { 0 };
	struct collect *collect = collect_new(&collecting_wide);
	struct collect_added added;
	for (int i = 0; i < count; i++) {
		open_begin(&p, NULL);
		open_resource(&p, NONE);
		open_scope(&p, "");
		open_profile(&p, "cpu", "ns")->time = 1000 + (uint64_t)i;
		open_value(&p, open_frame(&p, function), NONE, 7);
		assert_int_equal(collect_add(collect, &p, false, &added, NULL), COLLECT_ADDED);
	}
	struct packet *packet = collect_seal(collect);
	collect_unref(&collect);
	profiles_fini(&p);
	return packet;
}

static inline struct bytes content_of(const char *path)
{
	struct bytes b;
	bytes_init(&b, 64 << 20);
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		fail_msg("%s is not there", path);
	for (ssize_t got = 1; got > 0; b.len += (size_t)got) {
		assert_true(bytes_reserve(&b, 65536));
		got = read(fd, b.at + b.len, 65536);
		assert_true(got >= 0);
	}
	close(fd);
	return b;
}

static inline bool contains(struct view in, const char *text)
{
	return in.len && memmem(in.at, in.len, text, strlen(text));
}

/* Returns the number of files in the directory. `last` (of 256 bytes, or NULL) becomes the name
 * that sorts last. */
static inline int count_files(const char *directory, char *last)
{
	DIR *dir = opendir(directory);
	assert_non_null(dir);
	int count = 0;
	if (last)
		last[0] = '\0';
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (last && strcmp(entry->d_name, last) > 0)
			snprintf(last, 256, "%s", entry->d_name);
		count++;
	}
	closedir(dir);
	return count;
}

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static inline int exporter_setup(void **state)
{
	(void)state;
	memset(&e, 0, sizeof e);
	snprintf(e.directory, sizeof e.directory, "/tmp/portcullis-exporter-XXXXXX");
	return !mkdtemp(e.directory) || chdir(e.directory);
}

static inline int exporter_teardown(void **state)
{
	(void)state;
	exporter_stop();
	return chdir("/") || nftw(e.directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, exporter_setup, exporter_teardown)

#endif
