# SPDX-License-Identifier: Apache-2.0
"""Keys of exporters over gRPC that a server notices: what a call says of its sender, and when connections are pinged."""
import contextlib
import time

import pytest

from harness import build as make
from harness import faults, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  %s:
    endpoint: 127.0.0.1:%d
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 20ms, max_interval: 50ms}
    %s
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [%s]}
"""
EXPORTERS = ["otlp_grpc", "parca"]


@contextlib.contextmanager
def sent(build, exporter, line):
    """The server and the gateway, after one request."""
    with faults.FaultSink() as sink, Gateway(build / "portcullis", CONFIG % (exporter, sink.port, line, exporter)) as gateway:
        with peers.Client(gateway.port["otlp"]) as client:
            client.send(make.request(1, samples=10))
        gateway.until(lambda: gateway.total("otelcol_ledger_out_samples", exporter=exporter) == 10)
        yield sink, gateway


@pytest.mark.parametrize("line, there, absent", [
    ("", [b":authority\x0f127.0.0.1:%d", b"user-agent", b"Portcullis/"], []),
    ("authority: gateway.test", [b":authority\x0cgateway.test"], [b"127.0.0.1"]),
    ("user_agent: fleet/7", [b"fleet/7 grpc-c/"], [b"Portcullis/"]),
    ("headers: {X-Scope-OrgID: shop}", [b"x-scope-orgid\x04shop"], []),
])
@pytest.mark.parametrize("exporter", EXPORTERS)
def test_what_a_call_says_of_its_sender(build, exporter, line, there, absent):
    with sent(build, exporter, line) as (sink, _):
        block = sink.seen[0].block
        for words in there:
            assert (words % sink.port if b"%d" in words else words) in block, block
        assert not any(words in block for words in absent), block


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_an_idle_connection_is_pinged_where_that_is_permitted(build, exporter):
    with sent(build, exporter, "keepalive: {time: 500ms, permit_without_stream: true}") as (sink, gateway):
        gateway.until(lambda: sink.pings >= 3)
        assert len(sink.connections) == 1


@pytest.mark.parametrize("line", ["", "keepalive:", "keepalive: {time: 500ms}"])
def test_otherwise_it_is_not(build, line):
    with sent(build, "otlp_grpc", line) as (sink, _):
        time.sleep(2)
        assert not sink.pings


def test_a_call_in_flight_is_pinged_and_its_connection_closed_when_no_answer_comes(build):
    with faults.FaultSink() as sink:
        sink.fail([faults.pause(3600)])  # meanwhile the server reads nothing
        line = "keepalive: {time: 500ms, timeout: 500ms}\n    timeout: 0s"
        with Gateway(build / "portcullis", CONFIG % ("otlp_grpc", sink.port, line, "otlp_grpc")) as gateway:
            with peers.Client(gateway.port["otlp"]) as client:
                client.send(make.request(1, samples=10))
            gateway.until(lambda: gateway.total("otelcol_ledger_out_samples", exporter="otlp_grpc") == 10)
            assert len(sink.seen) == 2 and sink.seen[0].wire == sink.seen[1].wire
            assert gateway.total("otelcol_exporter_retries", exporter="otlp_grpc") == 1
