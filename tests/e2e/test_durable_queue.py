# SPDX-License-Identifier: Apache-2.0
"""A queue on disk, its directory, its configuration and its backlog. Kills and failures of the disk are in tests/chaos."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import grpc
import pytest

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway
from harness.durable import CONFIG, SAMPLES, absent_sink, expected, gateway, missing, restored, send


@pytest.fixture
def sink():
    with absent_sink() as s:
        yield s


@pytest.mark.threads
def test_what_was_acknowledged_is_delivered_after_a_kill(build, sink, tmp_path):
    with gateway(build, sink, tmp_path) as g:
        taken = send(g, range(20))
        assert len(taken) == 20
        g.stop(signal.SIGKILL)
    sink.start()
    with gateway(build, sink, tmp_path) as g:
        assert restored(g) == 20 * SAMPLES
        g.until(lambda: not missing(taken, sink))
        g.until(lambda: g.ledger("profiles", "otlp_grpc")["queued"] == 0)
        assert g.balanced("profiles", "otlp_grpc")
        assert sink.samples() == expected(taken)
    with gateway(build, sink, tmp_path) as g:
        assert restored(g) == 0


@pytest.mark.threads
def test_a_shutdown_keeps_what_is_queued(build, sink, tmp_path):
    with gateway(build, sink, tmp_path, ack="enqueue") as g:
        taken = send(g, range(10))
        assert g.stop() == 0
        assert "Shutdown kept data on disk." in g.log() and '"kept_items": %d' % (10 * SAMPLES) in g.log()
        assert "Shutdown dropped data" not in g.log()
    sink.start()
    with gateway(build, sink, tmp_path, ack="enqueue") as g:
        g.until(lambda: not missing(taken, sink))


def start_error(build, sink, directory, **options):
    g = gateway(build, sink, directory, ready=False, **options)
    with g:
        assert g.process.wait(60) != 0
    return g.log()


def test_a_second_process_is_refused(build, sink, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with gateway(build, sink, tmp_path):
        (other / "queue").symlink_to(tmp_path / "queue")
        assert "in use by another process" in start_error(build, sink, other)


def test_a_directory_that_is_none_is_an_error(build, sink, tmp_path):
    (tmp_path / "queue").write_text("a file")
    assert "Not a directory" in start_error(build, sink, tmp_path)


def test_a_missing_directory_is_an_error(build, sink, tmp_path):
    g = Gateway(build / "portcullis", CONFIG.replace("SINK", "1").replace("ACK", "enqueue").replace("LIMIT", "300").replace(
        "create_directory: true, STORAGE", ""), cwd=tmp_path, ready=False)
    with g:
        assert g.process.wait(60) != 0
    assert "extensions::file_storage::directory: cannot write queue: No such file or directory; to have it created" in g.log()


@pytest.mark.parametrize("change, words", [
    (("storage: file_storage,", "storage: file_storage/other,"), "extension not found"),
    (("storage: file_storage,", "storage: file_storage, wait_for_result: true,"), "`wait_for_result` is not supported"),
    (("create_directory: true", "directory_permissions: '0777'"), "must not let other users write"),
])
def test_errors_of_the_configuration(build, tmp_path, change, words):
    text = CONFIG.replace("SINK", "1").replace("ACK", "enqueue").replace("LIMIT", "300").replace(", STORAGE", "")
    text = text.replace("{port:otlp}", "4317").replace("{port:health}", "1").replace("{port:admin}", "2").replace(*change)
    (tmp_path / "c.yaml").write_text(text)
    run = subprocess.run([build / "portcullis", "validate", "--config", tmp_path / "c.yaml"], capture_output=True, text=True,
                         timeout=60)
    assert run.returncode != 0 and words in run.stderr, run.stderr


@pytest.mark.skipif(os.environ.get("MODE") in ("asan", "tsan"), reason="the sanitizers' memory is not ours to bound")
def test_a_backlog_larger_than_the_memory_limit_is_kept_and_drained(build, sink, tmp_path):
    limit = 120
    with gateway(build, sink, tmp_path, ack="enqueue", limit=limit) as g:
        size, taken, seed = 0, 0, 0
        with peers.Client(g.port["otlp"]) as client:
            data = [make.request(i, samples=20000).SerializeToString() for i in range(8)]
            while size < limit << 20:
                try:
                    client.send(data[seed % 8])
                    size += len(data[seed % 8])
                    taken += 20000
                except grpc.RpcError:
                    time.sleep(0.05)
                seed += 1
        g.until(lambda: g.ledger("profiles", "otlp_grpc")["queued"] == taken)
        g.until(lambda: g.total("otelcol_storage_used_bytes") > size * 9 // 10)
        assert g.rss()["VmHWM"] < limit << 20
        count = [0]
        sink.answer = lambda data, context: count.__setitem__(0, count[0] + len(data)) or b""
        sink.start()
        g.until(lambda: g.ledger("profiles", "otlp_grpc")["queued"] == 0, seconds=180)
        assert g.balanced("profiles", "otlp_grpc")
        assert g.ledger("profiles", "otlp_grpc")["out"] == taken
        assert g.rss()["VmHWM"] < limit << 20
        g.until(lambda: g.total("otelcol_storage_used_bytes") == 0)


def test_files_are_private(build, sink, tmp_path):
    with gateway(build, sink, tmp_path):
        assert (tmp_path / "queue").stat().st_mode & 0o777 == 0o700
        for path in pathlib.Path(tmp_path / "queue").iterdir():
            assert path.stat().st_mode & 0o777 == 0o600, path


# ---- a directory that cannot be written

MOUNT = 'mkdir -p queue && mount -t tmpfs -o ro,mode=0700 none queue && exec "$@"'
READ_ONLY = ["unshare", "--mount", "sh", "-c", MOUNT, "sh"]
# root without the right to ignore permissions
UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.getuid() == 0 else []
PERMISSIONS = UNPRIVILEGED + ["sh", "-c", 'mkdir -p -m 0500 queue && exec "$@"', "sh"]
BEGUN = {"read-only": (READ_ONLY, "Read-only file system"), "without permission": (PERMISSIONS, "Permission denied")}


@pytest.fixture(params=BEGUN)
def unwritable(request, tmp_path):
    """A command that runs another one in a directory whose `queue` cannot be written, and why."""
    guard, error = BEGUN[request.param]
    run = subprocess.run(guard + ["touch", "queue/file"], cwd=tmp_path, capture_output=True, text=True, check=False)
    if error not in run.stderr:
        pytest.skip("%s is not possible here: %s" % (request.param, run.stderr.strip()))
    return guard, error


def make_writable(g):
    """As the mount namespace of the process has it."""
    subprocess.run(["nsenter", "--mount", "--wd", "--target", str(g.process.pid), "sh", "-c",
                    "mount -o remount,rw queue 2>/dev/null; chmod 0700 queue"], check=True)


def test_a_directory_that_cannot_be_written_is_an_error_at_the_start(build, sink, tmp_path, unwritable):
    guard, error = unwritable
    with gateway(build, sink, tmp_path, ready=False, guard=guard) as g:
        assert g.process.wait(60) == 1
    assert "extensions::file_storage::directory: cannot write queue: " + error in g.log()


@pytest.mark.threads
def test_with_on_error_memory_it_is_not_used_until_it_can_be_written(build, sink, tmp_path, unwritable):
    guard, error = unwritable
    with gateway(build, sink, tmp_path, ack="enqueue", storage="on_error: memory", guard=guard) as g:
        assert error in g.log() and "The storage cannot be used; queues continue in memory" in g.log()
        taken = send(g, range(10))
        assert len(taken) == 10 and g.total("otelcol_storage_available") == 0
        assert g.total("otelcol_exporter_queue_unstored_requests") == 10
        make_writable(g)
        g.until(lambda: g.total("otelcol_storage_available") == 1)
        taken += send(g, range(10, 20))
        g.until(lambda: g.total("otelcol_storage_used_bytes") > 0)
        assert g.total("otelcol_exporter_queue_unstored_requests") == 10
        sink.start()
        g.until(lambda: not missing(taken, sink))
        g.until(lambda: g.ledger("profiles", "otlp_grpc")["queued"] == 0 and g.balanced("profiles", "otlp_grpc"))
        assert sink.samples() == expected(taken)
        assert g.log().count("The storage works again") == 1


# ---- a shutdown that is stuck

STUCK = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}, ack: durable}
exporters:
  file/disk: {path: disk.pipe, sending_queue: {storage: file_storage}, dead_letter: {directory: letters}}
  file/memory: {path: memory.pipe, required: false}
extensions:
  file_storage: {directory: queue, create_directory: true}
service:
  extensions: [file_storage]
  pipelines:
    profiles: {receivers: [otlp], exporters: [file/disk, file/memory]}
"""


@contextlib.contextmanager
def read_pipes(directory, names):
    """Readers that take all that is written."""
    def drain(path):
        with open(path, "rb", buffering=0) as pipe:
            while pipe.read(1 << 16):
                pass
    threads = [threading.Thread(target=drain, args=(directory / name,)) for name in names]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()


def test_a_shutdown_that_is_stuck_reports_what_is_on_disk_as_kept(build, tmp_path):
    """The writes of both destinations hang in the kernel."""
    names, count = ("disk.pipe", "memory.pipe"), 10
    for name in names:
        os.mkfifo(tmp_path / name)
    readers = [os.open(tmp_path / name, os.O_RDONLY | os.O_NONBLOCK) for name in names]
    with Gateway(build / "portcullis", STUCK, cwd=tmp_path, arguments=["--shutdown-timeout", "1s"]) as g:
        with peers.Client(g.port["otlp"]) as client:
            for seed in range(count):
                client.send(make.request(seed, samples=1000))
        queued = {name: g.ledger("profiles", "file/" + name)["queued"] for name in ("disk", "memory")}
        g.process.terminate()
        assert g.process.wait(60) == 0
        assert "Shutdown did not finish in time" in g.log()
        report = next(line for line in g.log().splitlines() if "Shutdown report" in line)
        fields = json.loads(report.split("\t")[-1])
    assert fields["kept_samples"] == queued["disk"] > 0 and fields["lost_samples"] == queued["memory"] > 0
    assert fields["sent_samples"] == fields["dead_letter_samples"] == 0
    assert g.log().count("Shutdown dropped data") == 1
    assert '"kept_items": %d' % queued["disk"] in g.log()
    for reader in readers:
        os.close(reader)
    with read_pipes(tmp_path, names), Gateway(build / "portcullis", STUCK, cwd=tmp_path) as g:
        g.until(lambda: g.ledger("profiles", "file/disk")["out"] == queued["disk"])
        assert g.total("otelcol_ledger_restored_samples") == queued["disk"]
        assert g.stop() == 0


# ---- order

FIRST_NS = 10 ** 18


def settled(g):
    return g.ledger("profiles", "otlp_grpc")["queued"] == 0 and g.balanced("profiles", "otlp_grpc")


def send_in_order(g, seeds, message):
    with peers.Client(g.port["otlp"]) as client:
        for seed in seeds:
            message.resource_profiles[0].scope_profiles[0].profiles[0].time_unix_nano = FIRST_NS + seed
            client.send(message)


def order_of(sink):
    with sink.lock:
        received = list(sink.received)
    return [p.time_unix_nano - FIRST_NS for data in received for _, _, p in otlp.Reader(otlp.parse(data)).each_profile()]


@pytest.mark.threads
@pytest.mark.parametrize("order, consumers", [("oldest", 1), ("newest", 1), ("newest", 8)])
def test_what_is_on_disk_is_sent_in_the_configured_order(build, sink, tmp_path, order, consumers):
    """A backlog of before a restart, and one that grows after it: each packet once."""
    keys = ("num_consumers: 4", "num_consumers: %d, order: %s" % (consumers, order))
    with gateway(build, sink, tmp_path, keys=keys) as g:
        send_in_order(g, range(30), make.request(1))
        g.stop(signal.SIGKILL)
    with gateway(build, sink, tmp_path, keys=keys) as g:
        g.until(lambda: g.total("otelcol_exporter_retries"))
        send_in_order(g, range(30, 60), make.request(1))
        sink.start()
        g.until(lambda: settled(g))
        sent = order_of(sink)
    assert sorted(sent) == list(range(60))
    # the consumers have some of the first backlog when the second one arrives
    taken = range(consumers) if order == "oldest" else range(30 - consumers, 30)
    rest = [seed for seed in sent if seed not in taken]
    if consumers == 1:
        assert rest == sorted(rest, reverse=order == "newest"), sent
    else:  # they overtake each other, and what is retried may come last
        new = [i for i, seed in enumerate(rest) if seed >= 30]
        assert sum(new) / len(new) < len(rest) / 2, sent


def oldest(g):
    [age] = [value for (name, _), value in g.metrics().items() if name == "otelcol_exporter_oldest_packet_age_seconds"]
    return age


@pytest.mark.threads
def test_the_age_of_the_oldest_packet_includes_the_disk_and_the_time_before_a_restart(build, sink, tmp_path):
    """Newest first, the oldest one is not in memory."""
    keys = ("num_consumers: 4", "num_consumers: 1, order: newest")
    with gateway(build, sink, tmp_path, keys=keys) as g:
        send(g, range(3))
        g.until(lambda: g.total("otelcol_exporter_retries"))
        before = oldest(g)
        g.stop(signal.SIGKILL)
    with gateway(build, sink, tmp_path, keys=keys) as g:
        g.until(lambda: oldest(g) > before)
        send(g, range(3, 6))
        assert oldest(g) > before
        sink.start()
        g.until(lambda: settled(g))
        g.until(lambda: oldest(g) == 0)


@pytest.mark.threads
@pytest.mark.skipif(os.environ.get("MODE") in ("asan", "tsan"), reason="the sanitizers' memory is not ours to bound")
def test_what_was_spilled_is_newer_than_what_waits_in_memory(build, sink, tmp_path):
    keys = ("num_consumers: 4", "num_consumers: 1, order: newest")
    with gateway(build, sink, tmp_path, limit=64, keys=keys) as g:
        count, message = 0, make.request(1, samples=20000)
        while g.total("otelcol_storage_used_bytes") <= 2 * g.total("otelcol_exporter_queue_memory_bytes"):
            send_in_order(g, range(count, count + 10), message)
            count += 10
        sink.start()
        g.until(lambda: settled(g))
        sent = order_of(sink)
    # the consumer has the first one
    assert [seed for seed in sent if seed] == list(range(count - 1, 0, -1)) and sent.count(0) == 1


# ---- reloads

def reload(g, old="", new=""):
    text = g.config.read_text()
    assert old in text
    g.config.write_text(text.replace(old, new))
    status, _, body = peers.post(g.port["admin"], b"", path="/-/reload")
    assert status == 200, body
    return json.loads(body)["result"]


@contextlib.contextmanager
def sending(g, taken):
    """Requests of one sender; those that were acknowledged are added to `taken`."""
    stop, first = threading.Event(), len(taken)

    def run():
        seed = 1000 * (first + 1)
        while not stop.is_set():
            seed += 1
            taken.extend(send(g, [seed]))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        g.until(lambda: len(taken) > first + 5)
        yield
        last = len(taken)
        g.until(lambda: len(taken) > last + 5)
    finally:
        stop.set()
        thread.join()


@pytest.mark.threads
@pytest.mark.parametrize("old, new, kept", [
    ("127.0.0.1:{port:health}", "127.0.0.1:{port:health}, path: /health", True),  # the exporter is the same
    ("num_consumers: 4", "num_consumers: 5", False),
    ("tls: {insecure: true}", "tls: {insecure: true}\n    headers: {x: new}", False)])
def test_a_reload_under_load_loses_nothing_that_is_on_disk(build, sink, tmp_path, old, new, kept):
    """Neither what was acknowledged before it, nor meanwhile, nor after it; and nothing is sent twice."""
    with gateway(build, sink, tmp_path) as g:
        taken = send(g, range(20))
        assert len(taken) == 20
        with sending(g, taken):
            old, new = (text.replace("{port:health}", str(g.port["health"])) for text in (old, new))
            assert reload(g, old, new) == "applied"
        assert g.ledger("profiles", "otlp_grpc")["queued"] == len(taken) * SAMPLES
        assert g.balanced("profiles", "otlp_grpc")
        sink.start()
        g.until(lambda: not missing(taken, sink))
        g.until(lambda: settled(g))
        assert sink.samples() == expected(taken)
        assert kept or all(dict(m).get("x") == "new" for m in sink.metadata) == ("headers" in new)


@pytest.mark.threads
def test_what_is_in_memory_alone_is_retried_after_a_reload(build, sink, tmp_path):
    """The storage is full and the destination is down, when the exporter is changed."""
    with gateway(build, sink, tmp_path, ack="enqueue", storage="on_error: memory, max_size_mib: 1") as g:
        taken = []
        while g.total("otelcol_exporter_queue_unstored_requests") < 10:
            taken += send(g, range(len(taken), len(taken) + 10), samples=1000)
        samples = sum(expected(taken).values())
        assert reload(g, "num_consumers: 4", "num_consumers: 5") == "applied"
        g.until(lambda: "Shutdown kept data on disk." in g.log())
        assert g.ledger("profiles", "otlp_grpc")["queued"] == samples
        sink.start()
        g.until(lambda: not missing(taken, sink))
        g.until(lambda: settled(g))
        assert g.ledger("profiles", "otlp_grpc")["out"] == samples
        assert sink.samples() == expected(taken)
        g.until(lambda: "The exporter has ended" in g.log())


@pytest.mark.threads
def test_what_is_on_disk_waits_for_an_exporter_that_was_removed(build, sink, tmp_path):
    """The data of other exporters goes on, and the ledger of the one that is removed counts what it left on disk."""
    other = "otlp_grpc/other"
    with peers.Sink() as healthy, gateway(build, sink, tmp_path) as g:
        taken = send(g, range(20))
        assert len(taken) == 20
        text = g.config.read_text()
        removed = text.replace("  otlp_grpc:\n    endpoint: 127.0.0.1:%d" % sink.port,
                               "  %s:\n    endpoint: 127.0.0.1:%d" % (other, healthy.port)).replace(
                                   "exporters: [otlp_grpc]", "exporters: [%s]" % other)
        assert reload(g, text, removed) == "applied"
        more = send(g, range(100, 110))
        g.until(lambda: not missing(more, healthy))
        assert healthy.samples() == expected(more)
        assert reload(g, removed, text) == "applied"
        taken += send(g, range(200, 210))
        sink.start()
        g.until(lambda: not missing(taken, sink))
        g.until(lambda: g.ledger("profiles", "otlp_grpc")["queued"] == 0)
        assert sink.samples() == expected(taken)
        assert g.total("otelcol_ledger_dropped_samples") == 0
        assert g.ledger("profiles", "otlp_grpc")["out"] == len(taken) * SAMPLES
        assert g.ledger("profiles", other)["out"] == len(more) * SAMPLES
