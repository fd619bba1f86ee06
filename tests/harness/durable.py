# SPDX-License-Identifier: Apache-2.0
"""A gateway with a queue on disk, what was acknowledged, and what the disk is made to do."""
import contextlib
import resource

import grpc

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 16}}, ack: ACK}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: LIMIT}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:SINK
    tls: {insecure: true}
    sending_queue: {storage: file_storage, queue_size: 100000, num_consumers: 4}
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms, max_elapsed_time: 0s}
extensions:
  file_storage: {directory: queue, create_directory: true, STORAGE}
  health_check: {endpoint: 127.0.0.1:{port:health}}
service:
  admin: {endpoint: 127.0.0.1:{port:admin}}
  extensions: [file_storage, health_check]
  pipelines:
    profiles: {receivers: [otlp], processors: [memory_limiter], exporters: [otlp_grpc]}
"""
SAMPLES = 20


def gateway(build, sink, directory, ack="durable", limit=300, storage="max_size_mib: 4096", keys=("", ""), **options):
    """`keys`: a replacement of text in the configuration."""
    text = CONFIG.replace("SINK", str(sink.port)).replace("ACK", ack).replace("LIMIT", str(limit))
    return Gateway(build / "portcullis", text.replace("STORAGE", storage).replace(*keys), cwd=directory, **options)


@contextlib.contextmanager
def absent_sink():
    """A destination with a port, which is not listening yet."""
    sink = peers.Sink()
    sink.start()
    sink.stop()
    yield sink
    sink.stop()


def send(g, seeds, samples=SAMPLES):
    """Sends requests; returns those that were acknowledged."""
    taken = []
    with peers.Client(g.port["otlp"]) as client:
        for seed in seeds:
            request = make.request(seed, samples=samples)
            try:
                client.send(request)
            except grpc.RpcError:
                continue
            taken.append(request)
    return taken


def expected(requests):
    return otlp.all_samples(r.SerializeToString() for r in requests)


def missing(requests, sink):
    return expected(requests) - sink.samples()


def restored(g):
    return g.total("otelcol_ledger_restored_samples", pipeline="profiles", exporter="otlp_grpc")


def set_file_limit(process, size):
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def flip(path, rng, flips):
    data = bytearray(path.read_bytes())
    for _ in range(flips):
        at = rng.randrange(len(data))
        data[at] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
