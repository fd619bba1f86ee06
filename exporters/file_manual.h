/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_FILE_MANUAL_H
#define EXPORTERS_FILE_MANUAL_H

/* The manual's text about the `file` exporter, in Markdown. */
#define FILE_MANUAL \
	"**Formats.** They are those of the Collector's `file` exporter. `json` is one " \
	"request per " \
	"line. `proto`, and both formats with `compression: zstd`, have no lines: each request, " \
	"compressed by itself, follows its length in 4 bytes, big-endian. The receiver " \
	"`otlp_json_file`, the Collector's and ours, reads `json` without compression only, " \
	"because it looks for ends of lines. The Collector's feature gate " \
	"`exporter.file.nativeCompression`, which compresses the file as a whole, does not " \
	"exist here.\n\n" \
	"**What a reader sees.** A request is written when it is acknowledged; nothing " \
	"is buffered. " \
	"Requests are never mixed. While one is being written, a reader may see its beginning at " \
	"the end of the file: it must wait for the end of the line, or for as many bytes as the " \
	"length says. If a write fails, its beginning is removed before anything else is " \
	"written. " \
	"A rotated file has whole requests only, and it appears under its name, which contains " \
	"the time, in one step; so does a pprof file. Only after a crash of the machine " \
	"or of the " \
	"gateway can a file end with an incomplete request: at the next start that file " \
	"is renamed " \
	"like a rotated one (with `append` or `rotation`), or emptied. With `fsync`, an " \
	"acknowledged request, the name of its file and that of a rotated file survive a power " \
	"failure.\n\n" \
	"SIGHUP reopens files, so another program can move them first. A file or directory that " \
	"was removed is created again. While the disk is full, packets are retried, as for a " \
	"destination that is down. A write that the kernel never completes (an unresponsive " \
	"network disk) delays this exporter only; a shutdown abandons it 5 s after its " \
	"deadline.\n\n" \
	"**Groups.** With `group_by`, `path` contains one `*`, which is replaced by the " \
	"value of the " \
	"resource attribute. A request becomes one record for each file. As in the Collector, a " \
	"value may contain `/`, which creates folders, and `.` and `..` are resolved without " \
	"leaving the directory: with `/data/*.json`, `a/b` is `/data/a/b.json`, and " \
	"`../etc/x` is " \
	"`/data/etc/x.json`. Values that lead to the same path share the file. A resource is " \
	"dropped, and counted in `otelcol_exporter_ungrouped_resources`, if\n\n" \
	"- it has no such attribute, or it is no string (`missing`);\n" \
	"- the value is empty after that, has control characters, more than 512 bytes, " \
	"more than 8 " \
	"names between slashes, or leads to a name of more than 200 bytes; or its file " \
	"could be a " \
	"rotated file, or one of its folders a file, of another value (`invalid`). With " \
	"a `*` at the " \
	"end of `path`, that is every value with a `/` in it;\n" \
	"- what has this path is a directory, a symbolic link or a file that may not be written, " \
	"or the file system does not allow the name (`unusable`);\n" \
	"- it would be one file more than `max_files` (`too_many_files`). This protects the disk " \
	"from senders that invent values.\n\n" \
	"`otelcol_exporter_file_groups` shows the number of files. Rotation applies to " \
	"each file by " \
	"itself, so up to `max_files` times (1 + `max_backups`) files can exist. A file that was " \
	"closed because of `max_open_files` is continued when it is opened again (the Collector " \
	"empties it). After another program has moved files, those that are closed at " \
	"that moment " \
	"are created again at once, and the others after SIGHUP.\n\n" \
	"**pprof.** The name of a pprof file is the time of writing and a counter. Without " \
	"`rotation` the newest 10000 are kept, up to 1024 MiB; `rotation: {max_backups: 0, " \
	"max_total_megabytes: 0}` keeps all. Items of profiles that pprof cannot represent are " \
	"counted in `otelcol_exporter_unsupported_items`.\n\n"

#endif
