# SPDX-License-Identifier: Apache-2.0
"""The partners themselves, without the gateway: what is written directly is read back. Where one of these fails, the
partner or its helper is at fault, and no other failure says anything about the gateway."""
import time
from collections import Counter

import grpc
import pytest

from harness import build as make
from harness import pprof

NOW = time.time_ns() // 10 ** 9 * 10 ** 9
MS = NOW // 10 ** 6
WINDOW = (MS - 3600 * 1000, MS + 60 * 1000)
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def profile(seed, at=NOW, **more):
    made = make.pprof(seed, **more)
    made.time_nanos = at
    return made


def of_thread(p, thread):
    reader = pprof.Reader(p)
    return pprof.values_of(reader, [s for s in p.sample if reader.labels(s)["thread"] == [thread]], 1)


def test_pyroscope_gives_back_stacks_values_labels_and_times(pyroscope):
    labels = {"__name__": "process_cpu", "service_name": "direct", "region": "eu-1"}
    sent = [profile(seed, NOW - seed * 10 ** 9, labels=("thread",)) for seed in range(3)]
    for p in sent:
        assert pyroscope.push((labels, p.SerializeToString())) == (200, b"")
    assert CPU in pyroscope.profile_types(*WINDOW)
    mine = {"service_name": "direct"}
    for seed, p in enumerate(sent):
        for thread in "v1", "v2", "v3":
            assert pyroscope.values(CPU, dict(mine, thread=thread), MS - seed * 1000) == of_thread(p, thread)
    assert pyroscope.values(CPU, mine, *WINDOW) == sum((pprof.values(p, 1) for p in sent), Counter())
    assert {row["thread"] for row in pyroscope.series(mine, *WINDOW)} == {"v1", "v2", "v3"}
    assert {"region", "thread", "service_name"} <= set(pyroscope.label_names(mine, *WINDOW))


def test_pyroscope_says_why_it_refuses(pyroscope):
    status, text = pyroscope.push(({"__name__": "process_cpu", "a-b": "1"}, profile(1).SerializeToString()))
    assert status == 400 and b"invalid label name" in text


def test_parca_gives_back_stacks_values_labels_and_times(parca):
    labels = {"__name__": "process_cpu", "job": "direct", "region": "eu-1"}
    kind = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"
    sent = [profile(seed, NOW - seed * 10 ** 9) for seed in range(3)]
    for p in sent:
        parca.write((labels, p.SerializeToString()))
    assert kind in parca.profile_types()
    for seed, p in enumerate(sent):
        assert parca.values(kind, {"job": "direct"}, MS - seed * 1000) == pprof.values(p, 1)
    assert parca.values(kind, {"job": "direct"}, *WINDOW) == sum((pprof.values(p, 1) for p in sent), Counter())
    ((found, times),) = parca.series(kind, {"job": "direct"}, *WINDOW)
    assert found.items() >= {"job": "direct", "region": "eu-1"}.items()
    assert times == {MS - seed * 1000: sum(pprof.values(p, 1).values()) for seed, p in enumerate(sent)}
    assert {"job", "region"} <= set(parca.label_names(*WINDOW))
    assert parca.label_values("region", *WINDOW) == ["eu-1"]


def test_parca_says_why_it_refuses(parca):
    with pytest.raises(grpc.RpcError) as error:
        parca.write(({"job": "x"}, profile(1).SerializeToString()))
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT and "missing __name__" in error.value.details()
