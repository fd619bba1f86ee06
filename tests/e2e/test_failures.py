# SPDX-License-Identifier: Apache-2.0
"""What the log and the metrics say of a destination that cannot be reached, is the wrong one, or rejects everything."""
import contextlib
import json
import os

import pytest

from harness import build as make
from harness import parca, peers, preload, push
from harness.failures import CASES, endpoint, exporter_of, make_keys
from harness.gateway import Gateway, free_port
from harness.misconfigured import Mute, Resetting
from harness.otlphttp import OtlpSink

HEAD = """
receivers: {otlp: {protocols: {grpc: {endpoint: '127.0.0.1:{port:otlp}'}}}}
service:
  telemetry: {logs: {encoding: json}}
  pipelines: {profiles: {receivers: [otlp], exporters: [EXPORTERS]}}
exporters:
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return make_keys(tmp_path_factory.mktemp("keys"))


def lines(g, exporter=None, message="Exporting failed."):
    found = [json.loads(line) for line in g.log().splitlines() if line.startswith("{")]
    return [line for line in found if message in line["msg"] and exporter in (None, line.get("otelcol.component.id"))]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of TLS 1.1
@pytest.mark.parametrize("silent, timeout", [(True, "10s"), (False, "60s")])
def test_the_cause_of_each_failure_is_named(build, keys, silent, timeout):
    """All at once, by one gateway: each exporter has a server of its own. Nothing is repeated that a server has said. By
    address: localhost may have another one, where nobody listens. Servers that say nothing use up the timeout; for the many
    others, a slow machine needs more."""
    expected, text = {}, ""
    with contextlib.ExitStack() as held:
        for (kind, name), (server, secure, fields) in CASES.items():
            if (fields["error"] == "deadline_exceeded") != silent:
                continue
            s = server(keys)
            held.callback(s.stop)
            exporter, place = "%s/%s" % (kind, name), endpoint(kind, secure, s.port)
            text += exporter_of(exporter, place, keys, secure, timeout)
            expected[exporter] = dict(fields, endpoint=place, attempts=1, queue_percent=0)
        with Gateway(build / "portcullis", HEAD.replace("EXPORTERS", ", ".join(expected)) + text) as g, \
                peers.Client(g.port["otlp"]) as client:
            client.send(make.request(1))
            g.until(lambda: {line["otelcol.component.id"] for line in lines(g)} == set(expected))
            found = {line["otelcol.component.id"]: line for line in lines(g)}
            assert {name: {key: found[name].get(key) for key in fields} for name, fields in expected.items()} == expected
            for name, fields in expected.items():
                labels = {"exporter": name, "error": fields["error"], "cause": found[name].get("cause", "")}
                assert g.total("otelcol_exporter_last_error", **labels) == 1, labels
            assert "words-of-the-server" not in g.log() + g.metrics_text()
            g.process.kill()


TWO = HEAD.replace("EXPORTERS", "otlp_http, otlp_http/tls, otlp_grpc") + """
  otlp_http: {endpoint: 'http://two.test:%d'}
  otlp_http/tls: {endpoint: 'https://two.test:%d', tls: {insecure_skip_verify: true}}
  otlp_grpc: {endpoint: 'ipv4:%s', tls: {insecure: true}}
"""


@pytest.mark.parametrize("turned", [False, True])
def test_the_address_that_got_furthest_is_reported(build, tmp_path, turned):
    """Of two addresses, one refuses connections, and the other one resets them. In both orders."""
    (tmp_path / "addresses").write_text("\n".join(["127.0.0.1", "::1"][::-1 if turned else 1]))
    env = preload.env(build, "names", NAME="two.test", ADDRESSES=str(tmp_path / "addresses"))
    with contextlib.ExitStack() as held:
        at_once, later = Resetting(), Mute(reset=True)
        held.callback(at_once.stop)
        held.callback(later.stop)
        both = ",".join(["127.0.0.1:%d" % later.port, "127.0.0.2:%d" % later.port][::-1 if turned else 1])
        with Gateway(build / "portcullis", TWO % (at_once.port, at_once.port, both), env=env) as g, \
                peers.Client(g.port["otlp"]) as client:
            client.send(make.request(1))
            g.until(lambda: len(lines(g)) == 3)
            found = {line["otelcol.component.id"]: (line["error"], line["cause"], line["errno"]) for line in lines(g)}
            assert found == {"otlp_http": ("cut", "connection reset", "ECONNRESET"),
                             "otlp_http/tls": ("tls", "connection closed in the TLS handshake", "ECONNRESET"),
                             "otlp_grpc": ("unavailable", "connection reset", "ECONNRESET")}
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


def otlp_sink(port):
    return peers.Sink(port)


# exporter: (the destination at a port, the configuration, the endpoint in the log)
KINDS = {
    "otlp_grpc": (otlp_sink, "endpoint: '127.0.0.1:{0}', tls: {{insecure: true}}", "127.0.0.1:{0}"),
    "parca": (lambda port: peers.Sink(port, method=parca.METHOD), "endpoint: '127.0.0.1:{0}', tls: {{insecure: true}}", "127.0.0.1:{0}"),
    "otlp_http": (lambda port: OtlpSink(port=port), "endpoint: 'http://127.0.0.1:{0}'", "http://127.0.0.1:{0}"),
    "pyroscope": (lambda port: push.PushSink(port=port), "endpoint: 'http://127.0.0.1:{0}', limits: {{max_age: 300000h}}", "http://127.0.0.1:{0}"),
    "load_balancing": (otlp_sink, "protocol: {{otlp: {{tls: {{insecure: true}}}}}}, resolver: {{static: {{hostnames: ['127.0.0.1:{0}']}}}}", "127.0.0.1:{0}"),
    "file": (None, "directory: '{1}', format: pprof", None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_outage_begins_and_ends_with_a_line(build, tmp_path, kind):
    """Once a minute while it lasts: tests/pipeline/delivery/test_outage.c. Kafka: tests/exporters/test_kafka.py."""
    server, section, place = KINDS[kind]
    port, directory = free_port(), tmp_path / "directory"
    directory.mkdir()
    text = HEAD.replace("EXPORTERS", kind) + "  %s: {%s, retry_on_failure: {initial_interval: 100ms, max_interval: 100ms}}\n" % (
        kind, section.format(port, directory))
    with Gateway(build / "portcullis", text) as g, peers.Client(g.port["otlp"]) as client:
        directory.rmdir()
        directory.write_text("no directory, until it is gone")
        client.send(make.request(1))
        g.until(lambda: lines(g))
        [line] = lines(g)
        assert (line.get("endpoint"), line["attempts"], line["waiting_items"], line["queue_percent"]) == (
            place and place.format(port), 1, 50, 0)
        directory.unlink()
        with server(port) if server else contextlib.nullcontext():
            g.until(lambda: lines(g, message="Exporting works again."))
            [end] = lines(g, message="Exporting works again.")
            assert end["failed_attempts"] > 0 and end["failed_for_s"] >= 0 and end["dropped_items"] == 0
            g.until(lambda: g.total("otelcol_ledger_out_samples") == 50)
