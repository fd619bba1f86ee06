# SPDX-License-Identifier: Apache-2.0
"""A gateway whose configuration changes, and senders that notice whatever that costs them."""
import http.client
import json
import pathlib
import threading
import time

from harness import build as make
from harness import otlp, peers
from harness.web2 import Http2

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:grpc}}
      http: {endpoint: 127.0.0.1:{port:http}}
processors:
  resource: {attributes: [{key: policy, value: A, action: upsert}]}
  allowlist: {keys: [request.id, policy, canary.A]}
  batch: {timeout: 20ms}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:{port:sink}
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms}
extensions:
  health_check: {endpoint: 127.0.0.1:{port:health}}
service:
  admin: {endpoint: 127.0.0.1:{port:admin}}
  extensions: [health_check]
  pipelines:
    profiles: {receivers: [otlp], processors: [resource, allowlist, batch], exporters: [otlp_grpc]}
"""
PATH = "/v1development/profiles"


def request(name):
    """One sample, with a canary that policy A allows and one that policy B allows."""
    m = make.Maker()
    stack = m.stack([m.location([m.function("main")])])
    resource = m.resource({"request.id": name, "canary.A": "alpha", "canary.B": "beta"})
    profile = m.profile(m.scope(resource, "test", "1"))
    profile.samples.add(stack_index=stack, values=[1])
    return m.message.SerializeToString()


def resources(data):
    """The attributes of each resource of an export request, and its number of samples."""
    message = otlp.parse(data)
    for rp in message.resource_profiles:
        attributes = {kv.key: kv.value.string_value for kv in rp.resource.attributes} or {
            otlp.Reader(message).text(kv.key_strindex): kv.value.string_value for kv in rp.resource.attributes}
        yield attributes, sum(len(p.samples) for sp in rp.scope_profiles for p in sp.profiles)


def received(sink):
    with sink.lock:
        taken = list(sink.received)
    return [found for data in taken for found in resources(data)]


def other(text):
    """The same configuration with the other policy."""
    return text.translate(str.maketrans("", "")).replace("value: A", "value: \0").replace("canary.A", "canary.\0").replace(
        "value: B", "value: A").replace("canary.B", "canary.A").replace("\0", "B")


class Sender(threading.Thread):
    """Sends requests with names of its own until it is stopped; `acked`: the names that were accepted."""

    def __init__(self, name, send):
        super().__init__(name=name)
        self.send, self.acked, self.failed, self.stopping = send, [], [], False
        self.start()

    def run(self):
        number = 0
        while not self.stopping:
            name = "%s-%d" % (self.name, number)
            number += 1
            try:
                self.send(request(name))
                self.acked.append(name)
            except Exception as e:  # refused, or a connection was lost
                self.failed.append(repr(e))
                time.sleep(0.02)


def over_http(port):
    """One connection for all requests: a second one would be a failure."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.connect()
    connection.auto_open = 0

    def send(body):
        connection.request("POST", PATH, body, {"Content-Type": "application/x-protobuf"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
    return send


def over_http2(port):
    connection = Http2(port)

    def send(body):
        stream = connection.begin(path=PATH, headers=[("content-type", "application/x-protobuf")])
        connection.send(stream, body)
        answer = connection.answer(stream)
        assert not connection.goaway and answer and answer.status == 200, (connection.goaway, answer)
    return send


def over_grpc(port):
    client = peers.Client(port)
    return lambda body: client.send(body, timeout=30)


def ask(gateway, path, method="GET"):
    status, _, body = peers.post(gateway.port["admin"], b"" if method == "POST" else None, path=path, method=method)
    return status, json.loads(body)


def reload(gateway, text=None):
    if text is not None:
        gateway.config.write_text(text)
    return ask(gateway, "/-/reload", "POST")


def ended(gateway):
    return ask(gateway, "/-/status")[1]["retiring"] == 0


def process(gateway):
    """RSS, the numbers of descriptors and of threads."""
    proc = pathlib.Path("/proc/%d" % gateway.process.pid)
    return gateway.rss()["VmRSS"], len(list((proc / "fd").iterdir())), len(list((proc / "task").iterdir()))


def check_delivered(gateway, sink, senders):
    acked = sorted(name for sender in senders for name in sender.acked)
    gateway.until(lambda: sum(n for _, n in received(sink)) >= len(acked))
    found = received(sink)
    assert sorted(a["request.id"] for a, _ in found) == acked
    for attributes, _ in found:
        assert ("canary.A" in attributes, "canary.B" in attributes) == (
            attributes["policy"] == "A", attributes["policy"] == "B"), attributes
    return {attributes["policy"] for attributes, _ in found}
