# SPDX-License-Identifier: Apache-2.0
"""What the tests of failures (tests/chaos) share: a gateway between real clients and destinations, and the account of every
sample at its end."""
import contextlib
import threading

import grpc

from harness import otlp, peers
from harness.gateway import Gateway

PROTOBUF = {"Content-Type": "application/x-protobuf"}
PATH = "/v1development/profiles"

RECEIVERS = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:grpc}, max_recv_msg_size_mib: 64}
      http: {endpoint: 127.0.0.1:{port:http}, max_request_body_size: 67108864}
"""
ONE = RECEIVERS + """
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:{port:a}, tls: {insecure: true}EXPORTER}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc]}
"""


def one(more=""):
    """Configuration of one destination, with more keys of its exporter."""
    return ONE.replace("EXPORTER", ", " + more if more else "")


def settled(gateway, *exporters, pipeline="profiles"):
    """Waits until nothing is under way, and checks the conservation law at each exporter."""
    gateway.until(lambda: not gateway.total("otelcol_ledger_queued_samples") and not gateway.total("otelcol_ledger_batched_samples"))
    for exporter in exporters:
        gateway.until(lambda: gateway.balanced(pipeline, exporter))


@contextlib.contextmanager
def running(build, text, *sinks, **options):
    """A gateway whose destinations, (port name, sink), listen already."""
    gateway = Gateway(build / "portcullis", text, **options)
    with contextlib.ExitStack() as stack:
        for name, sink in sinks:
            sink.port = gateway.port[name]
            stack.enter_context(sink)
        yield stack.enter_context(gateway)


def send(gateway, body, transport="grpc"):
    """The response, decoded; (status, headers, body) where HTTP refuses it, the error where gRPC does."""
    data = body if isinstance(body, bytes) else body.SerializeToString()
    if transport == "grpc":
        with peers.Client(gateway.port["grpc"]) as client:
            try:
                return client.send(data)
            except grpc.RpcError as error:
                return error
    status, headers, answer = peers.post(gateway.port["http"], data, PATH, PROTOBUF)
    return otlp.Response.FromString(answer) if status == 200 else (status, headers, answer)


class Load:
    """Senders in threads, one message after the other, each until it is accepted: what the gateway has acknowledged.

    with Load(gateway, messages) as load: ...; load.accepted is a list of messages. `messages` is an iterator."""

    def __init__(self, gateway, messages, threads=3, pause=.01):
        self.gateway, self.messages, self.pause = gateway, messages, pause
        self.lock, self.over, self.accepted, self.refusals = threading.Lock(), threading.Event(), [], 0
        self.threads = [threading.Thread(target=self.run) for _ in range(threads)]

    def run(self):
        while not self.over.wait(self.pause):
            with self.lock:
                message = next(self.messages, None)
            if message is None:
                return
            with peers.Client(self.gateway.port["grpc"]) as client:
                while not self.once(client, message) and not self.over.wait(.05):
                    pass

    def once(self, client, message):
        try:
            client.send(message, timeout=20)
        except grpc.RpcError:
            with self.lock:
                self.refusals += 1
            return False
        with self.lock:
            self.accepted.append(message)
        return True

    def samples(self):
        with self.lock:
            return otlp.all_samples(self.accepted)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()

    def join(self):
        for thread in self.threads:
            thread.join()
