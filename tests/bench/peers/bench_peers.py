#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-peers: the same bytes through Portcullis and through the Collector, in turn; writes its sections of
docs/BENCHMARKS.md.

A row is a set of bodies and a coding. All programs of a row run at once, idle but one, which gets a burst as fast as it
takes it; then the next, and so on, several times. Everything that went in must have come out at the sink, or the bench
fails.
After these rows: the same by the number of connections, over HTTP, what idle connections take, from gzip to zstd over HTTP, and
to Kafka (which needs Java and Maven).
QUICK=1: fewer sets and repeats. ROWS=PART OF A NAME: only such sets; nothing is written then, nor with QUICK=1.
PARTS=sets,connections,http,idle,zstd,kafka: only these parts of it; only sections whose parts are all among them are written.
"""
import contextlib
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "build/python"), str(ROOT / "tests"), str(ROOT / "tests/bench"), str(ROOT / "tests/bench/peers")]

import report  # noqa: E402 (the paths come first)
import sets  # noqa: E402
import tables  # noqa: E402
from interop import process  # noqa: E402
from interop.collector import Collector, KafkaCollector  # noqa: E402
from interop.kafka import Kafka  # noqa: E402
from subject import GATEWAY, HttpSink, KafkaSink, Load, Sink, Subject  # noqa: E402

QUICK, ONLY = bool(os.environ.get("QUICK")), os.environ.get("ROWS", "")
SECTIONS = {"peers": ("sets", "connections", "idle"), "http": ("http",), "zstd": ("zstd",), "kafka": ("kafka",)}
PARTS = os.environ.get("PARTS", "sets,connections,http,idle,zstd,kafka").split(",")
REPEATS, BURST_S, LATENCY_S = (2, .5, 1) if QUICK else (3, 1, 2)
WAIT_S = 30
ALL_WAYS = [("collector", "bare"), ("portcullis", "bare"), ("collector", "limited"), ("portcullis", "limited"),
            ("portcullis", "policy")]
BARE_WAYS = [("collector", "bare"), ("portcullis", "bare")]
MAIN_WAYS = [("collector", "bare"), ("portcullis", "bare"), ("portcullis", "policy")]


class Lost(Exception):
    """What went in did not come out."""


def in_flight(bodies):
    """Requests at once: many small ones, few large ones."""
    return max(4, min(32, (8 << 20) // bodies.mean))


def await_all(subject, expected):
    """Until all is at the sink: (its counts, CPU of the subject since the start)."""
    end = time.monotonic() + WAIT_S
    while True:
        seen = subject.sink.look()
        there = all(seen[what] == expected[what] for what in ("timestamps", "values"))
        if there and seen["samples"] <= expected["samples"]:
            return subject.sink.take(), subject.settled_cpu()
        if time.monotonic() > end:
            raise Lost("%s, %s: %s of %s came out" % (subject.kind, subject.way, seen, expected))
        time.sleep(.02)


def check(subject, expected, seen, merged):
    """Samples in = samples out; policy may make some equal, which are then merged, and counted."""
    if seen["samples"] + merged != expected["samples"]:
        raise Lost("%s, %s: %d samples in, %d out, %d merged" % (
            subject.kind, subject.way, expected["samples"], seen["samples"], merged))


def burst(subject, sender, bodies, requests, rate=0):
    """Sends so many; what came out, and what it cost."""
    expected = bodies.expected(requests)
    subject.sink.take()
    before, merged = subject.cpu(), subject.merged()
    sent = sender.burst(requests, rate)
    seen, after = await_all(subject, expected)
    check(subject, expected, seen, subject.merged() - merged)
    used = after - before
    return {**sent, "cpu_gb": used / expected["bytes"] * 1e9, "cpu_request": used / requests, "rate": requests / max(sent["seconds"], used),
            "out": seen["bytes"] / sent["bytes"], "samples": seen["samples"] / expected["samples"]}


def burst_size(subject, sender, bodies):
    """What takes it BURST_S; all bodies so many times, so that every burst has the same mixture."""
    rate = burst(subject, sender, bodies, max(8, int(8e6 / bodies.mean)))["rate"]
    return max(1, round(rate * BURST_S / len(bodies.files))) * len(bodies.files)


@contextlib.contextmanager
def started(collector, bodies, ways, to=Sink, coding=None, **options):
    """{way: subject} of programs before one sink. coding: what they send, if it is not what they get."""
    with contextlib.ExitStack() as held:
        sink = held.enter_context(to())
        binaries = {"collector": collector, "portcullis": GATEWAY}
        yield {way: held.enter_context(Subject(binaries[way[0]], *way, sink, coding or bodies.coding, **options)) for way in ways}


def run_row(collector, bodies, ways, repeats, with_latency=False, calls=None, connections=None, **options):
    """{(kind, way): figures}, each a list with an entry a repeat."""
    with started(collector, bodies, ways, **options) as subjects, contextlib.ExitStack() as held:
        found = {way: {"start": [s.start_cpu], "bursts": []} for way, s in subjects.items()}
        time.sleep(1)
        for way, s in subjects.items():
            found[way]["idle"] = [s.gateway.rss()["VmRSS"]]
        senders = {way: held.enter_context(Load(s.port(bodies.media), bodies.files, bodies.zipped, calls or in_flight(bodies),
                                                connections, bodies.media))
                   for way, s in subjects.items()}
        requests = {way: max(calls or 0, burst_size(s, senders[way], bodies)) for way, s in subjects.items()}
        for _ in range(repeats):
            for way, s in subjects.items():
                found[way]["bursts"].append(burst(s, senders[way], bodies, requests[way]))
        half = statistics.median(b["rate"] for b in found[ways[0]]["bursts"]) / 2
        for way, s in subjects.items():
            if with_latency:
                found[way]["latency"] = burst(s, senders[way], bodies, max(8, int(half * LATENCY_S)), half)
            found[way]["peak"] = s.gateway.rss()["VmHWM"]
        return found


def run_direct(bodies):
    """The load generator straight into the sink: what neither program could pass."""
    with Sink() as sink:
        requests = max(64, int(300e6 / bodies.mean))
        best = {"rate": 0}
        for _ in range(2):
            before = sink.take()["cpu"]
            with Load(sink.port, bodies.files, bodies.zipped, in_flight(bodies)) as sender:
                sent = sender.burst(requests)
            seen = sink.take()
            if any(seen[what] != n for what, n in bodies.expected(requests).items() if what != "bytes"):
                raise Lost("the sink does not count what was sent to it")
            used = sent["cpu"] + seen["cpu"] - before
            best = max(best, {"rate": requests / sent["seconds"], "cpu_gb": used / bodies.expected(requests)["bytes"] * 1e9},
                       key=lambda r: r["rate"])
        return best


def measure(collector, directory):
    """[(bodies, direct, found)]"""
    rows = []
    for bodies in sets.all(directory, QUICK):
        if ONLY not in bodies.name:
            continue
        ways = ALL_WAYS if bodies.ladder else MAIN_WAYS
        direct = run_direct(bodies)
        found = run_row(collector, bodies, ways, REPEATS, bodies.ladder)
        rows.append((bodies, direct, found))
        print(tables.progress(bodies, direct, found), flush=True)
    return rows


# (connections, calls under way)
SHAPES = [(1, 8), (1, 1), (8, 8), (64, 64), (1000, 1000)]
# Nobody is refused for a burst, and waits: what is compared is the cost of the same requests.
ROOMY_QUEUE = 100000


def measure_connections(collector, directory):
    """[(bodies, connections, calls, found)]"""
    rows = []
    for bodies in sets.of_connections(directory):
        for connections, calls in SHAPES:
            if ONLY in bodies.name:
                found = run_row(collector, bodies, BARE_WAYS, REPEATS, calls=calls, connections=connections, queue=ROOMY_QUEUE)
                rows.append((bodies, connections, calls, found))
                print(tables.connection_progress(*rows[-1]), flush=True)
    return rows


def measure_http(collector, directory):
    """[(bodies, connections, found)] of OTLP over HTTP/1.1."""
    rows = []
    for bodies in sets.over_http(directory):
        for connections in (8, 64):
            if ONLY in bodies.name:
                found = run_row(collector, bodies, BARE_WAYS, REPEATS, calls=connections, queue=ROOMY_QUEUE)
                rows.append((bodies, connections, found))
                print(tables.http_progress(*rows[-1]), flush=True)
    return rows


def measure_zstd(collector, directory):
    """[(bodies, found, found of Portcullis without compression)] of OTLP over HTTP/1.1, with gzip in and zstd out."""
    rows = []
    how = {"calls": 8, "queue": ROOMY_QUEUE, "to": HttpSink, "out": "otlp_http"}
    for bodies in sets.zipped_over_http(directory):
        if ONLY in bodies.name:
            found = run_row(collector, bodies, BARE_WAYS, REPEATS, coding="zstd", **how)
            rows.append((bodies, found, run_row(collector, bodies, BARE_WAYS[1:], REPEATS, coding="none", **how)))
            print(tables.out_progress("gzip to zstd", bodies, found), flush=True)
    return rows


def measure_kafka(collector, directory):
    """[(bodies, compression, found)] of OTLP over gRPC in, Kafka out."""
    rows = []
    for bodies in sets.to_kafka(directory):
        for compression in ("none", "zstd"):
            if ONLY in bodies.name:
                found = run_row(collector, bodies, BARE_WAYS, REPEATS, queue=ROOMY_QUEUE, to=KafkaSink, coding=compression, out="kafka")
                rows.append((bodies, compression, found))
                print(tables.out_progress("to Kafka, " + compression, bodies, found), flush=True)
    return rows


def measure_idle(collector, directory):
    """{connections: {way: (resident before, resident with them)}}"""
    bodies = next(sets.of_connections(directory))
    found = {}
    for connections in (1000, 10000):
        with started(collector, bodies, BARE_WAYS) as subjects:
            time.sleep(1)
            found[connections] = {way: idle(s, connections) for way, s in subjects.items()}
    return found


def idle(subject, connections):
    """Of a program: bytes resident before, and with this number of connections after two seconds."""
    before = subject.gateway.rss()["VmRSS"]
    with Load(subject.port(), calls=1, connections=connections):
        time.sleep(2)
        return before, subject.gateway.rss()["VmRSS"]


MEASURES = {"sets": measure, "connections": measure_connections, "http": measure_http, "idle": measure_idle, "zstd": measure_zstd,
            "kafka": measure_kafka}


def collectors():
    """{part: the Collector that it is compared with}, of the parts that this machine can run."""
    found = {part: Collector.installed() for part in PARTS if part != "kafka"}
    if "kafka" in PARTS:
        try:
            Kafka.installed()
            found["kafka"] = KafkaCollector.installed()
        except process.Absent as reason:
            print("bench-peers: without Kafka: %s" % reason)
    return found


def main():
    try:
        peers = collectors()
    except process.Absent as reason:
        print("bench-peers: there is no Collector to compare with: %s" % reason)
        return 1
    circumstances = {part: report.circumstances(GATEWAY, collector) for part, collector in peers.items()}
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        tempfile.tempdir = scratch
        found = {part: MEASURES[part](collector, sets.cache()) for part, collector in peers.items()}
    minutes, missed = (time.monotonic() - begun) / 60, False
    for name, needed in SECTIONS.items():
        there = {part: found[part] for part in needed if part in found}
        if there:
            lines, below = tables.section(circumstances[next(iter(there))], there, REPEATS, minutes)
            print("\n".join(lines))
            missed = missed or below
            if not QUICK and not ONLY and len(there) == len(needed):
                report.write(name, lines)
    return 1 if missed or not found else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # unwinds, and ends what was started
    sys.exit(main())
