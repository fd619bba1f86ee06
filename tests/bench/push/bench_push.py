#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-push: what a Push request of Pyroscope's clients costs on the way through Portcullis, and what the same
request costs the store that takes it; writes its section of docs/BENCHMARKS.md.

The two do different work: the store keeps and indexes what it takes. The question is what the gateway adds to the cost of
a fleet that sends to Pyroscope. Everything that goes in must come out at the sink, or the bench fails. QUICK=1: fewer
requests; nothing is written then.
"""
import contextlib
import gzip
import http.client
import os
import pathlib
import signal
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "build/python"), str(ROOT / "tests"), str(ROOT / "tests/bench"), str(ROOT / "tests/bench/peers")]

import interop_stores_pb2 as messages  # noqa: E402 (the paths come first)
import report  # noqa: E402
from harness import build as make  # noqa: E402
from harness.gateway import Gateway  # noqa: E402
from harness.push import PATH, PushSink  # noqa: E402
from interop import process  # noqa: E402
from interop.pyroscope import ROOMY, NewPyroscope  # noqa: E402
from subject import GATEWAY, SUBJECT_CPU, TOOL_CPU, cpu_seconds, on_cpu  # noqa: E402

QUICK = bool(os.environ.get("QUICK"))
SHARE, REPEATS, IDLE_S = (4, 2, 1) if QUICK else (1, 3, 3)
CONFIG = """
receivers: {pyroscope: {endpoint: 127.0.0.1:{port:in}, max_request_body_size: 67108864}}
processors:
  allowlist:
    keys: [__name__, __delta__, service.name, region, thread.name]
  pii: {}
exporters: {pyroscope: {endpoint: "http://127.0.0.1:SINK", preset: v2, sending_queue: {queue_size: 100000}}}
service: {pipelines: {profiles: {receivers: [pyroscope], processors: [PROCESSORS], exporters: [pyroscope]}}}
"""
# As a client sends it: how a profile is packed, and how the request is.
FORMS = {"gzip profile": (gzip.compress, bytes), "plain profile, gzip request": (bytes, gzip.compress)}
# Samples of a profile, and requests of a run.
SIZES = {"small": (60, 240), "medium": (900, 80), "large": (9000, 24)}


def requests(samples, pack, zip_):
    """Bodies of different services; and their size before compression."""
    bodies, plain = [], 0
    for seed in range(16):
        p = make.pprof(seed, samples=samples, functions=max(20, samples // 4), labels=("thread.name",), prefix="main.service%d" % seed)
        p.time_nanos = time.time_ns()
        message = messages.PushRequest()
        series = message.series.add()
        for name, value in (("__name__", "process_cpu"), ("__delta__", "false"), ("region", "eu"), ("service_name", "s%d" % seed)):
            series.labels.add(name=name, value=value)
        raw = p.SerializeToString()
        plain += len(raw)
        series.samples.add(raw_profile=pack(raw))
        bodies.append(zip_(message.SerializeToString()))
    return bodies, plain / len(bodies)


class Sender:
    def __init__(self, port, zipped):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {"Content-Type": "application/proto", **({"Content-Encoding": "gzip"} if zipped else {})}

    def send(self, bodies, count):
        for i in range(count):
            self.connection.request("POST", PATH, bodies[i % len(bodies)], self.headers)
            answer = self.connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                raise AssertionError("%d %r" % (answer.status, text))


class Portcullis:
    def __init__(self, processors):
        self.sink = PushSink()
        self.gateway = Gateway(GATEWAY, CONFIG.replace("PROCESSORS", processors).replace("SINK", str(self.sink.port)))

    def __enter__(self):
        with on_cpu(TOOL_CPU):
            self.sink.__enter__()
        with on_cpu(SUBJECT_CPU):
            self.gateway.__enter__()
        self.port, self.pid = self.gateway.port["in"], self.gateway.process.pid
        return self

    def __exit__(self, *problem):
        self.gateway.__exit__(*problem)
        self.sink.__exit__(*problem)

    def settle(self, count):
        self.gateway.until(lambda: len(self.sink.taken) == count)
        self.sink.taken.clear()
        self.sink.seen.clear()


class Store:
    def __init__(self):
        self.store = NewPyroscope(options=ROOMY)

    def __enter__(self):
        with on_cpu(SUBJECT_CPU):
            self.store.__enter__()
        self.port, self.pid = self.store.port["http"], self.store.process.popen.pid
        return self

    def __exit__(self, *problem):
        self.store.__exit__(*problem)

    def settle(self, count):
        time.sleep(1)


def rate_when_idle(subject):
    before = cpu_seconds(subject.pid)
    time.sleep(IDLE_S)
    return (cpu_seconds(subject.pid) - before) / IDLE_S


def cost(subject, bodies, zipped, count):
    """CPU seconds of one request, without what the program uses when it is idle."""
    sender, found = Sender(subject.port, zipped), []
    sender.send(bodies, count // 4)
    subject.settle(count // 4)
    idle = rate_when_idle(subject)
    for _ in range(REPEATS):
        began, before = time.monotonic(), cpu_seconds(subject.pid)
        sender.send(bodies, count)
        subject.settle(count)
        found.append((cpu_seconds(subject.pid) - before - idle * (time.monotonic() - began)) / count)
    return statistics.median(found)


def rows(subjects):
    for size, (samples, count) in SIZES.items():
        for form, (pack, zip_) in FORMS.items():
            bodies, plain = requests(samples, pack, zip_)
            store, bare, policy = (cost(subject, bodies, zip_ is gzip.compress, count // SHARE) for subject in subjects)
            row = ["%s, %s" % (size, form), "%.0f" % (plain / 1000), *("%.2f" % (x * 1000) for x in (store, bare, policy)),
                   "%.1f" % (store / bare), "%.1f" % (store / policy)]
            print("  ".join(row), flush=True)
            yield row


HEAD = ["Request", "KB of pprof", "Pyroscope, ms", "Portcullis, ms", "with policy, ms", "Pyroscope / Portcullis", "Pyroscope / with policy"]
TEXT = """## What a Push request costs

The same `push.v1` requests of one profile each, sent to Pyroscope %s directly, and through Portcullis to a sink that takes
`push.v1`: CPU time of the process per request, without what it uses when idle; the median of %d runs. The gateway decodes
each profile, builds it anew from what is permitted and compresses it. The store keeps it. The ratio says what the gateway
adds to the cost of a store. With policy: `allowlist` and `pii`.
"""


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        NewPyroscope.installed()
    except process.Absent as reason:
        sys.exit(str(reason))
    circumstances = report.circumstances(GATEWAY)
    with contextlib.ExitStack() as all_:
        os.sched_setaffinity(0, {TOOL_CPU})
        subjects = [all_.enter_context(s) for s in (Store(), Portcullis(""), Portcullis("allowlist, pii"))]
        found = list(rows(subjects))
    if not QUICK:
        report.write("push", [*(TEXT % (NewPyroscope.version, REPEATS)).splitlines(), "", *circumstances, "", *report.table(HEAD, found)])


if __name__ == "__main__":
    main()
