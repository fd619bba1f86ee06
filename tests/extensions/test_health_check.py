# SPDX-License-Identifier: Apache-2.0
"""The health_check extension over real sockets, beside a program that says whether it is ready."""
import datetime
import json
import re

import pytest

from harness.gateway import free_port
from harness.web import Program, ask, build, request


@pytest.fixture(scope="module")
def program():
    return build("extensions/health_serve")


def serve(program, **keys):
    port = free_port()
    p = Program(program, json.dumps(dict(keys, endpoint="127.0.0.1:%d" % port)))
    p.port = port
    return p


def get(p, path="/", method="GET"):
    return ask(p.port, request(method, path, headers=["Connection: close"]))[0]


def test_it_tells_the_collectors_json(program):
    with serve(program) as p:
        answer = get(p)
        assert answer.status == 503 and answer.headers["content-type"] == "application/json"
        assert json.loads(answer.body) == {"status": "Server not available", "upSince": "0001-01-01T00:00:00Z",
                                           "uptime": ""}
        p.ask("ready", "ok")
        answer = get(p)
        told = json.loads(answer.body)
        assert answer.status == 200 and told["status"] == "Server available"
        assert re.fullmatch(r"24h0m1\.5\d*s", told["uptime"])
        since = datetime.datetime.fromisoformat(re.sub(r"\.\d+Z", "+00:00", told["upSince"]))
        assert 86400 <= (datetime.datetime.now(datetime.timezone.utc) - since).total_seconds() < 86500
        p.ask("unready", "ok")
        assert get(p).status == 503


def test_details_are_shown_in_either_state_and_do_not_change_it(program):
    details = [{"component": "exporters::a", "state": "open"}]
    with serve(program) as p:
        p.ask("details", "ok")
        answer = get(p)
        assert answer.status == 503 and json.loads(answer.body)["details"] == details
        p.ask("ready", "ok")
        answer = get(p)
        assert answer.status == 200 and json.loads(answer.body)["details"] == details


def test_path_and_texts_are_the_operators(program):
    with serve(program, path="/healthz", response_body={"healthy": "fine", "unhealthy": "ill"}) as p:
        assert (get(p, "/healthz").status, get(p, "/healthz").body) == (503, b"ill") and get(p).status == 503
        p.ask("ready", "ok")
        assert (get(p, "/healthz?verbose").status, get(p, "/healthz").body) == (200, b"fine")
        assert (get(p).status, get(p).body.count(b'<a href="/healthz">')) == (200, 1)
        assert get(p, "/healthz", "POST").status == 405


def test_the_collectors_inert_key_is_accepted(program):
    with serve(program, check_collector_pipeline={"enabled": True, "interval": "5m"}) as p:
        assert p.greeting == "started"


@pytest.mark.parametrize("keys, text", [({"path": "health"}, "path must start with /"), ({"auth": {"a": "b"}}, "auth")])
def test_configurations_that_are_errors(program, keys, text):
    with serve(program, **keys) as p:
        assert text in p.greeting
