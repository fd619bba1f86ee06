# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 on the port of the HTTP server. MODE picks the build (asan and tsan too)."""
import contextlib
import json
import socket
import ssl
import subprocess
import threading
import time

import pytest

from harness import h2
from harness.certificates import OWNER_NAMES, OWNER_SHOWN, OWNER_SUBJECT, make_ca, make_leaf, owner_shown
from harness.web import Program, ask, build, connect, ended, read_answer, request
from harness.web2 import Http2, ask2

MIB = 1 << 20
TINY = "300ms"
ASLEEP_COST = 2048  # net/h2/private.h
NO_LONGER_JUST_ANSWERED_S = .5
GET = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/nope"), (b":authority", b"x")]


@pytest.fixture(scope="module")
def program():
    return build("net/http/http_serve")


def serve(program, endpoint="127.0.0.1:0", **keys):
    return Program(program, json.dumps(dict(keys, endpoint=endpoint)))


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it never happened")


def count(s, name, reason=None):
    labels = '{reason="%s",receiver="driver"}' % reason if reason else '{receiver="driver"}'
    return s.metric("otelcol_http%s" % name + labels)


def budget(s):
    s.tell("budget")
    return int(s.line())


# ---- what is answered

@pytest.mark.threads
def test_bodies_come_back_on_one_connection(program):
    with serve(program) as s, Http2(s.port) as c:
        for body in (b"one", b"x" * MIB, b"", bytes(range(256)) * 1000):
            answer = c.ask(body=body)
            assert answer.status == 200 and answer.body == body
            assert answer.headers["content-length"] == str(len(body))


@pytest.mark.threads
def test_both_versions_are_served_at_the_same_port_at_the_same_time(program):
    failures = []

    def client(number):
        for i in range(10):
            body = b"%d-%d" % (number, i) * 3000
            answer = ask2(s.port, body=body) if number % 2 else ask(s.port, request(body=body))[0]
            if answer.body != body:
                failures.append((number, i))

    with serve(program) as s:
        threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        wait_for(lambda: count(s, "_server_open_connections") == 0)
        assert budget(s) == 0
    assert not failures


@pytest.mark.threads
def test_streams_of_one_connection_are_answered_as_they_are_ready(program):
    with serve(program) as s, Http2(s.port) as c:
        held = [c.begin(path="/hold", end=True) for _ in range(20)]
        for _ in held:
            s.wait("held")
        assert c.ask(body=b"meanwhile").body == b"meanwhile"
        s.ask("release", "released")
        assert [c.answer(stream).body for stream in held] == [b"released"] * 20


def test_headers_query_and_authority_arrive_as_over_http_1(program):
    with serve(program) as s, Http2(s.port) as c:
        answer = c.ask("GET", "/who?service.name=a%2Fb&x=1+2&empty", headers=["x-scope-orgid: t1", "x-scope-orgid: t2"])
        assert b"method GET peer 127.0.0.1 " in answer.body and b"auth." not in answer.body
        assert b"service.name=a/b\nx=1 2\nempty=\nhost=x\nx-scope-orgid=t1\nx-scope-orgid=t2\n" in answer.body


def test_without_an_authority_the_host_is_passed(program):
    with serve(program) as s, Http2(s.port) as c:
        assert b"\nhost=a.example\n" in c.ask("GET", "/who", headers=["host: a.example"], authority=None).body
        assert c.ask("GET", "/who", headers=["host: x"]).body.count(b"host=") == 1


def test_head_has_the_headers_of_get_without_its_body(program):
    with serve(program) as s, Http2(s.port) as c:
        answer = c.ask("HEAD", "/who")
        assert answer.status == 200 and int(answer.headers["content-length"]) > 0 and not answer.body


def test_a_large_response_is_sent_as_the_client_reads(program):
    with serve(program) as s, Http2(s.port, window=100000) as c:
        answer = c.ask("GET", "/big")
        assert count(s, "2_server_closed_connections", "control_frames") == 0
        assert len(answer.body) == 16 * MIB


def test_response_headers_are_on_every_reply(program):
    with serve(program, response_headers={"X-Served-By": "gate"}) as s, Http2(s.port) as c:
        for answer in (c.ask(body=b"x"), c.ask("GET", "/nowhere"), c.ask(body=b"x" * (MIB + 1))):
            assert answer.headers["x-served-by"] == "gate"


def test_without_keep_alives_a_connection_ends_with_its_first_response(program):
    with serve(program, keep_alives_enabled=False) as s, Http2(s.port) as c:
        assert c.ask(body=b"x").body == b"x"
        assert not c.wait(lambda: False) and c.goaway.error_code == 0
        wait_for(lambda: count(s, "_server_open_connections") == 0)


def test_expect_100_is_answered_before_the_body(program):
    with serve(program) as s, Http2(s.port) as c:
        stream = c.begin(headers=["expect: 100-continue", "content-length: 4"])
        assert c.wait(lambda: stream in c.interim)
        c.send(stream, b"body")
        assert c.answer(stream).body == b"body"
        refused = c.begin(path="/refuse", headers=["expect: 100-continue", "content-length: 4"])
        assert c.answer(refused).status == 503 and refused not in c.interim


def test_curl_and_its_upgrade_are_served(program):
    """curl --http2 offers h2c by Upgrade, which a server may ignore (RFC 9110, section 7.8)."""
    with serve(program) as s:
        for option, version in (("--http2-prior-knowledge", "2"), ("--http2", "1.1"), ("--http1.1", "1.1"), ("--http1.0", "1")):
            out = subprocess.run(["curl", "-sS", option, "-d", "hello", "-w", " %{http_version}",
                                  "http://127.0.0.1:%d/echo" % s.port], capture_output=True, text=True, check=True).stdout
            assert out.split() == ["hello", version] or (version == "1" and out.split()[0] == "hello")


# ---- what is refused

REFUSED = [
    (404, "404 page not found, supported: [/echo, /hold, ", dict(path="/nowhere")),
    (405, "405 method not allowed, supported: [POST]", dict(method="GET")),
    (417, "Expect", dict(headers=["expect: wonders"])),
    (414, "longer than 8192", dict(method="GET", path="/who?" + "q" * 9000)),
    (431, " headers; max_header_count is 100", dict(headers=["a%d: b" % i for i in range(101)])),
    (431, " bytes; max_header_bytes is 16384", dict(headers=["a: " + "b" * 20000])),
    (413, "the body has 1048577 bytes; max_request_body_size is 1048576", dict(headers=["content-length: %d" % (MIB + 1)])),
    (400, "percent escape", dict(method="GET", path="/who?canary=%4")),
    (415, "supported: [identity, gzip, ", dict(method="GET", path="/who", headers=["content-encoding: canary"])),
    (503, "no room", dict(path="/refuse")),
]


@pytest.mark.parametrize("status, text, keys", REFUSED, ids=lambda x: x if isinstance(x, int) else "")
def test_refused(program, status, text, keys):
    with serve(program) as s, Http2(s.port) as c:
        answer = c.answer(c.begin(end="content-length" not in str(keys), **keys))
        assert answer.status == status
        assert text is None or text in answer.body.decode()
        assert b"canary" not in answer.body
        assert c.ask(body=b"still here").body == b"still here"


MALFORMED = [
    ["content-length: 3", "content-length: 3"], ["content-length: x"], ["transfer-encoding: chunked"],
    ["connection: close"], [("Upper", "x")], [("a b", "c")],
]


@pytest.mark.parametrize("headers", MALFORMED, ids=str)
def test_a_malformed_request_is_never_served(program, headers):
    """RFC 9113, section 8.1.1: a stream error, or an error response."""
    with serve(program) as s, Http2(s.port, strict=False) as c:
        stream = c.begin("GET", "/who", headers=headers, end=True)
        answer = c.answer(stream)
        assert answer is None or answer.status == 400
        with Http2(s.port) as other:
            assert other.ask(body=b"x").body == b"x"


@pytest.mark.parametrize("length, body", [(3, b"four"), (5, b"four")])
def test_a_body_that_is_not_as_long_as_announced_is_never_served(program, length, body):
    with serve(program) as s, Http2(s.port) as c:
        stream = c.begin(path="/hold", headers=["content-length: %d" % length])
        c.send(stream, body)
        assert c.answer(stream) is None
        s.wait("lost")


def test_too_large_is_told_while_the_body_is_still_coming(program):
    with serve(program) as s, Http2(s.port) as c:
        stream = c.begin()
        assert not c.send(stream, b"x" * (4 * MIB), end=False)
        assert c.answer(stream).status == 413
        s.wait("too large")
        assert c.ask(body=b"x").body == b"x"


def test_a_request_that_the_client_resets_is_lost(program):
    with serve(program) as s, Http2(s.port) as c:
        stream = c.begin()
        c.send(stream, b"half", end=False)
        c.h2.reset_stream(stream, 8)
        c.flush()
        s.wait("lost")
        assert c.ask(body=b"x").body == b"x"


@pytest.mark.threads
def test_a_client_that_leaves_while_a_worker_has_its_request_hurts_nobody(program):
    with serve(program) as s:
        with Http2(s.port) as c:
            c.begin(path="/hold", end=True)
            s.wait("held")
        wait_for(lambda: count(s, "_server_open_connections") == 0)
        s.ask("release", "released")
        assert ask2(s.port, body=b"x").body == b"x"


# ---- which version

@pytest.mark.parametrize("pieces", [[b"P", b"RI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", b"\n"]])
def test_a_preface_in_pieces_is_recognised(program, pieces):
    with serve(program) as s, connect(s.port) as sock:
        for piece in pieces:
            sock.sendall(piece)
            time.sleep(0.1)
        sock.sendall(b"\0\0\0\4\0\0\0\0\0")
        assert sock.recv(9)[3] == 4  # SETTINGS


@pytest.mark.parametrize("sent", [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rX", b"PRI * HTTP/1.1\r\nHost: x\r\n\r\n", b"PRIX /who HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_what_only_resembles_a_preface_is_http_1(program, sent):
    with serve(program) as s:
        answer, _ = ask(s.port, sent)
        assert answer is None or answer.status >= 400


@pytest.mark.parametrize("sent", [b"", b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])
def test_a_client_that_does_not_begin_is_ended(program, sent):
    with serve(program, read_header_timeout=TINY, tls_handshake_timeout=TINY) as s, connect(s.port) as sock:
        sock.sendall(sent)
        while not ended(sock):
            pass
        wait_for(lambda: count(s, "_server_open_connections") == 0)
        phases = count(s, "_server_closed_connections", "header") + count(s, "2_server_closed_connections", "handshake_timeout")
        assert phases == 1 and budget(s) == 0


def test_the_time_for_headers_begins_with_the_connection(program):
    """Whatever the client sends first: nothing, or a byte that makes it HTTP/1.1."""
    with serve(program, read_header_timeout="2s") as s, connect(s.port) as sock:
        begin = time.monotonic()
        time.sleep(1.5)
        sock.sendall(b"G")
        assert ended(sock)
        assert count(s, "_server_closed_connections", "header") == 1
        assert time.monotonic() - begin < 3.4, "not 1.5 s and 2 s"


# ---- limits

def test_connections_of_both_versions_count_together(program):
    with serve(program, max_connections=3, max_connections_per_peer=2) as s:
        with Http2(s.port) as c, connect(s.port) as sock:
            assert c.ask(body=b"x").body == b"x"
            sock.sendall(request(body=b"x"))
            assert read_answer(sock).body == b"x"
            with connect(s.port) as third:
                assert ended(third)
            wait_for(lambda: count(s, "_server_refused_connections", "peer_limit") == 1)
            with Http2(s.port, source="127.0.0.2") as other:
                assert other.ask(body=b"y").body == b"y"
                with socket.create_connection(("127.0.0.1", s.port), 60, source_address=("127.0.0.3", 0)) as fifth:
                    assert ended(fifth)
            wait_for(lambda: count(s, "_server_refused_connections", "limit") == 1)
        wait_for(lambda: count(s, "_server_open_connections") == 0)
        assert budget(s) == 0
        assert ask2(s.port, body=b"x").body == b"x"


def test_an_http2_connection_is_charged_what_it_costs(program):
    with serve(program) as s:
        clients = [Http2(s.port) for _ in range(5)]
        for c in clients:
            assert c.ask(body=b"x").body == b"x"
        assert budget(s) == 5 * 16384
        for c in clients:
            c.socket.close()
        wait_for(lambda: budget(s) == 0)


def test_idle_connections_are_closed_when_memory_becomes_short(program):
    with serve(program) as s:
        clients = [Http2(s.port) for _ in range(20)]
        for c in clients:
            assert c.ask(body=b"x").body == b"x"
        s.ask("budget 0", "budgeted")
        for c in clients:
            assert not c.wait(lambda: False)
        wait_for(lambda: budget(s) == 0)
        assert count(s, "2_server_closed_connections", "memory") == 20


def wakes(s, peer):
    """An HTTP/2 connection, asleep."""
    before, c = budget(s), h2.connected(s.port, peer)
    c.sendall(h2.PREFACE)
    wait_for(lambda: budget(s) == before + ASLEEP_COST)
    return c


def called(c):
    c.sendall(h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, h2.headers(GET)))


def closes(c):
    """Whether the server closes the connection; otherwise it has sent headers."""
    c.settimeout(10)
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := c.recv(65536):
            received += part
            if bytes([h2.HEADERS, h2.END_HEADERS]) in received:
                return False
    return True


def is_closed(c):
    c.setblocking(False)
    with contextlib.suppress(ConnectionResetError):
        try:
            while c.recv(65536):
                pass
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize("own", [1, 3])
def test_idle_connections_give_way_to_one_that_wakes_unless_its_peer_has_more(program, own):
    """On whatever thread they are."""
    with serve(program) as s, contextlib.ExitStack() as held:
        old = [held.enter_context(h2.connected(s.port, "127.0.0.2")) for _ in range(2)]
        for c in old:
            c.sendall(h2.PREFACE)
            called(c)
            assert not closes(c)
        time.sleep(NO_LONGER_JUST_ANSWERED_S)
        clients = [held.enter_context(wakes(s, "127.0.0.3")) for _ in range(own)]
        s.ask("budget %d" % budget(s), "budgeted")
        called(clients[0])
        assert closes(clients[0]) == (own > 2)
        if own < 3:
            wait_for(lambda: any(is_closed(c) for c in old))
        else:
            assert not any(is_closed(c) for c in old)


def test_an_idle_connection_is_ended_gracefully(program):
    with serve(program, idle_timeout=TINY) as s, Http2(s.port) as c:
        assert c.ask(body=b"x").body == b"x"
        assert not c.wait(lambda: False) and c.goaway.error_code == 0
        assert count(s, "2_server_closed_connections", "idle") == 1


def test_a_late_body_is_refused_by_the_name_of_the_setting(program):
    with serve(program, read_timeout=TINY) as s, Http2(s.port) as c:
        stream = c.begin()
        c.send(stream, b"half", end=False)
        answer = c.answer(stream)
        assert answer.status == 408 and b" bytes of the body have arrived in 0.3 s; read_timeout is 0.3 s" in answer.body
        s.wait("lost")
        assert count(s, "_server_refused_requests", "late_body") == 1
        assert c.ask(body=b"x").body == b"x"


def test_a_slow_body_is_refused_by_the_name_of_the_setting(program):
    with serve(program, min_body_rate=100000) as s, Http2(s.port) as c:
        stream = c.begin()
        for _ in range(100):
            if stream in c.done:
                break
            c.socket.settimeout(0.2)
            try:
                c.send(stream, b"x" * 1000, end=False)
                c.read()
            except TimeoutError:
                pass
        c.socket.settimeout(60)
        answer = c.answer(stream)
        assert answer.status == 408 and b" s; min_body_rate is 100000 bytes/s" in answer.body
        assert count(s, "_server_refused_requests", "late_body") == 1


def test_a_client_that_does_not_read_is_ended(program):
    with serve(program, write_timeout=TINY) as s, Http2(s.port, window=1000) as c:
        c.begin("GET", "/big", end=True)
        wait_for(lambda: count(s, "2_server_closed_connections", "outbound") == 1)
        assert ask2(s.port, body=b"x").body == b"x"


def test_limits_of_frames_are_keys_of_the_server(program):
    with serve(program, http2_limits={"max_errors_per_second": 1}) as s, Http2(s.port) as c:
        while not c.closed:
            if c.ask("GET", "/nowhere") is None:
                break
        assert count(s, "2_server_closed_connections", "errors") == 1


@pytest.mark.parametrize("keys, attack, setting, value", [
    (dict(max_connections=1), lambda s: ended(connect(s.port)), "max_connections", "1"),
    (dict(max_connections_per_peer=1), lambda s: ended(connect(s.port)), "max_connections_per_peer", "1"),
    (dict(read_header_timeout=TINY), lambda s: None, "read_header_timeout", "0.3 s"),
    (dict(read_timeout=TINY), lambda s: ask(s.port, request(headers=["Content-Length: 9"], length=False)), "read_timeout", "0.3 s"),
    (dict(http2_limits={"max_errors_per_second": 1}), lambda s: errors(s.port), "http2_limits.max_errors_per_second", "1"),
])
def test_a_limit_that_connections_exceed_is_in_the_log_once(program, keys, attack, setting, value):
    with serve(program, **keys) as s, connect(s.port):
        attack(s)
        wanted = '"setting": "%s", "value": "%s", "connections": 1' % (setting, value)
        wait_for(lambda: any("Connections exceeded a limit" in line and wanted in line for line in list(s.log)))
        attack(s)
    assert sum("Connections exceeded a limit" in line for line in s.log) == 1


def errors(port):
    with Http2(port) as c:
        while c.ask("GET", "/nowhere"):
            pass


# ---- memory

@pytest.mark.threads
def test_a_body_waits_for_memory_and_goes_on(program):
    body = bytes(range(250)) * 1200
    with serve(program) as s, Http2(s.port) as c:
        stream = c.begin(path="/grow")
        threading.Thread(target=lambda: (wait_for(lambda: count(s, "_server_paused_requests") == 1), s.tell("grow 1000000"))).start()
        assert c.send(stream, body)
        assert c.answer(stream).body == body
        assert count(s, "_server_paused_requests") == 1


def test_a_body_for_which_there_is_no_memory_is_refused_with_a_hint(program):
    with serve(program) as s, Http2(s.port) as c:
        stream = c.begin(path="/grow")
        c.send(stream, b"x" * 300000)
        answer = c.answer(stream)
        assert answer.status == 503 and answer.headers["retry-after"] == "3"
        assert c.ask(path="/grow", body=b"x" * 100000).status == 200


def test_what_waits_for_memory_is_bounded(program):
    """100 streams may send 64 KiB each before memory is granted; together they may owe 1 MiB per I/O thread."""
    with serve(program) as s:
        s.tell("grow 10")
        s.ask("metrics", ".")  # the command before is obeyed
        with Http2(s.port) as c:
            streams = [c.begin(path="/grow") for _ in range(60)]
            for stream in streams:
                c.send(stream, b"x" * 60000)
            assert [c.answer(stream).status for stream in streams] == [503] * 60
            assert count(s, "_server_paused_requests") == 60


# ---- stopping

@pytest.mark.threads
def test_stop_waits_for_what_workers_hold(program):
    with serve(program) as s, Http2(s.port) as c:
        stream = c.begin(path="/hold", end=True)
        s.wait("held")
        s.tell("release-soon")
        s.tell("stop 30000")
        assert c.answer(stream).body == b"released"
        s.wait("stopped")
        assert c.goaway


@pytest.mark.threads
def test_stop_cuts_after_the_grace_and_late_replies_go_nowhere(program):
    with serve(program) as s:
        clients = [Http2(s.port) for _ in range(5)]
        for c in clients:
            c.begin(path="/hold", end=True)
            s.wait("held")
        half = Http2(s.port)
        half.send(half.begin(), b"half", end=False)
        silent = connect(s.port)
        time.sleep(0.2)
        s.ask("stop 100", "stopped")
        assert ended(silent)
        for c in [*clients, half]:
            assert not c.wait(lambda: False)
        s.ask("release", "released")


# ---- TLS

@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    d = tmp_path_factory.mktemp("certs")
    for ca in ("ca", "foreign"):
        make_ca(d, ca)
    make_leaf(d, "ca", "server", "/CN=localhost", "serverAuth")
    make_leaf(d, "foreign", "server2", "/CN=localhost", "serverAuth")
    make_leaf(d, "ca", "client", OWNER_SUBJECT, "clientAuth", OWNER_NAMES)
    make_leaf(d, "foreign", "stranger", "/CN=stranger", "clientAuth")
    return d


def tls_keys(certs, **more):
    return dict(more, cert_file=str(certs / "server.pem"), key_file=str(certs / "server.key"))


def context(certs, ca="ca", client=None):
    c = ssl.create_default_context(cafile=str(certs / (ca + ".pem")))
    if client:
        c.load_cert_chain(str(certs / (client + ".pem")), str(certs / (client + ".key")))
    return c


@pytest.mark.threads
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_alpn_chooses_the_version(program, certs, version):
    with serve(program, tls=tls_keys(certs)) as s:
        ours = context(certs)
        ours.minimum_version = ours.maximum_version = version
        with Http2(s.port, ours) as c:
            assert c.ask(body=b"x" * MIB, scheme="https").body == b"x" * MIB
        for protocols in (None, ["http/1.1"], ["acme"]):
            other = context(certs)
            other.minimum_version = other.maximum_version = version
            if protocols:
                other.set_alpn_protocols(protocols)
            with other.wrap_socket(connect(s.port), server_hostname="localhost") as sock:
                sock.sendall(request(body=b"y" * MIB))
                assert read_answer(sock).body == b"y" * MIB


def test_curl_agrees_on_http2(program, certs):
    with serve(program, tls=tls_keys(certs)) as s:
        for option, version in (("--http2", "2"), ("--http1.1", "1.1")):
            out = subprocess.run(["curl", "-sS", option, "--cacert", str(certs / "ca.pem"), "-d", "hello", "-w", " %{http_version}",
                                  "https://localhost:%d/echo" % s.port], capture_output=True, text=True, check=True).stdout
            assert out.split() == ["hello", version]


def test_http_1_after_an_agreement_on_http_2_is_told_so(program, certs):
    ours = context(certs)
    ours.set_alpn_protocols(["h2"])
    with serve(program, tls=tls_keys(certs)) as s, ours.wrap_socket(connect(s.port), server_hostname="localhost") as sock:
        sock.sendall(request())
        answer = read_answer(sock)
        assert answer.status == 400
        assert answer.body == b"this connection is HTTP/2, as its TLS handshake agreed (ALPN h2), and the request is HTTP/1\n"


def hello(certs):
    """The bytes of a ClientHello that offers h2."""
    c = context(certs)
    c.set_alpn_protocols(["h2"])
    out = ssl.MemoryBIO()
    tls = c.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return out.read()


def test_a_client_hello_that_drips_is_http_1_after_a_while(program, certs):
    """Each look at it costs; a client that sends it in so many pieces has an HTTP/1.1 connection. It still has only the time
    of one handshake."""
    with serve(program, tls=tls_keys(certs), tls_handshake_timeout="2s") as s, connect(s.port) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begin = time.monotonic()
        try:
            for byte in hello(certs):
                sock.sendall(bytes([byte]))
                time.sleep(0.02)
        except OSError:
            pass
        while not ended(sock):
            pass
        assert time.monotonic() - begin < 3.9
        wait_for(lambda: count(s, "_server_closed_connections", "handshake") == 1)


@pytest.mark.parametrize("sent", [b"GET /who HTTP/1.1\r\nHost: x\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 70000, b"\x16\x03\x01\0\5\1\0\0\1\0"])
def test_what_is_no_client_hello_gets_nothing_and_hurts_nobody(program, certs, sent):
    with serve(program, tls=tls_keys(certs), tls_handshake_timeout="1s") as s:
        with connect(s.port) as sock:
            try:
                sock.sendall(sent)
                while not ended(sock):
                    pass
            except OSError:
                pass
        with Http2(s.port, context(certs)) as c:
            assert c.ask(body=b"x").body == b"x"


def test_a_client_is_known_by_its_certificate(program, certs):
    keys = tls_keys(certs, client_ca_file=str(certs / "ca.pem"))
    with serve(program, tls=keys) as s:
        with Http2(s.port, context(certs, client="client")) as c:
            assert owner_shown(c.ask("GET", "/who").body.decode()) == OWNER_SHOWN
        for client in (None, "stranger"):
            try:
                with Http2(s.port, context(certs, client=client)) as c:
                    assert c.ask("GET", "/who") is None
            except OSError:
                pass


def test_reload_serves_the_new_certificate_to_both_versions(program, certs, tmp_path):
    for name in ("server.pem", "server.key"):
        (tmp_path / name).write_bytes((certs / name).read_bytes())
    with serve(program, tls=tls_keys(tmp_path)) as s, Http2(s.port, context(certs)) as old:
        assert old.ask(body=b"x").body == b"x"
        (tmp_path / "server.pem").write_text("nothing")
        s.tell("reload")
        assert s.line().startswith("tls: ")
        with Http2(s.port, context(certs)) as c:
            assert c.ask(body=b"x").body == b"x"
        for name in ("server.pem", "server.key"):
            (tmp_path / name).write_bytes((certs / name.replace("server", "server2")).read_bytes())
        s.ask("reload", "reloaded")
        with Http2(s.port, context(certs, ca="foreign")) as c:
            assert c.ask(body=b"x").body == b"x"
        with context(certs, ca="foreign").wrap_socket(connect(s.port), server_hostname="localhost") as sock:
            sock.sendall(request(body=b"y"))
            assert read_answer(sock).body == b"y"
        assert old.ask(body=b"z").body == b"z"
