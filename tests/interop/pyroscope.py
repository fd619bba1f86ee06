# SPDX-License-Identifier: Apache-2.0
"""Pyroscope: written to by push.v1, read back by querier.v1.

A profile type is NAME:TYPE:UNIT:PERIOD_TYPE:PERIOD_UNIT, times are whole milliseconds since the epoch, and what is
written is visible at once. Sample labels of a pprof come back as labels of the series.
"""
import contextlib
import http.client
import json
from collections import Counter

import interop_stores_pb2 as messages
import pprof_pb2

from harness import pprof
from interop import golang, partner

LOOPBACK = ["distributor.ring.instance-addr", "compactor.ring.instance-addr", "query-frontend.instance-addr",
            "query-scheduler.ring.instance-addr", "store-gateway.sharding-ring.instance-addr",
            "overrides-exporter.ring.instance-addr", "ingester.lifecycler.addr", "server.http-listen-address",
            "server.grpc-listen-address", "memberlist.bind-addr", "memberlist.advertise-addr"]
DIRECTORIES = ["storage.filesystem.dir", "pyroscopedb.data-path", "compactor.data-dir",
               "blocks-storage.bucket-store.sync-dir"]
QUIET = ["-target=all", "-storage.backend=filesystem", "-ingester.min-ready-duration=0s", "-config.show_banner=false",
         "-usage-stats.enabled=false", "-self-profiling.disable-push=true"]
# For tests that are about what is stored and not about the limits: 2 MiB at once is the least of them.
ROOMY = ["-distributor.ingestion-burst-size-mb=64", "-distributor.ingestion-rate-limit-mb=1000"]


def selector(labels):
    return "{%s}" % ",".join('%s=%s' % (k, json.dumps(v)) for k, v in sorted(labels.items()))


class Pyroscope(partner.Partner):
    """Pyroscope(options=[...]) with its own limits, or with `ROOMY` ones."""

    name, version, fixture = "Pyroscope", "1.12.0", "pyroscope"
    takes_otlp = False
    PORTS = ("http", "grpc", "gossip")

    @staticmethod
    def cumulative(*values):
        """What it makes of values that are sent as cumulative ones."""
        return values[-1] - values[0]

    @staticmethod
    def negative(value):
        """What it adds for such a value."""
        return value

    def __init__(self, options=(), **ports):
        super().__init__(**ports)
        self.options = list(options)

    @classmethod
    def installed(cls):
        return golang.store("pyroscope", cls.version)

    def command(self, program):
        return [program, *QUIET, *("-%s=127.0.0.1" % name for name in LOOPBACK),
                *("-%s=%s" % (name, self.directory / name) for name in DIRECTORIES),
                "-server.http-listen-port=%d" % self.port["http"], "-server.grpc-listen-port=%d" % self.port["grpc"],
                "-memberlist.bind-port=%d" % self.port["gossip"], *self.options]

    def ready(self):
        try:
            return self.request("GET", "/ready")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def request(self, method, path, body=None, headers=None):
        """(status, body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port["http"], timeout=60)
        with self.explained(), contextlib.closing(connection):
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def push(self, *series, headers=None):
        """Series are (labels, pprof bytes); (status, text) of one request for all of them."""
        message = messages.PushRequest()
        for labels, body in series:
            row = message.series.add(labels=[messages.Label(name=k, value=v) for k, v in sorted(labels.items())])
            row.samples.add(raw_profile=body)
        return self.request("POST", "/push.v1.PusherService/Push", message.SerializeToString(),
                            dict({"Content-Type": "application/proto"}, **headers or {}))

    def _query(self, method, body, kind, headers):
        """Its parts now and then cancel what one asks the other for; such a question is asked again."""
        for _ in range(3):
            status, answer = self.request("POST", "/querier.v1.QuerierService/" + method, body,
                                          dict({"Content-Type": kind}, **headers or {}))
            if status == 200 or b"canceled: stream error" not in answer:
                break
        assert status == 200, (method, answer)
        return answer

    def _ask(self, method, headers, **fields):
        return json.loads(self._query(method, json.dumps(fields), "application/json", headers))

    def profile_types(self, start, end, headers=None):
        """["process_cpu:cpu:nanoseconds:cpu:nanoseconds", ...]"""
        found = self._ask("ProfileTypes", headers, start=start, end=end)
        return sorted(x["ID"] for x in found.get("profileTypes", []))

    def label_names(self, labels, start, end, headers=None):
        """The names that series with these labels have."""
        found = self._ask("LabelNames", headers, matchers=[selector(labels)], start=start, end=end)
        return sorted(found.get("names", []))

    def series(self, labels, start, end, headers=None):
        """The labels of each series that has these, as dicts; `__profile_type__` is one of them."""
        found = self._ask("Series", headers, matchers=[selector(labels)], labelNames=[], start=start, end=end)
        return [{x["name"]: x["value"] for x in row.get("labels", [])} for row in found.get("labelsSet", [])]

    def profile(self, kind, labels, start, end, headers=None):
        """The pprof that all profiles of this type and these labels add up to in [start, end], which must differ."""
        message = messages.SelectMergeProfileRequest(profile_type_id=kind, label_selector=selector(labels), start=start,
                                                     end=end)
        return pprof_pb2.Profile.FromString(
            self._query("SelectMergeProfile", message.SerializeToString(), "application/proto", headers))

    def values(self, kind, labels, start, end=None, headers=None):
        """{stack: sum of the values}, of the same; of one millisecond where there is no end."""
        if end is not None:
            return pprof.values(self.profile(kind, labels, start, end, headers))
        found = self.values(kind, labels, start - 1, start, headers)
        found.update(self.values(kind, labels, start, start + 1, headers))
        found.subtract(self.values(kind, labels, start - 1, start + 1, headers))
        return Counter({stack: value for stack, value in found.items() if value})


class NewPyroscope(Pyroscope):
    """With the storage that became the default after it."""

    version = "1.21.0"
    takes_otlp = True
    PORTS = ("http", "grpc", "gossip", "raft")

    @staticmethod
    def cumulative(*values):
        return sum(values)

    @staticmethod
    def negative(_):
        return 0

    def command(self, program):
        at = {name: "127.0.0.1:%d" % port for name, port in self.port.items()}
        words = {"metastore.address": at["grpc"], "metastore.raft.bind-address": at["raft"],
                 "metastore.raft.advertise-address": at["raft"], "metastore.raft.server-id": at["raft"],
                 "metastore.data-dir": self.directory / "metastore", "metastore.raft.dir": self.directory / "raft",
                 "metastore.raft.snapshots-dir": self.directory / "snapshots", "metastore.min-ready-duration": "0s",
                 "query-backend.address": at["grpc"], "segment-writer.lifecycler.addr": "127.0.0.1",
                 "segment-writer.min-ready-duration": "0s", "segment-writer.segment-duration": "50ms",
                 "compaction-worker.temp-dir": self.directory, "write-path": "segment-writer",
                 "enable-query-backend": "true", "all.enable-v1-write-path": "false", "all.enable-v1-read-path": "false"}
        return ["env", "PYROSCOPE_V2=1", *super().command(program), *("-%s=%s" % word for word in words.items())]
