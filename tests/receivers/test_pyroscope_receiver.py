# SPDX-License-Identifier: Apache-2.0
"""The receiver pyroscope: what SDKs send goes in, and what the exporter pyroscope sends to a store comes out."""
import base64
import gzip
import json
import pathlib
import re
import subprocess
import time
import urllib.parse

import pytest

import interop_stores_pb2 as messages
from harness import build as make
from harness import canaries, peers, pprof
from harness.gateway import Gateway
from harness.push import PushSink

HEADS = sorted((pathlib.Path(__file__).parent / "pyroscope_heads").glob("*.head"))
PUSH, INGEST = "/push.v1.PusherService/Push", "/ingest"
CONFIG = """
receivers:
  pyroscope:
    endpoint: 127.0.0.1:{port:in}
    max_request_body_size: 4000000
    %(keys)s
exporters:
  pyroscope:
    endpoint: http://127.0.0.1:%(port)d
    labels: utf8
    limits: {max_age: 876000h, max_ahead: 876000h}
service:
  pipelines:
    profiles: {receivers: [pyroscope], exporters: [pyroscope]}
"""
BLOCK = {"contentions": {"display-name": "block_count", "units": "lock_samples"},
         "delay": {"display-name": "block_duration", "units": "lock_nanoseconds", "cumulative": False}}
SDK = "go.app{__session_id__=77e4,dotted.tag=v1,otel.scope.name=com.grafana.pyroscope/go}"


class Rig:
    """A gateway between a client and a store."""

    def __init__(self, build, keys=""):
        self.sink = PushSink()
        self.gateway = Gateway(build / "portcullis", CONFIG % {"port": self.sink.port, "keys": keys})

    def __enter__(self):
        self.sink.__enter__()
        self.gateway.__enter__()
        return self

    def __exit__(self, *failure):
        self.gateway.__exit__(*failure)
        self.sink.__exit__(*failure)

    def post(self, path, body, **headers):
        """(status, body); headers with _ for -."""
        status, self.headers, answer = peers.post(
            self.gateway.port["in"], body, path, {k.replace("_", "-"): v for k, v in headers.items()})
        return status, answer

    def ingest(self, body, name="app", headers=None, **query):
        path = INGEST + "?" + urllib.parse.urlencode({"name": name, **query})
        return self.post(path, body, **headers or {})

    def push(self, *series, **headers):
        return self.post(PUSH, push(*series).SerializeToString(), **{"Content_Type": "application/proto", **headers})

    def taken(self, count=1):
        """The requests that the store has taken, once there are that many."""
        self.gateway.until(lambda: len(self.sink.taken) >= count)
        return self.sink.taken

    def refused(self, reason):
        return self.gateway.total("otelcol_receiver_refused_requests", receiver="pyroscope", reason=reason)


@pytest.fixture(scope="module")
def rig(build):
    with Rig(build) as rig:
        yield rig


@pytest.fixture(autouse=True)
def forget(request):
    """Of what earlier tests sent."""
    if "rig" in request.fixturenames:
        request.getfixturevalue("rig").sink.taken.clear()


def push(*series):
    """Each a dict of labels and pprofs."""
    message = messages.PushRequest()
    for labels, *bodies in series:
        row = message.series.add(labels=[messages.Label(name=k, value=v) for k, v in labels.items()])
        for body in bodies:
            row.samples.add(raw_profile=body)
    return message


def profile(*kinds, seed=1, at=None, **more):
    p = make.pprof(seed, types=kinds or (("samples", "count"), ("cpu", "nanoseconds")), labels=("thread.name",), **more)
    p.time_nanos = at if at is not None else time.time_ns() // 10 ** 6 * 10 ** 6
    return p


def form(*parts):
    """(body, headers)"""
    body = b"".join(b'--b0\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\nContent-Type: x/y\r\n\r\n%s\r\n'
                    % (name, name, content) for name, content in parts)
    return body + b"--b0--\r\n", {"Content_Type": "multipart/form-data; boundary=b0"}


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def same(sent, got):
    assert got.time_nanos == sent.time_nanos
    for i, kind in enumerate(sent.sample_type):
        assert pprof.values(got, i) == pprof.values(sent, i), kind


LABELS = {"service_name": "app", "pyroscope_spy": "unknown", "__delta__": "false", "__name__": "process_cpu"}


# ---- requests of real clients

@pytest.mark.parametrize("path", HEADS, ids=lambda p: p.stem)
def test_the_requests_of_real_clients_are_taken_and_their_labels_arrive(rig, path):
    """Request line and headers as recorded; the body is ours, in the form that the headers announce."""
    head = path.read_bytes().decode()
    lines = head.split("\r\n")
    target, headers = lines[0].split()[1], dict(line.split(": ", 1) for line in lines[1:] if line)
    headers = {k.lower(): v for k, v in headers.items() if k.lower() not in ("content-length", "host")}
    kinds = {"go-goroutines": [("goroutine", "count")], "go-block": [("contentions", "count"), ("delay", "nanoseconds")],
             "go-heap": [("alloc_objects", "count"), ("inuse_space", "bytes")], "node-heap": [("inuse_space", "bytes")],
             "node-wall": [("samples", "count"), ("wall", "nanoseconds")]}.get(path.stem, ())
    sent = profile(*kinds)
    body = gzip.compress(sent.SerializeToString())
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(target).query))
    if target.startswith(PUSH):
        labels = {"__name__": "process_cpu", "service_name": "py", "otel.scope.name": "com.grafana.pyroscope/python"}
        body = gzip.compress(push((labels, sent.SerializeToString())).SerializeToString())
    else:
        service, _, rest = query["name"].partition("{")
        labels = dict(pair.split("=") for pair in rest[:-1].split(","))
        labels.update(service_name=service, pyroscope_spy=query["spyName"], __delta__="false", __name__={
            "go-goroutines": "goroutines", "go-heap": "memory", "go-block": "block", "node-wall": "wall",
            "node-heap": "memory"}.get(path.stem, "process_cpu"))
    if "multipart" in headers["content-type"]:
        parts = [(b"profile", body)]
        if "block" in path.stem:
            parts.append((b"sample_type_config", json.dumps(BLOCK).encode()))
        if "goroutines" in path.stem:
            parts.append((b"sample_type_config", b'{"goroutine":{"units":"goroutines","display-name":"goroutines"}}'))
        boundary = headers["content-type"].rpartition("=")[2].encode()
        body = form(*parts)[0].replace(b"--b0", b"--" + boundary)
    assert rig.post(target, body, **headers) == (200, b"")
    (taken,) = rig.taken()
    assert taken.labels == labels
    same(sent, taken.profiles[0])


def test_the_corpus_of_heads_is_taken(rig, corpus):
    """All recorded heads, where they are present beside the checkout: none is refused."""
    place = corpus and corpus.parent / "reference" / "client-requests"
    heads = sorted(place.rglob("*.head")) if place and place.is_dir() else []
    for path in heads:
        target = path.read_text().split()[1]
        type_ = re.search(r"(?i)content-type: (.*)", path.read_text())[1].strip()
        boundary = type_.rpartition("=")[2].encode()
        body = gzip.compress(profile().SerializeToString())
        if "multipart" in type_:
            body = form((b"profile", body))[0].replace(b"--b0", b"--" + boundary)
        if target == PUSH:
            body = push(({"__name__": "process_cpu"}, body)).SerializeToString()
        assert rig.post(target, body, Content_Type=type_) == (200, b""), path
    assert len(rig.taken(len(heads))) == len(heads)


# ---- /ingest

@pytest.mark.parametrize("path", ["/ingest", "/pyroscope/ingest"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("headers, query", [
    ({}, "&format=pprof"), ({"Content_Type": "multipart/form-data; boundary=x"}, "&format=pprof"), ({}, ""),
    ({"Content_Type": "application/octet-stream"}, "")])
def test_a_bare_pprof_is_taken(rig, path, pack, headers, query):
    sent = profile()
    assert rig.post(path + "?name=app" + query, pack(sent.SerializeToString()), **headers) == (200, b"")
    (taken,) = rig.taken()
    assert taken.labels == LABELS
    same(sent, taken.profiles[0])


def test_a_content_coding_is_tolerated(rig):
    body = gzip.compress(gzip.compress(profile().SerializeToString()))
    assert rig.ingest(body, format="pprof", headers={"Content_Encoding": "gzip"}) == (200, b"")
    rig.taken()


@pytest.mark.parametrize("name, labels", [
    ("app", {}), ("app{}", {}), ("a-b/c.d_1", {"service_name": "a-b/c.d_1"}), (" app { k = v w , l=x }", {"k": "v w", "l": "x"}),
    ("app{a=1,a=2}", {"a": "2"}), ("app{a=,b=1,}", {"b": "1"}), ("app{a==b\u00e4{}", {"a": "=b\u00e4{"}),
    ("other{__name__=app}", {}), ("app{service_name=x}", {"service_name": "x"}), ("app{k=%2C}", {"k": "%2C"}),
    ("app{service.name=x,a=b}", {"a": "b"}), ("app{__x=1,__session_id__=2,__delta__=true}", {"__session_id__": "2"}),
])
def test_names_of_series_follow_the_grammar(rig, name, labels):
    assert rig.ingest(profile().SerializeToString(), name, format="pprof") == (200, b"")
    (taken,) = rig.taken()
    assert taken.labels == {**LABELS, **labels}


def test_labels_that_are_dropped_are_counted(build):
    with Rig(build) as rig:
        rig.ingest(profile().SerializeToString(), "app{__x=1,__y=2,service.name=z}", format="pprof")
        rig.taken()
        lost = {r: rig.gateway.total("otelcol_receiver_pyroscope_dropped_labels", receiver="pyroscope", reason=r)
                for r in ("reserved", "duplicate")}
        assert lost == {"reserved": 2, "duplicate": 1}


@pytest.mark.parametrize("name, text", [
    (None, "service name is missing"), ("", "service name is missing"), ("{a=b}", "service name is missing"),
    ("a b", "may contain only"), ("app{a-b=1}", "label 1: its name may contain only"), ("app{a=1,b}", "label 2 has no '='"),
    ("app{a=1", "closing brace is missing"), ("app{a=1}x", "behind the closing brace"), ("app{=1}", "label 1: its name is empty"),
    ("app{__name__=a b}", "may contain only"),
])
def test_a_bad_name_is_400(rig, name, text):
    query = {} if name is None else {"name": name}
    status, body = rig.post(INGEST + "?format=pprof&" + urllib.parse.urlencode(query), profile().SerializeToString())
    fault = json.loads(body)
    assert (status, fault["code"]) == (400, "invalid_argument") and text in fault["message"], body
    assert rig.headers["Content-Type"] == "application/json"


SECOND = 10 ** 9
NOW = object()


@pytest.mark.parametrize("text, at", [
    ("1700000000", 1700000000 * SECOND), ("1_700,000 000", 1700000000 * SECOND), ("1700000000123", 1700000000123 * 10 ** 6),
    ("1700000000123456", 1700000000123456 * 1000), ("1700000000123456789", 1700000000123456789),
    ("20240229", 1709164800 * SECOND), ("99999999", 99999999 * SECOND), ("now", NOW), ("", NOW), ("rubbish", NOW),
    ("now-5", NOW), ("now-5x", NOW), ("now-9223372036854775807y", NOW), ("99999999999999999999", NOW),
    *(("now-2" + unit, -2 * seconds) for unit, seconds in {
        "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800, "mon": 2592000, "M": 2592000, "y": 31536000}.items()),
    ("now+3s", 3),
])
def test_from_is_the_time_of_a_profile_that_has_none(rig, text, at):
    """Each is a series of its own: the exporter would move a second profile of a millisecond."""
    for zero in (0, 86400 * SECOND):
        before = time.time_ns()
        name = "app%s{zero=%d}" % (text.encode().hex(), zero)
        assert rig.ingest(profile(at=zero).SerializeToString(), name, format="pprof", **{"from": text})[0] == 200
        after = time.time_ns()
        (taken,) = rig.taken()
        got = taken.profiles[0].time_nanos
        rig.sink.taken.clear()
        if at is NOW or at < 10 ** 8:
            shift = 0 if at is NOW else at * SECOND
            assert before + shift <= got <= after + shift
        else:
            assert got == at


@pytest.mark.parametrize("kinds, config, name", [
    ((("samples", "count"),), None, "process_cpu"), ((("goroutine", "count"),), None, "goroutines"),
    ((("contentions", "count"), ("delay", "nanoseconds")), None, "mutex"),
    ((("contentions", "count"), ("delay", "nanoseconds")), BLOCK, "block"),
    ((("x", "count"), ("wall", "nanoseconds")), None, "wall"), ((("foo", "foo"),), None, "foo"),
    ((("alloc_space", "bytes"), ("inuse_space", "bytes")), None, "memory"), ((("space", "bytes"),), None, "memory"),
    ((("off_cpu", "nanoseconds"),), None, "process_cpu"), ((("samples", "count"),), {}, "samples"),
    ((("goroutine", "count"),), {"goroutine": {"display-name": "goroutines"}}, "goroutines"),
    ((("a", "count"), ("b", "count")), {"a": {}, "b": {"display-name": "block_x"}}, "block"),
])
def test_a_pprof_has_the_name_that_pyroscope_gives_it(rig, kinds, config, name):
    sent = profile(*kinds)
    parts = [(b"profile", sent.SerializeToString())]
    if config is not None:
        parts.append((b"sample_type_config", json.dumps(config).encode()))
    body, headers = form(*parts)
    assert rig.ingest(body, headers=headers) == (200, b"")
    (taken,) = rig.taken()
    assert taken.labels == {**LABELS, "__name__": name}
    same(sent, taken.profiles[0])


def test_spies_change_what_pyroscope_changes(rig):
    for spy, first in (("pyspy", "src/f%d.go main.f%d"), ("rbspy", "src/f%d.go main.f%d"), ("scripting", "src/f%d.go main.f%d"),
                       ("gospy", "main.f%d")):
        rig.sink.taken.clear()
        sent = profile()
        assert rig.ingest(sent.SerializeToString(), format="pprof", spyName=spy)[0] == 200
        (taken,) = rig.taken()
        got = taken.profiles[0]
        assert taken.labels["pyroscope_spy"] == spy
        names = {got.string_table[f.name] for f in got.function}
        used = {i for s in sent.sample for i in s.location_id}
        assert names == {first % ((i,) * first.count("%d")) for i in used}
    absolute = profile()
    for i, text in enumerate(absolute.string_table):
        absolute.string_table[i] = "/" + text if text.startswith("src/") else text
    for spy, first in (("pyspy", "main.f"), ("rbspy", "/src/f")):
        rig.sink.taken.clear()
        assert rig.ingest(absolute.SerializeToString(), format="pprof", spyName=spy)[0] == 200
        (taken,) = rig.taken()
        got = taken.profiles[0]
        assert all(got.string_table[f.name].startswith(first) for f in got.function)
    rig.sink.taken.clear()
    rig.ingest(profile(("wall-time", "nanoseconds")).SerializeToString(), format="pprof", spyName="dotnetspy")
    (taken,) = rig.taken()
    assert taken.labels["__name__"] == "wall_time"


def test_empty_bodies_and_empty_parts_are_taken(rig):
    body, headers = form((b"profile", b""))
    assert rig.ingest(b"", format="pprof") == (200, b"")
    assert rig.ingest(body, headers=headers) == (200, b"")
    assert not rig.sink.taken


def test_faults_of_a_body_are_422(rig):
    good = profile().SerializeToString()
    for parts, text in [
        ([(b"other", good)], "no part named profile"), ([(b"profile", good), (b"profile", good)], "more than one part"),
        ([(b"profile", good), (b"prev_profile", good)], "prev_profile"), ([(b"profile", b"rubbish")], ""),
        ([(b"profile", good), (b"sample_type_config", b"{")], "sample_type_config: the JSON is truncated"),
        ([(b"profile", good), (b"sample_type_config", b'{"a": 1}')], "sample_type_config: a sample type is not an object"),
        ([(b"profile", good), (b"sample_type_config", b'{"a": []}')], "sample_type_config: a sample type is not an object"),
        ([(b"profile", good), (b"sample_type_config", b"[]")], "sample_type_config: a sample type is not an object"),
        ([(b"profile", good), (b"sample_type_config", b'{"a": {"display-name": []}}')], "display-name is not a string"),
        ([(b"profile", good), (b"sample_type_config", json.dumps({"t%d" % i: {} for i in range(33)}).encode())], "more than 32"),
        ([(b"profile", good), (b"sample_type_config", b'{"%s": {}}' % (b"t" * 3000))], "longer than 2048 bytes"),
        ([(b"profile", good), (b"sample_type_config", b'{"%s": {}}' % (b"t" * 9000))], "more than 8192"),
    ]:
        body, headers = form(*parts)
        status, answer = rig.ingest(body, headers=headers)
        assert (status, json.loads(answer)["code"]) == (422, "invalid_argument"), answer
        assert text in json.loads(answer)["message"], answer
    assert rig.ingest(b"rubbish", format="pprof")[0] == 422
    assert rig.ingest(form((b"profile", good))[0], format="pprof")[0] == 422
    assert rig.ingest(gzip.compress(good)[:-20], format="pprof")[0] == 422
    assert not rig.sink.taken


STACKS = {("work", "run", "main"): 12, ("run", "main"): 3}
FOLDED = b"main;run;work 5\nmain;run 3\n\nmain;run;work 7\n"


def trie(node, children=(), count=0):
    return varint(len(node)) + node + varint(count) + varint(len(children)) + b"".join(children)


TEXTS = {
    "folded": ({}, FOLDED), "groups": ({}, FOLDED), "lines": ({}, b"main;run;work\n" * 12 + b"main;run\n" * 3), "": ({}, FOLDED),
    "trie": ({}, trie(b"", [trie(b"main;run", [trie(b";work", (), 12)], 3)])),
    "tree": ({}, trie(b"", [trie(b"main", [trie(b"run", [trie(b"work", (), 12)], 3)])])),
    "by media type, trie": ({"Content_Type": "binary/octet-stream+trie"}, trie(b"", [trie(b"main;run", [trie(b";work", (), 12)], 3)])),
    "by media type, tree": ({"Content_Type": "binary/octet-stream+tree"}, trie(b"", [trie(b"main", [trie(b"run", [
        trie(b"work", (), 12)], 3)])])),
    "speedscope": ({}, json.dumps({
        "$schema": "https://www.speedscope.app/file-format-schema.json", "version": "0.0.1",
        "shared": {"frames": [{"name": "main"}, {"name": "run"}, {"name": "work"}]},
        "profiles": [{"type": "sampled", "name": "x", "unit": "none", "startValue": 0, "endValue": 15,
                      "samples": [[0, 1, 2], [0, 1]], "weights": [12, 3]}]}).encode()),
}


def stacks(p, place=0):
    """{names from the leaf: sum}"""
    functions, locations = {f.id: p.string_table[f.name] for f in p.function}, {x.id: x for x in p.location}
    found = {}
    for s in p.sample:
        names = tuple(functions[line.function_id] for i in s.location_id for line in locations[i].line)
        found[names] = found.get(names, 0) + s.value[place]
    return found


@pytest.mark.parametrize("form_", TEXTS)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_texts_are_profiles_of_the_type_that_the_name_ends_with(rig, form_, pack):
    headers, body = TEXTS[form_]
    start = time.time_ns() // 10 ** 9
    query = {"from": start, "until": start + 10, "sampleRate": 50, "units": "samples", "aggregationType": "sum"}
    if form_ and not headers:
        query["format"] = form_
    for suffix, name, kind, scale in (("cpu", "process_cpu", ("cpu", "nanoseconds"), 20 * 10 ** 6),
                                      ("alloc_space", "memory", ("alloc_space", "bytes"), 1)):
        rig.sink.taken.clear()
        assert rig.ingest(pack(body), "my.app-%s-%s.%s{a=b}" % (form_.replace(" ", "").replace(",", ""), pack.__name__, suffix),
                          headers=headers, **query) == (200, b"")
        (taken,) = rig.taken()
        labels = dict(taken.labels)
        assert labels.pop("service_name").startswith("my.app-") and "." not in taken.labels["service_name"][3:]
        labels.pop("profile_name", None)
        assert labels == {"__name__": name, "__delta__": "false", "pyroscope_spy": "unknown", "a": "b"}
        (got,) = taken.profiles
        assert [pprof.Reader(got).kind(t) for t in got.sample_type] == [kind]
        assert stacks(got) == {names: n * scale for names, n in STACKS.items()}
        if form_ != "speedscope":
            assert got.duration_nanos == 10 ** 10
        assert got.time_nanos == start * 10 ** 9


def test_the_name_of_a_text_needs_no_dot_but_a_known_ending(rig):
    assert rig.ingest(FOLDED, "app-without")[0] == 200
    assert rig.ingest(FOLDED, "some.app.cpu{service_name=x}")[0] == 200
    first, second = sorted(rig.taken(2), key=lambda t: t.labels["service_name"])
    assert first.labels["service_name"] == "app-without" and first.labels["__name__"] == "process_cpu"
    assert second.labels["service_name"] == "x" and second.labels["app_name"] == "some.app"
    for query in ({}, {"format": "lines"}, {"format": "speedscope"}):
        status, answer = rig.ingest(FOLDED, "some.foo", **query)
        assert (status, json.loads(answer)["code"]) == (400, "invalid_argument") and "name: " in json.loads(answer)["message"]


@pytest.mark.parametrize("text", ["", "x", "-5", "1.5", "99999999999999999999"])
def test_a_sample_rate_that_is_none_is_100(rig, text):
    assert rig.ingest(FOLDED, "rate%s" % text.encode().hex(), sampleRate=text)[0] == 200
    (taken,) = rig.taken()
    assert sum(s.value[0] for s in taken.profiles[0].sample) == 15 * 10 ** 7


@pytest.mark.parametrize("format_, body", [
    ("folded", b"main;run x\n"), ("folded", b"main"), ("trie", b"\xff"), ("tree", b"\x05a"), ("speedscope", b"{"), ("speedscope", b"rubbish")])
def test_malformed_texts_are_422(rig, format_, body):
    status, answer = rig.ingest(body, format=format_)
    assert (status, json.loads(answer)["code"]) == (422, "invalid_argument"), answer


def test_texts_without_samples_are_taken(rig):
    for format_ in ("folded", "lines"):
        assert rig.ingest(b"\n\n", format=format_) == (200, b"")
    assert not rig.sink.taken


def test_jfr_is_415_and_the_message_names_the_manual(rig):
    status, body = rig.ingest(b"FLR\0", format="jfr")
    assert status == 415 and json.loads(body)["code"] == "unimplemented"
    assert 'see "Java" in the manual' in json.loads(body)["message"]


# ---- Push

@pytest.mark.threads
def test_every_profile_of_a_push_is_taken(rig):
    sent = [profile(seed=i) for i in range(4)]
    cpu = {"__name__": "process_cpu", "service_name": "py", "__delta__": "false"}
    memory = {"__name__": "memory", "service_name": "py", "dotted.tag": "v1", "__session_id__": "x"}
    packed = [sent[0].SerializeToString(), gzip.compress(sent[1].SerializeToString()), sent[2].SerializeToString()]
    sent[1].time_nanos, sent[2].time_nanos = sent[0].time_nanos + 10 ** 9, sent[0].time_nanos + 2 * 10 ** 9
    packed = [sent[0].SerializeToString(), gzip.compress(sent[1].SerializeToString()), sent[2].SerializeToString()]
    assert rig.push((cpu, *packed), (memory, sent[3].SerializeToString()), ({"__name__": "x"},)) == (200, b"")
    assert rig.headers["Content-Type"] == "application/proto"
    taken = rig.taken(4)
    taken = sorted(taken, key=lambda t: (t.labels["__name__"] == "memory", t.profiles[0].time_nanos))
    assert [t.labels for t in taken] == [cpu, cpu, cpu, memory]
    for a, b in zip(sent, taken):
        same(a, b.profiles[0])


@pytest.mark.parametrize("pack, headers", [(bytes, {}), (gzip.compress, {"Content_Encoding": "gzip"})])
@pytest.mark.parametrize("json_", [False, True])
def test_a_push_is_protobuf_or_json_with_or_without_gzip(rig, pack, headers, json_):
    labels = {"__name__": "process_cpu", "service_name": "a\"\u00e4", "__delta__": "false"}
    sent = profile()
    body = push((labels, gzip.compress(sent.SerializeToString()))).SerializeToString()
    if json_:
        body = json.dumps({"series": [{
            "labels": [{"name": k, "value": v} for k, v in labels.items()], "annotations": [{"x": 1}],
            "samples": [{"rawProfile": base64.b64encode(sent.SerializeToString()).decode(), "ID": "x"}]}]}).encode()
    type_ = "application/json" if json_ else "application/proto"
    assert rig.post(PUSH, pack(body), Content_Type=type_, **headers) == (200, b"{}" if json_ else b"")
    assert rig.headers["Content-Type"] == type_
    (taken,) = rig.taken()
    assert taken.labels == labels
    same(sent, taken.profiles[0])


def test_the_order_of_fields_and_unknown_ones_do_not_matter(rig):
    sent = profile()
    raw = sent.SerializeToString()
    label = b"\x1a\x01?\x12\x01v\x0a\x08__name__"
    sample = b"\x12\x03xyz" + b"\x0a" + varint(len(raw)) + raw + b"\x3a\x01?"
    series = b"\x1a\x02ab\x12" + varint(len(sample)) + sample + b"\x0a" + varint(len(label)) + label + b"\x48\x01"
    body = b"\x12\x01z\x0a" + varint(len(series)) + series
    assert rig.post(PUSH, body) == (200, b"")
    (taken,) = rig.taken()
    assert taken.labels == {"__name__": "v", "service_name": "unknown_service"}
    same(sent, taken.profiles[0])


@pytest.mark.threads
def test_one_bad_profile_is_rejected_alone_and_the_response_says_so(build):
    good, name = profile().SerializeToString(), {"__name__": "process_cpu"}
    with Rig(build) as rig:
        for bad, text in [
            ((name, b"rubbish"), "document 1: "), ((name, b""), "document 1: the profile is empty"),
            (({"service_name": "x"}, good), "series 2: the label __name__ is missing"),
            (({"__name__": ""}, good), "series 2: the label __name__ is missing"),
            (({"__name__": "x", "": "y"}, good), "series 2: label 2: its name is empty"),
        ]:
            rig.sink.taken.clear()
            status, body = rig.push((dict(name, n="1"), good), bad, (dict(name, n="2"), good))
            fault = json.loads(body)
            assert (status, fault["code"]) == (400, "invalid_argument"), body
            assert "profiles rejected: 1, the others were accepted: " in fault["message"] and text in fault["message"], body
            assert sorted(t.labels["n"] for t in rig.taken(2)) == ["1", "2"]
        assert rig.gateway.total("otelcol_receiver_refused_profiles", receiver="pyroscope") == 5
        status, body = rig.push((name, b"rubbish"), ({}, good))
        assert (status, json.loads(body)["code"]) == (400, "invalid_argument")
        assert rig.gateway.total("otelcol_receiver_accepted_profile_samples", receiver="pyroscope") == 5 * 2 * 60


@pytest.mark.parametrize("body, text", [
    (b"", "the request has no profiles"), (b"\x0a\x00", "the request has no profiles"), (b"\x08\x01", "PushRequest: "),
    (b"\x0a\x05\x0a", "PushRequest: "), (b"\x0a\x02\x08\x01", "series 1: RawProfileSeries: "),
    (b"\x0a\x06\x12\x00\x0a\x02\x08\x01", "series 1: labels: "), (b"\xff", "PushRequest: "),
    (push(({"__name__": "x"}, b"ab")).SerializeToString().replace(b"\x0a\x02ab", b"\x08\x01\x08\x01"), "series 1: RawSample: "),
    (push(({"__name__": "x"}, b"?")).SerializeToString().replace(b"x", b"\xff"), "series 1: label 1: its value is not valid UTF-8"),
    (push(({"a": "x", "b": "x"}, b"?")).SerializeToString().replace(b"\x01b", b"\x01a"), "label 2: its name is repeated"),
])
def test_a_malformed_push_is_invalid_argument(rig, body, text):
    status, answer = rig.post(PUSH, body, Content_Type="application/proto")
    fault = json.loads(answer)
    assert (status, fault["code"]) == (400, "invalid_argument") and text in fault["message"], answer


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"series": 1}', b'{"series": [{"samples": [{"rawProfile": "?"}]}]}'])
def test_malformed_json_is_invalid_argument(rig, body):
    status, answer = rig.post(PUSH, body, Content_Type="application/json")
    assert (status, json.loads(answer)["code"]) == (400, "invalid_argument"), answer


def test_other_media_types_and_codings_are_415(rig):
    for headers in ({"Content_Type": "application/grpc"}, {"Content_Type": "text/plain"},
                    {"Content_Type": "application/proto", "Content_Encoding": "br"}):
        status, answer = rig.post(PUSH, b"", **headers)
        assert (status, json.loads(answer)["code"]) == (415, "unimplemented")


# ---- limits

def test_every_limit_has_a_message_that_names_it_and_the_value(build):
    limits = "series_limits: {max_profiles: 3, max_labels: 4, max_name_length: 10, max_value_length: 12}"
    good, name = profile().SerializeToString(), {"__name__": "cpu"}
    with Rig(build, limits) as rig:
        for labels, text in [
            (dict(name, **{"k%d" % i: "v" for i in range(5)}), "the series has 6 labels, more than series_limits.max_labels (4)"),
            (dict(name, **{"k" * 11: "v"}), "label 2: its name has 11 bytes, more than series_limits.max_name_length (10)"),
            (dict(name, k="v" * 13), "label 2: its value has 13 bytes, more than series_limits.max_value_length (12)"),
        ]:
            status, answer = rig.push((labels, good))
            assert status == 400 and "series 1: " + text in json.loads(answer)["message"], answer
            del labels["__name__"]
            status, answer = rig.ingest(good, "app{%s}" % ",".join("%s=%s" % x for x in labels.items()), format="pprof")
            text = text.replace("label 2", "label 1").replace("has 6 labels", "has 5 labels")
            assert status == 400 and "name: " + text in json.loads(answer)["message"], answer
        status, answer = rig.push((name, good, good), (name, good, good))
        fault = json.loads(answer)
        assert (status, fault["code"]) == (413, "invalid_argument")
        assert "the request has 4 profiles, more than series_limits.max_profiles (3)" in fault["message"]
        assert rig.push((dict(name, a="1", b="2", c="v" * 12), good), (name, good, good)) == (200, b"")
        rig.taken(3)
        assert rig.refused("invalid") == 6 and rig.refused("too_large") == 1


def test_bodies_over_the_limit_are_413(rig):
    large = b"\0" * 4000001
    for path, body, headers in ((INGEST + "?name=a", large, {}), (PUSH, large, {}),
                                (PUSH, gzip.compress(large), {"Content_Encoding": "gzip"}),
                                (INGEST + "?name=a&format=pprof", gzip.compress(large), {})):
        status, answer = rig.post(path, body, **headers)
        assert (status, json.loads(answer)["code"]) == (413, "invalid_argument"), answer
    bomb = base64.b64encode(gzip.compress(large)).decode()
    status, answer = rig.post(PUSH, json.dumps({"series": [{"labels": [{"name": "__name__", "value": "x"}],
                                                            "samples": [{"rawProfile": bomb}]}]}).encode(),
                              Content_Type="application/json")
    assert (status, json.loads(answer)["code"]) == (413, "invalid_argument"), answer


@pytest.mark.threads
def test_a_store_that_is_down_is_no_matter_of_the_client_until_the_queue_is_full(build):
    with Rig(build) as rig:
        rig.sink.stop()
        status = 200
        for i in range(3000):
            status, answer = rig.ingest(profile(seed=i, samples=3).SerializeToString(), format="pprof")
            if status != 200:
                break
        assert (status, json.loads(answer)["code"]) == (503, "unavailable") and int(rig.headers["Retry-After"]) >= 1
        rig.sink.start()


# ---- what may not leave

def test_no_byte_of_a_request_is_in_a_response_or_the_log(build):
    c = canaries.Canaries(7)
    good = profile().SerializeToString()
    with Rig(build, "include_metadata: true") as rig:
        replies = []

        def post(path, body, **headers):
            word = c.deny("header")
            replies.append(b"%r" % (rig.post(path, body, **{"X_" + word: word, "Content_Type": "application/" + word, **headers}),))

        for query in ("name=%s-%%20%s" % (c.deny("name"), c.deny("name")), "name=app{%s=%s" % (c.deny("key"), c.deny("value")),
                      "name=a&%s=%s&format=%s" % (c.deny("parameter"), c.deny("parameter"), c.deny("format")),
                      "name=app{a=%s}&format=jfr" % c.deny("value"), "name=%%zz%s" % c.deny("name")):
            post(INGEST + "?" + query, c.deny("body").encode())
        body, headers = form((c.deny("part").encode(), c.deny("part").encode()), (b"sample_type_config", c.deny("config").encode()),
                             (b"profile", good))
        post(INGEST + "?name=a", body, **headers)
        for series in (({c.deny("label"): c.deny("label")}, good), ({"__name__": c.deny("label")}, c.deny("pprof").encode()),
                       ({"__name__": "x", c.deny("label") * 100: "y"}, good)):
            post(PUSH, push(series).SerializeToString(), Content_Type="application/proto")
        post(PUSH, b'{"%s": {"%s": 1}, "series": "%s"}' % tuple(c.deny("JSON").encode() for _ in range(3)),
             Content_Type="application/json")
        seen = b"".join(replies) + rig.gateway.log().encode() + rig.gateway.metrics_text().encode()
    found = [word for word in c.denied if word.encode() in seen]
    assert len(replies) == 10 and not found, [(w, c.denied[w]) for w in found]


@pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge"])
def test_both_versions_of_http_are_served(rig, tmp_path, version):
    sent = profile()
    (tmp_path / "body").write_bytes(push(({"__name__": "cpu", "service_name": version}, sent.SerializeToString())).SerializeToString())
    (tmp_path / "bad").write_bytes(b"\xff")
    for name, status in (("body", "200"), ("bad", "400")):
        done = subprocess.run(
            ["curl", "-s", version, "-o", tmp_path / "answer", "-w", "%{http_code} %{http_version}", "--data-binary", "@%s" % (tmp_path / name),
             "-H", "Content-Type: application/proto", "http://127.0.0.1:%d%s" % (rig.gateway.port["in"], PUSH)],
            capture_output=True, text=True, check=True)
        assert done.stdout == "%s %s" % (status, "2" if "2" in version else "1.1")
    assert json.loads((tmp_path / "answer").read_bytes())["code"] == "invalid_argument"
    (taken,) = rig.taken()
    assert taken.labels["service_name"] == version
    same(sent, taken.profiles[0])
