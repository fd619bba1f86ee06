# SPDX-License-Identifier: Apache-2.0
"""A destination that fails gets one probe at a time, and after its recovery no more than it answers."""
import contextlib
import threading
import time

import grpc
import pytest

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway
from harness.otlphttp import OK, OtlpSink
from harness.push import reply

pytestmark = pytest.mark.threads
CODE = grpc.StatusCode
CONSUMERS, PACKETS = 16, 40
CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: '127.0.0.1:{port:otlp}'}}}}
exporters:
  KIND: {endpoint: '%s', compression: none, tls: {insecure: true}, timeout: 5s, sending_queue: {num_consumers: %d},
    retry_on_failure: {initial_interval: 200ms, max_interval: 200ms, max_elapsed_time: MAX, randomization_factor: 0}}
  otlp_grpc/healthy: {endpoint: '127.0.0.1:{port:healthy}', compression: none, tls: {insecure: true}}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [KIND, otlp_grpc/healthy]}}}
"""


class Counting:
    """Counts attempts, and how many of them are in flight at the same time. `fault`: what every attempt gets; None: OK."""

    def __init__(self):
        self.lock, self.fault, self.delay = threading.Lock(), None, 0
        self.attempts, self.flying, self.flights, self.failed, self.first_good = 0, 0, [], 0, None

    @contextlib.contextmanager
    def attempt(self):
        with self.lock:
            self.attempts += 1
            self.flying += 1
            fault = self.fault
            self.failed += fault is not None
            if fault is None:
                self.flights.append(self.flying)
        try:
            time.sleep(self.delay)
            yield fault
        finally:
            with self.lock:
                self.flying -= 1


class OverGrpc(Counting, peers.Sink):
    KIND, UNAVAILABLE, BUSY, BAD = "otlp_grpc", CODE.UNAVAILABLE, CODE.RESOURCE_EXHAUSTED, CODE.INVALID_ARGUMENT

    def __init__(self):
        Counting.__init__(self)
        peers.Sink.__init__(self, threads=64)
        self.answer = self.count

    def count(self, data, context):
        with self.attempt() as fault:
            if fault is self.BUSY: # with RetryInfo of one second, else it is permanent
                detail = b"\x08\x08\x1a\x30\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x04\x0a\x02\x08\x01"
                context.set_trailing_metadata((("grpc-status-details-bin", detail),))
            if fault is not None:
                context.abort(fault, "no")
        return b""

    def target(self):
        return "127.0.0.1:%d" % self.port


class OverHttp(Counting, OtlpSink):
    KIND, UNAVAILABLE, BUSY, BAD = "otlp_http", 503, 429, 400

    def __init__(self):
        Counting.__init__(self)
        OtlpSink.__init__(self)
        self.answer = self.count

    def count(self, taken, number):
        with self.attempt() as fault:
            headers = {"Retry-After": "1"} if fault == self.BUSY else {}
            return OK if fault is None else reply(fault, b"", headers)

    def target(self):
        return "http://127.0.0.1:%d" % self.port


BOTH = pytest.mark.parametrize("kind", [OverGrpc, OverHttp], ids=["grpc", "http"])


@contextlib.contextmanager
def rig(build, kind, most="0s"):
    healthy = peers.Sink()
    with healthy, kind() as sink:
        text = (CONFIG % (sink.target(), CONSUMERS)).replace("KIND", kind.KIND).replace("MAX", most)
        text = text.replace("{port:healthy}", str(healthy.port))
        with Gateway(build / "portcullis", text) as g, peers.Client(g.port["otlp"]) as client:
            yield sink, g, client
            assert len(healthy.received) == PACKETS
            assert g.balanced("profiles", kind.KIND)


def state(g, kind):
    return g.total("otelcol_exporter_circuit_state", exporter=kind.KIND)


def send(client):
    for seed in range(PACKETS):
        client.send(make.request(seed))


@BOTH
def test_an_outage_costs_one_attempt_for_each_interval(build, kind):
    """Whatever waits is not tried: without a circuit, 16 consumers would make 80 attempts a second."""
    with rig(build, kind) as (sink, g, client):
        sink.fault, begun = sink.UNAVAILABLE, time.monotonic()
        send(client)
        g.until(lambda: state(g, kind) == 2)
        g.until(lambda: sink.failed >= CONSUMERS + 10)
        intervals = (time.monotonic() - begun) / 0.2
        assert sink.failed <= CONSUMERS + intervals + 1 # those in flight when it began, then the probes
        sink.delay, sink.fault = 0.02, None
        g.until(lambda: g.total("otelcol_ledger_queued_samples") == 0)
        assert state(g, kind) == 0
        # No attempt too many: each packet once, and what failed.
        assert sink.attempts == sink.failed + PACKETS
        assert g.total("otelcol_exporter_retries", exporter=kind.KIND) == sink.failed
        assert g.total("otelcol_ledger_out_samples", exporter=kind.KIND) == 50 * PACKETS
        # And no herd: one, then two, and so on.
        assert sink.flights[0] == 1 and all(n <= i + 1 for i, n in enumerate(sink.flights)), sink.flights
        log = g.log()
        assert log.count("Exporting failed.") == log.count("Exporting works again.") == 1


@BOTH
def test_a_destination_that_asks_for_time_gets_it(build, kind):
    """A storm of 429 with a hint: all of them wait, not only those that were refused."""
    with rig(build, kind) as (sink, g, client):
        sink.fault = sink.BUSY
        client.send(make.request(0))
        g.until(lambda: sink.failed == 1 and state(g, kind) == 2)
        at = time.monotonic()
        for seed in range(1, PACKETS):
            client.send(make.request(seed))
        sink.fault = None
        g.until(lambda: g.total("otelcol_ledger_queued_samples") == 0)
        assert time.monotonic() - at > 0.5
        assert (sink.failed, sink.attempts) == (1, 1 + PACKETS)


@BOTH
def test_what_is_rejected_permanently_is_not_repeated_and_does_not_open_the_circuit(build, kind):
    with rig(build, kind) as (sink, g, client):
        sink.fault = sink.BAD
        send(client)
        g.until(lambda: g.total("otelcol_ledger_queued_samples") == 0)
        assert sink.attempts == sink.failed == PACKETS
        assert state(g, kind) == 0 and g.total("otelcol_exporter_retries") == 0
        assert g.total("otelcol_ledger_dropped_samples", exporter=kind.KIND, reason="permanent") == 50 * PACKETS


@BOTH
def test_what_waits_in_an_outage_is_dropped_after_max_elapsed_time(build, kind):
    """Also what was never attempted."""
    with rig(build, kind, "600ms") as (sink, g, client):
        sink.fault = sink.UNAVAILABLE
        send(client)
        g.until(lambda: g.total("otelcol_ledger_queued_samples") == 0)
        assert g.total("otelcol_ledger_dropped_samples", exporter=kind.KIND, reason="retries_exhausted") == 50 * PACKETS
        assert sink.failed < PACKETS + CONSUMERS


@BOTH
def test_one_request_that_always_fails_does_not_stop_the_others(build, kind):
    poison = otlp.samples(make.request(0).SerializeToString())
    with rig(build, kind) as (sink, g, client):
        inner, bad = sink.answer, [True]

        def answer(request, other):
            data = request if isinstance(request, bytes) else request.body
            if bad[0] and otlp.samples(data) == poison:
                return other.abort(CODE.UNAVAILABLE, "no") if kind is OverGrpc else reply(503)
            return inner(request, other)

        sink.answer = answer
        send(client)
        g.until(lambda: g.total("otelcol_ledger_out_samples", exporter=kind.KIND) == 50 * (PACKETS - 1))
        g.until(lambda: g.total("otelcol_exporter_retries", exporter=kind.KIND) > 2)
        bad[0] = False
        g.until(lambda: g.total("otelcol_ledger_queued_samples") == 0)


@pytest.mark.parametrize("enabled", [True, False])
def test_a_shutdown_does_not_wait_for_the_circuit(build, enabled):
    sink = OverGrpc()
    with sink:
        text = (CONFIG % (sink.target(), CONSUMERS)).replace("KIND", "otlp_grpc").replace("MAX", "0s")
        text = text.replace("{port:healthy}", "1").replace(", otlp_grpc/healthy]", "]")
        if not enabled:
            text = text.replace("initial_interval", "enabled: false, initial_interval")
        with Gateway(build / "portcullis", text) as g, peers.Client(g.port["otlp"]) as client:
            sink.fault = CODE.UNAVAILABLE
            send(client)
            g.until(lambda: sink.failed >= (PACKETS if not enabled else 4))
            assert (g.total("otelcol_exporter_circuit_state") > 0) == enabled
            sink.fault = None
            before = sink.attempts
            assert g.stop() == 0
            assert sink.attempts - before == (PACKETS if enabled else 0)
