#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints a C file with the commit of the sources and its date, for `portcullis --version`. Both are the same on every machine:
# SOURCE_DATE_EPOCH overrides the date, and PORTCULLIS_COMMIT the commit where there is no git (in a container's build).
set -eu
# shellcheck disable=SC2016 # git archive replaces the text in quotes (.gitattributes)
archived='$Format:%h %ct$'
commit=unknown epoch=
cd "$(dirname "$0")/.."
case $archived in
*Format*)
	if [ -e .git ] && commit=$(git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null); then
		epoch=$(git log -1 --format=%ct)
	else
		commit=unknown
	fi
	;;
*)
	commit=${archived% *} epoch=${archived#* }
	;;
esac
commit=${PORTCULLIS_COMMIT:-$commit}
epoch=${SOURCE_DATE_EPOCH:-$epoch}
date=unknown
[ -z "$epoch" ] || date=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
printf '#include "gateway/build_info.h"\n\nconst char build_info_commit[] = "%s";\nconst char build_info_date[] = "%s";\n' \
	"$commit" "$date"
