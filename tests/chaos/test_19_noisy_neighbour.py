# SPDX-License-Identifier: Apache-2.0
"""A tenant that sends ten times its share, and a sender that invents names."""
import grpc
import pytest

from harness import build as make
from harness import chaos, otlp, peers

ORACLE = """The noisy tenant is refused with a hint, the others lose nothing and are never refused, and the gateway's own metrics stay
bounded."""
QUIET, NOISY, SAMPLES, NAMES = 60, 600, 20, 3000
TEXT = chaos.one("sending_queue: {queue_size: 100000}").replace("service:\n", """service:
  tenant: {}
  quotas: {tenant: {samples_per_second: 20, samples_burst: 1500}}
""", 1)
pytestmark = pytest.mark.alone


def test_quotas_and_metrics_hold(build, record_property):
    sink, quiet, refused = peers.Sink(), otlp.Counter(), 0
    with chaos.running(build, TEXT, ("a", sink)) as gateway, peers.Client(gateway.port["grpc"]) as client:
        client.send(make.request(0, samples=SAMPLES), metadata=[("x-scope-orgid", "quiet")])
        quiet += otlp.samples(make.request(0, samples=SAMPLES))
        lines = len(gateway.metrics_text().splitlines())
        for i in range(1, NOISY):
            try:
                client.send(make.request(i, samples=SAMPLES), metadata=[("x-scope-orgid", "noisy")])
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
                assert any(key == "grpc-status-details-bin" for key, _ in error.trailing_metadata()), "a hint"
                refused += 1
            if i % (NOISY // QUIET) == 0:
                message = make.request(10 ** 6 + i, samples=SAMPLES)
                client.send(message, metadata=[("x-scope-orgid", "quiet")])
                quiet += otlp.samples(message)
        assert refused > NOISY // 2
        before = gateway.rss()["VmRSS"]
        for i in range(NAMES):
            client.send(make.request(i, samples=1, functions=1, service="invented-%d" % i), metadata=[("x-scope-orgid", "t%d" % i)])
        chaos.settled(gateway, "otlp_grpc")
        assert not quiet - sink.samples(), "everything of the quiet tenant arrived"
        assert len(gateway.metrics_text().splitlines()) < lines + 500
        grown = gateway.rss()["VmRSS"] - before
    record_property("figure", "%d of %d noisy requests refused, %d quiet ones accepted; %d invented tenants and services: %.1f MiB" % (
        refused, NOISY, QUIET, NAMES, grown / 2 ** 20))
