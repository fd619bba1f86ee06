# SPDX-License-Identifier: Apache-2.0
"""The parca exporter in the running program, before a server that reads WriteRaw independently of our code."""
import subprocess
from collections import Counter

import grpc
import pytest

from harness import build as make
from harness import certificates, otlp, parca, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 64}}}
exporters:
  parca: {endpoint: 127.0.0.1:{port:parca}, tls: {insecure: true}, MORE}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [parca]}
"""
ONCE = "retry_on_failure: {enabled: false}"


class Running:
    """The gateway with this configuration, its sink, and a client."""

    def __init__(self, build, more=ONCE, text=CONFIG):
        self.gateway = Gateway(build / "portcullis", text.replace("MORE", more))
        self.sink = peers.Sink(self.gateway.port["parca"], method=parca.METHOD)

    def __enter__(self):
        self.sink.start()
        self.gateway.__enter__()
        return self

    def __exit__(self, *error):
        self.gateway.__exit__(*error)
        self.sink.stop()

    def send(self, *messages):
        """Sends, waits until it is no longer queued, and gives what has arrived so far."""
        with peers.Client(self.gateway.port["otlp"]) as client:
            for message in messages:
                client.send(message)
        self.gateway.until(lambda: self.gateway.total("otelcol_ledger_queued_samples") == 0)
        assert self.gateway.balanced("profiles", "parca"), self.gateway.ledger("profiles", "parca")
        return list(self.sink.received)

    def dropped(self, reason):
        return self.gateway.total("otelcol_ledger_dropped_samples", exporter="parca", reason=reason)

    def out(self):
        return self.gateway.total("otelcol_ledger_out_samples", exporter="parca")


def arrived(requests):
    return sum((parca.samples(data) for data in requests), start=Counter())


def total(message):
    """The sum of all values."""
    return sum(v for rp in message.resource_profiles for sp in rp.scope_profiles for p in sp.profiles
               for s in p.samples for v in s.values)


def by_service(samples):
    found = Counter()
    for (labels, *_), value in samples.items():
        found[dict(labels)["service_name"]] += value
    return found


@pytest.mark.threads
@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_what_is_sent_arrives(build, compression):
    message = make.request(1, samples=200, profiles=3, resources=4)
    with Running(build, ONCE + ", compression: " + compression) as running:
        requests = running.send(message)
        assert len(requests) == 1
        samples = arrived(requests)
        assert sum(samples.values()) == total(message)
        assert len(by_service(samples)) == 4
        assert running.out() == otlp.count(message)
        assert running.gateway.total("otelcol_exporter_parca_dropped_labels", reason="sample_label") == 2 * otlp.count(message)


def test_a_request_is_split_by_what_parca_inflates(build):
    message = make.request(2, samples=3000, profiles=2)
    with Running(build, ONCE + ", limits: {max_bytes: 5000}") as running:
        requests = running.send(message)
        assert len(requests) > 3
        assert all(len(data) <= 5000 for data in requests)
        assert sum(arrived(requests).values()) == total(message)
        assert running.out() == otlp.count(message)


def test_a_refusal_teaches_the_limit_and_nothing_is_lost(build):
    message = make.request(3, samples=6000, functions=2000)
    with Running(build) as running:
        def answer(data, context):
            if len(data) > 30000:
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED,
                              "grpc: received message larger than max (%d vs. 30000)" % len(data))
            return b""
        running.sink.answer = answer
        requests = running.send(message)
        assert sum(arrived(requests).values()) == total(message)
        assert running.gateway.total("otelcol_exporter_learned_max_bytes") == 30000


def test_what_grows_beyond_measure_is_split_and_all_of_it_arrives(build):
    """60 KB, which as pprofs of their own would be 20 MB: each Profile has its own time, and all have one deep stack."""
    m = make.Maker()
    scope = m.scope(m.resource({"service.name": "deep"}))
    stack = m.stack([m.location([m.function("a.function.with.a.long.name.%d" % i, "src/file%d.go" % i)]) for i in range(400)])
    for i in range(700):
        m.profile(scope, time=10 ** 18 + i).samples.add(stack_index=stack, values=[1])
    with Running(build, ONCE + ", timeout: 60s") as running:
        requests = running.send(m.message)
        assert len(requests) > 1
        times = [profile.time_nanos for data in requests for _, profile in parca.read(data)]
        assert sorted(times) == [10 ** 18 + i for i in range(700)]
        assert running.out() == 700


def test_lifted_labels_and_a_name_are_configured(build):
    with Running(build, ONCE + ", lift_labels: [thread.name], name: prod") as running:
        samples = arrived(running.send(make.request(4)))
        assert {dict(labels)["thread_name"] for labels, *_ in samples} == {"worker-%d" % i for i in range(4)}
        assert {kind for _, kind, *_ in samples} == {"prod:cpu:nanoseconds:cpu:nanoseconds:delta"}


def test_keys_are_kept_for_the_newest(build):
    with Running(build, ONCE + ", labels: utf8") as running:
        (data,) = running.send(make.request(5))
        assert {"service.name", "k8s.pod.name"} <= set(parca.read(data, utf8=True)[0][0])


# ---- at least once, at most once

RETRIES = "retry_on_failure: {initial_interval: 10ms, max_interval: 10ms, max_elapsed_time: 1m}"


def unanswered_once(running):
    """The first request is taken and not answered."""
    running.seen = []
    running.sink.answer = lambda data, context: running.seen.append(data) or (
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone") if len(running.seen) == 1 else b"")


def test_what_was_not_answered_is_sent_again(build):
    with Running(build, RETRIES) as running:
        unanswered_once(running)
        running.send(make.request(6))
        assert len(running.seen) == 2 and running.seen[0] == running.seen[1]
        assert running.out() == 50


def test_or_at_most_once(build):
    with Running(build, RETRIES + ", retry_unknown: false") as running:
        unanswered_once(running)
        running.send(make.request(6))
        assert len(running.seen) == 1
        assert running.dropped("permanent") == 50
        assert "unanswered" in running.gateway.log()


def conflict_once(running):
    running.seen = []
    running.sink.answer = lambda data, context: running.seen.append(data) or (
        context.abort(grpc.StatusCode.UNKNOWN, "write: Transaction Conflict. Please retry")
        if len(running.seen) == 1 else b"")


def test_a_conflict_of_two_requests_is_tried_again(build):
    with Running(build, RETRIES) as running:
        conflict_once(running)
        running.send(make.request(6))
        assert len(running.seen) == 2 and running.out() == 50


def test_but_not_at_most_once(build):
    with Running(build, RETRIES + ", retry_unknown: false") as running:
        conflict_once(running)
        running.send(make.request(6))
        assert len(running.seen) == 1 and running.dropped("permanent") == 50


def test_what_never_left_is_sent_again_in_any_case(build):
    with Running(build, RETRIES + ", retry_unknown: false") as running:
        running.sink.stop()
        with peers.Client(running.gateway.port["otlp"]) as client:
            client.send(make.request(7))
        running.gateway.until(lambda: running.gateway.total("otelcol_exporter_retries") > 2)
        running.sink.start()
        running.send()
        assert running.out() == 50
        assert running.dropped("permanent") == 0


# ---- the cloud

def test_the_token_goes_out_over_tls(build, tmp_path):
    certificates.make_ca(tmp_path, "ca")
    certificates.make_leaf(tmp_path, "ca", "server", "/CN=localhost")
    credentials = grpc.ssl_server_credentials([tuple((tmp_path / name).read_bytes() for name in ("server.key", "server.pem"))])
    text = CONFIG.replace("tls: {insecure: true}", "tls: {ca_file: %s}" % (tmp_path / "ca.pem"))
    running = Running(build, ONCE + ", bearer_token: s3cret, headers: {projectid: p}", text)
    running.sink.credentials = credentials
    with running:
        running.send(make.request(8))
        assert running.out() == 50
        assert {("authorization", "Bearer s3cret"), ("projectid", "p")} <= {tuple(x) for x in running.sink.metadata[0]}
        assert "s3cret" not in running.gateway.log()


@pytest.mark.parametrize("more, error", [
    ("bearer_token: x", "bearer_token: would be sent in clear text"),
    ("name: 1st", 'name: must have the form'),
    ("name: a-b", 'name: must have the form'),
    ("labels: dots", "labels"),
    ("compression: zstd", "Parca decompresses only gzip"),
])
def test_what_cannot_be_is_refused_at_validate(build, tmp_path, more, error):
    config = tmp_path / "gateway.yaml"
    config.write_text(CONFIG.replace("{port:otlp}", "4317").replace("{port:parca}", "7070").replace("MORE", more))
    done = subprocess.run([build / "portcullis", "validate", "--config", config], capture_output=True, text=True, timeout=60)
    assert done.returncode and error in done.stderr + done.stdout
