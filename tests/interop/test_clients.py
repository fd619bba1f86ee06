# SPDX-License-Identifier: Apache-2.0
"""The gRPC port with clients of other people: each sends what profilers send, all of it arrives, and no bound of the server's
takes one of them for an attacker. (grpc-go is in grpcurl and in the Collector, grpcio in test_otlp.py.)"""
import pytest
from google.protobuf.json_format import MessageToJson

from harness import build as make
from harness import otlp
from interop import gate

GATEWAY = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}", max_recv_msg_size_mib: 16}}}
exporters:
  file: {path: sent.binpb, format: proto}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [file]}
"""
HEALTH = "/grpc.health.v1.Health/Check"
MESSAGES = [make.request(seed, samples=20) for seed in range(200)]
LARGE = make.request(7, samples=150000, functions=3000)


@pytest.fixture
def gateway():
    with gate.gateway(GATEWAY) as g:
        yield g
        assert g.total("otelcol_receiver_connections_closed") == 0, "a client was taken for an attacker"


def arrived(g, messages):
    """Sample for sample."""
    expected = sum(otlp.count(m.SerializeToString()) for m in messages)
    g.until(lambda: g.total("otelcol_ledger_in_samples") >= expected)
    gate.flushed(g, "file")
    assert g.total("otelcol_ledger_out_samples") == expected


def encoded(messages):
    return [m.SerializeToString() for m in messages]


def test_grpcurl(gateway, grpcurl):
    for message in MESSAGES[:5]:
        assert "{" in grpcurl.export(gateway.port["otlp"], MessageToJson(message))
    arrived(gateway, MESSAGES[:5])


def test_grpc_java(gateway, grpcjava):
    assert grpcjava.export(gateway.port["otlp"], encoded([*MESSAGES, LARGE])) == [0] * (len(MESSAGES) + 1)
    arrived(gateway, [*MESSAGES, LARGE])


def test_grpc_js(gateway, grpcjs):
    assert grpcjs.export(gateway.port["otlp"], encoded([*MESSAGES, LARGE])) == [0] * (len(MESSAGES) + 1)
    arrived(gateway, [*MESSAGES, LARGE])


def test_nghttp(gateway, nghttp2):
    assert "grpc-status: 0" in nghttp2.export(gateway.port["otlp"], encoded(MESSAGES)[0])
    arrived(gateway, MESSAGES[:1])


@pytest.mark.parametrize("connections, calls", [(1, 1), (1, 100), (8, 8), (64, 1)])
def test_h2load(gateway, nghttp2, connections, calls):
    assert nghttp2.load(gateway.port["otlp"], encoded(MESSAGES)[0], 2000, connections, calls) == 2000
    arrived(gateway, MESSAGES[:1] * 2000)


# What a server on nghttp2 does otherwise than h2spec wants, and why.
OTHERWISE = {
    ("http2/5.1.1", "Sends stream identifier that is numerically smaller than previous"):
        "a stream that is no longer remembered is taken for one whose frames were under way when it was closed: "
        "the HEADERS are ignored",
}


def test_h2spec(h2spec):
    with gate.gateway(GATEWAY) as g:
        found = h2spec.judge(g.port["otlp"], HEALTH)
    tests = {(section, test): passed for section, tests in found.items() for test, passed in tests.items()}
    assert len(tests) > 140
    failed = {key for key, passed in tests.items() if not passed}
    print("%d of %d passed" % (len(tests) - len(failed), len(tests)))
    assert failed == set(OTHERWISE)
