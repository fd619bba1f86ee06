# SPDX-License-Identifier: Apache-2.0
"""Real brokers of Apache Kafka that let nobody in without TLS, a certificate or a password; writer and reader."""
import contextlib
import signal

import pytest

from harness import build as make
from harness import certificates, peers
from interop import process
from interop.gate import flushed
from interop.kafka_rig import DISK, back, front, merged, missing, permitted, topic, topics, until

SECURE = """
    tls: {ca_file: %s/ca.pem}
    auth: {sasl: {mechanism: %s, username: alice, password: %s}}"""


def requests(count=5):
    return [make.request(seed, samples=50) for seed in range(count)]


def keys(place):
    """The authority `ca` with the broker's certificate; another one."""
    for ca in "ca", "other":
        certificates.make_ca(place, ca)
    certificates.make_leaf(place, "ca", "broker", "/CN=localhost")
    (place / "broker.all").write_text((place / "broker.key").read_text() + (place / "broker.pem").read_text())
    return "ssl.keystore.type=PEM\nssl.keystore.location=%s/broker.all" % place


@contextlib.contextmanager
def guarded(kafka):
    """A broker that only lets alice in, over TLS; the directory of the certificates."""
    with process.directory() as place, kafka(protocol="SASL_SSL", more=keys(place)) as broker:
        yield broker, place


@pytest.fixture(scope="module")
def secure(kafka):
    with guarded(kafka) as found:
        yield found


@pytest.fixture(scope="module")
def old_secure(old_kafka):
    with guarded(old_kafka) as found:
        yield found


def goes_through(broker, name, lines):
    """What is written is read."""
    sent = requests()
    with peers.Sink() as sink, front(broker, topic(name), lines) as (g, client):
        for message in sent:
            client.send(message)
        flushed(g, "kafka")
        with back(broker, sink, topics(name), lines, "group_id: " + name):
            until(lambda: not missing(sink, permitted(sent)))
    assert merged(sink.received) == merged(sent)


def test_client_certificates(kafka):
    """The broker wants a certificate of its own CA; who has another one's is not let in."""
    with process.directory() as place:
        more = keys(place) + "\nssl.truststore.type=PEM\nssl.truststore.location=%s/ca.pem\nssl.client.auth=required" % place
        certificates.make_leaf(place, "ca", "client", "/CN=gateway")
        certificates.make_leaf(place, "other", "stranger", "/CN=gateway")
        lines = "tls: {ca_file: %s/ca.pem, cert_file: %s/NAME.pem, key_file: %s/NAME.key}" % (place, place, place)
        with kafka(protocol="SSL", more=more) as broker:
            goes_through(broker, "mutual", lines.replace("NAME", "client"))
            theirs = lines.replace("NAME", "stranger")
            with front(broker, topic("mutual"), theirs, timeout="2s") as (g, client), peers.Sink() as sink, \
                    back(broker, sink, topics("mutual"), theirs) as r:
                client.send(make.request(1))
                for gateway in g, r:
                    gateway.until(lambda g=gateway: '"cause": "client certificate missing or rejected"' in g.log())
                g.until(lambda: g.total("otelcol_exporter_retries", exporter="kafka"))
                assert not g.total("otelcol_ledger_out_samples") and not g.total("otelcol_ledger_dropped_samples")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_tls_and_sasl(kafka, secure, mechanism):
    """With SCRAM, an old librdkafka is rejected, and the log says so."""
    broker, place = secure
    lines = SECURE % (place, mechanism, "secret")
    if mechanism != "PLAIN":
        with front(broker, topic("scram"), lines, timeout="2s") as (g, client):
            if "SCRAM of this librdkafka" in g.log():
                client.send(make.request(1))
                g.until(lambda: g.total("otelcol_exporter_retries", exporter="kafka"))
                assert "_AUTHENTICATION" in g.log() and g.total("otelcol_ledger_dropped_samples") == 0
                return
    goes_through(broker, "secure." + mechanism, lines)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_tls_and_sasl_of_an_older_broker(old_kafka, old_secure, mechanism):
    broker, place = old_secure
    goes_through(broker, "secure." + mechanism, SECURE % (place, mechanism, "secret"))


# What is wrong, what `error` and `cause` say of it.
WRONG = {
    "password": (("secret", "wr0ng-secret"), "unauthenticated", "user or password rejected"),
    "mechanism": (("PLAIN", "SCRAM-SHA-512"), "unauthenticated", "SASL mechanism not offered"),
    "CA": (("ca.pem", "other.pem"), "tls", "unknown authority"),
}


@pytest.fixture(scope="module")
def plain_only(kafka):
    """The same broker, with one mechanism."""
    with process.directory() as place, kafka(protocol="SASL_SSL", more=keys(place) + "\nsasl.enabled.mechanisms=PLAIN") as broker:
        yield broker, place


@pytest.mark.parametrize("correction", ["reload", "restart"])
@pytest.mark.parametrize("what", WRONG)
def test_who_is_not_let_in_learns_why_and_loses_nothing(kafka, plain_only, what, correction):
    """Writer and reader have the cause in the log, count the failures, and keep the password secret. When it is corrected,
    everything that was acknowledged arrives from the queue on disk."""
    broker, place = plain_only
    change, error, cause = WRONG[what]
    right, name, sent = SECURE % (place, "PLAIN", "secret"), "%s.%s" % (what, correction), requests()
    wrong = right.replace(*change)
    with peers.Sink() as sink, front(broker, topic(name), wrong, queue=DISK, timeout="2s") as (g, client), \
            back(broker, sink, topics(name), wrong, "group_id: " + name, "ack: delivered") as r:
        for message in sent:
            client.send(message)
        g.until(lambda: g.total("otelcol_exporter_retries", exporter="kafka"))
        r.until(lambda: r.total("otelcol_kafka_receiver_client_errors", error=error))
        assert any('"error": "%s"' % error in line for line in g.log().splitlines() if "Will retry the request" in line)
        for gateway in g, r:
            assert cause in gateway.log() and "wr0ng" not in gateway.log()
        assert g.total("otelcol_ledger_queued_samples", exporter="kafka") == 250 and not g.total("otelcol_ledger_dropped_samples")
        for gateway in g, r:
            gateway.config.write_text(gateway.config.read_text().replace(wrong, right))
            if correction == "restart":
                gateway.stop()
                gateway.__enter__()
            else:
                gateway.process.send_signal(signal.SIGHUP)
        until(lambda: not missing(sink, permitted(sent)))
        flushed(g, "kafka")
        assert g.total("otelcol_ledger_dropped_samples", exporter="kafka") == 0
    assert merged(sink.received) == merged(sent)


def test_a_ca_that_is_replaced_lets_in_what_waits_in_memory(kafka, secure):
    broker, place = secure
    lines, sent = (SECURE % (place, "PLAIN", "secret")).replace("ca.pem", "trusted.pem"), requests()
    (place / "trusted.pem").write_bytes((place / "other.pem").read_bytes())
    with peers.Sink() as sink, front(broker, topic("trusted"), lines, timeout="2s") as (g, client), \
            back(broker, sink, topics("trusted"), lines, "group_id: trusted") as r:
        for message in sent:
            client.send(message)
        g.until(lambda: g.total("otelcol_exporter_retries", exporter="kafka"))
        r.until(lambda: r.total("otelcol_kafka_receiver_client_errors", error="tls"))
        (place / "trusted.pem").write_bytes((place / "ca.pem").read_bytes())
        for gateway in g, r:
            gateway.process.send_signal(signal.SIGHUP)
        until(lambda: not missing(sink, permitted(sent)))
        assert g.total("otelcol_ledger_dropped_samples", exporter="kafka") == 0
    assert merged(sink.received) == merged(sent)
