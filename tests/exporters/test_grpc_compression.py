# SPDX-License-Identifier: Apache-2.0
"""What exporters over gRPC send with each `compression`, and how they read what comes back."""
import pytest

from harness import build as make
from harness import codings, faults, otlp, peers
from harness.gateway import Gateway
from harness.otlphttp import OtlpSink

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:%d
    tls: {insecure: true}
    compression: %s
    retry_on_failure: {enabled: false}
%s
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [%s]}
"""
NEXT = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:%d, tls: {insecure: true}, compression: none}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc]}
"""
# {compression: (grpc-encoding, what decodes it)}; snappy is framed, as grpc-go's is
WIRE = {"gzip": ("gzip", "gzip"), "zstd": ("zstd", "zstd"), "snappy": ("snappy", "x-snappy-framed"), "none": (None, None),
        '""': (None, None)}
PACKED = [name for name in WIRE if WIRE[name][0]]
CANARY = "words-of-the-server"
COMPLAINT = 'grpc: Decompressor is not installed for grpc-encoding "zstd" ' + CANARY


def gateway(build, port, compression, more="", ids="otlp_grpc"):
    return Gateway(build / "portcullis", CONFIG % (port, compression, more, ids))


def send(g, count=1, samples=300):
    sent = otlp.Counter()
    with peers.Client(g.port["otlp"]) as client:
        for seed in range(count):
            message = make.request(seed, samples=samples)
            client.send(message)
            sent += otlp.samples(message)
    return sent


def settled(g, exporter="otlp_grpc"):
    g.until(lambda: g.total("otelcol_ledger_queued_samples", exporter=exporter) == 0)
    assert g.balanced("profiles", exporter)


@pytest.mark.parametrize("compression", WIRE)
def test_the_message_is_flagged_and_its_coding_announced(build, compression):
    name, decoder = WIRE[compression]
    with faults.FaultSink() as sink, gateway(build, sink.port, compression) as g:
        sent = send(g, 3)
        settled(g)
        assert g.total("otelcol_ledger_out_samples", exporter="otlp_grpc") == 900
        received = otlp.Counter()
        for call in sink.seen:
            body = call.wire
            flag, length, message = body[0], int.from_bytes(body[1:5], "big"), body[5:]
            assert flag == (name is not None) and length == len(message)
            announced = b"grpc-encoding" in call.block
            assert announced == (name is not None) or name == "gzip", "gzip is in core's table after the first call"
            if name in ("zstd", "snappy"):
                assert b"\x0dgrpc-encoding" + bytes([len(name)]) + name.encode() in call.block
            received += otlp.samples(codings.DECODERS[decoder](message) if decoder else message)
        assert received == sent and b"send " not in b"".join(call.block for call in sink.seen)


@pytest.mark.parametrize("compression", PACKED)
def test_the_next_gateway_reads_it(build, compression):
    with peers.Sink() as sink, Gateway(build / "portcullis", NEXT % sink.port) as last, \
            gateway(build, last.port["otlp"], compression) as first:
        sent = send(first, 5)
        settled(first)
        settled(last)
        assert first.total("otelcol_ledger_out_samples", exporter="otlp_grpc") == 1500
        assert sink.samples() == sent


@pytest.mark.parametrize("compression, other", [("gzip", "gzip"), ("zstd", "zstd"), ("snappy", "x-snappy-framed")])
def test_a_compressed_copy_is_shared_with_other_destinations(build, compression, other):
    with faults.FaultSink() as sink, OtlpSink() as web:
        more = "  otlp_grpc/b: {endpoint: 127.0.0.1:%d, tls: {insecure: true}, compression: %s}\n" % (sink.port, compression)
        more += "  otlp_http: {endpoint: 'http://127.0.0.1:%d', compression: %s}\n" % (web.port, other)
        with gateway(build, sink.port, compression, more, "otlp_grpc, otlp_grpc/b, otlp_http") as g:
            sent = send(g, 4)
            for exporter in "otlp_grpc", "otlp_grpc/b", "otlp_http":
                settled(g, exporter)
            made = {dict(labels)["form"]: int(n) for (name, labels), n in g.metrics().items()
                    if name == "otelcol_packet_encodings" and n}
            assert sum(made.values()) == 4, made
            assert web.samples() == sent and len(sink.seen) == 8


@pytest.mark.parametrize("compression", PACKED)
@pytest.mark.parametrize("answered", ["gzip", "zstd", "snappy"])
def test_a_compressed_response_is_read(build, compression, answered):
    """grpc-go compresses a response as the request was, whether that was offered or not."""
    response = otlp.Response(partial_success={"rejected_profiles": 1, "error_message": CANARY}).SerializeToString()
    body = codings.ENCODERS[WIRE[answered][1]](response)
    with faults.FaultSink() as sink, gateway(build, sink.port, compression) as g:
        opening = faults.headers((":status", 200), ("content-type", "application/grpc"), ("grpc-encoding", answered))
        sink.script = [opening, faults.data(faults.message(body, flag=1)), faults.trailers(0)]
        send(g)
        settled(g)
        assert g.total("otelcol_exporter_rejected_profiles", exporter="otlp_grpc") == 1
        assert "A library reported a problem" not in g.log() and CANARY not in g.log()


@pytest.mark.parametrize("script, error", [
    (faults.refusal(12, ("grpc-message", COMPLAINT)), "unknown_compression"),
    (faults.refusal(12, ("grpc-message", "unknown service " + CANARY)), "unimplemented"),
])
def test_a_server_that_does_not_know_the_compression(build, script, error):
    with faults.FaultSink() as sink, gateway(build, sink.port, "zstd") as g:
        sink.script = script
        send(g)
        settled(g)
        assert g.total("otelcol_ledger_dropped_samples", exporter="otlp_grpc", reason="permanent") == 300
        assert '"error": "%s"' % error in g.log() and CANARY not in g.log()
        assert len(sink.seen) == 1, "it is not sent again without compression"


def test_what_parca_does_not_read_is_an_error(build):
    text = CONFIG.replace("otlp_grpc", "parca") % (1, "zstd", "", "parca")
    with Gateway(build / "portcullis", text, ready=False) as g:
        assert g.process.wait(60) == 1
        assert "compression: Parca decompresses only gzip; use gzip or none" in g.log()
