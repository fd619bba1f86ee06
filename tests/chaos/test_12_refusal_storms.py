# SPDX-License-Identifier: Apache-2.0
"""A storm of 429 and 503 with Retry-After, and one of permanent errors."""
import collections
import hashlib

import pytest

from harness import build as make
from harness import chaos
from harness.otlphttp import OtlpSink
from harness.push import reply

ORACLE = """The destination's hint is honoured, permanent errors are not retried, and after recovery each request is sent once: no
amplification."""
REQUESTS, SAMPLES, HINT_S = 30, 10, 1
TEXT = chaos.RECEIVERS + """
exporters:
  otlp_http:
    endpoint: http://127.0.0.1:PORT
    sending_queue: {num_consumers: 4}
    retry_on_failure: {initial_interval: 20ms, max_interval: 100ms}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_http]}
"""


def storm(build, answer, recovers):
    """(the sink, attempts while it refused, the sample counts out and dropped)"""
    with OtlpSink() as sink:
        sink.answer = answer
        with chaos.running(build, TEXT.replace("PORT", str(sink.port))) as gateway:
            for seed in range(REQUESTS):
                chaos.send(gateway, make.request(seed, samples=SAMPLES))
            gateway.until(lambda: len(sink.seen) >= 5)
            if recovers:
                gateway.until(lambda: repeated(sink.seen))
            before = len(sink.seen)
            sink.answer = (lambda taken, number: sink.ok) if recovers else answer
            chaos.settled(gateway, "otlp_http")
            out, dropped = (gateway.total("otelcol_ledger_%s_samples" % what) for what in ("out", "dropped"))
        return sink, before, out, dropped


def key(request):
    return hashlib.sha256(request.body).digest()


def repeated(requests):
    return max(collections.Counter(map(key, requests)).values(), default=0) > 1


@pytest.mark.parametrize("status", [429, 503])
def test_hints_are_honoured_and_nothing_is_amplified(build, status, record_property):
    sink, before, out, dropped = storm(build, lambda taken, number: reply(status, headers={"Retry-After": str(HINT_S)}), recovers=True)
    assert (out, dropped) == (REQUESTS * SAMPLES, 0)
    times = collections.defaultdict(list)
    for request in sink.seen[:before]:
        times[key(request)].append(request.at)
    gaps = [b - a for at in times.values() for a, b in zip(at, at[1:])]
    assert gaps and min(gaps) >= HINT_S, "not before the time that the destination named"
    # What was on its way when the answers changed may have been refused.
    assert len(sink.seen) - before <= REQUESTS + 4, "each is sent once after the recovery"
    record_property("figure", "%d: %d attempts while refused, %d after recovery for %d requests" % (
        status, before, len(sink.seen) - before, REQUESTS))


@pytest.mark.parametrize("status", [400, 401, 413])
def test_permanent_errors_are_not_retried(build, status, record_property):
    sink, _, out, dropped = storm(build, lambda taken, number: reply(status), recovers=False)
    assert (out, dropped) == (0, REQUESTS * SAMPLES)
    if status != 413:  # which is split, down to a single sample
        assert len(sink.seen) == REQUESTS and not repeated(sink.seen)
    record_property("figure", "%d: %d attempts for %d requests" % (status, len(sink.seen), REQUESTS))
