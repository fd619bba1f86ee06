# SPDX-License-Identifier: Apache-2.0
"""Connectors: what `validate` refuses; policy, acknowledgements, reload and the ledger across `forward`."""
import subprocess

import grpc
import pytest

from harness import build as make
from harness import ledger, otlp, peers
from harness.gateway import Gateway

FORWARD = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}}}, ack: ACK}
processors:
  allowlist/all: {keys: [thread.name, service.name, secret]}
  allowlist/few: {keys: [service.name]}
  batch: {timeout: 50ms, send_batch_size: 1000000}
exporters:
  otlp_grpc/own: {endpoint: 127.0.0.1:OWN, tls: {insecure: true}}
  otlp_grpc/one: {endpoint: 127.0.0.1:ONE, tls: {insecure: true}, QUEUE}
  otlp_grpc/two: {endpoint: 127.0.0.1:TWO, tls: {insecure: true}}
connectors: {forward: }
service:
  pipelines:
    profiles/in: {receivers: [otlp], processors: [allowlist/all], exporters: [forwardOUT]}
    profiles/one: {receivers: [forward], processors: [allowlist/few, batch], exporters: [otlp_grpc/one]}
    profiles/two: {receivers: [forward], processors: [batch], exporters: [otlp_grpc/two]}
"""
SECRET = "canary-over-a-connector"


def text(sinks, ack="enqueue", own=False, queue="retry_on_failure: {enabled: true}"):
    config = FORWARD.replace("ACK", ack).replace("OUT", ", otlp_grpc/own" if own else "").replace("QUEUE", queue)
    for name, sink in zip(("OWN", "ONE", "TWO"), sinks):
        config = config.replace(name, str(sink.port))
    return config


def request(seed, service="cart"):
    maker = make.Maker()
    rp = maker.resource({"service.name": service, "secret": SECRET})
    stack = maker.stack([maker.location([maker.function("main")])])
    profile = maker.profile(maker.scope(rp))
    for i in range(10):
        profile.samples.add(stack_index=stack, values=[seed * 10 + i + 1],
                            attribute_indices=[maker.attribute("thread.name", "t%d" % i)])
    return maker.message


def keys(data):
    return {a.key for r in otlp.parse(data).resource_profiles for a in r.resource.attributes}


def row(rows, pipeline, exporter=None):
    return rows[(("exporter", exporter), ("pipeline", pipeline)) if exporter else (("pipeline", pipeline),)]


@pytest.mark.threads
@pytest.mark.parametrize("own", [False, True])
def test_each_pipeline_behind_forward_has_its_own_policy(build, own):
    with peers.Sink() as a, peers.Sink() as b, peers.Sink() as c, Gateway(build / "portcullis", text((a, b, c), own=own)) as g:
        with peers.Client(g.port["grpc"]) as client:
            for seed in range(5):
                client.send(request(seed))
        g.until(lambda: g.total("otelcol_ledger_out_samples", exporter="otlp_grpc/one") and g.total(
            "otelcol_ledger_out_samples", exporter="otlp_grpc/two") == 50)
        assert all(SECRET.encode() not in data and keys(data) == {"service.name"} for data in b.received)
        assert all(SECRET.encode() in data for data in c.received)
        rows = ledger.rows(g.metrics())
        for labels, r in rows.items():
            assert sum(v if k in ledger.SOURCES else -v for k, v in r.items()) == 0, (labels, r)
        assert row(rows, "profiles/in", "forward")["out"] == row(rows, "profiles/one")["in"] == row(rows, "profiles/two")["in"] == 50
        assert row(rows, "profiles/in")["passed"] == row(rows, "profiles/in")["in"] == 50
        # without thread.name, the samples of a request are equal
        assert row(rows, "profiles/one")["merged"] >= 45 and row(rows, "profiles/two")["merged"] == 0
        assert not own or row(rows, "profiles/in", "otlp_grpc/own")["entered"] == 50


@pytest.mark.threads
def test_a_sender_waits_for_the_destinations_behind_a_connector(build):
    with peers.Sink() as a, peers.Sink() as b, peers.Sink() as c:
        with Gateway(build / "portcullis", text((a, b, c), ack="delivered", queue="retry_on_failure: {enabled: false}")) as g:
            with peers.Client(g.port["grpc"]) as client:
                client.send(request(1))
                assert len(b.received) == 1 and len(c.received) == 1
                b.answer = lambda data, context: context.abort(grpc.StatusCode.UNAVAILABLE, "no")
                with pytest.raises(grpc.RpcError):
                    client.send(request(2))


@pytest.mark.parametrize("own", [False, True])
def test_a_request_that_only_one_pipeline_behind_a_connector_took_is_counted_once(build, own):
    """The queue of one destination holds two packets, and it does not take them. The others take everything."""
    queue = "sending_queue: {queue_size: 2}, retry_on_failure: {initial_interval: 60s, max_interval: 60s}"
    with peers.Sink() as a, peers.Sink() as b, peers.Sink() as c:
        b.answer = lambda data, context: context.abort(grpc.StatusCode.UNAVAILABLE, "no")
        unbatched = text((a, b, c), own=own, queue=queue).replace(", batch]", "]").replace("processors: [batch], ", "")
        with Gateway(build / "portcullis", unbatched) as g, peers.Client(g.port["grpc"]) as client:
            for seed in range(5):
                client.send(request(seed))
                assert g.total("otelcol_receiver_incomplete_requests", receiver="otlp") == max(seed - 1, 0)
            g.until(lambda: len(c.received) == 5 and len(a.received) == 5 * own)
            assert g.total("otelcol_receiver_requests", outcome="success") == 5
            g.process.kill()


def test_a_pipeline_behind_a_connector_survives_a_reload(build):
    with peers.Sink() as a, peers.Sink() as b, peers.Sink() as c, Gateway(build / "portcullis", text((a, b, c))) as g:
        with peers.Client(g.port["grpc"]) as client:
            client.send(request(1))
            g.config.write_text(g.config.read_text().replace("keys: [service.name]", "keys: [service.name, secret]"))
            g.process.send_signal(1)
            g.until(lambda: "Configuration reloaded" in g.log())
            client.send(request(2))
            g.until(lambda: len(b.received) == 2)
        assert [SECRET.encode() in data for data in b.received] == [False, True]


def test_durable_needs_a_queue_on_disk_behind_the_connector(build):
    config = FORWARD.replace("ACK", "durable").replace("OUT", "").replace("QUEUE", "retry_on_failure: {enabled: true}")
    for word in ("{port:grpc}", "OWN", "ONE", "TWO"):
        config = config.replace(word, "1")
    status, error = validate(build, config)
    assert status == 1 and "`durable` needs a queue on disk at each required exporter; exporters::otlp_grpc/one" in error


CHECKED = """
receivers: {nop: }
processors: {batch: }
exporters: {nop/out: }
connectors: {CONNECTORS}
service: {pipelines: {PIPELINES}}
"""
WRONG = [
    ("c: ", "profiles: {receivers: [nop], exporters: [nop/out]}", 'connectors: unknown type: "c" for id: "c" (valid values: [forward'),
    ("forward: ", "profiles/a: {receivers: [nop], exporters: [forward]}, profiles/b: {receivers: [nop], exporters: [nop/out, forward]}",
     'failed to build pipelines: connector "forward" used as exporter in [profiles/a profiles/b] pipeline but not used in any '
     "supported receiver pipeline"),
    ("forward: ", "profiles: {receivers: [forward], exporters: [nop/out]}",
     'failed to build pipelines: connector "forward" used as receiver in [profiles] pipeline but not used in any supported '
     "exporter pipeline"),
    ("forward: ", "profiles: {receivers: [nop, forward], processors: [batch], exporters: [forward]}",
     'cycle detected: connector "forward" (profiles to profiles) -> processor "batch" in pipeline "profiles" -> connector '
     '"forward" (profiles to profiles)'),
    ("forward/1: , forward/2: ",
     "profiles/a: {receivers: [nop, forward/2], exporters: [forward/1]}, "
     "profiles/b: {receivers: [forward/1], exporters: [forward/2, nop/out]}",
     'cycle detected: connector "forward/2" (profiles to profiles) -> connector "forward/1" (profiles to profiles) -> connector '
     '"forward/2" (profiles to profiles)'),
    ("forward: {x: 1}", "profiles: {receivers: [nop], exporters: [nop/out]}", "'connectors::forward' has invalid keys: x"),
    ("forward: ", "profiles: {receivers: [nop], exporters: [forward/2]}", 'references exporter "forward/2" which is not configured'),
]


def validate(build, config):
    done = subprocess.run([build / "portcullis", "validate", "--config", "yaml:" + config], capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.mark.parametrize("connectors, pipelines, error", WRONG)
def test_validate_reports_what_cannot_connect(build, connectors, pipelines, error):
    status, found = validate(build, CHECKED.replace("CONNECTORS", connectors).replace("PIPELINES", pipelines))
    assert status == 1 and error in found


def test_an_unused_connector_is_only_checked(build):
    config = CHECKED.replace("CONNECTORS", "forward: ").replace("PIPELINES", "profiles: {receivers: [nop], exporters: [nop/out]}")
    status, found = validate(build, config)
    assert status == 0 and "forward" not in found
