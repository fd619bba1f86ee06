# SPDX-License-Identifier: Apache-2.0
"""The HTTP server over real sockets. MODE picks the build (asan and tsan too)."""
import contextlib
import http.client
import json
import os
import socket
import ssl
import struct
import threading
import time

import pytest

from harness.certificates import OWNER_NAMES, OWNER_SHOWN, OWNER_SUBJECT, make_ca, make_leaf, owner_shown
from harness.web import Program, ask, build, chunked, connect, ended, read_answer, request

MIB = 1 << 20


@pytest.fixture(scope="module")
def program():
    return build("net/http/http_serve")


def serve(program, endpoint="127.0.0.1:0", descriptors=None, threads=2, **keys):
    return Program(program, json.dumps(dict(keys, endpoint=endpoint)), str(threads), descriptors=descriptors)


def answers(port):
    """The next one is served."""
    answer, _ = ask(port, request(body=b"still here"))
    return answer.status == 200 and answer.body == b"still here"


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it never happened")


# ---- what is answered


@pytest.mark.threads
def test_a_body_comes_back_on_a_connection_that_stays(program):
    with serve(program) as s, connect(s.port) as sock:
        for body in (b"one", b"x" * MIB, b"", b"three"):
            sock.sendall(request(body=body))
            assert read_answer(sock).body == body


def test_chunked_bodies_are_taken(program):
    body = bytes(range(256)) * 3000
    with serve(program) as s, connect(s.port) as sock:
        for size in (1000, 65536, 10 ** 6):
            sock.sendall(request(headers=["Transfer-Encoding: chunked"], length=False) + chunked(body, size))
            assert read_answer(sock).body == body


def test_pipelined_requests_are_answered_in_order(program):
    with serve(program) as s, connect(s.port) as sock:
        sock.sendall(b"".join(request(body=b"%d" % i) for i in range(20)))
        assert [read_one(sock) for i in range(20)] == [b"%d" % i for i in range(20)]


def read_one(sock):
    """One reply and not a byte more (a makefile would read ahead)."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += sock.recv(1)
    length = int(head.lower().partition(b"content-length: ")[2].split()[0])
    body = b""
    while len(body) < length:
        body += sock.recv(length - len(body))
    return body


def test_head_has_the_headers_of_get_without_its_body(program):
    with serve(program) as s, connect(s.port) as sock:
        sock.sendall(request("HEAD", "/who"))
        assert int(read_answer(sock, head_only=True).headers["content-length"]) > 0
        sock.sendall(request("GET", "/who"))
        assert b"method GET" in read_answer(sock).body


def test_headers_and_query_arrive_decoded_and_in_order(program):
    with serve(program) as s:
        answer, _ = ask(s.port, request("GET", "/who?service.name=a%2Fb&x=1+2&empty", headers=["X-Scope-OrgID: t1"]))
        assert b"peer 127.0.0.1 " in answer.body and b"auth." not in answer.body
        assert b"service.name=a/b\nx=1 2\nempty=\nhost=x\nx-scope-orgid=t1\n" in answer.body


def test_http_1_0_is_served_and_closed(program):
    with serve(program) as s, connect(s.port) as sock:
        sock.sendall(b"GET /who HTTP/1.0\r\n\r\n")
        assert read_answer(sock).status == 200 and ended(sock)


def test_the_form_that_proxies_get_is_understood(program):
    with serve(program) as s:
        assert ask(s.port, request("GET", "http://somewhere:80/who"))[0].status == 200


def test_response_headers_are_on_every_reply(program):
    with serve(program, response_headers={"X-Served-By": "gate"}) as s:
        for data in (request(), request("GET", "/nowhere"), request(body=b"x" * (MIB + 1))):
            assert ask(s.port, data)[0].headers["x-served-by"] == "gate"


def test_without_keep_alives_every_reply_closes(program):
    with serve(program, keep_alives_enabled=False) as s:
        answer, closed = ask(s.port, request(body=b"x"))
        assert answer.status == 200 and closed


@pytest.mark.threads
def test_many_clients_at_once_each_get_their_own(program):
    failures = []

    def client(number):
        connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
        for i in range(30):
            body = b"%d-%d" % (number, i) * 500
            connection.request("POST", "/echo", body)
            if connection.getresponse().read() != body:
                failures.append((number, i))

    with serve(program) as s:
        threads = [threading.Thread(target=client, args=(n,)) for n in range(12)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not failures


# ---- what is refused

REFUSED = [
    (404, "404 page not found, supported: [/echo, /hold, ", request("GET", "/nowhere")),
    (405, "405 method not allowed, supported: [POST]", request("GET", "/echo")),
    (405, "405 method not allowed, supported: [GET, HEAD, POST]", request("DELETE", "/who")),
    (400, "Content-Length and Transfer-Encoding",
     request(body=b"0\r\n\r\n", headers=["Transfer-Encoding: chunked"])),
    (400, "repeated", request(body=b"x", headers=["Content-Length: 1"])),
    (400, "repeated", request(body=b"x", headers=["Content-Length: 2"])),
    (400, "repeated", request(headers=["Transfer-Encoding: chunked"] * 2, length=False) + b"0\r\n\r\n"),
    (501, "only chunked", request(headers=["Transfer-Encoding: gzip, chunked"], length=False) + b"0\r\n\r\n"),
    (501, "only chunked", request(headers=["Transfer-Encoding: identity"], length=False)),
    (400, "HTTP/1.0", b"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    (400, None, request(headers=["Content-Length: -1"], length=False)),
    (400, None, request(headers=["Content-Length: 5x"], length=False) + b"12345"),
    (413, None, request(headers=["Content-Length: 99999999999999999999999"], length=False)),
    (400, "not a number", request(headers=["Content-Length: 9999999999999999999"], length=False)),
    (400, "Host", b"GET /who HTTP/1.1\r\n\r\n"),
    (400, "repeated", request("GET", "/who", headers=["Host: y"])),
    (400, "invalid header name", request("GET", "/who", headers=["Content-Length : 3"])),
    (400, "invalid header name", request("GET", "/who", headers=["a b: c"])),
    (400, "space", b"GET /who x HTTP/1.1\r\nHost: x\r\n\r\n"),
    (400, None, b"GET /who\r\nHost: x\r\n\r\n"),
    (505, None, b"GET /who HTTP/2.0\r\nHost: x\r\n\r\n"),
    (417, "Expect", request("GET", "/who", headers=["Expect: wonders"])),
    (414, "longer than 8192", request("GET", "/who?" + "q" * 9000)),
    (431, "the request has 102 headers; max_header_count is 100", request("GET", "/who", headers=["A: b"] * 101)),
    (431, "the headers have 20006 bytes; max_header_bytes is 16384", request("GET", "/who", headers=["A: " + "b" * 20000])),
    (431, None, request("GET", "/who", headers=["A: " + "b" * 40000])),  # the library's own
    (413, "the body has 1048577 bytes; max_request_body_size is 1048576", request(headers=["Content-Length: %d" % (MIB + 1)], length=False)),
    (400, "percent escape", request("GET", "/who?canary=%4")),
    (400, "UTF-8", request("GET", "/who?canary=%ff")),
    (400, "control", request("GET", "/who?canary=a%00b")),
    (415, "supported: [identity, gzip, zstd, zlib, snappy, deflate, lz4, x-snappy-framed]",
     request("GET", "/who", headers=["Content-Encoding: canary"])),
    (415, "supported", request("GET", "/who", headers=["Content-Encoding: gzip", "Content-Encoding: gzip"])),
    (503, "no room", request(path="/refuse")),
]


@pytest.mark.parametrize("status, text, data", REFUSED, ids=lambda x: x if isinstance(x, int) else "")
def test_refused(program, status, text, data):
    with serve(program) as s:
        answer, _ = ask(s.port, data)
        assert answer.status == status
        assert text is None or text in answer.body.decode()
        assert b"canary" not in answer.body
        assert answers(s.port)


def test_405_names_the_methods(program):
    with serve(program) as s:
        assert ask(s.port, request("PUT", "/who"))[0].headers["allow"] == "GET, HEAD, POST"


def test_a_busy_reply_says_when_to_come_back_in_whole_seconds(program):
    with serve(program) as s:
        assert ask(s.port, request(path="/refuse"))[0].headers["retry-after"] == "3"


SMUGGLED = request("GET", "/who")


@pytest.mark.parametrize("data", [
    request(body=b"0\r\n\r\n" + SMUGGLED, headers=["Transfer-Encoding: chunked"]),
    request(body=SMUGGLED, headers=["Content-Length: 0"]),
    request(headers=["Transfer-Encoding: x"], length=False) + SMUGGLED,
    request("GET", "/who", headers=["Content-Length : 50"]) + SMUGGLED,
], ids=["both", "two", "unknown", "blank"])
def test_nothing_behind_a_disputable_end_is_taken_for_a_request(program, data):
    with serve(program) as s, connect(s.port) as sock:
        sock.sendall(data)
        assert read_answer(sock).status in (400, 501)
        assert ended(sock)


def test_a_small_refused_body_leaves_the_connection_open(program):
    with serve(program) as s, connect(s.port) as sock:
        for _ in range(3):
            sock.sendall(request(path="/refuse", body=b"x" * 100000))
            assert read_one(sock) == b"no room\n"


def test_a_large_refused_body_closes_and_the_reply_still_arrives(program):
    with serve(program) as s, connect(s.port) as sock:
        sock.sendall(request(path="/refuse", headers=["Content-Length: 900000"], length=False) + b"x" * 300000)
        answer = read_answer(sock)
        assert answer.status == 503 and answer.headers["connection"] == "close"
        assert ended(sock)


def test_too_large_is_told_while_a_chunked_body_is_still_coming(program):
    with serve(program) as s, connect(s.port) as sock:
        sock.sendall(request(headers=["Transfer-Encoding: chunked"], length=False))
        sock.sendall(chunked(b"x" * (MIB + 200000))[:-5])
        answer = read_answer(sock)
        assert answer.status == 413 and answer.headers["connection"] == "close"
        s.wait("too large")
        assert ended(sock) and answers(s.port)


def test_growth_that_the_route_refuses_is_told_while_the_body_is_coming(program):
    with serve(program) as s, connect(s.port) as sock:
        sock.sendall(request(path="/grow", headers=["Transfer-Encoding: chunked"], length=False))
        sock.sendall(chunked(b"x" * 300000)[:-5])
        answer = read_answer(sock)
        assert answer.status == 503 and answer.headers["retry-after"] == "3"
        assert ended(sock) and answers(s.port)


def test_expect_100_is_answered_before_the_body(program):
    with serve(program) as s, connect(s.port) as sock:
        sock.sendall(request(headers=["Expect: 100-continue", "Content-Length: 4"], length=False))
        assert sock.recv(1000).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"body")
        assert read_answer(sock).body == b"body"


@pytest.mark.parametrize("path, length, status", [("/refuse", 4, 503), ("/echo", 2 * MIB, 413), ("/x", 4, 404)])
def test_a_refusal_comes_instead_of_100_continue(program, path, length, status):
    with serve(program) as s, connect(s.port) as sock:
        sock.sendall(request(path=path, headers=["Expect: 100-continue", "Content-Length: %d" % length],
                             length=False))
        answer = read_answer(sock)
        assert answer.status == status and not answer.interim
        assert ended(sock)


HALF_CLOSED = {
    "with the headers": [request(path="/hold", body=b"x" * 100)],
    "after the headers": [request(path="/hold", headers=["Content-Length: 5"], length=False), b"hello"],
    "larger than the buffers": [request(path="/hold", body=b"x" * 300000)],
    "chunked": [request(path="/hold", headers=["Transfer-Encoding: chunked"], length=False) + chunked(b"x" * 9000, 700)],
}


def shut_down(sock):
    """Ends the sending side of the socket, also under a TLS session, which does not notice."""
    with socket.socket(fileno=os.dup(sock.fileno())) as same:
        same.shutdown(socket.SHUT_WR)


@pytest.mark.threads
@pytest.mark.parametrize("parts", HALF_CLOSED.values(), ids=HALF_CLOSED)
def test_clients_that_have_shut_down_their_sending_side_get_their_responses(program, parts):
    with serve(program, max_connections_per_peer=400) as s, contextlib.ExitStack() as stack:
        socks = [stack.enter_context(connect(s.port)) for _ in range(300)]
        for part in parts:
            for sock in socks:
                sock.sendall(part)
        for sock in socks:
            shut_down(sock)
        for _ in socks:
            s.wait("held")
        s.ask("release", "released")
        answers = [read_answer(sock) for sock in socks]
        assert [a and a.body for a in answers] == [b"released"] * len(socks)
        assert all(ended(sock) for sock in socks)


def test_half_closed_clients_whose_bodies_wait_for_memory_are_refused_or_closed(program):
    with serve(program) as s, contextlib.ExitStack() as stack:
        s.tell("grow 1000")
        s.ask("metrics", ".")  # the command before is obeyed
        socks = [stack.enter_context(connect(s.port)) for _ in range(50)]
        for sock in socks:
            sock.sendall(request(path="/grow", body=b"x" * 5000))
            shut_down(sock)
        assert {a and a.status for a in map(read_answer, socks)} <= {None, 503}


@pytest.mark.threads
def test_clients_that_go_away_while_their_requests_are_handled_leave_nothing_behind(program):
    with serve(program, max_connections_per_peer=400) as s:
        for _ in range(3):
            socks = [connect(s.port) for _ in range(100)]
            for sock in socks:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.sendall(request(path="/hold", body=b"x"))
                sock.close()
            s.tell("release-soon")
        wait_for(lambda: s.ask("release", "released") or
                 s.metric('otelcol_http_server_open_connections{receiver="driver"}') == 0)
        assert answers(s.port)


GARBAGE = [
    b"\0" * 1000, b"\xff" * 40000, b"\r\n" * 20000, b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"x" * 50000,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /who HTTP/1.1\r\nHost: x\r\n: empty\r\n\r\n", b"GET /who HTTP/1.1\r\n x\r\n\r\n",
    b"GET /who HTTP/1.1\r\nHost: x\0y\r\nA\0: b\r\n\r\n", b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: \r\n\r\n",
    request(headers=["Transfer-Encoding: chunked"], length=False) + b"zz\r\n",
    request(headers=["Transfer-Encoding: chunked"], length=False) + b"ffffffffffffffffff\r\n",
    request(headers=["Transfer-Encoding: chunked"], length=False) + b"-1\r\n\r\n",
    request(headers=["Transfer-Encoding: chunked"], length=False) + b"5\r\nhelloXX0\r\n\r\n",
    request("GET", "/%00%ff%zz"), request("GET", "*"), request("GET", "?"), request("", "/who"),
]


@pytest.mark.parametrize("data", GARBAGE, ids=range(len(GARBAGE)))
def test_the_next_one_is_served_after_garbage(program, data):
    with serve(program, read_header_timeout="2s") as s:
        with connect(s.port) as sock:
            try:
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65536):
                    pass
            except OSError:
                pass
        assert answers(s.port)


# ---- time

TINY = "300ms"


def end_reason(s, reason):
    return s.metric('otelcol_http_server_closed_connections{reason="%s",receiver="driver"}' % reason)


def drip(sock, data):
    """Sends a byte at a time until the server ends the connection."""
    sock.settimeout(0.02)
    for byte in data:
        try:
            sock.send(bytes([byte]))
            if sock.recv(1) == b"":
                return
        except socket.timeout:
            pass
        except OSError:
            return
    raise AssertionError("the server waited for everything")


@pytest.mark.parametrize("sent", [b"", b"P", b"POST /echo HTTP/1.1\r\n", b"\r\n\r\n"], ids=["nothing", "byte", "line", "crlf"])
def test_headers_that_do_not_end_are_ended(program, sent):
    with serve(program, read_header_timeout=TINY) as s, connect(s.port) as sock:
        sock.sendall(sent)
        assert ended(sock)
        assert end_reason(s, "header") == 1


def test_dripping_headers_do_not_win_time(program):
    with serve(program, read_header_timeout=TINY) as s, connect(s.port) as sock:
        drip(sock, b"POST /echo HTTP/1.1\r\n" + b"A: b\r\n" * 300)
        assert end_reason(s, "header") == 1


@pytest.mark.threads
@pytest.mark.parametrize("kind", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
def test_a_dripping_body_is_ended(program, kind):
    with serve(program, read_timeout=TINY) as s, connect(s.port) as sock:
        sock.sendall(request(headers=[kind], length=False))
        drip(sock, b"1\r\nx\r\n" * 300)
        s.wait("lost")
        assert end_reason(s, "body") == 1 and answers(s.port)


def test_a_dripping_refused_body_is_ended_too(program):
    with serve(program, read_timeout=TINY) as s, connect(s.port) as sock:
        sock.sendall(request(path="/refuse", headers=["Content-Length: 1000"], length=False))
        drip(sock, b"x" * 999)
        assert end_reason(s, "body") == 1


def send_slowly(sock, size, seconds, pieces=100):
    """True when the server took it all."""
    try:
        for _ in range(pieces):
            sock.sendall(b"x" * (size // pieces))
            time.sleep(seconds / pieces)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("path", ["/echo", "/refuse"])
def test_a_body_that_is_too_slow_is_ended(program, path):
    with serve(program, min_body_rate=100000) as s, connect(s.port) as sock:
        sock.sendall(request(path=path, headers=["Content-Length: 200000"], length=False))
        assert not send_slowly(sock, 100000, 20)
        wait_for(lambda: end_reason(s, "rate") == 1)
        assert end_reason(s, "body") == 0 and answers(s.port)


def test_a_body_that_is_fast_enough_may_take_its_time(program):
    with serve(program, min_body_rate=5000) as s, connect(s.port) as sock:
        sock.sendall(request(headers=["Content-Length: 100000"], length=False))
        assert send_slowly(sock, 100000, 9)
        assert len(read_answer(sock).body) == 100000


def test_a_reader_that_does_not_read_is_ended(program):
    with serve(program, write_timeout=TINY) as s, connect(s.port) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(request("GET", "/big"))
        wait_for(lambda: end_reason(s, "write") == 1)
        assert answers(s.port)


def test_an_idle_connection_is_ended(program):
    with serve(program, idle_timeout=TINY) as s, connect(s.port) as sock:
        sock.sendall(request(body=b"x"))
        assert read_one(sock) == b"x"
        assert ended(sock)
        assert end_reason(s, "idle") == 1


def test_no_time_limit_is_none(program):
    with serve(program, read_header_timeout="0s", read_timeout="0s") as s, connect(s.port) as sock:
        sock.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\n")
        time.sleep(0.5)
        sock.sendall(b"Content-Length: 2\r\n\r\na")
        time.sleep(0.5)
        sock.sendall(b"b")
        assert read_answer(sock).body == b"ab"


def test_a_worker_may_take_longer_than_every_time_limit(program):
    keys = {k: TINY for k in ("read_header_timeout", "read_timeout", "write_timeout", "idle_timeout")}
    with serve(program, **keys) as s, connect(s.port) as sock:
        sock.sendall(request(path="/hold", body=b"x"))
        s.wait("held")
        time.sleep(1)
        s.ask("release", "released")
        assert read_answer(sock).body == b"released"


# ---- connections

def test_one_connection_more_than_permitted_is_closed(program):
    with serve(program, max_connections=2) as s:
        socks = [connect(s.port), connect(s.port)]
        for sock in socks:
            sock.sendall(request(body=b"x"))
            assert read_one(sock) == b"x"
        with connect(s.port) as third:
            assert ended(third)
        wait_for(lambda: s.metric('otelcol_http_server_refused_connections{reason="limit",receiver="driver"}') == 1)
        socks.pop().close()
        wait_for(lambda: s.metric('otelcol_http_server_open_connections{receiver="driver"}') == 1)
        assert answers(s.port)


def test_one_client_cannot_take_all_connections(program):
    with serve(program, max_connections_per_peer=1) as s:
        with connect(s.port) as sock:
            sock.sendall(request(body=b"x"))
            assert read_one(sock) == b"x"
            with connect(s.port) as second:
                assert ended(second)
            other = socket.create_connection(("127.0.0.1", s.port), 60, source_address=("127.0.0.2", 0))
            other.sendall(request(body=b"y"))
            assert read_one(other) == b"y"
            other.close()


def refusals(s, reason):
    return s.metric('otelcol_http_server_refused_connections{reason="%s",receiver="driver"}' % reason)


@pytest.mark.parametrize("endpoint", ["127.0.0.1:0", "[::1]:0"])
def test_a_peer_over_its_bound_is_counted_and_forgotten_when_it_leaves(program, endpoint):
    host = endpoint.rpartition(":")[0].strip("[]")
    with serve(program, endpoint=endpoint, max_connections_per_peer=3) as s:
        socks = [socket.create_connection((host, s.port), 60) for _ in range(3)]
        with socket.create_connection((host, s.port), 60) as fourth:
            assert ended(fourth)
        wait_for(lambda: refusals(s, "peer_limit") == 1)
        for sock in socks:
            sock.close()
        wait_for(lambda: s.metric('otelcol_http_server_open_connections{receiver="driver"}') == 0)
        with socket.create_connection((host, s.port), 60) as sock:
            sock.sendall(request(body=b"x"))
            assert read_one(sock) == b"x"


# ---- memory

COST = 16384 + 16384 + 4096  # of a connection with the default configuration


def budget(s):
    s.tell("budget")
    return int(s.line())


def idle(s, source="127.0.0.1"):
    sock = socket.create_connection(("127.0.0.1", s.port), 60, source_address=(source, 0))
    sock.sendall(request(body=b"x"))
    assert read_one(sock) == b"x"
    return sock


def test_a_connection_is_charged_what_it_costs_until_it_closes(program):
    with serve(program) as s:
        socks = [idle(s) for _ in range(5)]
        assert budget(s) == 5 * COST
        for sock in socks:
            sock.close()
        wait_for(lambda: budget(s) == 0)
    with serve(program, max_header_bytes=100000) as s, connect(s.port):
        wait_for(lambda: budget(s) == COST - 16384 + 100000)


@pytest.mark.threads
def test_when_memory_is_short_a_new_connection_replaces_the_oldest_idle_one(program):
    with serve(program, threads=1) as s:  # a reply arrives before its connection is idle; one thread keeps their order
        s.ask("budget %d" % (4 * COST), "budgeted")
        busy = connect(s.port)
        busy.sendall(request(headers=["Content-Length: 2"], length=False) + b"a")
        wait_for(lambda: budget(s) == COST)
        old = [idle(s, "127.0.0.%d" % i) for i in (2, 3, 4)]
        for number in range(3):
            new = idle(s, "127.0.0.%d" % (5 + number))
            assert ended(old[number])
            assert budget(s) <= 4 * COST
            old.append(new)
        assert end_reason(s, "memory") == 3
        busy.sendall(b"b")
        assert read_one(busy) == b"ab"


def working(s, source):
    """A connection with a request that does not end; None when it is refused."""
    sock = socket.create_connection(("127.0.0.1", s.port), 60, source_address=(source, 0))
    sock.sendall(request(headers=["Expect: 100-continue", "Content-Length: 2"], length=False))
    try:
        return sock if sock.recv(1000) else None
    except ConnectionResetError:
        return None


def test_the_connections_of_one_peer_hold_at_most_as_much_as_is_left(program):
    with serve(program) as s:
        s.ask("budget %d" % (10 * COST), "budgeted")
        first = [working(s, "127.0.0.2") for _ in range(7)]
        assert [bool(sock) for sock in first] == [True] * 5 + [False] * 2
        second = [working(s, "127.0.0.3") for _ in range(4)]
        assert [bool(sock) for sock in second] == [True] * 3 + [False]
        wait_for(lambda: refusals(s, "memory") == 3)


def test_without_an_idle_connection_to_replace_a_new_one_is_refused(program):
    with serve(program) as s, connect(s.port) as busy:
        busy.sendall(request(headers=["Content-Length: 2"], length=False) + b"a")
        wait_for(lambda: budget(s) == COST)
        s.ask("budget %d" % COST, "budgeted")
        with connect(s.port) as second:
            assert ended(second)
        wait_for(lambda: refusals(s, "memory") == 1)
        assert budget(s) == COST
        busy.sendall(b"b")
        assert read_one(busy) == b"ab"


def test_idle_connections_are_closed_when_memory_becomes_short(program):
    with serve(program) as s, connect(s.port) as silent:
        socks = [idle(s) for _ in range(20)]
        s.ask("budget 0", "budgeted")
        for sock in [silent, *socks]:
            assert ended(sock)
        wait_for(lambda: budget(s) == 0)
        assert end_reason(s, "memory") == 21


@pytest.mark.threads
@pytest.mark.parametrize("kind", ["Content-Length: 300000", "Transfer-Encoding: chunked"])
def test_a_body_waits_for_memory_and_goes_on(program, kind):
    body = bytes(range(250)) * 1200
    with serve(program) as s, connect(s.port) as sock:
        sock.sendall(request(path="/grow", headers=[kind], length=False))
        sock.sendall(chunked(body) if "chunked" in kind else body)
        wait_for(lambda: s.metric('otelcol_http_server_paused_requests{receiver="driver"}') == 1)
        assert answers(s.port)
        s.tell("grow 1000000")
        assert read_answer(sock).body == body


def test_a_body_that_waits_does_not_hold_up_the_stop(program):
    with serve(program) as s, connect(s.port) as sock:
        sock.sendall(request(path="/grow", headers=["Content-Length: 300000"], length=False) + b"x" * 300000)
        wait_for(lambda: s.metric('otelcol_http_server_paused_requests{receiver="driver"}') == 1)
        s.ask("stop 0", "stopped")
        assert ended(sock)


@pytest.mark.threads
def test_many_bodies_wait_and_each_gets_its_own(program):
    with serve(program) as s:
        socks = [connect(s.port) for _ in range(20)]
        for i, sock in enumerate(socks):
            sock.sendall(request(path="/grow", headers=["Content-Length: 250000"], length=False) + b"%02d" % i * 100000)
        wait_for(lambda: s.metric('otelcol_http_server_paused_requests{receiver="driver"}') == 0)
        for i, sock in enumerate(socks):
            sock.sendall(b"%02d" % i * 25000)
        wait_for(lambda: s.metric('otelcol_http_server_paused_requests{receiver="driver"}') == 20)
        s.tell("grow 1000000")
        for i, sock in enumerate(socks):
            assert read_answer(sock).body == b"%02d" % i * 125000
            sock.close()


# ---- headers

def test_headers_over_the_bounds_are_refused_and_counted(program):
    with serve(program, max_header_count=10, max_header_bytes=2000) as s:
        assert ask(s.port, request("GET", "/who", headers=["A: b"] * 9))[0].status == 200
        assert ask(s.port, request("GET", "/who", headers=["A: b"] * 10))[0].status == 431
        assert ask(s.port, request("GET", "/who", headers=["A: " + "b" * 1900]))[0].status == 200
        assert ask(s.port, request("GET", "/who", headers=["A: " + "b" * 2100]))[0].status == 431
        assert ask(s.port, request("GET", "/who", headers=["A: " + "b" * 60000]))[0].status == 431  # the library's
        assert ask(s.port, request("GET", "/who?" + "q" * 9000))[0].status == 414
        wait_for(lambda: s.metric('otelcol_http_server_refused_requests{reason="header",receiver="driver"}') == 4)
        assert s.metric('otelcol_http_server_refused_requests{reason="malformed",receiver="driver"}') == 0
        assert answers(s.port)


def test_clients_that_vanish_leave_nothing_behind(program):
    with serve(program, read_header_timeout=TINY) as s:
        for data in (b"POST", request(headers=["Content-Length: 9"], length=False) + b"x", request("GET", "/big")):
            with connect(s.port) as sock:
                sock.sendall(data)
        wait_for(lambda: s.metric('otelcol_http_server_open_connections{receiver="driver"}') == 0)


def test_running_out_of_file_descriptors_is_survived(program):
    with serve(program, descriptors=40) as s:
        socks = [connect(s.port) for _ in range(60)]
        wait_for(lambda: s.metric('otelcol_http_server_refused_connections{reason="files",receiver="driver"}') > 0)
        for sock in socks:
            sock.close()
        wait_for(lambda: s.metric('otelcol_http_server_open_connections{receiver="driver"}') == 0)
        assert answers(s.port)


# ---- endpoints

def test_a_busy_port_is_a_clear_error(program):
    with serve(program) as s, serve(program, endpoint=s.address) as second:
        assert second.greeting == "error endpoint: cannot listen on %s: Address already in use" % s.address


@pytest.mark.parametrize("endpoint", ["localhost:0", ":0", "[::]:0", "0.0.0.0:0"])
def test_endpoints(program, endpoint):
    with serve(program, endpoint=endpoint) as s:
        answer, _ = ask(s.port, request("GET", "/who"))
        assert b"peer 127.0.0.1 " in answer.body


@pytest.mark.parametrize("endpoint", ["127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "::1:80", "127.0.0.1:70000", "[::1"])
def test_what_is_no_endpoint_is_an_error(program, endpoint):
    with serve(program, endpoint=endpoint) as s:
        assert s.greeting.startswith("error") and "must be host:port" in s.greeting


def test_a_unix_socket_serves_and_replaces_what_a_killed_process_left(program, tmp_path):
    path = str(tmp_path / "gate.sock")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(path)
    stale.close()
    with serve(program, endpoint=path, transport="unix"):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(path)
            sock.sendall(request(body=b"hello"))
            assert read_one(sock) == b"hello"
        with serve(program, endpoint=path, transport="unix") as second:
            assert "Address already in use" in second.greeting


@pytest.mark.parametrize("keys, text", [
    ({"transport": "udp"}, "transport"), ({"auth": {"authenticator": "x"}}, "auth"),
    ({"middlewares": [{"id": "x"}]}, "middlewares"), ({"compression_algorithms": ["gzip", "br"]}, "compression_algorithms[1]"),
    ({"response_headers": {"a b": "c"}}, "response_headers"), ({"max_connections": 0}, "max_connections"),
    ({"read_timeout": "-1s"}, "read_timeout"), ({"tls": {"cert_file": "/nonexistent"}}, "tls"),
    ({"tls": {"cert_file": "a", "key_file": "b", "cipher_suites": ["TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"]}}, "HTTP servers"),
])
def test_what_cannot_be_kept_is_an_error(program, keys, text):
    with serve(program, **keys) as s:
        assert s.greeting.startswith("error") and text in s.greeting


def test_only_the_listed_codings_are_taken(program):
    with serve(program, compression_algorithms=["", "zstd"]) as s:
        answer, _ = ask(s.port, request("GET", "/who", headers=["Content-Encoding: gzip"]))
        assert answer.status == 415 and b"supported: [identity, zstd]" in answer.body
        assert ask(s.port, request("GET", "/who", headers=["Content-Encoding: zstd"]))[0].status == 200


# ---- stopping

@pytest.mark.threads
def test_stop_waits_for_what_workers_hold(program):
    with serve(program) as s, connect(s.port) as sock:
        sock.sendall(request(path="/hold", body=b"x"))
        s.wait("held")
        s.tell("release-soon")
        s.ask("stop 30000", "stopped")
        answer = read_answer(sock)
        assert answer.body == b"released" and answer.headers["connection"] == "close"


@pytest.mark.threads
def test_stop_cuts_after_the_grace_and_late_replies_go_nowhere(program):
    with serve(program) as s:
        socks = [connect(s.port) for _ in range(5)]
        for sock in socks:
            sock.sendall(request(path="/hold", body=b"x"))
        for _ in socks:
            s.wait("held")
        socks.append(connect(s.port))
        socks[-1].sendall(request(headers=["Content-Length: 10"], length=False) + b"half")
        time.sleep(0.2)
        s.ask("stop 100", "stopped")
        for sock in socks:
            assert ended(sock)
        s.ask("release", "released")


def test_stop_ends_idle_connections_and_refuses_new_ones(program):
    with serve(program) as s, connect(s.port) as sock:
        sock.sendall(request(body=b"x"))
        assert read_one(sock) == b"x"
        s.ask("stop 30000", "stopped")
        assert ended(sock)
        with pytest.raises(OSError):
            connect(s.port)


# ---- TLS

@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    d = tmp_path_factory.mktemp("certs")
    for ca in ("ca", "foreign"):
        make_ca(d, ca)
    make_leaf(d, "ca", "server", "/CN=localhost", "serverAuth")
    make_leaf(d, "foreign", "server2", "/CN=localhost", "serverAuth")
    make_leaf(d, "ca", "client", OWNER_SUBJECT, "clientAuth", OWNER_NAMES)
    make_leaf(d, "ca", "nameless", "/O=Fleet", "clientAuth")
    make_leaf(d, "ca", "notclient", "/CN=web", "serverAuth")
    make_leaf(d, "foreign", "stranger", "/CN=stranger", "clientAuth")
    return d


def tls_keys(directory, mutual=False):
    keys = {"cert_file": str(directory / "server.pem"), "key_file": str(directory / "server.key")}
    return dict(keys, client_ca_file=str(directory / "client-ca.pem")) if mutual else keys


def tls_connect(port, certs, ca="ca", client=None):
    context = ssl.create_default_context(cafile=str(certs / (ca + ".pem")))
    if client:
        context.load_cert_chain(str(certs / (client + ".pem")), str(certs / (client + ".key")))
    return context.wrap_socket(connect(port), server_hostname="localhost")


def served_by_tls(port, certs, **keys):
    with tls_connect(port, certs, **keys) as sock:
        sock.sendall(request("GET", "/who"))
        answer = read_answer(sock)
        return answer and answer.body.decode()


def test_tls_serves_and_refuses_like_plaintext(program, certs):
    with serve(program, tls=tls_keys(certs)) as s:
        with tls_connect(s.port, certs) as sock:
            sock.sendall(request(body=b"x" * MIB))
            assert len(read_one(sock)) == MIB
            sock.sendall(request(headers=["Transfer-Encoding: chunked"], length=False)
                         + chunked(b"x" * (MIB + 100000))[:-5])
            assert read_answer(sock).status == 413


def test_clients_that_have_shut_down_their_sending_side_get_their_responses_with_tls(program, certs):
    with serve(program, tls=tls_keys(certs)) as s, contextlib.ExitStack() as stack:
        socks = [stack.enter_context(tls_connect(s.port, certs)) for _ in range(50)]
        for sock in socks:
            sock.sendall(request(path="/hold", body=b"x" * 40000))
            shut_down(sock)
        for _ in socks:
            s.wait("held")
        s.ask("release", "released")
        assert [a and a.body for a in map(read_answer, socks)] == [b"released"] * len(socks)


def test_tls_1_1_is_refused(program, certs):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with serve(program, tls=tls_keys(certs)) as s, pytest.raises(OSError):
        context.wrap_socket(connect(s.port))


ECDSA_128, ECDSA_256 = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"


@pytest.mark.parametrize("keys,version,ciphers,curve,agreed", [
    ({"max_version": "1.2"}, "TLSv1_3", None, None, None),
    ({"max_version": "1.2"}, "TLSv1_2", None, None, "TLSv1.2"),
    ({"min_version": "1.3"}, "TLSv1_2", None, None, None),
    ({"min_version": "1.3"}, "TLSv1_3", None, None, "TLSv1.3"),
    ({"cipher_suites": [ECDSA_256]}, "TLSv1_2", "ECDHE-ECDSA-AES128-GCM-SHA256", None, None),
    ({"cipher_suites": [ECDSA_256]}, "TLSv1_2", None, None, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    ({"cipher_suites": [ECDSA_256, ECDSA_128]}, "TLSv1_2", "ECDHE-ECDSA-AES128-GCM-SHA256", None,
     "ECDHE-ECDSA-AES128-GCM-SHA256"),
    ({"cipher_suites": [ECDSA_256]}, "TLSv1_3", None, None, "TLS_AES_256_GCM_SHA384"),
    ({"cipher_suites": ["TLS_AES_128_GCM_SHA256"]}, "TLSv1_3", None, None, "TLS_AES_128_GCM_SHA256"),
    ({"cipher_suites": ["TLS_AES_128_GCM_SHA256"]}, "TLSv1_2", None, None, None),
    ({"curve_preferences": ["X25519"]}, "TLSv1_3", None, "prime256v1", None),
    ({"curve_preferences": ["X25519"]}, "TLSv1_3", None, None, "TLSv1.3"),
    ({"curve_preferences": ["P384"]}, "TLSv1_3", None, "secp384r1", "TLSv1.3"),
    ({"curve_preferences": ["P384"]}, "TLSv1_2", None, "prime256v1", None),
])
def test_versions_suites_and_curves_are_honoured(program, certs, keys, version, ciphers, curve, agreed):
    context = ssl.create_default_context(cafile=str(certs / "ca.pem"))
    context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version)
    if ciphers:
        context.set_ciphers(ciphers)
    if curve:
        context.set_ecdh_curve(curve)
    with serve(program, tls=dict(tls_keys(certs), **keys)) as s:
        try:
            with context.wrap_socket(connect(s.port), server_hostname="localhost") as sock:
                sock.sendall(request("GET", "/who"))
                assert b"method GET" in read_answer(sock).body
                assert agreed in (sock.version(), sock.cipher()[0])
        except OSError:
            assert agreed is None


def test_plaintext_at_a_tls_port_gets_nothing_and_hurts_nobody(program, certs):
    with serve(program, tls=tls_keys(certs)) as s:
        with connect(s.port) as sock:
            sock.sendall(request("GET", "/who"))
            received = b""
            try:
                while part := sock.recv(1000):
                    received += part
            except ConnectionResetError:
                pass
            assert not received.startswith(b"HTTP")
        assert "method GET" in served_by_tls(s.port, certs)


def test_a_handshake_that_does_not_end_is_ended(program, certs):
    with serve(program, tls=tls_keys(certs), tls_handshake_timeout=TINY) as s, connect(s.port) as sock:
        sock.sendall(b"\x16\x03\x01")
        assert ended(sock)
        assert end_reason(s, "handshake") == 1
        with tls_connect(s.port, certs) as slow:
            time.sleep(1)
            slow.sendall(request("GET", "/who"))
            assert read_answer(slow).status == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_the_time_for_headers_begins_after_the_handshake(program, certs, version):
    context = ssl.create_default_context(cafile=str(certs / "ca.pem"))
    context.minimum_version = context.maximum_version = version
    with serve(program, tls=tls_keys(certs), read_header_timeout=TINY) as s:
        with context.wrap_socket(connect(s.port), server_hostname="localhost") as sock:
            assert ended(sock)
        assert end_reason(s, "header") == 1 and end_reason(s, "handshake") == 0


@pytest.fixture
def mutual(certs, tmp_path):
    for name in ("server.pem", "server.key"):
        (tmp_path / name).write_bytes((certs / name).read_bytes())
    (tmp_path / "client-ca.pem").write_bytes((certs / "ca.pem").read_bytes())
    return tmp_path


def test_a_verified_client_is_known_by_its_certificate(program, certs, mutual):
    with serve(program, tls=tls_keys(mutual, True)) as s:
        assert owner_shown(served_by_tls(s.port, certs, client="client")) == OWNER_SHOWN
        assert owner_shown(served_by_tls(s.port, certs, client="nameless")) == ["auth.dns=localhost", "auth.subject=O=Fleet"]


@pytest.mark.parametrize("client", [None, "stranger", "notclient"])
def test_a_client_without_a_certificate_of_the_ca_gets_no_reply(program, certs, mutual, client):
    with serve(program, tls=tls_keys(mutual, True)) as s:
        try:
            assert served_by_tls(s.port, certs, client=client) is None
        except OSError:
            pass
        assert "agent-7" in served_by_tls(s.port, certs, client="client")


def replace(directory, certs, name, as_name):
    (directory / as_name).write_bytes((certs / name).read_bytes())


@pytest.mark.threads
def test_reload_serves_the_new_certificate_and_lets_the_old_connection_finish(program, certs, mutual):
    with serve(program, tls=tls_keys(mutual)) as s:
        old = tls_connect(s.port, certs)
        old.sendall(request(path="/hold", body=b"x"))
        s.wait("held")
        replace(mutual, certs, "server2.pem", "server.pem")
        replace(mutual, certs, "server2.key", "server.key")
        s.ask("reload", "reloaded")
        assert "method GET" in served_by_tls(s.port, certs, ca="foreign")
        with pytest.raises(ssl.SSLError):
            tls_connect(s.port, certs)
        s.ask("release", "released")
        answer = read_answer(old)
        assert answer.body == b"released" and answer.headers["connection"] == "close"
        assert "method GET" in served_by_tls(s.port, certs, ca="foreign")


def test_reload_keeps_what_works_when_the_new_file_is_broken(program, certs, mutual):
    with serve(program, tls=tls_keys(mutual)) as s:
        (mutual / "server.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        s.tell("reload")
        assert s.line().startswith("tls: ")
        assert "method GET" in served_by_tls(s.port, certs)
        replace(mutual, certs, "server2.pem", "server.pem")
        s.tell("reload")
        assert s.line().startswith("tls: "), "the key does not fit"
        assert "method GET" in served_by_tls(s.port, certs)


def test_reload_takes_a_changed_client_ca(program, certs, mutual):
    with serve(program, tls=tls_keys(mutual, True)) as s:
        assert "agent-7" in served_by_tls(s.port, certs, client="client")
        replace(mutual, certs, "foreign.pem", "client-ca.pem")
        s.ask("reload", "reloaded")
        assert "stranger" in served_by_tls(s.port, certs, client="stranger")
        try:
            assert served_by_tls(s.port, certs, client="client") is None
        except OSError:
            pass


def test_files_are_read_again_at_the_interval(program, certs, mutual):
    with serve(program, tls=dict(tls_keys(mutual), reload_interval="100ms")) as s:
        replace(mutual, certs, "server2.pem", "server.pem")
        replace(mutual, certs, "server2.key", "server.key")

        def changed():
            try:
                return "method GET" in served_by_tls(s.port, certs, ca="foreign")
            except OSError:
                return False
        wait_for(changed)


# ---- what is told

def test_nothing_that_a_client_sent_is_in_the_log(program):
    with serve(program) as s:
        for data in (b"GET /canary HTTP/9.9\r\n\r\n", request("canary", "/canary"), b"canary\r\n\r\n",
                     request("GET", "/who?canary=%zz", headers=["canary: canary"])):
            ask(s.port, data)
    assert not any("canary" in line for line in s.log)
