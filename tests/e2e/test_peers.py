# SPDX-License-Identifier: Apache-2.0
"""What one sender takes does not shut out the others: announced and slow bodies, idle connections."""
import http.client
import os
import resource
import socket
import time

import pytest

from harness import build as make
from harness.gateway import Gateway
from harness.web import read_answer

MIB = 1 << 20
CONFIG = """
receivers:
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: LIMIT}
exporters:
  file: {path: out/profiles.jsonl}
service:
  pipelines:
    profiles: {receivers: [pprof], processors: [memory_limiter], exporters: [file]}
"""
GUARD = ["/bin/sh", "-c", 'ulimit -n 10000 && exec "$@"', "sh"]
measured = pytest.mark.skipif(os.environ.get("MODE") in ("asan", "tsan"), reason="the sanitizers' memory is not ours to bound")


def running(build, limit_mib, guard=()):
    return Gateway(build / "portcullis", CONFIG.replace("LIMIT", str(limit_mib)), guard=guard)


@pytest.fixture(scope="module")
def small():
    return make.pprof(samples=300).SerializeToString()


@pytest.fixture(scope="module")
def large():
    body = make.pprof(samples=10000, functions=500).SerializeToString()
    assert len(body) > 200000
    return body


def connect(gateway, source):
    return socket.create_connection(("127.0.0.1", gateway.port["pprof"]), 60, source_address=(source, 0))


def begin(gateway, source, announced, body=b""):
    """A request whose body does not end; a part of the body that the gateway does not take stays unsent."""
    sock = connect(gateway, source)
    sock.sendall(b"POST /v1/pprof HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % announced)
    sock.setblocking(False)
    try:
        while body:
            body = body[sock.send(body):]
    except OSError:
        pass
    return sock


def post(gateway, source, body):
    """The status."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port["pprof"], timeout=60, source_address=(source, 0))
    try:
        connection.request("POST", "/v1/pprof", body=body)
        return connection.getresponse().status
    finally:
        connection.close()


def post_until_taken(gateway, source, body, seconds=20):
    """The number of attempts."""
    end, attempts = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        attempts += 1
        try:
            if post(gateway, source, body) == 204:
                return attempts
        except (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected):
            pass  # refused, and the answer went with the rest of the body
        time.sleep(0.2)
    raise AssertionError("shut out:\n" + gateway.metrics_text())


def refused(gateway, reason):
    return gateway.total("otelcol_receiver_refused_requests", reason=reason)


@measured
def test_announced_bodies_reserve_nothing(build, large):
    with running(build, 256) as gateway:
        socks = [begin(gateway, "127.0.0.2", 18 * MIB) for _ in range(11)]
        gateway.until(lambda: gateway.total("otelcol_http_server_open_connections", receiver="pprof") == 11)
        time.sleep(0.5)
        assert gateway.total("otelcol_memory_charged_bytes") < 2 * MIB
        assert post(gateway, "127.0.0.2", large) == 204
        for sock in socks:
            sock.close()


@measured
def test_what_could_never_fit_is_refused_from_the_headers(build):
    with running(build, 64) as gateway:
        with begin(gateway, "127.0.0.2", 19 * MIB) as sock:
            sock.setblocking(True)
            assert read_answer(sock).status == 413
        assert refused(gateway, "too_large") == 1


@measured
def test_slow_large_bodies_of_one_peer_do_not_shut_out_another(build, small, large):
    """From 5 MB down to 20 KB, so that they would leave no gap; each lacks its last byte."""
    with running(build, 64) as gateway:
        sizes = [5 * MIB] * 8 + [MIB] * 20 + [200000] * 40 + [20000] * 100
        socks = [begin(gateway, "127.0.0.2", size, b"x" * (size - 1)) for size in sizes]
        for _ in range(30):
            assert post(gateway, "127.0.0.3", small) == 204
        assert post_until_taken(gateway, "127.0.0.3", large) <= 3
        gateway.until(lambda: refused(gateway, "peer_memory") > 0)
        assert gateway.rss()["VmHWM"] < 64 * MIB
        for sock in socks:
            sock.close()
        gateway.until(lambda: gateway.total("otelcol_http_server_open_connections", receiver="pprof") == 0)
        assert post_until_taken(gateway, "127.0.0.2", large) <= 3


@measured
def test_many_connections_of_one_peer_with_slow_bodies_do_not_shut_out_another(build, descriptors, small, large):
    """None of them is idle. One that is refused is opened again."""
    with running(build, 64, GUARD) as gateway:
        socks = [begin(gateway, "127.0.0.2", 100000, b"x" * 100) for _ in range(1500)]
        for _ in range(30):
            assert post(gateway, "127.0.0.3", small) == 204
            socks.append(begin(gateway, "127.0.0.2", 100000, b"x" * 100))
        assert post_until_taken(gateway, "127.0.0.3", large) <= 10
        assert gateway.total("otelcol_http_server_refused_connections", reason="memory") > 0
        assert gateway.rss()["VmHWM"] < 64 * MIB
        for sock in socks:
            sock.close()


@pytest.fixture
def descriptors():
    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    if old[1] < 10000:
        pytest.skip("no permission for 10000 file descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (10000, old[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, old)


def use(sock):
    """One request with large headers, answered with 404; false when the connection is gone."""
    try:
        sock.sendall(b"GET /x HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 8000 + b"\r\n\r\n")
        return bool(sock.recv(1000))
    except OSError:
        return False


@measured
def test_four_thousand_idle_connections_leave_room_for_others(build, descriptors, small, large):
    with running(build, 64, GUARD) as gateway:
        socks = []
        for i in range(4000):
            socks.append(connect(gateway, "127.0.0.%d" % (2 + i % 40)))
            assert use(socks[-1])
        for _ in range(30):
            assert post(gateway, "127.0.0.50", small) == 204
        assert post_until_taken(gateway, "127.0.0.50", large) <= 30
        assert gateway.rss()["VmHWM"] < 64 * MIB
        assert gateway.total("otelcol_http_server_closed_connections", reason="memory") > 1000
        for sock in socks:
            sock.close()
