# SPDX-License-Identifier: Apache-2.0
"""pprof -> OTLP -> pprof equals the original in every field that pprof has.

The oracle knows nothing of our code: it resolves every index and id with protoc's own classes of
tests/proto/pprof.proto. Profiles: the corpus when it is there, and random ones made here.
"""
import random
import struct
import subprocess

import pprof_pb2 as pb
import pytest

from harness import corpus, pprof


def pipe(build, how, body):
    done = subprocess.run([build / "tests/support/pprof_tool", how], input=body, capture_output=True,
                          timeout=120)
    blocks, at = [], 0
    while at < len(done.stdout):
        (size,) = struct.unpack_from(">I", done.stdout, at)
        blocks.append(done.stdout[at + 4:at + 4 + size])
        at += 4 + size
    assert done.returncode == 0, done.stderr.decode()
    return blocks[0], blocks[2:]


def check_roundtrip(build, how, body):
    inflated, pprofs = pipe(build, how, body)
    assert len(pprofs) == 1, "one pprof became %d" % len(pprofs)
    pprof.check_equal(pprof.parse(inflated), pprof.parse(pprofs[0]))


HOW = pytest.mark.parametrize("how", ["open", "sealed"])
FILES = corpus.files("pprof/*")


@HOW
@pytest.mark.parametrize("path", FILES, ids=[p.name for p in FILES])
def test_corpus_profile_comes_back_equal(build, how, path):
    check_roundtrip(build, how, path.read_bytes())


class Writer:
    """A random profile that uses every field, with all liberties that writers take."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.p = pb.Profile()
        self.p.string_table.append("")
        self.texts = ["", "a", "cpu", "samples", "count", "ns", "thread", "trace_id", "span_id",
                      "0123456789abcdef0123456789abcdef", "0123456789abcdef", "f" * 32,
                      "F" * 16, "0" * 32, "bytes", "\u00e9", "/usr/lib/x.so", "G/o-_/id/9"]

    def text(self, empty=True):
        """An index; the same text may stand in the table more than once, the empty one too."""
        r = self.random
        if empty and r.random() < 0.2:
            return 0
        value = r.choice(self.texts if empty else self.texts[1:])
        if r.random() < 0.7 and value in self.p.string_table:
            return list(self.p.string_table).index(value)
        self.p.string_table.append(value)
        return len(self.p.string_table) - 1

    def index(self, value):
        if value not in self.p.string_table:
            self.p.string_table.append(value)
        return list(self.p.string_table).index(value)

    def number(self):
        return self.random.choice([0, 1, 2, 127, 128, 2**31, 2**63 - 1, -1, -(2**63)])

    def natural(self):
        return self.random.choice([0, 1, 4096, 2**32, 2**64 - 1])

    def ids(self, count):
        r = self.random
        return r.choice([lambda: list(range(1, count + 1)), lambda: [0] * count,
                         lambda: r.sample(range(1, 10 * count + 1), count),
                         lambda: [2**64 - 1 - i for i in range(count)]])()

    def label(self, label):
        r = self.random
        label.key = self.text()
        if r.random() < 0.5:
            label.str = self.text(empty=False)
        else:
            label.num = self.number()
            label.num_unit = self.text()

    def tables(self):
        r, p = self.random, self.p
        functions, mappings = self.ids(r.randrange(1, 8)), self.ids(r.randrange(1, 5))
        for i in functions:
            p.function.add(id=i, name=self.text(), system_name=self.text(), filename=self.text(),
                           start_line=self.number())
        for i in mappings:
            p.mapping.add(id=i, memory_start=self.natural(), memory_limit=self.natural(),
                          file_offset=self.natural(), filename=self.text(), build_id=self.text(),
                          has_functions=r.random() < .3, has_filenames=r.random() < .3,
                          has_line_numbers=r.random() < .3, has_inline_frames=r.random() < .3)
        for i in self.ids(r.randrange(1, 10)):
            location = p.location.add(id=i, address=self.natural(), is_folded=r.random() < .2)
            location.mapping_id = r.choice([0] + [m or n + 1 for n, m in enumerate(mappings)])
            for _ in range(r.randrange(4)):
                location.line.add(line=self.number(), column=self.number(), function_id=r.choice(
                    [0] + [f or n + 1 for n, f in enumerate(functions)]))

    def make(self):
        r, p = self.random, self.p
        self.tables()
        types = r.randrange(1, 5)
        for _ in range(types):
            p.sample_type.add(type=self.text(), unit=self.text())
        locations = [x.id or n + 1 for n, x in enumerate(p.location)]
        for _ in range(r.randrange(12)):
            sample = p.sample.add(location_id=r.choices(locations, k=r.randrange(6)),
                                  value=[self.number() for _ in range(types)])
            for _ in range(r.choice([0, 0, 1, 2, 5])):
                self.label(sample.label.add())
            if r.random() < .3:  # a Link, sometimes almost
                sample.label.add(key=self.index("trace_id"), str=self.index("%032x" % r.randrange(3)))
                sample.label.add(key=self.index("span_id"), str=self.index("%016x" % r.randrange(3)))
        for _ in range(r.randrange(3)):
            p.sample.extend(r.choices(p.sample) if p.sample else [])  # duplicates
        p.time_nanos, p.duration_nanos, p.period = self.number(), self.number(), self.number()
        p.drop_frames, p.keep_frames, p.doc_url = self.text(), self.text(), self.text()
        p.comment.extend(self.text() for _ in range(r.randrange(4)))
        if r.random() < .7:
            p.period_type.type, p.period_type.unit = self.text(), self.text()
        p.default_sample_type = r.choice([0, self.text(), r.choice(p.sample_type).type])
        return p


@HOW
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_random_profile_comes_back_equal(build, how, first):
    for seed in range(first, first + 50):
        check_roundtrip(build, how, Writer(seed).make().SerializeToString())
