# SPDX-License-Identifier: Apache-2.0
"""Folded stacks, lines, tries and trees become the OTLP that python makes of the same stacks."""
from collections import Counter

import pytest

from harness import corpus, stacks
from harness.stacks import FROM, UNTIL, times

ENCODERS = {"folded": stacks.folded, "trie": stacks.trie, "tree": stacks.tree}


@pytest.mark.parametrize("how", ENCODERS)
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_stacks_arrive_with_their_sums(decode, how, first):
    for seed in range(first, first + 20):
        made = stacks.RandomStacks(seed).make()
        (found,) = decode(how, ENCODERS[how](made), region="eu")
        assert found == (dict(__name__="process_cpu", region="eu"), *stacks.CPU, times(made, 10_000_000))


@pytest.mark.parametrize("seed", range(10))
def test_lines_are_counted(decode, seed):
    made = stacks.RandomStacks(seed).make(stacks=20, number=9)
    body = stacks.lines(made).splitlines(keepends=True)
    stacks.RandomStacks(seed).random.shuffle(body)
    (found,) = decode("lines", b"".join(body))
    assert found.stacks == times(made, 10_000_000)


@pytest.mark.parametrize("application, rate, metric, kind, period, factor", [
    ("app", 250, "process_cpu", ("cpu", "nanoseconds"), 4_000_000, 4_000_000),
    ("my.app.cpu", 100, "process_cpu", ("cpu", "nanoseconds"), 10_000_000, 10_000_000),
    ("my.app.wall", 100, "wall", ("wall", "nanoseconds"), 10_000_000, 10_000_000),
    ("app.itimer", 100, "process_cpu", ("cpu", "nanoseconds"), 10_000_000, 10_000_000),
    ("app", 0, "process_cpu", ("samples", "count"), 0, 1),
    ("app.alloc_objects", 100, "memory", ("alloc_objects", "count"), 0, 1),
    ("app.inuse_space", 100, "memory", ("inuse_space", "bytes"), 0, 1),
    ("app.goroutines", 100, "goroutine", ("goroutines", "count"), 0, 1),
    ("app.mutex_duration", 100, "mutex", ("delay", "nanoseconds"), 0, 1),
    ("app.block_count", 100, "block", ("contentions", "count"), 0, 1),
    ("app.lock_duration", 100, "block", ("delay", "nanoseconds"), 0, 1),
    ("app.exceptions", 100, "exceptions", ("samples", "count"), 0, 1),
])
def test_the_suffix_of_the_name_says_what_is_counted(decode, application, rate, metric, kind, period, factor):
    (found,) = decode("folded", b"a;b 7\n", application, rate)
    assert found == (dict(__name__=metric), kind, ("cpu", "nanoseconds") if period else None, FROM, UNTIL - FROM, period,
                     {("a", "b"): 7 * factor})


def test_the_same_stack_is_one_sample(decode):
    body = b"a;b 3\na 1\r\n\na;b 4\n;a;;b; 2\n" + b"z 0\n" + b" 9"
    (found,) = decode("folded", body, rate=0)
    assert found.stacks == {("a", "b"): 9, ("a",): 1, (): 9}


@pytest.mark.parametrize("how, body", [("folded", b""), ("folded", b"\n\n"), ("folded", b"a;b 0\n"), ("lines", b""),
                                       ("trie", b"\0\0\0"), ("tree", b"\0\0\0")])
def test_nothing_is_no_profile(decode, how, body):
    assert decode(how, body) == []


@pytest.mark.parametrize("how, body, name", [
    ("folded", b"a\xffb;\xc3 1\n", ("a\ufffdb", "\ufffd")),
    ("trie", stacks._node(b"", 0, [stacks._node(b"a\xff", 0, [stacks._node(b"b;\xc3", 1, [])])]), ("a\ufffdb", "\ufffd")),
    ("tree", stacks.tree({(b"a\xffb", b"\xc3"): 1}), ("a\ufffdb", "\ufffd"))])
def test_names_that_are_not_utf8_are_repaired(decode, how, body, name):
    assert decode(how, body, rate=0)[0].stacks == {name: 1}


def test_a_trie_may_split_characters_and_frames(decode):
    made = Counter({("ab", "é"): 1, ("ab", "è"): 2, ("ab",): 3, ("a",): 4, ("abc", "d"): 5})
    assert b"\x02\xc3" not in stacks.trie(made) and "é".encode() not in stacks.trie(made)
    assert decode("trie", stacks.trie(made), rate=0)[0].stacks == made


@pytest.mark.parametrize("how", ["trie", "tree"])
def test_a_number_at_the_root_has_no_stack(decode, how):
    assert decode(how, b"\0\5\0", rate=0)[0].stacks == {(): 5}


def test_attributes_of_the_request_do_not_replace_ours(decode):
    (found,) = decode("folded", b"a 1", __name__="mine", region="eu")
    assert found.attributes == dict(__name__="process_cpu", region="eu")


def node(name, number, *children):
    return stacks._node(name, number, list(children))


MOST = 2**63 - 1


@pytest.mark.parametrize("how, body, reason", [
    ("folded", b"a 1\na b\n", "folded: line 2: does not end with a space and a number without a sign"),
    ("folded", b"abc", "folded: line 1: does not end with a space and a number without a sign"),
    ("folded", b"12", "folded: line 1: does not end with a space and a number without a sign"),
    ("folded", b"a -1", "folded: line 1: does not end with a space and a number without a sign"),
    ("folded", b"a 1.5", "folded: line 1: does not end with a space and a number without a sign"),
    ("folded", b"a %d" % (MOST + 1), "folded: line 1: the number exceeds 2^63 - 1"),
    ("folded", b"a %d" % 10**30, "folded: line 1: does not end with a space and a number without a sign"),
    ("folded", b"a %d" % 2**64, "folded: line 1: the number exceeds 2^63 - 1"),
    ("folded", b"a %d\na 1" % MOST, "folded: line 2: the numbers of one stack add up to more than 2^63 - 1"),
    ("folded", b"a %d" % (MOST // 10**7 + 1), "folded: the number of a stack, in nanoseconds, exceeds 2^63 - 1"),
    ("folded", b"a;" * 4096 + b"b 1", "folded: line 1: a stack has more than 4096 frames"),
    ("folded", b"a" * 65536 + b" 1", "folded: line 1: a name has more than 65535 bytes"),
    ("lines", b"a;" * 4096 + b"b", "lines: line 1: a stack has more than 4096 frames"),
    ("trie", b"", "trie: node 0: is truncated"),
    ("trie", b"\0\0", "trie: node 0: is truncated"),
    ("trie", b"\0\0\1", "trie: node 0: has more children than bytes follow"),
    ("trie", b"\0\0\1\1", "trie: node 0: has more children than bytes follow"),
    ("trie", b"\0\0\1\5abc", "trie: node 1: is truncated"),
    ("trie", b"\0\0\1\0\x80\x80\x80", "trie: node 1: is truncated"),
    ("trie", b"\0\0\0x", "trie: bytes follow the last node"),
    ("trie", b"\0" + b"\xff" * 11 + b"\0", "trie: node 0: contains a varint of more than 64 bits"),
    ("trie", node(b"a", 2**63), "trie: node 0: the numbers of one stack add up to more than 2^63 - 1"),
    ("trie", node(b"a;" * 4097, 1), "trie: node 0: a stack has more than 4096 frames"),
    ("tree", b"\xff\xff\xff\xff\x0f\0\0", "tree: node 0: is truncated"),
    ("tree", b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", "tree: node 0: has more children than bytes follow"),
    ("tree", node(b"", 0, node(b"a" * 65536, 1)), "tree: node 1: a name has more than 65535 bytes"),
])
def test_what_is_malformed_is_refused_with_the_place(refusal, how, body, reason):
    assert refusal(how, body) == reason


DENSE = {
    "folded": {("%x" % i,): 1 for i in range(50_000)},
    "tree": {("%x" % i,): 1 for i in range(50_000)},
    "trie": {("%x" % i, "method%d" % j): 1 for i in range(5_000) for j in range(10)},
}


@pytest.mark.parametrize("how", DENSE)
def test_dense_profiles_fit(decode, how):
    """Many stacks in few bytes."""
    (found,) = decode(how, ENCODERS[how](DENSE[how]), rate=0)
    assert found.stacks == DENSE[how]


def chain(depth, below):
    """A tree that is one long stack, with these nodes at its end."""
    for _ in range(depth):
        below = [node(b"a", 0, *below)]
    return node(b"", 0, *below)


BLOATED = [
    ("tree", chain(4000, [node(b"%x" % i, 1) for i in range(4000)])),
    ("trie", node(b"a;" * 4000, 0, *(node(b"%x" % i, 1) for i in range(4000)))),
    ("trie", node(b"a" * 60_000, 0, *(node(b"b", 1) for _ in range(100_000)))),
]


@pytest.mark.parametrize("how, body", BLOATED, ids=[how for how, _ in BLOATED])
def test_few_bytes_do_not_become_many(refusal, how, body):
    assert "would need more than" in refusal(how, body) or "more than 96 times the bytes" in refusal(how, body)


def test_a_stack_repeated_at_great_depth_is_cheap(decode):
    (found,) = decode("tree", chain(4000, [node(b"b", 1)] * 100_000), rate=0)
    assert found.stacks == {("a",) * 4000 + ("b",): 100_000}


@pytest.mark.parametrize("path", corpus.files("malformed/folded-*"), ids=lambda path: path.name)
def test_a_file_in_speedscopes_samples_is_read(decode, path):
    sums = Counter()
    for stack, number in (line.rsplit(" ", 1) for line in path.read_text().splitlines()):
        sums[tuple(stack.split(";"))] += int(number)
    (found,) = decode("folded", path.read_bytes(), rate=0)
    assert found.stacks == sums
