# SPDX-License-Identifier: Apache-2.0
"""The destination's CA and certificate, and all addresses of its name, are replaced while data flows."""
import itertools
import os
import shutil
import signal

import grpc
import pytest

from harness import build as make
from harness import certificates, chaos, peers

ORACLE = "Nothing is lost and nothing restarts; after the old addresses are gone, everything goes to the new ones."
TEXT = chaos.RECEIVERS + """
exporters:
  otlp_grpc:
    endpoint: ENDPOINT:{port:a}
    tls: {TLS}
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms, max_elapsed_time: 0s}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc]}
"""
pytestmark = pytest.mark.alone


def credentials(directory, name):
    return grpc.ssl_server_credentials([((directory / (name + ".key")).read_bytes(), (directory / (name + ".pem")).read_bytes())])


def flowing(gateway, sinks, between):
    """Requests all the time; what `between` does must not cost one."""
    with chaos.Load(gateway, (make.request(seed, samples=20) for seed in itertools.count())) as load:
        gateway.until(lambda: len(load.accepted) > 50)
        between()
        goal = len(load.accepted) + 50
        gateway.until(lambda: len(load.accepted) > goal)
    chaos.settled(gateway, "otlp_grpc")
    assert not load.samples() - sum((s.samples() for s in sinks), type(load.samples())())
    assert not gateway.total("otelcol_ledger_dropped_samples")
    return len(load.accepted)


@pytest.mark.parametrize("how", ["SIGHUP", "reload_interval"])
def test_certificate_and_ca_are_replaced(build, tmp_path, how, record_property):
    for ca in ("old", "new"):
        certificates.make_ca(tmp_path, ca)
        certificates.make_leaf(tmp_path, ca, ca + "-server", "/CN=localhost")
    shutil.copy(tmp_path / "old.pem", tmp_path / "ca.pem")
    tls = "ca_file: %s/ca.pem%s" % (tmp_path, ", reload_interval: 100ms" if how == "reload_interval" else "")
    old, new = (peers.Sink(credentials=credentials(tmp_path, name + "-server")) for name in ("old", "new"))
    with chaos.running(build, TEXT.replace("ENDPOINT", "127.0.0.1").replace("TLS", tls)) as gateway:
        old.port = new.port = gateway.port["a"]
        old.start()

        def replace():
            old.stop()
            new.start()
            shutil.copy(tmp_path / "new.pem", tmp_path / "ca.tmp")
            os.replace(tmp_path / "ca.tmp", tmp_path / "ca.pem")
            if how == "SIGHUP":
                gateway.process.send_signal(signal.SIGHUP)
        try:
            count = flowing(gateway, (old, new), replace)
        finally:
            old.stop()
            new.stop()
        assert new.received
    record_property("figure", "%s: %d requests" % (how, count))


def may_mount():
    return os.geteuid() == 0 and os.system("unshare -m true 2>/dev/null") == 0


@pytest.mark.skipif(not may_mount(), reason="needs the right to give the program a hosts file of its own")
def test_all_addresses_of_a_name_are_replaced(build, tmp_path, record_property):
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n127.0.0.2 store.test\n127.0.0.3 store.test\n")
    guard = ["unshare", "-m", "sh", "-c", 'mount --bind %s /etc/hosts && exec "$@"' % hosts, "sh"]
    sinks = [peers.Sink(address="127.0.0.%d" % i) for i in range(2, 6)]
    with chaos.running(build, TEXT.replace("ENDPOINT", "store.test").replace("TLS", "insecure: true"), guard=guard) as gateway:
        for sink in sinks:
            sink.port = gateway.port["a"]
        for sink in sinks[:2]:
            sink.start()

        def replace():
            for sink in sinks[2:]:
                sink.start()
            hosts.write_text("127.0.0.1 localhost\n127.0.0.4 store.test\n127.0.0.5 store.test\n")
            for sink in sinks[:2]:
                sink.stop()
        try:
            count = flowing(gateway, sinks, replace)
        finally:
            for sink in sinks:
                sink.stop()
        assert any(sink.received for sink in sinks[2:])
    record_property("figure", "2 of 2 addresses replaced, %d requests" % count)
