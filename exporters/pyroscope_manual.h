/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_PYROSCOPE_MANUAL_H
#define EXPORTERS_PYROSCOPE_MANUAL_H

/* What the manual says of the exporter pyroscope. */
/* clang-format off */
#define PYROSCOPE_MANUAL \
	"`push.v1.PusherService/Push`, one pprof per request: with several, the store may take some " \
	"and refuse the others, which no retry can mend. (Of more than 256 pprofs in one packet of ours the later " \
	"ones of a series share one.) " \
	"Works with Pyroscope 1.x, the newest, and Grafana Cloud (`basic_auth`).\n\n" \
	"**Series.** Labels, by falling precedence: `__name__`, `service_name`, `__delta__`, then the " \
	"attributes of the " \
	"resource, the scope, the Profile, and (as labels of the pprof's samples) of the sample. Of " \
	"names that are equal in the " \
	"form that the store takes (`a.b` and `a-b` are `a_b` with `legacy`), the first stays; of more " \
	"than `max_names` the last " \
	"go; what went is counted in `otelcol_exporter_pyroscope_dropped_labels`, and no request is " \
	"refused for it. " \
	"`service_name` is the attribute `service.name`, else `service_name`, else `unknown_service` with " \
	"`process.executable.name`. Keys that begin with `__` are the store's own and no labels " \
	"(`__session_id__` is one). " \
	"Texts stay as they are, other values become text. A Link becomes `trace_id` and `span_id`. " \
	"Everything counts towards the " \
	"store's limit of series: keep labels few with `allowlist`. Of more than 4096 series in one request of ours the rest " \
	"becomes one, `service_name=overflow`.\n\n" \
	"**Types** are named as the store's own clients name them:\n\n" \
	"| A sample type of the pprof, else its period type | `__name__` |\n" \
	"|---|---|\n" \
	"| is `wall` | `wall` |\n" \
	"| is `off_cpu` | `off_cpu` |\n" \
	"| has `cpu` in it | `process_cpu` |\n" \
	"| has `alloc_` or `inuse_` in it, or is `space` or `objects` | `memory` |\n" \
	"| has `mutex_` in it, or is `contentions` or `delay` | `mutex` |\n" \
	"| has `block_` in it | `block` |\n" \
	"| has `goroutine` in it | `goroutines` |\n" \
	"| `samples`, and nothing else is known | `process_cpu` |\n" \
	"| anything else | the last sample type |\n\n" \
	"`samples`/`count` alone with a period of `cpu`/`nanoseconds`, as profilers of OTLP send it, " \
	"gets a second type " \
	"`cpu`/`nanoseconds`, the count times the period. `-` in a sample type becomes `_`, for the " \
	"store refuses it, and so does `:` in any type or unit, for with two of them its list of types " \
	"fails for everybody; a type without a name, or with one over 1024 bytes, " \
	"becomes `unknown`, an absent period type the sample type.\n\n" \
	"**Times.** The store takes profiles of one series in the same millisecond for one. Those of " \
	"one request are therefore " \
	"merged, and a later one gets the series' next free millisecond. Of a large profile the first part has " \
	"its time, the next ones free milliseconds behind it. A part " \
	"keeps its time over retries, so that a request whose answer was lost does not count twice " \
	"(with the newest store: once it " \
	"has compacted); what a sender sends twice counts twice. The last 128 times of each of about 1000 series are " \
	"known; a service whose " \
	"instances all have the same labels should keep one that tells them apart. " \
	"Two gateways do not know of each other's times: where both carry profiles of one " \
	"service, give them a label that tells them apart (`resource`). Profiles older than an " \
	"hour, or ten minutes ahead, are dropped as the store " \
	"would drop them (reasons " \
	"`too_old`, `too_new`); `limits` changes that.\n\n" \
	"**Size.** A profile is cut into parts of at most 16000 samples and 1920 KiB, not compressed, " \
	"which the store takes where " \
	"nobody has changed it: its burst is 2 MiB, and what is larger gets a 429 for ever. `limits: " \
	"{max_bytes: 4000000}` suits a " \
	"store with a larger burst; " \
	"`max_resources` is 1 whatever it says. A 413, `exceeds the size limit`, `payload size exceeds limit`, and a 429 " \
	"for more than the burst teach a smaller size.\n\n" \
	"| Answer | What becomes of the data |\n" \
	"|---|---|\n" \
	"| 2xx, whole | sent |\n" \
	"| none, or cut; 429, 502, 503, 504 | tried again; a `Retry-After` of 429 and 503 is kept |\n" \
	"| 413, and the texts above | cut into smaller parts, and tried again |\n" \
	"| any other | dropped |\n\n" \
	"**What the store does not keep**, each counted in `otelcol_exporter_unsupported_items`: timestamps of samples, " \
	"columns of lines, `doc_url`, profile ids, names of scopes, attributes of mappings and locations that pprof has no " \
	"field for, samples of the value 0, negative values (1.12 keeps one beside a positive value of the same sample; newer " \
	"ones drop that whole sample, so it is sent as two, and the positive value stays), addresses of symbolised " \
	"mappings; and numbers on samples (`numeric_sample_labels` makes texts of " \
	"them; counted with the labels). " \
	"It keeps the labels `profile_id` and `span_id`, but does not show them. Stacks deeper " \
	"than `max_stack_depth` lose their root side here, because the store would cut off the leaf.\n"
/* clang-format on */

#endif
