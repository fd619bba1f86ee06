# SPDX-License-Identifier: Apache-2.0
"""Every configuration and every command of README and manual, as printed (harness/book.py says what is changed)."""
import base64
import configparser
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import grpc
import pytest
import yaml

from harness import book, build as make, certificates, kafka, otlp, otlphttp, parca, peers, push
from harness.gateway import Gateway
from harness.target import Target
from interop import agent, agents

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DENIED = "ada@example.com"
SECRETS = {"GRAFANA_TOKEN": "grafana-secret", "POLARSIGNALS_TOKEN": "polar-secret",
           "STORE_TOKEN": "store-secret", "KAFKA_PASSWORD": "kafka-secret"}
HTTP = {"pyroscope": push.PushSink, "otlp_http": otlphttp.OtlpSink}
FLAMES = {"flamegraph": {"names": ["total", "main"], "levels": [], "total": "1", "maxSelf": "1"}}
COMMANDS = [page for page in book.pages(ROOT) if any(b.language == "sh" for b in book.blocks(ROOT, page))]


def pprof_now(label="thread.name"):
    profile = make.pprof(1, labels=(label, "user.email"))
    profile.time_nanos = time.time_ns()
    return profile.SerializeToString()


def otlp_now(more=()):
    request = make.request(1, service="cart")
    for resource in request.resource_profiles:
        for key, value in (("user.email", DENIED), ("agent.name", "forged"), *more):
            make.set_value(resource.resource.attributes.add(key=key).value, value)
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                profile.time_unix_nano = time.time_ns()
    return request


# ---- configurations

TOKEN = "t0ken-of-a-test"  # in the files that configurations name


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    directory = tmp_path_factory.mktemp("keys")
    certificates.make_ca(directory, "ca")
    certificates.make_leaf(directory, "ca", "server", "/CN=server")
    certificates.make_leaf(directory, "ca", "client", "/CN=agent-7")
    return directory


def pem(keys, name):
    return (keys / name).read_bytes()


class Store:
    """What stands behind an exporter's endpoint: a server of the protocol with a certificate, if the exporter wants one."""

    def __init__(self, exporter, settings, keys):
        kind = exporter.partition("/")[0]
        self.kind, self.endpoint = kind, settings["endpoint"]
        tls = settings.get("tls", {})
        self.secure = self.endpoint.startswith("https://") if kind in HTTP else not tls.get("insecure")
        if kind in HTTP:
            self.server = HTTP[kind]((keys / "server.pem", keys / "server.key") if self.secure else None)
        else:
            credentials = grpc.ssl_server_credentials([(pem(keys, "server.key"), pem(keys, "server.pem"))], pem(keys, "ca.pem"),
                                                      "cert_file" in tls) if self.secure else None
            method = parca.METHOD if kind == "parca" else otlp.METHOD
            self.server = peers.Sink(method=method, credentials=credentials)
        self.server.start()
        self.overlay = {exporter: {"tls": {"ca_file": str(keys / "ca.pem")}}} if self.secure else {}

    def place(self):
        """By address, not by name: Debian's c-ares leaks a few bytes for each name that it resolves."""
        scheme = re.match(r"(https?://)?", self.endpoint)[0]
        return "%s127.0.0.1:%d" % (scheme, self.server.port)

    def bodies(self):
        return [taken.body for taken in self.server.taken] if self.kind in HTTP else list(self.server.received)

    def authorizations(self):
        if self.kind in HTTP:
            return {taken.headers.get("Authorization") for taken in self.server.taken}
        return {dict(metadata).get("authorization") for metadata in self.server.metadata}


def without_users(broker):
    """The mock cluster has neither TLS nor users."""
    return {"brokers": [broker.address], "tls": {"insecure": True}, "auth": {"sasl": None}}


class Feed:
    """A broker of Kafka in the place of those that a receiver reads from, with a message."""

    def __init__(self, build, document):
        self.settings = document["receivers"].get("kafka")
        self.broker = kafka.Broker(build) if self.settings else None
        self.overlay = {"kafka": without_users(self.broker)} if self.settings else {}

    def send(self, gateway):
        if not self.broker:
            return
        with self.broker.writer() as writer:
            writer.send(self.settings["profiles"]["topics"][0], otlp_now().SerializeToString())
        gateway.until(lambda: gateway.total("otelcol_kafka_receiver_messages", outcome="success"))

    def stop(self):
        if self.broker:
            self.broker.__exit__()


class Member:
    """A gateway of a second tier, in the place of those that a name has."""

    def __init__(self, exporter):
        self.endpoint, self.server = "a tier", peers.Sink().start()
        self.overlay = {exporter: {"resolver": {"dns": None, "static": {"hostnames": ["127.0.0.1:%d" % self.server.port]}}}}

    def place(self):
        return self.endpoint

    def bodies(self):
        return list(self.server.received)


class Log:
    """A broker of Kafka in the place of the printed ones."""

    def __init__(self, build, exporter, settings):
        self.server = self
        self.broker = kafka.Broker(build)
        self.reader = self.broker.reader(settings["profiles"]["topic"])
        self.reader.__enter__()
        self.endpoint = "a log"
        self.overlay = {exporter: without_users(self.broker)}

    def place(self):
        return self.endpoint

    def bodies(self):
        return [message.value for message in self.reader.until(len)]

    def stop(self):
        self.reader.__exit__()
        self.broker.__exit__()


def plain(body):
    """The body with the pprofs in it inflated."""
    return body + b"".join(gzip.decompress(body[m.start():]) if body[m.start():m.start() + 3] == b"\x1f\x8b\x08" else b""
                           for m in re.finditer(rb"\x1f\x8b\x08", body) if inflates(body[m.start():]))


def inflates(data):
    try:
        gzip.decompress(data)
    except (OSError, EOFError):
        return False
    return True


def be_scraped(stage, gateway):
    """As a program that a target file names."""
    def answer(path, headers):
        return 200, {}, pprof_now()

    directory = stage.directory / "etc/targets"
    directory.mkdir()
    with Target(answer) as target:
        (directory / "cart.json").write_text(json.dumps(
            [{"targets": [target.place], "labels": {"job": "cart", "user.email": DENIED}}]))
        gateway.until(lambda: gateway.total("otelcol_scraper_scrapes", outcome="success"))


def send_to_receivers(document, stage, keys, gateway):
    """One request to each receiver, as a client of its protocol would send it."""
    receivers = document["receivers"]
    if "remote" in receivers.get("pprof", {}):
        be_scraped(stage, gateway)
    if "server" in receivers.get("pprof", {}):
        port = receivers["pprof"]["server"]["endpoint"].rpartition(":")[2]
        path = "/v1/pprof?service.name=cart&user.email=" + DENIED
        assert peers.post(stage.port(port), pprof_now(), path)[0] == 204
    if "otlp" in receivers:
        settings = receivers["otlp"]["protocols"]["grpc"]
        credentials = grpc.ssl_channel_credentials(pem(keys, "ca.pem"), pem(keys, "client.key"), pem(keys, "client.pem"))
        with peers.Client(stage.port(settings["endpoint"].rpartition(":")[2]),
                          credentials=credentials if "tls" in settings else None) as client:
            for tenant, attributes in senders(document):
                client.send(otlp_now(attributes), metadata=[("authorization", "Bearer " + TOKEN), ("x-scope-orgid", tenant)])


def senders(document):
    """Tenants and attributes of resources, one for each entry of the tables of connectors."""
    found = []
    for entry in ((document.get("connectors") or {}).get("routing") or {}).get("table", []):
        found += [(tenant, ()) for tenant in entry.get("tenants", [])]
        found += [("team-1", [pair]) for pair in re.findall(r'attributes\["([^"]+)"\] == "([^"]+)"', entry.get("condition", ""))]
    return found or [("team-1", ())]


def sanitizers_memory(document):
    """More for the process at rest, whose sanitizer takes as much as a sidecar may have."""
    limiter = (document.get("processors") or {}).get("memory_limiter") or {}
    if "limit_mib" not in limiter or os.environ.get("MODE") not in ("asan", "tsan"):
        return {}
    return {"processors": {"memory_limiter": {"limit_mib": 8 * limiter["limit_mib"]}}}


@pytest.mark.parametrize("recipe", book.recipes(ROOT), ids=repr)
def test_a_configuration_runs_as_printed(build, tmp_path, keys, recipe):
    document = yaml.safe_load(recipe.text)
    stores = [Store(name, settings, keys) for name, settings in document["exporters"].items()
              if settings and "endpoint" in settings]
    feed = Feed(build, document)
    stores += [Member(name) for name, settings in document["exporters"].items() if settings and "resolver" in settings]
    stores += [Log(build, name, settings) for name, settings in document["exporters"].items() if settings and "brokers" in settings]
    try:
        places = {store.endpoint: store.place() for store in stores}
        stage = book.Stage(ROOT, build / "portcullis", tmp_path / "stage", b"", places)
        for name in ("ca.pem", "server.pem", "server.key", "client.pem", "client.key"):
            shutil.copy(keys / name, stage.directory / "etc")
        for name in ("tokens", "password"):
            (stage.directory / "etc" / name).write_text(TOKEN + "\n")
        overlay = tmp_path / "overlay.yaml"
        overlay.write_text(json.dumps({"receivers": feed.overlay, "exporters": {k: v for store in stores for k, v in store.overlay.items()},
                                       **sanitizers_memory(document)}))
        text, arguments = stage.adapt(recipe.text), ["--config", str(overlay)]
        (tmp_path / "printed.yaml").write_text(text)
        subprocess.run([build / "portcullis", "validate", "--config", tmp_path / "printed.yaml"], check=True,
                       env=dict(SECRETS, PATH="/usr/bin:/bin"))
        with Gateway(build / "portcullis", text, env=SECRETS, arguments=arguments, cwd=stage.directory) as gateway:
            send_to_receivers(document, stage, keys, gateway)
            feed.send(gateway)
            assert gateway.stop() == 0
        files = [path for settings in document["exporters"].values() if settings and "path" in settings
                 for path in written_to(stage.directory / stage.adapt(settings["path"]))]
        check_arrival(document, [store.bodies() for store in stores] + [[path.read_bytes()] for path in files], gateway.log())
        check_credentials(recipe.text, stores)
    finally:
        feed.stop()
        for store in stores:
            store.server.stop()


def written_to(path):
    """The file; with `*`, for which each value of an attribute stands, at least one."""
    found = sorted(path.parent.glob(path.name)) if "*" in path.name else [path]
    assert found
    return found


def check_arrival(document, destinations, log):
    """Each destination has the service and what the policy adds, and nothing that the policy denies."""
    assert destinations
    added = [action["key"] for action in document.get("processors", {}).get("resource", {}).get("attributes", [])
             if action["action"] in ("insert", "upsert")]
    for bodies in destinations:
        arrived = b"".join(plain(body) for body in bodies)
        assert b"cart" in arrived, log
        for key in added:
            assert key.encode() in arrived or key.replace(".", "_").encode() in arrived, key
        if "allowlist" in document.get("processors", {}):
            assert DENIED.encode() not in arrived and b"user.email" not in arrived and b"user_email" not in arrived
        if "agent.name" in added:
            assert b"agent-7" in arrived and b"forged" not in arrived


def check_credentials(text, stores):
    for store in stores:
        if "${env:GRAFANA_TOKEN}" in text:
            assert store.authorizations() == {"Basic " + base64.b64encode(b"123456:grafana-secret").decode()}
        if "${env:POLARSIGNALS_TOKEN}" in text:
            assert store.authorizations() == {"Bearer polar-secret"}
        if "${env:STORE_TOKEN}" in text:
            assert store.authorizations() == {"Bearer store-secret"}


def test_the_systemd_unit_takes_the_drop_in(tmp_path, build):
    """As `make install` makes the unit."""
    [drop_in] = [b for page in book.pages(ROOT) for b in book.blocks(ROOT, page) if b.language == "ini"]
    unit = (ROOT / "systemd/portcullis.service.in").read_text().replace("@bindir@", "/usr/bin")
    parsed = configparser.ConfigParser(strict=True, interpolation=None)
    parsed.optionxform = str
    parsed.read_string(drop_in.text)
    assert parsed["Service"]["ExecStartPre"].split()[1:] == ["validate", "--config", "/etc/portcullis/gateway.yaml"]
    assert "ExecStart=/usr/bin/portcullis --config /etc/portcullis/gateway.yaml\n" in unit
    if shutil.which("systemd-analyze"):
        (tmp_path / "portcullis.service.d").mkdir()
        program = str(build.resolve() / "portcullis")
        for path, text in ("portcullis.service", unit), ("portcullis.service.d/local.conf", drop_in.text):
            (tmp_path / path).write_text(text.replace("/usr/bin/portcullis", program))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / "portcullis.service"], capture_output=True, text=True)
        complaints = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "portcullis" in line]
        assert (done.returncode, complaints) == (0, []), done.stderr


# ---- commands


def pyroscope(request, _number):
    """Takes profiles, and answers the one query that the manual shows."""
    if not request.path.startswith("/querier"):
        return push.OK
    query = json.loads(request.wire)
    assert query["profileTypeID"] == "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
    assert query["labelSelector"] == '{service_name="portcullis"}' and query["start"] + 3600000 == query["end"]
    assert abs(query["end"] / 1000 - time.time()) < 60 and request.headers["Content-Type"] == "application/json"
    return push.reply(200, json.dumps(FLAMES).encode(), {"Content-Type": "application/json"})


@pytest.mark.parametrize("page", COMMANDS)
def test_the_commands_of_a_page_run_as_printed(build, tmp_path, page):
    """In the order of the page: a configuration is saved as gateway.yaml, what a text block shows is in the output of the
    commands above it."""
    output = ""
    with push.PushSink() as store:
        store.answer = pyroscope
        places = {"http://127.0.0.1:4040/querier": "http://127.0.0.1:%d/querier" % store.port}
        stage = book.Stage(ROOT, build / "portcullis", tmp_path / "stage", gzip.compress(pprof_now()), places)
        for block in book.blocks(ROOT, page):
            if block.language == "yaml":
                stage.configure(block.text)
            elif block.language == "sh":
                output = stage.run(block.text, PYROSCOPE_URL="http://127.0.0.1:%d" % store.port)
            elif block.language == "text":
                shown = iter(output.splitlines())
                assert all(line in shown for line in block.text.splitlines()), output
        if "docker/pyroscope.yaml" in (ROOT / page).read_text():
            assert [t for t in store.taken if t.path == push.PATH] and json.loads(output) == FLAMES


def test_the_page_of_agents_names_the_versions_that_are_run():
    shown = {re.match(r"\[(.*)\]", cells[0])[1]: set(cells[1].split(", "))
             for cells in book.rows((ROOT / agent.PAGE).read_text()) if cells[0].startswith("[")}
    run = {}
    for each in agents.ALL:
        run.setdefault(each.section, set()).add(each.version or "Go's own")
    assert shown == run


def test_every_block_is_of_a_kind_that_is_run():
    """What agents run is run beside a real store (tests/interop/test_agents.py)."""
    found = {b.language for page in book.pages(ROOT) if page != agent.PAGE for b in book.blocks(ROOT, page)}
    assert found == {"yaml", "sh", "text", "ini", ""}
    sections = {(each.section, each.language) for each in agents.ALL}
    assert {(b.heading, b.language) for b in agent.BLOCKS} == sections
    for page in book.pages(ROOT):
        for block in book.blocks(ROOT, page):
            if not block.language:
                assert "─▶" in block.text, "a block without a language is a picture: %r" % block
