# SPDX-License-Identifier: Apache-2.0
"""speedscope's JSON becomes the OTLP that python makes of the same stacks."""
import json
from collections import Counter

import pytest

from harness import stacks
from harness.stacks import FROM, UNTIL, times


@pytest.mark.parametrize("kind", ["sampled", "evented"])
@pytest.mark.parametrize("unit, factor", [("nanoseconds", 1), ("microseconds", 10**3), ("milliseconds", 10**6),
                                          ("seconds", 10**9)])
def test_times_become_nanoseconds(decode, kind, unit, factor):
    for seed in range(5):
        made = stacks.RandomStacks(seed).make(number=1000)
        (found,) = decode("speedscope", stacks.speedscope({"main": made}, kind, unit))
        assert found == (dict(__name__="process_cpu", profile_name="main"), *stacks.CPU, times(made, factor))


@pytest.mark.parametrize("kind", ["sampled", "evented"])
def test_weights_without_a_unit_are_counts(decode, kind):
    made = stacks.RandomStacks(1).make()
    (found,) = decode("speedscope", stacks.speedscope({"main": made}, kind))
    assert found == (dict(__name__="process_cpu", profile_name="main"), *stacks.CPU, times(made, 10_000_000))


def test_profiles_stay_apart(decode):
    made = {"one": stacks.RandomStacks(1).make(), "two": stacks.RandomStacks(2).make()}
    found = decode("speedscope", stacks.speedscope(made, unit="seconds", start=3), region="eu")
    assert [(p.attributes, p.type, p.stacks) for p in found] == [
        (dict(__name__="wall", profile_name=name, region="eu"), ("wall", "nanoseconds"), times(sums, 10**9))
        for name, sums in made.items()]


def test_profiles_of_one_name_become_one(decode):
    one, two = (json.loads(stacks.speedscope({"main": Counter({("a", "b"): number})}, unit="seconds")) for number in (2, 3))
    one["profiles"] += two["profiles"]
    (found,) = decode("speedscope", json.dumps(one).encode())
    assert found.attributes == dict(__name__="process_cpu", profile_name="main")
    assert found.stacks == {("a", "b"): 5 * 10**9}


def test_members_may_have_any_order(decode):
    made = stacks.RandomStacks(4).make()
    file = json.loads(stacks.speedscope({"main": made}, unit="seconds"))
    file = {name: file[name] for name in sorted(file, reverse=True)}
    file["profiles"] = [{name: p[name] for name in sorted(p, reverse=True)} for p in file["profiles"]]
    forth = json.dumps(file).encode()
    file["profiles"] = [{name: p[name] for name in sorted(p)} for p in file["profiles"]]
    back = json.dumps({name: file[name] for name in sorted(file)}).encode()
    assert forth != back
    assert decode("speedscope", forth) == decode("speedscope", back)
    assert decode("speedscope", back)[0].stacks == times(made, 10**9)


def test_frames_keep_file_and_line(decode):
    frames = [{"name": "main", "file": "a.py", "line": 3, "col": 7}, {"name": "main", "file": "a.py", "line": 4, "col": None},
              {"name": "main", "file": None, "line": -1}, {"name": ""}]
    body = {"shared": {"frames": frames}, "exporter": "x", "other": {"profiles": [1], "deep": [[[]]]},
            "profiles": [{"type": "sampled", "unit": "seconds", "samples": [[0, 3, 1], [2]], "weights": [0.25, 1e-3]}]}
    (found,) = decode("speedscope", json.dumps(body).encode())
    assert found.attributes == dict(__name__="process_cpu")
    assert found.stacks == {(("main", "a.py", 3, 7), ("main", "a.py", 4, 0)): 250_000_000, ("main",): 1_000_000}


def test_bytes(decode):
    body = stacks.speedscope({"heap": Counter({("a",): 12})}, unit="bytes")
    for application, metric, kind in (("app", "memory", "samples"), ("app.alloc_space", "memory", "alloc_space")):
        (found,) = decode("speedscope", body, application)
        assert found == (dict(__name__=metric, profile_name="heap"), (kind, "bytes"), None, FROM, UNTIL - FROM, 0, {("a",): 12})


def profile(**members):
    return json.dumps({"shared": {"frames": [{"name": "a"}, {"name": "b"}]},
                       "profiles": [{"type": "sampled", "unit": "none", **members}]}).encode()


def events(*rows):
    return profile(type="evented", events=[dict(zip(("type", "frame", "at"), row)) for row in rows])


@pytest.mark.parametrize("body, reason", [
    (b"", "speedscope: the JSON is not an object or an array"),
    (b'{"profiles": [', "speedscope: the JSON is truncated, or something follows it"),
    (b'{"profiles": [7 7]}', None),
    (b'[{"name": "Profile", "ph": "P"}]', "speedscope: the JSON is not an object"),
    (b'{"traceEvents": []}', "speedscope: the JSON has no profiles"),
    (b'{"profiles": null}', "speedscope: the JSON has no profiles"),
    (b'{"profiles": 3}', "speedscope: profiles: has the wrong type"),
    (b'{"shared": {"frames": [{"name": "a"}, {"name": 7}]}}', "speedscope: shared.frames[1]: name: has the wrong type"),
    (profile(unit="parsecs"), "speedscope: profiles[0]: unit: is not a unit of speedscope"),
    (profile(type="other"), "speedscope: profiles[0]: type: is neither sampled nor evented"),
    (profile(type=None), "speedscope: profiles[0]: lacks type or unit"),
    (profile(unit=None), "speedscope: profiles[0]: lacks type or unit"),
    (profile(samples=[[0], [2]], weights=[1, 1]), "speedscope: profiles[0]: samples[1]: no such frame"),
    (profile(samples=[[0], [1.5]], weights=[1, 1]), "speedscope: profiles[0]: samples[1]: is not an integer"),
    (profile(samples=[[0], ["0"]], weights=[1, 1]), "speedscope: profiles[0]: samples[1]: has the wrong type"),
    (profile(samples=[[0]], weights=[]), "speedscope: profiles[0]: has different numbers of samples and weights"),
    (profile(samples=[[0]], weights=[-1]), "speedscope: profiles[0]: samples[0]: is negative or too large"),
    (profile(samples=[[0]], weights=[1e300]), "speedscope: profiles[0]: samples[0]: is negative or too large"),
    (profile(samples=[[0] * 4097], weights=[1]), "speedscope: profiles[0]: samples[0]: a stack has more than 4096 frames"),
    (events(("O", 0, 2), ("C", 0, 1)), "speedscope: profiles[0]: events[1]: is earlier than the previous event"),
    (events(("O", 0, 1), ("C", 1, 2)),
     "speedscope: profiles[0]: events[1]: closes a frame that is not the innermost open one"),
    (events(("C", 1, 2)), "speedscope: profiles[0]: events[0]: closes a frame that is not the innermost open one"),
    (events(("O", 0)), "speedscope: profiles[0]: events[0]: lacks type, at or frame"),
    (events(("X", 0, 1)), "speedscope: profiles[0]: events[0]: type: is neither O nor C"),
    (events(("O", 9, 1)), "speedscope: profiles[0]: events[0]: frame: no such frame"),
    (b'{"a": ' + b"[" * 40 + b"]" * 40 + b"}", None),
])
def test_what_is_malformed_is_refused_with_the_place(refusal, body, reason):
    found = refusal("speedscope", body)
    assert found == reason if reason else found.startswith("speedscope: the JSON ")


def test_a_file_without_samples_is_accepted(decode):
    assert decode("speedscope", b'{"profiles": []}') == decode("speedscope", profile()) == []
