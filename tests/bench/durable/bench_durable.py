#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-durable: what a queue on disk costs, and what a long backlog costs, beside the Collector's file_storage; writes
its section of docs/BENCHMARKS.md.

QUICK=1: fewer repeats and a short backlog; nothing is written then. PARTS=cost,senders,backlog: only these parts; nothing is
written unless all are run. BACKLOG_GB: how long the backlog is.
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
from bench_peers import burst, burst_size  # noqa: E402
from harness.gateway import free_port  # noqa: E402
from interop import process  # noqa: E402
from interop.collector import Collector  # noqa: E402
from subject import GATEWAY, Load, Program, Sink  # noqa: E402
from tables import cost, median, spread  # noqa: E402

QUICK = bool(os.environ.get("QUICK"))
PARTS = ("cost", "senders", "backlog")
CHOSEN = os.environ.get("PARTS", ",".join(PARTS)).split(",")
REPEATS = 2 if QUICK else 5
BACKLOG_GB = float(os.environ.get("BACKLOG_GB", 1 if QUICK else 10))
STARTS = 3 if QUICK else 7
SENDERS = (8, 64, 512)
# What is wanted: durable / memory; the start with a backlog / without; the drain / live traffic; the peak of memory of the
# drain / of live traffic; requests a second of many senders / of fewer.
COST_MAX, START_MAX, DRAIN_MIN, PEAK_MAX, SENDERS_MIN = 1.5, 2.0, 0.5, 1.1, 0.9
CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 64}}ACK}}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:SINK
    tls: {insecure: true}
    compression: none
    sending_queue: {queue_size: 10000000STORAGE}
    retry_on_failure: {max_elapsed_time: 0s}
extensions:
  file_storage: {directory: queue, create_directory: true, fsync: FSYNCLIMIT}
service:
  extensions: [EXTENSIONS]
  pipelines: {profiles: {receivers: [otlp], exporters: [otlp_grpc]}}
"""
TEXT = """## What a queue on disk costs

The same requests over gRPC to both programs, each with its queue in memory and with `sending_queue.storage: file_storage`.
Tools, processors and checks are those of the first section. The Collector writes each request to disk before it replies. Portcullis
does so with `ack: durable`; with `ack: enqueue`, a request that is delivered before it was written is never written. `fsync`
is as the column says; the Collector's default is off. CPU time per GB (uncompressed): median of %d bursts.
""" % REPEATS
TEXT_SENDERS = """### Senders at once, with `ack: durable` and `fsync: true`

Requests of 9 KB, each connection with one call at a time. The reply waits for the commit that holds the request. Requests that
arrive during a commit share the next one. The requests per second must not fall by more than a tenth from one row to the next.
"""
TEXT_BACKLOG = """### A backlog

The destination is down while requests of 60 KB arrive, until %g GB wait on disk. Then the program is stopped, and started with
the backlog %d times (CPU time until it is ready, beside starts with an empty directory). At last the destination is up, and the
backlog is drained: bytes per second, and peak resident memory, beside live traffic at saturation with the queue in memory.
Pages of the database file that are mapped count as resident; the columns give the peak of the rest too.
""" % (BACKLOG_GB, STARTS)


class Durable(Program):
    """One of both programs. ack: of Portcullis only; fsync: None for a queue in memory."""

    def __init__(self, binary, kind, sink, fsync=None, ack=None, directory=None):
        self.way, self.sink = "durable" if fsync is not None else "memory", sink
        text = CONFIG.replace("SINK", str(sink if isinstance(sink, int) else sink.port))
        text = text.replace("ACK", ", ack: %s" % ack if ack else "")
        text = text.replace("STORAGE", "" if fsync is None else ", storage: file_storage")
        text = text.replace("EXTENSIONS", "" if fsync is None else "file_storage")
        text = text.replace("FSYNC", str(bool(fsync)).lower())
        text = text.replace("LIMIT", ", max_size_mib: 65536" if kind == "portcullis" else "")
        super().__init__(binary, kind, text, cwd=directory)


# name: (kind, fsync, ack)
WAYS = {
    "Collector, memory": ("collector", None, None),
    "Collector, disk, no fsync": ("collector", False, None),
    "Collector, disk, fsync": ("collector", True, None),
    "memory": ("portcullis", None, None),
    "disk, enqueue": ("portcullis", True, "enqueue"),
    "disk, no fsync": ("portcullis", False, "durable"),
    "disk, fsync": ("portcullis", True, "durable"),
}


def measure_cost(binaries, directory):
    """[(bodies, {name: figures})]"""
    rows = []
    for name in ("9 KB", "60 KB", "300 KB"):
        bodies = sets.Bodies(directory / "ladder" / name, name, "none", True)
        found = {way: {"bursts": []} for way in WAYS}
        with contextlib.ExitStack() as held:
            sink = held.enter_context(Sink())
            running = {way: held.enter_context(Durable(binaries[kind], kind, sink, fsync, ack))
                       for way, (kind, fsync, ack) in WAYS.items()}
            senders = {way: held.enter_context(Load(p.port(), bodies.files, calls=32, connections=32)) for way, p in running.items()}
            requests = {way: burst_size(p, senders[way], bodies) for way, p in running.items()}
            for _ in range(REPEATS):
                for way, program in running.items():
                    found[way]["bursts"].append(burst(program, senders[way], bodies, requests[way]))
        rows.append((bodies, found))
        print(bodies.name, {way: "%.2f" % cost(f) for way, f in found.items()}, flush=True)
    return rows


def measure_senders(binaries, directory):
    """[(connections, figures)]"""
    bodies = sets.Bodies(directory / "ladder/9 KB", "9 KB", "none", True)
    rows = []
    for connections in SENDERS:
        with Sink() as sink, Durable(binaries["portcullis"], "portcullis", sink, True, "durable") as program, \
                Load(program.port(), bodies.files, calls=connections, connections=connections) as sender:
            requests = max(4 * connections, burst_size(program, sender, bodies))
            found = {"bursts": [burst(program, sender, bodies, requests) for _ in range(REPEATS)]}
        rows.append((connections, found))
        print(connections, median(found, "rate"), median(found, "p50_ms"), flush=True)
    return rows


def peaks(program):
    """(resident, of it without files), the peak of the process's life; the second as it is now."""
    status = dict(line.split(":", 1) for line in (pathlib.Path("/proc") / str(program.pid) / "status").read_text().splitlines())
    return [int(status[what].split()[0]) << 10 for what in ("VmHWM", "RssAnon")]


def start_cost(binary, kind, fsync, directory):
    """CPU seconds until it is ready; nobody is there to send to."""
    found = []
    for _ in range(STARTS):
        with Durable(binary, kind, free_port(), fsync, directory=directory) as program:
            found.append(program.start_cpu)
    return statistics.median(found)


def live(binary, kind, bodies):
    """The same traffic with a queue in memory: bytes a second, CPU seconds per GB, peaks of memory."""
    with Sink() as sink, Durable(binary, kind, sink) as program, \
            Load(program.port(), bodies.files, calls=32, connections=32) as sender:
        found = {"bursts": [burst(program, sender, bodies, burst_size(program, sender, bodies)) for _ in range(REPEATS)]}
        return {"rate": median(found, "rate") * bodies.mean, "cpu": cost(found), "peaks": peaks(program)}


def backlog(binary, kind, fsync, bodies):
    requests = int(BACKLOG_GB * 1e9 / bodies.mean / len(bodies.files)) * len(bodies.files)
    expected = bodies.expected(requests)
    with tempfile.TemporaryDirectory() as place:
        empty, full = pathlib.Path(place) / "empty", pathlib.Path(place) / "full"
        empty.mkdir()
        full.mkdir()
        found = {"live": live(binary, kind, bodies), "empty": start_cost(binary, kind, fsync, empty)}
        ack = "durable" if kind == "portcullis" else None
        with Durable(binary, kind, free_port(), fsync, ack, full) as program, \
                Load(program.port(), bodies.files, calls=32, connections=32) as sender:
            before, sent = program.cpu(), sender.burst(requests)
            found["fill"] = (program.cpu() - before) / expected["bytes"] * 1e9
            found["fill_rate"] = expected["bytes"] / sent["seconds"]
        found["disk"] = sum(f.stat().st_blocks * 512 for f in (full / "queue").iterdir())
        found["full"] = start_cost(binary, kind, fsync, full)
        with Sink() as sink, Durable(binary, kind, sink, fsync, directory=full) as program:
            began, highest = time.monotonic(), 0
            while (seen := sink.look())["timestamps"] < expected["timestamps"]:
                assert time.monotonic() - began < 3600, (seen, expected)
                highest = max(highest, peaks(program)[1])
                time.sleep(.1)
            seconds, used = time.monotonic() - began, program.cpu()
            found["twice"] = seen["timestamps"] / expected["timestamps"] - 1
            found["drain"] = {"rate": expected["bytes"] / max(seconds, used), "cpu": used / expected["bytes"] * 1e9,
                              "peaks": [peaks(program)[0], highest]}
            assert seen["samples"] >= expected["samples"], (seen, expected)
    print(kind, fsync, found, flush=True)
    return found


def measure_backlog(binaries, directory):
    """{name: figures}"""
    bodies = sets.Bodies(directory / "ladder/60 KB", "60 KB", "none", True)
    return {"Collector, no fsync": backlog(binaries["collector"], "collector", False, bodies),
            "Portcullis, no fsync": backlog(binaries["portcullis"], "portcullis", False, bodies),
            "Portcullis, fsync": backlog(binaries["portcullis"], "portcullis", True, bodies)}


def ratios(found, these, those):
    return [a["cpu_gb"] / b["cpu_gb"] for a, b in zip(found[these]["bursts"], found[those]["bursts"])]


class Bars:
    def __init__(self):
        self.rows = []

    def add(self, what, value, bar, ok):
        self.rows.append((what, "%.2f" % value, bar, "yes" if ok else "**no**"))


def cost_lines(rows, bars):
    yield from report.table(["Requests", *WAYS], [[b.name, *("%.2f" % cost(f[way]) for way in WAYS)] for b, f in rows])
    yield ""
    compared = [("Portcullis: disk / memory (enqueue)", "disk, enqueue", "memory"), ("(durable, no fsync)", "disk, no fsync", "memory"),
                ("(durable, fsync)", "disk, fsync", "memory"),
                ("Collector: disk / memory (no fsync)", "Collector, disk, no fsync", "Collector, memory"),
                ("Collector / Portcullis: no fsync", "Collector, disk, no fsync", "disk, no fsync"),
                ("fsync", "Collector, disk, fsync", "disk, fsync")]
    yield from report.table(["Ratio", *(c[0] for c in compared)],
                            [[b.name, *(spread(ratios(f, these, those)) for _, these, those in compared)] for b, f in rows])
    for b, f in rows:
        for way in ("disk, enqueue", "disk, fsync"):
            value = statistics.median(ratios(f, way, "memory"))
            bars.add("%s: %s / memory, CPU" % (b.name, way), value, "at most %g" % COST_MAX, value <= COST_MAX)


def senders_lines(rows, bars):
    yield from report.table(["Connections", "Requests/s", "Latency, median / 99th percentile, ms", "CPU-s/GB"], [
        [n, "%.0f" % median(f, "rate"), "%.1f / %.1f" % (median(f, "p50_ms"), median(f, "p99_ms")), "%.2f" % cost(f)]
        for n, f in rows])
    for (fewer, a), (more, b) in zip(rows, rows[1:]):
        value = median(b, "rate") / median(a, "rate")
        bars.add("%d / %d senders: requests per second" % (more, fewer), value, "at least %g" % SENDERS_MIN, value >= SENDERS_MIN)


def backlog_lines(found, bars):
    mb = lambda both: " / ".join("%.0f" % (x / 1e6) for x in both)
    yield from report.table(
        ["Program", "Fill, CPU-s/GB", "Fill, MB/s", "On disk, GB", "Start, empty / full, ms CPU", "Drain, MB/s", "Live, MB/s",
         "Drain, CPU-s/GB", "Live, CPU-s/GB", "Drain, peak MB, all / without files", "Live, peak MB", "Sent twice"],
        [[name, "%.2f" % f["fill"], "%.0f" % (f["fill_rate"] / 1e6), "%.1f" % (f["disk"] / 1e9),
          "%.0f / %.0f" % (f["empty"] * 1e3, f["full"] * 1e3), "%.0f" % (f["drain"]["rate"] / 1e6), "%.0f" % (f["live"]["rate"] / 1e6),
          "%.2f" % f["drain"]["cpu"], "%.2f" % f["live"]["cpu"], mb(f["drain"]["peaks"]), mb(f["live"]["peaks"]),
          "%.1f %%" % (f["twice"] * 100)] for name, f in found.items()])
    ours = found["Portcullis, fsync"]
    for what, value, bar, ok in (
            ("Start with the backlog / empty, CPU", ours["full"] / ours["empty"], "at most %g" % START_MAX, START_MAX),
            ("Drain / live traffic, bytes per second", ours["drain"]["rate"] / ours["live"]["rate"], "at least %g" % DRAIN_MIN, None),
            ("Drain / live traffic, peak memory", ours["drain"]["peaks"][0] / ours["live"]["peaks"][0], "at most %g" % PEAK_MAX, PEAK_MAX)):
        bars.add(what, value, bar, value <= ok if ok else value >= DRAIN_MIN)


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        binaries = {"collector": Collector.installed(), "portcullis": GATEWAY}
    except process.Absent as reason:
        print("bench-durable: there is no Collector to compare with: %s" % reason)
        return 1
    circumstances = report.circumstances(GATEWAY, binaries["collector"])
    bars, lines = Bars(), {}
    with tempfile.TemporaryDirectory() as scratch:
        tempfile.tempdir = scratch
        if "cost" in CHOSEN:
            lines["cost"] = list(cost_lines(measure_cost(binaries, sets.cache()), bars))
        if "senders" in CHOSEN:
            lines["senders"] = [TEXT_SENDERS, *senders_lines(measure_senders(binaries, sets.cache()), bars)]
        if "backlog" in CHOSEN:
            lines["backlog"] = [TEXT_BACKLOG, *backlog_lines(measure_backlog(binaries, sets.cache()), bars)]
    text = [TEXT, *circumstances, "", *report.table(["Bar", "Measured", "Wanted", "Holds"], bars.rows), ""]
    for part in PARTS:
        text += [*lines.get(part, []), ""]
    print("\n".join(text))
    if not QUICK and set(CHOSEN) == set(PARTS):
        report.write("durable", text)
    return any("no" in row[3] for row in bars.rows)


if __name__ == "__main__":
    sys.exit(main())
