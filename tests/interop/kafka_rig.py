# SPDX-License-Identifier: Apache-2.0
"""Gateways on both sides of a real broker of Kafka, a load on them, and what of it has arrived."""
import contextlib
import itertools
import threading
import time
from collections import Counter

import grpc

from harness import build as make
from harness import corpus, otlp, peers, policy
from interop.gate import gateway

KEYS = ["service.name", "region", "thread.name", "pid", "process.executable.name"]

FRONT = """
receivers:
  otlp: {ack: %s, protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 64}}}
processors:
  allowlist: {keys: [service.name, region, thread.name, pid, process.executable.name]}
exporters:
  kafka:
    brokers: [127.0.0.1:{port:broker}]
    timeout: %s
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 0s}
    sending_queue: {queue_size: 10000%s}
    %s
extensions: {file_storage: {directory: queue, create_directory: true}}
service:
  extensions: [file_storage]
  pipelines: {profiles: {receivers: [otlp], processors: [allowlist], exporters: [kafka]}}
"""
BACK = """
receivers:
  kafka:
    brokers: [127.0.0.1:{port:broker}]
    initial_offset: earliest
    session_timeout: 6s
    autocommit: {interval: 200ms}
    metadata: {refresh_interval: 1s}
    max_message_bytes: 67108864
    %s
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:{port:sink}
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 0s}
    sending_queue: {%s}
extensions: {file_storage: {directory: queue, create_directory: true}}
service:
  extensions: [file_storage]
  pipelines: {profiles: {receivers: [kafka], exporters: [otlp_grpc]}}
"""
# Of a gateway: far more than these loads need, and far less than what is sent.
PEAK = 256 << 20
# Of sending queues.
MEMORY, DISK = "", "storage: file_storage"


@contextlib.contextmanager
def front(broker, *lines, queue=MEMORY, timeout="10s"):
    """A gateway that writes to Kafka, and a client of it."""
    text = FRONT % ("durable" if queue else "enqueue", timeout, queue and ", " + queue, "\n    ".join(lines))
    with gateway(text, broker=broker.port["broker"]) as g, peers.Client(g.port["otlp"]) as client:
        yield g, client


def back(broker, sink, *lines, queue=MEMORY):
    """A gateway that reads from Kafka."""
    return gateway(BACK % ("\n    ".join(lines), queue), broker=broker.port["broker"], sink=sink.port)


def topic(name):
    return "profiles: {topic: %s}" % name


def topics(name, more=""):
    return "profiles: {topics: [%s]%s}" % (name, more)


def bodies():
    for seed in range(20):
        yield make.request(seed, samples=100, resources=2)
    for path in corpus.files("otlp/*-v111.pb"):
        yield otlp.parse(path.read_bytes())


def counted(profiles):
    """How often each value of each sample is there, whatever requests they came in."""
    found = Counter()
    for resource, scope, head, samples in profiles:
        for stack, attributes, link, values, timestamps in samples:
            found[resource, scope, head, stack, attributes, link, tuple(values), tuple(timestamps)] += 1
    return found


def permitted(requests):
    return counted(p for data in requests for p in policy.Allowlist(KEYS).permit(otlp.profiles(data)))


def merged(requests):
    """What is permitted, the same before and after equal samples are merged."""
    return policy.merged(p for data in requests for p in policy.Allowlist(KEYS).permit(otlp.profiles(data)))


def arrived(sink):
    return counted(p for data in list(sink.received) for p in otlp.profiles(data))


def missing(sink, wanted):
    """What was acknowledged and has not arrived."""
    return wanted - arrived(sink)


def until(condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


class Load(threading.Thread):
    """Sends requests until it is stopped, and remembers those that were acknowledged."""

    def __init__(self, client):
        super().__init__()
        self.client, self.acknowledged, self.over = client, [], threading.Event()
        self.start()

    def run(self):
        for seed in itertools.count(1):
            if self.over.is_set():
                return
            message = make.request(seed, samples=20)
            with contextlib.suppress(grpc.RpcError):
                self.client.send(message)
                self.acknowledged.append(message)
            time.sleep(0.01)

    def stop(self):
        self.over.set()
        self.join()
        return permitted(self.acknowledged)


def duplicates(sink, wanted):
    return sum((arrived(sink) - wanted).values())


def peak(*gateways):
    return max(g.rss()["VmHWM"] for g in gateways)
