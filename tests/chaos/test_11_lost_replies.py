# SPDX-License-Identifier: Apache-2.0
"""A destination accepts requests, and its replies are lost."""
from harness import build as make
from harness import chaos, faults

ORACLE = "Retries are bounded, every repetition is counted, and the ledger has each sample once."
CALLS, SAMPLES = 20, 10


def test_repetitions_are_bounded_and_counted(build, record_property):
    text = chaos.one("retry_on_failure: {initial_interval: 20ms, max_interval: 50ms}")
    gateway = chaos.Gateway(build / "portcullis", text)
    with faults.FaultSink() as sink:
        gateway.config.write_text(gateway.config.read_text().replace("127.0.0.1:%d" % gateway.port["a"], "127.0.0.1:%d" % sink.port))
        with gateway:
            sink.script = [faults.abort]
            for seed in range(CALLS):
                chaos.send(gateway, make.request(seed, samples=SAMPLES))
            gateway.until(lambda: sink.calls >= 3)
            sink.script = faults.answer()
            chaos.settled(gateway, "otlp_grpc")
            assert gateway.total("otelcol_ledger_out_samples") == CALLS * SAMPLES
            repeated = gateway.total("otelcol_exporter_retries")
            assert 0 < repeated and sink.calls <= CALLS + repeated
    record_property("figure", "%d requests, %d calls, %d retries counted" % (CALLS, sink.calls, repeated))
