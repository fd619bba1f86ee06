# SPDX-License-Identifier: Apache-2.0
"""The admin endpoint, and the drain after SIGTERM."""
import json
import signal
import subprocess

import pytest

from harness import build as make
from harness import peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
exporters:
  file: {path: out.jsonl, flush_interval: 10ms}
extensions:
  health_check: {endpoint: 127.0.0.1:{port:health}}
service:
  admin: {endpoint: 127.0.0.1:{port:admin}}
  extensions: [health_check]
  pipelines:
    profiles: {receivers: [pprof], exporters: [file]}
"""


def ask(gateway, path, method="GET", headers=None):
    """Status and JSON."""
    status, _, body = peers.post(gateway.port["admin"], b"" if method == "POST" else None, path=path, method=method,
                                 headers=headers or {})
    return status, json.loads(body) if body.startswith(b"{") else body


@pytest.mark.threads
def test_the_admin_endpoint_reports_the_state_of_the_program(build):
    with Gateway(build / "portcullis", CONFIG) as gateway:
        status, state = ask(gateway, "/-/status")
        assert status == 200 and state["ready"] is True and state["stopping"] is False
        assert ask(gateway, "/-/status", "POST")[0] == 405
        assert ask(gateway, "/-/nothing")[0] == 404


def test_a_web_page_cannot_use_the_admin_endpoint(build):
    with Gateway(build / "portcullis", CONFIG) as gateway:
        for headers in ({"Origin": "http://example.com"}, {"Host": "example.com:%d" % gateway.port["admin"]}, {"Host": "example.com"}):
            status, answer = ask(gateway, "/-/status", headers=headers)
            assert status == 403 and answer["error"] == "requests of web pages are not allowed"
        assert ask(gateway, "/-/status", headers={"Host": "localhost:%d" % gateway.port["admin"]})[0] == 200


@pytest.mark.parametrize("endpoint, fine", [
    ("127.0.0.1:1", True), ("127.3.2.1:1", True), ("localhost:1", True), ("'[::1]:1'", True),
    ("0.0.0.0:1", False), ("'[::]:1'", False), ("':1'", False), ("10.0.0.1:1", False), ("localhost.example.com:1", False)])
def test_the_admin_endpoint_is_on_loopback_only(build, endpoint, fine):
    text = CONFIG.replace("127.0.0.1:{port:admin}", endpoint).replace("{port:pprof}", "3").replace("{port:health}", "2")
    done = subprocess.run([str(build / "portcullis"), "validate", "--config", "/dev/stdin"], input=text, text=True,
                          capture_output=True)
    assert done.returncode == (0 if fine else 1), done.stderr
    assert fine or "service::admin::endpoint: must be localhost:port" in done.stderr, done.stderr


def test_there_is_no_admin_endpoint_unless_it_is_configured(build):
    text = CONFIG.replace("  admin: {endpoint: 127.0.0.1:{port:admin}}\n", "")
    with Gateway(build / "portcullis", text) as gateway:
        assert gateway.log().count("Starting HTTP server") == 3  # pprof, health_check, metrics


def health(gateway):
    return peers.post(gateway.port["health"], None, path="/", method="GET")[0]


def test_readiness_drops_before_the_drain_and_requests_are_accepted_meanwhile(build):
    text = CONFIG + "  shutdown: {delay: 1h}\n"
    with Gateway(build / "portcullis", text) as gateway:
        body = make.pprof(1).SerializeToString()
        assert health(gateway) == 200
        gateway.process.send_signal(signal.SIGTERM)
        gateway.until(lambda: health(gateway) == 503)
        assert ask(gateway, "/-/status")[1] == {**ask(gateway, "/-/status")[1], "ready": False, "stopping": True}
        assert peers.post(gateway.port["pprof"], body)[0] == 204
        assert gateway.stop() == 0  # a second signal ends the delay
        assert (gateway.directory / "out.jsonl").read_text().count("\n") == 1


def test_the_drain_begins_after_the_delay(build):
    with Gateway(build / "portcullis", CONFIG + "  shutdown: {delay: 300ms, timeout: 5s}\n") as gateway:
        assert gateway.stop() == 0
        assert "Shutdown complete." in gateway.log()
