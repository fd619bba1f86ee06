# SPDX-License-Identifier: Apache-2.0
"""From gateway to gateway through a real broker of Apache Kafka, and with the Collector at either end. What is acknowledged
arrives, whatever ends, restarts or fills up; what arrives twice is counted."""
import contextlib
import itertools
import os
import random
import signal
import threading
import time
from collections import Counter

import grpc
import pytest

from harness import build as make
from harness import certificates, corpus, otlp, peers, policy
from interop import process
from interop.gate import flushed, gateway

KEYS = ["service.name", "region", "thread.name", "pid", "process.executable.name"]

FRONT = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 64}}}
processors:
  allowlist: {keys: [service.name, region, thread.name, pid, process.executable.name]}
exporters:
  kafka:
    brokers: [127.0.0.1:{port:broker}]
    timeout: 10s
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 0s}
    sending_queue: {queue_size: 10000}
    %s
service: {pipelines: {profiles: {receivers: [otlp], processors: [allowlist], exporters: [kafka]}}}
"""
BACK = """
receivers:
  kafka:
    brokers: [127.0.0.1:{port:broker}]
    initial_offset: earliest
    session_timeout: 6s
    autocommit: {interval: 200ms}
    metadata: {refresh_interval: 1s}
    max_message_bytes: 67108864
    %s
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:{port:sink}
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 0s}
    sending_queue: {%s}
extensions: {file_storage: {directory: queue, create_directory: true}}
service:
  extensions: [file_storage]
  pipelines: {profiles: {receivers: [kafka], exporters: [otlp_grpc]}}
"""
DURABLE = "storage: file_storage"


@contextlib.contextmanager
def front(broker, *lines):
    with gateway(FRONT % "\n    ".join(lines), broker=broker.port["broker"]) as g, peers.Client(g.port["otlp"]) as client:
        yield g, client


def back(broker, sink, *lines, queue=""):
    return gateway(BACK % ("\n    ".join(lines), queue), broker=broker.port["broker"], sink=sink.port)


def topic(name):
    return "profiles: {topic: %s}" % name


def topics(name, more=""):
    return "profiles: {topics: [%s]%s}" % (name, more)


def bodies():
    for seed in range(20):
        yield make.request(seed, samples=100, resources=2)
    for path in corpus.files("otlp/*-v111.pb"):
        yield otlp.parse(path.read_bytes())


def counted(profiles):
    """How often each value of each sample is there, whatever requests they came in."""
    found = Counter()
    for resource, scope, head, samples in profiles:
        for stack, attributes, link, values, timestamps in samples:
            found[resource, scope, head, stack, attributes, link, tuple(values), tuple(timestamps)] += 1
    return found


def permitted(requests):
    return counted(p for data in requests for p in policy.Allowlist(KEYS).permit(otlp.profiles(data)))


def merged(requests):
    """What is permitted, the same before and after equal samples are merged."""
    return policy.merged(p for data in requests for p in policy.Allowlist(KEYS).permit(otlp.profiles(data)))


def arrived(sink):
    return counted(p for data in list(sink.received) for p in otlp.profiles(data))


def missing(sink, wanted):
    """What was acknowledged and has not arrived."""
    return wanted - arrived(sink)


def until(condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


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


class Load(threading.Thread):
    """Sends requests until it is stopped, and remembers those that were acknowledged."""

    def __init__(self, client):
        super().__init__()
        self.client, self.acknowledged, self.over = client, [], threading.Event()
        self.start()

    def run(self):
        for seed in itertools.count(1):
            if self.over.is_set():
                return
            message = make.request(seed, samples=20)
            with contextlib.suppress(grpc.RpcError):
                self.client.send(message)
                self.acknowledged.append(message)
            time.sleep(0.01)

    def stop(self):
        self.over.set()
        self.join()
        return permitted(self.acknowledged)


def duplicates(sink, wanted):
    return sum((arrived(sink) - wanted).values())


def test_readers_that_come_go_and_are_killed_lose_nothing(kafka, kafka_broker):
    """Three readers of one group; every two seconds one of them ends, half of them by SIGKILL, and another comes."""
    rng = random.Random(1)
    with peers.Sink() as sink, front(kafka_broker, topic("churn")) as (g, client), contextlib.ExitStack() as held:
        def reader():
            return held.enter_context(back(kafka_broker, sink, topics("churn"), "ack: durable", queue=DURABLE))
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
                victim.__enter__()  # again, in its directory: its queue on disk has what it acknowledged
                survivors.append(victim)
            readers.append(reader())
        wanted = load.stop()
        flushed(g, "kafka")
        until(lambda: not missing(sink, wanted))
        peak = max(r.rss()["VmHWM"] for r in readers + survivors)
    assert sum(wanted.values()) > 1000
    # of each kill, what was in flight and what was not committed yet
    assert duplicates(sink, wanted) <= kills * (64 + 200) * 20
    assert peak < 256 << 20


def test_a_broker_that_is_killed_loses_nothing(kafka):
    with process.directory() as data, peers.Sink() as sink, contextlib.ExitStack() as held:
        broker = kafka(data=data / "log")
        held.enter_context(broker)
        g, client = held.enter_context(front(broker, topic("killed")))
        r = held.enter_context(back(broker, sink, topics("killed"), "ack: delivered"))
        load = Load(client)
        for _ in range(2):
            time.sleep(3)
            broker.process.kill()
            time.sleep(1)
            broker.__enter__()
        time.sleep(2)
        wanted = load.stop()
        flushed(g, "kafka")
        until(lambda: not missing(sink, wanted))
        assert g.total("otelcol_ledger_dropped_samples", exporter="kafka") == 0
        r.until(lambda: r.total("otelcol_kafka_receiver_offset_lag") == 0, 60)


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
        assert r.balanced("profiles", "otlp_grpc")


def test_client_certificates(kafka):
    """The broker wants a certificate of its own CA; who has another one's is not let in."""
    with process.directory() as place:
        for ca in "ca", "other":
            certificates.make_ca(place, ca)
        certificates.make_leaf(place, "ca", "broker", "/CN=localhost")
        certificates.make_leaf(place, "ca", "client", "/CN=gateway")
        certificates.make_leaf(place, "other", "stranger", "/CN=gateway")
        (place / "broker.all").write_text((place / "broker.key").read_text() + (place / "broker.pem").read_text())
        more = "ssl.keystore.type=PEM\nssl.keystore.location=%s/broker.all\nssl.truststore.type=PEM\n" \
               "ssl.truststore.location=%s/ca.pem\nssl.client.auth=required" % (place, place)
        lines = "tls: {ca_file: %s/ca.pem, cert_file: %s/NAME.pem, key_file: %s/NAME.key}" % (place, place, place)
        with kafka(protocol="SSL", more=more) as broker, peers.Sink() as sink:
            sent = [make.request(seed, samples=50) for seed in range(5)]
            ours, theirs = lines.replace("NAME", "client"), lines.replace("NAME", "stranger")
            with front(broker, topic("mutual"), ours) as (g, client), back(broker, sink, topics("mutual"), ours):
                for message in sent:
                    client.send(message)
                until(lambda: not missing(sink, permitted(sent)))
            with front(broker, topic("mutual"), theirs) as (g, client):
                client.send(make.request(1))
                g.until(lambda: "_SSL" in g.log() or "_TRANSPORT" in g.log())
                assert g.total("otelcol_ledger_out_samples") == 0


SECURE = """
    tls: {ca_file: %s/ca.pem}
    auth: {sasl: {mechanism: %s, username: alice, password: %s}}"""


@pytest.fixture(scope="module")
def secure(kafka):
    """A broker that only lets alice in, over TLS."""
    with process.directory() as place:
        certificates.make_ca(place, "ca")
        certificates.make_leaf(place, "ca", "broker", "/CN=localhost")
        (place / "broker.all").write_text((place / "broker.key").read_text() + (place / "broker.pem").read_text())
        more = "ssl.keystore.type=PEM\nssl.keystore.location=%s/broker.all" % place
        with kafka(protocol="SASL_SSL", more=more) as broker:
            yield broker, place


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_tls_and_sasl(kafka, secure, mechanism):
    """With SCRAM, an old librdkafka is rejected, and the log says so."""
    broker, place = secure
    lines = SECURE % (place, mechanism, "secret")
    name = "secure." + mechanism
    with front(broker, topic(name), lines) as (g, client):
        if "SCRAM of this librdkafka" in g.log():
            client.send(make.request(1))
            g.until(lambda: "_AUTHENTICATION" in g.log())
            assert "SCRAM" in mechanism and g.total("otelcol_ledger_dropped_samples") == 0
            return
    with peers.Sink() as sink, front(broker, topic(name), lines) as (g, client):
        sent = [make.request(seed, samples=50) for seed in range(5)]
        for message in sent:
            client.send(message)
        flushed(g, "kafka")
        with back(broker, sink, topics(name), lines):
            until(lambda: not missing(sink, permitted(sent)))
    assert merged(sink.received) == merged(sent)


def test_who_is_not_let_in_learns_it_and_the_password_stays_secret(kafka, secure):
    broker, place = secure
    lines = SECURE % (place, "SCRAM-SHA-512", "wr0ng-secret")
    with peers.Sink() as sink, front(broker, topic("secure"), lines) as (g, client), back(broker, sink, topics("secure"), lines) as r:
        client.send(make.request(1))
        for gateway_ in g, r:
            gateway_.until(lambda g=gateway_: "_AUTHENTICATION" in g.log())
            assert "wr0ng" not in gateway_.log()
        assert g.total("otelcol_ledger_dropped_samples", exporter="kafka") == 0


def test_a_certificate_of_somebody_else_is_not_trusted(kafka, secure):
    broker, place = secure
    certificates.make_ca(place, "other")
    lines = (SECURE % (place, "PLAIN", "secret")).replace("ca.pem", "other.pem")
    with front(broker, topic("secure"), lines) as (g, client):
        client.send(make.request(1))
        g.until(lambda: "_SSL" in g.log())
        assert g.total("otelcol_ledger_dropped_samples", exporter="kafka") == 0
