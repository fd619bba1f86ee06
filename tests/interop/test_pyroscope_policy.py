# SPDX-License-Identifier: Apache-2.0
"""Every pprof through the gateway to Pyroscope, as it starts without a limit changed, and read back from it: functions,
values, labels and times are those of the input after policy.

What Pyroscope 1.12 itself changes of what it is given, also when it is given the original:
- FORGOTTEN: a location without functions whose mapping says that it has them loses its address.
- REPAIRED: of Go heap profiles it completes stacks that the runtime cut at 32 frames.
- HIDDEN: the label `profile_id` (as `span_id`) does not become a label of the series.
"""
import collections

import pytest

from harness import peers
from interop import gate, pprofs
from interop.pprofs import BODIES, MS, SERVICE, WINDOW
from interop.pyroscope import Pyroscope

GATEWAY = pprofs.RECEIVER + """
exporters:
  pyroscope: {endpoint: "http://127.0.0.1:{port:store}", retry_on_failure: {initial_interval: 200ms}}
service:
  pipelines:
    profiles: {receivers: [pprof], processors: [allowlist], exporters: [pyroscope]}
"""
REPAIRED = {"go-heap-ddtracego-big-heap.pb", "go-heap-parca-alloc-space-delta.pb.gz", "go-heap-pyroscopeio-heap.pb",
            "go-heap-pyroscopeio-heap.pb.gz"}
# As sent, the store refuses these, with these words.
REFUSED = {"made-many": "16000", "made-dashes": "contains -",
           "go-cpu-googlepprof-large.pb.gz": "rate limit", "go-heap-ddtracego-stress-failure-2-after.pb": "16000",
           "go-heap-ddtracego-stress-failure-2-before.pb": "16000", "cpp-wall-libdatadog-ownedsample-d589.pb.zst": "contains -",
           "php-wall-libdatadog-profile.pb": "contains -", "ruby-cpu-ddtracerb-repro-loop-issue-1.pb": "contains -",
           "synthetic-cpu-profcorrectness-profile.pb.gz": "contains -"}
# The others of more than 16,000 samples are fewer once policy has made some of them equal.
PARTED = {"made-many", "go-cpu-googlepprof-large.pb.gz"}
NAMES = [("wall", {"wall"}, ()), ("off_cpu", {"off_cpu"}, ()), ("process_cpu", (), ("cpu",)),
         ("memory", {"space", "objects"}, ("alloc_", "inuse_")), ("mutex", {"contentions", "delay"}, ("mutex_",)),
         ("block", (), ("block_",)), ("goroutines", (), ("goroutine",))]


def name_of(profile):
    """By the table of the manual."""
    types = [kind for kind, _ in pprofs.kinds(profile)]
    for among in types, [pprofs.period_type(profile)[0]]:
        for name, whole, words in NAMES:
            if any(t in whole or any(w in t for w in words) for t in among):
                return name
    return "process_cpu" if types[-1] == "samples" else pprofs.legacy(types[-1]) or "unknown"


def expected(profile):
    """{profile type: {labels: {stack: value}}}"""
    def mended(kind):
        return (kind[0].replace("-", "_") or "unknown", kind[1])

    kinds = pprofs.kinds(profile)
    period = pprofs.period_type(profile)
    if not profile.HasField("period_type") or not period[0]:
        period = mended(kinds[0])
    found = {":".join([name_of(profile), *mended(kind), *period]): pprofs.values(profile, i)
             for i, kind in enumerate(kinds)}
    if kinds == [("samples", "count")] and period == ("cpu", "nanoseconds"):
        found["process_cpu:cpu:nanoseconds:cpu:nanoseconds"] = {
            labels: collections.Counter({stack: n * profile.period for stack, n in stacks.items()})
            for labels, stacks in pprofs.values(profile, 0).items()}
    return found


def forgotten(profile):
    """The same without the addresses that the store will not know."""
    found = type(profile)()
    found.CopyFrom(profile)
    symbolised = {m.id for m in found.mapping if m.has_functions}
    for x in found.location:
        if x.mapping_id in symbolised:
            x.address = 0
    return found


@pytest.fixture(scope="module")
def arrived(pyroscope):
    """The store with everything in it."""
    with Pyroscope() as store, gate.gateway(GATEWAY, store=store.port["http"]) as g:
        for name, profile in BODIES.items():
            status, _, text = peers.post(g.port["pprof"], profile.SerializeToString(),
                                         path="/v1/pprof?service.name=" + SERVICE[name])
            assert status == 204, (name, text)
            gate.flushed(g, "pyroscope")
        assert g.total("otelcol_ledger_dropped_samples") == 0
        yield store


def series(store, service):
    """{profile type: the labels of its series, but for those that every series has}"""
    found = {}
    for row in store.series({"service_name": service}, *WINDOW):
        labels = frozenset((k, v) for k, v in row.items() if not k.startswith("__") and k != "service_name")
        found.setdefault(row["__profile_type__"], set()).add(labels)
    return found


@pytest.mark.parametrize("name", BODIES)
def test_functions_values_and_labels_arrive(arrived, name):
    want = expected(forgotten(BODIES[name]))
    have = series(arrived, SERVICE[name])
    assert have == {kind: set(parts) for kind, parts in want.items()}
    if name in REPAIRED:
        return
    for kind, parts in want.items():
        for labels, stacks in parts.items():
            matchers = dict(pprofs.exactly(labels, parts), service_name=SERVICE[name])
            assert arrived.values(kind, matchers, *WINDOW) == stacks, (kind, sorted(labels))


@pytest.mark.parametrize("name", BODIES)
def test_times_arrive(arrived, name):
    """To the millisecond; parts of a profile that was too large as a whole follow each other by one."""
    kind, labels = min(series(arrived, SERVICE[name])), {"service_name": SERVICE[name]}

    def between(start, end):
        return sum(arrived.values(kind, labels, start, end).values())

    whole = between(*WINDOW)
    if name in PARTED:
        assert between(MS - 1, MS) < whole and between(MS, MS + 9) == whole
    else:
        assert between(MS - 1, MS) == between(MS, MS + 1) == whole


@pytest.mark.parametrize("name", sorted(REFUSED.keys() & BODIES.keys()))
def test_what_the_store_refuses_as_sent_arrived_all_the_same(arrived, name):
    status, text = arrived.push(({"__name__": "direct", "service_name": "direct-" + SERVICE[name]},
                                   BODIES[name].SerializeToString()))
    assert status in (400, 429) and REFUSED[name] in text.decode()


@pytest.mark.parametrize("name", sorted(REPAIRED & BODIES.keys()))
def test_what_the_store_repairs_is_the_same_as_without_the_gateway(arrived, name):
    service = "direct-" + SERVICE[name]
    assert arrived.push(({"__name__": "memory", "service_name": service, "__delta__": "false"},
                         BODIES[name].SerializeToString()))[0] == 200
    for kind in series(arrived, SERVICE[name]):
        assert arrived.values(kind, {"service_name": service}, *WINDOW) == arrived.values(
            kind, {"service_name": SERVICE[name]}, *WINDOW)
