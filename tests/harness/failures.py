# SPDX-License-Identifier: Apache-2.0
"""Destinations that cannot be reached, are the wrong ones, or reject everything, and what must be said of each."""
import ssl

import grpc

from harness import certificates, faults, otlp, peers, push
from harness.gateway import free_port
from harness.misconfigured import BlackHole, Mute, TlsServer

EXPORTER = """
  %s: {endpoint: '%s', compression: none, timeout: %s, tls: {%s}, retry_on_failure: {initial_interval: 30s, max_interval: 30s}}
"""


def make_keys(directory):
    """Certificates, with keys: good, expired, foreign-leaf (of another CA than ca) and elsewhere (for another name)."""
    for ca in ("ca", "foreign"):
        certificates.make_ca(directory, ca)
    certificates.make_leaf(directory, "ca", "good", "/CN=good")
    certificates.make_leaf(directory, "ca", "expired", "/CN=expired", days=-1)
    certificates.make_leaf(directory, "foreign", "foreign-leaf", "/CN=foreign")
    certificates.make_leaf(directory, "ca", "elsewhere", "/CN=elsewhere", own="DNS:elsewhere.test")
    return directory


def endpoint(kind, secure, port):
    """By address: localhost may have another one, where nobody listens."""
    return "%s127.0.0.1:%s" % ("" if kind == GRPC else "https://" if secure else "http://", port)


def exporter_of(name, place, keys, secure, timeout="10s"):
    """The lines of its configuration."""
    return EXPORTER % (name, place, timeout, "ca_file: '%s'" % (keys / "ca.pem") if secure else "insecure: true")


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


def rejecting(code, method=otlp.METHOD):
    sink = peers.Sink(method=method)
    sink.answer = lambda data, context: context.abort(code, "words-of-the-server")
    return plain(sink)


TLS_1_1, TLS_1_2 = ((version, version) for version in (ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2))
GRPC, HTTP = "otlp_grpc", "otlp_http"
REFUSED, TIMED_OUT = {"cause": "connection refused", "errno": "ECONNREFUSED"}, {"cause": "connection timed out"}
# (exporter, name of the case): (server, is TLS expected?, the fields of the log)
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
    (GRPC, "http1"): (lambda keys: Mute(b"HTTP/1.1 400 Bad Request\r\n\r\n"), False, {"error": "unavailable", "stage": "exchange", "cause": "HTTP/1 where gRPC was expected"}),
    (GRPC, "html"): (lambda keys: plain(push.PushSink()), False, {"error": "unavailable", "stage": "exchange", "cause": "not a gRPC server"}),
    (GRPC, "web"): (lambda keys: Web(), False, {"error": "unimplemented", "cause": "not a gRPC server", "http_status": 404}),
    (HTTP, "grpc-port"): (lambda keys: plain(peers.Sink()), False, {"error": "unavailable", "stage": "exchange", "cause": "not an HTTP/1 server"}),
    (GRPC, "overloaded"): (lambda keys: rejecting(grpc.StatusCode.UNAVAILABLE), False, {"error": "unavailable", "grpc_status": 14}),
    (GRPC, "denied"): (lambda keys: rejecting(grpc.StatusCode.UNAUTHENTICATED), False, {"error": "unauthenticated", "grpc_status": 16}),
    (HTTP, "overloaded"): (lambda keys: answering(503), False, {"error": "unavailable", "http_status": 503}),
    (HTTP, "denied"): (lambda keys: answering(401), False, {"error": "unauthenticated", "http_status": 401}),
}
