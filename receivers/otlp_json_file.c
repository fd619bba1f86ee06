/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "pipeline/intake/file_tail.h"
#include "pipeline/intake/source.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/otlp/otlp_json.h"

#include <pthread.h>

/*
 * Reads files of lines, each a ProfilesData in JSON, as the Collector's file exporter writes them.
 *
 * A line is a request. It is read on a pool thread and accepted by the pipelines before the next
 * one is read, so the lines of a file keep their order. A line that finds no memory or no room in
 * the queues is read again later.
 */
struct json_file_config {
	struct strings include, exclude;
	char *start_at, *compression, *encoding;
	struct duration poll_interval;
	int64_t max_log_size, fingerprint_size, max_concurrent_files;
	bool replay_file;
	const struct node *storage, *multiline, *header, *ordering_criteria, *delete_after_read;
	struct choice ack;
};

/* Lives until the last callback, which may be after the receiver. */
struct json_file {
	const struct json_file_config *config;
	const struct host *host;
	struct source *source;
	struct file_tail *tail; /* used by one thread at a time */
	pthread_mutex_t lock;   /* held while a pool thread uses the tail */
	_Atomic bool stopped;
	struct metric_series *lines[3];
	/* of the work that runs */
	struct source_request *request;
	enum file_tail_more more;
	bool whole;
	struct error err;
	/* loop thread */
	struct loop_timer *timer;
	uint32_t refs;       /* of the owner, and of what goes on */
	bool crowded, again; /* again: the timer is for the same line */
};

struct json_file_receiver {
	struct json_file *file;
};

struct line_request {
	struct source_request source;
	struct json_file *file;
};

enum line_result { LINE_SUCCESS, LINE_POSTPONED, LINE_FAILED };

static const struct metric lines_metric = {
	"otelcol_receiver_otlp_json_file_lines", METRIC_COUNTER, "{lines}",
	"Lines that were read, by outcome: success, postponed (no memory, or all queues are full; "
	"they are read again), failed (longer than max_log_size, or rejected)."
};
static const struct metric *const metrics[] = { &lines_metric, NULL };

static bool json_file_translate(struct inbound *in, struct view *body, struct bytes *out,
				struct error *err)
{
	enum otlp_generation generation;
	(void)in;
	if (!otlp_json_translate(*body, out, &generation, err))
		return false;
	*body = bytes_view(out);
	return true;
}

static bool json_file_decode(struct inbound *in, struct profiles *profiles, struct error *err)
{
	struct otlp_layout layout = { .known = OTLP_CURRENT };
	(void)in;
	return decode_otlp_any(profiles, &layout, err);
}

static const struct document_format documents = {
	.translate = json_file_translate,
	.decode = json_file_decode,
	.tables_factor = 16,
};

static void json_file_release(struct json_file *f)
{
	if (--f->refs)
		return;
	file_tail_free(&f->tail);
	source_unref(&f->source);
	pthread_mutex_destroy(&f->lock);
	memory_free(f);
}

/* ---- lines */

static struct size_limit line_limit(const struct json_file_config *c)
{
	return (struct size_limit){ (size_t)c->max_log_size, "max_log_size", c->max_log_size };
}

static void read_next(struct json_file *f);

static void poll_later(struct json_file *f)
{
	loop_timer_start(f->timer, (uint64_t)f->config->poll_interval.ns);
}

/* The end of a line: what comes next depends on who refused it. */
static void conclude(struct json_file *f)
{
	enum line_result result = f->err.kind == ERROR_NONE   ? LINE_SUCCESS
				  : f->err.kind == ERROR_BUSY ? LINE_POSTPONED
							      : LINE_FAILED;
	metric_add(f->lines[result], 1);
	if (result == LINE_FAILED)
		log_warn(&f->host->log, "A line of a file was rejected",
			 log_text("path", file_tail_name(f->tail)),
			 log_number("offset", (int64_t)file_tail_offset(f->tail)),
			 log_text("error", f->err.text));
	f->again = result == LINE_POSTPONED;
	if (f->again) {
		poll_later(f);
		return;
	}
	if (f->more == FILE_TAIL_LINE)
		file_tail_accept(f->tail);
	else if (f->more == FILE_TAIL_FULL)
		file_tail_skip(f->tail);
	read_next(f);
}

static void answered(void *argument)
{
	struct json_file *f = argument;
	if (!f->stopped)
		conclude(f);
	json_file_release(f);
}

/* [any thread] */
static void line_done(struct source_request *r, const struct outcome *outcome)
{
	struct json_file *f = ((struct line_request *)r)->file;
	error_clear(&f->err);
	if (outcome->error)
		f->err = *outcome->error;
	if (loop_here(f->host->loop))
		answered(f);
	else
		loop_post(f->host->loop, answered, f);
}

/* [pool thread] */
static void read_line(void *argument)
{
	struct json_file *f = argument;
	const struct size_limit limit = line_limit(f->config);
	pthread_mutex_lock(&f->lock);
	f->more = f->stopped ? FILE_TAIL_NONE : file_tail_read(f->tail, &f->request->body);
	pthread_mutex_unlock(&f->lock);
	error_clear(&f->err);
	if (f->more == FILE_TAIL_LONG)
		size_limit_exceeded(&limit, "the line", 0, &f->err);
	else if (f->more == FILE_TAIL_FULL)
		f->err = f->request->err;
}

static void line_read(void *argument)
{
	struct json_file *f = argument;
	struct source_request *r = f->request;
	f->request = NULL;
	if (f->more == FILE_TAIL_LINE && !f->stopped) {
		source_submit(r);
		return;
	}
	source_forget(r, f->more == FILE_TAIL_LONG ? REFUSAL_TOO_LARGE : REFUSAL_NONE);
	if (f->more != FILE_TAIL_NONE) {
		answered(f);
		return;
	}
	if (!f->stopped)
		poll_later(f);
	json_file_release(f);
}

static void read_next(struct json_file *f)
{
	struct source_request *r = source_request_new(f->source);
	((struct line_request *)r)->file = f;
	error_clear(&f->err);
	if (!source_admit(r, 0, &f->err)) {
		metric_add(f->lines[LINE_POSTPONED], 1);
		f->again = true;
		poll_later(f);
		return;
	}
	f->request = r;
	f->refs++;
	loop_work(f->host->loop, read_line, line_read, f);
}

/* ---- files */

/* [pool thread] */
static void poll_files(void *argument)
{
	struct json_file *f = argument;
	pthread_mutex_lock(&f->lock);
	if (!f->stopped)
		f->whole = file_tail_poll(f->tail);
	pthread_mutex_unlock(&f->lock);
}

static void files_polled(void *argument)
{
	struct json_file *f = argument;
	if (!f->stopped) {
		if (!f->whole && !f->crowded)
			log_warn(&f->host->log, "More files match than max_concurrent_files",
				 log_number("max_concurrent_files",
					    f->config->max_concurrent_files));
		f->crowded = !f->whole;
		read_next(f);
	}
	json_file_release(f);
}

static void on_timer(void *context)
{
	struct json_file *f = context;
	if (f->again) {
		f->again = false;
		read_next(f);
		return;
	}
	f->refs++;
	loop_work(f->host->loop, poll_files, files_polled, f);
}

/* ---- life */

static void make_metrics(struct json_file *f)
{
	static const char *const outcomes[] = {
		[LINE_SUCCESS] = "success",
		[LINE_POSTPONED] = "postponed",
		[LINE_FAILED] = "failed",
	};
	for (int i = LINE_SUCCESS; i <= LINE_FAILED; i++)
		f->lines[i] =
			metrics_series(f->host->metrics, &lines_metric,
				       (const struct metric_label[]){ { "receiver", f->host->id },
								      { "outcome", outcomes[i] },
								      { 0 } });
}

static bool json_file_create(void *self, const void *config, const struct host *host,
			     struct error *err)
{
	struct json_file *f = memory_new(sizeof *f);
	const struct json_file_config *c = f->config = config;
	(void)err;
	((struct json_file_receiver *)self)->file = f;
	f->host = host;
	f->refs = 1;
	pthread_mutex_init(&f->lock, NULL);
	make_metrics(f);
	f->source = source_new(&(struct source_options){
		.host = host,
		.transport = TRANSPORT_FILE,
		.documents = &documents,
		.request_size = sizeof(struct line_request),
		.body_limit = line_limit(c),
		.done = line_done,
	});
	f->tail = file_tail_new(&(struct file_tail_options){
		.include = &c->include,
		.exclude = &c->exclude,
		.files_max = (size_t)c->max_concurrent_files,
		.fingerprint = (size_t)c->fingerprint_size,
		.line_max = (size_t)c->max_log_size,
		.from_start = !strcmp(c->start_at, "beginning"),
		.replay = c->replay_file,
	});
	return true;
}

static bool json_file_start(void *self, struct error *err)
{
	struct json_file *f = ((struct json_file_receiver *)self)->file;
	(void)err;
	f->timer = loop_timer_new(f->host->loop, on_timer, f);
	loop_timer_start(f->timer, 1);
	return true;
}

static void stop_polling(void *argument)
{
	struct json_file *f = argument;
	f->stopped = true;
	loop_timer_unref(&f->timer);
}

static void json_file_stop(void *self)
{
	struct json_file *f = ((struct json_file_receiver *)self)->file;
	loop_call(f->host->loop, stop_polling, f);
	pthread_mutex_lock(&f->lock); /* what a pool thread has begun ends first */
	pthread_mutex_unlock(&f->lock);
	source_stop(f->source);
}

static void json_file_destroy(void *self)
{
	struct json_file_receiver *r = self;
	if (r->file)
		json_file_release(r->file);
}

/* ---- configuration */

static void check_unsupported(const struct json_file_config *c, struct faults *faults)
{
	if (c->storage)
		faults_add(faults, "storage: not supported; the positions in files are remembered "
				   "while the program runs");
	if (*c->compression)
		faults_add(faults,
			   "compression: not supported; a compressed file cannot be followed");
	if (strcmp(c->encoding, "utf-8"))
		faults_add(faults, "encoding: must be utf-8, as JSON requires");
	if (c->multiline)
		faults_add(faults, "multiline: not supported; each line is one document");
	if (c->header)
		faults_add(faults, "header: not supported; each line is one document");
	if (c->ordering_criteria)
		faults_add(faults,
			   "ordering_criteria: not supported; files are read in the order of "
			   "their names");
	if (c->delete_after_read)
		faults_add(faults, "delete_after_read: not supported; files are only read");
}

static void json_file_check(const void *config, struct faults *faults)
{
	const struct json_file_config *c = config;
	if (!c->include.count)
		faults_add(faults, "include must be specified");
	if (c->poll_interval.ns < 10000000)
		faults_add(faults, "poll_interval: must be at least 10ms");
	if (strcmp(c->start_at, "beginning") != 0 && strcmp(c->start_at, "end") != 0)
		faults_add(faults, "start_at: must be beginning or end");
	check_unsupported(c, faults);
}

#define ROW(member, ...) CONFIG_ROW(struct json_file_config, member, .key = #member, __VA_ARGS__)
#define UNSUPPORTED_ROW(member) ROW(member, .help = "Not supported; setting it is an error.")

static const struct config_row rows[] = {
	ROW(include, .help = "Globs of files to read."),
	ROW(exclude, .help = "Globs of files that are not read."),
	ROW(start_at, .def = "end",
	    .help = "Where files begin that exist at the start: `beginning` or `end`. Later files "
		    "are always read from the beginning."),
	ROW(poll_interval, .def = "200ms", .help = "Files are checked for new lines this often."),
	ROW(replay_file, .def = "false",
	    .help = "Reads all files from the beginning at each poll, again and again."),
	ROW(max_log_size, .def = "1048576", .unit = "bytes", .limited = true, .min = 1024,
	    .max = 1 << 30, .help = "Maximum length of a line. A longer one is skipped."),
	ROW(fingerprint_size, .def = "1000", .unit = "bytes", .limited = true, .min = 16,
	    .max = 65536,
	    .help = "A file whose first bytes have changed, up to this number, is read from the "
		    "beginning."),
	ROW(max_concurrent_files, .def = "1024", .limited = true, .min = 1, .max = 100000,
	    .help = "Maximum number of open files. If more match, the first ones by name are "
		    "read."),
	ROW(compression, .def = "\"\"", .help = "Not supported; setting it is an error."),
	ROW(encoding, .def = "utf-8", .help = "Must be `utf-8`."),
	UNSUPPORTED_ROW(storage),
	UNSUPPORTED_ROW(multiline),
	UNSUPPORTED_ROW(header),
	UNSUPPORTED_ROW(ordering_criteria),
	UNSUPPORTED_ROW(delete_after_read),
	ACK_ROW(struct json_file_config, ack),
	{ 0 }
};

static const struct config_table table = { sizeof(struct json_file_config), rows, json_file_check };

static const char manual[] =
	"Each line is one document, `{\"resourceProfiles\": ..., \"dictionary\": ...}`, as the "
	"Collector's `file` exporter and ours (`format: json`) write it. All generations of OTLP "
	"are accepted. Lines that are empty are skipped. A file can be one of the past, to be "
	"replayed with `start_at: beginning`, or one that grows.\n\n"
	"A file is known by its device and inode. When it is renamed or removed, it is read to its "
	"end; a new file with its name is read from the beginning. A file that has become "
	"shorter, or begins with other bytes, is read from the beginning too. The last line "
	"counts only once it has ended, or when the file has not changed for 5 seconds.\n\n"
	"Lines are read one after the other, files in the order of their names. When memory is "
	"short or all queues are full, reading pauses, and continues with the same line: no line "
	"is lost. A line that cannot be decoded, or that is longer than `max_log_size`, is logged "
	"with its file and offset, and counted as failed in "
	"`otelcol_receiver_otlp_json_file_lines`.\n\n"
	"Positions are remembered while the program runs. After a restart, `start_at` decides.\n";

static const struct receiver_ops json_file_ops = {
	.ack_offset = offsetof(struct json_file_config, ack),
	.start = json_file_start,
	.stop = json_file_stop,
};

const struct component_factory otlp_json_file_receiver = {
	.type = "otlp_json_file",
	.alias = "otlpjsonfile",
	.help = "Reads profiles from files of OTLP/JSON lines.",
	.manual = manual,
	.kind = COMPONENT_RECEIVER,
	.receiver = &json_file_ops,
	.metrics = metrics,
	.size = sizeof(struct json_file_receiver),
	.config = &table,
	.create = json_file_create,
	.destroy = json_file_destroy,
};
