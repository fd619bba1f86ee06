# SPDX-License-Identifier: Apache-2.0
"""The disk of a queue is corrupt, foreign or full."""
import os
import random
import shutil
import signal
import resource

import grpc
import pytest

from harness import build as make
from harness import peers
from harness.durable import absent_sink, expected, flip, gateway, missing, send, set_file_limit

ORACLE = """The gateway starts and keeps serving, damaged records are set aside and counted, senders are refused with a hint or the queue
continues in memory as configured, and it recovers by itself."""
pytestmark = pytest.mark.threads


@pytest.fixture
def sink():
    with absent_sink() as s:
        yield s


def test_flipped_bits_lose_what_they_hit_and_stop_nothing(build, sink, tmp_path, record_property):
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
            assert g.balanced("profiles", "otlp_grpc")
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
        g.until(lambda: g.ledger("profiles", "otlp_grpc")["queued"] == 0 and g.balanced("profiles", "otlp_grpc"))
        assert g.log().count("The storage cannot be written") == 1
