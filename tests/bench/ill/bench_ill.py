#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-ill: what a destination that is ill costs the others; writes its section of docs/BENCHMARKS.md.

    bench_ill.py [PART OF A ROW'S NAME]     only such rows; nothing is written then
"""
import contextlib
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

METHOD = """## What a destination that is ill costs the others

OTLP, Pyroscope, Parca and a file behind one gateway, one of them ill. Two gateways of one configuration share a processor,
their load generator and destinations another; there the destinations give way (SCHED_IDLE) to the load generator and to
the well OTLP destination, which take the times, and of which the latter looks into no request. Of the one all destinations are well, of the other one is ill, and has been
for a while. They get the same requests in turn, at two fifths of what the first can take. For each pair of turns: all CPU
that each gateway used in both, the median latency of the sender, the mean time until a request is at a well OTLP
destination. A figure is the median over the pairs of ill / well (and its quartiles).
"""
PAIRS, SECONDS, SHARE, BAR, WAIT_S = 8, 1.0, 0.4, 1.1, 60
CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}}
exporters:
  otlp_grpc/well: {endpoint: 127.0.0.1:WELL, tls: {insecure: true}}
  otlp_grpc: {endpoint: 127.0.0.1:OTLP, tls: {insecure: true}, sending_queue: {queue_size: 50}}
  pyroscope: {endpoint: "http://127.0.0.1:PYROSCOPE", limits: {max_age: 876000h}, sending_queue: {queue_size: 50}}
  parca: {endpoint: 127.0.0.1:PARCA, tls: {insecure: true}, sending_queue: {queue_size: 50}}
  file: {path: out/full, format: json, rotation: {max_megabytes: 100, max_backups: 1}, sending_queue: {queue_size: 50}}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc/well, otlp_grpc, pyroscope, parca, file]}
"""
NETWORK = ("otlp_grpc", "pyroscope", "parca")
STATES = {"dead": None, "slow": "slow_down", "refusing": "refuse", "never small enough": "refuse_as_too_large"}


@contextlib.contextmanager
def destination(kind, state):
    """Its port. What takes the times never waits for it: else it mattered how many destinations have something to do."""
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
    """A gateway with its own first destination; of the others one may be ill."""

    def __init__(self, held, wells, kind=None, state=None):
        self.sink, self.ill, self.state = held.enter_context(Sink("-t")), kind, state
        ports = dict(wells)
        if kind in NETWORK:
            ports[kind] = held.enter_context(destination(kind, STATES[state]))
        text = CONFIG.replace("WELL", str(self.sink.port)).replace("OTLP", str(ports["otlp_grpc"]))
        text = text.replace("PYROSCOPE", str(ports["pyroscope"])).replace("PARCA", str(ports["parca"]))
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

    def settle(self):
        """Until it has nothing more to do, or goes on trying."""
        before = self.cpu()
        for _ in range(20):
            time.sleep(.1)
            now = self.cpu()
            if now - before < .001:
                break
            before = now

    def queued(self):
        """Samples that a well destination still waits for."""
        whole = self.gateway.total("otelcol_ledger_queued_samples")
        return whole - (self.gateway.total("otelcol_ledger_queued_samples", exporter=self.ill) if self.ill else 0)

    def turn(self, files, requests, rate=0.0):
        """{what it cost the well}"""
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
        """Whoever is well got everything; whoever is ill did not."""
        if self.ill and self.state != "recover":
            assert self.gateway.total("otelcol_ledger_dropped_samples", exporter=self.ill)
        for exporter in ("otlp_grpc/well", *NETWORK, "file"):
            self.gateway.until(lambda e=exporter: self.gateway.balanced("profiles", e))
            if exporter != self.ill or self.state == "recover":
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


def compare(files, kind=None, state=None, more=1.0, other=None):
    """Medians and quartiles of ill / well: [(what, median, low, high)]"""
    with contextlib.ExitStack() as held:
        wells = {k: held.enter_context(destination(k, "recover")) for k in NETWORK}
        well, ill = Fan(held, wells, *["file", "recover"] * (kind == "file")), Fan(held, wells, kind, state)
        burst = well.turn(files, 40)
        rate = SHARE * 40 / max(burst["seconds"], burst["cpu"])
        for fan in ill, well, ill:
            fan.turn(files, int(2 * rate), rate)
        pairs, used = [], [(well.cpu(), ill.cpu())]
        for i in range(PAIRS):
            turns = {}
            for fan in (well, ill) if i % 2 else (ill, well):
                with beside(other if fan is ill else None):
                    turns[fan] = fan.turn(files, int(rate * SECONDS * (more if fan is ill else 1)), rate)
            used.append((well.cpu(), ill.cpu()))
            for fan, now, before in zip((well, ill), used[-1], used[-2]):
                turns[fan]["cpu"] = now - before  # what it does in the other's turn too
            pairs.append((turns[well], turns[ill]))
        well.check()
        ill.check()
        found = []
        for what in ("cpu", "latency", "delivery"):
            ratios = sorted(i[what] / w[what] for w, i in pairs)
            found.append((what, statistics.median(ratios), ratios[PAIRS // 4], ratios[-1 - PAIRS // 4]))
        return found


def control(name, found, seen):
    return name, found, "seen" if seen else "**not seen**"


def controls(files):
    """What the method can see."""
    found = compare(files)
    yield control("none: both well", found, all(1 / BAR <= f[1] <= BAR for f in found))
    found = compare(files, more=1.2)
    yield control("none, but a fifth more requests", found, found[0][1] > BAR)
    found = compare(files, other=[sys.executable, "-c", "while True: pass"])
    yield control("none, but somebody else on its processor", found, min(f[1] for f in found[1:]) > BAR)


def ills(files, only):
    for kind in (*NETWORK, "file"):
        for state in STATES:
            name = "`%s` %s" % (kind, state)
            if only in name and (kind in NETWORK or state != "never small enough"):
                found = compare(files, kind, state)
                yield name, found, "yes" if all(f[1] <= BAR for f in found) else "**no**"


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
        rows = [show(row) for row in ills(files, only)]
    head = ["CPU", "Sender's latency", "Time to a well one"]
    if not only:
        report.write("ill", [METHOD, *circumstances, "", *report.table(["Ill", *head, "At most %g" % BAR], cells(rows)), "",
                             "What the method sees:", "", *report.table(["Ill", *head, "As it must be"], cells(checks))])
    sys.exit(any("not" in row[2] or "no*" in row[2] for row in checks + rows))


main()
