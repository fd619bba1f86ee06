#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Searches for the string that costs the detectors of `pii` the most instructions per byte.

	tests/bench/pii/search_cost.py [SECONDS [SEED]]

The fuzz target `cost` counts iterations of loops; this counts instructions, by callgrind, in the tool of
tests/processors/test_pii_cost.py. A string is a few parts, repeated, and a tail with what the selection of detectors asks
for. The most expensive ones are changed and combined. Prints the best strings; new ones belong to tests/fuzz/seeds/cost.
"""
import pathlib
import random
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "build/python"), str(ROOT / "tests"), str(ROOT / "tests/processors")]

import test_pii_cost as cost  # noqa: E402 (the paths come first)

TOOL = ROOT / "build/release/tests/support/pii_cost_tool"
BYTES = b"@.:-/\\?=+_~%\"' \taAbBeEfFsSdDkKxXzZ0123456789"
UNITS = [unit.encode() for unit in cost.UNITS + cost.DENSE]
TAILS = [b"", b"@..x", b"\\\"-::% 1234567890", cost.TAIL.encode()]
LENGTHS = [64, 128, 192, 512]
PARTS_MAX = 8
KEPT, SIMILAR_MAX = 60, 4


class Search:
    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.known = {}

    def changed_part(self, part):
        at, kind = self.draw.randrange(len(part)), self.draw.randrange(3)
        byte = bytes([self.draw.choice(BYTES)])
        return part[:at] + (b"" if kind == 0 else byte) + part[at + (kind != 1):]

    def changed(self, genes):
        parts, tail, length = list(genes[0]), genes[1], genes[2]
        for _ in range(self.draw.randint(1, 3)):
            at, kind = self.draw.randrange(len(parts)), self.draw.random()
            if kind < .3:
                parts.insert(at, self.draw.choice(UNITS + parts))
            elif kind < .45 and len(parts) > 1:
                parts.pop(at)
            elif kind < .85:
                parts[at] = self.changed_part(parts[at]) or b"a"
            elif kind < .92:
                tail = self.draw.choice(TAILS)
            else:
                length = self.draw.choice(LENGTHS)
        return tuple(parts[:PARTS_MAX]), tail, length

    def combined(self, one, other):
        parts = one[0][:self.draw.randint(0, len(one[0]))] + other[0][self.draw.randint(0, len(other[0])):]
        return parts[:PARTS_MAX] or one[0], one[1], other[2]

    def fresh(self):
        parts = tuple(self.draw.choice(UNITS) for _ in range(self.draw.randint(1, 4)))
        return parts, self.draw.choice(TAILS), self.draw.choice(LENGTHS)

    def measure(self, population):
        texts = sorted({text_of(genes) for genes in population} - set(self.known))
        with tempfile.TemporaryDirectory() as directory:
            counted = cost.count(TOOL, [[text] for text in texts], pathlib.Path(directory))
        for text, count in zip(texts, counted):
            self.known[text] = count / max(len(text), cost.LENGTH_MIN)

    def select(self, population):
        """The most expensive ones, of which few are made of the same bytes."""
        kept, alike = {}, {}
        for genes in sorted(population, key=lambda genes: -self.known[text_of(genes)]):
            key = frozenset(b"".join(genes[0]))
            if text_of(genes) not in kept and alike.get(key, 0) < SIMILAR_MAX and len(kept) < KEPT:
                kept[text_of(genes)] = genes
                alike[key] = alike.get(key, 0) + 1
        return list(kept.values())

    def next(self, kept):
        pick = self.draw.choice
        return (kept + [self.changed(pick(kept)) for _ in range(150)] +
                [self.combined(pick(kept), pick(kept)) for _ in range(50)] + [self.fresh() for _ in range(20)])


def text_of(genes):
    parts, tail, length = genes
    unit = b"".join(parts)
    room = length - len(tail)
    return (unit * (room // len(unit) + 1))[:room] + tail


def main(seconds=120, seed=1):
    search, end = Search(int(seed)), time.monotonic() + float(seconds)
    kept = [((unit,), b"", 192) for unit in UNITS if unit]
    while time.monotonic() < end:
        population = search.next(kept)
        search.measure(population)
        kept = search.select(population)
    for genes in kept[:10]:
        print("%6.1f %r" % (search.known[text_of(genes)], text_of(genes)))


if __name__ == "__main__":
    main(*sys.argv[1:])
