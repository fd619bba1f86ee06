# SPDX-License-Identifier: Apache-2.0
"""Who may send, and what exporters send along: bearer tokens, passwords, client certificates, headers."""
import base64
import crypt
import hashlib
import http.client
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from harness import build as make
from harness import certificates, peers
from harness.gateway import Gateway
from harness.otlphttp import OtlpSink
from harness.push import PushSink

SERVERS = """
extensions:
  AUTH
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}, GRPC}}}
  pprof: {server: {endpoint: 127.0.0.1:{port:http}, HTTP}}
exporters:
  debug: {}
service:
  extensions: [NAME]
  pipelines:
    profiles: {receivers: [otlp, pprof], exporters: [debug]}
"""
SECRET = "canary-of-a-token-7f31"
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED


def servers(build, name, auth, grpc_more="", http_more="", **keywords):
    section = "auth: {authenticator: %s}" % name
    text = (SERVERS.replace("AUTH", "%s: %s" % (name, auth)).replace("NAME", name)
            .replace("GRPC", section + grpc_more).replace("HTTP", section + http_more))
    return Gateway(build / "portcullis", text, **keywords)


@pytest.fixture(scope="module")
def profile():
    return make.pprof(samples=10).SerializeToString()


def over_http(gateway, profile, *values, path="/v1/pprof", name="Authorization"):
    """(status, headers, body) with these values of the header."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port["http"], timeout=60)
    connection.putrequest("POST", path)
    for value in values:
        connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(profile)))
    connection.endheaders()
    connection.send(profile)
    answer = connection.getresponse()
    return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode()


def over_grpc(gateway, value=None, name="authorization"):
    """The status of a call with this metadata."""
    with peers.Client(gateway.port["grpc"]) as client:
        try:
            client.send(make.request(), metadata=[(name, value)] if value else None)
            return grpc.StatusCode.OK
        except grpc.RpcError as error:
            assert SECRET not in error.details()
            return error.code()


def basic(user, password):
    return "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()


# ---- bearer tokens

def test_only_the_tokens_that_are_listed_get_in(build, profile):
    with servers(build, "bearertokenauth", "{tokens: [first-token, second-token]}") as gateway:
        for token in "first-token", "second-token":
            assert over_http(gateway, profile, "Bearer " + token)[0] == 204
            assert over_http(gateway, profile, "bearer " + token)[0] == 204
            assert over_grpc(gateway, "Bearer " + token) == grpc.StatusCode.OK
        wrong = [SECRET, "Bearer " + SECRET, "Bearer", "Bearer first-token2", "Bearer first-toke",
                 "Basic first-token", "first-token", "Bearer first-token, Bearer second-token"]
        for value in wrong:
            status, headers, body = over_http(gateway, profile, value)
            assert (status, headers["www-authenticate"]) == (401, "Bearer") and SECRET not in body
            assert over_grpc(gateway, value) == UNAUTHENTICATED
        assert over_http(gateway, profile)[0] == 401 and over_grpc(gateway) == UNAUTHENTICATED
        assert over_http(gateway, profile, "Bearer first-token", "Bearer first-token")[0] == 401
        assert gateway.total("otelcol_grpc_server_refused_requests", reason="unauthenticated") == len(wrong) + 1
        assert gateway.total("otelcol_http_server_refused_requests", reason="unauthenticated") == len(wrong) + 2
        assert SECRET not in gateway.log() and SECRET not in gateway.metrics_text()


def test_a_body_is_not_read_before_the_sender_is_known(build):
    with servers(build, "bearertokenauth", "{token: x}") as gateway:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port["http"], timeout=60)
        connection.putrequest("POST", "/v1/pprof")
        connection.putheader("Content-Length", str(1 << 20))
        connection.endheaders()
        assert connection.getresponse().status == 401  # nothing of the body was sent


def test_health_of_the_grpc_server_needs_no_token(build):
    with servers(build, "bearertokenauth", "{token: x}") as gateway:
        with grpc.insecure_channel("127.0.0.1:%d" % gateway.port["grpc"]) as channel:
            assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=60) == b"\x08\x01"


def test_another_header_and_no_scheme(build, profile):
    with servers(build, "bearertokenauth", '{header: X-Api-Key, scheme: "", token: key}') as gateway:
        assert over_http(gateway, profile, "key", name="X-Api-Key")[0] == 204
        assert over_grpc(gateway, "key", name="x-api-key") == grpc.StatusCode.OK
        status, headers, _ = over_http(gateway, profile, "Bearer key")
        assert status == 401 and "www-authenticate" not in headers


def test_a_query_parameter_may_carry_the_token(build, profile):
    with servers(build, "bearertokenauth", '{header: key, scheme: "", token: t0ken}',
                 http_more=", include_metadata: true") as gateway:
        assert over_http(gateway, profile, path="/v1/pprof?key=t0ken")[0] == 401
    text = SERVERS.replace("AUTH", 'bearertokenauth: {header: key, scheme: "", token: t0ken}').replace(
        "NAME", "bearertokenauth").replace("GRPC", "").replace(
        "HTTP", "auth: {authenticator: bearertokenauth, request_params: [key]}")
    with Gateway(build / "portcullis", text) as gateway:
        assert over_http(gateway, profile, path="/v1/pprof?key=t0ken")[0] == 204
        assert over_http(gateway, profile, path="/v1/pprof?key=other")[0] == 401
        assert over_http(gateway, profile)[0] == 401


def test_a_file_of_tokens_is_watched(build, profile, tmp_path):
    path = tmp_path / "tokens"
    path.write_text("one\n\n  two  \r\n")
    with servers(build, "bearertokenauth", "{filename: %s}" % path) as gateway:
        assert [over_http(gateway, profile, "Bearer " + t)[0] for t in ("one", "two", "three")] == [204, 204, 401]
        path.write_text("three\n")
        gateway.until(lambda: over_http(gateway, profile, "Bearer three")[0] == 204)
        assert over_http(gateway, profile, "Bearer one")[0] == 401
        path.write_text("\n")
        gateway.until(lambda: over_http(gateway, profile)[0] == 401 and "Failed to read the tokens again" in gateway.log())
        assert over_http(gateway, profile, "Bearer three")[0] == 204
        path.unlink()
        for _ in range(3):
            time.sleep(0.4)
            assert over_http(gateway, profile, "Bearer three")[0] == 204
        path.write_text("four\n")
        gateway.until(lambda: over_http(gateway, profile, "Bearer four")[0] == 204)


# ---- passwords

def ssha(password, salt):
    return "{SSHA}" + base64.b64encode(hashlib.sha1(password.encode() + salt).digest() + salt).decode()


def apr1(password):
    return subprocess.run(["openssl", "passwd", "-apr1", "-salt", "abcdefgh", password], check=True, capture_output=True,
                          text=True).stdout.strip()


def hashes(password):
    return {"plain": password, "sha": "{SHA}" + base64.b64encode(hashlib.sha1(password.encode()).digest()).decode(),
            "ssha": ssha(password, b"salt"), "apr1": apr1(password),
            "md5": crypt.crypt(password, "$1$saltsalt"), "sha256": crypt.crypt(password, "$5$saltsalt"),
            "sha512": crypt.crypt(password, "$6$saltsalt"), "bcrypt": crypt.crypt(password, "$2b$04$" + "a" * 22)}


@pytest.mark.parametrize("password", ["x", "hunter2", "a longer password: with a colon", "p" * 70])
def test_every_kind_of_hash(build, profile, tmp_path, password):
    path = tmp_path / "htpasswd"
    path.write_text("# users\n" + "".join("%s:%s\n" % item for item in hashes(password).items()))
    with servers(build, "basicauth", "{htpasswd: {file: %s}}" % path) as gateway:
        for i, user in enumerate(hashes(password)):
            if i == 4:
                time.sleep(1.1)  # slow checks are limited
            assert over_http(gateway, profile, basic(user, password))[0] == 204, user
            assert over_http(gateway, profile, basic(user, password + "x"))[0] == 401, user
        status, headers, _ = over_http(gateway, profile, basic("nobody", password))
        assert status == 401 and headers["www-authenticate"].startswith("Basic ")
        assert over_grpc(gateway, basic("plain", password)) == grpc.StatusCode.OK
        assert over_grpc(gateway, basic("plain", "no")) == UNAUTHENTICATED


def test_malformed_credentials(build, profile):
    with servers(build, "basicauth", '{htpasswd: {inline: "alice:secret"}}') as gateway:
        assert over_http(gateway, profile, basic("alice", "secret"))[0] == 204
        for value in ("Basic", "Basic ", "Basic !!!", "Basic " + base64.b64encode(b"alice").decode(),
                      "Basic " + base64.b64encode(b"alice:secret\0").decode(), "Bearer alice:secret", basic("", ""),
                      "Basic " + base64.b64encode(b"alice:" + b"s" * 5000).decode()):
            assert over_http(gateway, profile, value)[0] in (401, 431), value


def test_inline_users_take_precedence_and_the_file_is_watched(build, profile, tmp_path):
    path = tmp_path / "htpasswd"
    path.write_text("alice:of-file\nbob:one\n")
    with servers(build, "basicauth", '{htpasswd: {file: %s, inline: "alice:inline"}}' % path) as gateway:
        assert over_http(gateway, profile, basic("alice", "inline"))[0] == 204
        assert over_http(gateway, profile, basic("alice", "of-file"))[0] == 401
        assert over_http(gateway, profile, basic("bob", "one"))[0] == 204
        path.write_text("bob:two\n")
        gateway.until(lambda: over_http(gateway, profile, basic("bob", "two"))[0] == 204)
        assert over_http(gateway, profile, basic("bob", "one"))[0] == 401


def test_slow_checks_are_limited_and_known_passwords_are_not(build, profile, tmp_path):
    path = tmp_path / "htpasswd"
    path.write_text("alice:%s\n" % crypt.crypt("right", "$2b$10$" + "a" * 22))
    with servers(build, "basicauth", "{htpasswd: {file: %s}}" % path) as gateway:
        assert over_http(gateway, profile, basic("alice", "right"))[0] == 204
        answers = [over_http(gateway, profile, basic("alice", "wrong%d" % i)) for i in range(60)]
        busy = [headers for status, headers, _ in answers if status == 503]
        assert {status for status, _, _ in answers} == {401, 503} and busy[0]["retry-after"] == "1"
        assert over_http(gateway, profile, basic("alice", "right"))[0] == 204


def test_a_remembered_password_ends_with_its_hash(build, profile, tmp_path):
    path = tmp_path / "htpasswd"
    path.write_text("alice:%s\n" % crypt.crypt("old", "$2b$04$" + "a" * 22))
    with servers(build, "basicauth", "{htpasswd: {file: %s}}" % path) as gateway:
        assert [over_http(gateway, profile, basic("alice", "old"))[0] for _ in range(30)] == [204] * 30
        path.write_text("alice:%s\n" % crypt.crypt("new", "$2b$04$" + "b" * 22))
        gateway.until(lambda: over_http(gateway, profile, basic("alice", "new"))[0] == 204)
        assert over_http(gateway, profile, basic("alice", "old"))[0] in (401, 503)
        time.sleep(1.1)
        assert over_http(gateway, profile, basic("alice", "old"))[0] == 401


@pytest.mark.parametrize("text, message", [
    ("{}", "htpasswd or client_auth must be set"),
    ("{htpasswd: {}}", "file or inline must be set"),
    ('{htpasswd: {inline: "a:b"}, client_auth: {username: x}}', "only one of"),
    ('{htpasswd: {inline: "nocolon"}}', "line 1 is not user:hash"),
    ('{htpasswd: {inline: "a:$2b$15$aaaaaaaaaaaaaaaaaaaaaa"}}', "too slow"),
    ('{htpasswd: {inline: "a:$6$rounds=9999999$salt$x"}}', "too slow"),
    ('{htpasswd: {inline: "a:$y$j9T$salt$x"}}', "line 1: unsupported hash"),
    ("{htpasswd: {file: /nowhere/at/all}}", "cannot read"),
])
def test_what_is_wrong_with_passwords_is_said_at_validation(build, tmp_path, text, message):
    config = tmp_path / "c.yaml"
    config.write_text("extensions: {basicauth: %s}\nreceivers: {pprof: {server: {endpoint: '127.0.0.1:0', "
                      "auth: {authenticator: basicauth}}}}\nexporters: {debug: {}}\nservice: {extensions: [basicauth], "
                      "pipelines: {profiles: {receivers: [pprof], exporters: [debug]}}}\n" % text)
    done = subprocess.run([build / "portcullis", "validate", "--config", config], capture_output=True, text=True)
    assert done.returncode == 1 and message in done.stderr, done.stderr


@pytest.mark.parametrize("extensions, listed, message", [
    ("bearertokenauth: {token: x}", "", 'failed to resolve authenticator "bearertokenauth": authenticator not found'),
    ("bearertokenauth: {token: x}, health_check: {endpoint: '127.0.0.1:0'}", "health_check",
     'failed to resolve authenticator "bearertokenauth": authenticator not found'),
])
def test_an_authenticator_that_does_not_exist_is_an_error(build, tmp_path, extensions, listed, message):
    config = tmp_path / "c.yaml"
    config.write_text("extensions: {%s}\nreceivers: {pprof: {server: {endpoint: '127.0.0.1:0', "
                      "auth: {authenticator: bearertokenauth}}}}\nexporters: {debug: {}}\nservice: {extensions: [%s], "
                      "pipelines: {profiles: {receivers: [pprof], exporters: [debug]}}}\n" % (extensions, listed))
    done = subprocess.run([build / "portcullis", "validate", "--config", config], capture_output=True, text=True)
    assert done.returncode == 1 and message in done.stderr, done.stderr


# ---- client certificates

@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pki")
    certificates.make_ca(directory, "ca")
    certificates.make_leaf(directory, "ca", "server", "/CN=localhost")
    certificates.make_leaf(directory, "ca", "good", "/CN=good", names=",URI:spiffe://fleet/good")
    certificates.make_leaf(directory, "ca", "other", "/CN=other")
    return directory


def test_the_names_of_a_client_certificate_decide(build, profile, pki):
    tls = ", tls: {cert_file: D/server.pem, key_file: D/server.key, client_ca_file: D/ca.pem}".replace("D", str(pki))
    with servers(build, "client_certificate_auth", "{uris: ['spiffe://fleet/good']}", tls, tls) as gateway:
        for name, status, code in ("good", 204, grpc.StatusCode.OK), ("other", 401, UNAUTHENTICATED):
            context = ssl.create_default_context(cafile=pki / "ca.pem")
            context.load_cert_chain(pki / (name + ".pem"), pki / (name + ".key"))
            connection = http.client.HTTPSConnection("localhost", gateway.port["http"], timeout=60, context=context)
            connection.request("POST", "/v1/pprof", body=profile)
            assert connection.getresponse().status == status
            credentials = grpc.ssl_channel_credentials(*((pki / f).read_bytes() for f in (
                "ca.pem", name + ".key", name + ".pem")))
            with peers.Client(gateway.port["grpc"], credentials=credentials) as client:
                try:
                    client.send(make.request())
                    assert code == grpc.StatusCode.OK
                except grpc.RpcError as error:
                    assert error.code() == code


def test_without_tls_there_is_no_certificate(build, profile):
    with servers(build, "client_certificate_auth", "{}") as gateway:
        assert over_http(gateway, profile)[0] == 401 and over_grpc(gateway) == UNAUTHENTICATED


# ---- identity

def test_the_identity_is_available_to_processors(build, profile, tmp_path):
    text = """
extensions: {basicauth: {htpasswd: {inline: "alice:secret"}}}
receivers: {pprof: {server: {endpoint: 127.0.0.1:{port:http}, auth: {authenticator: basicauth}}}}
processors: {resource: {attributes: [{key: sent.by, from_context: auth.username, action: upsert}]}}
exporters: {file: {path: %s}}
service: {extensions: [basicauth], pipelines: {profiles: {receivers: [pprof], processors: [resource], exporters: [file]}}}
""" % (tmp_path / "out.jsonl")
    with Gateway(build / "portcullis", text) as gateway:
        assert over_http(gateway, profile, basic("alice", "secret"))[0] == 204
        assert gateway.stop() == 0
    assert '{"key":"sent.by","value":{"stringValue":"alice"}}' in (tmp_path / "out.jsonl").read_text()


# ---- clients

CLIENTS = """
extensions:
  EXTENSIONS
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}, include_metadata: true}}}
processors:
  batch: {timeout: 200ms, send_batch_size: 100000}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:SINK, tls: {insecure: true}, headers: {X-Fixed: configured}, auth: {authenticator: NAME}}
  pyroscope: {endpoint: http://127.0.0.1:PUSH, headers: {X-Fixed: configured}, auth: {authenticator: NAME}}
  otlp_http: {endpoint: http://127.0.0.1:HTTP, headers: {X-Fixed: configured}, auth: {authenticator: NAME}}
service:
  extensions: [LIST]
  pipelines:
    profiles: {receivers: [otlp], processors: [BATCH], exporters: [otlp_grpc, pyroscope, otlp_http]}
"""


class Stores:
    """The stores, and what headers came with each request."""

    def __init__(self, build, extensions, name, listed=None, batch="batch", more=""):
        self.build, self.extensions, self.name, self.listed, self.batch = build, extensions, name, listed or name, batch
        self.more, self.credentials = more, None

    def __enter__(self):
        self.sink, self.push, self.http = peers.Sink().start(), PushSink().start(), OtlpSink().start()
        text = (CLIENTS.replace("EXTENSIONS", self.extensions).replace("NAME", self.name).replace("LIST", self.listed)
                .replace("SINK", str(self.sink.port)).replace("PUSH", str(self.push.port)).replace("HTTP", str(self.http.port)).replace("BATCH", self.batch)
                .replace("include_metadata: true", "include_metadata: true" + self.more))
        self.gateway = Gateway(self.build / "portcullis", text).__enter__()
        return self

    def __exit__(self, *error):
        self.gateway.__exit__(*error)
        self.sink.stop()
        self.push.stop()
        self.http.stop()

    def send(self, **metadata):
        request = make.request()
        for p in (p for r in request.resource_profiles for s in r.scope_profiles for p in s.profiles):
            p.time_unix_nano = time.time_ns()
        with peers.Client(self.gateway.port["grpc"], credentials=self.credentials) as client:
            client.send(request, metadata=list(metadata.items()))

    def headers(self, count):
        """Of the first `count` requests at each store; names in lower case."""
        self.gateway.until(lambda: all(len(seen) >= count for seen in (self.sink.metadata, self.push.taken, self.http.taken)))
        return ([{m.key: m.value for m in metadata} for metadata in self.sink.metadata],
                *([{k.lower(): v for k, v in taken.headers.items()} for taken in sink.taken] for sink in (self.push, self.http)))


def test_exporters_send_the_token_and_follow_the_file(build, tmp_path):
    path = tmp_path / "token"
    path.write_text("one\n")
    with Stores(build, "bearertokenauth: {filename: %s}" % path, "bearertokenauth") as stores:
        stores.send()
        for headers in (each[0] for each in stores.headers(1)):
            assert headers["authorization"] == "Bearer one" and headers["x-fixed"] == "configured"
        path.write_text("two\n")

        def renewed():
            stores.send()
            return all(h[-1]["authorization"] == "Bearer two" for h in stores.headers(1))

        stores.gateway.until(renewed)


def test_exporters_send_a_password(build, tmp_path):
    path = tmp_path / "password"
    path.write_text(SECRET + "\n")
    with Stores(build, "basicauth: {client_auth: {username: alice, password_file: %s}}" % path, "basicauth") as stores:
        stores.send()
        for headers in (each[0] for each in stores.headers(1)):
            assert headers["authorization"] == basic("alice", SECRET)
        assert SECRET not in stores.gateway.log()


def test_headers_of_senders_reach_the_stores_through_batches(build):
    setter = """headers_setter:
    additional_auth: bearertokenauth
    headers:
    - {key: X-Scope-OrgID, from_context: tenant, default_value: nobody}
    - {key: X-Fixed, action: delete}
    - {key: X-New, action: insert, value: here}
    - {key: Authorization, action: insert, value: not this}
    - {key: X-Absent, action: update, value: never}
  bearertokenauth: {token: t0ken}"""
    for batch in "batch", "":
        with Stores(build, setter, "headers_setter", "bearertokenauth, headers_setter", batch) as stores:
            for tenant in "red", "blue", "red":
                stores.send(tenant=tenant)
            stores.send()
            found = stores.headers(3)
            stores.gateway.until(lambda: all({"red", "blue", "nobody"} == {h["x-scope-orgid"] for h in each}
                                             for each in stores.headers(3)))
            for headers in (h for each in found for h in each):
                assert headers["authorization"] == "Bearer t0ken" and headers["x-new"] == "here"
                assert "x-fixed" not in headers and "x-absent" not in headers


def test_the_identity_of_senders_reaches_the_stores_through_batches(build):
    setter = """headers_setter:
    headers:
    - {key: X-Sender, from_attribute: username}
    - {key: X-Absent, from_attribute: department}
    - {key: X-Default, from_attribute: department, default_value: none}
  basicauth: {htpasswd: {inline: "alice:%s\\nbob:%s"}}""" % (SECRET, SECRET)
    for batch in "batch", "":
        with Stores(build, setter, "headers_setter", "basicauth, headers_setter", batch,
                    ", auth: {authenticator: basicauth}") as stores:
            for user in "alice", "bob", "alice":
                # A header of the sender's cannot take the place of its identity.
                stores.send(**{"authorization": basic(user, SECRET), "auth.username": "mallory", "auth.department": "mallory"})
            stores.headers(2)
            stores.gateway.until(lambda: all({"alice", "bob"} == {h["x-sender"] for h in each} for each in stores.headers(2)))
            for headers in (h for each in stores.headers(2) for h in each):
                assert headers["x-default"] == "none" and "x-absent" not in headers
            assert SECRET not in stores.gateway.log() and basic("alice", SECRET) not in stores.gateway.log()


def test_the_names_of_client_certificates_reach_the_stores(build, pki):
    setter = """headers_setter:
    headers: [{key: X-Sender, from_attribute: Common_Name}, {key: X-Uri, from_attribute: uri, default_value: none}]"""
    tls = ", tls: {cert_file: D/server.pem, key_file: D/server.key, client_ca_file: D/ca.pem}".replace("D", str(pki))
    with Stores(build, setter, "headers_setter", more=tls) as stores:
        for name in "good", "other":
            stores.credentials = grpc.ssl_channel_credentials(*((pki / f).read_bytes() for f in (
                "ca.pem", name + ".key", name + ".pem")))
            stores.send()
        for headers in stores.headers(2):
            assert {(h["x-sender"], h["x-uri"]) for h in headers} == {("good", "spiffe://fleet/good"), ("other", "none")}


@pytest.mark.parametrize("header, message", [
    ("{key: a, from_attribute: raw}", "from_attribute: the credentials of senders (raw) are not passed on"),
    ("{key: a, from_attribute: b, value: c}", "exactly one of value, value_file, from_context and from_attribute must be set"),
    ("{key: a, value: b, default_value: c}", "default_value requires from_context or from_attribute"),
])
def test_what_is_wrong_with_a_header_is_said_at_validation(build, tmp_path, header, message):
    config = tmp_path / "c.yaml"
    config.write_text("extensions: {headers_setter: {headers: [%s]}}\nreceivers: {pprof: {server: {endpoint: '127.0.0.1:0'}}}\n"
                      "exporters: {debug: {}}\nservice: {extensions: [headers_setter], "
                      "pipelines: {profiles: {receivers: [pprof], exporters: [debug]}}}\n" % header)
    done = subprocess.run([build / "portcullis", "validate", "--config", config], capture_output=True, text=True)
    assert done.returncode == 1 and message in done.stderr, done.stderr


def test_secrets_are_not_printed(build, tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("""
extensions:
  bearertokenauth: {tokens: [%s]}
  basicauth: {htpasswd: {inline: "alice:%s"}}
  headers_setter: {headers: [{key: x, value: %s}]}
receivers: {pprof: {server: {endpoint: '127.0.0.1:0'}}}
exporters: {debug: {}}
service: {extensions: [bearertokenauth, basicauth, headers_setter], pipelines: {profiles: {receivers: [pprof], exporters: [debug]}}}
""" % (SECRET, SECRET, SECRET))
    done = subprocess.run([build / "portcullis", "print-config", "--config", config], capture_output=True, text=True, check=True)
    assert SECRET not in done.stdout and done.stdout.count("[REDACTED]") == 3


@pytest.mark.threads
def test_many_senders_while_the_files_change(build, profile, tmp_path):
    """Every sender that has a valid token gets in, whatever the others do and whenever the file is read."""
    path = tmp_path / "tokens"
    path.write_text("always\n")
    with servers(build, "bearertokenauth", "{filename: %s}" % path) as gateway, ThreadPoolExecutor(8) as pool:
        def send(i):
            if i % 2:
                return over_grpc(gateway, "Bearer always") == grpc.StatusCode.OK
            return over_http(gateway, profile, "Bearer always")[0] == 204
        answers = [pool.submit(send, i) for i in range(200)]
        for i in range(5):
            path.write_text("other-%d\nalways\n" % i)
            time.sleep(0.5)
        assert all(a.result() for a in answers)


@pytest.mark.threads
def test_many_passwords_at_the_same_time(build, profile, tmp_path):
    path = tmp_path / "htpasswd"
    path.write_text("".join("user%d:{SHA}%s\n" % (i, base64.b64encode(hashlib.sha1(b"p%d" % i).digest()).decode())
                            for i in range(20)))
    with servers(build, "basicauth", "{htpasswd: {file: %s}}" % path) as gateway, ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(over_http, gateway, profile, basic("user%d" % (i % 20), "p%d" % (i % 25)))
                   for i in range(200)]
        assert [a.result()[0] for a in answers] == [204 if i % 20 == i % 25 else 401 for i in range(200)]
