# SPDX-License-Identifier: Apache-2.0
"""The Collector's `redaction`, whole: a block as it stands in a Collector's file, in a profiles pipeline."""
import hashlib
import re
import subprocess

import pytest

from harness import build as make
from harness import otlp, peers, profcheck
from harness.gateway import Gateway

# Every switch that is supported, at once.
BLOCK = """
    allow_all_keys: false
    allowed_keys: [about, group, id, name]
    ignored_keys: [request.kind]
    redact_all_types: true
    blocked_key_patterns: [".*token.*", ".*api_key.*"]
    blocked_values:
      - "4[0-9]{12}(?:[0-9]{3})?"
      - "(5[1-5][0-9]{14})"
    allowed_values: [".+@corp.example"]
    hash_function: md5
    summary: debug
"""
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}}}}
processors:
  redaction:BLOCK
exporters:
  file: {path: out.jsonl}
service:
  telemetry: {logs: {level: debug}}
  pipelines:
    profiles: {receivers: [otlp], processors: [redaction], exporters: [file]}
""".replace("BLOCK", BLOCK)
VISA, MASTERCARD = "4111111111111111", "5500005555555559"
DENIED = "customer.birthday"


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


def request():
    m = make.Maker()
    sp = m.scope(m.resource({"name": "card " + VISA, "group": int(VISA), DENIED: "1970", "request.kind": VISA,
                             "id": VISA + "@corp.example"}))
    function = m.function("pay_" + MASTERCARD, "/src/%s.c" % VISA)
    mapping = m.mapping("/bin/" + VISA, attributes=[m.attribute("process.executable.build_id.gnu", 20 * "41")])
    stack = m.stack([m.location([function], mapping=mapping)])
    p = m.profile(sp)
    for i in range(2):
        p.samples.add(stack_index=stack, values=[1], attribute_indices=[
            m.attribute("about", "%d %s" % (i, MASTERCARD), unit=VISA), m.attribute(DENIED, str(1970 + i))])
    return m.message.SerializeToString()


@pytest.fixture(scope="module")
def run(build):
    """(what left, as JSON; the message; metrics; log)"""
    with Gateway(build / "portcullis", CONFIG) as g, peers.Client(g.port["grpc"]) as client:
        client.send(request())
        g.until(lambda: g.total("otelcol_ledger_out_samples") == 2)
        metrics = g.metrics()
        assert g.stop() == 0
        line = (g.directory / "out.jsonl").read_text()
        (g.directory / "in.pb").write_bytes(request())
        explained = subprocess.run([g.binary, "explain", "--config", str(g.config), "in.pb"], cwd=g.directory, capture_output=True,
                                   text=True, check=True).stdout
        return line, otlp.parse_json(line), metrics, g.log(), explained


def test_what_leaves_is_hashed_at_every_site(run):
    line, message, *_ = run
    assert not list(profcheck.check(message.SerializeToString()))
    resource = {kv.key: kv.value for kv in message.resource_profiles[0].resource.attributes}
    assert resource["name"].string_value == "card " + md5(VISA)
    assert resource["group"].string_value == md5(VISA)
    assert resource["request.kind"].string_value == VISA
    assert resource["id"].string_value == VISA + "@corp.example"
    strings = set(message.dictionary.string_table)
    assert {"pay_" + md5(MASTERCARD), "/src/%s.c" % md5(VISA), "/bin/" + md5(VISA), md5(VISA)} <= strings
    assert all('"%d %s"' % (i, md5(MASTERCARD)) in line for i in range(2))
    assert 20 * "41" in line  # a build ID is not a card
    assert MASTERCARD not in line and DENIED not in line and "1970" not in line
    assert line.count(VISA) == 2


def test_the_summary_counts_and_names_nothing(run):
    line, message, *_ = run
    resource = {kv.key: kv.value.int_value for kv in message.resource_profiles[0].resource.attributes if kv.key.startswith("redaction.")}
    assert resource == {"redaction.redacted.count": 1, "redaction.masked.count": 2, "redaction.ignored.count": 1, "redaction.allowed.count": 1}
    d = message.dictionary
    of_profile = {d.string_table[a.key_strindex]: a.value.int_value for a in (
        d.attribute_table[i] for i in message.resource_profiles[0].scope_profiles[0].profiles[0].attribute_indices)}
    assert of_profile == {"redaction.redacted.count": 2, "redaction.masked.count": 2}
    assert "keys" not in line


def test_metrics_count_by_site_and_reason(run):
    *_, metrics, log, _ = run
    counted = {(name.removesuffix("_total"), dict(labels)["site"], dict(labels).get("reason")): value
               for (name, labels), value in metrics.items() if name.startswith("otelcol_processor_redaction_") and value}
    removed = {site: value for (name, site, _), value in counted.items() if name.endswith("removed_attributes")}
    assert removed == {"resource": 1, "sample": 2}
    masked = {(site, reason): value for (name, site, reason), value in counted.items() if name.endswith("masked_strings")}
    # The two values and their unit.
    assert masked == {("resource", "value"): 2, ("sample", "value"): 4, ("function.name", "value"): 1,
                      ("function.filename", "value"): 1, ("mapping.filename", "value"): 1}
    assert DENIED not in log and VISA not in log


def test_explain_names_keys_and_no_values(run):
    explained = run[-1]
    flat = {re.sub(r", .*:\d+$", "", " ".join(line.split()[1:])) for line in explained.splitlines()}
    assert {"resource denied %s redaction" % DENIED, "sample denied %s redaction" % DENIED,
            "resource masked: value name redaction blocked_values", "function.name masked: value redaction blocked_values",
            "resource passes name redaction allowed_keys[3]"} <= flat
    assert VISA not in explained and MASTERCARD not in explained


def test_what_is_not_supported_is_an_error_with_the_reason(build, tmp_path):
    for extra, why in (("url_sanitizer: {enabled: true, attributes: [url]}", "url_sanitizer: not supported"),
                       ("db_sanitizer: {sql: {enabled: true, attributes: [db.statement]}}", "db_sanitizer: not supported"),
                       ("ignored_key_patterns: ['(?<!x)y']", "ignored_key_patterns[0]: invalid regular expression")):
        text = CONFIG.replace("    summary: debug\n", "    summary: debug\n    %s\n" % extra).replace("{port:grpc}", "4317")
        (tmp_path / "c.yaml").write_text(text)
        done = subprocess.run([build / "portcullis", "validate", "--config", "c.yaml"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1 and why in done.stderr, done.stderr
