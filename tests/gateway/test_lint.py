# SPDX-License-Identifier: Apache-2.0
"""Warnings about configurations that are valid: which, at which line, and how they are silenced or made errors."""
import os
import pathlib
import re
import subprocess

import pytest

from harness import book, certificates
from harness.gateway import Gateway

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# A configuration without warnings; each case changes it.
CLEAN = """\
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:4317}}}
processors:
  allowlist: {keys: [service.name, region]}
exporters:
  otlp_grpc: {endpoint: store.internal:4317}
service:
  pipelines:
    profiles: {receivers: [otlp], processors: [allowlist], exporters: [otlp_grpc]}
"""
RECEIVER, POLICY, EXPORTER, PIPELINE = (CLEAN.splitlines()[i] for i in (1, 3, 5, 8))
TLS = "tls: {cert_file: server.pem, key_file: server.key}"
ENV = {"SECRET": "from-outside", "HOST": "0.0.0.0"}

# name: ({a line: what stands there instead}, [(line, identifier), ...])
CASES = {
    "clean": ({}, []),
    # no-policy
    "no policy": ({PIPELINE: PIPELINE.replace("[allowlist]", "[]")}, [(9, "no-policy")]),
    "redaction is a policy": ({POLICY: "  redaction: {}", PIPELINE: PIPELINE.replace("allowlist", "redaction")}, []),
    "redaction of all keys is none": ({POLICY: "  redaction: {allow_all_keys: true}", PIPELINE: PIPELINE.replace("allowlist", "redaction")},
                                      [(9, "no-policy")]),
    "pii is none": ({POLICY: "  pii: {}", PIPELINE: PIPELINE.replace("allowlist", "pii")}, [(9, "no-policy")]),
    "policy before a connector": ({"service:": "connectors: {forward: }\nservice:", PIPELINE: """\
    profiles/in: {receivers: [otlp], processors: [allowlist], exporters: [forward]}
    profiles/out: {receivers: [forward], exporters: [otlp_grpc]}"""}, []),
    "policy behind a connector": ({"service:": "connectors: {forward: }\nservice:", PIPELINE: """\
    profiles/in: {receivers: [otlp], exporters: [forward]}
    profiles/out: {receivers: [forward], processors: [allowlist], exporters: [otlp_grpc]}"""}, []),
    "one way without": ({"service:": "connectors: {forward: }\nservice:", PIPELINE: """\
    profiles/in: {receivers: [otlp], processors: [allowlist], exporters: [forward]}
    profiles/in2: {receivers: [otlp], exporters: [forward]}
    profiles/out: {receivers: [forward], exporters: [otlp_grpc]}"""}, [(12, "no-policy")]),
    "an exporter beside a connector": ({"service:": "connectors: {forward: }\nservice:", PIPELINE: """\
    profiles/in: {receivers: [otlp], exporters: [forward, otlp_grpc]}
    profiles/out: {receivers: [forward], processors: [allowlist], exporters: [otlp_grpc]}"""}, [(10, "no-policy")]),
    # denied-attribute
    "a stamp that is removed": ({POLICY: POLICY + """
  resource:
    attributes:
      - {key: region, value: eu, action: upsert}
      - {key: team, value: a, action: insert}
      - {key: other, value: a, action: update}
      - {key: gone, action: delete}""", PIPELINE: PIPELINE.replace("[allowlist]", "[resource, allowlist]")}, [(8, "denied-attribute")]),
    "a stamp behind the policy": ({POLICY: POLICY + "\n  resource: {attributes: [{key: team, value: a, action: upsert}]}",
                                   PIPELINE: PIPELINE.replace("[allowlist]", "[allowlist, resource]")}, []),
    "a stamp that a pattern permits": ({POLICY: "  allowlist: {key_patterns: ['te.*']}\n  resource: {attributes: [{key: team, value: a, action: upsert}]}",
                                        PIPELINE: PIPELINE.replace("[allowlist]", "[resource, allowlist]")}, []),
    "a stamp that is permitted at samples": ({POLICY: "  allowlist: {sample: [team]}\n  resource: {attributes: [{key: team, value: a, action: upsert}]}",
                                              PIPELINE: PIPELINE.replace("[allowlist]", "[resource, allowlist]")}, [(5, "denied-attribute")]),
    "a stamp that redaction ignores or removes": ({POLICY: "  redaction: {allowed_keys: [a], ignored_key_patterns: [^b]}\n  resource:\n    attributes:\n" + "".join(
        "      - {key: %s, value: a, action: upsert}\n" % key for key in ("a", "bb", "ab")).rstrip(),
        PIPELINE: PIPELINE.replace("[allowlist]", "[resource, redaction]")}, [(9, "denied-attribute")]),
    # otlp-to-parca
    "parca by name": ({EXPORTER: "  otlp_grpc: {endpoint: parca.monitoring:4317}"}, [(6, "otlp-to-parca")]),
    "parca by port": ({EXPORTER: "  otlp_grpc: {endpoint: store.internal:7070}"}, [(6, "otlp-to-parca")]),
    "parca by HTTP": ({EXPORTER: "  otlp_http: {endpoint: 'https://grpc.polarsignals.example'}", PIPELINE: PIPELINE.replace("otlp_grpc", "otlp_http")},
                      [(6, "otlp-to-parca")]),
    "parca by its exporter": ({EXPORTER: "  parca: {endpoint: 'parca.monitoring:7070'}", PIPELINE: PIPELINE.replace("otlp_grpc", "parca")}, []),
    "parca is not used": ({EXPORTER: EXPORTER + "\n  otlp_grpc/parca: {endpoint: parca.monitoring:7070}"}, []),
    # open-listener
    "open gRPC": ({RECEIVER: "  otlp: {protocols: {grpc: {endpoint: 0.0.0.0:4317}}}"}, [(2, "open-listener")]),
    "open HTTP, IPv6": ({RECEIVER: "  otlp: {protocols: {http: {endpoint: '[::]:4318'}}}"}, [(2, "open-listener")]),
    "open pprof, no host": ({RECEIVER: "  otlp: {protocols: {grpc: {}}}\n  pprof: {server: {endpoint: ':4040'}}",
                             PIPELINE: PIPELINE.replace("[otlp]", "[otlp, pprof]")}, [(3, "open-listener")]),
    "open by a variable": ({RECEIVER: "  pyroscope: {endpoint: '${env:HOST}:4040'}", PIPELINE: PIPELINE.replace("[otlp]", "[pyroscope]")},
                           [(2, "open-listener")]),
    "open and not used": ({RECEIVER: RECEIVER + "\n  pprof: {server: {endpoint: 0.0.0.0:4040}}"}, []),
    "with TLS": ({RECEIVER: "  otlp: {protocols: {grpc: {endpoint: 0.0.0.0:4317, %s}}}" % TLS}, []),
    "with authentication": ({RECEIVER: "  otlp: {protocols: {grpc: {endpoint: 0.0.0.0:4317, auth: {authenticator: bearertokenauth}}}}",
                             "service:": "extensions: {bearertokenauth: {token: '${env:SECRET}'}}\nservice:\n  extensions: [bearertokenauth]"}, []),
    "one address": ({RECEIVER: "  otlp: {protocols: {grpc: {endpoint: 10.0.0.0:4317}}}"}, []),
    # unset-variable
    "variables that are not set": ({RECEIVER: "  otlp: {protocols: {grpc: {endpoint: '127.0.0.1:4317${env:LINT_UNSET}'}}}",
                                    POLICY: POLICY + "\n  resource:\n    attributes:\n      - {key: region, value: 'a${LINT_UNSET}', action: upsert}"},
                                   [(2, "unset-variable"), (7, "unset-variable")]),
    "a default": ({EXPORTER: "  otlp_grpc: {endpoint: 'store.internal:4317${env:LINT_UNSET:-}'}"}, []),
    # plain-secret
    "a secret in the file": ({POLICY: POLICY + "\n  pii:\n    hmac_key: 0123456789abcdef0123456789abcdef"}, [(6, "plain-secret")]),
    "a secret from outside": ({POLICY: POLICY + "\n  pii:\n    hmac_key: ${env:SECRET}0123456789abcdef0123456789abcdef"}, []),
    "headers with tokens": ({EXPORTER: """  otlp_grpc:
    endpoint: store.internal:4317
    headers:
      x-scope-orgid: a
      authorization: Bearer abc
      x-token: abc"""}, [(10, "plain-secret"), (11, "plain-secret")]),
    "a header in a list": ({EXPORTER: """  otlp_grpc:
    endpoint: store.internal:4317
    headers:
      - {name: a, value: b}
      - name: X-Api-Key
        value: abc"""}, [(11, "plain-secret")]),
    "a header without": ({EXPORTER: "  otlp_grpc: {endpoint: store.internal:4317, headers: {x-scope-orgid: a, authorization: '${env:SECRET}'}}"}, []),
    "a key in the file": ({EXPORTER: "  otlp_grpc: {endpoint: store.internal:4317, tls: {cert_file: c.pem, key_pem: '-----BEGIN PRIVATE KEY-----'}}"},
                          [(6, "plain-secret")]),
    "certificates in the file": ({EXPORTER: "  otlp_grpc: {endpoint: store.internal:4317, tls: {ca_pem: '-----BEGIN CERTIFICATE-----', "
                                            "cert_pem: '-----BEGIN CERTIFICATE-----', key_file: k.pem}}"}, []),
    "a token of an extension": ({"service:": "extensions:\n  bearertokenauth: {token: abc}\nservice:"}, [(8, "plain-secret")]),
}
WARNING = re.compile(r"Warning: gateway\.yaml:(\d+):\d+: [a-z]+::.* \[([a-z-]+)\]")


def validate(build, directory, text, *arguments):
    (directory / "gateway.yaml").write_text(text)
    return subprocess.run([build / "portcullis", "validate", "--config", "gateway.yaml", *arguments], cwd=directory, capture_output=True,
                          text=True, env={**os.environ, **ENV})


def changed(changes):
    text = CLEAN
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("lint")
    certificates.make_ca(path, "ca")
    certificates.make_leaf(path, "ca", "server", "/CN=localhost")
    return path


@pytest.mark.parametrize("name", CASES)
def test_each_warning_has_its_line_and_can_be_silenced(build, directory, name):
    changes, expected = CASES[name]
    text = changed(changes)
    done = validate(build, directory, text)
    lines = done.stderr.splitlines()
    assert done.returncode == 0 and all(map(WARNING.fullmatch, lines)), done.stderr
    assert [(int(m[1]), m[2]) for m in map(WARNING.fullmatch, lines)] == expected
    assert "from-outside" not in done.stderr
    assert validate(build, directory, text, "--deny-warnings").returncode == bool(expected)
    if expected:
        silence = "service.silence=[%s]" % ", ".join({id for _, id in expected})
        done = validate(build, directory, text, "--deny-warnings", "--set", silence)
        assert (done.returncode, done.stderr) == (0, "")


def test_every_check_has_a_case_and_stands_in_the_manual():
    ids = {id for _, expected in CASES.values() for _, id in expected}
    table = book.section((ROOT / book.REFERENCE).read_text(), "Warnings").split("\n## ")[0]
    assert ids == set(re.findall(r"^\| `([a-z-]+)` \|", table, re.M))
    assert ids == set(re.findall(r"`([a-z]+-[a-z-]+)`", book.section((ROOT / "docs/manual/configuration.md").read_text(), "Warnings").split("```")[0]))


def test_an_unknown_identifier_is_an_error_that_names_the_others(build, directory):
    done = validate(build, directory, CLEAN, "--set", "service.silence=[no-such]")
    assert done.returncode == 1 and "silence[0]: unknown warning (valid warnings: no-policy, denied-attribute," in done.stderr
    assert "no-such" not in done.stderr


def test_policy_can_be_required(build, directory):
    text = changed(CASES["no policy"][0])
    done = validate(build, directory, text, "--set", "service.require_policy=true", "--set", "service.silence=[no-policy]")
    assert done.returncode == 1
    assert re.search(r"gateway\.yaml:9:\d+: service::pipelines::profiles: every attribute passes.*service::require_policy", done.stderr)
    assert validate(build, directory, CLEAN, "--set", "service.require_policy=true").returncode == 0


def test_the_log_warns_at_each_start_and_reload(build):
    text = CASES["no policy"][0]
    config = (changed(text).replace("127.0.0.1:4317", "127.0.0.1:{port:grpc}")
              .replace("otlp_grpc: {endpoint: store.internal:4317}", "otlp_grpc: {endpoint: 127.0.0.1:{port:store}, tls: {insecure: true}}")
              .replace("service:", "service:\n  telemetry: {logs: {encoding: json}}"))
    message = "The configuration is valid, but probably not what you want"
    with Gateway(build / "portcullis", config) as g:
        assert g.log().count(message) == 1
        assert re.search(r'"level":"warn".*"warning":"no-policy","text":"[^"]*gateway.yaml:10:\d+: service::pipelines::profiles: every', g.log())
        g.config.write_text(g.config.read_text().replace("[service.name, region]", "[service.name]"))
        g.process.send_signal(1)
        g.until(lambda: g.log().count("Configuration reloaded") == 1)
        assert g.log().count(message) == 2


def test_examples_warn_only_of_what_their_page_explains(build, directory):
    """The identifiers of warnings stand in backticks on the page."""
    environment = {name: "x" for name in ("GRAFANA_TOKEN", "POLARSIGNALS_TOKEN", "STORE_TOKEN", "KAFKA_PASSWORD")}
    examples = [(repr(r), r.text, (ROOT / r.page).read_text()) for r in book.recipes(ROOT)]
    examples += [(f.name, f.read_text(), "") for f in sorted((ROOT / "docker").glob("*.yaml"))]
    assert len(examples) > 20
    for name, text, page in examples:
        # Without files that only the test of recipes makes, and for which there would be an error.
        text = re.sub(r"/etc/portcullis/tokens", str(directory / "server.key"), text)
        (directory / "gateway.yaml").write_text(text)
        done = subprocess.run([build / "portcullis", "validate", "--config", "gateway.yaml"], cwd=directory, capture_output=True, text=True,
                              env={**os.environ, **environment})
        found = {m[2] for m in WARNING.finditer(done.stderr)}
        assert found <= set(re.findall(r"`([a-z-]+)`", page)), (name, done.stderr)
