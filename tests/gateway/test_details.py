# SPDX-License-Identifier: Apache-2.0
"""What readiness says about storages and destinations: it does not depend on them, and reports them."""
import json
import resource

import pytest

from harness import peers
from harness.durable import absent_sink, gateway, send, set_file_limit

DISK = "the disk is full, read-only or fails; "


@pytest.fixture
def sink():
    with absent_sink() as s:
        yield s


def details(g):
    """{component: (state, detail)} of the health check, which has only what there is to report, and of the admin endpoint."""
    status, _, body = peers.post(g.port["health"], None, path="/", method="GET")
    assert status == 200
    shown = [{c["component"]: (c["state"], c.get("detail")) for c in found} for found in (
        json.loads(body).get("details", []),
        json.loads(peers.post(g.port["admin"], None, path="/-/status", method="GET")[2])["details"])]
    assert set(shown[1]) == {"service", "extensions::file_storage", "exporters::otlp_grpc"}
    return shown[0], shown[1]


def reported(g, component):
    """What both say of the component; None: the health check does not mention it, and it is in its normal state."""
    some, everything = details(g)
    shown = some.get(component)
    consistent = everything[component] == shown if shown else everything[component][1] is None
    return shown if consistent else "changes"


@pytest.mark.threads
def test_everything_is_healthy(build, sink, tmp_path):
    sink.start()
    with gateway(build, sink, tmp_path) as g:
        send(g, range(3))
        assert details(g) == ({}, {"service": ("healthy", None), "extensions::file_storage": ("healthy", None),
                                   "exporters::otlp_grpc": ("closed", None)})


@pytest.mark.threads
def test_the_circuit_of_a_destination_is_reported(build, sink, tmp_path):
    with gateway(build, sink, tmp_path) as g:
        send(g, range(10))
        g.until(lambda: reported(g, "exporters::otlp_grpc") == (
            "open", "the destination does not answer; only one probe at a time is sent"))
        body = json.loads(peers.post(g.port["health"], None, path="/", method="GET")[2])
        (found,) = (c for c in body["details"] if c["component"] == "exporters::otlp_grpc")
        del found["component"], found["state"], found["detail"]
        assert found == {"error": "unavailable", "cause": "connection refused", "stage": "connect", "errno": "ECONNREFUSED",
                         "grpc_status": 14}
        sink.start()
        g.until(lambda: reported(g, "exporters::otlp_grpc") is None)


def test_a_database_that_was_set_aside_is_reported(build, sink, tmp_path):
    (tmp_path / "queue").mkdir(mode=0o700)
    (tmp_path / "queue" / "queue.mdb").write_bytes(b"not a database" * 5000)
    with gateway(build, sink, tmp_path) as g:
        assert reported(g, "extensions::file_storage") == (
            "set_aside", "a damaged or foreign database was renamed; a new one is in use")


@pytest.mark.threads
@pytest.mark.parametrize("on_error, consequence", [
    ("refuse", "senders have to retry"), ("memory", "queues continue in memory")])
def test_a_disk_that_fails_is_reported_with_what_follows(build, sink, tmp_path, on_error, consequence):
    with gateway(build, sink, tmp_path, ack="enqueue", storage="on_error: " + on_error) as g:
        send(g, range(5))
        g.until(lambda: g.total("otelcol_storage_used_bytes") > 0)
        set_file_limit(g.process, 4096)
        send(g, range(100, 105), samples=5000)
        g.until(lambda: reported(g, "extensions::file_storage") == ("failing", DISK + consequence))
        set_file_limit(g.process, resource.RLIM_INFINITY)
        g.until(lambda: reported(g, "extensions::file_storage") is None)


@pytest.mark.threads
@pytest.mark.parametrize("on_error, consequence", [
    ("refuse", "senders have to retry"), ("memory", "queues continue in memory")])
def test_a_full_storage_is_reported(build, sink, tmp_path, on_error, consequence):
    with gateway(build, sink, tmp_path, ack="enqueue", storage="max_size_mib: 1, on_error: " + on_error) as g:
        for seed in range(1000):
            send(g, [seed], samples=3000)
            if reported(g, "extensions::file_storage"):
                break
        assert reported(g, "extensions::file_storage") == ("full", "max_size_mib is reached; " + consequence)
        sink.start()
        g.until(lambda: reported(g, "extensions::file_storage") is None)
