# SPDX-License-Identifier: Apache-2.0
"""The exporter file with group_by, in the whole program: where samples are, that the ledger balances, and what reads them."""
import resource
import shutil
import signal
import subprocess
from collections import Counter

import pytest

from harness import build as make
from harness import otlp, peers, preload
from harness.gateway import Gateway

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}}
exporters:
  file/all: {path: all.bin, format: proto}
  file: {path: "out/*.jsonl", group_by: {enabled: true, resource_attribute: service.name%s}%s}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [file/all, file]}}}
"""
READER = """
receivers: {otlp_json_file: {include: [%s], start_at: beginning, poll_interval: 50ms}}
exporters: {file: {path: again.bin, format: proto}}
service: {pipelines: {profiles: {receivers: [otlp_json_file], exporters: [file]}}}
"""


class Rig:
    def __init__(self, build, group="", more="", place=None, **keywords):
        self.gateway = Gateway(build / "portcullis", CONFIG % (group, more), cwd=place, **keywords)
        self.out = self.gateway.directory / "out"

    def __enter__(self):
        self.gateway.__enter__()
        return self

    def __exit__(self, *failure):
        self.gateway.__exit__(*failure)

    def send(self, *services, samples=4):
        """One request with a resource for each of them; None: it has no name."""
        message = make.request(len(services), samples=samples, resources=len(services))
        for rp, service in zip(message.resource_profiles, services):
            first = rp.resource.attributes[0]
            assert first.key == "service.name"
            if service is None:
                del rp.resource.attributes[0]
            else:
                first.value.string_value = service
        with peers.Client(self.gateway.port["otlp"]) as client:
            client.send(message.SerializeToString())
        self.settled()

    def settled(self):
        """Nothing waits, and every sample is accounted for."""
        g = self.gateway
        g.until(lambda: all(g.balanced("profiles", e) and not g.total("otelcol_ledger_queued_samples", exporter=e)
                            for e in ("file", "file/all")))

    def of(self, what, exporter="file", **labels):
        return self.gateway.total("otelcol_ledger_%s_samples" % what, exporter=exporter, **labels)

    def ungrouped(self, reason):
        return self.gateway.total("otelcol_exporter_ungrouped_resources", exporter="file", reason=reason)

    def files(self):
        return sorted(str(p.relative_to(self.out)) for p in self.out.rglob("*") if p.is_file())

    def written(self):
        """The samples in all files."""
        return sum((otlp.samples(otlp.parse_json(line)) for name in self.files()
                    for line in (self.out / name).read_text().splitlines()), Counter())


def everything(path):
    return sum((otlp.samples(data) for data in otlp.framed(path.read_bytes())), Counter())


def services_of(path):
    return {kv.value.string_value for line in path.read_text().splitlines()
            for rp in otlp.parse_json(line).resource_profiles for kv in rp.resource.attributes
            if kv.key == "service.name"}


def test_every_sample_is_in_the_file_of_its_service(build):
    with Rig(build) as rig:
        rig.send("red", "shop/blue", "red")
        rig.send("shop/blue")
        assert rig.files() == ["red.jsonl", "shop/blue.jsonl"]
        assert services_of(rig.out / "red.jsonl") == {"red"} and services_of(rig.out / "shop/blue.jsonl") == {"shop/blue"}
        assert len((rig.out / "red.jsonl").read_text().splitlines()) == 1
        assert rig.written() == everything(rig.gateway.directory / "all.bin")
        assert rig.of("out") == 16 and not rig.of("dropped")
        assert rig.gateway.total("otelcol_exporter_file_groups", exporter="file") == 2


def test_hostile_values_stay_in_the_directory_and_are_counted(build):
    values = ["../../etc/passwd", "/abs/olute", "..", "", "a/../../b", "line\nbreak", "nul\0byte", "x" * 600, "y" * 250,
              "/".join("123456789"), "red.jsonl/inside", "red-2026-01-02T15-04-05.000", "red", "\u202eright", "\x1b[2J"]
    with Rig(build, ", max_files: 6") as rig:
        rig.send(*values, None)
        assert rig.files() == ["abs/olute.jsonl", "b.jsonl", "etc/passwd.jsonl", "red.jsonl", "\u202eright.jsonl"]
        assert {p.name for p in rig.gateway.directory.iterdir()} == {
            "out", "all.bin", "gateway.yaml", "gateway.log", "telemetry.yaml"}
        assert (rig.ungrouped("missing"), rig.ungrouped("invalid")) == (1, 10)
        assert rig.of("dropped", reason="plan") == 11 * 4 and rig.of("out") == 5 * 4
        for i in range(10):
            rig.send("more-%d" % i)
        assert len(rig.files()) == 6 and rig.ungrouped("too_many_files") == 9
        assert rig.of("dropped", reason="permanent") == 9 * 4 and rig.of("out") == 6 * 4
        log = rig.gateway.log()
        assert log.count("group_by::max_files") == 1
        assert not any(word in log for word in ("passwd", "olute", "more-", "right"))


@pytest.mark.parametrize("form, compression", [("json", "zstd"), ("proto", "none"), ("proto", "zstd")])
def test_other_forms_have_one_record_per_request_and_file(build, form, compression):
    zstd = shutil.which("zstd")
    if compression == "zstd" and not zstd:
        pytest.skip("there is no zstd")
    with Rig(build, more=", format: %s, compression: %s" % (form, compression)) as rig:
        rig.send("red", "blue", "red")
        rig.send("red")
        found = Counter()
        for name, records in (("red.jsonl", 2), ("blue.jsonl", 1)):
            data = list(otlp.framed((rig.out / name).read_bytes()))
            assert len(data) == records
            if compression == "zstd":
                data = [subprocess.run([zstd, "-dc"], input=d, capture_output=True, check=True).stdout for d in data]
            found += sum((otlp.samples(otlp.parse_json(d.decode()) if form == "json" else d) for d in data), Counter())
        assert found == everything(rig.gateway.directory / "all.bin")


@pytest.mark.parametrize("fsync", [True, False])
def test_with_fsync_a_power_cut_loses_nothing_that_was_acknowledged(build, fsync):
    """Every sync leaves a copy of the file: what the machine finds after the cut."""
    with Rig(build, ", max_open_files: 1", ", fsync: %s" % str(fsync).lower(), env=preload.env(build, "power")) as rig:
        for _ in range(2):
            rig.send("red", "blue")
            for name in ("red.jsonl", "blue.jsonl"):
                synced = rig.out / (name + ".synced")
                assert synced.exists() == fsync
                assert not fsync or synced.read_bytes() == (rig.out / name).read_bytes()


def test_the_receiver_reads_all_files_back(build, tmp_path):
    with Rig(build, ", max_open_files: 1") as rig:
        rig.send("red", "shop/blue", "red")
        rig.send("shop/blue")
        expected = everything(rig.gateway.directory / "all.bin")
        globs = "%s/*.jsonl, %s/*/*.jsonl" % (rig.out, rig.out)
        with Gateway(build / "portcullis", READER % globs) as reader:
            reader.until(lambda: reader.total("otelcol_ledger_out_samples", exporter="file") == 16)
            assert everything(reader.directory / "again.bin") == expected


def test_after_sighup_files_that_were_moved_are_created_again(build):
    with Rig(build) as rig:
        rig.send("red", "blue")
        rig.out.rename(rig.gateway.directory / "moved")
        rig.send("red")
        assert not rig.out.exists()
        rig.gateway.process.send_signal(signal.SIGHUP)
        rig.gateway.until(rig.out.exists)
        rig.send("red", "blue")
        moved = rig.gateway.directory / "moved"
        assert [len((d / n).read_text().splitlines()) for d in (moved, rig.out) for n in ("red.jsonl", "blue.jsonl")] == [
            2, 1, 1, 1]


def test_a_full_disk_delays_and_loses_nothing(build):
    """The limit of the size of files stands for it: `all.bin` is below it. Nothing incomplete is ever in the file."""
    with Rig(build, more=", retry_on_failure: {initial_interval: 50ms, max_interval: 50ms}") as rig:
        rig.send("red")
        size = (rig.out / "red.jsonl").stat().st_size
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(rig.gateway.process.pid, resource.RLIMIT_FSIZE, (size + 10, resource.RLIM_INFINITY))
        message = make.request(2, samples=4, service="red")
        with peers.Client(rig.gateway.port["otlp"]) as client:
            client.send(message.SerializeToString())
        rig.gateway.until(lambda: rig.gateway.log().count("Writing failed.") >= 1)
        resource.prlimit(rig.gateway.process.pid, resource.RLIMIT_FSIZE, unlimited)
        rig.settled()
        assert rig.of("out") == 8 and not rig.of("dropped")
        assert rig.written() == everything(rig.gateway.directory / "all.bin")
        assert "red.jsonl" not in rig.gateway.log()


def test_what_may_not_be_written_is_retried_and_then_dropped(build):
    """A file alone concerns its group; the whole directory is like a full disk."""
    with Rig(build, more=", retry_on_failure: {initial_interval: 50ms, max_interval: 50ms, max_elapsed_time: 500ms}") as rig:
        rig.send("red")
        (rig.out / "blue.jsonl").mkdir()
        rig.send("red", "blue")
        assert rig.of("dropped", reason="permanent") == 4 and rig.ungrouped("unusable") == 1
        shutil.rmtree(rig.out)
        rig.out.write_text("in the way")
        rig.send("red", "green")
        assert rig.of("dropped", reason="retries_exhausted") == 8
        rig.out.unlink()
        rig.send("red", "green")
        assert rig.of("out") == 4 * 4 and rig.files() == ["green.jsonl", "red.jsonl"]


def test_a_directory_that_is_a_file_is_an_error_at_the_start(build, tmp_path):
    (tmp_path / "out").write_text("in the way")
    with Rig(build, place=tmp_path, ready=False) as rig:
        assert rig.gateway.process.wait(60) != 0
        assert "exporters::file::path: cannot write out: Not a directory" in rig.gateway.log()


def test_parts_wait_on_disk_across_a_restart(build, tmp_path):
    """With a queue on disk, what could not be written is written by the next run, into the same files."""
    text = CONFIG % ("", ", append: true, sending_queue: {storage: file_storage}, retry_on_failure: {max_elapsed_time: 0}")
    text += "extensions: {file_storage: {directory: queue, create_directory: true}}\n"
    text = text.replace("service: {", "service: {extensions: [file_storage], ")
    message = make.request(3, samples=4, resources=2)
    with Gateway(build / "portcullis", text, cwd=tmp_path) as g:
        (tmp_path / "out").rmdir()
        (tmp_path / "out").write_text("in the way")
        with peers.Client(g.port["otlp"]) as client:
            client.send(message.SerializeToString())
        g.until(lambda: "Writing failed." in g.log())
        g.process.kill()
        g.process.wait()
    (tmp_path / "out").unlink()
    with Gateway(build / "portcullis", text, cwd=tmp_path) as g:
        g.until(lambda: g.total("otelcol_ledger_out_samples", exporter="file") == 8)
        assert g.balanced("profiles", "file")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["checkout-0.jsonl", "checkout-1.jsonl"]
