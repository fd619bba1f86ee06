/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_PYROSCOPE_MANUAL_H
#define RECEIVERS_PYROSCOPE_MANUAL_H

/* The manual's text about the receiver pyroscope. */
/* clang-format off */
#define PYROSCOPE_RECEIVER_MANUAL \
	"Pyroscope's SDKs and Grafana Alloy send to this receiver as to Pyroscope itself: set their server address to " \
	"`http://HOST:4040`.\n\n" \
	"| Request | Body |\n" \
	"|---|---|\n" \
	"| `POST /ingest`, `POST /pyroscope/ingest` | one profile; the query names the series |\n" \
	"| `POST /push.v1.PusherService/Push` | `push.v1.PushRequest` over Connect, as `application/proto` or `application/json`, over HTTP/1.1 " \
	"or HTTP/2; gRPC and gRPC-Web are not supported |\n\n" \
	"A body may have a `Content-Encoding`. A profile may also be compressed itself with gzip or zstd, which is " \
	"recognised by its first bytes.\n\n" \
	"**`/ingest`** has the query parameters of Pyroscope:\n\n" \
	"| Parameter | Meaning |\n" \
	"|---|---|\n" \
	"| `name` | `service{key=value,key2=value2}`; required |\n" \
	"| `format` | see below |\n" \
	"| `from` | time of a profile that has none: Unix time in s, ms, µs or ns by its number of digits, `YYYYMMDD`, " \
	"`now-10s`; anything else is the time of arrival |\n" \
	"| `spyName` | becomes the attribute `pyroscope_spy`. `pyspy`, `rbspy`, `scripting`: functions are named by file " \
	"and name, as in Pyroscope; of `pyspy` only those whose file is not an absolute path. `dotnetspy`: `-` in sample types becomes `_` |\n" \
	"| `until`, `sampleRate` | for text formats: the end, and the samples per second (100 if absent); ignored for pprof, as in " \
	"Pyroscope |\n" \
	"| `units`, `aggregationType` and others | ignored, as in Pyroscope |\n\n" \
	"| `format` | Body |\n" \
	"|---|---|\n" \
	"| `pprof` | a pprof, whatever `Content-Type` says |\n" \
	"| absent, `Content-Type: multipart/form-data` | a form with the part `profile` (a pprof) and, optionally, " \
	"`sample_type_config`. A `prev_profile` that is not empty is an error |\n" \
	"| absent or another, such as `folded`, `groups` | stacks, `main;run;work 12` in each line; or a pprof, which is " \
	"recognised by its first bytes |\n" \
	"| `lines` | the same without numbers: each line counts 1 |\n" \
	"| `trie`, `tree` (or `Content-Type: binary/octet-stream+trie`, `+tree`) | Pyroscope's older binary forms |\n" \
	"| `speedscope` | speedscope's JSON. Weights in a unit of time become nanoseconds (Pyroscope 1.x ignores the unit and " \
	"multiplies the weights by 100) |\n" \
	"| `jfr` | not supported: 415 |\n\n" \
	"The others are text formats. They do not say what they measure, so the last part of the service in `name` does, as " \
	"in Pyroscope: `my.app.cpu`, `my.app.alloc_space`. A name without a dot is `cpu`. That part does not belong to " \
	"the service. If the name also has the label `service_name`, the rest becomes `app_name`.\n\n" \
	"**Java.** The Java agent sends `format=jfr` by default. It loses these profiles, because it does not repeat a " \
	"request that failed with 415. Its version 2.9 also has an OTLP mode, which the receiver `otlp` accepts: " \
	"[Point your agents here](agents.md#pyroscopes-agent-for-java).\n\n" \
	"**Labels become resource attributes** with the same key and value, so the policy applies to them. Labels inside the " \
	"pprof become attributes of its samples. The exporter `pyroscope` turns them back into the same labels:\n\n" \
	"| Label | Attribute |\n" \
	"|---|---|\n" \
	"| `service_name`; for `/ingest` without that label, the service in `name` | `service.name` |\n" \
	"| `__name__`; for `/ingest`, Pyroscope's name for the sample types and their `display-name`, or for the type of a " \
	"text format | `__name__` |\n" \
	"| `__delta__` | `__delta__`; `false` for `/ingest`, `true` for a pushed series without it, because the store " \
	"would compute differences |\n" \
	"| `__session_id__` | `__session_id__` |\n" \
	"| other labels that begin with `__` | as they are for `Push`; dropped for `/ingest`, as in Pyroscope |\n" \
	"| `spyName` | `pyroscope_spy` |\n" \
	"| a label `service.name` beside `service_name` | dropped |\n" \
	"| all others, such as `otel.scope.name` | the same key |\n\n" \
	"Dropped labels are counted in `otelcol_receiver_pyroscope_dropped_labels`. To get the same series as from a direct " \
	"write, permit `service.name`, `__name__`, `__delta__` and the labels that you want in `allowlist`. Without " \
	"`__name__`, the exporter derives the name from the sample types. Without `__delta__`, it applies its setting " \
	"`delta`. Names with dots arrive unchanged if the exporter has `labels: utf8`.\n\n" \
	"`RawSample.ID` and the annotations of a series are ignored.\n\n" \
	"| Status | `/ingest` | `Push` |\n" \
	"|---|---|---|\n" \
	"| 200 | accepted, or the body is empty; the response is empty | every profile was accepted |\n" \
	"| 400 | malformed query or `name`, or labels that exceed a limit | `invalid_argument`: some or all profiles were " \
	"rejected |\n" \
	"| 413 | larger than `max_request_body_size`, as sent or decompressed | the same, or more profiles than " \
	"`series_limits.max_profiles` (`invalid_argument`) |\n" \
	"| 415 | `format=jfr`, or another Content-Encoding | another media type or Content-Encoding (`unimplemented`) |\n" \
	"| 422 | malformed profile or form | |\n" \
	"| 431 | the headers exceed `max_header_bytes` or `max_header_count` | the same |\n" \
	"| 503 | memory or all queues are full, the sender has used up its share of the memory, or the gateway is shutting " \
	"down; `Retry-After` says when to retry | the same (`unavailable`) |\n\n" \
	"The body of an error is JSON: `{\"code\": \"invalid_argument\", \"message\": \"...\"}`. " \
	"Each profile of a `Push` is accepted or rejected by itself. If some are rejected, the response is an error that " \
	"says so, because a `PushResponse` cannot; the others stay accepted. `Push` would accept them again: do not repeat " \
	"a request that failed with 400. `otelcol_receiver_refused_profiles` counts the rejected ones.\n\n" \
	"During a shutdown, accepted requests have 10 s to finish, within `--shutdown-timeout`. New requests are refused.\n"
/* clang-format on */

#endif
