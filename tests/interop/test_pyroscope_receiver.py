# SPDX-License-Identifier: Apache-2.0
"""Clients of Pyroscope write to it directly, and through the gateway: it then has the same series, types and values."""
import gzip
import json
import urllib.parse

import pytest

import interop_stores_pb2 as messages
from harness import build as make
from harness import peers
from interop import gate
from interop.pprofs import BODIES, NOW, SERVICE, WINDOW

GATEWAY = """
receivers:
  pyroscope: {endpoint: "127.0.0.1:{port:in}", max_request_body_size: 67108864}
exporters:
  pyroscope:
    endpoint: "http://127.0.0.1:{port:store}"
    preset: PRESET
    limits: {max_bytes: 60000000}
    retry_on_failure: {initial_interval: 200ms}
service:
  pipelines:
    profiles: {receivers: [pyroscope], exporters: [pyroscope]}
"""
PUSH = "/push.v1.PusherService/Push"


class Pair:
    """A store and a gateway before it."""

    def __init__(self, store, g):
        self.store, self.gateway = store, g

    def ingest(self, name, labels, body, headers=None, **query):
        """To both; the status of each. The services are called direct-NAME and through-NAME."""
        found = []
        for who in ("direct-", "through-"):
            series = who + name + "{%s}" % ",".join("%s=%s" % x for x in labels.items())
            found.append(self.post(who, "/ingest?" + urllib.parse.urlencode({"name": series, **query}), body, headers or {}))
        return found

    def push(self, name, *series):
        return [self.post(who, PUSH, push(dict(labels, service_name=who + name), *bodies), {"Content-Type": "application/proto"})
                for labels, *bodies in series for who in ("direct-", "through-")]

    def post(self, who, path, body, headers):
        if who == "direct-":
            return self.store.request("POST", path, body, headers)[0]
        status = peers.post(self.gateway.port["in"], body, path, headers)[0]
        gate.flushed(self.gateway, "pyroscope")
        return status

    def series(self, service):
        """All labels of all series but the service's name."""
        return {frozenset((k, v) for k, v in row.items() if k not in ("service_name", "__service_name__"))
                for row in self.store.series({"service_name": service}, *WINDOW)}

    def check(self, name):
        """The store has something of the profile, and the same of both; returns its types."""
        direct, through = self.series("direct-" + name), self.series("through-" + name)
        assert direct and through == direct, (list(map(dict, direct - through)), list(map(dict, through - direct)))
        kinds = {dict(row)["__profile_type__"] for row in direct}
        for kind in kinds:
            sums = [self.store.values(kind, {"service_name": who + name}, *WINDOW) for who in ("direct-", "through-")]
            assert sums[0] and sums[0] == sums[1], (kind, sums[0] - sums[1], sums[1] - sums[0])
        return kinds


def push(labels, *bodies):
    message = messages.PushRequest()
    row = message.series.add(labels=[messages.Label(name=k, value=v) for k, v in sorted(labels.items())])
    for body in bodies:
        row.samples.add(raw_profile=body)
    return message.SerializeToString()


def form(profile, config=None):
    parts = [("profile", profile)] + ([("sample_type_config", json.dumps(config).encode())] if config else [])
    body = b"".join(b'--b0\r\nContent-Disposition: form-data; name="%s"; filename="x"\r\n\r\n%s\r\n' % (n.encode(), c)
                    for n, c in parts)
    return body + b"--b0--\r\n", {"Content-Type": "multipart/form-data; boundary=b0"}


def timed(profile, at=NOW):
    profile.time_nanos = at
    return profile


@pytest.fixture(scope="module")
def pair(pyroscope):
    preset = "v2" if pyroscope.takes_otlp else "v1"
    with gate.gateway(GATEWAY.replace("PRESET", preset), store=pyroscope.port["http"]) as g:
        yield Pair(pyroscope, g)


LABELS = {"region": "eu", "dotted.tag": "v1", "otel.scope.name": "com.grafana.pyroscope/go", "__session_id__": "77e425ea48b3919f"}
HEAP = (("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes"))
LOCKS = (("contentions", "count"), ("delay", "nanoseconds"))
BLOCK = {"contentions": {"display-name": "block_count"}, "delay": {"display-name": "block_duration"}}


@pytest.mark.parametrize("name, types, config", [
    ("cpu", (("samples", "count"), ("cpu", "nanoseconds")), None), ("heap", HEAP, None), ("mutex", LOCKS, None),
    ("block", LOCKS, BLOCK), ("goroutine", (("goroutine", "count"),), {"goroutine": {"display-name": "goroutines"}}),
    ("wall", (("samples", "count"), ("wall", "nanoseconds"), ("cpu", "nanoseconds")), None), ("other", (("foo", "bar"),), None)])
@pytest.mark.parametrize("form_", ["form", "raw"])
def test_what_a_client_ingests_arrives_as_from_itself(pair, name, types, config, form_):
    profile = timed(make.pprof(1, types=types, labels=("thread_name",)))
    body = gzip.compress(profile.SerializeToString())
    name = "%s-%s" % (name, form_)
    if form_ == "raw":
        statuses = pair.ingest(name, LABELS, body, format="pprof", spyName="nodespy", sampleRate=100)
    else:
        body, headers = form(body, config)
        statuses = pair.ingest(name, LABELS, body, headers, spyName="gospy", units="", aggregationType="", sampleRate=0,
                               **{"from": NOW, "until": NOW + 10 ** 10})
    assert statuses == [200, 200]
    kinds = pair.check(name)
    assert name != "block-form" or {kind.split(":")[0] for kind in kinds} == {"block"}


@pytest.mark.parametrize("spy", ["pyspy", "rbspy", "gospy"])
def test_functions_have_the_names_that_the_store_gives_them(pair, spy):
    """Old versions put the line between file and name."""
    if spy != "gospy" and not pair.store.takes_otlp:
        pytest.skip("an old version")
    profile = timed(make.pprof(1))
    assert pair.ingest(spy, {}, profile.SerializeToString(), format="pprof", spyName=spy) == [200, 200]
    pair.check(spy)


STACKS = b"main;run;work 12\nmain;run 3\nmain;other 4\n"


def node(name, count, *children):
    return bytes([len(name)]) + name + bytes([count, len(children)]) + b"".join(children)


TEXTS = {
    "folded": STACKS, "lines": b"main;run\n" * 3 + b"main;other\n", "": STACKS,
    "tree": node(b"", 0, node(b"main", 0, node(b"other", 4), node(b"run", 3, node(b"work", 12)))),
    "trie": node(b"", 0, node(b"main;", 0, node(b"other", 4), node(b"run", 3, node(b";work", 12)))),
}


@pytest.mark.parametrize("form_", TEXTS)
@pytest.mark.parametrize("suffix", [".cpu", ".alloc_space", ".goroutines", ""])
def test_texts_arrive_as_from_the_client_itself(pair, form_, suffix):
    """Not speedscope: these versions ignore the unit of its weights, and multiply them by 100."""
    query = dict({"format": form_} if form_ else {}, **{"from": NOW, "until": NOW + 10 ** 10}, sampleRate=50, spyName="x")
    service = "text-%s%s" % (form_, suffix.replace(".", "-"))
    name = service + suffix
    assert pair.ingest(name, {"region": "eu"}, TEXTS[form_], **query) == [200, 200]
    pair.check(service)


def test_what_a_client_pushes_arrives_as_from_itself(pair):
    cpu = timed(make.pprof(1, labels=("thread_name",)))
    labels = {"__name__": "process_cpu", **LABELS}
    assert pair.push("push", (labels, gzip.compress(cpu.SerializeToString()))) == [200, 200]
    assert pair.check("push")
    lock = timed(make.pprof(1, types=(("lock_count", "count"),), labels=()))
    assert pair.push("lock", ({"__name__": "exception", "__delta__": "false"}, lock.SerializeToString())) == [200, 200]
    assert {kind.split(":")[0] for kind in pair.check("lock")} == {"exception"}


@pytest.mark.parametrize("delta", [{}, {"__delta__": "false"}])
def test_cumulative_values_are_what_the_store_makes_of_them(pair, delta):
    name = "cumulative%d" % len(delta)
    for i, n in enumerate((10, 14, 21)):
        profile = make.pprof(1, samples=1, types=(("alloc_objects", "count"), ("inuse_objects", "count")), labels=())
        profile.sample[0].value[:] = [n, n]
        body = timed(profile, NOW + i * 10 ** 9).SerializeToString()
        assert pair.push(name, ({"__name__": "memory", **delta}, body)) == [200, 200]
    pair.check(name)


@pytest.mark.parametrize("name", BODIES)
def test_every_profile_arrives_as_from_the_client_itself(pair, name):
    """Or the store refuses it directly: test_pyroscope.py has what the exporter makes of these, and of negative values."""
    profile, service = BODIES[name], SERVICE[name]
    if any(n < 0 for s in profile.sample for n in s.value):
        pytest.skip("it has negative values")
    direct, through = pair.ingest(service, {"region": "eu"}, profile.SerializeToString(), format="pprof")
    assert through == 200
    if direct == 200 and pair.series("direct-" + service):
        pair.check(service)
