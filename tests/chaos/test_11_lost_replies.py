# SPDX-License-Identifier: Apache-2.0
"""A destination accepts requests, and its replies are lost."""
from harness import build as make
from harness import chaos, cutting, faults, otlp, peers

ORACLE = "Retries are bounded, every repetition is counted, and the ledger has each sample once."
CALLS, SAMPLES, LOST = 20, 10, 4


def test_repetitions_are_bounded_and_counted(build, record_property):
    text = chaos.one("retry_on_failure: {initial_interval: 20ms, max_interval: 50ms}")
    gateway = chaos.Gateway(build / "portcullis", text)
    with faults.FaultSink() as sink:
        gateway.config.write_text(gateway.config.read_text().replace("127.0.0.1:%d" % gateway.port["a"], "127.0.0.1:%d" % sink.port))
        with gateway:
            sink.script = [faults.abort]
            for seed in range(CALLS):
                chaos.send(gateway, make.request(seed, samples=SAMPLES))
            gateway.until(lambda: len(sink.seen) >= 3)
            sink.script = faults.answer()
            chaos.settled(gateway, "otlp_grpc")
            assert gateway.total("otelcol_ledger_out_samples") == CALLS * SAMPLES
            repeated = gateway.total("otelcol_exporter_retries")
            assert 0 < repeated and len(sink.seen) <= CALLS + repeated
    record_property("figure", "%d requests, %d calls, %d retries counted" % (CALLS, len(sink.seen), repeated))


def test_a_second_gateway_drops_the_repetitions(build, record_property):
    """Each request has its own Idempotency-Key, the same on every attempt."""
    receiving = chaos.one().replace("      http:", "    deduplicate: {}\n#", 1)
    with peers.Sink() as sink:
        second = chaos.Gateway(build / "portcullis", receiving)
        second.config.write_text(second.config.read_text().replace("127.0.0.1:%d" % second.port["a"], "127.0.0.1:%d" % sink.port))
        with second, cutting.Cutter(second.port["grpc"]) as cutter:
            gateway = chaos.Gateway(build / "portcullis", chaos.one("retry_on_failure: {initial_interval: 20ms, max_interval: 50ms}"))
            gateway.config.write_text(
                gateway.config.read_text().replace("127.0.0.1:%d" % gateway.port["a"], "127.0.0.1:%d" % cutter.port))
            with gateway:
                cutter.cuts = LOST
                for seed in range(CALLS):
                    chaos.send(gateway, make.request(seed, samples=SAMPLES))
                chaos.settled(gateway, "otlp_grpc")
            chaos.settled(second, "otlp_grpc")
            repeated = second.total("otelcol_receiver_requests", outcome="duplicate")
            dropped = second.total("otelcol_ledger_receiver_dropped_samples", reason="duplicate")
            assert repeated >= cutter.lost == LOST and dropped == repeated * SAMPLES
        assert sink.samples() == otlp.all_samples(make.request(seed, samples=SAMPLES).SerializeToString()
                                                 for seed in range(CALLS))
    record_property("figure", "%d requests through two gateways, %d connections cut, %d repetitions dropped" % (CALLS, LOST, repeated))
