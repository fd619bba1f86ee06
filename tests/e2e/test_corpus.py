# SPDX-License-Identifier: Apache-2.0
"""Every profile passes through the running program, and an independent reader finds the same samples on the other side.

The profiles: made ones always, and every file of the corpus where it is present. They go through two programs: a plain
one (no processors; the sink and files must get exactly what came in) and one with an allow-list and batches (the sink
must get what policy.py, written from the manual, leaves of it).
"""
import gc
import gzip
from collections import Counter

import pytest

from harness import build as make
from harness import codings, corpus, otlp, peers, policy, pprof, profcheck
from harness.gateway import Gateway

RECEIVERS = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 64}
      http: {endpoint: 127.0.0.1:{port:otlp_http}, max_request_body_size: 67108864}
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}, max_request_body_size: 67108864}}
"""
PLAIN = RECEIVERS + """
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:{port:sink}, tls: {insecure: true}}
  file/json: {path: out/profiles.jsonl, format: json}
  file/proto: {path: out/profiles.binpb, format: proto}
  file/pprof: {directory: out/pprof, format: pprof}
service:
  pipelines:
    profiles: {receivers: [otlp, pprof], exporters: [otlp_grpc, file/json, file/proto, file/pprof]}
"""
KEYS = ["service.name", "thread.name", "thread", "region", "aaa", "cpu", "bytes"]
POLICED = RECEIVERS + """
processors:
  allowlist: {keys: %s}
  pii: {}
  batch: {timeout: 200ms}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:{port:sink}, tls: {insecure: true}, compression: gzip}
service:
  pipelines:
    profiles: {receivers: [otlp, pprof], processors: [PROCESSORS], exporters: [otlp_grpc]}
""" % KEYS


def made():
    """name -> body"""
    for seed in range(3):
        yield "made-%d.otlp" % seed, make.request(seed, samples=80, profiles=2, resources=2).SerializeToString()
        yield "made-%d.pprof" % seed, make.pprof(seed, labels=("thread", "other")).SerializeToString()
    for seed in range(12):
        body = make.RandomRequest(seed).make()
        if otlp.samples(body):
            yield "random-%d.otlp" % seed, body
        profile = make.RandomPprof(seed).make()
        if profile.sample:
            yield "random-%d.pprof" % seed, profile.SerializeToString()


def real():
    for path in corpus.files("otlp/*-v111.pb"):
        yield path.name[:-3] + ".otlp", path.read_bytes()
    for path in corpus.files("pprof/*"):
        yield path.name + ".pprof", path.read_bytes()


BODIES = dict([*made(), *real()])
OTLP = [name for name in BODIES if name.endswith(".otlp")]
PPROF = [name for name in BODIES if name.endswith(".pprof")]


class Passage:
    """A program between senders and a sink."""

    def __init__(self, build, text):
        self.gateway = Gateway(build / "portcullis", text)
        self.sink = peers.Sink(self.gateway.port["sink"])

    def __enter__(self):
        self.sink.start()
        self.gateway.__enter__()
        self.client = peers.Client(self.gateway.port["otlp"])
        return self

    def __exit__(self, *error):
        self.client.close()
        self.gateway.__exit__(*error)
        self.sink.stop()

    def send(self, name, query=""):
        if name.endswith(".otlp"):
            answer = self.client.send(BODIES[name])
            assert not answer.HasField("partial_success"), answer
        else:
            status, _, text = peers.post(self.gateway.port["pprof"], BODIES[name], path="/v1/pprof" + query)
            assert status == 204, text

    def flushed(self, exporters):
        """Waits until all that came in went out."""
        def done(exporter):
            return self.gateway.total("otelcol_ledger_queued_samples", exporter=exporter) == 0 and \
                self.gateway.balanced("profiles", exporter) and \
                self.gateway.total("otelcol_ledger_batched_samples") == 0
        self.gateway.until(lambda: all(done(e) for e in exporters))


class Grown:
    """What was added to a file since the last look."""

    def __init__(self, path):
        self.path, self.seen = path, 0

    def read(self):
        with open(self.path, "rb") as file:
            file.seek(self.seen)
            data = file.read()
        self.seen += len(data)
        return data


class Plain(Passage):
    """Sends one after the other, and keeps what each became."""

    def __init__(self, build):
        super().__init__(build, PLAIN)
        self.became = {}
        out = self.gateway.directory / "out"
        self.lines, self.frames, self.spool = Grown(out / "profiles.jsonl"), Grown(out / "profiles.binpb"), out / "pprof"

    def carry(self, name):
        if name not in self.became:
            count, known = len(self.sink.received), set(self.spool.iterdir())
            self.send(name)
            self.gateway.until(lambda: len(self.sink.received) > count)
            self.flushed(["otlp_grpc", "file/json", "file/proto", "file/pprof"])
            assert len(self.sink.received) == count + 1
            (line,), (frame,) = self.lines.read().splitlines(), otlp.framed(self.frames.read())
            self.became[name] = (self.sink.received[count], line, frame,
                                 [gzip.decompress(p.read_bytes()) for p in self.spool.iterdir() if p not in known])
        return self.became[name]

    def carry_http(self, body, media="application/x-protobuf", coding=None):
        """What a request over HTTP became."""
        count = len(self.sink.received)
        if coding:
            body = codings.ENCODERS[coding](body)
        headers = {"Content-Type": media, **({"Content-Encoding": coding} if coding else {})}
        status, _, text = peers.post(self.gateway.port["otlp_http"], body, path="/v1development/profiles", headers=headers)
        assert (status, text) == (200, {"application/json": b'{"partialSuccess":{}}'}.get(media, b"\x0a\x00"))
        self.gateway.until(lambda: len(self.sink.received) > count)
        self.flushed(["otlp_grpc", "file/json", "file/proto", "file/pprof"])
        self.lines.read(), self.frames.read()
        return self.sink.received[count]


@pytest.fixture(scope="module")
def plain(build):
    gc.disable()  # hundreds of thousands of tuples without one cycle
    with Plain(build) as passage:
        yield passage
    gc.enable()


# ---- what comes in leaves as it came

@pytest.mark.parametrize("name", OTLP)
def test_otlp_arrives_with_the_same_samples(plain, name):
    sent, json_line, frame, _ = plain.carry(name)
    assert otlp.samples(sent) == otlp.samples(BODIES[name])
    assert not profcheck.passed_on(BODIES[name], sent)
    assert frame == sent
    assert otlp.parse_json(json_line) == otlp.parse(sent)


@pytest.mark.parametrize("name", OTLP)
def test_otlp_over_http_becomes_the_same_as_over_grpc(plain, name):
    expected = plain.carry(name)[0]
    for coding in (None, *codings.ENCODERS) if name == OTLP[0] else (None,):
        assert plain.carry_http(BODIES[name], coding=coding) == expected
    became = plain.carry_http(otlp.to_json(BODIES[name]), "application/json", "gzip")
    assert otlp.samples(became) == otlp.samples(BODIES[name])
    assert not profcheck.passed_on(BODIES[name], became)


@pytest.mark.parametrize("name", PPROF)
def test_pprof_arrives_as_the_otlp_that_it_means(plain, name):
    sent, json_line, frame, _ = plain.carry(name)
    pprof.check_translated(pprof.parse(BODIES[name]), sent)
    assert not profcheck.structure(sent)
    assert frame == sent
    assert otlp.parse_json(json_line) == otlp.parse(sent)


@pytest.mark.parametrize("name", PPROF)
def test_pprof_comes_back_as_the_same_pprof(plain, name):
    back = plain.carry(name)[3]
    assert len(back) == 1
    pprof.check_equal(pprof.parse(BODIES[name]), pprof.parse(back[0]))


def reduced(head, sample):
    """What a pprof can say of a sample of OTLP: the sum of values, or the number of timestamps."""
    stack, attributes, link, values, timestamps = sample
    frames = tuple((m and m[:4], address, lines) for m, address, lines, _ in stack)
    return (head, frames, attributes, link, sum(values) if values else len(timestamps))


@pytest.mark.parametrize("name", [n for n in OTLP if not n.startswith("random")])
def test_otlp_becomes_pprofs_with_the_same_samples(plain, name):
    expected, found = Counter(), Counter()
    for _, _, head, samples in otlp.profiles(BODIES[name]):
        expected.update(reduced(head[:5], s) for s in samples)
    for body in plain.carry(name)[3]:
        for *head, samples in pprof.as_otlp(pprof.parse(body)):
            found.update({reduced(tuple(head), s): n for s, n in samples.items()})
    assert found == expected


# ---- what is denied is missing, and nothing else

def carried(build, processors):
    """Everything through one program with these processors; the requests that arrived."""
    with Passage(build, POLICED.replace("PROCESSORS", processors)) as passage:
        for name in BODIES:
            passage.send(name)
        passage.flushed(["otlp_grpc"])
        assert len(passage.sink.received) < len(BODIES), "batched"
        return passage.sink.received


def test_the_permitted_arrives_batched_and_nothing_else(build, plain):
    expected = policy.merged(p for name in BODIES
                             for p in policy.Allowlist(KEYS).permit(otlp.profiles(plain.carry(name)[0])))
    arrived = carried(build, "allowlist, batch")
    found = policy.merged(p for data in arrived for p in otlp.profiles(data))
    for key in expected.keys() | found.keys():
        assert found.get(key) == expected.get(key), key
    assert not profcheck.passed_on([plain.carry(name)[0] for name in BODIES], arrived)


def build_ids(requests):
    """{(key, value)} at the mappings that samples use."""
    return {(key, value) for data in requests for _, _, _, samples in otlp.profiles(data) for stack, *_ in samples
            for mapping, *_ in stack if mapping for key, (value, _) in mapping[4] if "build_id" in key}


@pytest.mark.skipif(not list(real()), reason="no corpus here")
def test_the_build_ids_of_real_profiles_pass_without_being_permitted(build):
    with Passage(build, POLICED.replace("PROCESSORS", "allowlist, pii")) as passage:
        names = [name for name, _ in real() if name in OTLP]
        for name in names:
            passage.send(name)
        passage.flushed(["otlp_grpc"])
        sent, arrived = build_ids(BODIES[name] for name in names), build_ids(passage.sink.received)
    assert {key.rpartition(".")[2] for key, _ in sent} == {"gnu", "go", "htlhash"}
    assert arrived == sent


def numbers(requests):
    """What masking and merging must keep: depth of stacks, sums of values, number of timestamps."""
    found = {}
    for data in requests:
        for _, _, head, samples in otlp.profiles(data):
            for stack, _, _, values, times in samples:
                sums = found.setdefault((head[2:5], len(stack)), [0, 0])
                sums[0] += sum(values)
                sums[1] += len(times)
    return found


@pytest.mark.threads
def test_masking_keeps_every_sample(build, plain):
    assert numbers(carried(build, "pii, batch")) == numbers(plain.carry(name)[0] for name in BODIES)


# ---- what waits

@pytest.mark.parametrize("path", corpus.files("otlp/*-v111.json"), ids=lambda path: path.name)
def test_real_otlp_json_arrives_as_its_protobuf_does(plain, path):
    became = plain.carry_http(path.read_bytes(), "application/json")
    assert otlp.samples(became) == otlp.samples(path.with_suffix(".pb").read_bytes())


@pytest.mark.parametrize("path", corpus.files("otlp/*.jsonl"), ids=lambda path: path.name)
def test_what_a_file_exporter_wrote_in_the_json_of_1_9_arrives(plain, path):
    for line in path.read_bytes().splitlines():
        expected = otlp.samples(otlp.parse_json(line).SerializeToString())
        if expected:
            assert otlp.samples(plain.carry_http(line, "application/json")) == expected


PROGRAMS = ("cart", "order", "price")


def of_program(name):
    """Its samples use a library that all programs have, and more often than the program itself."""
    p = make.pprof(samples=30, functions=4, prefix=name)
    p.string_table.extend(["/usr/bin/" + name, "/lib/libc.so.6"])
    p.mapping[0].filename = len(p.string_table) - 2
    p.mapping.add(id=2, memory_start=0x7f0000, memory_limit=0x800000, filename=len(p.string_table) - 1)
    for location in p.location[:3]:
        location.mapping_id = 2
    return p.SerializeToString()


def test_each_program_of_a_batch_stays_the_first_mapping_of_its_pprof(build):
    text = POLICED.replace("PROCESSORS", "allowlist, pii, batch").replace("exporters: [otlp_grpc]", "exporters: [file]")
    text = text.replace("exporters:\n", "exporters:\n  file: {directory: out/pprof, format: pprof}\n", 1)
    with Gateway(build / "portcullis", text) as gateway:
        for name in PROGRAMS:
            assert peers.post(gateway.port["pprof"], of_program(name), path="/v1/pprof")[0] == 204
        gateway.until(lambda: gateway.total("otelcol_exporter_sent_profile_samples", exporter="file") == 180)
        pprofs = [pprof.parse(gzip.decompress(p.read_bytes())) for p in (gateway.directory / "out/pprof").iterdir()]
    assert sorted(p.string_table[p.mapping[0].filename] for p in pprofs) == ["/usr/bin/" + name for name in PROGRAMS]
