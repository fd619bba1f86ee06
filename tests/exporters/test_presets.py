# SPDX-License-Identifier: Apache-2.0
"""The presets of the exporters of OTLP: the limits of a store hold without a configuration of them, and what is configured wins."""
import time

import pytest

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway
from harness.otlphttp import OtlpSink

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 128}}}
exporters:
  %s: {endpoint: %s, compression: none, timeout: 60s, tls: {insecure: true}%s}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [%s]}
"""
KIB, HOUR = 1024, 3600 * 10 ** 9
SINKS = {"otlp_grpc": peers.Sink, "otlp_http": OtlpSink}


def message(ago=0, samples=40000, values=1):
    """One of these many samples, each with these many times, of Profiles of this age."""
    m = make.request(1, samples=samples, profiles=2, functions=200)
    at = time.time_ns() - ago
    for rp in m.resource_profiles:
        for p in (p for sp in rp.scope_profiles for p in sp.profiles):
            p.time_unix_nano = at
            for s in p.samples:
                del s.timestamps_unix_nano[:]
                s.values[:] = range(values) if values > 1 else s.values[:1]
                s.timestamps_unix_nano.extend(range(at, at + values) if values > 1 else ())
    return m


def requests_of(build, exporter, lines, sent):
    """What the destination gets, and {reason: samples} of what is dropped."""
    with SINKS[exporter]() as sink:
        endpoint = "%s127.0.0.1:%d" % ("http://" if exporter == "otlp_http" else "", sink.port)
        text = CONFIG % (exporter, endpoint, "".join(", " + line for line in lines), exporter)
        with Gateway(build / "portcullis", text) as gateway, peers.Client(gateway.port["otlp"]) as client:
            client.send(sent)
            gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 0)
            assert gateway.balanced("profiles", exporter)
            dropped = {dict(labels)["reason"]: int(n) for (name, labels), n in gateway.metrics().items()
                       if name == "otelcol_ledger_dropped_samples" and n}
        return ([r.body for r in sink.taken] if exporter == "otlp_http" else sink.received), dropped


def count(body):
    return sum(otlp.samples(body).values())


def total(samples):
    return sum(otlp.samples(samples).values())


@pytest.mark.parametrize("exporter", SINKS)
@pytest.mark.parametrize("lines, most", [
    ([], None),
    (["preset: none"], None),
    (["preset: pyroscope"], 16000),
    (["preset: pyroscope", "limits: {max_samples: 30000}"], 30000),
    (["preset: pyroscope", "limits: {max_samples: 500}"], 500),
    (["preset: parca"], None),
])
def test_the_number_of_samples(build, exporter, lines, most):
    sent = message()
    bodies, dropped = requests_of(build, exporter, lines, sent)
    assert not dropped and sum((otlp.samples(b) for b in bodies), otlp.Counter()) == otlp.samples(sent)
    sizes = [sum(len(p.samples) for rp in otlp.parse(b).resource_profiles for sp in rp.scope_profiles for p in sp.profiles)
             for b in bodies]
    if most is None:
        assert len(sizes) == 1
    else:
        assert len(sizes) > 1 and most * .5 < max(sizes) <= most


@pytest.mark.parametrize("exporter", SINKS)
@pytest.mark.parametrize("lines, most", [
    ([], None),
    (["preset: pyroscope"], 1920 * KIB),
    (["preset: pyroscope", "limits: {max_bytes: 6000000}"], 6000000),
    (["preset: parca"], 16384 * KIB),
    (["preset: parca", "limits: {max_bytes: 6000000}"], 6000000),
])
def test_the_size(build, exporter, lines, most):
    sent = message(samples=4500, values=400)
    assert len(sent.SerializeToString()) > 17 << 20
    bodies, dropped = requests_of(build, exporter, lines, sent)
    assert not dropped and sum(map(count, bodies)) == total(sent)
    if most is None:
        assert len(bodies) == 1
    else:
        assert len(bodies) > 1 and most * .5 < max(map(len, bodies)) <= most


@pytest.mark.parametrize("exporter", SINKS)
@pytest.mark.parametrize("ago, lines, reason", [
    (2 * HOUR, [], None),
    (2 * HOUR, ["preset: pyroscope"], "too_old"),
    (2 * HOUR, ["preset: pyroscope", "limits: {max_age: 3h}"], None),
    (2 * HOUR, ["preset: parca"], None),
    (HOUR // 2, ["preset: pyroscope"], None),
    (HOUR // 2, ["preset: pyroscope", "limits: {max_age: 10m}"], "too_old"),
    (-HOUR // 2, ["preset: pyroscope"], "too_new"),
    (-HOUR // 2, ["preset: pyroscope", "limits: {max_ahead: 1h}"], None),
    (-HOUR // 2, ["preset: parca"], None),
])
def test_the_window_of_times(build, exporter, ago, lines, reason):
    sent = message(ago, samples=20)
    bodies, dropped = requests_of(build, exporter, lines, sent)
    assert dropped == ({reason: 40} if reason else {}) and sum(map(count, bodies)) == (0 if reason else total(sent))
