# SPDX-License-Identifier: Apache-2.0
"""The gRPC port under attack: whatever a connection without credentials does, others notice nothing.

An attack comes from 127.0.0.2, so that it is another peer, on one connection, for three seconds or 60 MB. Meanwhile a
neighbour sends a small request every 20 ms (harness.neighbour). Judged from outside: resident memory, CPU time, what became
of the neighbour's calls, what the attacker was answered, and which metric counts it. `-rA` prints the figures of each.
"""
import contextlib
import itertools
import os
import pathlib
import re
import resource
import time
from typing import Callable, NamedTuple

import pytest

from harness import attacks, h2, otlp, peers
from harness import build as make
from harness.attacks import ATTACKS
from harness.gateway import Gateway
from harness.h2 import CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE
from harness.h2 import Connection, frame
from harness.neighbour import SAMPLES, WARM_UP, Neighbour

MIB = 1 << 20
ATTACK_S, ATTACK_BYTES, WATCH_S, CLOSE_S = 3, 60_000_000, 1.2, 2
GROWTH_MAX, MEDIAN_MS_MAX, CPU_S_MIN, CPU_S_PER_BYTE = 32 * MIB, 100, 1, 1 / 60e6
# What the sanitizers cost is not ours to bound: with them nothing may break, and nobody may be shut out.
SANITIZED = os.environ.get("MODE") in ("asan", "tsan", "cov")
SECONDS = 5 if SANITIZED else 1
pytestmark = [] if SANITIZED else [pytest.mark.alone]
HERE, THERE = "127.0.0.1", "127.0.0.2"
CALM, NO_ERROR = h2.ENHANCE_YOUR_CALM, 0
CLOSED, REFUSED, OPEN = ("otelcol_http2_server_%s_connections" % state for state in ("closed", "refused", "open"))
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}", max_recv_msg_size_mib: 8, KEYS}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: LIMIT}
exporters:
  file: {path: sent.binpb, format: proto}
service:
  pipelines:
    profiles: {receivers: [otlp], processors: [memory_limiter], exporters: [file]}
"""


def gateway(build, keys="", limit_mib=256):
    limit = limit_mib * (8 if SANITIZED else 1)
    return Gateway(build / "portcullis", CONFIG.replace("KEYS", keys).replace("LIMIT", str(limit)),
                   env={"ASAN_OPTIONS": "quarantine_size_mb=8"})


def by_reason(g, metric):
    """{reason: number} of the receiver's connections; a reason that no connection has is left out."""
    return {dict(labels)["reason"]: int(value) for (name, labels), value in g.metrics().items()
            if name == metric and ("receiver", "otlp") in labels and value}


# ---- what it costs others

def cpu_seconds(g):
    """User and system time of all threads: the CPU clock of the process (clock_getcpuclockid)."""
    return time.clock_gettime((~g.process.pid << 3) | 2)


def forget_peak(g):
    """Sets VmHWM to VmRSS (proc(5))."""
    pathlib.Path("/proc/%d/clear_refs" % g.process.pid).write_text("5")


def watched(g, attack):
    """Runs attack(), which returns the bytes that it sent, beside a neighbour; what that cost."""
    with Neighbour(g.port["otlp"]) as neighbour:
        time.sleep(.2)
        forget_peak(g)
        rss, cpu, begun = g.rss()["VmRSS"], cpu_seconds(g), time.monotonic()
        neighbour.begin()
        sent = attack()
        time.sleep(max(0, WATCH_S - (time.monotonic() - begun)))
        calls = neighbour.end()
        return {"sent": sent, "growth": g.rss()["VmHWM"] - rss, "cpu": cpu_seconds(g) - cpu, **calls}


def shown(figures):
    return "RSS +%.0f MB, %.2f s CPU for %.1f MB, %d calls, median %.1f ms, slowest %.0f ms, %d failed%s" % (
        figures["growth"] / 1e6, figures["cpu"], figures["sent"] / 1e6, figures["calls"], figures["p50_ms"],
        figures["max_ms"], len(figures["errors"]), " (%s)" % figures["errors"][0][:60] if figures["errors"] else "")


TIMING = {"median", "cpu"}


def faults_of(figures):
    """{what: why} of the bounds that did not hold."""
    allowed = max(CPU_S_MIN, figures["sent"] * CPU_S_PER_BYTE)
    wrong = {
        "calls": figures["errors"] and "calls of others failed",
        "growth": figures["growth"] > GROWTH_MAX and not SANITIZED and "more than %d MiB" % (GROWTH_MAX / MIB),
        "median": figures["p50_ms"] > MEDIAN_MS_MAX and not SANITIZED and "median over %d ms" % MEDIAN_MS_MAX,
        "cpu": figures["cpu"] > allowed and not SANITIZED and "more than %.2f s of CPU" % allowed,
    }
    return {what: why for what, why in wrong.items() if why}


def answer_faults(attack, connection, counted):
    """What is wrong with how the attacker was answered, and with how that was counted."""
    wrong = {}
    if attack.closes and not connection.ended.is_set():
        wrong["open"] = "the attacker's connection is open"
    if connection.goaway is not None and connection.goaway != CALM and "protocol_error" not in counted:
        wrong["goaway"] = "GOAWAY %d" % connection.goaway
    if connection.ended.is_set() and not set(counted) & attack.reasons:
        wrong["uncounted"] = "none of %s counted it" % sorted(attack.reasons)
    if set(counted) - attack.reasons:
        wrong["counted"] = "closed for other reasons"
    return wrong


def arrived(g):
    g.stop()
    return sum(otlp.count(data) for data in otlp.framed((g.directory / "sent.binpb").read_bytes()))


def attacked(build, attack):
    """({what: why} of all that is wrong, the figures as text) of one run."""
    with gateway(build) as g:
        connection = Connection(g.port["otlp"], THERE, attack.greeting, attack.reads)
        with connection:
            def action():
                attacks.run(attack, connection, ATTACK_S, ATTACK_BYTES)
                connection.closed(CLOSE_S if attack.closes else .1)
                return connection.sent
            figures = watched(g, action)
            counted = by_reason(g, CLOSED)
            wrong = {**faults_of(figures), **answer_faults(attack, connection, counted)}
        acknowledged = (WARM_UP + figures["calls"] - len(figures["errors"])) * SAMPLES
        if arrived(g) < acknowledged:
            wrong["lost"] = "acknowledged samples were lost"
        how = ("GOAWAY %s, " % connection.goaway if connection.goaway is not None else "") + (
            "closed" if connection.ended.is_set() else "open")
        return wrong, "%s; %s; counted %s" % (shown(figures), how, counted)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_costs_others_nothing(build, name):
    wrong, text = attacked(build, ATTACKS[name])
    if wrong and set(wrong) <= TIMING:
        wrong, text = attacked(build, ATTACKS[name])  # the machine had other work, perhaps
    print("%s: %s" % (name, text))
    assert not wrong, text


@pytest.mark.parametrize("name", ["rapid reset", "CONTINUATION flood of small headers", "header string of 1 GB",
                                  "headers of 60 MB a call out of the dynamic table"])
def test_an_attacker_who_comes_back_at_once_costs_others_nothing(build, name):
    """As often as the connection is closed, for three seconds. How much CPU time that takes is for him to choose."""
    attack = ATTACKS[name]

    def action():
        sent, end = [], time.monotonic() + ATTACK_S
        while time.monotonic() < end:
            with contextlib.suppress(OSError), Connection(g.port["otlp"], THERE, attack.greeting) as c:
                attacks.run(attack, c, end - time.monotonic(), ATTACK_BYTES)
                sent.append(c.sent)
        return sum(sent)

    with gateway(build) as g:
        figures = watched(g, action)
        print("%s: %s; counted %s" % (name, shown(figures), by_reason(g, CLOSED)))
        assert not set(faults_of(figures)) - {"cpu"}, shown(figures)
        assert sum(by_reason(g, CLOSED).get(reason, 0) for reason in attack.reasons) > 1


# ---- many connections

@pytest.fixture
def descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(held, port, source, count, say=h2.PREFACE):
    """Connections that said this; nothing is awaited. How many bytes were sent."""
    for _ in range(count):
        s = held.enter_context(h2.connected(port, source))
        with contextlib.suppress(OSError):
            s.sendall(say)
    return count * len(say)


def many_idle(build, sources, each, limit_mib, say=h2.PREFACE):
    """(figures, the gateway's answers by metric) while these many connections idle."""
    with gateway(build, limit_mib=limit_mib) as g, contextlib.ExitStack() as held:
        figures = watched(g, lambda: sum(connect(held, g.port["otlp"], source, each, say) for source in sources))
        served(g)
        found = {metric: by_reason(g, metric) for metric in (CLOSED, REFUSED)}
        print("%s; %s; RSS %.0f MB" % (shown(figures), found, g.rss()["VmRSS"] / 1e6))
        return figures, found, g.rss()["VmRSS"]


@pytest.mark.threads
def test_a_peer_with_many_connections_is_refused_more(build, descriptors):
    figures, found, _ = many_idle(build, [THERE], 3000, 256)
    assert not faults_of(figures), shown(figures)
    assert set(found[REFUSED]) == {"max_connections_per_peer"} and not found[CLOSED]


def test_idle_connections_of_many_peers_leave_room_in_a_small_container(build, descriptors):
    """Nobody is over a bound of his own."""
    figures, found, rss = many_idle(build, ["127.0.1.%d" % i for i in range(1, 41)], 100, 64)
    assert not figures["errors"], shown(figures)
    assert SANITIZED or rss <= 64 * MIB
    assert set(found[CLOSED]) <= {"memory"} and set(found[REFUSED]) <= {"memory"}


CALLED = h2.PREFACE + frame(HEADERS, END_HEADERS, h2.headers(h2.HEALTH)) + frame(DATA, END_STREAM, bytes(5))


def test_idle_connections_that_have_called_leave_room_in_a_small_container(build, descriptors):
    """Two thousand, of forty peers: one that has called costs 16 KiB, so that they take nearly all that there is."""
    figures, found, rss = many_idle(build, ["127.0.1.%d" % i for i in range(1, 41)], 50, 64, CALLED)
    assert not figures["errors"], shown(figures)
    assert SANITIZED or rss <= 64 * MIB
    assert set(found[CLOSED]) <= {"memory"} and set(found[REFUSED]) <= {"memory"}


def ended(s):
    """Whether the server has closed this connection."""
    with contextlib.suppress(BlockingIOError, ConnectionResetError):
        s.setblocking(False)
        while s.recv(65536):
            pass
        return True
    return False


@pytest.mark.skipif(SANITIZED, reason="the limit is eight times as high there")
def test_of_idle_connections_the_oldest_give_way(build, descriptors):
    """Three thousand, eight of each peer."""
    with gateway(build, limit_mib=64) as g, contextlib.ExitStack() as held:
        sockets = []
        for i in range(3000):
            source = "127.0.%d.%d" % (1 + i % 375 // 200, 1 + i % 375 % 200)
            sockets.append(held.enter_context(h2.connected(g.port["otlp"], source)))
            sockets[-1].sendall(CALLED)
        served(g)
        assert by_reason(g, CLOSED)["memory"] > 100
        assert all(ended(s) for s in sockets[:50]) and not any(ended(s) for s in sockets[-50:])


# ---- requests that are not complete

# What each call sends after its headers, and how much all may take: nothing, or a few steps of a few of them.
UNFINISHED = {
    "no calls": (None, 0),
    "headers alone": (b"", 8 * MIB),
    "a message of 4 MiB announced": (attacks.BEGUN, 32 * MIB),
    "a message of 4 MiB begun": (attacks.BEGUN + b"x" * 100, 32 * MIB),
}


def hundred_calls(part):
    block = h2.headers(h2.EXPORT)
    return b"".join(frame(HEADERS, END_HEADERS, block, s) + frame(DATA, 0, part, s) * bool(part)
                    for s in range(1, 200, 2))


@pytest.mark.parametrize("what", UNFINISHED)
def test_calls_without_bodies_take_nothing_from_others(build, what):
    """Five hundred calls, a hundred on each connection; others send large requests, several at once."""
    large = make.request(samples=75000, functions=2000).SerializeToString()
    assert MIB < len(large) < 4 * MIB
    part, allowed = UNFINISHED[what]
    with gateway(build) as g, contextlib.ExitStack() as held:
        clients = [held.enter_context(peers.Client(g.port["otlp"])) for _ in range(4)]
        before = g.total("otelcol_memory_charged_bytes")
        for _ in range(5 if part is not None else 0):
            assert held.enter_context(Connection(g.port["otlp"], THERE)).send(hundred_calls(part))
        time.sleep(.5)
        taken = g.total("otelcol_memory_charged_bytes") - before
        futures = [c.call.future(large, timeout=30) for c in clients]
        errors = [f.code().name for f in futures if f.exception()]
        print("%s: %.1f MB charged, %d of %d large requests failed" % (what, taken / 1e6, len(errors), len(futures)))
        assert not errors and taken <= allowed, (taken, errors)


CROWD = 60
LARGE_FIELD = b"\x40" + b"\x01x" + b"\x7f" + h2.varint(4000 - 127) + b"v" * 4000  # RFC 7541, section 6.2.1: into the table
AGAIN = b"\xbe"  # section 6.1: the first of the dynamic table


def crowded(build, say):
    """(what the resident size grew by beyond what was charged, figures) while a peer says the same on many connections."""
    with gateway(build) as g, contextlib.ExitStack() as held:
        before = g.total("otelcol_memory_charged_bytes")

        def attack():
            connections = [held.enter_context(Connection(g.port["otlp"], THERE)) for _ in range(CROWD)]
            for c in connections:
                c.send(say)
            return CROWD * len(say)

        figures = watched(g, attack)
        charged = g.total("otelcol_memory_charged_bytes") - before
        print("%s; %.1f MB charged" % (shown(figures), charged / 1e6))
        return figures["growth"] - charged, figures


def test_bodies_on_many_connections_take_no_more_than_is_charged(build):
    """A hundred calls on each, with all that their windows take: 375 MB."""
    block, body = h2.headers(h2.EXPORT), b"\0" + (4 << 20).to_bytes(4, "big") + b"x" * 16000
    say = b"".join(frame(HEADERS, END_HEADERS, block, s) + frame(DATA, 0, body, s) + frame(DATA, 0, b"x" * 16000, s) * 3
                   for s in range(1, 200, 2))
    beyond, figures = crowded(build, say)
    assert not figures["errors"], shown(figures)
    assert SANITIZED or beyond <= GROWTH_MAX


def test_headers_of_open_health_checks_are_paid_for(build):
    """A hundred calls on each, with 15 KB of headers each of a few bytes that are sent."""
    block = h2.headers(h2.HEALTH)
    say = frame(HEADERS, END_HEADERS, block + LARGE_FIELD, 1) + b"".join(
        frame(HEADERS, END_HEADERS, block + AGAIN * 3, s) for s in range(3, 200, 2))
    beyond, figures = crowded(build, say)
    assert not figures["errors"], shown(figures)
    assert SANITIZED or beyond <= GROWTH_MAX


CLOSED_WINDOW = h2.MAGIC + frame(SETTINGS, 0, h2.settings((h2.INITIAL_WINDOW_SIZE, 0)), stream=0)
REFUSED_CALLS, PEERS = 100, 200
PLAIN = [(n, b"text/plain" if n == b"content-type" else v) for n, v in h2.EXPORT]


def test_refusals_that_nobody_reads_are_paid_for(build, descriptors):
    """A hundred on each of two hundred connections, whose windows are closed; what they hold is given back with them."""
    say = CLOSED_WINDOW + b"".join(
        frame(HEADERS, END_HEADERS | END_STREAM, h2.headers(PLAIN), s) for s in range(1, 2 * REFUSED_CALLS, 2))
    with gateway(build) as g:
        before = g.total("otelcol_memory_charged_bytes")
        with contextlib.ExitStack() as held:
            figures = watched(g, lambda: sum(connect(held, g.port["otlp"], "127.0.1.%d" % i, 1, say) for i in range(1, PEERS + 1)))
            charged = g.total("otelcol_memory_charged_bytes") - before
            print("%s; %.1f MB charged" % (shown(figures), charged / 1e6))
            assert not figures["errors"] and not by_reason(g, CLOSED)
            assert charged > PEERS * REFUSED_CALLS * 1500
            assert SANITIZED or figures["growth"] <= charged
        g.until(lambda: g.total(OPEN, receiver="otlp") == 0)
        g.until(lambda: g.total("otelcol_memory_charged_bytes") - before < MIB)


def test_refusals_that_nobody_reads_do_not_fill_a_small_container(build, descriptors):
    say = CLOSED_WINDOW + b"".join(
        frame(HEADERS, END_HEADERS | END_STREAM, h2.headers(PLAIN), s) for s in range(1, 2 * REFUSED_CALLS, 2))
    figures, found, rss = many_idle(build, ["127.0.1.%d" % i for i in range(1, 41)], 10, 64, say)
    assert not figures["errors"], shown(figures)
    assert SANITIZED or rss <= 64 * MIB and found[CLOSED]
    assert set(found[CLOSED]) <= {"memory"} and set(found[REFUSED]) <= {"memory"}


def test_many_connections_of_one_peer_delay_another_little(build):
    """Each sends small requests as fast as they are answered; what a turn of a thread runs itself is bounded."""
    body = make.request(samples=900, functions=300).SerializeToString()
    message = b"\0" + len(body).to_bytes(4, "big") + body
    assert len(body) < 64 << 10
    say = b"".join(frame(HEADERS, END_HEADERS, h2.headers(h2.EXPORT), s) + b"".join(
        frame(DATA, END_STREAM * (at + 16000 >= len(message)), message[at:at + 16000], s)
        for at in range(0, len(message), 16000)) for s in range(1, 20, 2))
    _, figures = crowded(build, say)
    assert not figures["errors"] and (SANITIZED or figures["p50_ms"] <= MEDIAN_MS_MAX), shown(figures)


# ---- each bound by its key

def call(pairs=(), stream=1, flags=END_HEADERS):
    return frame(HEADERS, flags, h2.headers([*h2.EXPORT, *pairs]), stream)


def send(data):
    return lambda c: c.send(data)


def silent(c):
    """Nothing more."""


def drip(piece, every=.1):
    """The piece until the connection is closed."""
    def run(c):
        end = time.monotonic() + 20 * SECONDS
        while c.send(piece) and time.monotonic() < end:
            time.sleep(every)
    return run


def in_turn(*steps):
    def run(c):
        for step in steps:
            step(c)
    return run


def fifty_replies(c):
    for piece in itertools.islice(attacks.health_checks(c), 2):
        c.send(piece)


class Limit(NamedTuple):
    """With the key as low as this, what is `provoked` closes the connection, and `reason` counts it. With the defaults it
    does not (`contrast`: where that can be seen within seconds)."""

    key: str
    low: str
    provoke: Callable
    reason: str
    goaway: int = CALM
    contrast: bool = True
    greeting: bytes = h2.PREFACE
    reads: bool = True


CONTINUED = frame(HEADERS, 0, h2.headers(h2.EXPORT)) + frame(CONTINUATION, 0, h2.headers([(b"k", b"v")]))
LIMITS = {
    # Four times the limit: less is answered.
    "max_header_bytes": Limit("max_header_bytes", "1024", send(call([(b"k", b"v" * 4096)])), "headers"),
    "max_headers": Limit("max_headers", "10", send(call([(b"k", b"v")] * 50)), "headers"),
    "max_continuations": Limit(
        "max_continuations", "1", send(CONTINUED + frame(CONTINUATION, END_HEADERS, h2.headers([(b"k", b"v")]))),
        "continuations"),
    "max_resets_per_second": Limit("max_resets_per_second", "2", send(b"".join(
        call(stream=s) + frame(RST_STREAM, 0, attacks.CANCELLED, s) for s in range(1, 60, 2))), "resets"),
    "max_settings_per_second": Limit("max_settings_per_second", "1", send(frame(SETTINGS, 0, b"", stream=0) * 15),
                                     "settings"),
    "max_control_frames_per_second": Limit("max_control_frames_per_second", "5", send(
        frame(WINDOW_UPDATE, 0, b"\0\0\0\1", stream=0) * 150), "control_frames"),
    "max_outbound_bytes": Limit("max_outbound_bytes", "1024", fifty_replies, "outbound",
                                greeting=attacks.CLOSED_WINDOW),
    "handshake_timeout, silent": Limit("handshake_timeout", "1s", silent, "handshake_timeout", None, greeting=b""),
    "handshake_timeout, half a preface": Limit(
        "handshake_timeout", "1s", send(h2.MAGIC[:10]), "handshake_timeout", None, greeting=b""),
    "handshake_timeout, no SETTINGS": Limit(
        "handshake_timeout", "1s", send(h2.MAGIC), "handshake_timeout", None, greeting=b""),
    "header_timeout, half a frame": Limit("header_timeout", "1s", send(call()[:40]), "header_timeout"),
    "header_timeout, no END_HEADERS": Limit("header_timeout", "1s", send(call(flags=0)), "header_timeout"),
    "header_timeout, dripped": Limit("header_timeout", "1s", lambda c: [
        (c.send(bytes([octet])), time.sleep(.1)) for octet in call()[:60]], "header_timeout", contrast=False),
    "min_body_rate": Limit("min_body_rate", "100000", in_turn(
        send(call() + frame(DATA, 0, attacks.BEGUN)), drip(frame(DATA, 0, b"x" * 100))), "body_rate", contrast=False),
    "max_errors_per_second": Limit("max_errors_per_second", "1", send(b"".join(
        frame(HEADERS, END_HEADERS | END_STREAM, h2.headers([(n, b"/no.such/Method" if n == b":path" else v) for n, v in h2.EXPORT]), s)
        for s in range(1, 60, 2))), "errors"),
    "write_timeout": Limit("write_timeout", "1s", fifty_replies, "outbound", greeting=attacks.CLOSED_WINDOW),
    "idle_timeout": Limit("idle_timeout", "1s", silent, "idle", NO_ERROR),
}


@pytest.mark.threads
@pytest.mark.parametrize("name", LIMITS)
def test_a_bound_closes_the_connection_and_is_counted(build, name):
    limit = LIMITS[name]
    with gateway(build, "limits: {%s: %s}" % (limit.key, limit.low)) as g:
        with Connection(g.port["otlp"], THERE, limit.greeting, limit.reads) as c:
            limit.provoke(c)
            assert c.closed(20 * SECONDS), "it is open"
            assert limit.goaway is None or not limit.reads or c.goaway == limit.goaway
        assert by_reason(g, CLOSED) == {limit.reason: 1}
        served(g)
        if limit.reason != "idle":
            g.until(lambda: re.search(r"exceeded a limit.*\"setting\": \"limits\.[^\"]*%s" % limit.key, g.log()), 15)


@pytest.mark.parametrize("name", [name for name, limit in LIMITS.items() if limit.contrast])
def test_by_default_the_same_is_no_offence(build, name):
    limit = LIMITS[name]
    with gateway(build) as g, Connection(g.port["otlp"], THERE, limit.greeting, limit.reads) as c:
        limit.provoke(c)
        assert not c.closed(2)
        assert not by_reason(g, CLOSED)
        served(g)


def served(g, source=HERE):
    """A call over a new connection, by a real client or from this address by hand."""
    if source == HERE:
        with peers.Client(g.port["otlp"]) as client:
            client.send(make.request(samples=3))
        return
    message = make.request(samples=3).SerializeToString()
    with Connection(g.port["otlp"], source) as c:
        assert c.send(call() + frame(DATA, END_STREAM, b"\0" + len(message).to_bytes(4, "big") + message))
        assert c.until(lambda: 1 in c.finished), "it is not served"


def test_pings_that_enforcement_does_not_permit_are_counted(build):
    """gRPC's keepalive: faster than min_time, and a third time, is too_many_pings."""
    with gateway(build, "keepalive: {enforcement_policy: {min_time: 10m}}") as g:
        with Connection(g.port["otlp"], THERE) as c:
            for i in range(6):
                c.send(frame(PING, 0, i.to_bytes(8, "big"), stream=0))
                time.sleep(.1)
            assert c.closed(10 * SECONDS) and c.goaway == CALM
        assert by_reason(g, CLOSED) == {"pings": 1}
        served(g)
        g.until(lambda: '"setting": "keepalive.enforcement_policy.min_time", "value": "600 s", "connections": 1' in g.log(), 15)


def calls_begun(count):
    """The headers of so many calls whose messages do not come."""
    return b"".join(call(stream=2 * i + 1) for i in range(count))


@pytest.mark.threads
def test_a_stream_more_than_the_settings_permit_closes_the_connection_and_is_counted(build):
    """RFC 9113, section 5.1.2: the client has acknowledged our MAX_CONCURRENT_STREAMS."""
    with gateway(build, "max_concurrent_streams: 4") as g:
        with Connection(g.port["otlp"], THERE) as c:
            assert c.send(calls_begun(4)) and c.alive()
            c.send(calls_begun(5)[len(calls_begun(4)):])
            assert c.closed(10 * SECONDS) and c.goaway == CALM
        assert by_reason(g, CLOSED) == {"streams": 1}
        served(g)
        g.until(lambda: '"setting": "max_concurrent_streams", "value": "4", "connections": 1' in g.log(), 15)


def test_streams_before_the_settings_are_known_are_refused_and_floods_of_them_counted(build):
    """A client may not have read our SETTINGS yet: the surplus is refused, for it to be sent again."""
    with gateway(build, "max_concurrent_streams: 4, limits: {max_control_frames_per_second: 5}") as g:
        with Connection(g.port["otlp"], THERE, h2.PREFACE + calls_begun(6)) as c:
            assert c.until(lambda: len(c.reset) == 2) and c.reset == {9: h2.REFUSED_STREAM, 11: h2.REFUSED_STREAM}
            assert c.alive()
        with Connection(g.port["otlp"], THERE, h2.PREFACE + calls_begun(200)) as c:
            assert c.closed(10 * SECONDS) and c.goaway == CALM
        assert by_reason(g, CLOSED) == {"streams": 1}
        served(g)
        g.until(lambda: '"setting": "max_concurrent_streams", "value": "4", "connections": 1' in g.log(), 15)


def test_a_malformed_request_is_no_stream_too_many(build):
    """RFC 9113, section 8.1.1: it ends alone, also where no more streams are free."""
    with gateway(build, "max_concurrent_streams: 4") as g:
        with Connection(g.port["otlp"], THERE) as c:
            assert c.send(calls_begun(3))
            c.send(frame(HEADERS, END_HEADERS, h2.headers(h2.changed(b":path", b"")), 7))
            assert c.until(lambda: 7 in c.reset) and c.alive()
        assert not by_reason(g, CLOSED)
        served(g)


# ---- connections, in all and per peer

def opened(held, g, sources):
    """Connections from there; which of them are served."""
    every = [held.enter_context(Connection(g.port["otlp"], source)) for source in sources]
    return [c.greeted.is_set() and c.alive() for c in every], every


@pytest.mark.threads
def test_max_connections(build):
    with gateway(build, "limits: {max_connections: 5}") as g, contextlib.ExitStack() as held:
        alive, every = opened(held, g, ["127.0.0.%d" % i for i in range(2, 10)])
        assert alive == [True] * 5 + [False] * 3
        assert by_reason(g, REFUSED) == {"max_connections": 3}
        assert g.total(OPEN, receiver="otlp") == 5
        every[0].__exit__()
        g.until(lambda: g.total(OPEN, receiver="otlp") == 4)
        served(g)


@pytest.mark.threads
def test_max_connections_per_peer(build):
    with gateway(build, "limits: {max_connections_per_peer: 3}") as g, contextlib.ExitStack() as held:
        alive, every = opened(held, g, [THERE] * 6)
        assert alive == [True] * 3 + [False] * 3
        assert by_reason(g, REFUSED) == {"max_connections_per_peer": 3}
        assert opened(held, g, ["127.0.0.3"])[0] == [True], "another peer"
        every[0].__exit__()
        g.until(lambda: g.total(OPEN, receiver="otlp") == 3)
        served(g, THERE)


def test_connections_that_come_and_go_are_counted_down(build):
    with gateway(build, "limits: {max_connections_per_peer: 3}") as g:
        for _ in range(20):
            served(g, THERE)
        g.until(lambda: g.total(OPEN, receiver="otlp") == 0)
        assert not by_reason(g, REFUSED) and not by_reason(g, CLOSED)
