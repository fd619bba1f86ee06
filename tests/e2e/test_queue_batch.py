# SPDX-License-Identifier: Apache-2.0
"""sending_queue.batch: an exporter joins requests as it is told, whatever its pipeline and the others do."""
import threading
import time

import grpc
import pytest

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, include_metadata: true}}}
processors: {batch: {timeout: 1h, send_batch_size: 1000000}}
exporters:
  otlp_grpc/plain: {endpoint: 127.0.0.1:{port:plain}, tls: {insecure: true}}
  otlp_grpc/own: {endpoint: 127.0.0.1:{port:own}, tls: {insecure: true}, sending_queue: {QUEUE}}
service:
  pipelines:
    profiles: {receivers: [otlp], processors: [PROCESSORS], exporters: [otlp_grpc/plain, otlp_grpc/own]}
"""
SIZE = 20


class Fan:
    """A gateway with an exporter of its own batches, and one that leaves them to the pipeline."""

    def __init__(self, build, queue, processors=""):
        text = CONFIG.replace("QUEUE", queue).replace("PROCESSORS", processors)
        self.gateway = Gateway(build / "portcullis", text)
        self.plain, self.own = peers.Sink(self.gateway.port["plain"]), peers.Sink(self.gateway.port["own"])

    def __enter__(self):
        self.plain.start()
        self.own.start()
        self.gateway.__enter__()
        return self

    def __exit__(self, *problem):
        self.gateway.__exit__(*problem)
        self.plain.stop()
        self.own.stop()

    def send(self, count, samples=SIZE, metadata=None):
        with peers.Client(self.gateway.port["otlp"]) as client:
            for seed in range(count):
                client.send(make.request(seed, samples=samples), metadata=metadata)

    def settle(self, samples):
        """Until both have so many samples and nothing waits; then they are the same, and the ledger says so."""
        self.gateway.until(lambda: sum(sizes(self.own)) == sum(sizes(self.plain)) == samples and not
                           self.gateway.total("otelcol_ledger_queued_samples"))
        for exporter in ("otlp_grpc/plain", "otlp_grpc/own"):
            assert self.gateway.balanced("profiles", exporter), exporter
        assert self.own.samples() == self.plain.samples()

    def queued(self):
        return self.gateway.total("otelcol_ledger_queued_samples", exporter="otlp_grpc/own")


def sizes(sink):
    return [otlp.count(otlp.parse(data)) for data in sink.received]


@pytest.mark.threads
def test_one_exporter_gets_batches_and_the_other_every_request(build):
    with Fan(build, "batch: {flush_timeout: 1h, min_size: 400}") as fan:
        fan.send(20)
        fan.settle(400)
        assert sizes(fan.own) == [400] and sizes(fan.plain) == [SIZE] * 20


def test_what_waits_in_a_batch_is_queued_for_the_exporter_until_its_time_comes(build):
    with Fan(build, "batch: {flush_timeout: 1s, min_size: 1000000}") as fan:
        fan.send(3)
        fan.gateway.until(lambda: len(fan.plain.received) == 3)
        assert fan.queued() == 3 * SIZE or fan.own.received
        fan.settle(3 * SIZE)


def test_the_exporters_batch_is_in_place_of_the_pipelines(build):
    with Fan(build, "batch: {flush_timeout: 1h, min_size: 40}", "batch") as fan:
        fan.send(4)
        fan.gateway.until(lambda: len(fan.own.received) == 2)
        assert not fan.plain.received
        assert fan.gateway.total("otelcol_ledger_batched_samples") == 4 * SIZE
        assert fan.gateway.stop() == 0
        assert sizes(fan.plain) == [4 * SIZE]


def test_what_is_larger_than_max_size_is_cut(build):
    with Fan(build, "batch: {flush_timeout: 50ms, min_size: 50, max_size: 70}") as fan:
        fan.send(2, samples=300)
        fan.settle(600)
        assert max(sizes(fan.own)) <= 70


def test_sizes_may_be_bytes(build):
    with Fan(build, "batch: {flush_timeout: 1h, sizer: bytes, min_size: 20000, max_size: 30000}") as fan:
        fan.send(100)
        fan.gateway.until(lambda: len(fan.plain.received) == 100 and len(fan.own.received) > 1)
        assert fan.gateway.stop() == 0
        assert sum(len(data) >= 20000 for data in fan.own.received) == len(fan.own.received) - 1
        assert fan.own.samples() == fan.plain.samples()


def test_a_request_of_more_bytes_is_cut(build):
    with Fan(build, "batch: {flush_timeout: 50ms, sizer: bytes, min_size: 20000, max_size: 30000}") as fan:
        fan.send(1, samples=5000)
        fan.settle(5000)
        assert all(len(data) <= 30000 for data in fan.own.received)


def test_without_max_size_a_batch_has_min_size_bytes(build):
    with Fan(build, "sizer: bytes, queue_size: 100000000, batch: {flush_timeout: 1h, min_size: 4000000}") as fan:
        with peers.Client(fan.gateway.port["otlp"]) as client:
            while not fan.own.received:
                client.send(make.request(len(fan.plain.received), samples=30000, functions=10000))
        assert len(fan.own.received[0]) >= 4000000 > len(fan.plain.received[0])


def test_partitions_are_not_joined(build):
    with Fan(build, "batch: {flush_timeout: 1h, min_size: 60, partition: {metadata_keys: [X-Tenant]}}") as fan:
        for _ in range(3):
            for tenant, samples in ("a", 20), ("b", 30):
                fan.send(1, samples=samples, metadata=[("x-tenant", tenant)])
        fan.gateway.until(lambda: len(fan.own.received) == 2)
        assert sorted(sizes(fan.own)) == [60, 60]
        fan.gateway.until(lambda: fan.queued() == 30)


def test_a_sender_may_wait_for_a_batch(build):
    with Fan(build, "wait_for_result: true, batch: {flush_timeout: 1h, min_size: 60}") as fan:
        done = []

        def one(seed):
            with peers.Client(fan.gateway.port["otlp"]) as client:
                client.send(make.request(seed, samples=SIZE))
            done.append(seed)

        threads = [threading.Thread(target=one, args=(seed,)) for seed in range(3)]
        for thread in threads[:2]:
            thread.start()
        fan.gateway.until(lambda: fan.queued() == 2 * SIZE)
        time.sleep(.1)
        assert not done and not fan.own.received
        threads[2].start()
        for thread in threads:
            thread.join()
        assert len(done) == 3 and sizes(fan.own) == [60]


def test_what_is_open_leaves_at_the_end(build):
    with Fan(build, "batch: {flush_timeout: 1h, min_size: 1000000}") as fan:
        fan.send(3)
        assert fan.gateway.stop() == 0
        assert sizes(fan.own) == [3 * SIZE]


FULL = "sizer: items, queue_size: 100, num_consumers: 1, %s batch: {flush_timeout: 1h, min_size: 40}"


def test_a_full_queue_of_batches_costs_the_other_nothing(build):
    with Fan(build, FULL % "") as fan:
        fan.own.stop()
        fan.send(20)
        fan.gateway.until(lambda: len(fan.plain.received) == 20)
        assert fan.gateway.total("otelcol_ledger_dropped_samples", exporter="otlp_grpc/own", reason="queue_full") == 280
        assert fan.queued() == 120
        assert fan.gateway.balanced("profiles", "otlp_grpc/own")


def send_until_refused(gateway):
    """How many were taken."""
    with peers.Client(gateway.port["otlp"]) as client:
        for taken in range(100):
            try:
                client.send(make.request(taken, samples=SIZE))
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.UNAVAILABLE
                return taken
    raise AssertionError("never refused")


def test_what_was_answered_for_is_not_dropped_where_overflow_blocks(build):
    with Fan(build, FULL % "block_on_overflow: true,") as fan:
        fan.own.stop()
        taken = send_until_refused(fan.gateway)
        fan.gateway.until(lambda: len(fan.plain.received) == taken)
        assert not fan.gateway.total("otelcol_ledger_dropped_samples", exporter="otlp_grpc/own")
        assert fan.queued() == taken * SIZE


@pytest.mark.parametrize("processors", ["", "batch"])
def test_what_was_answered_for_is_kept_somewhere(build, processors):
    """Both are dead: what is not refused waits for one of them at least."""
    text = CONFIG.replace("timeout: 1h, send_batch_size: 1000000", "timeout: 1h, send_batch_size: 40")
    text = text.replace("{port:plain}, tls: {insecure: true}", "{port:plain}, tls: {insecure: true}, sending_queue: {OTHER}")
    other = FULL % "" if not processors else "sizer: items, queue_size: 100, num_consumers: 1"
    text = text.replace("OTHER", other).replace("QUEUE", FULL % "").replace("PROCESSORS", processors)
    with Gateway(build / "portcullis", text) as gateway:
        taken = send_until_refused(gateway)
        lost = min(gateway.total("otelcol_ledger_dropped_samples", exporter="otlp_grpc/" + e) for e in ("plain", "own"))
        assert taken * SIZE >= 120 and not lost
