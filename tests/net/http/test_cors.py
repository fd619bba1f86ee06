# SPDX-License-Identifier: Apache-2.0
"""What browsers of other origins are told, over both versions of HTTP. MODE picks the build."""
import json

import pytest

from harness.web import Program, build, request
from harness.web2 import ask_by

WORDS = ("access-control-allow-origin", "access-control-allow-credentials", "access-control-allow-methods",
         "access-control-allow-headers", "access-control-max-age", "access-control-expose-headers", "vary")
ORIGIN = "https://app.example.com"


@pytest.fixture(scope="module")
def program():
    return build("net/http/http_serve")


@pytest.fixture(params=["1.1", "2"])
def version(request):
    return request.param


def serve(program, **cors):
    return Program(program, json.dumps({"endpoint": "127.0.0.1:0", "cors": cors, "response_headers": {"X-Served-By": "gate"}}))


def send(s, version, method="POST", path="/echo", **headers):
    lines = ["%s: %s" % (name.replace("_", "-"), value) for name, value in headers.items()]
    answer = ask_by(version, s.port, request(method, path, headers=lines))[0]
    assert answer.headers["x-served-by"] == "gate"
    return answer.status, {w[15:] if w != "vary" else w: answer.headers[w] for w in WORDS if w in answer.headers}


def preflight(s, version, origin=ORIGIN, method="POST", headers=None, **more):
    more.update({"Access_Control_Request_Method": method})
    if headers is not None:
        more["Access_Control_Request_Headers"] = headers
    return send(s, version, "OPTIONS", Origin=origin, **more)


VARY = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"


def test_a_preflight_is_answered_with_what_is_allowed(program, version):
    with serve(program, allowed_origins=[ORIGIN], allowed_headers=["X-Token"], max_age=600) as s:
        assert preflight(s, version, headers="x-token") == (204, {
            "allow-origin": ORIGIN, "allow-credentials": "true", "allow-methods": "POST", "allow-headers": "x-token",
            "max-age": "600", "vary": VARY})
        assert preflight(s, version, path="/nowhere") == preflight(s, version), "the path does not matter"


@pytest.mark.parametrize("keys", [dict(origin="https://evil.example"), dict(method="DELETE"), dict(headers="x-other"),
                                  dict(headers="x-token,x-other"), dict(headers="content-type"), dict(origin="")])
def test_a_preflight_for_more_is_answered_with_nothing(program, version, keys):
    with serve(program, allowed_origins=[ORIGIN], allowed_headers=["X-Token"]) as s:
        assert preflight(s, version, **keys) == (204, {"vary": VARY})


@pytest.mark.parametrize("asked, allowed", [
    ("content-type", True), ("accept,content-type,x-requested-with", True), ("Content-Type , X-Requested-With", True),
    ("x-token", False), ("content-typ", False), ("", True), (None, True)])
def test_headers_that_are_allowed_by_default(program, version, asked, allowed):
    with serve(program, allowed_origins=["*"]) as s:
        assert ("allow-origin" in preflight(s, version, headers=asked)[1]) == allowed


def test_any_header_is_allowed_by_a_star(program, version):
    with serve(program, allowed_origins=[ORIGIN], allowed_headers=["*"]) as s:
        assert preflight(s, version, headers="x-a,x-b")[1]["allow-headers"] == "x-a,x-b"


@pytest.mark.parametrize("pattern, origin, allowed", [
    ("*", "https://x.example", "*"), ("https://*.example.com", ORIGIN, ORIGIN),
    ("https://*.example.com", "https://example.com", None), ("https://*.example.com", "https://a.example.com.evil", None),
    ("https://*.example.com", "http://a.example.com", None), ("HTTPS://App.Example.com", ORIGIN, ORIGIN),
    ("http://localhost:*", "http://localhost:8080", "http://localhost:8080"), ("https://a*a", "https://a", None),
])
def test_origins(program, version, pattern, origin, allowed):
    with serve(program, allowed_origins=["https://other.example", pattern]) as s:
        assert send(s, version, Origin=origin)[1].get("allow-origin") == allowed
        assert preflight(s, version, origin)[1].get("allow-origin") == allowed


def test_every_response_says_it_errors_too(program, version):
    with serve(program, allowed_origins=[ORIGIN], exposed_headers=["X-A", "X-B"]) as s:
        allowed = {"allow-origin": ORIGIN, "allow-credentials": "true", "expose-headers": "X-A, X-B", "vary": "Origin"}
        assert send(s, version, Origin=ORIGIN) == (200, allowed)
        assert send(s, version, path="/nowhere", Origin=ORIGIN) == (404, allowed)
        assert send(s, version, path="/refuse", Origin=ORIGIN) == (503, allowed)
        assert send(s, version) == (200, {"vary": "Origin"})
        assert send(s, version, "DELETE", Origin=ORIGIN) == (405, {"vary": "Origin"})


def test_options_that_is_no_preflight_goes_to_its_route(program, version):
    with serve(program, allowed_origins=[ORIGIN]) as s:
        assert send(s, version, "OPTIONS", Origin=ORIGIN)[0] == 405


def test_a_negative_age_forbids_browsers_to_keep_the_answer(program, version):
    with serve(program, allowed_origins=[ORIGIN], max_age=-1) as s:
        assert preflight(s, version)[1]["max-age"] == "0"


def test_without_origins_there_is_no_cors_and_headers_alone_are_told(program, version):
    with serve(program, allowed_headers=["X-Token"]) as s:
        assert send(s, version, Origin=ORIGIN) == (200, {})
        assert preflight(s, version)[0] == 405
    assert any("no allowed_origins" in line for line in s.log)


@pytest.mark.parametrize("keys, text", [({"exposed_headers": ["a b"]}, "cors::exposed_headers[0]"),
                                        ({"allowed_headers": ["x", "a\r\nb"]}, "cors::allowed_headers[1]")])
def test_what_is_no_header_is_an_error(program, keys, text):
    with serve(program, **keys) as s:
        assert s.greeting.startswith("error") and text in s.greeting
