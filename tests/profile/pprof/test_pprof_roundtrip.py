# SPDX-License-Identifier: Apache-2.0
"""pprof -> OTLP -> pprof equals the original in every field that pprof has.

The oracle knows nothing of our code: it resolves every index and id with protoc's own classes of
tests/proto/pprof.proto. Profiles: the corpus when it is there, and random ones made here.
"""
import struct
import subprocess

import pytest

from harness import build as make
from harness import corpus, pprof


def pipe(build, how, body, *first):
    done = subprocess.run([build / "tests/support/pprof_tool", how, *first], input=body, capture_output=True,
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


@HOW
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_random_profile_comes_back_equal(build, how, first):
    for seed in range(first, first + 50):
        check_roundtrip(build, how, make.RandomPprof(seed).make().SerializeToString())


@HOW
@pytest.mark.parametrize("first", range(1000, 1100, 25))
def test_two_profiles_in_the_same_tables_come_back_equal(build, how, first, tmp_path):
    """The second is decoded behind the first: none of its ids and indices refers to an entry of the other."""
    for seed in range(first, first + 25):
        one, two = (make.RandomPprof(seed + n).make().SerializeToString() for n in (0, 5000))
        path = tmp_path / "first"
        path.write_bytes(one)
        _, pprofs = pipe(build, how, two, path)
        assert len(pprofs) == 2
        for sent, received in zip((one, two), pprofs):
            pprof.check_equal(pprof.parse(sent), pprof.parse(received))
