# SPDX-License-Identifier: Apache-2.0
"""Frames of HTTP/2 by hand (RFC 9113, RFC 7541), for what no library would send."""
from harness import otlp
from harness.canaries import varint

DATA, HEADERS, SETTINGS, GOAWAY, CONTINUATION = 0, 1, 4, 7, 9
END_STREAM, END_HEADERS = 1, 4
EXPORT = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", otlp.METHOD.encode()), (b":authority", b"x"),
          (b"te", b"trailers"), (b"content-type", b"application/grpc")]


def frame(kind, flags, payload, stream=1):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, b"", stream=0)


def headers(pairs):
    """A header block of literals without indexing and without Huffman coding."""
    def text(data):
        return bytes([len(data)]) + data if len(data) < 127 else b"\x7f" + varint(len(data) - 127) + data
    return b"".join(b"\0" + text(name) + text(value) for name, value in pairs)


def changed(name, value):
    """The headers of an Export with another value, or with one more."""
    return [(n, v) for n, v in EXPORT if n != name] + [(name, value)]


def export(body, pairs=EXPORT):
    """A connection with one call, whose message frames are the body."""
    return PREFACE + frame(HEADERS, END_HEADERS, headers(pairs)) + frame(DATA, END_STREAM, body)
