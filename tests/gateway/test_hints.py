# SPDX-License-Identifier: Apache-2.0
"""Whoever asks at the wrong port is told the right one, and "/" of a port that has no senders lists what is there."""
import urllib.request

import pytest

from harness import peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {http: {endpoint: '127.0.0.1:{port:otlp}'}}}
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
