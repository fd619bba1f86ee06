# SPDX-License-Identifier: Apache-2.0
"""The HTTP port under attack, by HTTP/1.1 and HTTP/2: whatever clients without credentials do, others notice nothing.

The attackers come from 127.0.0.2 and up. Meanwhile a neighbour posts a small request to the same port every 20 ms
(harness.neighbour). Judged from outside: what became of the neighbour's requests, resident memory, which metric counts what
the attackers did, and that every acknowledged sample arrived. `-rA` prints the figures of each.
"""
import contextlib
import os
import pathlib
import resource
import select
import socket
import ssl
import time

import pytest

from harness import build as make
from harness import certificates, h2, otlp
from harness.gateway import Gateway
from harness.neighbour import SAMPLES, WARM_UP, Neighbour

MIB = 1 << 20
GROWTH_MAX, MEDIAN_MS_MAX = 64 * MIB, 100
SANITIZED = os.environ.get("MODE") in ("asan", "tsan", "cov")
pytestmark = [] if SANITIZED else [pytest.mark.alone]
ATTACK_S = 2
PATH = "/v1development/profiles"
CONFIG = """
receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:{port:http}", read_header_timeout: 1s, tls_handshake_timeout: 1s,
                            read_timeout: 1s, write_timeout: 1s}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: LIMIT}
exporters:
  file: {path: sent.binpb, format: proto}
service:
  pipelines:
    profiles: {receivers: [otlp], processors: [memory_limiter], exporters: [file]}
"""


@pytest.fixture
def descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def gateway(build):
    return Gateway(build / "portcullis", CONFIG.replace("LIMIT", str(256 * (8 if SANITIZED else 1))),
                   env={"ASAN_OPTIONS": "quarantine_size_mb=8"})


def head(*more, method="POST", path=PATH, type="application/x-protobuf"):
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: x", "Content-Type: " + type, *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


HTTP2 = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", PATH.encode()), (b":authority", b"x"),
         (b"content-type", b"application/x-protobuf")]


def stream(number, end=False, more=()):
    return h2.frame(h2.HEADERS, h2.END_HEADERS | (h2.END_STREAM if end else 0), h2.headers(HTTP2 + list(more)), stream=number)


class Crowd:
    """Connections from 127.0.0.2 and up, 500 from each address."""

    def __init__(self, port, count, say=b"", receive_buffer=0):
        self.sockets = []
        for i in range(count):
            s = h2.connected(port, "127.0.0.%d" % (2 + i // 500), receive_buffer)
            self.sockets.append(s)
            s.settimeout(5)
            self.say(s, say)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for s in self.sockets:
            s.close()

    @staticmethod
    def say(s, data):
        with contextlib.suppress(OSError):
            s.sendall(data)

    def drip(self, data, seconds=ATTACK_S):
        """A byte on each connection, again and again."""
        end, at = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for s in self.sockets:
                self.say(s, data[at % len(data):at % len(data) + 1])
            at += 1
            time.sleep(.05)

    def replies(self):
        """What each connection was answered, until the server closed it or was silent for a second."""
        found = []
        for s in self.sockets:
            s.settimeout(1)
            text = b""
            with contextlib.suppress(OSError):
                while part := s.recv(65536):
                    text += part
            found.append(text)
        return found


# ---- the attacks: each returns what must be true of the metrics, as {(metric, reason): least}

CLOSED, REFUSED = "otelcol_http_server_closed_connections", "otelcol_http_server_refused_requests"
CLOSED2 = "otelcol_http2_server_closed_connections"


def silence(port):
    with Crowd(port, 2000):
        time.sleep(ATTACK_S)
    return {(CLOSED, "header"): 1000}


def silence_after_the_preface(port):
    with Crowd(port, 2000, h2.PREFACE):
        time.sleep(ATTACK_S)
    return {}


def slow_headers(port):
    with Crowd(port, 300, b"POST ") as crowd:
        crowd.drip(b"a")
    return {(CLOSED, "header"): 300}


def slow_headers_over_http2(port):
    block = stream(1)
    with Crowd(port, 300, h2.PREFACE + block[:12]) as crowd:
        crowd.drip(block[12:60])
    return {(CLOSED2, "header_timeout"): 300}


def slow_preface(port):
    with Crowd(port, 300) as crowd:
        crowd.drip(h2.PREFACE)
    return {}


def slow_bodies(port):
    with Crowd(port, 300, head("Content-Length: 1000000")) as crowd:
        crowd.drip(b"x")
    return {(CLOSED, "body"): 300}


def slow_chunks(port):
    with Crowd(port, 300, head("Transfer-Encoding: chunked")) as crowd:
        crowd.drip(b"1\r\nx\r\n")
    return {(CLOSED, "body"): 300}


def slow_bodies_over_http2(port):
    with Crowd(port, 100, h2.PREFACE + b"".join(stream(1 + 2 * i) for i in range(20))):
        time.sleep(ATTACK_S)
    return {(REFUSED, "late_body"): 100 * 20}


def half_closed(port):
    with Crowd(port, 300, head("Content-Length: 1000") + b"half") as crowd:
        for s in crowd.sockets:
            s.shutdown(socket.SHUT_WR)
        crowd.replies()
    return {}


def half_closed_after_the_request(port):
    with Crowd(port, 300, head("Content-Length: 3") + b"bad") as crowd:
        for s in crowd.sockets:
            s.shutdown(socket.SHUT_WR)
        assert all(text.startswith(b"HTTP/1.1 400 ") for text in crowd.replies())
    return {("otelcol_receiver_refused_requests", "invalid"): 300}


def never_reads(port):
    requests = head("Content-Length: 3") + b"bad"
    with Crowd(port, 20, receive_buffer=h2.UNREAD_BUFFER) as crowd:
        end = time.monotonic() + ATTACK_S
        for s in crowd.sockets:
            s.settimeout(.05)
        while time.monotonic() < end:
            for s in crowd.sockets:
                crowd.say(s, requests * 200)
    return {}


def never_reads_over_http2(port):
    with Crowd(port, 20, h2.PREFACE, receive_buffer=h2.UNREAD_BUFFER) as crowd:
        end, number = time.monotonic() + ATTACK_S, 1
        for s in crowd.sockets:
            s.settimeout(.05)
        while time.monotonic() < end:
            requests = b"".join(stream(number + 2 * i, end=True) for i in range(90))
            number += 180
            for s in crowd.sockets:
                crowd.say(s, requests)
    return {}


def pipelined(port):
    with Crowd(port, 20, (head("Content-Length: 3") + b"bad") * 100) as crowd:
        for text in crowd.replies():
            assert text.count(b"HTTP/1.1 400 ") == 100
    return {}


def disputable_ends(port):
    smuggled = head(method="GET", path="/smuggled")
    wrong = [
        head("Content-Length: 3", "Content-Length: 3") + b"bad", head("Content-Length: 3", "Content-Length: 30") + b"bad",
        head("Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n", head("Content-Length: +3") + b"bad",
        head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + b"0\r\n\r\n", head("Host: y", "Content-Length: 0"),
        head("Transfer-Encoding: identity"), head("Content-Length : 3") + b"bad",
    ]
    for data in wrong:
        with Crowd(port, 20, data + smuggled) as crowd:
            for text in crowd.replies():
                assert text.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ")) and b"404" not in text, text
    return {(REFUSED, "malformed"): 20}


def wrong_types(port):
    for data in (head("Content-Length: 3", type="text/html") + b"bad", head("Content-Length: 3", "Content-Encoding: br") + b"bad"):
        with Crowd(port, 20, data) as crowd:
            assert all(text.startswith((b"HTTP/1.1 415 ", b"HTTP/1.1 400 ")) for text in crowd.replies())
    return {}


def large_headers(port):
    with Crowd(port, 100, head("A: " + "b" * 30000)) as crowd:
        assert all(text.startswith(b"HTTP/1.1 431 ") for text in crowd.replies())
    return {(REFUSED, "header"): 100}


def small_requests(port):
    """Of the kind that an I/O thread runs itself, on each connection as fast as they are answered. Without profiles: no
    destination is slower than they are."""
    request = make.request(samples=10, functions=700)
    del request.resource_profiles[:]
    body = request.SerializeToString()
    assert 32 << 10 < len(body) < 64 << 10
    say, end, answered = head("Content-Length: %d" % len(body)) + body, time.monotonic() + ATTACK_S, 0
    with Crowd(port, 300, say) as crowd:
        poll, by_number = select.epoll(), {s.fileno(): s for s in crowd.sockets}
        for number in by_number:
            poll.register(number, select.EPOLLIN)
        while time.monotonic() < end or 0 < answered < len(crowd.sockets):
            for number, _ in poll.poll(.1):
                answered += by_number[number].recv(65536).startswith(b"HTTP/1.1 ")
                crowd.say(by_number[number], say)
        poll.close()
    assert answered >= len(crowd.sockets)
    return {}


ATTACKS = [silence, silence_after_the_preface, slow_headers, slow_headers_over_http2, slow_preface, slow_bodies, slow_chunks,
           slow_bodies_over_http2, half_closed, half_closed_after_the_request, never_reads, never_reads_over_http2, pipelined,
           disputable_ends, wrong_types, large_headers, small_requests]


def counted(g, metric, reason):
    return g.total(metric, reason=reason, receiver="otlp")


def attacked(build, attack):
    """({what is wrong}, the figures as text) of one run."""
    wrong = {}
    with gateway(build) as g:
        port = g.port["http"]
        with Neighbour(port, "http") as neighbour:
            rss = g.rss()["VmRSS"]
            neighbour.begin()
            expected = attack(port)
            time.sleep(.2)
            calls = neighbour.end()
            growth = g.rss()["VmHWM"] - rss
            g.until(lambda: all(counted(g, *what) >= least for what, least in expected.items()), 20)
        acknowledged = (WARM_UP + calls["calls"] - len(calls["errors"])) * SAMPLES
        g.stop()
        arrived = sum(otlp.count(data) for data in otlp.framed((g.directory / "sent.binpb").read_bytes()))
    if calls["errors"]:
        wrong["calls"] = calls["errors"][:3]
    if growth > GROWTH_MAX and not SANITIZED:
        wrong["growth"] = growth
    if calls["p50_ms"] > MEDIAN_MS_MAX and not SANITIZED:
        wrong["median"] = calls["p50_ms"]
    if arrived < acknowledged:
        wrong["lost"] = acknowledged - arrived
    return wrong, "RSS +%.0f MB, %d calls, median %.1f ms, slowest %.0f ms" % (
        growth / 1e6, calls["calls"], calls["p50_ms"], calls["max_ms"])


def half_handshake(port):
    s, out = h2.connected(port, "127.0.0.2"), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost").do_handshake()
    s.sendall(out.read())
    return s


def long_chunk_line(port):
    s = h2.connected(port, "127.0.0.2")
    s.sendall(head("Transfer-Encoding: chunked") + b"1;" + b"a" * 60000)
    return s


def cpu_seconds(pid):
    fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("wait", [half_handshake, long_chunk_line], ids=lambda f: f.__name__)
def test_a_connection_that_libmicrohttpd_cannot_continue_costs_little(build, tmp_path, wait):
    """The library wants to run again at once for as long as it waits."""
    certificates.make_ca(tmp_path, "ca")
    certificates.make_leaf(tmp_path, "ca", "server", "/CN=localhost")
    tls = ", tls: {cert_file: %s/server.pem, key_file: %s/server.key}}}" % (tmp_path, tmp_path) if wait == half_handshake else "}}"
    text = CONFIG.replace("LIMIT", "2048").replace("_timeout: 1s", "_timeout: 60s").replace("}}", tls, 1)
    with Gateway(build / "portcullis", text) as g:
        sockets = [wait(g.port["http"]) for _ in range(4)]
        time.sleep(.5)
        before, since = cpu_seconds(g.process.pid), time.monotonic()
        time.sleep(ATTACK_S)
        share = (cpu_seconds(g.process.pid) - before) / (time.monotonic() - since)
        for s in sockets:
            s.close()
    print("%.2f of a core" % share)
    assert share < (.75 if SANITIZED else .25)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda f: f.__name__)
def test_an_attack_costs_others_nothing(build, descriptors, attack):
    wrong, text = attacked(build, attack)
    if set(wrong) == {"median"}:
        wrong, text = attacked(build, attack)  # the machine had other work, perhaps
    print(text)
    assert not wrong, text
