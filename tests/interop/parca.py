# SPDX-License-Identifier: Apache-2.0
"""Parca: written to by WriteRaw, read back by its query service, both gRPC.

A profile type is NAME:TYPE:UNIT:PERIOD_TYPE:PERIOD_UNIT, and `:delta` where the profile had a duration. Times are whole
milliseconds since the epoch; what is written is visible at once. Sample labels of a pprof are lost.
"""
import itertools
import re

import grpc
import interop_stores_pb2 as messages
import pprof_pb2

from harness import corpus, peers, pprof
from interop import golang, partner, process

SERVICES = {"WriteRaw": "/parca.profilestore.v1alpha1.ProfileStoreService/",
            **dict.fromkeys(["Query", "QueryRange", "ProfileTypes", "Labels", "Values"],
                            "/parca.query.v1alpha1.QueryService/")}
CONFIG = "object_storage: {bucket: {type: FILESYSTEM, config: {directory: ./bucket}}}\n"
SINGLE, MERGE, PPROF = 0, 2, 1
# The health service: one byte string field in, an enum out.
SERVING = b"\x08\x01"


def selector(kind, labels):
    labels = {k if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", k) else '"%s"' % k: v for k, v in labels.items()}
    return "%s{%s}" % (kind, ",".join('%s="%s"' % (k, v.replace("\\", "\\\\").replace('"', '\\"'))
                                      for k, v in sorted(labels.items())))


def stamp(ms):
    return messages.Timestamp(seconds=ms // 1000, nanos=ms % 1000 * 10 ** 6)


def milliseconds(t):
    return t.seconds * 1000 + t.nanos // 10 ** 6


class Parca(partner.Partner):
    """In memory: a start is a clean store."""

    name, version, fixture = "Parca", "0.21.0", "parca"
    names, service = "legacy", "service_name" # how our exporter is to write labels
    takes_otlp = ends_untyped = False
    channel = None

    @classmethod
    def installed(cls):
        return golang.store("parca", cls.version)

    def command(self, program):
        (self.directory / "parca.yaml").write_text(CONFIG)
        return [program, "--config-path=parca.yaml", "--http-address=127.0.0.1:%d" % self.port["http"],
                "--debuginfo-cache-dir=" + str(self.directory / "debuginfo"), "--debuginfod-upstream-servers="]

    def ready(self):
        if not process.taken(self.port["http"]):
            return False # a channel that was refused once waits before it tries again
        if not self.channel:
            self.channel = grpc.insecure_channel("127.0.0.1:%d" % self.port["http"], peers.LIMIT)
            self.held.callback(self.channel.close)
        try:
            return self.channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=1) == SERVING
        except grpc.RpcError:
            return False

    def call(self, method, request, answer=None):
        """The decoded answer; grpc.RpcError where it is refused."""
        with self.explained():
            data = self.channel.unary_unary(SERVICES[method] + method)(request.SerializeToString(), timeout=300)
        return answer and answer.FromString(data)

    def write(self, *series):
        """Series are (labels, pprof bytes); one request for all of them."""
        message = messages.WriteRawRequest()
        for labels, body in series:
            row = message.series.add()
            row.labels.labels.extend(messages.Label(name=k, value=v) for k, v in sorted(labels.items()))
            row.samples.add(raw_profile=body)
        self.call("WriteRaw", message)

    def profile_types(self):
        """["process_cpu:samples:count:cpu:nanoseconds:delta", ...]"""
        found = self.call("ProfileTypes", messages.ProfileTypesRequest(), messages.ProfileTypesResponse)
        return sorted(":".join([t.name, t.sample_type, t.sample_unit, t.period_type, t.period_unit]
                               + ["delta"] * t.delta) for t in found.types)

    def label_names(self, start, end):
        return sorted(self.call("Labels", messages.LabelsRequest(start=stamp(start), end=stamp(end)),
                                messages.LabelsResponse).label_names)

    def label_values(self, name, start, end):
        return sorted(self.call("Values", messages.ValuesRequest(label_name=name, start=stamp(start), end=stamp(end)),
                                messages.ValuesResponse).label_values)

    def series(self, kind, labels, start, end):
        """[(labels, {time: sum of the values})] of each series of this type that has these labels."""
        found = self.call("QueryRange", messages.QueryRangeRequest(
            query=selector(kind, labels), start=stamp(start), end=stamp(end), step=stamp(1),
            sum_by=self.label_names(start, end)), messages.QueryRangeResponse)
        return [({x.name: x.value for x in row.labelset.labels},
                 {milliseconds(s.timestamp): s.value for s in row.samples}) for row in found.series]

    def profile(self, kind, labels, start, end=None):
        """The pprof that all profiles of this type and these labels add up to in [start, end]; of one time where there
        is no end."""
        request = messages.QueryRequest(report_type=PPROF)
        request.runtime_filter.show_python = request.runtime_filter.show_ruby = True
        if end is None:
            request.mode, request.single.query = SINGLE, selector(kind, labels)
            request.single.time.CopyFrom(stamp(start))
        else:
            request.mode, request.merge.query = MERGE, selector(kind, labels)
            request.merge.start.CopyFrom(stamp(start))
            request.merge.end.CopyFrom(stamp(end))
        return pprof_pb2.Profile.FromString(corpus.inflate(self.call("Query", request, messages.QueryResponse).pprof))

    def values(self, kind, labels, start, end=None):
        """{stack: sum of the values}, of the same. What was samples/count comes back times its period."""
        return pprof.values(self.profile(kind, labels, start, end))


class NewParca(Parca):
    """Label names may be any text."""

    version = "0.28.0"
    names, service = "utf8", "service.name"
    takes_otlp = ends_untyped = True

    def series(self, *question):
        """Now and then its list leaves values out, of a store with much in it; the same question answered again has them."""
        found = {}
        answers = [super(NewParca, self).series(*question) for _ in range(10)]
        for labels, times in itertools.chain(*answers):
            known = found.setdefault(frozenset(labels.items()), times)
            known.update((time, max(value, known.get(time, value))) for time, value in times.items())
        return [(dict(labels), times) for labels, times in found.items()]
