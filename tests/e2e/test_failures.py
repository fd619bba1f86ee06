# SPDX-License-Identifier: Apache-2.0
"""What the log and the metrics say of a destination that cannot be reached, is the wrong one, or rejects everything."""
import contextlib
import json
import os
import ssl

import grpc
import pytest

from harness import build as make
from harness import certificates, faults, peers, push
from harness.gateway import Gateway, free_port
from harness.misconfigured import BlackHole, Mute, TlsServer

HEAD = """
receivers: {otlp: {protocols: {grpc: {endpoint: '127.0.0.1:{port:otlp}'}}}}
service:
  telemetry: {logs: {encoding: json}}
  pipelines: {profiles: {receivers: [otlp], exporters: [EXPORTERS]}}
exporters:
"""
EXPORTER = """
  %s: {endpoint: '%s', compression: none, timeout: %s, tls: {%s}, retry_on_failure: {initial_interval: 30s, max_interval: 30s}}
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    directory = tmp_path_factory.mktemp("keys")
    for ca in ("ca", "foreign"):
        certificates.make_ca(directory, ca)
    certificates.make_leaf(directory, "ca", "good", "/CN=good")
    certificates.make_leaf(directory, "ca", "expired", "/CN=expired", days=-1)
    certificates.make_leaf(directory, "foreign", "foreign-leaf", "/CN=foreign")
    certificates.make_leaf(directory, "ca", "elsewhere", "/CN=elsewhere", own="DNS:elsewhere.test")
    return directory


class Nobody:
    def __init__(self):
        self.port = free_port()

    def stop(self):
        pass


class Web:
    """A gRPC port where a server of HTTP/2 answers that is no gRPC server."""

    def __init__(self):
        self.sink = faults.FaultSink()
        self.port, self.stop = self.sink.port, self.sink.__exit__
        self.sink.script = [faults.headers((":status", 404), ("content-type", "text/html"), end=True)]


def plain(server):
    server.start()
    return server


def answering(status):
    """An HTTP server that answers so."""
    sink = plain(push.PushSink())
    sink.answer = lambda taken, number: push.reply(status, b"words-of-the-server")
    return sink


def rejecting(code):
    sink = peers.Sink()
    sink.answer = lambda data, context: context.abort(code, "words-of-the-server")
    return plain(sink)


TLS_1_1, TLS_1_2 = ((version, version) for version in (ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2))
GRPC, HTTP = "otlp_grpc", "otlp_http"
REFUSED, TIMED_OUT = {"cause": "connection refused", "errno": "ECONNREFUSED"}, {"cause": "connection timed out"}
# (exporter, name of the case): (server, is TLS expected?, fields of the line)
CASES = {
    (GRPC, "closed-port"): (lambda keys: Nobody(), False, {"error": "unavailable", "stage": "connect", **REFUSED}),
    (HTTP, "closed-port"): (lambda keys: Nobody(), False, {"error": "unavailable", "stage": "connect", **REFUSED}),
    (GRPC, "hole"): (lambda keys: BlackHole(), False, {"error": "deadline_exceeded", "stage": "connect", **TIMED_OUT}),
    (HTTP, "hole"): (lambda keys: BlackHole(), False, {"error": "deadline_exceeded", "stage": "connect", **TIMED_OUT}),
    (GRPC, "mute"): (lambda keys: Mute(), False, {"error": "deadline_exceeded", "stage": "connect", **TIMED_OUT}),
    (HTTP, "mute"): (lambda keys: Mute(), False, {"error": "deadline_exceeded", "stage": "exchange", "cause": "no response within the timeout"}),
    (HTTP, "mute-tls"): (lambda keys: Mute(), True, {"error": "deadline_exceeded", "stage": "tls_handshake", "cause": "TLS handshake timed out"}),
    (GRPC, "reset"): (lambda keys: Mute(reset=True), False, {"error": "unavailable", "cause": "connection reset", "errno": "ECONNRESET"}),
    (HTTP, "reset"): (lambda keys: Mute(reset=True), False, {"error": "cut", "cause": "connection reset", "errno": "ECONNRESET"}),
    (GRPC, "closing"): (lambda keys: Mute(b""), False, {"error": "unavailable", "cause": "connection closed without a response"}),
    (HTTP, "closing"): (lambda keys: Mute(b""), False, {"error": "cut", "cause": "connection closed without a response"}),
    (GRPC, "expired"): (lambda keys: TlsServer(keys, "expired"), True, {"error": "tls", "stage": "tls_verify", "cause": "certificate expired"}),
    (HTTP, "expired"): (lambda keys: TlsServer(keys, "expired"), True, {"error": "tls", "stage": "tls_verify", "cause": "certificate expired"}),
    (GRPC, "foreign"): (lambda keys: TlsServer(keys, "foreign-leaf"), True, {"error": "tls", "stage": "tls_verify", "cause": "unknown authority"}),
    (HTTP, "foreign"): (lambda keys: TlsServer(keys, "foreign-leaf"), True, {"error": "tls", "stage": "tls_verify", "cause": "unknown authority"}),
    (GRPC, "name"): (lambda keys: TlsServer(keys, "elsewhere"), True, {"error": "tls", "stage": "tls_verify", "cause": "name mismatch"}),
    (HTTP, "name"): (lambda keys: TlsServer(keys, "elsewhere"), True, {"error": "tls", "stage": "tls_verify", "cause": "name mismatch"}),
    (GRPC, "client"): (lambda keys: TlsServer(keys, "good", "ca"), True, {"error": "tls", "cause": "client certificate missing or rejected"}),
    (GRPC, "client-1.2"): (lambda keys: TlsServer(keys, "good", "ca", versions=TLS_1_2), True, {"error": "tls", "cause": "TLS handshake rejected by the server"}),
    (HTTP, "client-1.2"): (lambda keys: TlsServer(keys, "good", "ca", versions=TLS_1_2), True, {"error": "tls", "cause": "TLS handshake rejected by the server"}),
    (GRPC, "version"): (lambda keys: TlsServer(keys, "good", versions=TLS_1_1), True, {"error": "tls", "cause": "no common TLS version or cipher"}),
    (HTTP, "version"): (lambda keys: TlsServer(keys, "good", versions=TLS_1_1), True, {"error": "tls", "cause": "no common TLS version or cipher"}),
    (GRPC, "alpn"): (lambda keys: TlsServer(keys, "good", protocols=["http/1.1"]), True, {"error": "tls", "cause": "TLS server without HTTP/2"}),
    (GRPC, "plain-grpc"): (lambda keys: plain(peers.Sink()), True, {"error": "tls", "stage": "tls_handshake", "cause": "not a TLS server"}),
    (GRPC, "plain-http"): (lambda keys: plain(push.PushSink()), True, {"error": "tls", "stage": "tls_handshake", "cause": "not a TLS server"}),
    (HTTP, "plain-http"): (lambda keys: plain(push.PushSink()), True, {"error": "tls", "stage": "tls_handshake", "cause": "not a TLS server"}),
    (GRPC, "http1"): (None, False, {"error": "unavailable", "stage": "exchange", "cause": "HTTP/1 where gRPC was expected"}),
    (GRPC, "html"): (lambda keys: plain(push.PushSink()), False, {"error": "unavailable", "stage": "exchange", "cause": "not a gRPC server"}),
    (GRPC, "web"): (lambda keys: Web(), False, {"error": "unimplemented", "cause": "not a gRPC server", "http_status": 404}),
    (HTTP, "grpc-port"): (lambda keys: plain(peers.Sink()), False, {"error": "unavailable", "stage": "exchange", "cause": "not an HTTP/1 server"}),
    (GRPC, "overloaded"): (lambda keys: rejecting(grpc.StatusCode.UNAVAILABLE), False, {"error": "unavailable", "grpc_status": 14}),
    (GRPC, "denied"): (lambda keys: rejecting(grpc.StatusCode.UNAUTHENTICATED), False, {"error": "unauthenticated", "grpc_status": 16}),
    (HTTP, "overloaded"): (lambda keys: answering(503), False, {"error": "unavailable", "http_status": 503}),
    (HTTP, "denied"): (lambda keys: answering(401), False, {"error": "unauthenticated", "http_status": 401}),
}


def lines(g, exporter=None, message="Exporting failed."):
    found = [json.loads(line) for line in g.log().splitlines() if line.startswith("{")]
    return [line for line in found if message in line["msg"] and exporter in (None, line.get("otelcol.component.id"))]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of TLS 1.1
def test_the_cause_of_each_failure_is_named(build, keys):
    """All at once, by one gateway: each exporter has a server of its own. Nothing is repeated that a server has said. By
    address: localhost may have another one, where nobody listens."""
    expected, text = {}, ""
    with contextlib.ExitStack() as held:
        for (kind, name), (server, secure, fields) in CASES.items():
            port = "{port:metrics}"
            if server:
                s = server(keys)
                held.callback(s.stop)
                port = s.port
            exporter = "%s/%s" % (kind, name)
            place = "%s127.0.0.1:%s" % ("" if kind == GRPC else "https://" if secure else "http://", port)
            tls = "ca_file: '%s'" % (keys / "ca.pem") if secure else "insecure: true"
            text += EXPORTER % (exporter, place, "3s", tls)
            expected[exporter] = dict(fields, endpoint=place, attempts=1, queue_percent=0)
        with Gateway(build / "portcullis", HEAD.replace("EXPORTERS", ", ".join(expected)) + text) as g, \
                peers.Client(g.port["otlp"]) as client:
            client.send(make.request(1))
            g.until(lambda: {line["otelcol.component.id"] for line in lines(g)} == set(expected))
            expected["otlp_grpc/http1"]["endpoint"] = "127.0.0.1:%d" % g.port["metrics"]
            found = {line["otelcol.component.id"]: line for line in lines(g)}
            assert {name: {key: found[name].get(key) for key in fields} for name, fields in expected.items()} == expected
            for name, fields in expected.items():
                labels = {"exporter": name, "error": fields["error"], "cause": found[name].get("cause", "")}
                assert g.total("otelcol_exporter_last_error", **labels) == 1, labels
            assert "words-of-the-server" not in g.log() + g.metrics_text()
            g.process.kill()


DOWN = HEAD.replace("EXPORTERS", "otlp_grpc/down, otlp_grpc/up, otlp_http/down") + """
  otlp_grpc/down: {endpoint: '127.0.0.1:{port:down}', tls: {insecure: true}, sending_queue: {queue_size: 4}}
  otlp_http/down: {endpoint: 'http://127.0.0.1:{port:down}', sending_queue: {num_consumers: 1, queue_size: 20}}
  otlp_grpc/up: {endpoint: '127.0.0.1:%d', tls: {insecure: true}}
"""


def test_the_metrics_of_a_destination_say_how_it_is(build):
    with peers.Sink() as sink, Gateway(build / "portcullis", DOWN % sink.port) as g, peers.Client(g.port["otlp"]) as client:
        def gauge(name, exporter):
            [value] = [v for (n, labels), v in g.metrics().items() if n == "otelcol_exporter_" + name and ("exporter", exporter) in labels]
            return value

        assert [gauge("up", name) for name in ("otlp_grpc/down", "otlp_http/down", "otlp_grpc/up")] == [1, 1, 1]
        for seed in range(5):
            client.send(make.request(seed))
        g.until(lambda: gauge("up", "otlp_grpc/down") == gauge("up", "otlp_http/down") == 0)
        g.until(lambda: g.total("otelcol_ledger_out_samples", exporter="otlp_grpc/up") == 250)
        assert gauge("up", "otlp_grpc/up") == 1 and gauge("oldest_packet_age_seconds", "otlp_grpc/up") == 0
        assert gauge("queue_usage_ratio", "otlp_grpc/down") == 1 and gauge("queue_usage_ratio", "otlp_http/down") == 0.25
        ages = [gauge("oldest_packet_age_seconds", "otlp_http/down") for _ in range(2)]
        assert 0 < ages[0] < ages[1]
        assert gauge("last_success_age_seconds", "otlp_http/down") > gauge("last_success_age_seconds", "otlp_grpc/up")
        assert g.total("otelcol_exporter_failed_attempts", exporter="otlp_http/down", error="unavailable") > 0
        assert g.total("otelcol_exporter_last_error", exporter="otlp_http/down", cause="connection refused") == 1
        assert g.total("otelcol_exporter_last_error", exporter="otlp_grpc/up") == 0


@pytest.mark.parametrize("arguments, status", [([], 0), (["--strict-exit"], 3)])
def test_the_last_line_of_a_shutdown_that_lost_data_has_the_losses_of_each_destination(build, arguments, status):
    with peers.Sink() as sink, Gateway(build / "portcullis", DOWN % sink.port, arguments=arguments) as g, \
            peers.Client(g.port["otlp"]) as client:
        for seed in range(3):
            client.send(make.request(seed))
        g.until(lambda: g.total("otelcol_ledger_out_samples", exporter="otlp_grpc/up") == 150)
        assert g.stop() == status
        last = json.loads(g.log().splitlines()[-1])
        assert (last["level"], last["msg"], last["lost_samples"]) == ("error", "The shutdown lost data.", 300)
        assert {key: n for key, n in last.items() if key.startswith("exporters::")} == {
            "exporters::otlp_grpc/down": 150, "exporters::otlp_http/down": 150}


def test_a_shutdown_that_lost_nothing_ends_with_status_0(build):
    text = DOWN.replace("[otlp_grpc/down, otlp_grpc/up, otlp_http/down]", "[otlp_grpc/up]")
    with peers.Sink() as sink, Gateway(build / "portcullis", text % sink.port, arguments=["--strict-exit"]) as g, \
            peers.Client(g.port["otlp"]) as client:
        client.send(make.request(1))
        g.until(lambda: g.total("otelcol_ledger_out_samples") == 50)
        assert g.stop() == 0
        assert json.loads(g.log().splitlines()[-1])["msg"] == "Shutdown complete."


def test_a_shutdown_that_hangs_counts_what_it_loses(build, tmp_path):
    """A pipe that nobody empties: the write never ends."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    text = HEAD.replace("EXPORTERS", "file") + "  file: {path: '%s', format: proto}\n" % (tmp_path / "pipe")
    with Gateway(build / "portcullis", text, arguments=["--shutdown-timeout", "0s", "--strict-exit"]) as g, \
            peers.Client(g.port["otlp"]) as client:
        for seed in range(40):
            client.send(make.request(seed, samples=200))
        g.until(lambda: g.total("otelcol_exporter_in_flight_requests") > 0)
        assert g.stop() == 3
        last = json.loads(g.log().splitlines()[-1])
        report = json.loads([line for line in g.log().splitlines() if "Shutdown report" in line][0])
        assert last["msg"] == "The shutdown lost data." and "exiting anyway" in g.log()
        assert last["lost_samples"] == last["exporters::file"] == report["lost_samples"] > 0
    os.close(reader)
