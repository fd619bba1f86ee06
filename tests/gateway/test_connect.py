# SPDX-License-Identifier: Apache-2.0
"""validate --connect: asks each destination as its exporter would send, stores nothing, and says of each that would not take
data why, in the words of the log, at the key that names it."""
import contextlib
import os
import re
import subprocess

import grpc
import pytest

from harness import kafka, otlp, parca, peers, preload, push
from harness.failures import CASES, GRPC, HTTP, NO_CLIENT, answering, asking, endpoint, exporter_of, make_keys, plain, rejecting
from harness.gateway import Gateway, free_port
from harness.misconfigured import BlackHole
from harness.otlphttp import OtlpSink
from harness.proxy import Proxy

HEAD = """receivers: {nop: }
extensions:
  bearertokenauth: {token: s3cret-token}
  basicauth: {client_auth: {username: somebody, password: s3cret-password}}
service:
  extensions: [bearertokenauth, basicauth]
  silence: [no-policy, plain-secret]
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [nop], exporters: [%s]}}
exporters:
"""
MISSING, DENIED = 3, 29  # of Kafka's protocol, of a topic
SAID = "the destination does not accept data: "
PLAIN = "tls: {insecure: true}"


def validate(build, directory, exporters, *arguments, env=None):
    """exporters: {ID: the section}. The errors, each as (path, text)."""
    text = HEAD % ", ".join(exporters) + "".join("  %s: {%s}\n" % item for item in exporters.items())
    (directory / "c.yaml").write_text(text)
    done = subprocess.run([build / "portcullis", "validate", *arguments, "c.yaml"], cwd=directory, capture_output=True,
                          text=True, timeout=120, env=dict(os.environ, **(env or {})))
    assert done.stdout == "" and not re.search("s3cret|words-of-the-server", done.stderr)
    errors = []
    for line in done.stderr.splitlines():
        match = re.fullmatch(r"Error: c\.yaml:(\d+):\d+: ([\w:/\[\].-]+): (.*)", line)
        assert match, line
        assert text.splitlines()[int(match[1]) - 1].startswith("  " + match[2].split("::")[1] + ":"), "the line of the exporter"
        errors.append((match[2], match[3]))
    assert done.returncode == bool(errors)
    return errors


def fields(text):
    """As the log has them."""
    match = re.fullmatch(re.escape(SAID) + r"([\w/. -]+?)(?: \((.*)\))?", text)
    assert match, text
    found = {"error": match[1]}
    for word in match[2].split(", ") if match[2] else ():
        name, _, value = word.partition(" ")
        found[name] = int(value) if value.isdigit() else value
    return dict(found, cause=match[1]) if "stage" in found else found


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return make_keys(tmp_path_factory.mktemp("keys"))


def ask_failing(build, keys, directory, timeout):
    """(the fields of all errors by path, those that are wanted)"""
    expected, exporters = {}, {}
    with contextlib.ExitStack() as held:
        for (kind, name), (server, secure, wanted) in CASES.items():
            s = server(keys)
            held.callback(s.stop)
            patience = timeout if wanted["error"] == "deadline_exceeded" else "60s"
            line = exporter_of("%s/%s" % (kind, name), endpoint(kind, secure, s.port), keys, secure, patience)
            exporters["%s/%s" % (kind, name)] = line.strip().partition(": {")[2][:-1]
            expected["exporters::%s/%s::endpoint" % (kind, name)] = wanted
        errors = validate(build, directory, exporters, "--connect")
    assert [path for path, _ in errors] == list(expected), "each once, in the order of the file"
    found = {path: fields(text) for path, text in errors}
    return {path: {key: found[path].get(key) for key in wanted} for path, wanted in expected.items()}, expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of TLS 1.1
def test_a_destination_that_would_fail_is_described_as_the_log_would(build, keys, tmp_path):
    """The servers and the words are those of tests/e2e/test_failures.py; all are asked at once. Those that never answer use up
    their timeout. A machine that is too slow to get that far in time gets more."""
    found, expected = ask_failing(build, keys, tmp_path, "3s")
    if found != expected:
        found, expected = ask_failing(build, keys, tmp_path, "40s")
    assert found == expected


def test_over_grpc_an_alert_is_found_though_the_server_then_resets_the_connection(build, keys, tmp_path):
    """In TLS 1.3, the client is already sending when its certificate is rejected. Which thread of the core is first is chance, so
    most attempts are required to say why. Without that care, one in twenty does."""
    server, said = asking(keys, "1.3", resets=True), []
    section = exporter_of(GRPC, endpoint(GRPC, True, server.port), keys, True).strip().partition(": {")[2][:-1]
    for _ in range(6):
        said += [text for _, text in validate(build, tmp_path, {GRPC: section}, "--connect", "--timeout", "60s")]
    server.stop()
    assert len(said) == 6 and sum(NO_CLIENT in text for text in said) > 3


def secure_sink(keys, method=otlp.METHOD):
    pair = [((keys / "good.key").read_bytes(), (keys / "good.pem").read_bytes())]
    return peers.Sink(method=method, credentials=grpc.ssl_server_credentials(pair, (keys / "ca.pem").read_bytes(), True))


def test_destinations_that_work_are_reached_as_in_production_and_store_nothing(build, keys, tmp_path):
    pair, ca = (keys / "good.pem", keys / "good.key"), keys / "ca.pem"
    tls = "tls: {ca_file: '%s', cert_file: '%s', key_file: '%s'}" % (ca, *pair)
    token, basic = "auth: {authenticator: bearertokenauth}", "auth: {authenticator: basicauth}"
    with secure_sink(keys) as rpc, peers.Sink() as older, OtlpSink(pair, ca) as web, OtlpSink() as json, \
            secure_sink(keys, parca.METHOD) as store, push.PushSink() as pyroscope, push.PushSink() as strict, \
            peers.Sink() as first, peers.Sink() as second, kafka.Broker(build) as broker:
        strict.answer = lambda taken, number: push.refusal(400, "invalid_argument", "no profiles received")
        for topic in ("created", "otlp_profiles"):
            broker.command("refuse %s %d" % (topic, MISSING))
        errors = validate(build, tmp_path, {
            "otlp_grpc": "endpoint: 'localhost:%d', %s, %s, headers: {x-own: s3cret-header}" % (rpc.port, tls, token),
            "otlp_grpc/older": "endpoint: '127.0.0.1:%d', schema: v1.8, %s" % (older.port, PLAIN),
            "otlp_http": "endpoint: 'https://localhost:%d', %s, %s" % (web.port, tls, basic),
            "otlp_http/json": "profiles_endpoint: 'http://127.0.0.1:%d/own', encoding: json, compression: snappy" % json.port,
            "parca": "endpoint: 'localhost:%d', %s, %s" % (store.port, tls, token),
            "pyroscope": "endpoint: 'http://127.0.0.1:%d', tenant: team, compression: none, %s" % (pyroscope.port, basic),
            "pyroscope/strict": "endpoint: 'http://127.0.0.1:%d'" % strict.port,
            "load_balancing": "protocol: {otlp: {%s}}, resolver: {static: {hostnames: ['127.0.0.1:%d', '127.0.0.1:%d']}}" % (
                PLAIN, first.port, second.port),
            "kafka": "brokers: ['%s'], profiles: {topic: known}, producer: {allow_auto_topic_creation: false}" % broker.address,
            "kafka/created": "brokers: ['%s'], profiles: {topic: created}" % broker.address,
            "kafka/named": "brokers: ['%s'], profiles: {topic_from_tenant: true}, producer: {allow_auto_topic_creation: false}"
                           % broker.address,
            "debug": "", "nop": "", "file": "path: out.json",
        }, "--connect", "--timeout", "60s")
        assert errors == []
        assert sorted(os.listdir(tmp_path)) == ["c.yaml"]
        for sink in (rpc, first, second):
            [data] = sink.received
            message = otlp.parse(data)
            [resource] = message.resource_profiles  # Pyroscope and Parca reject a request without any
            assert not resource.resource.attributes and not resource.scope_profiles[0].profiles
            assert len(message.dictionary.string_table) == 1
        assert len(older.received) == 1 and older.received[0]
        assert dict(rpc.metadata[0])["authorization"] == "Bearer s3cret-token" and dict(rpc.metadata[0])["x-own"] == "s3cret-header"
        assert parca.read(store.received[0]) == [] and dict(store.metadata[0])["authorization"] == "Bearer s3cret-token"
        [secured], [plain] = web.taken, json.taken
        assert not otlp.samples(secured.message) and not otlp.samples(plain.message)
        assert secured.headers["Authorization"].startswith("Basic ") and plain.path == "/own"
        for sink in (pyroscope, strict):
            [request] = sink.seen
            assert request.series == []
        assert pyroscope.seen[0].headers["X-Scope-OrgID"] == "team"


OWN = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}}, http: {endpoint: 127.0.0.1:{port:http}}}, deduplicate: {enabled: true}}
  parca: {protocols: {grpc: {endpoint: 127.0.0.1:{port:parca}}}}
  pyroscope: {endpoint: 127.0.0.1:{port:pyroscope}}
exporters: {debug: }
service: {pipelines: {profiles: {receivers: [otlp, parca, pyroscope], exporters: [debug]}}}
"""


def test_another_gateway_is_reached_and_counts_nothing(build, tmp_path):
    with Gateway(build / "portcullis", OWN) as g:
        assert validate(build, tmp_path, {
            "otlp_grpc": "endpoint: '127.0.0.1:%d', %s" % (g.port["grpc"], PLAIN),
            "otlp_http": "endpoint: 'http://127.0.0.1:%d'" % g.port["http"],
            "parca": "endpoint: '127.0.0.1:%d', %s" % (g.port["parca"], PLAIN),
            "pyroscope": "endpoint: 'http://127.0.0.1:%d'" % g.port["pyroscope"],
        }, "--connect", "--timeout", "60s") == []
        assert g.total("otelcol_receiver_requests") == 4 and g.total("otelcol_ledger_in_samples") == 0
        refused = g.total("otelcol_receiver_refused_requests")
        assert refused == g.total("otelcol_receiver_refused_requests", receiver="pyroscope", reason="invalid") == 1, "as by Pyroscope"


# (exporter, server): its error
REFUSALS = {
    ("otlp_grpc", lambda: rejecting(grpc.StatusCode.PERMISSION_DENIED)): "permission_denied (grpc_status 7)",
    ("otlp_grpc", lambda: rejecting(grpc.StatusCode.RESOURCE_EXHAUSTED)): "resource_exhausted (grpc_status 8)",
    ("otlp_grpc", lambda: plain(peers.Sink(method=parca.METHOD))): "unimplemented (grpc_status 12)",
    ("otlp_grpc", lambda: rejecting(grpc.StatusCode.INTERNAL)): "internal (grpc_status 13)",
    ("otlp_grpc", lambda: rejecting(grpc.StatusCode.INVALID_ARGUMENT)): None,  # only a server of the protocol says so
    ("parca", lambda: rejecting(grpc.StatusCode.UNAUTHENTICATED, parca.METHOD)): "unauthenticated (grpc_status 16)",
    ("parca", lambda: plain(peers.Sink())): "unimplemented (grpc_status 12)",
    ("otlp_http", lambda: answering(302)): "refused (http_status 302)",
    ("otlp_http", lambda: answering(400)): "invalid (http_status 400)",  # so does a TLS port to a plaintext client
    ("otlp_http", lambda: answering(403)): "permission_denied (http_status 403)",
    ("otlp_http", lambda: answering(404)): "not_found (http_status 404)",
    ("otlp_http", lambda: answering(413)): "too_large (http_status 413)",
    ("otlp_http", lambda: answering(500)): "internal (http_status 500)",
    ("pyroscope", lambda: answering(400)): "invalid (http_status 400)",
    ("pyroscope", lambda: answering(401)): "unauthenticated (http_status 401)",
    ("pyroscope", lambda: answering(404)): "not_found (http_status 404)",
    ("pyroscope", lambda: answering(429)): "resource_exhausted (http_status 429)",
}


def test_what_a_destination_answers_decides(build, tmp_path):
    exporters, expected = {}, []
    with contextlib.ExitStack() as held:
        for number, ((kind, server), said) in enumerate(REFUSALS.items()):
            s, name = server(), "%s/%d" % (kind, number)
            held.callback(s.stop)
            scheme = "http://" if kind in (HTTP, "pyroscope") else ""
            exporters[name] = "endpoint: '%s127.0.0.1:%d', %s" % (scheme, s.port, PLAIN)
            expected += [("exporters::%s::endpoint" % name, SAID + said)] if said else []
        assert validate(build, tmp_path, exporters, "--connect") == expected


def test_the_manual_quotes_what_is_printed(build, root, tmp_path):
    text = (root / "docs/manual/operating.md").read_text()
    quoted = re.findall(r"^Error: gateway\.yaml:\d+:\d+: (.*does not accept data.*)$", text, re.M)
    server = answering(401)
    errors = validate(build, tmp_path, {"otlp_grpc": "endpoint: '127.0.0.1:%d', %s" % (free_port(), PLAIN),
                                        "otlp_http": "endpoint: 'http://127.0.0.1:%d'" % server.port}, "--connect")
    server.stop()
    assert ["%s: %s" % error for error in errors] == quoted and len(quoted) == 2


def test_each_member_of_a_load_balancer_is_asked(build, tmp_path):
    dns = "protocol: {otlp: {%s}}, resolver: {dns: {hostname: members.test, port: '%d'}}"
    port, addresses = free_port(), tmp_path / "addresses"
    addresses.write_text("127.0.0.1\n127.0.0.2\n")
    env = preload.env(build, "names", NAME="members.test", ADDRESSES=str(addresses))
    with peers.Sink(port=port) as sink:
        errors = validate(build, tmp_path, {
            "load_balancing/fixed": "protocol: {otlp: {%s}}, resolver: {static: {hostnames: ['127.0.0.1:%d', '127.0.0.2:%d']}}" % (
                PLAIN, port, port),
            "load_balancing/named": dns % (PLAIN, port)}, "--connect", "--timeout", "30s", env=env)
        assert [(path, fields(text.partition(": ")[2] if "named" in path else text)["cause"]) for path, text in errors] == [
            ("exporters::load_balancing/fixed::resolver::static::hostnames[1]", "connection refused"),
            ("exporters::load_balancing/named::resolver::dns::hostname", "connection refused")]
        assert errors[1][1].startswith("127.0.0.2:%d: " % port)
        assert len(sink.received) == 2
    addresses.write_text("")
    [(path, text)] = validate(build, tmp_path, {"load_balancing": dns % (PLAIN, port)}, "--connect", "--timeout", "100ms", env=env)
    assert path == "exporters::load_balancing::resolver::dns::hostname" and fields(text)["cause"] == "name not resolved"


def test_a_broker_of_kafka_that_does_not_answer_or_lacks_the_topic(build, keys, tmp_path):
    never = "producer: {allow_auto_topic_creation: false}"
    with kafka.Broker(build) as broker:
        for topic, code in ("missing", MISSING), ("denied", DENIED):
            broker.command("refuse %s %d" % (topic, code))
        at = "brokers: ['%s'], " % broker.address
        answered = {"kafka/missing": at + "profiles: {topic: missing}, " + never, "kafka/denied": at + "profiles: {topic: denied}"}
        silent = {"kafka/absent": "brokers: ['127.0.0.1:%d']" % free_port(), "kafka/tls": at + "tls: {ca_file: '%s'}" % (keys / "ca.pem")}

        def words(exporters, timeout):
            errors = validate(build, tmp_path, exporters, "--connect", "--timeout", timeout)
            return [(path, fields(text)["error"], fields(text)["cause"]) for path, text in errors]

        assert words(answered, "60s") == [
            ("exporters::kafka/missing::brokers", "unknown_topic", "topic does not exist"),
            ("exporters::kafka/denied::brokers", "permission_denied", "topic not permitted for the user")]
        expected = [("exporters::kafka/absent::brokers", "unavailable", "connection refused"),
                    ("exporters::kafka/tls::brokers", "tls", "connection closed in the TLS handshake")]
        assert expected in (words(silent, timeout) for timeout in ("3s", "30s")), "at the latest when there is time"


def test_a_destination_behind_a_proxy_is_asked_through_it(build, tmp_path):
    """Also with --environment: the names need not be known here."""
    with Proxy() as proxy, OtlpSink() as web, peers.Sink() as rpc:
        url = "http://127.0.0.1:%d" % proxy.port
        env = dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"), url) | {"NO_PROXY": "", "no_proxy": ""}
        exporters = {"otlp_http": "endpoint: 'http://store.test:%d'" % web.port,
                     "otlp_grpc": "endpoint: 'store.test:%d', %s" % (rpc.port, PLAIN)}
        assert validate(build, tmp_path, exporters, "--environment", "--connect", "--timeout", "60s", env=env) == []
        assert (len(proxy.asked), len(web.taken), len(rpc.received)) == (2, 1, 1)
        proxy.refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
        [first, second] = validate(build, tmp_path, exporters, "--connect", "--timeout", "60s", env=env)
        assert fields(second[1])["cause"] == "proxy failed" and fields(first[1])["http_status"] == 403


def test_what_both_checks_would_find_is_said_once(build, tmp_path):
    exporters = {"otlp_grpc/name": "endpoint: 'no-such-host.invalid:4317', " + PLAIN,
                 "otlp_grpc/file": "endpoint: 'localhost:%d', tls: {ca_file: absent.pem}" % free_port()}
    errors = validate(build, tmp_path, exporters, "--environment", "--connect", "--timeout", "60s")
    assert sorted(path for path, _ in errors) == ["exporters::otlp_grpc/file::tls::ca_file", "exporters::otlp_grpc/name::endpoint"]
    assert fields(dict(errors)["exporters::otlp_grpc/name::endpoint"])["cause"] == "name not resolved"
    assert sorted(validate(build, tmp_path, exporters, "--connect", "--timeout", "60s")) == sorted(errors)


def test_the_timeout_of_the_command_line_overrides_that_of_the_exporter(build, tmp_path):
    """It would end after an hour."""
    hole = BlackHole()
    exporters = {"otlp_http": "endpoint: 'http://127.0.0.1:%d', timeout: 1h" % hole.port,
                 "otlp_grpc": "endpoint: '127.0.0.1:%d', timeout: 1h, wait_for_ready: true, %s" % (hole.port, PLAIN)}
    asked = (validate(build, tmp_path, exporters, "--connect", "--timeout", timeout) for timeout in ("200ms", "20s"))
    causes = ([fields(text).get("cause") for _, text in errors] for errors in asked)
    assert ["connection timed out"] * 2 in causes, "at the latest when there is time to connect"
    hole.stop()


@pytest.mark.parametrize("arguments, error", [
    (["--timeout", "1s"], "--timeout: has an effect only with --connect"),
    (["--connect", "--timeout", "0s"], "--timeout: must be at least 1ms"),
    (["--connect", "--timeout", "5"], '--timeout: must have a unit, got "5"; write 5s'),
])
def test_a_timeout_that_cannot_be_meant(build, tmp_path, arguments, error):
    (tmp_path / "c.yaml").write_text(HEAD % "nop" + "  nop: {}\n")
    done = subprocess.run([build / "portcullis", "validate", *arguments, "c.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Error: %s\n" % error)
