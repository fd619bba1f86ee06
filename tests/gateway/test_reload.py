# SPDX-License-Identifier: Apache-2.0
"""Reloads of the configuration, and the end of the program, under load: nothing that was acknowledged is lost, and each
request is processed by one policy only. LONG=1 in the environment: 500 reloads."""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import threading
import time

import pytest

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway, free_port
from harness.web2 import Http2

RELOADS = 500 if os.environ.get("LONG") else 40
CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:grpc}}
      http: {endpoint: 127.0.0.1:{port:http}}
processors:
  resource: {attributes: [{key: policy, value: A, action: upsert}]}
  allowlist: {keys: [request.id, policy, canary.A]}
  batch: {timeout: 20ms}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:{port:sink}
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms}
extensions:
  health_check: {endpoint: 127.0.0.1:{port:health}}
service:
  admin: {endpoint: 127.0.0.1:{port:admin}}
  extensions: [health_check]
  pipelines:
    profiles: {receivers: [otlp], processors: [resource, allowlist, batch], exporters: [otlp_grpc]}
"""
PATH = "/v1development/profiles"


def request(name):
    """One sample, with a canary that policy A allows and one that policy B allows."""
    m = make.Maker()
    stack = m.stack([m.location([m.function("main")])])
    resource = m.resource({"request.id": name, "canary.A": "alpha", "canary.B": "beta"})
    profile = m.profile(m.scope(resource, "test", "1"))
    profile.samples.add(stack_index=stack, values=[1])
    return m.message.SerializeToString()


def resources(data):
    """The attributes of each resource of an export request, and its number of samples."""
    message = otlp.parse(data)
    for rp in message.resource_profiles:
        attributes = {kv.key: kv.value.string_value for kv in rp.resource.attributes} or {
            otlp.Reader(message).text(kv.key_strindex): kv.value.string_value for kv in rp.resource.attributes}
        yield attributes, sum(len(p.samples) for sp in rp.scope_profiles for p in sp.profiles)


def received(sink):
    with sink.lock:
        taken = list(sink.received)
    return [found for data in taken for found in resources(data)]


def other(text):
    """The same configuration with the other policy."""
    return text.translate(str.maketrans("", "")).replace("value: A", "value: \0").replace("canary.A", "canary.\0").replace(
        "value: B", "value: A").replace("canary.B", "canary.A").replace("\0", "B")


class Sender(threading.Thread):
    """Sends requests with names of its own until it is stopped; `acked`: the names that were accepted."""

    def __init__(self, name, send):
        super().__init__(name=name)
        self.send, self.acked, self.failed, self.stopping = send, [], [], False
        self.start()

    def run(self):
        number = 0
        while not self.stopping:
            name = "%s-%d" % (self.name, number)
            number += 1
            try:
                self.send(request(name))
                self.acked.append(name)
            except Exception as e:  # refused, or a connection was lost
                self.failed.append(repr(e))
                time.sleep(0.02)


def over_http(port):
    """One connection for all requests: a second one would be a failure."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.connect()
    connection.auto_open = 0

    def send(body):
        connection.request("POST", PATH, body, {"Content-Type": "application/x-protobuf"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
    return send


def over_http2(port):
    connection = Http2(port)

    def send(body):
        stream = connection.begin(path=PATH, headers=[("content-type", "application/x-protobuf")])
        connection.send(stream, body)
        answer = connection.answer(stream)
        assert not connection.goaway and answer and answer.status == 200, (connection.goaway, answer)
    return send


def over_grpc(port):
    client = peers.Client(port)
    return lambda body: client.send(body, timeout=30)


def ask(gateway, path, method="GET"):
    status, _, body = peers.post(gateway.port["admin"], b"" if method == "POST" else None, path=path, method=method)
    return status, json.loads(body)


def reload(gateway, text=None):
    if text is not None:
        gateway.config.write_text(text)
    return ask(gateway, "/-/reload", "POST")


def ended(gateway):
    return ask(gateway, "/-/status")[1]["retiring"] == 0


def process(gateway):
    """RSS, the numbers of descriptors and of threads."""
    proc = pathlib.Path("/proc/%d" % gateway.process.pid)
    return gateway.rss()["VmRSS"], len(list((proc / "fd").iterdir())), len(list((proc / "task").iterdir()))


def check_delivered(gateway, sink, senders):
    acked = sorted(name for sender in senders for name in sender.acked)
    gateway.until(lambda: sum(n for _, n in received(sink)) >= len(acked))
    found = received(sink)
    assert sorted(a["request.id"] for a, _ in found) == acked
    for attributes, _ in found:
        assert ("canary.A" in attributes, "canary.B" in attributes) == (
            attributes["policy"] == "A", attributes["policy"] == "B"), attributes
    return {attributes["policy"] for attributes, _ in found}


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


@pytest.mark.threads
def test_reloads_under_load_lose_nothing_and_never_mix_policies(gateway):
    senders, text = [], gateway.config.read_text()
    http_port, grpc_port = gateway.port["http"], gateway.port["grpc"]
    with peers.Sink(gateway.port["sink"]) as sink:
        senders = [Sender("http", over_http(http_port)), Sender("h2", over_http2(http_port)),
                   Sender("grpc", over_grpc(grpc_port)), Sender("grpc2", over_grpc(grpc_port))]
        try:
            warm = None
            for i in range(RELOADS):
                if i % 2:
                    status, result = reload(gateway, text + "broken: [\n" if i % 4 == 1 else text.replace(
                        "keys:", "kays:"))
                    assert status == 400 and result["result"] == "failed", result
                    assert re.match(r".*gateway\.yaml:\d+:\d+: ", result["lastReload"]["error"]), result
                else:
                    text = other(text)
                    status, result = reload(gateway, text)
                    assert status == 200 and result["result"] == "applied", result
                before = [len(sender.acked) for sender in senders]
                gateway.until(lambda: all(len(s.acked) > n or s.failed for s, n in zip(senders, before)))
                if i == RELOADS // 4:
                    gateway.until(lambda: ended(gateway))
                    warm = process(gateway)
            gateway.until(lambda: ended(gateway))
            cool = process(gateway)
        finally:
            for sender in senders:
                sender.stopping = True
            for sender in senders:
                sender.join()
        assert [sender.failed for sender in senders] == [[]] * len(senders)
        assert check_delivered(gateway, sink, senders) == {"A", "B"}
    assert gateway.total("otelcol_config_generation") == 1 + (RELOADS + 1) // 2
    assert gateway.total("otelcol_config_reloads", result="failed") == RELOADS // 2
    assert cool[1] <= warm[1] + 2 and cool[2] <= warm[2] + 2, (warm, cool)
    if "asan" not in gateway.binary and "tsan" not in gateway.binary:
        assert cool[0] <= warm[0] * 1.15 + (4 << 20), (warm, cool)


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
    ("127.0.0.1:{port:health}", "127.0.0.1:{port:blocked}", r"extensions::health_check: .*Address already in use"),
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
        assert status == 200 and "the last reload of the configuration failed" in json.loads(body)["detail"]
        over_http(gateway.port["http"])(request("still"))
        gateway.until(lambda: received(sink))
        assert received(sink)[0][0]["policy"] == "A"
        status, result = reload(gateway, text)
        assert status == 200 and result["result"] == "unchanged"
        assert gateway.total("otelcol_config_last_reload_successful") == 1
        assert "detail" not in json.loads(peers.post(gateway.port["health"], None, path="/", method="GET")[2])


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


@pytest.mark.threads
def test_rolling_shutdowns_under_load_lose_nothing_that_was_acknowledged(build):
    """Two gateways, one of which is replaced again and again; senders go to the one that is ready."""
    rounds, senders, ports = (20 if os.environ.get("LONG") else 3), [], {}
    text = CONFIG.replace("  admin:", "  shutdown: {delay: 200ms, timeout: 20s}\n  admin:")
    current, lock = [], threading.Lock()

    def through(kind):
        state = {}

        def send(body):
            with lock:
                port = current[-1][kind]
            if state.get("port") != port:
                state["port"], state["send"] = port, {"grpc": over_grpc, "http": over_http}[kind](port)
            try:
                state["send"](body)
            except Exception:
                state.clear()
                raise
        return send

    with peers.Sink() as sink:
        text = text.replace("{port:sink}", str(sink.port))
        running = Gateway(build / "portcullis", text).__enter__()
        current.append(running.port)
        senders = [Sender(kind + str(i), through(kind)) for i in range(2) for kind in ("grpc", "http")]
        try:
            for _ in range(rounds):
                following = Gateway(build / "portcullis", text).__enter__()
                before = sum(len(s.acked) for s in senders)
                running.process.send_signal(signal.SIGTERM)
                running.until(lambda: peers.post(running.port["health"], None, path="/", method="GET")[0] == 503)
                with lock:
                    current.append(following.port)
                assert running.process.wait(60) == 0
                report, = [line for line in running.log().splitlines() if "Shutdown report" in line]
                assert '"kept_samples": 0, "lost_samples": 0' in report
                running.__exit__()
                running = following
                running.until(lambda: sum(len(s.acked) for s in senders) > before + 20)
        finally:
            for sender in senders:
                sender.stopping = True
            for sender in senders:
                sender.join()
            running.__exit__()
        acked = {name for sender in senders for name in sender.acked}
        found = [a["request.id"] for a, _ in received(sink)]
        assert acked and acked <= set(found)
