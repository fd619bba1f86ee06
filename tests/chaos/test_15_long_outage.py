# SPDX-License-Identifier: Apache-2.0
"""An outage that is longer than what the store still accepts."""
import grpc
import pytest

from harness import build as make
from harness import chaos, otlp, peers

ORACLE = """What waited longer than `max_age` expires before it is sent, and is counted; what is not too old is delivered, oldest or newest
first as configured."""
COUNT, SAMPLES = 40, 50


def outage(build, keys, consumers=2):
    """A gateway and a destination that answers every request with `sink.fault`."""
    sink = peers.Sink()
    sink.fault, sink.attempts = grpc.StatusCode.UNAVAILABLE, 0

    def answer(data, context):
        with sink.lock:
            sink.attempts += 1
        return context.abort(sink.fault, "down") if sink.fault else b""

    sink.answer = answer
    more = """retry_on_failure: {initial_interval: 100ms, max_interval: 100ms, max_elapsed_time: 0s},
      sending_queue: {num_consumers: %d, %s}""" % (consumers, keys)
    return sink, chaos.running(build, chaos.one(more), ("a", sink))


def test_what_waits_too_long_expires_before_it_is_sent(build, record_property):
    sink, running = outage(build, "max_age: 1s")
    with running as g, peers.Client(g.port["grpc"]) as client:
        for seed in range(COUNT):
            client.send(make.request(seed, samples=SAMPLES))
        g.until(lambda: g.total("otelcol_ledger_dropped_samples", reason="expired") == COUNT * SAMPLES)
        assert g.total("otelcol_ledger_queued_samples") == 0 and g.total("otelcol_ledger_out_samples") == 0
        expired, sink.fault = sink.attempts, None
        client.send(make.request(1000))
        chaos.settled(g, "otlp_grpc")
        assert sink.attempts - expired <= 2 and sink.samples() == otlp.samples(make.request(1000))
    record_property("figure", "%d samples expired after %d attempts" % (COUNT * SAMPLES, expired))


@pytest.mark.parametrize("order", ["oldest", "newest"])
def test_the_order_is_as_configured(build, order):
    sink, running = outage(build, "order: " + order, consumers=1)
    with running as g, peers.Client(g.port["grpc"]) as client:
        for seed in range(10):
            message = make.request(seed)
            message.resource_profiles[0].scope_profiles[0].profiles[0].time_unix_nano = 10 ** 18 + seed
            client.send(message)
        g.until(lambda: sink.attempts > 3)
        sink.fault = None
        chaos.settled(g, "otlp_grpc")
        got = [p.time_unix_nano - 10 ** 18 for data in sink.received for _, _, p in otlp.Reader(otlp.parse(data)).each_profile()]
    # The one at the consumer is the first that arrived; the others wait in the queue.
    assert got == [0, *(range(1, 10) if order == "oldest" else range(9, 0, -1))]
