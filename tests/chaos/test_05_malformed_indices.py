# SPDX-License-Identifier: Apache-2.0
"""Indices that are negative or past the end, and a dictionary that is missing."""
from harness import build as make
from harness import chaos, otlp, peers
from harness.hostile import hostile_indices

ORACLE = "No crash. Only the Profile with the fault is rejected, with partial success; its neighbours arrive."


def test_only_the_profile_with_the_fault_is_rejected(build, record_property):
    sink, count = peers.Sink(), 0
    with chaos.running(build, chaos.one(), ("a", sink)) as gateway:
        for name, message in hostile_indices():
            for transport in ("grpc", "http"):
                answer = chaos.send(gateway, message, transport)
                assert answer.partial_success.rejected_profiles == 1, (name, transport, answer)
                count += 1
        without = make.request(1, samples=5)
        without.ClearField("dictionary")
        answer = chaos.send(gateway, without)
        assert not hasattr(answer, "partial_success") or answer.partial_success.rejected_profiles, answer
        chaos.settled(gateway, "otlp_grpc")
        assert sum(sink.samples().values()) == count, "the good Profile of each request"
    record_property("figure", "%d requests" % count)
