# SPDX-License-Identifier: Apache-2.0
"""The leak oracle: what policy has not named leaves by no door.

poison.py makes requests with a random word at every place that may not leave (denied keys, their values and units at every
site, nested ones, orphans, entries 0, overwritten and unknown fields, original_payload, denied entities and links, headers,
query, forms, metadata, TLS names), a specimen of each detector wherever text stands without a key, and random words that
must arrive. They go through a program with every exporter, batched and not, in requests that are good, partly bad and
refused. Then every byte that the program gave out is searched: requests to destinations, files and their names, logs at level
debug with all that its libraries say, metrics, replies. In logs, metrics and replies not even a permitted word may stand.

That each protection is needed by this test is shown by mutations.py.
"""
import os
import random
import socket
import ssl
import subprocess

import grpc
import pytest

from harness import canaries, h2, otlp, parca, peers, poison, profcheck
from harness.certificates import make_ca, make_leaf
from harness.gateway import Gateway
from harness.push import PushSink, refusal, reply

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 1, include_metadata: true}}}
  otlp/tls: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp_tls}, tls: TLS}}}
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}, max_request_body_size: 1048576, include_metadata: true}}
  pprof/tls: {server: {endpoint: 127.0.0.1:{port:pprof_tls}, tls: TLS}}
processors:
  allowlist:
    keys: [service.name, region, tier, note, size]
    key_patterns: ['^open\\..{1,24}$', 'part\\.[a-z]+']
    location: [process.executable.build_id.gnu, process.executable.build_id.go, trace_id, span_id]
    sample: [span_id]
    values: {tier: [gold, silver], size: ["5", MiB]}
    link: LINK
    profile: PROFILE
  pii: {}
  batch: {timeout: 100ms}
exporters:
  otlp_grpc/a: {endpoint: 127.0.0.1:{port:a}, tls: {insecure: true}}
  otlp_grpc/b: {endpoint: 127.0.0.1:{port:b}, tls: {insecure: true}, compression: gzip, retry_on_failure: {enabled: false}}
  file/json: {path: out/profiles.jsonl, format: json}
  file/proto: {path: out/profiles.binpb, format: proto}
  file/zstd: {path: out/profiles.zst, format: proto, compression: zstd}
  file/pprof: {directory: out/pprof, format: pprof}
  pyroscope: {endpoint: "http://127.0.0.1:PUSH", limits: {max_age: 876000h, max_ahead: 876000h}}
  parca: {endpoint: 127.0.0.1:{port:parca}, tls: {insecure: true}, lift_labels: [region, tier, open.label],
    retry_on_failure: {enabled: false}}
  debug/basic: {verbosity: basic}
  debug/normal: {verbosity: normal, output_paths: [out/normal.txt]}
  debug/detailed: {verbosity: detailed, sampling_initial: 1000, output_paths: [out/detailed.txt]}
extensions:
  health_check: {endpoint: 127.0.0.1:{port:health}}
service:
  extensions: [health_check]
  telemetry: {logs: {level: debug, sampling: {enabled: false}}}
  pipelines:
    profiles:
      receivers: [otlp, otlp/tls, pprof, pprof/tls]
      processors: [PROCESSORS]
      exporters: [otlp_grpc/a, otlp_grpc/b, file/json, file/proto, file/zstd, file/pprof, pyroscope, parca,
        debug/basic, debug/normal, debug/detailed]
"""
EXPORTERS = ("otlp_grpc/a", "otlp_grpc/b", "file/json", "file/proto", "file/zstd", "file/pprof", "pyroscope",
             "parca", "debug/basic", "debug/normal", "debug/detailed")
# What libraries say when an operator asks them to: peers' bytes among it.
NOISY = {"GRPC_VERBOSITY": "debug", "GRPC_TRACE": "api,http,channel,call_error,tcp,tsi,server_channel",
         "GNUTLS_DEBUG_LEVEL": "9"}


class Run:
    """One program, all the senders, and what was seen: {place: bytes}."""

    def __init__(self, build, directory, batched):
        self.seed = int(os.environ.get("LEAK_SEED") or random.SystemRandom().randrange(10 ** 9))
        self.c = canaries.Canaries(self.seed)
        self.c.ids = not batched
        self.directory = directory
        self.seen, self.turn = {}, 0
        self.certificates()
        tls = "{cert_file: server.pem, key_file: server.key, client_ca_file: ca.pem}"
        text = CONFIG.replace("TLS", tls).replace("LINK", "[]" if batched else "[trace_id, span_id]")
        text = text.replace("PROFILE", "[]" if batched else "[profile_id]")
        text = text.replace("PROCESSORS", "allowlist, pii, batch" if batched else "allowlist, pii")
        self.push = PushSink()
        self.push.answer = self.nasty_push
        text = text.replace("PUSH", str(self.push.port))
        self.gateway = Gateway(build / "portcullis", text, env=NOISY, cwd=directory)
        self.a, self.b = (peers.Sink(self.gateway.port[name]) for name in "ab")
        self.parca = peers.Sink(self.gateway.port["parca"], method=parca.METHOD)
        self.b.answer, self.parca.answer = self.nasty("otlp_grpc/b"), self.nasty("parca")

    def certificates(self):
        c = self.c
        make_ca(self.directory, "ca")
        make_ca(self.directory, "other")
        make_leaf(self.directory, "ca", "server", "/CN=localhost")
        make_leaf(self.directory, "ca", "client", "/O=%s/CN=%s" % (c.deny("subject of a client"), c.deny("name of a client")))
        make_leaf(self.directory, "other", "stranger", "/CN=" + c.deny("name of a stranger"))

    def see(self, place, data):
        data = data if isinstance(data, bytes) else str(data).encode()
        self.seen[place] = self.seen.get(place, b"") + b"\n" + data

    def nasty(self, place):
        """A destination that repeats what it got, in all that it says."""
        def answer(data, context):
            self.see(place, data)
            self.turn += 1
            name = self.c.deny("text of a destination")
            context.set_trailing_metadata(((self.c.deny("key of a destination"), name),))
            if self.turn % 3 == 0:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "label %s of %s" % (name, " ".join(self.c.permitted)[:2000]))
            if self.turn % 3 == 1:
                return otlp.Response(partial_success={"rejected_profiles": 1, "error_message": name}).SerializeToString()
            return b"\xff" + name.encode()
        return answer

    def nasty_push(self, taken, number):
        """The same by HTTP."""
        self.see("pyroscope", taken.body)
        name, key = self.c.deny("text of a store"), self.c.deny("header of a store")
        text = "%s %s" % (name, " ".join(self.c.permitted)[:2000])
        if number % 3 == 0:
            return refusal(400, name, text, **{key: name})
        return reply(200, text.encode(), {"Content-Type": name, "X-" + key: name})

    # what senders do

    def metadata(self):
        deny = self.c.deny
        return [(deny("metadata key"), deny("metadata")), ("x-thing-bin", deny("binary metadata").encode()),
                ("authorization", "Bearer " + deny("authorization")), ("x-portcullis-resource", "note=" + deny("metadata"))]

    def client(self, **keywords):
        options = [("grpc.primary_user_agent", self.c.deny("user agent")),
                   ("grpc.default_authority", self.c.deny("authority"))]
        return peers.Client(self.gateway.port["otlp"], options=options, **keywords)

    def grpc_good(self):
        c = self.c
        with self.client() as plain, self.client(compression=grpc.Compression.Gzip) as zipped:
            for by_reference in (False, True):
                plain.send(poison.otlp(c, by_reference), metadata=self.metadata())
                zipped.send(poison.specimens(c, by_reference), metadata=self.metadata())
                body, bad = poison.partly_bad(c, by_reference)
                answer = plain.send(body, metadata=self.metadata())
                assert 0 < answer.partial_success.rejected_profiles <= bad
                self.see("replies", answer.partial_success.error_message)

    def grpc_refused(self):
        with self.client() as client:
            for name, body in poison.refused(self.c):
                error = peers.refused(client, body, metadata=self.metadata())
                self.see("replies", "%s %s" % (error.details(), error.trailing_metadata()))
                assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED,
                                        grpc.StatusCode.UNIMPLEMENTED), name
            method = "/%s.Service/%s" % (self.c.deny("method"), self.c.deny("method"))
            for path in (method, otlp.METHOD + self.c.deny("method")):
                with pytest.raises(grpc.RpcError) as error:
                    client.channel.unary_unary(path)(self.c.deny("body").encode(), timeout=20)
                self.see("replies", str(error.value.details()))

    def headers(self):
        deny = self.c.deny
        return {"User-Agent": deny("user agent"), "Cookie": "a=" + deny("cookie"), "Referer": "http://" + deny("referer"),
                "Authorization": "Basic " + deny("authorization"), "X-" + deny("header name"): deny("header"),
                "X-Portcullis-Resource": "denied.header=%s,%s=%s,region=%s" % (
                    deny("value of a denied attribute by header"), self.c.deny_key("attribute by header"),
                    deny("value of a denied attribute by header"), self.c.permit("attribute by header"))}

    def query(self):
        c = self.c
        mail = canaries.specimens(c.random, c.word)["email"]
        c.deny_text("email by query", mail[1])
        return "/v1/pprof?service.name=%s&denied.query=%s&%s=%s&note=%s" % (
            c.permit("service.name by query"), c.deny("value of a denied attribute by query"),
            c.deny_key("attribute by query"), c.deny("value of a denied attribute by query"), mail[0])

    def form(self, body):
        """multipart/form-data with a profile, and much else."""
        deny = self.c.deny
        part = "--limit\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\nX-%s: %s\r\n\r\n"
        other = part % (deny("name of a part"), deny("file name"), deny("header of a part"), deny("header of a part"))
        own = part % ("profile", deny("file name"), deny("header of a part"), deny("header of a part"))
        return (other + deny("part")).encode() + b"\r\n" + own.encode() + body + b"\r\n--limit--\r\n"

    def post(self, body, want, path=None, port="pprof", **keywords):
        headers = {**self.headers(), **keywords.pop("headers", {})}
        status, headers, text = peers.post(self.gateway.port[port], body, path=path or self.query(), headers=headers, **keywords)
        self.see("replies", "%s %r %r" % (status, headers, text))
        assert status in want, (status, text)

    def http_good(self):
        c, form = self.c, {"Content-Type": "multipart/form-data; boundary=limit"}
        self.post(poison.pprof(c), [204])
        self.post(poison.pprof(c), [204], zipped=True)
        self.post(self.form(poison.pprof(c)), [204], headers=form)

    def http_refused(self):
        c = self.c
        deny = lambda what: c.deny("refused " + what)
        for name, body in poison.refused_pprofs(c):
            self.post(body, [400, 413, 415])
        self.post(b"x", [415], headers={"Content-Type": "application/" + deny("media type")})
        self.post(b"x", [415], headers={"Content-Encoding": deny("coding")})
        self.post(self.form(b"x")[:-30], [400], headers={"Content-Type": "multipart/form-data; boundary=limit"})
        self.post(b"x", [400], headers={"Content-Type": "multipart/form-data; boundary=" + deny("boundary")})
        self.post(b"x", [400], path="/v1/pprof?%s=%%zz" % deny("query"))
        self.post(b"x", [400], path="/v1/pprof?a=%s&a=%s" % (deny("query"), deny("query")))
        self.post(b"x", [400], headers={"X-Portcullis-Resource": "%s=%%ff" % deny("header")})
        self.post(b"x", [405], method=deny("method").upper())
        for port, path in (("pprof", "/"), ("pprof", "/v1/pprof/"), ("health", "/"), ("health", "/?"), ("metrics", "/"),
                           ("metrics", "/metrics?")):
            self.post(None, range(200, 500), path=path + deny("path"), port=port, method="GET")

    # what no good sender does

    def talk(self, port, data):
        """Raw bytes, and what comes back until the other side has enough."""
        with socket.create_connection(("127.0.0.1", self.gateway.port[port]), timeout=20) as s:
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                while got := s.recv(65536):
                    self.see("replies", got)
            except OSError:
                pass  # cut off: no reply is no leak

    def hello(self):
        """A TLS ClientHello for a secret name."""
        out, context = ssl.MemoryBIO(), ssl.create_default_context()
        context.set_alpn_protocols([self.c.deny("ALPN protocol")])
        with pytest.raises(ssl.SSLWantReadError):
            context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=self.c.deny("TLS server name")).do_handshake()
        return out.read()

    def garbage_http(self):
        word = lambda what: self.c.deny("malformed HTTP: " + what).encode()
        for port in ("pprof", "health", "metrics", "otlp"):
            self.talk(port, word("line") + b" / HTTP/1.1\r\n\r\n")
            self.talk(port, b"GET /" + word("path") + b" HTTP/9.9\r\nHost: x\r\n\r\n")
            self.talk(port, b"GET / HTTP/1.1\r\nHost: x\r\n" + word("header") + b"\r\n\r\n")
            self.talk(port, b"GET / HTTP/1.1\r\nHost: x\r\n\x01" + word("header") + b"\x00: x\r\n\r\n")
            self.talk(port, b"GET / HTTP/1.1\r\nX: " + word("long header") * 8192 + b"\r\n\r\n")
            self.talk(port, word("bytes") + b"\r\n\r\n")
            self.talk(port, self.hello())
        self.talk("pprof", b"POST /v1/pprof HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + word("chunk"))
        self.talk("pprof", b"POST /v1/pprof HTTP/1.1\r\nHost: x\r\nContent-Length: " + word("length") + b"\r\n\r\n")
        self.talk("pprof", b"POST /v1/pprof HTTP/1.1\r\nHost: x\r\nExpect: " + word("expectation") + b"\r\n\r\n")

    def garbage_http2(self):
        word = lambda what: self.c.deny("malformed HTTP/2: " + what).encode()
        self.talk("otlp", b"PRI * " + word("preface") + b"\r\n\r\n")
        self.talk("otlp", h2.PREFACE + h2.frame(h2.GOAWAY, 0, b"\0\0\0\0\0\0\0\2" + word("GOAWAY"), stream=0))
        self.talk("otlp", h2.PREFACE + word("frame"))
        for name, value in ((b":path", b"/" + word("path")), (b":method", word("method")), (b":scheme", word("scheme")),
                            (b"content-type", b"application/" + word("content type")), (b"te", word("te")),
                            (b"grpc-timeout", word("timeout")), (b"grpc-encoding", word("coding")),
                            (word("header").upper(), b"x"), (word("header"), b"\xff" + word("header")),
                            (b"a" * 16000, word("header")), (b"grpc-trace-bin", word("binary"))):
            self.talk("otlp", h2.export(b"\0\0\0\0\x20" + word("message") * 2, h2.changed(name, value)))

    def tls(self):
        """Handshakes that fail and one that succeeds, with secret names."""
        for port in ("otlp_tls", "pprof_tls"):
            self.talk(port, self.c.deny("plain text to TLS").encode() + b"\r\n\r\n")
            self.talk(port, self.hello())
            for client in (None, "stranger", "client"):
                self.handshake(port, client)

    def handshake(self, port, client):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if port == "otlp_tls":
            context.set_alpn_protocols(["h2"])
        if client:
            context.load_cert_chain(self.directory / (client + ".pem"), self.directory / (client + ".key"))
        try:
            with socket.create_connection(("127.0.0.1", self.gateway.port[port]), timeout=20) as plain:
                with context.wrap_socket(plain, server_hostname=self.c.deny("TLS server name")) as s:
                    s.sendall(b"GET /%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % self.c.deny("path").encode())
                    while got := s.recv(65536):
                        self.see("replies", got)
        except OSError:
            pass

    # all of it

    def flush(self):
        def done(exporter):
            return self.gateway.balanced("profiles", exporter) and not any(
                self.gateway.total("otelcol_ledger_%s_samples" % where, exporter=exporter) for where in ("queued",))
        self.gateway.until(lambda: not self.gateway.total("otelcol_ledger_batched_samples") and all(map(done, EXPORTERS)))

    def all(self):
        with self.a, self.b, self.push, self.parca, self.gateway:
            self.grpc_good()
            self.http_good()
            self.c.refusing = True
            self.grpc_refused()
            self.http_refused()
            self.garbage_http()
            self.garbage_http2()
            self.tls()
            self.flush()
            self.see("metrics", self.gateway.metrics_text())
            assert self.gateway.stop() == 0, self.gateway.log()
        for data in self.a.received:
            self.see("otlp_grpc/a", data)
        self.see("metadata to destinations", self.a.metadata + self.b.metadata + self.parca.metadata)
        self.see("metadata to destinations", [str(taken.headers) + taken.path for taken in self.push.seen])
        self.see("logs", self.gateway.log_path.read_bytes())
        self.files()
        return self

    def files(self):
        for path in sorted((self.directory / "out").rglob("*")):
            self.see("file names", path.name)
            if path.is_file():
                place = "file/pprof" if path.parent.name == "pprof" else path.name
                for data in records(path):
                    for layer in canaries.unpacked(data):
                        self.see(place, layer)


def records(path):
    """A file whole, or its records where they are compressed one by one."""
    data = path.read_bytes()
    if path.suffix != ".zst":
        return [data]
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        found.append(data[4:4 + size])
        data = data[4 + size:]
    return found


@pytest.fixture(scope="module", params=["batched", "unbatched"])
def run(request, build, tmp_path_factory):
    return Run(build, tmp_path_factory.mktemp("leaks"), request.param == "batched").all()


FULL = ("otlp_grpc/a", "profiles.jsonl", "profiles.binpb", "profiles.zst", "detailed.txt")
DESTINATIONS = (*FULL, "otlp_grpc/b", "file/pprof", "pyroscope", "parca", "normal.txt")
SILENT = ("logs", "metrics", "replies", "file names", "metadata to destinations")


@pytest.mark.threads
@pytest.mark.parametrize("place", [*DESTINATIONS, *SILENT])
def test_nothing_denied_is_found(run, place):
    found = run.c.found(run.seen[place])
    assert not found, "LEAK_SEED=%d, %d kinds: %s" % (run.seed, len(found), dict(found.most_common(40)))


@pytest.mark.parametrize("place", FULL)
def test_everything_permitted_arrives(run, place):
    missing = run.c.missing(run.seen[place])
    assert not missing, "LEAK_SEED=%d: %s" % (run.seed, missing)


# A series that has the label already, and numbers: the store would not take them either.
NO_PLACE = {"file/pprof": set(), "pyroscope": {"pprof label", "pprof label unit"},
            "parca": {"pprof label", "pprof label unit", "pprof trace_id", "pprof span_id"}}


@pytest.mark.parametrize("place", NO_PLACE)
def test_what_pprof_has_a_field_for_arrives_there(run, place):
    for kind in ("function", "mapping file", "sample type", "period type", "pprof "):
        assert set(run.c.missing(run.seen[place], kind)) <= NO_PLACE[place]


@pytest.mark.parametrize("place", SILENT)
def test_no_text_of_a_sender_is_found_but_at_destinations(run, place):
    assert not canaries.occurrences(run.c.permitted, run.seen[place])


def test_what_leaves_is_in_order(run):
    for data in run.a.received:
        assert profcheck.structure(data) == []


def test_explain_may_name_keys_but_shows_no_value(build, tmp_path):
    c = canaries.Canaries(1)
    config = Run(build, tmp_path, True).gateway
    for i, body in enumerate((poison.otlp(c, False), poison.otlp(c, True), poison.specimens(c, True), poison.pprof(c))):
        (tmp_path / "body").write_bytes(body)
        done = subprocess.run([config.binary, "explain", "--config", str(config.config), "body"], cwd=tmp_path,
                              capture_output=True)
        assert done.returncode == 0, done.stderr
        shown = done.stdout + done.stderr
        assert b"denied" in shown or b"email" in shown
        assert not c.found(shown, but_keys=True)
        assert not canaries.occurrences(c.permitted, shown)
