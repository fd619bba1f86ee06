# SPDX-License-Identifier: Apache-2.0
"""service::limits: a document that contains too much is rejected, with the key, its value and what was observed."""
import gzip
import pathlib
import re

import grpc
import pytest

from harness import book
from harness import build as make
from harness import peers, push
from harness.gateway import Gateway
from harness.web import chunked, connect, read_answer, request

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


# ---- sizes, as sent and decompressed

SIZES = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:grpc}, max_recv_msg_size_mib: 1, limits: {max_headers: 20, max_header_bytes: 4000}}
      http: {endpoint: 127.0.0.1:{port:http}, max_request_body_size: 100000, max_header_count: 20, max_header_bytes: 4000}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 100}
exporters:
  debug: {}
service:
  pipelines:
    profiles: {receivers: [otlp], processors: [memory_limiter], exporters: [debug]}
"""
PATH, TYPE = "/v1development/profiles", "Content-Type: application/x-protobuf"
REFUSED = "otelcol_receiver_refused_requests"


def http(g, data):
    with connect(g.port["http"]) as sock:
        sock.sendall(data)
        answer = read_answer(sock)
        return answer.status, answer.body.decode()


def http_body(body, *headers):
    return request(path=PATH, headers=[TYPE, *headers], body=body)


def grpc_error(g, data, **keywords):
    with peers.Client(g.port["grpc"], compression=keywords.pop("compression", None)) as client:
        error = peers.refused(client, data, **keywords)
    return error.code(), error.details()


EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
SIZE_LIMITS = {
    "announced": (lambda g: http(g, http_body(b"x" * 100001)),
                  413, "the body has 100001 bytes; max_request_body_size is 100000", REFUSED, "too_large"),
    "chunked": (lambda g: http(g, request(path=PATH, headers=[TYPE, "Transfer-Encoding: chunked"], length=False)
                               + chunked(b"x" * 150000)[:-5]),
                413, "the body has more than 100000 bytes; max_request_body_size is 100000", REFUSED, "too_large"),
    "decompressed": (lambda g: http(g, http_body(gzip.compress(b"x" * 100001), "Content-Encoding: gzip")),
                     413, "the decompressed body has more than 100000 bytes; max_request_body_size is 100000", REFUSED, "too_large"),
    "header count": (lambda g: http(g, http_body(b"x", *["a%d: b" % i for i in range(20)])),
                     431, "the request has 23 headers; max_header_count is 20",
                     "otelcol_http_server_refused_requests", "header"),
    "header bytes": (lambda g: http(g, http_body(b"x", "a: " + "b" * 5000)),
                     431, r"the headers have 50\d\d bytes; max_header_bytes is 4000",
                     "otelcol_http_server_refused_requests", "header"),
    "message": (lambda g: grpc_error(g, b"x" * ((1 << 20) + 1)),
                EXHAUSTED, "the message has 1048577 bytes; max_recv_msg_size_mib is 1", REFUSED, "too_large"),
    "decompressed message": (lambda g: grpc_error(g, b"x" * ((1 << 20) + 1), compression=grpc.Compression.Gzip),
                             EXHAUSTED, "the decompressed body has more than 1048576 bytes; max_recv_msg_size_mib is 1",
                             REFUSED, "too_large"),
    "gRPC header count": (lambda g: grpc_error(g, b"", metadata=[("a%d" % i, "b") for i in range(20)]),
                          EXHAUSTED, r"the request has \d\d headers; limits.max_headers is 20",
                          "otelcol_grpc_server_refused_requests", "header"),
    "gRPC header bytes": (lambda g: grpc_error(g, b"", metadata=[("a", "b" * 4000)]),
                          EXHAUSTED, r"the headers have \d+ bytes; limits.max_header_bytes is 4000",
                          "otelcol_grpc_server_refused_requests", "header"),
}


@pytest.mark.parametrize("name", SIZE_LIMITS)
def test_what_is_too_large_is_refused_with_the_setting_and_the_size(build, name):
    send, status, message, metric, reason = SIZE_LIMITS[name]
    with Gateway(build / "portcullis", SIZES) as g:
        got, text = send(g)
        assert got == status and re.search(message, text), text
        assert g.total(metric, reason=reason) == 1


def test_a_request_that_can_never_fit_into_the_memory_is_refused_with_both_numbers(build):
    text = SIZES.replace("max_recv_msg_size_mib: 1,", "max_recv_msg_size_mib: 2000,").replace(
        "max_request_body_size: 100000", "max_request_body_size: 2000000000")
    with Gateway(build / "portcullis", text) as g:
        status, body = http(g, request(path=PATH, headers=[TYPE, "Content-Length: 1900000000"], length=False))
        numbers = re.search(r"the request needs (\d+) bytes of memory; memory_limiter leaves (\d+) for requests", body)
        assert status == 413 and int(numbers[1]) >= 1900000000 and 0 < int(numbers[2]) < 100 << 20
        assert g.total(REFUSED, reason="too_large") == 1


# ---- the table in the manual

HERE = pathlib.Path(__file__)
ROOT = HERE.parent.parent.parent


def test_every_limit_in_the_manual_has_a_test_for_its_message():
    rows = book.rows(book.section((ROOT / "docs/manual/operating.md").read_text(), "Limits"))
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.[cp]*") if path.name != "test_facts.py")
    keys = {key for cells in rows for key in re.findall(r"`([\w.:]+)`", cells[1])}
    assert len(keys) > 30
    # Of the messages, the part after the observed value: "max_samples is".
    assert sorted(key for key in keys if re.split(r"[.:]", key)[-1] not in tests) == []
