# SPDX-License-Identifier: Apache-2.0
"""Requests of older generations, made by python-protobuf from the definitions of each release, and what an independent
reader finds in their translation."""
import random
import subprocess

import pytest
from google.protobuf.internal.encoder import _VarintBytes

from harness import bridged, generations, otlp


@pytest.fixture(scope="module")
def tool(build):
    return build / "tests/support/bridge_tool"


@pytest.fixture
def translate(tool, tmp_path):
    def run(*bodies, **options):
        files = []
        for i, body in enumerate(bodies):
            files.append(tmp_path / str(i))
            files[-1].write_bytes(body)
        return list(bridged.run(tool, files, **options))
    return run


@pytest.mark.parametrize("release", generations.OLD)
def test_nothing_is_lost_in_translation(translate, release):
    seeds = range(30)
    logical = [generations.logical(release, seed) for seed in seeds]
    for seed, request, found in zip(seeds, logical, translate(*(generations.write(release, r) for r in logical))):
        assert (found.generation, found.error) == (generations.GENERATIONS[release], None), seed
        assert otlp.profiles(found.body) == otlp.profiles(generations.expected(release, request)), seed


# A request of 1.9 keeps what the decoder passes over.
@pytest.mark.parametrize("release", [r for r in generations.OLD if r != "1_9"])
def test_what_is_left_out_does_not_leave(translate, release):
    (found,) = translate(generations.write(release, generations.logical(release, 1)))
    assert b"canary-payload" not in found.body and b"canary-format" not in found.body


@pytest.mark.parametrize("release", generations.OLD)
def test_repeated_numbers_need_not_be_packed(translate, release):
    generation = generations.GENERATIONS[release]
    for seed in range(5):
        body = generations.write(release, generations.logical(release, seed))
        loose = generations.unpacked(release, body)
        assert loose != body
        packed, split = translate(body, loose, generation=generation)
        assert otlp.profiles(split.body) == otlp.profiles(packed.body)


def test_a_split_profile_keeps_sums_and_timestamps(translate):
    stamps = [10 ** 18 + i for i in range(3)]
    samples = [generations.Sample([], [total, 3], (), (), None, stamps) for total in (3, 10, -10, 0, 2 ** 63 - 1, -2 ** 63)]
    profile = generations.Profile([("cpu", "nanoseconds", 0), ("samples", "count", 0)], samples)
    (found,) = translate(generations.write("1_7", generations.Request([profile], {})))
    cpu, count = (p for _, _, p in otlp.Reader(otlp.parse(found.body)).each_profile())
    assert [sum(s.values) if s.values else len(s.timestamps_unix_nano) for s in cpu.samples] == [s.values[0] for s in samples]
    assert all(list(s.timestamps_unix_nano) == stamps and len(s.values) in (0, 3) for s in cpu.samples)
    assert all(list(s.timestamps_unix_nano) == stamps and not s.values for s in count.samples)


def with_ranges(indices, ranges, locations=1):
    """A request of 1.7: samples with these ranges of location_indices. A location's address is its index plus one."""
    profile = generations.Profile([("cpu", "ns", 0)], [])
    message = generations.module("1_7").ExportProfilesServiceRequest.FromString(
        generations.write("1_7", generations.Request([profile], {})))
    for i in range(locations):
        message.dictionary.location_table.add(address=i + 1)
    p = message.resource_profiles[0].scope_profiles[0].profiles[0]
    p.location_indices.extend(indices)
    for start, length in ranges:
        p.sample.add(locations_start_index=start, locations_length=length, value=[1])
    return message


def in_pieces(message):
    """The same, with location_indices in two packed fields, before and behind the samples."""
    def field(number, payload):
        return bytes([number << 3 | 2]) + _VarintBytes(len(payload)) + payload
    rest = message.__class__.FromString(message.SerializeToString())
    rp = rest.resource_profiles.pop()
    sp = rp.scope_profiles.pop()
    p = sp.profiles.pop()
    first, second = (b"".join(map(_VarintBytes, part)) for part in (p.location_indices[:1000], p.location_indices[1000:]))
    del p.location_indices[:]
    profile = field(3, first) + p.SerializeToString() + field(3, second)
    scope = sp.SerializeToString() + field(2, profile)
    return rest.SerializeToString() + field(1, rp.SerializeToString() + field(2, scope))


def stacks(body):
    d = otlp.parse(body).dictionary
    return [[d.location_table[i].address for i in d.stack_table[s.stack_index].location_indices]
            for _, _, p in otlp.Reader(otlp.parse(body)).each_profile() for s in p.samples]


# In turn, going back, one within the other, across the blocks by which a range is found, and empty.
@pytest.mark.parametrize("locations", [100, 130, 5000, 40000])
def test_samples_may_refer_to_any_range_of_locations(translate, locations):
    rng = random.Random(locations)
    indices = [rng.randrange(locations) for _ in range(3000)]
    turns = [(i, 20) for i in range(0, 400, 20)]
    ranges = turns + turns[::-1] + [(rng.randrange(2900), rng.randrange(100)) for _ in range(300)] + [(0, 3000), (2999, 1), (3000, 0)]
    message = with_ranges(indices, ranges, locations)
    whole = message.SerializeToString()
    expected = [[i + 1 for i in indices[start:start + length]] for start, length in ranges]
    for found in translate(whole, generations.unpacked("1_7", whole), in_pieces(message), generation="1.7"):
        assert stacks(found.body) == expected


def test_a_range_beyond_the_locations_rejects_its_profile_only(translate):
    for ranges in ([(0, 4)], [(3, 1)], [(4, 1)], [(2 ** 31 - 1, 1)], [(1, -1)], [(-1, 1)]):
        (found,) = translate(with_ranges([0, 0, 0], ranges).SerializeToString(), generation="1.7")
        (sample,) = otlp.parse(found.body).resource_profiles[0].scope_profiles[0].profiles[0].samples
        assert sample.stack_index >= len(otlp.parse(found.body).dictionary.stack_table)


def hostile_ranges(count):
    """Every sample has all locations in its stack, each a byte longer than the one before."""
    return with_ranges([0] * count, [(i, count - i) for i in range(count)]).SerializeToString()


def test_a_translation_is_bounded(translate):
    body = hostile_ranges(20000)
    (found,) = translate(body, most=4 * len(body))
    assert found.error == "memory"


def test_ranges_that_overlap_too_often_are_refused(translate):
    """All stacks are equal, so nothing grows, but each is read."""
    count = 20000
    equal = with_ranges([0] * count, [(i, count // 2) for i in range(count // 2)])
    (found,) = translate(equal.SerializeToString())
    assert "overlap too often" in found.error


def test_a_stack_is_not_taken_for_a_key(translate):
    """Stacks of one location, whose index is also the letter that is the key of an attribute."""
    frames = [generations.Frame((), address=i + 1, mapping=generations.Mapping("m")) for i in range(128)]
    samples = [generations.Sample([f], [1], tuple((chr(97 + i % 26), i % 5, "") for i in range(n, n + 3)))
               for n, f in enumerate(frames)]
    for release in ("1_3", "1_4", "1_6", "1_7"):
        request = generations.Request([generations.Profile([("cpu", "nanoseconds", 0)], samples)], {})
        (found,) = translate(generations.write(release, request))
        assert otlp.profiles(found.body) == otlp.profiles(generations.expected(release, request))


def test_the_cost_grows_with_the_size_of_a_request(build, tool, tmp_path):
    """Tables of each Profile, many types, many values, many labels: nothing is read again and again."""
    def instructions(release, **shape):
        file = tmp_path / "cost"
        file.write_bytes(generations.write(release, generations.logical(release, 2, **shape)))
        run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", tool, file], capture_output=True,
                             text=True, check=True)
        return int(run.stderr.split("Collected : ")[1].split()[0]), file.stat().st_size
    if "asan" in str(build) or "tsan" in str(build):
        pytest.skip("counts instructions")
    for release in ("1_3", "1_7"):
        few, many = (instructions(release, samples=20, profiles=n) for n in (4, 64))
        assert many[0] / many[1] < 1.3 * few[0] / few[1]
