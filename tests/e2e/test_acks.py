# SPDX-License-Identifier: Apache-2.0
"""When senders get their response: `ack` of receivers, and `required` of exporters."""
import contextlib
import socket
import struct
import subprocess
import threading
import time

import grpc
import pytest

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway, free_port
from harness.otlphttp import OtlpSink

pytestmark = pytest.mark.threads
CODE = grpc.StatusCode
PATH = "/v1development/profiles"
CONFIG = """
receivers:
  otlp:
    protocols: {grpc: {endpoint: '127.0.0.1:{port:grpc}'}, http: {endpoint: '127.0.0.1:{port:http}'}}
    ack: delivered
  otlp/fast:
    protocols: {grpc: {endpoint: '127.0.0.1:{port:fast}'}}
processors:
  batch: {timeout: 100ms}
exporters:
EXPORTERS
service:
  pipelines:
    profiles: {receivers: [otlp, otlp/fast], PROCESSORS exporters: [NAMES]}
"""
PLAIN = "{endpoint: '127.0.0.1:%d', tls: {insecure: true}, compression: none, timeout: 5s%s}"
QUICK = ", retry_on_failure: {initial_interval: 50ms, max_interval: 50ms, max_elapsed_time: 200ms}"
PATIENT = ", retry_on_failure: {initial_interval: 50ms, max_interval: 100ms, max_elapsed_time: 0s}"


class Destination(peers.Sink):
    """Answers only when `go` is set."""

    def __init__(self):
        super().__init__(threads=64)
        self.go, self.asked = threading.Event(), threading.Semaphore(0)
        self.answer = self.wait

    def wait(self, data, context):
        self.asked.release()
        self.go.wait(60)
        return b""

    def refuse(self, code):
        self.answer = lambda data, context: context.abort(code, "no")


def config(exporters, batch=False):
    """{name: (port, more keys)}"""
    lines = "\n".join("  otlp_grpc/%s: %s" % (name, PLAIN % of) for name, of in exporters.items())
    return (CONFIG.replace("EXPORTERS", lines).replace("NAMES", ", ".join("otlp_grpc/" + n for n in exporters))
            .replace("PROCESSORS", "processors: [batch]," if batch else ""))


@contextlib.contextmanager
def rig(build, destinations, batch=False, **more):
    with contextlib.ExitStack() as stack:
        for d, _ in destinations.values():
            if isinstance(d, peers.Sink):
                stack.enter_context(d)
                stack.callback(getattr(d, "go", threading.Event()).set)
        exporters = {n: (d.port if isinstance(d, peers.Sink) else d, keys) for n, (d, keys) in destinations.items()}
        yield stack.enter_context(Gateway(build / "portcullis", config(exporters, batch), **more))


def send_grpc(gateway, data, port="grpc", timeout=60):
    """None, or the status of the error."""
    with peers.Client(gateway.port[port]) as client:
        try:
            client.send(data, timeout=timeout)
        except grpc.RpcError as error:
            return error.code()
    return None


def send_http(gateway, data):
    data = data if isinstance(data, bytes) else data.SerializeToString()
    status, headers, body = peers.post(gateway.port["http"], data, path=PATH,
                                       headers={"Content-Type": "application/x-protobuf"})
    assert status in (200, 500, 503), body
    if status == 503:
        assert int(headers["Retry-After"]) > 0
    return {200: None, 500: CODE.INTERNAL, 503: CODE.UNAVAILABLE}[status]


class Sending(threading.Thread):
    def __init__(self, send, *arguments, **more):
        super().__init__()
        self.result, self.done, self.at = None, threading.Event(), None
        self.what = send, arguments, more
        self.start()

    def run(self):
        send, arguments, more = self.what
        try:
            self.result = send(*arguments, **more)
        finally:
            self.done.set()

    def get(self):
        self.join(60)
        assert self.done.is_set()
        return self.result


TRANSPORTS = pytest.mark.parametrize("send", [send_grpc, send_http], ids=["grpc", "http"])


def settle(gateway, exporters):
    gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 0
                  and gateway.total("otelcol_ledger_batched_samples") == 0)
    for name in exporters:
        assert gateway.balanced("profiles", "otlp_grpc/" + name), gateway.ledger("profiles", "otlp_grpc/" + name)


@TRANSPORTS
@pytest.mark.parametrize("batch", [False, True], ids=["plain", "batch"])
def test_a_sender_gets_its_response_when_every_required_destination_has_answered(build, send, batch):
    """One is slow, and one that is not required is dead."""
    first, second = Destination(), Destination()
    with rig(build, {"first": (first, ""), "second": (second, ""), "dead": (free_port(), ", required: false" + PATIENT)},
             batch, arguments=["--shutdown-timeout", "1s"]) as g:
        sending = Sending(send, g, make.request(1))
        assert first.asked.acquire(timeout=30) and second.asked.acquire(timeout=30)
        first.go.set()
        g.until(lambda: g.total("otelcol_ledger_out_samples", exporter="otlp_grpc/first") == 50)
        assert not sending.done.is_set()
        second.go.set()
        assert sending.get() is None
        assert g.total("otelcol_ledger_out_samples", exporter="otlp_grpc/second") == 50
        assert g.total("otelcol_ledger_queued_samples", exporter="otlp_grpc/dead") == 50
        # An answer is one for all: the other receiver's senders do not wait.
        first.go.clear()
        assert send_grpc(g, make.request(2), "fast") is None
        assert g.total("otelcol_ledger_out_samples", exporter="otlp_grpc/first") == 50


@TRANSPORTS
def test_what_one_destination_rejects_permanently_is_an_error_and_the_others_have_it(build, send):
    refusing, healthy = Destination(), Destination()
    refusing.refuse(CODE.INVALID_ARGUMENT)
    healthy.go.set()
    with rig(build, {"refusing": (refusing, ""), "healthy": (healthy, "")}) as g:
        assert send(g, make.request(1)) == CODE.INTERNAL # no retry would help
        settle(g, ("refusing", "healthy"))
        assert g.total("otelcol_ledger_dropped_samples", exporter="otlp_grpc/refusing", reason="permanent") == 50
        assert healthy.samples() == otlp.samples(make.request(1).SerializeToString())


@TRANSPORTS
def test_what_could_not_be_delivered_for_now_is_an_error_with_a_retry_hint(build, send):
    healthy = Destination()
    healthy.go.set()
    with rig(build, {"dead": (free_port(), QUICK), "healthy": (healthy, "")}) as g:
        assert send(g, make.request(1)) == CODE.UNAVAILABLE
        settle(g, ("dead", "healthy"))
        assert g.total("otelcol_ledger_dropped_samples", exporter="otlp_grpc/dead", reason="retries_exhausted") == 50
        assert send_grpc(g, make.request(2), "fast") is None


@TRANSPORTS
def test_one_that_is_not_required_neither_delays_nor_refuses(build, send):
    """Its queue is full, and its consumer hangs."""
    healthy, hanging = Destination(), Destination()
    healthy.go.set()
    keys = ", required: false, sending_queue: {queue_size: 2, num_consumers: 1}"
    with rig(build, {"healthy": (healthy, ""), "hanging": (hanging, keys)}) as g:
        for seed in range(6):
            assert send(g, make.request(seed)) is None
            assert g.total("otelcol_ledger_out_samples", exporter="otlp_grpc/healthy") == 50 * (seed + 1)
        assert g.total("otelcol_ledger_dropped_samples", exporter="otlp_grpc/hanging", reason="queue_full") == 200
        assert g.total("otelcol_receiver_refused_profile_samples") == 0
        hanging.go.set()
        settle(g, ("healthy", "hanging"))


def test_a_full_queue_refuses_those_that_wait_and_no_other_destination_gets_the_data(build):
    """Otherwise a sender that repeats its request would duplicate it at the destination that had room."""
    healthy, hanging = Destination(), Destination()
    healthy.go.set()
    with rig(build, {"healthy": (healthy, ""), "hanging": (hanging, ", sending_queue: {queue_size: 2, num_consumers: 1}")}) as g:
        waiting = [Sending(send_grpc, g, make.request(seed)) for seed in range(2)]
        g.until(lambda: g.total("otelcol_exporter_queue_size", exporter="otlp_grpc/hanging") == 2)
        g.until(lambda: g.total("otelcol_ledger_out_samples", exporter="otlp_grpc/healthy") == 100)
        assert send_grpc(g, make.request(2)) == CODE.UNAVAILABLE
        assert send_http(g, make.request(2)) == CODE.UNAVAILABLE
        assert len(healthy.received) == 2
        assert send_grpc(g, make.request(3), "fast") is None # only `enqueue`: one queue is enough
        hanging.go.set()
        assert [w.get() for w in waiting] == [None, None]
        settle(g, ("healthy", "hanging"))


@pytest.mark.parametrize("batch", [False, True], ids=["plain", "batch"])
def test_a_partial_success_and_an_empty_request_are_acknowledged(build, batch):
    sink = Destination()
    sink.go.set()
    message = make.request(1, profiles=2)
    message.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].stack_index = 10 ** 6
    left = sum(len(p.samples) for p in message.resource_profiles[0].scope_profiles[0].profiles[1:])
    with rig(build, {"one": (sink, "")}, batch) as g, peers.Client(g.port["grpc"]) as client:
        answer = client.send(message)
        assert answer.partial_success.rejected_profiles == 1
        assert g.total("otelcol_ledger_out_samples", exporter="otlp_grpc/one") == left > 0
        assert client.send(b"") == otlp.Response()
        assert g.total("otelcol_receiver_empty_requests", receiver="otlp") == 1
        settle(g, ("one",))


@pytest.mark.parametrize("batch", [False, True], ids=["plain", "batch"])
def test_senders_that_give_up_leave_nothing_behind(build, batch):
    """By their deadline, and by closing the connection in the middle; the data is delivered all the same."""
    sink = Destination()
    with rig(build, {"one": (sink, ", sending_queue: {num_consumers: 40}")}, batch) as g:
        late = [Sending(send_grpc, g, make.request(seed), timeout=0.3) for seed in range(10)]
        body = make.request(77).SerializeToString()
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", g.port["http"])) as s:
                s.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: %d\r\n\r\n"
                          % (PATH.encode(), len(body)) + body)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                g.until(lambda: g.total("otelcol_ledger_in_samples") > 0)
                time.sleep(0.05)
        assert [w.get() for w in late] == [CODE.DEADLINE_EXCEEDED] * 10
        g.until(lambda: g.total("otelcol_ledger_in_samples") >= 500)
        sink.go.set()
        settle(g, ("one",))
        assert g.total("otelcol_ledger_out_samples") + g.total("otelcol_ledger_merged_samples") == g.total("otelcol_ledger_in_samples")
        assert send_grpc(g, make.request(1)) is None and send_http(g, make.request(2)) is None


@pytest.mark.parametrize("batch", [False, True], ids=["plain", "batch"])
def test_a_shutdown_answers_who_waits(build, batch):
    """The destination is dead and retries have no end: senders get an error at once, and repeat their requests elsewhere."""
    with rig(build, {"dead": (free_port(), PATIENT)}, batch) as g:
        waiting = [Sending(send, g, make.request(seed)) for seed, send in enumerate([send_grpc, send_http] * 4)]
        g.until(lambda: g.total("otelcol_ledger_queued_samples") > 0 or batch and g.total("otelcol_ledger_in_samples") > 0)
        g.until(lambda: g.total("otelcol_ledger_in_samples") == 400)
        assert not any(w.done.is_set() for w in waiting)
        assert g.stop() == 0
        assert [w.get() for w in waiting] == [CODE.UNAVAILABLE] * 8


def test_files_are_read_on_when_their_lines_are_delivered(build, tmp_path):
    sink = Destination()
    with sink:
        text = """
            receivers:
              otlp_json_file: {include: [%s/*.json], start_at: beginning, poll_interval: 20ms}
            exporters:
              otlp_grpc: %s
            service:
              ack: delivered
              pipelines:
                profiles: {receivers: [otlp_json_file], exporters: [otlp_grpc]}
        """ % (tmp_path, PLAIN % (sink.port, ""))
        lines = [otlp.to_json(make.request(seed).SerializeToString()) for seed in range(3)]
        (tmp_path / "a.json").write_bytes(b"".join(line + b"\n" for line in lines))
        with Gateway(build / "portcullis", text) as g:
            try:
                assert sink.asked.acquire(timeout=30)
                assert not sink.asked.acquire(timeout=0.5) # the next line waits
            finally:
                sink.go.set()
            g.until(lambda: len(sink.received) == 3)
            settle(g, ())


def validated(build, text):
    done = subprocess.run([str(build / "portcullis"), "validate", "--config", "file:/dev/stdin"], input=text,
                          capture_output=True, text=True)
    return done.returncode, done.stderr


BASE = """
receivers: {otlp: {protocols: {grpc: {endpoint: 'localhost:4317'}}, ACK}}
exporters: {debug: {KEYS}, debug/b: {required: false}}
service: {SERVICE silence: [no-policy], pipelines: {profiles: {receivers: [otlp], exporters: [debug/b, debug]}}}
"""


@pytest.mark.parametrize("ack, service, keys, error", [
    ("ack: delivered", "", "", None),
    ("ack: service", "ack: delivered,", "", None),
    ("ack: enqueue", "ack: durable,", "", None),
    ("ack: durable", "", "required: false", None),
    ("ack: durable", "", "", "receivers::otlp: ack: `durable` needs a queue on disk at each required exporter; "
     "exporters::debug has none (sending_queue::storage)"),
    ("", "ack: durable,", "", "exporters::debug has none"),
    ("ack: later", "", "", "ack"),
    ("", "ack: service,", "", "ack"),
    ("", "", "required: false, sending_queue: {wait_for_result: true}",
     "sending_queue: `wait_for_result` contradicts `required: false`"),
    ("", "", "required: false, sending_queue: {block_on_overflow: true}",
     "sending_queue: `block_on_overflow` contradicts `required: false`"),
    ("", "", "required: false, sending_queue: {enabled: false}", None),
])
def test_what_is_promised_must_be_possible(build, ack, service, keys, error):
    status, text = validated(build, BASE.replace("ACK", ack).replace("SERVICE", service).replace("KEYS", keys))
    if error is None:
        assert (status, text) == (0, "")
    else:
        assert status == 1 and error in text, text
