# SPDX-License-Identifier: Apache-2.0
"""load_balancing: which member gets what, and what becomes of the data of members that leave, join or do not answer."""
import contextlib
import os
import shutil
import signal
import subprocess

import grpc
import pytest

from harness import build as make
from harness import certificates, otlp, peers, preload
from harness.gateway import Gateway, free_port

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}, ack: %s}
extensions:
  file_storage: {directory: queue, create_directory: true}
exporters:
  %s:
    routing_key: %s
    protocol: {otlp: {tls: {%s}, timeout: %s}}
    resolver: %s
    retry_on_failure: {%s, max_elapsed_time: 0}
    sending_queue: {%s}
    dead_letter: {directory: dead}
service:
  extensions: [file_storage]
  pipelines:
    profiles: {receivers: [otlp], exporters: [%s]}
"""
HOSTS = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"]
SERVICES = 40
SOON = "initial_interval: 20ms, max_interval: 100ms"
# No retry is due while the test runs, so only a change of the members moves what waits; and no attempt fails because it is slow.
PATIENT = {"retry": "initial_interval: 1h, max_interval: 1h", "timeout": "60s"}


def services_of(data):
    """The services of a request."""
    names = set()
    for rp in otlp.parse(data).resource_profiles:
        names |= {a.value.string_value for a in rp.resource.attributes if a.key == "service.name"}
    return names


class Member(peers.Sink):
    def services(self):
        with self.lock:
            taken = list(self.received)
        return set().union(*(services_of(data) for data in taken))


class Name:
    """The addresses of members.test, as the gateway resolves it."""

    def __init__(self, build, directory):
        self.file = directory / "addresses"
        self.env = preload.env(build, "names", NAME="members.test", ADDRESSES=str(self.file))

    def set(self, *addresses):
        new = self.file.with_suffix(".new")
        new.write_text("".join(a + "\n" for a in addresses))
        new.rename(self.file)


class Rig:
    def __init__(self, build, directory, resolver, key="service", queue="queue_size: 1000", timeout="2s", retry=SOON, tls="insecure: true",
                 exporter="loadbalancing", env=None):
        ack = "durable" if "storage" in queue else "service"
        text = CONFIG % (ack, exporter, key, tls, timeout, resolver, retry, queue, exporter)
        self.build, self.text, self.directory, self.env, self.exporter = build, text, directory, env, exporter
        self.sent, self.seeds = otlp.Counter(), 0

    def __enter__(self):
        self.gateway = Gateway(self.build / "portcullis", self.text, cwd=self.directory, env=self.env).__enter__()
        self.client = peers.Client(self.gateway.port["otlp"])
        return self

    def __exit__(self, *failure):
        self.client.close()
        self.gateway.__exit__(*failure)

    def total(self, what, **labels):
        return self.gateway.total(what, exporter=self.exporter, **labels)

    def send(self, requests=1, samples=2):
        """Each has all services."""
        for _ in range(requests):
            self.seeds += 1
            message = make.request(self.seeds, samples=samples, resources=SERVICES)
            self.client.send(message)
            self.sent += otlp.samples(message)

    def settle(self):
        self.gateway.until(lambda: self.total("otelcol_ledger_out_samples") == self.sent.total())
        assert self.gateway.balanced("profiles", self.exporter)
        assert self.total("otelcol_ledger_dropped_samples") == 0


@contextlib.contextmanager
def members(hosts=HOSTS, **options):
    port = free_port()
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Member(address=h, port=port, **options)) for h in hosts], port


def all_samples(sinks):
    return sum((sink.samples() for sink in sinks), otlp.Counter())


def fixed(port, hosts=HOSTS):
    return "{static: {hostnames: [%s]}}" % ", ".join("%s:%d" % (h, port) for h in hosts)


def named(port):
    return '{dns: {hostname: members.test, port: "%d", interval: 50ms}}' % port


def owners(sinks):
    """The members of each service."""
    found = {}
    for number, sink in enumerate(sinks):
        for name in sink.services():
            found.setdefault(name, set()).add(number)
    return found


@pytest.mark.parametrize("exporter", ["loadbalancing", "load_balancing/b"])
def test_each_service_reaches_one_member(build, tmp_path, exporter):
    with members() as (sinks, port), Rig(build, tmp_path, fixed(port), exporter=exporter) as rig:
        rig.send(20)
        rig.settle()
        assert all_samples(sinks) == rig.sent
        found = owners(sinks)
        assert len(found) == SERVICES and all(len(numbers) == 1 for numbers in found.values())
        assert all(sink.services() for sink in sinks)
        assert rig.gateway.total("otelcol_loadbalancer_num_backends") == len(HOSTS)
        assert rig.gateway.total("otelcol_loadbalancer_backend_outcome", success="true") == sum(len(s.received) for s in sinks)


def test_another_gateway_chooses_the_same_members(build, tmp_path):
    """In another order of the list, and by another process."""
    with members() as (sinks, port):
        for hosts in (HOSTS, HOSTS[::-1]):
            with Rig(build, tmp_path, fixed(port, hosts)) as rig:
                rig.send(2)
                rig.settle()
        assert all(len(numbers) == 1 for numbers in owners(sinks).values())


@pytest.mark.parametrize("key, values", [("attributes\n    routing_attributes: [k8s.pod.name, region]", 4), ("tenant", 1)])
def test_other_keys(build, tmp_path, key, values):
    """Pods have random names, so all members get some; data without a tenant has one key."""
    with members() as (sinks, port), Rig(build, tmp_path, fixed(port), key=key) as rig:
        rig.send(5)
        rig.settle()
        assert all_samples(sinks) == rig.sent
        assert sum(bool(sink.received) for sink in sinks) == values


@pytest.mark.parametrize("queue", ["queue_size: 1000", "queue_size: 1000, storage: file_storage"])
def test_a_dead_member_delays_only_what_is_for_it(build, tmp_path, queue):
    with members() as (sinks, port), Rig(build, tmp_path, fixed(port), queue=queue) as rig:
        rig.send(5)
        rig.settle()
        before = owners(sinks)
        sinks[1].stop()
        rig.send(100)
        others = [sink for n, sink in enumerate(sinks) if n != 1]
        own = sum(numbers == {1} for numbers in before.values())
        rig.gateway.until(lambda: all_samples(others).total() == 105 * 2 * (SERVICES - own))
        assert rig.total("otelcol_ledger_queued_samples") == 100 * 2 * own
        sinks[1].start()
        rig.settle()
        assert all_samples(sinks) == rig.sent
        assert owners(sinks) == before


def test_a_dead_member_does_not_fill_the_queue(build, tmp_path):
    """Beyond its part of the queue, others get its new data."""
    with members() as (sinks, port), Rig(build, tmp_path, fixed(port), queue="queue_size: 40") as rig:
        sinks[1].stop()
        rig.send(200)
        rig.gateway.until(lambda: rig.total("otelcol_ledger_out_samples") >= 150 * SERVICES * 2)
        assert rig.gateway.total("otelcol_loadbalancer_backend_diverted", endpoint="%s:%d" % (HOSTS[1], port)) == 1
        sinks[1].start()
        rig.settle()
        assert all_samples(sinks) == rig.sent
        rig.gateway.until(lambda: rig.send() or rig.gateway.total("otelcol_loadbalancer_backend_diverted") == 0)
        rig.settle()


@pytest.mark.parametrize("queue", ["queue_size: 1000", "queue_size: 1000, storage: file_storage"])
def test_a_member_that_leaves_moves_only_its_share(build, tmp_path, queue):
    """It is killed, and what waits for it goes to the others at once when the name has changed."""
    name = Name(build, tmp_path)
    name.set(*HOSTS)
    with members() as (sinks, port), Rig(build, tmp_path, named(port), env=name.env, queue=queue, **PATIENT) as rig:
        rig.send(5)
        rig.settle()
        before = owners(sinks)
        sinks[1].stop()
        rig.send(20)
        name.set(*(h for n, h in enumerate(HOSTS) if n != 1))
        rig.settle()
        assert all_samples(sinks) == rig.sent
        after = owners(s for n, s in enumerate(sinks) if n != 1)
        own = {service for service, numbers in before.items() if numbers == {1}}
        assert own and set(after) == set(before)
        ways = {frozenset(after[service]) for service in own}
        assert len(ways) > 1 and all(len(w) == 1 for w in ways)
        kept = {service: {number - (number > 1) for number in numbers} for service, numbers in before.items() if service not in own}
        assert all(after[service] == numbers for service, numbers in kept.items())
        assert rig.gateway.total("otelcol_loadbalancer_num_backends") == 3


def test_a_member_that_joins_takes_only_its_share(build, tmp_path):
    name = Name(build, tmp_path)
    name.set(*HOSTS[:3])
    with members() as (sinks, port), Rig(build, tmp_path, named(port), env=name.env) as rig:
        rig.send(5)
        rig.settle()
        before = owners(sinks)
        name.set(*HOSTS)
        rig.gateway.until(lambda: rig.gateway.total("otelcol_loadbalancer_num_backends") == 4)
        rig.send(5)
        rig.settle()
        joined = sinks[3].services()
        assert 0 < len(joined) < SERVICES / 2
        assert owners(sinks[:3]) == before, "the others get nothing that they had not before"
        assert all_samples(sinks) == rig.sent


def test_series_of_members_are_bounded(build, tmp_path):
    """A name that has other addresses all the time."""
    name, metric = Name(build, tmp_path), "otelcol_loadbalancer_backend_latency"
    with Rig(build, tmp_path, named(free_port()), env=name.env) as rig:
        for number in range(1, 81):
            name.set("127.0.1.%d" % number)
            rig.gateway.until(lambda: rig.total("otelcol_loadbalancer_num_backend_updates") == number)
        lines = [line.split(" ")[0] for line in rig.gateway.metrics_text().splitlines() if line.startswith(metric)]
        assert len(lines) == len(set(lines)) == 64 and any("127.0.1.80:" in line for line in lines)
        assert rig.total("otelcol_loadbalancer_num_backends") == 1


@pytest.mark.parametrize("retries", ["", "enabled: false, "])
def test_a_name_that_does_not_resolve_keeps_the_members(build, tmp_path, retries):
    name = Name(build, tmp_path)
    patient = PATIENT | {"retry": retries + PATIENT["retry"]}
    with members(HOSTS[:2]) as (sinks, port), Rig(build, tmp_path, named(port), env=name.env, **patient) as rig:
        failed = lambda: rig.total("otelcol_loadbalancer_num_resolutions", success="false")
        rig.send(3)
        rig.gateway.until(lambda: failed() > 0)
        assert rig.total("otelcol_ledger_out_samples") == 0
        name.set(*HOSTS[:2])
        rig.settle()
        name.set()
        before = failed()
        rig.gateway.until(lambda: failed() > before + 1)
        rig.send(3)
        rig.settle()
        assert all_samples(sinks) == rig.sent
        assert rig.gateway.log().count("cannot be resolved") == 2


def test_members_that_cannot_be_used_are_logged_once(build, tmp_path):
    """The name is resolved again and again, and each time they are tried."""
    name = Name(build, tmp_path)
    name.set(*HOSTS[:2])
    rig = Rig(build, tmp_path, named(free_port()), env=name.env)
    rig.text = rig.text.replace("{insecure: true}", "{ca_file: missing.pem}")
    with rig:
        rig.gateway.until(lambda: rig.total("otelcol_loadbalancer_num_resolutions", success="true") >= 5)
        assert rig.gateway.log().count("A member cannot be used.") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_waits_on_disk_is_sent_after_a_restart(build, tmp_path, number):
    """Also if the members are others then."""
    with members() as (sinks, port):
        rig = Rig(build, tmp_path, fixed(port), queue="queue_size: 1000, storage: file_storage")
        with rig:
            rig.send(5)
            rig.settle()
            sinks[1].stop()
            rig.send(20)
            assert rig.total("otelcol_ledger_queued_samples") > 0
            rig.gateway.stop(number)
        rig.text = rig.text.replace(fixed(port), fixed(port, [h for n, h in enumerate(HOSTS) if n != 1]))
        with rig:
            rig.gateway.until(lambda: rig.total("otelcol_ledger_queued_samples") == 0)
            restored = rig.total("otelcol_ledger_restored_samples")
            assert restored and rig.total("otelcol_ledger_out_samples") == restored
            assert rig.gateway.balanced("profiles", rig.exporter)
        assert not rig.sent - all_samples(sinks), "nothing is lost"


def keyed(sinks):
    """{key: samples} of all requests. Equal keys have equal data."""
    found = {}
    for sink in sinks:
        with sink.lock:
            for data, metadata in zip(sink.received, sink.metadata):
                samples = otlp.samples(otlp.parse(data))
                assert found.setdefault(dict(metadata)["idempotency-key"], samples) == samples
    return found


def test_what_a_restart_repeats_has_the_same_keys(build, tmp_path):
    with members() as (sinks, port):
        rig = Rig(build, tmp_path, fixed(port), queue="queue_size: 1000, storage: file_storage")
        with rig:
            sinks[1].stop()
            rig.send(20)
            rig.gateway.until(lambda: all(len(s.received) >= 20 for n, s in enumerate(sinks) if n != 1))
            rig.gateway.stop(signal.SIGKILL)
        sinks[1].start()
        with rig:
            rig.gateway.until(lambda: rig.total("otelcol_ledger_restored_samples") and not rig.total("otelcol_ledger_queued_samples"))
        assert sum(len(sink.received) for sink in sinks) > 80
        assert sum(keyed(sinks).values(), otlp.Counter()) == rig.sent


def test_a_replay_divides_letters(build, tmp_path):
    def refuse(data, context):
        context.abort(peers.grpc.StatusCode.INVALID_ARGUMENT, "no")

    with members() as (sinks, port), Rig(build, tmp_path, fixed(port)) as rig:
        for sink in sinks:
            sink.answer = refuse
        rig.send(5)
        rig.gateway.until(lambda: rig.total("otelcol_ledger_dead_letter_samples") == rig.sent.total())
        assert rig.gateway.balanced("profiles", rig.exporter)
        replay = [rig.gateway.binary, "replay", "dead", "--to", rig.exporter, "--config", str(rig.gateway.config)]
        once = lambda: subprocess.run(replay, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert once().returncode != 0
        for sink in sinks:
            sink.answer, sink.received = lambda data, context: b"", []
        done = once()
        assert done.returncode == 0, done.stdout + done.stderr
        assert all_samples(sinks) == rig.sent


def test_a_part_that_a_member_finds_too_large_is_split_for_that_member(build, tmp_path):
    with members(limit=20000) as (sinks, port), Rig(build, tmp_path, fixed(port)) as rig:
        rig.send(2, samples=300)
        rig.settle()
        assert rig.total("otelcol_exporter_oversized_requests") > 0
        assert all_samples(sinks) == rig.sent
        assert all(len(numbers) == 1 for numbers in owners(sinks).values())


@pytest.mark.parametrize("how", ["SIGHUP", "reload_interval"])
def test_certificates_are_read_again_for_all_members(build, tmp_path, how):
    """The exporter begins with a CA that knows none of them."""
    def place(name):
        shutil.copy(tmp_path / (name + ".pem"), tmp_path / "new")
        os.replace(tmp_path / "new", tmp_path / "current.pem")

    for name in "ca", "other":
        certificates.make_ca(tmp_path, name)
    certificates.make_leaf(tmp_path, "ca", "server", "/CN=member", own="IP:127.0.0.1,IP:127.0.0.2")
    credentials = grpc.ssl_server_credentials([((tmp_path / "server.key").read_bytes(), (tmp_path / "server.pem").read_bytes())])
    tls = "ca_file: %s/current.pem" % tmp_path + (", reload_interval: 100ms" if how == "reload_interval" else "")
    place("other")
    with members(HOSTS[:2], credentials=credentials) as (sinks, port), Rig(build, tmp_path, fixed(port, HOSTS[:2]), tls=tls) as rig:
        rig.send(3)
        rig.gateway.until(lambda: rig.gateway.total("otelcol_loadbalancer_backend_outcome", success="false") > 1)
        assert not all_samples(sinks)
        place("ca")
        if how == "SIGHUP":
            rig.gateway.process.send_signal(signal.SIGHUP)
        rig.settle()
        assert all_samples(sinks) == rig.sent and all(sink.received for sink in sinks)


@pytest.mark.parametrize("settings, says", [
    ("{resolver: {k8s: {service: a}}}", "k8s: this build does not talk to the API of Kubernetes"),
    ("{resolver: {aws_cloud_map: {namespace: a}}}", "aws_cloud_map: this build does not talk to the API of AWS"),
    ("{}", "no resolvers specified for the exporter"),
    ("{resolver: {static: {hostnames: [a]}, dns: {hostname: a}}}", "only one resolver should be specified"),
    ("{resolver: {static: {hostnames: []}}}", "no hostnames"),
    ("{resolver: {static: {hostnames: [%s]}}}" % ", ".join("h%d" % n for n in range(65)), "more than 64"),
    ("{resolver: {dns: {port: '1'}}}", "no hostname specified to resolve"),
    ("{resolver: {dns: {hostname: a, interval: 0s}}}", "`interval` must be positive"),
    ("{routing_key: traceID, resolver: {dns: {hostname: a}}}", "routing_key: `traceID` is not supported for profiles"),
    ("{routing_key: other, resolver: {dns: {hostname: a}}}", "routing_key: neither service, tenant nor attributes"),
    ("{routing_key: attributes, resolver: {dns: {hostname: a}}}", "routing_key: `attributes` requires routing_attributes"),
    ("{protocol: {otlp: {sending_queue: {}}}, resolver: {dns: {hostname: a}}}", "sending_queue: all members share the queue"),
    ("{protocol: {otlp: {retry_on_failure: {}}}, resolver: {dns: {hostname: a}}}", "retry_on_failure: all members share the queue"),
    ("{protocol: {otlp: {endpoint: a}}, resolver: {dns: {hostname: a}}}", "endpoint"),
    ("{protocol: {otlp: {compression: other}}, resolver: {dns: {hostname: a}}}", "compression"),
])
def test_what_is_not_supported_is_an_error(build, tmp_path, settings, says):
    (tmp_path / "gateway.yaml").write_text("receivers: {nop: {}}\nexporters:\n  load_balancing: %s\n"
                                           "service: {pipelines: {profiles: {receivers: [nop], exporters: [load_balancing]}}}\n" % settings)
    done = subprocess.run([build / "portcullis", "validate", "--config", tmp_path / "gateway.yaml"], capture_output=True, text=True)
    assert done.returncode == 1 and says in done.stderr and "load_balancing" in done.stderr, done.stderr


def test_senders_wait_for_all_members(build, tmp_path):
    with members() as (sinks, port), Rig(build, tmp_path, fixed(port), queue="wait_for_result: true") as rig:
        rig.send(3)
        assert all_samples(sinks) == rig.sent
        sinks[2].answer = lambda data, context: context.abort(peers.grpc.StatusCode.INVALID_ARGUMENT, "no")
        refused = peers.refused(rig.client, make.request(99, samples=2, resources=SERVICES))
        assert refused.code() == peers.grpc.StatusCode.INTERNAL
        assert rig.gateway.balanced("profiles", rig.exporter)
