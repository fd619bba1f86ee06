# SPDX-License-Identifier: Apache-2.0
"""The Collector's `nop`: a receiver without data, and an exporter that discards what the ledger counts as delivered."""
import subprocess

from harness import build as make
from harness import ledger, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  nop:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}}}, ack: delivered}
exporters: {nop: }
service:
  pipelines:
    profiles: {receivers: [nop, otlp], exporters: [nop]}
    profiles/empty: {receivers: [nop], exporters: [nop]}
"""


def test_what_nop_gets_counts_as_delivered(build):
    with Gateway(build / "portcullis", CONFIG) as gateway, peers.Client(gateway.port["grpc"]) as client:
        for seed in range(3):
            client.send(make.request(seed, samples=10))
        rows = ledger.check(gateway.metrics())
        row = rows[("exporter", "nop"), ("pipeline", "profiles")]
        assert row["out"] == row["entered"] == rows[("pipeline", "profiles"),]["in"] > 0
        assert rows[("pipeline", "profiles/empty"),]["in"] == 0


def test_the_receiver_has_no_keys(build):
    text = "receivers: {nop: {endpoint: x}}\nexporters: {nop: }\nservice: {pipelines: {profiles: {receivers: [nop], exporters: [nop]}}}"
    done = subprocess.run([build / "portcullis", "validate", "--config", "yaml:" + text], capture_output=True, text=True)
    assert done.returncode == 1 and "'receivers::nop' has invalid keys: endpoint" in done.stderr
