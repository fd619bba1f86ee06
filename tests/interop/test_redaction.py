# SPDX-License-Identifier: Apache-2.0
"""`redaction` beside the Collector's processor: the same configurations on the same strings. What the Collector's makes of the
attributes of log records, ours makes of the attributes of resources; what it makes of their bodies, ours makes of the names of
functions.

Left out is what differs on purpose (manual, processor `redaction`): values in maps and lists, `debug` summaries, strings beyond 8 KiB."""
import json
import random

import pytest

from harness import build as make
from harness import otlp
from interop import gate

KEYS = ["a", "token", "my.token.x", "safe", "safest", "note", "Größe", "id"]
HMAC = "0123456789abcdef" * 4
BLOCKED = ["4[0-9]{12}(?:[0-9]{3})?", "(5[1-5][0-9]{14})", r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}"]
CONFIGS = [
    {},
    {"allow_all_keys": True},
    {"allowed_keys": ["a", "token", "Größe"]},
    {"allowed_keys": ["a"], "ignored_keys": ["safe"], "ignored_key_patterns": ["est$"], "summary": "info"},
    {"allow_all_keys": True, "blocked_values": BLOCKED, "summary": "info"},
    {"allow_all_keys": True, "blocked_values": BLOCKED, "redact_all_types": True, "hash_function": "sha1", "summary": "info"},
    {"allow_all_keys": True, "blocked_values": BLOCKED, "allowed_values": [".+@mycompany.com", "^4"], "summary": "info"},
    {"allow_all_keys": True, "blocked_key_patterns": [".*token.*", "^id$"], "summary": "info"},
    {"allow_all_keys": True, "blocked_key_patterns": ["token"], "redact_all_types": True, "hash_function": "md5"},
    {"allow_all_keys": True, "blocked_key_patterns": ["token"], "allowed_values": ["^4"], "ignored_keys": ["token"], "summary": "info"},
    {"allow_all_keys": True, "blocked_values": [".*"], "allowed_values": ["@"]},
    {"allow_all_keys": True, "blocked_values": ["^$", "ab+"], "hash_function": "sha3"},
    {"allow_all_keys": True, "blocked_values": ["[0-9]+", r"\*{4}"], "hash_function": "hmac-sha256", "hmac_key": HMAC[:32]},
    {"allow_all_keys": True, "blocked_values": ["[0-9]{5,}", "ab+"], "hash_function": "HMAC-SHA512", "hmac_key": HMAC},
    {"allowed_keys": ["a"], "blocked_values": ["(?i)secret", r"\s", r"\bid\b"], "redact_all_types": True},
    {"allow_all_keys": True, "url_sanitizer": {"enabled": False}, "db_sanitizer": {"sql": {"enabled": False}}, "blocked_values": ["x"]},
]
# Each alone, as a blocked value.
PATTERNS = [
    r"\s+", r"\S+", r"[\s-]", r"[^\s]+", r"\v", r"\w+@\w+", r"(?i)[a-c]+", "x*", "(a|ab)(c|bcd)?", "a{,2}", "a{2}", "a{2,}b?", r"\x41|\101", r"\p{Greek}+", r"\pL+",
    r"(?m)^.*$", r"(?s).+", ".+", ".+?b", r"^\d+|\d+$", r"\Aa|b\z", "[[:alpha:]]+", "[^[:space:]]+@", r"\Qa.b\E", "(?:[a-z]{1,5}-)+[a-z]", "([a-z]{1,4})?@", r"\b[a-z.]+@",
    r"\b\w+@\w+\.\w{2,}\b", r"\B.", "$", "^", "|a", "a|", "é+", ".", "(?U)a+b+", r"[a-z0-9._%+-]{2,}@", "(?P<x>a+)b", r"\d{3}-\d{2}-\d{4}", ".*b.*",
]
ALPHABETS = ["ab", "ab@.-", "a \n\t\v", "aAbBcCß", "0123456789-", "é€α\u0345b", "a.b{,2}@x", "b\n"]


def strings(rng):
    yield from ["", "4111111111111111", "x 5500005555555559, ada@example.com", "ada@mycompany.com", "a\nb\n", "secret SECRET id", "Größe"]
    for alphabet in ALPHABETS:
        for _ in range(25):
            yield "".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 14)))


def records(rng):
    """[(attributes, body)]"""
    found = [({"a": text, "token": text}, text) for text in strings(rng)]
    for value in (0, -7, 4111111111111111, True, False, 1.5, 1e21, 4e12, -0.0, b"", b"abc\xff", "4111111111111"):
        found.append(({key: value for key in KEYS}, "4111111111111"))
    return found


def any_value(value):
    kind = {bool: "boolValue", int: "intValue", float: "doubleValue", bytes: "bytesValue", str: "stringValue"}[type(value)]
    message = make.collector.ExportProfilesServiceRequest()
    make.set_value(message.resource_profiles.add().resource.attributes.add().value, value)
    return {kind: json.loads(otlp.to_json(message.SerializeToString()))["resourceProfiles"][0]["resource"]["attributes"][0]["value"][kind]}


def logs(rows):
    """One log record for each, all of one resource."""
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"body": {"stringValue": body}, "attributes": [{"key": key, "value": any_value(value)} for key, value in attributes.items()]}
        for attributes, body in rows]}]}]}


def profiles(rows):
    """One resource for each, with one Profile, whose time is the record's number."""
    m = make.Maker()
    for number, (attributes, body) in enumerate(rows):
        p = m.profile(m.scope(m.resource(attributes)), time=number + 1)
        p.samples.add(values=[1], stack_index=m.stack([m.location([m.function(body or "-", "file")])]))
    return m.message.SerializeToString()


def plain(value):
    """An AnyValue of OTLP/JSON; integers are strings there."""
    (kind, text), = value.items() if value else [("", "")]
    return kind, str(text).lower() if kind == "boolValue" else float(text) if kind == "doubleValue" else str(text)


def from_logs(answer):
    return [({a["key"]: plain(a["value"]) for a in r.get("attributes", ()) if not a["key"].startswith("redaction.body.")},
             r.get("body", {}).get("stringValue", "")) for r in answer["resourceLogs"][0]["scopeLogs"][0]["logRecords"]]


def from_profiles(text, count):
    """The same of what the gateway wrote, in the order of the records."""
    found = [None] * count
    for line in text.splitlines():
        document = json.loads(line)
        d = document["dictionary"]
        text_at = lambda index: d["stringTable"][index] if index else ""
        for rp in document["resourceProfiles"]:
            for p in (p for sp in rp["scopeProfiles"] for p in sp["profiles"]):
                stack = d["stackTable"][p["samples"][0]["stackIndex"]]
                function = d["functionTable"][d["locationTable"][stack["locationIndices"][0]]["lines"][0]["functionIndex"]]
                attributes = {a["key"]: plain(a["value"]) for a in rp.get("resource", {}).get("attributes", ())}
                found[int(p["timeUnixNano"]) - 1] = attributes, text_at(function.get("nameStrindex", 0))
    return found


def through_gateway(configs, rows):
    """Each configuration as a processor of a pipeline of its own, in one gateway."""
    number = range(len(configs))
    text = "receivers:\n  otlp_json_file: {include: [in.jsonl], start_at: beginning, poll_interval: 50ms, max_log_size: 67108864}\nprocessors:\n"
    text += "".join("  redaction/%d: %s\n" % (i, json.dumps(configs[i])) for i in number)
    text += "exporters:\n" + "".join("  file/%d: {path: out%d.jsonl}\n" % (i, i) for i in number)
    text += "service:\n  pipelines:\n" + "".join(
        "    profiles/%d: {receivers: [otlp_json_file], processors: [redaction/%d], exporters: [file/%d]}\n" % (i, i, i) for i in number)
    with gate.gateway(text) as g:
        (g.directory / "in.new").write_bytes(otlp.to_json(profiles(rows)) + b"\n")
        (g.directory / "in.new").rename(g.directory / "in.jsonl")
        g.until(lambda: all(g.total("otelcol_ledger_out_samples", exporter="file/%d" % i) == len(rows) for i in number))
        return [from_profiles((g.directory / ("out%d.jsonl" % i)).read_text(), len(rows)) for i in number]


@pytest.mark.parametrize("configs", [CONFIGS, [{"allow_all_keys": True, "blocked_values": [p]} for p in PATTERNS]], ids=["switches", "patterns"])
def test_the_same_configuration_does_the_same(redaction_processor, configs):
    rows = records(random.Random(7))
    theirs = redaction_processor.logs([(config, logs(rows)) for config in configs])
    ours = through_gateway(configs, rows)
    different = []
    for config, answer, got in zip(configs, theirs, ours):
        assert "error" not in answer, (config, answer)
        for row, want, have in zip(rows, from_logs(answer), got):
            if not row[1]:
                want, have = (want[0], ""), (have[0], "")  # a function without a name stands for none
            if want != have:
                different.append((config, row, want, have))
    assert not different, "%d differ: %s" % (len(different), "\n".join(map(str, different[:10])))


def test_both_reject_the_same_patterns(redaction_processor):
    bad = ["(?=a)", r"\1", "a**", "(", "[", r"\Z", "(?<!a)b", "a++", r"\x", "*"]
    answers = redaction_processor.logs([({"blocked_values": [p]}, logs([({}, "")])) for p in bad])
    assert all("error" in answer for answer in answers)
