# SPDX-License-Identifier: Apache-2.0
"""The programs under test and the tools around them: started pinned, measured from outside, ended."""
import contextlib
import json
import os
import pathlib
import subprocess
import time

from harness.gateway import Gateway
from interop.kafka import Kafka

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
BUILD = ROOT / "build/release"
TOOLS = BUILD / "tests/bench/peers"
GATEWAY = BUILD / "portcullis"
# One processor for what is measured, another for what measures.
SUBJECT_CPU, TOOL_CPU = sorted(os.sched_getaffinity(0))[0], sorted(os.sched_getaffinity(0))[-1]

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 64}
      http: {endpoint: 127.0.0.1:{port:http}, max_request_body_size: 67108864, idle_timeout: 30m}
DEFINED
exporters: {OUT: {EXPORTER, sending_queue: {queue_size: QUEUE}}}
service: {pipelines: {profiles: {receivers: [otlp], processors: [PROCESSORS], exporters: [OUT]}}}
"""
EXPORTERS = {
    "otlp_grpc": "endpoint: 127.0.0.1:SINK, tls: {insecure: true}, compression: CODING",
    "otlp_http": "endpoint: 'http://127.0.0.1:SINK', compression: CODING",
    "kafka": "brokers: ['127.0.0.1:SINK'], profiles: {topic: KIND}, producer: {required_acks: all, compression: CODING}",
}
LIMITS = """processors:
  memory_limiter: {check_interval: 1s, limit_mib: 1024, spike_limit_mib: 128}
  resource: {attributes: [{key: deployment.environment, value: prod, action: upsert}]}
"""
POLICY = """  allowlist:
    keys: [service.name, service.version, service.namespace, deployment.environment, region, container.id, thread.name,
      process.executable.name, cpu.logical_number, endpoint]
    key_patterns: ['^k8s\\.(namespace|deployment|pod)\\.name$']
  pii: {}
  batch: {timeout: 200ms, send_batch_size: 8192}
"""
LIMITED = "memory_limiter, resource"
# Connections of the load generator from one address: a gateway may limit them.
PER_ADDRESS = 64


@contextlib.contextmanager
def on_cpu(number):
    """What is started here stays on this processor."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {number})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_seconds(pid):
    """User and system time of a process, all threads, those that ended too: its CPU clock (clock_getcpuclockid)."""
    return time.clock_gettime((~pid << 3) | 2)


class Sink:
    """tests/bench/peers/sink.c"""

    program = "sink"

    def __init__(self, *arguments):
        self.arguments = arguments

    def __enter__(self):
        with on_cpu(TOOL_CPU):
            self.process = subprocess.Popen([TOOLS / self.program, *self.arguments], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def _ask(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def look(self):
        return self._ask("look")

    def take(self):
        """The same, and begin anew."""
        return self._ask("take")


class HttpSink(Sink):
    """tests/bench/peers/sink_http.c"""

    program = "sink_http"


READER = """
receivers:
  kafka: {brokers: ["127.0.0.1:BROKER"], profiles: {topics: [collector, portcullis]}, initial_offset: earliest, max_fetch_size: 4194304,
    metadata: {refresh_interval: 1s}}
exporters: {otlp_grpc: {endpoint: 127.0.0.1:SINK, tls: {insecure: true}, compression: none}}
service: {pipelines: {profiles: {receivers: [kafka], exporters: [otlp_grpc]}}}
"""


class KafkaSink:
    """A broker, and what is in its two topics, read by a gateway and counted by a sink. All of it is on the tools' processor."""

    def __enter__(self):
        with contextlib.ExitStack() as held:
            self.sink = held.enter_context(Sink())
            with on_cpu(TOOL_CPU):
                broker = held.enter_context(Kafka(more="log.retention.hours=1"))
                self.port = broker.port["broker"]
                text = READER.replace("BROKER", str(self.port)).replace("SINK", str(self.sink.port))
                held.enter_context(Gateway(GATEWAY, text))
            self.look, self.take = self.sink.look, self.sink.take
            self.held = held.pop_all()
        return self

    def __exit__(self, *problem):
        self.held.__exit__(*problem)


class Load:
    """tests/bench/peers/load.c: connections that stay open, and bursts over them."""

    def __init__(self, port, files=(), zipped=False, calls=8, connections=None, media=None):
        """media: over HTTP/1.1, with this Content-Type, and a connection for each call."""
        connections = calls if media else connections or min(calls, 4)
        self.command = [TOOLS / "load", "-p", port, "-c", calls, "-n", connections, *["-z"] * zipped]
        if connections > PER_ADDRESS:
            self.command += ["-a", PER_ADDRESS]
        if media:
            self.command += ["-u", "/v1development/profiles", "-m", media]
        self.command += files

    def __enter__(self):
        with on_cpu(TOOL_CPU):
            self.process = subprocess.Popen([str(word) for word in self.command], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._line()
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def _line(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.stderr.read())
        return line

    def burst(self, requests, rate=0):
        self.process.stdin.write("%d %g\n" % (requests, rate))
        self.process.stdin.flush()
        return json.loads(self._line())


def load(port, files, requests, calls, rate=0):
    """One burst over connections of its own."""
    with Load(port, files, calls=calls) as one:
        return one.burst(requests, rate)


class Program:
    """A program of a kind ("collector" or "portcullis") with this configuration, on its own processor."""

    def __init__(self, binary, kind, text, **options):
        self.kind = kind
        arguments = ["--feature-gates=service.profilesSupport"] if kind == "collector" else []
        self.gateway = Gateway(binary, text, arguments=arguments, **options)

    def __enter__(self):
        with on_cpu(SUBJECT_CPU):
            self.gateway.__enter__()
        self.start_cpu = cpu_seconds(self.pid)
        return self

    def __exit__(self, *problem):
        self.gateway.__exit__(*problem)

    @property
    def pid(self):
        return self.gateway.process.pid

    def port(self, media=None):
        return self.gateway.port["http" if media else "otlp"]

    def cpu(self):
        return cpu_seconds(self.pid)

    def settled_cpu(self):
        """When the collection of garbage and the like is over, or after a second."""
        before = self.cpu()
        for _ in range(10):
            time.sleep(.1)
            after = self.cpu()
            if after - before < .002:
                break
            before = after
        return after

    def merged(self):
        return self.gateway.total("otelcol_ledger_merged_samples") if self.kind == "portcullis" else 0


class Subject(Program):
    """A program with a way through ("bare", "limited", "policy") to a sink, by the exporter `out`, with this compression.
    queue: what its sending queue holds, by default what both programs have by default."""

    def __init__(self, binary, kind, way, sink, coding, queue=1000, out="otlp_grpc"):
        self.way, self.sink = way, sink
        processors = {"bare": "", "limited": LIMITED, "policy": LIMITED + ", allowlist, pii, batch"}[way]
        defined = (LIMITS if way != "bare" else "") + (POLICY if way == "policy" else "")
        text = CONFIG.replace("DEFINED\n", defined).replace("PROCESSORS", processors).replace("EXPORTER", EXPORTERS[out])
        text = text.replace("OUT", out).replace("KIND", kind)
        text = text.replace("SINK", str(sink.port)).replace("CODING", coding).replace("QUEUE", str(queue))
        super().__init__(binary, kind, text)
