# SPDX-License-Identifier: Apache-2.0
"""An exporter of another HTTP protocol is a hundred lines on http_sender: tests/e2e/newcomer/courier.c."""
import contextlib
import gzip
import http.server
import pathlib
import threading

import pytest

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway
from harness.newcomer import build_with

SOURCE = pathlib.Path(__file__).parent / "newcomer/courier.c"
CONFIG = """
receivers:
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
exporters:
  courier:
    endpoint: http://127.0.0.1:%d/
    headers: {X-Fixed: always}
    bearer_token: secret
    retry_on_failure: {initial_interval: 20ms, max_interval: 50ms}
    %s
service:
  pipelines:
    profiles: {receivers: [pprof], exporters: [courier]}
"""


@pytest.fixture(scope="module")
def program(root, build, tmp_path_factory):
    return build_with(root, build, tmp_path_factory.mktemp("courier"), {"exporters/courier.c": SOURCE.read_text()},
                      ["courier_exporter"])[0]


class Server(http.server.ThreadingHTTPServer):
    """Takes posts; `answers` are the statuses of the first ones, then 200. 413 is the answer to all above `limit` samples."""

    def __init__(self, answers=(), limit=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.limit, self.taken, self.statuses = list(answers), limit, [], []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        wire = self.rfile.read(int(self.headers["Content-Length"]))
        server, samples = self.server, int(self.headers["X-Samples"])
        status = 413 if server.limit and samples > server.limit else server.answers.pop(0) if server.answers else 200
        server.statuses.append(status)
        if status == 200:
            body = gzip.decompress(wire) if self.headers.get("Content-Encoding") == "gzip" else wire
            server.taken.append((self.path, dict(self.headers), body))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def running(program, server, more=""):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with Gateway(program, CONFIG % (server.server_port, more)) as gateway:
            yield gateway
    finally:
        server.shutdown()
        server.server_close()


def send(gateway, profile=None):
    assert peers.post(gateway.port["pprof"], (profile or make.pprof(1)).SerializeToString())[0] == 204


def samples_of(body):
    return sum(len(p.samples) for r in otlp.parse(body).resource_profiles for s in r.scope_profiles for p in s.profiles)


def out(gateway):
    return gateway.total("otelcol_ledger_out_samples", exporter="courier")


def test_it_is_a_component_of_few_lines():
    assert len(SOURCE.read_text().splitlines()) < 130


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_a_request_has_its_body_and_the_headers_of_client_and_call(program, compression):
    server = Server()
    with running(program, server, "compression: " + compression) as gateway:
        send(gateway)
        gateway.until(lambda: out(gateway) == 60)
        ((path, headers, body),) = server.taken
        assert path == "/v1development/profiles" and samples_of(body) == 60
        assert headers["X-Samples"] == "60" and headers["X-Fixed"] == "always"
        assert headers["Authorization"] == "Bearer secret" and headers["Content-Type"] == "application/x-protobuf"


def test_answers_are_classified_as_in_the_collector(program):
    server = Server([503, 429, 502, 504])
    with running(program, server) as gateway:
        send(gateway)
        gateway.until(lambda: out(gateway) == 60)
        assert server.statuses == [503, 429, 502, 504, 200]
        server.answers = [400]
        send(gateway)
        gateway.until(lambda: gateway.total("otelcol_ledger_dropped_samples", exporter="courier", reason="permanent") == 60)
        assert gateway.balanced("profiles", "courier")


def test_its_own_classification_takes_precedence(program):
    profile = make.pprof(1, samples=1000)
    server = Server(limit=1500)
    with running(program, server) as gateway:
        send(gateway, profile)
        gateway.until(lambda: out(gateway) == 2000)
        assert server.statuses[0] == 413 and len(server.taken) > 1
        assert sum(samples_of(body) for _, _, body in server.taken) == 2000
