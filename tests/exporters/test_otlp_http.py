# SPDX-License-Identifier: Apache-2.0
"""The exporter otlp_http against a server that answers as a test says: what a request is, and what becomes of each answer."""
import contextlib
import itertools
import json
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from harness import build as make
from harness import otlp, peers
from harness.certificates import make_ca, make_leaf
from harness.gateway import Gateway
from harness.listener import Listener
from harness.otlphttp import JSON, OK, PATH, PROTO, OtlpSink, json_reply
from harness.proxy import join
from harness.push import reply

CANARY = "words-of-the-server"
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  otlp_http:
    endpoint: %s
    retry_on_failure: {initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 30s}
    %s
%s
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [%s]}
"""


class Rig:
    """A gateway before a sink, with an exporter of these lines, and more exporters if there are any: {ID: lines}."""

    def __init__(self, build, sink, *lines, endpoint=None, more=None):
        others = "".join("  %s: {%s}\n" % item for item in (more or {}).items())
        self.ids = ["otlp_http", *(more or {})]
        text = CONFIG % (endpoint or "http://127.0.0.1:%d" % sink.port, "\n    ".join(lines), others, ", ".join(self.ids))
        self.gateway, self.sink = Gateway(build / "portcullis", text), sink

    def __enter__(self):
        self.gateway.__enter__()
        self.client = peers.Client(self.gateway.port["otlp"])
        return self

    def __exit__(self, *failure):
        self.client.close()
        self.gateway.__exit__(*failure)

    def send(self, seed=1, samples=10):
        message = make.request(seed, samples=samples)
        self.client.send(message)
        return message

    def total(self, what, exporter="otlp_http", **labels):
        return self.gateway.total("otelcol_ledger_%s_samples" % what, exporter=exporter, **labels)

    def settle(self, samples):
        """Until so many samples are out or dropped at each exporter; nothing may be missing from the ledger."""
        for exporter in self.ids:
            self.gateway.until(lambda: self.total("out", exporter) + self.total("dropped", exporter) == samples)
            assert self.gateway.balanced("profiles", exporter)

    def forms(self):
        return {dict(labels)["form"]: int(n) for (name, labels), n in self.gateway.metrics().items()
                if name == "otelcol_packet_encodings"}


def test_a_request_is_what_the_collector_sends(build):
    with OtlpSink() as sink, Rig(build, sink, "headers: {X-Tenant: shop}") as rig:
        sent = rig.send()
        rig.settle(10)
        (request,) = sink.taken
        assert request.path == PATH
        assert request.headers["Content-Type"] == PROTO and request.headers["Content-Encoding"] == "gzip"
        assert request.headers["User-Agent"].startswith("Portcullis/") and request.headers["X-Tenant"] == "shop"
        assert int(request.headers["Content-Length"]) == request.size
        assert "Expect" not in request.headers and "Connection" not in request.headers
        assert request.samples == otlp.samples(sent)
        assert rig.gateway.total("otelcol_exporter_sent_profile_samples", exporter="otlp_http", server_address="127.0.0.1",
                                 server_port=str(sink.port)) == 10


COMPRESSIONS = ["gzip", "zstd", "zlib", "deflate", "snappy", "x-snappy-framed", "lz4", "none", '""']
LEVELS = {"gzip": [-2, -1, 0, 1, 6, 9], "zlib": [9], "deflate": [9], "zstd": [-5, 1, 3, 11, 100]}


def test_each_encoding_and_compression_is_what_its_headers_say(build):
    """All in one program, so that all share one packet; the path tells them apart."""
    with OtlpSink() as sink:
        more = {}
        for encoding, compression in itertools.product(["proto", "json"], COMPRESSIONS):
            for level in LEVELS.get(compression, [None]):
                name = "%s/%s/%s" % (encoding, compression.strip('"') or "empty", level)
                lines = "profiles_endpoint: 'http://127.0.0.1:%d/%s', encoding: %s, compression: %s" % (
                    sink.port, name, encoding, compression)
                more["otlp_http/" + name.replace("/", "_")] = lines + (
                    ", compression_params: {level: %d}" % level if level is not None else "")
        with Rig(build, sink, "compression: none", more=more) as rig:
            sent = rig.send(samples=3000)
            rig.settle(3000)
            expected = otlp.samples(sent)
            assert len(sink.taken) == len(more) + 1
            sizes = {}
            for request in sink.taken:
                if request.path == PATH:
                    continue
                encoding, compression, level = request.path[1:].split("/")
                assert request.headers["Content-Type"] == {"proto": PROTO, "json": JSON}[encoding]
                wanted = None if compression in ("none", "empty") else compression
                assert request.headers["Content-Encoding"] == wanted
                assert request.samples == expected, request.path
                sizes[encoding, compression, level] = request.size
            assert len(sizes) == len(more)
            for encoding in "proto", "json":
                assert all(size < sizes[encoding, "none", "None"] for (e, c, _), size in sizes.items()
                           if e == encoding and c not in ("none", "empty"))
                assert sizes[encoding, "gzip", "9"] < sizes[encoding, "gzip", "1"] == sizes[encoding, "gzip", "0"]
                assert sizes[encoding, "zstd", "11"] < sizes[encoding, "zstd", "1"]
                assert sizes[encoding, "zstd", "100"] == sizes[encoding, "zstd", "11"]
            assert rig.forms() == {"otlp_gzip": 3, "otlp_deflate": 1, "otlp_zstd": 3, "otlp_snappy": 1,
                                   "otlp_x-snappy-framed": 1, "otlp_lz4": 1, "json": 1, "json_gzip": 3, "json_deflate": 1,
                                   "json_zstd": 3, "json_snappy": 1, "json_x-snappy-framed": 1, "json_lz4": 1}


def test_json_is_otlps_json(build):
    """The rules of OTLP that no protobuf library has: IDs in hex, 64-bit integers as strings, names in camel case."""
    message = make.request(1, samples=3)
    message.resource_profiles[0].scope_profiles[0].profiles[0].profile_id = bytes(range(16))
    with OtlpSink() as sink, Rig(build, sink, "encoding: json") as rig:
        rig.client.send(message)
        rig.settle(3)
        node = json.loads(sink.taken[0].body)
        (profile,) = node["resourceProfiles"][0]["scopeProfiles"][0]["profiles"]
        assert profile["profileId"] == bytes(range(16)).hex()
        assert profile["timeUnixNano"] == str(10 ** 18 + 1000)
        assert {type(v) for s in profile["samples"] for v in s["values"]} == {str}
        assert {type(s["stackIndex"]) for s in profile["samples"]} == {int}


def test_one_compressed_copy_serves_all_that_want_the_same(build):
    with OtlpSink() as sink, peers.Sink() as grpc_sink:
        more = {"otlp_http/same": "endpoint: 'http://127.0.0.1:%d/b'" % sink.port,
                "otlp_http/other": "endpoint: 'http://127.0.0.1:%d/c', compression_params: {level: 6}" % sink.port,
                "otlp_grpc": "endpoint: '127.0.0.1:%d', tls: {insecure: true}" % grpc_sink.port}
        with Rig(build, sink, more=more) as rig:
            for seed in range(5):
                rig.send(seed)
            rig.settle(50)
            assert rig.forms() == {"otlp_gzip": 10} and len(sink.taken) == 15 and len(grpc_sink.received) == 5


# ---- answers: see test_http_faults.py

@pytest.mark.parametrize("answer", [
    otlp.Response(partial_success={"rejected_profiles": 1, "error_message": CANARY}).SerializeToString(),
    {"partialSuccess": {"rejectedProfiles": "1", "errorMessage": CANARY}},
    {"partial_success": {"rejected_profiles": 1, "error_message": CANARY, "more": [{}]}},
])
def test_a_partial_success_is_counted_and_logged_and_its_words_are_withheld(build, answer):
    with OtlpSink() as sink, Rig(build, sink) as rig:
        sink.answer = lambda *_: (reply(200, answer, {"Content-Type": PROTO}) if isinstance(answer, bytes)
                                  else json_reply(200, answer))
        rig.send()
        rig.settle(10)
        assert rig.total("out") == 10
        rig.gateway.until(lambda: "Partial success response" in rig.gateway.log())
        assert rig.gateway.total("otelcol_exporter_rejected_profiles", exporter="otlp_http") == 1
        assert CANARY not in rig.gateway.log() + rig.gateway.metrics_text()


# ---- size

TOO_LARGE = {
    "413": reply(413),
    "413 with a page": reply(413, b"<html>", {"Content-Type": "text/html"}),
    "Collector, protobuf": reply(400, b"\x08\x03\x12\x1chttp: request body too large", {"Content-Type": PROTO}),
    "Collector, JSON": json_reply(400, {"code": 3, "message": "http: request body too large"}),
    "a gRPC limit behind it": json_reply(429, {"code": 8, "message": "received message larger than max (900000 vs. 60000)"}),
}


@pytest.mark.parametrize("encoding", ["proto", "json"])
@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_request_that_is_too_large_is_split_and_nothing_is_lost(build, name, encoding):
    limit = {"proto": 60000, "json": 200000}[encoding]
    with OtlpSink() as sink, Rig(build, sink, "encoding: " + encoding) as rig:
        sink.answer = lambda taken, _: OK if len(taken.body) <= limit else TOO_LARGE[name]
        sent = rig.send(samples=4000)
        rig.settle(sum(otlp.samples(sent).values()))
        assert len(sink.taken) > 1 and sink.samples() == otlp.samples(sent)
        refused = len(sink.seen) - len(sink.taken)
        assert refused and rig.total("dropped") == 0


def test_configured_limits_split_before_the_server_refuses(build):
    with OtlpSink() as sink, Rig(build, sink, "limits: {max_bytes: 20000}", "compression: zstd") as rig:
        sent = rig.send(samples=4000)
        rig.settle(4000)
        assert len(sink.taken) > 2 and max(len(r.body) for r in sink.taken) <= 20000
        assert sink.samples() == otlp.samples(sent)


# ---- connections

class Crowd:
    """An answer that waits until so many requests are there, or a while has passed."""

    def __init__(self, expected):
        self.expected, self.here, self.most, self.condition = expected, 0, 0, threading.Condition()

    def __call__(self, *_):
        with self.condition:
            self.here += 1
            self.most = max(self.most, self.here)
            self.condition.notify_all()
            self.condition.wait_for(lambda: self.most >= self.expected, .5)
            self.here -= 1
        return OK


@pytest.mark.parametrize("line", ["max_idle_conns: 1", "max_idle_conns_per_host: 1", "max_idle_conns: 1, max_idle_conns_per_host: 9"])
def test_connections_are_kept_and_only_as_many_as_configured(build, line):
    with OtlpSink() as sink, Rig(build, sink, *line.split(", ")) as rig:
        sink.answer = Crowd(4)
        for seed in range(4):
            rig.send(seed)
        rig.settle(40)
        assert sink.answer.most == 4
        rig.gateway.until(lambda: len(sink.connections) == 1)
        (kept,) = sink.connections
        rig.send()
        rig.settle(50)
        assert sink.connections == {kept}


def test_requests_wait_for_one_of_max_conns_per_host(build):
    with OtlpSink() as sink, Rig(build, sink, "max_conns_per_host: 2") as rig:
        sink.answer = Crowd(3)
        for seed in range(6):
            rig.send(seed)
        rig.settle(60)
        assert rig.total("out") == 60 and sink.answer.most == 2


def test_a_request_that_waits_for_a_connection_has_the_same_timeout(build):
    with OtlpSink() as sink, Rig(build, sink, "max_conns_per_host: 1", "timeout: 1s") as rig:
        held = threading.Event()
        sink.answer = lambda _, number: (held.wait(30) and None) if number == 1 else OK
        for seed in range(2):
            rig.send(seed)
        rig.gateway.until(lambda: rig.gateway.total("otelcol_exporter_retries", exporter="otlp_http") >= 1)
        held.set()
        rig.settle(20)
        assert rig.total("out") == 20


def test_without_keep_alives_each_request_has_a_connection(build):
    with OtlpSink() as sink, Rig(build, sink, "disable_keep_alives: true") as rig:
        connections = []
        sink.answer = lambda *_: connections.append(set(sink.connections)) or OK
        for seed in range(3):
            rig.send(seed)
            rig.settle(10 * (seed + 1))
            rig.gateway.until(lambda: not sink.connections)
        assert len(set.union(*connections)) == 3
        assert {r.headers["Connection"] for r in sink.taken} == {"close"}


@pytest.mark.parametrize("lines, same", [("idle_conn_timeout: 1s", False), ("idle_conn_timeout: 0s", True), ("", True)])
def test_a_connection_that_was_idle_for_too_long_is_not_used_again(build, lines, same):
    with OtlpSink() as sink, Rig(build, sink, lines) as rig:
        connections = []
        sink.answer = lambda *_: connections.append(set(sink.connections)) or OK
        rig.send(1)
        rig.settle(10)
        time.sleep(3)
        rig.send(2)
        rig.settle(20)
        first, second = connections
        assert (first <= second and len(second) == 1) == same


# ---- cookies

def cookies_of(request):
    return dict(pair.split("=", 1) for pair in (request.headers["Cookie"] or "").split("; ") if pair)


def told(set_cookie):
    return reply(200, b"", {"Content-Type": PROTO, "Set-Cookie": set_cookie})


@pytest.mark.parametrize("line", ["cookies: {}", "cookies: {enabled: true}", "cookies: {enabled: false}", "cookies:", ""])
def test_cookies_come_back_where_that_is_wanted(build, line):
    steps = [("route=a; HttpOnly", {}), ("more=b", {"route": "a"}), ("route=c", {"route": "a", "more": "b"}),
             ("more=; Max-Age=0", {"route": "c", "more": "b"}), ("route=d; Path=/elsewhere", {"route": "c"}),
             ("far=1; Domain=example.com", {"route": "c"}), ("last=1", {"route": "c"})]
    wanted = line in ("cookies: {}", "cookies: {enabled: true}")
    with OtlpSink() as sink, Rig(build, sink, line) as rig:
        for i, (set_cookie, expected) in enumerate(steps):
            sink.answer = lambda *_, text=set_cookie: told(text)
            rig.send(i)
            rig.settle(10 * (i + 1))
            assert cookies_of(sink.taken[i]) == (expected if wanted else {})


def test_a_server_cannot_make_it_keep_cookies_without_end(build):
    with OtlpSink() as sink, Rig(build, sink, "cookies: {}") as rig:
        sink.answer = lambda _, number: told("c%d=%d" % (number, number))
        for i in range(300):
            rig.send(i)
            rig.settle(10 * (i + 1))
        sent = [len(cookies_of(request)) for request in sink.taken]
        assert sent[:4] == [0, 1, 2, 3] and sent[256] == 0 and sent[-1] == 300 - 257


# ---- configuration

def command(build, tmp_path, name, exporter, kind="otlp_http"):
    path = tmp_path / "config.yaml"
    path.write_text("receivers: {pprof: {server: {endpoint: 127.0.0.1:0}}}\nexporters: {%s: {%s}}\n"
                    "service: {pipelines: {profiles: {receivers: [pprof], exporters: [%s]}}}\n" % (kind, exporter, kind))
    return subprocess.run([build / "portcullis", name, "--config", path], capture_output=True, text=True)


ALL = """endpoint: "https://x", profiles_endpoint: "https://x/a", traces_endpoint: "https://x/t", metrics_endpoint: "https://x/m",
logs_endpoint: "https://x/l", encoding: json, timeout: 9s, compression: zstd, compression_params: {level: 3},
proxy_url: "http://u:hunter@p:1", headers: {a: hunter}, tls: {insecure_skip_verify: true}, read_buffer_size: 0,
write_buffer_size: 1, max_idle_conns: 5, max_idle_conns_per_host: 6, max_conns_per_host: 7, idle_conn_timeout: 8s,
disable_keep_alives: true, http2_read_idle_timeout: 1s, http2_ping_timeout: 1s, force_attempt_http2: false, cookies: {},
middlewares: [], sending_queue: {queue_size: 5}, retry_on_failure: {enabled: false}"""


@pytest.mark.parametrize("kind", ["otlp_http", "otlphttp", "otlphttp/b"])
def test_every_key_of_the_collector_is_taken_and_secrets_are_not_printed(build, tmp_path, kind):
    done = command(build, tmp_path, "validate", ALL, kind)
    assert done.returncode == 0, done.stderr
    done = command(build, tmp_path, "print-config", ALL, kind)
    assert done.returncode == 0 and "hunter" not in done.stdout


@pytest.mark.parametrize("exporter, error", [
    ("", "at least one endpoint must be specified"),
    ("traces_endpoint: 'http://x/v1/traces'", "either endpoint or profiles_endpoint must be specified"),
    ("endpoint: 'localhost:4318'", "endpoint must be an http:// or https:// URL"),
    ("profiles_endpoint: 'ftp://x'", "endpoint must be an http:// or https:// URL"),
    ("endpoint: 'http://x', encoding: xml", "encoding"),
    ("endpoint: 'http://x', compression: brotli", "compression: unsupported type"),
    ("endpoint: 'http://x', compression: x-gzip", "compression: unsupported type"),
    ("endpoint: 'http://x', compression: gzip, compression_params: {level: 10}", "compression_params::level: unsupported"),
    ("endpoint: 'http://x', compression: zlib, compression_params: {level: -3}", "compression_params::level: unsupported"),
    ("endpoint: 'http://x', compression: snappy, compression_params: {level: 1}", "compression_params::level: unsupported"),
    ("endpoint: 'http://x', compression: none, compression_params: {level: 1}", "compression_params::level: unsupported"),
    ("endpoint: 'http://x', idle_conn_timeout: -1s", "idle_conn_timeout' must not be negative"),
    ("endpoint: 'http://x', middlewares: [{id: a}]", "no middleware extension"),
    ("endpoint: 'http://x', headers: {Content-Type: a}", "content-type cannot be set"),
])
def test_what_cannot_work_is_an_error(build, tmp_path, exporter, error):
    done = command(build, tmp_path, "validate", exporter)
    assert done.returncode == 1 and error in done.stdout + done.stderr, done.stderr


def test_what_has_no_effect_is_logged(build):
    with OtlpSink() as sink, Rig(build, sink, "force_attempt_http2: false", "read_buffer_size: 4096") as rig:
        rig.send()
        rig.settle(10)
        for key in "force_attempt_http2", "read_buffer_size":
            assert any("no effect" in line and key in line for line in rig.gateway.log().splitlines()), key


# ---- TLS

@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    directory = tmp_path_factory.mktemp("certificates")
    make_ca(directory, "ca")
    make_ca(directory, "other")
    make_leaf(directory, "ca", "server", "/CN=localhost")
    make_leaf(directory, "ca", "client", "/CN=gateway", "clientAuth")
    make_leaf(directory, "other", "stranger", "/CN=stranger", "clientAuth")
    return directory


@pytest.mark.parametrize("tls, good", [("ca_file: %s/ca.pem", True), ("ca_file: %s/other.pem", False), ("", False),
                                       ("insecure_skip_verify: true", True)])
def test_tls_needs_a_known_ca(build, certificates, tls, good):
    pair = (certificates / "server.pem", certificates / "server.key")
    with OtlpSink(pair) as sink:
        tls = "tls: {%s}" % tls.replace("%s", str(certificates))
        with Rig(build, sink, tls, endpoint="https://localhost:%d/base/" % sink.port) as rig:
            rig.send()
            if good:
                rig.settle(10)
                assert sink.taken[0].path == "/base" + PATH
            else:
                rig.gateway.until(lambda: '"tls"' in rig.gateway.log())
                assert not sink.seen


class Door(Listener):
    """In front of a server of TLS: while there is a greeting, that is all that a client gets."""

    def __init__(self, target, greeting):
        self.target, self.greeting = target, greeting
        super().__init__()

    def serve(self, client):
        if self.greeting is None:
            return join(client, socket.create_connection(("127.0.0.1", self.target)))
        with contextlib.suppress(OSError), client:
            client.recv(65536)  # the ClientHello
            client.sendall(self.greeting)


HANDSHAKES = {"nothing": b"", "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n", "an alert": b"\x15\x03\x03\0\2\2\x46", "zeros": bytes(100),
              "half a record": b"\x16\x03\x03\x40\0\2\0\0"}


@pytest.mark.parametrize("what", HANDSHAKES)
def test_a_handshake_that_fails_is_tried_again(build, certificates, what):
    with OtlpSink((certificates / "server.pem", certificates / "server.key")) as sink, Door(sink.port, HANDSHAKES[what]) as door:
        with Rig(build, sink, "tls: {ca_file: %s/ca.pem}" % certificates, endpoint="https://localhost:%d" % door.port) as rig:
            sent = rig.send()
            rig.gateway.until(lambda: '"error": "tls"' in rig.gateway.log())
            door.greeting = None
            rig.settle(10)
            assert sink.samples() == otlp.samples(sent) and rig.total("out") == 10


TLS_1_2, TLS_1_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize("versions, server, good", [
    ("min_version: '1.3'", TLS_1_3, True), ("min_version: '1.3'", TLS_1_2, False),
    ("max_version: '1.2'", TLS_1_2, True), ("max_version: '1.2'", TLS_1_3, False),
    ("min_version: '1.2', max_version: '1.3'", TLS_1_2, True), ("min_version: '1.2', max_version: '1.3'", TLS_1_3, True)])
def test_tls_has_the_configured_versions(build, certificates, versions, server, good):
    with OtlpSink((certificates / "server.pem", certificates / "server.key")) as sink:
        context = sink.server.socket.context
        context.minimum_version = context.maximum_version = server
        tls = "tls: {ca_file: %s/ca.pem, %s}" % (certificates, versions)
        with Rig(build, sink, tls, endpoint="https://localhost:%d" % sink.port) as rig:
            rig.send()
            if good:
                rig.settle(10)
                assert len(sink.taken) == 1
            else:
                rig.gateway.until(lambda: '"tls"' in rig.gateway.log())
                assert not sink.seen


@pytest.mark.parametrize("how", ["SIGHUP", "reload_interval"])
@pytest.mark.parametrize("what", ["ca", "client certificate"])
def test_certificates_are_read_again(build, certificates, tmp_path, what, how):
    """The exporter begins with a CA that does not know the server, or a certificate that the server does not know."""
    def place(**files):
        for name, source in files.items():
            target = name.replace("_", ".")
            (tmp_path / (target + ".new")).write_bytes((certificates / source).read_bytes())
            (tmp_path / (target + ".new")).rename(tmp_path / target)

    good = {"ca_pem": "ca.pem", "mine_key": "client.key", "mine_pem": "client.pem"}
    bad = {"ca_pem": "other.pem"} if what == "ca" else {"mine_key": "stranger.key", "mine_pem": "stranger.pem"}
    place(**{**good, **bad})
    tls = "tls: {ca_file: %s/ca.pem, cert_file: %s/mine.pem, key_file: %s/mine.key%s}" % (
        tmp_path, tmp_path, tmp_path, ", reload_interval: 100ms" if how == "reload_interval" else "")
    pair = (certificates / "server.pem", certificates / "server.key")
    with OtlpSink(pair, client_ca=certificates / "ca.pem") as sink:
        with Rig(build, sink, tls, endpoint="https://localhost:%d" % sink.port) as rig:
            rig.send()
            rig.gateway.until(lambda: "Will retry" in rig.gateway.log())
            assert not sink.taken
            place(**good)
            if how == "SIGHUP":
                rig.gateway.process.send_signal(signal.SIGHUP)
            rig.settle(10)
            assert len(sink.taken) == 1 and "Certificates reloaded" in rig.gateway.log()
