# SPDX-License-Identifier: Apache-2.0
"""When memory is short, best-effort data gives way: first what waits for best-effort destinations and what best-effort senders
send, and nothing else is refused meanwhile. Memory is made short by requests whose last byte is missing."""
import contextlib
import http.client
import os

import pytest

from harness import build as make
from harness import peers
from harness.gateway import Gateway
from harness.shortage import PATH, Holder

pytestmark = pytest.mark.skipif(os.environ.get("MODE") in ("asan", "tsan"), reason="the sanitizers' memory is not ours to bound")
MIB = 1 << 20
CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:grpc}}
      http: {endpoint: 127.0.0.1:{port:http}, max_request_body_size: 268435456, write_timeout: 120s, read_timeout: 120s}
processors:
  memory_limiter: {check_interval: 200ms, limit_mib: 160, spike_limit_mib: 32}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:SINK, tls: {insecure: true}}
  otlp_grpc/dead: {endpoint: 127.0.0.1:{port:dead}, tls: {insecure: true}, REQUIRED, sending_queue: {num_consumers: 1}}
service:
  tenant: {header: x-tenant}
  quotas: {QUOTAS}
  pipelines:
    profiles: {receivers: [otlp], processors: [memory_limiter], exporters: [otlp_grpc, otlp_grpc/dead]}
"""
SAMPLES = 20000


def post(gateway, tenant=None, seed=1):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port["http"], timeout=30)
    with contextlib.closing(connection):
        headers = {"Content-Type": "application/x-protobuf", **({"x-tenant": tenant} if tenant else {})}
        connection.request("POST", PATH, make.request(seed, samples=20).SerializeToString(), headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers.get("Retry-After")


@contextlib.contextmanager
def running(build, quotas="", required="required: true"):
    with peers.Sink() as sink:
        text = CONFIG.replace("SINK", str(sink.port)).replace("QUOTAS", quotas).replace("REQUIRED", required)
        with Gateway(build / "portcullis", text) as gateway:
            yield gateway, sink


def refused(gateway):
    return {dict(labels)["reason"]: int(v) for (name, labels), v in gateway.metrics().items()
            if name == "otelcol_receiver_refused_requests" and v and dict(labels)["reason"] != "cancelled"}


def test_best_effort_tenants_are_refused_before_others(build):
    quotas = "tenant: {overrides: {batch: {priority: best_effort}}}"
    with running(build, quotas) as (gateway, sink):
        assert post(gateway, "batch")[0] == post(gateway, "payments")[0] == post(gateway)[0] == 200
        assert not gateway.total("otelcol_memory_shedding")
        with Holder(gateway):
            status, hint = post(gateway, "batch")
            assert status == 503 and int(hint) >= 1
            assert post(gateway, "payments")[0] == post(gateway)[0] == 200
            assert refused(gateway) == {"shed": 1}
            gateway.until(lambda: gateway.total("otelcol_memory_shedding") == 1)
        gateway.until(lambda: not gateway.total("otelcol_memory_shedding"))
        assert post(gateway, "batch")[0] == 200
        assert refused(gateway) == {"shed": 1}
        assert gateway.log().count("Memory is short.") == 1 and gateway.log().count("Memory is no longer short.") == 1


def test_all_tenants_but_named_ones_can_be_best_effort(build):
    with running(build, "tenant: {priority: best_effort, overrides: {payments: {}}}") as (gateway, sink):
        with Holder(gateway):
            assert post(gateway, "batch")[0] == 503
            assert post(gateway, "payments")[0] == post(gateway)[0] == 200


def test_a_best_effort_service_is_rejected_alone(build):
    """It is known only after decoding."""
    with running(build, "service: {overrides: {svc-1: {priority: best_effort}}}") as (gateway, sink):
        def send(service):
            with peers.Client(gateway.port["grpc"]) as client:
                return client.send(make.request(1, samples=20, service=service))
        send("svc-1")
        with Holder(gateway):
            with pytest.raises(Exception, match="best-effort"):
                send("svc-1")
            send("svc-2")
            assert refused(gateway) == {"shed": 1}


def test_best_effort_destinations_lose_their_queue_before_senders_are_refused(build):
    large = make.request(3, samples=SAMPLES).SerializeToString()
    with running(build, required="required: false") as (gateway, sink):
        with peers.Client(gateway.port["grpc"]) as client:
            for _ in range(10):
                client.send(large)
            gateway.until(lambda: len(sink.received) == 10)
            assert gateway.total("otelcol_ledger_queued_samples", exporter="otlp_grpc/dead") == 10 * SAMPLES
            with Holder(gateway):
                # what waits is dropped; the packet that is being retried stays for now
                gateway.until(lambda: gateway.total("otelcol_ledger_dropped_samples", reason="shed") >= 9 * SAMPLES)
                client.send(make.request(1, samples=20))
                gateway.until(lambda: len(sink.received) == 11)
                assert refused(gateway) == {}
            gateway.until(lambda: not gateway.total("otelcol_memory_shedding"))
            client.send(large)
            gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples", exporter="otlp_grpc/dead") >= SAMPLES)
        assert gateway.balanced("profiles", "otlp_grpc/dead") and gateway.balanced("profiles", "otlp_grpc")
        assert "Memory is short." in gateway.log()


def test_required_destinations_shed_nothing(build):
    large = make.request(3, samples=SAMPLES).SerializeToString()
    with running(build) as (gateway, sink):
        with peers.Client(gateway.port["grpc"]) as client:
            for _ in range(4):
                client.send(large)
        gateway.until(lambda: len(sink.received) == 4)
        with Holder(gateway):
            assert gateway.total("otelcol_ledger_queued_samples", exporter="otlp_grpc/dead") == 4 * SAMPLES
            assert not gateway.total("otelcol_ledger_dropped_samples", reason="shed")
