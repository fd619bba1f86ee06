# SPDX-License-Identifier: Apache-2.0
"""Requests of older generations, made by python-protobuf from the definitions of each release, and what an independent
reader finds in their translation."""
import subprocess

import pytest

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


def hostile_ranges(count):
    """Every sample of 1.7 has all locations in its stack, each a byte longer than the one before."""
    profile = generations.Profile([("cpu", "ns", 0)], [])
    message = generations.module("1_7").ExportProfilesServiceRequest.FromString(
        generations.write("1_7", generations.Request([profile], {})))
    message.dictionary.location_table.add(address=1)
    p = message.resource_profiles[0].scope_profiles[0].profiles[0]
    p.location_indices.extend([0] * count)
    for i in range(count):
        p.sample.add(locations_start_index=i, locations_length=count - i, value=[1])
    return message.SerializeToString()


def test_a_translation_is_bounded(translate):
    body = hostile_ranges(20000)
    (found,) = translate(body, most=4 * len(body))
    assert found.error == "memory"


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
