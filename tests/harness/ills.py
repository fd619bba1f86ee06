# SPDX-License-Identifier: Apache-2.0
"""Destinations of the six kinds, each of which can be killed, started again, be slow, or refuse.

As a program, python -m harness.ills KIND STATE: one in a process of its own, that keeps nothing; it prints its port and ends
with its input. States are names of methods here.
"""
import os
import pathlib
import select
import signal
import sys
import threading
import time

import grpc

from harness import kafka, parca, peers
from harness.otlphttp import OtlpSink
from harness.push import PushSink, reply

BUILD = pathlib.Path(__file__).resolve().parent.parent.parent / "build" / os.environ.get("MODE", "release")


class Grpc(peers.Sink):
    def refuse(self, code=grpc.StatusCode.INVALID_ARGUMENT, text="no"):
        self.answer = lambda data, context: context.abort(code, text)

    def refuse_as_too_large(self):
        self.refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, "message larger than max")

    def slow_down(self):
        def answer(data, context):
            time.sleep(0.5)
            return b""
        self.answer = answer

    def recover(self):
        self.answer = lambda data, context: b""


class Http:
    """What the sinks over HTTP have in common."""

    def refuse(self):
        self.answer = lambda taken, number: reply(400)

    def refuse_as_too_large(self):
        self.answer = lambda taken, number: reply(413)

    def slow_down(self):
        def answer(taken, number):
            time.sleep(0.5)
            return self.ok
        self.answer = answer

    def recover(self):
        self.answer = lambda taken, number: self.ok


class Push(Http, PushSink):
    pass


class Otlp(Http, OtlpSink):
    pass


class Kafka:
    """A mock cluster. What it refuses are requests of producers, more than any test sends."""
    PERMANENT, TOO_LARGE, REQUESTS = 44, 10, 100000

    def __init__(self, build):
        self.broker = kafka.Broker(build)
        self.port = int(self.broker.address.rpartition(":")[2])

    def start(self):
        return self

    def stop(self):
        self.broker.__exit__()

    def fail(self, code):
        self.broker.command("errors %d %d %d" % (kafka.PRODUCE, self.REQUESTS, code))

    def refuse(self):
        self.fail(self.PERMANENT)

    def refuse_as_too_large(self):
        self.fail(self.TOO_LARGE)

    def slow_down(self):
        self.broker.command("delay 500")

    def recover(self):
        pass


class Pipe:
    """What the exporter `file` writes to as out/full: a pipe, or where `out` leads to /dev, a disk that is full. Each line is
    an answer."""

    def __init__(self, gateway):
        self.gateway, self.received, self.delay, self.fd = gateway, 0, 0, None
        self.link, self.pipe = gateway.directory / "out", gateway.directory / "pipe/full"
        self.pipe.parent.mkdir()
        os.mkfifo(self.pipe)
        self.link.symlink_to(self.pipe.parent)

    def start(self):
        self.fd = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.running = True
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def stop(self):
        if self.fd is not None:
            self.running = False
            self.thread.join()
            os.close(self.fd)
            self.fd = None

    def read(self):
        while self.running:
            data = os.read(self.fd, 1 << 20) if select.select([self.fd], [], [], 0.05)[0] else b""
            self.received += data.count(b"\n")
            time.sleep(self.delay * data.count(b"\n") if data else 0.02)

    def slow_down(self):
        self.delay = 0.5

    def lead_to(self, directory):
        """As a disk that was mounted elsewhere; the gateway opens it again when told."""
        opened = self.opened()
        self.link.unlink()
        self.link.symlink_to(directory)
        self.gateway.process.send_signal(signal.SIGHUP)
        self.gateway.until(lambda: self.opened() - opened)

    def opened(self):
        """The files under their descriptors."""
        found = set()
        for fd in pathlib.Path("/proc/%d/fd" % self.gateway.process.pid).iterdir():
            try:
                found.add((fd.name, os.readlink(fd)))
            except OSError:
                pass
        return {x for x in found if x[1] in ("/dev/full", str(self.pipe))}

    def refuse(self):
        self.lead_to("/dev")

    def recover(self):
        self.delay = 0
        if os.readlink(self.link) == "/dev":
            self.lead_to(self.pipe.parent)


class Forgetful(list):
    def append(self, _):
        pass


KINDS = {"otlp_grpc": Grpc, "otlp_http": Otlp, "pyroscope": Push, "parca": lambda: Grpc(method=parca.METHOD), "kafka": lambda: Kafka(BUILD)}


def main(kind, state):
    sink = KINDS[kind]()
    sink.received = sink.metadata = sink.seen = sink.taken = Forgetful()
    sink.start()
    getattr(sink, state)()
    print(sink.port, flush=True)
    sys.stdin.read()
    sink.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
