# SPDX-License-Identifier: Apache-2.0
"""Frames of HTTP/2 by hand (RFC 9113, RFC 7541), for what no library would send, and a connection that sends them."""
import contextlib
import socket
import threading
import time

from harness import otlp
from harness.canaries import varint

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
PRIORITY_UPDATE = 16
END_STREAM, END_HEADERS, PADDED = 1, 4, 8
ACK = 1
HEADER_TABLE_SIZE, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 1, 3, 4
WINDOW, WINDOW_MAX = 65535, 2 ** 31 - 1
REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 7, 8, 11
# The receive buffer of who reads nothing: what the kernel does not hold, the server must.
UNREAD_BUFFER = 4096
LITERAL, INDEXING = 0, 0x40
EXPORT = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", otlp.METHOD.encode()), (b":authority", b"x"),
          (b"te", b"trailers"), (b"content-type", b"application/grpc")]
HEALTH = [(n, b"/grpc.health.v1.Health/Check" if n == b":path" else v) for n, v in EXPORT]


def frame(kind, flags, payload, stream=1):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


MAGIC = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PREFACE = MAGIC + frame(SETTINGS, 0, b"", stream=0)


def settings(*pairs):
    """The payload of a SETTINGS frame."""
    return b"".join(number.to_bytes(2, "big") + value.to_bytes(4, "big") for number, value in pairs)


def integer(first, bits, value):
    """An HPACK integer whose first octet has these bits of it, and otherwise `first`."""
    most = (1 << bits) - 1
    return bytes([first | value]) if value < most else bytes([first | most]) + varint(value - most)


def headers(pairs, kind=LITERAL):
    """A header block of literals without Huffman coding; INDEXING: which the peer keeps in its dynamic table."""
    def text(data):
        return integer(0, 7, len(data)) + data
    return b"".join(bytes([kind]) + text(name) + text(value) for name, value in pairs)


def again(pairs):
    """The same header block when it was the last to be sent with INDEXING: an octet for each header."""
    return bytes(0x80 | (62 + i) for i in reversed(range(len(pairs))))


def changed(name, value):
    """The headers of an Export with another value, or with one more."""
    return [(n, v) for n, v in EXPORT if n != name] + [(name, value)]


def export(body, pairs=EXPORT):
    """A connection with one call, whose message frames are the body."""
    return PREFACE + frame(HEADERS, END_HEADERS, headers(pairs)) + frame(DATA, END_STREAM, body)


def connected(port, source, receive_buffer=0):
    """A socket that comes from this address."""
    s = socket.socket()
    if receive_buffer:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.bind((source, 0))
    s.settimeout(10)
    s.connect(("127.0.0.1", port))
    return s


class Connection:
    """A client that keeps to no rule by itself but one: after the handshake it acknowledges the server's SETTINGS.

    A thread reads what comes and notes it, unless `reads` is false. `source`: the address that it comes from. `greeting`:
    what it begins with; without one nothing is sent or awaited.
    """

    def __init__(self, port, source="127.0.0.1", greeting=PREFACE, reads=True):
        self.socket = connected(port, source, 0 if reads else UNREAD_BUFFER)
        self.sent, self.goaway = 0, None
        self.window, self.stream_window = WINDOW, WINDOW
        self.greeted, self.ended, self.given_up = threading.Event(), threading.Event(), False
        self.changed = threading.Condition()
        self.pings, self.finished, self.reset, self.widened = set(), set(), {}, {}
        self.rest = b""
        if greeting:
            self._handshake(greeting)
        self.socket.settimeout(.1)
        self.reader = threading.Thread(target=self._read, daemon=True) if reads else None
        if self.reader:
            self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.given_up = True
        if self.reader:
            self.reader.join()
        self.socket.close()

    def _handshake(self, greeting):
        with contextlib.suppress(OSError):
            self.socket.sendall(greeting)
            while not self.greeted.is_set() and not self.ended.is_set():
                self._take()
            self.socket.sendall(frame(SETTINGS, ACK, b"", stream=0))

    # what comes

    def _take(self):
        """One read; False when there will be no more."""
        try:
            part = self.socket.recv(1 << 18)
        except TimeoutError:
            return True
        except OSError:
            part = b""
        if not part:
            self.ended.set()
        with self.changed:
            self._frames(self.rest + part)
            self.changed.notify_all()
        return bool(part)

    def _frames(self, data):
        at = 0
        while len(data) - at >= 9:
            end = at + 9 + int.from_bytes(data[at:at + 3], "big")
            if end > len(data):
                break
            self._frame(data[at + 3], data[at + 4], int.from_bytes(data[at + 5:at + 9], "big"), data[at + 9:end])
            at = end
        self.rest = data[at:]

    def _frame(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            self.greeted.set()
            for i in range(0, len(payload), 6):
                if int.from_bytes(payload[i:i + 2], "big") == INITIAL_WINDOW_SIZE:
                    self.stream_window = int.from_bytes(payload[i + 2:i + 6], "big")
        elif kind == WINDOW_UPDATE and not stream:
            self.window += int.from_bytes(payload, "big")
        elif kind == WINDOW_UPDATE:
            self.widened[stream] = self.widened.get(stream, 0) + int.from_bytes(payload, "big")
        elif kind == PING and flags & ACK:
            self.pings.add(payload)
        elif kind == GOAWAY:
            self.goaway = int.from_bytes(payload[4:8], "big")
        elif kind == RST_STREAM:
            self.reset[stream] = int.from_bytes(payload, "big")
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            self.finished.add(stream)

    def _read(self):
        while not self.given_up and self._take():
            pass

    def until(self, condition, seconds=10):
        """Whether it came true, by what was read."""
        with self.changed:
            return self.changed.wait_for(lambda: condition() or self.ended.is_set(), seconds) and bool(condition())

    def alive(self):
        """Whether a ping is answered; one at a time."""
        ours = len(self.pings).to_bytes(8, "big")
        return self.send(frame(PING, 0, ours, stream=0)) and self.until(lambda: ours in self.pings)

    def closed(self, seconds):
        """Whether the server has closed it by then."""
        if self.reader:
            return self.ended.wait(seconds)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        return self.ended.wait(seconds)

    # what goes

    def send(self, data, end=None):
        """All of it, or what the server takes until then (a time of time.monotonic). False: it has closed, or the time is
        over."""
        view = memoryview(data)
        while view:
            if self.ended.is_set() or (end and time.monotonic() > end):
                return False
            try:
                count = self.socket.send(view)
            except TimeoutError:
                continue
            except OSError:
                return False
            self.sent += count
            view = view[count:]
        return True
