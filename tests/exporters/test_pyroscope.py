# SPDX-License-Identifier: Apache-2.0
"""The exporter pyroscope against a store that answers as it is told: what a request is, and what becomes of each answer."""
import base64
import gzip
import signal
import subprocess
import threading
import time
from collections import Counter

import pytest

from harness import build as make
from harness import peers, pprof
from harness.certificates import make_ca, make_leaf
from harness.gateway import Gateway
from harness.push import OK, PATH, PushSink, refusal, reply

CPU, SAMPLES = ("cpu", "nanoseconds"), ("samples", "count")
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
processors:
  batch: {timeout: %(batch)s, send_batch_size: 1000000}
exporters:
  pyroscope:
    endpoint: %(endpoint)s
    retry_on_failure: {initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 30s}
    %(more)s
service:
  pipelines:
    profiles: {receivers: [otlp, pprof], processors: [%(processors)s], exporters: [pyroscope]}
"""


class Rig:
    """A gateway before a store, with a clock of its own: each profile a second later than the one before."""

    def __init__(self, build, sink, *more, endpoint=None, batch=None):
        text = CONFIG % {"endpoint": endpoint or "http://127.0.0.1:%d/" % sink.port, "more": "\n    ".join(more),
                         "batch": batch or "1s", "processors": "batch" if batch else ""}
        self.gateway, self.sink = Gateway(build / "portcullis", text), sink
        self.now = time.time_ns() // 10 ** 9 * 10 ** 9

    def __enter__(self):
        self.gateway.__enter__()
        return self

    def __exit__(self, *failure):
        self.gateway.__exit__(*failure)

    def send(self, profile=None, query="?service.name=shop", at=None):
        """A pprof of now, or of so many ns after it."""
        profile = profile or make.pprof(1)
        profile.time_nanos = self.now + (at or 0)
        status, _, body = peers.post(self.gateway.port["pprof"], profile.SerializeToString(), "/v1/pprof" + query)
        assert status == 204, body
        return profile

    def send_otlp(self, message):
        with peers.Client(self.gateway.port["otlp"]) as client:
            client.send(message)

    def total(self, what, **labels):
        return self.gateway.total("otelcol_ledger_%s_samples" % what, exporter="pyroscope", **labels)

    def settle(self, samples):
        """Until so many samples are out or dropped; then nothing may be missing from the ledger, and no request may have
        had two pprofs."""
        self.gateway.until(lambda: self.total("out") + self.total("dropped") == samples and not self.total("queued"))
        assert self.gateway.balanced("profiles", "pyroscope")
        assert all(len(request.profiles) == 1 for request in self.sink.taken)

    def lost(self, reason):
        return self.gateway.total("otelcol_exporter_pyroscope_dropped_labels", exporter="pyroscope", reason=reason)


def times(sink, kind=CPU):
    """Those of a type, in the order of arrival."""
    return [p.time_nanos for request in sink.taken for p in request.profiles
            if kind in map(pprof.Reader(p).kind, p.sample_type)]


def test_a_profile_becomes_one_series_as_the_stores_own_clients_send_it(build):
    with PushSink() as sink, Rig(build, sink) as rig:
        sent = rig.send(make.pprof(1, labels=("thread.name",)), "?service.name=shop&k8s.pod-name=a")
        rig.settle(60)
        (request,) = sink.taken
        assert request.path == PATH
        assert request.headers["Content-Type"] == "application/proto"
        assert request.headers["Content-Encoding"] == "gzip"
        assert request.headers["User-Agent"].startswith("Portcullis/")
        assert "Expect" not in request.headers and "X-Scope-OrgID" not in request.headers
        assert request.labels == {"__name__": "process_cpu", "__delta__": "false", "service_name": "shop",
                                  "k8s_pod_name": "a"}
        assert request.label_lists[0] == sorted(request.label_lists[0])
        (profile,) = request.profiles
        assert profile.time_nanos == sent.time_nanos
        assert pprof.values(profile, 1) == pprof.values(sent, 1)
        assert {k for s in profile.sample for k in pprof.Reader(profile).labels(s)} == {"thread_name"}


def test_names_stay_as_they_are_where_the_store_takes_them(build):
    with PushSink() as sink, Rig(build, sink, "preset: v2", "compression: none") as rig:
        rig.send(make.pprof(1, labels=("thread.name",)), "?service.name=shop&k8s.pod-name=a")
        rig.settle(60)
        (request,) = sink.taken
        assert "Content-Encoding" not in request.headers
        assert request.labels == {"__name__": "process_cpu", "__delta__": "false", "service_name": "shop",
                                  "k8s.pod-name": "a"}


def test_a_sender_may_name_its_series_and_say_that_it_is_cumulative(build):
    """A name that is no identifier is not used: the store would reject the profile, or fail for all."""
    with PushSink() as sink, Rig(build, sink) as rig:
        for i, (query, labels) in enumerate([
                ("__name__=block", {"__name__": "block", "__delta__": "false"}), ("__name__=a:b", {"__delta__": "false"}),
                ("__name__=1a", {"__delta__": "false"}), ("__name__=a-b&__delta__=false", {"__delta__": "false"}),
                ("__name__=_a1&__delta__=true", {"__name__": "_a1"})]):
            rig.send(query="?service.name=shop&" + query, at=i * 10 ** 9)
            rig.settle(60 * (i + 1))
            assert sink.taken[i].labels == {"service_name": "shop", "__name__": "process_cpu", **labels}
        assert rig.lost("reserved") == 0


@pytest.mark.parametrize("name, kinds, period", [
    ("", [("samples", "count"), ("cpu", "nanoseconds")], ("cpu", "nanoseconds")),
    ("&__name__=process_cpu", [("samples", "count")], ("cpu", "nanoseconds")),
    ("", [("samples", "count")], None), ("&__name__=process_cpu", [("samples", "count")], None)])
def test_the_types_of_a_series_that_its_sender_named_are_not_changed(build, name, kinds, period):
    """Of others, a count of CPU samples gets the CPU time, and a missing period type is the sample type. A store of old
    cannot bear a period type that is absent, but one that is empty."""
    with PushSink() as sink, Rig(build, sink) as rig:
        sent = make.pprof(1, types=(("samples", "count"),))
        if not period:
            sent.ClearField("period_type")
        rig.send(sent, "?service.name=shop" + name)
        rig.settle(30)
        (got,) = sink.taken[0].profiles
        assert [pprof.Reader(got).kind(t) for t in got.sample_type] == kinds
        assert got.HasField("period_type")
        assert pprof.Reader(got).kind(got.period_type) == (period or (("", "") if name else kinds[0]))


def test_labels_that_cannot_be_kept_are_counted_and_refuse_nothing(build):
    attributes = "".join("&a%02d=x" % i for i in range(30))
    with PushSink() as sink, Rig(build, sink) as rig:
        rig.send(query="?service.name=shop&service_name=other&a-b=1&a.b=2&__other__=x&long_%s=1" % ("n" * 250))
        rig.settle(60)
        rig.send(query="?service.name=shop" + attributes, at=10 ** 9)
        rig.settle(120)
        first, second = sink.taken
        assert first.labels["service_name"] == "shop" and first.labels["a_b"] == "1"
        assert first.labels["__name__"] == "process_cpu"
        assert len(second.labels) == 30
        assert not any(s.label for s in second.profiles[0].sample)
        assert (rig.lost("collision"), rig.lost("reserved"), rig.lost("too_many")) == (2, 1, 3 + 60)


def test_series_that_differed_in_a_dropped_label_alone_are_merged(build):
    message = make.Maker()
    stack = message.stack([message.location([message.function("main")], 0x1000)])
    for i in range(3):
        scope = message.scope(message.resource({"service.name": "shop", "__id": "x%d" % i}))
        profile = message.profile(scope, time=time.time_ns() // 10 ** 9 * 10 ** 9 + i)
        profile.samples.add(stack_index=stack, values=[10 ** i])
    with PushSink() as sink, Rig(build, sink) as rig:
        rig.send_otlp(message.message)
        rig.settle(3)
        (request,) = sink.taken
        (profile,) = request.profiles
        assert [s.value[0] for s in profile.sample] == [111]
        assert rig.gateway.total("otelcol_exporter_pyroscope_merged_profiles") == 2


@pytest.mark.parametrize("types, period, name", [
    ((SAMPLES, CPU), ("cpu", "nanoseconds"), "process_cpu"),
    ((("alloc_objects", "count"), ("inuse_space", "bytes")), ("space", "bytes"), "memory"),
    ((("contentions", "count"), ("delay", "nanoseconds")), ("contentions", "count"), "mutex"),
    ((("goroutine", "count"),), ("goroutine", "count"), "goroutines"),
    ((("samples", "count"), ("wall", "nanoseconds"), CPU), ("wall", "nanoseconds"), "wall"),
    ((("off_cpu", "nanoseconds"),), None, "off_cpu"),
    ((("wall-time", "nanoseconds"), ("cpu-time", "nanoseconds")), ("cpu-time", "nanoseconds"), "process_cpu"),
    ((("events", "count"),), None, "events"),
])
def test_types_are_named_as_the_stores_clients_name_them_and_mended(build, types, period, name):
    made = make.pprof(1, types=types)
    made.ClearField("period_type")
    if period:
        for text in period:
            made.string_table.append(text)
        made.period_type.type, made.period_type.unit = len(made.string_table) - 2, len(made.string_table) - 1
    with PushSink() as sink, Rig(build, sink) as rig:
        rig.send(made)
        rig.settle(30 * len(types))
        (request,) = sink.taken
        (profile,) = request.profiles
        reader = pprof.Reader(profile)
        kinds = [(kind.replace("-", "_"), unit) for kind, unit in types]
        assert request.labels["__name__"] == name
        assert [reader.kind(t) for t in profile.sample_type] == kinds
        assert reader.kind(profile.period_type) == (period or kinds[0])
        for i in range(len(types)):
            assert pprof.values(profile, i) == pprof.values(made, i)


def test_a_count_of_cpu_samples_gets_the_time_too(build):
    message = make.Maker()
    stack = message.stack([message.location([message.function("main")], 0x1000)])
    now = time.time_ns() // 10 ** 9 * 10 ** 9
    profile = message.profile(message.scope(message.resource({"service.name": "shop"})), SAMPLES, time=now)
    profile.samples.add(stack_index=stack, timestamps_unix_nano=[now, now + 1, now + 2])
    with PushSink() as sink, Rig(build, sink) as rig:
        rig.send_otlp(message.message)
        rig.settle(1)
        (got,) = sink.taken[0].profiles
        reader = pprof.Reader(got)
        assert [reader.kind(t) for t in got.sample_type] == [SAMPLES, CPU]
        assert list(got.sample[0].value) == [3, 3 * 10 ** 7]
        assert sink.taken[0].labels["__name__"] == "process_cpu"


def test_cumulative_values_are_left_to_the_store(build):
    with PushSink() as sink, Rig(build, sink, "delta: cumulative") as rig:
        rig.send()
        rig.settle(60)
        assert "__delta__" not in sink.taken[0].labels


# ---- size and time

def test_a_profile_over_the_limits_goes_in_parts_a_millisecond_apart(build):
    with PushSink() as sink, Rig(build, sink) as rig:
        sent = rig.send(make.pprof(1, samples=20000, functions=200))
        rig.settle(40000)
        profiles = [p for request in sink.taken for p in request.profiles]
        assert len(profiles) > 1 and all(len(request.series) == 1 for request in sink.taken)
        assert max(len(p.sample) for p in profiles) <= 16000
        assert max(request.plain_size for request in sink.taken) <= 2 << 20
        assert len({p.time_nanos // 10 ** 6 for p in profiles}) == len(profiles)
        assert sink.values(CPU) == pprof.values(sent, 1) and sink.values(SAMPLES) == pprof.values(sent, 0)


def test_a_small_limit_splits_and_loses_nothing(build):
    with PushSink() as sink, Rig(build, sink, "limits: {max_bytes: 4000}") as rig:
        sent = rig.send(make.pprof(1, samples=500, functions=40))
        rig.settle(1000)
        assert len(sink.taken) > 5 and max(request.plain_size for request in sink.taken) <= 4000
        assert sink.values(CPU) == pprof.values(sent, 1)
        for kind in CPU, SAMPLES:
            assert times(sink, kind) == [rig.now + i * 10 ** 6 for i in range(len(times(sink, kind)))], kind


def test_pieces_of_a_refused_piece_begin_at_its_time_also_after_retries(build):
    with PushSink() as sink, Rig(build, sink, "limits: {max_bytes: 120000}") as rig:
        busy = iter([reply(503)] * 3)
        sink.answer = lambda taken, _: reply(413) if taken.plain_size > 50000 else next(busy, OK)
        sent = rig.send(make.pprof(1, samples=9000, functions=900))
        rig.settle(18000)
        refused = [r for r in sink.seen if r.plain_size > 50000]
        assert refused and next(busy, None) is None
        assert sink.values(CPU) == pprof.values(sent, 1) and sink.values(SAMPLES) == pprof.values(sent, 0)
        for kind in CPU, SAMPLES:
            assert min(times(sink, kind)) == rig.now
            assert len(set(times(sink, kind))) == len(times(sink, kind))
        assert {p.time_nanos for r in refused for p in r.profiles} <= set(times(sink) + times(sink, SAMPLES))


def test_a_name_that_each_profile_repeats_is_sent_in_many_requests(build):
    """300 KB that would become 30 MB."""
    with PushSink() as sink, Rig(build, sink) as rig:
        message = make.Maker()
        stack = message.stack([message.location([message.function("x" * 300000)])])
        scope = message.scope(message.resource({"service.name": "shop"}))
        for i in range(100):
            message.profile(scope, time=rig.now + i * 10 ** 9).samples.add(stack_index=stack, values=[i])
        rig.send_otlp(message.message)
        rig.settle(100)
        assert rig.total("out") == 100
        assert sum(sink.values(CPU).values()) == sum(range(100))
        assert len(sink.taken) == 100 and max(request.plain_size for request in sink.taken) <= 2 << 20


def test_thousands_of_pprofs_in_one_request_all_arrive(build):
    """Each alone they would be a hundred times what came."""
    with PushSink() as sink, Rig(build, sink) as rig:
        message = make.Maker()
        frames = [message.location([message.function("package.(*Type).function%d" % i, "dir/file%d.go" % i)], 4096 + i)
                  for i in range(400)]
        stacks = [message.stack([frames[i * (k + 1) % 400] for i in range(200)]) for k in range(500)]
        scope = message.scope(message.resource({"service.name": "shop"}))
        for i in range(8000):
            message.profile(scope, time=rig.now + i * 10 ** 6).samples.add(stack_index=stacks[i % 500], values=[1])
        rig.send_otlp(message.message)
        rig.gateway.until(lambda: rig.total("out") + rig.total("dropped") == 8000)
        assert rig.total("dropped") == 0 and sum(sink.values(CPU).values()) == 8000


def test_names_longer_than_the_store_takes_are_cut(build):
    with PushSink() as sink, Rig(build, sink) as rig:
        rig.send(query="?service.name=" + "s" * 3000)
        rig.settle(60)
        assert sink.taken[0].labels["service_name"] == "s" * 2048


def test_later_profiles_of_a_series_and_millisecond_move_to_the_next_free_one(build):
    with PushSink() as sink, Rig(build, sink) as rig:
        for seed in range(4):
            rig.send(make.pprof(seed), at=seed)
            rig.settle(60 * (seed + 1))
        rig.send(query="?service.name=other")
        rig.settle(300)
        ms = sorted(t // 10 ** 6 - rig.now // 10 ** 6 for t in times(sink))
        assert ms == [0, 0, 1, 2, 3]
        assert rig.gateway.total("otelcol_exporter_pyroscope_shifted_profiles") == 3


def test_a_sample_of_both_signs_becomes_two(build):
    """Newer stores drop a sample with a negative value, and with it what is not negative."""
    sent = make.pprof(1, samples=3, labels=("thread",), types=(("alloc_space", "bytes"), ("inuse_space", "bytes")))
    for sample, values in zip(sent.sample, [(5, -3), (7, 9), (-1, -2)]):
        sample.value[:] = values
    with PushSink() as sink, Rig(build, sink) as rig:
        rig.send(sent)
        rig.settle(6)
        (taken,) = sink.taken[0].profiles
        assert sorted(tuple(s.value) for s in taken.sample) == [(-1, -2), (0, -3), (5, 0), (7, 9)]
        assert [pprof.values(taken, i) for i in (0, 1)] == [pprof.values(sent, i) for i in (0, 1)]
        assert {len(s.label) for s in taken.sample} == {1}


def test_samples_that_became_two_keep_the_stores_limit(build):
    sent = make.pprof(1, samples=9000, functions=200, types=(("alloc_space", "bytes"), ("inuse_space", "bytes")))
    for sample in sent.sample:
        sample.value[:] = 5, -3
    with PushSink() as sink, Rig(build, sink) as rig:
        rig.send(sent)
        rig.settle(18000)
        taken = [p for request in sink.taken for p in request.profiles]
        assert max(len(p.sample) for p in taken) <= 16000 and rig.total("out") == 18000
        assert sum(v for p in taken for s in p.sample for v in s.value) == 9000 * (5 - 3)


def test_what_the_store_would_refuse_by_its_age_is_dropped_with_the_reason(build):
    hour = 3600 * 10 ** 9
    with PushSink() as sink, Rig(build, sink) as rig:
        for at in -hour - 10 ** 10, hour, -hour + 10 ** 11:
            rig.send(at=at)
        rig.settle(180)
        assert (rig.total("out"), rig.total("dropped", reason="too_old"), rig.total("dropped", reason="too_new")) == (
            60, 60, 60)


@pytest.mark.parametrize("answer", [
    reply(413),
    refusal(400, "invalid_argument", "the profile with labels 'x' exceeds the size limit "
                                     "(max_profile_size_byte, actual: 99999, limit: 50000)"),
    reply(400, gzip.compress(b'{"code":"invalid_argument","message":"the profile with labels \'x\' exceeds the size limit '
                             b'(max_profile_size_byte, actual: 99999, limit: 50000)"}', mtime=0), {"Content-Encoding": "gzip"}),
    refusal(400, "invalid_argument", "uncompressed profile payload size exceeds limit of 60 kB"),
    refusal(400, "invalid_argument", "the profile with labels 'x' exceeds the samples count limit "
                                     "(max_profile_stacktrace_samples, actual: 99999, limit: 1000)"),
])
def test_a_refusal_for_size_teaches_a_smaller_one(build, answer):
    with PushSink() as sink, Rig(build, sink) as rig:
        def takes(taken):
            if b"samples count" in answer:
                return max(len(p.sample) for p in taken.profiles) <= 1000
            return taken.plain_size <= 60000

        sink.answer = lambda taken, _: OK if takes(taken) else answer
        sent = rig.send(make.pprof(1, samples=5000, functions=40))
        rig.settle(10000)
        assert rig.total("out") == 10000 and len(sink.taken) > 2
        assert sink.values(CPU) == pprof.values(sent, 1)
        assert len(set(times(sink))) == len(times(sink))
        refused = len(sink.seen) - len(sink.taken)
        rig.send(make.pprof(2, samples=5000, functions=40), at=10 ** 9)
        rig.settle(20000)
        assert len(sink.seen) - len(sink.taken) == refused, "what was learned is kept"


def test_a_429_over_the_burst_is_split_and_a_429_below_it_is_tried_again(build):
    burst = refusal(429, "resource_exhausted", "push rate limit (4.0 MiB) exceeded")
    with PushSink() as sink, Rig(build, sink, "limits: {max_bytes: 4000000}") as rig:
        small = []
        sink.answer = lambda taken, number: (
            burst if taken.plain_size > 2 << 20 or (not small and not small.append(1)) else OK)
        sent = rig.send(make.pprof(1, samples=15900, functions=45000))
        rig.settle(31800)
        assert max(request.plain_size for request in sink.seen) > 2 << 20 >= max(r.plain_size for r in sink.taken)
        assert rig.total("out") == 31800 and sink.values(CPU) == pprof.values(sent, 1)


# ---- answers: see test_http_faults.py

@pytest.mark.threads
def test_an_answer_that_comes_too_late_is_tried_again(build):
    gate = threading.Event()
    with PushSink() as sink, Rig(build, sink, "timeout: 200ms") as rig:
        sink.answer = lambda _, number: gate.wait(60) and OK if number == 1 else OK
        rig.send()
        rig.settle(60)
        gate.set()
        assert len(sink.seen) == 2 and len({p.time_nanos for r in sink.seen for p in r.profiles}) == 1


@pytest.mark.threads
def test_a_store_that_never_answers_does_not_hold_up_the_end(build):
    gate = threading.Event()
    with PushSink() as sink:
        sink.answer = lambda *_: gate.wait(120) and OK
        with Rig(build, sink, "timeout: 100s") as rig:
            for number in range(5):
                rig.send(at=number * 10 ** 9)
            rig.gateway.until(lambda: len(sink.seen) == 5)
            assert rig.gateway.stop() == 0
        gate.set()


@pytest.mark.threads
def test_many_profiles_at_once_arrive_and_connections_are_used_again(build):
    with PushSink() as sink, Rig(build, sink) as rig:
        threads = [threading.Thread(target=lambda n=n: [
            rig.send(make.pprof(n * 25 + i), "?service.name=s%d" % n, at=i * 10 ** 9) for i in range(25)])
            for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rig.settle(100 * 60)
        assert len(sink.taken) == 100
        assert sink.values(CPU) == sum((pprof.values(make.pprof(seed), 1) for seed in range(100)), Counter())


def test_the_series_of_a_batch_go_one_by_one_and_one_refusal_costs_itself(build):
    with PushSink() as sink, Rig(build, sink, batch="200ms") as rig:
        sink.answer = lambda taken, _: reply(400) if taken.labels["service_name"] == "b" else OK
        for service in "abc":
            rig.send(query="?service.name=" + service)
        rig.settle(180)
        assert sorted(r.labels["service_name"] for r in sink.seen) == ["a", "b", "c"]
        assert (rig.total("out"), rig.total("dropped", reason="permanent")) == (120, 60)


# ---- who we are, and who they are

@pytest.mark.parametrize("more, header, value", [
    (["basic_auth: {username: alice, password: s3cret}"], "Authorization",
     "Basic " + base64.b64encode(b"alice:s3cret").decode()),
    (["bearer_token: tok.en"], "Authorization", "Bearer tok.en"),
    (["tenant: team-a"], "X-Scope-OrgID", "team-a"),
    (["headers: {X-Scope-OrgID: team-b}"], "X-Scope-OrgID", "team-b"),
    (["headers: {X-More: it}"], "X-More", "it"),
])
def test_headers(build, more, header, value):
    with PushSink() as sink, Rig(build, sink, *more) as rig:
        rig.send()
        rig.settle(60)
        assert sink.taken[0].headers[header] == value
        assert "s3cret" not in rig.gateway.log()


def test_requests_go_through_the_proxy(build):
    with PushSink() as sink, Rig(build, sink, "proxy_url: http://127.0.0.1:%d" % sink.port,
                                 endpoint="http://store.invalid:4040") as rig:
        rig.send()
        rig.settle(60)
        assert sink.taken[0].path == "http://store.invalid:4040" + PATH


@pytest.mark.parametrize("more, text", [
    ("tenant: a|b", "tenant: must be at most 150 letters"),
    ("tenant: 'two words'", "tenant: must be at most 150 letters"),
    ("tenant: ..", "tenant: must be at most 150 letters"),
    ("headers: {X-Scope-OrgID: a/b}", "headers::X-Scope-OrgID: tenant: must be at most 150 letters"),
    ("headers: {X-Scope-OrgID: a}, tenant: b", "X-Scope-OrgID must not be set together with tenant"),
    ("headers: {'a b': c}", "headers::a b: invalid header name"),
    ('headers: {a: "b\\r\\nc: d"}', "headers::a: the value contains control characters"),
    ("headers: {Content-Type: x}", "headers::Content-Type: content-type cannot be set"),
    ("headers: {Authorization: x}, bearer_token: y", "Authorization must not be set together with basic_auth"),
    ("bearer_token: y, basic_auth: {username: z}", "not both"),
    ("compression: zstd", "compression: unsupported type; use gzip or none"),
    ("preset: v3", "preset"),
    ("proxy_url: 'no proxy'", "proxy_url: must be a URL"),
    ("label_limits: {max_names: 2}", "max_names"),
    ("labels: ascii", "labels"),
    ("tls: {cert_file: x}", "provide both certificate and key"),
])
def test_configurations_that_cannot_work(build, tmp_path, more, text):
    said = validate(build, tmp_path, "endpoint: 'http://127.0.0.1:1', " + more)
    assert text in said, said


def test_no_secret_is_printed(build, tmp_path):
    more = "proxy_url: 'http://u:hunter@p:1', headers: {cookie: hunter}, basic_auth: {username: u, password: hunter}"
    done = command(build, tmp_path, "print-config", "endpoint: 'http://127.0.0.1:1', " + more)
    assert done.returncode == 0 and done.stdout.count("[REDACTED]") == 3 and "hunter" not in done.stdout


@pytest.mark.parametrize("endpoint", ["", "127.0.0.1:4040", "ftp://x", "http://", "http://u:p@x", "http://x/?a=b"])
def test_endpoints_that_are_none(build, tmp_path, endpoint):
    assert "endpoint must" in validate(build, tmp_path, "endpoint: '%s'" % endpoint)


def test_the_configuration_of_the_first_flame_graph_is_good(build, root):
    run = subprocess.run([build / "portcullis", "validate", "--config", root / "docker/pyroscope.yaml"])
    assert run.returncode == 0


def command(build, tmp_path, name, exporter):
    path = tmp_path / "config.yaml"
    path.write_text("receivers: {pprof: {server: {endpoint: 127.0.0.1:0}}}\nexporters: {pyroscope: {%s}}\n"
                    "service: {pipelines: {profiles: {receivers: [pprof], exporters: [pyroscope]}}}\n" % exporter)
    return subprocess.run([build / "portcullis", name, "--config", path], capture_output=True, text=True)


def validate(build, tmp_path, exporter):
    run = command(build, tmp_path, "validate", exporter)
    assert run.returncode != 0
    return run.stdout + run.stderr


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    directory = tmp_path_factory.mktemp("certificates")
    make_ca(directory, "ca")
    make_ca(directory, "other")
    make_leaf(directory, "ca", "server", "/CN=localhost")
    make_leaf(directory, "ca", "client", "/CN=gateway", "clientAuth")
    return directory


@pytest.mark.parametrize("address, host, tls, good", [
    ("127.0.0.1", "localhost", "ca_file: %s/ca.pem", True),
    ("127.0.0.1", "localhost", "ca_file: %s/other.pem", False),
    ("127.0.0.1", "localhost", "", False),
    ("127.0.0.2", "127.0.0.2", "ca_file: %s/ca.pem", False),
    ("127.0.0.2", "127.0.0.2", "insecure_skip_verify: true", True),
    ("127.0.0.2", "127.0.0.2", "ca_file: %s/ca.pem, server_name_override: localhost", True),
])
def test_tls_needs_a_known_ca_and_the_right_name(build, certificates, address, host, tls, good):
    pair = (certificates / "server.pem", certificates / "server.key")
    with PushSink(pair, address=address) as sink:
        tls = "tls: {%s}" % tls.replace("%s", str(certificates))
        with Rig(build, sink, tls, endpoint="https://%s:%d" % (host, sink.port)) as rig:
            rig.send()
            if good:
                rig.settle(60)
                assert sink.taken[0].headers["Host"] == "%s:%d" % (host, sink.port)
            else:
                rig.gateway.until(lambda: "Will retry" in rig.gateway.log())
                assert '"tls"' in rig.gateway.log() and not sink.seen


def test_a_client_certificate_is_shown_and_read_again_on_hup(build, certificates, tmp_path):
    pair = (certificates / "server.pem", certificates / "server.key")
    make_ca(tmp_path, "stranger")
    make_leaf(tmp_path, "stranger", "bad", "/CN=stranger", "clientAuth")
    for part in "pem", "key":
        (tmp_path / ("mine." + part)).write_bytes((tmp_path / ("bad." + part)).read_bytes())
    tls = "tls: {ca_file: %s/ca.pem, cert_file: %s/mine.pem, key_file: %s/mine.key}" % (certificates, tmp_path, tmp_path)
    with PushSink(pair, client_ca=certificates / "ca.pem") as sink:
        with Rig(build, sink, tls, endpoint="https://localhost:%d" % sink.port) as rig:
            rig.send()
            rig.gateway.until(lambda: "Will retry" in rig.gateway.log())
            assert not sink.taken
            for part in "key", "pem":
                (tmp_path / ("mine." + part)).write_bytes((certificates / ("client." + part)).read_bytes())
            rig.gateway.process.send_signal(signal.SIGHUP)
            rig.settle(60)
            assert len(sink.taken) == 1 and "Certificates reloaded" in rig.gateway.log()
