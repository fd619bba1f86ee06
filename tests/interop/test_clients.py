# SPDX-License-Identifier: Apache-2.0
"""The gRPC port with clients of other people: each sends what profilers send, all of it arrives, and no bound of the
server's takes one of them for an attacker. (The Collector, which is grpc-go too, is in test_otlp.py.)"""
import concurrent.futures
import contextlib
from collections import Counter

import pytest
from google.protobuf.json_format import MessageToJson

from harness import build as make
from harness import certificates, h2, otlp
from interop import gate, partners, process
from interop.clients import HEALTH
from interop.relay import Relay

GATEWAY = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:plain}", KEEPALIVE}}}
  otlp/tls: {protocols: {grpc: {endpoint: "127.0.0.1:{port:tls}", tls: {SERVER}}}}
  otlp/mtls: {protocols: {grpc: {endpoint: "127.0.0.1:{port:mtls}", tls: {SERVER, client_ca_file: PLACE/ca.pem}}}}
exporters:
  file: {path: sent.binpb, format: proto, sending_queue: {queue_size: 100000}}
service:
  pipelines:
    profiles: {receivers: [otlp, otlp/tls, otlp/mtls], exporters: [file]}
"""
SERVER = "cert_file: PLACE/server.pem, key_file: PLACE/server.key"
KEEPALIVE = "keepalive: {enforcement_policy: {min_time: 9s, permit_without_stream: true}}"
KEEPALIVE_S, REST_S = 10, 24  # with two pings

MESSAGES = [make.request(seed, samples=20).SerializeToString() for seed in range(50)]
LARGE = make.request(7, samples=170000, functions=3000).SerializeToString()
SERVING = (0, b"\x08\x01")
TAKEN = (0, b"")


@pytest.fixture(scope="module")
def place():
    with process.directory() as directory:
        certificates.make_ca(directory, "ca")
        certificates.make_leaf(directory, "ca", "server", "/CN=localhost")
        certificates.make_leaf(directory, "ca", "agent", "/CN=agent")
        yield directory


@contextlib.contextmanager
def running(place):
    text = GATEWAY.replace("SERVER", SERVER).replace("KEEPALIVE", KEEPALIVE).replace("PLACE", str(place))
    with gate.gateway(text) as g:
        yield g


@pytest.fixture
def gateway(place):
    with running(place) as g:
        yield g
        assert closed(g) == {}, "a client was taken for an attacker"


def closed(g):
    """{reason: connections}"""
    return {dict(labels)["reason"]: count for (name, labels), count in g.metrics().items()
            if name == "otelcol_http2_server_closed_connections" and count}


def sent(g):
    gate.flushed(g, "file")
    return list(otlp.framed((g.directory / "sent.binpb").read_bytes()))


def total(requests):
    return sum((otlp.samples(data) for data in requests), Counter())


EXPECTED = total(MESSAGES)


# ---- clients of gRPC

TLS = {"ca": "ca.pem"}
MTLS = dict(TLS, cert="agent.pem", key="agent.key")


@pytest.mark.parametrize("port, files, compression", [
    ("plain", {}, {}), ("plain", {}, {"gzip": 1}), ("tls", TLS, {}), ("mtls", MTLS, {"gzip": 1})],
    ids=["plain", "gzip", "tls", "mtls-gzip"])
def test_all_that_a_client_sends_arrives_and_it_hears_of_the_health(gateway, place, client, port, files, compression):
    security = {name: place / file for name, file in files.items()}
    answers = client.export(gateway.port[port], MESSAGES, calls=8, deadline=30, **security, **compression)
    assert answers == {TAKEN: len(MESSAGES), SERVING: 1}
    assert total(sent(gateway)) == EXPECTED


def test_large_messages_arrive(gateway, place, client):
    assert 3_000_000 < len(LARGE) < 4 << 20
    assert client.export(gateway.port["tls"], [LARGE] * 2, calls=2, ca=place / "ca.pem") == {TAKEN: 2, SERVING: 1}
    gate.flushed(gateway, "file")
    assert gateway.total("otelcol_ledger_out_samples") == 2 * otlp.count(LARGE)


def test_without_a_certificate_nobody_passes_mtls(gateway, place, client):
    answers = client.export(gateway.port["mtls"], MESSAGES[:1], health=False, ca=place / "ca.pem", deadline=5)
    assert set(answers) <= {(14, b""), (4, b"")} and sum(answers.values()) == 1
    assert gateway.total("otelcol_ledger_in_samples") == 0


# How many calls a client makes as fast as it can, eight at once. grpc-go sends a ping with replies, to learn how much it
# may have under way.
MANY = {"grpc-go": 20000, "grpc-java": 4000, "grpc-js": 4000, "grpcio": 4000}


def test_thousands_of_calls_on_one_connection(gateway, client):
    rounds = MANY[client.name] // len(MESSAGES)
    answers = client.export(gateway.port["plain"], MESSAGES, health=False, calls=8, rounds=rounds)
    assert answers == {TAKEN: MANY[client.name]}
    gate.flushed(gateway, "file")
    assert gateway.total("otelcol_ledger_out_samples") == rounds * sum(EXPECTED.values())


def test_the_pings_that_come_with_calls_are_no_attack(gateway, client):
    with Relay(gateway.port["plain"]) as relay:
        assert client.export(relay.port, MESSAGES, health=False, calls=8, rounds=20) == {TAKEN: 20 * len(MESSAGES)}
        assert len(relay.frames) == 1 and relay.sent(h2.HEADERS) == 20 * len(MESSAGES)
        if client.name == "grpc-go":
            assert relay.sent(h2.PING) > 50
        assert closed(gateway) == {}


class Rest:
    """Every client sends, rests while it pings, and sends again, all of them at once, while the other tests run."""

    def __init__(self, place, held):
        self.gateway = held.enter_context(running(place))
        pool = held.enter_context(concurrent.futures.ThreadPoolExecutor(4))
        self.relays, self.answers = {}, {}
        for client in partners.versions("client"):
            with contextlib.suppress(process.Absent):
                client.installed()
                relay = self.relays[client.name] = held.enter_context(Relay(self.gateway.port["plain"]))
                self.answers[client.name] = pool.submit(client().export, relay.port, MESSAGES[:2], rounds=2, pause=REST_S,
                                                        keepalive=KEEPALIVE_S, deadline=60)


@pytest.fixture(scope="module", autouse=True)
def rest(place):
    with contextlib.ExitStack() as held:
        yield Rest(place, held)


# ---- grpcurl, and clients of HTTP/2

def test_grpcurl_sends_and_asks_for_the_health(gateway, place, grpcurl):
    message = make.request(1, samples=20)
    for port, *security in (("plain",), ("mtls", "-cacert", place / "ca.pem", "-cert", place / "agent.pem", "-key",
                                         place / "agent.key")):
        assert "{" in grpcurl.call(gateway.port[port], otlp.METHOD, MessageToJson(message), "otlp_collector.proto", *security)
        assert '"status": "SERVING"' in grpcurl.call(gateway.port[port], HEALTH, "{}", "interop_health.proto", *security)
    assert total(sent(gateway)) == total([message.SerializeToString()] * 2)


@pytest.mark.parametrize("scheme, port", [("http", "plain"), ("https", "tls")])
def test_nghttp(gateway, nghttp2, scheme, port):
    assert "grpc-status: 0" in nghttp2.export(gateway.port[port], MESSAGES[0], scheme)
    assert total(sent(gateway)) == total(MESSAGES[:1])


@pytest.mark.parametrize("scheme, port, connections, calls", [
    ("http", "plain", 1, 1), ("http", "plain", 1, 100), ("http", "plain", 64, 1), ("https", "tls", 8, 8)])
def test_h2load(gateway, nghttp2, scheme, port, connections, calls):
    assert nghttp2.load(gateway.port[port], MESSAGES[0], 2000, connections, calls, scheme) == 2000
    gate.flushed(gateway, "file")
    assert gateway.total("otelcol_ledger_out_samples") == 2000 * otlp.count(MESSAGES[0])


# ---- h2spec

GATHER_S = .03

# What it marks; docs/GRPC.md explains it.
CLOSED = "a stream that has ended is forgotten; what still comes for it is dropped"
OTHERWISE = {
    ("http2/5.1", "closed: Sends a DATA frame after sending RST_STREAM frame"): CLOSED,
    ("http2/5.1", "closed: Sends a HEADERS frame after sending RST_STREAM frame"): CLOSED,
    ("http2/5.1", "closed: Sends a DATA frame"): CLOSED,
    ("http2/5.1", "closed: Sends a HEADERS frame"): CLOSED,
    ("http2/5.1.1", "Sends stream identifier that is numerically smaller than previous"): CLOSED,
    ("http2/5.3.1", "Sends PRIORITY frame that depend on itself"): "priorities are not used: RFC 9113, section 5.3.2",
}


def failed(found):
    assert len(found) > 140
    return {key for key, passed in found.items() if not passed}


def test_h2spec(place, h2spec, record_property):
    """Its requests have no media type and are answered before their end. What follows on the same stream is to be judged, not
    dropped with a stream that has ended: so it arrives together with the request. In plain and over TLS at once, since both
    spend their time waiting."""
    with running(place) as g, Relay(g.port["plain"], GATHER_S) as plain, Relay(g.port["tls"], GATHER_S) as tls, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(h2spec.judge, plain.port), pool.submit(h2spec.judge, tls.port, "-t", "-k")]
        assert [failed(run.result()) for run in runs] == [set(OTHERWISE)] * 2
    for (section, test), why in OTHERWISE.items():
        record_property("otherwise", "%s, %s: %s" % (section, test, why))


# ---- in the end: they have rested long enough

def test_keepalive_pings_keep_the_connection(rest, client):
    assert rest.answers[client.name].result() == {TAKEN: 4, SERVING: 2}
    relay = rest.relays[client.name]
    assert len(relay.frames) == 1 and relay.sent(h2.PING) >= 2
    assert closed(rest.gateway) == {}
