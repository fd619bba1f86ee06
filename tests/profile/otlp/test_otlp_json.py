# SPDX-License-Identifier: Apache-2.0
"""JSON of strangers, translated by us, is the message that protobuf's own JSON reader makes of it."""
import base64
import difflib
import json
import random
import subprocess

import pytest
from google.protobuf import json_format

from harness import build as make
from harness import corpus, generations, otlp

IDS = {"traceId", "spanId", "profileId", "trace_id", "span_id", "profile_id"}


def translate(build, text, *flags):
    data = text.encode() if isinstance(text, str) else text
    return subprocess.run([build / "tests/support/otlp_json_tool", *flags], input=data, capture_output=True)


def message_of(build, text):
    run = translate(build, text)
    assert run.returncode == 0, run.stderr
    return otlp.parse(run.stdout)


def refusal(build, text):
    run = translate(build, text)
    assert run.returncode == 1
    return run.stderr.decode().strip()


def map_json(node, change):
    """Every (key, value) of every object through `change`."""
    if isinstance(node, list):
        return [map_json(x, change) for x in node]
    if not isinstance(node, dict):
        return node
    return dict(change(k, map_json(v, change)) for k, v in node.items())


def hex_ids(key, value):
    return key, base64.b64decode(value).hex() if key in IDS else value


def document(message, snake=False):
    """As the specification has it: what protobuf writes, with ids in hex."""
    return map_json(json_format.MessageToDict(message, preserving_proto_field_name=snake), hex_ids)


def random_value(r, v, depth=0):
    kind = r.choice(["string", "bool", "int", "double", "bytes", "ref", "none"] + ["array", "kvlist"] * (depth < 4))
    if kind == "string":
        v.string_value = r.choice(["", "plain", "esc \" \\ \n \x00 \u2028", "gr\u00fc\u00df", "\U0001f600" * 9, "x" * 200])
    elif kind == "bool":
        v.bool_value = r.random() < .5
    elif kind == "int":
        v.int_value = r.choice([0, 1, -1, 2 ** 63 - 1, -2 ** 63, 2 ** 53 + 1])
    elif kind == "double":
        v.double_value = r.choice([0.0, -0.0, 0.1, 1e300, 5e-324, -1.5, 1e15, float("inf"), float("-inf")])
    elif kind == "bytes":
        v.bytes_value = bytes(r.randrange(256) for _ in range(r.randrange(9)))
    elif kind == "ref" and "string_value_strindex" in v.DESCRIPTOR.fields_by_name:
        v.string_value_strindex = r.randrange(3)
    elif kind == "array":
        v.array_value.SetInParent()
        for _ in range(r.randrange(3)):
            random_value(r, v.array_value.values.add(), depth + 1)
    elif kind == "kvlist":
        v.kvlist_value.SetInParent()
        for _ in range(r.randrange(3)):
            random_value(r, v.kvlist_value.values.add(key="k").value, depth + 1)


EDGES = {"int32": [0, 1, -1, 127, 128, 2 ** 31 - 1, -2 ** 31], "int64": [0, -1, 127, 2 ** 63 - 1, -2 ** 63, 2 ** 53 + 1],
         "uint32": [0, 128, 2 ** 32 - 1], "uint64": [0, 16384, 2 ** 64 - 1, 2 ** 53 + 1]}


def scalar(r, f):
    kinds = {f.TYPE_INT32: "int32", f.TYPE_INT64: "int64", f.TYPE_UINT32: "uint32", f.TYPE_UINT64: "uint64",
             f.TYPE_FIXED64: "uint64"}
    if f.type in kinds:
        return r.choice(EDGES[kinds[f.type]])
    if f.type == f.TYPE_BOOL:
        return r.random() < .5
    if f.type == f.TYPE_ENUM:
        return r.choice(list(f.enum_type.values_by_number))
    if f.type == f.TYPE_BYTES:
        return bytes(r.randrange(256) for _ in range(r.choice([0, 8, 16])))
    return r.choice(["", "name", "a/b \" \\ \u00e9", "y" * 130])


def fill(r, message):
    """Every field of every message, at random, except what is skipped on the way in."""
    for f in message.DESCRIPTOR.fields:
        if f.name.startswith("original_payload") or r.random() < .2:
            continue
        if f.message_type and f.message_type.name == "AnyValue":
            random_value(r, getattr(message, f.name))
        elif f.message_type and f.label == f.LABEL_REPEATED:
            for _ in range(r.randrange(4)):
                fill(r, getattr(message, f.name).add())
        elif f.message_type:
            getattr(message, f.name).SetInParent()
            fill(r, getattr(message, f.name))
        elif f.label == f.LABEL_REPEATED:
            getattr(message, f.name).extend(scalar(r, f) for _ in range(r.randrange(5)))
        else:
            setattr(message, f.name, scalar(r, f))
    return message


def bytes_as_urls(key, value):
    return key, value.replace("+", "-").replace("/", "_").rstrip("=") if key == "bytesValue" else value


def numbers_loose(key, value):
    """Numbers where protobuf writes strings, and the other way round."""
    def swap(x):
        if isinstance(x, str) and x.lstrip("-").isdigit():
            return int(x)
        return str(x) if isinstance(x, int) and not isinstance(x, bool) else x
    if key in ("stringValue", "key", "stringTable", "name", "version", "type", "schemaUrl", "idKeys", "descriptionKeys",
               "bytesValue", "profileId", "traceId", "spanId"):
        return key, value
    return key, [swap(x) for x in value] if isinstance(value, list) else swap(value)


def with_nonsense(key, value):
    if isinstance(value, dict) and key != "value":
        value = {"unknown": {"resourceProfiles": [[{"samples": 1}], None, "x"]}, **value, "later_": [True, 1e99]}
    return key, value


FORMS = {
    "as it is": lambda m: json.dumps(document(m)),
    "snake_case": lambda m: json.dumps(document(m, snake=True)),
    "indented, not ASCII": lambda m: json.dumps(document(m), indent="\t", ensure_ascii=False),
    "numbers and strings swapped": lambda m: json.dumps(map_json(document(m), numbers_loose)),
    "base64url": lambda m: json.dumps(map_json(document(m), bytes_as_urls)),
    "unknown names": lambda m: json.dumps(map_json({"r": document(m)}, with_nonsense)["r"]),
    "upper-case ids": lambda m: json.dumps(map_json(document(m), lambda k, v: (k, v.upper() if k in IDS else v))),
}


@pytest.mark.parametrize("form", FORMS)
def test_messages_with_every_field_arrive_whole_in_every_form(build, form):
    r = random.Random(form)
    for _ in range(25):
        message = fill(r, otlp.Request())
        assert message_of(build, FORMS[form](message)) == message


def test_a_large_profile_arrives_whole(build):
    message = make.request(3, samples=3000)
    assert message_of(build, json.dumps(document(message))) == message


def test_the_bytes_are_those_that_protobuf_writes(build):
    message = make.request(5, samples=500)
    text = json.dumps(document(message))
    again = otlp.Request()
    again.MergeFromString(translate(build, text).stdout)
    assert len(translate(build, text).stdout) == again.ByteSize()


@pytest.mark.parametrize("name", ["ebpf-cpu-sigprofiling-k8s1-v111", "ebpf-cpu-sigprofiling-k8s2-v111"])
def test_real_profiles_in_json_equal_those_in_protobuf(build, name):
    for text in corpus.files("otlp/%s.json" % name):
        ours = message_of(build, text.read_bytes())
        assert ours == otlp.parse_json(text.read_text())
        assert ours == otlp.parse(text.with_suffix(".pb").read_bytes())


def test_lines_of_a_file_exporter_equal_what_protobuf_reads(build):
    for path in corpus.files("otlp/*.jsonl"):
        for line in path.read_text().splitlines()[::7]:
            assert message_of(build, line) == otlp.parse_json(line)


def test_special_doubles_and_exponents(build):
    def value(text):
        document = '{"resourceProfiles":[{"resource":{"attributes":[{"key":"k","value":{%s}}]}}]}' % text
        return message_of(build, document).resource_profiles[0].resource.attributes[0].value
    assert value('"doubleValue":"NaN"').double_value != value('"doubleValue":"NaN"').double_value
    assert value('"intValue":1e3').int_value == 1000
    assert value('"intValue":"-9223372036854775808"').int_value == -2 ** 63
    assert value('"intValue":5,"intValue":6').int_value == 6
    assert value('"intValue":5,"stringValue":"x"').WhichOneof("value") == "string_value"
    assert value('"stringValue":null').WhichOneof("value") is None


def nested_values(levels):
    value = {"intValue": 1}
    for _ in range(levels):
        value = {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
    return json.dumps({"resourceProfiles": [{"resource": {"attributes": [{"key": "a", "value": value}]}}]})


def test_values_within_values_are_translated_as_deep_as_the_decoder_goes(build):
    assert message_of(build, nested_values(17)) == otlp.parse_json(nested_values(17))
    assert "is nested too deeply" in refusal(build, nested_values(40))


def test_original_payload_is_skipped(build):
    text = '{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"originalPayload":"c2VjcmV0","originalPayloadFormat":"x"}]}]}]}'
    assert b"secret" not in translate(build, text).stdout
    assert message_of(build, text).resource_profiles[0].scope_profiles[0].profiles[0].ByteSize() == 0


def test_an_error_names_the_field_and_never_the_content(build):
    good = {"samples": [{"values": [1]}]}
    bad = {"samples": [{}, {"values": [1, "canary"]}]}
    text = json.dumps({"resourceProfiles": [{}, {"scopeProfiles": [{"profiles": [good, good, bad]}]}]})
    assert refusal(build, text) == \
        "resourceProfiles[1].scopeProfiles[0].profiles[2].samples[1].values[1]: is not a number"
    assert "canary" not in refusal(build, '{"canary":canary}')
    assert refusal(build, '{"dictionary":{"linkTable":[{"traceId":"canary"}]}}') == \
        "dictionary.linkTable[0].traceId: is not hexadecimal"




# ---- older generations

def known_as(release):
    """The JSON of 1.9 has the names of the current release."""
    return "1.10" if release == "1_9" else generations.GENERATIONS[release]


def clear_payloads(message):
    """They are skipped on the way in."""
    for f, value in message.ListFields():
        if f.name.startswith("original_payload"):
            message.ClearField(f.name)
        elif f.message_type:
            for child in value if f.label == f.LABEL_REPEATED else [value]:
                clear_payloads(child)


def old_request(release, seed):
    """A request as that release's messages have it."""
    module = generations.module(release)
    message = module.ProfilesData() if release == "1_6" else module.ExportProfilesServiceRequest()
    message.ParseFromString(generations.write(release, generations.logical(release, seed)))
    clear_payloads(message)
    return message


@pytest.mark.parametrize("release", [r for r in generations.OLD if r != "1_9"])
def test_the_json_of_an_older_generation_is_written_in_its_numbers(build, release):
    """Every field of every message, by the definitions of that release."""
    r = random.Random(release)
    for seed in range(12):
        message = old_request(release, seed)
        if seed % 2:
            fill(r, message)
        for snake in (False, True):
            run = translate(build, json.dumps(document(message, snake)), "own")
            assert (run.returncode, run.stderr.decode().strip()) == (0, known_as(release)), run.stderr
            again = type(message).FromString(run.stdout)
            assert again == message, "\n".join(difflib.unified_diff(str(message).split("\n"), str(again).split("\n")))


@pytest.mark.parametrize("release", generations.OLD)
def test_the_json_of_an_older_generation_arrives_in_the_current_layout(build, release):
    for seed in range(12):
        run = translate(build, json.dumps(document(old_request(release, seed))))
        assert run.returncode == 0, run.stderr
        expected = generations.expected(release, generations.logical(release, seed))
        assert otlp.profiles(run.stdout) == otlp.profiles(expected), (release, seed)


SAMPLE = '{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{%s}]}]}],"dictionary":{%s}}'


@pytest.mark.parametrize("profile, dictionary, names", [
    ('"samples":[],"sample":[]', "", ("1.8", "1.10")), ('"sample":[]', '"locationTable":[{"lines":[]}]', ("1.8", "1.10")),
    ('"sample":[{"value":[],"values":[]}]', "", ("1.7", "1.8")), ('"timeNanos":1,"timeUnixNano":1', "", ("1.7", "1.8")),
    ('"stringTable":[]', "", ("1.4", "1.7")), ('"profile":{}', "", ("1.3", "1.7")),
    ('"timeNanos":1', '"stackTable":[]', ("1.7", "1.8")), ('"commentStrindices":[]', '"locationTable":[{"lines":[]}]', ("1.8", "1.10")),
])
def test_names_of_two_generations_are_not_guessed_at(build, profile, dictionary, names):
    assert refusal(build, SAMPLE % (profile, dictionary)) == \
        "the JSON has names of the layouts of OTLP %s and of OTLP %s" % names


@pytest.mark.parametrize("path", corpus.files("otlp/synthetic-v1[457]*.json"), ids=lambda path: getattr(path, "stem", "none"))
def test_the_collectors_own_examples_are_recognised(build, path):
    run = translate(build, path.read_bytes(), "own")
    generation = {"4": "1.4", "5": "1.4", "7": "1.7"}[path.stem[len("synthetic-v1")]]
    assert (run.returncode, run.stderr.decode().strip()) == (0, generation)
