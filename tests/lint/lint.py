#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The house rules that a program can check: layers, wrappers of libraries, banned calls, lengths, complexity, language."""
import pathlib
import re
import subprocess
import sys

import language

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# A folder may include itself and these (docs/ARCHITECTURE.md, "Folders"). Components come last: they may include all that
# the gateway may, and never each other.
PROFILE = ["profile", "profile/otlp", "profile/pprof", "profile/text", "profile/collect", "profile/stores"]
NET = ["net", "net/tls", "net/http", "net/h2", "net/grpc", "net/kafka"]
PIPELINE = ["pipeline", "pipeline/storage", "pipeline/delivery", "pipeline/intake", "pipeline/graph"]
BELOW = ["base", "config", *PROFILE, *NET]
LAYERS = {
    "base": [],
    "profile": ["base"],
    "profile/otlp": ["base", "profile"],
    "profile/pprof": ["base", "profile", "profile/otlp"],
    "profile/text": ["base", "profile"],
    "profile/collect": ["base", "profile", "profile/otlp"],
    "profile/stores": ["base", *PROFILE],
    "config": ["base"],
    "net": ["base", "config", "profile"],
    "net/tls": ["base", "config", "net"],
    "net/http": ["base", "config", "profile", "net", "net/tls", "net/h2"],
    "net/h2": ["base", "config", "profile", "net", "net/tls", "proto"],
    "net/grpc": ["base", "config", "profile", "net", "net/tls", "proto"],
    "net/kafka": ["base", "config", "net", "net/tls"],
    "pipeline": ["base", "config", "net", "profile", "profile/collect"],
    "pipeline/storage": ["base"],
    "pipeline/delivery": [*BELOW, "pipeline", "pipeline/storage", "proto"],
    "pipeline/intake": [*BELOW, "pipeline", "pipeline/delivery"],
    "pipeline/graph": ["base", "config", "pipeline", "pipeline/storage", "pipeline/delivery", "pipeline/intake"],
    "receivers": [*BELOW, "pipeline", "pipeline/intake", "proto"],
    "processors": ["base", "config", "profile", "pipeline"],
    "exporters": [*BELOW, "pipeline", "pipeline/delivery", "proto"],
    "connectors": ["base", "config", "profile", "pipeline"],
    "extensions": [*BELOW, "pipeline", "pipeline/storage"],
    "gateway": [*BELOW, *PIPELINE],
}
COMPONENTS = ("receivers", "processors", "exporters", "connectors", "extensions")

# Foreign header -> the files that may include it.
WRAPPERS = {
    r"grpc/": r"net/grpc/\w+\.[ch]",
    r"librdkafka/": r"(net/kafka/\w+|tests/support/kafka_tool)\.[ch]",
    r"nghttp2/": r"net/h2/\w+\.[ch]",
    r"yaml\.h": r"config/yaml\.c",
    r"uv\.h": r"net/((loop|io)\.c|h2/\w+\.[ch])",
    r"microhttpd\.h": r"net/http/\w+\.[ch]",
    r"curl/": r"net/http/http_(attempt|call|cause|check|client|connection|cookies|curl)\.[ch]",
    r"zstd\.h|libdeflate\.h|isa-l/igzip": r"net/(compress|deflate_codes)\.c",
    r"snappy-c\.h|isa-l/crc": r"net/compress_snappy\.c",
    r"lz4\w*\.h": r"net/compress_lz4\.c",
    r"pcre2\.h": r"processors/regex\.c",
    r"xxhash\.h": r"base/hash\.c",
    r"yajl/": r"tests/fuzz/fuzz_tokens\.h",
    r"lmdb\.h": r"pipeline/storage/database\.c",
    r"gnutls/": r"net/(http/\w+|tls/tls)\.[ch]",
    r"crypt\.h": r"extensions/htpasswd\.c",
    r"openssl/": r"(net/tls/\w+|base/digest)\.[ch]",
    r"elfutils/|libunwind\.h": r"extensions/\w+\.[ch]",
}

BANNED = r"\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|atof|alloca|system|popen|mktemp|tmpnam)\s*\("
ALLOCATOR = r"(?<![\w.>])(malloc|calloc|realloc|free|strdup|strndup|asprintf)\s*\("
# Unfinished work, and paths of the machine where it was written, have no place in a file: of this checkout, and of what
# stands beside it where that is no directory that every machine has.
EVERYWHERE = {"home", "opt", "root", "srv", "tmp", "usr", "var"}
PLACES = {re.escape(str(ROOT)), "" if ROOT.parts[1] in EVERYWHERE else "/%s/" % re.escape(ROOT.parts[1])} - {""}
WORDS = r"\b(TODO|FIXME|XXX|HACK)\b|" + "|".join(PLACES)

FUNCTION_LINES_MAX, FUNCTION_P50, FUNCTION_P90 = 80, 12, 40
COMPLEXITY_MAX, COMPLEXITY_P90 = 20, 8
FILE_LINES_MAX, LINE_COLUMNS_MAX = 600, 100
WORD_MIN = 60  # a string without blanks, a generated name


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in out.stdout.splitlines()]


def relative(path):
    return str(path.relative_to(ROOT))


def folder(name):
    """The folder of a file or of an included name; what stands alone is generated."""
    return name.rpartition("/")[0] or "proto"


def component_of(name, components):
    """pii_scan.h and pii.c are parts of the component pii: the longest name of a component that the file's begins with."""
    stem = pathlib.PurePath(name).stem
    return max((c for c in components if stem == c or stem.startswith(c + "_")), key=len, default=None)


def components_in(layer):
    """The components of a folder: the files that define a factory."""
    return {p.stem for p in (ROOT / layer).glob("*.c")
            if re.search(r"^const struct component_factory \w+ = ", p.read_text(), re.M)}


def check_includes(path, text, components):
    name, layer = relative(path), folder(relative(path))
    if layer not in LAYERS and not name.startswith("tests/"):
        yield "%s: %s is no folder of the house" % (name, layer)
    ours = component_of(name, components.get(layer, ()))
    for quoted, angled in re.findall(r'^#include (?:"([^"]+)"|<([^>]+)>)', text, re.M):
        if quoted and "/" not in quoted and not quoted.endswith(".pb-c.h"):
            yield "%s: include from the root: %s" % (name, quoted)
        target = folder(quoted) if quoted else None
        if layer in LAYERS and target and target != layer and target not in LAYERS[layer]:
            yield "%s: %s may not include %s" % (name, layer, quoted)
        theirs = component_of(quoted, components.get(layer, ())) if target == layer else None
        if ours and theirs and ours != theirs:
            yield "%s: a component may not include another's header: %s" % (name, quoted)
        for header, wrapper in WRAPPERS.items():
            if layer in LAYERS and re.match(header, quoted or angled) and not re.fullmatch(wrapper, name):
                yield "%s: only %s may include %s" % (name, wrapper, quoted or angled)


def strip_comments(text):
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda m: "\n" * m[0].count("\n"), text, flags=re.S)


def check_text(path, text):
    layer = folder(relative(path))
    code = strip_comments(text)
    if "SPDX-License-Identifier: Apache-2.0" not in text[:200]:
        yield "%s: no SPDX line" % relative(path)
    for number, line in enumerate(code.splitlines(), 1):
        if re.search(BANNED, line):
            yield "%s:%d: banned call: %s" % (relative(path), number, line.strip())
        if layer in LAYERS and relative(path) != "base/memory.c" and re.search(ALLOCATOR, line):
            yield "%s:%d: allocate through base/memory.h: %s" % (relative(path), number, line.strip())
    for number, line in enumerate(text.splitlines(), 1):
        if line.rstrip() != line:
            yield "%s:%d: blanks at the end" % (relative(path), number)


def check_columns(path, text):
    """Nothing breaks a long word; what clang-format leaves alone is a table."""
    table = False
    for number, line in enumerate(text.splitlines(), 1):
        table = "clang-format off" in line or table and "clang-format on" not in line
        if len(line.expandtabs(8)) > LINE_COLUMNS_MAX and not table and max(map(len, line.split())) < WORD_MIN:
            yield "%s:%d: over %d columns" % (relative(path), number, LINE_COLUMNS_MAX)


def check_language(path, text):
    """Strings of the program and prose of docs keep to the glossary. The reference consists of strings of the program."""
    if folder(relative(path)) in LAYERS:
        found = language.in_c(text)
    elif path.suffix == ".md" and relative(path) != "docs/manual/reference.md":
        found = language.in_markdown(text)
    else:
        return
    for line, message in found:
        yield "%s:%d: %s" % (relative(path), line, message)


def check_layout(paths):
    """make format would change nothing."""
    run = subprocess.run(["clang-format-14", "--dry-run", *map(str, paths)], cwd=ROOT, capture_output=True, text=True,
                         check=True)
    places = sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning: code should be clang-formatted", run.stderr, re.M)))
    return ["%s: not formatted: make format" % relative(pathlib.Path(place)) for place in places]


def check_length(path, text):
    lines = text.count("\n")
    if path.suffix == ".c" and lines > FILE_LINES_MAX:
        yield "%s: %d lines, more than %d" % (relative(path), lines, FILE_LINES_MAX)


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0


def functions(paths):
    """(place, lines) of every function, by ctags."""
    run = subprocess.run(["ctags", "-L", "-", "--fields=+neK", "--c-kinds=f", "-f", "-"], cwd=ROOT, text=True,
                         input="\n".join(relative(p) for p in paths), capture_output=True, check=True)
    for line in run.stdout.splitlines():
        fields = dict(f.split(":", 1) for f in line.split("\t")[3:] if ":" in f)
        if "line" in fields and "end" in fields:
            name, file = line.split("\t")[:2]
            yield "%s:%s %s" % (file, fields["line"], name), int(fields["end"]) - int(fields["line"]) + 1


def check_names(paths):
    """A static library lets two functions have one name, and whoever links takes either."""
    run = subprocess.run(["ctags", "-L", "-", "--c-kinds=f", "-x", "--_xformat=%N %{file} %F"],
                         cwd=ROOT, text=True, input="\n".join(relative(p) for p in paths), capture_output=True, check=True)
    seen = {}
    for name, scope, file in (line.split(" ") for line in run.stdout.splitlines()):
        if scope != "file":
            if name in seen:
                yield "%s: %s is in %s too" % (file, name, seen[name])
            seen.setdefault(name, file)


def complexities(paths):
    """(place, complexity) of every function, by pmccabe."""
    run = subprocess.run(["pmccabe", *[relative(p) for p in paths]], cwd=ROOT, text=True, capture_output=True,
                         check=True)
    for line in run.stdout.splitlines():
        fields = line.split("\t")
        if len(fields) >= 6:
            yield fields[5].strip(), int(fields[1])


def check_shape(what, measured, p50, p90, most):
    values = [v for _, v in measured]
    print("%s: %d functions, p50 %d, p90 %d, most %d" % (
        what, len(values), percentile(values, .5), percentile(values, .9), max(values, default=0)))
    for place, value in measured:
        if value > most:
            yield "%s: %s %d, more than %d" % (place, what, value, most)
    if p50 and percentile(values, .5) > p50:
        yield "%s: median %d, more than %d" % (what, percentile(values, .5), p50)
    if percentile(values, .9) > p90:
        yield "%s: 90th percentile %d, more than %d" % (what, percentile(values, .9), p90)


def main():
    wrong = []
    sources = [p for p in tracked("*.c", "*.h") if p.exists()]
    product = [p for p in sources if p.suffix == ".c" and folder(relative(p)) in LAYERS]
    components = {layer: components_in(layer) for layer in COMPONENTS}
    for path in sources:
        text = path.read_text()
        wrong += check_includes(path, text, components)
        wrong += check_text(path, text)
        wrong += check_length(path, text)
        wrong += check_columns(path, text)
    for path in [*sources, *tracked("*.md")]:
        wrong += check_language(path, path.read_text())
    for path in tracked("."):
        if path.suffix in (".c", ".h", ".py", ".sh", ".md", ".yaml", "") and path.is_file() and path != pathlib.Path(__file__):
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if re.search(WORDS, line):
                    wrong.append("%s:%d: %s" % (relative(path), number, re.search(WORDS, line)[0]))
    wrong += check_shape("length", list(functions(product)), FUNCTION_P50, FUNCTION_P90, FUNCTION_LINES_MAX)
    wrong += check_shape("complexity", list(complexities(product)), 0, COMPLEXITY_P90, COMPLEXITY_MAX)
    wrong += check_names(product)
    wrong += check_layout(sources)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
