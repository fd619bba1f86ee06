# SPDX-License-Identifier: Apache-2.0
"""Whoever asks at the wrong port is told the right one, and "/" of a port that has no senders lists what is there."""
import socket
import urllib.request

import grpc
import pytest

from harness import peers
from harness.gateway import Gateway
from harness.web2 import ask2

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: '127.0.0.1:{port:grpc}'}, http: {endpoint: '127.0.0.1:{port:otlp}'}}}
  pyroscope: {endpoint: '127.0.0.1:{port:pyroscope}'}
  pyroscope/idle: {endpoint: '127.0.0.1:{port:idle}'}
exporters: {debug: {verbosity: basic}}
extensions:
  health_check: {endpoint: '127.0.0.1:{port:health}'}
  health_check/path: {endpoint: '127.0.0.1:{port:other}', path: '/a"<&'}
service:
  extensions: [health_check, health_check/path]
  pipelines: {profiles: {receivers: [otlp, pyroscope], exporters: [debug]}}
"""
OTLP, PUSH = "/v1development/profiles", "/push.v1.PusherService/Push"


@pytest.fixture(scope="module")
def gateway(build):
    with Gateway(build / "portcullis", CONFIG) as g:
        yield g


@pytest.mark.parametrize("at, path, hint", [
    ("otlp", "/ingest", "; /ingest is served by the receiver pyroscope at port {pyroscope}"),
    ("otlp", PUSH, "; %s is served by the receiver pyroscope at port {pyroscope}" % PUSH),
    ("pyroscope", OTLP, "; %s is served by the receiver otlp at port {otlp}" % OTLP),
    ("pyroscope", "/v1/profiles", "; %s is served by the receiver otlp at port {otlp}" % OTLP),
    ("otlp", "/v1/profiles", "; %s is served by the receiver otlp at port {otlp}" % OTLP),
    ("metrics", OTLP, "; %s is served by the receiver otlp at port {otlp}" % OTLP),
    ("health", "/metrics", "; /metrics is served by this process at port {metrics}"),
    ("health", "/v1/pprof", "; the receiver pprof takes /v1/pprof, but none is configured"),
    ("health", "/api/profiles/writeraw", "; the receiver parca takes /api/profiles/writeraw, but none is configured"),
    ("otlp", "/nowhere?canary", ""),
])
def test_a_path_at_the_wrong_port_names_the_right_one(gateway, at, path, hint):
    status, _, body = peers.post(gateway.port[at], b"", path)
    assert status == 404 and body.startswith(b"404 page not found, supported: [/")
    assert body.decode().partition("]")[2] == hint.format(**gateway.port) + "\n"


NOT_GRPC = b"this port takes gRPC, which is HTTP/2, and the request is HTTP/1"


def answer(port, *pieces):
    """All that the gRPC port says to a client that sends these pieces, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            s.sendall(piece)
        return b"".join(iter(lambda: s.recv(65536), b""))


@pytest.mark.parametrize("request_line, hint", [
    (b"POST /v1development/profiles HTTP/1.1", "; %s is served by the receiver otlp at port {otlp}" % OTLP),
    (b"POST /v1/profiles HTTP/1.1", "; %s is served by the receiver otlp at port {otlp}" % OTLP),
    (b"POST /ingest?name=canary HTTP/1.0", "; /ingest is served by the receiver pyroscope at port {pyroscope}"),
    (b"POST /v1/pprof HTTP/1.1", "; the receiver pprof takes /v1/pprof, but none is configured"),
    (b"GET /canary HTTP/1.1", ""),
    (b"GET /%s HTTP/1.1" % (b"canary" * 50), ""),
])
def test_http_1_at_a_grpc_port_gets_an_answer_with_the_right_port(gateway, request_line, hint):
    """Whole, in pieces (the first letter is that of the preface of HTTP/2), and with more behind it than is read."""
    whole = request_line + b"\r\nHost: canary\r\n\r\n"
    body = NOT_GRPC + hint.format(**gateway.port).encode() + b"\n"
    counted = [gateway.total("otelcol_http2_server_closed_connections", reason="http1")]
    for pieces in ([whole], [whole[:1], whole[1:9], whole[9:]], [whole + b"x" * 4000]):
        head, _, rest = answer(gateway.port["grpc"], *pieces).partition(b"\r\n\r\n")
        assert head == (b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"
                        b"Connection: close" % len(body))
        assert rest == body
        counted.append(gateway.total("otelcol_http2_server_closed_connections", reason="http1"))
    assert [after - before for before, after in zip(counted, counted[1:])] == [1, 1, 1]


@pytest.mark.parametrize("noise", [
    b"\x16\x03\x01\x00\xf4\x01\x00\x00\xf0", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", b"HELLO\n", b"GET /\n", b"GET / HTTP/2\r\n",
    b"GET /ingest " + b"x" * 600, b"A" * 600, b"\n", b"get /ingest HTTP/1.1\r\n",
])
def test_what_is_no_http_gets_an_error_of_http_2(gateway, noise):
    """SETTINGS and GOAWAY with PROTOCOL_ERROR (RFC 9113, section 3.4), in which a client of TLS sees that there is none here."""
    before = gateway.total("otelcol_http2_server_closed_connections", reason="protocol_error")
    assert answer(gateway.port["grpc"], noise).hex() == "000000040000000000" "000008070000000000" "0000000000000001"
    assert gateway.total("otelcol_http2_server_closed_connections", reason="protocol_error") == before + 1


def test_clients_of_http_1_are_in_the_log(gateway):
    answer(gateway.port["grpc"], b"GET / HTTP/1.1\r\n\r\n")
    gateway.until(lambda: "Clients speak HTTP/1 to a gRPC port" in gateway.log())
    assert "canary" not in gateway.log()


def test_http_2_that_is_not_grpc_gets_the_hint_too(gateway):
    answer = ask2(gateway.port["grpc"], "POST", OTLP, b"", [("content-type", "application/x-protobuf")])
    assert answer.status == 404
    assert answer.body.decode() == "no such path or media type; %s is served by the receiver otlp at port %d\n" % (OTLP, gateway.port["otlp"])


def test_an_unknown_method_gets_the_hint_too(gateway):
    with grpc.insecure_channel("127.0.0.1:%d" % gateway.port["grpc"]) as channel, pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary(PUSH, bytes, bytes)(b"", timeout=60)
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert raised.value.details().endswith("]; %s is served by the receiver pyroscope at port %d" % (PUSH, gateway.port["pyroscope"]))


OTLP_OVER_GRPC = """
receivers: {otlp: {protocols: {grpc: {endpoint: '127.0.0.1:{port:grpc}'}}}}
exporters: {debug: {verbosity: basic}}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [debug]}}}
"""


def test_the_section_that_takes_a_path_is_named_if_it_is_not_configured(build):
    with Gateway(build / "portcullis", OTLP_OVER_GRPC) as g:
        text = answer(g.port["grpc"], b"POST /v1/profiles HTTP/1.1\r\n\r\n")
        assert text.endswith(b"; the receiver otlp takes /v1development/profiles in protocols::http (usually at port 4318), but none is "
                             b"configured\n")


def test_the_root_links_what_is_there(gateway):
    def page(name):
        with urllib.request.urlopen("http://127.0.0.1:%d/" % gateway.port[name], timeout=60) as answer:
            return answer.headers["Content-Type"], answer.read().decode()
    assert '<a href="/metrics">/metrics</a>' in page("metrics")[1] and page("metrics")[0] == "text/html; charset=utf-8"
    assert '<a href="/a&quot;&lt;&amp;">/a&quot;&lt;&amp;</a>' in page("other")[1]
    assert "Server available" in page("health")[1]  # its own page


def test_a_receiver_that_has_stopped_is_not_named(build):
    """A reload takes it away."""
    with Gateway(build / "portcullis", CONFIG) as g:
        g.config.write_text(g.config.read_text().replace("[otlp, pyroscope]", "[otlp]"))
        g.process.send_signal(1)
        g.until(lambda: "The previous configuration has ended" in g.log())
        assert b"pyroscope takes /ingest, but none is configured" in peers.post(g.port["otlp"], b"", "/ingest")[2]
