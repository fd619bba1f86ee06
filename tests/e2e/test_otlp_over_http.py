# SPDX-License-Identifier: Apache-2.0
"""OTLP over HTTP through the running program: what is counted, and what a sender learns."""
import http.client
import json
import pathlib

import pytest

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:grpc}}
      http: {endpoint: 127.0.0.1:{port:http}}
exporters:
  debug: {}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [debug]}
"""
PATH = "/v1development/profiles"


@pytest.fixture(scope="module")
def gateway(build):
    with Gateway(build / "portcullis", CONFIG) as gateway:
        yield gateway


def post(gateway, body, media):
    return peers.post(gateway.port["http"], body, path=PATH, headers={"Content-Type": media})


def counted(gateway, metric, transport, **labels):
    return gateway.total(metric, receiver="otlp", transport=transport, **labels)


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_request_without_samples_is_acknowledged_and_counted(gateway, transport):
    def counts():
        return [counted(gateway, "otelcol_receiver_empty_requests", transport),
                counted(gateway, "otelcol_receiver_requests", transport, outcome="success")]
    empty, full, before = otlp.Request(), make.request(1, samples=3).SerializeToString(), counts()
    empty.resource_profiles.add().scope_profiles.add().profiles.add()
    empty = empty.SerializeToString()
    if transport == "grpc":
        with peers.Client(gateway.port["grpc"]) as client:
            for body in (b"", empty, full):
                assert not client.send(body).HasField("partial_success")
    else:
        for body in (b"", empty, full):
            assert post(gateway, body, "application/x-protobuf")[0] == 200
        assert post(gateway, b"{}", "application/json")[0] == 200
    more = 2 if transport == "grpc" else 3
    gateway.until(lambda: counts() == [before[0] + more, before[1] + more + 1])


def partly_invalid():
    """A request of three Profiles, one of which has a sample without values; the number of valid samples."""
    message = make.request(2, samples=5, profiles=3, resources=1)
    profiles = message.resource_profiles[0].scope_profiles[0].profiles
    sample = profiles[1].samples[0]
    del sample.values[:], sample.timestamps_unix_nano[:]
    return message.SerializeToString(), len(profiles[0].samples) + len(profiles[2].samples)


@pytest.mark.parametrize("media", ["application/x-protobuf", "application/json"])
def test_a_sender_learns_which_part_was_rejected(gateway, media):
    body, valid = partly_invalid()
    before = counted(gateway, "otelcol_receiver_accepted_profile_samples", "http")
    as_json = media == "application/json"
    status, headers, text = post(gateway, otlp.to_json(body) if as_json else body, media)
    assert status == 200 and headers["Content-Type"] == media
    if as_json:
        partial = json.loads(text)["partialSuccess"]
        assert partial["rejectedProfiles"] == "1"
        why = partial["errorMessage"]
    else:
        partial = otlp.Response.FromString(text).partial_success
        assert partial.rejected_profiles == 1
        why = partial.error_message
    assert "profiles[1].samples[0]" in why
    gateway.until(lambda: counted(gateway, "otelcol_receiver_accepted_profile_samples", "http") == before + valid)


@pytest.mark.parametrize("body, field", [
    (b'{"resourceProfiles":[{"canary":1},{"scopeProfiles":["canary"]}]}', "resourceProfiles[1].scopeProfiles[0]"),
    (b'{"dictionary":{"stringTable":["",1]},"canary":"canary"}', "dictionary.stringTable[1]"),
    (b'{"canary"', ""),
])
def test_an_error_names_the_field_and_no_content(gateway, body, field):
    status, headers, text = post(gateway, body, "application/json")
    assert (status, headers["Content-Type"], json.loads(text)["code"]) == (400, "application/json", 3)
    assert field in json.loads(text)["message"] and b"canary" not in text


BATCHED = CONFIG.replace("exporters:\n  debug", "processors:\n  batch: {timeout: 1h}\nexporters:\n  debug").replace(
    "exporters: [debug]", "processors: [batch], exporters: [debug]")


def runs_of_other_threads(pid):
    """How often a thread that is no I/O thread of HTTP/1.1 has run (Linux, Documentation/scheduler/sched-stats)."""
    return sum(int((task / "schedstat").read_text().split()[2]) for task in pathlib.Path("/proc/%d/task" % pid).iterdir()
               if (task / "comm").read_text() != "io-http1\n")


def test_a_small_request_stays_on_the_thread_that_reads_it(build):
    """A large one is handed to a worker, and the reply back."""
    requests, runs = 200, {}
    bodies = {"small": make.request(samples=100).SerializeToString(), "large": make.request(samples=6000).SerializeToString()}
    assert len(bodies["small"]) < 65536 < len(bodies["large"])
    with Gateway(build / "portcullis", BATCHED) as gateway:
        for size, body in bodies.items():
            client = http.client.HTTPConnection("127.0.0.1", gateway.port["http"], timeout=60)
            client.connect()
            before = runs_of_other_threads(gateway.process.pid)
            for _ in range(requests):
                client.request("POST", PATH, body=body, headers={"Content-Type": "application/x-protobuf"})
                answer = client.getresponse()
                assert answer.status == 200 and answer.read() is not None
            runs[size] = runs_of_other_threads(gateway.process.pid) - before
            client.close()
    assert runs["large"] >= requests and runs["small"] < requests / 2, runs
