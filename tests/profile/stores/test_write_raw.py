# SPDX-License-Identifier: Apache-2.0
"""OTLP -> WriteRaw: what the parca exporter sends is what the sender meant, and keeps every rule of Parca's.

The rules themselves are checked by harness.parca on everything that is read here.
"""
import subprocess
from collections import Counter

import pytest

from harness import build as make
from harness import corpus, otlp, parca, pprof


def lines(text):
    return {reason: int(count) for reason, count in (line.split() for line in text.decode().splitlines())}


def convert(build, message, *options):
    """(the request, {reason: how many were lost})"""
    data = message if isinstance(message, bytes) else message.SerializeToString()
    done = subprocess.run([build / "tests/support/write_raw_tool", *options], input=data, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout, lines(done.stderr)


def one(resource=None, kind=("cpu", "nanoseconds"), period_type=("cpu", "nanoseconds"), values=(7,), attributes=(),
        scope=None, **keywords):
    """A request of one Profile with a sample for each of the values."""
    m = make.Maker()
    sp = m.scope(m.resource({"service.name": "shop"} if resource is None else resource))
    for key, value in (scope or {}).items():
        make.set_value(sp.scope.attributes.add(key=key).value, value)
    p = m.profile(sp, kind, period_type, **keywords)
    stack = m.stack([m.location([m.function("main")])])
    for value in values:
        p.samples.add(stack_index=stack, values=[value], attribute_indices=[m.attribute(k, v) for k, v in attributes])
    return m.message


def kinds_of(data, **keywords):
    return [kind for labels, profile in parca.read(data, **keywords) for kind in parca.kinds(labels, profile)]


def labels_of(data, **keywords):
    return [labels for labels, _ in parca.read(data, **keywords)]


# ---- types

@pytest.mark.parametrize("kind, period_type, expected", [
    (("cpu", "nanoseconds"), ("cpu", "nanoseconds"), "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta"),
    (("samples", "count"), ("cpu", "nanoseconds"), "process_cpu:samples:count:cpu:nanoseconds:delta"),
    (("alloc_space", "bytes"), ("space", "bytes"), "memory:alloc_space:bytes:space:bytes:delta"),
    (("goroutine", "count"), ("goroutine", "count"), "goroutine:goroutine:count:goroutine:count:delta"),
    (("inuse_objects", "count"), None, "memory:inuse_objects:count:inuse_objects:count:delta"),
    (("off_cpu", "nanoseconds"), None, "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds:delta"),
    (("wall-time", "nano.seconds"), ("my-type", "a b"), "my_type:wall_time:nano_seconds:my_type:a_b:delta"),
    (("wäll:time", "%"), ("", ""), "unknown:w_ll_time:_:unknown:unknown:delta"),
    (("", ""), None, "unknown:unknown:unknown:unknown:unknown:delta"),
    (("x" * 1025, "x" * 1024), None, "unknown:unknown:%s:unknown:%s:delta" % ("x" * 1024, "x" * 1024)),
    (("5min", "count"), None, "_5min:5min:count:5min:count:delta"),
])
def test_a_type_is_one_that_queries_can_name(build, kind, period_type, expected):
    data, _ = convert(build, one(kind=kind, period_type=period_type))
    assert kinds_of(data) == [expected]


def test_without_a_duration_it_is_no_delta(build):
    message = one()
    message.resource_profiles[0].scope_profiles[0].profiles[0].duration_nano = 0
    assert kinds_of(convert(build, message)[0]) == ["process_cpu:cpu:nanoseconds:cpu:nanoseconds"]


def test_a_configured_name_is_that_of_all(build):
    data, _ = convert(build, one(), "-n", "prod")
    assert kinds_of(data) == ["prod:cpu:nanoseconds:cpu:nanoseconds:delta"]


# ---- labels

def test_labels_come_from_resource_scope_and_profile_in_this_order(build):
    message = one({"service.name": "shop", "who": "resource"}, scope={"who": "scope", "zone": "b"})
    m = make.Maker()
    m.message, m.d, m.places = message, message.dictionary, {"": 0}
    profile = message.resource_profiles[0].scope_profiles[0].profiles[0]
    profile.attribute_indices.extend([m.attribute("who", "profile"), m.attribute("zone", "c"), m.attribute("n", 5)])
    data, lost = convert(build, message)
    assert labels_of(data) == [
        {"__name__": "process_cpu", "service_name": "shop", "who": "resource", "zone": "b", "n": "5"}]
    assert lost == {"collision": 3}


def test_keys_become_names_that_both_parcas_take(build):
    message = one({"k8s.pod-name": "a", "k8s.pod_name": "b", "1st": "c", "ü": "d", "empty": ""})
    data, lost = convert(build, message)
    assert labels_of(data) == [{"__name__": "process_cpu", "k8s_pod_name": "a", "_1st": "c", "_": "d"}]
    assert lost == {"collision": 1}


def test_keys_stay_as_they_are_for_the_newest(build):
    data, lost = convert(build, one({"k8s.pod-name": "a", "k8s.pod_name": "b"}), "-u")
    assert labels_of(data, utf8=True) == [{"__name__": "process_cpu", "k8s.pod-name": "a", "k8s.pod_name": "b"}]
    assert not lost


def test_there_are_labels_where_nothing_has_attributes(build):
    message = one({})
    message.resource_profiles[0].ClearField("resource")
    message.resource_profiles[0].scope_profiles[0].ClearField("scope")
    assert labels_of(convert(build, message)[0]) == [{"__name__": "process_cpu"}]


@pytest.mark.parametrize("sent, name", [("mine", "mine"), ("a:b", "process_cpu"), ("1x", "process_cpu"), ("gr\u00fc\u00df", "process_cpu")])
def test_a_sender_names_the_series_by_an_identifier(build, sent, name):
    data, lost = convert(build, one({"__name__": sent, "__other__": "x"}))
    assert labels_of(data) == [{"__name__": name}]
    assert lost == {"reserved": 1}
    assert labels_of(convert(build, one({"__name__": sent}), "-n", "prod")[0]) == [{"__name__": "prod"}]


# ---- samples

THREADS = [("thread.name", "a"), ("pid", 1)]


def test_sample_labels_are_taken_off_and_counted(build):
    data, lost = convert(build, one(attributes=THREADS))
    assert sum(parca.samples(data).values()) == 7
    assert lost == {"sample_label": 2}


def threads():
    """Two types of the same samples, whose threads alternate."""
    m = make.Maker()
    sp = m.scope(m.resource({"service.name": "shop"}))
    stack = m.stack([m.location([m.function("main")])])
    names = [m.attribute("thread.name", "t%d" % i) for i in range(2)]
    pids = [m.attribute("pid", i) for i in range(3)]
    for kind, scale in ((("samples", "count"), 1), (("cpu", "nanoseconds"), 100)):
        p = m.profile(sp, kind)
        for i in range(6):
            p.samples.add(stack_index=stack, values=[scale * 2 ** i], attribute_indices=[pids[i % 3], names[i % 2]])
    return m.message


def test_lifted_labels_become_series_of_their_own(build):
    data, lost = convert(build, threads(), "-l", "thread.name")
    got = {(labels["thread_name"], kind.split(":")[1]): profile.sample[0].value[i]
           for labels, profile in parca.read(data) for i, kind in enumerate(parca.kinds(labels, profile))}
    assert got == {("t0", "samples"): 1 + 4 + 16, ("t1", "samples"): 2 + 8 + 32,
                   ("t0", "cpu"): 2100, ("t1", "cpu"): 4200}
    assert len(parca.read(data)) == 2, "the types of the same samples stay in one pprof"
    assert lost == {"sample_label": 12}


def test_several_keys_are_lifted_together_in_any_order(build):
    data, lost = convert(build, threads(), "-l", "thread.name", "-l", "pid")
    assert sorted((x["thread_name"], x["pid"]) for x in labels_of(data)) == [
        (t, p) for t in ("t0", "t1") for p in ("0", "1", "2")]
    assert not lost


def test_a_lifted_label_gives_way_to_that_of_the_resource(build):
    data, lost = convert(build, one({"pid": 5}, attributes=THREADS), "-l", "pid")
    assert labels_of(data) == [{"__name__": "process_cpu", "pid": "5"}]
    assert lost == {"collision": 1, "sample_label": 1}


def test_links_are_lost_and_counted(build):
    message = one()
    message.dictionary.link_table.add(trace_id=b"t" * 16, span_id=b"s" * 8)
    message.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].link_index = 1
    assert convert(build, message)[1] == {"sample_label": 2}


def test_negative_values_do_not_leave_and_the_others_do(build):
    data, _ = convert(build, one(values=[3, -1, 4]))
    assert sum(parca.samples(data).values()) == 7


def test_nothing_is_sent_of_a_request_with_negative_values_only(build):
    assert convert(build, one(values=[-1]))[0] == b""


def test_timestamps_are_counted(build):
    message = one(values=[])
    p = message.resource_profiles[0].scope_profiles[0].profiles[0]
    p.samples.add(stack_index=1, timestamps_unix_nano=[10 ** 18 + i for i in range(3)])
    assert sum(parca.samples(convert(build, message)[0]).values()) == 3


def test_a_profile_without_time_has_that_of_its_arrival(build):
    data, _ = convert(build, one(time=0), "-t", "1234")
    assert [profile.time_nanos for _, profile in parca.read(data)] == [1234]


def test_addresses_are_said_to_be_normalized_only_when_they_are(build):
    for options, expected in ((), False), (("-N",), True):
        data, _ = convert(build, one(), *options)
        assert parca.messages.WriteRawRequest.FromString(data).normalized == expected


# ---- everything together

@pytest.mark.parametrize("path", corpus.files("pprof/*"), ids=lambda p: p.name)
def test_a_corpus_pprof_arrives_whole(build, path):
    original = pprof.parse(path.read_bytes())
    done = subprocess.run([build / "tests/support/pprof_tool", "sealed"], input=path.read_bytes(), capture_output=True)
    size = int.from_bytes(done.stdout[:4], "big")
    sealed = done.stdout[size + 8:size + 8 + int.from_bytes(done.stdout[size + 4:size + 8], "big")]
    data, _ = convert(build, sealed, "-t", "1")
    reader, want = pprof.Reader(original), Counter()
    for i, kind in enumerate(original.sample_type):
        plain = tuple("".join(c if c.isascii() and c.isalnum() or c == "_" else "_" for c in x) or "unknown"
                      for x in reader.kind(kind))
        for sample in original.sample:
            if sample.value[i] > 0:
                want[plain, original.time_nanos or 1, reader.stack(sample)] += sample.value[i]
    got = Counter()
    for (_, kind, time, stack), value in parca.samples(data).items():
        got[tuple(kind.split(":")[1:3]), time, stack] += value
    assert got == want


def value_of(sample):
    """As pprof has it: the sum, or the nearest that 64 bits hold, or the number of timestamps."""
    if not sample.values:
        return len(sample.timestamps_unix_nano)
    return max(-2 ** 63, min(sum(sample.values), 2 ** 63 - 1))


@pytest.mark.parametrize("options", [(), ("-l", "a", "-l", "b"), ("-u",)], ids=["plain", "lifted", "utf8"])
def test_whatever_comes_every_rule_is_kept_and_every_value_arrives(build, options):
    for seed in range(120):
        message = otlp.parse(make.RandomRequest(seed).make())
        profiles = [p for rp in message.resource_profiles for sp in rp.scope_profiles for p in sp.profiles]
        values = [value_of(s) for p in profiles for s in p.samples]
        if otlp.samples(message):
            got = parca.samples(convert(build, message, *options)[0], utf8="-u" in options)
            assert sum(got.values()) == sum(v for v in values if v > 0), seed
