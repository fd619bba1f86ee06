# SPDX-License-Identifier: Apache-2.0
"""Destinations with several addresses: which of them get requests, and what happens when addresses change."""
import contextlib
import os
import threading
import time

import pytest

from harness import build as make
from harness import otlp, peers, preload
from harness.gateway import Gateway, free_port
from harness.names import NameServer
from harness.otlphttp import OtlpSink

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  %s:
    endpoint: %s
    timeout: %s
    retry_on_failure: {initial_interval: 20ms, max_interval: 100ms, max_elapsed_time: 0}
    %s
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [%s]}
"""
HOSTS = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
PLAIN = "tls: {insecure: true}"


class Rig:
    """A gateway that sends to this endpoint, and a sender."""

    def __init__(self, build, exporter, endpoint, *lines, timeout="2s", env=None):
        text = CONFIG % (exporter, endpoint, timeout, "\n    ".join(lines), exporter)
        self.gateway, self.exporter, self.sent, self.seeds = Gateway(build / "portcullis", text, env=env), exporter, otlp.Counter(), 0

    def __enter__(self):
        self.gateway.__enter__()
        self.client = peers.Client(self.gateway.port["otlp"])
        return self

    def __exit__(self, *failure):
        self.client.close()
        self.gateway.__exit__(*failure)

    def total(self, what):
        return self.gateway.total("otelcol_ledger_%s_samples" % what, exporter=self.exporter)

    def send(self, requests=1):
        for _ in range(requests):
            self.seeds += 1
            message = make.request(self.seeds, samples=10)
            self.client.send(message)
            self.sent += otlp.samples(message)

    def settle(self):
        """All that was sent is out, once."""
        self.gateway.until(lambda: self.total("out") == self.sent.total())
        assert self.gateway.balanced("profiles", self.exporter) and self.gateway.process.poll() is None

    def send_until(self, condition, seconds=60):
        """Requests follow each other until it comes true."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.gateway.log()
            self.send()
            self.settle()


@contextlib.contextmanager
def servers(kind, hosts, **options):
    port = free_port()
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(kind(address=h, port=port, **options)) for h in hosts], port


def grpc_servers(hosts=HOSTS):
    return servers(peers.Sink, hosts)


def taken(sink):
    return len(sink.received)


def all_samples(sinks):
    return sum((sink.samples() for sink in sinks), otlp.Counter())


# ---- gRPC

def list_of(port, names):
    return "ipv4:" + ",".join("%s:%d" % (h, port) for h in HOSTS)


def store_at(port, names):
    return "dns://127.0.0.1:%d/store.test:%d" % (names.port, port)


def name_of(port, names):
    names.addresses = HOSTS
    return store_at(port, names)


@pytest.mark.parametrize("endpoint", [list_of, name_of])
def test_round_robin_sends_the_same_share_to_each_address(build, endpoint):
    with NameServer() as names, grpc_servers() as (sinks, port), Rig(build, "otlp_grpc", endpoint(port, names), PLAIN) as rig:
        rig.send_until(lambda: all(taken(sink) for sink in sinks))
        before = [taken(sink) for sink in sinks]
        rig.send(60)
        rig.settle()
        assert [taken(sink) - n for sink, n in zip(sinks, before)] == [20, 20, 20]
        assert all_samples(sinks) == rig.sent


@pytest.mark.parametrize("endpoint", [list_of, name_of])
def test_a_dead_address_costs_nothing_and_gets_requests_again_when_it_is_back(build, endpoint):
    with NameServer() as names, grpc_servers() as (sinks, port), Rig(build, "otlp_grpc", endpoint(port, names), PLAIN) as rig:
        rig.send_until(lambda: all(taken(sink) for sink in sinks))
        sinks[1].stop()
        before = taken(sinks[1])
        rig.send(60)
        rig.settle()
        assert taken(sinks[1]) == before and min(taken(sinks[0]), taken(sinks[2])) >= 25
        assert rig.gateway.total("otelcol_exporter_retries", exporter="otlp_grpc") <= 1, "one request notices it"
        sinks[1].start()
        rig.send_until(lambda: taken(sinks[1]) > before)
        assert all_samples(sinks) == rig.sent


def test_pick_first_uses_one_address(build):
    with NameServer() as names, grpc_servers() as (sinks, port), \
            Rig(build, "otlp_grpc", list_of(port, names), PLAIN, "balancer_name: pick_first") as rig:
        rig.send(30)
        rig.settle()
        assert [taken(sink) for sink in sinks] == [30, 0, 0]


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_localhost_is_both_loopback_addresses(build, host):
    """Its connections are renewed, so that what is leaked for the name is leaked again."""
    with peers.Sink(address=host) as sink, Rig(build, "otlp_grpc", "localhost:%d" % sink.port, PLAIN, "max_connection_age: 100ms") as rig:
        end = time.monotonic() + 1
        rig.send_until(lambda: time.monotonic() > end)
        assert sink.samples() == rig.sent


class Load:
    """Requests from another thread, while addresses change."""

    def __init__(self, rig):
        self.rig, self.ending, self.thread = rig, threading.Event(), threading.Thread(target=self.run)

    def run(self):
        while not self.ending.wait(.005):
            self.rig.send()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()


def test_the_addresses_of_a_name_are_replaced_under_load(build):
    """The old servers end after the name has changed, as in a deployment."""
    with NameServer(*HOSTS[:1]) as names, grpc_servers() as (sinks, port):
        with Rig(build, "otlp_grpc", store_at(port, names), PLAIN) as rig:
            rig.send_until(lambda: taken(sinks[0]))
            with Load(rig):
                names.addresses = HOSTS[1:]
                sinks[0].stop()
                rig.gateway.until(lambda: all(taken(sink) > 5 for sink in sinks[1:]))
            rig.settle()
            received = all_samples(sinks)
            assert rig.total("out") == rig.sent.total() and not rig.sent - received
            assert rig.total("dropped") == 0


def test_max_connection_age_follows_a_name_whose_old_servers_stay(build):
    with NameServer(*HOSTS[:1]) as names, grpc_servers() as (sinks, port):
        with Rig(build, "otlp_grpc", store_at(port, names), PLAIN, "max_connection_age: 1s") as rig:
            rig.send_until(lambda: taken(sinks[0]))
            with Load(rig):
                names.addresses = HOSTS[1:]
                rig.gateway.until(lambda: all(taken(sink) > 5 for sink in sinks[1:]))
                old = taken(sinks[0])
                rig.gateway.until(lambda: sum(taken(sink) for sink in sinks[1:]) > 400)
                assert taken(sinks[0]) == old
            rig.settle()
            assert all_samples(sinks) == rig.sent and rig.total("dropped") == 0
            assert rig.gateway.total("otelcol_exporter_retries", exporter="otlp_grpc") == 0


def test_without_max_connection_age_a_name_is_asked_once(build):
    with NameServer(*HOSTS[:1]) as names, grpc_servers() as (sinks, port):
        with Rig(build, "otlp_grpc", store_at(port, names), PLAIN) as rig:
            rig.send_until(lambda: taken(sinks[0]))
            names.addresses = HOSTS[1:]
            asked, end = names.questions, time.monotonic() + 3
            rig.send_until(lambda: time.monotonic() > end)
            assert names.questions == asked and not taken(sinks[1])


def test_a_request_in_flight_finishes_on_the_old_connection(build):
    with NameServer(*HOSTS[:1]) as names, grpc_servers() as (sinks, port):
        held = threading.Event()

        def hold(*_):
            held.wait(60)
            return b""

        sinks[0].answer = hold
        with Rig(build, "otlp_grpc", store_at(port, names), PLAIN, "max_connection_age: 500ms", timeout="60s") as rig:
            rig.send()
            rig.gateway.until(lambda: rig.gateway.total("otelcol_exporter_in_flight_requests", exporter="otlp_grpc") == 1)
            names.addresses = HOSTS[1:2]
            time.sleep(2)
            rig.send()
            rig.gateway.until(lambda: taken(sinks[1]) == 1)
            held.set()
            rig.settle()
            assert taken(sinks[0]) == 1 and all_samples(sinks[:2]) == rig.sent


# ---- HTTP

class Name:
    """A name that the gateway resolves to what the test writes into a file."""

    def __init__(self, build, directory):
        self.file = directory / "addresses"
        self.env = preload.env(build, "names", NAME="store.test", ADDRESSES=str(self.file))

    def set(self, *addresses):
        new = self.file.with_suffix(".new")
        new.write_text("".join(a + "\n" for a in addresses))
        new.rename(self.file)


@pytest.fixture
def name(build, tmp_path):
    return Name(build, tmp_path)


def http_rig(build, name, port, *lines, **options):
    return Rig(build, "otlp_http", "http://store.test:%d" % port, *lines, env=name.env, **options)


def test_http_uses_another_address_when_one_is_dead(build, name):
    with servers(OtlpSink, HOSTS[1:2]) as (sinks, port):
        name.set(*HOSTS)
        with http_rig(build, name, port, timeout="60s") as rig:
            rig.send(20)
            rig.settle()
            assert sinks[0].samples() == rig.sent
            assert rig.gateway.total("otelcol_exporter_retries", exporter="otlp_http") == 0


def test_http_finds_the_new_addresses_of_a_name_under_load(build, name):
    with servers(OtlpSink, HOSTS[:2]) as (sinks, port):
        name.set(HOSTS[0])
        with http_rig(build, name, port) as rig:
            rig.send_until(lambda: sinks[0].taken)
            with Load(rig):
                name.set(HOSTS[1])
                sinks[0].stop()
                rig.gateway.until(lambda: len(sinks[1].taken) > 5)
            rig.settle()
            received = all_samples(sinks)
            assert not rig.sent - received and rig.total("dropped") == 0


def test_a_look_up_that_hangs_holds_up_nothing_but_its_own_attempts(build, name):
    """The addresses are in a pipe that nobody writes to. Retries are the main loop's, and so is the end of the program."""
    os.mkfifo(name.file)
    with http_rig(build, name, 9, timeout="100ms") as rig:
        rig.send()
        rig.gateway.until(lambda: rig.gateway.total("otelcol_exporter_retries", exporter="otlp_http") > 2)
        assert rig.gateway.stop() == 0 and "did not finish in time" not in rig.gateway.log()


@pytest.mark.parametrize("lines, moves", [(["max_connection_age: 1s"], True), ([], False)])
def test_http_max_connection_age(build, name, lines, moves):
    with servers(OtlpSink, HOSTS[:2]) as (sinks, port):
        name.set(HOSTS[0])
        with http_rig(build, name, port, *lines, timeout="60s") as rig:
            rig.send_until(lambda: sinks[0].taken)
            name.set(HOSTS[1])
            end = time.monotonic() + (60 if moves else 8)
            rig.send_until(lambda: sinks[1].taken or time.monotonic() > end, seconds=90)
            assert bool(sinks[1].taken) == moves
            assert all_samples(sinks) == rig.sent and rig.total("dropped") == 0
            assert rig.gateway.total("otelcol_exporter_retries", exporter="otlp_http") == 0
