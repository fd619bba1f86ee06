# SPDX-License-Identifier: Apache-2.0
"""The exporter kafka before a broker whose replies are late, cut, lost or wrong: whether it has the message is not known then, so
it is sent again. Its error codes: test_kafka.py."""
import contextlib
import socket
import struct
import time

import pytest

from harness import build as make
from harness import kafka, otlp, peers
from harness.faults import abort, close
from harness.gateway import Gateway
from harness.kafka_proxy import KafkaProxy, framed
from harness.references import read

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  kafka:
    brokers: ["%s"]
    timeout: 2s
    retry_on_failure: {initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 0s}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [kafka]}
"""
TOPIC, SAMPLES, WORDS = "otlp_profiles", 10, b"words-of-the-broker"


class Bed:
    """A gateway before a proxy before a broker."""

    def __init__(self, build):
        self.held, self.sent = contextlib.ExitStack(), otlp.Counter()
        with contextlib.ExitStack() as held:
            self.broker = held.enter_context(kafka.Broker(build))
            self.proxy = held.enter_context(KafkaProxy(int(self.broker.address.rpartition(":")[2]), kafka.PRODUCE))
            self.gateway = held.enter_context(Gateway(build / "portcullis", CONFIG % self.proxy.address))
            self.client = held.enter_context(peers.Client(self.gateway.port["otlp"]))
            self.reader = held.enter_context(self.broker.reader(TOPIC))
            self.held = held.pop_all()

    def arrived(self):
        return sum((otlp.samples(read(m)) for m in list(self.reader.messages)), otlp.Counter())

    def send(self, seed):
        message = make.request(seed, samples=SAMPLES)
        self.client.send(message)
        self.sent += otlp.samples(message)

    def delivers(self):
        """Everything so far has arrived at least once, and is accounted for."""
        total = self.sent.total()
        self.gateway.until(lambda: self.gateway.total("otelcol_ledger_out_samples", exporter="kafka") == total)
        assert self.gateway.balanced("profiles", "kafka")
        assert self.gateway.total("otelcol_ledger_dropped_samples", exporter="kafka") == 0
        self.reader.until(lambda _: not self.sent - self.arrived())


@pytest.fixture
def bed(build):
    """For each fault another one: librdkafka waits longer before each connection."""
    bed = Bed(build)
    with bed.held:
        yield bed
        assert WORDS.decode() not in bed.gateway.log() + bed.gateway.metrics_text()


def cut(connection, data):
    connection.sendall(data)
    close(connection, None)


def reset(connection, data):
    connection.sendall(data)
    connection.shutdown(socket.SHUT_RD)  # ends the read of another thread, which would keep the connection
    abort(connection, None)


def late(seconds):
    def fault(connection, reply):
        time.sleep(seconds)
        connection.sendall(reply)
    return fault


def body(change):
    """Another body with the same correlation ID, and the length that it has."""
    return lambda connection, reply: connection.sendall(framed(reply[4:8] + change(reply[8:])))


def length(change):
    return lambda connection, reply: connection.sendall(struct.pack(">i", change(len(reply) - 4)) + reply[4:])


PLACES = {"before it": 0, "in its length": 2, "in its head": 6, "in its middle": 20, "before its end": -1}
FAULTS = {
    "a little late": late(.3), "too late": late(3), "lost": lambda connection, reply: None,
    "twice": lambda connection, reply: connection.sendall(2 * reply),
    "of nobody's request": lambda connection, reply: connection.sendall(reply[:4] + b"\x7f" * 4 + reply[8:]),
    "longer than it says": length(lambda n: n - 5), "shorter than it says": length(lambda n: n + 5),
    "of no length": length(lambda n: 0), "of 2 GiB": length(lambda n: 0x7fffffff), "of a negative length": length(lambda n: -1),
    "empty": body(lambda b: b""), "of zeros": body(lambda b: bytes(len(b))), "of ones": body(lambda b: b"\xff" * len(b)),
    "of words": body(lambda b: WORDS * 9), "with something behind": body(lambda b: b + WORDS),
    "without its end": body(lambda b: b[:-7]),
}
FAULTS.update({"cut " + name: lambda c, reply, at=at: cut(c, reply[:at]) for name, at in PLACES.items()})
FAULTS.update({"reset " + name: lambda c, reply, at=PLACES[name]: reset(c, reply[:at]) for name in ("before it", "in its middle")})


@pytest.mark.parametrize("fault", FAULTS)
def test_a_reply_that_is_spoiled_loses_nothing(bed, fault):
    bed.proxy.faults = [FAULTS[fault]]
    bed.send(1)
    bed.send(2)
    bed.delivers()
    assert not bed.proxy.faults
    bed.send(3)
    bed.delivers()
