/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PPROF_PPROF_MANUAL_H
#define PROFILE_PPROF_PPROF_MANUAL_H

/* The translation between pprof and OTLP as Markdown, for the manuals of components that use it. */
/* clang-format off */
#define PPROF_MANUAL \
	"The following table shows how pprof and OTLP profiles are converted into each " \
	"other. The conversion from pprof to OTLP and back, with no processing in between, " \
	"changes only IDs and the order of tables, and omits entries that nothing " \
	"references. The first mapping, which viewers show as the program's name, remains " \
	"the first.\n\n" \
	"| pprof | OTLP |\n" \
	"|---|---|\n" \
	"| sample types | one Profile each, in one scope; each sample is in all of them |\n" \
	"| `default_sample_type` | scope attribute `pprof.scope.default_sample_type`; that " \
	"Profile is the first one, and `pprof.scope.sample_type_order` holds the original " \
	"position of each type |\n" \
	"| label with a string | sample attribute, string |\n" \
	"| label with a number | sample attribute, integer with unit |\n" \
	"| several labels with the same key | one attribute, an array in their order; a number " \
	"whose unit differs from that of the first becomes the pair [number, unit] |\n" \
	"| labels `trace_id` and `span_id`, both present once, as lower-case hex of 16 and 8 " \
	"bytes | Link |\n" \
	"| `comment` | Profile attribute `pprof.profile.comment`, an array of strings (on the " \
	"way back also `pprof.profile.comment.0` ...) |\n" \
	"| `drop_frames`, `keep_frames`, `doc_url` | Profile attributes `pprof.profile.*`, " \
	"unless empty |\n" \
	"| mapping: `has_*` | mapping attributes `pprof.mapping.has_*` if true; on the way " \
	"back, a mapping without any of them gets the flags that its lines show |\n" \
	"| mapping: the first of several, which is the program itself | mapping attribute " \
	"`pprof.mapping.is_main` |\n" \
	"| mapping: `build_id` | `process.executable.build_id.gnu`, or `.go` if it has Go's " \
	"form; on the way back `.gnu`, else `.htlhash`, else `.go` |\n" \
	"| location: `is_folded` | location attribute `pprof.location.is_folded` |\n" \
	"| times, period, period type | the same fields of every Profile |\n\n" \
	"From OTLP to pprof: adjacent Profiles of a scope become the sample types of one pprof, " \
	"until a type repeats, if their times, period and attributes are equal and they have " \
	"the same sequence of stacks, attributes and links. Several values of a sample are " \
	"added; timestamps without values count 1 each. Attributes of other types become " \
	"strings. pprof does not support timestamps, profile IDs, resources, scopes and other " \
	"attributes.\n"
/* clang-format on */

#endif
