# SPDX-License-Identifier: Apache-2.0
"""Reloads of the configuration: what is equal survives, what changed is replaced, and an invalid one changes nothing. Reloads
under load are in tests/chaos."""
import re
import signal
import socket
import time
import json

import pytest

from harness import peers
from harness.gateway import Gateway
from harness.reloading import CONFIG, Sender, ask, ended, other, over_grpc, over_http, received, reload, request, resources


@pytest.fixture
def gateway(build):
    with Gateway(build / "portcullis", CONFIG) as gateway:
        yield gateway


def ready(port):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)


def test_sighup_applies_a_changed_configuration(gateway):
    text = gateway.config.read_text()
    before = [value for key, value in gateway.metrics().items() if key[0] == "otelcol_config_info"]
    first = ask(gateway, "/-/status")[1]["hash"]
    gateway.config.write_text(other(text))
    gateway.process.send_signal(signal.SIGHUP)
    gateway.until(lambda: gateway.total("otelcol_config_generation") == 2)
    state = ask(gateway, "/-/status")[1]
    assert before == [1.0] and state["hash"] != first and state["generation"] == 2
    assert gateway.total("otelcol_config_info", hash=state["hash"]) == 1
    assert gateway.total("otelcol_config_info", hash=first) == 0
    assert state["hash"] in next(line for line in gateway.log().splitlines() if "Configuration reloaded" in line)


def test_a_configuration_that_is_the_same_changes_nothing(gateway):
    gateway.config.write_text("# a comment\n" + gateway.config.read_text())
    status, result = reload(gateway)
    assert status == 200 and result["result"] == "unchanged" and result["generation"] == 1
    assert "Configuration reloaded" not in gateway.log()


@pytest.mark.parametrize("old, new, error", [
    ("policy, canary.A]", "policy, canary.A", r"gateway\.yaml:\d+:\d+: not valid YAML"),
    ("keys:", "kays:", r"gateway\.yaml:9:15: .*invalid keys: kays"),
    ("timeout: 20ms", "timeout: 20", r"gateway\.yaml:10:11: .*processors::batch::timeout"),
    ("exporters: [otlp_grpc]", "exporters: [otlp]", r"gateway\.yaml:\d+:\d+: .*references exporter"),
    ("127.0.0.1:{port:health}", "127.0.0.1:{port:blocked}", r"extensions::health_check::endpoint: .*Address already in use"),
    ("  admin:", "  telemetry: {logs: {level: loud}}\n  admin:", r"gateway\.yaml:\d+:\d+: service::telemetry::logs"),
])
def test_an_invalid_configuration_changes_nothing_and_is_reported_once(gateway, old, new, error):
    with socket.socket() as blocker, peers.Sink(gateway.port["sink"]) as sink:
        blocker.bind(("127.0.0.1", 0))
        blocker.listen(1)
        text = gateway.config.read_text()
        old = old.replace("{port:health}", str(gateway.port["health"]))
        new = new.replace("{port:blocked}", str(blocker.getsockname()[1]))
        assert old in text
        status, result = reload(gateway, text.replace(old, new))
        assert status == 400 and re.search(error, result["lastReload"]["error"]), result
        gateway.until(lambda: ended(gateway))
        lines = [line for line in gateway.log().splitlines() if "Failed to reload" in line]
        assert len(lines) == 1 and re.search(error, lines[0].replace("\\\\", "\\")), lines
        assert gateway.total("otelcol_config_last_reload_successful") == 0
        status, _, body = peers.post(gateway.port["health"], None, path="/", method="GET")
        assert status == 200 and json.loads(body)["details"] == [{
            "component": "service", "state": "failed",
            "detail": "the last reload of the configuration failed; an earlier one is in use"}]
        over_http(gateway.port["http"])(request("still"))
        gateway.until(lambda: received(sink))
        assert received(sink)[0][0]["policy"] == "A"
        status, result = reload(gateway, text)
        assert status == 200 and result["result"] == "unchanged"
        assert gateway.total("otelcol_config_last_reload_successful") == 1
        assert "details" not in json.loads(peers.post(gateway.port["health"], None, path="/", method="GET")[2])


def test_what_cannot_be_reloaded_is_named(gateway):
    text = gateway.config.read_text().replace(
        "  batch:", "  memory_limiter: {check_interval: 1s, limit_mib: 900}\n  batch:").replace(
        "[resource,", "[memory_limiter, resource,").replace("  admin:", "  telemetry: {logs: {level: warn}}\n  admin:")
    assert reload(gateway, text)[1]["result"] == "applied"
    line, = [line for line in gateway.log().splitlines() if "take effect after a restart only" in line]
    assert '"service::telemetry, processors::memory_limiter"' in line


@pytest.mark.threads
def test_a_listener_that_changes_serves_its_old_connections_to_the_end(gateway):
    text = gateway.config.read_text()
    with peers.Sink(gateway.port["sink"]) as sink:
        old = over_http(gateway.port["http"])
        old(request("1"))
        changed = text.replace("http: {endpoint", "http: {max_header_count: 50, endpoint")
        assert reload(gateway, changed)[1]["result"] == "applied"
        old(request("2"))
        over_http(gateway.port["http"])(request("3"))
        gateway.until(lambda: len(received(sink)) == 3)
        gateway.until(lambda: ended(gateway))


AUTH = """
  basicauth/out: {client_auth: {username: u, password: first}}
"""


@pytest.mark.threads
def test_an_exporter_changes_with_the_authenticator_that_it_names(gateway):
    text = gateway.config.read_text().replace("extensions:\n", "extensions:" + AUTH, 1).replace(
        "tls: {insecure: true}", "tls: {insecure: true}\n    auth: {authenticator: basicauth/out}").replace(
        "extensions: [health_check]", "extensions: [health_check, basicauth/out]")
    with peers.Sink(gateway.port["sink"]) as sink:
        send = over_http(gateway.port["http"])
        assert reload(gateway, text)[1]["result"] == "applied"
        send(request("1"))
        gateway.until(lambda: len(sink.metadata) == 1)
        assert reload(gateway, text.replace("password: first", "password: second"))[1]["result"] == "applied"
        send(request("2"))
        gateway.until(lambda: len(sink.metadata) == 2)
        first, second = (dict(metadata)["authorization"] for metadata in sink.metadata)
        assert first != second
        gateway.until(lambda: ended(gateway))


@pytest.mark.threads
def test_the_queue_of_a_changed_exporter_is_sent_as_it_was_configured(gateway):
    text = gateway.config.read_text()
    send = over_http(gateway.port["http"])
    send(request("1"))
    gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 1)
    assert reload(gateway, text.replace("tls: {insecure: true}", "tls: {insecure: true}\n    headers: {x: new}"))[0] == 200
    gateway.until(lambda: ended(gateway))
    send(request("2"))
    with peers.Sink(gateway.port["sink"]) as sink:
        gateway.until(lambda: len(received(sink)) == 2)
        assert sorted((next(resources(data))[0]["request.id"], dict(metadata).get("x"))
                      for data, metadata in zip(sink.received, sink.metadata)) == [("1", None), ("2", "new")]
    assert gateway.total("otelcol_ledger_dropped_samples", reason="shutdown") == 0


@pytest.mark.threads
def test_a_shutdown_waits_for_exporters_that_are_no_longer_configured(build):
    with Gateway(build / "portcullis", CONFIG) as gateway:
        text = gateway.config.read_text()
        over_http(gateway.port["http"])(request("1"))
        gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 1)
        reload(gateway, text.replace("tls: {insecure: true}", "tls: {insecure: true}\n    headers: {x: new}"))
        gateway.until(lambda: ended(gateway))
        assert gateway.stop() == 0
        report, = [line for line in gateway.log().splitlines() if "Shutdown report" in line]
        assert '"sent_samples": 0, "kept_samples": 0, "lost_samples": 1' in report


@pytest.mark.threads
def test_requests_that_wait_for_a_destination_end_with_the_graph_that_admitted_them(gateway):
    text = gateway.config.read_text().replace("tls: {insecure: true}",
                                              "tls: {insecure: true}\n    sending_queue: {wait_for_result: true}")
    assert reload(gateway, text)[0] == 200
    gateway.until(lambda: ended(gateway))
    sender = Sender("waits", over_grpc(gateway.port["grpc"]))
    gateway.until(lambda: gateway.total("otelcol_exporter_retries"))
    assert reload(gateway, other(text))[0] == 200
    assert not ended(gateway)
    sender.stopping = True
    with peers.Sink(gateway.port["sink"]) as sink:
        sender.join()
        gateway.until(lambda: ended(gateway))
        assert sender.acked == ["waits-0"] and not sender.failed
        assert [a["policy"] for a, _ in received(sink)] == ["A"]
