# SPDX-License-Identifier: Apache-2.0
"""What our decoder finds in OTLP requests is what an independent protobuf implementation finds."""

import json
import random
import struct
import subprocess

import otlp_profiles_pb2 as otlp
import pytest

from harness import build as make


def hexed(text):
    return (text.encode() if isinstance(text, str) else text).hex()


class Resolver:
    """Resolves a request by the rules of the protocol; entry 0 of each table is the zero value."""

    def __init__(self, request):
        self.request, self.tables = request, request.dictionary

    def at(self, table, index, zero):
        entries = getattr(self.tables, table)
        return entries[index] if index else zero

    def string(self, index):
        return self.at("string_table", index, "")

    def value(self, v):
        kind = v.WhichOneof("value")
        if kind is None:
            return [0, None]
        if kind == "string_value_strindex":
            return [1, hexed(self.string(v.string_value_strindex))]
        if kind == "array_value":
            return [6, [["", "", *self.value(e)] for e in v.array_value.values]]
        if kind == "kvlist_value":
            return [7, [self.key_value(e) for e in v.kvlist_value.values]]
        plain = getattr(v, kind)
        return {"string_value": lambda: [1, hexed(plain)], "bool_value": lambda: [2, int(plain)],
                "int_value": lambda: [3, plain], "bytes_value": lambda: [5, hexed(plain)],
                "double_value": lambda: [4, struct.unpack("<q", struct.pack("<d", plain))[0]]}[kind]()

    def key_value(self, kv):
        key = self.string(kv.key_strindex) if kv.key_strindex else kv.key
        return [hexed(key), "", *self.value(kv.value)]

    def attributes(self, indices):
        entries = [self.at("attribute_table", i, otlp.KeyValueAndUnit()) for i in indices]
        return [[hexed(self.string(a.key_strindex)), hexed(self.string(a.unit_strindex)),
                 *self.value(a.value)] for a in entries]

    def function(self, index):
        f = self.at("function_table", index, otlp.Function())
        names = [f.name_strindex, f.system_name_strindex, f.filename_strindex]
        return [*(hexed(self.string(i)) for i in names), f.start_line]

    def location(self, index):
        l = self.at("location_table", index, otlp.Location())
        m = self.at("mapping_table", l.mapping_index, otlp.Mapping())
        mapping = [m.memory_start, m.memory_limit, m.file_offset,
                   hexed(self.string(m.filename_strindex)), self.attributes(m.attribute_indices)]
        lines = [[self.function(n.function_index), n.line, n.column] for n in l.lines]
        return [mapping, l.address, lines, self.attributes(l.attribute_indices)]

    def sample(self, s):
        stack = self.at("stack_table", s.stack_index, otlp.Stack())
        link = self.at("link_table", s.link_index, otlp.Link())
        return [[self.location(i) for i in stack.location_indices],
                self.attributes(s.attribute_indices),
                (link.trace_id or bytes(16)).hex(), (link.span_id or bytes(8)).hex(),
                list(s.values), [t - (t >> 63 << 64) for t in s.timestamps_unix_nano]]

    def kind(self, profile, name):
        kind = getattr(profile, name)
        return [int(profile.HasField(name)), hexed(self.string(kind.type_strindex)),
                hexed(self.string(kind.unit_strindex))]

    def profile(self, f):
        return [0, self.kind(f, "sample_type"), self.kind(f, "period_type"), f.time_unix_nano,
                f.duration_nano, f.period, f.dropped_attributes_count, f.profile_id.hex(),
                self.attributes(f.attribute_indices), [self.sample(s) for s in f.samples]]

    def scope(self, s):
        return [hexed(s.scope.name), hexed(s.scope.version), hexed(s.schema_url),
                s.scope.dropped_attributes_count, [self.key_value(a) for a in s.scope.attributes]]

    def resource(self, r):
        return [hexed(r.schema_url), r.resource.dropped_attributes_count,
                [self.key_value(a) for a in r.resource.attributes],
                [[hexed(e.schema_url), hexed(e.type), [hexed(k) for k in e.id_keys],
                  [hexed(k) for k in e.description_keys]] for e in r.resource.entity_refs]]


def differences(data, ours):
    """None when they agree. Profiles that we reject are ours to reject; all others must be equal."""
    resolver = Resolver(otlp.ProfilesData.FromString(data))
    theirs = resolver.request.resource_profiles
    if len(theirs) != len(ours["resources"]):
        return "resources"
    for r, mine in zip(theirs, ours["resources"]):
        profiles = [f for s in mine[4] for f in s[5]]
        if len(r.scope_profiles) != len(mine[4]) or any(
                len(s.profiles) != len(m[5]) for s, m in zip(r.scope_profiles, mine[4])):
            return "scopes or profiles"
        for f, m in zip((f for s in r.scope_profiles for f in s.profiles), profiles):
            if not m[0] and resolver.profile(f) != m:
                return f"profile {m} is {resolver.profile(f)}"
        if all(f[0] for f in profiles):
            continue
        if resolver.resource(r) != mine[:4]:
            return f"resource {mine[:4]} is {resolver.resource(r)}"
        for s, m in zip(r.scope_profiles, mine[4]):
            if not all(f[0] for f in m[5]) and resolver.scope(s) != m[:5]:
                return f"scope {m[:5]} is {resolver.scope(s)}"
    return None


@pytest.fixture
def dump(build, tmp_path):
    """What our decoder makes of messages."""
    def run(messages):
        names = [tmp_path / f"{i}.pb" for i in range(len(messages))]
        for name, message in zip(names, messages):
            name.write_bytes(message)
        lines = []
        for i in range(0, len(names), 500):
            lines += subprocess.run([build / "tests/support/dump_otlp_tool", *names[i:i + 500]],
                                    capture_output=True, check=True, text=True).stdout.splitlines()
        return [json.loads(line) for line in lines]

    return run


@pytest.fixture
def real(corpus):
    """The folder of real OTLP requests."""
    if not corpus:
        pytest.skip("the corpus is not here")
    return corpus / "otlp"


def mutated(message, dice):
    data = bytearray(message)
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(data))
        what = dice.randrange(4)
        if what == 0:
            data[at] ^= 1 << dice.randrange(8)
        elif what == 1:
            data[at] = dice.randrange(256)
        elif what == 2:
            del data[at:at + dice.randrange(1, 8)]
        else:
            data[at:at] = data[at:at + dice.randrange(1, 40)]
    return bytes(data)


def test_random_requests_are_decoded_as_others_do(dump):
    messages = [make.RandomRequest(seed).make() for seed in range(100)]
    for message, ours in zip(messages, dump(messages)):
        assert "error" not in ours and ours["rejected"] == 0, ours
        assert differences(message, ours) is None


def test_a_mutated_request_is_refused_or_decoded_as_others_do(dump):
    dice = random.Random(1)
    sources = [make.RandomRequest(seed).make() for seed in range(20)]
    messages = [mutated(source, dice) for source in sources for _ in range(50)]
    agreed = 0
    for message, ours in zip(messages, dump(messages)):
        try:
            otlp.ProfilesData.FromString(message)
        except Exception:
            continue  # ours may have repaired UTF-8, or not have read what it does not need
        if "error" in ours:
            continue
        assert differences(message, ours) is None
        agreed += 1
    assert agreed > len(messages) / 10


def test_every_real_request_is_decoded_as_others_do(dump, real):
    messages = [file.read_bytes() for file in sorted(real.glob("*-v111.pb"))]
    assert messages
    for message, ours in zip(messages, dump(messages)):
        assert "error" not in ours and ours["rejected"] == 0, ours
        assert differences(message, ours) is None


def old_messages(folder):
    yield from (file.read_bytes() for file in folder.glob("*-v18.pb"))
    for file in folder.glob("*-v18.otlp"):
        data = file.read_bytes()
        while data:
            size = struct.unpack(">I", data[:4])[0]
            yield data[4:4 + size]
            data = data[4 + size:]


def test_every_real_old_request_is_refused_with_its_layout_named(dump, real):
    messages = list(old_messages(real))
    assert len(messages) >= 4
    for ours in dump(messages):
        assert "layout of OTLP 1.8" in ours["error"]


def test_a_truncated_real_request_is_refused_or_decoded_as_others_do(dump, real):
    for file in real.glob("*-v111.pb"):
        data = file.read_bytes()
        cuts = [data[:n] for n in range(0, len(data), max(1, len(data) // 60))]
        for cut, ours in zip(cuts, dump(cuts)):
            if "error" not in ours:
                assert differences(cut, ours) is None
