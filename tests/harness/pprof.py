# SPDX-License-Identifier: Apache-2.0
"""The independent reader of pprof: protoc's own classes resolve every index and id, and say what OTLP must make of it."""
import collections
import re

import pprof_pb2

from harness import otlp
from harness.corpus import inflate
from harness.otlp import node

BUILD_ID_GO = re.compile(r"[0-9A-Za-z_/-]*/[0-9A-Za-z_/-]*")
FLAGS = ("has_functions", "has_filenames", "has_line_numbers", "has_inline_frames")


def parse(data):
    """Plain or compressed."""
    profile = pprof_pb2.Profile()
    profile.ParseFromString(inflate(data))
    return profile


class Reader:
    """Resolves the ids of one pprof; an id of 0 is the place in the table (.NET leaves them out)."""

    def __init__(self, profile, mark_main=False):
        """mark_main: a mapping says last whether it is the first of several."""
        self.profile, self.mark_main = profile, mark_main
        table = lambda entries: {e.id or n + 1: e for n, e in enumerate(entries)}
        self.functions = {i: self.function(f) for i, f in table(profile.function).items()}
        self.mappings = {i: self.mapping(m) for i, m in table(profile.mapping).items()}
        self.locations = {i: self.location(x) for i, x in table(profile.location).items()}

    def text(self, index):
        if index < 0:
            raise IndexError("string_table[%d]" % index)
        return self.profile.string_table[index] if index else ""

    def kind(self, t):
        return (self.text(t.type), self.text(t.unit))

    def function(self, f):
        return node(self.text(f.name), self.text(f.system_name), self.text(f.filename), f.start_line)

    def mapping(self, m):
        return node(m.memory_start, m.memory_limit, m.file_offset, self.text(m.filename), self.text(m.build_id),
                    *(getattr(m, flag) for flag in FLAGS),
                    *[len(self.profile.mapping) > 1 and m is self.profile.mapping[0]] * self.mark_main)

    def location(self, x):
        return node(
            self.mappings[x.mapping_id] if x.mapping_id else None, x.address, x.is_folded,
            tuple((self.functions[n.function_id] if n.function_id else None, n.line, n.column) for n in x.line))

    def stack(self, sample):
        return node(*(self.locations[i] for i in sample.location_id))

    def labels(self, sample):
        """{key: [text or (number, unit)]}, each key's in order."""
        found = collections.defaultdict(list)
        for x in sample.label:
            found[self.text(x.key)].append(self.text(x.str) if x.str else (x.num, self.text(x.num_unit)))
        return found


def resolve(profile):
    """Everything that the profile says, without an id or an index."""
    reader = Reader(profile)
    return {
        "sample types": [reader.kind(t) for t in profile.sample_type],
        "samples": [(reader.stack(s), tuple(s.value),
                     tuple(sorted((k, tuple(v)) for k, v in reader.labels(s).items()))) for s in profile.sample],
        "drop_frames": reader.text(profile.drop_frames),
        "keep_frames": reader.text(profile.keep_frames),
        "time": profile.time_nanos,
        "duration": profile.duration_nanos,
        "has period type": profile.HasField("period_type"),
        "period type": reader.kind(profile.period_type),
        "period": profile.period,
        "comments": [reader.text(i) for i in profile.comment],
        "default sample type": reader.text(profile.default_sample_type),
        "doc_url": reader.text(profile.doc_url),
    }


def values_of(reader, samples, place=0):
    """{stack: sum of the values}, a stack as its (function, file, line)s from the leaf, of what is not 0; a location
    without functions is ("", file of its mapping, address). Stores that regroup samples keep this."""
    found, known = collections.Counter(), {}
    for sample in samples:
        ids = tuple(sample.location_id)
        if ids not in known:
            known[ids] = node(*(frame for i in ids for frame in _frames(reader.locations[i])))
        if sample.value[place]:
            found[known[ids]] += sample.value[place]
    return found


def values(profile, place=0):
    """The same of a whole profile."""
    return values_of(Reader(profile), profile.sample, place)


def _frames(location):
    mapping, address, _, lines = location
    if not lines:
        return [node("", mapping[3] if mapping else "", address)]
    return [node(f[0], f[2], line) if f else node("", "", line) for f, line, _ in lines]


def check_tables(profile):
    """What Parca and the format itself demand of a writer."""
    assert profile.string_table[0] == ""
    for entries in (profile.mapping, profile.location, profile.function):
        assert [e.id for e in entries] == list(range(1, len(entries) + 1))


def check_equal(original, back):
    """Field by field, so that a failure names the field and not two whole profiles."""
    check_tables(back)
    was, now = resolve(original), resolve(back)
    for field in was:
        assert now[field] == was[field], field
    if _main_is_used(original):
        assert Reader(back).mapping(back.mapping[0]) == Reader(original).mapping(original.mapping[0])


def _main_is_used(profile):
    """Some sample leads to the first mapping. An id of 0 is the place in the table."""
    if not profile.mapping:
        return False
    locations = {x.id or n + 1: x for n, x in enumerate(profile.location)}
    return any(locations[i].mapping_id == (profile.mapping[0].id or 1) for s in profile.sample for i in s.location_id)


# ---- what OTLP makes of it (reference: the semantic conventions' registries pprof, process)

def _value(label):
    return ("int_value", repr(label[0])) if isinstance(label, tuple) else ("string_value", repr(label))


def _attribute(labels):
    """(value, unit) of all labels of one key: numbers with another unit than the first are pairs."""
    if len(labels) == 1:
        return _value(labels[0]), labels[0][1] if isinstance(labels[0], tuple) else ""
    unit = next((x[1] for x in labels if isinstance(x, tuple)), "")
    return ("array_value", tuple(
        ("array_value", (_value(x), ("string_value", repr(x[1])))) if isinstance(x, tuple) and x[1] != unit
        else _value(x) for x in labels)), unit


def _link(labels):
    """The ids of a Link, taken out of the labels where both stand in their one spelling."""
    ids = [labels.get(key, []) for key in ("trace_id", "span_id")]
    if any(len(x) != 1 for x in ids):
        return None
    for (text,), length in zip(ids, (32, 16)):
        if not isinstance(text, str) or not re.fullmatch("[0-9a-f]{%d}" % length, text) or not text.strip("0"):
            return None
    return tuple(bytes.fromhex(labels.pop(key)[0]) for key in ("trace_id", "span_id"))


def _mapping(m):
    if m is None:
        return None
    start, limit, offset, filename, build_id, *flags = m
    attributes = {"pprof.mapping." + name: (("bool_value", "True"), "") for name, on in zip((*FLAGS, "is_main"), flags) if on}
    if build_id:
        key = "go" if BUILD_ID_GO.fullmatch(build_id) else "gnu"
        attributes["process.executable.build_id." + key] = (("string_value", repr(build_id)), "")
    return node(start, limit, offset, filename, frozenset(attributes.items()))


def _location(x):
    mapping, address, folded, lines = x
    attributes = {"pprof.location.is_folded": (("bool_value", "True"), "")} if folded else {}
    return node(_mapping(mapping), address, lines, frozenset(attributes.items()))


def as_otlp(profile):
    """[(sample type, period type, time, duration, period, Counter of samples as otlp.Reader has them)], unordered
    where a default sample type moves one to the front."""
    reader = Reader(profile, mark_main=True)
    locations = {x: _location(x) for x in set(reader.locations.values())}
    rows = []
    for s in profile.sample:
        labels = dict(reader.labels(s))
        link = _link(labels)
        rows.append((node(*(locations[x] for x in reader.stack(s))),
                     frozenset((k, _attribute(v)) for k, v in labels.items()), link, s.value))
    period_type = reader.kind(profile.period_type) if profile.HasField("period_type") else None
    return [(reader.kind(t), period_type, profile.time_nanos % 2**64, profile.duration_nanos % 2**64, profile.period,
             collections.Counter((*row[:3], (row[3][k],), ()) for row in rows))
            for k, t in enumerate(profile.sample_type)]


def _without_notes(location):
    """`has_functions: false` is a note of the translation to itself: no flag of the pprof was set."""
    mapping, address, lines, attributes = location
    note = ("pprof.mapping.has_functions", (("bool_value", "False"), ""))
    return node(mapping and node(*mapping[:4], mapping[4] - {note}), address, lines, attributes)


def check_translated(profile, data):
    """The request must be what OTLP makes of this pprof; in any order of the samples."""
    expected, found, known = collections.Counter(), collections.Counter(), {}
    for *head, samples in as_otlp(profile):
        expected.update({(tuple(head), *sample): n for sample, n in samples.items()})
    for _, _, head, samples in otlp.profiles(data):
        for stack, *rest in samples:
            if stack not in known:
                known[stack] = node(*(_without_notes(x) for x in stack))
            found[(head[:5], known[stack], *rest)] += 1
    assert found == expected
