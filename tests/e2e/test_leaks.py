# SPDX-License-Identifier: Apache-2.0
"""The leak oracle: what policy has not named leaves by no door.

poison.py makes requests with a random word at every place that may not leave (denied keys, their values and units at every
site, nested ones, orphans, entries 0, overwritten and unknown fields, original_payload, denied entities and links, headers,
query, forms, metadata, TLS names), a specimen of each detector wherever text stands without a key, and random words that
must arrive. They go through a program with every exporter, batched and not, in requests that are good, partly bad and
refused. Then every byte that the program gave out is searched: requests to destinations, messages of Kafka with their topics,
keys and headers, files and their names, dead letters with their reason files, logs at level debug with all that its libraries
say, metrics, replies. In logs, metrics and replies not even a permitted word may stand.

That each protection is needed by this test is shown by mutations.py.
"""
import base64
import collections
import contextlib
import gzip
import json
import os
import random
import socket
import ssl
import subprocess
import urllib.parse

import grpc
import pytest

from harness import build as make
from harness import canaries, finding, h2, kafka, otlp, parca, peers, poison, profcheck
from harness.certificates import make_ca, make_leaf
from harness.gateway import Gateway
from harness.otlphttp import OtlpSink, json_reply
from harness.push import PushSink, refusal, reply

# librdkafka makes its threads by C11's thrd_create, which ThreadSanitizer does not intercept: it crashes in
# them.
KAFKA = {} if os.environ.get("MODE") == "tsan" else {
    "kafka/proto": """{brokers: ["ADDRESS"], profiles: {topic: proto, message_key_from_attribute: service.name},
    include_metadata_keys: [x-kept], record_headers: {source: gateway}, producer: {compression: lz4}}""",
    "kafka/json": """{brokers: ["ADDRESS"], profiles: {topic: json, encoding: otlp_json}}""",
    "kafka/pprof": """{brokers: ["ADDRESS"], topic_from_attribute: unpart.door, profiles: {topic: pprof, encoding: pprof,
    message_key_from_attribute: service.name}}""",
    "kafka/named": """{brokers: ["ADDRESS"], topic_from_attribute: service.name, profiles: {topic: named, message_key_from_attribute: service.name.x}}""",
}
KAFKA_TOPICS = {"proto", "json", "pprof", "named", "in.otlp", "in.pprof"}  # that the configuration names
FROM_KAFKA = {name: """{brokers: ["ADDRESS"], group_id: %s, profiles: {topics: [in.%s], encoding: %s}, initial_offset: earliest,
    max_message_bytes: 1048576, header_extraction: {extract_headers: true, headers: [x-denied, x-thing]}}""" % (name[6:], name[6:], encoding)
    for name, encoding in (("kafka/otlp", "otlp_json"), ("kafka/pprof", "pprof")) if KAFKA}
FORMS = ("otlp_grpc/index", "otlp_http/index", "otlp_http/1.8", "otlp_http/1.9")  # other layouts than today's
CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 1, include_metadata: true}
      http: {endpoint: 127.0.0.1:{port:otlp_http}, max_request_body_size: 1048576, include_metadata: true}
  otlp/tls: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp_tls}, tls: TLS}}}
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}, max_request_body_size: 1048576, include_metadata: true}}
  pprof/tls: {server: {endpoint: 127.0.0.1:{port:pprof_tls}, tls: TLS}}
  pyroscope: {endpoint: 127.0.0.1:{port:pyroscope}, max_request_body_size: 1048576, include_metadata: true}
  parca:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:parca_grpc}, max_recv_msg_size_mib: 1, include_metadata: true}
      http: {endpoint: 127.0.0.1:{port:parca_http}, max_request_body_size: 1048576, include_metadata: true}
    labels: utf8
  otlp_json_file: {include: [lines/*.jsonl], start_at: beginning, poll_interval: 50ms, max_log_size: 1048576}
FROM_KAFKAprocessors:
POLICY  batch: {timeout: 100ms}
exporters:
  otlp_grpc/a: {endpoint: 127.0.0.1:{port:a}, tls: {insecure: true}}
  otlp_grpc/b: {endpoint: 127.0.0.1:{port:b}, tls: {insecure: true}, compression: gzip, retry_on_failure: {enabled: false},
    dead_letter: {directory: out/dead/b}}
  otlp_http/proto: {endpoint: "http://127.0.0.1:PROTO", compression: zstd}
  otlp_http/json: {endpoint: "http://127.0.0.1:JSON", encoding: json, compression: lz4, retry_on_failure: {enabled: false},
    dead_letter: {directory: out/dead/json}}
  otlp_grpc/index: {endpoint: 127.0.0.1:{port:index}, tls: {insecure: true}, references: index}
  otlp_http/index: {endpoint: "http://127.0.0.1:INDEX", references: index, encoding: json, compression: deflate}
  otlp_http/1.8: {endpoint: "http://127.0.0.1:OLDER", schema: v1.8, encoding: json, compression: snappy}
  otlp_http/1.9: {endpoint: "http://127.0.0.1:OLD", schema: v1.9, compression: x-snappy-framed}
  nop: {}
  file/json: {path: out/profiles.jsonl, format: json}
  file/proto: {path: out/profiles.binpb, format: proto}
  file/zstd: {path: out/profiles.zst, format: proto, compression: zstd}
  file/pprof: {directory: out/pprof, format: pprof}
  file/routed: {path: out/routed.jsonl, format: json}
  file/forwarded: {path: out/forwarded.binpb, format: proto}
  file/groups: {path: "out/groups/*.zst", format: proto, compression: zstd, group_by: {enabled: true, resource_attribute: service.name}}
  pyroscope: {endpoint: "http://127.0.0.1:PUSH", limits: {max_age: 876000h, max_ahead: 876000h},
    dead_letter: {directory: out/dead/pyroscope}}
  parca: {endpoint: 127.0.0.1:{port:parca}, tls: {insecure: true}, lift_labels: [region, tier, open.label],
    retry_on_failure: {enabled: false}, dead_letter: {directory: out/dead/parca}}
  load_balancing: {protocol: {otlp: {tls: {insecure: true}}}, dead_letter: {directory: out/dead/balanced},
    resolver: {static: {hostnames: ["127.0.0.1:{port:c}", "127.0.0.1:{port:d}"]}}}
KAFKA  debug/basic: {verbosity: basic}
  debug/normal: {verbosity: normal, output_paths: [out/normal.txt]}
  debug/detailed: {verbosity: detailed, sampling_initial: 1000, output_paths: [out/detailed.txt]}
connectors:
  routing: {table: [{condition: 'attributes["service.name"] == "nobody"', pipelines: [profiles/behind]}], default_pipelines: [profiles/behind]}
  forward: {}
extensions:
  health_check: {endpoint: 127.0.0.1:{port:health}}
service:
  extensions: [health_check]
  telemetry: {logs: {level: debug, sampling: {enabled: false}}}
  pipelines:
    profiles:
      receivers: [otlp, otlp/tls, pprof, pprof/tls, pyroscope, parca, otlp_json_fileRECEIVERS]
      processors: [PROCESSORS]
      exporters: [otlp_grpc/a, otlp_grpc/b, otlp_http/proto, otlp_http/json, FORMS file/json, file/proto, file/zstd, file/pprof, file/groups, pyroscope, parca,
        load_balancing, NAMES routing, forward, debug/basic, debug/normal, debug/detailed]
    profiles/behind: {receivers: [routing], exporters: [file/routed]}
    profiles/forwarded: {receivers: [forward], exporters: [file/forwarded]}
""".replace("FORMS", "".join(name + ", " for name in (*FORMS, "nop"))).replace("POLICY", poison.POLICY).replace("FROM_KAFKA", "".join("  %s: %s\n" % item for item in FROM_KAFKA.items())).replace(
    "RECEIVERS", "".join(", " + name for name in FROM_KAFKA)).replace("KAFKA", "".join("  %s: %s\n" % item for item in KAFKA.items())).replace(
    "NAMES", "".join(name + "," for name in KAFKA))
EXPORTERS = ("otlp_grpc/a", "otlp_grpc/b", "otlp_http/proto", "otlp_http/json", *FORMS, "nop", "file/json", "file/proto", "file/zstd", "file/pprof", "file/groups", "pyroscope",
             "parca", "load_balancing", *KAFKA, "debug/basic", "debug/normal", "debug/detailed")
# What libraries say when an operator asks them to: peers' bytes among it.
NOISY = {"GRPC_VERBOSITY": "debug", "GRPC_TRACE": "api,http,channel,call_error,tcp,tsi,server_channel",
         "GNUTLS_DEBUG_LEVEL": "9"}


class Run:
    """One program, all the senders, and what was seen: {place: [bytes]}."""

    def __init__(self, build, directory, batched):
        self.seed = int(os.environ.get("LEAK_SEED") or random.SystemRandom().randrange(10 ** 9))
        self.c = canaries.Canaries(self.seed)
        self.c.ids = not batched
        self.directory = directory
        self.pieces, self.turn = collections.defaultdict(list), 0
        self.certificates()
        tls = "{cert_file: server.pem, key_file: server.key, client_ca_file: ca.pem}"
        text = CONFIG.replace("TLS", tls).replace("LINK", "[]" if batched else "[trace_id, span_id]")
        text = text.replace("PROFILE", "[]" if batched else "[profile_id]")
        text = text.replace("PROCESSORS", "allowlist, pii, batch" if batched else "allowlist, pii")
        self.push = PushSink()
        self.push.answer = self.nasty_push
        text = text.replace("PUSH", str(self.push.port))
        self.http, self.json = OtlpSink(), OtlpSink()
        self.forms = {place: OtlpSink() for place in ("INDEX", "OLDER", "OLD")}
        for place, sink in self.forms.items():
            text = text.replace(place, str(sink.port))
        self.json.answer = self.nasty_json
        text = text.replace("PROTO", str(self.http.port)).replace("JSON", str(self.json.port))
        self.kafka = contextlib.ExitStack()
        if KAFKA:
            self.broker = self.kafka.enter_context(kafka.Broker(build))
            self.reader = self.broker.reader("proto", "json", "pprof")
            text = text.replace("ADDRESS", self.broker.address)
        self.gateway = Gateway(build / "portcullis", text, env=NOISY, cwd=directory)
        sinks = (peers.Sink(self.gateway.port[name]) for name in ("a", "b", "c", "d", "index"))
        self.a, self.b, self.member, self.bad_member, self.index = sinks
        self.parca = peers.Sink(self.gateway.port["parca"], method=parca.METHOD)
        self.b.answer, self.parca.answer = self.nasty("otlp_grpc/b"), self.nasty("parca")
        self.bad_member.answer = self.nasty("load_balancing")

    def certificates(self):
        c = self.c
        make_ca(self.directory, "ca")
        make_ca(self.directory, "other")
        make_leaf(self.directory, "ca", "server", "/CN=localhost")
        make_leaf(self.directory, "ca", "client", "/O=%s/CN=%s" % (c.deny("subject of a client"), c.deny("name of a client")))
        make_leaf(self.directory, "other", "stranger", "/CN=" + c.deny("name of a stranger"))

    def see(self, place, data):
        self.pieces[place].append(data if isinstance(data, bytes) else str(data).encode())

    def seen(self, place):
        return b"\n".join(self.pieces[place])

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

    def nasty_json(self, taken, number):
        """The same of OTLP."""
        self.see("otlp_http/json", taken.body)
        name, key = self.c.deny("text of an HTTP destination"), self.c.deny("header of an HTTP destination")
        text, headers = "%s %s" % (name, " ".join(self.c.permitted)[:2000]), {key: name}
        if number % 3 == 0:
            return json_reply(400, {"code": 3, "message": text, "details": [{name: name}]}, headers)
        if number % 3 == 1:
            return json_reply(200, {"partialSuccess": {"rejectedProfiles": 1, "errorMessage": text}, name: name}, headers)
        return reply(200, name.encode(), {"Content-Type": name, **headers})

    # what senders do

    def metadata(self):
        deny = self.c.deny
        return [(deny("metadata key"), deny("metadata")), ("x-thing-bin", deny("binary metadata").encode()),
                ("x-kept", "kept"), ("authorization", "Bearer " + deny("authorization")), ("x-portcullis-resource", "note=" + deny("metadata"))]

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

    def strange_headers(self):
        deny = self.c.deny
        return {"User-Agent": deny("user agent"), "Cookie": "a=" + deny("cookie"), "Referer": "http://" + deny("referer"),
                "Authorization": "Basic " + deny("authorization"), "X-" + deny("header name"): deny("header")}

    def headers(self):
        deny = self.c.deny
        return {**self.strange_headers(), "X-Portcullis-Resource": "denied.header=%s,%s=%s,region=%s" % (
                    deny("value of a denied attribute by header"), self.c.deny_key("attribute by header"),
                    deny("value of a denied attribute by header"), self.c.permit("attribute by header"))}

    def query(self):
        c = self.c
        mail = canaries.specimens(c.random, c.word)["email"]
        c.deny_text("email by query", mail[1])
        return "/v1/pprof?service.name=%s&denied.query=%s&%s=%s&note=%s" % (
            c.permit("service.name by query"), c.deny("value of a denied attribute by query"),
            c.deny_key("attribute by query"), c.deny("value of a denied attribute by query"), mail[0])

    def post_otlp(self, body, want, query="", media="application/x-protobuf", **keywords):
        path = "/v1development/profiles?%s=%s" % (self.c.deny("query of OTLP"), query or self.c.deny("query of OTLP"))
        headers = {"Content-Type": media, "X-Portcullis-Resource": "region=" + self.c.deny("header of OTLP"),
                   **keywords.pop("headers", {})}
        self.post(body, want, **{"path": path, "port": "otlp_http", **keywords}, headers=headers)

    def otlp_http_good(self):
        c = self.c
        for by_reference in (False, True):
            for body in (poison.otlp(c, by_reference), poison.specimens(c, by_reference), poison.partly_bad(c, by_reference)[0]):
                self.post_otlp(body, [200])
                self.post_otlp(body, [200], zipped=True)

    def json_refused(self):
        """What JSON has besides: names."""
        c = self.c
        message = otlp.to_json(make.request(7, samples=3).SerializeToString()).decode()
        unknown = '{"%s":{"%s":["%s"]},' % (c.deny("JSON name"), c.deny("JSON name"), c.deny("JSON value"))
        self.post_otlp((unknown + message[1:]).encode(), [200], media="application/json")
        for broken in ('{"%s"', '{"%s":', '{"resourceProfiles":"%s"}', '{"dictionary":{"stringTable":[{"%s":1}]}}',
                       '{"dictionary":{"linkTable":[{"traceId":"%s"}]}}', "%s", '["%s"]',
                       '{"resourceProfiles":[{"resource":{"attributes":[{"key":"%s","value":{"intValue":"x"}}]}}]}'):
            self.post_otlp((broken % c.deny("refused JSON")).encode(), [400], media="application/json")

    def otlp_http_refused(self):
        deny = lambda what: self.c.deny("refused OTLP " + what)
        for name, body in poison.refused(self.c):
            broken = name.startswith("broken")
            self.post_otlp(body, [400, 413], headers={"Content-Encoding": name.split()[1]} if broken else {})
        self.post_otlp(b"x", [415], media="application/" + deny("media type"))
        self.post_otlp(b"x", [400], headers={"Content-Encoding": deny("coding")})
        self.post_otlp(b"x", [400], headers={"Content-Encoding": "snappy"})
        self.post_otlp(b"x", [405], method=deny("method").upper())
        self.post_otlp(b"x", [404], path="/v1/" + deny("path"))

    def form(self, body):
        """multipart/form-data with a profile, and much else."""
        deny = self.c.deny
        part = "--limit\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\nX-%s: %s\r\n\r\n"
        other = part % (deny("name of a part"), deny("file name"), deny("header of a part"), deny("header of a part"))
        own = part % ("profile", deny("file name"), deny("header of a part"), deny("header of a part"))
        return (other + deny("part")).encode() + b"\r\n" + own.encode() + body + b"\r\n--limit--\r\n"

    def post(self, body, want, path=None, port="pprof", **keywords):
        own = self.headers() if port == "pprof" else self.strange_headers()
        headers = {**own, **keywords.pop("headers", {})}
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

    # Pyroscope's clients

    def metadata_of_pyroscope(self):
        """By Connect, metadata are headers."""
        deny = self.c.deny
        return {**self.strange_headers(), "X-Scope-OrgID": deny("tenant"), "Connect-Timeout-Ms": deny("Connect metadata"),
                "X-Thing-Bin": deny("binary Connect metadata")}

    def ask_pyroscope(self, path, body, want, **headers):
        headers = {**self.metadata_of_pyroscope(), **{k.replace("_", "-"): v for k, v in headers.items()}}
        status, headers, text = peers.post(self.gateway.port["pyroscope"], body, path, headers)
        self.see("replies", "%s %r %r" % (status, headers, text))
        assert status in want, (status, text)

    def ingest_path(self):
        c = self.c
        name = "%s{region=%s,denied.label=%s,%s=%s,__session_id__=%s,__x=%s}" % (
            c.permit("service of a name"), c.permit("label of a name"), c.deny("value of a denied label of a name"),
            c.deny_key("label of a name"), c.deny("value of a denied label of a name"), c.deny("session"), c.deny("reserved label"))
        others = {what: c.deny("parameter " + what) for what in ("from", "until", "spyName", "units", "aggregationType", "sampleRate")}
        return "/ingest?" + urllib.parse.urlencode({"name": name, **others, c.deny("parameter"): c.deny("parameter")})

    def labels_of_a_series(self):
        c = self.c
        return {"__name__": c.deny("name of a series"), "service_name": c.permit("service of a series"),
                "region": c.permit("label of a series"), "denied.label": c.deny("value of a denied label of a series"),
                c.deny_key("label of a series"): c.deny("value of a denied label of a series")}

    def pushed(self):
        """A push request with unknown fields at each level."""
        deny = lambda what: self.c.deny(what).encode()
        series = b"".join(poison.field(1, poison.field(1, k.encode()) + poison.field(2, v.encode()) + poison.field(9, deny("unknown")))
                          for k, v in self.labels_of_a_series().items())
        sample = poison.field(1, poison.pprof(self.c)) + poison.field(2, deny("ID")) + poison.field(9, deny("unknown"))
        series += poison.field(2, sample) + poison.field(3, deny("annotation")) + poison.field(9, deny("unknown"))
        return poison.field(1, series) + poison.field(9, deny("unknown"))

    def push_json(self):
        deny = self.c.deny
        labels = [{"name": k, "value": v, deny("unknown key"): deny("unknown")} for k, v in self.labels_of_a_series().items()]
        samples = [{"rawProfile": base64.b64encode(poison.pprof(self.c)).decode(), "ID": deny("ID")}]
        return json.dumps({deny("unknown key"): deny("unknown"), "series": [{
            "labels": labels, "annotations": deny("annotation"), "samples": samples, deny("unknown key"): deny("unknown")}]}).encode()

    def pyroscope_good(self):
        c, push = self.c, "/push.v1.PusherService/Push"
        config = json.dumps({c.deny("type in a config"): {"display-name": c.deny("display name"), "units": c.deny("unit")}})
        form = b'--limit\r\nContent-Disposition: form-data; name="sample_type_config"; filename="x"\r\n\r\n%s\r\n' % config.encode()
        self.ask_pyroscope(self.ingest_path() + "&format=pprof", poison.pprof(c), [200])
        self.ask_pyroscope("/pyroscope" + self.ingest_path() + "&format=pprof", gzip.compress(poison.pprof(c)), [200], Content_Encoding="gzip")
        self.ask_pyroscope(self.ingest_path(), form + self.form(poison.pprof(c)), [200],
                           Content_Type="multipart/form-data; boundary=limit")
        self.ask_pyroscope(push, self.pushed(), [200], Content_Type="application/proto")
        self.ask_pyroscope(push, self.push_json(), [200], Content_Type="application/json")
        label = poison.field(1, c.deny("label of a series that is refused").encode() * 100)
        bad = poison.field(1, poison.field(1, label) + poison.field(2, b""))
        self.ask_pyroscope(push, self.pushed() + bad, [400])

    def pyroscope_refused(self):
        c, push = self.c, "/push.v1.PusherService/Push"
        deny = lambda what: c.deny("refused by pyroscope: " + what)
        for name, body in poison.refused_pprofs(c):
            self.ask_pyroscope(self.ingest_path() + "&format=pprof", body, [200, 413, 422])
            series = poison.field(1, poison.field(1, b"__name__") + poison.field(2, b"x"))
            self.ask_pyroscope(push, poison.field(1, series + poison.field(2, poison.field(1, body))), [400, 413])
        self.ask_pyroscope(push, self.pushed()[:-10], [400])
        self.ask_pyroscope(push, self.push_json()[:-2], [400], Content_Type="application/json")
        self.ask_pyroscope(push, self.push_json().replace(b'"region"', b'["%s"]' % deny("JSON").encode()), [400],
                           Content_Type="application/json")
        self.ask_pyroscope(push, deny("body").encode(), [415], Content_Type="application/" + deny("media type"))
        for name in ("%s %s", "app{%s=%s", "app{%s-x=%s}", "app{a=b}%s%s"):
            name = urllib.parse.quote(name % (deny("name"), deny("name")))
            self.ask_pyroscope("/ingest?name=" + name, deny("body").encode(), [400])
        self.ask_pyroscope("/ingest?name=app&format=jfr&" + deny("parameter"), deny("body").encode(), [415])
        self.ask_pyroscope("/ingest?name=app", self.form(poison.pprof(c)).replace(b'name="profile"', b'name="prev_profile"'), [422],
                           Content_Type="multipart/form-data; boundary=limit")
        self.ask_pyroscope("/" + deny("path"), b"", [404])

    # Parca's clients

    def written(self):
        """A WriteRaw request with unknown fields at each level."""
        deny = lambda what: self.c.deny(what).encode()
        labels = b"".join(poison.field(1, poison.field(1, k.encode()) + poison.field(2, v.encode()) + poison.field(9, deny("unknown")))
                          for k, v in self.labels_of_a_series().items())
        sample = poison.field(1, poison.pprof(self.c)) + poison.field(9, deny("unknown"))
        series = poison.field(1, labels + poison.field(9, deny("unknown"))) + poison.field(2, sample) + poison.field(9, deny("unknown"))
        return poison.field(1, deny("tenant")) + poison.field(2, series) + poison.field(9, deny("unknown"))

    def written_json(self):
        deny = self.c.deny
        labels = [{"name": k, "value": v, deny("unknown key"): deny("unknown")} for k, v in self.labels_of_a_series().items()]
        samples = [{"rawProfile": base64.b64encode(poison.pprof(self.c)).decode(), deny("unknown key"): deny("unknown")}]
        return json.dumps({"tenant": deny("tenant"), deny("unknown key"): [deny("unknown")], "series": [{
            "labels": {"labels": labels, deny("unknown key"): {}}, "samples": samples}]}).encode()

    def call_parca(self, body, want, method=parca.METHOD):
        with grpc.insecure_channel("127.0.0.1:%d" % self.gateway.port["parca_grpc"]) as channel:
            try:
                answer = channel.unary_unary(method)(body, metadata=self.metadata(), timeout=20)
                code, text = grpc.StatusCode.OK, answer
            except grpc.RpcError as error:
                code, text = error.code(), error.details()
        self.see("replies", "%s %r" % (code, text))
        assert code in want, (code, text)

    def post_parca(self, body, want, path="/api/profiles/writeraw"):
        self.post(body, want, path="%s?%s=%s" % (path, self.c.deny("query"), self.c.deny("query")), port="parca_http")

    def parca_good(self):
        label = poison.field(1, self.c.deny("label of a series that is refused").encode() * 100)
        bad = poison.field(2, poison.field(1, poison.field(1, label)) + poison.field(2, b""))
        self.call_parca(self.written(), [grpc.StatusCode.OK])
        self.call_parca(self.written() + bad, [grpc.StatusCode.INVALID_ARGUMENT])
        self.post_parca(self.written_json(), [200])

    def parca_refused(self):
        code, deny = grpc.StatusCode, lambda what: self.c.deny("refused by parca: " + what)
        for name, body in poison.refused_pprofs(self.c):
            labels = poison.field(1, poison.field(1, poison.field(1, b"__name__") + poison.field(2, b"x")))
            self.call_parca(poison.field(2, labels + poison.field(2, poison.field(1, body))),
                            [code.INVALID_ARGUMENT, code.RESOURCE_EXHAUSTED])
        self.call_parca(self.written()[:-10], [code.INVALID_ARGUMENT])
        self.call_parca(deny("body").encode(), [code.UNIMPLEMENTED], parca.METHOD.replace("WriteRaw", "WriteArrow"))
        self.post_parca(self.written_json()[:-2], [400])
        self.post_parca(self.written_json().replace(b'"region"', b'["%s"]' % deny("JSON").encode()), [400])
        self.post_parca(deny("body").encode(), [501], "/api/profiles/write")
        self.post_parca(deny("body").encode(), [404], "/api/" + deny("path"))

    # files of lines

    def write_lines(self, name, lines, outcome):
        def read():
            return self.gateway.total("otelcol_receiver_otlp_json_file_lines", outcome=outcome)
        wanted = read() + len(lines)
        (self.directory / "lines").mkdir(exist_ok=True)
        (self.directory / "lines" / name).write_bytes(b"".join(line.replace(b"\n", b" ") + b"\n" for line in lines))
        self.gateway.until(lambda: read() == wanted)

    def line(self):
        c = self.c
        message = make.request(7, samples=3, service=c.permit("service of a line"))
        attributes = message.resource_profiles[0].resource.attributes
        make.set_value(attributes.add(key=c.deny_key("attribute of a line")).value, c.deny("value of a denied attribute of a line"))
        make.set_value(attributes.add(key="denied.line").value, {c.deny_key("nested key of a line"): [c.deny("nested value of a line")]})
        make.set_value(next(a for a in attributes if a.key == "region").value, c.permit("attribute of a line"))
        return b'{"%s":["%s"],' % (c.deny("name of a line").encode(), c.deny("unknown value of a line").encode()) + \
            otlp.to_json(message.SerializeToString())[1:]

    def lines_good(self):
        self.write_lines("good.jsonl", [self.line(), self.line()], "success")

    def lines_refused(self):
        deny = lambda what: self.c.deny("refused line: " + what).encode()
        self.write_lines("bad.jsonl", [deny("text"), b'{"%s"' % deny("name"), b'{"resourceProfiles":"%s"}' % deny("value"),
                                       b'{"%s":"%s"}' % (deny("name"), deny("long") * 100000)], "failed")

    # Kafka

    def write_kafka(self, topic, messages, outcome):
        def read():
            return self.gateway.total("otelcol_kafka_receiver_messages", receiver="kafka/" + topic, outcome=outcome)
        wanted = read() + len(messages)
        headers = [(name, self.c.deny("header of Kafka").encode()) for name in ("x-denied", "X-Thing", self.c.deny_key("header of Kafka"))]
        if topic == "pprof":
            headers.append(("service.name", self.c.permit("service of Kafka").encode()))
        with self.broker.writer() as writer:
            for message in messages:
                writer.send("in." + topic, message, headers=headers)
        self.gateway.until(lambda: read() == wanted)

    def kafka_good(self):
        if FROM_KAFKA:
            self.write_kafka("otlp", [self.line(), self.line()], "success")
            self.write_kafka("pprof", [poison.pprof(self.c)], "success")

    def kafka_refused(self):
        if FROM_KAFKA:
            deny = lambda what: self.c.deny("refused by Kafka: " + what).encode()
            self.write_kafka("otlp", [deny("text"), b'{"%s"' % deny("name"), b'{"%s":"%s"}' % (deny("name"), deny("long") * 100000)], "failed")
            self.write_kafka("pprof", [body for _, body in poison.refused_pprofs(self.c)], "failed")

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
        for port in ("pprof", "pyroscope", "parca_http", "health", "metrics", "otlp", "otlp_http"):
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
        def done(exporter, pipeline="profiles"):
            return self.gateway.balanced(pipeline, exporter) and not self.gateway.total("otelcol_ledger_queued_samples", exporter=exporter)
        self.gateway.until(lambda: not self.gateway.total("otelcol_ledger_batched_samples") and all(map(done, EXPORTERS)) and
                           done("file/routed", "profiles/behind") and done("file/forwarded", "profiles/forwarded"))

    def read_kafka(self):
        """All messages that were acknowledged: their topics, keys, headers and values."""
        if not KAFKA:
            return
        out = {name: self.gateway.total("otelcol_ledger_out_samples", exporter=name) for name in KAFKA}
        for name, parse in (("kafka/proto", otlp.parse), ("kafka/json", otlp.parse_json)):
            topic = name[6:]
            for m in self.reader.until(lambda all: samples_of([m for m in all if m.topic == topic], parse) == out[name]):
                if m.topic == topic:
                    self.see_message(name, m)
                    self.see("metadata to destinations", m.headers)
        topics = sorted(set(self.broker.topics()) - KAFKA_TOPICS)
        assert topics
        for topic in topics:
            self.see("names of topics", topic)
        with self.broker.reader("named", *topics) as reader:
            for m in reader.until(lambda all: samples_of(all, otlp.parse) == out["kafka/named"]):
                self.see_message("kafka/named", m)
                assert m.key is None
                self.see("metadata to destinations", m.headers)
        self.read_kafka_pprof()

    def read_kafka_pprof(self):
        """All before a last message of each partition: how many there are, nobody counts."""
        with self.broker.writer() as writer:
            for partition in range(kafka.PARTITIONS):
                writer.send("pprof", b"last", partition=partition)
        for m in self.reader.until(lambda all: sum(m.value == b"last" for m in all) == kafka.PARTITIONS):
            if m.topic == "pprof" and m.value != b"last":
                self.see_message("kafka/pprof", m)
                self.see("kafka/pprof", gzip.decompress(m.value))
                for name, value in m.headers:
                    self.see("headers of Kafka", name)
                    self.see("headers of Kafka", value)

    def see_message(self, place, message):
        self.see(place, message.value)
        self.see(place, message.key or b"")

    def all(self):
        with contextlib.ExitStack() as forms, self.a, self.b, self.push, self.http, self.json, self.parca, self.kafka, self.gateway:
            for sink in (self.member, self.bad_member, self.index, *self.forms.values()):
                forms.enter_context(sink)
            if KAFKA:
                self.kafka.enter_context(self.reader)
            self.grpc_good()
            self.http_good()
            self.pyroscope_good()
            self.otlp_http_good()
            self.parca_good()
            self.lines_good()
            self.kafka_good()
            self.c.refusing = True
            self.grpc_refused()
            self.http_refused()
            self.pyroscope_refused()
            self.json_refused()
            self.otlp_http_refused()
            self.parca_refused()
            self.lines_refused()
            self.kafka_refused()
            self.garbage_http()
            self.garbage_http2()
            self.tls()
            self.flush()
            self.read_kafka()
            self.see("metrics", self.gateway.metrics_text())
            assert self.gateway.stop() == 0, self.gateway.log()
        for data in self.a.received:
            self.see("otlp_grpc/a", data)
        for data in self.member.received:
            self.see("load_balancing", data)
        for data in self.index.received:
            self.see("otlp_grpc/index", data)
        for exporter, sink in (("otlp_http/proto", self.http), *zip(FORMS[1:], self.forms.values())):
            for taken in sink.taken:
                self.see(exporter, taken.body)
        self.see("metadata to destinations", [sink.metadata for sink in (self.a, self.b, self.member, self.bad_member, self.index, self.parca)])
        for sink in (self.push, self.http, self.json, *self.forms.values()):
            self.see("metadata to destinations", [str(taken.headers) + taken.path for taken in sink.seen])
        self.see("logs", self.gateway.log_path.read_bytes())
        self.files()
        return self

    def files(self):
        for path in sorted((self.directory / "out").rglob("*")):
            parts = path.relative_to(self.directory / "out").parts
            grouped = parts[0] == "groups" and len(parts) > 1  # by a value that policy permits
            self.see("names of groups" if grouped else "file names", path.name)
            if path.is_file():
                letter = parts[0] == "dead"
                place = "file/pprof" if parts[0] == "pprof" else "file/groups" if grouped else path.name
                if letter:
                    place = "dead letters" if path.suffix == ".otlp" else "reason files"
                if letter and path.suffix == ".json":
                    self.see(place, base64.b64decode(json.loads(path.read_text())["record"]))
                for data in records(path):
                    for layer in canaries.unpacked(data):
                        self.see(place, layer)


def samples_of(messages, parse):
    return sum(len(p.samples) for m in messages for r in parse(m.value).resource_profiles for s in r.scope_profiles for p in s.profiles)


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


WHOLE_KAFKA = [name for name in ("kafka/proto", "kafka/json") if KAFKA]
BY_KAFKA = ["kafka/pprof", "kafka/named", "names of topics", "headers of Kafka"] if KAFKA else []
FULL = ("otlp_grpc/a", "load_balancing", "otlp_http/proto", "otlp_http/json", *FORMS, *WHOLE_KAFKA, "profiles.jsonl", "profiles.binpb", "profiles.zst", "routed.jsonl",
        "forwarded.binpb", "detailed.txt")
DESTINATIONS = (*FULL, "otlp_grpc/b", "dead letters", "file/pprof", "file/groups", "names of groups", "pyroscope", "parca", "normal.txt", *BY_KAFKA)
SILENT = ("logs", "metrics", "replies", "file names", "reason files", "metadata to destinations")


@pytest.mark.threads
@pytest.mark.parametrize("place", [*DESTINATIONS, *SILENT])
def test_nothing_denied_is_found(run, place):
    found = run.c.found(run.seen(place))
    assert not found, "LEAK_SEED=%d, %d kinds: %s\n%s" % (
        run.seed, len(found), dict(found.most_common(40)), "\n".join(finding.describe(run.c, place, run.pieces[place])))


@pytest.mark.parametrize("place", FULL)
def test_everything_permitted_arrives(run, place):
    missing = run.c.missing(run.seen(place))
    assert not missing, "LEAK_SEED=%d: %s" % (run.seed, missing)


# A series that has the label already, and numbers: the store would not take them either.
NO_PLACE = {"file/pprof": set(), **({"kafka/pprof": set()} if KAFKA else {}),
            "pyroscope": {"pprof label", "pprof label unit"},
            "parca": {"pprof label", "pprof label unit", "pprof trace_id", "pprof span_id"}}


@pytest.mark.parametrize("place", NO_PLACE)
def test_what_pprof_has_a_field_for_arrives_there(run, place):
    for kind in ("function", "mapping file", "sample type", "period type", "pprof "):
        assert set(run.c.missing(run.seen(place), kind)) <= NO_PLACE[place]


@pytest.mark.skipif(not KAFKA, reason="ThreadSanitizer does not know the threads of librdkafka")
def test_names_of_topics_and_headers_are_searched(run):
    """What policy permits is there, so what it denies would have been found."""
    assert canaries.occurrences(run.c.permitted, run.seen("names of topics"))
    assert canaries.occurrences(run.c.permitted, run.seen("headers of Kafka"))


@pytest.mark.parametrize("place", SILENT)
def test_no_text_of_a_sender_is_found_but_at_destinations(run, place):
    assert not canaries.occurrences(run.c.permitted, run.seen(place))


def test_what_leaves_is_in_order(run):
    for data in run.a.received + run.member.received + run.bad_member.received:
        assert profcheck.structure(data) == []


# The keys of poison.POLICY by `redaction`, which has one list for all sites; its own patterns besides.
REDACTED = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
processors:
  redaction:
    allowed_keys: [service.name, region, tier, note, size, open.name, open.door, open.array, open.bytes, "open.mend\\uFFFDe"]
    blocked_key_patterns: ['^(tier|size)$']
    allowed_values: ['^(gold|silver|5|MiB)$']
    blocked_values: ['[a-z]+@[a-z]+\\.example\\.com', '/home/[a-z]+']
    summary: debug
  pii: {number_keys: [note]}
exporters:
  file/json: {path: out/profiles.jsonl, format: json}
  file/proto: {path: out/profiles.binpb, format: proto}
  debug: {verbosity: detailed, sampling_initial: 1000, output_paths: [out/detailed.txt]}
service:
  telemetry: {logs: {level: debug, sampling: {enabled: false}}}
  pipelines:
    profiles: {receivers: [otlp, pprof], processors: [redaction, pii], exporters: [file/json, file/proto, debug]}
"""


def test_what_redaction_denies_is_found_nowhere(build, tmp_path):
    seed = int(os.environ.get("LEAK_SEED") or random.SystemRandom().randrange(10 ** 9))
    c = canaries.Canaries(seed)
    with Gateway(build / "portcullis", REDACTED, cwd=tmp_path) as g, peers.Client(g.port["otlp"]) as client:
        for by_reference in (False, True):
            for body in (poison.otlp(c, by_reference), poison.specimens(c, by_reference), poison.partly_bad(c, by_reference)[0]):
                client.send(body)
        peers.post(g.port["pprof"], poison.pprof(c))
        g.until(lambda: all(g.balanced("profiles", name) for name in ("file/json", "file/proto", "debug")))
        metrics = g.metrics_text()
        assert g.stop() == 0
    for path in sorted((tmp_path / "out").iterdir()):
        data = path.read_bytes()
        found = c.found(data)
        assert not found, "LEAK_SEED=%d, %s, %d kinds: %s\n%s" % (
            seed, path.name, len(found), dict(found.most_common(40)), "\n".join(finding.describe(c, path.name, [data])))
        assert not c.missing(data), "LEAK_SEED=%d, %s: %s" % (seed, path.name, c.missing(data))
        assert b"redaction.redacted.count" in data
    for data in (metrics.encode(), g.log().encode()):
        assert not c.found(data) and not canaries.occurrences(c.permitted, data)


# Each detector that is off by default, at every site and with no other one enabled that could take its specimen.
ENABLED = """
receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}}
processors:
  pii: {roles: [value, unit, scope, schema, entity, function, file, mapping, type], detectors: {DETECTOR: {roles: [
    value, unit, scope, schema, entity, function, file, mapping, type]}}}
exporters:
  file/json: {path: out/profiles.jsonl, format: json}
  file/proto: {path: out/profiles.binpb, format: proto}
service: {pipelines: {profiles: {receivers: [otlp], processors: [pii], exporters: [file/json, file/proto]}}}
"""


@pytest.mark.parametrize("detector", sorted(canaries.optional_specimens(random.Random(1), canaries.Canaries(1).word)))
def test_what_an_enabled_detector_matches_is_found_nowhere(build, tmp_path, detector):
    seed = int(os.environ.get("LEAK_SEED") or random.SystemRandom().randrange(10 ** 9))
    c = canaries.Canaries(seed)
    only = lambda rng, word: {detector: canaries.optional_specimens(rng, word)[detector]}
    with Gateway(build / "portcullis", ENABLED.replace("DETECTOR", detector), cwd=tmp_path) as g, peers.Client(g.port["otlp"]) as client:
        for by_reference in (False, True):
            client.send(poison.specimens(c, by_reference, only))
        assert g.stop() == 0
    for path in sorted((tmp_path / "out").iterdir()):
        data = path.read_bytes()
        found = c.found(data)
        assert not found, "LEAK_SEED=%d, %s: %s" % (seed, path.name, dict(found.most_common(40)))
        assert not c.missing(data), "LEAK_SEED=%d, %s: %s" % (seed, path.name, c.missing(data))


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
