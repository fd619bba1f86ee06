# SPDX-License-Identifier: Apache-2.0
"""A gRPC server by hand that answers each call with the frames that a test names, the right ones and the wrong ones."""
import contextlib
import gzip
import socket
import struct
import time
import typing

from harness import h2
from harness.h2 import ACK, PING, RST_STREAM, WINDOW_UPDATE
from harness.listener import Listener


# ---- steps of an answer: functions of (connection, stream)

def frame(kind, flags=0, payload=b"", stream=None):
    return lambda connection, own: connection.sendall(h2.frame(kind, flags, payload, own if stream is None else stream))


def headers(*pairs, end=False):
    """Header or trailer fields given as text."""
    block = h2.headers([(name.encode(), str(value).encode()) for name, value in pairs])
    return frame(h2.HEADERS, h2.END_HEADERS | (h2.END_STREAM if end else 0), block)


def data(payload, end=False):
    return frame(h2.DATA, h2.END_STREAM if end else 0, payload)


def raw(payload):
    return lambda connection, own: connection.sendall(payload)


def pause(seconds):
    return lambda connection, own: time.sleep(seconds)


def close(connection, own):
    connection.shutdown(socket.SHUT_RDWR)


def abort(connection, own):
    """A TCP reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def message(payload=b"", flag=0, length=None):
    """A gRPC message; its length can be a lie."""
    return bytes([flag]) + (len(payload) if length is None else length).to_bytes(4, "big") + payload


OPEN = headers((":status", 200), ("content-type", "application/grpc"))
ZIPPED = headers((":status", 200), ("content-type", "application/grpc"), ("grpc-encoding", "gzip"))


def trailers(status, *more):
    return headers(("grpc-status", status), *more, end=True)


def answer(payload=b"", zipped=False):
    """As it should be."""
    body = message(gzip.compress(payload), flag=1) if zipped else message(payload)
    return [ZIPPED if zipped else OPEN, data(body), trailers(0)]


def refusal(status, *more):
    """A status without an answer, as most servers send it: in the only header block."""
    return [headers((":status", 200), ("content-type", "application/grpc"), ("grpc-status", status), *more, end=True)]


class Call(typing.NamedTuple):
    wire: bytes  # the message with its frame
    block: bytes  # the header block as sent
    at: float


class FaultSink(Listener):
    """`script` is the list of steps for each call whose message has arrived; `fail(script)`: for the next one. `seen`: these
    calls. `greeting` is sent to each connection in place of what a server would send, and ends it. `pings`: how many have
    come."""

    def __init__(self):
        self.script, self.greeting, self.faults, self.seen = answer(), None, [], []
        self.connections, self.blocks, self.bodies, self.windows = set(), {}, {}, {}
        self.pings = 0
        super().__init__()

    def __exit__(self, *_):
        super().__exit__()
        self.cut()

    def fail(self, script):
        self.faults.append(script)

    def data(self, payload):
        """A step: as `data`, but waits until the window of the connection has room."""
        def step(connection, own):
            while self.windows[connection] < len(payload):
                self.take_frame(connection)
            self.windows[connection] -= len(payload)
            data(payload)(connection, own)
        return step

    def cut(self):
        """Ends all connections."""
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                close(connection, None)

    def serve(self, connection):
        self.connections.add(connection)
        self.windows[connection] = 65535  # RFC 9113 section 6.9.2
        with contextlib.suppress(OSError, EOFError):
            if self.greeting is not None:
                connection.sendall(self.greeting)
                return connection.close()
            read(connection, 24)
            connection.sendall(h2.frame(h2.SETTINGS, 0, b"", 0))
            while True:
                self.take_frame(connection)
        self.connections.discard(connection)
        connection.close()

    def take_frame(self, connection):
        head = read(connection, 9)
        payload = read(connection, int.from_bytes(head[:3], "big"))
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        if kind == PING and not flags & ACK:
            self.pings += 1
        if kind in (h2.SETTINGS, PING) and not flags & ACK:
            connection.sendall(h2.frame(kind, ACK, payload if kind == PING else b"", 0))
        if kind == h2.DATA and payload:
            for window in (0, stream):
                connection.sendall(h2.frame(WINDOW_UPDATE, 0, len(payload).to_bytes(4, "big"), window))
        if kind == WINDOW_UPDATE and stream == 0:
            self.windows[connection] += int.from_bytes(payload, "big")
        if kind == h2.HEADERS:
            self.blocks[connection, stream] = payload
        if kind == h2.DATA:
            self.bodies[connection, stream] = self.bodies.get((connection, stream), b"") + payload
        if kind == h2.DATA and flags & h2.END_STREAM:
            call = connection, stream
            self.seen.append(Call(self.bodies.pop(call), self.blocks.pop(call), time.monotonic()))
            for step in self.faults.pop(0) if self.faults else self.script:
                step(connection, stream)


def read(connection, count):
    got = b""
    while len(got) < count:
        part = connection.recv(count - len(got))
        if not part:
            raise EOFError
        got += part
    return got
