# SPDX-License-Identifier: Apache-2.0
"""Stacks in the formats that name frames by strings: {(frame from the root, ...): number} and back from OTLP."""
import ast
import json
import os
import random
from collections import Counter, namedtuple

from harness import otlp

FROM, UNTIL = 1_700_000_000_000_000_000, 1_700_000_010_000_000_000
# What a decoder that is given these times and 100 Hz says of an application's CPU.
CPU = (("cpu", "nanoseconds"), ("cpu", "nanoseconds"), FROM, UNTIL - FROM, 10_000_000)

Profile = namedtuple("Profile", "attributes type period_type time duration period stacks")


def _varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _node(string, number, children):
    return _varint(len(string)) + string + _varint(number) + _varint(len(children)) + b"".join(children)


def folded(stacks):
    return "".join("%s %d\n" % (";".join(stack), number) for stack, number in stacks.items()).encode()


def lines(stacks):
    return "".join((";".join(stack) + "\n") * number for stack, number in stacks.items()).encode()


def tree(stacks, frame=b""):
    """Of stacks of bytes or strings; the root has the name of `frame`."""
    children = {}
    for stack, number in stacks.items():
        if stack:
            children.setdefault(stack[0], Counter())[stack[1:]] += number
    return _node(frame, stacks.get((), 0), [
        tree(below, name if isinstance(name, bytes) else name.encode()) for name, below in sorted(children.items())])


def _common(keys):
    first, last = min(keys), max(keys)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[:length]


def _trie(keys):
    """Of {bytes: number}."""
    prefix = _common(keys)
    below = {}
    for key, number in keys.items():
        if key != prefix:
            below.setdefault(key[len(prefix)], {})[key[len(prefix):]] = number
    return _node(prefix, keys.get(prefix, 0), [_trie(group) for _, group in sorted(below.items())])


def trie(stacks):
    return _trie({";".join(stack).encode(): number for stack, number in stacks.items()})


def untrie(data):
    """What a trie was made of."""
    found, place = Counter(), 0

    def varint():
        nonlocal place
        number = shift = 0
        while True:
            byte = data[place]
            place, number, shift = place + 1, number | (byte & 127) << shift, shift + 7
            if byte < 128:
                return number

    def walk(prefix):
        nonlocal place
        size = varint()
        prefix, place = prefix + data[place:place + size], place + size
        number, children = varint(), varint()
        if number:
            found[tuple(prefix.decode().split(";"))] += number
        for _ in range(children):
            walk(prefix)

    walk(b"")
    assert place == len(data)
    return found


def _frames(stacks):
    names = sorted({frame for stack in stacks for frame in stack})
    return names, {name: i for i, name in enumerate(names)}


def speedscope(profiles, kind="sampled", unit="none", start=0):
    """Of {name: stacks}, all of one unit."""
    names, index = _frames([stack for stacks in profiles.values() for stack in stacks])
    return json.dumps({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "profiles": [(_sampled if kind == "sampled" else _evented)(name, stacks, index, unit, start)
                     for name, stacks in profiles.items()],
        "shared": {"frames": [{"name": name} for name in names]}}).encode()


def _head(kind, name, unit, start, end):
    return {"type": kind, "name": name, "unit": unit, "startValue": start, "endValue": end}


def _sampled(name, stacks, index, unit, start):
    return dict(_head("sampled", name, unit, start, start + sum(stacks.values())),
                samples=[[index[frame] for frame in stack] for stack in stacks], weights=list(stacks.values()))


def _evented(name, stacks, index, unit, start):
    """One stack after the other, with the frames that neighbours share left open."""
    now, last, events = start, (), []
    for stack, number in [*stacks.items(), ((), 0)]:
        shared = len(os.path.commonprefix([last, stack]))
        events += [{"type": "C", "frame": index[frame], "at": now} for frame in reversed(last[shared:])]
        events += [{"type": "O", "frame": index[frame], "at": now} for frame in stack[shared:]]
        now, last = now + number, stack
    return dict(_head("evented", name, unit, start, now), events=events)


def parse(data):
    """The Profiles of OTLP; a frame is its name, or (name, file, line, column) where it has more than that."""
    return [_profile(*found) for found in otlp.profiles(data)] if data else []


def _profile(resource, scope, head, samples):
    sample_type, period_type, time, duration, period, profile_id, dropped, attributes = head
    assert (profile_id, dropped, attributes) == (b"", 0, frozenset())
    stacks = Counter()
    for stack, labels, link, values, times in samples:
        key = tuple(_frame(location) for location in reversed(list(stack)))
        assert (labels, link, times, len(values), stacks[key]) == (frozenset(), None, (), 1, 0)
        stacks[key] += values[0]
    return Profile({k: ast.literal_eval(v) for k, (_, v) in resource[0]}, sample_type, period_type, time, duration, period, stacks)


def _frame(location):
    mapping, address, lines, attributes = location
    ((function, line, column),) = lines
    name, system_name, filename, start_line = function
    assert (mapping, address, attributes, system_name, start_line) == (None, 0, frozenset(), "", 0)
    return (name, filename, line, column) if filename or line or column else name


def times(found, factor):
    return Counter({stack: number * factor for stack, number in found.items()})


class RandomStacks:
    """Names with everything that a frame may have: blanks, digits at the end, letters of more than one byte."""

    PARTS = ["main", "run", "work", "a b", "(x.py:3)", "é", "日本", "<lambda>", "0", "ab", "abc", "\U0001f600", "\t", "12 7"]

    def __init__(self, seed):
        self.random = random.Random(seed)

    def frame(self):
        return "".join(self.random.choices(self.PARTS, k=self.random.randint(1, 3)))

    def make(self, stacks=50, number=1 << 20):
        frames = [self.frame() for _ in range(20)]
        return Counter({tuple(self.random.choices(frames, k=self.random.randint(1, 12))): self.random.randint(1, number)
                        for _ in range(self.random.randint(1, stacks))})
