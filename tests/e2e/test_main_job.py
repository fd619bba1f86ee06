# SPDX-License-Identifier: Apache-2.0
"""The main job: the configuration of the README, real clients on one side, real servers on the other."""
import json

import pytest

from harness import build as make
from harness import otlp, peers, profcheck
from harness.gateway import Gateway

CONFIG = r"""
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 64}
  pprof:
    server: {endpoint: 127.0.0.1:{port:pprof}, max_request_body_size: 67108864}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: LIMIT, spike_limit_mib: 128}
  resource:
    attributes:
      - {key: service.namespace, value: payments, action: upsert}
      - {key: deployment.environment, value: "${env:DEPLOY_ENV:-prod}", action: insert}
  allowlist:
    keys: [service.name, service.version, service.namespace, deployment.environment, region, thread.name]
    key_patterns: ['^k8s\.(namespace|deployment)\.name$']
  pii: {}
  batch: {timeout: 1s, send_batch_size: 8192}
exporters:
  otlp_grpc/a: {endpoint: 127.0.0.1:{port:a}, tls: {insecure: true}, compression: gzip}
  otlp_grpc/b: {endpoint: 127.0.0.1:{port:b}, tls: {insecure: true}}
  file: {path: out/profiles.jsonl, format: json}
  file/pprof: {directory: out/pprof, format: pprof}
  debug: {verbosity: basic}
extensions:
  health_check: {endpoint: 127.0.0.1:{port:health}}
service:
  extensions: [health_check]
  pipelines:
    profiles:
      receivers: [otlp, pprof]
      processors: [memory_limiter, resource, allowlist, pii, batch]
      exporters: [otlp_grpc/a, otlp_grpc/b, file, file/pprof, debug]
"""
@pytest.fixture
def config(build):
    """As in the README; sanitizers need more memory."""
    return CONFIG.replace("LIMIT", "2048" if build.name in ("asan", "tsan") else "512")


EXPORTERS = ("otlp_grpc/a", "otlp_grpc/b", "file", "file/pprof", "debug")


@pytest.mark.threads
def test_profiles_come_in_are_stamped_stripped_batched_and_arrive_everywhere(build, config):
    gateway = Gateway(build / "portcullis", config)
    with peers.Sink(gateway.port["a"]) as a, peers.Sink(gateway.port["b"]) as b, gateway:
        with peers.Client(gateway.port["otlp"]) as client:
            for seed in range(20):
                client.send(make.request(seed))
        status, _, _ = peers.post(gateway.port["pprof"], make.pprof(1).SerializeToString(), zipped=True,
                                  path="/v1/pprof?service.name=cart&secret=canary")
        assert status == 204
        total = 20 * 50 + 30 * 2
        for exporter in EXPORTERS:
            gateway.until(lambda e=exporter: gateway.total("otelcol_exporter_sent_profile_samples", exporter=e)
                          + gateway.total("otelcol_ledger_merged_samples") == total)
            assert gateway.balanced("profiles", exporter), gateway.ledger("profiles", exporter)
        assert gateway.total("otelcol_receiver_accepted_profile_samples") == total
        assert a.samples() == b.samples()
        for data in a.received:
            assert profcheck.check(data) == []
            for resource, _, _, samples in otlp.profiles(data):
                keys = dict(resource[0])
                assert keys["service.namespace"] == ("string_value", "'payments'")
                assert keys["deployment.environment"] == ("string_value", "'prod'")
                assert not {"k8s.pod.name", "secret"} & set(keys)
                assert all({k for k, _ in s[1]} <= {"thread.name"} for s in samples)
        assert b"canary" not in b"".join(a.received)
        assert len(a.received) < 21, "batched"
        directory = gateway.directory
        assert gateway.stop() == 0
    lines = (directory / "out/profiles.jsonl").read_text().splitlines()
    assert lines and all("resourceProfiles" in json.loads(line) for line in lines)
    assert list((directory / "out/pprof").iterdir())
    assert "canary" not in gateway.log()


def test_the_whole_configuration_is_valid_and_prints_itself(build, config, tmp_path):
    import subprocess

    text = config
    for i, name in enumerate(("otlp", "pprof", "a", "b", "health")):
        text = text.replace("{port:%s}" % name, str(1234 + i))
    (tmp_path / "c.yaml").write_text(text)
    binary = str(build / "portcullis")
    done = subprocess.run([binary, "validate", "--config", str(tmp_path / "c.yaml")], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    printed = subprocess.run([binary, "print-config", "--config", str(tmp_path / "c.yaml")], capture_output=True,
                             text=True, check=True).stdout
    (tmp_path / "d.yaml").write_text(printed)
    again = subprocess.run([binary, "print-config", "--config", str(tmp_path / "d.yaml")], capture_output=True,
                           text=True)
    assert again.stdout == printed, again.stderr
