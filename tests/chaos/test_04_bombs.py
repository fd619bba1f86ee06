# SPDX-License-Identifier: Apache-2.0
"""Decompression bombs: every coding, nested, and with lengths that lie."""
import os

import pytest

from harness import chaos, peers
from harness.hostile import BOMBS, HTTP_CODINGS
from harness.neighbour import Neighbour

ORACLE = "Memory stays within the limiter's bound, the sender gets 400 or 413, and a healthy sender loses nothing."
LIMIT_MIB = 256
pytestmark = pytest.mark.alone


def test_bombs_cost_nobody_else_anything(build, record_property):
    text = chaos.one().replace("exporters:\n", "processors:\n  memory_limiter: {check_interval: 1s, limit_mib: %d}\nexporters:\n" % (
        8 * LIMIT_MIB if os.environ.get("MODE") in ("asan", "tsan") else LIMIT_MIB), 1).replace(
            "receivers: [otlp],", "receivers: [otlp], processors: [memory_limiter],")
    sink = peers.Sink()
    with chaos.running(build, text, ("a", sink)) as gateway, Neighbour(gateway.port["grpc"]) as neighbour:
        neighbour.begin()
        for name, coding in HTTP_CODINGS.items():
            status, _, _ = peers.post(gateway.port["http"], BOMBS[name](), chaos.PATH, dict(chaos.PROTOBUF, **{"Content-Encoding": coding}))
            assert status in ((200, 400) if "tiny" in name else (400, 413)), (name, status)
        figures = neighbour.end()
        peak = gateway.rss()["VmHWM"] >> 20
        chaos.settled(gateway, "otlp_grpc")
    assert not figures["errors"], figures["errors"][:3]
    if os.environ.get("MODE") not in ("asan", "tsan"):
        assert peak < LIMIT_MIB, peak
    record_property("figure", "%d bombs, peak %d MiB, %d calls of a neighbour, no error" % (len(HTTP_CODINGS), peak, figures["calls"]))
