#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stages the image's root filesystem: the program, the libraries that it maps, CA certificates, a user, and a bill of
# materials. No shell.
# usage: docker/stage.sh BINARY DIRECTORY
set -eu
binary=$1
root=$2
mkdir -p "$root/usr/bin" "$root/etc/ssl/certs" "$root/etc/portcullis" "$root/tmp" "$root/var/lib/portcullis" "$root/usr/share/sbom"
extra=
cp "$binary" "$root/usr/bin/portcullis"
ldd "$binary" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\).*/\1/p' | sort -u |
	while read -r library; do
		mkdir -p "$root$(dirname "$library")"
		cp -L "$library" "$root$library"
	done
# Names are resolved through these, which ldd does not see.
for library in libnss_files.so.2 libnss_dns.so.2 libresolv.so.2; do
	path=$(ldconfig -p | sed -n "s/.*$library .*=> //p" | head -n 1)
	[ -z "$path" ] || { mkdir -p "$root$(dirname "$path")"; cp -L "$path" "$root$path"; extra="$extra $path"; }
done
if [ -f /etc/ssl/certs/ca-certificates.crt ]; then
	cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
	extra="$extra /usr/share/ca-certificates"
fi
echo 'portcullis:x:65532:65532::/var/lib/portcullis:/nonexistent' >"$root/etc/passwd"
echo 'portcullis:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
# shellcheck disable=SC2086 # a list of words
"$(dirname "$0")/sbom.sh" "$binary" $extra >"$root/usr/share/sbom/portcullis.spdx.json"
cp "$(dirname "$0")/image.yaml" "$root/etc/portcullis/gateway.yaml"
chown -R 65532:65532 "$root/var/lib/portcullis" 2>/dev/null || true
chmod 1777 "$root/tmp"
