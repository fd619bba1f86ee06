# SPDX-License-Identifier: Apache-2.0
"""Requests of every release of OTLP profiles, over each transport in each coding. The messages are python-protobuf's; what
arrives at a destination is read by it too. The table of docs/INTEROP.md shows which arrived without loss."""
import http.client

import grpc
import pytest

from harness import codings, generations, otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}}, http: {endpoint: 127.0.0.1:{port:http}}}}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:{port:sink}, tls: {insecure: true}}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc]}
"""
LIBRARY = {"none": None, "gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}


class Passage:
    def __init__(self, build):
        self.gateway = Gateway(build / "portcullis", CONFIG)
        self.sink = peers.Sink(self.gateway.port["sink"])

    def __enter__(self):
        self.sink.start()
        self.gateway.__enter__()
        return self

    def __exit__(self, *error):
        self.gateway.__exit__(*error)
        self.sink.stop()

    def grpc(self, body, coding):
        """grpcio compresses by itself; other codings are recognised by their first bytes."""
        packed = body if coding in LIBRARY else codings.ENCODERS[coding](body)
        with peers.Client(self.gateway.port["grpc"], compression=LIBRARY.get(coding)) as client:
            assert not client.send(packed).HasField("partial_success")

    def http(self, body, coding):
        headers = {"Content-Type": "application/x-protobuf"}
        if coding != "none":
            headers["Content-Encoding"] = coding
            body = codings.ENCODERS[coding](body)
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port["http"], timeout=60)
        connection.request("POST", "/v1development/profiles", body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status == 200 and not otlp.Response.FromString(text).partial_success.rejected_profiles, text

    def carry(self, transport, body, coding):
        count = len(self.sink.received)
        getattr(self, transport)(body, coding)
        self.gateway.until(lambda: len(self.sink.received) > count)
        return self.sink.received[count]


@pytest.fixture(scope="module")
def passage(build):
    with Passage(build) as p:
        yield p


WAYS = [("grpc", coding) for coding in ("none", "gzip", "deflate", "zstd", "x-snappy-framed")] + \
       [("http", coding) for coding in ("none", *codings.ENCODERS)]


@pytest.mark.parametrize("transport, coding", WAYS)
@pytest.mark.parametrize("release", [*generations.OLD, "1_10"])
def test_a_request_of_every_generation_arrives(passage, record_property, release, transport, coding):
    record_property("generation", (release, transport, coding))
    request = generations.logical(release, 7, samples=40)
    sent = passage.carry(transport, generations.write(release, request), coding)
    assert otlp.samples(sent) == otlp.samples(generations.expected(release, request))
