/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_OTLP_MANUAL_H
#define RECEIVERS_OTLP_MANUAL_H

/* The manual's text about the receiver otlp. */
/* clang-format off */
#define OTLP_MANUAL \
	"#### gRPC\n\n" \
	"Messages may be uncompressed, or compressed with gzip, deflate, snappy or zstd. gzip, zstd and framed snappy are " \
	"recognised by their first bytes, regardless of `grpc-encoding`; deflate and raw snappy by `grpc-encoding`. " \
	"`max_recv_msg_size_mib` limits a message both as sent and decompressed. A message must arrive within 60 s of its " \
	"headers.\n\n" \
	"Where possible, requests are refused before their body is read: with UNAVAILABLE and RetryInfo when memory is short or " \
	"all queues are full. If memory becomes short while a message arrives, the request is first paused for up to two " \
	"seconds. INVALID_ARGUMENT names the field that cannot be decoded. If only some Profiles of a request cannot be " \
	"decoded, the response is OK with `partial_success`.\n\n" \
	"With `tls`, clients must offer `h2` in ALPN.\n\n" \
	"The same port answers `grpc.health.v1.Health/Check` and `Watch`.\n\n" \
	"#### HTTP\n\n" \
	"`POST` to one of `profiles_url_paths` accepts a request in protobuf (`Content-Type: application/x-protobuf`) or in " \
	"JSON (`application/json`), in every encoding of `compression_algorithms`. With `Content-Encoding: snappy`, raw and " \
	"framed snappy are accepted. `deflate` is the format of zlib; a stream without its header is accepted too. " \
	"`max_request_body_size` limits a body both as sent and decompressed. The protobuf that JSON is translated to may be " \
	"four times as large.\n\n" \
	"Responses have the encoding of the request. Errors are `google.rpc.Status`.\n\n" \
	"| Status | When |\n|---|---|\n" \
	"| 200 | accepted; `partial_success` reports Profiles that could not be decoded |\n" \
	"| 400 | the body cannot be decoded, and the message names the field; or `compression_algorithms` does not list the " \
	"Content-Encoding |\n" \
	"| 404, 405 | another path or method (plain text) |\n" \
	"| 413 | larger than `max_request_body_size`, as sent or decompressed |\n" \
	"| 415 | another media type (plain text) |\n" \
	"| 431 | the headers exceed `max_header_bytes` or `max_header_count` (plain text) |\n" \
	"| 503 | memory or all queues are full, the sender has used up its share of the memory, or the gateway is shutting " \
	"down; `Retry-After` and RetryInfo say when to retry |\n\n" \
	"If memory becomes short while a body arrives, the receiver stops reading for one to three seconds before it refuses the " \
	"request.\n\n" \
	"#### Generations\n\n" \
	"The layout of OTLP profiles has changed in place several times. Requests in the layouts of 1.3 to 1.9 are translated " \
	"into the current one (1.10 and newer), over gRPC and over HTTP in protobuf, without loss of samples, values, timestamps, " \
	"attributes and links. Both service names are served over gRPC, `v1development` and `v1experimental`; the content of a " \
	"request decides, not its path. `otelcol_receiver_otlp_requests` counts requests by generation. [INTEROP.md](../INTEROP.md#generations-of-otlp) " \
	"has the tested combinations.\n\n" \
	"Some requests do not show their generation, for example samples with only a stack, numbers in field 2 that are out of " \
	"range for the attribute table, and timestamps. If the operator has set `schema`, it decides. Otherwise the receiver uses " \
	"what the same sender has shown in earlier requests, unless it has shown several generations. If that does not decide " \
	"either, the request is rejected with INVALID_ARGUMENT (400).\n\n" \
	"The following table shows what becomes of fields that the current layout does not have.\n\n" \
	"| Older OTLP | becomes |\n|---|---|\n" \
	"| several sample types of a Profile (1.3 to 1.7) | one Profile each, as for pprof |\n" \
	"| `default_sample_type` (1.3 to 1.7) | scope attributes `pprof.scope.*`, in a scope of its own; that Profile is the first one |\n" \
	"| `aggregation_temporality` of a sample type (1.3 to 1.8) | Profile attribute `otlp.profile.aggregation_temporality`: `delta` or " \
	"`cumulative` |\n" \
	"| one total for several timestamps (1.3 to 1.7) | equal shares, the rest at the first timestamp; none if each is 1 |\n" \
	"| tables in each Profile, ranges of locations | one dictionary, stacks |\n" \
	"| `attribute_units` (1.3 to 1.7) | the unit of each attribute of the table |\n" \
	"| comments, `drop_frames`, `keep_frames`, `has_*`, `is_folded`, build IDs, labels | attributes as for pprof |\n" \
	"| type of a frame (1.3) | location attribute `profile.frame.type` |\n" \
	"| a location of 1.3 without `mapping_index` | a location of mapping 0, as 1.3 defines it |\n" \
	"| `original_payload`, `stacktrace_id_index`, IDs of table entries, the temporality of a period | left out |\n\n" \
	"#### Both\n\n" \
	"A request without samples is accepted, and counted in `otelcol_receiver_empty_requests`.\n\n" \
	"During a shutdown, accepted requests have 10 s to finish, within `--shutdown-timeout`. New requests are refused.\n"
/* clang-format on */

#endif
