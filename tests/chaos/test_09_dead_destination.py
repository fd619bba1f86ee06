# SPDX-License-Identifier: Apache-2.0
"""One destination is down, the others are healthy."""
import itertools

from harness import build as make
from harness import chaos, peers
from harness.neighbour import Neighbour

import pytest

ORACLE = "The healthy destination gets everything once, as fast as without the dead one, which catches up when it returns."
TEXT = chaos.RECEIVERS + """
exporters:
  otlp_grpc/a: {endpoint: 127.0.0.1:{port:a}, tls: {insecure: true}}
  otlp_grpc/b:
    endpoint: 127.0.0.1:{port:b}
    tls: {insecure: true}
    sending_queue: {queue_size: 100000}
    retry_on_failure: {initial_interval: 50ms, max_interval: 500ms, max_elapsed_time: 0s}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc/a, otlp_grpc/b]}
"""
pytestmark = pytest.mark.alone


def test_the_healthy_one_notices_nothing(build, record_property):
    a, b = peers.Sink(), peers.Sink()
    with chaos.running(build, TEXT, ("a", a)) as gateway, Neighbour(gateway.port["grpc"]) as neighbour:
        b.port = gateway.port["b"]
        messages = (make.request(seed, samples=20) for seed in itertools.count())
        b.start()
        with chaos.Load(gateway, messages) as load:
            neighbour.begin()
            gateway.until(lambda: len(load.accepted) > 100)
            both = neighbour.end()
            b.stop()
            neighbour.begin()
            gateway.until(lambda: len(load.accepted) > 500)
            alone = neighbour.end()
        b.start()
        chaos.settled(gateway, "otlp_grpc/a", "otlp_grpc/b")
        sent, at_a, at_b = load.samples(), a.samples(), b.samples()
        assert not load.refusals and not both["errors"] and not alone["errors"]
        assert not sent - at_a and not sent - at_b, "everything arrived"
        assert all(at_a[key] == count for key, count in sent.items()), "the healthy one got everything once"
        assert gateway.total("otelcol_ledger_dropped_samples") == 0
        b.stop()
    assert alone["p50_ms"] < 3 * both["p50_ms"] + 1
    record_property("figure", "%d requests; median of a neighbour %.2f of that with both" % (
        len(load.accepted), alone["p50_ms"] / both["p50_ms"]))
