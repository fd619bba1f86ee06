# SPDX-License-Identifier: Apache-2.0
"""What a destination has no place for is counted: by exporter and kind, against a count of what left for a file."""
import time
from collections import Counter

import pytest

from harness import build as make
from harness import otlp, parca, peers
from harness.gateway import Gateway
from harness.push import PushSink

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}}
exporters:
  file: {path: out/all.bin, format: proto}
  file/pprof: {directory: out/pprof, format: pprof}
  parca: {endpoint: 127.0.0.1:{port:parca}, tls: {insecure: true}}
  pyroscope: {endpoint: "http://127.0.0.1:PYROSCOPE", limits: {max_age: 876000h}}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [file, file/pprof, parca, pyroscope]}}}
"""
PPROF = {"timestamp", "profile_id", "scope", "mapping_attribute", "location_attribute"}
LOST = {"file/pprof": PPROF | {"resource_attribute", "scope_attribute", "profile_attribute"},
        "parca": PPROF | {"zero", "column", "doc_url", "period"},
        "pyroscope": PPROF | {"zero", "negative", "empty_stack", "address", "column", "doc_url"}}
BUILD_IDS = ["process.executable.build_id." + kind for kind in ("gnu", "htlhash", "go")]
FLAGS = ["pprof.mapping." + flag for flag in ("has_functions", "has_filenames", "has_line_numbers", "has_inline_frames",
                                              "is_main")]
TEXTS = ["pprof.profile." + field for field in ("comment", "comment.0", "drop_frames", "keep_frames", "doc_url")]
# What pprof has a field for: (key, kind of value), by place.
FIELDS = {"resource": set(), "location": {("pprof.location.is_folded", "bool_value")},
          "mapping": {(key, "bool_value") for key in FLAGS} | {(key, "string_value") for key in BUILD_IDS},
          "profile": {(key, "string_value") for key in TEXTS} | {("pprof.profile.comment", "array_value")},
          "scope": {("pprof.scope.default_sample_type", "string_value"), ("pprof.scope.sample_type_order", "array_value")}}


def what_is_in(message):
    """What of it a pprof, or a store of pprofs, may have no place for."""
    r, d, found = otlp.Reader(message), message.dictionary, Counter()

    def attributes(entry):
        """(key, kind of value); a reference is a text."""
        for a in (d.attribute_table[i] for i in entry.attribute_indices):
            yield r.text(a.key_strindex), (a.value.WhichOneof("value") or "").replace("_strindex", "")

    def look(place, pairs):
        pairs = list(pairs)
        found[place + "_attribute"] += sum(pair not in FIELDS[place] for pair in pairs)
        return pairs

    for location in d.location_table[1:]:
        found["address"] += bool(location.address and location.lines)
        found["column"] += sum(bool(line.column) for line in location.lines)
        look("location", attributes(location))
    for mapping in d.mapping_table[1:]:
        kinds = {key for key, kind in look("mapping", attributes(mapping)) if key in BUILD_IDS and kind == "string_value"}
        found["mapping_attribute"] += max(0, len(kinds) - 1)  # there is one field for them
    for rp in message.resource_profiles:
        look("resource", ((r.key(kv), kv.value.WhichOneof("value")) for kv in rp.resource.attributes))
        for sp in rp.scope_profiles:
            found["scope"] += bool(sp.scope.name or sp.scope.version)
            look("scope", ((r.key(kv), kv.value.WhichOneof("value")) for kv in sp.scope.attributes))
            for p in sp.profiles:
                found["period"] += bool(p.period)
                found["profile_id"] += bool(p.profile_id)
                found["doc_url"] += ("pprof.profile.doc_url", "string_value") in look("profile", attributes(p))
                for s in p.samples:
                    found["timestamp"] += len(s.timestamps_unix_nano)
                    value = max(-2 ** 63, min(sum(s.values), 2 ** 63 - 1)) if s.values else len(s.timestamps_unix_nano)
                    found["zero"] += value == 0
                    found["negative"] += value < 0
                    found["empty_stack"] += not d.stack_table[s.stack_index].location_indices
    return found


def everything():
    """A request that has each of them."""
    m = make.Maker()
    mark = m.attribute("x", "y")
    comment, doc = m.attribute("pprof.profile.comment.0", "c"), m.attribute("pprof.profile.doc_url", "http://d")
    build = m.attribute("process.executable.build_id.gnu", "ab")
    go, flag = m.attribute("process.executable.build_id.go", "cd"), m.attribute("pprof.mapping.has_functions", True)
    mapping = m.mapping("app", attributes=[mark, build, go, flag, comment])
    location = m.location([m.function("f")], 0x1010, mapping, [mark, m.attribute("profile.frame.type", "native"), flag])
    m.message.dictionary.location_table[location].lines[0].column = 7
    stack = m.stack([location, m.location([], 0x1020, mapping)])
    scope = m.scope(m.resource({"service.name": "shop", "pprof.profile.comment": "h"}), "profiler", "1")
    make.set_value(scope.scope.attributes.add(key="k").value, "v")
    now = time.time_ns()
    profile = m.profile(scope, time=now)
    profile.profile_id, profile.period = bytes(range(16)), 10
    profile.attribute_indices.extend([mark, comment, doc, m.attribute("pprof.profile.drop_frames", 7), build])
    profile.samples.add(stack_index=stack, timestamps_unix_nano=[now, now + 1, now + 2])
    for value in (5, 0, -3):
        profile.samples.add(stack_index=stack, values=[value])
    profile.samples.add(stack_index=0, values=[9])
    return m.message


def random_requests():
    return [otlp.parse(make.RandomRequest(seed).make()) for seed in range(40)]


@pytest.mark.parametrize("requests", [lambda: [everything()], random_requests], ids=["each", "random"])
def test_what_is_not_kept_is_counted_by_exporter_and_kind(build, requests):
    with PushSink() as store:
        gateway = Gateway(build / "portcullis", CONFIG.replace("PYROSCOPE", str(store.port)))
        with peers.Sink(gateway.port["parca"], method=parca.METHOD), gateway, peers.Client(gateway.port["otlp"]) as client:
            for message in requests():
                client.send(message)
            gateway.until(lambda: not gateway.total("otelcol_ledger_queued_samples"))
            left = sum((what_is_in(otlp.parse(data)) for data in
                        otlp.framed((gateway.directory / "out/all.bin").read_bytes())), Counter())
            assert all(left[what] for what in set().union(*LOST.values()) - {"doc_url"}), left
            for exporter, lost in LOST.items():
                counted = {kind: gateway.total("otelcol_exporter_unsupported_items", exporter=exporter, kind=kind)
                           for kind in left}
                assert counted == {what: n if what in lost else 0 for what, n in left.items()}, exporter
