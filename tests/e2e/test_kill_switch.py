# SPDX-License-Identifier: Apache-2.0
"""service::kill_switch: what is killed is neither accepted nor sent, within a second, and everyone can see why."""
import json
import socket
import time

import grpc
import pytest

from harness import build as make
from harness import peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}}, http: {endpoint: 127.0.0.1:{port:http}}}}
exporters:
  otlp_grpc/a: {endpoint: 127.0.0.1:SINK_A, tls: {insecure: true}, EXPORTER}
  otlp_grpc/b: {endpoint: 127.0.0.1:SINK_B, tls: {insecure: true}}
extensions:
  health_check: {endpoint: 127.0.0.1:{port:health}}
service:
  extensions: [health_check]
  admin: {endpoint: 127.0.0.1:{port:admin}}
  tenant: TENANT
  kill_switch: {file: rules.txt, SETTINGS}
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc/a, otlp_grpc/b]}
"""
BOUND_S = 20  # the promise is one second; a machine that runs other tests may be slow


class Rig:
    def __init__(self, build, settings="response: reject", tenant="{}", rules="", exporter="timeout: 5s"):
        self.build, self.rules_text = build, rules
        self.text = CONFIG.replace("SETTINGS", settings).replace("TENANT", tenant).replace("EXPORTER", exporter)

    def __enter__(self):
        self.a, self.b = peers.Sink().start(), peers.Sink().start()
        text = self.text.replace("SINK_A", str(self.a.port)).replace("SINK_B", str(self.b.port))
        self.gateway = Gateway(self.build / "portcullis", text)
        self.file = self.gateway.directory / "rules.txt"
        if self.rules_text:
            self.file.write_text(self.rules_text)
        self.gateway.__enter__()
        return self

    def __exit__(self, *error):
        self.gateway.__exit__(*error)
        self.a.stop()
        self.b.stop()

    def send(self, service="checkout", tenant=None, samples=10):
        """None, or the error."""
        with peers.Client(self.gateway.port["grpc"]) as client:
            try:
                return client.send(make.request(1, service=service, samples=samples),
                                   metadata=[("x-scope-orgid", tenant)] if tenant else None) and None
            except grpc.RpcError as error:
                return error

    def post(self, service="checkout", tenant=None):
        headers = {"Content-Type": "application/x-protobuf", **({"X-Scope-OrgID": tenant} if tenant else {})}
        return peers.post(self.gateway.port["http"], make.request(1, service=service).SerializeToString(),
                          "/v1development/profiles", headers)

    def write(self, rules):
        """Changes the file, and waits until that is in force. Returns the seconds that it took."""
        changes, begin = self.changes(), time.monotonic()
        self.file.write_text(rules)
        self.gateway.until(lambda: self.changes() > changes, BOUND_S)
        return time.monotonic() - begin

    def changes(self):
        return self.gateway.total("otelcol_kill_switch_changes")

    def admin(self, rules=None, path="/-/kill-switch?by=alice"):
        status, _, body = peers.post(self.gateway.port["admin"], (rules or "").encode() or None, path,
                                     method="GET" if rules is None else "POST")
        return status, json.loads(body)

    def healthy(self):
        return peers.post(self.gateway.port["health"], None, "/", method="GET")[0] == 200

    def taken(self, sink):
        return sum(sink.samples().values())

    def balanced(self):
        self.gateway.until(lambda: all(self.gateway.balanced("profiles", e) for e in ("otlp_grpc/a", "otlp_grpc/b")))


def test_a_killed_service_is_refused_for_good_and_others_pass(build):
    with Rig(build) as rig:
        assert rig.send() is None
        rig.write("kill service checkout # INC-42, alice\n")
        error = rig.send()
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED
        assert "the operator's kill switch stops the data of this service" in error.details()
        assert not any(key == "grpc-status-details-bin" for key, _ in error.trailing_metadata())
        assert rig.post()[0] == 403
        assert rig.send("other") is None
        log = rig.gateway.log()
        assert "Kill switch: rule in force" in log and "kill service checkout" in log and "INC-42, alice" in log
        assert "rules.txt" in log
        assert rig.gateway.total("otelcol_receiver_refused_requests", reason="killed") == 2
        assert rig.gateway.total("otelcol_kill_switch_rejected_samples", scope="service") == 10 + 50
        assert rig.gateway.total("otelcol_kill_switch_rules", action="kill") == 1
        rig.write("")
        assert "Kill switch: rule removed" in rig.gateway.log()
        assert rig.send() is None
        rig.gateway.until(lambda: rig.taken(rig.b) == 30)
        rig.balanced()


def test_only_the_killed_service_of_a_request_is_rejected(build):
    with Rig(build, rules="kill service noisy\n") as rig:
        m = make.Maker()
        for service in ("noisy", "quiet"):
            stack = m.stack([m.location([m.function(service)])])
            m.profile(m.scope(m.resource({"service.name": service}))).samples.add(stack_index=stack, values=[1])
        with peers.Client(rig.gateway.port["grpc"]) as client:
            answer = client.send(m.message)
        assert answer.partial_success.rejected_profiles == 1
        assert "resource_profiles[0]: the operator's kill switch" in answer.partial_success.error_message
        rig.gateway.until(lambda: rig.a.received and rig.b.received)
        assert b"noisy" not in rig.a.received[0] + rig.b.received[0]
        rig.balanced()


def test_with_retry_senders_keep_the_data(build):
    with Rig(build, "response: retry, retry_after: 90s", rules="kill tenant red\n") as rig:
        error = rig.send(tenant="red")
        assert error.code() == grpc.StatusCode.UNAVAILABLE
        assert any(key == "grpc-status-details-bin" for key, _ in error.trailing_metadata())
        status, headers, _ = rig.post(tenant="red")
        assert status == 503 and headers["Retry-After"] == "90"
        assert rig.send(tenant="blue") is None
        # from its headers, before the body is read
        assert rig.gateway.total("otelcol_kill_switch_refused_requests", scope="tenant") == 2
        assert rig.gateway.total("otelcol_receiver_refused_profile_samples") == 0


def test_everything_shows_in_readiness_and_exceptions_pass(build):
    with Rig(build) as rig:
        assert rig.healthy()
        rig.write("kill everything\n")
        assert rig.send().code() == grpc.StatusCode.PERMISSION_DENIED
        assert not rig.healthy()
        rig.write("kill everything\nallow service checkout\n")
        assert rig.healthy()
        assert rig.send() is None
        assert rig.send("other").code() == grpc.StatusCode.PERMISSION_DENIED
        rig.file.unlink()
        rig.gateway.until(lambda: rig.send("other") is None, BOUND_S)


def test_the_tenant_of_an_attribute_is_killed_too(build):
    with Rig(build, tenant="{attribute: region}", rules="kill tenant eu-1\n") as rig:
        assert rig.send().code() == grpc.StatusCode.PERMISSION_DENIED
        assert rig.send(tenant="known") is None


def test_a_killed_destination_gets_nothing_and_keeps_its_queue(build):
    with Rig(build) as rig:
        rig.write("kill destination otlp_grpc/a\n")
        assert rig.gateway.total("otelcol_exporter_killed", exporter="otlp_grpc/a") == 1
        for _ in range(5):
            assert rig.send() is None
        rig.gateway.until(lambda: rig.taken(rig.b) == 50)
        assert not rig.a.received
        assert rig.gateway.ledger("profiles", "otlp_grpc/a")["queued"] == 50
        rig.balanced()
        rig.write("")
        rig.gateway.until(lambda: rig.taken(rig.a) == 50)
        rig.balanced()
        assert rig.taken(rig.a) == 50
        assert "The kill switch stops this destination." in rig.gateway.log()


def test_a_killed_destination_may_drop_instead(build):
    with Rig(build, "destinations: drop", rules="kill destination *\nallow destination otlp_grpc/b\n") as rig:
        for _ in range(5):
            assert rig.send() is None
        rig.gateway.until(lambda: rig.taken(rig.b) == 50)
        assert rig.gateway.total("otelcol_ledger_dropped_samples", reason="killed", exporter="otlp_grpc/a") == 50
        rig.balanced()
        assert not rig.a.received


def test_who_waits_for_a_killed_destination_is_told(build):
    with Rig(build, rules="kill destination otlp_grpc/a\n", exporter="sending_queue: {wait_for_result: true}") as rig:
        assert rig.send().code() == grpc.StatusCode.UNAVAILABLE
        rig.balanced()


def test_the_program_stops_while_a_destination_is_killed(build):
    with Rig(build, rules="kill destination otlp_grpc/a\n") as rig:
        assert rig.send() is None
        rig.gateway.until(lambda: rig.taken(rig.b) == 10)
        assert rig.gateway.stop() == 0
        assert not rig.a.received


def test_a_broken_file_changes_nothing_and_is_said_once(build):
    with Rig(build, rules="kill service checkout\n") as rig:
        rig.file.write_text("kill service checkout\nkill planet earth\n")
        rig.gateway.until(lambda: rig.gateway.total("otelcol_kill_switch_file_errors") == 1, BOUND_S)
        assert rig.gateway.total("otelcol_kill_switch_file_valid") == 0
        assert rig.send().code() == grpc.StatusCode.PERMISSION_DENIED
        rig.file.write_text("kill service checkout\nkill moon\n")
        time.sleep(1.5)
        assert rig.gateway.log().count("The file of the kill switch cannot be used") == 1
        assert "line 2" in rig.gateway.log()
        rig.write("kill service other\n")
        assert rig.gateway.total("otelcol_kill_switch_file_valid") == 1
        assert rig.send() is None


def test_a_broken_file_at_the_start_is_an_error(build):
    rig = Rig(build, rules="kill\n")
    gateway = Gateway(build / "portcullis", rig.text.replace("SINK_A", "1").replace("SINK_B", "2"), ready=False)
    (gateway.directory / "rules.txt").write_text("kill\n")
    with gateway:
        assert gateway.process.wait(60) == 1
        assert "service::kill_switch::file: line 1" in gateway.log()


def reload(rig, *changes):
    text = rig.gateway.config.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    rig.gateway.config.write_text(text)
    status, _, body = peers.post(rig.gateway.port["admin"], b"", "/-/reload")
    return status, json.loads(body)["lastReload"]["error"]


def in_force(rig):
    return {r["rule"] for r in rig.admin()[1]["rules"]}


@pytest.mark.threads
def test_a_reload_that_fails_leaves_the_rules_in_force(build):
    """Also those of a file that has become invalid since: it could not be read again. No new rule is in force for a moment."""
    with Rig(build, rules="kill service checkout\n") as rig, socket.socket() as blocker:
        blocker.bind(("127.0.0.1", 0))
        blocker.listen(1)
        rig.file.write_text("kill planet earth\n")
        rig.gateway.until(lambda: rig.gateway.total("otelcol_kill_switch_file_errors") == 1, BOUND_S)
        (rig.gateway.directory / "others.txt").write_text("kill service other\n")
        changes = rig.changes()
        status, error = reload(rig, ("file: rules.txt, response: reject", "file: others.txt, response: retry"),
                               ("127.0.0.1:%d" % rig.gateway.port["health"], "127.0.0.1:%d" % blocker.getsockname()[1]))
        assert status == 400 and "Address already in use" in error
        assert in_force(rig) == {"kill service checkout"} and rig.changes() == changes
        assert rig.send().code() == grpc.StatusCode.PERMISSION_DENIED and rig.send("other") is None
        rig.write("kill service third\n")  # the file is still watched
        assert in_force(rig) == {"kill service third"}


@pytest.mark.threads
def test_a_reload_with_a_broken_file_of_rules_fails(build):
    with Rig(build, rules="kill service checkout\n") as rig:
        (rig.gateway.directory / "others.txt").write_text("kill planet earth\n")
        status, error = reload(rig, ("file: rules.txt", "file: others.txt"))
        assert status == 400 and "service::kill_switch::file: line 1" in error
        assert in_force(rig) == {"kill service checkout"} and rig.send().code() == grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.threads
def test_a_reload_brings_the_rules_of_its_file_into_force(build):
    with Rig(build, rules="kill service checkout\n") as rig:
        (rig.gateway.directory / "others.txt").write_text("kill service other\n")
        assert reload(rig, ("file: rules.txt, response: reject", "file: others.txt, response: retry")) == (200, None)
        assert in_force(rig) == {"kill service other"}
        assert rig.send() is None and rig.send("other").code() == grpc.StatusCode.UNAVAILABLE
        assert reload(rig, ("file: others.txt, ", "")) == (200, None)
        assert not in_force(rig) and rig.send("other") is None


def test_the_admin_endpoint_adds_rules_and_a_kill_wins(build):
    with Rig(build, rules="kill service checkout\n") as rig:
        status, found = rig.admin("kill tenant red # INC-1\nallow service checkout\n")
        assert status == 200
        assert {r["rule"] for r in found["rules"]} == {"kill service checkout", "kill tenant red", "allow service checkout"}
        assert {r.get("note") for r in found["rules"]} == {None, "INC-1"}
        assert rig.send(tenant="red").code() == rig.send().code() == grpc.StatusCode.PERMISSION_DENIED
        assert rig.send("other") is None
        assert "admin endpoint, alice" in rig.gateway.log()
        status, found = rig.admin("kill nothing\n")
        assert status == 400 and "line 1" in found["error"] and len(rig.admin()[1]["rules"]) == 3
        assert len(rig.admin("# none\n")[1]["rules"]) == 1
        assert rig.send("other", tenant="red") is None


@pytest.mark.threads
def test_rules_change_under_load(build):
    with Rig(build) as rig:
        outcomes = []
        for i in range(12):
            rig.admin("kill service checkout\n" if i % 2 == 0 else "kill destination otlp_grpc/a\n")
            outcomes += [rig.send() is None for _ in range(5)]
        assert outcomes == ([False] * 5 + [True] * 5) * 6
        rig.admin("# none\n")
        rig.gateway.until(lambda: rig.taken(rig.a) == rig.taken(rig.b) == 300)
        rig.balanced()
