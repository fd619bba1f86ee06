# SPDX-License-Identifier: Apache-2.0
"""What clients of the gRPC server do on purpose or by bad luck, by hand. MODE picks the build (asan and tsan too)."""
import select
import socket
import struct
import time

import pytest

from harness.served import Served, build, frame, literal, raw_call, raw_connection, read_frames, read_until_closed
from test_rpc_server import ECHO, HOLD, SECOND, WATCH, wait_for

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK = 1, 1
INITIAL_WINDOW_SIZE = 4


@pytest.fixture(scope="module")
def program():
    return build("net/h2/rpc_serve")


def message(body=b"x"):
    return b"\0" + struct.pack(">I", len(body)) + body


def call(connection, path, stream=1, body=b"x", more=()):
    raw_call(connection, path, stream, more)
    connection.sendall(frame(DATA, END_STREAM, stream, message(body)))


def window(size):
    return frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, size))


def next_frame(connection, kind, stream):
    """The payload of the next frame of the kind on the stream."""
    def read(size):
        got = b""
        while len(got) < size:
            part = connection.recv(size - len(got))
            assert part, "the connection was closed"
            got += part
        return got

    while True:
        head = read(9)
        payload = read(struct.unpack(">I", b"\0" + head[:3])[0])
        if head[3] == kind and head[5:] == struct.pack(">I", stream):
            return payload


def cpu_seconds(process):
    fields = open("/proc/%d/stat" % process.pid).read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_watchers_may_all_go_while_they_are_told(program):
    """The second watcher's message is over the connection's bound, which ends the connection and with it the others."""
    with Served(program, limits="{max_outbound_bytes: 10}") as s:
        c = raw_connection(s.port)
        c.sendall(window(7))
        for stream in (1, 3, 5, 7):
            call(c, WATCH, stream, b"")
        for stream in (1, 3, 5, 7):
            assert next_frame(c, DATA, stream) == message(b"\x08\x01")
        assert s.ask("serving 0") == "ok"
        assert b"outbound" in read_until_closed(c)
        assert b"len=1" in s.call(ECHO, b"x")


def test_a_watcher_whose_deadline_has_passed_is_told_no_more(program):
    """Its end waits for a client that does not read."""
    with Served(program, streams=1000) as s:
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.connect(("127.0.0.1", s.port))
        c.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b"") +
                  frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))
        call(c, WATCH, 1, b"", more=[(b"grpc-timeout", b"3S")])
        c.settimeout(0.5)
        calls, end = 0, time.monotonic() + 2.5
        while time.monotonic() < end:  # until the server does not read any more
            calls += 1
            try:
                call(c, ECHO, 2 * calls + 1, more=[(b"x-long", b"v" * 14000)])
            except TimeoutError:
                break
            for _ in range(20):
                if s.count()["replied"] >= calls:
                    break
                time.sleep(0.01)
            else:
                break
        time.sleep(3)
        assert s.ask("serving 0") == "ok" and s.ask("serving 1") == "ok"
        assert b"len=1" in s.call(ECHO, b"x")
        c.close()


@pytest.mark.parametrize("timeout", [b"5124095H", b"5124096H", b"97357816H", b"99999999H", b"99999999M"])
def test_a_very_long_timeout_is_a_long_time(program, timeout):
    with Served(program) as s:
        c = raw_connection(s.port)
        call(c, HOLD, more=[(b"grpc-timeout", timeout)])
        wait_for(lambda: s.count()["messages"] == 1)
        time.sleep(0.3)
        s.ask("release")
        assert b"len=1" in next_frame(c, DATA, 1)
        c.close()


def test_headers_on_a_stream_that_is_gone_end_nothing(program):
    with Served(program, limits="{header_timeout: 500ms}") as s:
        c = raw_connection(s.port)
        call(c, ECHO)
        next_frame(c, DATA, 1)
        c.sendall(frame(HEADERS, 4 | END_STREAM, 1, literal(b"x-end", b"1")))
        time.sleep(1)
        call(c, ECHO, 3)
        next_frame(c, DATA, 3)
        c.close()


def test_headers_on_streams_that_are_gone_are_counted(program):
    with Served(program) as s:
        c = raw_connection(s.port)
        call(c, ECHO)
        next_frame(c, DATA, 1)
        try:
            for _ in range(100):
                c.sendall(frame(HEADERS, 4 | END_STREAM, 1, literal(b"x-end", b"1")) * 100)
        except OSError:
            pass
        assert b"control_frames" in read_until_closed(c)


def test_headers_that_drip_are_ended(program):
    with Served(program, limits="{header_timeout: 500ms}") as s:
        c = raw_connection(s.port)
        c.sendall(frame(HEADERS, 4, 1, literal(b":method", b"POST"))[:-3])
        assert b"header_timeout" in read_until_closed(c)


def test_a_silent_connection_costs_no_cpu(program):
    """Also where keepalive would ask sooner than the handshake must end."""
    with Served(program, keepalive_time=SECOND // 10) as s:
        c = socket.create_connection(("127.0.0.1", s.port))
        time.sleep(0.3)
        before = cpu_seconds(s.process)
        time.sleep(1.5)
        assert cpu_seconds(s.process) - before < 0.5
        c.close()


def test_without_a_write_timeout_a_reply_waits_for_its_window(program):
    with Served(program, limits="{write_timeout: 0s}") as s:
        c = raw_connection(s.port)
        c.sendall(window(0))
        call(c, ECHO)
        next_frame(c, HEADERS, 1)
        time.sleep(0.5)
        c.sendall(frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 1000)))
        assert b"len=1" in next_frame(c, DATA, 1)
        c.close()


def test_a_reply_that_is_not_read_in_time_ends_the_connection(program):
    with Served(program, limits="{write_timeout: 500ms}") as s:
        c = raw_connection(s.port)
        c.sendall(window(0))
        call(c, ECHO)
        assert b"outbound" in read_until_closed(c)


def test_a_large_reply_fits_into_small_windows(program):
    with Served(program) as s:
        c = raw_connection(s.port)
        c.sendall(window(1000))
        call(c, ECHO, more=[(b"x-long", b"v" * 14000)])
        got = b""
        while len(got) < 14000:
            part = next_frame(c, DATA, 1)
            assert len(part) <= 1000
            got += part
            c.sendall(frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", len(part))))
        c.close()


@pytest.mark.alone
def test_a_stop_keeps_its_deadline_where_connections_have_no_grace(program):
    """Connections that reached their age wait for their calls without an end, unless the server stops."""
    with Served(program, age=SECOND // 5) as s:
        c = raw_connection(s.port)
        raw_call(c, HOLD)
        goodbyes = 0
        for kind, flags, _, payload in read_frames(c):
            if kind == PING and not flags & ACK:
                c.sendall(frame(PING, ACK, 0, payload))
            goodbyes += kind == GOAWAY
            if goodbyes == 2:
                break
        began = time.monotonic()
        s.tell("stop 500")
        s.process.wait(20)
        assert time.monotonic() - began < 3
        c.close()


@pytest.mark.alone
def test_a_stop_does_not_wait_for_clients_that_answer_no_ping(program):
    with Served(program) as s:
        c = raw_connection(s.port)
        call(c, ECHO)
        next_frame(c, DATA, 1)
        began = time.monotonic()
        s.tell("stop 300")
        s.process.wait(20)
        assert time.monotonic() - began < 3
        c.close()


def test_a_client_that_breaks_the_rules_after_its_age_is_closed(program):
    with Served(program, age=SECOND // 5) as s:
        c = raw_connection(s.port)
        raw_call(c, HOLD)
        next_frame(c, GOAWAY, 0)
        c.sendall(frame(DATA, 0, 0, b"x"))
        c.settimeout(5)
        read_until_closed(c)


def test_refused_connections_leave_nothing_open(program):
    with Served(program, limits="{max_connections: 2}") as s:
        keep = [raw_connection(s.port) for _ in range(2)]
        for c in keep:
            select.select([c], [], [], 10)
        for _ in range(200):
            with socket.create_connection(("127.0.0.1", s.port)) as c:
                assert read_until_closed(c) == b""
        for c in keep:
            c.close()
        wait_for(lambda: served_again(s))


def served_again(s):
    try:
        with raw_connection(s.port) as c:
            return len(c.recv(100)) > 0
    except (ConnectionResetError, BrokenPipeError):
        return False


@pytest.mark.parametrize("method,more", [
    (b"CONNECT", []), (b"GET", [(b":scheme", b"http"), (b":path", b"/")]),
    (b"POST", [(b":scheme", b"http"), (b":path", b"/"), (b"content-type", b"text/plain")])])
def test_what_is_not_grpc_gets_an_answer_of_http(program, method, more):
    with Served(program) as s:
        c = raw_connection(s.port)
        fields = [(b":method", method), (b":authority", b"x"), *more]
        c.sendall(frame(HEADERS, 4 | END_STREAM, 1, b"".join(literal(*f) for f in fields)))
        assert next_frame(c, DATA, 1) == b"no such path or media type\n"
        c.close()
