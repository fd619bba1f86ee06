/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_PPROF_PRIVATE_H
#define RECEIVERS_PPROF_PRIVATE_H

#include "net/http/http_client_config.h"
#include "net/http/http_server.h"
#include "pipeline/component.h"

/*
 * The parts of the receiver `pprof`, each a section of its configuration: `server` (others send
 * profiles), `remote` (targets are scraped) and `file` (files are read). All have the life of a
 * receiver: new, start, stop, unref as in struct receiver_ops and struct component_factory.
 */

/* ---- server ---- */

struct http_intake;
struct http_intake *pprof_server_new(const struct http_server_config *config,
				     const struct host *host);

/* ---- remote ---- */

struct pprof_profile_config {
	bool enabled;
	char *path;
	int64_t seconds;
	bool delta;
};

enum pprof_builtin {
	PPROF_PROCESS_CPU,
	PPROF_MEMORY,
	PPROF_MUTEX,
	PPROF_BLOCK,
	PPROF_GOROUTINE,
	PPROF_BUILTINS
};

struct pprof_profiles_config {
	struct pprof_profile_config builtin[PPROF_BUILTINS];
	struct config_items custom; /* name -> struct pprof_profile_config */
};

struct pprof_profiling_config {
	char *path_prefix;
	struct pprof_profiles_config pprof_config;
};

struct pprof_remote_config {
	struct optional present;
	char *endpoint, *job_name, *scheme;
	const struct node *static_configs;
	struct config_items file_sd_configs;
	struct pprof_profiling_config profiling_config;
	struct duration collection_interval, initial_delay, jitter, timeout;
	int64_t max_concurrent_scrapes, max_targets, max_body_size;
	struct http_client_config client;
};

extern const struct config_table pprof_remote_table;

struct pprof_remote;
struct pprof_remote *pprof_remote_new(const struct pprof_remote_config *config,
				      const struct host *host, struct error *err);
bool pprof_remote_start(struct pprof_remote *remote, struct error *err);
void pprof_remote_stop(struct pprof_remote *remote);
bool pprof_remote_reopen(struct pprof_remote *remote, struct error *err);
void pprof_remote_unref(struct pprof_remote **remote);

/* ---- file ---- */

struct pprof_file_config {
	struct optional present;
	struct strings include, exclude;
	char *start_at;
	struct duration collection_interval, initial_delay;
	int64_t max_file_size, max_files;
	struct pairs resource;
};

extern const struct config_table pprof_file_table;

struct pprof_file;
struct pprof_file *pprof_file_new(const struct pprof_file_config *config, const struct host *host);
bool pprof_file_start(struct pprof_file *file, struct error *err);
void pprof_file_stop(struct pprof_file *file);
void pprof_file_unref(struct pprof_file **file);

#endif
