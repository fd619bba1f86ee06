# SPDX-License-Identifier: Apache-2.0
"""Twice the bytes cost at most twice the instructions, whatever a document does with them (counted by callgrind)."""
import json
import re
import subprocess

import pytest

from harness import stacks

BYTES, GROWTH_MAX = 20_000, 2.2


def node(string, number, *children):
    return stacks._node(string, number, list(children))


def deep(count):
    """Many equal leaves at the end of a long stack."""
    below = [node(b"b", 1)] * (count // 2)
    for _ in range(min(4000, count // 2)):
        below = [node(b"a", 0, *below)]
    return node(b"", 0, *below)


def events(count):
    """A long stack, whose leaf opens and closes."""
    depth = min(4000, count // 4)
    rows = [{"type": "O", "frame": 0, "at": i} for i in range(depth)]
    for i in range((count - depth) // 2):
        rows += [{"type": kind, "frame": 1, "at": depth + 2 * i + k} for k, kind in enumerate("OC")]
    return json.dumps({"shared": {"frames": [{"name": "a"}, {"name": "b"}]},
                       "profiles": [{"type": "evented", "unit": "none", "events": rows}]}).encode()


def samples(count):
    return json.dumps({"shared": {"frames": [{"name": "%x" % i} for i in range(count)]},
                       "profiles": [{"type": "sampled", "unit": "none", "samples": [[i] for i in range(count)],
                                     "weights": [1] * count}]}).encode()


# name: (format, a document of about so many bytes)
DOCUMENTS = {
    "one stack again and again": ("folded", lambda n: b"a;b;c;d 1\n" * (n // 10)),
    "long stacks": ("folded", lambda n: (b"a;" * 1000 + b"b 1\n") * (n // 2004 + 1)),
    "a name for each stack": ("folded", lambda n: b"".join(b"%x 1\n" % i for i in range(n // 7))),
    "lines": ("lines", lambda n: b"".join(b"%x;b\n" % i for i in range(n // 7))),
    "a deep tree": ("tree", lambda n: deep(n // 4)),
    "a deep trie": ("trie", lambda n: node(b"a;" * 500, 0, *[node(b"b", 1)] * (n // 4))),
    "a trie of one long frame": ("trie", lambda n: node(b"a" * 100, 0, *[node(b"b", 1)] * (n // 4))),
    "events at depth": ("speedscope", lambda n: events(n // 40)),
    "a frame for each sample": ("speedscope", lambda n: samples(n // 25)),
}


def instructions(build, how, body):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                           build / "tests/support/text_tool", how, "app", "100", "0", "0"],
                          input=body, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return int(re.search(rb"Collected : (\d+)", done.stderr)[1])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_cost_is_linear(build, name):
    if build.name != "release":
        pytest.skip("instructions are counted in the optimised build")
    how, make = DOCUMENTS[name]
    nothing = instructions(build, "lines", b"")
    once, twice = (make(n) for n in (BYTES, 2 * BYTES))
    costs = [instructions(build, how, body) - nothing for body in (once, twice)]
    print("%s: %.0f instructions per byte" % (name, costs[1] / len(twice)))
    assert costs[1] / costs[0] <= GROWTH_MAX * len(twice) / len(once) / 2, costs
