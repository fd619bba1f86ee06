# SPDX-License-Identifier: Apache-2.0
"""The otlp receiver over HTTP, over real sockets, with a gate that only counts. MODE picks the build."""
import gzip
import json
import re
import ssl

import pytest

from harness import codings, otlp
from harness.certificates import make_ca, make_leaf
from harness.served import Served, build, status_messages
from harness.web import ask, chunked, connect, ended, read_answer, request
from harness.web2 import ask2

PATH = "/v1development/profiles"
PROTOBUF, JSON = "application/x-protobuf", "application/json"
MIB = 1 << 20
BODY = b"0123456789" * 30000
UNSUPPORTED = b"415 unsupported media type, supported: [application/json, application/x-protobuf]"

pytestmark = pytest.mark.threads


@pytest.fixture(scope="module")
def program():
    return build("receivers/otlp_serve")


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    return status_messages(tmp_path_factory.mktemp("proto"))


class Receiver(Served):
    def __init__(self, program, limit=256 * MIB, more=None, **keys):
        keys.setdefault("endpoint", "127.0.0.1:0")
        super().__init__(program, yaml=json.dumps({"protocols": {"http": keys, **(more or {})}}), limit=limit)
        port = re.search(r'"endpoint": ?"[^"]*:(\d+)"', self.greeting)
        self.port = int(port[1]) if port else None

    def post(self, body=BODY, headers=(), media=PROTOBUF, path=PATH):
        headers = [*headers, "Content-Type: " + media] if media else list(headers)
        return ask(self.port, request(path=path, body=body, headers=headers))[0]

    def length(self):
        return int(re.search(r"len=(\d+)", self.ask("last"))[1])

    def charged(self):
        """(now, at most, reasons)"""
        now, most, *reasons = self.ask("charged").split()
        return int(now), int(most), reasons


def coded(name):
    return "Content-Encoding: " + name


# ---- what is accepted

def test_an_accepted_request_is_answered_as_by_the_collector(program):
    with Receiver(program) as r:
        answer = r.post()
        assert (answer.status, answer.headers["content-type"], answer.body) == (200, PROTOBUF, b"\x0a\x00")
        assert r.ask("last") == "otlp http len=300000 first=30 tenant=none peer=127.0.0.1 subject=none host=none"
        assert r.charged() == (0, 4096 + 300000, [])


def test_the_response_to_a_partly_invalid_request_says_what_was_rejected(program):
    with Receiver(program) as r:
        partial = otlp.Response.FromString(r.post(b"partial 3").body).partial_success
        assert (partial.rejected_profiles, partial.error_message) == (3, "profiles[1]: no stack")


@pytest.mark.parametrize("coding", [None, "gzip", "snappy"])
def test_json_becomes_protobuf_and_is_answered_in_json(program, coding):
    message = otlp.Request()
    message.dictionary.string_table.extend(["", "x" * 1000])
    data = otlp.to_json(message.SerializeToString())
    with Receiver(program) as r:
        answer = r.post(codings.ENCODERS[coding](data) if coding else data, [coded(coding)] if coding else [], JSON)
        assert (answer.status, answer.headers["content-type"], answer.body) == (200, JSON, b'{"partialSuccess":{}}')
        assert r.length() == len(message.SerializeToString())
        assert r.post(b"{}", media=JSON).status == 200 and r.length() == 0


def test_what_json_becomes_is_charged(program):
    """Besides the body: each value of four bytes takes as many in protobuf, and the lists above them more."""
    data = b'{"dictionary":{"stringTable":[%s""]}}' % (b'"",' * 100000)
    with Receiver(program) as r:
        assert r.post(data, media=JSON).status == 200 and r.length() > 200000
        now, most, _ = r.charged()
        assert now == 0 and len(data) + 200000 < most < len(data) + 600000
    with Receiver(program, limit=len(data) + 100000) as r:
        assert r.post(data, media=JSON).status == 503
        assert r.charged()[0] == 0 and r.charged()[1] <= len(data) + 100000


@pytest.mark.parametrize("coding", codings.ENCODERS)
def test_every_content_coding_of_the_collector_is_read(program, coding):
    with Receiver(program) as r:
        assert r.post(codings.ENCODERS[coding](BODY), [coded(coding)]).status == 200
        assert r.length() == len(BODY)


def test_codings_that_clients_mix_up_are_read(program):
    """Framed snappy called snappy, and deflate without the header of zlib."""
    with Receiver(program) as r:
        for coding, data in (("snappy", codings.snappy_framed(BODY)), ("deflate", codings.raw_deflate(BODY)),
                             ("identity", BODY)):
            assert r.post(data, [coded(coding)]).status == 200
            assert r.length() == len(BODY)


@pytest.mark.parametrize("media", ["Application/X-Protobuf", "application/x-protobuf; charset=utf-8", "application/x-protobuf;a=b"])
def test_the_media_type_may_have_parameters(program, media):
    with Receiver(program) as r:
        assert r.post(media=media).status == 200


def test_a_body_of_unknown_length_is_read(program):
    with Receiver(program) as r:
        data = request(path=PATH, headers=["Transfer-Encoding: chunked", "Content-Type: " + PROTOBUF], length=False)
        assert ask(r.port, data + chunked(BODY, 777))[0].status == 200
        assert r.length() == len(BODY)


def test_a_connection_serves_many_requests_also_when_they_are_pipelined(program):
    one = request(path=PATH, body=BODY, headers=["Content-Type: " + PROTOBUF])
    with Receiver(program) as r, connect(r.port) as sock:
        for _ in range(5):
            sock.sendall(one)
            assert read_answer(sock).status == 200
        stream = sock.makefile("rb")
        sock.sendall(one * 3)
        assert [stream.read(len(head(stream)) and 2) for _ in range(3)] == [b"\x0a\x00"] * 3


def head(stream):
    lines = []
    while (line := stream.readline()) != b"\r\n":
        lines.append(line)
    return lines


def test_an_empty_request_is_a_request(program):
    with Receiver(program) as r:
        assert r.post(b"").status == 200


def test_both_protocols_are_served_by_one_receiver(program):
    with Receiver(program, more={"grpc": {"endpoint": "127.0.0.1:0"}}) as r:
        ports = []
        greeting = r.greeting
        while len(ports) < 2:
            grpc_port, http_port = re.search(r'"port": ?(\d+)', greeting), re.search(r'"endpoint": ?"[^"]*:(\d+)"', greeting)
            ports.append(int((grpc_port or http_port)[1]))
            greeting = r.process.stdout.readline() if len(ports) < 2 else ""
        r.target, r.port = "127.0.0.1:%d" % ports[0], ports[1]
        assert r.call(otlp.METHOD, b"x") == b"" and "grpc" in r.ask("last")
        assert r.post().status == 200 and "http" in r.ask("last")


def test_several_paths_may_accept_profiles(program):
    paths = [PATH, "/v1experimental/profiles", "/v1/profiles"]
    with Receiver(program, profiles_url_paths=paths) as r:
        assert [r.post(path=path).status for path in paths] == [200] * 3
    with Receiver(program, profiles_url_paths=["/v1/profiles"]) as r:
        assert [r.post(path=path).status for path in paths] == [404, 404, 200]


def test_headers_are_metadata_only_where_it_is_asked_for(program):
    for asked in (True, False):
        with Receiver(program, include_metadata=asked) as r:
            r.post(headers=["X-Tenant: blue"])
            assert ("tenant=blue" in r.ask("last")) == asked


def test_fixed_headers_are_on_every_response(program):
    with Receiver(program, response_headers={"x-served-by": "gate"}) as r:
        for answer in (r.post(), r.post(b"invalid"), r.post(media="text/plain"), r.post(path="/nowhere")):
            assert answer.headers["x-served-by"] == "gate"


def answer_of(context, port):
    """Over TLS; None if the server ends the connection instead."""
    try:
        with connect(port) as plain, context.wrap_socket(plain, server_hostname="localhost") as sock:
            sock.sendall(request(path=PATH, body=BODY, headers=["Content-Type: " + PROTOBUF]))
            return read_answer(sock)
    except (ssl.SSLError, ConnectionError):
        return None


def test_tls_names_the_caller(program, tmp_path):
    make_ca(tmp_path, "ca")
    make_leaf(tmp_path, "ca", "server", "/CN=localhost")
    make_leaf(tmp_path, "ca", "client", "/CN=agent-7")
    tls = {"cert_file": "%s/server.pem" % tmp_path, "key_file": "%s/server.key" % tmp_path,
           "client_ca_file": "%s/ca.pem" % tmp_path}
    context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    with Receiver(program, tls=tls) as r:
        assert not answer_of(context, r.port), "without a certificate"
        context.load_cert_chain(tmp_path / "client.pem", tmp_path / "client.key")
        assert answer_of(context, r.port).status == 200
        assert "agent-7" in r.ask("last")


# ---- HTTP/2

def post2(r, body, media=PROTOBUF, **more):
    return ask2(r.port, path=PATH, body=body, headers=[("content-type", media), *more.pop("headers", [])], **more)


@pytest.mark.parametrize("coding", [None, *codings.ENCODERS])
def test_http_2_carries_every_content_coding(program, coding):
    packed = codings.ENCODERS[coding](BODY) if coding else BODY
    with Receiver(program) as r:
        answer = post2(r, packed, headers=[("content-encoding", coding)] if coding else [])
        assert (answer.status, answer.headers["content-type"], answer.body) == (200, PROTOBUF, b"\x0a\x00")
        assert r.length() == len(BODY)


def test_http_2_carries_json_small_and_large(program):
    with Receiver(program) as r:
        for count in (10, 100000):
            answer = post2(r, b'{"dictionary":{"stringTable":[%s""]}}' % (b'"",' * count), JSON)
            assert (answer.status, answer.headers["content-type"], answer.body) == (200, JSON, b'{"partialSuccess":{}}')
        assert r.charged()[0] == 0 and int(r.ask("here")) == 1


def test_http_2_reports_errors_in_the_same_form(program, messages):
    with Receiver(program, max_request_body_size=MIB) as r:
        for body, coding, kind in ((b"invalid", "identity", (400, 3)), (gzip.compress(bytes(9 * MIB)), "gzip", (413, 8)),
                                   (BODY, "canary", (400, 3)), (bytes(2 * MIB), "identity", (413, 8))):
            answer = post2(r, body, headers=[("content-encoding", coding)])
            assert status_in(answer, messages)[:2] == kind
        assert r.charged()[0] == 0


# ---- what is refused, and how

def status_in(answer, messages):
    """(HTTP status, gRPC code, message, retry delay in seconds) of a google.rpc.Status in either encoding."""
    if answer.headers["content-type"] == JSON:
        status = json.loads(answer.body)
        delay = [d["retryDelay"] for d in status.get("details", [])
                 if d["@type"] == "type.googleapis.com/google.rpc.RetryInfo"]
        return answer.status, status["code"], status["message"], int(delay[0].rstrip("s")) if delay else None
    assert answer.headers["content-type"] == PROTOBUF
    status = messages.Status.FromString(answer.body)
    retry = [messages.RetryInfo.FromString(d.value).retry_delay.seconds for d in status.details
             if d.type_url == "type.googleapis.com/google.rpc.RetryInfo"]
    return answer.status, status.code, status.message, retry[0] if retry else None


def test_what_cannot_be_decoded_is_400_and_named(program, messages):
    with Receiver(program) as r:
        assert status_in(r.post(b"invalid"), messages) == (400, 3, "profiles[3]: bad", None)
        assert r.charged() == (0, 4096 + 7, [])


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\x0a\x00", b"{} {}", b'{"resourceProfiles":3}', b"[" * 100000])
def test_what_is_not_the_json_of_a_request_is_400_in_json(program, messages, body):
    with Receiver(program) as r:
        status, code, text, _ = status_in(r.post(body, media=JSON), messages)
        assert (status, code) == (400, 3) and text
        assert r.charged()[0] == 0


@pytest.mark.parametrize("coding", codings.ENCODERS)
def test_a_damaged_body_of_each_coding_is_400(program, messages, coding):
    data = codings.ENCODERS[coding](BODY)
    with Receiver(program) as r:
        for damaged in (data[:len(data) // 2], data + b"rubbish", b"rubbish"):
            status, code, text, _ = status_in(r.post(damaged, [coded(coding)]), messages)
            assert (status, code) == (400, 3) and "corrupt" in text
        assert r.post().status == 200 and r.charged()[0] == 0


@pytest.mark.parametrize("coding", codings.ENCODERS)
def test_a_bomb_of_each_coding_stops_at_the_limit(program, messages, coding):
    bomb = codings.ENCODERS[coding](bytes(19 * MIB))
    with Receiver(program, max_request_body_size=MIB) as r:
        status, code, text, retry = status_in(r.post(bomb, [coded(coding)]), messages)
        assert (status, code, retry) == (413, 8, None) and str(MIB) in text
        now, most, _ = r.charged()
        assert now == 0 and most < 3 * MIB
        assert r.post(codings.ENCODERS[coding](bytes(MIB)), [coded(coding)]).status == 200


def test_a_body_over_the_limit_is_413_announced_or_not(program, messages):
    with Receiver(program, max_request_body_size=MIB) as r:
        with connect(r.port) as sock:
            sock.sendall(request(path=PATH, length=False, headers=["Content-Length: %d" % (MIB + 1), "Expect: 100-continue",
                                                                   "Content-Type: " + PROTOBUF]))
            answer = read_answer(sock)
            status, code, text, _ = status_in(answer, messages)
            assert (status, code) == (413, 8) and "the body has 1048577 bytes; max_request_body_size is 1048576" in text and not answer.interim
        with connect(r.port) as sock:
            sock.sendall(request(path=PATH, headers=["Transfer-Encoding: chunked", "Content-Type: " + PROTOBUF], length=False))
            sock.sendall(chunked(bytes(MIB + 100000))[:-5])
            status, code, text, _ = status_in(read_answer(sock), messages)
            assert (status, code) == (413, 8) and "the body has more than 1048576 bytes" in text and ended(sock)
        assert r.post(bytes(MIB)).status == 200
        assert r.charged()[0] == 0 and r.charged()[2] == ["too_large"] * 2


@pytest.mark.parametrize("media", ["text/plain", "application/x-protobufs", "application/octet-stream", None])
def test_another_media_type_is_415(program, media):
    with Receiver(program) as r:
        answer = r.post(media=media)
        assert (answer.status, answer.headers["content-type"].partition(";")[0], answer.body) == (415, "text/plain", UNSUPPORTED)
        assert r.charged()[2] == ["unsupported"]


def test_an_unknown_content_coding_is_400_as_in_the_collector(program, messages):
    with Receiver(program) as r:
        status, code, text, _ = status_in(r.post(headers=[coded("canary")]), messages)
        assert (status, code) == (400, 3) and text.startswith("unsupported Content-Encoding") and "canary" not in text
        assert status_in(r.post(headers=[coded("gzip, gzip")]), messages)[:2] == (400, 3)
        answer = r.post(headers=[coded("canary")], media=JSON)
        assert answer.headers["content-type"] == JSON and status_in(answer, messages)[:2] == (400, 3)
    with Receiver(program, compression_algorithms=["", "zstd"]) as r:
        assert "supported: [identity, zstd]" in status_in(r.post(gzip.compress(BODY), [coded("gzip")]), messages)[2]
        assert r.post(codings.zstd(BODY), [coded("zstd")]).status == 200


def test_other_paths_and_methods_are_plain_text(program):
    with Receiver(program) as r:
        for path in ("/v1/traces", "/v1/metrics", "/v1/logs", "/"):
            answer = r.post(path=path)
            assert (answer.status, answer.body.strip()) == (404, b"404 page not found, supported: [%s]" % PATH.encode())
        for method in ("GET", "PUT", "DELETE"):
            answer = ask(r.port, request(method, PATH))[0]
            assert (answer.status, answer.body.strip()) == (405, b"405 method not allowed, supported: [POST]")
            assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("media", [PROTOBUF, JSON])
def test_a_refusal_for_memory_comes_from_the_headers_with_both_forms_of_retry_hint(program, messages, media):
    with Receiver(program, limit=0) as r, connect(r.port) as sock:
        sock.sendall(request(path=PATH, length=False, headers=["Content-Length: 100000", "Expect: 100-continue",
                                                               "Content-Type: " + media]))
        answer = read_answer(sock)
        status, code, _, retry = status_in(answer, messages)
        assert (status, code) == (503, 14) and not answer.interim
        assert retry == int(answer.headers["retry-after"]) >= 1
        r.ask("limit 100000000")
        assert r.post().status == 200


def test_a_bomb_is_refused_for_memory_before_it_grows(program, messages):
    with Receiver(program, limit=MIB) as r:
        answer = r.post(gzip.compress(bytes(10 * MIB)), [coded("gzip")])
        status, code, _, retry = status_in(answer, messages)
        assert (status, code) == (503, 14) and retry == int(answer.headers["retry-after"]) >= 1
        assert r.charged()[0] == 0 and r.charged()[1] <= MIB


def test_a_sender_that_vanishes_gives_its_charge_back(program):
    with Receiver(program) as r:
        with connect(r.port) as sock:
            sock.sendall(request(path=PATH, headers=["Content-Length: 100000", "Content-Type: " + PROTOBUF], length=False) + b"x")
            while r.charged()[0] == 0:
                pass
        while r.charged()[0] or not r.charged()[2]:
            pass
        assert r.charged()[2] == ["cancelled"]


def test_a_port_in_use_is_an_error_and_stops_what_was_started(program):
    with Receiver(program) as first:
        with Receiver(program, endpoint="127.0.0.1:%d" % first.port, more={"grpc": {"endpoint": "127.0.0.1:0"}}) as second:
            second.greeting += second.process.stdout.read()
            assert "Address already in use" in second.greeting
            assert second.process.wait(60) == 1
            second.process.returncode = 0
