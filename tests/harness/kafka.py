# SPDX-License-Identifier: Apache-2.0
"""Kafka on loopback, without Java: librdkafka's mock cluster (tests/support/kafka_tool.c), a reader and a writer of its topics."""
import json
import subprocess
import threading
import time

from harness.gateway import WAIT_S

PRODUCE = 0  # API keys of Kafka's protocol
OFFSET_COMMIT = 8
INIT_PRODUCER_ID = 22
PARTITIONS = 4  # of each topic of the mock


class Message:
    def __init__(self, line):
        node = json.loads(line)
        self.topic, self.partition, self.offset = node["topic"], node["partition"], node["offset"]
        self.key = None if node["key"] is None else bytes.fromhex(node["key"])
        self.headers = [(bytes.fromhex(a).decode(), bytes.fromhex(b)) for a, b in node["headers"]]
        self.value = bytes.fromhex(node["value"])


class Reader:
    """with Reader(build, address, topics) as r: ... r.messages, in order of arrival."""

    def __init__(self, build, address, *topics, partitions=PARTITIONS):
        self.command = [str(build / "tests/support/kafka_tool"), "read", address, str(partitions), *topics]
        self.messages = []

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(WAIT_S)
        self.thread.join(WAIT_S)

    def read(self):
        for line in self.process.stdout:
            self.messages.append(Message(line))

    def until(self, condition):
        end = time.monotonic() + WAIT_S
        while not condition(self.messages):
            assert time.monotonic() < end, "%d messages" % len(self.messages)
            time.sleep(0.01)
        return self.messages


class Writer:
    """with Writer(build, address) as w: w.send("topic", b"value", headers=[("name", b"value")])."""

    def __init__(self, build, address):
        self.command = [str(build / "tests/support/kafka_tool"), "write", address]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(WAIT_S)

    def send(self, topic, value, partition=-1, headers=()):
        words = [value, *(word for name, text in headers for word in (name.encode(), text))]
        self.process.stdin.write("%s %d %s\n" % (topic, partition, " ".join(w.hex() or "-" for w in words)))
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


def committed(build, address, group, topic, partitions=PARTITIONS):
    """The offsets of a group, one for each partition; None: there is none."""
    command = [str(build / "tests/support/kafka_tool"), "committed", address, group, str(partitions), topic]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True).stdout.split()
    return [int(line) if int(line) >= 0 else None for line in lines]


def topics(build, address):
    """The names of all topics."""
    command = [str(build / "tests/support/kafka_tool"), "topics", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True).stdout.split()


class Broker:
    """with Broker(build) as b: ... b.address; b.command("errors 0 1 10"). It runs from its construction on, and ends with
    its stdin."""

    def __init__(self, build):
        self.build = build
        self.process = subprocess.Popen([str(self.build / "tests/support/kafka_tool"), "broker"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(WAIT_S)

    def command(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", line

    def reader(self, *topics):
        return Reader(self.build, self.address, *topics)

    def writer(self):
        return Writer(self.build, self.address)

    def topics(self):
        return topics(self.build, self.address)

    def committed(self, group, topic):
        return committed(self.build, self.address, group, topic)
