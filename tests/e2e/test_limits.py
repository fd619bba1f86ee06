# SPDX-License-Identifier: Apache-2.0
"""service::limits: a document that contains too much is rejected, with the key, its value and what was observed."""
import gzip

import grpc
import pytest

from harness import build as make
from harness import peers, push
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}, max_recv_msg_size_mib: 64}}}
  pprof: {server: {endpoint: 127.0.0.1:{port:http}}}
  pyroscope: {endpoint: 127.0.0.1:{port:push}}
exporters:
  debug: {}
service:
  limits: LIMITS
  pipelines:
    profiles: {receivers: [otlp, pprof, pyroscope], exporters: [debug]}
"""


def running(build, limits):
    return Gateway(build / "portcullis", CONFIG.replace("LIMITS", limits))


def exceeded(gateway, receiver="otlp"):
    return {dict(labels)["limit"]: int(value) for (name, labels), value in gateway.metrics().items()
            if name == "otelcol_receiver_exceeded_limits" and value and dict(labels)["receiver"] == receiver}


def refusal(gateway, request):
    with peers.Client(gateway.port["grpc"]) as client:
        error = peers.refused(client, request)
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    return error.details()


def long_string():
    request = make.request(1)
    request.dictionary.string_table.append("x" * 2000)
    return request


def deep_stack():
    request = make.request(1)
    request.dictionary.stack_table[1].location_indices.extend([1] * 1000)
    return request


@pytest.mark.parametrize("key, limit, request_of, observed", [
    ("max_profiles", 3, lambda: make.request(1, profiles=4), "4 Profiles"),
    ("max_samples", 49, lambda: make.request(1, samples=50), "50 samples"),
    ("max_string_length", 1999, long_string, "2000 bytes in a string"),
    ("max_stack_depth", 999, deep_stack, " locations in a stack"),
    ("max_table_entries", 30, lambda: make.request(1, functions=400), " entries in a table"),
])
def test_what_is_over_a_limit_is_rejected_with_its_name(build, key, limit, request_of, observed):
    with running(build, "{%s: %d}" % (key, limit)) as gateway:
        details = refusal(gateway, request_of())
        assert observed in details and "service::limits::%s is %d" % (key, limit) in details
        assert exceeded(gateway) == {key: 1}
        assert gateway.total("otelcol_receiver_refused_requests", reason="too_large") == 1


@pytest.mark.parametrize("key, limit, request_of", [
    ("max_profiles", 4, lambda: make.request(1, profiles=4)),
    ("max_samples", 50, lambda: make.request(1, samples=50)),
    ("max_string_length", 2000, long_string),
    ("max_profiles", 0, lambda: make.request(1, profiles=4)),
])
def test_what_is_exactly_at_a_limit_passes(build, key, limit, request_of):
    with running(build, "{%s: %d}" % (key, limit)) as gateway, peers.Client(gateway.port["grpc"]) as client:
        client.send(request_of())
        assert exceeded(gateway) == {}


def test_a_body_that_grows_too_much_is_rejected(build):
    profile = make.pprof(samples=20)
    profile.string_table.append("x" * (4 << 20))
    body = gzip.compress(profile.SerializeToString())
    with running(build, "{max_decompression_ratio: 100, max_string_length: 0}") as gateway:
        for headers in {}, {"Content-Encoding": "gzip"}:
            status, _, text = peers.post(gateway.port["http"], body, headers=headers)
            assert status == 413 and b"service::limits::max_decompression_ratio is 100" in text
        assert exceeded(gateway, "pprof") == {"max_decompression_ratio": 2}
    with running(build, "{max_decompression_ratio: 0, max_string_length: 0}") as gateway:
        assert peers.post(gateway.port["http"], body)[0] == 204


def test_documents_beyond_the_limit_are_rejected_and_the_others_accepted(build):
    request = push.messages.PushRequest()
    for i in range(5):
        series = request.series.add()
        series.labels.add(name="__name__", value="process_cpu")
        series.labels.add(name="service_name", value="svc-%d" % i)
        series.samples.add(raw_profile=make.pprof(samples=10).SerializeToString())
    with running(build, "{max_documents: 3}") as gateway:
        peers.post(gateway.port["push"], request.SerializeToString(), "/push.v1.PusherService/Push",
                   {"Content-Type": "application/proto"})
        assert exceeded(gateway, "pyroscope") == {"max_documents": 1}
        assert gateway.total("otelcol_receiver_accepted_profile_samples", receiver="pyroscope") == 3 * 20
