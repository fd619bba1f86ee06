# SPDX-License-Identifier: Apache-2.0
"""A destination that dies, hangs or refuses harms itself alone, and every sample is accounted for."""
import os
import threading
import time

import grpc
import pytest

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 64}}}
exporters:
  otlp_grpc/a:
    endpoint: 127.0.0.1:{port:a}
    tls: {insecure: true}
  otlp_grpc/b:
    endpoint: 127.0.0.1:{port:b}
    tls: {insecure: true}
    timeout: 500ms
    sending_queue: {queue_size: 50}
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms, max_elapsed_time: 0s}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc/a, otlp_grpc/b]}
"""

pytestmark = pytest.mark.alone


def send_many(gateway, count, first=0):
    """The latencies of requests sent one after another."""
    latencies = []
    with peers.Client(gateway.port["otlp"]) as client:
        for seed in range(first, first + count):
            begun = time.monotonic()
            client.send(make.request(seed, samples=20))
            latencies.append(time.monotonic() - begun)
    return latencies


def median(values):
    return sorted(values)[len(values) // 2]


@pytest.mark.threads
def test_a_dead_destination_costs_the_other_nothing_and_catches_up_within_its_queue(build):
    gateway = Gateway(build / "portcullis", CONFIG)
    a, b = peers.Sink(gateway.port["a"]), peers.Sink(gateway.port["b"])
    with a, gateway:
        b.start()
        with_both = send_many(gateway, 40)
        gateway.until(lambda: sum(b.samples().values()) == 40 * 20)
        b.stop()
        with_one = send_many(gateway, 40, first=100)
        b.start()
        gateway.until(lambda: sum(a.samples().values()) == 80 * 20)
        gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples", exporter="otlp_grpc/b") == 0)
        # At least once: a request whose answer died with the server is sent again.
        assert not a.samples() - b.samples(), "what was queued while it was dead arrived"
        assert set(a.samples()) == set(b.samples())
        for exporter in ("otlp_grpc/a", "otlp_grpc/b"):
            assert gateway.balanced("profiles", exporter), gateway.ledger("profiles", exporter)
        # Twenty times would be the destination's timeout showing through.
        assert median(with_one) < 20 * median(with_both)
        b.stop()


class Load:
    """Three senders at once, until told to stop; how long each request took to the sink that is watched."""

    def __init__(self, gateway, sink):
        self.gateway, self.over, self.sent, self.delays = gateway, threading.Event(), {}, {}
        sink.answer = self.arrived
        self.threads = [threading.Thread(target=self.send, args=(i,)) for i in range(3)]

    def arrived(self, data, context):
        service = otlp.parse(data).resource_profiles[0].resource.attributes[0].value.string_value
        self.delays.setdefault(service, time.monotonic() - self.sent[service])
        return b""

    def send(self, number):
        with peers.Client(self.gateway.port["otlp"]) as client:
            seed = number
            while not self.over.wait(.02):
                seed += 3
                service = "service-%d" % seed
                message = make.request(seed, samples=20, service=service)
                self.sent[service] = time.monotonic()
                client.send(message)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


@pytest.mark.threads
def test_a_destination_is_killed_under_load_again_and_again(build):
    gateway = Gateway(build / "portcullis", CONFIG.replace("queue_size: 50", "queue_size: 1000"))
    a, b = peers.Sink(gateway.port["a"]), peers.Sink(gateway.port["b"])
    with a, gateway:
        b.start()
        with Load(gateway, a) as load:
            gateway.until(lambda: len(load.delays) > 60)
            well = len(load.delays)
            for _ in range(4):
                b.stop()
                goal = len(load.delays) + 30
                gateway.until(lambda: len(load.delays) > goal)
                b.start()
                gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples", exporter="otlp_grpc/b") < 10 * 20)
        gateway.until(lambda: not gateway.total("otelcol_ledger_queued_samples"))
        assert sum(a.samples().values()) == 20 * len(load.sent), "all of it, once"
        assert not a.samples() - b.samples(), "and at least once"
        for exporter in ("otlp_grpc/a", "otlp_grpc/b"):
            assert gateway.balanced("profiles", exporter), gateway.ledger("profiles", exporter)
            assert gateway.total("otelcol_ledger_dropped_samples", exporter=exporter) == 0
        delays = list(load.delays.values())
        # Twenty times would be the destination's timeout showing through.
        assert median(delays[well:]) < 20 * median(delays[:well])
        b.stop()


def test_what_does_not_fit_is_dropped_for_the_dead_one_alone(build):
    gateway = Gateway(build / "portcullis", CONFIG)
    with peers.Sink(gateway.port["a"]) as a, gateway:
        send_many(gateway, 100)
        gateway.until(lambda: sum(a.samples().values()) == 100 * 20)
        dropped = gateway.total("otelcol_exporter_enqueue_failed_profile_samples", exporter="otlp_grpc/b")
        assert dropped == 50 * 20
        assert gateway.total("otelcol_ledger_dropped_samples", exporter="otlp_grpc/b", reason="queue_full") == dropped
        assert gateway.balanced("profiles", "otlp_grpc/b"), gateway.ledger("profiles", "otlp_grpc/b")
        assert gateway.total("otelcol_ledger_dropped_samples", exporter="otlp_grpc/a") == 0


def test_a_full_house_is_refused_before_the_body(build):
    gateway = Gateway(build / "portcullis", CONFIG.replace("exporters: [otlp_grpc/a, otlp_grpc/b]",
                                                           "exporters: [otlp_grpc/b]"))
    with gateway:
        send_many(gateway, 50)
        with peers.Client(gateway.port["otlp"]) as client:
            error = peers.refused(client, make.request(1))
        assert error.code() == grpc.StatusCode.UNAVAILABLE
        assert any(k == "grpc-status-details-bin" and b"RetryInfo" in v for k, v in error.trailing_metadata())
        assert gateway.total("otelcol_receiver_refused_requests", reason="queue_full") == 1
        assert gateway.balanced("profiles", "otlp_grpc/b"), gateway.ledger("profiles", "otlp_grpc/b")


def test_a_hanging_destination_is_given_up_at_the_deadline_of_the_shutdown(build):
    gateway = Gateway(build / "portcullis", CONFIG, arguments=["--shutdown-timeout", "1s"])
    a, b = peers.Sink(gateway.port["a"]), peers.Sink(gateway.port["b"])
    gone = threading.Event()
    b.answer = lambda data, context: gone.wait(30) and b""
    with a, b, gateway:
        send_many(gateway, 30)
        gateway.until(lambda: sum(a.samples().values()) == 30 * 20)
        assert gateway.stop() == 0
        gone.set()
    assert "Shutdown complete." in gateway.log()


def test_sigterm_drains_what_is_queued_and_batched(build):
    text = CONFIG.replace("exporters:\n  otlp_grpc/a", "processors:\n  batch: {timeout: 1h}\nexporters:\n  otlp_grpc/a", 1)
    text = text.replace("receivers: [otlp], exporters", "receivers: [otlp], processors: [batch], exporters")
    gateway = Gateway(build / "portcullis", text)
    with peers.Sink(gateway.port["a"]) as a, peers.Sink(gateway.port["b"]) as b, gateway:
        send_many(gateway, 10)
        assert not a.received
        assert gateway.stop() == 0
        assert sum(a.samples().values()) == sum(b.samples().values()) == 10 * 20


def test_batches_whose_senders_have_their_answers_are_not_lost_to_a_full_queue(build):
    text = CONFIG.replace("exporters:\n  otlp_grpc/a", "processors:\n  batch: {timeout: 500ms}\nexporters:\n  otlp_grpc/a", 1)
    text = text.replace("queue_size: 50", "queue_size: 1").replace(
        "receivers: [otlp], exporters: [otlp_grpc/a, otlp_grpc/b]",
        "receivers: [otlp], processors: [batch], exporters: [otlp_grpc/b]")
    gateway = Gateway(build / "portcullis", text)
    with gateway, peers.Client(gateway.port["otlp"]) as client:
        for i in range(16):  # so many that there is an open batch in more than one shard
            client.send(make.request(i, samples=20, service="service-%d" % i))
        gateway.until(lambda: gateway.total("otelcol_ledger_batched_samples") == 0)
        assert gateway.total("otelcol_ledger_queued_samples") == 16 * 20
        assert gateway.total("otelcol_exporter_enqueue_failed_profile_samples") == 0
        assert peers.refused(client, make.request(1)).code() == grpc.StatusCode.UNAVAILABLE
        with peers.Sink(gateway.port["b"]) as b:
            gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 0)
            assert sum(b.samples().values()) == 16 * 20


def send_in_background(gateway, count):
    """Requests that wait for their answers; the list fills with the status of each."""
    answers, threads = [], []

    def send(seed):
        with peers.Client(gateway.port["otlp"]) as client:
            try:
                client.send(make.request(seed, samples=20))
                answers.append(grpc.StatusCode.OK)
            except grpc.RpcError as error:
                answers.append(error.code())

    for seed in range(count):
        threads.append(threading.Thread(target=send, args=(seed,)))
        threads[-1].start()
    return answers, threads


WAITING = CONFIG.replace("exporters:\n  otlp_grpc/a", "processors:\n  batch: {timeout: 1h}\nexporters:\n  otlp_grpc/a", 1).replace(
    "receivers: [otlp], exporters: [otlp_grpc/a, otlp_grpc/b]", "receivers: [otlp], processors: [batch], exporters: [otlp_grpc/b]"
).replace("queue_size: 50", "queue_size: 50, wait_for_result: true")


@pytest.mark.threads
@pytest.mark.parametrize("alive", [True, False])
def test_senders_that_wait_for_the_result_are_answered_when_the_gateway_stops(build, alive):
    gateway = Gateway(build / "portcullis", WAITING)
    b = peers.Sink(gateway.port["b"])
    with gateway:
        if alive:
            b.start()
        answers, threads = send_in_background(gateway, 5)
        gateway.until(lambda: gateway.total("otelcol_ledger_in_samples") == 5 * 20)
        assert not answers, "the batch is open"
        assert gateway.stop() == 0
    for thread in threads:
        thread.join()
    assert answers == 5 * [grpc.StatusCode.OK if alive else grpc.StatusCode.UNAVAILABLE]
    assert sum(b.samples().values()) == (5 * 20 if alive else 0)
    b.stop()


@pytest.mark.parametrize("status, told", [(grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL),
                                          (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INTERNAL),
                                          (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAVAILABLE)])
def test_a_sender_that_waits_is_told_whether_to_come_back(build, status, told):
    text = WAITING.replace("timeout: 1h", "timeout: 10ms").replace("max_elapsed_time:", "enabled: false, max_elapsed_time:")
    assert "enabled: false" in text
    gateway = Gateway(build / "portcullis", text)
    with peers.Sink(gateway.port["b"]) as b, gateway, peers.Client(gateway.port["otlp"]) as client:
        b.answer = lambda data, context: context.abort(status, "no")
        with pytest.raises(grpc.RpcError) as refusal:
            client.send(make.request(1, samples=20))
    assert refusal.value.code() == told
    assert ("grpc-status-details-bin" in dict(refusal.value.trailing_metadata())) == (told == grpc.StatusCode.UNAVAILABLE)


@pytest.mark.threads
def test_a_second_signal_ends_the_wait(build):
    gateway = Gateway(build / "portcullis", CONFIG, arguments=["--shutdown-timeout", "1h"])
    gone = threading.Event()
    with peers.Sink(gateway.port["a"]), peers.Sink(gateway.port["b"]) as b:
        b.answer = lambda data, context: gone.wait(60) and b""
        text = gateway.config.read_text().replace("timeout: 500ms", "timeout: 0s")
        gateway.config.write_text(text)
        with gateway:
            send_many(gateway, 5)
            gateway.process.terminate()
            gateway.until(lambda: "Starting shutdown..." in gateway.log())
            assert gateway.stop() == 0
            gone.set()
    assert "Shutdown dropped data." in gateway.log()


HUNG = 6  # more than the pool has threads for everybody


@pytest.fixture
def pipes(tmp_path):
    """Named pipes whose reader is there and never reads: writes hang when they are full."""
    paths = [tmp_path / ("pipe%d" % i) for i in range(HUNG)]
    readers = []
    for path in paths:
        os.mkfifo(path)
        readers.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    yield paths
    for reader in readers:
        os.close(reader)


def beside(pipes):
    """One good destination and the pipes."""
    names = ["file/%d" % i for i in range(len(pipes))]
    return """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  file: {path: good.jsonl}
%s
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [file, %s]}
""" % ("\n".join("  %s: {path: %s}" % pair for pair in zip(names, pipes)), ", ".join(names))


def fill(gateway, count=10):
    """Requests that are more than a pipe holds; all of them arrive where nothing hangs."""
    with peers.Client(gateway.port["otlp"]) as client:
        for seed in range(count):
            client.send(make.request(seed, samples=1000))
    gateway.until(lambda: gateway.total("otelcol_ledger_out_samples", exporter="file") == count * 1000)
    assert gateway.total("otelcol_ledger_queued_samples", exporter="file/0") > 0


@pytest.mark.parametrize("timeout, signals", [("1s", 1), ("1h", 2)])
def test_a_write_that_hangs_does_not_hold_up_the_end(build, pipes, timeout, signals):
    with Gateway(build / "portcullis", beside(pipes), arguments=["--shutdown-timeout", timeout]) as gateway:
        fill(gateway)
        for i in range(signals):
            gateway.process.terminate()
            gateway.until(lambda: gateway.log().count("Received signal from OS") == i + 1)
        assert gateway.process.wait(30) == 0
    assert gateway.log().count("Shutdown dropped data: a send operation hangs.") == HUNG
    assert "Shutdown did not finish in time" in gateway.log()


def test_writes_that_hang_cost_the_other_destinations_nothing(build, pipes):
    with Gateway(build / "portcullis", beside(pipes)) as gateway:
        try:
            fill(gateway)
        finally:
            gateway.process.kill()
            gateway.process.wait()
