# SPDX-License-Identifier: Apache-2.0
"""Destinations that cannot be reached, are the wrong ones, or reject everything, and what must be said of each."""
import ssl

import grpc

from harness import certificates, faults, otlp, peers, push
from harness.gateway import free_port
from harness.misconfigured import BlackHole, Mute, OpensslServer, TlsServer

EXPORTER = """
  %s: {endpoint: '%s', compression: none, timeout: %s, tls: {%s}, retry_on_failure: {initial_interval: 30s, max_interval: 30s}%s}
"""


def make_keys(directory):
    """Certificates, with keys: good, expired, foreign-leaf (of another CA than ca), elsewhere (for another name) and
    server-only (not for clients). refusing.pem is the CA, distrusted for clients."""
    for ca in ("ca", "foreign"):
        certificates.make_ca(directory, ca)
    certificates.make_leaf(directory, "ca", "good", "/CN=good")
    certificates.make_leaf(directory, "ca", "expired", "/CN=expired", days=-1)
    certificates.make_leaf(directory, "foreign", "foreign-leaf", "/CN=foreign")
    certificates.make_leaf(directory, "ca", "elsewhere", "/CN=elsewhere", own="DNS:elsewhere.test")
    certificates.make_leaf(directory, "ca", "server-only", "/CN=server", usage="serverAuth")
    certificates.openssl(directory, "x509", "-in", "ca.pem", "-addreject", "clientAuth", "-trustout", "-out", "refusing.pem")
    return directory


def endpoint(kind, secure, port):
    """By address: localhost may have another one, where nobody listens."""
    return "%s127.0.0.1:%s" % ("" if kind in (GRPC, PARCA) else "https://" if secure else "http://", port)


def tls_keys(keys, secure):
    """Of the section `tls`. secure: is TLS expected? Text: yes, and these keys are added."""
    if not secure:
        return "insecure: true"
    return "ca_file: '%s'%s" % (keys / "ca.pem", ", " + secure.format(keys=keys) if secure is not True else "")


def exporter_of(name, place, keys, secure, timeout="10s"):
    """The lines of its configuration."""
    more = ", limits: {max_age: 300000h}" if name.startswith(PYROSCOPE) else ""
    return EXPORTER % (name, place, timeout, tls_keys(keys, secure), more)


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


TLS_1_1 = (ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_1)
TLS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
GRPC, HTTP, PARCA, PYROSCOPE = "otlp_grpc", "otlp_http", "parca", "pyroscope"
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
    (GRPC, "closing-tls"): (lambda keys: Mute(b""), True, {"error": "tls", "stage": "tls_handshake", "cause": "connection closed in the TLS handshake"}),
    (HTTP, "closing-tls"): (lambda keys: Mute(b""), True, {"error": "tls", "stage": "tls_handshake", "cause": "connection closed in the TLS handshake"}),
    (GRPC, "reset-tls"): (lambda keys: Mute(reset=True), True, {"error": "tls", "cause": "connection closed in the TLS handshake", "errno": "ECONNRESET"}),
    (HTTP, "reset-tls"): (lambda keys: Mute(reset=True), True, {"error": "tls", "cause": "connection closed in the TLS handshake", "errno": "ECONNRESET"}),
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


def identity(name):
    return "cert_file: '{keys}/%s.pem', key_file: '{keys}/%s.key'" % (name, name)


def asking(keys, version, **more):
    """Requires a certificate of the client."""
    return TlsServer(keys, "good", "ca", versions=(TLS[version], TLS[version]), **more)


def only(version, option):
    """An option of OpensslServer for this version alone."""
    return "-tls" + version.replace(".", "_"), "-cipher" if version == "1.2" else "-ciphersuites", option[version]


NO_CLIENT, NO_COMMON = "client certificate missing or rejected", "no common TLS version or cipher"
STRANGE = {"1.2": "ECDHE-ECDSA-NULL-SHA:@SECLEVEL=0", "1.3": "TLS_AES_128_CCM_8_SHA256"}  # ciphers that no client offers
# name: (server by version, keys that the client adds, cause). Each server sends an alert of TLS, in both versions.
ALERTS = {
    "no-certificate": (asking, True, NO_CLIENT),  # handshake_failure, certificate_required
    "no-certificate-reset": (lambda keys, v: asking(keys, v, resets=True), True, NO_CLIENT),
    "foreign-certificate": (asking, identity("foreign-leaf"), NO_CLIENT),  # unknown_ca
    "expired-certificate": (asking, identity("expired"), NO_CLIENT),  # certificate_expired
    "server-certificate": (asking, identity("server-only"), NO_CLIENT),  # unsupported_certificate
    "refused-certificate": (lambda keys, v: TlsServer(keys, "good", "refusing", versions=(TLS[v], TLS[v])),  # bad_certificate
                            identity("good"), NO_CLIENT),
    "cipher": (lambda keys, v: OpensslServer(keys, "good", *only(v, STRANGE)), True, NO_COMMON),  # handshake_failure
    "server-name": (lambda keys, v: TlsServer(keys, "good", versions=(TLS[v], TLS[v]), knows_no_name=True),
                    "server_name_override: localhost", "name unknown to the TLS server"),  # unrecognized_name
}
CASES |= {(kind, "%s-%s" % (name, v)): (lambda keys, s=server, v=v: s(keys, v), secure, {"error": "tls", "stage": "tls_handshake", "cause": cause})
          for name, (server, secure, cause) in ALERTS.items() for v in TLS for kind in (GRPC, HTTP)}
del CASES[GRPC, "no-certificate-reset-1.3"]  # test_connect.py: the core may see the reset first, rarely
# no_application_protocol
CASES |= {(kind, "protocol-" + v): (lambda keys, v=v: OpensslServer(keys, "good", "-alpn", "other", "-tls" + v.replace(".", "_")), True,
                                    {"error": "tls", "stage": "tls_handshake", "cause": "TLS server without " + protocol})
          for v in TLS for kind, protocol in ((GRPC, "HTTP/2"), (HTTP, "HTTP/1.1"))}
# protocol_version, of a client that wants the other one
CASES |= {(HTTP, "version-" + v): (lambda keys, v=v: TlsServer(keys, "good", versions=(TLS[v], TLS[v])), client,
                                   {"error": "tls", "stage": "tls_handshake", "cause": NO_COMMON})
          for v, client in (("1.2", "min_version: '1.3'"), ("1.3", "max_version: '1.2'"))}
# The others that share these clients.
CASES |= {(kind, "no-certificate-" + v): CASES[like, "no-certificate-" + v] for kind, like in ((PYROSCOPE, HTTP), (PARCA, GRPC)) for v in TLS}
