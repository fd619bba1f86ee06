# SPDX-License-Identifier: Apache-2.0
"""Strings through the running program: what its policy makes of each, and what was removed.

Every string travels in one OTLP request, at the site of its role: attribute of a sample, function name, file of a function,
file of a mapping. Each policy is a pipeline of its own in one program and writes its own file; the strings are found again by
what no policy changes (the key of the attribute, the line of the function, the address of the mapping).
"""
import re
import subprocess

from harness import build, otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 256}}}
processors:
%s
exporters:
%s
service:
  pipelines:
%s
"""
MASKS = re.compile(r"\*\*\*\*|\*")


def detectors(binary):
    """The names of the program's own table, in its order."""
    manual = subprocess.run([binary, "components", "pii"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"`detectors\.(\w+)`", manual)


def on_by_default(binary):
    """Of these, those that `pii: {}` runs."""
    manual = subprocess.run([binary, "components", "pii"], capture_output=True, text=True, check=True).stdout
    off = re.findall(r"^\| `detectors\.(\w+)` \|[^|\n]*absent until", manual, re.M)
    return [name for name in detectors(binary) if name not in off]


def sites(binary):
    """(site, role) of all strings without a key."""
    manual = subprocess.run([binary, "components", "pii"], capture_output=True, text=True, check=True).stdout
    return [(site, role) for role, row in re.findall(r"^\| `(\w+)` \|((?: `[\w.]+`)+) \|$", manual, re.M)
            for site in re.findall(r"`([\w.]+)`", row)]


def alone(names, name):
    """The policy with one detector."""
    off = ["%s: {enabled: false}" % other for other in names if other != name]
    return "{normalize_paths: false, detectors: {%s}}" % ", ".join(["%s: {}" % name, *off])


def request(entries):
    """One message of entries with .text and .role; its samples are as many."""
    m = build.Maker()
    p = m.profile(m.scope(m.resource()))
    for i, entry in enumerate(entries):
        function, mapping, attributes = 0, 0, []
        if entry.role in ("value", "integer"):
            value = int(entry.text) if entry.role == "integer" else entry.text
            attributes = [m.attribute("k%d" % i, value)]
        elif entry.role == "mapping":
            mapping = m.mapping(entry.text, start=i << 12, limit=(i + 1) << 12)
        else:
            function = m.function(*(entry.text, "") if entry.role == "function" else ("f", entry.text), start_line=i)
        location = m.location([function] if function else [], address=(i << 12) + 1, mapping=mapping)
        p.samples.add(stack_index=m.stack([location]), values=[1], attribute_indices=attributes)
    return m.message.SerializeToString()


def _value(value, strings):
    kind = value.WhichOneof("value")
    if kind == "string_value_strindex":
        return strings[value.string_value_strindex]
    return getattr(value, kind) if kind else ""


def strings(entries, data):
    """Of each entry what became of it: a string, an integer, or None where the whole attribute is gone."""
    d = otlp.parse(data).dictionary
    found = [None] * len(entries)
    for a in d.attribute_table:
        key = re.fullmatch(r"k(\d+)", d.string_table[a.key_strindex])
        if key:
            found[int(key[1])] = _value(a.value, d.string_table)
    for mapping in d.mapping_table[1:]:
        found[mapping.memory_start >> 12] = d.string_table[mapping.filename_strindex]
    for f in d.function_table[1:]:
        name = f.name_strindex if entries[f.start_line].role == "function" else f.filename_strindex
        found[f.start_line] = d.string_table[name]
    return found


def through(binary, entries, policies):
    """{name: [what each entry became]} of {name: the text of a pii section}."""
    rows = [[line % {"n": name, "p": text} for name, text in policies.items()] for line in (
        "  pii/%(n)s: %(p)s", "  file/%(n)s: {path: %(n)s.binpb, format: proto}",
        "    profiles/%(n)s: {receivers: [otlp], processors: [pii/%(n)s], exporters: [file/%(n)s]}")]
    with Gateway(binary, CONFIG % tuple(map("\n".join, rows))) as gateway:
        with peers.Client(gateway.port["otlp"]) as client:
            answer = client.send(request(entries))
            assert not answer.HasField("partial_success"), answer
        assert gateway.stop() == 0, gateway.log()
        out = {name: list(otlp.framed((gateway.directory / (name + ".binpb")).read_bytes())) for name in policies}
    assert all(len(frames) == 1 for frames in out.values())
    return {name: strings(entries, frames[0]) for name, frames in out.items()}


def spans(entry, became):
    """What the program removed of an entry."""
    return removed(int(entry.text) if entry.role == "integer" else entry.text, became)


def removed(text, became):
    """[(start, end)] of what a mask replaced in the string; all of it if nothing tells where."""
    if became == text:
        return []
    text = str(text)
    if not isinstance(became, str):
        return [(0, len(text))]
    kept = MASKS.split(became)
    found = re.fullmatch("(.*?)".join(map(re.escape, kept)), text, re.S)
    if not found:
        return [(0, len(text))]
    return [span for span in (found.span(i + 1) for i in range(len(kept) - 1)) if not MASKS.fullmatch(text[slice(*span)])]


def caught(entry, spans, kind=None):
    """Is everything gone that must go, of one kind or of all?"""
    return all(any(low <= span.start and span.end <= high for low, high in spans)
               for span in entry.spans if kind in (None, span.kind))


def spoilt(entry, spans):
    """What was removed and should have stayed."""
    return [(start, end) for start, end in spans if not entry.allowed(start, end)]
