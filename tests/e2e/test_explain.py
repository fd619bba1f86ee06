# SPDX-License-Identifier: Apache-2.0
"""portcullis explain: what it reads, the rule and the line that it names for each field, and two policies compared."""
import gzip
import json
import struct
import subprocess

import pytest
from google.protobuf import json_format

from harness import build as make

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:4317}}}
processors:
  resource:
    attributes:
      - {key: service.namespace, value: payments, action: upsert}
      - {key: customer.id, action: hash}
  allowlist:
    keys: [service.name, service.namespace, customer.id]
    key_patterns: ["k8s[.].*"]
    resource: [region]
    sample: [thread.name]
    values:
      region: [eu-1]
  pii:
    detectors:
      email: {}
exporters:
  file: {path: out.jsonl}
service:
  pipelines:
    profiles: {receivers: [otlp], processors: [resource, allowlist, pii], exporters: [file]}
"""
ATTRIBUTES = {"service.name": "cart-for-ada@example.com", "k8s.pod.name": "pod-1", "region": "moon", "customer.id": "4711",
              "session.token": "s3cret"}


def body():
    m = make.Maker()
    rp = m.resource(ATTRIBUTES)
    p = m.profile(m.scope(rp, "profiler", "1"))
    stack = m.stack([m.location([m.function("main", "main.c")])])
    p.samples.add(stack_index=stack, values=[1], attribute_indices=[m.attribute("thread.name", "worker"), m.attribute("user", "ada")])
    return m.message


def line_of(text, part):
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


class Explain:
    def __init__(self, build, directory):
        self.binary, self.directory = build / "portcullis", directory
        self.write("gateway.yaml", CONFIG)

    def write(self, name, content):
        path = self.directory / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    def run(self, *arguments, stdin=b"", config="gateway.yaml"):
        done = subprocess.run([self.binary, "explain", "--config", config, *arguments], cwd=self.directory, input=stdin,
                              capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def json(self, *arguments, **more):
        return json.loads(self.run(*arguments, "--format", "json", **more))


@pytest.fixture
def explain(build, tmp_path):
    return Explain(build, tmp_path)


def verdicts(pipeline):
    return {(v["site"], v["key"], v["what"]): v for v in pipeline["verdicts"]}


def test_each_field_has_its_rule_and_the_line_of_it(explain):
    (pipeline,) = explain.json(explain.write("body", body().SerializeToString()))["pipelines"]
    found = {place: ("%s %s" % (v["processor"], v["entry"])).strip() for place, v in verdicts(pipeline).items()}
    assert found == {
        ("resource", "service.namespace", "set"): "resource attributes[0]",
        ("resource", "customer.id", "hashed"): "resource attributes[1]",
        ("resource", "session.token", "denied"): "allowlist",
        ("resource", "region", "overflowed"): "allowlist values.region",
        ("resource", "service.name", "pii: email"): "pii detectors.email",
        ("resource", "service.name", "passes"): "allowlist keys[0]",
        ("resource", "service.namespace", "passes"): "allowlist keys[1]",
        ("resource", "customer.id", "passes"): "allowlist keys[2]",
        ("resource", "k8s.pod.name", "passes"): "allowlist key_patterns[0]",
        ("resource", "region", "passes"): "allowlist resource[0]",
        ("sample", "thread.name", "passes"): "allowlist sample[0]",
        ("sample", "user", "denied"): "allowlist",
        **{(site, "", "passes"): "" for site in ("scope.name", "scope.version", "function.name", "function.filename",
                                                  "sample_type.type", "sample_type.unit", "period_type.type", "period_type.unit")},
    }
    lines = {place: v.get("line") for place, v in verdicts(pipeline).items()}
    for place, part in ((("resource", "service.namespace", "set"), "- {key: service.namespace"),
                        (("resource", "customer.id", "hashed"), "- {key: customer.id"),
                        (("resource", "session.token", "denied"), "allowlist:"),
                        (("resource", "region", "overflowed"), "region: [eu-1]"),
                        (("resource", "service.name", "pii: email"), "email: {}"),
                        (("resource", "k8s.pod.name", "passes"), "key_patterns:")):
        assert lines[place] in (line_of(CONFIG, part), line_of(CONFIG, part) + 1), (place, lines[place])
    assert all(v["source"] == "gateway.yaml" for v in pipeline["verdicts"] if v["processor"])
    assert all(v["count"] == 1 for v in pipeline["verdicts"])


def test_all_keys_of_an_entity_are_named(explain):
    m = body()
    m.resource_profiles[0].resource.entity_refs.add(type="service", id_keys=["service.name"], description_keys=["k8s.pod.name"])
    (pipeline,) = explain.json("-", stdin=m.SerializeToString())["pipelines"]
    passing = {key for site, key, what in verdicts(pipeline) if site == "entity" and what == "passes"}
    assert passing == {"service.name", "k8s.pod.name"}


def test_the_text_says_the_same_and_no_value(explain):
    text = explain.run(explain.write("body", body().SerializeToString()))
    assert "in:  OTLP, " in text and "pipeline profiles\n" in text and "out: OTLP, " in text
    row = next(line for line in text.splitlines() if "session.token" in line)
    assert row.split() == ["1", "resource", "denied", "session.token", "allowlist,", "gateway.yaml:%d" % line_of(CONFIG, "allowlist:")] \
        or row.split()[:5] == ["1", "resource", "denied", "session.token", "allowlist,"]
    for value in ("s3cret", "example.com", "moon", "4711", "worker", "main.c"):
        assert value not in text


def frames(*messages, flag=b""):
    return b"".join(flag + struct.pack(">I", len(m)) + m for m in messages)


def forms():
    m = body()
    data, text = m.SerializeToString(), json_format.MessageToJson(m, indent=None).encode()
    return {
        "protobuf": (data, 1), "gzip": (gzip.compress(data), 1), "gRPC frame": (frames(data, flag=b"\0"), 1),
        "gRPC frame, gzip": (b"\1" + struct.pack(">I", len(gzip.compress(data))) + gzip.compress(data), 1),
        "records": (frames(data, data), 2), "compressed records": (frames(gzip.compress(data), gzip.compress(data)), 2),
        "JSON": (json_format.MessageToJson(m).encode(), 1), "a line of JSON": (text, 1), "lines of JSON": (text + b"\n\n" + text + b"\n", 2),
        "records of JSON": (frames(text, text, text), 3), "lines, gzip": (gzip.compress(text + b"\n" + text), 2),
    }


@pytest.mark.parametrize("form", forms())
def test_it_reads_what_the_gateway_reads_and_writes(explain, form):
    data, count = forms()[form]
    plain = explain.json(explain.write("plain", body().SerializeToString()))["pipelines"][0]
    found = explain.json("-", stdin=data)
    assert found["input"]["requests"] == count and found["input"]["bytes"] == len(data) and found["input"]["samples"] == count
    places = verdicts(found["pipelines"][0])
    assert places.keys() == verdicts(plain).keys()
    assert places["resource", "session.token", "denied"]["count"] == count


@pytest.mark.parametrize("data, message", [
    (b"{", "the file is not OTLP/JSON"), (b'{"resourceProfiles": [}\n{}', "the file is not OTLP/JSON"),
    (b"no profile", "the file is neither pprof nor OTLP"), (frames(b"no profile"), "the file is neither pprof nor OTLP")])
def test_what_it_cannot_read_is_named(explain, data, message):
    done = subprocess.run([explain.binary, "explain", "--config", "gateway.yaml", "-"], cwd=explain.directory, input=data,
                          capture_output=True, text=False)
    assert done.returncode == 1 and done.stderr.decode().startswith("Error: -: " + message)


def test_a_key_cannot_write_to_the_terminal(explain):
    m = make.Maker()
    rp = m.resource({"a\x1b[2Jb": "x"})
    m.profile(m.scope(rp, "s")).samples.add(stack_index=m.stack([]), values=[1])
    text = explain.run("-", stdin=m.message.SerializeToString())
    assert "\x1b" not in text and "[2Jb" in text


@pytest.mark.parametrize("rule, key", [("exclude: [made]", "made"), ("include: [other]", "")])
def test_a_sample_type_is_shown_only_if_the_configuration_names_it(explain, rule, key):
    explain.write("gateway.yaml", CONFIG.replace("processors: [resource,", "processors: [sample_types, resource,").replace(
        "processors:\n", "processors:\n  sample_types: {%s}\n" % rule, 1))
    m = make.Maker()
    m.profile(m.scope(m.resource(ATTRIBUTES), "s"), kind=("made", "made.unit")).samples.add(stack_index=m.stack([]), values=[1])
    (pipeline,) = explain.json("-", stdin=m.message.SerializeToString())["pipelines"]
    assert ("sample_type.type", key, "dropped") in verdicts(pipeline)
    assert ("made" in explain.run("-", stdin=m.message.SerializeToString())) == bool(key)


CONNECTED = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:4317}}}
processors:
  allowlist/a: {keys: [service.name, region]}
  allowlist/b: {keys: [service.name]}
  allowlist/c: {keys: [region]}
connectors:
  routing:
    default_pipelines: [profiles/rest]
    table: [{condition: 'attributes["region"] == "moon"', pipelines: [profiles/moon]}]
exporters:
  nop: {}
service:
  pipelines:
    profiles/in: {receivers: [otlp], processors: [allowlist/a], exporters: [routing, nop]}
    profiles/moon: {receivers: [routing], processors: [allowlist/b], exporters: [nop]}
    profiles/rest: {receivers: [routing], processors: [allowlist/c], exporters: [nop]}
    profiles/other: {receivers: [otlp], exporters: [nop]}
"""


def test_every_pipeline_is_explained(explain):
    explain.write("gateway.yaml", CONNECTED)
    found = {p["pipeline"]: p for p in explain.json("-", stdin=body().SerializeToString())["pipelines"]}
    assert list(found) == ["profiles/in", "profiles/in > routing > profiles/moon", "profiles/in > routing > profiles/rest",
                           "profiles/other"]
    moon = verdicts(found["profiles/in > routing > profiles/moon"])
    assert moon["resource", "customer.id", "denied"]["processor"] == "allowlist/a"
    assert moon["resource", "region", "denied"]["processor"] == "allowlist/b"
    assert moon["resource", "service.name", "passes"]["processor"] == "allowlist/b", "the last one decides"
    rest = found["profiles/in > routing > profiles/rest"]
    assert rest["output"]["profiles"] == 0 and not [v for v in rest["verdicts"] if v["what"] == "passes"], "nothing takes this route"
    assert not [v for v in found["profiles/other"]["verdicts"] if v["what"] != "passes"]
    assert "no processor removes it" in explain.run("-", stdin=body().SerializeToString())


def test_it_says_whether_ways_are_left_out(explain):
    """Each pipeline behind the connector is a way of its own."""
    for count, complete in ((256, True), (257, False)):
        behind = "".join("    profiles/%d: {receivers: [forward], exporters: [nop]}\n" % i for i in range(count))
        explain.write("gateway.yaml", "receivers:\n  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:4317}}}\nconnectors:\n  forward: {}\n"
                      "exporters:\n  nop: {}\nservice:\n  pipelines:\n    profiles: {receivers: [otlp], exporters: [forward]}\n" + behind)
        found = explain.json("-", stdin=body().SerializeToString())
        assert len(found["pipelines"]) == 256 and found["complete"] == complete
        assert ("further ways" in explain.run("-", stdin=body().SerializeToString())) != complete
        assert explain.json("--compare", "gateway.yaml", "-", stdin=body().SerializeToString())["complete"] == complete


def test_two_policies_are_compared(explain):
    other = CONFIG.replace("customer.id]", "session.token]").replace("email: {}", "email: {enabled: false}") \
        .replace("region: [eu-1]", "region: [moon]").replace("resource: [region]", "resource: [region, customer.id]")
    explain.write("new.yaml", other)
    (pipeline,) = explain.json("--compare", "new.yaml", "-", stdin=body().SerializeToString())["pipelines"]
    assert {(d["site"], d["key"]): (d["difference"], d["entry"], d["source"]) for d in pipeline["differences"]} == {
        ("resource", "session.token"): ("newly passes", "keys[2]", "new.yaml"),
        ("resource", "region"): ("no longer changed", "resource[0]", "new.yaml"),
        ("resource", "service.name"): ("no longer changed", "keys[0]", "new.yaml"),
    }
    (back,) = explain.json("--compare", "gateway.yaml", "-", stdin=body().SerializeToString(), config="new.yaml")["pipelines"]
    assert {(d["site"], d["key"]): d["difference"] for d in back["differences"]} == {
        ("resource", "session.token"): "newly removed", ("resource", "region"): "newly changed", ("resource", "service.name"): "newly changed"}
    text = explain.run("--compare", "new.yaml", "-", stdin=body().SerializeToString())
    assert "newly passes" in text and "session.token" in text and "s3cret" not in text
    assert "no difference" in explain.run("--compare", "gateway.yaml", "-", stdin=body().SerializeToString())
