# SPDX-License-Identifier: Apache-2.0
"""Receivers of a few dozen lines (tests/e2e/newcomer) on the intakes of HTTP and gRPC, with several documents a request."""
import gzip
import json
import struct

import grpc
import pytest

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway
from harness.newcomer import build_with

CONFIG = """
receivers:
  frames: {endpoint: 127.0.0.1:{port:frames}, max_request_body_size: 1000000}
  push: {endpoint: 127.0.0.1:{port:push}}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:%d, tls: {insecure: true}}
processors:
  batch: {timeout: 100ms}
service:
  pipelines:
    profiles: {receivers: [frames, push], processors: [%s], exporters: [otlp_grpc]}
"""
DOCUMENTS = [make.pprof(seed, samples=10).SerializeToString() for seed in range(3)]
SAMPLES = 20  # of each: two sample types
BAD = b"no pprof"


@pytest.fixture(scope="module")
def program(root, build, tmp_path_factory):
    files = {"receivers/%s.c" % name: (root / ("tests/e2e/newcomer/%s.c" % name)).read_text() for name in ("frames", "push")}
    return build_with(root, build, tmp_path_factory.mktemp("receivers"), files, ["frames_receiver", "push_receiver"])[0]


class Target:
    def __init__(self, program, processors):
        self.sink = peers.Sink().start()
        self.gateway = Gateway(program, CONFIG % (self.sink.port, processors))

    def __enter__(self):
        self.gateway.__enter__()
        return self

    def __exit__(self, *_):
        self.gateway.__exit__(*_)
        self.sink.stop()

    def frames(self, *documents, cut=0, headers=None):
        """(status, the JSON of the answer)"""
        body = b"".join(struct.pack(">I", len(d)) + d for d in documents)
        status, received, text = peers.post(self.gateway.port["frames"], body[:len(body) - cut], path="/frames",
                                            headers=headers)
        assert received["Content-Type"] == "application/json"
        return status, json.loads(text)

    def push(self, *documents):
        """How many were rejected, or the error."""
        body = b"".join(b"\x0a" + varint(len(d)) + d for d in documents)
        with grpc.insecure_channel("127.0.0.1:%d" % self.gateway.port["push"]) as channel:
            try:
                return channel.unary_unary("/test.Push/Push")(body, timeout=30)[1]
            except grpc.RpcError as error:
                return error

    def expect(self, receiver, transport, documents, rejected=0, **requests):
        """Everything taken arrives, is counted, and nothing is left on its way."""
        gateway, labels = self.gateway, {"receiver": receiver, "transport": transport}
        gateway.until(lambda: gateway.total("otelcol_exporter_sent_profile_samples") == documents * SAMPLES)
        assert sum(sum(otlp.samples(data).values()) for data in self.sink.received) == documents * SAMPLES
        assert gateway.total("otelcol_receiver_accepted_profile_samples", **labels) == documents * SAMPLES
        assert gateway.total("otelcol_receiver_refused_profiles", **labels) == rejected
        for outcome, count in requests.items():
            assert gateway.total("otelcol_receiver_requests", outcome=outcome, **labels) == count
        gateway.until(lambda: gateway.balanced("profiles", "otlp_grpc"))


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


@pytest.fixture(params=["", "batch"])
def target(program, request):
    with Target(program, request.param) as target:
        yield target


def test_two_documents_of_an_http_request_are_taken(target):
    assert target.frames(DOCUMENTS[0], gzip.compress(DOCUMENTS[1])) == (200, {"rejected": 0, "message": ""})
    target.expect("frames", "http", 2, success=1)


def test_one_bad_document_of_an_http_request_is_rejected_alone(target):
    status, answer = target.frames(DOCUMENTS[0], BAD, DOCUMENTS[1])
    assert status == 200 and answer["rejected"] == 1 and answer["message"].startswith("document 1: pprof: ")
    status, answer = target.frames(gzip.compress(b"x" * 2000000), DOCUMENTS[2])
    assert status == 200 and answer["rejected"] == 1
    assert "document 0: the decompressed body has more than 1000000 bytes; max_request_body_size is 1000000" in answer["message"]
    target.expect("frames", "http", 3, rejected=2, partial=2)


def test_what_follows_a_broken_frame_is_rejected_once(target):
    status, answer = target.frames(DOCUMENTS[0], DOCUMENTS[1], cut=10)
    assert status == 200 and answer == {"rejected": 1, "message": "document 1: the frame is cut short"}
    target.expect("frames", "http", 1, rejected=1, partial=1)


def test_an_http_request_of_bad_documents_fails_in_the_receivers_form(target):
    status, answer = target.frames(BAD, BAD)
    assert status == 400 and answer["message"].startswith("document 0: pprof: ")
    status, answer = target.frames(b"x" * 1000001)
    assert status == 413 and "max_request_body_size" in answer["message"]
    status, answer = target.frames(DOCUMENTS[0], headers={"Content-Encoding": "br"})
    assert status == 415
    target.expect("frames", "http", 0, refused=3)


def test_an_empty_http_request_is_taken(target):
    assert target.frames() == (200, {"rejected": 0, "message": ""})
    target.expect("frames", "http", 0, success=1)


def test_documents_of_a_call_are_taken_and_a_bad_one_is_rejected_alone(target):
    assert target.push(DOCUMENTS[0], gzip.compress(DOCUMENTS[1])) == 0
    assert target.push(BAD, gzip.compress(DOCUMENTS[2])) == 1
    error = target.push(BAD, BAD)
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and error.details().startswith("document 0: pprof: ")
    target.expect("push", "grpc", 3, rejected=1, success=1, partial=1, refused=1)
