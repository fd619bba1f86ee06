# SPDX-License-Identifier: Apache-2.0
"""A queue on disk: what was stored survives whatever ends the process, and nothing on the disk stops the next start.

LONG=1 kills the program a thousand times."""
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import threading
import time

import grpc
import pytest

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 16}}, ack: ACK}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: LIMIT}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:SINK
    tls: {insecure: true}
    sending_queue: {storage: file_storage, queue_size: 100000, num_consumers: 4}
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms, max_elapsed_time: 0s}
extensions:
  file_storage: {directory: queue, create_directory: true, STORAGE}
service:
  extensions: [file_storage]
  pipelines:
    profiles: {receivers: [otlp], processors: [memory_limiter], exporters: [otlp_grpc]}
"""
KILLS = 1000 if os.environ.get("LONG") else 6
SAMPLES = 20


def gateway(build, sink, directory, ack="durable", limit=300, storage="max_size_mib: 4096", **options):
    text = CONFIG.replace("SINK", str(sink.port)).replace("ACK", ack).replace("LIMIT", str(limit))
    return Gateway(build / "portcullis", text.replace("STORAGE", storage), cwd=directory, **options)


@pytest.fixture
def sink():
    """A destination with a port, which is not listening yet."""
    s = peers.Sink()
    s.start()
    s.stop()
    yield s
    s.stop()


def send(g, seeds, samples=SAMPLES):
    """Sends requests; returns those that were acknowledged."""
    taken = []
    with peers.Client(g.port["otlp"]) as client:
        for seed in seeds:
            request = make.request(seed, samples=samples)
            try:
                client.send(request)
            except grpc.RpcError:
                continue
            taken.append(request)
    return taken


def expected(requests):
    return sum((otlp.samples(r.SerializeToString()) for r in requests), start=otlp.Counter())


def missing(requests, sink):
    return expected(requests) - sink.samples()


def restored(g):
    return g.total("otelcol_ledger_restored_samples", pipeline="profiles", exporter="otlp_grpc")


def is_balanced(g):
    t = g.ledger("profiles", "otlp_grpc")
    return t["in"] + restored(g) == sum(v for k, v in t.items() if k != "in")


@pytest.mark.threads
def test_what_was_acknowledged_is_delivered_after_a_kill(build, sink, tmp_path):
    with gateway(build, sink, tmp_path) as g:
        taken = send(g, range(20))
        assert len(taken) == 20
        g.stop(signal.SIGKILL)
    sink.start()
    with gateway(build, sink, tmp_path) as g:
        assert restored(g) == 20 * SAMPLES
        g.until(lambda: not missing(taken, sink))
        g.until(lambda: g.ledger("profiles", "otlp_grpc")["queued"] == 0)
        assert is_balanced(g)
        assert sink.samples() == expected(taken)
    with gateway(build, sink, tmp_path) as g:
        assert restored(g) == 0


@pytest.mark.threads
def test_a_shutdown_keeps_what_is_queued(build, sink, tmp_path):
    with gateway(build, sink, tmp_path, ack="enqueue") as g:
        taken = send(g, range(10))
        assert g.stop() == 0
        assert "Shutdown kept data on disk." in g.log() and '"kept_items": %d' % (10 * SAMPLES) in g.log()
        assert "Shutdown dropped data" not in g.log()
    sink.start()
    with gateway(build, sink, tmp_path, ack="enqueue") as g:
        g.until(lambda: not missing(taken, sink))


def load(g, stop, taken, first):
    """Sends until told to stop; `taken` gets what was acknowledged."""
    seed = first
    with peers.Client(g.port["otlp"]) as client:
        while not stop.is_set():
            request = make.request(seed, samples=5, functions=8)
            seed += 1
            try:
                client.send(request, timeout=5)
            except grpc.RpcError:
                continue
            taken.append(request)


def run_and_kill(build, sink, directory, turn, taken, rng):
    stop = threading.Event()
    with gateway(build, sink, directory) as g:
        senders = [threading.Thread(target=load, args=(g, stop, taken, (turn * 10 + i) * 10 ** 5)) for i in range(3)]
        for sender in senders:
            sender.start()
        time.sleep(rng.uniform(0.01, 0.4))
        g.stop(signal.SIGKILL)
        stop.set()
        for sender in senders:
            sender.join()


def test_nothing_acknowledged_is_lost_when_it_is_killed_at_any_instant(build, sink, tmp_path):
    rng, taken = random.Random(int(os.environ.get("SEED", 1))), []
    sink.start()
    for turn in range(KILLS):
        if turn % 2:
            sink.stop()
        run_and_kill(build, sink, tmp_path, turn, taken, rng)
        if turn % 2:
            sink.start()
    with gateway(build, sink, tmp_path) as g:
        g.until(lambda: g.ledger("profiles", "otlp_grpc")["queued"] == 0)
        assert "set aside" not in g.log() and "quarantine" not in g.log()
        assert taken and not missing(taken, sink)
    duplicates = sum(sink.samples().values()) - sum(expected(taken).values())
    print("%d kills, %d requests acknowledged, %d samples more than acknowledged" % (KILLS, len(taken), duplicates))


def flip(path, rng, flips):
    data = bytearray(path.read_bytes())
    for _ in range(flips):
        at = rng.randrange(len(data))
        data[at] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def test_flipped_bits_lose_what_they_hit_and_stop_nothing(build, sink, tmp_path):
    rng = random.Random(int(os.environ.get("SEED", 1)))
    for turn in range(40 if os.environ.get("LONG") else 6):
        shutil.rmtree(tmp_path / "queue", ignore_errors=True)
        sink.received.clear()
        with gateway(build, sink, tmp_path) as g:
            taken = send(g, range(turn * 100, turn * 100 + 30), samples=200)
            g.stop(signal.SIGKILL)
        flip(tmp_path / "queue" / "queue.mdb", rng, 1 + turn * 3)
        sink.start()
        with gateway(build, sink, tmp_path) as g:
            g.until(lambda: g.ledger("profiles", "otlp_grpc")["queued"] == 0)
            assert is_balanced(g)
            corrupt = g.total("otelcol_ledger_dropped_samples", exporter="otlp_grpc", reason="corrupt")
            aside = g.total("otelcol_storage_databases_set_aside")
            lost = sum(missing(taken, sink).values())
            assert corrupt == lost or aside
            assert not sink.samples() - expected(taken)
            more = send(g, range(10 ** 6, 10 ** 6 + 3))
            g.until(lambda: not missing(more, sink))
        sink.stop()


def test_a_foreign_database_is_set_aside(build, sink, tmp_path):
    (tmp_path / "queue").mkdir(mode=0o700)
    (tmp_path / "queue" / "queue.mdb").write_bytes(random.Random(1).randbytes(50000))
    sink.start()
    with gateway(build, sink, tmp_path) as g:
        assert "set aside" in g.log()
        assert g.total("otelcol_storage_databases_set_aside") == 1
        taken = send(g, range(3))
        g.until(lambda: not missing(taken, sink))
    assert len(list((tmp_path / "queue").glob("queue.mdb.2*"))) == 1


def start_error(build, sink, directory, **options):
    g = gateway(build, sink, directory, ready=False, **options)
    with g:
        assert g.process.wait(60) != 0
    return g.log()


def test_a_second_process_is_refused(build, sink, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with gateway(build, sink, tmp_path):
        (other / "queue").symlink_to(tmp_path / "queue")
        assert "in use by another process" in start_error(build, sink, other)


def test_a_directory_that_is_none_is_an_error(build, sink, tmp_path):
    (tmp_path / "queue").write_text("a file")
    assert "Not a directory" in start_error(build, sink, tmp_path)


def test_a_missing_directory_is_an_error(build, sink, tmp_path):
    g = Gateway(build / "portcullis", CONFIG.replace("SINK", "1").replace("ACK", "enqueue").replace("LIMIT", "300").replace(
        "create_directory: true, STORAGE", ""), cwd=tmp_path, ready=False)
    with g:
        assert g.process.wait(60) != 0
    assert "directory must exist" in g.log()


@pytest.mark.parametrize("change, words", [
    (("storage: file_storage,", "storage: file_storage/other,"), "extension not found"),
    (("storage: file_storage,", "storage: file_storage, wait_for_result: true,"), "`wait_for_result` is not supported"),
    (("create_directory: true", "directory_permissions: '0777'"), "must not let other users write"),
])
def test_errors_of_the_configuration(build, tmp_path, change, words):
    text = CONFIG.replace("SINK", "1").replace("ACK", "enqueue").replace("LIMIT", "300").replace(", STORAGE", "")
    text = text.replace("{port:otlp}", "4317").replace(*change)
    (tmp_path / "c.yaml").write_text(text)
    run = subprocess.run([build / "portcullis", "validate", "--config", tmp_path / "c.yaml"], capture_output=True, text=True,
                         timeout=60)
    assert run.returncode != 0 and words in run.stderr, run.stderr


def set_file_limit(process, size):
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.threads
def test_a_full_disk_refuses_senders_and_recovers(build, sink, tmp_path):
    with gateway(build, sink, tmp_path) as g:
        before = send(g, range(5), samples=500)
        set_file_limit(g.process, (tmp_path / "queue" / "queue.mdb").stat().st_size)
        with peers.Client(g.port["otlp"]) as client:
            error = peers.refused(client, make.request(1000, samples=5000))
            while "Storage cannot" not in g.log() and "cannot be written" not in g.log():
                error = peers.refused(client, make.request(1000, samples=5000))
            error = peers.refused(client, make.request(1001))
        assert error.code() == grpc.StatusCode.UNAVAILABLE
        assert g.total("otelcol_storage_available") == 0
        set_file_limit(g.process, resource.RLIM_INFINITY)
        g.until(lambda: g.total("otelcol_storage_available") == 1)
        after = send(g, range(2000, 2005))
        assert len(after) == 5
        g.stop(signal.SIGKILL)
    sink.start()
    with gateway(build, sink, tmp_path) as g:
        g.until(lambda: not missing(before + after, sink))


def test_a_full_disk_continues_in_memory_where_that_is_configured(build, sink, tmp_path):
    with gateway(build, sink, tmp_path, ack="enqueue", storage="on_error: memory") as g:
        first = send(g, range(5), samples=500)
        g.until(lambda: g.total("otelcol_storage_used_bytes") > 0)
        set_file_limit(g.process, 4096)
        taken = send(g, range(100, 110), samples=5000)
        g.until(lambda: g.total("otelcol_storage_available") == 0)
        taken += send(g, range(200, 210))
        assert len(taken) == 20
        assert g.total("otelcol_exporter_queue_unstored_requests") > 0
        sink.start()
        g.until(lambda: not missing(first + taken, sink))
        set_file_limit(g.process, resource.RLIM_INFINITY)
        g.until(lambda: g.total("otelcol_storage_available") == 1)
        g.until(lambda: g.ledger("profiles", "otlp_grpc")["queued"] == 0 and is_balanced(g))
        assert g.log().count("The storage cannot be written") == 1


def test_a_backlog_larger_than_the_memory_limit_is_kept_and_drained(build, sink, tmp_path):
    limit = 120
    with gateway(build, sink, tmp_path, ack="enqueue", limit=limit) as g:
        size, taken, seed = 0, 0, 0
        with peers.Client(g.port["otlp"]) as client:
            data = [make.request(i, samples=20000).SerializeToString() for i in range(8)]
            while size < limit << 20:
                try:
                    client.send(data[seed % 8])
                    size += len(data[seed % 8])
                    taken += 20000
                except grpc.RpcError:
                    time.sleep(0.05)
                seed += 1
        g.until(lambda: g.ledger("profiles", "otlp_grpc")["queued"] == taken)
        g.until(lambda: g.total("otelcol_storage_used_bytes") > size * 9 // 10)
        assert g.rss()["VmHWM"] < limit << 20
        count = [0]
        sink.answer = lambda data, context: count.__setitem__(0, count[0] + len(data)) or b""
        sink.start()
        g.until(lambda: g.ledger("profiles", "otlp_grpc")["queued"] == 0, seconds=180)
        assert is_balanced(g)
        assert g.ledger("profiles", "otlp_grpc")["out"] == taken
        assert g.rss()["VmHWM"] < limit << 20
        g.until(lambda: g.total("otelcol_storage_used_bytes") == 0)


def test_files_are_private(build, sink, tmp_path):
    with gateway(build, sink, tmp_path):
        assert (tmp_path / "queue").stat().st_mode & 0o777 == 0o700
        for path in pathlib.Path(tmp_path / "queue").iterdir():
            assert path.stat().st_mode & 0o777 == 0o600, path
