# SPDX-License-Identifier: Apache-2.0
"""A storm of thousands of small requests, each with a dictionary of its own, that become one batch."""
import os
import pathlib

from harness import build as make
from harness import chaos, otlp, peers

ORACLE = "CPU grows linearly with the number of dictionaries, memory is bounded, and resolved stacks equal those that were sent."
FEW, MANY = 400, 1600
TEXT = chaos.one().replace("exporters:\n", "processors:\n  batch: {timeout: 300s, send_batch_size: 1000000}\nexporters:\n", 1).replace(
    "receivers: [otlp],", "receivers: [otlp], processors: [batch],")


def cpu_seconds(gateway):
    fields = pathlib.Path("/proc/%d/stat" % gateway.process.pid).read_text().rsplit(")")[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def storm(build, count):
    """(CPU per request, bytes that arrived, samples that arrived, samples that were sent)"""
    sink, sent = peers.Sink(), otlp.Counter()
    with chaos.running(build, TEXT, ("a", sink)) as gateway:
        with peers.Client(gateway.port["grpc"]) as client:
            client.send(make.request(0, samples=30, functions=60))
            sent += otlp.samples(make.request(0, samples=30, functions=60))
            begun = cpu_seconds(gateway)
            for seed in range(1, count):
                message = make.request(seed, samples=30, functions=60)
                sent += otlp.samples(message)
                client.send(message)
            used = cpu_seconds(gateway) - begun
        gateway.stop()
        return used / count, sum(map(len, sink.received)), sink.samples(), sent


def test_it_is_linear_and_loses_nothing(build, record_property):
    few, _, arrived, sent = storm(build, FEW)
    assert arrived == sent
    many, size, arrived, sent = storm(build, MANY)
    assert arrived == sent
    assert many < 3 * few, "quadratic would be %d times" % (MANY // FEW)
    record_property("figure", "%d dictionaries cost %.2f times as much CPU per request as %d" % (MANY, many / few, FEW))
