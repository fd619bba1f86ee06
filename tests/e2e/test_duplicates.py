# SPDX-License-Identifier: Apache-2.0
"""Repeated requests: what exporters send to make them recognisable, and what receivers do about them."""
import contextlib
import re
import signal
import threading
import time

import grpc
import pytest

from harness import build as make
from harness import durable, otlp, peers
from harness.cutting import Cutter
from harness.gateway import Gateway
from harness.otlphttp import OtlpSink
from harness.push import PushSink, refusal

pytestmark = pytest.mark.threads

HEADER, KEY = "idempotency-key", re.compile(r'"[0-9a-f]{32}"')
SAMPLES, REQUESTS, CUTS = 10, 12, 4

FIRST = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}, ack: delivered}
exporters:
  EXPORTER
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [TYPE]}
"""
RETRY = "retry_on_failure: {initial_interval: 20ms, max_interval: 50ms}"
EXPORTERS = {
    "otlp_grpc": "otlp_grpc: {endpoint: 127.0.0.1:PORT, tls: {insecure: true}, %s MORE}" % RETRY,
    "otlp_http": "otlp_http: {endpoint: http://127.0.0.1:PORT, %s MORE}" % RETRY,
    "pyroscope": "pyroscope: {endpoint: http://127.0.0.1:PORT, %s MORE}" % RETRY,
    "parca": "parca: {endpoint: 127.0.0.1:PORT, tls: {insecure: true}, %s MORE}" % RETRY,
}
SECOND = """
receivers:
  RECEIVER
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:SINK, tls: {insecure: true}}
service:
  pipelines:
    profiles: {receivers: [TYPE], exporters: [otlp_grpc]}
"""
RECEIVERS = {
    "otlp_grpc": "otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:in}}}, ack: ACK, deduplicate: {}}",
    "otlp_http": "otlp: {protocols: {http: {endpoint: 127.0.0.1:{port:in}}}, ack: ACK, deduplicate: {}}",
    "pyroscope": "pyroscope: {endpoint: 127.0.0.1:{port:in}, ack: ACK, deduplicate: {}}",
    "parca": "parca: {protocols: {grpc: {endpoint: 127.0.0.1:{port:in}}}, ack: ACK, deduplicate: {}}",
}
KINDS = list(EXPORTERS)


def first(build, kind, port, more=""):
    """A gateway that sends to the port by this exporter."""
    exporter = EXPORTERS[kind].replace("PORT", str(port)).replace("MORE", ", " + more if more else "")
    return Gateway(build / "portcullis", FIRST.replace("EXPORTER", exporter).replace("TYPE", kind))


def second(build, kind, sink, ack="delivered", replace=("", "")):
    """A gateway that drops repeated requests."""
    receiver = RECEIVERS[kind].replace("ACK", ack).replace(*replace)
    text = SECOND.replace("RECEIVER", receiver).replace("SINK", str(sink.port))
    return Gateway(build / "portcullis", text.replace("TYPE", receiver.split(":")[0]))


def requests(count=REQUESTS, **options):
    found = [make.request(seed, samples=SAMPLES, **options) for seed in range(count)]
    for p in (p for r in found for o in r.resource_profiles for s in o.scope_profiles for p in s.profiles):
        p.time_unix_nano = time.time_ns()
    return found


def send(gateway, messages):
    with peers.Client(gateway.port["otlp"]) as client:
        for message in messages:
            client.send(message)


def settle(gateway, exporter):
    gateway.until(lambda: not gateway.ledger("profiles", exporter)["queued"])
    gateway.until(lambda: gateway.balanced("profiles", exporter))


def duplicates(gateway):
    return gateway.total("otelcol_receiver_requests", outcome="duplicate")


def dropped(gateway):
    return gateway.total("otelcol_ledger_receiver_dropped_samples", reason="duplicate")


# ---- two gateways

def through_two(build, kind, messages, cuts):
    """What arrives at the destination of the second gateway, and the number of repetitions that it dropped."""
    http2 = kind in ("otlp_grpc", "parca")
    with peers.Sink() as sink, second(build, kind, sink) as b, Cutter(b.port["in"], http2) as cutter:
        with first(build, kind, cutter.port) as a:
            cutter.cuts = cuts
            send(a, messages)
            settle(a, kind)
            settle(b, "otlp_grpc")
            assert cutter.lost == cuts and duplicates(b) == cuts
            assert b.total("otelcol_receiver_duplicate_profile_samples") == dropped(b)
            assert (dropped(b) > 0) == (cuts > 0)
            assert b.total("otelcol_ledger_receiver_in_samples") == dropped(b) + b.total("otelcol_ledger_in_samples")
        return sink.samples()


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_reply_duplicates_nothing(build, kind):
    messages = requests()
    whole = through_two(build, kind, messages, 0)
    assert whole and through_two(build, kind, messages, CUTS) == whole


def test_a_kill_between_sending_and_the_reply_duplicates_nothing(build, tmp_path):
    with peers.Sink() as sink, second(build, "otlp_grpc", sink) as b, Cutter(b.port["in"]) as cutter:
        cutter.holds = True
        with durable.gateway(build, cutter, tmp_path) as a:
            taken = durable.send(a, range(4))
            a.until(lambda: b.total("otelcol_receiver_requests", outcome="success") == 4)
            a.stop(signal.SIGKILL)
        cutter.holds = False
        with durable.gateway(build, cutter, tmp_path) as a:
            a.until(lambda: duplicates(b) == 4)
            settle(a, "otlp_grpc")
        settle(b, "otlp_grpc")
        assert len(taken) == 4 and sink.samples() == durable.expected(taken)


def test_data_that_is_equal_is_not_a_repetition(build):
    """Two replicas whose permitted attributes are equal may send the same bytes; both were acknowledged."""
    message = requests(1)[0]
    with peers.Sink() as sink, second(build, "otlp_grpc", sink) as b, first(build, "otlp_grpc", b.port["in"]) as a:
        send(a, [message] * 3)
        settle(a, "otlp_grpc")
        settle(b, "otlp_grpc")
        assert not duplicates(b) and sink.samples() == durable.expected([message] * 3)


# ---- what exporters send

class Destination:
    """Fails the first `failures` requests, for now, and keeps the key of each request, in order."""

    def __init__(self, kind, failures):
        self.kind, self.left, self.keys = kind, failures, []
        self.sink = {"otlp_http": OtlpSink, "pyroscope": PushSink}.get(kind, peers.Sink)()
        if kind == "parca":
            self.sink.method = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
        self.sink.answer = self.over_grpc if isinstance(self.sink, peers.Sink) else self.over_http

    def fails(self):
        self.left -= 1
        return self.left >= 0

    def over_grpc(self, _, context):
        self.keys.append([v for k, v in context.invocation_metadata() if k == HEADER])
        if self.fails():
            context.abort(grpc.StatusCode.UNAVAILABLE, "")
        return b""

    def over_http(self, taken, _):
        self.keys.append(taken.headers.get_all(HEADER, []))
        return refusal(503, "unavailable", "") if self.fails() else self.sink.ok


@contextlib.contextmanager
def destination(kind, failures=0):
    d = Destination(kind, failures)
    with d.sink:
        yield d


@pytest.mark.parametrize("kind", KINDS)
def test_every_attempt_has_the_key_of_its_request(build, kind):
    with destination(kind, 3) as d, first(build, kind, d.sink.port) as g:
        send(g, requests(2))
    keys = [key for found in d.keys for key in found]
    assert len(keys) == len(d.keys) == 5 and all(KEY.fullmatch(key) for key in keys)
    assert len(set(keys)) == 2 and len(set(keys[:4])) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_key_can_be_switched_off_or_configured(build, kind):
    for more, wanted in (("idempotency_key: false", []), ("headers: {Idempotency-Key: mine}", ["mine"])):
        with destination(kind) as d, first(build, kind, d.sink.port, more) as g:
            send(g, requests(2))
        assert d.keys == [wanted] * 2


@pytest.mark.parametrize("kind", ["otlp_http", "pyroscope"])
def test_a_conflict_means_that_an_earlier_attempt_is_in_progress(build, kind):
    """As the draft of the header says; without the header it is permanent."""
    for more, wanted in (("", 3), ("idempotency_key: false", 1)):
        with destination(kind) as d:
            d.sink.answer = lambda taken, number, sink=d.sink: refusal(409, "aborted", "") if number < 3 else sink.ok
            with first(build, kind, d.sink.port, more) as g, peers.Client(g.port["otlp"]) as client:
                message = requests(1)[0]
                client.send(message) if wanted == 3 else peers.refused(client, message)
            assert len(d.sink.seen) == wanted


def test_parts_of_a_split_request_have_keys_of_their_own(build):
    with destination("otlp_grpc", 2) as d, first(build, "otlp_grpc", d.sink.port, "limits: {max_samples: 3}") as g:
        send(g, requests(1))
    keys = [key for found in d.keys for key in found]
    assert len(keys) == 6 and len(set(keys[:3])) == 1 and len(set(keys)) == 4


@pytest.mark.parametrize("limit", ["", "    limits: {max_samples: 7}\n"])
def test_a_restart_does_not_change_the_keys(build, tmp_path, monkeypatch, limit):
    monkeypatch.setattr(durable, "CONFIG", durable.CONFIG.replace("tls: {insecure: true}", "tls: {insecure: true}\n" + limit))
    over, before, after = threading.Event(), set(), set()

    def hang(_, context):
        before.update(v for k, v in context.invocation_metadata() if k == HEADER)
        over.wait(60)
        return b""

    def keep(_, context):
        after.update(v for k, v in context.invocation_metadata() if k == HEADER)
        return b""

    with peers.Sink() as sink:
        sink.answer = hang
        with durable.gateway(build, sink, tmp_path) as g:
            durable.send(g, range(3))
            g.until(lambda: len(before) == 3)
            g.stop(signal.SIGKILL)
        sink.answer = keep
        over.set()
        with durable.gateway(build, sink, tmp_path) as g:
            g.until(lambda: not g.ledger("profiles", "otlp_grpc")["queued"])
        parts = len(range(0, durable.SAMPLES, 7)) if limit else 1
        assert before <= after and len(after) == 3 * parts


# ---- what receivers do

@contextlib.contextmanager
def receiver(build, kind="otlp_grpc", **options):
    with peers.Sink() as sink, second(build, kind, sink, **options) as g:
        g.sink = sink
        yield g


def deliver(g, message, key, **metadata):
    with peers.Client(g.port["in"]) as client:
        return client.send(message, metadata=[(HEADER, key), *metadata.items()])


def test_a_repetition_is_answered_as_the_first_request(build):
    """Also where a part was rejected."""
    message = requests(1, profiles=2)[0]
    bad = otlp.parse(message.SerializeToString())
    bad.resource_profiles[0].scope_profiles[0].profiles[0].sample_type.type_strindex = 10 ** 6
    with receiver(build) as g:
        replies = [deliver(g, bad, "key-of-16-letters") for _ in range(3)]
        assert replies[0].partial_success.rejected_profiles == 1 and replies[0].partial_success.error_message
        assert replies == [replies[0]] * 3
        settle(g, "otlp_grpc")
        assert duplicates(g) == 2 and len(g.sink.received) == 1


def test_a_large_request_is_recognised_too(build):
    """It is run by a worker."""
    message = make.request(1, samples=3000, functions=2000)
    assert message.ByteSize() > 1 << 17
    with receiver(build) as g:
        for _ in range(3):
            deliver(g, message, "key-of-16-letters")
        assert duplicates(g) == 2 and len(g.sink.received) == 1


def test_a_refused_request_may_come_again(build):
    message = requests(1)[0]
    with receiver(build) as g, peers.Client(g.port["in"]) as client:
        error = peers.refused(client, b"\xff", metadata=[(HEADER, "key-of-16-letters")])
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
        deliver(g, message, "key-of-16-letters")
        assert not duplicates(g) and g.sink.samples() == durable.expected([message])


def test_malformed_keys_are_ignored_and_counted(build):
    message = requests(1)[0]
    with receiver(build) as g:
        for key in ("short", "no spaces are allowed", "x" * 65, '"unbalanced-quotes', "a" * 8000):
            for _ in range(2):
                deliver(g, message, key)
        assert not duplicates(g) and len(g.sink.received) == 10
        assert g.total("otelcol_receiver_unused_idempotency_keys", reason="invalid") == 10


def test_a_repetition_waits_for_the_first_request(build):
    """It is refused with a retry hint until the destination has accepted the first."""
    message, go = requests(1)[0], threading.Event()
    with receiver(build) as g:
        g.sink.answer = lambda data, context: go.wait(60) and b""
        sender = threading.Thread(target=deliver, args=(g, message, "key-of-16-letters"))
        sender.start()
        g.until(lambda: g.total("otelcol_receiver_idempotency_keys") == 1)
        with peers.Client(g.port["in"]) as client:
            error = peers.refused(client, message, metadata=[(HEADER, "key-of-16-letters")])
        assert error.code() == grpc.StatusCode.UNAVAILABLE and "Idempotency-Key" in error.details()
        assert any(k == "grpc-status-details-bin" and b"RetryInfo" in v for k, v in error.trailing_metadata())
        assert g.total("otelcol_receiver_refused_requests", reason="in_progress") == 1
        go.set()
        sender.join()
        deliver(g, message, "key-of-16-letters")
        assert duplicates(g) == 1 and len(g.sink.received) == 1


def test_the_window_ends(build):
    message = requests(1)[0]
    with receiver(build, replace=("{}", "{window: 1ms}")) as g:
        for _ in range(3):
            deliver(g, message, "key-of-16-letters")
            time.sleep(0.01)
        assert not duplicates(g) and len(g.sink.received) == 3


def test_it_is_off_unless_configured(build):
    message = requests(1)[0]
    for replace in ((", deduplicate: {}", ""), ("{}", "{enabled: false}")):
        with receiver(build, replace=replace) as g:
            deliver(g, message, "key-of-16-letters")
            deliver(g, message, "key-of-16-letters")
            assert not duplicates(g) and len(g.sink.received) == 2


def test_tenants_do_not_suppress_each_other(build):
    message = requests(1)[0]
    with peers.Sink() as sink:
        text = SECOND.replace("RECEIVER", RECEIVERS["otlp_grpc"].replace("ACK", "delivered")).replace("SINK", str(sink.port))
        text = text.replace("TYPE", "otlp").replace("service:\n", "service:\n  tenant: {header: x-tenant}\n")
        with Gateway(build / "portcullis", text) as g:
            for tenant in ("a", "b", "a"):
                deliver(g, message, "key-of-16-letters", **{"x-tenant": tenant})
            assert duplicates(g) == 1 and len(sink.received) == 2


def test_a_reload_keeps_what_is_remembered(build):
    """Unless it changes the receiver."""
    message = requests(1)[0]

    def reload(g, old, new, number):
        g.config.write_text(g.config.read_text().replace(old, new))
        g.process.send_signal(signal.SIGHUP)
        g.until(lambda: g.total("otelcol_config_generation") == number)

    with receiver(build) as g:
        deliver(g, message, "key-of-16-letters")
        reload(g, "tls: {insecure: true}}", "tls: {insecure: true}, sending_queue: {queue_size: 99}}", 2)
        deliver(g, message, "key-of-16-letters")
        assert duplicates(g) == 1 and len(g.sink.received) == 1
        reload(g, "deduplicate: {}", "deduplicate: {window: 1m}", 3)
        deliver(g, message, "key-of-16-letters")
        assert duplicates(g) == 1 and len(g.sink.received) == 2
