# SPDX-License-Identifier: Apache-2.0
"""A burst of large profiles in a container of 64 MiB, ten times its load."""
import os
import threading
import time

import pytest

from harness import build as make
from harness import chaos, peers, preload

ORACLE = "Requests are refused with a hint, the process is never near its limit, and it recovers without a restart."
MIB = 1 << 20
SECONDS = 600 if os.environ.get("LONG") else 10
pytestmark = [pytest.mark.alone, pytest.mark.skipif(os.environ.get("MODE") in ("asan", "tsan"),
                                                    reason="the sanitizers' memory is not ours to bound")]


def test_it_refuses_and_recovers(build, record_property):
    machine = preload.env(build, "machine", MACHINE_MIB="64")
    bodies = [make.request(seed, samples=8000, functions=4000) for seed in range(4)]
    sink = peers.Sink(threads=2)
    sink.answer = lambda data, context: time.sleep(.05) or b""
    with chaos.running(build, chaos.one(), ("a", sink), env=machine) as gateway:
        end = time.monotonic() + SECONDS
        messages = iter(lambda: bodies[0] if time.monotonic() < end else None, None)
        lock = threading.Lock()

        def locked():
            while True:
                with lock:
                    message = next(messages, None)
                if message is None:
                    return
                yield message
        with chaos.Load(gateway, locked(), threads=16, pause=0) as load:
            for thread in load.threads:
                thread.join()
        assert load.refusals, "ten times its load"
        peak = gateway.rss()["VmHWM"]
        assert peak < 64 * MIB, "the kernel would have ended it"
        gateway.until(lambda: not gateway.total("otelcol_ledger_queued_samples"))
        for body in bodies:
            assert not chaos.send(gateway, body).partial_success.rejected_profiles, "it recovers"
        chaos.settled(gateway, "otlp_grpc")
        assert gateway.total("otelcol_ledger_out_samples") + gateway.total("otelcol_ledger_merged_samples") == \
            8000 * (len(load.accepted) + len(bodies)), "what was accepted arrived"
    record_property("figure", "%d s, %d requests of %.1f MB accepted, %d refused, peak %d MiB" % (
        SECONDS, len(load.accepted), len(bodies[0].SerializeToString()) / 1e6, load.refusals, peak // MIB))
