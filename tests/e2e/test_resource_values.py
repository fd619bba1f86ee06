# SPDX-License-Identifier: Apache-2.0
"""What the processor resource sets arrives as the configuration has it, whatever its type."""
import json

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway

DEEP = "[" * 16 + "x" + "]" * 16
VALUES = {"text": '"7"', "number": "7", "ratio": "1.5", "truth": "true", "list": '[1, "a", [], {"k": false}]',
          "map": '{"a": 1, "b": {"c": ["y", null]}}', "deep": DEEP.replace("x", '"x"')}
CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}}
processors: {resource: {attributes: [ACTIONS]}}
exporters: {file: {path: out/a.bin, format: proto}, file/json: {path: out/a.jsonl}}
service: {pipelines: {profiles: {receivers: [otlp], processors: [resource], exporters: [file, file/json]}}}
"""


def plain(value):
    """The python value of an AnyValue."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(v) for v in value.array_value.values]
    if kind == "kvlist_value":
        return {kv.key: plain(kv.value) for kv in value.kvlist_value.values}
    return getattr(value, kind) if kind else None


def test_values_of_all_types_arrive(build):
    actions = ", ".join("{key: %s, value: %s, action: upsert}" % item for item in VALUES.items())
    with Gateway(build / "portcullis", CONFIG.replace("ACTIONS", actions)) as gateway:
        with peers.Client(gateway.port["otlp"]) as client:
            client.send(make.request(1, resources=2))
        gateway.until(lambda: gateway.total("otelcol_ledger_out_samples", exporter="file") == 100 and
                      gateway.total("otelcol_ledger_out_samples", exporter="file/json") == 100)
        binary = otlp.parse(next(otlp.framed((gateway.directory / "out/a.bin").read_bytes())))
        lines = otlp.parse_json((gateway.directory / "out/a.jsonl").read_text())
        for message in binary, lines:
            assert len(message.resource_profiles) == 2
            for rp in message.resource_profiles:
                found = {kv.key: plain(kv.value) for kv in rp.resource.attributes}
                assert {key: found[key] for key in VALUES} == {key: json.loads(text) for key, text in VALUES.items()}
