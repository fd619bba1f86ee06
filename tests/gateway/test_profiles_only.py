# SPDX-License-Identifier: Apache-2.0
"""A configuration that a Collector with other signals runs: --profiles-only, feature gates, names of metrics."""
import re
import subprocess

import pytest

from harness import build as make
from harness import peers
from harness.gateway import Gateway

SHARED = """receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:grpc}"}}}
  pprof: {server: {endpoint: "127.0.0.1:{port:pprof}"}}
  hostmetrics: {scrapers: {cpu: }}
  jaeger: not even a map
processors:
  batch: {timeout: 1ms}
  k8sattributes: {passthrough: true}
exporters:
  debug:
  prometheusremotewrite: {endpoint: "http://p:9090"}
  otlp: {endpoint: "traces:4317"}
connectors:
  spanmetrics:
extensions:
  zpages:
  health_check: {endpoint: "127.0.0.1:{port:health}"}
service:
  extensions: [zpages, health_check]
  pipelines:
    traces: {receivers: [otlp], processors: [k8sattributes, batch], exporters: [spanmetrics, debug, otlp]}
    metrics/a: {receivers: [spanmetrics, hostmetrics], exporters: [prometheusremotewrite]}
    profiles: {receivers: [otlp, " pprof "], processors: [batch], exporters: [debug]}
"""
VALID = re.sub(r"\{port:\w+\}", "0", SHARED)
SKIPPED = {
    "Skipping a pipeline that is not for profiles": {("service::pipelines::traces", "21:5"), ("service::pipelines::metrics/a", "22:5")},
    "Skipping a component that no pipeline for profiles uses": {
        ("receivers::hostmetrics", "4:3"), ("receivers::jaeger", "5:3"), ("processors::k8sattributes", "8:3"),
        ("exporters::prometheusremotewrite", "11:3"), ("exporters::otlp", "12:3"), ("connectors::spanmetrics", "14:3")},
    "Skipping an extension that this build does not have": {("extensions::zpages", "16:3")},
}


def skipped(log):
    found = {}
    for message, key, at in re.findall(r"\twarn\t\S+\t(Skipping [^\t]*)\t.*?\"key\": \"([^\"]*)\", \"at\": \"[^\"]*?gateway.yaml:([\d:]+)\"", log):
        found.setdefault(message, []).append((key, at))
    return found


def test_a_file_shared_with_a_collector_runs_as_it_is(build):
    with Gateway(build / "portcullis", SHARED, arguments=["--profiles-only"]) as gateway:
        found = skipped(gateway.log())
        assert {message: set(keys) for message, keys in found.items()} == SKIPPED
        assert all(len(keys) == len(set(keys)) for keys in found.values()), found
        assert peers.post(gateway.port["pprof"], make.pprof(1).SerializeToString())[0] == 204
        gateway.until(lambda: gateway.total("otelcol_ledger_out_samples") > 0)


def test_without_the_option_each_foreign_part_is_an_error(build, tmp_path):
    (tmp_path / "c.yaml").write_text(VALID)
    done = subprocess.run([build / "portcullis", "validate", "c.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    places = [re.match(r"Error: c.yaml:(\d+:\d+)", line)[1] for line in done.stderr.splitlines()]
    valid = {"exporters::otlp"}
    assert set(places) == {at for keys in SKIPPED.values() for key, at in keys if key not in valid}
    done = subprocess.run([build / "portcullis", "validate", "--profiles-only", "c.yaml"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0


def test_what_a_pipeline_for_profiles_uses_is_still_checked(build, tmp_path):
    text = VALID.replace("exporters: [debug]}", "exporters: [prometheusremotewrite]}")
    (tmp_path / "c.yaml").write_text(text)
    done = subprocess.run([build / "portcullis", "validate", "--profiles-only", "c.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and 'c.yaml:11:3: exporters: unknown type: "prometheusremotewrite"' in done.stderr


def test_components_are_not_called_unused_while_a_source_is_missing(build, tmp_path):
    (tmp_path / "c.yaml").write_text("receivers: {nop: }\nexporters: {debug: {verbosity: none}}\n")
    done = subprocess.run([build / "portcullis", "validate", "--profiles-only", "--config", "c.yaml", "--config", "absent.yaml"],
                          cwd=tmp_path, capture_output=True, text=True)
    errors = [line.split(": ")[1] for line in done.stderr.splitlines()]
    assert done.returncode == 1 and errors == ["unable to read the file file:absent.yaml", "c.yaml:2:21"], done.stderr


@pytest.mark.parametrize("old, new, error", [
    ("exporters: [debug]}", "exporter: [debug]}", "'service::pipelines::profiles' has invalid keys: exporter (did you mean `exporters`?)"),
    ("receivers: [otlp, \" pprof \"]", "receivers: [otlp, ppprof]",
     'service::pipelines::profiles: references receiver "ppprof" which is not configured (did you mean `pprof`?)'),
    ("receivers: [otlp, \" pprof \"]", "receivers: [otlp, '${env:NO-NAME}']",
     'service::pipelines::profiles::receivers[1]: environment variable "NO..." has invalid name: must match regex ^[a-zA-Z_][a-zA-Z0-9_]*$'),
    ("    profiles: {", "    logs: {", "service::pipelines: service must have at least one pipeline"),
])
def test_an_error_that_hides_what_is_used_makes_nothing_unused(build, tmp_path, old, new, error):
    """Neither warnings about components that may be used, nor errors about those of other signals."""
    assert old in VALID
    (tmp_path / "gateway.yaml").write_text(VALID.replace(old, new))
    done = subprocess.run([build / "portcullis", "validate", "--profiles-only", "gateway.yaml"], cwd=tmp_path, capture_output=True, text=True)
    errors = [re.sub(r"^Error: gateway.yaml:\d+:\d+: ", "", line) for line in done.stderr.splitlines() if line.startswith("Error")]
    assert (done.returncode, errors) == (1, [error])
    assert not [message for message in skipped(done.stderr) if message.startswith("Skipping a component")]


def test_other_feature_gates_are_logged(build, tmp_path):
    (tmp_path / "c.yaml").write_text(VALID)
    done = subprocess.run([build / "portcullis", "validate", "--profiles-only", "--feature-gates=+service.profilesSupport,a.b,-c.d",
                           "c.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0
    assert re.findall(r'Feature gate has no effect.*"gate": "([^"]*)"', done.stderr) == ["a.b", "-c.d"]


@pytest.mark.parametrize("keys, name, labels", [
    ("", "otelcol_process_uptime", {"service_name"}),
    ("without_units: false", "otelcol_process_uptime_seconds", {"service_name"}),
    ("without_type_suffix: false", "otelcol_process_uptime_total", {"service_name"}),
    ("without_units: false, without_type_suffix: false", "otelcol_process_uptime_seconds_total", {"service_name"}),
    ("without_scope_info: false", "otelcol_process_uptime", {"otel_scope_name", "otel_scope_version"}),
])
def test_the_names_of_metrics_are_those_of_the_collectors_settings(build, keys, name, labels):
    text = """receivers: {nop: }
exporters: {debug: }
service: {pipelines: {profiles: {receivers: [nop], exporters: [debug]}}}
"""
    gateway = Gateway(build / "portcullis", text)
    gateway.telemetry.write_text(gateway.telemetry.read_text().replace("{host: 127.0.0.1", "{%shost: 127.0.0.1" % (keys + ", " if keys else "")))
    with gateway:
        found = {metric: {label for label, _ in have} for metric, have in gateway.metrics()}
        assert "otelcol_process_uptime" in name and name in found
        assert labels <= (found[name] if "scope" in keys else found["target_info"])
        assert "otel_scope_name" not in found["target_info"]
