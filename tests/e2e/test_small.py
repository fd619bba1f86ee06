# SPDX-License-Identifier: Apache-2.0
"""A small container: what a destination that is dead or slow holds leaves room for requests on their way to the others."""
import contextlib
import http.client
import itertools
import os
import re
import threading
import time
from collections import Counter
from concurrent import futures

import pytest

from harness import build as make
from harness import peers, preload
from harness.gateway import READY, Gateway

pytestmark = pytest.mark.skipif(os.environ.get("MODE") in ("asan", "tsan"),
                                reason="the sanitizers' memory is not ours to bound")
MIB = 1 << 20
REQUESTS, SENDERS, SAMPLES, TYPES = 320, 3, 340, 2
ATTEMPTS = 8 # of one request, each after the time that the refusal names
CONFIG = """
receivers:
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
processors:
  batch: {timeout: 200ms}
  memory_limiter: {check_interval: 1s, limit_mib: LIMIT}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:{port:store}, tls: {insecure: true}, timeout: 5s}
  pyroscope: {endpoint: "http://127.0.0.1:{port:nobody}", limits: {max_age: 876000h}}
  file: {path: out.jsonl}
service:
  pipelines:
    profiles: {receivers: [pprof], processors: [PROCESSORS], exporters: [EXPORTERS]}
"""
UNHEALTHY = {"one dead": ["otlp_grpc"], "two dead": ["otlp_grpc", "pyroscope"], "one slow": ["otlp_grpc"],
             "one dead that plans": ["pyroscope"]}


def start(build, mib, processors, exporters):
    """In a container of so much memory, or with so much for the limiter."""
    limited = "memory_limiter" in processors
    text = CONFIG.replace("LIMIT", str(mib)).replace("EXPORTERS", ", ".join(exporters))
    container = preload.env(build, "machine", MACHINE_MIB=str(mib))
    return Gateway(build / "portcullis", text.replace("PROCESSORS", ", ".join(processors)),
                   env={} if limited else container, ready=False)


@pytest.fixture(scope="module")
def bodies():
    """{time: pprof} of 19 KB, with functions of their own, so that a batch does not make one of several."""
    profiles, found = [make.pprof(seed, samples=SAMPLES, functions=200, prefix="app%d" % seed) for seed in range(16)], {}
    for i in range(REQUESTS):
        profile = profiles[i % len(profiles)]
        profile.time_nanos = 10 ** 18 + i
        found[profile.time_nanos] = profile.SerializeToString()
    assert all(19000 <= len(body) <= 21000 for body in found.values())
    return found


class Senders:
    """Several at once, each on one connection. A request that is refused is sent again when the refusal says, and must get
    through. An idle connection may have been closed for want of memory: then the request goes over a new one. The gateway
    must have counted each of these connections, and a request that had been accepted nevertheless would be found twice."""

    def __init__(self, gateway, bodies):
        self.gateway, self.lock, self.attempts, self.failures, self.lost = gateway, threading.Lock(), {}, [], []
        self.bodies = list(bodies.items())

    def send_one(self, connection, time_nanos, body):
        for attempt in range(1, ATTEMPTS + 1):
            try:
                connection.request("POST", "/v1/pprof", body=body)
                answer = connection.getresponse()
            except ConnectionError as lost:
                text = repr(lost)
                self.lost.append(lost)
                connection.close()
                continue
            text = answer.read()
            if answer.status == 204:
                self.attempts[time_nanos] = attempt
                return
            assert answer.status == 503, (answer.status, text)
            time.sleep(int(answer.headers["Retry-After"]))
        raise AssertionError("refused again and again: %r" % text)

    def send(self):
        try:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.gateway.port["pprof"], timeout=60)) as c:
                while True:
                    with self.lock:
                        if not self.bodies or self.failures:
                            return
                        time_nanos, body = self.bodies.pop()
                    self.send_one(c, time_nanos, body)
        except Exception as failure:
            self.failures.append(failure)

    def run(self):
        threads = [threading.Thread(target=self.send) for _ in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self.failures, self.failures


def written(gateway):
    """{time: profiles} in what the healthy destination has."""
    return Counter(map(int, re.findall(rb'"timeUnixNano":"(\d+)"', (gateway.directory / "out.jsonl").read_bytes())))


@contextlib.contextmanager
def store(gateway, slow):
    """A closed port, or one that takes half a second for each request."""
    if not slow:
        yield
        return
    over = threading.Event()
    sink = peers.Sink(gateway.port["store"])
    sink.answer = lambda data, context: b"" if over.wait(.5) else b""
    with sink:
        yield
        over.set()


def run(build, bodies, case, batch, limiter, mib):
    unhealthy = UNHEALTHY[case]
    gateway = start(build, mib, limiter + batch, unhealthy + ["file"])
    with store(gateway, case == "one slow"), gateway:
        gateway.until(lambda: READY in gateway.log())
        senders = Senders(gateway, bodies)
        senders.run()
        gateway.until(lambda: gateway.total("otelcol_ledger_out_samples", exporter="file") >= REQUESTS * SAMPLES * TYPES)
        assert len(senders.attempts) == REQUESTS
        assert len(senders.lost) <= gateway.total("otelcol_http_server_closed_connections", reason="memory"), senders.lost
        assert written(gateway) == {t: TYPES for t in senders.attempts}
        for exporter in unhealthy + ["file"]:
            gateway.until(lambda: gateway.balanced("profiles", exporter))
            assert gateway.total("otelcol_exporter_queue_memory_bytes", exporter=exporter) <= \
                gateway.total("otelcol_exporter_queue_memory_limit_bytes", exporter=exporter)
        assert gateway.rss()["VmHWM"] < mib * MIB, "the kernel would have ended it"
        gateway.process.kill()
        gateway.process.wait()


@pytest.mark.parametrize("batch", [[], ["batch"]], ids=["each", "batch"])
@pytest.mark.parametrize("case", UNHEALTHY)
def test_the_healthy_destination_receives_everything(build, bodies, case, batch):
    """Two sizes at a time: most of the time goes by while senders wait for their turn."""
    cases = list(itertools.product([[], ["memory_limiter"]], [48, 64, 128, 256]))
    with futures.ThreadPoolExecutor(2) as pool:
        runs = {str(c): pool.submit(run, build, bodies, case, batch, *c) for c in cases}
    failures = {c: r.exception() for c, r in runs.items() if r.exception()}
    assert not failures


@pytest.mark.parametrize("limiter", [[], ["memory_limiter"]], ids=["container", "limiter"])
def test_less_than_the_process_needs_is_an_error_at_start_with_the_number(build, limiter):
    with start(build, 16, limiter, ["file"]) as gateway:
        assert gateway.process.wait(30) == 1
        number = int(re.search(r"the limit must be at least (\d+) MiB", gateway.log())[1])
        assert READY not in gateway.log()
    with start(build, number + 1 if limiter else (number + 1) * 5 // 4 + 1, limiter, ["file"]) as gateway:
        gateway.until(lambda: READY in gateway.log())
