#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-peers: the same bytes through Portcullis and through the Collector, in turn; writes docs/BENCHMARKS.md.

A row is a set of bodies and a coding. All programs of a row run at once, idle but one, which gets a burst as fast as it
takes it; then the next, and so on, several times. Everything that went in must have come out at the sink, or the bench
fails.
QUICK=1: fewer sets and repeats. ROWS=PART OF A NAME: only such sets; nothing is written then, nor with QUICK=1.
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
from interop.collector import Collector  # noqa: E402
from subject import GATEWAY, Sink, Subject, load  # noqa: E402

QUICK, ONLY = bool(os.environ.get("QUICK")), os.environ.get("ROWS", "")
REPEATS, BURST_S, LATENCY_S = (2, .5, 1) if QUICK else (3, 1, 2)
WAIT_S = 30
ALL_WAYS = [("collector", "bare"), ("portcullis", "bare"), ("collector", "limited"), ("portcullis", "limited"),
            ("portcullis", "policy")]
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


def burst(subject, bodies, requests, rate=0):
    """Sends so many; what came out, and what it cost."""
    expected = bodies.expected(requests)
    subject.sink.take()
    before, merged = subject.cpu(), subject.merged()
    sent = load(subject.port, bodies.files, requests, in_flight(bodies), rate, bodies.zipped)
    seen, after = await_all(subject, expected)
    check(subject, expected, seen, subject.merged() - merged)
    used = after - before
    return {**sent, "cpu_gb": used / expected["bytes"] * 1e9, "rate": requests / max(sent["seconds"], used),
            "out": seen["bytes"] / sent["bytes"], "samples": seen["samples"] / expected["samples"]}


def burst_size(subject, bodies):
    """What takes it BURST_S; all bodies so many times, so that every burst has the same mixture."""
    rate = burst(subject, bodies, max(8, int(8e6 / bodies.mean)))["rate"]
    return max(1, round(rate * BURST_S / len(bodies.files))) * len(bodies.files)


def run_row(collector, bodies, ways, repeats, with_latency):
    """{(kind, way): figures}, each a list with an entry a repeat."""
    with contextlib.ExitStack() as held:
        sink = held.enter_context(Sink())
        binaries = {"collector": collector, "portcullis": GATEWAY}
        subjects = {way: held.enter_context(Subject(binaries[way[0]], *way, sink, bodies.coding)) for way in ways}
        found = {way: {"start": [s.start_cpu], "bursts": []} for way, s in subjects.items()}
        time.sleep(1)
        for way, s in subjects.items():
            found[way]["idle"] = [s.gateway.rss()["VmRSS"]]
        requests = {way: burst_size(s, bodies) for way, s in subjects.items()}
        for _ in range(repeats):
            for way, s in subjects.items():
                found[way]["bursts"].append(burst(s, bodies, requests[way]))
        half = statistics.median(b["rate"] for b in found[ways[0]]["bursts"]) / 2
        for way, s in subjects.items():
            if with_latency:
                found[way]["latency"] = burst(s, bodies, max(8, int(half * LATENCY_S)), half)
            found[way]["peak"] = s.gateway.rss()["VmHWM"]
        return found


def run_direct(bodies):
    """The load generator straight into the sink: what neither program could pass."""
    with Sink() as sink:
        requests = max(64, int(300e6 / bodies.mean))
        best = {"rate": 0}
        for _ in range(2):
            before = sink.take()["cpu"]
            sent = load(sink.port, bodies.files, requests, in_flight(bodies), zipped=bodies.zipped)
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


def main():
    try:
        collector = Collector.installed()
    except process.Absent as reason:
        print("bench-peers: there is no Collector to compare with: %s" % reason)
        return 1
    circumstances = report.circumstances(GATEWAY, collector)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        tempfile.tempdir = scratch
        rows = measure(collector, sets.cache())
    lines, missed = tables.section(circumstances, rows, REPEATS, time.monotonic() - begun)
    print("\n".join(lines))
    if not QUICK and not ONLY:
        report.write("peers", lines)
    return 1 if missed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # unwinds, and ends what was started
    sys.exit(main())
