/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Structured log, one line per state change, in the Collector's two encodings: `console`
 * (tab-separated time, level, caller, message, JSON fields) and `json` (level, ts, caller, msg,
 * fields).
 *
 * Values from a sender never enter a line. A field value is a string of the operator (component
 * IDs, endpoints), a number, or the text of a struct error. Any thread may log; a line is one
 * write(2). Repeats of one (component, caller, message) are sampled as the Collector does (initial,
 * thereafter, tick).
 */
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_field {
	const char *key;
	enum { LOG_FIELD_TEXT, LOG_FIELD_INTEGER, LOG_FIELD_BOOL } kind;
	const char *text;
	int64_t integer;
};

#define log_text(key, value) \
	{ \
		key, LOG_FIELD_TEXT, (value), 0 \
	}
#define log_number(key, value) \
	{ \
		key, LOG_FIELD_INTEGER, NULL, (int64_t)(value) \
	}
#define log_bool(key, value) \
	{ \
		key, LOG_FIELD_BOOL, NULL, (value) \
	}

/* The component that logs. Embedded by its owner; the strings are borrowed and must outlive it.
 * NULL strings are omitted. */
struct log {
	/* otelcol.component.kind: receiver, processor, exporter, extension */
	const char *component_kind;
	const char *component_id; /* otelcol.component.id */
	const char *pipeline_id;  /* otelcol.pipeline.id: of a processor */
	const char *signal;       /* otelcol.signal: profiles */
};

struct log_config {
	enum log_level level;
	bool json;
	bool sampling;
	/* lines per tick that are all written; then every Nth */
	int sampling_initial, sampling_thereafter;
	uint64_t sampling_tick_ns;
	const char *const *output_paths;        /* NULL-terminated: "stderr", "stdout" or files */
	const struct log_field *initial_fields; /* key == NULL ends; copied, as all of this */
	const struct log_field *resource;       /* the same, as the object "resource"; NULL: none */
	bool disable_caller;
};

/* Is it the name of an output that is no file, "stderr" or "stdout"? */
bool log_is_stream(const char *path);
/* Before it is called, lines go to stderr as console text at level info. */
bool log_configure(const struct log_config *config, struct error *err);
/* Reopens the output files (after SIGHUP, for log rotation) and logs which. After a failure, the
 * current ones stay in use. */
bool log_reopen(const struct log *log, struct error *err);
void log_close(void);
bool log_enabled(enum log_level level);

void log_write(const struct log *log, enum log_level level, const char *file, int line,
	       const char *message, const struct log_field *fields, size_t count);

/* log_info(&host->log, "Starting GRPC server", log_text("endpoint", e), log_number("port", 4317));
 */
#define LOG_LINE(log, level, message, ...) \
	log_write((log), (level), __FILE__, __LINE__, (message), \
		  (const struct log_field[]){ { 0 }, __VA_ARGS__ }, \
		  sizeof((const struct log_field[]){ { 0 }, __VA_ARGS__ }) / \
			  sizeof(struct log_field))
#define log_debug(log, message, ...) LOG_LINE(log, LOG_DEBUG, message, __VA_ARGS__)
#define log_info(log, message, ...) LOG_LINE(log, LOG_INFO, message, __VA_ARGS__)
/* With an array of fields. */
#define log_info_fields(log, message, fields, count) \
	log_write((log), LOG_INFO, __FILE__, __LINE__, (message), (fields), (count))
#define log_warn_fields(log, message, fields, count) \
	log_write((log), LOG_WARN, __FILE__, __LINE__, (message), (fields), (count))
#define log_error_fields(log, message, fields, count) \
	log_write((log), LOG_ERROR, __FILE__, __LINE__, (message), (fields), (count))
#define log_warn(log, message, ...) LOG_LINE(log, LOG_WARN, message, __VA_ARGS__)
#define log_error(log, message, ...) LOG_LINE(log, LOG_ERROR, message, __VA_ARGS__)

#endif
