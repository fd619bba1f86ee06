# SPDX-License-Identifier: Apache-2.0
"""Own metrics: the Collector's names and labels, and a ledger in which no sample is missing or counted twice."""
import re
import socket

import grpc
import pytest

from harness import build as make
from harness import h2, otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
processors:
  allowlist: {keys: [service.name, thread.name]}
  batch: {timeout: 20ms, send_batch_size: 200}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:{port:a}
    tls: {insecure: true}
    timeout: 1s
  otlp_grpc/dead:
    endpoint: 127.0.0.1:{port:dead}
    tls: {insecure: true}
    sending_queue: {queue_size: 5, num_consumers: 2}
    retry_on_failure: {initial_interval: 10ms, max_interval: 10ms, max_elapsed_time: 100ms}
  debug:
service:
  telemetry: {metrics: {level: detailed}}
  pipelines:
    profiles: {receivers: [otlp, pprof], processors: [%s], exporters: [%s]}
    profiles/second: {receivers: [otlp], exporters: [debug]}
"""


def bad_among_good(seed):
    """A request of two profiles, of which the second has a sample with an index out of its table."""
    message = make.request(seed, samples=20, profiles=2)
    message.resource_profiles[0].scope_profiles[0].profiles[1].samples[3].stack_index = 10 ** 6
    return message


def identical(seed):
    """Samples that differ in a denied attribute only."""
    maker = make.Maker()
    stack = maker.stack([maker.location([maker.function("main")])])
    profile = maker.profile(maker.scope(maker.resource({"service.name": "one"})))
    for i in range(12):
        profile.samples.add(stack_index=stack, values=[i + 1], attribute_indices=[maker.attribute("pid", i + seed)])
    return maker.message


def load(gateway):
    """Good, partly bad, wholly bad, unreadable, empty and merging requests; what the counters must say of them."""
    with peers.Client(gateway.port["otlp"]) as client:
        for seed in range(10):
            client.send(make.request(seed, samples=20))
            assert client.send(bad_among_good(seed)).partial_success.rejected_profiles == 1
            client.send(identical(seed))
            client.send(otlp.Request())
            wholly = bad_among_good(seed)
            del wholly.resource_profiles[0].scope_profiles[0].profiles[0]
            for wrong in (wholly, b"\x0a\xff"):
                assert peers.refused(client, wrong).code() == grpc.StatusCode.INVALID_ARGUMENT
    return {"accepted": 10 * (20 + 20 + 12), "refused": 10 * (20 + 20), "failed": 0}, {
        "success": 30, "partial": 10, "refused": 20, "failure": 0}


@pytest.mark.threads
@pytest.mark.parametrize("processors", ["allowlist", "allowlist, batch", ""])
@pytest.mark.parametrize("exporters", ["otlp_grpc, debug", "otlp_grpc, otlp_grpc/dead", "otlp_grpc/dead, debug"])
def test_no_sample_is_missing_and_none_is_counted_twice(build, processors, exporters):
    gateway = Gateway(build / "portcullis", CONFIG % (processors, exporters))
    with peers.Sink(gateway.port["a"]) as sink, gateway:
        samples, requests = load(gateway)

        def is_quiet():
            return gateway.total("otelcol_ledger_batched_samples") == gateway.total("otelcol_ledger_queued_samples") == 0
        gateway.until(is_quiet)

        destinations = [("profiles", name) for name in exporters.split(", ")] + [("profiles/second", "debug")]
        for pipeline, exporter in destinations:
            ledger = gateway.ledger(pipeline, exporter)
            assert gateway.balanced(pipeline, exporter), ledger
            assert ledger["in"] == samples["accepted"], "each pipeline counts the whole of it"
            merges = processors and pipeline == "profiles"
            assert (ledger["merged"] >= 10 * 11) == bool(merges), ledger
            gone = gateway.total("otelcol_exporter_send_failed_profile_samples", exporter=exporter) + gateway.total(
                "otelcol_exporter_enqueue_failed_profile_samples", exporter=exporter)
            if exporter == "otlp_grpc/dead":
                assert ledger["out"] == 0 and ledger["dropped_there"] == gone > 0
            elif exporter == "otlp_grpc":
                assert gone == 0
                assert ledger["out"] == sum(sink.samples().values()), "what it says is what arrived"
        for outcome, count in requests.items():
            assert gateway.total("otelcol_receiver_requests", receiver="otlp", outcome=outcome) == count
        assert gateway.total("otelcol_receiver_refused_requests", reason="invalid") == 20
        for what, count in samples.items():
            assert gateway.total("otelcol_receiver_%s_profile_samples" % what, receiver="otlp") == count


LABELS = {
    "receiver_accepted_profile_samples": {"receiver", "transport"},
    "receiver_refused_profile_samples": {"receiver", "transport"},
    "receiver_failed_profile_samples": {"receiver", "transport"},
    "receiver_requests": {"receiver", "transport", "outcome"},
    "exporter_sent_profile_samples": {"exporter", "server_address", "server_port"},
    "exporter_send_failed_profile_samples": {"exporter", "server_address", "server_port"},
    "exporter_enqueue_failed_profile_samples": {"exporter"},
    "exporter_queue_size": {"exporter", "data_type"},
    "exporter_queue_capacity": {"exporter", "data_type"},
    "exporter_in_flight_requests": {"exporter", "data_type"},
    "processor_incoming_items": {"processor", "otel_signal", "pipeline"},
    "processor_outgoing_items": {"processor", "otel_signal", "pipeline"},
    "process_cpu_seconds": set(),
    "process_memory_rss": set(),
    "process_runtime_heap_alloc_bytes": set(),
    "process_runtime_total_sys_memory_bytes": set(),
    "process_uptime": set(),
}


def test_every_processor_counts_what_passes(build):
    """Those too that are a setting of the pipeline."""
    gateway = Gateway(build / "portcullis", CONFIG % ("allowlist, batch", "debug"))
    with gateway, peers.Client(gateway.port["otlp"]) as client:
        client.send(make.request(1, samples=20))
        for processor in ("allowlist", "batch"):
            for what in ("incoming", "outgoing"):
                assert gateway.total("otelcol_processor_%s_items" % what, processor=processor) == 20, (processor, what)


def test_names_and_labels_are_the_collectors(build):
    gateway = Gateway(build / "portcullis", CONFIG % ("allowlist, batch", "otlp_grpc, debug"))
    with peers.Sink(gateway.port["a"]), gateway:
        with peers.Client(gateway.port["otlp"]) as client:
            client.send(make.request(1))
        assert peers.post(gateway.port["pprof"], make.pprof(1).SerializeToString())[0] == 204
        found = gateway.metrics()
        for name, labels in LABELS.items():
            series = [dict(have) for (n, have) in found if n == "otelcol_" + name]
            assert any(set(have) == labels for have in series), (name, series)
        assert found["otelcol_exporter_queue_capacity",
                     frozenset({("exporter", "otlp_grpc"), ("data_type", "profiles")})] == 1000
        address = {("server_address", "127.0.0.1"), ("server_port", str(gateway.port["a"]))}
        assert any(address <= have for (n, have) in found if n == "otelcol_exporter_sent_profile_samples")
        assert {dict(have).get("transport") for (n, have) in found
                if n == "otelcol_receiver_accepted_profile_samples"} == {"grpc", "http"}


def test_every_charge_is_given_back(build):
    gateway = Gateway(build / "portcullis", CONFIG % ("allowlist, batch", "otlp_grpc, otlp_grpc/dead"))
    with peers.Sink(gateway.port["a"]), gateway:
        for _ in range(3):
            load(gateway)
        gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 0)
        gateway.until(lambda: gateway.total("otelcol_ledger_batched_samples") == 0)
        # Each of the 180 requests was charged more than 64 KiB for its tables alone; buffers that are kept are less.
        assert 0 < gateway.total("otelcol_memory_charged_bytes") < 4 << 20
        assert gateway.total("otelcol_memory_baseline_bytes") > 1 << 20


def test_every_metric_has_help_and_type_and_cpu_has_its_fraction(build):
    gateway = Gateway(build / "portcullis", CONFIG % ("allowlist", "debug"))
    with gateway:
        text = gateway.metrics_text()
        for name in {re.match(r"\w+", line)[0] for line in text.splitlines() if line[0] != "#"}:
            assert re.search(r"^# HELP %s \S" % name, text, re.M), name
            assert re.search(r"^# TYPE %s (counter|gauge)$" % name, text, re.M), name
        assert re.search(r"^otelcol_process_cpu_seconds \d+\.\d{6}$", text, re.M)
        assert not re.search(r"_total\b", text)


def test_without_a_level_nobody_listens(build):
    gateway = Gateway(build / "portcullis", (CONFIG % ("", "debug")).replace("level: detailed", "level: none"))
    with gateway:
        with pytest.raises(OSError):
            gateway.metrics_text()


PROTOCOL_ERRORS = {
    "nothing": (b"", 0),
    "GOAWAY": (h2.frame(h2.GOAWAY, 0, bytes(8), stream=0), 0),
    "GOAWAY of grpc-go, which names a stream of its own": (h2.frame(h2.GOAWAY, 0, b"\0\0\0\1" + bytes(4), stream=0), 0),
    "DATA without a stream": (h2.frame(h2.DATA, 0, b"", stream=0), 1),
    "PRIORITY without a stream": (h2.frame(h2.PRIORITY, 0, bytes(5), stream=0), 1),
}


@pytest.mark.parametrize("last", PROTOCOL_ERRORS)
def test_only_who_breaks_the_protocol_is_counted_as_closed_for_it(build, last):
    frames, count = PROTOCOL_ERRORS[last]
    with Gateway(build / "portcullis", CONFIG % ("", "debug")) as g:
        with socket.create_connection(("127.0.0.1", g.port["otlp"]), timeout=30) as connection:
            body = make.request(1).SerializeToString()
            connection.sendall(h2.export(b"\0" + len(body).to_bytes(4, "big") + body) + frames)
            if not frames:
                connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        g.until(lambda: g.total("otelcol_http2_server_open_connections", receiver="otlp") == 0)
        assert g.total("otelcol_http2_server_closed_connections") == count
        assert g.total("otelcol_http2_server_closed_connections", reason="protocol_error") == count
