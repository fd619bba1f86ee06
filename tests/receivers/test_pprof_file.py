# SPDX-License-Identifier: Apache-2.0
"""The pprof receiver's `file`: the real program reads files that appear, change and are broken."""
import gzip
import json
import os
import subprocess
import time

import pytest

from harness import build as make
from harness.gateway import Gateway

CONFIG = """
receivers:
  pprof: {file: KEYS}
processors:
  allowlist: {keys: [service.name]}
exporters:
  file: {path: out/profiles.jsonl}
service:
  telemetry: {logs: {level: debug, sampling: {enabled: false}}}
  pipelines:
    profiles: {receivers: [pprof], processors: [allowlist], exporters: [file]}
"""
MIB = 1 << 20


class Reading(Gateway):
    def __init__(self, build, directory, **keys):
        keys = {"include": [str(directory / "*.pprof")], "collection_interval": "100ms", "initial_delay": "0s",
                "resource": {"service.name": "batch", "denied": "x"}, **keys}
        super().__init__(build / "portcullis", CONFIG.replace("KEYS", json.dumps(keys)))

    def text(self):
        path = self.directory / "out/profiles.jsonl"
        return path.read_text() if path.exists() else ""

    def reads(self, **labels):
        return self.total("otelcol_receiver_file_reads", **labels)

    def settle(self):
        """Several checks have found nothing new."""
        before = self.reads()
        time.sleep(0.6)
        assert self.reads() == before


def profile(prefix):
    return make.pprof(samples=5, prefix=prefix).SerializeToString()


def zstd(data):
    return subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout


@pytest.mark.threads
def test_each_file_is_read_once_and_again_when_it_changes(build, tmp_path):
    for name, data in (("a", profile("alpha")), ("b", gzip.compress(profile("beta"))), ("c", zstd(profile("gamma")))):
        (tmp_path / (name + ".pprof")).write_bytes(data)
    (tmp_path / "a.txt").write_bytes(profile("other"))
    (tmp_path / "no.pprof").write_bytes(profile("excluded"))
    (tmp_path / "directory.pprof").mkdir()
    with Reading(build, tmp_path, exclude=[str(tmp_path / "no*")]) as g:
        g.until(lambda: g.reads(outcome="success") == 3)
        g.until(lambda: all(name in g.text() for name in ("alpha", "beta", "gamma")))
        g.settle()
        (tmp_path / "a.pprof").write_bytes(profile("delta"))
        (tmp_path / "new").write_bytes(profile("epsilon"))
        os.replace(tmp_path / "new", tmp_path / "d.pprof")
        g.until(lambda: g.reads(outcome="success") == 5 and "delta" in g.text() and "epsilon" in g.text())
        g.settle()
        (tmp_path / "a.pprof").unlink()
        g.settle()
        assert "other" not in g.text() and "excluded" not in g.text() and "denied" not in g.text()
        assert g.text().count('"batch"') == 5
        assert g.total("otelcol_receiver_requests", transport="file", outcome="success") == 5


def test_bad_files_are_logged_once_and_do_not_stop_others(build, tmp_path):
    bad = {"1": b"no profile", "2": b"", "3": gzip.compress(profile("cut"))[:-10], "4": b"\0" * (2 * MIB),
           "5": gzip.compress(b"\0" * (64 * MIB))}
    for name, data in bad.items():
        (tmp_path / (name + ".pprof")).write_bytes(data)
    (tmp_path / "6.pprof").write_bytes(profile("good"))
    os.mkfifo(tmp_path / "7.pprof")
    (tmp_path / "8.pprof").symlink_to(tmp_path / "nowhere")
    with Reading(build, tmp_path, max_file_size=MIB) as g:
        g.until(lambda: g.reads(outcome="success") == 1 and g.reads(outcome="failed") == len(bad))
        g.settle()
        lines = [line for line in g.log().splitlines() if "File cannot be read as a profile" in line]
        assert len(lines) == len(bad)
        assert sum("the file has %d bytes; max_file_size is %d" % (2 * MIB, MIB) in line for line in lines) == 1
        assert sum("the decompressed body has more than %d bytes; max_file_size is %d" % (MIB, MIB) in line for line in lines) == 1
        assert "no profile" not in g.log()
        (tmp_path / "1.pprof").write_bytes(profile("repaired"))
        g.until(lambda: g.reads(outcome="success") == 2 and "repaired" in g.text())


def test_old_files_can_be_left_out(build, tmp_path):
    (tmp_path / "old.pprof").write_bytes(profile("before"))
    with Reading(build, tmp_path, start_at="end") as g:
        time.sleep(0.5)
        (tmp_path / "new.pprof").write_bytes(profile("after"))
        g.until(lambda: "after" in g.text())
        assert "before" not in g.text()


def test_a_file_that_grows_is_read_when_it_is_complete(build, tmp_path):
    data = profile("whole")
    path = tmp_path / "slow.pprof"
    with Reading(build, tmp_path, collection_interval="1s") as g:
        with open(path, "wb") as file:
            for i in range(0, len(data), len(data) // 10 + 1):
                file.write(data[i:i + len(data) // 10 + 1])
                file.flush()
                time.sleep(0.2)
        g.until(lambda: "whole" in g.text())
        assert g.reads(outcome="failed") == 0 and g.reads(outcome="success") == 1


def test_a_full_queue_postpones_and_loses_nothing(build, tmp_path):
    for i in range(20):
        (tmp_path / ("%d.pprof" % i)).write_bytes(profile("fn%dx" % i))
    text = CONFIG.replace("{path: out/profiles.jsonl}", "{path: out/profiles.jsonl, sending_queue: {queue_size: 1}}")
    keys = {"include": str(tmp_path / "*.pprof"), "collection_interval": "100ms", "initial_delay": "0s"}
    with Gateway(build / "portcullis", text.replace("KEYS", json.dumps(keys))) as g:
        out = g.directory / "out/profiles.jsonl"
        g.until(lambda: out.exists() and all("fn%dx" % i in out.read_text() for i in range(20)))
        g.until(lambda: g.total("otelcol_receiver_file_reads", outcome="success") == 20)


@pytest.mark.parametrize("keys, error", [
    ({}, "include must be specified"),
    ({"include": []}, "include must be specified"),
    ({"include": "x", "start_at": "middle"}, "start_at: must be beginning or end"),
    ({"include": "x", "collection_interval": "1ms"}, "collection_interval: must be at least 100ms"),
    ({"include": "x", "resource": {"x": "y" * 5000}}, "resource: entry 1: more than 4096 bytes"),
])
def test_configurations_that_are_errors(build, keys, error):
    with Gateway(build / "portcullis", CONFIG.replace("KEYS", json.dumps(keys)), ready=False) as g:
        assert g.process.wait(60) == 1
        assert error in g.log()
