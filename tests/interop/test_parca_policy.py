# SPDX-License-Identifier: Apache-2.0
"""Every pprof through the gateway to Parca, and read back from it: functions, values, labels of series and times are
those of the input after policy. Labels of samples become labels of series, because the configuration lifts them.

What Parca 0.21 cannot keep: values that are not above 0. What it answers otherwise than it was
given: addresses less the start of their mapping, and MIXED: it knows a location by mapping and address alone, through all
that it has stored, so it answers other frames where these tell no functions apart (code made at run time, addresses of
0, another build of a program of the same name), and none where no function of a profile has a name. Sums, labels and
times of these are right.
"""
import re

import grpc
import pytest

from harness import peers
from interop import gate, pprofs
from interop.pprofs import BODIES, MS, SERVICE, WINDOW

GATEWAY = pprofs.RECEIVER + """
exporters:
  parca: {endpoint: "127.0.0.1:{port:store}", tls: {insecure: true}, sending_queue: {num_consumers: 1}, timeout: 60s, lift_labels: %s}
service:
  pipelines:
    profiles: {receivers: [pprof], processors: [allowlist], exporters: [parca]}
""" % pprofs.KEYS
MIXED = {
    "made-many", "cairo-steps-protostar-profile.pb.gz", "cpp-wall-libdatadog-ownedsample-d589.pb.zst",
    "ebpf-cpu-parca-profile.pb.gz", "ebpf-node-cpu-parca-node-profile.pb.gz", "go-cpu-googlepprof-large.pb.gz",
    "go-cpu-parca-series8425857.pb.gz", "go-cpu-pprofutils-anon-in.pb", "go-cpu-pprofutils-anon-out.pb.gz",
    "go-heap-ddtracego-stress-failure-2-after.pb", "go-unsymbolized-cpu-parca-stripped-cpu.pb.gz",
    "go-unsymbolized-cpu-parca-without-dwarf-cpu.pb.gz", "ruby-cpu-ddtracerb-repro-loop-issue-1.pb"}
NAMES = {"cpu": "process_cpu", "space": "memory", "inuse_space": "memory", "contentions": "mutex"}


def clean(text):
    """What a query can name."""
    return re.sub("[^A-Za-z0-9_]", "_", text) or "unknown"


def expected(profile):
    """{profile type: {labels: {stack: value}}}"""
    found = {}
    for i, kind in enumerate(pprofs.kinds(profile)):
        period = pprofs.period_type(profile)
        period = period if period[0] else kind
        name = NAMES.get(period[0], clean(period[0]))
        found[":".join([name, *map(clean, [*kind, *period])] + ["delta"] * (profile.duration_nanos > 0))] = pprofs.values(
            profile, i, numbers=True)
    return found


def relative(profile):
    """The same with addresses as the store has them."""
    found = type(profile)()
    found.CopyFrom(profile)
    start = {m.id: m.memory_start for m in found.mapping}
    for x in found.location:
        x.address = (x.address - start.get(x.mapping_id, 0)) % 2 ** 64
    return found


@pytest.fixture(scope="module")
def arrived(parca):
    """The store with everything in it, sent by one consumer in this order: Parca refuses what comes while it writes, and
    what it has stored changes how it reads what comes next (MIXED)."""
    with gate.gateway(GATEWAY, store=parca.port["http"]) as g:
        for name, profile in BODIES.items():
            status, _, text = peers.post(g.port["pprof"], profile.SerializeToString(),
                                         path="/v1/pprof?service.name=" + SERVICE[name])
            assert status == 204, (name, text)
        gate.flushed(g, "parca")
        assert g.total("otelcol_ledger_dropped_samples", reason="permanent") == 0, g.log()
        yield parca


def labels_of(row):
    return frozenset((k, v) for k, v in row.items() if k not in ("__name__", "service_name"))


def shown(kind, profile, stacks):
    """The sum that the list of series shows: of `samples`/`count`, times the period."""
    return sum(stacks.values()) * (profile.period or 1 if kind.split(":")[1:3] == ["samples", "count"] else 1)


@pytest.mark.parametrize("name", BODIES)
def test_labels_times_and_sums_arrive(arrived, name):
    for kind, parts in expected(BODIES[name]).items():
        series = arrived.series(kind, {"service_name": SERVICE[name]}, *WINDOW)
        assert {labels_of(row): times for row, times in series} == {
            labels: {MS: shown(kind, BODIES[name], stacks)} for labels, stacks in parts.items()}


@pytest.mark.parametrize("name", sorted(BODIES.keys() - MIXED))
def test_functions_and_values_arrive(arrived, name):
    for kind, parts in expected(relative(BODIES[name])).items():
        for labels, stacks in parts.items():
            matchers = dict(pprofs.exactly(labels, parts), service_name=SERVICE[name])
            assert arrived.values(kind, matchers, MS) == stacks, (kind, sorted(labels))


def test_the_list_of_types_is_whole(arrived):
    """One profile without a period type, sent as it is, would make it fail for everybody."""
    assert set(arrived.profile_types()) == {kind for profile in BODIES.values() for kind in expected(profile)}


def test_what_the_store_refuses_as_sent_arrived_all_the_same(arrived):
    with pytest.raises(grpc.RpcError, match="id is not sequential"):
        arrived.write(({"__name__": "direct", "service_name": "direct"}, BODIES["made-ids"].SerializeToString()))
