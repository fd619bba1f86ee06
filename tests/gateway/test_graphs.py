# SPDX-License-Identifier: Apache-2.0
"""Graphs side by side in one process: each takes the place of the one before it while clients send without a pause."""
import http.client
import re
import subprocess
import threading
import time
import urllib.request

import grpc
import pytest

from harness import build as make
from harness import served
from harness.gateway import free_port

EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
CONFIG = """
receivers:
  pprof: {server: {endpoint: 127.0.0.1:%(http)d}}
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:%(grpc)d}}}
processors:
  batch: {timeout: 50ms}
exporters:
  debug: {}
extensions:
  health_check: {endpoint: 127.0.0.1:%(health)d}
service:
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %(metrics)d}}}}]}}
  extensions: [health_check]
  pipelines:
    profiles: {receivers: [pprof, otlp], processors: [batch], exporters: [debug]}
"""
SAMPLES = 10


class Client(threading.Thread):
    """Sends one request after the other until it is stopped; `sent` were accepted, `failures` were not."""

    def __init__(self, send):
        super().__init__()
        self.send, self.sent, self.failures, self.stopping = send, 0, [], False
        self.start()

    def run(self):
        while not self.stopping:
            try:
                self.send()
                self.sent += 1
            except Exception as e:  # whatever it is, a request was refused or lost
                self.failures.append(repr(e))

    def stop(self):
        self.stopping = True
        self.join()


def http_sender(port, keep_alive):
    body = make.pprof(1, samples=SAMPLES, types=(("cpu", "nanoseconds"),)).SerializeToString()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def send():
        connection.request("POST", "/v1/pprof", body, {} if keep_alive else {"Connection": "close"})
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 204, reply.status
    return send


def grpc_sender(port):
    body = make.request(1, samples=SAMPLES).SerializeToString()
    channel = grpc.insecure_channel("127.0.0.1:%d" % port, [("grpc.use_local_subchannel_pool", 1)])
    call = channel.unary_unary(EXPORT)
    return lambda: call(body, timeout=30)


@pytest.fixture
def program(tmp_path):
    ports = {name: free_port() for name in ("http", "grpc", "health", "metrics")}
    (tmp_path / "gateway.yaml").write_text(CONFIG % ports)
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen([served.build("gateway/graph_serve"), str(tmp_path / "gateway.yaml")], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
    assert process.stdout.readline() == "ready\n", (tmp_path / "log").read_text()
    yield process, ports
    if process.poll() is None:
        process.kill()
    text = (tmp_path / "log").read_text()
    assert "Sanitizer" not in text and "runtime error:" not in text, text


def succeed(process):
    """Another graph takes the place of the one that runs."""
    process.stdin.write("next\n")
    process.stdin.flush()
    assert process.stdout.readline() == "ready\n"
    return process.stdout.readline() == "retired\n"


def samples(ports, metric):
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % ports["metrics"], timeout=30) as answer:
        return sum(int(n) for n in re.findall(r"^%s\{.*\} (\d+)$" % metric, answer.read().decode(), re.M))


@pytest.mark.threads
def test_no_request_is_refused_or_lost_while_graphs_take_each_others_place(program):
    process, ports = program
    clients = [Client(http_sender(ports["http"], True)), Client(http_sender(ports["http"], False)),
               Client(grpc_sender(ports["grpc"])), Client(grpc_sender(ports["grpc"]))]
    try:
        for _ in range(6):
            before = [client.sent for client in clients]
            assert succeed(process)
            while any(c.sent < n + 3 and not c.failures for c, n in zip(clients, before)):
                time.sleep(0.01)
    finally:
        for client in clients:
            client.stop()
    assert [client.failures for client in clients] == [[], [], [], []]
    expected = SAMPLES * sum(client.sent for client in clients)
    assert samples(ports, "otelcol_receiver_accepted_profile_samples") == expected
    while samples(ports, "otelcol_exporter_sent_profile_samples") < expected:
        time.sleep(0.05)
    assert samples(ports, "otelcol_exporter_sent_profile_samples") == expected
    process.stdin.write("stop\n")
    process.stdin.flush()
    assert process.wait(60) == 0


def test_an_address_is_free_when_the_last_graph_has_stopped(program):
    process, ports = program
    assert succeed(process) and succeed(process)
    process.stdin.write("stop\n")
    process.stdin.flush()
    assert process.wait(60) == 0
    for name in ports:
        with pytest.raises(ConnectionRefusedError):
            http.client.HTTPConnection("127.0.0.1", ports[name], timeout=5).connect()
