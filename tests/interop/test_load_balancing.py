# SPDX-License-Identifier: Apache-2.0
"""load_balancing in front of a tier of Collectors, whose own exporter of this name does not support profiles: each service
reaches one of them, and what they write down together is what was sent, after policy. An independent reader compares."""
import contextlib

import pytest

from harness import build as make
from harness import corpus, otlp, peers, policy, preload
from harness.gateway import free_port
from interop import gate

KEYS = ["service.name", "thread.name", "region", "process.executable.name"]
GATEWAY = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}", max_recv_msg_size_mib: 64}}}
processors:
  allowlist: {keys: %s}
exporters:
  load_balancing:
    protocol: {otlp: {tls: {insecure: true}, compression: %s, timeout: 60s}}
    resolver: %s
    retry_on_failure: {initial_interval: %s, max_interval: 1h, max_elapsed_time: 0s}
service: {pipelines: {profiles: {receivers: [otlp], processors: [allowlist], exporters: [load_balancing]}}}
"""
FRONT = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}", max_recv_msg_size_mib: 64}}}}
exporters: {otlp_grpc: {endpoint: "127.0.0.1:%d", tls: {insecure: true}}}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [otlp_grpc]}}}
"""
MEMBER = """
receivers: {otlp: {protocols: {grpc: {endpoint: "%s:{port:otlp}", max_recv_msg_size_mib: 64}}}}
exporters: {file: {path: received.jsonl, flush_interval: 100ms}}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [file]}}}
"""
# A name gives all its members one port.
HOSTS = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
SERVICES = 40


def bodies():
    for seed in range(4):
        yield make.request(seed, samples=2, resources=SERVICES).SerializeToString()
    for path in corpus.files("otlp/*-v111.pb"):
        yield path.read_bytes()


def more(first, count):
    return [make.request(seed, samples=2, resources=SERVICES).SerializeToString() for seed in range(first, first + count)]


def permitted(requests):
    return policy.merged(p for data in requests for p in policy.Allowlist(KEYS).permit(otlp.profiles(data)))


def written(member):
    """The requests that it has written down so far."""
    path = member.directory / "received.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [otlp.parse_json(line) for line in lines]


def read(members):
    return [request for member in members for request in written(member)]


def count(requests):
    return sum(otlp.count(request) for request in requests)


def owners(members):
    """{service: the members that have it}"""
    found = {}
    for number, member in enumerate(members):
        for request in written(member):
            for (attributes, *_), *_ in otlp.profiles(request):
                found.setdefault(dict(attributes).get("service.name"), set()).add(number)
    return found


def started(collector, host, port):
    return collector(MEMBER % host, otlp=port)


@contextlib.contextmanager
def tier(collector):
    port = free_port()
    with contextlib.ExitStack() as held:
        yield [held.enter_context(started(collector, host, port)) for host in HOSTS], port


def delivered(g, requests):
    """All samples of all requests so far have left, and none was dropped."""
    g.until(lambda: g.total("otelcol_ledger_in_samples") == count(requests))
    gate.flushed(g, "load_balancing")
    assert not g.total("otelcol_ledger_dropped_samples"), g.log()


def arrived(g, members, requests):
    """What the members write down is what was sent."""
    delivered(g, requests)
    wanted = permitted(requests)
    g.until(lambda: permitted(read(members)) == wanted)


@pytest.mark.parametrize("compression", ["gzip", "zstd", "snappy", "none"])
def test_between_a_collector_and_a_tier_of_collectors_every_sample_arrives(collector, compression):
    sent = list(bodies())
    with tier(collector) as (members, port):
        resolver = "{static: {hostnames: [%s]}}" % ", ".join("%s:%d" % (host, port) for host in HOSTS)
        with gate.gateway(GATEWAY % (KEYS, compression, resolver, "100ms")) as g, collector(FRONT % g.port["otlp"]) as front, \
                peers.Client(front.port["otlp"]) as client:
            for body in sent:
                client.send(body)
            delivered(g, sent)
        for member in members:
            member.process.stop()  # which writes down what it has
        assert permitted(read(members)) == permitted(sent)
        found = owners(members)
    assert len(found) >= SERVICES and all(len(numbers) == 1 for numbers in found.values())
    assert set().union(*found.values()) == set(range(len(HOSTS)))


def test_a_collector_that_leaves_moves_only_its_share_and_gets_it_back(collector, tmp_path):
    """It is killed, and waited for in vain until it has left the name: no retry is due before."""
    addresses = tmp_path / "addresses"

    def resolve(hosts):
        addresses.with_suffix(".new").write_text("".join(host + "\n" for host in hosts))
        addresses.with_suffix(".new").rename(addresses)

    resolve(HOSTS)
    env = preload.env(gate.BINARY.parent, "names", NAME="members.test", ADDRESSES=str(addresses))
    with tier(collector) as (members, port):
        resolver = '{dns: {hostname: members.test, port: "%d", interval: 50ms}}' % port
        with gate.gateway(GATEWAY % (KEYS, "gzip", resolver, "1h"), env=env) as g, peers.Client(g.port["otlp"]) as client:
            def send(requests):
                for body in requests:
                    client.send(body)
                return requests

            sent = send(more(1, 5))
            arrived(g, members, sent)
            before = owners(members)
            members[1].process.kill()
            sent += send(more(6, 10))
            own = {service for service, numbers in before.items() if numbers == {1}}
            assert own and g.total("otelcol_ledger_queued_samples") > 0
            resolve([HOSTS[0], HOSTS[2]])
            arrived(g, members, sent)
            after = owners(members)
            assert {service for service in after if after[service] != before[service]} == own
            assert all(len(after[service]) == 2 for service in own), "each went to one other"
            with started(collector, HOSTS[1], port) as back:
                resolve(HOSTS)
                g.until(lambda: g.total("otelcol_loadbalancer_num_backends") == len(HOSTS))
                sent += send(more(16, 5))
                arrived(g, [*members, back], sent)
                assert set(owners([back])) == own
