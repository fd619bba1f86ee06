# SPDX-License-Identifier: Apache-2.0
"""A destination that takes only small requests gets everything, in parts; python3-protobuf compares."""
import gzip
import time

import pytest

from harness import build as make
from harness import otlp, peers, profcheck
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 64}}}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:{port:a}
    tls: {insecure: true}
    compression: COMPRESSION
    timeout: 30s
    LIMITS
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc]}
"""
LEARNED = "otelcol_exporter_learned_max_bytes"


def config(compression="none", limits=""):
    return CONFIG.replace("COMPRESSION", compression).replace("LIMITS", limits)


def large(seed, samples=12000):
    """About 6 MB in two Profiles: each sample has twenty values, each with its time."""
    message = make.request(seed, samples=samples, profiles=2, functions=4000)
    for profile in message.resource_profiles[0].scope_profiles[0].profiles:
        for i, sample in enumerate(profile.samples):
            sample.values[:] = range(i, i + 20)
            sample.timestamps_unix_nano[:] = range(10 ** 18 + i, 10 ** 18 + i + 20)
    return message


def pass_through(build, text, limit, messages):
    """What the sink got, the log and the gauge, once the ledger has balanced."""
    gateway = Gateway(build / "portcullis", text)
    with peers.Sink(gateway.port["a"], limit=limit) as sink, gateway:
        with peers.Client(gateway.port["otlp"]) as client:
            for message in messages:
                client.send(message)
        gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 0)
        assert gateway.balanced("profiles", "otlp_grpc"), gateway.ledger("profiles", "otlp_grpc")
        learned = gateway.total(LEARNED)
        dropped = gateway.total("otelcol_ledger_dropped_samples")
    return sink.received, gateway.log(), learned, dropped


def together(parts):
    return otlp.all_samples(parts)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_receiver_of_four_mebibytes_gets_everything_in_parts_and_teaches_its_limit(build, compression):
    message = large(1).SerializeToString()
    assert len(message) > 5 << 20
    parts, log, learned, dropped = pass_through(build, config(compression), None, [message])
    assert len(parts) > 1 and all(len(data) <= 4 << 20 for data in parts)
    assert together(parts) == otlp.samples(message)
    assert [fault for data in parts for fault in profcheck.structure(data)] == []
    assert dropped == 0
    if compression == "none" or len(gzip.compress(message)) < 4 << 20:
        assert learned == 4 << 20, "it was named in the refusal"
    assert log.count("rejects requests of this size") == 1


def test_what_was_learned_is_kept_and_costs_no_second_refusal(build):
    messages = [large(1), large(2)]
    refused = []
    gateway = Gateway(build / "portcullis", config())
    with peers.Sink(gateway.port["a"], limit=None) as sink, gateway, peers.Client(gateway.port["otlp"]) as client:
        for message in messages:
            client.send(message)
            gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 0)
            refused.append(gateway.total("otelcol_exporter_oversized_requests"))
        assert refused == [1, 1]
        assert sink.samples() == otlp.all_samples(messages)


def test_configured_limits_are_kept_by_every_part(build):
    message = large(3, samples=3000)
    text = config(limits="limits: {max_bytes: 300000, max_samples: 1000, max_profiles: 1}")
    parts, log, learned, dropped = pass_through(build, text, None, [message])
    counts = [[len(p.samples) for _, _, p in otlp.Reader(otlp.parse(data)).each_profile()] for data in parts]
    assert all(len(data) <= 300000 for data in parts)
    assert all(len(profiles) == 1 and profiles[0] <= 1000 for profiles in counts)
    assert together(parts) == otlp.samples(message)
    assert learned == dropped == 0


def test_a_single_sample_over_the_limit_is_dropped_and_its_neighbours_arrive(build):
    message = make.request(4, samples=500)
    giant = message.resource_profiles[0].scope_profiles[0].profiles[0].samples[250]
    giant.values[:] = giant.timestamps_unix_nano[:] = range(10 ** 18, 10 ** 18 + 10000)
    expected = otlp.samples(message)
    parts, log, learned, dropped = pass_through(build, config(limits="limits: {max_bytes: 20000}"), None, [message])
    lost = expected - together(parts)
    assert not together(parts) - expected
    assert [len(key[3][4]) for key in lost.elements()] == [10000]
    assert dropped == 1
    assert log.count("Dropping data outside the destination's limits") == 1 and '"reason": "too_large"' in log


def test_profiles_older_than_the_limit_are_dropped_for_that_reason(build):
    gateway = Gateway(build / "portcullis", config(limits="limits: {max_age: 1h}"))
    with peers.Sink(gateway.port["a"]) as sink, gateway, peers.Client(gateway.port["otlp"]) as client:
        message = make.request(5, samples=10, profiles=2)
        message.resource_profiles[0].scope_profiles[0].profiles[0].time_unix_nano = time.time_ns()
        client.send(message)
        gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 0)
        assert gateway.total("otelcol_ledger_dropped_samples", reason="too_old") == 10
        assert sum(sink.samples().values()) == 10
        assert gateway.balanced("profiles", "otlp_grpc"), gateway.ledger("profiles", "otlp_grpc")
