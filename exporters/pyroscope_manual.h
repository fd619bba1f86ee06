/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_PYROSCOPE_MANUAL_H
#define EXPORTERS_PYROSCOPE_MANUAL_H

/* The manual's text about the exporter pyroscope. */
/* clang-format off */
#define PYROSCOPE_MANUAL \
	"Calls `push.v1.PusherService/Push` with one pprof per request. With several pprofs in a request, the store may " \
	"accept some and reject the others, which no retry can fix. (Beyond 256 pprofs in one batch, the later " \
	"ones of a series share one.) " \
	"Works with Pyroscope 1.x, with the newest version, and with Grafana Cloud (`basic_auth`).\n\n" \
	"**Series.** Labels, from highest to lowest precedence: `__name__`, `service_name`, `__delta__`, then the " \
	"attributes of the resource, the scope, the Profile, and (as labels of the pprof's samples) of the sample. If " \
	"several names become equal in the form that the store accepts (`a.b` and `a-b` are both `a_b` with `legacy`), the " \
	"first is kept. Beyond `max_names`, the labels of lowest precedence are dropped. Dropped labels are counted in " \
	"`otelcol_exporter_pyroscope_dropped_labels`; no request is rejected because of them. " \
	"`service_name` is the attribute `service.name`, else `service_name`, else `unknown_service` with " \
	"`process.executable.name`; `service.name` does not become a label of its own. Keys that begin with `__` are " \
	"reserved by the store and never become labels, except three: `__session_id__`; `__name__` of the resource if it " \
	"consists of letters, digits and `_` (with UTF-8 names: of any characters but `:`), which then takes precedence over " \
	"the table below, and keeps the types as the sender has them; and `__delta__` of the " \
	"resource: the label is set only if its value is `false`, which takes precedence over the setting `delta`. The " \
	"receiver `pyroscope` sets them. " \
	"Strings are sent unchanged; other values are converted to strings. A Link becomes `trace_id` and `span_id`. " \
	"Every label counts towards the store's limit of series: use `allowlist` to keep " \
	"only a few. Beyond 4096 series in one batch, the remaining ones are joined into " \
	"one, `service_name=overflow`.\n\n" \
	"**Types** have the names that the store's own clients use:\n\n" \
	"| Sample type of the pprof, else its period type | `__name__` |\n" \
	"|---|---|\n" \
	"| `wall` | `wall` |\n" \
	"| `off_cpu` | `off_cpu` |\n" \
	"| contains `cpu` | `process_cpu` |\n" \
	"| contains `alloc_` or `inuse_`, or is `space` or `objects` | `memory` |\n" \
	"| contains `mutex_`, or is `contentions` or `delay` | `mutex` |\n" \
	"| contains `block_` | `block` |\n" \
	"| contains `goroutine` | `goroutines` |\n" \
	"| `samples`, if nothing else is known | `process_cpu` |\n" \
	"| anything else | the last sample type |\n\n" \
	"If the only sample type is `samples`/`count` and the period is `cpu`/`nanoseconds`, as OTLP profilers send it, a " \
	"second type `cpu`/`nanoseconds` is added: the count times the period. In a sample type `-` becomes `_`, because the " \
	"store rejects it. In any type or unit `:` becomes `_`, because two colons make the " \
	"store's list of types fail for every user. A type without a name, or with a name " \
	"longer than 1024 bytes, becomes `unknown`; a missing period type becomes the sample " \
	"type.\n\n" \
	"**Times.** The store treats profiles of one series in the same millisecond as one profile. Profiles of the same " \
	"request are therefore merged, and a later profile gets the next free millisecond of its series. If a large profile " \
	"is split, its first part keeps the time and the others get the next free milliseconds. A part " \
	"keeps its time over retries, so a request whose response was lost is not counted " \
	"twice (with the newest store: after compaction). A profile that a sender sends " \
	"twice is counted twice. The exporter remembers the last 128 times of each of about " \
	"1000 series. If all instances of a service have the same labels, keep one label " \
	"that distinguishes them. Two gateways do not know each other's times: if both carry " \
	"profiles of one service, add a label that distinguishes the gateways (`resource`). " \
	"Profiles older than one hour, or more than ten minutes ahead, are dropped, as the " \
	"store would drop them (reasons `too_old`, `too_new`); `limits` changes that.\n\n" \
	"**Size.** A profile is split into parts of at most 16000 samples and 1920 KiB (uncompressed). A store with default " \
	"settings accepts that: its burst is 2 MiB, and it answers every larger request with a 429. For a store with a larger " \
	"burst, set `limits: {max_bytes: 4000000}`. " \
	"`max_resources` is always 1. The responses 413, `exceeds the size limit`, `payload " \
	"size exceeds limit`, and a 429 to a request larger than the burst reduce the size " \
	"of later requests.\n\n" \
	"| Response | Result |\n" \
	"|---|---|\n" \
	"| 2xx, complete | sent |\n" \
	"| none, or incomplete; 429, 502, 503, 504; 409 unless `idempotency_key` is off | retried; " \
	"`Retry-After` of 429 and 503 is honoured |\n" \
	"| 413, and the messages above | split into smaller parts and retried |\n" \
	"| any other | dropped |\n\n" \
	"**Unsupported by the store**, and counted in `otelcol_exporter_unsupported_items`: timestamps of samples, " \
	"columns of lines, `doc_url`, profile IDs, names of scopes, attributes of mappings and locations that have no pprof " \
	"field, samples with the value 0, samples whose stack has no frames (`empty_stack`; the store drops them), " \
	"negative values (1.12 keeps one next to a positive value of the same sample; newer " \
	"versions drop the whole sample, so it is sent as two samples and the positive value is kept), and addresses of " \
	"symbolised mappings. Numeric labels of samples are unsupported too (`numeric_sample_labels` converts them to " \
	"strings); they are counted with the labels. " \
	"The store keeps the labels `profile_id` and `span_id`, but does not show them. Stacks deeper " \
	"than `max_stack_depth` are truncated at the root by the exporter, because the store would truncate them at the " \
	"leaf.\n"
/* clang-format on */

#endif
