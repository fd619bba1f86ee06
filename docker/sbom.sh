#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes a software bill of materials of the program (SPDX 2.3, JSON): its version, and the Debian packages of the libraries
# that it maps and of the further files given.
# usage: docker/sbom.sh BINARY [FILE...] >portcullis.spdx.json
set -eu
binary=$1
shift
# shellcheck source=/dev/null
distribution=$(. /etc/os-release && echo "$ID $VERSION_ID")
# The linker names libraries in /lib, which is a link to /usr/lib; packages may name either.
either() {
	for file in "$@"; do
		file=${file#/usr}
		echo "$file" "/usr$file"
	done
}

# shellcheck disable=SC2046 # lists of words
list_packages() {
	set -- "$@" $(ldd "$binary" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\).*/\1/p')
	found=$(dpkg-query -S $(either "$@") 2>/dev/null | sed -n 's/^\([^ ]*\): \(\/usr\)*\//\1 \//p')
	for file in "$@"; do
		echo "$found" | grep -q " ${file#/usr}\$" || { echo "$0: no package has $file" >&2; return 1; }
	done
	echo "$found" | sed 's/ .*//' | sort -u
}

# What a package's copyright file, if a program can read it, says of "Files: *"; in Debian's words.
licence_of() {
	awk '/^Files:/ { all = $2 == "*" } /^License:/ && all { sub(/^License: */, ""); print; exit }' \
		"/usr/share/doc/${1%:*}/copyright" 2>/dev/null || true
}

# A line each: name, version, architecture, source, source version, licence.
describe() {
	for package in "$@"; do
		dpkg-query -W -f '${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t' "$package"
		licence_of "$package" | grep . || echo
	done
}

packages=$(list_packages "$@")
# shellcheck disable=SC2086 # a list of words
describe $packages | awk -F '\t' \
	-v version="$("$binary" --version | sed -n '1s/.* //p')" -v digest="$(sha256sum "$binary" | cut -d ' ' -f 1)" \
	-v created="$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%dT%H:%M:%SZ)" -v distribution="$distribution" '
BEGIN {
	split("Apache-2.0 ISC curl MIT=MIT Expat=MIT Zlib=Zlib zlib=Zlib BSD-2-clause=BSD-2-Clause BSD-3-clause=BSD-3-Clause " \
	      "GPL-1=GPL-1.0-only GPL-2=GPL-2.0-only GPL-2.0=GPL-2.0-only GPL-3=GPL-3.0-only LGPL-2.1=LGPL-2.1-only " \
	      "LGPL-3=LGPL-3.0-only GPL-1+=GPL-1.0-or-later GPL-2+=GPL-2.0-or-later GPL-2.0+=GPL-2.0-or-later " \
	      "GPL-3+=GPL-3.0-or-later GPL-3.0+=GPL-3.0-or-later LGPL-2+=LGPL-2.0-or-later LGPL-2.1+=LGPL-2.1-or-later " \
	      "LGPL-3+=LGPL-3.0-or-later LGPL-3.0+=LGPL-3.0-or-later MPL-2.0=MPL-2.0 PSF-2=PSF-2.0 " \
	      "or=OR and=AND", known, " ")
	for (i in known) {
		split(known[i], pair, "=")
		spdx[pair[1]] = pair[2] ? pair[2] : pair[1]
	}
	split(distribution, os, " ")
	printf "{\"spdxVersion\":\"SPDX-2.3\",\"dataLicense\":\"CC0-1.0\",\"SPDXID\":\"SPDXRef-DOCUMENT\",\"name\":\"portcullis-%s\",\n", version
	printf "\"documentNamespace\":\"https://portcullis.invalid/spdx/portcullis-%s-%s\",\n", version, digest
	printf "\"creationInfo\":{\"created\":\"%s\",\"creators\":[\"Tool: docker/sbom.sh\"],", created
	printf "\"comment\":\"licenseDeclared is what Debian\x27s copyright files say of Files: *.\"},\n\"packages\":[\n"
	package("portcullis", "portcullis", version, "Apache-2.0", "NOASSERTION", "APPLICATION")
	printf ",\"checksums\":[{\"algorithm\":\"SHA256\",\"checksumValue\":\"%s\"}]}", digest
	relations = relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-portcullis")
}

function package(id, name, version, licence, supplier, purpose) {
	printf "{\"SPDXID\":\"SPDXRef-%s\",\"name\":\"%s\",\"versionInfo\":\"%s\",\"supplier\":\"%s\",", id, name, version, supplier
	printf "\"downloadLocation\":\"NOASSERTION\",\"filesAnalyzed\":false,\"primaryPackagePurpose\":\"%s\",", purpose
	printf "\"licenseConcluded\":\"NOASSERTION\",\"licenseDeclared\":\"%s\",\"copyrightText\":\"NOASSERTION\"", licence
}

function relation(from, what, to) {
	return sprintf("{\"spdxElementId\":\"%s\",\"relationshipType\":\"%s\",\"relatedSpdxElement\":\"%s\"}", from, what, to)
}

# What has no identifier in SPDX, or is no expression of such, is not asserted.
function declared(licence, words, count, i, expression) {
	count = split(licence, words, " ")
	for (i = 1; i <= count; i++) {
		if (!(words[i] in spdx) || (words[i] ~ /^(or|and)$/) != (i % 2 == 0))
			return "NOASSERTION"
		expression = expression (i > 1 ? " " : "") spdx[words[i]]
	}
	return count % 2 ? expression : "NOASSERTION"
}

# As a package URL wants it.
function escaped(text) {
	gsub(/%/, "%25", text)
	gsub(/\+/, "%2B", text)
	gsub(/:/, "%3A", text)
	return text
}

{
	id = $1 "-" $3
	gsub(/[^A-Za-z0-9.-]/, "-", id)
	printf ",\n"
	package(id, $1, $2, declared($6), "Organization: Debian", "LIBRARY")
	printf ",\"sourceInfo\":\"built from %s %s\",\"externalRefs\":[{\"referenceCategory\":\"PACKAGE-MANAGER\",", $4, $5
	printf "\"referenceType\":\"purl\",\"referenceLocator\":\"pkg:deb/%s/%s@%s?arch=%s&distro=%s-%s\"}]}", os[1], escaped($1), \
		escaped($2), $3, os[1], os[2]
	relations = relations ",\n" relation("SPDXRef-portcullis", "DEPENDS_ON", "SPDXRef-" id)
}

END { printf "\n],\n\"relationships\":[\n%s\n]}\n", relations }
'
