# SPDX-License-Identifier: Apache-2.0
"""A gateway whose destination has a directory for dead letters."""
import json
import subprocess

import grpc

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:{port:sink}
    tls: {insecure: true}
    retry_on_failure: {enabled: false}
    dead_letter: {directory: dead}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc]}
"""
SAMPLES = 20


def abort(status):
    def answer(data, context):
        context.abort(status, "a secret of the destination")
    return answer


REFUSE, BUSY = abort(grpc.StatusCode.INVALID_ARGUMENT), abort(grpc.StatusCode.UNAVAILABLE)


class Rig:
    """A gateway with a destination. Leaves the files when it ends."""

    def __init__(self, build, directory, *changes, config=CONFIG, answer=REFUSE):
        for was, now in changes:
            assert was in config
            config = config.replace(was, now)
        self.build, self.directory, self.dead = build, directory, directory / "dead"
        self.gateway = Gateway(build / "portcullis", config, cwd=directory)
        self.sink = peers.Sink(self.gateway.port.get("sink", 0))
        self.sink.answer = answer

    def __enter__(self):
        self.sink.start()
        self.gateway.__enter__()
        return self

    def __exit__(self, *error):
        self.gateway.__exit__(*error)
        self.sink.stop()

    def send(self, *requests, **keywords):
        with peers.Client(self.gateway.port["otlp"]) as client:
            for request in requests:
                client.send(request, **keywords)
        return requests

    def dead_samples(self):
        return self.gateway.total("otelcol_ledger_dead_letter_samples")

    def settle(self):
        """Everything has ended, and every sample is accounted for."""
        self.gateway.until(lambda: not self.gateway.ledger("profiles", "otlp_grpc")["queued"]
                           and self.gateway.balanced("profiles", "otlp_grpc"))

    def stop(self):
        assert self.gateway.stop() == 0, self.gateway.log()

    def reasons(self):
        return [json.loads(path.read_text()) for path in sorted(self.dead.glob("*.json"))]

    def letters(self):
        """The samples in all letters."""
        return otlp.all_samples(path.read_bytes() for path in self.dead.glob("*.otlp"))

    def replay(self, *arguments, to="otlp_grpc", directory="dead"):
        return subprocess.run([self.gateway.binary, "replay", directory, "--to", to, "--config", str(self.gateway.config), *arguments],
                              cwd=self.directory, capture_output=True, text=True, timeout=120)


def take(data, context):
    return b""


def requests(count, samples=SAMPLES):
    return [make.request(seed, samples=samples) for seed in range(count)]


def lose(rig, request):
    rig.send(request)
    rig.settle()
