#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-soak: an hour at half load, and what has grown by its end; writes its section of docs/BENCHMARKS.md.

MINUTES: how long; nothing is written unless it is 60 or more.
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
from subject import GATEWAY, POLICY, Load, Program, Sink  # noqa: E402

MINUTES = float(os.environ.get("MINUTES", 60))
CONNECTIONS, BURST_S, SAMPLE_S = 64, 10, 1
# The first part of the time is not judged: caches and the allocator's pools fill.
WARM, GROWTH_MAX, GROWTH_MB = 0.25, 0.05, 1.0
CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}, ack: durable}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 512, spike_limit_mib: 128}
  resource: {attributes: [{key: deployment.environment, value: prod, action: upsert}]}
POLICY
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:MEMORY, tls: {insecure: true}, required: false}
  otlp_grpc/disk: {endpoint: 127.0.0.1:DISK, tls: {insecure: true}, sending_queue: {storage: file_storage}}
extensions: {file_storage: {directory: queue, create_directory: true}}
service:
  extensions: [file_storage]
  pipelines:
    profiles:
      receivers: [otlp]
      processors: [memory_limiter, resource, allowlist, pii, batch]
      exporters: [otlp_grpc, otlp_grpc/disk]
"""
EXPORTERS = ("otlp_grpc", "otlp_grpc/disk")
TEXT = """## An hour at half load

Requests of 9 KB over %d connections, at half of the rate that the gateway sustained in a burst before, for %g minutes. `ack: durable`,
all policy, batches, one destination with its queue in memory and one with its queue on disk. Once per second the process is
looked at from outside. Growth is the slope of a line through the values after the first quarter of the time, over the rest of
it. At the end, each row of the ledger balances, nothing waits, nothing was dropped, and both destinations have counted what was
sent.
"""


def sample(pid):
    place = pathlib.Path("/proc") / str(pid)
    status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
    return {"rss": int(status["VmRSS"].split()[0]) * 1024 / 1e6, "anonymous": int(status["RssAnon"].split()[0]) * 1024 / 1e6,
            "threads": int(status["Threads"]), "descriptors": len(os.listdir(place / "fd"))}


def slope(values):
    """Of a line through them (least squares), times their number: what they have grown by."""
    middle, mean = (len(values) - 1) / 2, statistics.mean(values)
    spread = sum((i - middle) ** 2 for i in range(len(values)))
    return sum((i - middle) * (v - mean) for i, v in enumerate(values)) / spread * len(values)


def burst(sender, requests, rate, pid, samples):
    """Sends them, and takes samples meanwhile."""
    sender.process.stdin.write("%d %g\n" % (requests, rate))
    sender.process.stdin.flush()
    end = time.monotonic() + requests / rate
    while time.monotonic() < end:
        samples.append(sample(pid))
        time.sleep(min(SAMPLE_S, max(0, end - time.monotonic())))
    sender._line()


def arrived(sink, gateway, wanted):
    """Waits until the sink has all of it; merged samples are not missed."""
    gateway.until(lambda: sink.look()["timestamps"] >= wanted["timestamps"], 120)
    seen = sink.take()
    assert (seen["timestamps"], seen["values"]) == (wanted["timestamps"], wanted["values"]), (seen, wanted)


def soak(bodies):
    """(samples, requests, rate)"""
    with contextlib.ExitStack() as held:
        sinks = [held.enter_context(Sink()) for _ in EXPORTERS]
        text = CONFIG.replace("POLICY\n", POLICY).replace("MEMORY", str(sinks[0].port)).replace("DISK", str(sinks[1].port))
        program = held.enter_context(Program(GATEWAY, "portcullis", text))
        gateway = program.gateway
        sender = held.enter_context(Load(program.port(), bodies.files, calls=CONNECTIONS, connections=CONNECTIONS))
        first = len(bodies.files) * 40
        before = program.cpu()
        seconds = sender.burst(first)["seconds"]
        rate, samples, sent = first / max(seconds, program.cpu() - before) / 2, [], 0
        for sink in sinks:
            arrived(sink, gateway, bodies.expected(first))
        each = round(rate * BURST_S / len(bodies.files)) * len(bodies.files)
        end = time.monotonic() + 60 * MINUTES
        while time.monotonic() < end:
            burst(sender, each, rate, program.pid, samples)
            sent += each
            print("%.0f s: %s" % (end - time.monotonic(), samples[-1]), flush=True)
        for sink in sinks:
            arrived(sink, gateway, bodies.expected(sent))
        for exporter in EXPORTERS:
            gateway.until(lambda e=exporter: gateway.balanced("profiles", e))
        assert not gateway.total("otelcol_ledger_queued_samples") and not gateway.total("otelcol_ledger_dropped_samples")
        assert not gateway.total("otelcol_ledger_imbalances")
        return samples, sent, rate


def judge(samples):
    """[(what, at the start, at the end, growth, wanted, ok)]"""
    late = samples[int(len(samples) * WARM):]
    for what, name in (("rss", "Resident memory, MB"), ("anonymous", "Of it without files, MB"), ("threads", "Threads"),
                       ("descriptors", "Descriptors")):
        values = [s[what] for s in late]
        grown, middle = slope(values), statistics.median(values)
        memory = what in ("rss", "anonymous")
        most = max(GROWTH_MAX * middle, GROWTH_MB) if memory else 0
        steady = grown <= most if memory else max(values) == min(values)
        yield [name, "%.1f" % values[0], "%.1f" % values[-1], "%.1f" % min(values), "%.1f" % max(values), "%+.2f" % grown,
               "at most %.2f" % most if memory else "constant", "yes" if steady else "**no**"]


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    circumstances = report.circumstances(GATEWAY)
    with tempfile.TemporaryDirectory() as scratch:
        tempfile.tempdir = scratch
        directory = sets.cache() / "ladder/9 KB"
        samples, sent, rate = soak(sets.Bodies(directory, "9 KB", "none", True))
    rows = list(judge(samples))
    lines = [TEXT % (CONNECTIONS, MINUTES), *circumstances, "- Sent: %d requests, %.0f per second" % (sent, rate), "",
             *report.table(["", "After a quarter", "At the end", "Least", "Most", "Growth", "Wanted", "Holds"], rows)]
    print("\n".join(lines))
    if MINUTES >= 60:
        report.write("soak", lines)
    return any("no" in row[-1] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
