#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-fleet: one topic of Kafka, read by 1, 2 and 4 gateways; writes its section of docs/BENCHMARKS.md.

Each run reads the same messages, as a group of its own. Everything that is in the topic must come out at the sink, or the
bench fails. GB: how much is in the topic. Nothing is written if it is less than 1.
"""
import contextlib
import os
import pathlib
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "build/python"), str(ROOT / "tests"), str(ROOT / "tests/bench"), str(ROOT / "tests/bench/peers")]

import report  # noqa: E402 (the paths come first)
import sets  # noqa: E402
from interop.kafka import Kafka  # noqa: E402
from subject import GATEWAY, POLICY, Load, Program, Sink  # noqa: E402

GB = float(os.environ.get("GB", 2))
PARTITIONS, GATEWAYS, WAIT_S = 8, (1, 2, 4), 600
FRONT = """
receivers: {otlp: {ack: delivered, protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}}
exporters:
  kafka: {brokers: [127.0.0.1:BROKER], profiles: {topic: fleet}, producer: {compression: lz4}, sending_queue: {num_consumers: 32}}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [kafka]}}}
"""
BACK = """
receivers:
  kafka: {brokers: [127.0.0.1:BROKER], profiles: {topics: [fleet]}, group_id: GROUP, initial_offset: earliest, max_in_flight: 64}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 512, spike_limit_mib: 128}
  resource: {attributes: [{key: deployment.environment, value: prod, action: upsert}]}
POLICY
exporters: {otlp_grpc: {endpoint: 127.0.0.1:SINK, tls: {insecure: true}}}
service:
  pipelines: {profiles: {receivers: [kafka], processors: [memory_limiter, resource, allowlist, pii, batch], exporters: [otlp_grpc]}}
"""
TEXT = """## A fleet on one topic

Requests of 60 KB, %.1f GB of them (uncompressed), were written to a topic of %d partitions by one gateway (exporter `kafka`, lz4).
Then 1, 2 and 4 gateways read it, each time as a new consumer group: receiver `kafka`, the whole policy, batches, gzip, one
sink. All gateways of a row share one processor, so their number cannot raise the throughput here. The row shows what a
gateway more costs: the CPU time of all gateways per GB must not grow by more than a tenth. A share is a gateway's part of the
samples; equal shares follow from partitions that are assigned evenly. Broker and sink run on the other processor.
"""


class Broker:
    """What a configuration needs of it."""

    def __init__(self, kafka):
        self.kafka = kafka

    def fill(self, text):
        return text.replace("BROKER", str(self.kafka.port["broker"]))


def write(broker, bodies, requests):
    """The topic; CPU seconds per GB of the gateway that wrote it."""
    with Program(GATEWAY, "portcullis", broker.fill(FRONT)) as front, Load(front.port(), bodies.files, calls=32) as sender:
        before = front.cpu()
        sender.burst(requests)
        gateway = front.gateway
        gateway.until(lambda: gateway.balanced("profiles", "kafka") and not gateway.total("otelcol_ledger_queued_samples"), WAIT_S)
        assert gateway.total("otelcol_ledger_dropped_samples") == 0, gateway.log()
        assert gateway.total("otelcol_ledger_out_samples", exporter="kafka") == bodies.expected(requests)["samples"]
        return (front.settled_cpu() - before) / bodies.expected(requests)["bytes"] * 1e9


def samples_in(program):
    return program.gateway.total("otelcol_ledger_in_samples")


def read(broker, bodies, requests, count):
    """{cpu_gb, shares, peak, seconds} of so many gateways."""
    expected = bodies.expected(requests)
    with contextlib.ExitStack() as held:
        sink = held.enter_context(Sink())
        text = broker.fill(BACK).replace("POLICY\n", POLICY).replace("GROUP", "fleet-%d" % count).replace("SINK", str(sink.port))
        programs = [held.enter_context(Program(GATEWAY, "portcullis", text)) for _ in range(count)]
        begun, end = time.monotonic(), time.monotonic() + WAIT_S
        while sink.look()["timestamps"] < expected["timestamps"] or sink.look()["values"] != expected["values"]:
            assert time.monotonic() < end, sink.look()
            time.sleep(.2)
        seconds = time.monotonic() - begun
        for p in programs:
            p.gateway.until(lambda p=p: p.gateway.balanced("profiles", "otlp_grpc"))
        inside = [samples_in(p) for p in programs]
        assert sum(inside) == expected["samples"], (inside, expected)
        return {"cpu_gb": sum(p.settled_cpu() for p in programs) / expected["bytes"] * 1e9, "seconds": seconds,
                "shares": [n / sum(inside) for n in inside], "peak": max(p.gateway.rss()["VmHWM"] for p in programs)}


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    circumstances = report.circumstances(GATEWAY)
    with tempfile.TemporaryDirectory() as scratch:
        tempfile.tempdir = scratch
        bodies = sets.Bodies(sets.cache() / "ladder/60 KB", "60 KB", "none", True)
        requests = max(1, round(GB * 1e9 / bodies.mean / len(bodies.files))) * len(bodies.files)
        more = "num.partitions=%d\nlog.retention.hours=-1" % PARTITIONS
        with Kafka(more=more) as kafka:
            broker = Broker(kafka)
            written = write(broker, bodies, requests)
            print("written: %.2f CPU s/GB" % written, flush=True)
            found = {}
            for count in GATEWAYS:
                found[count] = read(broker, bodies, requests, count)
                print(count, found[count], flush=True)
    base, rows = found[1]["cpu_gb"], []
    for count, f in found.items():
        ratio = f["cpu_gb"] / base
        rows.append([str(count), "%.2f" % f["cpu_gb"], "%.2f" % ratio, "at most 1.10", "yes" if ratio <= 1.1 else "**no**",
                     "%.0f–%.0f %%" % (100 * min(f["shares"]), 100 * max(f["shares"])), "%.0f" % (f["peak"] / 1e6),
                     "%.0f" % (bodies.expected(requests)["bytes"] / 1e6 / f["seconds"])])
    lines = [TEXT % (bodies.expected(requests)["bytes"] / 1e9, PARTITIONS), *circumstances,
             "- Writing to Kafka: %.2f CPU s per GB" % written, "",
             *report.table(["Gateways", "CPU s per GB, all together", "Beside one", "Wanted", "Holds", "Shares",
                            "Peak of one, MB", "MB/s on one processor"], rows)]
    print("\n".join(lines))
    if GB >= 1:
        report.write("fleet", lines)
    return any("no" in row[4] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
