# SPDX-License-Identifier: Apache-2.0
"""Every pprof through the gateway to Parca, and read back from it: functions, values, labels of series and times are
those of the input after policy. Labels of samples become labels of series, because the configuration lifts them.

What Parca cannot keep: values that are not above 0. What it answers otherwise than it was given: addresses less the
start of their mapping (where the configuration does not say that they are such), and MIXED: it knows a location by mapping
and address alone, so it answers other frames where these do not distinguish functions of a profile, and none where no
function of a profile has a name. Sums, labels and times of these are right. It knows them so through all that it has
stored, of all senders: therefore each profile is read back from a store of its own.
"""
import re

import grpc
import pytest

from harness import build as make
from harness import otlp, peers, pprof
from interop import gate, pprofs, process
from interop.pprofs import BODIES, MS, SERVICE, WINDOW

CORPUS_GATEWAY = pprofs.RECEIVER + """
exporters:
  parca:
    endpoint: "127.0.0.1:{port:store}"
    tls: {insecure: true}
    sending_queue: {num_consumers: 1}
    timeout: 60s
    lift_labels: KEYS
    labels: LABELS
service:
  pipelines:
    profiles: {receivers: [pprof], processors: [allowlist], exporters: [parca]}
"""
SHARED = "it answers other frames where mapping and address do not distinguish functions"
UNNAMED = "no stack is answered where no location has a function"
ONLY_OLD = ["cairo-steps-protostar-profile.pb.gz", "go-cpu-googlepprof-large.pb.gz"]
MIXED = {
    **dict.fromkeys(ONLY_OLD, SHARED),
    "ebpf-cpu-parca-profile.pb.gz": SHARED,
    "ebpf-node-cpu-parca-node-profile.pb.gz": SHARED,
    "go-unsymbolized-cpu-parca-stripped-cpu.pb.gz": UNNAMED,
    "go-unsymbolized-cpu-parca-without-dwarf-cpu.pb.gz": UNNAMED,
}
NAMES = {"cpu": "process_cpu", "space": "memory", "inuse_space": "memory", "contentions": "mutex"}


def clean(text):
    """What a query can name."""
    return re.sub("[^A-Za-z0-9_]", "_", text) or "unknown"


def expected(profile, names):
    """{profile type: {labels: {stack: value}}}"""
    found = {}
    for i, kind in enumerate(pprofs.kinds(profile)):
        period = pprofs.period_type(profile)
        period = period if period[0] else kind
        name = NAMES.get(period[0], clean(period[0]))
        found[":".join([name, *map(clean, [*kind, *period])] + ["delta"] * (profile.duration_nanos > 0))] = pprofs.values(
            profile, i, names, numbers=True)
    return found


def relative(profile):
    """The same with addresses as the store has them."""
    found = type(profile)()
    found.CopyFrom(profile)
    start = {m.id: m.memory_start for m in found.mapping}
    for x in found.location:
        x.address = (x.address - start.get(x.mapping_id, 0)) % 2 ** 64
    return found


def positive(profile, place):
    """What pprof.values has, of the samples that Parca can hold."""
    return pprof.values_of(pprof.Reader(profile), [s for s in profile.sample if s.value[place] > 0], place)


def send_all(g, names):
    """One after the other: only then does it find every stack that it took."""
    for name in names:
        pprofs.send(g, name, "parca")
    assert dropped(g) == sum(pprofs.below_zero(BODIES[name], numbers=True) for name in names), g.log()
    assert not refused(g), g.log()


def through(store):
    text = CORPUS_GATEWAY.replace("KEYS", str(pprofs.KEYS)).replace("LABELS", store.names)
    return gate.gateway(text, store=store.port["http"])


@pytest.fixture(scope="module")
def full(parca):
    """A store with everything in it."""
    with type(parca)() as store:
        with through(store) as g:
            send_all(g, BODIES)
        yield store


def labels_of(row):
    return frozenset((k, v) for k, v in row.items() if k not in ("__name__", "service_name", "service.name"))


def shown(kind, profile, stacks):
    """The sum that the list of series shows: of `samples`/`count`, times the period."""
    return sum(stacks.values()) * (profile.period or 1 if kind.split(":")[1:3] == ["samples", "count"] else 1)


def answered(store, service, kind, parts):
    """The stacks of each of these series."""
    return {labels: store.values(kind, dict(pprofs.exactly(labels, parts), **{store.service: service}), MS) for labels in parts}


def check_series(store, name):
    for kind, parts in expected(relative(BODIES[name]), store.names).items():
        found = store.series(kind, {store.service: SERVICE[name]}, *WINDOW)
        assert {labels_of(row): times for row, times in found} == {
            labels: {MS: shown(kind, BODIES[name], stacks)} for labels, stacks in parts.items()}


def as_sent(parca, name):
    """What it does of the profile as it is, without the gateway."""
    profile, labels = relative(BODIES[name]), {"service_name": "direct"}
    with type(parca)() as store:
        try:
            store.write(({"__name__": "direct", **labels}, BODIES[name].SerializeToString()))
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
            return "written to directly, it refuses this one"
        listed = store.profile_types()
        kinds = [":".join(["direct", *kind.split(":")[1:]]) for kind in expected(profile, store.names)]
        assert any(kind in listed and store.values(kind, labels, MS) != positive(profile, place)
                   for place, kind in enumerate(kinds))
        return "written to directly, it does the same"


@pytest.mark.parametrize("name", BODIES)
def test_every_profile_arrives(parca, name, record_property):
    """Each in a store of its own: what it has stored changes how it reads what comes next (MIXED)."""
    with type(parca)() as store:
        with through(store) as g:
            send_all(g, [name])
        check_series(store, name)
        same = all(answered(store, SERVICE[name], kind, parts) == parts
                   for kind, parts in expected(relative(BODIES[name]), parca.names).items())
    assert same == (name not in MIXED or name in ONLY_OLD and store.version != "0.21.0")
    if not same:
        record_property("otherwise", "%s (`%s`; %s)" % (MIXED[name], name, as_sent(parca, name)))


@pytest.mark.parametrize("name", BODIES)
def test_every_series_is_there_beside_the_others(full, name):
    check_series(full, name)


def test_the_list_of_types_is_whole(full):
    """One profile without a period type, sent as it is, would make it fail for everybody."""
    assert set(full.profile_types()) == {kind for profile in BODIES.values() for kind in expected(profile, full.names)}


def test_what_the_store_refuses_as_sent_arrived_all_the_same(full):
    with pytest.raises(grpc.RpcError, match="id is not sequential"):
        full.write(({"__name__": "direct", "service_name": "direct"}, BODIES["made-ids"].SerializeToString()))


def test_what_would_have_spoilt_the_store_as_sent_did_not(parca):
    """Without a period type the list of types fails for everybody, and newer ones end; the gateway's has one."""
    sent = {"__name__": "direct", "service_name": "direct"}, BODIES["made-untyped"].SerializeToString()
    with type(parca)() as store, through(store) as g:
        send_all(g, ["made-untyped"])
        assert store.profile_types() and store.process.popen.poll() is None
        if parca.ends_untyped:
            with pytest.raises(process.Unready):
                store.write(sent)
        else:
            store.write(sent)
            with pytest.raises(grpc.RpcError):
                store.profile_types()


# ---- a store that is used for one thing after the other

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


@pytest.fixture(scope="module")
def gateway(parca):
    with gate.gateway(CONFIG, parca=parca.port["http"]) as running:
        yield running


def dropped(gateway):
    return gateway.total("otelcol_ledger_dropped_samples")


def test_normalized_addresses_come_back_as_they_were(gateway, parca):
    sent = make.pprof(8, labels=())
    sent.time_nanos = MS * 10 ** 6
    for x in sent.location:
        del x.line[:]
        x.address = 0x5000 + 16 * x.id
    sent.location[0].line.add(function_id=1, line=1)
    status, _, text = peers.post(gateway.port["pprof"], sent.SerializeToString(), path="/v1/pprof?service.name=normal")
    assert status == 204, text
    gateway.until(lambda: gateway.total("otelcol_ledger_queued_samples") == 0)
    assert parca.values("process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta", {"service_name": "normal"}, MS) == positive(
        sent, 1)


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
    message.resource_profiles[0].scope_profiles[0].profiles[0].time_unix_nano = MS * 10 ** 6
    send(gateway, message)
    reader, want = otlp.Reader(message), {}
    for s in message.resource_profiles[0].scope_profiles[0].profiles[0].samples:
        thread = dict(reader.attributes(s.attribute_indices))["thread.name"][0][1].strip("'")
        want[thread] = want.get(thread, 0) + s.values[0]
    kind = "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"
    assert {thread: sum(parca.values(kind, {"service_name": "lifted", "thread_name": thread}, MS).values())
            for thread in want} == want
