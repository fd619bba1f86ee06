# SPDX-License-Identifier: Apache-2.0
"""Messages just below, at and above every limit, compressed and not."""
import pytest

from harness import build as make
from harness import chaos, otlp, peers

ORACLE = """No request exceeds the destination's limit, and everything arrives. A single sample that is too large is dropped alone, and
its neighbours arrive. What exceeds the receiver's limit is refused with the setting's name."""
MIB = 1 << 20


def arrived(build, message, more):
    sink = peers.Sink()
    with chaos.running(build, chaos.one(more), ("a", sink)) as gateway:
        assert not chaos.send(gateway, message).partial_success.rejected_profiles
        chaos.settled(gateway, "otlp_grpc")
        return sink.received, gateway.total("otelcol_ledger_dropped_samples")


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_no_request_exceeds_the_limit(build, compression, record_property):
    message = make.request(1, samples=2000)
    key = "compression: %s, limits: {max_bytes: %%d}" % compression
    whole, = arrived(build, message, key % (1 << 30))[0]
    for limit, parts in (len(whole) + 1, 1), (len(whole), 1), (len(whole) - 1, 2):
        received, dropped = arrived(build, message, key % limit)
        assert len(received) >= parts and (len(received) == 1) == (parts == 1)
        assert all(len(data) <= limit for data in received) and not dropped
        assert otlp.all_samples(received) == otlp.samples(message)
    record_property("figure", "%s: %d bytes, limit 1 above, at and 1 below" % (compression, len(whole)))


def test_a_sample_that_is_too_large_is_dropped_alone(build):
    message = make.request(4, samples=500)
    giant = message.resource_profiles[0].scope_profiles[0].profiles[0].samples[250]
    giant.values[:] = giant.timestamps_unix_nano[:] = range(10 ** 18, 10 ** 18 + 10000)
    received, dropped = arrived(build, message, "limits: {max_bytes: 20000}")
    lost = otlp.samples(message) - otlp.all_samples(received)
    assert dropped == 1 and [len(key[3][4]) for key in lost.elements()] == [10000]


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_the_receivers_limit_is_named(build, transport):
    message = make.request(2, samples=100)
    while len(message.SerializeToString()) < MIB:
        message.dictionary.string_table.append("x" * min(65536, max(1, MIB - len(message.SerializeToString()) - 4)))
    size = len(message.SerializeToString())
    text = chaos.one().replace("max_recv_msg_size_mib: 64", "max_recv_msg_size_mib: 1").replace("67108864", str(MIB))
    sink = peers.Sink()
    with chaos.running(build, text, ("a", sink)) as gateway:
        refusal = chaos.send(gateway, message.SerializeToString() + b"\x0a\x00" * (MIB - size // 2), transport)
        text = refusal.details() if transport == "grpc" else refusal[2].decode(errors="replace")
        assert ("max_recv_msg_size_mib" if transport == "grpc" else "max_request_body_size") in text, text
        assert not chaos.send(gateway, make.request(3), transport).partial_success.rejected_profiles
        chaos.settled(gateway, "otlp_grpc")
