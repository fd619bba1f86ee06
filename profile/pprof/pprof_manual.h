/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PPROF_PPROF_MANUAL_H
#define PROFILE_PPROF_PPROF_MANUAL_H

/* The translation between pprof and OTLP as Markdown, for the manual of those that speak pprof. */
/* clang-format off */
#define PPROF_MANUAL \
	"How pprof and OTLP profiles become each other. pprof to OTLP to pprof, with " \
	"nothing between, changes only ids, the order of tables, and leaves out what " \
	"nothing refers to. The mapping that stood first, which viewers show as the " \
	"program's name, stands first again.\n\n" \
	"| pprof | OTLP |\n" \
	"|---|---|\n" \
	"| sample types | one Profile each, in one scope; each sample is in all of " \
	"them |\n" \
	"| `default_sample_type` | scope attribute `pprof.scope.default_sample_type`; " \
	"that Profile is the first, and `pprof.scope.sample_type_order` tells where " \
	"each type stood |\n" \
	"| label with a text | sample attribute, string |\n" \
	"| label with a number | sample attribute, integer with unit |\n" \
	"| several labels of one key | one attribute, an array in their order; a " \
	"number whose unit differs from the first one's is the pair [number, unit] |\n" \
	"| labels `trace_id` and `span_id`, both, once, lower-case hex of 16 and 8 " \
	"bytes | Link |\n" \
	"| `comment` | Profile attribute `pprof.profile.comment`, an array of strings " \
	"(on the way back also `pprof.profile.comment.0` ...) |\n" \
	"| `drop_frames`, `keep_frames`, `doc_url` | Profile attributes " \
	"`pprof.profile.*`, unless empty |\n" \
	"| mapping: `has_*` | mapping attributes `pprof.mapping.has_*` where true; a " \
	"mapping without any of them gets on the way back what its lines show |\n" \
	"| mapping: the first of several, which is the program's own | mapping attribute " \
	"`pprof.mapping.is_main` |\n" \
	"| mapping: `build_id` | `process.executable.build_id.gnu`, or `.go` when it " \
	"has Go's form; on the way back `.gnu`, else `.htlhash`, else `.go` |\n" \
	"| location: `is_folded` | location attribute `pprof.location.is_folded` |\n" \
	"| times, period, period type | the same fields of every Profile |\n\n" \
	"From OTLP to pprof: neighbouring Profiles of a scope with equal times, " \
	"period, attributes and the same sequence of stacks, attributes and links " \
	"become the sample types of one pprof, until a type repeats. Several values of " \
	"a sample are added, timestamps without values count 1 each. Attributes of " \
	"other types become text. pprof has no place for timestamps, profile ids, " \
	"resources, scopes and other attributes.\n"
/* clang-format on */

#endif
