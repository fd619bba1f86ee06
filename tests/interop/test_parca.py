# SPDX-License-Identifier: Apache-2.0
"""Every real pprof through the gateway into Parca, and back: functions, values, labels, times."""
import re
import time

import grpc
import pytest

from harness import build as make
from harness import corpus, otlp, peers, pprof
from interop import gate

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}, max_request_body_size: 67108864}}
exporters:
  parca:
    endpoint: 127.0.0.1:{port:parca}
    tls: {insecure: true}
    normalized_addresses: true
    lift_labels: [thread.name]
    timeout: 60s
    retry_on_failure: {enabled: false}
service:
  pipelines:
    profiles: {receivers: [otlp, pprof], exporters: [parca]}
"""
NOW_MS = time.time_ns() // 10 ** 9 * 1000


# What Parca 0.21 answers otherwise when it is written to directly, too; sums, labels and times are right.
MERGES = "its answers add up different stacks of profiles with many"
UNFAITHFUL = {
    "cairo-steps-protostar-profile.pb.gz": MERGES,
    "go-cpu-googlepprof-large.pb.gz": MERGES,
    "go-cpu-pprofutils-anon-out.pb.gz": MERGES,
    "julia-alloc-swarmmakie-alloc-profile.pb.gz": MERGES,
    "ebpf-cpu-parca-profile.pb.gz": "the address of a location without a mapping is answered as 0",
    "go-unsymbolized-cpu-parca-stripped-cpu.pb.gz": "no stack is answered where no location has a function",
    "go-unsymbolized-cpu-parca-without-dwarf-cpu.pb.gz": "no stack is answered where no location has a function",
}


@pytest.fixture(scope="module")
def gateway(parca):
    with gate.gateway(CONFIG, parca=parca.port["http"]) as running:
        yield running


def dropped(gateway):
    return gateway.total("otelcol_ledger_dropped_samples")


def push(gateway, profile, name):
    """What was dropped of it is what Parca cannot hold."""
    before = dropped(gateway)
    status, _, text = peers.post(gateway.port["pprof"], profile.SerializeToString(), path="/v1/pprof?service.name=" + name)
    assert status == 204, text
    gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 0)
    assert gateway.balanced("profiles", "parca"), gateway.ledger("profiles", "parca")
    assert dropped(gateway) - before == sum(v < 0 for s in profile.sample for v in s.value)


def plain(text):
    return re.sub(r"[^A-Za-z0-9_]", "_", text) or "unknown"


def types_of(profile):
    """[(place, period type and unit as they are stored)] of the sample types."""
    reader = pprof.Reader(profile)
    for place, kind in enumerate(profile.sample_type):
        kind = tuple(map(plain, reader.kind(kind)))
        period = tuple(map(plain, reader.kind(profile.period_type))) if profile.HasField("period_type") else kind
        yield place, kind, period


def find_type(listed, kind, period, delta):
    """The one type of the list that has these parts, whatever its name is."""
    tail = ":".join([*kind, *period]) + (":delta" if delta else "")
    (found,) = {t for t in listed if t.split(":", 1)[1] == tail}
    return found


def scale(profile, kind, period):
    """Sums over time of a CPU profile's samples are told in its period's unit."""
    return profile.period if kind == ("samples", "count") and period[1] == "nanoseconds" else 1


def positive(profile, place):
    """What pprof.values has, of the samples that Parca can hold."""
    kept = pprof.pprof_pb2.Profile()
    kept.CopyFrom(profile)
    del kept.sample[:]
    kept.sample.extend(s for s in profile.sample if s.value[place] > 0)
    return pprof.values(kept, place)


@pytest.mark.parametrize("path", corpus.files("pprof/*"), ids=lambda p: p.name)
def test_a_real_pprof_comes_back(gateway, parca, path, record_property):
    profile = pprof.parse(path.read_bytes())
    profile.time_nanos, name = NOW_MS * 10 ** 6, re.sub(r"[^a-z0-9]", "-", path.name)
    push(gateway, profile, name)
    if path.name in UNFAITHFUL:
        record_property("otherwise", "%s (`%s`)" % (UNFAITHFUL[path.name], path.name))
    listed = parca.profile_types()
    for place, kind, period in types_of(profile):
        expected = positive(profile, place)
        if expected:
            full = find_type(listed, kind, period, profile.duration_nanos)
            assert path.name in UNFAITHFUL or parca.values(full, {"service_name": name}, NOW_MS) == expected, kind
            ((labels, times),) = parca.series(full, {"service_name": name}, NOW_MS - 1000, NOW_MS + 1000)
            assert labels["service_name"] == name
            assert times == {NOW_MS: sum(expected.values()) * scale(profile, kind, period)}


# ---- what ends Parca's process, or spoils its answers for everybody, does not reach it

def send(gateway, message):
    """By OTLP; not every random request is one that the gateway takes."""
    with peers.Client(gateway.port["otlp"]) as client:
        try:
            client.send(message)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 0)
    assert gateway.balanced("profiles", "parca"), gateway.ledger("profiles", "parca")


def refused(gateway):
    return gateway.total("otelcol_ledger_dropped_samples", exporter="parca", reason="permanent")


def odd(kind=("cpu", "nanoseconds"), period_type=("cpu", "nanoseconds"), resource=None, **keywords):
    m = make.Maker()
    p = m.profile(m.scope(m.resource(resource)), kind, period_type, **keywords)
    p.samples.add(stack_index=m.stack([m.location([m.function("main")])]), values=[1])
    p.samples.add(values=[1])
    return m.message


def bare():
    """Neither Resource nor Scope, a location with nothing, a line without a function."""
    message = odd()
    message.dictionary.location_table.add(lines=[{}])
    message.dictionary.stack_table.add(location_indices=[2, 1, 2])
    message.resource_profiles[0].ClearField("resource")
    message.resource_profiles[0].scope_profiles[0].ClearField("scope")
    message.resource_profiles[0].scope_profiles[0].profiles[0].samples.add(stack_index=2, values=[5])
    return message


ODD = {
    "no period type": odd(period_type=None),
    "empty period type": odd(period_type=("", "")),
    "empty unit": odd(kind=("cpu", ""), period_type=("cpu", "")),
    "empty type": odd(kind=("", ""), period_type=None),
    "dashes and dots": odd(kind=("a-b.c", "d e"), period_type=("f/g", "h:i")),
    "other alphabets": odd(kind=("时间", "é"), period_type=("😀", "1")),
    "bare": bare(),
    "odd keys": odd(resource={"": "a", "a.b": "c", "a-b": "d", "__name__": "e", "0": "f", "x": ""}),
    "a long value": odd(resource={"k": "v" * 100000}),
    "line breaks": odd(resource={"k\n": "v\n\0"}),
    "time 0": odd(time=0),
    "the last time": odd(time=2 ** 64 - 1),
    "the last signed time": odd(time=2 ** 63 - 1),
}


def is_well(parca):
    assert parca.process.popen.poll() is None, parca.log()
    return parca.profile_types()


@pytest.mark.parametrize("what", ODD)
def test_parca_stays_well(gateway, parca, what):
    before = refused(gateway)
    send(gateway, ODD[what])
    assert is_well(parca)
    assert refused(gateway) == before


def test_parca_stays_well_whatever_comes(gateway, parca):
    before = refused(gateway)
    for seed in range(150):
        send(gateway, make.RandomRequest(seed).make())
    assert is_well(parca)
    assert refused(gateway) == before


def test_lifted_labels_can_be_queried(gateway, parca):
    message = make.request(1, samples=40, service="lifted")
    message.resource_profiles[0].scope_profiles[0].profiles[0].time_unix_nano = NOW_MS * 10 ** 6
    send(gateway, message)
    reader, want = otlp.Reader(message), {}
    for s in message.resource_profiles[0].scope_profiles[0].profiles[0].samples:
        thread = dict(reader.attributes(s.attribute_indices))["thread.name"][0][1].strip("'")
        want[thread] = want.get(thread, 0) + s.values[0]
    kind = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"
    assert {thread: sum(parca.values(kind, {"service_name": "lifted", "thread_name": thread}, NOW_MS).values())
            for thread in want} == want
