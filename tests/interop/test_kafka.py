# SPDX-License-Identifier: Apache-2.0
"""The exporter kafka and a real broker of Apache Kafka: each encoding and compression, its limit, and its restart."""
import contextlib

import pytest

from harness import build as make
from harness import otlp, peers, references
from harness.kafka import Reader
from interop import process
from interop.gate import BINARY, connect, flushed, gateway
from interop.kafka_rig import PEAK, peak

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
processors:
  allowlist: {keys: [service.name, region, thread.name, pid]}
exporters:
  kafka:
    brokers: [127.0.0.1:{port:broker}]
    timeout: 10s
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 0s}
    %s
service:
  pipelines:
    profiles: {receivers: [otlp], processors: [allowlist], exporters: [kafka]}
"""
KEPT = ("service.name", "region")


@contextlib.contextmanager
def sender(broker, *lines):
    with gateway(CONFIG % "\n    ".join(lines), broker=broker.port["broker"]) as g, peers.Client(g.port["otlp"]) as client:
        yield g, client


def permitted(message):
    """What the policy lets through: of the attributes of the resource, these."""
    kept = otlp.Request()
    kept.CopyFrom(message)
    for resource in kept.resource_profiles:
        attributes = [a for a in resource.resource.attributes if a.key in KEPT]
        del resource.resource.attributes[:]
        resource.resource.attributes.extend(attributes)
    return kept


def read_all(broker, topic, wanted):
    """The samples of all messages, once there are so many."""
    with Reader(BINARY.parent, broker.address, topic, partitions=2) as reader:
        reader.until(lambda messages: sum(map(references.count, messages)) >= wanted)
        return list(reader.messages)


def total(messages):
    return otlp.all_samples(references.read(m) for m in list(messages))


def test_a_question_about_a_topic_creates_none(kafka_broker):
    """The second one is answered as the first."""
    asked = "brokers: ['%s'], profiles: {topic: asked}" % kafka_broker.address
    never = asked + ", producer: {allow_auto_topic_creation: false}"
    assert [len(connect({"kafka": section})) for section in (asked, never, asked)] == [0, 1, 0]


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_a_reader_gets_is_what_was_sent_after_policy(kafka, kafka_broker, encoding, compression):
    topic = "%s.%s" % (encoding, compression)
    sent = [make.request(seed, samples=200) for seed in range(5)]
    with sender(kafka_broker, "profiles: {topic: %s, encoding: %s}" % (topic, encoding),
                "producer: {compression: %s}" % compression) as (g, client):
        for message in sent:
            client.send(message)
        flushed(g, "kafka")
        out = g.total("otelcol_ledger_out_samples", exporter="kafka")
    messages = read_all(kafka_broker, topic, out)
    assert total(messages) == otlp.all_samples(permitted(m) for m in sent)


def test_a_message_above_the_brokers_limit_is_split(kafka):
    """The client is allowed more than the broker takes, so the broker refuses first."""
    with kafka(more="message.max.bytes=100000") as broker, sender(broker, "profiles: {topic: small}") as (g, client):
        sent = make.request(1, samples=20000)
        client.send(sent)
        flushed(g, "kafka")
        assert g.total("otelcol_exporter_oversized_requests", exporter="kafka") > 0
        assert g.total("otelcol_ledger_dropped_samples", exporter="kafka") == 0
        messages = read_all(broker, "small", g.total("otelcol_ledger_out_samples", exporter="kafka"))
        assert peak(g) < PEAK
    assert len(messages) > 1
    assert total(messages) == otlp.samples(permitted(sent))


def test_a_broker_that_is_stopped_and_started_again_loses_nothing(kafka):
    """Each request is acknowledged to its sender; after the restart each of its samples is there at least once. The
    number of duplicates is at most that of the messages that were in flight."""
    with process.directory() as data:
        broker = kafka(data=data / "log")
        sent = [make.request(seed, samples=50) for seed in range(30)]
        wanted = otlp.all_samples(permitted(m) for m in sent)
        with sender(broker, "profiles: {topic: restart}") as (g, client):
            with broker:
                for message in sent[:10]:
                    client.send(message)
                g.until(lambda: g.total("otelcol_ledger_out_samples", exporter="kafka") > 0)
                for message in sent[10:15]:
                    client.send(message)
            for message in sent[15:20]:
                client.send(message)
            with broker:
                for message in sent[20:]:
                    client.send(message)
                flushed(g, "kafka")
                assert g.total("otelcol_ledger_dropped_samples", exporter="kafka") == 0
                with Reader(BINARY.parent, broker.address, "restart", partitions=2) as reader:
                    reader.until(lambda messages: not wanted - total(messages))
                    got = total(reader.messages)
                assert peak(g) < PEAK
        assert sum((got - wanted).values()) <= 10 * 50
