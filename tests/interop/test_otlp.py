# SPDX-License-Identifier: Apache-2.0
"""OTLP with the implementations of others on both sides: what was sent arrives, sample for sample, and in order as the
conformance checker has it. An independent reader resolves both."""
import json
from collections import Counter

import pytest

from harness import build as make
from harness import corpus, generations, otlp, peers, policy, profcheck
from interop import gate

KEYS = ["service.name", "thread.name", "region", "process.executable.name"]
POLICY = "allowlist: {keys: %s}" % KEYS
GATEWAY = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:{port:otlp}", max_recv_msg_size_mib: 64}
      http: {endpoint: "127.0.0.1:{port:http}"}
processors:
  %s
exporters:
  otlp_grpc: {endpoint: "127.0.0.1:{port:next}", tls: {insecure: true}, compression: COMPRESSION}
  file: {path: sent.binpb, format: proto} # the same packets, without a neighbour that writes them again
service:
  pipelines:
    profiles: {receivers: [otlp], processors: [PROCESSORS], exporters: [otlp_grpc, file]}
""" % POLICY


def bodies():
    """Requests as programs send them: made ones always, recorded ones where they are."""
    for seed in range(4):
        yield make.request(seed, samples=60, profiles=2, resources=3).SerializeToString()
    for path in corpus.files("otlp/*-v111.pb"):
        yield path.read_bytes()


BODIES = list(bodies())


def gateway(next, processors="", compression="gzip"):
    return gate.gateway(GATEWAY.replace("PROCESSORS", processors).replace("COMPRESSION", compression), next=next)


def in_order(g):
    """All that the gateway sent keeps the checker's rules, as far as its senders did."""
    gate.flushed(g, "file")
    sent = list(otlp.framed((g.directory / "sent.binpb").read_bytes()))
    assert len(sent) >= len(BODIES)
    return not profcheck.passed_on(BODIES, sent)


def total(requests):
    return sum((otlp.samples(data) for data in requests), Counter())


def permitted(requests):
    return policy.merged(p for data in requests for p in policy.Allowlist(KEYS).permit(otlp.profiles(data)))


# ---- Collector -> Portcullis -> Collector

FRONT = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}", max_recv_msg_size_mib: 64}}}}
processors: {memory_limiter: {check_interval: 1s, limit_mib: 1024}}
exporters: {otlp_grpc: {endpoint: "127.0.0.1:%d", tls: {insecure: true}, compression: %s}}
service: {pipelines: {profiles: {receivers: [otlp], processors: [memory_limiter], exporters: [otlp_grpc]}}}
"""
BACK = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}", max_recv_msg_size_mib: 64}}}}
exporters:
  otlp_grpc: {endpoint: "127.0.0.1:%d", tls: {insecure: true}}
  file: {path: received.jsonl}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [otlp_grpc, file]}}}
"""


def through_collectors(collector, compression, processors):
    """(what the gateway's neighbour behind it sent on, what that one wrote down) of all bodies."""
    with peers.Sink() as sink, collector(BACK % sink.port) as back, \
            gateway(back.port["otlp"], processors, compression) as g, \
            collector(FRONT % (g.port["otlp"], compression)) as front, peers.Client(front.port["otlp"]) as client:
        for body in BODIES:
            client.send(body)
        expected = sum(otlp.count(body) for body in BODIES)
        g.until(lambda: g.total("otelcol_ledger_in_samples") == expected)
        gate.flushed(g, "otlp_grpc")
        assert in_order(g)
        back.process.stop()  # which sends on what it has
        lines = (back.directory / "received.jsonl").read_text().splitlines()
        return sink.received, [otlp.parse_json(line) for line in lines]


@pytest.mark.parametrize("compression", ["gzip", "zstd", "snappy", "none"])
def test_between_two_collectors_every_sample_arrives(collector, compression):
    arrived, written = through_collectors(collector, compression, "")
    assert total(arrived) == total(BODIES)
    assert total(written) == total(BODIES)


def test_between_two_collectors_only_the_permitted_arrives(collector):
    arrived, _ = through_collectors(collector, "gzip", "allowlist")
    assert permitted(arrived) == permitted(BODIES)


# ---- Collector -> Portcullis, with each of its encodings and codings

SENDER = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}", max_recv_msg_size_mib: 64}}}}
exporters: {EXPORTER}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [NAME]}}}
"""
HTTP_CODINGS = ["none", "gzip", "zstd", "zlib", "deflate", "snappy", "x-snappy-framed", "lz4"]


def sent_by(collector, name, settings, port):
    """What arrives behind the gateway if this exporter sends all bodies to the port of that name."""
    with peers.Sink() as sink, gateway(sink.port) as g:
        exporter = "%s: {%s}" % (name, settings % g.port[port])
        with collector(SENDER.replace("EXPORTER", exporter).replace("NAME", name)) as front, \
                peers.Client(front.port["otlp"]) as client:
            for body in BODIES:
                client.send(body)
            expected = sum(otlp.count(body) for body in BODIES)
            g.until(lambda: g.total("otelcol_ledger_in_samples") == expected)
        gate.flushed(g, "otlp_grpc")
        assert g.total("otelcol_receiver_requests", outcome="success", transport="http" if port == "http" else "grpc") > 0
        assert in_order(g)
        return sink.received


@pytest.mark.parametrize("compression", HTTP_CODINGS)
@pytest.mark.parametrize("encoding", ["proto", "json"])
def test_from_a_collector_over_http_every_sample_arrives(collector, encoding, compression):
    arrived = sent_by(collector, "otlp_http", 'endpoint: "http://127.0.0.1:%%d", encoding: %s, compression: %s'
                      % (encoding, compression), "http")
    assert total(arrived) == total(BODIES)


@pytest.mark.parametrize("compression", ["snappy", "zstd"])
def test_from_a_collector_over_grpc_every_sample_arrives(collector, compression):
    arrived = sent_by(collector, "otlp_grpc", 'endpoint: "127.0.0.1:%%d", tls: {insecure: true}, compression: %s'
                      % compression, "otlp")
    assert total(arrived) == total(BODIES)


# ---- Portcullis -> Collector

TO_COLLECTOR = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}", max_recv_msg_size_mib: 64}}}
exporters: {EXPORTERS}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [IDS]}}}
"""
LAST = """
receivers:
  otlp:
    protocols:
      http: {endpoint: "127.0.0.1:{port:http}", max_request_body_size: %d}
      grpc: {endpoint: "127.0.0.1:{port:grpc}", max_recv_msg_size_mib: 64}
exporters: {file: {path: received.jsonl}}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [file]}}}
"""


def endpoint(exporter, port):
    if exporter.startswith("otlp_http"):
        return 'endpoint: "http://127.0.0.1:%d"' % port["http"]
    return 'endpoint: "127.0.0.1:%d", tls: {insecure: true}' % port["grpc"]


def to_collector(collector, exporters, bodies, largest=64 << 20):
    """What the Collector behind these exporters {ID: settings} wrote down, and the gateway's log."""
    with collector(LAST % largest) as back:
        settings = ", ".join("%s: {%s, %s}" % (name, endpoint(name, back.port), more) for name, more in exporters.items())
        text = TO_COLLECTOR.replace("EXPORTERS", settings).replace("IDS", ", ".join(exporters))
        with gate.gateway(text) as g, peers.Client(g.port["otlp"]) as client:
            for body in bodies:
                client.send(body)
            for name in exporters:
                gate.flushed(g, name)
            assert not g.total("otelcol_ledger_dropped_samples"), g.log()
            log = g.log()
        back.process.stop()
        return [otlp.parse_json(line) for line in (back.directory / "received.jsonl").read_text().splitlines()], log


def test_a_collector_reads_each_encoding_and_coding(collector):
    exporters = {"otlp_http/%s_%s" % (encoding, coding): "encoding: %s, compression: %s" % (encoding, coding)
                 for encoding in ("proto", "json") for coding in HTTP_CODINGS}
    written, _ = to_collector(collector, exporters, BODIES)
    assert total(written) == Counter({sample: count * len(exporters) for sample, count in total(BODIES).items()})


@pytest.mark.parametrize("name, settings", [
    ("otlp_grpc", "compression: gzip"), ("otlp_grpc", "compression: zstd"), ("otlp_http", "encoding: proto"), ("otlp_http", "encoding: json")])
def test_a_collector_reads_references(collector, name, settings):
    written, _ = to_collector(collector, {name: settings + ", references: index"}, BODIES)
    assert total(written) == total(BODIES)


@pytest.mark.parametrize("encoding", ["proto", "json"])
def test_a_request_that_the_collector_refuses_for_its_size_is_split(collector, encoding):
    """It answers 400 with a message, not 413."""
    body = make.request(1, samples=4000).SerializeToString()
    largest = {"proto": 60000, "json": 200000}[encoding]
    written, log = to_collector(collector, {"otlp_http": "compression: none, encoding: " + encoding}, [body], largest)
    assert "rejects requests of this size" in log
    assert len(written) > 1 and total(written) == total([body])


# ---- Portcullis -> an earlier Collector's model of profiles

WAYS = [("otlp_grpc", "compression: gzip"), ("otlp_grpc", "compression: none"), ("otlp_http", "encoding: proto, compression: none"),
        ("otlp_http", "encoding: json, compression: none")]


def today(text):
    """What it understood, as a request of today; 1.8 has other names in JSON."""
    return otlp.parse_json(json.dumps(generations.with_names_of_today(json.loads(text))))


@pytest.mark.parametrize("name, settings", WAYS)
def test_an_earlier_collector_understands_the_layout_of_its_release(pdata, name, settings):
    with pdata() as last:
        text = TO_COLLECTOR.replace("EXPORTERS", "%s: {%s, %s, schema: %s}" % (name, endpoint(name, last.port), settings, last.schema))
        with gate.gateway(text.replace("IDS", name)) as g, peers.Client(g.port["otlp"]) as client:
            for body in BODIES:
                client.send(body)
            gate.flushed(g, name)
            assert not g.total("otelcol_ledger_dropped_samples"), g.log()
        assert total(map(today, last.received())) == total(BODIES)


# ---- a foreign client -> Portcullis -> a foreign server

def through_foreign(foreign, processors, compression):
    """What the foreign server understands of what the foreign client sends: (the client's own message, the others)."""
    before = len(foreign.received())
    with gateway(foreign.port["otlp"], processors, compression) as g:
        answers = foreign.send(g.port["otlp"], BODIES, compression)
        assert answers == [{}] * (len(BODIES) + 1)
        gate.flushed(g, "otlp_grpc")
        assert in_order(g)
    arrived = foreign.received()[before:]
    own = [data for data in arrived if otlp.profiles(data)[0][1][0] == "by.hand"]
    assert len(own) == 1
    return own[0], [data for data in arrived if data != own[0]]


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_from_a_foreign_client_to_a_foreign_server_every_sample_arrives(foreign, compression):
    own, others = through_foreign(foreign, "", compression)
    assert total(others) == total(BODIES)
    assert profcheck.check(own) == []
    ((resource, scope, head, samples),) = otlp.profiles(own)
    assert dict(resource[0]) == {"service.name": ("string_value", "'foreign'")} and scope[0] == "by.hand"
    assert [s[3] for s in samples] == [(70,), (30,)]
    assert samples[0][2] == (bytes(range(16)), bytes(range(8)))


def test_from_a_foreign_client_to_a_foreign_server_only_the_permitted_arrives(foreign):
    _, others = through_foreign(foreign, "allowlist", "gzip")
    assert permitted(others) == permitted(BODIES)
