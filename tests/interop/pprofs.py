# SPDX-License-Identifier: Apache-2.0
"""The pprofs that go through the gateway to stores, made ones always and recorded ones where they are, and what a store
must have of each afterwards, by the input and the manual alone."""
import re
import time
from collections import Counter

from harness import build as make
from harness import corpus, peers, pprof
from interop import gate

NOW = time.time_ns() // 10 ** 9 * 10 ** 9
MS = NOW // 10 ** 6
WINDOW = (MS - 3600 * 1000, MS + 600 * 1000)
# What may be known of a sample: the labels of the recorded pprofs but for two, which are denied.
KEYS = ["thread", "thread id", "thread name", "thread_id", "thread_name", "some-key", "mylabel", "grpcmethod", "type",
        "device", "kind"]
RECEIVER = """
receivers:
  pprof: {server: {endpoint: "127.0.0.1:{port:pprof}", max_request_body_size: 67108864}}
processors:
  allowlist: {keys: %s}
""" % ["service.name", *KEYS]


def _made():
    yield "made-plain", make.pprof(1)
    yield "made-labels", make.pprof(2, labels=("thread", "some-key", "thread id", "secret"))
    yield "made-dashes", make.pprof(3, types=(("wall-time", "nanoseconds"),))
    yield "made-many", make.pprof(4, samples=17000, functions=300)
    untyped = make.pprof(5)
    untyped.ClearField("period_type")
    yield "made-untyped", untyped
    renumbered = make.pprof(6)
    for x in renumbered.location:
        x.id += 4
        for line in x.line:
            line.function_id += 4
    for x in renumbered.function:
        x.id += 4
    for s in renumbered.sample:
        s.location_id[:] = [i + 4 for i in s.location_id]
    yield "made-ids", renumbered
    instant = make.pprof(7, types=(("goroutine", "count"),))
    instant.duration_nanos = 0
    yield "made-instant", instant


def _all():
    for name, profile in [*_made(), *((path.name, pprof.parse(path.read_bytes())) for path in corpus.files("pprof/*"))]:
        profile.time_nanos = NOW
        yield name, profile


BODIES = dict(_all())
SERVICE = {name: "service-%d" % i for i, name in enumerate(BODIES)}


def send(g, name, exporter):
    """Through the gateway's receiver, until the exporter is done with it."""
    status, _, text = peers.post(g.port["pprof"], BODIES[name].SerializeToString(),
                                 path="/v1/pprof?service.name=" + SERVICE[name])
    assert status == 204, (name, text)
    gate.flushed(g, exporter)


def kinds(profile):
    reader = pprof.Reader(profile)
    return [reader.kind(t) for t in profile.sample_type]


def period_type(profile):
    return pprof.Reader(profile).kind(profile.period_type)


def legacy(key):
    """A name that every store takes."""
    return re.sub("[^A-Za-z0-9_]", "_", key)


def spelled(key, names):
    """A label's name as a store has it that knows these names: "legacy" or "utf8"."""
    return legacy(key) if names == "legacy" else key


def _labels(raw, numbers, names):
    """What becomes labels of a series: texts, and numbers as texts where the destination takes them."""
    for key, (first, *_) in raw.items():
        if key in KEYS and first and (numbers or isinstance(first, str)):
            yield spelled(key, names), first if isinstance(first, str) else str(first[0])


def _sums(profile, place, numbers, names):
    """{labels: {location ids: sum}}, by the permitted labels, which make some samples equal."""
    reader, sums = pprof.Reader(profile), {}
    for sample in profile.sample:
        labels = frozenset(_labels(reader.labels(sample), numbers, names))
        sums.setdefault(labels, Counter())[tuple(sample.location_id)] += sample.value[place]
    return sums


def values(profile, place, names, numbers=False):
    """{labels as a store has them: {stack: sum}} of one sample type, of what is above 0, for no store keeps more."""
    reader, found = pprof.Reader(profile), {}
    for labels, group in _sums(profile, place, numbers, names).items():
        one = [type(profile.sample[0])(location_id=ids, value=[n]) for ids, n in group.items() if n > 0]
        if one:
            found[labels] = pprof.values_of(reader, one)
    return found


def below_zero(profile, numbers=False):
    """How many samples policy leaves that are below 0, of all types."""
    return sum(n < 0 for place in range(len(profile.sample_type))
               for group in _sums(profile, place, numbers, "utf8").values() for n in group.values())


def exactly(labels, among):
    """Matchers for the series that has these labels and none of the other names."""
    return dict({name: "" for one in among for name, _ in one}, **dict(labels))
