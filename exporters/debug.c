/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/system.h"
#include "pipeline/component.h"
#include "pipeline/delivery/body.h"
#include "pipeline/delivery/delivery.h"
#include "profile/otlp/decode_otlp.h"

/*
 * Shows what leaves: counts in the log, and the content on the outputs if it is configured. The log
 * never contains a byte from a sender; the outputs are a destination like any other and receive
 * what policy permits.
 *
 * This is a whole component, and the one to read first: configuration (struct, rows, table),
 * instance, the functions that the host calls, and the exported constant that gathers them.
 */
enum { BASIC, NORMAL, DETAILED };

struct debug_config {
	struct choice verbosity;
	int64_t sampling_initial, sampling_thereafter;
	bool use_internal_logger;
	struct strings output_paths;
	struct delivery_config delivery;
};

static const char *const verbosities[] = { "basic", "normal", "detailed", NULL };

static const struct config_row debug_rows[] = {
	CONFIG_ROW(struct debug_config, verbosity, .key = "verbosity", .def = "basic",
		   .choices = verbosities,
		   .help = "`basic`: one line with counts per request. `normal`: also one line "
			   "per profile, written to the outputs. `detailed`: also the whole "
			   "request as OTLP/JSON, written to the outputs."),
	CONFIG_ROW(struct debug_config, sampling_initial, .key = "sampling_initial", .def = "2",
		   .limited = true, .min = 0, .max = -1,
		   .help = "The number of requests shown in each second."),
	CONFIG_ROW(struct debug_config, sampling_thereafter, .key = "sampling_thereafter",
		   .def = "1", .limited = true, .min = 0, .max = -1,
		   .help = "After those, every Nth request of the same second is shown; 0: none."),
	CONFIG_ROW(struct debug_config, use_internal_logger, .key = "use_internal_logger",
		   .def = "true",
		   .help = "Writes the line of counts to the log; `false`: to the outputs."),
	CONFIG_ROW(struct debug_config, output_paths, .key = "output_paths", .def = "[stdout]",
		   .role = ROLE_WRITES_LOG,
		   .help = "`stdout`, `stderr` or files. Files are appended to; symbolic links are "
			   "errors."),
	DELIVERY_ROWS_UNTIMED(struct debug_config, delivery),
	{ 0 }
};

static const struct config_hint key_hints[] = { { "loglevel", .use = "verbosity" }, { 0 } };
static const struct config_table debug_table = { sizeof(struct debug_config), debug_rows,
						 .hints = key_hints };

struct output {
	FILE *file;
	_Atomic(FILE *) next; /* opened, not in use yet */
};

struct debug {
	const struct debug_config *config;
	struct log log;
	struct output *outputs; /* one for each of output_paths */
	uint64_t second;        /* being sampled, and how many requests it had */
	int64_t requests;
	struct profiles tables; /* normal: the packet, decoded */
};

static bool debug_create(void *instance, const void *config, const struct host *host,
			 struct error *err)
{
	struct debug *self = instance;
	(void)err;
	self->config = config;
	self->log = host->log;
	return true;
}

static FILE *open_file(const char *path, struct error *err)
{
	if (strcmp(path, "stdout") == 0)
		return stdout;
	if (strcmp(path, "stderr") == 0)
		return stderr;
	int fd = system_open_output(path, O_APPEND, err);
	return fd < 0 ? NULL : fdopen(fd, "a");
}

static void close_file(FILE *file)
{
	if (file && file != stdout && file != stderr)
		fclose(file);
}

/* On the loop thread; the sends' thread may be writing to the old ones, and takes these the next
 * time. */
static bool debug_reopen(void *instance, struct error *err)
{
	struct debug *self = instance;
	const struct strings *paths = &self->config->output_paths;
	bool ok = true;
	for (size_t i = 0; i < paths->count; i++) {
		FILE *file = open_file(paths->at[i], err);
		if (file)
			close_file(atomic_exchange(&self->outputs[i].next, file));
		else
			ok = error_prefix(err, "output_paths[%zu]", i);
	}
	return ok;
}

static bool debug_start(void *instance, struct error *err)
{
	struct debug *self = instance;
	self->outputs = memory_array(self->config->output_paths.count, sizeof *self->outputs);
	return debug_reopen(self, err);
}

/* The n-th request of this second: is it shown? */
static bool is_sampled(struct debug *self)
{
	const struct debug_config *c = self->config;
	uint64_t second = clock_now() / 1000000000;
	self->requests = second == self->second ? self->requests + 1 : 1;
	self->second = second;
	int64_t beyond = self->requests - c->sampling_initial;
	return beyond <= 0 || (c->sampling_thereafter && beyond % c->sampling_thereafter == 0);
}

static bool add_profiles(struct debug *self, const struct packet *packet, struct bytes *text,
			 struct error *err)
{
	struct profiles *p = &self->tables;
	if (!profiles_reset(p, NULL, bytes_view(&packet->otlp), PROFILES_INPUT_MAX) ||
	    !decode_otlp(p, err))
		return false;
	bool ok = true;
	for (const struct profile *x = p->profiles.at; x < p->profiles.at + p->profiles.count; x++)
		ok &= bytes_format(text, "  profile: samples %u, time %llu, duration %llu\n",
				   x->samples.count, (unsigned long long)x->time,
				   (unsigned long long)x->duration);
	return ok;
}

static struct packet_form debug_reads(void *instance)
{
	const struct debug *self = instance;
	return self->config->verbosity.index == DETAILED ? FORM_JSON : FORM_OTLP;
}

static bool add_json(struct packet *packet, struct bytes *text, struct error *err)
{
	const struct bytes *json = body_of(packet, FORM_JSON, err);
	return json && bytes_add(text, json->at, json->len) && bytes_add_byte(text, '\n');
}

static FILE *current_file(struct output *output)
{
	FILE *next = atomic_exchange(&output->next, NULL);
	if (next) {
		close_file(output->file);
		output->file = next;
	}
	return output->file;
}

static bool print(struct debug *self, struct view text)
{
	bool ok = true;
	for (size_t i = 0; i < self->config->output_paths.count; i++) {
		FILE *file = current_file(&self->outputs[i]);
		ok &= fwrite(text.at, 1, text.len, file) == text.len && fflush(file) == 0;
	}
	return ok;
}

static bool show(struct debug *self, struct packet *packet, struct error *err)
{
	const struct debug_config *c = self->config;
	struct bytes text;
	bytes_init(&text, PROFILES_INPUT_MAX);
	bool ok = true;
	if (c->use_internal_logger)
		log_info(&self->log, "Profiles", log_number("resource profiles", packet->resources),
			 log_number("sample records", packet->samples));
	else
		ok = bytes_format(&text, "Profiles: resource profiles %u, sample records %llu\n",
				  packet->resources, (unsigned long long)packet->samples);
	if (c->verbosity.index >= NORMAL)
		ok = ok && add_profiles(self, packet, &text, err);
	if (c->verbosity.index == DETAILED)
		ok = ok && add_json(packet, &text, err);
	ok = ok && (!text.len || print(self, bytes_view(&text)));
	bytes_fini(&text);
	return ok;
}

static void debug_send(void *instance, const struct part *part, uint64_t timeout_ns,
		       struct sending *sending)
{
	struct debug *self = instance;
	struct error err = { 0 };
	struct send_result result = { .outcome = SEND_OK, .retry_after_ms = -1 };
	(void)timeout_ns;
	if (is_sampled(self) && !show(self, part->packet, &err)) {
		result.outcome = SEND_PERMANENT; /* a retry would repeat half a request */
		result.reason = "output";
	}
	sending_done(sending, &result);
}

static void debug_destroy(void *instance)
{
	struct debug *self = instance;
	for (size_t i = 0; self->outputs && i < self->config->output_paths.count; i++) {
		close_file(self->outputs[i].file);
		close_file(self->outputs[i].next);
	}
	memory_free(self->outputs);
	profiles_fini(&self->tables);
}

static const struct exporter_ops debug_ops = {
	.start = debug_start,
	.delivery_offset = offsetof(struct debug_config, delivery),
	.max_in_flight = 1,
	.reads = debug_reads,
	.send = debug_send,
};

static const struct config_hint type_hints[] = {
	{ "logging",
	  .text = "the logging exporter has been deprecated, use the debug exporter instead" },
	{ 0 }
};

const struct component_factory debug_exporter = {
	.type = "debug",
	.hints = type_hints,
	.help = "Shows outgoing data: counts in the log and, depending on `verbosity`, the "
		"profiles on standard output or in files.",
	.kind = COMPONENT_EXPORTER,
	.exporter = &debug_ops,
	.size = sizeof(struct debug),
	.config = &debug_table,
	.create = debug_create,
	.destroy = debug_destroy,
	.reopen = debug_reopen,
};
