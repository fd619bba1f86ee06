/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_PPROF_MANUAL_H
#define RECEIVERS_PPROF_MANUAL_H

/* The manual of the receiver `pprof`, by the sections of its configuration. */
/* clang-format off */
#define PPROF_SERVER_MANUAL \
	"### server\n" \
	"\n" \
	"`POST /v1/pprof` accepts one profile. It may be uncompressed or compressed with gzip " \
	"or zstd, which is recognised by its first bytes. The body is the profile itself, " \
	"with or without a `Content-Encoding`, or a `multipart/form-data` form whose part " \
	"`profile` is the profile (other parts are ignored). `max_request_body_size` limits " \
	"the body both as sent and decompressed.\n" \
	"\n" \
	"Resource attributes can be given as query parameters, `POST " \
	"/v1/pprof?service.name=checkout&region=eu`, and in the header " \
	"`X-Portcullis-Resource: service.name=checkout,region=eu` (percent-encoded, as " \
	"`OTEL_RESOURCE_ATTRIBUTES`; it may be repeated). At most 64 attributes are accepted, " \
	"with names of at most 256 bytes, values of at most 4096 bytes, and 16 KiB in total. " \
	"A repeated name is an error. The values are strings, and the policy applies to them " \
	"as to all other attributes.\n" \
	"\n" \
	"| Status | When |\n" \
	"|---|---|\n" \
	"| 204 | accepted |\n" \
	"| 400 | malformed profile, form, query or attributes; the response names the fault |\n" \
	"| 404, 405 | another path or method |\n" \
	"| 413 | larger than `max_request_body_size`, as sent or decompressed |\n" \
	"| 415 | another media type or Content-Encoding |\n" \
	"| 431 | the headers exceed `max_header_bytes` or `max_header_count` |\n" \
	"| 503 | memory or all queues are full, the sender has used up its share of the " \
	"memory, or the gateway is shutting down; `Retry-After` says when to retry |\n" \
	"\n" \
	"Memory is charged as a body arrives. If none is free for the next part, the receiver " \
	"stops reading for one to three seconds before it refuses the request.\n" \
	"\n" \
	"During a shutdown, accepted requests have 10 s to finish, within " \
	"`--shutdown-timeout`. New requests are refused.\n\n"

#define PPROF_REMOTE_MANUAL \
	"### remote\n" \
	"\n" \
	"Each profile of each target is scraped every `collection_interval`. With `endpoint`, " \
	"there is one target and one profile. Otherwise the targets are those of " \
	"`static_configs` and of the target files, and the profiles are those of " \
	"`profiling_config.pprof_config`, whose defaults are the paths of Go's " \
	"`net/http/pprof`.\n" \
	"\n" \
	"A group of targets is `{targets: [host:port], labels: {name: value}}`, as in " \
	"Prometheus. Labels become resource attributes with string values, and the policy " \
	"applies to them as to all other attributes:\n" \
	"\n" \
	"| Label | Resource attribute |\n" \
	"|---|---|\n" \
	"| `job`, by default `job_name` | `service.name`, unless there is a label " \
	"`service.name` |\n" \
	"| `instance`, by default `host:port` | `service.instance.id` |\n" \
	"| `__scheme__` | none; `http` or `https`, instead of `scheme` |\n" \
	"| others that begin with `__` | none |\n" \
	"| all others | the same name |\n" \
	"\n" \
	"Each profile of `pprof_config` also has the attribute `__name__`, its name there. The " \
	"exporter `pyroscope` names the series by it. Permit it in `allowlist` to distinguish mutex " \
	"and block profiles, whose sample types are the same.\n" \
	"\n" \
	"A target has at most 64 labels, with names of at most 256 bytes, values of at most " \
	"4096 bytes, and 16 KiB in total. The same target with the same labels is scraped " \
	"once, however often it is listed.\n" \
	"\n" \
	"Target files are YAML or JSON with a list of groups. They are read again after a " \
	"change, also behind symbolic links. Targets that are in the new list too keep their " \
	"times and their deltas. If a file cannot be read, its last targets stay in use, and " \
	"the log says why, once. A file that is deleted has no targets.\n" \
	"\n" \
	"With `delta`, the values of a profile that counts from the start of the process are " \
	"replaced by what was added since the last scrape that a pipeline accepted. The " \
	"profile then begins at the time of that scrape. Values of sample types that begin " \
	"with `inuse_` are levels and stay as they are. The first profile of a target, and " \
	"the first of a process that has restarted, have nothing to be compared with, and are " \
	"skipped. A restart is recognised by a sum that has decreased or disappeared. The " \
	"last values are kept in memory, about 8 bytes for each sample and 8 for each of its " \
	"sums. Without `delta`, values are sent as they are.\n" \
	"\n" \
	"Redirects are not followed. A scrape fails if the status is not 200, if the profile " \
	"exceeds `max_body_size` or cannot be decoded, or after `timeout`. The next scrape is " \
	"at the next regular time. When memory is short or the queues are full, a scrape is " \
	"postponed for one to two seconds, and counted. Scrapes that would be late by an " \
	"interval or more are left out.\n" \
	"\n" \
	"At most `max_concurrent_scrapes` are in progress. A profile of `seconds` is in " \
	"progress for that time, so this key must be at least the number of targets times " \
	"`seconds` divided by `collection_interval`; `otelcol_scraper_scrapes_waiting` shows " \
	"scrapes that have to wait. Each scrape in progress is charged 40 KiB and its " \
	"profile. An idle target with the five default profiles takes about 2 KiB.\n" \
	"\n" \
	"When a profile of a target begins to fail, or succeeds again, the log says so: at " \
	"most ten such lines in five seconds, then one line with the number of the others.\n\n"

#define PPROF_FILE_MANUAL \
	"### file\n" \
	"\n" \
	"Each file that matches `include` and not `exclude` is one profile. It is read once, " \
	"and again after each change of its inode, size or time of modification. A file that " \
	"was modified within the last `collection_interval` is read when two checks have " \
	"found it the same, because its writer may not be done; writers that rename complete " \
	"files are safest. What was read is not remembered after a restart; see `start_at`. A " \
	"file that cannot be decoded is logged and not read again until it changes. When " \
	"memory is short or the queues are full, files are read at the next check.\n"
/* clang-format on */

#endif
