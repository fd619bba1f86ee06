# SPDX-License-Identifier: Apache-2.0
"""A destination that takes half a second for each answer, under load from two tenants."""
import itertools
import threading

import pytest

from harness import build as make
from harness import chaos, peers

ORACLE = """Memory stays within the budget, senders are slowed down or refused with a hint, the fast destination gets everything, and
nothing that was accepted is lost."""
TEXT = chaos.RECEIVERS + """
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 512}
exporters:
  otlp_grpc/a: {endpoint: 127.0.0.1:{port:a}, tls: {insecure: true}}
  otlp_grpc/b: {endpoint: 127.0.0.1:{port:b}, tls: {insecure: true}, sending_queue: {queue_size: 50, block_on_overflow: true}}
service:
  pipelines:
    profiles: {receivers: [otlp], processors: [memory_limiter], exporters: [otlp_grpc/a, otlp_grpc/b]}
"""
pytestmark = pytest.mark.alone


def test_it_slows_senders_down_and_loses_nothing(build, record_property):
    a, b, over = peers.Sink(), peers.Sink(threads=64), threading.Event()
    b.answer = lambda data, context: b"" if over.wait(.5) else b""
    with chaos.running(build, TEXT, ("a", a), ("b", b)) as gateway:
        messages = (make.request(seed, samples=20, service="tenant-%d" % (seed % 2)) for seed in range(400))
        with chaos.Load(gateway, messages, threads=8) as load:
            gateway.until(lambda: gateway.total("otelcol_exporter_queue_size", exporter="otlp_grpc/b") >= 50)
            gateway.until(lambda: load.refusals)
            over.set()
            load.join()
        chaos.settled(gateway, "otlp_grpc/a", "otlp_grpc/b")
        assert len(load.accepted) == 400
        assert not load.samples() - a.samples() and not load.samples() - b.samples()
        assert gateway.total("otelcol_ledger_dropped_samples") == 0
    record_property("figure", "400 requests, %d refusals with a hint" % load.refusals)
