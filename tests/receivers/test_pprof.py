# SPDX-License-Identifier: Apache-2.0
"""The pprof receiver over real sockets, with a gate that only counts. MODE picks the build."""
import gzip
import json
import re
import socket
import subprocess
import time
import zlib

import pytest

from harness import build as make
from harness.web import Program, ask, build, chunked, connect, ended, read_answer, request
from harness.web2 import ask_by

MIB = 1 << 20
PATH = "/v1/pprof"


@pytest.fixture(scope="module")
def program():
    return build("receivers/pprof_serve")


@pytest.fixture(scope="module")
def profile():
    return make.pprof(samples=300).SerializeToString()


@pytest.fixture(autouse=True, params=["1.1", "2"])
def version(request, monkeypatch):
    """What Receiver.post speaks."""
    monkeypatch.setattr(Receiver, "version", request.param)


class Receiver(Program):
    """Its port is in the log."""
    version = "1.1"

    def __init__(self, program, limit=1 << 30, **keys):
        keys.setdefault("endpoint", "127.0.0.1:0")
        super().__init__(program, json.dumps({"server": keys}), str(limit))
        self.sent = 0
        if self.greeting == "started":
            for _ in range(600):
                found = [m[1] for line in list(self.log) if (m := re.search(r'"endpoint": ?"[^"]*:(\d+)"', line))]
                if found:
                    break
                time.sleep(0.05)
            self.port = int(found[0])

    def post(self, body, query="", headers=(), path=PATH):
        return ask_by(self.version, self.port, request(path=path + query, body=body, headers=list(headers)))[0]

    def read(self, command):
        self.tell(command)
        return self.line()

    def refusals(self):
        return self.read("charged").split()[2:]


def zstd(data):
    return subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout


def form(*parts):
    body = b"".join(b'--f941e3\r\nContent-Disposition: form-data; name="%s"; filename="%s.pprof"\r\n'
                    b"Content-Type: application/octet-stream\r\n\r\n%s\r\n" % (name, name, content)
                    for name, content in parts)
    return body + b"--f941e3--\r\n", ["Content-Type: multipart/form-data; boundary=f941e3"]


# ---- what is taken

@pytest.mark.threads
@pytest.mark.parametrize("pack, headers", [
    (bytes, []), (gzip.compress, []), (zstd, []),
    (gzip.compress, ["Content-Encoding: gzip"]), (zstd, ["Content-Encoding: zstd"]),
    (zlib.compress, ["Content-Encoding: deflate"]), (zlib.compress, ["Content-Encoding: zlib"]),
    (lambda b: gzip.compress(gzip.compress(b)), ["Content-Encoding: gzip"]),
    (lambda b: zstd(gzip.compress(b)), ["Content-Encoding: zstd"]),
    (bytes, ["Content-Encoding: identity"]), (bytes, ["Content-Type: application/x-www-form-urlencoded"]),
    (gzip.compress, ["content-type: Application/Octet-Stream; x=y"]),
])
def test_a_profile_is_taken_however_it_is_packed(program, profile, pack, headers):
    with Receiver(program) as r:
        answer = r.post(pack(profile), headers=headers)
        assert answer.status == 204 and answer.body == b""
        assert r.read("last").startswith("profiles=2 samples=600 peer=127.0.0.1 tenant=none")
        assert r.read("charged").startswith("now=0 ")


def test_a_chunked_profile_is_taken(program):
    large = make.pprof(samples=20000).SerializeToString()
    with Receiver(program) as r:
        data = request(path=PATH, headers=["Transfer-Encoding: chunked"], length=False) + chunked(large)
        assert len(large) > 200000 and ask_by(r.version, r.port, data)[0].status == 204


def test_the_forms_of_clients_are_taken(program, profile):
    config = b'{"samples":{"units":"samples","display-name":"cpu"}}'
    with Receiver(program) as r:
        for parts in ([(b"profile", gzip.compress(profile)), (b"sample_type_config", config)],
                      [(b"sample_type_config", config), (b"profile", profile)]):
            body, headers = form(*parts)
            assert r.post(body, headers=headers).status == 204
            assert r.post(gzip.compress(body), headers=headers + ["Content-Encoding: gzip"]).status == 204


def test_attributes_come_by_query_and_header(program, profile):
    with Receiver(program) as r:
        assert r.post(profile, "?service.name=check%20out&region=a+b").status == 204
        assert r.read("last").endswith("service.name=check out region=a b")
        r.post(profile, "?a=1", ["X-Portcullis-Resource: b=2, c=x%2Cy", "x-portcullis-resource: d=4+4"])
        assert r.read("last").endswith("a=1 b=2 c=x,y d=4+4")


def test_what_a_query_takes_is_charged(program, profile):
    """The attributes, and the parsed query that they were read from."""
    query = "?" + "&".join(f"k{i}=" + "x" * 120 for i in range(60))
    with Receiver(program) as r:
        assert r.post(profile).status == 204
        plain = int(r.read("overhead"))
        assert r.post(profile, query).status == 204
        assert int(r.read("overhead")) - plain >= 2 * len(query)


def test_metadata_is_passed_only_if_it_is_asked_for(program, profile):
    for wanted in (True, False):
        with Receiver(program, include_metadata=wanted) as r:
            r.post(profile, headers=["X-Tenant: blue"])
            assert ("tenant=blue" in r.read("last")) == wanted


# ---- what is refused

def test_faults_of_the_body_are_400_and_named(program, profile):
    with Receiver(program) as r:
        for body, headers, text in [
            (b"", [], "the profile is empty"), (b"not a profile", [], ""), (profile[:-3], [], ""),
            (gzip.compress(profile)[:-20], [], "corrupt or truncated"),
            (profile, ["Content-Encoding: gzip"], "corrupt or truncated"),
            (gzip.compress(gzip.compress(gzip.compress(profile))), ["Content-Encoding: gzip"], ""),
            (gzip.compress(gzip.compress(profile)), [], ""),
            (b"x", ["Content-Type: multipart/form-data"], "boundary"),
            (*form((b"other", profile)), "no part named profile"),
            (*form((b"profile", profile), (b"profile", profile)), "more than one part"),
            (form((b"profile", profile))[0][:-9], form()[1], "multipart part 1"),
        ]:
            answer = r.post(body, headers=headers)
            assert answer.status == 400 and text in answer.body.decode(), answer.body
        assert r.post(profile).status == 204


@pytest.mark.parametrize("query, headers", [
    ("?canary=%", []), ("?=canary", []), ("?canary=%ff", []), ("?canary=1&canary=2", []),
    ("?canary=1", ["X-Portcullis-Resource: canary=2"]), ("", ["X-Portcullis-Resource: canary=%zz"]),
    ("?" + "&".join("canary%d=1" % i for i in range(65)), []), ("?%s=1" % ("canary" * 50), []),
    ("?a=" + "canary" * 700, []), ("", ["X-Portcullis-Resource: a=" + "canary" * 700]),
])
def test_bad_attributes_are_400_before_the_body_and_are_not_repeated(program, query, headers):
    with Receiver(program) as r, connect(r.port) as sock:
        sock.sendall(request(path=PATH + query, length=False,
                             headers=headers + ["Content-Length: 100000", "Expect: 100-continue"]))
        answer = read_answer(sock)
        assert answer.status == 400 and not answer.interim
        assert b"canary" not in answer.body and re.search(rb"entry \d", answer.body)
        assert r.refusals() == ["http:invalid"]
        assert not any("canary" in line for line in r.log)


@pytest.mark.parametrize("header", ["Content-Type: text/html", "Content-Type: application/json",
                                    "Content-Encoding: br", "Content-Encoding: gzip, gzip"])
def test_what_cannot_be_read_is_415(program, profile, header):
    with Receiver(program) as r:
        answer = r.post(profile, headers=[header])
        assert answer.status == 415 and b"supported: [" in answer.body
        assert r.refusals() == ["http:unsupported"]


def test_too_large_is_413_declared_chunked_and_inflated(program):
    with Receiver(program, max_request_body_size=MIB) as r:
        declared = request(path=PATH, headers=["Content-Length: %d" % (MIB + 1)], length=False)
        answer = ask_by(r.version, r.port, declared + b"x" * (MIB + 1))[0]
        assert answer.status == 413
        assert b"the body has %d bytes; max_request_body_size is %d" % (MIB + 1, MIB) in answer.body
        with connect(r.port) as sock:
            sock.sendall(request(path=PATH, headers=["Transfer-Encoding: chunked"], length=False))
            sock.sendall(chunked(b"x" * (MIB + 100000))[:-5])
            answer = read_answer(sock)
            assert answer.status == 413 and ended(sock)
            assert b"the body has more than %d bytes; max_request_body_size is %d" % (MIB, MIB) in answer.body
        for pack in (gzip.compress, zstd):
            answer = r.post(pack(b"\0" * (50 * MIB)))
            assert answer.status == 413
            assert b"the decompressed body has more than %d bytes; max_request_body_size is %d" % (MIB, MIB) in answer.body
            assert r.post(pack(b"\0" * (50 * MIB)), headers=["Content-Encoding: " + ("gzip" if pack != zstd else "zstd")]
                          ).status == 413
        charged = r.read("charged")
        assert charged.split()[2:] == ["http:too_large", "http:too_large"]
        assert charged.startswith("now=0 ") and int(re.search(r"most=(\d+)", charged)[1]) < 3 * MIB


def test_another_method_or_path(program, profile):
    with Receiver(program) as r:
        answer = ask(r.port, request("GET", PATH))[0]
        assert answer.status == 405 and answer.headers["allow"] == "POST"
        assert r.post(profile, path="/v1/profiles").status == 404


# ---- the gate

def test_a_full_gate_refuses_from_the_headers_with_a_hint(program, profile):
    with Receiver(program, limit=0) as r, connect(r.port) as sock:
        sock.sendall(request(path=PATH, headers=["Content-Length: 100000", "Expect: 100-continue"], length=False))
        answer = read_answer(sock)
        assert answer.status == 503 and int(answer.headers["retry-after"]) >= 1 and not answer.interim
        r.ask("limit 100000000", "limited")
        assert r.post(profile).status == 204


def test_a_body_of_unknown_length_is_charged_while_it_comes(program):
    with Receiver(program, limit=200000) as r, connect(r.port) as sock:
        sock.sendall(request(path=PATH, headers=["Transfer-Encoding: chunked"], length=False))
        sock.sendall(chunked(b"x" * 400000)[:-5])
        assert read_answer(sock).status == 503 and ended(sock)
        assert r.read("charged").startswith("now=0 most=196608")


def test_a_body_is_charged_as_it_arrives_never_from_its_announced_length(program):
    with Receiver(program) as r, connect(r.port) as sock:
        silent = [connect(r.port) for _ in range(20)]
        for s in silent:
            s.sendall(request(path=PATH, headers=["Content-Length: 20000000"], length=False))
        sock.sendall(request(path=PATH, headers=["Content-Length: 100000"], length=False))
        for sent, charged in [(1000, 16384), (20000, 32768), (50000, 65536), (99000, 100000)]:
            sock.sendall(b"x" * (sent - r.sent))
            r.sent = sent
            while not r.read("charged").startswith("now=%d " % charged):
                time.sleep(0.02)
        assert r.read("charged").startswith("now=100000 most=100000")
        assert int(r.read("held")) >= 21 * 32768  # their connections
        for s in silent:
            s.close()


def test_inflating_is_charged_before_it_happens(program):
    with Receiver(program, limit=MIB) as r:
        answer = r.post(gzip.compress(b"\0" * (10 * MIB)))
        assert answer.status == 503 and int(answer.headers["retry-after"]) >= 1
        assert r.read("charged").startswith("now=0 ")


def test_a_sender_that_vanishes_gives_its_charge_back(program):
    with Receiver(program) as r:
        with connect(r.port) as sock:
            sock.sendall(request(path=PATH, headers=["Content-Length: 100000"], length=False) + b"x")
            while "now=16384" not in r.read("charged"):
                time.sleep(0.05)
        while "now=0 " not in r.read("charged"):
            time.sleep(0.05)
        assert r.refusals() == ["http:cancelled"]


@pytest.mark.threads
def test_stop_and_many_senders(program, profile):
    with Receiver(program) as r:
        socks = [connect(r.port) for _ in range(20)]
        for sock in socks:
            sock.sendall(request(path=PATH, body=profile) * 3)
        r.tell("stop")
        for sock in socks:
            while True:
                try:
                    part = sock.recv(65536)
                except ConnectionResetError:
                    break
                if not part:
                    break
        assert r.read("charged").startswith("now=0 ")


# ---- configuration

@pytest.mark.parametrize("config, text", [
    ({}, "at least one of remote, file, self, or server must be configured"),
    ({"server": {}}, "server::endpoint: must be specified"),
    ({"self": {}}, "self: not supported; let remote scrape the endpoint of the extension pprof"),
    ({"server": {"endpoint": "127.0.0.1:0", "path": "/x"}}, "path"),
])
def test_configurations_that_are_errors(program, config, text):
    with Program(program, json.dumps(config), "1") as p:
        assert text in p.greeting


def test_a_busy_port_is_an_error(program):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        with Receiver(program, endpoint="127.0.0.1:%d" % s.getsockname()[1]) as r:
            assert "Address already in use" in r.greeting
