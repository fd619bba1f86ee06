# SPDX-License-Identifier: Apache-2.0
"""Strings that are not UTF-8, and timestamps of 1970 and of the future."""
import time

from harness import build as make
from harness import chaos, otlp, peers

ORACLE = """The policy still applies, damaged text becomes U+FFFD and is counted, times that the destination does not take are
dropped and counted, and the rest of the batch is delivered."""
POLICY = """processors:
  allowlist: {keys: [service.name, thread.name]}
exporters:
"""
DAY_NS = 86400 * 10 ** 9


def test_the_rest_of_the_batch_arrives(build, record_property):
    text = chaos.one("limits: {max_age: 24h, max_ahead: 1h}").replace("exporters:\n", POLICY, 1).replace(
        "receivers: [otlp],", "receivers: [otlp], processors: [allowlist],")
    message = make.request(1, samples=40, profiles=5)
    now = time.time_ns()
    profiles = message.resource_profiles[0].scope_profiles[0].profiles
    for profile, at in zip(profiles, (now, 1, now - 1000 * DAY_NS, now + 1000 * DAY_NS, now - 3600 * 10 ** 9)):
        profile.time_unix_nano = at
        del profile.samples[10:]
        for i, sample in enumerate(profile.samples):
            sample.stack_index = i + 1  # so that none is merged with another
    body = message.SerializeToString()
    assert b"checkout.handler7" in body
    body = body.replace(b"checkout.handler7", b"checkout.hand\xff\xfe\xc07")
    sink = peers.Sink()
    with chaos.running(build, text, ("a", sink)) as gateway:
        assert not chaos.send(gateway, body).partial_success.rejected_profiles
        chaos.settled(gateway, "otlp_grpc")
        assert gateway.total("otelcol_ledger_dropped_samples", reason="too_old") == 20
        assert gateway.total("otelcol_ledger_dropped_samples", reason="too_new") == 10
        assert sum(sink.samples().values()) == 20
        received, = sink.received
    assert b"k8s.pod.name" not in received and b"pod-" not in received, "the policy applies"
    assert b"\xff\xfe\xc0" not in received
    times = {p.time_unix_nano for _, _, p in otlp.Reader(otlp.parse(received)).each_profile()}
    assert times == {now, now - 3600 * 10 ** 9}
    record_property("figure", "2 of 5 Profiles delivered, 20 samples too old, 10 too new")
