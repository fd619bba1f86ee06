# SPDX-License-Identifier: Apache-2.0
"""The receiver parca: what clients of Parca write goes in, and what the exporter parca writes to a store comes out."""
import base64
import gzip
import json
import subprocess

import grpc
import pytest
from google.protobuf import json_format

import interop_stores_pb2 as messages
from harness import build as make
from harness import parca, peers, pprof
from harness.gateway import Gateway

HTTP, SERVICE = "/api/profiles/writeraw", parca.METHOD.rpartition("/")[0]
CONFIG = """
receivers:
  parca:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:grpc}}
      http: {endpoint: 127.0.0.1:{port:http}, max_request_body_size: 4000000}
    %s
exporters:
  parca: {endpoint: 127.0.0.1:{port:parca}, tls: {insecure: true}, retry_on_failure: {enabled: false}%s}
service:
  pipelines:
    profiles: {receivers: [parca], exporters: [parca]}
"""


class Rig:
    """A gateway between a client and a store."""

    def __init__(self, build, keys="", exporter=""):
        self.gateway = Gateway(build / "portcullis", CONFIG % (keys, exporter))
        self.sink = peers.Sink(self.gateway.port["parca"], method=parca.METHOD)

    def __enter__(self):
        self.sink.start()
        self.gateway.__enter__()
        self.channel = grpc.insecure_channel("127.0.0.1:%d" % self.gateway.port["grpc"])
        return self

    def __exit__(self, *failure):
        self.channel.close()
        self.gateway.__exit__(*failure)
        self.sink.stop()

    def call(self, request, method=parca.METHOD):
        """(code, message)"""
        data = request if isinstance(request, bytes) else request.SerializeToString()
        try:
            assert self.channel.unary_unary(method)(data, timeout=60) == b""
            return grpc.StatusCode.OK, ""
        except grpc.RpcError as error:
            return error.code(), error.details()

    def post(self, request, path=HTTP, **headers):
        """(status, the JSON of the response)"""
        body = request if isinstance(request, bytes) else json_format.MessageToJson(request).encode()
        status, self.headers, answer = peers.post(self.gateway.port["http"], body, path,
                                                  {k.replace("_", "-"): v for k, v in headers.items()})
        return status, json.loads(answer)

    def arrived(self, *labels):
        """[(labels, pprof)] that the store has, as an independent reader of WriteRaw reads them."""
        self.gateway.until(lambda: self.gateway.total("otelcol_ledger_queued_samples") == 0)
        found = [pair for data in self.sink.received for pair in parca.read(data, *labels)]
        self.sink.received.clear()
        return found


@pytest.fixture(scope="module")
def running(build):
    with Rig(build) as rig:
        yield rig


@pytest.fixture
def rig(running):
    """The same for all tests, without what earlier ones sent."""
    running.sink.received.clear()
    return running


def write(*series, **fields):
    """Each a dict of labels and pprofs."""
    message = messages.WriteRawRequest(**fields)
    for labels, *bodies in series:
        row = message.series.add()
        row.labels.labels.extend(messages.Label(name=k, value=v) for k, v in labels.items())
        for body in bodies:
            row.samples.add(raw_profile=body if isinstance(body, bytes) else body.SerializeToString())
    return message


def profile(seed=1, types=(("samples", "count"), ("cpu", "nanoseconds")), labels=()):
    return make.pprof(seed, types=types, labels=labels)


LABELS = {"__name__": "process_cpu", "job": "api", "instance": "a:1", "service_name": "shop"}


def same(sent, got):
    assert got.time_nanos == sent.time_nanos and got.duration_nanos == sent.duration_nanos
    assert [parca.pprof.Reader(got).kind(t) for t in got.sample_type] == [pprof.Reader(sent).kind(t) for t in sent.sample_type]
    for i in range(len(sent.sample_type)):
        assert pprof.values(got, i) == pprof.values(sent, i)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_series_and_types_arrive_as_from_a_direct_write(rig, pack):
    one, two = profile(1), profile(2, types=(("alloc_space", "bytes"), ("inuse_space", "bytes")))
    memory = {**LABELS, "__name__": "my_memory", "odd": "gr\u00fc\u00df \U0001f600"}
    request = write((LABELS, pack(one.SerializeToString())), (memory, pack(two.SerializeToString())), tenant="ignored")
    assert rig.call(request) == (grpc.StatusCode.OK, "")
    (a, first), (b, second) = sorted(rig.arrived(), key=lambda pair: pair[0]["__name__"], reverse=True)
    assert (a, b) == (LABELS, memory)
    same(one, first)
    same(two, second)
    assert parca.kinds(a, first) == parca.kinds(LABELS, one) and parca.kinds(b, second) == parca.kinds(memory, two)


def test_profiles_of_one_series_stay_apart(rig):
    sent = [profile(seed) for seed in (1, 2, 3)]
    for i, p in enumerate(sent):
        p.time_nanos += i * 10 ** 9
    assert rig.call(write((LABELS, *sent)))[0] == grpc.StatusCode.OK
    got = sorted((p for _, p in rig.arrived()), key=lambda p: p.time_nanos)
    assert len(got) == 3
    for a, b in zip(sent, got):
        same(a, b)


def test_real_profiles_arrive(rig, corpus):
    """The counts of Parca's own files, and of others: labels of samples are not stored by Parca."""
    for path in sorted(corpus.glob("pprof/*parca*.gz")) if corpus else []:
        assert rig.call(write((LABELS, path.read_bytes()))) == (grpc.StatusCode.OK, ""), path
        assert all(labels == LABELS for labels, _ in rig.arrived()), path


def test_the_json_of_the_gateway_is_the_same_request(rig):
    one = profile(4)
    for name in (True, False):
        request = write((LABELS, one))
        body = json_format.MessageToJson(request, preserving_proto_field_name=name).encode()
        assert rig.post(body, Content_Type="application/json") == (200, {})
        ((labels, got),) = rig.arrived()
        assert labels == LABELS
        same(one, got)
    assert rig.post(gzip.compress(body), Content_Encoding="gzip") == (200, {})
    rig.arrived()


@pytest.mark.parametrize("method", ["Write", "WriteArrow"])
def test_arrow_is_refused_with_the_reason(rig, method):
    code, text = rig.call(b"", SERVICE + "/" + method)
    assert code == grpc.StatusCode.UNIMPLEMENTED and "Apache Arrow" in text and "WriteRaw" in text
    status, answer = rig.post(b"{}", "/api/profiles/" + method.lower())
    assert status == 501 and answer == {"code": 12, "message": text, "details": []}


def test_arrow_as_a_stream_is_refused_with_the_reason(rig):
    stream = rig.channel.stream_stream(SERVICE + "/Write")(iter([b"\x0a\x03abc"] * 3), timeout=20)
    with pytest.raises(grpc.RpcError) as error:
        list(stream)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED and "Apache Arrow" in error.value.details()


def labels(*pairs):
    message = messages.WriteRawRequest()
    message.series.add().labels.labels.extend(messages.Label(name=k, value=v) for k, v in pairs)
    message.series[0].samples.add(raw_profile=profile().SerializeToString())
    return message


NAMED = ("__name__", "x")


@pytest.mark.parametrize("request_, text", [
    (labels(("job", "a")), "series 1: the label __name__ is missing"),
    (labels(), "series 1: the label __name__ is missing"),
    (labels(("__name__", "")), "series 1: the label __name__ is missing"),
    (labels(("__name__", "a-b")), "series 1: the label __name__ is not of the form"),
    (labels(("__name__", "1a")), "series 1: the label __name__ is not of the form"),
    (labels(NAMED, ("a.b", "c")), "series 1: label 2: its name is not of the form [A-Za-z_][A-Za-z0-9_]*, which `labels: legacy`"),
    (labels(NAMED, ("1", "c")), "series 1: label 2: its name is not of the form"),
    (labels(NAMED, ("", "c")), "series 1: label 2: its name is empty"),
    (labels(NAMED, ("a", "b"), ("a", "b")), "series 1: label 3: its name is repeated"),
    (labels(NAMED, *(("l%d" % i, "") for i in range(100))), "101 labels, more than series_limits.max_labels (100)"),
    (labels(NAMED, ("n" * 1025, "c")), "its name has 1025 bytes, more than series_limits.max_name_length (1024)"),
    (labels(NAMED, ("n", "c" * 2049)), "its value has 2049 bytes, more than series_limits.max_value_length (2048)"),
    (write(({"__name__": "x"}, b"rubbish")), "pprof: "),
    (write(({"__name__": "x"}, b"")), "series 1: the profile is empty"),
    (write(({"__name__": "x"}, gzip.compress(b"x" * 9)[:-5])), "gzip"),
    (b"\x12\x05abc", "WriteRawRequest: is truncated"),
    (b"\x12\x03\x0a\x05a", "RawProfileSeries: is truncated"),
    (b"\x10\x01", "WriteRawRequest: contains a known field with the wrong wire type"),
])
def test_what_parca_would_refuse_is_an_invalid_argument(rig, request_, text):
    code, message = rig.call(request_)
    assert code == grpc.StatusCode.INVALID_ARGUMENT and text in message, message
    if not isinstance(request_, bytes):
        status, answer = rig.post(request_)
        assert (status, answer["code"]) == (400, 3) and text in answer["message"]
    assert not rig.arrived()


def test_one_bad_series_is_rejected_alone_and_the_sender_learns_it(rig):
    good, bad = (LABELS, profile()), ({"job": "x"}, profile(), profile())
    code, text = rig.call(write(good, bad, good))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert text == "profiles rejected: 1, the others were accepted: document 1: series 2: the label __name__ is missing"
    assert {labels["job"] for labels, _ in rig.arrived()} == {"api"}
    assert rig.post(write(good, bad))[0] == 400
    assert len(rig.arrived()) == 1


def test_a_request_without_profiles_is_accepted(rig):
    assert rig.call(b"")[0] == grpc.StatusCode.OK
    assert rig.call(write(({"__name__": "x"},)))[0] == grpc.StatusCode.OK
    assert rig.post(b"{}") == (200, {})
    assert not rig.arrived()


def test_json_that_is_none_is_a_bad_request(rig):
    for body, text in ((b"", "the JSON is not an object or an array"), (b"{", "truncated"),
                       (b'{"series":[{"samples":[{"rawProfile":"*"}]}]}', "series[0].samples[0].rawProfile: is not base64")):
        status, answer = rig.post(body)
        assert (status, answer["code"], answer["details"]) == (400, 3, []) and text in answer["message"], answer
        assert rig.headers["Content-Type"] == "application/json"
    assert rig.post(b" " * 4000001)[0] == 413


def executables(count):
    one = profile()
    request = write((LABELS, one), normalized=True).SerializeToString()
    info = b"\x12\x08\x08\x03\x12\x04\x08\x10\x10\x20"
    sample = b"\x0a" + make_varint(len(one.SerializeToString())) + one.SerializeToString() + info * count
    series = write((LABELS,)).series[0].SerializeToString() + b"\x12" + make_varint(len(sample)) + sample
    assert len(request) < len(series) + 100
    return b"\x12" + make_varint(len(series)) + series + b"\x18\x01", len(one.mapping)


def make_varint(n):
    return bytes([n & 127 | 128]) + make_varint(n >> 7) if n > 127 else bytes([n])


def test_what_is_not_forwarded_is_counted(build):
    with Rig(build) as rig:
        data, mappings = executables(0)
        data, _ = executables(mappings)
        assert rig.call(data)[0] == grpc.StatusCode.OK
        code, text = rig.call(executables(mappings + 1)[0])
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert "executable_info: %d entries for %d mappings" % (mappings + 1, mappings) in text
        counted = {kind: rig.gateway.total("otelcol_receiver_parca_unsupported_items", receiver="parca", kind=kind)
                   for kind in ("normalized", "executable_info")}
        assert counted == {"normalized": 2, "executable_info": 2 * mappings + 1}
        assert len(rig.arrived()) == 1
        rig.call(b"", SERVICE + "/WriteArrow")
        assert rig.gateway.total("otelcol_grpc_server_refused_requests") == 1


def test_names_with_dots_pass_where_both_sides_say_utf8(build):
    with Rig(build, "labels: utf8", ", labels: utf8") as rig:
        sent = {**LABELS, "k8s.pod.name": "p"}
        assert rig.call(write((sent, profile())))[0] == grpc.StatusCode.OK
        ((got, _),) = rig.arrived(True)
        assert got == {"service.name" if k == "service_name" else k: v for k, v in sent.items()}


def test_too_many_profiles_and_too_large_requests_are_refused(build):
    with Rig(build, "series_limits: {max_profiles: 3}") as rig:
        code, text = rig.call(write((LABELS, *[profile()] * 4)))
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert text == "the request has 4 profiles, more than series_limits.max_profiles (3)"
        assert rig.call(write((LABELS, *[profile()] * 3)))[0] == grpc.StatusCode.OK
        assert rig.call(write((LABELS, b"\0" * (5 << 20))))[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
        bomb = gzip.compress(b"\0" * (64 << 20))
        assert rig.call(write((LABELS, bomb)))[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert rig.post(write((LABELS, bomb)))[0] == 413


def test_a_configuration_names_a_protocol(build, tmp_path):
    path = tmp_path / "config.yaml"
    for protocols, text in (("{}", "grpc, http or both must be specified"),
                            ("{http: {}}", "protocols::http::endpoint: must be specified")):
        path.write_text("""
receivers: {parca: {protocols: %s}}
exporters: {debug: {}}
service: {pipelines: {profiles: {receivers: [parca], exporters: [debug]}}}
""" % protocols)
        run = subprocess.run([build / "portcullis", "validate", "--config", path], capture_output=True, text=True)
        assert run.returncode != 0 and text in run.stderr


def test_base64_of_either_alphabet_is_read(rig):
    body = profile(9).SerializeToString()
    for encode in (base64.b64encode, base64.urlsafe_b64encode, lambda b: base64.b64encode(b).rstrip(b"=")):
        document = {"series": [{"labels": {"labels": [{"name": "__name__", "value": "x"}]},
                                "samples": [{"rawProfile": encode(body).decode()}]}]}
        assert rig.post(json.dumps(document).encode()) == (200, {})
        assert len(rig.arrived()) == 1
