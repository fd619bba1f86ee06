/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/quote.h"
#include "base/system.h"

enum {
	LINE_MAX_BYTES = 64 * 1024,
	LINE_TAIL = 16,        /* kept free for closing the line */
	TEXT_MAX_BYTES = 4096, /* of one text, before escaping */
	OUTPUTS_MAX = 16,
	SAMPLE_SLOTS = 1024
};

struct output {
	char *path; /* NULL: a standard stream */
	int fd;
};

struct sample {
	uint64_t key, tick;
	uint64_t lines;
};

/* Everything below is guarded by `lock`, except the level. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int threshold = LOG_INFO;
static struct {
	bool json, sampling, hide_caller;
	uint64_t initial, thereafter, tick_ns;
	struct output outputs[OUTPUTS_MAX];
	size_t output_count;
	struct bytes head; /* initial fields and resource, ready for a line */
	struct sample samples[SAMPLE_SLOTS];
} state = { .outputs = { { NULL, STDERR_FILENO } }, .output_count = 1 };

static bool add_text(struct bytes *out, const char *text, bool quoted)
{
	size_t len = strlen(text);
	size_t fit = quote_fit(text, len, TEXT_MAX_BYTES);
	char cut[TEXT_MAX_BYTES + 4];
	if (fit < len) {
		memcpy(cut, text, fit);
		memcpy(cut + fit, "...", 3);
		text = cut;
		len = fit + 3;
	}
	return quoted ? quote_json(out, text, len) : quote_plain(out, text, len);
}

static bool add_value(struct bytes *out, const struct log_field *field)
{
	switch (field->kind) {
	case LOG_FIELD_INTEGER:
		return bytes_format(out, "%lld", (long long)field->integer);
	case LOG_FIELD_BOOL:
		return bytes_add_text(out, field->integer ? "true" : "false");
	default:
		return add_text(out, field->text, true);
	}
}

/* Adds `"key": value` behind what is there, or nothing when the line is full. */
static void add_field(struct bytes *line, bool json, const struct log_field *field)
{
	if (!field->key || (field->kind == LOG_FIELD_TEXT && !field->text))
		return;
	size_t mark = line->len;
	uint8_t last = line->len ? line->at[line->len - 1] : '{';
	bool ok = last == '{' || bytes_add_text(line, json ? "," : ", ");
	ok = ok && add_text(line, field->key, true) && bytes_add_text(line, json ? ":" : ": ");
	if (!ok || !add_value(line, field) || line->len > LINE_MAX_BYTES - LINE_TAIL)
		line->len = mark;
}

static void add_component(struct bytes *line, bool json, const struct log *log)
{
	if (!log)
		return;
	const struct log_field fields[] = {
		log_text("otelcol.component.id", log->component_id),
		log_text("otelcol.component.kind", log->component_kind),
		log_text("otelcol.pipeline.id", log->pipeline_id),
		log_text("otelcol.signal", log->signal),
	};
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		add_field(line, json, &fields[i]);
}

/* ISO 8601 with milliseconds and zone, UTC as Z. */
static void format_time(char *out, size_t size)
{
	uint64_t now = clock_wall();
	time_t seconds = (time_t)(now / 1000000000u);
	struct tm local;
	localtime_r(&seconds, &local);
	size_t used = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &local);
	used += (size_t)snprintf(out + used, size - used, ".%03u",
				 (unsigned)(now / 1000000u % 1000u));
	if (local.tm_gmtoff)
		strftime(out + used, size - used, "%z", &local);
	else
		snprintf(out + used, size - used, "Z");
}

/* "folder/file.c" of any path that the compiler was given. */
static const char *short_path(const char *file)
{
	const char *slash = strrchr(file, '/');
	while (slash && slash > file && slash[-1] != '/')
		slash--;
	return slash ? slash : file;
}

static const char *const level_names[] = { "debug", "info", "warn", "error" };

static void begin_json(struct bytes *line, enum log_level level, const char *caller,
		       const char *message)
{
	char when[48];
	format_time(when, sizeof when);
	const struct log_field fields[] = {
		log_text("level", level_names[level]),
		log_text("ts", when),
		log_text("caller", caller),
		log_text("msg", message),
	};
	bytes_add_byte(line, '{');
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
		add_field(line, true, &fields[i]);
}

static void begin_console(struct bytes *line, enum log_level level, const char *caller,
			  const char *message)
{
	char when[48];
	format_time(when, sizeof when);
	bytes_format(line, "%s\t%s\t", when, level_names[level]);
	if (caller)
		bytes_format(line, "%s\t", caller);
	add_text(line, message, false);
	bytes_add_text(line, "\t{");
}

static void add_head(struct bytes *line, bool json)
{
	if (!state.head.len)
		return;
	if (line->at[line->len - 1] != '{')
		bytes_add_text(line, json ? "," : ", ");
	bytes_add(line, state.head.at, state.head.len);
}

static void end_line(struct bytes *line, bool json)
{
	if (!json && line->at[line->len - 1] == '{')
		line->len -= 2;
	else
		bytes_add_byte(line, '}');
	bytes_add_byte(line, '\n');
}

static void write_all(int fd, const uint8_t *at, size_t len)
{
	while (len) {
		ssize_t n = write(fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		at += n;
		len -= (size_t)n;
	}
}

static uint64_t add_to_key(uint64_t key, const char *text)
{
	return key * 31 + (text ? hash_bytes(text, strlen(text)) : 0);
}

/* What repeats: each component has its own share, or what many do at once would hide what happens
 * to one. */
static uint64_t sample_key(const struct log *log, const char *file, int line, const char *message)
{
	uint64_t key = add_to_key(add_to_key((uint64_t)line, file), message);
	if (log)
		key = add_to_key(add_to_key(add_to_key(key, log->component_kind),
					    log->component_id),
				 log->pipeline_id);
	return key;
}

/* The first `initial` of a tick pass, then every thereafter-th; two keys in one slot only reset it.
 */
static bool is_sampled_out(const struct log *log, const char *file, int line, const char *message)
{
	if (!state.sampling)
		return false;
	uint64_t key = sample_key(log, file, line, message);
	struct sample *s = &state.samples[key % SAMPLE_SLOTS];
	uint64_t tick = state.tick_ns ? clock_now() / state.tick_ns : 0;
	if (s->key != key || s->tick != tick)
		*s = (struct sample){ .key = key, .tick = tick };
	s->lines++;
	if (s->lines <= state.initial)
		return false;
	return !state.thereafter || (s->lines - state.initial) % state.thereafter != 0;
}

static void emit(const struct log *log, enum log_level level, const char *caller,
		 const char *message, const struct log_field *fields, size_t count)
{
	struct bytes line;
	bytes_init(&line, LINE_MAX_BYTES);
	if (state.json)
		begin_json(&line, level, caller, message);
	else
		begin_console(&line, level, caller, message);
	add_head(&line, state.json);
	add_component(&line, state.json, log);
	for (size_t i = 0; i < count; i++)
		add_field(&line, state.json, &fields[i]);
	end_line(&line, state.json);
	for (size_t i = 0; i < state.output_count; i++)
		write_all(state.outputs[i].fd, line.at, line.len);
	bytes_fini(&line);
}

bool log_enabled(enum log_level level)
{
	return (int)level >= atomic_load_explicit(&threshold, memory_order_relaxed);
}

void log_write(const struct log *log, enum log_level level, const char *file, int line,
	       const char *message, const struct log_field *fields, size_t count)
{
	if (!log_enabled(level))
		return;
	char caller[160];
	snprintf(caller, sizeof caller, "%s:%d", short_path(file), line);
	message = message ? message : "";
	pthread_mutex_lock(&lock);
	if (!is_sampled_out(log, file, line, message))
		emit(log, level, state.hide_caller ? NULL : caller, message, fields, count);
	pthread_mutex_unlock(&lock);
}

/* The descriptor of an output that is no file; -1: it is a file. */
static int stream_of(const char *path)
{
	if (strcmp(path, "stderr") == 0)
		return STDERR_FILENO;
	return strcmp(path, "stdout") == 0 ? STDOUT_FILENO : -1;
}

bool log_is_stream(const char *path)
{
	return stream_of(path) >= 0;
}

static bool open_output(struct output *output, const char *path, struct error *err)
{
	*output = (struct output){ .fd = stream_of(path) };
	if (output->fd >= 0)
		return true;
	output->fd = system_open_output(path, O_APPEND, err);
	if (output->fd < 0)
		return error_prefix(err, "the log");
	output->path = memory_text(path);
	return true;
}

static void close_outputs(struct output *outputs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!outputs[i].path)
			continue;
		close(outputs[i].fd);
		memory_free(outputs[i].path);
	}
}

static bool open_outputs(const char *const *paths, struct output *outputs, size_t *count,
			 struct error *err)
{
	static const char *const standard[] = { "stderr", NULL };
	*count = 0;
	for (const char *const *path = paths ? paths : standard; *path; path++) {
		if (*count == OUTPUTS_MAX) {
			error_set(err, ERROR_CONFIG, "more than %d log outputs are not supported",
				  OUTPUTS_MAX);
		} else if (open_output(&outputs[*count], *path, err)) {
			++*count;
			continue;
		}
		close_outputs(outputs, *count);
		return false;
	}
	return true;
}

static void render_head(const struct log_config *config, struct bytes *head)
{
	bytes_init(head, LINE_MAX_BYTES / 4);
	if (config->resource) {
		bytes_add_text(head, config->json ? "\"resource\":{" : "\"resource\": {");
		for (const struct log_field *f = config->resource; f->key; f++)
			add_field(head, config->json, f);
		if (!bytes_add_byte(head, '}'))
			bytes_fini(head);
	}
	for (const struct log_field *f = config->initial_fields; f && f->key; f++)
		add_field(head, config->json, f);
}

bool log_configure(const struct log_config *config, struct error *err)
{
	struct output outputs[OUTPUTS_MAX];
	size_t count;
	if (!open_outputs(config->output_paths, outputs, &count, err))
		return false;
	pthread_mutex_lock(&lock);
	close_outputs(state.outputs, state.output_count);
	memcpy(state.outputs, outputs, count * sizeof outputs[0]);
	state.output_count = count;
	state.json = config->json;
	state.hide_caller = config->disable_caller;
	state.sampling = config->sampling;
	state.initial = config->sampling_initial > 0 ? (uint64_t)config->sampling_initial : 0;
	state.thereafter =
		config->sampling_thereafter > 0 ? (uint64_t)config->sampling_thereafter : 0;
	state.tick_ns = config->sampling_tick_ns;
	memset(state.samples, 0, sizeof state.samples);
	bytes_fini(&state.head);
	render_head(config, &state.head);
	atomic_store_explicit(&threshold, (int)config->level, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	return true;
}

bool log_reopen(const struct log *log, struct error *err)
{
	const char *reopened[OUTPUTS_MAX];
	size_t count = 0;
	bool ok = true;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < state.output_count; i++) {
		struct output fresh;
		if (!state.outputs[i].path)
			continue;
		if (!open_output(&fresh, state.outputs[i].path, err)) {
			ok = false;
			continue;
		}
		close_outputs(&state.outputs[i], 1);
		state.outputs[i] = fresh;
		reopened[count++] = fresh.path;
	}
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < count; i++)
		log_info(log, "Log file reopened", log_text("path", reopened[i]));
	return ok;
}

void log_close(void)
{
	log_configure(&(struct log_config){ .level = LOG_INFO }, NULL);
	pthread_mutex_lock(&lock);
	bytes_fini(&state.head);
	pthread_mutex_unlock(&lock);
}
