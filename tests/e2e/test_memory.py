# SPDX-License-Identifier: Apache-2.0
"""The ceiling: many large requests at once into a small limit. The peak stays below it, and what is refused comes back."""
import contextlib
import gzip
import http.client
import os
import threading
import time

import grpc
import pytest

from harness import build as make
from harness import parca, peers
from harness.gateway import Gateway
from harness.push import PushSink

MIB = 1 << 20
LIMIT_MIB = 64
SENDERS, ROUNDS = 8, 2
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: %d}
  batch: {timeout: 200ms}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:{port:sink}, tls: {insecure: true}}
  file: {path: out/profiles.jsonl}
  file/pprof: {directory: out/pprof, format: pprof}
  pyroscope: {endpoint: "http://127.0.0.1:PUSH", limits: {max_age: 876000h}}
  parca: {endpoint: 127.0.0.1:{port:parca}, tls: {insecure: true}}
service:
  pipelines:
    profiles: {receivers: [otlp, pprof], processors: [memory_limiter, batch], exporters: [EXPORTERS]}
""" % LIMIT_MIB


@pytest.fixture(scope="module")
def bodies():
    """1.5 MB of each kind."""
    found = {"otlp": make.request(samples=68000, functions=2000).SerializeToString(),
             "pprof": make.pprof(samples=50000, functions=2000).SerializeToString()}
    for kind, body in found.items():
        assert MIB < len(body) < 2 * MIB, (kind, len(body))
    return found


def send_otlp(gateway, body, packed):
    """None, or after how many seconds to come back."""
    client = peers.Client(gateway.port["otlp"], compression=grpc.Compression.Gzip if packed else None)
    try:
        client.send(body)
        return None
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE, error
        assert any(key == "grpc-status-details-bin" for key, _ in error.trailing_metadata()), error
        return 0.2
    finally:
        client.close()


def send_pprof(gateway, body, packed):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port["pprof"], timeout=60)
    try:
        connection.request("POST", "/v1/pprof", body=gzip.compress(body, 1) if packed else body)
        answer = connection.getresponse()
        if answer.status == 204:
            return None
        assert answer.status == 503 and int(answer.headers["Retry-After"]) > 0, answer.status
        return 0.2
    except (BrokenPipeError, ConnectionResetError):
        return 0.2  # refused from the headers, and the answer went with the rest of the body
    finally:
        connection.close()


@contextlib.contextmanager
def running(build, exporters):
    with PushSink() as push:
        gateway = Gateway(build / "portcullis", CONFIG.replace("PUSH", str(push.port)).replace("EXPORTERS", exporters))
        with peers.Sink(gateway.port["sink"]), peers.Sink(gateway.port["parca"], method=parca.METHOD), gateway:
            yield gateway


@pytest.mark.skipif(os.environ.get("MODE") in ("asan", "tsan"), reason="the sanitizers' memory is not ours to bound")
@pytest.mark.parametrize("exporters", ["otlp_grpc, file, file/pprof", "pyroscope", "parca"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("kind,send", [("otlp", send_otlp), ("pprof", send_pprof)], ids=["otlp", "pprof"])
def test_the_peak_stays_below_the_limit(build, bodies, kind, send, packed, exporters):
    failures, refused = [], []

    def work():
        try:
            for _ in range(ROUNDS):
                while wait := send(gateway, bodies[kind], packed):
                    refused.append(wait)
                    time.sleep(wait)
        except Exception as error:
            failures.append(error)

    with running(build, exporters) as gateway:
        threads = [threading.Thread(target=work) for _ in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gateway.until(lambda: gateway.balanced("profiles", exporters.split(", ")[-1])
                      and not gateway.total("otelcol_ledger_queued_samples"))
        peak = gateway.rss()["VmHWM"]
        assert not failures
        assert not gateway.total("otelcol_ledger_dropped_samples")
        assert peak < LIMIT_MIB * MIB


RETURN = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
processors:
  memory_limiter: {check_interval: 200ms, limit_mib: 256, spike_limit_mib: 51}
  batch: {timeout: 200ms}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:{port:sink}
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms}
service:
  pipelines:
    profiles: {receivers: [otlp], processors: [memory_limiter, batch], exporters: [otlp_grpc]}
"""
REST = 2  # times the resident size when the program became ready


@pytest.mark.alone
@pytest.mark.skipif(os.environ.get("MODE") in ("asan", "tsan"), reason="the sanitizers' memory is not ours to bound")
def test_after_a_burst_the_resident_size_returns(build, bodies):
    """The destination is down until its queue has filled its share. What was freed does not stay with malloc."""
    with Gateway(build / "portcullis", RETURN) as gateway:
        rest = gateway.rss()["VmRSS"]

        def work():
            for _ in range(20):
                send_otlp(gateway, bodies["otlp"], False)
        for _ in range(2):
            threads = [threading.Thread(target=work) for _ in range(SENDERS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert gateway.rss()["VmRSS"] > 4 * rest
            with peers.Sink(gateway.port["sink"]):
                gateway.until(lambda: not gateway.total("otelcol_ledger_queued_samples"))
                gateway.until(lambda: gateway.rss()["VmRSS"] < REST * rest)
