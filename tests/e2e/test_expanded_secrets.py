# SPDX-License-Identifier: Apache-2.0
"""What ${...} brought is never shown: not by errors about the configuration, not by print-config, not by warnings.

Every key of every component, as the program itself lists them, and the sections above them, get a reference to a variable
that holds a secret in one shape after the other: a string, numbers, maps with secret keys, URLs with a password. Whatever
the program says then is searched.

That are thousands of runs of the program: those with every key are made with the optimised build, others with every build.
"""
import concurrent.futures
import json
import os
import re
import subprocess

import pytest

SECRET = "qzxsecret"
NUMBER = "9182736455"
SHAPES = {
    "string": "%s,%s:%s" % (SECRET, SECRET, NUMBER),
    "integer": NUMBER,
    "map": "{%s: {%s: [%s]}}" % (3 * (SECRET,)),
    "pairs": "[{name: %s, value: %s}, {name: %s, value: 2}]" % (3 * (SECRET,)),
    "URL": "http://%s:%s@127.0.0.1:1/%s?%s" % (4 * (SECRET,)),
}
MORE_SHAPES = {
    **SHAPES,
    "empty": "",
    "negative": "-" + NUMBER,
    "overflow": NUMBER * 3,
    "fraction": "0." + NUMBER,
    "duration": NUMBER + "years",
    "list of maps": "[{%s: %s}]" % (SECRET, SECRET),
    "regular expression": "(" + SECRET,
    "lines": "%s\n\x01 %s" % (SECRET, SECRET),
}
BASE = {
    "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}},
    "processors": {},
    "exporters": {"debug": {}},
    "extensions": {},
    "service": {"pipelines": {"profiles": {"receivers": ["otlp"], "exporters": ["debug"]}}},
}
# What a component needs besides, so that its own rules are asked too.
NEEDS = {
    ("receivers", "otlp"): {"protocols": {"grpc": {}}},
    ("receivers", "pprof"): {"server": {"endpoint": "127.0.0.1:0"}},
    ("exporters", "otlp_grpc"): {"endpoint": "127.0.0.1:1"},
    ("exporters", "otlp_http"): {"endpoint": "http://127.0.0.1:1"},
    ("exporters", "parca"): {"endpoint": "127.0.0.1:1"},
    ("exporters", "pyroscope"): {"endpoint": "http://127.0.0.1:1"},
    ("exporters", "file"): {"path": "x"},
    ("processors", "memory_limiter"): {"check_interval": "1s", "limit_mib": 100},
    ("processors", "resource"): {"attributes": [{"key": "a", "action": "delete"}]},
}
PLACES = [  # sections and lists above the components
    "receivers", "processors", "exporters", "extensions", "service", "connectors", "service.pipelines",
    "service.pipelines.profiles", "service.pipelines.profiles.receivers", "service.pipelines.profiles.processors",
    "service.pipelines.profiles.exporters", "service.pipelines.profiles.exporters[]", "service.extensions",
    "service.extensions[]", "service.telemetry", "service.telemetry.logs", "service.telemetry.logs.level",
    "service.telemetry.logs.encoding", "service.telemetry.logs.output_paths", "service.telemetry.logs.initial_fields",
    "service.telemetry.logs.initial_fields.a", "service.telemetry.metrics", "service.telemetry.metrics.level",
    "service.telemetry.metrics.readers", "service.telemetry.metrics.readers[]",
    "service.telemetry.metrics.readers[].pull.exporter.prometheus.host",
    "service.telemetry.metrics.readers[].pull.exporter.prometheus.port",
    "service.telemetry.metrics.views", "service.telemetry.traces", "service.telemetry.resource"]


def nested(path, value):
    """The tree in which the value stands at "a.b[].c"."""
    for part in reversed(path.split(".")):
        name, _, is_list = part.partition("[")
        value = {name: [value] if is_list else value}
    return value


def merged(a, b):
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return b
    return {**a, **{k: merged(a[k], v) if k in a else v for k, v in b.items()}}


def output(build, tree, variable, *arguments):
    text = json.dumps(tree)
    done = subprocess.run([build / "portcullis", *arguments, "--config", "yaml:" + text], capture_output=True,
                          env={**os.environ, "SHAPE": variable}, timeout=60)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def shown(build, tree, shapes):
    """What shows a secret: [(shape, command, output)]."""
    found = []
    for shape, variable in shapes.items():
        for command in (["print-config"], ["print-config", "--format", "json"]):
            status, text = output(build, tree, variable, *command)
            if SECRET[:5] in text.lower() or NUMBER[:6] in text:
                found.append((shape, command, text[-600:]))
            if status:
                break  # the same error again
    return found


def check(build, trees, shapes=None):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(zip(trees, pool.map(lambda tree: shown(build, tree, shapes or SHAPES), trees)))
    wrong = [(json.dumps(tree), places) for tree, places in found if places]
    assert not wrong, "%d of %d trees, the first: %s" % (len(wrong), len(trees), wrong[0])


def components(build):
    kind, found = None, []
    for line in subprocess.run([build / "portcullis", "components"], capture_output=True, text=True).stdout.splitlines():
        section = re.fullmatch(r"(receivers|processors|exporters|extensions):", line)
        kind = section.group(1) if section else kind
        name = re.fullmatch(r"    - name: (.*)", line)
        if name and kind:
            found.append((kind, name.group(1)))
    return found


def keys(build, name):
    """[(key, type)] of a component's manual; "named.<name>.key" with a name."""
    text = subprocess.run([build / "portcullis", "components", name], capture_output=True, text=True).stdout
    for table in re.findall(r"^\| key \|.*?\n\n", text + "\n\n", re.M | re.S):
        for key, type_ in re.findall(r"^\| `(.*?)` \| (.*?) \|", table, re.M):
            yield key.replace("<name>", "some"), type_


def every_key(build):
    """[(kind, name, key, type)]; a section that many components have, once."""
    if build.name != "release":
        pytest.skip("every key is tried in the optimised build")
    seen = set()
    for kind, name in components(build):
        for key, type_ in keys(build, name):
            shared = re.search(r"(tls|keepalive|sending_queue|retry_on_failure)(\..*)?$", key)
            one = shared.group() if shared else (kind, name, key)
            if one not in seen:
                seen.add(one)
                yield kind, name, key, type_


def with_key(kind, name, key, value):
    return merged(BASE, {kind: {name + "/x": merged(NEEDS.get((kind, name), {}), nested(key, value))}})


def test_no_key_of_a_component_shows_what_was_expanded(build):
    trees = [with_key(kind, name, key, "${env:SHAPE}") for kind, name, key, _ in every_key(build)]
    assert len(trees) > 200
    check(build, trees)


def test_no_key_shows_part_of_what_was_expanded(build):
    trees = [with_key(kind, name, key, "x${env:SHAPE}y") for kind, name, key, _ in every_key(build)]
    check(build, trees, {"string": SHAPES["string"]})


def test_no_element_shows_what_was_expanded(build):
    trees = [with_key(kind, name, key + more, "${env:SHAPE}") for kind, name, key, type_ in every_key(build)
             if re.search("list|map|any", type_) for more in ("[]", ".some")]
    assert len(trees) > 40
    check(build, trees, {"string": SHAPES["string"], "map": SHAPES["map"]})


@pytest.mark.parametrize("kind, name", NEEDS)
def test_no_component_shows_what_was_expanded(build, kind, name):
    check(build, [merged(BASE, {kind: {name + "/x": "${env:SHAPE}"}})], MORE_SHAPES)


@pytest.mark.parametrize("reference", ["${env:SHAPE}", "x${SHAPE}y"])
def test_no_section_shows_what_was_expanded(build, reference):
    check(build, [merged(BASE, nested(place, reference)) for place in PLACES])


# A key of each type, with a range and without.
TYPES = [("exporters", "debug", key) for key in ("verbosity", "sampling_initial", "use_internal_logger", "output_paths")] + [
    ("exporters", "otlp_grpc", key) for key in ("timeout", "endpoint", "headers", "retry_on_failure.multiplier", "compression",
                                                "sending_queue.queue_size")] + [
    ("processors", "resource", "attributes[].value"), ("processors", "pii", "patterns.some.pattern"),
    ("processors", "pii", "hmac_key"), ("processors", "allowlist", "values"), ("processors", "allowlist", "key_patterns")]


@pytest.mark.parametrize("kind, name, key", TYPES)
def test_no_type_of_a_key_shows_what_was_expanded(build, kind, name, key):
    check(build, [with_key(kind, name, key, "${env:SHAPE}")], MORE_SHAPES)


@pytest.mark.parametrize("reference", [
    "${env:${env:SHAPE}}", "${${env:SHAPE}}", "${file:/nonexistent/${env:SHAPE}}", "${s3:${env:SHAPE}}",
    "${http://127.0.0.1:1/${env:SHAPE}}", "${https://${env:SHAPE}@127.0.0.1:1/}", "${yaml:${env:SHAPE}}",
    "${env:UNSET_VARIABLE:-${env:SHAPE}}", "${env:UNSET_VARIABLE:-qzxsecret}", "${yaml:qzxsecret}",
    "x${yaml:[qzxsecret]}", "${http://user:qzxsecret@127.0.0.1:1/?qzxsecret}"])
def test_no_reference_within_a_reference_shows_it(build, reference):
    check(build, [merged(BASE, nested(place, reference)) for place in (
        "exporters.debug.verbosity", "exporters.debug", "exporters", "service.telemetry.logs.initial_fields.a",
        "service.telemetry.logs.level", "processors.resource/x.attributes")])


def test_set_shows_nothing(build):
    for item in ("qzxsecret", "exporters.debug.verbosity=${env:SHAPE}", "qzx=${env:SHAPE}"):
        done = subprocess.run([build / "portcullis", "validate", "--config", "yaml:" + json.dumps(BASE), "--set", item],
                              capture_output=True, text=True, env={**os.environ, "SHAPE": SECRET})
        assert done.returncode == 1
        assert SECRET not in done.stdout + done.stderr


def test_references_are_shown_as_they_were_written(build):
    tree = merged(BASE, {"exporters": {"otlp_grpc/x": {
        "endpoint": "${env:SHAPE}:4317", "headers": {"a": "b ${env:SHAPE}"}, "timeout": "${env:UNSET_VARIABLE:-7s}"}}})
    status, text = output(build, tree, "backend", "print-config")
    assert status == 0, text
    assert 'endpoint: "${env:SHAPE}:4317"' in text
    assert 'timeout: "${env:UNSET_VARIABLE:-...}"' in text
    assert 'a: "[REDACTED]"' in text
    status, text = output(build, tree, "backend", "print-config", "--mode", "unredacted")
    assert status == 0, text
    assert 'endpoint: backend:4317' in text and "timeout: 7s" in text and 'a: "b backend"' in text
    tree["exporters"]["debug"]["verbosity"] = "${env:SHAPE}"
    status, text = output(build, tree, "backend", "validate")
    assert status == 1
    assert 'unsupported value "${env:SHAPE}" (valid values: [basic normal detailed])' in text
