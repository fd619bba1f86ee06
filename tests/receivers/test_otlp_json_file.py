# SPDX-License-Identifier: Apache-2.0
"""The receiver otlp_json_file: lines of files go in, and an independent reader finds them at a destination."""
import json
import os
import pathlib
import subprocess

import pytest
from google.protobuf import json_format

from harness import build as make
from harness import corpus, otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp_json_file: {include: [%s], start_at: %s, poll_interval: 50ms%s}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:{port:out}, tls: {insecure: true}, retry_on_failure: {enabled: false}, sending_queue: {num_consumers: 1}}
service:
  pipelines:
    profiles: {receivers: [otlp_json_file], exporters: [otlp_grpc]}
"""


class Rig:
    """A gateway that reads a directory, and a destination."""

    def __init__(self, build, place, keys="", start_at="beginning", glob="*.jsonl"):
        self.place = place
        self.gateway = Gateway(build / "portcullis", CONFIG % (place / glob, start_at, keys))
        self.sink = peers.Sink(self.gateway.port["out"])

    def __enter__(self):
        self.sink.start()
        self.gateway.__enter__()
        return self

    def __exit__(self, *failure):
        self.gateway.__exit__(*failure)
        self.sink.stop()

    def has_open(self, path):
        place = pathlib.Path("/proc/%d/fd" % self.gateway.process.pid)
        return any(os.readlink(x).startswith(str(path)) for x in place.iterdir() if os.path.islink(x))

    def lines(self, outcome):
        return self.gateway.total("otelcol_receiver_otlp_json_file_lines", receiver="otlp_json_file", outcome=outcome)

    def services(self, count):
        """The names of the services that arrived, once there are that many requests."""
        self.gateway.until(lambda: len(self.sink.received) >= count)
        found = [otlp.parse(data) for data in self.sink.received]
        assert len(found) == count
        return [m.resource_profiles[0].resource.attributes[0].value.string_value for m in found]


def line(service, samples=5):
    message = make.request(1, samples=samples, service=service)
    del message.resource_profiles[0].resource.attributes[1:]
    return json.dumps(json_format.MessageToDict(message)) + "\n"


def write(path, *texts, mode="a"):
    with open(path, mode) as file:
        file.write("".join(texts))


@pytest.mark.threads
def test_lines_arrive_in_order_from_the_beginning(build, tmp_path):
    write(tmp_path / "b.jsonl", line("three"))
    write(tmp_path / "a.jsonl", line("one"), "\n", "  \n", line("two"))
    write(tmp_path / "other.txt", line("not this"))
    with Rig(build, tmp_path) as rig:
        assert rig.services(3) == ["one", "two", "three"]
        write(tmp_path / "a.jsonl", line("four"))
        assert rig.services(4)[-1] == "four"
        write(tmp_path / "c.jsonl", line("five"))
        assert rig.services(5)[-1] == "five"
        rig.gateway.until(lambda: rig.lines("success") == 5)  # counted when its ack is done, after it was sent
        assert rig.lines("failed") == 0


def test_what_stands_in_a_file_is_left_out_from_the_end(build, tmp_path):
    write(tmp_path / "a.jsonl", line("old"), line("half")[:50])
    with Rig(build, tmp_path, start_at="end") as rig:
        rig.gateway.until(lambda: rig.has_open(tmp_path / "a.jsonl"))
        write(tmp_path / "b.jsonl", line("new file"))
        assert rig.services(1) == ["new file"]
        write(tmp_path / "a.jsonl", line("rest of the half"), line("new line"))
        assert rig.services(2)[-1] == "new line"


def test_half_a_line_waits_for_its_end(build, tmp_path):
    text = line("whole")
    with Rig(build, tmp_path) as rig:
        write(tmp_path / "a.jsonl", line("first"), text[:100])
        assert rig.services(1) == ["first"]
        write(tmp_path / "a.jsonl", text[100:])
        assert rig.services(2)[-1] == "whole"
        assert rig.lines("failed") == 0


def test_a_last_line_without_an_end_counts_when_the_file_is_old(build, tmp_path):
    write(tmp_path / "a.jsonl", line("first"), line("last")[:-1])
    os.utime(tmp_path / "a.jsonl", (1, 1))
    with Rig(build, tmp_path) as rig:
        assert rig.services(2) == ["first", "last"]


def test_a_rotated_file_is_read_to_its_end(build, tmp_path):
    """Renamed so that it matches no more, with a line that was not read yet; then truncated in place."""
    current = tmp_path / "a.jsonl"
    write(current, line("one"))
    with Rig(build, tmp_path) as rig:
        assert rig.services(1) == ["one"]
        with open(current, "a") as file:
            current.rename(tmp_path / "a.1")
            write(current, line("three"))
            file.write(line("two"))
        assert sorted(rig.services(3)[1:]) == ["three", "two"]
        write(current, line("4"), mode="w")
        assert rig.services(4)[-1] == "4"
        same = line("five")
        write(current, same, mode="w")
        rig.services(5)
        assert rig.lines("failed") == 0


def test_another_beginning_is_another_file(build, tmp_path):
    """As long as before, in the same inode."""
    current = tmp_path / "a.jsonl"
    write(current, line("aaa"))
    with Rig(build, tmp_path) as rig:
        assert rig.services(1) == ["aaa"]
        with open(current, "r+") as file:
            file.write(line("bbb"))
        assert rig.services(2)[-1] == "bbb"


def test_a_removed_file_is_closed(build, tmp_path):
    current = tmp_path / "a.jsonl"
    write(current, line("one"))
    with Rig(build, tmp_path) as rig:
        rig.services(1)
        assert rig.has_open(current)
        current.unlink()
        rig.gateway.until(lambda: not rig.has_open(current))


def test_replay_begins_again_and_again(build, tmp_path):
    write(tmp_path / "a.jsonl", line("one"), line("two"))
    with Rig(build, tmp_path, ", replay_file: true", start_at="end") as rig:
        rig.gateway.until(lambda: len(rig.sink.received) >= 6)
        found = [otlp.parse(data).resource_profiles[0].resource.attributes[0].value.string_value for data in rig.sink.received]
        assert found[:6] == ["one", "two"] * 3


def test_bad_lines_are_counted_and_logged_without_their_content(build, tmp_path):
    long = line("long", samples=400)
    write(tmp_path / "a.jsonl", line("one"), "canary\n", '{"resourceProfiles":"canary"}\n', long, line("two"), "x" * 300000 + "\n",
          line("three"))
    assert 10000 < len(long)
    with Rig(build, tmp_path, ", max_log_size: 10000") as rig:
        assert rig.services(3) == ["one", "two", "three"]
        assert rig.lines("failed") == 4
        log = rig.gateway.log()
        assert log.count("A line of a file was rejected") == 4 and "canary" not in log
        assert "resourceProfiles: is not an array" in log and "the line has more than 10000 bytes; max_log_size is 10000" in log
        assert "offset" in log


def test_a_full_queue_pauses_and_loses_nothing(build, tmp_path):
    """The destination is away until the queue has been full for a while."""
    write(tmp_path / "a.jsonl", *(line("s%d" % i) for i in range(40)))
    text = CONFIG.replace("retry_on_failure: {enabled: false}, sending_queue: {num_consumers: 1}",
                          "retry_on_failure: {initial_interval: 100ms, max_interval: 100ms}, "
                          "sending_queue: {queue_size: 2, num_consumers: 1, block_on_overflow: true}")
    gateway = Gateway(build / "portcullis", text % (tmp_path / "*.jsonl", "beginning", ""))
    sink = peers.Sink(gateway.port["out"])
    with gateway:
        gateway.until(lambda: gateway.total("otelcol_receiver_otlp_json_file_lines", outcome="postponed") > 3)
        sink.start()
        gateway.until(lambda: len(sink.received) >= 40)
        names = [otlp.parse(d).resource_profiles[0].resource.attributes[0].value.string_value for d in sink.received]
        assert names == ["s%d" % i for i in range(40)]
    sink.stop()


def test_more_files_than_the_limit_are_reported(build, tmp_path):
    for i in range(5):
        write(tmp_path / ("%d.jsonl" % i), line("s%d" % i))
    with Rig(build, tmp_path, ", max_concurrent_files: 3") as rig:
        assert rig.services(3) == ["s0", "s1", "s2"]
        assert "More files match than max_concurrent_files" in rig.gateway.log()


def test_lines_of_a_real_file_exporter_arrive(build, tmp_path):
    for path in corpus.files("otlp/*.jsonl"):
        texts = path.read_text().splitlines(keepends=True)
        write(tmp_path / path.name, *texts)
        with Rig(build, tmp_path) as rig:
            rig.gateway.until(lambda: rig.lines("success") == len(texts))
            rig.gateway.until(lambda: rig.gateway.total("otelcol_ledger_queued_samples") == 0)
            sent = sum((otlp.samples(otlp.parse_json(text)) for text in texts), start=type(otlp.samples(otlp.Request()))())
            got = sum((otlp.samples(otlp.parse(data)) for data in rig.sink.received), start=type(sent)())
            assert got == sent


@pytest.mark.parametrize("keys, text", [
    ("include: []", "include must be specified"), ("include: [x], start_at: middle", "start_at: must be beginning or end"),
    ("include: [x], storage: file_storage", "storage: not supported"), ("include: [x], compression: gzip", "compression: not supported"),
    ("include: [x], multiline: {line_end_pattern: a}", "multiline: not supported"), ("include: [x], encoding: utf-16", "encoding: must be"),
    ("include: [x], delete_after_read: true", "delete_after_read: not supported"),
    ("include: [x], poll_interval: 1ms", "poll_interval: must be at least 10ms"),
])
def test_what_is_unsupported_is_an_error_with_the_reason(build, tmp_path, keys, text):
    for name in ("otlp_json_file", "otlpjsonfile"):
        path = tmp_path / "config.yaml"
        path.write_text("""
receivers: {%s: {%s}}
exporters: {debug: {}}
service: {pipelines: {profiles: {receivers: [%s], exporters: [debug]}}}
""" % (name, keys, name))
        run = subprocess.run([build / "portcullis", "validate", "--config", path], capture_output=True, text=True)
        assert run.returncode != 0 and text in run.stderr
