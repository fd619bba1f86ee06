#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing of the Debian packages listed in the given files; says the exact command where it may not.
set -eu
here=$(dirname "$0")
missing=
for list in "$@"; do
	while read -r package; do
		status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
		[ "$status" = "install ok installed" ] || missing="$missing $package"
	done <"$here/packages-$list.txt"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
	echo "These Debian packages are missing. Run this, then try again:" >&2
	echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends$missing" >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
echo "installing:$missing"
apt-get update -q
# shellcheck disable=SC2086 # a list of words
apt-get install -y -q --no-install-recommends $missing
