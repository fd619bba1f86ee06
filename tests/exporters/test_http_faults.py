# SPDX-License-Identifier: Apache-2.0
"""Exporters over HTTP before servers that refuse, dawdle, break off and lie: each answer, and what becomes of the request.

What is retried and what is not is the Collector's choice. Requests that are too large (413) are split: test_otlp_http.py.
"""
import contextlib
import email.utils
import gzip
import json
import socket
import struct
import time

import pytest

from harness import otlp, outcomes
from harness.otlphttp import JSON, PROTO, OtlpSink, json_reply
from harness.outcomes import CANARY, EXHAUSTED, OK, PERMANENT, REPEAT, RETRIES, RETRY, Bed, Fault, rows
from harness.push import PushSink, reply

PATIENT = (RETRIES, "timeout: 30s")
HURRIED = (RETRIES, "timeout: 1s")
SOON_OVER = (RETRIES.replace("60s", "500ms"), "timeout: 30s")
EXPORTERS = {  # the sink of each, and a line of its configuration
    "otlp_http": (OtlpSink, "encoding: proto"),
    "otlp_http/json": (OtlpSink, "encoding: json"),
    "pyroscope": (PushSink, "limits: {max_age: 876000h}"),
}
PAGE = ("<html>%s</html>" % CANARY).encode()
HEAD = b"HTTP/1.1 200 OK\r\n"


# ---- status codes

def status(number):
    """A web server's or proxy's own page."""
    if number in (204, 304):
        return reply(number).replace(b"Content-Length: 0\r\n", b"")
    more = {"Location": "http://127.0.0.1:1/"} if number // 100 == 3 else {}
    return reply(number, PAGE, {"Content-Type": "text/html", **more})


WORDS = {400: "invalid", 401: "unauthenticated", 403: "permission_denied", 404: "not_found", 422: "invalid", 500: "internal"}
STATUSES = {str(number): Fault(status(number), OK) for number in (200, 201, 202, 203, 204, 205, 206, 207, 226, 299)}
STATUSES.update({str(number): Fault(status(number), RETRY, word) for number, word in (
    (409, "in_progress"), (429, "resource_exhausted"), (502, "bad_gateway"), (503, "unavailable"), (504, "gateway_timeout"))})
STATUSES.update({str(number): Fault(status(number), PERMANENT, WORDS.get(number, "refused")) for number in (
    300, 301, 302, 303, 304, 305, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407, 408, 410, 411, 412, 414, 415, 416, 417, 418,
    421, 422, 423, 424, 425, 426, 428, 431, 451, 500, 501, 505, 506, 507, 508, 510, 511, 520, 599, 600, 999)})


# ---- Retry-After

def later(text, number=503):
    return reply(number, PAGE, {"Retry-After": text})


def date(seconds, number=503):
    """The date of that many seconds after the answer."""
    return lambda connection: connection.sendall(later(email.utils.formatdate(time.time() + seconds, usegmt=True), number))


UNREADABLE = ("", "soon", "-5", "-99999999999999999999", "0", "\xb2", "1.5", "60 minutes", "1970-01-01", "Thu, 32 Foo 2026")
HINTS = {
    "503 at a date in the past": Fault(date(-3600), RETRY, "unavailable"),
    "503 at the beginning of time": Fault(later("Thu, 01 Jan 1970 00:00:00 GMT"), RETRY, "unavailable"),
    "502, which has none": Fault(later("3600", 502), RETRY, "bad_gateway"),
    "504, which has none": Fault(later("3600", 504), RETRY, "gateway_timeout"),
    "409, which has none": Fault(later("3600", 409), RETRY, "in_progress"),
    "500, which is not retried": Fault(later("1", 500), PERMANENT, "internal"),
    "400, which is not retried": Fault(later("1", 400), PERMANENT, "invalid"),
}
HINTS.update({"503 with %r" % text: Fault(later(text), RETRY, "unavailable") for text in UNREADABLE})

WAITS = {
    "503 in seconds": Fault(later("1"), RETRY, "unavailable", wait=1),
    "429 in seconds": Fault(later("1", 429), RETRY, "resource_exhausted", wait=1),
    "503 at a date": Fault(date(2), RETRY, "unavailable", wait=1),
    "429 at a date": Fault(date(2, 429), RETRY, "resource_exhausted", wait=1),
}
# Longer than data is retried for.
ABSURD = rows(EXHAUSTED, {
    "an hour": later("3600"), "2^31 seconds": later("2147483648"), "2^63 seconds": later("9223372036854775808"),
    "tomorrow": date(86400), "the year 9999": later("Fri, 31 Dec 9999 23:59:59 GMT")}, "unavailable")


# ---- answers

def partial(count, text=CANARY):
    return otlp.Response(partial_success={"rejected_profiles": count, "error_message": text}).SerializeToString()


ACCEPTED = rows(OK, {
    "nothing": reply(200), "protobuf": reply(200, b"\x0a\x00", {"Content-Type": PROTO}),
    "json": json_reply(200, {"partialSuccess": {}}), "gzip": reply(200, gzip.compress(b""), {"Content-Encoding": "gzip"}),
    "a page": reply(200, PAGE, {"Content-Type": "text/html"}),
    "json of a wrong type": json_reply(200, []), "json that is cut": reply(200, b'{"partialSuccess":', {"Content-Type": JSON}),
    "deep json": reply(200, b'{"a":' * 10000, {"Content-Type": JSON}),
    "junk": reply(200, b"\xff" * 9, {"Content-Type": PROTO}),
    "json that is called protobuf": reply(200, b'{"partialSuccess":{"rejectedProfiles":"1"}}', {"Content-Type": PROTO}),
    "protobuf that is called json": reply(200, partial(1), {"Content-Type": JSON}),
    "protobuf without a type": reply(200, partial(1)),
    "no gzip": reply(200, b"junk", {"Content-Encoding": "gzip", "Content-Type": PROTO}),
    "an unknown coding": reply(200, partial(1), {"Content-Encoding": CANARY, "Content-Type": PROTO}),
    "a megabyte": reply(200, b"\x0a\x02\x08\x01" * (1 << 18), {"Content-Type": PROTO}),
    "a bomb": reply(200, gzip.compress(bytes(50 << 20)), {"Content-Encoding": "gzip", "Content-Type": PROTO}),
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\n", "no length": HEAD + b"\r\n{}", "bare line feeds": b"HTTP/1.1 200 OK\n\n",
    "an announcement before": b"HTTP/1.1 100 Continue\r\n\r\n" + reply(200),
    "hints before": b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" * 3 + reply(200),
    "longer than its length": HEAD + b"Content-Length: 2\r\n\r\n{}and more",
    "a second answer": reply(200) + reply(500),
    "chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nX-After: it\r\n\r\n",
})
ACCEPTED["an error that is cut"] = Fault(b"HTTP/1.1 400 Bad\r\nContent-Length: 100\r\n\r\n{", PERMANENT, "invalid")


# ---- connections

def reset(data=b""):
    """A TCP reset after these bytes."""
    def act(connection):
        connection.sendall(data)
        time.sleep(.05)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    return act


def endless(first, more):
    def act(connection):
        connection.sendall(first)
        while True:
            connection.sendall(more * (65536 // len(more)))
    return act


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
UNSAID = {"in the version": b"HTTP/1", "in the status": b"HTTP/1.1 20"}
CUTS = {
    "behind the status": HEAD, "in a header": HEAD + b"Content-Le",
    "behind a header": HEAD + b"Content-Type: text/html\r\n", "before the body": HEAD + b"Content-Length: 9\r\n\r\n",
    "in the body": HEAD + b"Content-Length: 9\r\n\r\n{", "before a chunk": CHUNKED, "in a size": CHUNKED + b"10",
    "in a chunk": CHUNKED + b"10\r\n{}", "behind a chunk": CHUNKED + b"2\r\n{}\r\n", "in the last chunk": CHUNKED + b"2\r\n{}\r\n0\r\n",
    "in a trailer": CHUNKED + b"0\r\nX-Aft", "behind an announcement": b"HTTP/1.1 100 Continue\r\n\r\n",
}
BROKEN = {"cut " + name: Fault(data, RETRY, "cut") for name, data in CUTS.items()}
BROKEN.update({"reset " + name: Fault(reset(data), RETRY, "cut") for name, data in CUTS.items()})
BROKEN.update(rows(REPEAT, {"hung up": None, "reset": reset()}))  # libcurl does that on a connection that has worked before
BROKEN.update(rows(REPEAT, {"cut " + name: data for name, data in UNSAID.items()}))
BROKEN.update(rows(REPEAT, {"reset " + name: reset(data) for name, data in UNSAID.items()}))
BROKEN.update(rows(RETRY, {
    "a length below 0": HEAD + b"Content-Length: -5\r\n\r\n{}", "a length that is none": HEAD + b"Content-Length: two\r\n\r\n{}",
    "endless headers": endless(HEAD, b"X-A: b\r\n"), "an endless header": endless(HEAD + b"X-A: ", b"b"),
    "endless announcements": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "an endless status": endless(b"HTTP/1.1 200 ", b"K"), "endless trailers": endless(CHUNKED + b"0\r\n", b"X-A: b\r\n"),
}, "unavailable"))
BROKEN.update(rows(RETRY, {
    "a length of terabytes": HEAD + b"Content-Length: 9999999999999\r\n\r\n{}",
    "two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 9\r\n\r\n{}",
    "no chunk": CHUNKED + b"what\r\n", "a chunk of terabytes": CHUNKED + b"ffffffffffffffff0\r\n{}"}, "cut"))
BROKEN.update(rows(RETRY, {
    "no HTTP": b"\x16\x03\x01 what is this\r\n\r\n", "HTTP/0.9": PAGE, "HTTP/9.9": b"HTTP/9.9 200 OK\r\n\r\n",
    "a status of words": b"HTTP/1.1 fine\r\n\r\n", "a status below 100": b"HTTP/1.1 099 X\r\n\r\n"}, "unavailable"))
BROKEN.update(rows(OK, {"an endless body": endless(HEAD + b"\r\n", b"x"), "endless chunks": endless(CHUNKED, b"1\r\nx\r\n")}))


# ---- time

def late(connection):
    time.sleep(1.5)
    connection.sendall(reply(200))


def trickle(seconds, answer=reply(200)):
    def act(connection):
        for byte in answer:
            connection.sendall(bytes([byte]))
            time.sleep(seconds / len(answer))
    return act


DELAYS = rows(RETRY, {
    "too late": late, "too slow": trickle(2), "too slow in the body": trickle(2, HEAD + b"Content-Length: 20\r\n\r\n" + b"x" * 20),
    "an endless size": endless(CHUNKED + b"1;", b"x"),
}, "deadline_exceeded")
DELAYS["slow"] = Fault(trickle(.3), OK)


# ---- what OTLP adds

def failed(number, body):
    return reply(number, body, {"Content-Type": PROTO}) if isinstance(body, bytes) else json_reply(number, body)


PARTIAL = {"partial, %d" % count: Fault(failed(200, partial(count)), OK, rejected=rejected) for count, rejected in (
    (0, 0), (1, 1), (2, 1), (2 ** 63 - 1, 1), (-1, 0), (-2 ** 63, 0))}
PARTIAL.update({"partial, %s" % json.dumps(count): Fault(failed(200, {"partialSuccess": {
    "rejectedProfiles": count, "errorMessage": CANARY}}), OK, rejected=rejected) for count, rejected in (
    ("0", 0), ("1", 1), (1, 1), ("99", 1), ("-1", 0), (-1, 0), (None, 0), ("one", 0), (1.5, 0), ("1" * 30, 0), ([], 0))})
PARTIAL["partial, in old names"] = Fault(failed(200, {"partial_success": {"rejected_profiles": 1, "more": [{}]}}), OK, rejected=1)
PARTIAL["partial, with a type that has a parameter"] = Fault(
    reply(200, partial(1), {"Content-Type": PROTO + "; charset=utf-8"}), OK, rejected=1)
PARTIAL["partial, and an error"] = Fault(failed(500, partial(1)), PERMANENT, "internal")
CODES = {
    "400 with a code": Fault(failed(400, {"code": 3, "message": CANARY}), PERMANENT, "invalid_argument"),
    "400 with a code that would be retried": Fault(failed(400, {"code": 14, "message": CANARY}), PERMANENT, "unavailable"),
    "503 with a code that would not be": Fault(failed(503, {"code": 3, "message": CANARY}), RETRY, "invalid_argument"),
    "400 in protobuf": Fault(failed(400, b"\x08\x05\x12\x02ab"), PERMANENT, "not_found"),
    "400 with a code of words": Fault(failed(400, {"code": CANARY}), PERMANENT, "invalid"),
    "400 with a code of no status": Fault(failed(400, {"code": 77}), PERMANENT, "unknown"),
    "400 with a negative code": Fault(failed(400, {"code": -1}), PERMANENT, "unknown"),
    "500 that speaks of size": Fault(failed(500, {"code": 13, "message": "too large: " + CANARY}), PERMANENT, "internal"),
}

COMMON = {**STATUSES, **HINTS, **ACCEPTED, **BROKEN}
OTLP = {**COMMON, **PARTIAL, **CODES}
TABLES = [  # the encoding does not matter where time passes
    (("otlp_http", *PATIENT), OTLP), (("otlp_http/json", *PATIENT), OTLP), (("pyroscope", *PATIENT), COMMON),
    (("otlp_http", *HURRIED), {**DELAYS, **WAITS}), (("pyroscope", *HURRIED), {**DELAYS, **WAITS}),
    (("otlp_http", *SOON_OVER), ABSURD), (("pyroscope", *SOON_OVER), ABSURD),
]


@contextlib.contextmanager
def begin(build, exporter, *lines):
    kind, line = EXPORTERS[exporter]
    with kind() as sink, Bed(build, sink, exporter, "endpoint: http://127.0.0.1:%d" % sink.port, line, *lines) as bed:
        yield bed


@pytest.fixture(scope="module")
def beds(build):
    with outcomes.beds(lambda key: begin(build, *key)) as beds:
        yield beds


@pytest.mark.parametrize("key, fault", outcomes.cases(TABLES))
def test_each_fault_has_its_outcome_and_the_next_request_is_delivered(beds, key, fault):
    beds(key).meets(fault)
