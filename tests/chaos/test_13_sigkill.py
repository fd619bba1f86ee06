# SPDX-License-Identifier: Apache-2.0
"""The process is killed or frozen, or the machine loses power, at any instant, with a queue on disk."""
import contextlib
import os
import random
import signal
import threading
import time

import grpc
import pytest

from harness import build as make
from harness import peers, preload
from harness.durable import absent_sink, expected, gateway, missing

ORACLE = "Nothing that was acknowledged as durable is missing after the restart; duplicates are counted."
KILLS = 1000 if os.environ.get("LONG") else 6
pytestmark = pytest.mark.threads


@pytest.fixture
def sink():
    with absent_sink() as s:
        yield s


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


@contextlib.contextmanager
def under_load(g, turn, taken):
    """Three senders, until the block ends."""
    stop = threading.Event()
    senders = [threading.Thread(target=load, args=(g, stop, taken, (turn * 10 + i) * 10 ** 5)) for i in range(3)]
    for sender in senders:
        sender.start()
    try:
        yield
    finally:
        stop.set()
        for sender in senders:
            sender.join()


def check(g, sink, taken):
    """Everything acknowledged arrives; how many samples came more often."""
    g.until(lambda: g.ledger("profiles", "otlp_grpc")["queued"] == 0)
    g.until(lambda: g.balanced("profiles", "otlp_grpc"))
    assert "set aside" not in g.log() and "quarantine" not in g.log()
    assert taken and not missing(taken, sink)
    return sum(sink.samples().values()) - sum(expected(taken).values())


def test_nothing_acknowledged_is_lost_when_it_is_killed_at_any_instant(build, sink, tmp_path, record_property):
    rng, taken = random.Random(int(os.environ.get("SEED", 1))), []
    sink.start()
    for turn in range(KILLS):
        if turn % 2:
            sink.stop()
        with gateway(build, sink, tmp_path) as g, under_load(g, turn, taken):
            time.sleep(rng.uniform(0.01, 0.4))
            g.stop(signal.SIGKILL)
        if turn % 2:
            sink.start()
    with gateway(build, sink, tmp_path) as g:
        more = check(g, sink, taken)
    record_property("figure", "%d kills, %d requests acknowledged, none missing, %d samples more" % (KILLS, len(taken), more))


def test_a_process_that_was_frozen_goes_on(build, sink, tmp_path, record_property):
    seconds, taken = 30 if os.environ.get("LONG") else 3, []
    sink.start()
    with gateway(build, sink, tmp_path) as g:
        with under_load(g, 0, taken):
            g.until(lambda: len(taken) > 20)
            g.process.send_signal(signal.SIGSTOP)
            time.sleep(seconds)
            g.process.send_signal(signal.SIGCONT)
            before = len(taken)
            g.until(lambda: len(taken) > before + 20)
        more = check(g, sink, taken)
    record_property("figure", "frozen for %d s, %d requests, %d samples more" % (seconds, len(taken), more))


def test_a_power_cut_loses_only_what_was_not_synced(build, sink, tmp_path, record_property):
    """Every sync leaves a copy of the file; the one that the machine finds after the cut is the last."""
    env = preload.env(build, "power")
    rng, taken, database = random.Random(int(os.environ.get("SEED", 1))), [], tmp_path / "queue/queue.mdb"
    cuts = 50 if os.environ.get("LONG") else 4
    for turn in range(cuts):
        with gateway(build, sink, tmp_path, env=env) as g, under_load(g, turn, taken):
            time.sleep(rng.uniform(0.05, 0.4))
            g.stop(signal.SIGKILL)
        os.replace(str(database) + ".synced", database)
    sink.start()
    with gateway(build, sink, tmp_path) as g:
        more = check(g, sink, taken)
    record_property("figure", "%d power cuts, %d requests acknowledged, none missing, %d samples more" % (cuts, len(taken), more))
