# SPDX-License-Identifier: Apache-2.0
"""Many destinations: each form is made once, and one of them that is ill costs the others nothing."""
import pathlib
import time

import grpc
import pytest

from harness import build as make
from harness import parca, peers
from harness.gateway import Gateway
from harness.push import OK, PushSink, reply

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  otlp_grpc/a: {endpoint: 127.0.0.1:{port:a}, tls: {insecure: true}}
  otlp_grpc/b: {endpoint: 127.0.0.1:{port:b}, tls: {insecure: true}, timeout: 2s,
    retry_on_failure: {initial_interval: 100ms, max_elapsed_time: 200ms, max_interval: 100ms}}
  otlp_grpc/c: {endpoint: 127.0.0.1:{port:c}, tls: {insecure: true}, compression: none}
  file: {path: out/profiles.jsonl, format: json}
  file/otlp: {path: out/profiles.otlp, format: proto}
  file/pprof: {directory: out/pprof, format: pprof}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc/a, otlp_grpc/b, otlp_grpc/c, file, file/otlp, file/pprof]}
"""
EXPORTERS = ("otlp_grpc/a", "otlp_grpc/b", "otlp_grpc/c", "file", "file/otlp", "file/pprof")


def encodings(gateway):
    forms = ("otlp_gzip", "otlp_zstd", "json", "request")
    return {form: gateway.total("otelcol_packet_encodings", form=form) for form in forms}


def test_each_form_is_made_once_for_all_destinations(build):
    gateway = Gateway(build / "portcullis", CONFIG.replace("format: json}", "format: json}\n  debug: {verbosity: detailed}")
                      .replace("file/pprof]", "file/pprof, debug]"))
    with peers.Sink(gateway.port["a"]), peers.Sink(gateway.port["b"]), peers.Sink(gateway.port["c"]), gateway:
        with peers.Client(gateway.port["otlp"]) as client:
            for seed in range(30):
                client.send(make.request(seed))
        gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 0)
        assert encodings(gateway) == {"otlp_gzip": 30, "otlp_zstd": 0, "json": 30, "request": 0}
        for exporter in EXPORTERS:
            assert gateway.balanced("profiles", exporter), gateway.ledger("profiles", exporter)


# ---- one of them is ill ----

ROUNDS = 6


def fails_with(code, text):
    def answer(data, context):
        context.abort(code, text)
    return answer


def slowly(data, context):
    time.sleep(0.5)
    return b""


ILLS = {
    "dead": None,
    "slow": slowly,
    "refusing": fails_with(grpc.StatusCode.INVALID_ARGUMENT, "no"),
    "never_small_enough": fails_with(grpc.StatusCode.RESOURCE_EXHAUSTED, "message larger than max"),
}


def cpu_of(gateway):
    """Nanoseconds on the CPU, of all threads."""
    tasks = pathlib.Path("/proc/%d/task" % gateway.process.pid).iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def wait_for_empty_queues(gateway):
    """Reading the metrics costs the gateway something too: seldom."""
    while True:
        time.sleep(0.5)
        if gateway.total("otelcol_ledger_queued_samples") == 0:
            return


def run_phase(gateway, client, requests):
    """(CPU, median latency) of the requests, until nothing is left of them."""
    before, latencies = cpu_of(gateway), []
    for request in requests:
        begun = time.monotonic()
        client.send(request)
        latencies.append(time.monotonic() - begun)
    wait_for_empty_queues(gateway)
    return cpu_of(gateway) - before, sorted(latencies)[len(latencies) // 2]


def fall_ill(sink, ill):
    if ill == "dead":
        sink.stop()
    else:
        sink.answer = ILLS[ill]


def recover(sink, ill):
    if ill == "dead":
        sink.start()
    else:
        sink.answer = lambda data, context: b""


def ratio(sick, well, which):
    """Of each kind the cheapest round: whoever else uses the machine only adds."""
    return min(phase[which] for phase in sick) / min(phase[which] for phase in well)


def in_turn(gateway, requests, fall_ill, recover):
    """(CPU, latency) of a destination's illness, as ratios. Rounds of both kinds in turn. To find out that
    parts are never small enough costs something once, which is why there are two ill rounds each time."""
    well, sick = [], []
    with peers.Client(gateway.port["otlp"]) as client:
        run_phase(gateway, client, requests)
        for _ in range(ROUNDS):
            well.append(run_phase(gateway, client, requests))
            fall_ill()
            sick += [run_phase(gateway, client, requests), run_phase(gateway, client, requests)]
            recover()
    return ratio(sick, well, 0), ratio(sick, well, 1)


def large_requests():
    return [make.request(seed, samples=2000, functions=400).SerializeToString() for seed in range(40)]


@pytest.mark.costs
@pytest.mark.parametrize("ill", ILLS)
def test_one_that_is_ill_costs_the_others_nothing(build, ill):
    gateway = Gateway(build / "portcullis", CONFIG)
    b = peers.Sink(gateway.port["b"])
    with peers.Sink(gateway.port["a"]), peers.Sink(gateway.port["c"]), b, gateway:
        cpu, latency = in_turn(gateway, large_requests(), lambda: fall_ill(b, ill), lambda: recover(b, ill))
        print("%s: CPU %.2f, latency %.2f of all well" % (ill, cpu, latency))
        assert cpu <= 1.1 and latency <= 1.1
        for exporter in EXPORTERS:
            assert gateway.balanced("profiles", exporter), gateway.ledger("profiles", exporter)
            if exporter != "otlp_grpc/b":
                assert gateway.total("otelcol_ledger_dropped_samples", exporter=exporter) == 0


# ---- stores with protocols of their own beside them ----

STORES = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:{port:a}, tls: {insecure: true}}
  pyroscope: {endpoint: "http://127.0.0.1:PUSH", limits: {max_age: 876000h}, retry_on_failure: {enabled: false}}
  parca: {endpoint: 127.0.0.1:{port:parca}, tls: {insecure: true}}
  file: {path: out/profiles.jsonl, format: json}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc, pyroscope, parca, file]}
"""


def test_otlp_pyroscope_parca_and_a_file_at_once_encode_once_each(build):
    with PushSink() as push:
        gateway = Gateway(build / "portcullis", STORES.replace("PUSH", str(push.port)))
        raw = peers.Sink(gateway.port["parca"], method=parca.METHOD)
        with peers.Sink(gateway.port["a"]) as a, raw, gateway:
            with peers.Client(gateway.port["otlp"]) as client:
                for seed in range(30):
                    client.send(make.request(seed))
            gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 0)
            assert encodings(gateway) == {"otlp_gzip": 30, "otlp_zstd": 0, "json": 30, "request": 60}
            for exporter in "otlp_grpc", "pyroscope", "parca", "file":
                assert gateway.balanced("profiles", exporter), gateway.ledger("profiles", exporter)
                assert not gateway.total("otelcol_ledger_dropped_samples", exporter=exporter)
            assert len(a.received) == len(push.taken) == len(raw.received) == 30


STORE_ILLS = {
    "dead": lambda *_: None,
    "slow": lambda *_: time.sleep(0.5) or OK,
    "refusing": lambda *_: reply(400),
    "never small enough": lambda *_: reply(413),
}


@pytest.mark.costs
@pytest.mark.parametrize("ill", STORE_ILLS)
def test_a_store_that_is_ill_costs_the_others_nothing(build, ill):
    with PushSink() as push:
        gateway = Gateway(build / "portcullis", STORES.replace("PUSH", str(push.port)))
        raw = peers.Sink(gateway.port["parca"], method=parca.METHOD)
        with peers.Sink(gateway.port["a"]), raw, gateway:
            cpu, latency = in_turn(gateway, large_requests(), lambda: setattr(push, "answer", STORE_ILLS[ill]),
                                   lambda: setattr(push, "answer", lambda *_: OK))
            print("%s: CPU %.2f, latency %.2f of all well" % (ill, cpu, latency))
            assert cpu <= 1.1 and latency <= 1.1
            for exporter in "otlp_grpc", "pyroscope", "parca", "file":
                assert gateway.balanced("profiles", exporter), gateway.ledger("profiles", exporter)
                if exporter != "pyroscope":
                    assert not gateway.total("otelcol_ledger_dropped_samples", exporter=exporter)
