# SPDX-License-Identifier: Apache-2.0
"""Formats that name frames by strings: what Pyroscope has of a body that it gets directly, it has of the same body through
the gateway, and both have the stacks that the body was made of."""
import time

import pytest

from harness import peers, stacks
from harness.otlp import node
from interop import gate, partners

GATEWAY = """
receivers:
  pyroscope: {endpoint: "127.0.0.1:{port:in}"}
exporters:
  pyroscope: {endpoint: "http://127.0.0.1:{port:store}", retry_on_failure: {initial_interval: 200ms}}
service:
  pipelines:
    profiles: {receivers: [pyroscope], exporters: [pyroscope]}
"""
MADE = stacks.RandomStacks(1).make(stacks=40, number=1000)
FEW = stacks.RandomStacks(2).make(stacks=10, number=5)
CPU = ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", 10**7)
# name: (query, body, what it is made of, its type and what one count becomes)
BODIES = {
    "folded": ("", stacks.folded(MADE), MADE, CPU),
    "groups": ("&format=groups&sampleRate=1000", stacks.folded(MADE), MADE, (CPU[0], 10**6)),
    "lines": ("&format=lines", stacks.lines(FEW), FEW, CPU),
    "trie": ("&format=trie", stacks.trie(MADE), MADE, CPU),
    "tree": ("&format=tree", stacks.tree(MADE), MADE, CPU),
    "speedscope": ("&format=speedscope", stacks.speedscope({"main": MADE}, unit="seconds"), MADE, (CPU[0], 10**9)),
    "speedscope-counts": ("&format=speedscope", stacks.speedscope({"main": MADE}), MADE, CPU),
    "wall.wall": ("", stacks.folded(MADE), MADE, ("wall:wall:nanoseconds:cpu:nanoseconds", 10**7)),
    "heap.alloc_space": ("", stacks.folded(MADE), MADE, ("memory:alloc_space:bytes::", 1)),
    "lock.mutex_count": ("", stacks.folded(MADE), MADE, ("mutex:contentions:count::", 1)),
}


@pytest.fixture(scope="module", params=["direct", "through"])
def way(request, pyroscope):
    """How all bodies came to the store: the names of their services begin with it."""
    if request.param == "direct":
        post(pyroscope.port["http"], request.param)
    else:
        with gate.gateway(GATEWAY, store=pyroscope.port["http"]) as g:
            post(g.port["in"], request.param)
            gate.flushed(g, "pyroscope")
    return request.param


def post(port, way):
    now = time.time_ns()
    for name, (query, body, _, _) in BODIES.items():
        target = "/ingest?name=%s-%s%%7Bregion=eu%%7D&from=%d&until=%d%s" % (way, name, now - 10**10, now, query)
        status, _, text = peers.post(port, body, target, headers={"Content-Type": "application/octet-stream"})
        assert status == 200, (name, text)


@pytest.mark.parametrize("pyroscope", [partners.NewPyroscope], indirect=True, scope="module", ids=lambda partner: partner.version)
@pytest.mark.parametrize("name", BODIES)
def test_stacks_are_those_of_a_direct_write(pyroscope, way, name):
    _, _, made, (kind, factor) = BODIES[name]
    now, service = time.time_ns() // 10**6, {"service_name": "%s-%s" % (way, name.partition(".")[0])}
    window = now - 3600_000, now + 3600_000
    [labels] = pyroscope.series(service, *window)
    assert labels["region"] == "eu" and labels["pyroscope_spy"] == "unknown"
    assert labels.get("profile_name") == ("main" if name.startswith("speedscope") else None)
    assert labels["__profile_type__"] == kind
    assert pyroscope.values(kind, service, *window) == {
        node(*(node(frame, "", 0) for frame in reversed(stack))): number * factor for stack, number in made.items()}
