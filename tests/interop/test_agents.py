# SPDX-License-Identifier: Apache-2.0
"""The manual's "Point your agents here": each agent runs the lines that the page prints, through the gateway that the page
prints, to Pyroscope. A second Pyroscope gets the same requests directly. Both then have the same: every type, every stack
with its sum, and of the labels those that the page's policy permits; and the sums are those of what the agent sent."""
import http.client
import json
import time
from collections import Counter

import pytest

from harness import book, build, otlp, peers, pprof
from interop import gate, partners
from interop.agent import CONFIGURATION, PERMITTED, REFUSAL
from interop.conftest import started
from interop.recorder import Recorder

WINDOW_MS = 3600 * 1000


@pytest.fixture
def store():
    """Empty."""
    with started(partners.NewPyroscope) as partner:
        yield partner


@pytest.fixture
def direct():
    with started(partners.NewPyroscope) as partner:
        yield partner


@pytest.fixture
def stage(store, tmp_path):
    """The page's gateway, with the store as pyroscope.internal."""
    places = {"http://pyroscope.internal:4040": "http://127.0.0.1:%d" % store.port["http"]}
    return book.Stage(gate.ROOT, gate.BINARY, tmp_path / "stage", b"", places)


@pytest.fixture
def gateway(request, stage):
    """With what the section of the agent adds."""
    text = request.getfixturevalue("agent").configuration() if "agent" in request.fixturenames else CONFIGURATION
    with gate.gateway(stage.adapt(text)) as g:
        yield g


def replay(exchanges, port):
    for exchange in exchanges:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", exchange.target, exchange.body, exchange.headers)
        answer = connection.getresponse()
        assert answer.status == 200, (exchange.target, answer.status, answer.read())
        connection.close()


def window():
    now = time.time_ns() // 10**6
    return now - WINDOW_MS, now + WINDOW_MS


def arrived(store, service):
    """{type: {stack: sum}}"""
    labels = {"service_name": service}
    found = {kind: store.values(kind, labels, *window()) for kind in store.profile_types(*window())}
    return {kind: stacks for kind, stacks in found.items() if stacks}


def labels(store, service):
    """{type: {labels}}, of those that the page's policy permits."""
    found = {}
    for row in store.series({"service_name": service}, *window()):
        found.setdefault(row["__profile_type__"], set()).add(
            frozenset((name, row[name]) for name in (*PERMITTED, "service_name") if name in row))
    return found


def sums(found):
    """{(type, unit): sum}"""
    total = Counter()
    for kind, stacks in found.items():
        total[tuple(kind.split(":")[1:3])] += sum(stacks.values())
    return total


def sent(recorder):
    """The same, of pprofs that were sent. The store drops samples without a stack."""
    total = Counter()
    for profile in recorder.pprofs():
        for place, kind in enumerate(map(pprof.Reader(profile).kind, profile.sample_type)):
            total[kind] += sum(number for stack, number in pprof.values(profile, place).items() if len(stack))
    return +total


def extra(store, service):
    """Labels that were not to pass."""
    names = {name for row in store.series({"service_name": service}, *window()) for name in row}
    return {name for name in names if not name.startswith("__")} - {*PERMITTED, "service_name"}


def test_an_agent_arrives_by_the_printed_lines(store, direct, gateway, stage, agent):
    with Recorder(stage.port(4040)) as pyroscope, Recorder(stage.port(4041)) as posts, Recorder(stage.port(4318)) as http:
        agent.send({4040: pyroscope.port, 4041: posts.port, 4317: stage.port(4317), 4318: http.port, 6060: stage.port(6060)})
    exchanges = pyroscope.exchanges + posts.exchanges + http.exchanges
    assert {exchange.status for exchange in exchanges} <= {200, 204}
    agent.settle(gateway, exchanges)
    gate.flushed(gateway, "pyroscope")
    found = arrived(store, agent.service)
    assert found and not extra(store, agent.service)
    agent.check(found, exchanges)
    assert sums(found) == agent.expected(exchanges, sent(pyroscope) + sent(posts))
    if agent.as_direct:
        replay(pyroscope.exchanges, direct.port["http"])
        assert found == arrived(direct, agent.service)
        assert labels(store, agent.service) == labels(direct, agent.service)


# ---- what is refused

def only(name):
    """One agent instead of all."""
    return pytest.mark.parametrize("agent", [agent for agent in partners.versions("agent") if agent.name == name], indirect=True,
                                   ids=lambda agent: agent.version)


@only("pyroscope-java")
def test_java_in_its_default_format_loses_its_profiles_and_says_why(store, gateway, stage, agent):
    with Recorder(stage.port(4040)) as pyroscope:
        printed = agent.refused(pyroscope.port)
    assert {exchange.status for exchange in pyroscope.exchanges} == {415}
    starts = [exchange.query["from"] for exchange in pyroscope.exchanges]
    assert len(starts) > 1 and len(set(starts)) == len(starts), "a request was repeated"
    lines = [line.split(" ", 2)[2] for line in printed.splitlines() if "Error uploading" in line]
    assert set(lines) == set(REFUSAL.splitlines())
    assert len(lines) >= len(starts) - 1, "all but the one that was sent as it ended"
    assert not store.profile_types(*window())
    assert gateway.total("otelcol_receiver_refused_requests") == len(starts)


@only("py-spy")
@pytest.mark.parametrize("form", ["flamegraph", "chrometrace"])
@pytest.mark.parametrize("query", ["", "&format=speedscope", "&format=pprof"])
def test_what_py_spy_writes_for_viewers_is_refused(gateway, stage, agent, form, query):
    body = agent.written(form)
    status, _, text = peers.post(stage.port(4040), body, "/ingest?name=checkout" + query)
    assert status == 422 and json.loads(text)["message"]
    assert gateway.total("otelcol_receiver_refused_requests") == 1
    assert not gateway.total("otelcol_ledger_in_samples")


# ---- gRPC

def test_grpc_of_any_language_arrives(store, gateway, stage, client):
    """OTLP that programs of ours send on other implementations of gRPC."""
    sent = [build.request(seed, service="checkout") for seed in (1, 2)]
    for request in sent:
        request.resource_profiles[0].scope_profiles[0].profiles[0].time_unix_nano = time.time_ns()
    client.export(stage.port(4317), [request.SerializeToString() for request in sent], health=False)
    gate.flushed(gateway, "pyroscope")
    want = Counter()
    for request in sent:
        for resource, _, head, samples in otlp.profiles(request):
            for stack, _, _, values, _ in samples:
                want[head[0], names(stack)] += sum(values)
    found = Counter()
    for kind, stacks in arrived(store, "checkout").items():
        for stack, number in stacks.items():
            found[tuple(kind.split(":")[1:3]), tuple(frame[0] for frame in stack)] += number
    assert found == want and not extra(store, "checkout")


def names(stack):
    """The functions, from the leaf."""
    return tuple(function[0] for _, _, lines, _ in stack for function, _, _ in lines)
