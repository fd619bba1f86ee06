# SPDX-License-Identifier: Apache-2.0
"""Senders of an older generation of OTLP at a new gateway."""
import pytest

from harness import chaos, generations, otlp, peers
from harness.build import Maker

ORACLE = "Values are equal after translation. A request that fits two layouts is rejected with a reason, never accepted empty."
SEEDS = 5


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_every_generation_arrives_whole(build, transport, record_property):
    sink, want = peers.Sink(), otlp.Counter()
    with chaos.running(build, chaos.one(), ("a", sink)) as gateway:
        for release in generations.OLD:
            for seed in range(SEEDS):
                request = generations.logical(release, seed)
                want += otlp.samples(generations.expected(release, request))
                answer = chaos.send(gateway, generations.write(release, request), transport)
                assert not answer.partial_success.rejected_profiles, answer
        chaos.settled(gateway, "otlp_grpc")
        assert sink.samples() == want
    record_property("figure", "%s: %d releases, %d samples equal" % (transport, len(generations.OLD), sum(want.values())))


def ambiguous():
    """Samples with the fields 1, 2 and 5 alone, with numbers that are no attributes: values of 1.9, or damaged 1.10."""
    m = Maker()
    p = m.profile(m.scope(m.resource({"service.name": "x"})))
    p.samples.add(stack_index=m.stack([m.location([m.function("f")])]), attribute_indices=[700], timestamps_unix_nano=[5])
    return m.message


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_what_fits_two_layouts_is_rejected_with_a_reason(build, transport):
    sink = peers.Sink()
    with chaos.running(build, chaos.one(), ("a", sink)) as gateway:
        refusal = chaos.send(gateway, ambiguous(), transport)
        text = refusal.details() if transport == "grpc" else refusal[2].decode(errors="replace")
        assert "`schema`" in text, "names the setting that decides"
        chaos.settled(gateway, "otlp_grpc")
        assert not sink.received
