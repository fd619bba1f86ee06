#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-failing: what a failing destination costs the others; writes its section of docs/BENCHMARKS.md.

    bench_failing.py [PART OF A ROW'S NAME]     only these rows; nothing is written
"""
import contextlib
import itertools
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "build/python"), str(ROOT / "tests"), str(ROOT / "tests/bench"), str(ROOT / "tests/bench/peers")]

import report  # noqa: E402 (the paths come first)
from harness import build as make  # noqa: E402
from harness.gateway import Gateway, free_port  # noqa: E402
from harness.ills import Pipe  # noqa: E402
from subject import GATEWAY, SUBJECT_CPU, TOOL_CPU, Sink, cpu_seconds, load, on_cpu  # noqa: E402

METHOD = """## What a failing destination costs the others

A gateway sends to OTLP over gRPC and HTTP, Pyroscope, Parca, Kafka (librdkafka's mock cluster) and a file, and one of these
destinations fails. The queues are in memory or, in the rows that say so, also on disk (`file_storage`). Two gateways with the same
configuration share a processor; their load generator and their destinations share another. On that processor, the destinations
yield (SCHED_IDLE) to the load generator and to the first OTLP destination. These two measure the times, and this destination
does not parse the requests.

All destinations of the first gateway are healthy. One destination of the second gateway has been failing for a while, and its
queue, which has room for 50 packets, is full. The queue of a healthy destination has room for more packets than a turn has:
destinations that yield may be behind for a moment. A turn ends when they have everything; the bench fails if a healthy one did not
get it. Both gateways receive the same requests in turn, at two fifths of the rate that the first can sustain. Three figures are measured
for each pair of turns: the CPU time of each gateway in both turns, the median latency of the sender, and the mean time until
a request reaches the first OTLP destination. A figure is the median of the ratio failing / healthy over all pairs, with its
quartiles. A row with a figure above the bar is measured again with four times as many pairs, and the second result counts.
"""
PAIRS, SECONDS, SHARE, BAR, WAIT_S = 8, 1.0, 0.4, 1.1, 60
# Packets in the queue of a healthy destination and of a failing one.
ROOM, LITTLE = 1000, 50
CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}}
exporters:
EXPORTERSextensions: {file_storage: {directory: queue, create_directory: true}}
service:
  extensions: [EXTENSIONS]
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc/healthy, otlp_grpc, otlp_http, pyroscope, parca, kafka, file]}
"""
EXPORTERS = {
    "otlp_grpc/healthy": "endpoint: 127.0.0.1:HEALTHY, tls: {insecure: true}",
    "otlp_grpc": "endpoint: 127.0.0.1:OTLP, tls: {insecure: true}",
    "otlp_http": "endpoint: 'http://127.0.0.1:WEB'",
    "kafka": "brokers: ['127.0.0.1:BROKER']",
    "pyroscope": "endpoint: 'http://127.0.0.1:PYROSCOPE', limits: {max_age: 876000h}",
    "parca": "endpoint: 127.0.0.1:PARCA, tls: {insecure: true}",
    "file": "path: out/full, format: json, rotation: {max_megabytes: 100, max_backups: 1}",
}
MEMORY, DISK = "", "file_storage"
NETWORK = {"otlp_grpc": "OTLP", "otlp_http": "WEB", "pyroscope": "PYROSCOPE", "parca": "PARCA", "kafka": "BROKER"}
STATES = {"dead": None, "slow": "slow_down", "refusing": "refuse", "never small enough": "refuse_as_too_large"}


@contextlib.contextmanager
def destination(kind, state):
    """Its port. The processes that measure never wait for it; otherwise the number of busy destinations would matter."""
    if state is None:
        yield free_port()
        return
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path[:2]))
    with on_cpu(TOOL_CPU):
        process = subprocess.Popen([sys.executable, "-m", "harness.ills", kind, state], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, env=environment)
    os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))  # before it has threads, which inherit it
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait()


class Fan:
    """A gateway with its own first destination; one of the others may fail."""

    def __init__(self, held, healthy_ports, kind=None, state=None, queues=MEMORY):
        self.sink, self.failing = held.enter_context(Sink("-t")), kind if state != "recover" else None
        ports = dict(healthy_ports)
        if kind in NETWORK:
            ports[kind] = held.enter_context(destination(kind, STATES[state]))
        storage = ", storage: file_storage" if queues else ""
        queue = {name: "queue_size: %d%s" % (LITTLE if name == self.failing else ROOM, storage) for name in EXPORTERS}
        lines = ("  %s: {%s, sending_queue: {%s}}\n" % (name, settings, queue[name]) for name, settings in EXPORTERS.items())
        text = CONFIG.replace("EXPORTERS", "".join(lines)).replace("HEALTHY", str(self.sink.port))
        for exporter, place in NETWORK.items():
            text = text.replace(place, str(ports[exporter]))
        text = text.replace("EXTENSIONS", queues)
        self.gateway = Gateway(GATEWAY, text, cwd=held.enter_context(tempfile.TemporaryDirectory()))
        if kind == "file":
            self.pipe = Pipe(self.gateway)
            with on_cpu(TOOL_CPU):
                self.pipe.start()
            held.callback(self.pipe.stop)
        with on_cpu(SUBJECT_CPU):
            held.enter_context(self.gateway)
        if kind == "file" and state != "recover":
            getattr(self.pipe, STATES[state] or "stop")()

    def cpu(self):
        return cpu_seconds(self.gateway.process.pid)

    def yield_processor(self):
        """Any other process goes first: without this, the scheduler lets a gateway that wakes go before a busy process."""
        for thread in os.listdir("/proc/%d/task" % self.gateway.process.pid):
            os.setpriority(os.PRIO_PROCESS, int(thread), 10)

    def settle(self):
        """Waits until it is idle or only retries."""
        before = self.cpu()
        for _ in range(20):
            time.sleep(.1)
            now = self.cpu()
            if now - before < .001:
                break
            before = now

    def queued(self):
        """Samples that a healthy destination still waits for."""
        whole = self.gateway.total("otelcol_ledger_queued_samples")
        return whole - (self.gateway.total("otelcol_ledger_queued_samples", exporter=self.failing) if self.failing else 0)

    def turn(self, files, requests, rate=0.0):
        """{what the turn cost the healthy destinations}"""
        self.sink.take()
        before = self.cpu()
        sent = load(self.gateway.port["otlp"], files, requests, 8, rate)
        end = time.monotonic() + WAIT_S
        while self.sink.look()["requests"] < requests or self.queued():
            assert time.monotonic() < end, self.gateway.log()
            time.sleep(.2)
        used = self.cpu() - before
        self.settle()
        meant = sent["began"] + (requests - 1) / 2 / rate if rate else 0
        return {"cpu": used, "latency": sent["p50_ms"], "delivery": self.sink.take()["came"] - meant, "seconds": sent["seconds"]}

    def check(self):
        """The healthy destinations got everything; the failing one did not."""
        if self.failing:
            assert self.gateway.total("otelcol_ledger_dropped_samples", exporter=self.failing)
        for exporter in EXPORTERS:
            self.gateway.until(lambda e=exporter: self.gateway.balanced("profiles", e))
            if exporter != self.failing:
                assert not self.gateway.total("otelcol_ledger_dropped_samples", exporter=exporter), exporter


@contextlib.contextmanager
def beside(command):
    """A process on the gateways' processor, if any."""
    if not command:
        yield
        return
    with on_cpu(SUBJECT_CPU):
        process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def compare(files, kind=None, state=None, more=1.0, other=None, queues=MEMORY, count=PAIRS):
    """Medians and quartiles of failing / healthy: [(what, median, low, high)]"""
    with contextlib.ExitStack() as held:
        healthy_ports = {k: held.enter_context(destination(k, "recover")) for k in NETWORK}
        healthy = Fan(held, healthy_ports, *(["file", "recover"] if kind == "file" else [None, None]), queues)
        failing = Fan(held, healthy_ports, kind, state, queues)
        if other:
            failing.yield_processor()
        burst = healthy.turn(files, 40)
        rate = SHARE * 40 / max(burst["seconds"], burst["cpu"])
        assert 2 * rate < ROOM, "a turn may not have more packets than a queue has room for"
        for fan in failing, healthy, failing:
            fan.turn(files, int(2 * rate), rate)
        pairs, used = [], [(healthy.cpu(), failing.cpu())]
        for i in range(count):
            turns = {}
            for fan in (healthy, failing) if i % 2 else (failing, healthy):
                with beside(other if fan is failing else None):
                    turns[fan] = fan.turn(files, int(rate * SECONDS * (more if fan is failing else 1)), rate)
            used.append((healthy.cpu(), failing.cpu()))
            for fan, now, before in zip((healthy, failing), used[-1], used[-2]):
                turns[fan]["cpu"] = now - before  # what it does in the other's turn too
            pairs.append((turns[healthy], turns[failing]))
        healthy.check()
        failing.check()
        found = []
        for what in ("cpu", "latency", "delivery"):
            ratios = sorted(i[what] / w[what] for w, i in pairs)
            found.append((what, statistics.median(ratios), ratios[count // 4], ratios[-1 - count // 4]))
        return found


def holds(found):
    return all(f[1] <= BAR for f in found)


def control(name, found, seen):
    return name, found, "detected" if seen else "**not detected**"


def controls(files):
    """Known differences, which the method must detect."""
    found = compare(files)
    yield control("none: both healthy", found, all(1 / BAR <= f[1] <= BAR for f in found))
    found = compare(files, more=1.2)
    yield control("none, but a fifth more requests", found, found[0][1] > BAR)
    found = compare(files, other=[sys.executable, "-c", "while True: pass"])
    yield control("none, but another process on its processor", found, min(f[1] for f in found[1:]) > BAR)


def failures(files, only):
    for queues, kind, state in itertools.product((MEMORY, DISK), (*NETWORK, "file"), STATES):
        name = "`%s` %s%s" % (kind, state, ", queues on disk" if queues else "")
        if only in name and (kind in NETWORK or state != "never small enough"):
            found = compare(files, kind, state, queues=queues)
            if not holds(found):
                show((name, found, "again"))
                found = compare(files, kind, state, queues=queues, count=4 * PAIRS)
            yield name, found, "yes" if holds(found) else "**no**"


def show(row):
    print("%-42s %s  %s" % (row[0], "  ".join("%s %.2f (%.2f-%.2f)" % f for f in row[1]), row[2]), flush=True)
    return row


def cells(rows):
    return [[name, *("%.2f (%.2f–%.2f)" % f[1:] for f in found), verdict] for name, found, verdict in rows]


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as directory:
        files = []
        for seed in range(40):
            files.append(pathlib.Path(directory) / ("%d.pb" % seed))
            files[-1].write_bytes(make.request(seed, samples=2000, functions=400).SerializeToString())
        circumstances = report.circumstances(GATEWAY)
        checks = [] if only else [show(row) for row in controls(files)]
        rows = [show(row) for row in failures(files, only)]
    head = ["CPU", "Sender's latency", "Time to a healthy one"]
    if not only:
        report.write("failing", [METHOD, *circumstances, "", *report.table(["Failure", *head, "At most %g" % BAR], cells(rows)), "",
                             "What the method detects:", "", *report.table(["Failure", *head, "Expected"], cells(checks))])
    sys.exit(any("not" in row[2] or "no*" in row[2] for row in checks + rows))


main()
