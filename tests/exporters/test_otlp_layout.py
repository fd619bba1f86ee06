# SPDX-License-Identifier: Apache-2.0
"""The keys `schema` and `references` of otlp_grpc and otlp_http: what they send, read with the definitions of that release."""
import contextlib
import itertools
import json
import subprocess

import pytest
from google.protobuf import json_format

from harness import build as make
from harness import generations, otlp, peers
from harness.gateway import Gateway
from harness.otlphttp import OtlpSink

SCHEMAS = {"v1.8": "1_8", "v1.9": "1_9", "v1.10": "1_10"}
LAYOUTS = [*itertools.product(SCHEMAS, ["inline"]), ("v1.10", "index")]
HTTP = list(itertools.product(LAYOUTS, ["proto", "json"], ["none", "gzip", "zstd"]))
GRPC = list(itertools.product(LAYOUTS, ["none", "gzip"]))
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
%s
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [%s]}
"""


def read_proto(body, schema):
    """By the release's own definitions, which leave nothing unknown, as a request of today."""
    message = generations.module(SCHEMAS[schema]).ExportProfilesServiceRequest.FromString(body)
    size = message.ByteSize()
    message.DiscardUnknownFields()
    assert message.ByteSize() == size
    node = json_format.MessageToDict(message)
    return json_format.ParseDict(generations.with_names_of_today(node) if schema == "v1.8" else node, otlp.Request())


def read_json(body, schema):
    """Unknown names are errors, also to the release's own definitions."""
    node = json.loads(body)
    message = generations.module(SCHEMAS[schema]).ExportProfilesServiceRequest()
    json_format.ParseDict(json.loads(body), message)
    return otlp.parse_json(json.dumps(generations.with_names_of_today(node) if schema == "v1.8" else node))


class Rig:
    def __init__(self, build, held):
        self.http = held.enter_context(OtlpSink())
        self.grpc = {case: held.enter_context(peers.Sink()) for case in GRPC}
        lines = []
        for i, ((schema, references), encoding, compression) in enumerate(HTTP):
            lines.append("  otlp_http/%d: {profiles_endpoint: 'http://127.0.0.1:%d/%d', schema: %s, references: %s, encoding: %s, "
                         "compression: %s}" % (i, self.http.port, i, schema, references, encoding, compression))
        for i, ((schema, references), compression) in enumerate(GRPC):
            lines.append("  otlp_grpc/%d: {endpoint: 127.0.0.1:%d, tls: {insecure: true}, schema: %s, references: %s, compression: %s}" % (
                i, self.grpc[GRPC[i]].port, schema, references, compression))
        ids = [line.split(":")[0].strip() for line in lines]
        self.gateway = held.enter_context(Gateway(build / "portcullis", CONFIG % ("\n".join(lines), ", ".join(ids))))
        self.client = held.enter_context(peers.Client(self.gateway.port["otlp"]))

    def bodies(self, data):
        """{(layout, encoding): the distinct messages that arrived, each as a request of today}"""
        self.http.taken.clear()
        for sink in self.grpc.values():
            sink.received.clear()
        self.client.send(data)
        self.gateway.until(lambda: len(self.http.taken) == len(HTTP) and all(sink.received for sink in self.grpc.values()))
        found = {}
        for taken in self.http.taken:
            layout, encoding, _ = HTTP[int(taken.path[1:])]
            found.setdefault((layout, encoding), set()).add(taken.body)
        for (layout, _), sink in self.grpc.items():
            found[layout, "proto"].update(sink.received)
        return found


@pytest.fixture(scope="module")
def rig(build):
    with contextlib.ExitStack() as held:
        yield Rig(build, held)


@pytest.mark.parametrize("seed", [s for s in range(40) if otlp.count(make.RandomRequest(s).make())][:12])
def test_each_layout_carries_the_same_profiles(rig, seed):
    found = rig.bodies(make.RandomRequest(seed).make())
    read = {"proto": read_proto, "json": read_json}
    messages = {}
    for (layout, encoding), bodies in found.items():
        (body,) = bodies  # the same in each transport and compression
        messages[layout, encoding] = read[encoding](body, layout[0])
    expected = otlp.profiles(messages[("v1.10", "inline"), "proto"])
    assert expected
    for case, message in messages.items():
        assert otlp.profiles(message) == expected, case
        attributes = [kv for rp in message.resource_profiles for kv in rp.resource.attributes if otlp.Reader(message).key(kv)]
        assert all(bool(kv.key_strindex) == (case[0][1] == "index") for kv in attributes), case
        assert all(bool(kv.key) != (case[0][1] == "index") for kv in attributes), case


def test_destinations_of_the_same_form_share_its_bytes(rig):
    def forms():
        return {dict(labels)["form"]: int(n) for (name, labels), n in rig.gateway.metrics().items() if name == "otelcol_packet_encodings"}

    before = forms()
    rig.bodies(make.request(1).SerializeToString())
    after = forms()
    made = {form: after[form] - before.get(form, 0) for form in after}
    names = ["otlp", "otlp_1.8", "otlp_1.9", "references", "json", "json_1.8", "references_json"]
    assert made == {name + coding: 1 for name in names for coding in ("", "_gzip", "_zstd")
                    if (name, coding) != ("otlp", "")}


def test_a_receiver_recognises_the_release(build):
    """Two gateways: the first sends an older layout, and the second counts its release, by what only that one has."""
    sent = make.Maker()
    profile = sent.profile(sent.scope(sent.resource({"service.name": "shop"})), attributes=[sent.attribute("kind", "test")])
    profile.profile_id = bytes(range(16))
    stack = sent.stack([sent.location([sent.function("main")])])
    profile.samples.add(stack_index=stack, values=[5], attribute_indices=[sent.attribute("thread", "main")])
    for schema in SCHEMAS:
        with peers.Sink() as sink:
            exporter = "  otlp_grpc: {endpoint: 127.0.0.1:%d, tls: {insecure: true}, schema: %s}"
            with Gateway(build / "portcullis", CONFIG % (exporter % (sink.port, "v1.10"), "otlp_grpc")) as second:
                text = CONFIG % (exporter % (second.port["otlp"], schema), "otlp_grpc")
                with Gateway(build / "portcullis", text) as first, peers.Client(first.port["otlp"]) as client:
                    client.send(sent.message)
                    first.until(lambda: sink.received)
                assert sink.samples() == otlp.samples(sent.message)
                assert second.total("otelcol_receiver_otlp_requests", generation=schema[1:]) == 1


@pytest.mark.parametrize("schema", ["v1.8", "v1.9"])
@pytest.mark.parametrize("exporter", ["otlp_grpc: {endpoint: '127.0.0.1:1'", "otlp_http: {endpoint: 'http://127.0.0.1:1'"])
def test_earlier_releases_have_no_references(build, tmp_path, schema, exporter):
    text = CONFIG % ("  %s, schema: %s, references: index}" % (exporter, schema), exporter.split(":")[0])
    (tmp_path / "c.yaml").write_text(text.replace("{port:otlp}", "4317"))
    done = subprocess.run([build / "portcullis", "validate", "--config", tmp_path / "c.yaml"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "references: `index` requires `schema: v1.10`, because earlier releases of OTLP have no references" in done.stderr
