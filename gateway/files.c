/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/system.h"

bool files_read(const char *path, struct bytes *out, struct error *err)
{
	bool standard = !strcmp(path, "-");
	FILE *file = standard ? stdin : fopen(path, "re");
	uint8_t part[65536];
	size_t got;
	if (!file)
		return error_set(err, ERROR_CONFIG, "cannot open %s: %m", path);
	while ((got = fread(part, 1, sizeof part, file)) > 0 && bytes_add(out, part, got))
		;
	int fault = ferror(file) ? errno : EFBIG;
	bool whole = feof(file);
	if (!standard)
		fclose(file);
	return (whole && bytes_reserve(out, 1)) ||
	       error_set(err, ERROR_CONFIG, "cannot read %s: %s", path, strerror(fault));
}

bool files_write(const char *path, struct view bytes, struct error *err)
{
	int fd = system_open_output(path, O_TRUNC, err);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return false;
	bool ok = fwrite(bytes.at, 1, bytes.len, file) == bytes.len;
	ok = fclose(file) == 0 && ok;
	return ok || error_set(err, ERROR_CONFIG, "cannot write %s: %m", path);
}
