# SPDX-License-Identifier: Apache-2.0
"""From gateway to gateway through a real broker of Apache Kafka, and with the Collector at either end. What is acknowledged
arrives, whatever ends, restarts or fills up; what arrives twice is counted."""
import contextlib
import os
import random
import signal
import time

import pytest

from harness import build as make
from harness import peers
from interop import process
from interop.gate import flushed
from interop.kafka_rig import (DISK, MEMORY, PEAK, Load, arrived, back, bodies, duplicates, front, merged, missing, peak, permitted, topic, topics,
                               until)


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_what_goes_through_kafka_comes_out_equal(kafka, kafka_broker, encoding):
    sent = list(bodies())
    name = "equal." + encoding
    with peers.Sink() as sink, front(kafka_broker, "profiles: {topic: %s, encoding: %s}" % (name, encoding)) as (g, client):
        for message in sent:
            client.send(message)
        flushed(g, "kafka")
        wanted = g.total("otelcol_ledger_out_samples", exporter="kafka")
        with back(kafka_broker, sink, topics(name, ", encoding: " + encoding)) as r:
            r.until(lambda: r.total("otelcol_ledger_out_samples", exporter="otlp_grpc") >= wanted, 90)
            assert r.balanced("profiles", "otlp_grpc")
            assert r.total("otelcol_kafka_receiver_messages", outcome="failed") == 0
    assert merged(sink.received) == merged(sent)


COLLECTOR_FRONT = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}", max_recv_msg_size_mib: 64}}}}
exporters:
  kafka: {brokers: ["127.0.0.1:%d"], profiles: {topic: %s, encoding: %s}, producer: {max_message_bytes: 16000000, required_acks: all}}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [kafka]}}}
"""
COLLECTOR_BACK = """
receivers:
  kafka: {brokers: ["127.0.0.1:%d"], profiles: {topics: [%s], encoding: %s}, initial_offset: earliest, max_fetch_size: 16000000}
exporters: {otlp_grpc: {endpoint: "127.0.0.1:%d", tls: {insecure: true}}}
service: {pipelines: {profiles: {receivers: [kafka], exporters: [otlp_grpc]}}}
"""


@pytest.fixture(scope="module")
def roomy(kafka):
    """A broker that takes the Collector's largest message, which it does not split."""
    with kafka(more="message.max.bytes=20000000") as broker:
        yield broker


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_the_collectors_exporter_is_understood(collector_kafka, kafka, roomy, encoding):
    sent, name = list(bodies()), "from.collector." + encoding
    with peers.Sink() as sink, collector_kafka(COLLECTOR_FRONT % (roomy.port["broker"], name, encoding)) as front_, \
            peers.Client(front_.port["otlp"]) as client, back(roomy, sink, topics(name, ", encoding: " + encoding)) as r:
        for message in sent:
            client.send(message)
        r.until(lambda: r.total("otelcol_kafka_receiver_messages", outcome="success") == len(sent), 60)
        flushed(r, "otlp_grpc")
        assert r.total("otelcol_kafka_receiver_messages", outcome="failed") == 0
    assert merged(sink.received) == merged(sent)


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_the_collectors_receiver_understands_us(collector_kafka, kafka, kafka_broker, encoding):
    sent, name = list(bodies()), "to.collector." + encoding
    with peers.Sink() as sink, front(kafka_broker, "profiles: {topic: %s, encoding: %s}" % (name, encoding)) as (g, client), \
            collector_kafka(COLLECTOR_BACK % (kafka_broker.port["broker"], name, encoding, sink.port)):
        for message in sent:
            client.send(message)
        flushed(g, "kafka")
        wanted = g.total("otelcol_ledger_out_samples", exporter="kafka")
        until(lambda: sum(arrived(sink).values()) >= wanted)
    assert merged(sink.received) == merged(sent)


@pytest.mark.parametrize("ack, queue", [("durable", DISK), ("delivered", MEMORY)])
def test_readers_that_come_go_and_are_killed_lose_nothing(kafka, kafka_broker, ack, queue):
    """Three readers of one group; every two seconds one of them ends, half of them by SIGKILL, and another comes. A killed one
    starts again only if what it has acknowledged is in its queue on disk."""
    rng, name = random.Random(1), "churn." + ack
    with peers.Sink() as sink, front(kafka_broker, topic(name)) as (g, client), contextlib.ExitStack() as held:
        def reader():
            return held.enter_context(back(kafka_broker, sink, topics(name), "ack: " + ack, "group_id: " + name, queue=queue))
        readers, survivors, kills = [reader() for _ in range(3)], [], 0
        load = Load(client)
        for round_ in range(6):
            time.sleep(2)
            victim = readers.pop(rng.randrange(len(readers)))
            if round_ % 2:
                assert victim.stop(signal.SIGTERM) == 0
            else:
                kills += 1
                victim.process.kill()
                victim.process.wait()
                if queue == DISK:
                    victim.__enter__()  # in its directory
                    survivors.append(victim)
            readers.append(reader())
        wanted = load.stop()
        flushed(g, "kafka")
        until(lambda: not missing(sink, wanted))
        for r in readers + survivors:
            flushed(r, "otlp_grpc")
        most = peak(*readers, *survivors)
    assert sum(wanted.values()) > 1000
    # of each kill, what was in flight and what was not committed yet
    assert duplicates(sink, wanted) <= kills * (64 + 200) * 20
    assert most < PEAK


@pytest.mark.parametrize("queue", [MEMORY, DISK], ids=["memory", "disk"])
def test_a_broker_that_is_killed_loses_nothing(kafka, queue):
    """With a queue on disk, the writer is killed too, while the broker is away."""
    with process.directory() as data, peers.Sink() as sink, contextlib.ExitStack() as held:
        broker = kafka(data=data / "log")
        held.enter_context(broker)
        g, client = held.enter_context(front(broker, topic("killed"), queue=queue))
        r = held.enter_context(back(broker, sink, topics("killed"), "ack: delivered"))
        load = Load(client)
        for _ in range(2):
            time.sleep(3)
            broker.process.kill()
            time.sleep(1)
            if queue == DISK:
                g.process.kill()
                g.process.wait()
                g.__enter__()
            broker.__enter__()
        time.sleep(2)
        wanted = load.stop()
        flushed(g, "kafka")
        until(lambda: not missing(sink, wanted))
        assert sum(wanted.values()) > 1000
        assert g.total("otelcol_ledger_dropped_samples", exporter="kafka") == 0
        r.until(lambda: r.total("otelcol_kafka_receiver_offset_lag") == 0, 60)
        flushed(r, "otlp_grpc")
        assert peak(g, r) < PEAK
        # of each kill, what the writer had in flight, and what the reader had in processing or not committed yet
        assert duplicates(sink, wanted) <= 2 * (30 + 64 + 200) * 20


def test_a_disk_that_is_full_loses_nothing(kafka):
    """The broker's log is on a disk of 24 MB, most of which something else has taken. The broker ends when it is full. When
    there is room again, it is started again, and everything that was acknowledged arrives."""
    if os.geteuid() or os.system("unshare -m true 2>/dev/null"):
        pytest.skip("needs a mount namespace")
    before = "mkdir -p %(data)s && mount -t tmpfs -o size=40m none %(data)s && head -c 30000000 /dev/zero >%(data)s/taken && "
    with process.directory() as place, peers.Sink() as sink, contextlib.ExitStack() as held:
        broker = held.enter_context(kafka(data=place / "log", before=before, again="rm %s/log/taken" % place, guard=["unshare", "-m"],
                                          more="log.segment.bytes=1048576"))
        g, client = held.enter_context(front(broker, topic("full")))
        sent = []
        end = time.monotonic() + 60
        while "No space left" not in broker.process.log(None) and time.monotonic() < end:
            message = make.request(len(sent), samples=3000, functions=3000)
            client.send(message)
            sent.append(message)
        assert "No space left" in broker.process.log(None)
        flushed(g, "kafka")
        assert g.total("otelcol_ledger_dropped_samples", exporter="kafka") == 0
        r = held.enter_context(back(broker, sink, topics("full"), "ack: delivered"))
        wanted = permitted(sent)
        until(lambda: not missing(sink, wanted))
        r.until(lambda: r.total("otelcol_kafka_receiver_offset_lag") == 0, 60)
        flushed(r, "otlp_grpc")
        assert peak(g, r) < 2 * PEAK
        # what the writer had in flight when the broker ended: at most one request for each of its consumers
        assert duplicates(sink, wanted) <= 10 * 3000
