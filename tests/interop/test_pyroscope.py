# SPDX-License-Identifier: Apache-2.0
"""Every profile through the gateway into a Pyroscope with its own limits, and read back.

Where the store takes the same pprof as its sender made it, what it gives back of both must be equal to the last stack:
what the store itself confuses or leaves out (numbers on samples, addresses, what is negative) is the same on both sides. What
it refuses as sent must arrive complete through the gateway.
"""
import time

import pytest

from harness import build as make
from harness import corpus, peers, pprof
from interop import gate
from interop.pyroscope import ROOMY, Pyroscope

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
BODIES = {"made-%d" % seed: make.pprof(seed, labels=("thread-name", "other")).SerializeToString() for seed in range(3)}
BODIES.update((path.name, path.read_bytes()) for path in corpus.files("pprof/*"))
# As its sender made it, 1.12 refuses: more than 16000 samples, "-" in a sample type.
REFUSED = {"go-cpu-googlepprof-large.pb.gz", "go-heap-ddtracego-stress-failure-2-before.pb",
           "go-heap-ddtracego-stress-failure-2-after.pb", "cpp-wall-libdatadog-ownedsample-d589.pb.zst",
           "php-wall-libdatadog-profile.pb", "ruby-cpu-ddtracerb-repro-loop-issue-1.pb",
           "synthetic-cpu-profcorrectness-profile.pb.gz", "made-0", "made-1", "made-2"}
UNNAMED = {"go-untyped-pyroscopeio-cpu-big.pb": "unknown"}


@pytest.fixture(scope="module")
def path(pyroscope):
    """The gateway before a store of its own, which has the limits that it is released with."""
    with Pyroscope() as store, gate.gateway(GATEWAY, store=store.port["http"]) as g:
        yield g, store


def types_of(store, labels, window):
    """{(type, unit): whole profile type} of a service."""
    found = {row["__profile_type__"] for row in store.series(labels, *window)}
    return {tuple(kind.split(":")[1:3]): kind for kind in found}


def read_back(store, service, window):
    """{(type, unit): {stack: value}}"""
    labels = {"service_name": service}
    return {kind: store.values(whole, labels, *window) for kind, whole in types_of(store, labels, window).items()}


def without_dashes(profile, name):
    return [(kind.replace("-", "_") or UNNAMED.get(name, ""), unit)
            for kind, unit in map(pprof.Reader(profile).kind, profile.sample_type)]


@pytest.mark.parametrize("name", BODIES)
def test_every_profile_arrives(pyroscope, path, name):
    g, store = path
    profile = pprof.parse(BODIES[name])
    profile.time_nanos = now = time.time_ns()
    window = (now // 10 ** 6 - 1000, now // 10 ** 6 + 60000)
    service = "through-%d" % now
    body = profile.SerializeToString()
    assert peers.post(g.port["pprof"], body, "/v1/pprof?service.name=" + service)[0] == 204
    gate.flushed(g, "pyroscope")
    assert not g.total("otelcol_ledger_dropped_samples", exporter="pyroscope")
    got = read_back(store, service, window)
    kinds = without_dashes(profile, name)
    direct = {"__name__": "direct", "service_name": service, "__delta__": "false"}
    status, _ = pyroscope.push((direct, body))
    assert (status != 200) == (name in REFUSED)
    if status == 200:
        stored = read_back(pyroscope, service, window)
        for kind, plain in zip(kinds, map(pprof.Reader(profile).kind, profile.sample_type)):
            assert got.get(kind, {}) == stored.get(plain, {}), kind
    else:
        for place, kind in enumerate(kinds):
            assert got.get(kind, {}) == pprof.values(profile, place), kind


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
    with Pyroscope(options=options) as store, gateway_before(store, "limits: {%s}" % limits) as g:
        send(g, profile, "service.name=large")
        assert not g.total("otelcol_ledger_dropped_samples")
        assert g.total("otelcol_exporter_refused_as_too_large")
        window = (now // 10 ** 6 - 1000, now // 10 ** 6 + 60000)
        assert store.values(CPU, {"service_name": "large"}, *window) == pprof.values(profile, 1)


def test_tenants_are_apart_and_nobody_is_refused(pyroscope):
    now = time.time_ns() // 10 ** 6 * 10 ** 6
    window = (now // 10 ** 6 - 1000, now // 10 ** 6 + 60000)
    profile = make.pprof(1, labels=())
    profile.time_nanos = now
    with Pyroscope(options=["-auth.multitenancy-enabled=true"]) as store:
        with gateway_before(store, "tenant: team-a") as g:
            send(g, profile, "service.name=shop")
            assert not g.total("otelcol_ledger_dropped_samples")
        with gateway_before(store) as g:
            send(g, profile, "service.name=shop")
            assert g.total("otelcol_ledger_dropped_samples", reason="permanent") == 60
        for tenant, there in ("team-a", True), ("team-b", False):
            types = store.profile_types(*window, headers={"X-Scope-OrgID": tenant})
            assert (CPU in types) == there


def test_deltas_count_whole_and_cumulative_values_are_subtracted(pyroscope):
    now = time.time_ns() // 10 ** 9 * 10 ** 9
    window = (now // 10 ** 6 - 10000, now // 10 ** 6 + 60000)
    kind = "memory:alloc_objects:count:cpu:nanoseconds"
    for delta, expected in ("delta", 10 + 14 + 21), ("cumulative", 21 - 10):
        with gateway_before(pyroscope, "delta: " + delta) as g:
            for i, value in enumerate((10, 14, 21)):
                profile = make.pprof(1, samples=1, labels=(), types=(("alloc_objects", "count"),))
                profile.sample[0].value[0] = value
                profile.time_nanos = now - (3 - i) * 10 ** 9
                send(g, profile, "service.name=" + delta)
        assert sum(pyroscope.values(kind, {"service_name": delta}, *window).values()) == expected
