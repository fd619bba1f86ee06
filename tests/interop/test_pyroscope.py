# SPDX-License-Identifier: Apache-2.0
"""Every pprof through the gateway to Pyroscope, as it starts without a limit changed, and read back from it: functions,
values, labels and times are those of the input after policy. What it refuses as sent arrives complete through the gateway;
of what it takes as sent, it has the same from the gateway.

What Pyroscope itself changes of what it is given, also when it is given the original, is said in OTHERWISE. Besides, the
label `profile_id` (as `span_id`) does not become a label of the series.
"""
import collections
import time

import pytest

from harness import build as make
from harness import peers, pprof
from interop import gate, pprofs
from interop.pprofs import BODIES, MS, SERVICE, WINDOW
from interop.pyroscope import ROOMY

CORPUS_GATEWAY = pprofs.RECEIVER + """
exporters:
  pyroscope: {endpoint: "http://127.0.0.1:{port:store}", retry_on_failure: {initial_interval: 200ms}}
service:
  pipelines:
    profiles: {receivers: [pprof], processors: [allowlist], exporters: [pyroscope]}
"""
REPAIRED = {"go-heap-ddtracego-big-heap.pb", "go-heap-parca-alloc-space-delta.pb.gz", "go-heap-pyroscopeio-heap.pb",
            "go-heap-pyroscopeio-heap.pb.gz"}
OTHERWISE = {
    "forgotten": "a location without functions whose mapping says that it has them loses its address",
    "repaired": "stacks of Go's heap profiles, which the runtime cuts at 32 frames, are completed",
    "dropped": "negative values are dropped, of what is written to it directly the whole sample",
}
# As sent, the store refuses these, with these words.
REFUSED = {"made-many": "16000", "made-labels": "some-key", "made-dashes": "contains -",
           "go-cpu-googlepprof-large.pb.gz": "rate limit", "go-heap-ddtracego-stress-failure-2-after.pb": "16000",
           "go-heap-ddtracego-stress-failure-2-before.pb": "16000", "cpp-wall-libdatadog-ownedsample-d589.pb.zst": "contains -",
           "php-wall-libdatadog-profile.pb": "contains -", "ruby-cpu-ddtracerb-repro-loop-issue-1.pb": "contains -",
           "synthetic-cpu-profcorrectness-profile.pb.gz": "contains -"}
# The others of more than 16,000 samples are fewer once policy has made some of them equal.
PARTED = {"made-many": 2, "go-cpu-googlepprof-large.pb.gz": 3}
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
    def corrected(kind):
        return (kind[0].replace("-", "_") or "unknown", kind[1])

    kinds = pprofs.kinds(profile)
    period = pprofs.period_type(profile)
    if not profile.HasField("period_type") or not period[0]:
        period = corrected(kinds[0])
    found = {":".join([name_of(profile), *corrected(kind), *period]): pprofs.values(profile, i, "legacy")
             for i, kind in enumerate(kinds)}
    if kinds == [("samples", "count")] and period == ("cpu", "nanoseconds"):
        found["process_cpu:cpu:nanoseconds:cpu:nanoseconds"] = {
            labels: collections.Counter({stack: n * profile.period for stack, n in stacks.items()})
            for labels, stacks in pprofs.values(profile, 0, "legacy").items()}
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
    with type(pyroscope)() as store, gate.gateway(CORPUS_GATEWAY, store=store.port["http"]) as g:
        for name in BODIES:
            pprofs.send(g, name, "pyroscope")
        assert g.total("otelcol_ledger_dropped_samples") == 0
        yield store


def series(store, service):
    """{profile type: the labels of its series, but for those that every series has}"""
    found = {}
    for row in store.series({"service_name": service}, *WINDOW):
        labels = frozenset((k, v) for k, v in row.items() if not k.startswith("__") and k != "service_name")
        found.setdefault(row["__profile_type__"], set()).add(labels)
    return found


def total(parts):
    return sum(parts.values(), collections.Counter())


def check_parts(store, name, want):
    for kind, parts in want.items():
        for labels, stacks in parts.items():
            matchers = dict(pprofs.exactly(labels, parts), service_name=SERVICE[name])
            assert store.values(kind, matchers, *WINDOW) == stacks, (kind, sorted(labels))


def check_sums(store, name, want):
    for kind, parts in want.items():
        found = store.values(kind, {"service_name": SERVICE[name]}, *WINDOW)
        assert sum(found.values()) == sum(total(parts).values()), kind


def check_times(store, name, kind):
    """To the millisecond; of a profile that was too large the first part has its time, and the others follow by one."""
    def between(start, end):
        return sum(store.values(kind, {"service_name": SERVICE[name]}, start, end).values())

    parts, first, whole = PARTED.get(name, 1), between(MS - 1, MS), between(*WINDOW)
    assert 0 < first < whole if parts > 1 else first == whole
    assert between(MS, MS + max(parts - 1, 1)) == whole


def check_as_sent(store, roomy, name, want):
    """It is refused; or the store has the same of it."""
    profile, labels = BODIES[name], {"service_name": "direct-" + SERVICE[name]}
    if name in REFUSED:
        status, text = store.push(({"__name__": "direct", **labels}, profile.SerializeToString()))
        assert status in (400, 429) and REFUSED[name] in text.decode()
        return
    pushed = {"__name__": "direct", "__delta__": "false", **labels}
    assert roomy.push((pushed, profile.SerializeToString())) == (200, b"")
    taken = {tuple(kind.split(":")[1:3]): kind for kind in series(roomy, labels["service_name"])}
    for through, kind in zip(want, pprofs.kinds(profile)):
        sent = roomy.values(taken[kind], labels, *WINDOW) if kind in taken else {}
        has = store.values(through, {"service_name": SERVICE[name]}, *WINDOW) if name in REPAIRED else total(want[through])
        assert (sent == has) != drops_some(store, profile), kind


def drops_some(store, profile):
    """Of what is sent as it is: a sample with a negative value goes whole."""
    return not store.negative(-1) and any(n < 0 for s in profile.sample for n in s.value)


@pytest.mark.parametrize("name", BODIES)
def test_every_profile_arrives(arrived, pyroscope, name, record_property):
    want = expected(forgotten(BODIES[name]))
    for what, so in (("forgotten", want != expected(BODIES[name])), ("repaired", name in REPAIRED),
                     ("dropped", drops_some(arrived, BODIES[name]))):
        if so:
            record_property("otherwise", "%s (`%s`%s)" % (
                OTHERWISE[what], name, "" if what == "dropped" else "; written to directly, it does the same"))
    assert series(arrived, SERVICE[name]) == {kind: set(parts) for kind, parts in want.items()}
    if name not in REPAIRED:
        check_parts(arrived, name, want)
    elif not arrived.negative(-1):
        check_sums(arrived, name, want)
    check_times(arrived, name, min(want))
    check_as_sent(arrived, pyroscope, name, want)


# ---- profiles that are made for one thing each

GATEWAY = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}"}}}
  pprof: {server: {endpoint: "127.0.0.1:{port:pprof}", max_request_body_size: 67108864}}
exporters:
  pyroscope: {endpoint: "http://127.0.0.1:{port:store}", retry_on_failure: {initial_interval: 300ms}}
service:
  pipelines:
    profiles: {receivers: [otlp, pprof], exporters: [pyroscope]}
"""


@pytest.fixture(scope="module")
def path(pyroscope):
    """The gateway before a store of its own, which has the limits that it is released with."""
    with type(pyroscope)() as store, gate.gateway(GATEWAY, store=store.port["http"]) as g:
        yield g, store


def types_of(store, labels, window):
    """{(type, unit): whole profile type} of a service."""
    found = {row["__profile_type__"] for row in store.series(labels, *window)}
    return {tuple(kind.split(":")[1:3]): kind for kind in found}


CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


@pytest.mark.parametrize("types, period, expected", [
    ([("samples", "count"), ("cpu", "nanoseconds")], ("cpu", "nanoseconds"),
     ["process_cpu:cpu:nanoseconds:cpu:nanoseconds", "process_cpu:samples:count:cpu:nanoseconds"]),
    ([("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")],
     ("space", "bytes"),
     ["memory:alloc_objects:count:space:bytes", "memory:alloc_space:bytes:space:bytes",
      "memory:inuse_objects:count:space:bytes", "memory:inuse_space:bytes:space:bytes"]),
    ([("contentions", "count"), ("delay", "nanoseconds")], ("contentions", "count"),
     ["mutex:contentions:count:contentions:count", "mutex:delay:nanoseconds:contentions:count"]),
    ([("goroutine", "count")], ("goroutine", "count"), ["goroutines:goroutine:count:goroutine:count"]),
    ([("samples", "count"), ("wall", "nanoseconds"), ("cpu", "nanoseconds")], ("wall", "nanoseconds"),
     ["wall:cpu:nanoseconds:wall:nanoseconds", "wall:samples:count:wall:nanoseconds",
      "wall:wall:nanoseconds:wall:nanoseconds"]),
])
def test_types_are_those_of_the_stores_own_clients(path, types, period, expected):
    g, store = path
    made = make.pprof(1, types=types)
    made.string_table.extend(period)
    made.period_type.type, made.period_type.unit = len(made.string_table) - 2, len(made.string_table) - 1
    made.time_nanos = now = time.time_ns()
    service = "types-%d" % now
    peers.post(g.port["pprof"], made.SerializeToString(), "/v1/pprof?service.name=" + service)
    gate.flushed(g, "pyroscope")
    window = (now // 10 ** 6 - 1000, now // 10 ** 6 + 60000)
    assert sorted(types_of(store, {"service_name": service}, window).values()) == expected


def test_no_type_breaks_the_list_of_them(path):
    """With two more ":" in one, the store's list fails for everybody."""
    g, store = path
    made = make.pprof(1, types=[("a:b", "c:d")])
    made.time_nanos = now = time.time_ns()
    peers.post(g.port["pprof"], made.SerializeToString(), "/v1/pprof?service.name=colons")
    gate.flushed(g, "pyroscope")
    kinds = store.profile_types(now // 10 ** 6 - 1000, now // 10 ** 6 + 60000)
    assert any(kind.split(":")[1:3] == ["a_b", "c_d"] for kind in kinds)


def test_otlp_of_a_profiler_arrives_as_cpu_time(path):
    g, store = path
    message = make.Maker()
    now = time.time_ns() // 10 ** 6 * 10 ** 6
    service = "otlp-%d" % now
    stack = message.stack([message.location([message.function("main.work", "main.go")], 0x1000)])
    profile = message.profile(message.scope(message.resource({"service.name": service, "k8s.pod.name": "a"})),
                              ("samples", "count"), time=now)
    profile.samples.add(stack_index=stack, timestamps_unix_nano=[now, now + 1, now + 2],
                        attribute_indices=[message.attribute("thread.name", "w")])
    with peers.Client(g.port["otlp"]) as client:
        client.send(message.message)
    gate.flushed(g, "pyroscope")
    window = (now // 10 ** 6 - 1000, now // 10 ** 6 + 60000)
    labels = {"service_name": service, "k8s_pod_name": "a", "thread_name": "w"}
    assert sum(store.values(CPU, labels, *window).values()) == 3 * 10 ** 7
    assert sum(store.values(CPU.replace("cpu:nanoseconds", "samples:count", 1), labels, *window).values()) == 3


def test_profiles_of_one_millisecond_and_parts_of_one_profile_all_count(path):
    g, store = path
    now = time.time_ns() // 10 ** 6 * 10 ** 6
    service = "times-%d" % now
    sent = [make.pprof(seed, samples=17000 if seed == 2 else 30, functions=50, labels=()) for seed in range(3)]
    for profile in sent:
        profile.time_nanos = now
        peers.post(g.port["pprof"], profile.SerializeToString(), "/v1/pprof?service.name=" + service)
        gate.flushed(g, "pyroscope")
    window = (now // 10 ** 6 - 1000, now // 10 ** 6 + 60000)
    want = sum((pprof.values(p, 1) for p in sent), type(pprof.values(sent[0], 1))())
    assert store.values(CPU, {"service_name": service}, *window) == want


def test_labels_that_the_store_refuses_do_not_cost_the_profile(path):
    g, store = path
    now = time.time_ns() // 10 ** 6 * 10 ** 6
    service = "labels-%d" % now
    profile = make.pprof(1, labels=("thread-name", "two words", "service.name"))
    profile.time_nanos = now
    more = "".join("&k%02d=v" % i for i in range(40)) + "&a-b=1&service_name=x&long=" + "v" * 3000
    peers.post(g.port["pprof"], profile.SerializeToString(), "/v1/pprof?service.name=" + service + more)
    gate.flushed(g, "pyroscope")
    window = (now // 10 ** 6 - 1000, now // 10 ** 6 + 60000)
    assert store.values(CPU, {"service_name": service}, *window) == pprof.values(profile, 1)


# ---- what the store says, and what is asked of it

def gateway_before(store, *more):
    return gate.gateway(GATEWAY.replace("300ms}", "300ms}" + "".join(", " + m for m in more)), store=store.port["http"])


def send(g, profile, query):
    assert peers.post(g.port["pprof"], profile.SerializeToString(), "/v1/pprof?" + query)[0] == 204
    gate.flushed(g, "pyroscope")


@pytest.mark.parametrize("options, limits, large", [
    ([], "max_bytes: 8000000", dict(samples=15000, functions=60000)),
    (ROOMY, "max_bytes: 20000000", dict(samples=15000, functions=60000, prefix="package." * 10)),
    (ROOMY, "max_samples: 100000", dict(samples=20000, functions=50)),
])
def test_what_the_store_says_of_size_is_understood(pyroscope, options, limits, large):
    """Over the burst, the size limit, the samples limit: refused as configured, split by what the store says."""
    now = time.time_ns() // 10 ** 6 * 10 ** 6
    profile = make.pprof(1, labels=(), **large)
    profile.time_nanos = now
    with type(pyroscope)(options=options) as store, gateway_before(store, "limits: {%s}" % limits) as g:
        send(g, profile, "service.name=large")
        assert not g.total("otelcol_ledger_dropped_samples")
        assert g.total("otelcol_exporter_oversized_requests")
        window = (now // 10 ** 6 - 1000, now // 10 ** 6 + 60000)
        assert store.values(CPU, {"service_name": "large"}, *window) == pprof.values(profile, 1)


def test_one_that_is_too_large_makes_no_other_count_twice(pyroscope):
    """Newer stores keep what is good of a refused request, so a request holds one pprof."""
    now = time.time_ns() // 10 ** 6 * 10 ** 6
    sent = [make.pprof(1, labels=()), make.pprof(2, labels=(), samples=3000, functions=3000)]
    with type(pyroscope)(options=["-validation.max-profile-size-bytes=100000"]) as store, \
            gate.gateway(GATEWAY.replace("receivers: [otlp, pprof]", "receivers: [otlp, pprof], processors: [batch]")
                         + "processors: {batch: {timeout: 1s}}\n", store=store.port["http"]) as g:
        for i, profile in enumerate(sent):
            profile.time_nanos = now + i * 10 ** 6
            peers.post(g.port["pprof"], profile.SerializeToString(), "/v1/pprof?service.name=beside")
        gate.flushed(g, "pyroscope")
        assert g.total("otelcol_exporter_oversized_requests") and not g.total("otelcol_ledger_dropped_samples")
        window = (now // 10 ** 6 - 1000, now // 10 ** 6 + 60000)
        assert store.values(CPU, {"service_name": "beside"}, *window) == sum(
            (pprof.values(p, 1) for p in sent), collections.Counter())


def test_tenants_are_apart_and_nobody_is_refused(pyroscope):
    now = time.time_ns() // 10 ** 6 * 10 ** 6
    window = (now // 10 ** 6 - 1000, now // 10 ** 6 + 60000)
    profile = make.pprof(1, labels=())
    profile.time_nanos = now
    with type(pyroscope)(options=["-auth.multitenancy-enabled=true"]) as store:
        with gateway_before(store, "tenant: team-a") as g:
            send(g, profile, "service.name=shop")
            assert not g.total("otelcol_ledger_dropped_samples")
        with gateway_before(store) as g:
            send(g, profile, "service.name=shop")
            assert g.total("otelcol_ledger_dropped_samples", reason="permanent") == 60
        for tenant, there in ("team-a", True), ("team-b", False):
            types = store.profile_types(*window, headers={"X-Scope-OrgID": tenant})
            assert (CPU in types) == there


def pushed(g, service, types, values):
    """One stack with these values, a second apart, until now."""
    now = time.time_ns() // 10 ** 9 * 10 ** 9
    for i, row in enumerate(values):
        profile = make.pprof(1, samples=1, labels=(), types=types)
        profile.sample[0].value[:] = row
        profile.time_nanos = now - (len(values) - i) * 10 ** 9
        send(g, profile, "service.name=" + service)
    return now // 10 ** 6 - 10000, now // 10 ** 6 + 60000


def sums(store, service, window, *types):
    return [sum(store.values("memory:%s:count:cpu:nanoseconds" % kind, {"service_name": service}, *window).values())
            for kind in types]


def test_deltas_count_whole_and_cumulative_values_are_subtracted_by_old_stores(pyroscope):
    for delta, expected in ("delta", 10 + 14 + 21), ("cumulative", pyroscope.cumulative(10, 14, 21)):
        with gateway_before(pyroscope, "delta: " + delta) as g:
            window = pushed(g, delta, (("alloc_objects", "count"),), [[10], [14], [21]])
        assert sums(pyroscope, delta, window, "alloc_objects") == [expected]


def test_a_negative_value_costs_no_other(pyroscope):
    """As sent, newer stores drop the whole sample."""
    with gateway_before(pyroscope) as g:
        window = pushed(g, "signs", (("alloc_objects", "count"), ("inuse_objects", "count")), [[5, -3], [1, 10]])
    assert sums(pyroscope, "signs", window, "alloc_objects", "inuse_objects") == [6, 10 + pyroscope.negative(-3)]
