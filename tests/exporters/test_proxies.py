# SPDX-License-Identifier: Apache-2.0
"""Exporters behind a proxy, as the environment or `proxy_url` names it, by the rules of the Collector."""
import base64
import subprocess

import grpc
import pytest

from harness import build as make
from harness import otlp, peers, preload
from harness.certificates import make_ca, make_leaf
from harness.gateway import Gateway, free_port
from harness.otlphttp import PATH, OtlpSink
from harness.proxy import Proxy, Socks

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  %s:
    endpoint: %s
    headers: {x-own: s3cret-header}
    retry_on_failure: {initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 0}
    %s
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [%s]}
"""
NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
NONE = {name: "" for upper in NAMES for name in (upper, upper.lower())}
# exporter, scheme of the endpoint, has TLS, the variable that names its proxy
KINDS = {
    "otlp_http": ("otlp_http", "http://", False, "HTTP_PROXY"),
    "otlp_http, TLS": ("otlp_http", "https://", True, "HTTPS_PROXY"),
    "otlp_grpc": ("otlp_grpc", "", False, "HTTPS_PROXY"),
    "otlp_grpc, TLS": ("otlp_grpc", "", True, "HTTPS_PROXY"),
}
FORWARDED = [kind for kind in KINDS if kind != "otlp_http"]  # by CONNECT


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    directory = tmp_path_factory.mktemp("certificates")
    make_ca(directory, "ca")
    make_leaf(directory, "ca", "server", "/CN=store.test", names=",DNS:store.test")
    return directory


class Rig:
    """A gateway before a sink whose endpoint has this host."""

    def __init__(self, build, certificates, kind, env, *lines, host="store.test"):
        self.exporter, scheme, tls, _ = KINDS[kind]
        pair = [certificates / "server.pem", certificates / "server.key"]
        if self.exporter == "otlp_http":
            self.sink = OtlpSink(pair if tls else None)
        else:
            chain, key = (path.read_bytes() for path in pair)
            self.sink = peers.Sink(credentials=grpc.ssl_server_credentials([(key, chain)]) if tls else None)
        self.sink.start()
        lines = ("tls: {ca_file: %s/ca.pem}" % certificates if tls else "tls: {insecure: true}", *lines)
        self.place = "%s:%d" % (host, self.sink.port)
        text = CONFIG % (self.exporter, scheme + self.place, "\n    ".join(lines), self.exporter)
        self.gateway = Gateway(build / "portcullis", text, env={**NONE, **env})

    def __enter__(self):
        self.gateway.__enter__()
        return self

    def __exit__(self, *failure):
        self.gateway.__exit__(*failure)
        self.sink.stop()
        assert "s3cret" not in self.gateway.log()

    def send(self, seed=1):
        message = make.request(seed, samples=10)
        with peers.Client(self.gateway.port["otlp"]) as client:
            client.send(message)
        return otlp.samples(message)

    def delivers(self, sent):
        self.gateway.until(lambda: self.gateway.total("otelcol_ledger_out_samples", exporter=self.exporter) == sent.total())
        assert self.gateway.balanced("profiles", self.exporter) and self.sink.samples() == sent

    def line(self):
        """What the proxy is asked for."""
        if self.exporter == "otlp_http" and not self.sink.certificates:
            return "POST http://%s%s HTTP/1.1" % (self.place, PATH)
        return "CONNECT %s HTTP/1.1" % self.place


@pytest.mark.parametrize("change", [str.upper, str.lower], ids=["upper", "lower"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_environment_names_the_proxy(build, certificates, kind, change):
    with Proxy() as proxy:
        env = {change(KINDS[kind][3]): "http://me:s3cret%%21@127.0.0.1:%d" % proxy.port}
        with Rig(build, certificates, kind, env) as rig:
            rig.delivers(rig.send())
            (asked,) = proxy.asked
            assert asked.line.replace("HTTP/1.0", "HTTP/1.1") == rig.line()
            assert asked.headers["proxy-authorization"] == "Basic " + base64.b64encode(b"me:s3cret!").decode()
            assert ("x-own" in asked.headers) == (kind not in FORWARDED)


@pytest.mark.parametrize("kind", KINDS)
def test_the_variable_of_the_other_scheme_is_not_used(build, certificates, kind):
    """For gRPC that is HTTP_PROXY. The name is none, so that no question for it leaves."""
    other = {"HTTP_PROXY": "HTTPS_PROXY", "HTTPS_PROXY": "HTTP_PROXY"}[KINDS[kind][3]]
    with Proxy() as proxy:
        env = {other: "http://127.0.0.1:%d" % proxy.port, "ALL_PROXY": "http://127.0.0.1:%d" % proxy.port}
        with Rig(build, certificates, kind, env, host="no..name") as rig:
            rig.send()
            rig.gateway.until(lambda: "Exporting failed." in rig.gateway.log())
            assert not proxy.asked


@pytest.mark.parametrize("kind", KINDS)
def test_loopback_has_no_proxy(build, certificates, kind):
    dead = "http://127.0.0.1:%d" % free_port()
    for host in "127.0.0.1", "localhost":
        with Rig(build, certificates, kind, {"HTTP_PROXY": dead, "HTTPS_PROXY": dead}, host=host) as rig:
            rig.delivers(rig.send())


@pytest.mark.parametrize("kind", ["otlp_http", "otlp_http, TLS"])
def test_no_proxy_over_http(build, certificates, kind, tmp_path):
    addresses = tmp_path / "addresses"
    addresses.write_text("127.0.0.1\n")
    dead = "http://127.0.0.1:%d" % free_port()
    env = preload.env(build, "names", NAME="store.test", ADDRESSES=str(addresses))
    with Rig(build, certificates, kind, {"HTTP_PROXY": dead, "HTTPS_PROXY": dead, "NO_PROXY": "a, .test", **env}) as rig:
        rig.delivers(rig.send())


def test_no_proxy_over_grpc(build, certificates):
    with Proxy() as proxy:
        env = {"HTTPS_PROXY": "http://127.0.0.1:%d" % proxy.port}
        with Rig(build, certificates, "otlp_grpc", env, host="no..name") as rig:
            rig.delivers(rig.send())
        with Rig(build, certificates, "otlp_grpc", {**env, "NO_PROXY": "no..name"}, host="no..name") as rig:
            rig.send()
            rig.gateway.until(lambda: '"unresolved"' in rig.gateway.log())
        assert len(proxy.asked) == 1


@pytest.mark.parametrize("kind", ["otlp_http", "otlp_http, TLS"])
def test_proxy_url_is_for_every_host(build, certificates, kind):
    dead = "http://127.0.0.1:%d" % free_port()
    env = {"HTTP_PROXY": dead, "HTTPS_PROXY": dead, "NO_PROXY": "*"}
    with Proxy() as proxy:
        with Rig(build, certificates, kind, env, "proxy_url: http://me:s3cret@127.0.0.1:%d" % proxy.port, host="localhost") as rig:
            rig.delivers(rig.send())
            assert proxy.asked[0].line == rig.line()


@pytest.mark.parametrize("kind", ["otlp_http", "otlp_http, TLS"])
def test_a_socks_proxy_resolves_the_name(build, certificates, kind):
    with Socks() as proxy, Rig(build, certificates, kind, {}, "proxy_url: socks5://127.0.0.1:%d" % proxy.port) as rig:
        rig.delivers(rig.send())
        assert proxy.asked == [("store.test", rig.sink.port)]


REFUSALS = {status: b"HTTP/1.1 %d s3cret\r\nContent-Length: 6\r\nRetry-After: 3600\r\n\r\ns3cret" % status for status in (
    302, 403, 407, 502, 503)}


@pytest.mark.parametrize("status", REFUSALS)
@pytest.mark.parametrize("kind", FORWARDED)
def test_a_proxy_that_refuses_is_asked_again(build, certificates, kind, status):
    with Proxy() as proxy:
        proxy.refusal = REFUSALS[status]
        with Rig(build, certificates, kind, {"HTTPS_PROXY": "127.0.0.1:%d" % proxy.port}) as rig:
            sent = rig.send()
            rig.gateway.until(lambda: '"error": "proxy"' in rig.gateway.log())
            proxy.refusal = None
            rig.delivers(sent)


@pytest.mark.parametrize("kind", KINDS)
def test_a_proxy_that_is_away_is_asked_again(build, certificates, kind):
    port = free_port()
    variable = KINDS[kind][3]
    with Rig(build, certificates, kind, {variable: "http://127.0.0.1:%d" % port}) as rig:
        sent = rig.send()
        rig.gateway.until(lambda: '"error": "unavailable"' in rig.gateway.log())
        with Proxy(port):
            rig.delivers(sent)


@pytest.mark.parametrize("kind, variable, value, error", [
    ("otlp_grpc", "HTTPS_PROXY", "socks5://s3cret:1", "HTTPS_PROXY: gRPC clients support only the scheme http"),
    ("otlp_grpc", "HTTPS_PROXY", "https://s3cret:1", "if store.test needs no proxy, add it to NO_PROXY"),
    ("otlp_grpc", "https_proxy", "http://s3cret:x", "environment variable https_proxy: must be a URL"),
    ("otlp_http", "HTTP_PROXY", "ftp://s3cret", "environment variable HTTP_PROXY: must be a URL"),
    ("otlp_http, TLS", "HTTPS_PROXY", "http://s3cret:0", "environment variable HTTPS_PROXY: must be a URL"),
])
def test_an_environment_that_cannot_work_ends_the_start(build, certificates, kind, variable, value, error):
    rig = Rig(build, certificates, kind, {variable: value})
    rig.sink.stop()
    done = subprocess.run([rig.gateway.binary, "--config", str(rig.gateway.config)], env=rig.gateway.env, text=True,
                          capture_output=True, timeout=60)
    said = done.stdout + done.stderr
    assert done.returncode == 1 and error in said and "s3cret" not in said, said
