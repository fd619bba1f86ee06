# SPDX-License-Identifier: Apache-2.0
"""Graphs side by side in one process: each takes the place of the one before it, and exporters with the same configuration
remain."""
import http.client
import re
import subprocess
import threading
import time
import urllib.request

import grpc
import pytest

from harness import build as make
from harness import otlp, peers, served
from harness.gateway import free_port
from harness.web2 import Http2

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
DESTINATION = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:%(grpc)d}}}
exporters:
  EXPORTER
service:
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %(metrics)d}}}}]}}
  pipelines:
    profiles: {receivers: [otlp], exporters: [NAME]}
"""
OTLP = """otlp_grpc:
    endpoint: 127.0.0.1:%(destination)d
    tls: {insecure: true}
    headers: {authorization: secret-1}
    sending_queue: {QUEUE}
    retry_on_failure: {initial_interval: 100ms, max_interval: 200ms}"""


class Client(threading.Thread):
    """Sends one request after the other until it is stopped; `sent` were accepted, `failures` were not. Does not outlive a
    test that fails."""

    def __init__(self, send):
        super().__init__(daemon=True)
        self.send, self.sent, self.failures, self.stopping = send, 0, [], False
        self.start()

    def run(self):
        while not self.stopping:
            try:
                self.send()
                self.sent += 1
            except Exception as e:  # whatever it is, a request was refused or lost
                self.failures.append(repr(e))
                time.sleep(.01)

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


def http2_sender(port, keep_alive):
    """Follows GOAWAY: what the server has not begun to process is sent again (RFC 9113, section 6.8)."""
    body = make.pprof(1, samples=SAMPLES, types=(("cpu", "nanoseconds"),)).SerializeToString()
    connections = []

    def attempt():
        if not connections or connections[0].goaway or not keep_alive:
            connections[:] = [Http2(port)]
        c = connections[0]
        stream = c.begin(path="/v1/pprof")
        c.send(stream, body)
        answer = c.answer(stream)
        if not answer and (c.goaway and stream > c.goaway.last_stream_id or c.reset.get(stream) == 7):
            connections.clear()
            return False
        assert answer and answer.status == 204, (answer, c.goaway, c.reset)
        return True

    def send():
        while not attempt():
            pass
    return send


def grpc_sender(port):
    body = make.request(1, samples=SAMPLES).SerializeToString()
    channel = grpc.insecure_channel("127.0.0.1:%d" % port, [("grpc.use_local_subchannel_pool", 1)])
    call = channel.unary_unary(EXPORT)
    return lambda: call(body, timeout=30)


@pytest.fixture
def serve(tmp_path):
    """serve(configuration, grace in seconds): the running process and its ports."""
    processes = []

    def start(text, grace=20):
        ports = {name: free_port() for name in ("http", "grpc", "health", "metrics", "destination")}
        (tmp_path / "gateway.yaml").write_text(text % ports)
        with open(tmp_path / "log", "wb") as log:
            command = [served.build("gateway/graph_serve"), str(tmp_path / "gateway.yaml"), str(grace)]
            processes.append(subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log))
        assert processes[0].stdout.readline() == "ready\n", (tmp_path / "log").read_text()
        return processes[0], ports
    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()
    text = (tmp_path / "log").read_text()
    assert "Sanitizer" not in text and "runtime error:" not in text, text


@pytest.fixture
def program(serve):
    return serve(CONFIG)


def command(process, line, reply):
    process.stdin.write(line + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == reply + "\n"


def succeed(process):
    """Another graph takes the place of the one that runs."""
    command(process, "next", "ready")
    return process.stdout.readline() == "retired\n"


def stop(process):
    process.stdin.write("stop\n")
    process.stdin.flush()
    assert process.wait(60) == 0


def samples(ports, metric, labels=""):
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % ports["metrics"], timeout=30) as answer:
        return sum(int(n) for n in re.findall(r"^%s\{.*%s.*\} (\d+)$" % (metric, labels), answer.read().decode(), re.M))


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def configuration(exporter):
    return DESTINATION.replace("EXPORTER", exporter).replace("NAME", exporter.partition(":")[0])


def send(ports, seeds, timeout=30):
    """One request for each seed, accepted."""
    with peers.Client(ports["grpc"]) as client:
        for seed in seeds:
            client.send(make.request(seed, samples=SAMPLES), timeout=timeout)


def expected(seeds):
    return otlp.all_samples(make.request(seed, samples=SAMPLES).SerializeToString() for seed in seeds)


@pytest.mark.threads
def test_no_request_is_refused_or_lost_while_graphs_take_each_others_place(program):
    process, ports = program
    clients = [Client(http_sender(ports["http"], True)), Client(http_sender(ports["http"], False)),
               Client(http2_sender(ports["http"], True)), Client(http2_sender(ports["http"], False)),
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
    assert [client.failures for client in clients] == [[]] * 6
    expected = SAMPLES * sum(client.sent for client in clients)
    assert samples(ports, "otelcol_receiver_accepted_profile_samples") == expected
    while samples(ports, "otelcol_exporter_sent_profile_samples") < expected:
        time.sleep(0.05)
    assert samples(ports, "otelcol_exporter_sent_profile_samples") == expected
    stop(process)


def test_an_address_is_free_when_the_last_graph_has_stopped(program):
    process, ports = program
    assert succeed(process) and succeed(process)
    stop(process)
    for name in ports:
        with pytest.raises(ConnectionRefusedError):
            http.client.HTTPConnection("127.0.0.1", ports[name], timeout=5).connect()


@pytest.mark.threads
def test_a_queue_outlives_the_graph_that_filled_it(serve):
    process, ports = serve(configuration(OTLP.replace("QUEUE", "num_consumers: 2")))
    send(ports, range(5))
    assert succeed(process)
    send(ports, range(5, 8))
    assert succeed(process)
    assert samples(ports, "otelcol_ledger_queued_samples") == 8 * SAMPLES
    assert samples(ports, "otelcol_ledger_dropped_samples") == 0
    with peers.Sink(ports["destination"]) as sink:
        until(lambda: samples(ports, "otelcol_ledger_out_samples") == 8 * SAMPLES)
        assert sink.samples() == expected(range(8))
    assert samples(ports, "otelcol_ledger_queued_samples") == samples(ports, "otelcol_exporter_queue_size") == 0
    assert samples(ports, "otelcol_ledger_in_samples") == 8 * SAMPLES
    assert samples(ports, "otelcol_ledger_dropped_samples") == 0
    stop(process)


@pytest.mark.threads
def test_the_limits_of_a_queue_hold_once_for_all_graphs(serve):
    process, ports = serve(configuration(OTLP.replace("QUEUE", "queue_size: 3")))
    share = samples(ports, "otelcol_exporter_queue_memory_limit_bytes")
    send(ports, range(2))
    assert succeed(process)
    send(ports, range(2, 3))
    with pytest.raises(grpc.RpcError):
        send(ports, range(3, 4))
    assert samples(ports, "otelcol_exporter_queue_size") == 3
    assert samples(ports, "otelcol_exporter_queue_memory_limit_bytes") == share
    stop(process)


@pytest.mark.threads
@pytest.mark.parametrize("old, new", [("secret-1", "secret-2"), ("max_interval: 200ms", "max_interval: 201ms")])
def test_an_exporter_with_another_configuration_is_another_exporter(serve, tmp_path, old, new):
    process, ports = serve(configuration(OTLP.replace("QUEUE", "")))
    send(ports, range(3))
    text = (tmp_path / "gateway.yaml").read_text()
    (tmp_path / "gateway.yaml").write_text(text.replace(old, new))
    assert succeed(process)
    assert samples(ports, "otelcol_ledger_queued_samples") == 3 * SAMPLES
    send(ports, range(3, 5))
    with peers.Sink(ports["destination"]) as sink:
        # The first one continues alone, with its configuration, until its queue is empty.
        until(lambda: samples(ports, "otelcol_ledger_out_samples") == 5 * SAMPLES)
        assert sink.samples() == expected(range(5))
        used = [dict(metadata)["authorization"] for metadata in sink.metadata]
        assert used.count("secret-1") == (3 if new == "secret-2" else 5)
        until(lambda: "The exporter has ended" in (tmp_path / "log").read_text())
    assert samples(ports, "otelcol_ledger_dropped_samples") == 0
    assert samples(ports, "otelcol_ledger_queued_samples") == 0
    stop(process)


@pytest.mark.threads
def test_senders_that_wait_are_answered_when_their_graph_ends_and_later_ones_wait_again(serve):
    process, ports = serve(configuration(OTLP.replace("QUEUE", "wait_for_result: true")), grace=1)
    client = Client(grpc_sender(ports["grpc"]))
    until(lambda: samples(ports, "otelcol_exporter_retries"))
    assert succeed(process)
    until(lambda: client.failures)
    assert not client.sent
    client.stop()
    retries = samples(ports, "otelcol_exporter_retries")
    later = Client(grpc_sender(ports["grpc"]))
    until(lambda: samples(ports, "otelcol_exporter_retries") > retries + 2)
    assert not later.failures
    with peers.Sink(ports["destination"]):
        until(lambda: later.sent)
        later.stop()
        client.stop()
    assert not later.failures
    assert samples(ports, "otelcol_ledger_queued_samples") == 0
    until(lambda: samples(ports, "otelcol_ledger_out_samples") == SAMPLES * (later.sent + client.sent))
    assert samples(ports, "otelcol_ledger_in_samples") == samples(ports, "otelcol_ledger_out_samples") + samples(
        ports, "otelcol_ledger_dropped_samples")
    stop(process)


@pytest.mark.threads
def test_graphs_share_an_open_file_and_it_is_reopened_once(serve, tmp_path):
    path, moved = tmp_path / "out.jsonl", tmp_path / "moved.jsonl"
    process, ports = serve(configuration("file: {path: %s}" % path))
    send(ports, [1])
    until(lambda: path.read_bytes())
    path.rename(moved)
    assert succeed(process)
    size = moved.stat().st_size
    send(ports, [2])
    until(lambda: moved.stat().st_size > size)
    assert not path.exists()
    command(process, "reopen", "reopened")
    reopened = [line for line in (tmp_path / "log").read_text().splitlines() if "Files and certificates reopened" in line]
    assert sum('"otelcol.component.id": "file"' in line for line in reopened) == 1
    size = moved.stat().st_size
    send(ports, [3])
    until(lambda: path.read_bytes())
    assert moved.stat().st_size == size
    stop(process)
    assert samples_of_lines(moved.read_bytes() + path.read_bytes()) == expected([1, 2, 3])


def samples_of_lines(lines):
    return otlp.all_samples(otlp.parse_json(line) for line in lines.splitlines())
