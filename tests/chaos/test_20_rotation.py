# SPDX-License-Identifier: Apache-2.0
"""The destination's CA and certificate, and all addresses of its name, are replaced while data flows."""
import itertools
import os
import shutil
import signal

import grpc
import pytest

from harness import build as make
from harness import certificates, chaos, otlp, peers
from harness.otlphttp import OtlpSink

ORACLE = "Nothing is lost and nothing restarts; after the old addresses are gone, everything goes to the new ones."
TEXT = chaos.RECEIVERS + """
exporters:
  EXPORTER:
    endpoint: "ENDPOINT:{port:a}"
    tls: {TLS}
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms, max_elapsed_time: 0s}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [EXPORTER]}
"""
TRANSPORTS = ["grpc", "http"]
pytestmark = pytest.mark.alone


def server(transport, address, port, directory=None, name=None):
    """With a name: one with its certificate, that requires one of the same CA."""
    chain, key, ca = (directory / (name + end) for end in ("-server.pem", "-server.key", ".pem")) if name else (None, None, None)
    if transport == "http":
        return OtlpSink((chain, key) if name else None, client_ca=ca, address=address, port=port).start()
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), chain.read_bytes())], ca.read_bytes(), True) if name else None
    return peers.Sink(port, address=address, credentials=credentials).start()


def running(build, transport, host, tls, **options):
    scheme = {"grpc": "", "http": "https://" if "ca_file" in tls else "http://"}[transport]
    return chaos.running(build, TEXT.replace("EXPORTER", "otlp_" + transport).replace("ENDPOINT", scheme + host).replace("TLS", tls),
                         **options)


def flowing(gateway, transport, sinks, between):
    """Requests all the time; what `between` does must not cost one."""
    with chaos.Load(gateway, (make.request(seed, samples=20) for seed in itertools.count())) as load:
        gateway.until(lambda: len(load.accepted) > 50)
        between()
        goal = len(load.accepted) + 50
        gateway.until(lambda: len(load.accepted) > goal)
    chaos.settled(gateway, "otlp_" + transport)
    assert not load.samples() - sum((s.samples() for s in sinks), otlp.Counter())
    assert not gateway.total("otelcol_ledger_dropped_samples") and gateway.process.poll() is None
    return len(load.accepted)


def stop(sinks):
    for sink in sinks:
        sink.stop()


FILES = {"ca.pem": "%s.pem", "mine.key": "%s-client.key", "mine.pem": "%s-client.pem"}


def place(directory, ca):
    for target, source in FILES.items():
        shutil.copy(directory / (source % ca), directory / (target + ".new"))
        os.replace(directory / (target + ".new"), directory / target)


@pytest.mark.parametrize("how", ["SIGHUP", "reload_interval"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_certificates_and_ca_are_replaced(build, tmp_path, transport, how, record_property):
    """Those of both sides."""
    for ca in ("old", "new"):
        certificates.make_ca(tmp_path, ca)
        certificates.make_leaf(tmp_path, ca, ca + "-server", "/CN=localhost")
        certificates.make_leaf(tmp_path, ca, ca + "-client", "/CN=gateway", "clientAuth")
    place(tmp_path, "old")
    tls = "ca_file: DIR/ca.pem, cert_file: DIR/mine.pem, key_file: DIR/mine.key".replace("DIR", str(tmp_path))
    tls += ", reload_interval: 100ms" if how == "reload_interval" else ""
    with running(build, transport, "127.0.0.1", tls) as gateway:
        sinks = [server(transport, "127.0.0.1", gateway.port["a"], tmp_path, "old")]

        def replace():
            sinks[0].stop()
            sinks.append(server(transport, "127.0.0.1", gateway.port["a"], tmp_path, "new"))
            place(tmp_path, "new")
            if how == "SIGHUP":
                gateway.process.send_signal(signal.SIGHUP)
        try:
            count = flowing(gateway, transport, sinks, replace)
        finally:
            stop(sinks)
        assert sinks[1].samples()
    record_property("figure", "%s, %s: %d requests" % (transport, how, count))


def may_mount():
    return os.geteuid() == 0 and os.system("unshare -m true 2>/dev/null") == 0


@pytest.mark.skipif(not may_mount(), reason="needs the right to give the program a hosts file of its own")
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_all_addresses_of_a_name_are_replaced(build, tmp_path, transport, record_property):
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n127.0.0.2 store.test\n127.0.0.3 store.test\n")
    guard = ["unshare", "-m", "sh", "-c", 'mount --bind %s /etc/hosts && exec "$@"' % hosts, "sh"]
    with running(build, transport, "store.test", "insecure: true", guard=guard) as gateway:
        sinks = [server(transport, "127.0.0.%d" % i, gateway.port["a"]) for i in (2, 3)]

        def replace():
            sinks.extend([server(transport, "127.0.0.%d" % i, gateway.port["a"]) for i in (4, 5)])
            hosts.write_text("127.0.0.1 localhost\n127.0.0.4 store.test\n127.0.0.5 store.test\n")
            stop(sinks[:2])
        try:
            count = flowing(gateway, transport, sinks, replace)
        finally:
            stop(sinks)
        assert any(sink.samples() for sink in sinks[2:])
    record_property("figure", "%s: 2 of 2 addresses replaced, %d requests" % (transport, count))
