# SPDX-License-Identifier: Apache-2.0
"""The ledger: exact in every scrape under load, for receivers, pipelines, tenants and destinations; printed at the end."""
import itertools
import signal
import threading
import time

import grpc
import pytest

from harness import build as make
from harness import ledger, peers
from harness.durable import absent_sink
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}}}}
  otlp/other: {protocols: {grpc: {endpoint: 127.0.0.1:{port:other}}}}
processors:
  batch: {timeout: 5ms, send_batch_size: 100, metadata_keys: [x-batch]}
  batch/other: {timeout: 5ms, send_batch_size: 50}
  allowlist: {keys: [thread.name]}
exporters:
  otlp_grpc/fast: {endpoint: 127.0.0.1:FAST, tls: {insecure: true}}
  otlp_grpc/slow: {endpoint: 127.0.0.1:SLOW, tls: {insecure: true}, sending_queue: {queue_size: 20}}
  otlp_grpc/dead: {endpoint: 127.0.0.1:{port:dead}, tls: {insecure: true}, required: false, sending_queue: {queue_size: 5}}
service:
  tenant: {header: x-tenant, metrics_limit: 3}
  quotas: {service: {samples_per_second: 100000, on_exceeded: sample}}
  pipelines:
    profiles:
      {receivers: [otlp], processors: [allowlist, batch], exporters: [otlp_grpc/fast, otlp_grpc/slow, otlp_grpc/dead]}
    profiles/other: {receivers: [otlp, otlp/other], processors: [batch/other], exporters: [otlp_grpc/fast]}
"""


class Senders:
    """Threads that send until the end, in the names of several tenants, with refusals and bad requests."""

    def __init__(self, gateway):
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(gateway, i)) for i in range(4)]

    def run(self, gateway, number):
        bodies = [make.request(seed, samples=40).SerializeToString() for seed in range(5)] + [b"\x0a\x05bad"]
        with peers.Client(gateway.port["other" if number == 3 else "grpc"]) as client:
            for n in itertools.count():
                if self.over.is_set():
                    return
                metadata = [("x-tenant", "tenant-%d" % (n % 5))] if n % 3 else []
                try:
                    client.send(bodies[n % 6], metadata=metadata, timeout=20)
                except grpc.RpcError:
                    time.sleep(.002)

    def __enter__(self):
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


@pytest.mark.threads
def test_every_scrape_is_exact(build):
    with peers.Sink() as fast, peers.Sink(threads=2) as slow:
        slow.answer = lambda data, context: time.sleep(.02) or b""
        text = CONFIG.replace("FAST", str(fast.port)).replace("SLOW", str(slow.port))
        with Gateway(build / "portcullis", text) as gateway:
            with Senders(gateway):
                held = set()
                for _ in range(60):
                    for labels, row in ledger.check(gateway.metrics()).items():
                        held |= {column for column in ("processing", "batched", "queued") if row[column]}
                    time.sleep(.01)
            assert {"batched", "queued"} <= held
            rows = ledger.check(gateway.metrics())
            assert rows[(("receiver", "otlp"),)]["accepted"] and rows[(("receiver", "otlp/other"),)]["accepted"]
            # two tenants of five, and those without a place
            tenants = [dict(labels)["tenant"] for labels in rows if labels[0][0] == "tenant"]
            assert len(tenants) == 4 and "other" in tenants
            assert rows[(("exporter", "otlp_grpc/dead"), ("pipeline", "profiles"))]["dropped"]
            assert gateway.total("otelcol_ledger_imbalances") == 0
            assert gateway.stop() == 0
            printed = ledger.check_logged(gateway.log())
    names = [m for m, _ in printed]
    assert names.count("Ledger of a receiver") == 2 and names.count("Ledger of a pipeline") == 2
    assert names.count("Ledger of a destination") == 4 and names.count("Ledger of a tenant") == 4
    out = {(f["otelcol.pipeline.id"], f["otelcol.component.id"]): f for m, f in printed if m == "Ledger of a destination"}
    assert out["profiles", "otlp_grpc/fast"]["out"] == out["profiles", "otlp_grpc/fast"]["in"] > 0
    assert all(not f.get("processing") and not f.get("batched") for _, f in printed)


@pytest.mark.threads
def test_batches_of_an_exporter_count_at_it(build):
    with peers.Sink() as fast, peers.Sink() as slow:
        text = CONFIG.replace("FAST", str(fast.port)).replace("SLOW", str(slow.port)).replace(
            "sending_queue: {queue_size: 20}", "sending_queue: {queue_size: 200, batch: {flush_timeout: 300ms, min_size: 500}}")
        with Gateway(build / "portcullis", text) as gateway:
            with Senders(gateway):
                for _ in range(30):
                    for labels, row in ledger.rows(gateway.metrics()).items():
                        assert sum(v if k in ledger.SOURCES else -v for k, v in row.items()) == 0, (labels, row)
            gateway.until(lambda: not gateway.total("otelcol_ledger_queued_samples", exporter="otlp_grpc/slow")
                          and not gateway.total("otelcol_ledger_batched_samples"))
            ledger.check(gateway.metrics())


DURABLE = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}}}, ack: durable}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:SINK
    tls: {insecure: true}
    sending_queue: {storage: file_storage, queue_size: 1000}
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms, max_elapsed_time: 0s}
extensions:
  file_storage: {directory: queue, create_directory: true}
service:
  extensions: [file_storage]
  tenant: {header: x-tenant, metrics_limit: METRICS_LIMIT}
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc]}
"""
SENT = {"a": 3, "b": 2, "c": 1}  # requests
SAMPLES = 20


def durable(build, sink, directory, metrics_limit, keys=("", "")):
    text = DURABLE.replace("SINK", str(sink.port)).replace("METRICS_LIMIT", str(metrics_limit)).replace(*keys)
    return Gateway(build / "portcullis", text, cwd=directory)


def tenants(g, column):
    found = {dict(labels)["tenant"]: row[column] for labels, row in ledger.check(g.metrics()).items()
             if labels[0][0] == "tenant"}
    return {tenant: samples for tenant, samples in found.items() if samples}


def test_the_ledger_of_a_tenant_continues_after_a_restart(build, tmp_path):
    with absent_sink() as sink:
        def gateway(metrics_limit):
            return durable(build, sink, tmp_path, metrics_limit)
        with gateway(100) as g:
            with peers.Client(g.port["grpc"]) as client:
                for tenant, requests in SENT.items():
                    for seed in range(requests):
                        client.send(make.request(seed, samples=SAMPLES), metadata=[("x-tenant", tenant)])
            assert tenants(g, "queued") == {t: n * SAMPLES for t, n in SENT.items()}
            g.stop(signal.SIGKILL)
        # killed, then with fewer rows of tenants, then with all of them again
        for limit, expected in ((100, SENT), (1, None), (100, None)):
            with gateway(limit) as g:
                g.until(lambda: g.total("otelcol_ledger_restored_samples") == 6 * SAMPLES)
                restored = tenants(g, "restored")
                assert sum(restored.values()) == 6 * SAMPLES
                assert not expected or restored == {t: n * SAMPLES for t, n in expected.items()}
                assert tenants(g, "queued") == restored
        sink.start()
        with gateway(100) as g:
            g.until(lambda: not g.total("otelcol_ledger_queued_samples"))
            assert sum(tenants(g, "out").values()) == 6 * SAMPLES
        with gateway(100) as g:
            assert not tenants(g, "restored")


@pytest.mark.threads
def test_totals_are_right_with_more_tenants_than_the_limit(build, tmp_path):
    """Of what was counted under one limit, a part is delivered under another one; the rest is restored under a third."""
    one, keys = ("queue_size: 1000", "queue_size: 1000, num_consumers: 1"), itertools.count()

    def send(g, *names):
        with peers.Client(g.port["grpc"]) as client:
            for name in names:
                client.send(make.request(next(keys), samples=SAMPLES), metadata=[("x-tenant", name)])

    def expect(g, column, **requests):
        g.until(lambda: tenants(g, column) == {name: n * SAMPLES for name, n in requests.items()})

    with absent_sink() as sink:
        with durable(build, sink, tmp_path, 2, one) as g:
            send(g, *"abcdaabbcd")
            expect(g, "queued", a=3, b=3, other=4)
            assert g.stop() == 0
        # a, b and c are delivered, in the order of the queue
        room = threading.Semaphore(3)

        def answer(data, context):
            if not room.acquire(blocking=False):
                context.abort(grpc.StatusCode.UNAVAILABLE, "full")
            return b""
        sink.answer = answer
        sink.start()
        with durable(build, sink, tmp_path, 1, one) as g:
            expect(g, "restored", a=3, other=7)
            expect(g, "out", a=1, other=2)
            send(g, *"bxy")
            expect(g, "queued", a=2, other=8)
            assert g.stop() == 0
        with durable(build, sink, tmp_path, 100, one) as g:
            expect(g, "restored", a=2, b=2, other=6)
            send(g, *"xz")
            expect(g, "queued", a=2, b=2, other=6, x=1, z=1)
            for _ in range(12):
                room.release()
            expect(g, "out", a=2, b=2, other=6, x=1, z=1)
            assert not tenants(g, "queued") and not tenants(g, "dropped")
            assert g.stop() == 0
        with durable(build, sink, tmp_path, 100, one) as g:
            assert not tenants(g, "restored")
