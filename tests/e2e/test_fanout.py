# SPDX-License-Identifier: Apache-2.0
"""OTLP, Pyroscope, Parca and a file at once: each form is made once, and one that is killed or ill harms itself alone."""
import itertools
import os
import time
from collections import Counter

import pytest

from harness import build as make
from harness import kafka, otlp, parca, peers, pprof
from harness.gateway import Gateway
from harness.ills import Grpc, Pipe, Push
from harness.otlphttp import OtlpSink

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:{port:otlp_grpc}, tls: {insecure: true}, timeout: 2s, RETRIES}
  pyroscope: {endpoint: 'http://127.0.0.1:{port:pyroscope}', timeout: 2s, RETRIES}
  parca: {endpoint: 127.0.0.1:{port:parca}, tls: {insecure: true}, timeout: 2s, RETRIES}
  file: {path: out/full, format: json, RETRIES}
MORE
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc, pyroscope, parca, file, THEM]}
"""
KINDS = ("otlp_grpc", "pyroscope", "parca", "file")
SHARERS = """  otlp_grpc/gzip: {endpoint: 127.0.0.1:{port:otlp_grpc}, tls: {insecure: true}}
  otlp_grpc/plain: {endpoint: 127.0.0.1:{port:otlp_grpc}, tls: {insecure: true}, compression: none}
  file/otlp: {path: out/profiles.otlp, format: proto}
  debug: {verbosity: detailed}
"""
SHARER_IDS = ("otlp_grpc/gzip", "otlp_grpc/plain", "file/otlp", "debug")
SHORT = "initial_interval: 100ms, max_interval: 100ms, max_elapsed_time: 200ms"
LONG = "initial_interval: 100ms, max_interval: 200ms, max_elapsed_time: 10m"
CLOCK = itertools.count(time.time_ns() // 10 ** 9 * 10 ** 9, 10 ** 7)


def now(message):
    """The request in bytes, at a time that no other has: Pyroscope looks at it."""
    for rp in message.resource_profiles:
        for sp in rp.scope_profiles:
            for p in sp.profiles:
                p.time_unix_nano = next(CLOCK)
    return message.SerializeToString()


class Fan:
    """The gateway before all four."""

    def __init__(self, build, retries, more="", ids=()):
        text = CONFIG.replace("RETRIES", "retry_on_failure: {%s}" % retries).replace("MORE", more)
        push = Push()
        text = text.replace("{port:pyroscope}", str(push.port)).replace(", THEM", "".join(", " + i for i in ids))
        self.gateway, self.ids = Gateway(build / "portcullis", text), KINDS + tuple(ids)
        self.sinks = {"otlp_grpc": Grpc(self.gateway.port["otlp_grpc"]), "pyroscope": push,
                      "parca": Grpc(self.gateway.port["parca"], method=parca.METHOD), "file": Pipe(self.gateway)}

    def __enter__(self):
        for sink in self.sinks.values():
            sink.start()
        self.gateway.__enter__()
        self.client = peers.Client(self.gateway.port["otlp"])
        return self

    def __exit__(self, *failure):
        self.client.close()
        self.gateway.__exit__(*failure)
        for sink in self.sinks.values():
            sink.stop()

    def total(self, what, exporter):
        return self.gateway.total("otelcol_ledger_%s_samples" % what, exporter=exporter)

    def wait(self):
        """Until no queue has anything."""
        self.gateway.until(lambda: self.gateway.total("otelcol_ledger_queued_samples") == 0)

    def encodings(self):
        """{form: how often}, of those that were made."""
        return {dict(labels)["form"]: int(n) for (name, labels), n in self.gateway.metrics().items()
                if name == "otelcol_packet_encodings" and n}

    def check_ledger(self, sent):
        """Every sample that went in is accounted for at every destination; what was lost, lost the one alone."""
        for exporter in self.ids:
            terms = self.gateway.ledger("profiles", exporter)
            assert terms["in"] == sent and terms["queued"] == 0, terms
            assert self.gateway.balanced("profiles", exporter), (exporter, terms)

    def arrived(self):
        """The sum of all values, at each of the stores."""
        pushed = self.sinks["pyroscope"].values(("cpu", "nanoseconds"))
        stored = sum((parca.samples(data) for data in self.sinks["parca"].received), start=Counter())
        return {"pyroscope": sum(pushed.values()), "parca": sum(stored.values())}


def values(messages):
    return sum(v for m in messages for rp in m.resource_profiles for sp in rp.scope_profiles for p in sp.profiles
               for s in p.samples for v in s.values)


def test_each_form_is_made_once_for_all_destinations(build):
    """Of each packet: gzip for two, JSON for two, its own bytes for two; and a request for each store, one compressed apart."""
    messages = [make.request(seed) for seed in range(30)]
    with Fan(build, SHORT, SHARERS, SHARER_IDS) as fan:
        for message in messages:
            fan.client.send(now(message))
        fan.wait()
        assert fan.encodings() == {"otlp_gzip": 30, "json": 30, "request": 60, "request_gzip": 30}
        fan.check_ledger(sum(map(otlp.count, messages)))
        assert all(fan.total("dropped", exporter) == 0 for exporter in fan.ids)
        assert len(fan.sinks["otlp_grpc"].received) == 90
        assert fan.arrived() == {"pyroscope": values(messages), "parca": values(messages)}
        fan.gateway.until(lambda: fan.sinks["file"].received == 30)


FOUR = """
receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}}
exporters:
  otlp_http: {endpoint: "http://127.0.0.1:HTTP", compression: zstd, RETRIES}
  otlp_http/twin: {endpoint: "http://127.0.0.1:HTTP", compression: zstd, RETRIES}
  pyroscope: {endpoint: "http://127.0.0.1:PUSH", RETRIES}
  kafka: {brokers: ["BROKER"], timeout: 500ms, profiles: {message_key_from_attribute: service.name}, producer: {compression: zstd}, RETRIES}
  kafka/twin: {brokers: ["BROKER"], timeout: 500ms, profiles: {topic: twin}, RETRIES}
  kafka/json: {brokers: ["BROKER"], timeout: 500ms, profiles: {topic: json, encoding: otlp_json}, RETRIES}
  file: {path: out/profiles.jsonl, format: json}
  file/proto: {path: out/profiles.otlp, format: proto}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [IDS]}
"""
FOUR_IDS = ("otlp_http", "otlp_http/twin", "pyroscope", "kafka", "kafka/twin", "kafka/json", "file", "file/proto")


@pytest.mark.skipif(os.environ.get("MODE") == "tsan", reason="ThreadSanitizer does not know the threads of librdkafka")
@pytest.mark.parametrize("away", [None, "kafka", "http"])
def test_http_push_kafka_and_files_share_each_form(build, away):
    """Of each packet: zstd for two, references for three (those as JSON for one), JSON, and the request of a store with its
    compressed form; also if a destination is away for a while, and everything is sent to it again. Kafka's client compresses
    messages itself."""
    with kafka.Broker(build) as broker, Push() as push, OtlpSink() as http:
        text = FOUR.replace("RETRIES", "retry_on_failure: {%s}" % LONG).replace("HTTP", str(http.port)).replace("PUSH", str(push.port))
        text = text.replace("BROKER", broker.address).replace("IDS", ", ".join(FOUR_IDS))
        with Gateway(build / "portcullis", text) as g, peers.Client(g.port["otlp"]) as client:
            def away_now(is_away):
                if away == "kafka":
                    broker.command("down 1" if is_away else "up 1")
                if away == "http":
                    http.stop() if is_away else http.start()
            client.send(now(make.request(0)))
            g.until(lambda: g.total("otelcol_ledger_queued_samples") == 0)
            away_now(True)
            for seed in range(1, 11):
                client.send(now(make.request(seed)))
            g.until(lambda: not away or g.total("otelcol_exporter_retries", exporter=away if away == "kafka" else "otlp_http") > 3)
            away_now(False)
            g.until(lambda: g.total("otelcol_ledger_queued_samples") == 0)
            for exporter in FOUR_IDS:
                assert g.balanced("profiles", exporter) and g.total("otelcol_ledger_out_samples", exporter=exporter) == 11 * 50
            found = {dict(labels)["form"]: int(n) for (name, labels), n in g.metrics().items() if name == "otelcol_packet_encodings" and n}
            assert found == {"otlp_zstd": 11, "references": 11, "references_json": 11, "json": 11, "request": 11, "request_gzip": 11}


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_is_killed_and_restarted_gets_everything_and_each_form_is_made_once(build, kind):
    """However often it is tried, nothing is encoded or compressed again, and nobody else waits."""
    with Fan(build, LONG) as fan:
        fan.client.send(now(make.request(0)))
        fan.wait()
        fan.sinks[kind].stop()
        for seed in range(1, 16):
            fan.client.send(now(make.request(seed)))
        others = [k for k in KINDS if k != kind]
        fan.gateway.until(lambda: all(fan.total("out", k) == 16 * 50 for k in others))
        fan.gateway.until(lambda: fan.gateway.total("otelcol_exporter_retries", exporter=kind) > 20)
        assert fan.total("queued", kind) >= 14 * 50
        fan.sinks[kind].start()
        fan.wait()
        fan.check_ledger(16 * 50)
        assert all(fan.total("out", k) == 16 * 50 for k in KINDS)
        assert fan.encodings() == {"otlp_gzip": 16, "json": 16, "request": 32, "request_gzip": 16}


@pytest.mark.parametrize("kind, ill", [(kind, ill) for kind in KINDS for ill in ("slow_down", "refuse", "refuse_as_too_large")
                                       if (kind, ill) != ("file", "refuse_as_too_large")]) # it refuses no size
def test_one_that_is_ill_takes_nothing_from_the_others(build, kind, ill):
    """What it costs them is measured by `make bench-failing`."""
    with Fan(build, SHORT) as fan:
        fan.client.send(now(make.request(0)))
        fan.wait()
        getattr(fan.sinks[kind], ill)()
        for seed in range(1, 9):
            fan.client.send(now(make.request(seed)))
        fan.wait()
        fan.check_ledger(9 * 50)
        lost = {k: fan.total("dropped", k) for k in KINDS}
        assert lost == {k: 8 * 50 if k == kind and ill != "slow_down" else 0 for k in KINDS}
