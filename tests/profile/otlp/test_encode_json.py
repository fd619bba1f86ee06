# SPDX-License-Identifier: Apache-2.0
"""OTLP/JSON as we write it, read back by protobuf's own JSON reader, is the message that was written."""
import base64
import json
import subprocess

import pytest
from google.protobuf import json_format

from harness import build as make
from harness import corpus, otlp

IDS = {"traceId", "spanId", "profileId"}


def ids_to_base64(node):
    """OTLP writes ids in hex where protobuf's JSON has base64."""
    if isinstance(node, list):
        return [ids_to_base64(x) for x in node]
    if not isinstance(node, dict):
        return node
    return {k: base64.b64encode(bytes.fromhex(v)).decode() if k in IDS else ids_to_base64(v)
            for k, v in node.items()}


def run(build, tmp_path, data, *flags):
    (tmp_path / "in").write_bytes(data)
    subprocess.run([build / "tests/support/collect_tool", *flags, tmp_path / "out", tmp_path / "in"], check=True,
                   stdout=subprocess.DEVNULL)
    return (tmp_path / "out.0").read_bytes()


def assert_same(build, tmp_path, data):
    text = run(build, tmp_path, data, "-j").decode()
    assert "\n" not in text
    message = otlp.Request()
    json_format.ParseDict(ids_to_base64(json.loads(text)), message)
    assert message == otlp.parse(run(build, tmp_path, data))


def values():
    """A request with every kind of value and every odd number and text."""
    m = make.Maker()
    odd = ["", "quote \" slash \\ tab \t nul \x00 del \x7f", "\u2028 \U0001f600 é", -1, 2 ** 63 - 1, -2 ** 63, True, False,
           0.1, -0.0, 1e300, 1e15, 1.5e20, 1e-7, 5e-324, float("inf"), float("-inf"), b"", b"\x00\xff\x10", [], [1, ["x"], {"k": {"l": []}}], {},
           {"a": 1, "b": [b"\x01"]}]
    rp = m.resource({"k%d" % i: x for i, x in enumerate(odd)}, schema_url="https://example/1")
    rp.resource.dropped_attributes_count = 7
    rp.resource.attributes.add(key="nothing")
    rp.resource.entity_refs.add(schema_url="s", type="t", id_keys=["k0", "k1"], description_keys=["k2"])
    p = m.profile(m.scope(rp, "scope", "1"), attributes=[m.attribute("unit", 5, "By")])
    p.profile_id = bytes(range(16))
    p.period, p.duration_nano = -5, 2 ** 64 - 1
    stack = m.stack([m.location([m.function("f \"q\"", "a\nb")], 2 ** 64 - 1, m.mapping("/bin/x", 0, 2 ** 64 - 1))])
    p.samples.add(stack_index=stack, values=[-2 ** 63, 0, 5], link_index=m.link(b"\x01" * 16, b"\x02" * 8))
    p.samples.add(stack_index=stack, timestamps_unix_nano=[1, 2 ** 64 - 1])
    return m.message.SerializeToString()


def test_every_kind_of_value_and_number_survives(build, tmp_path):
    assert_same(build, tmp_path, values())


def test_a_double_that_is_no_number_is_written_as_the_word(build, tmp_path):
    m = make.Maker()
    rp = m.resource({"x": float("nan")})
    m.profile(m.scope(rp)).samples.add(stack_index=m.stack([m.location([m.function("f")])]), values=[1])
    assert b'"doubleValue":"NaN"' in run(build, tmp_path, m.message.SerializeToString(), "-j")


@pytest.mark.parametrize("seed", range(5))
def test_ordinary_requests_survive(build, tmp_path, seed):
    assert_same(build, tmp_path, make.request(seed, resources=3, profiles=2).SerializeToString())


@pytest.mark.parametrize("path", corpus.files("otlp/*-v111.pb"), ids=lambda p: p.name)
def test_real_requests_survive(build, tmp_path, path):
    assert_same(build, tmp_path, path.read_bytes())
