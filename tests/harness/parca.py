# SPDX-License-Identifier: Apache-2.0
"""Reads WriteRaw requests independently of our code, and knows what Parca asks of them."""
import re
from collections import Counter

import interop_stores_pb2 as messages
import pprof_pb2

from harness import pprof

METHOD = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
PART = re.compile(r"[A-Za-z0-9_]+")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_labels(series, utf8=False):
    """{name: value} of a series that both Parcas take."""
    assert series.HasField("labels"), "a series without labels ends Parca's process"
    names = [x.name for x in series.labels.labels]
    assert len(set(names)) == len(names), "each name once"
    assert "__name__" in names
    assert utf8 or all(NAME.fullmatch(name) for name in names), names
    assert all(names), "no name is empty"
    labels = {x.name: x.value for x in series.labels.labels}
    assert NAME.fullmatch(labels["__name__"])
    return labels


def check_profile(body):
    """The pprof, which breaks no rule of Parca's and spoils nobody's queries."""
    profile = pprof_pb2.Profile.FromString(body)
    pprof.check_tables(profile)
    reader = pprof.Reader(profile)
    assert profile.HasField("period_type"), "else nobody can list the types any more"
    for kind in [*profile.sample_type, profile.period_type]:
        for text in reader.kind(kind):
            assert PART.fullmatch(text), "a query could not name %r" % text
    for sample in profile.sample:
        assert len(sample.value) == len(profile.sample_type)
        assert all(v >= 0 for v in sample.value), "it would read back as a huge number"
        assert not sample.label
        reader.stack(sample)
    return profile


def read(data, utf8=False):
    """[(labels, pprof)] of a request that keeps all rules."""
    request = messages.WriteRawRequest.FromString(data)
    assert not request.UnknownFields() and not request.tenant
    return [(check_labels(series, utf8), check_profile(sample.raw_profile))
            for series in request.series for sample in series.samples]


def kinds(labels, profile):
    """The names under which Parca lists it."""
    reader = pprof.Reader(profile)
    delta = ["delta"] if profile.duration_nanos else []
    return [":".join([labels["__name__"], *reader.kind(t), *reader.kind(profile.period_type), *delta])
            for t in profile.sample_type]


def samples(data, utf8=False):
    """Counter {(labels, kind, time, stack): sum of the values}, as the store would have it: zeros are not kept."""
    found = Counter()
    for labels, profile in read(data, utf8):
        reader, rest = pprof.Reader(profile), frozenset((k, v) for k, v in labels.items() if k != "__name__")
        for i, kind in enumerate(kinds(labels, profile)):
            for sample in profile.sample:
                if sample.value[i]:
                    found[rest, kind, profile.time_nanos, reader.stack(sample)] += sample.value[i]
    return found
