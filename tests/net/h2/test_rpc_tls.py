# SPDX-License-Identifier: Apache-2.0
"""TLS, client certificates, and certificates that change under a running server."""
import shutil
import socket
import ssl

import grpc
import pytest

from harness.certificates import OWNER_NAMES, OWNER_SHOWN, OWNER_SUBJECT, make_ca, make_leaf, owner_shown
from harness.served import Served, build, frame, literal, refusal
from test_rpc_server import ECHO, exhaust, wait_for

pytestmark = pytest.mark.threads


@pytest.fixture(scope="module")
def program():
    return build("net/h2/rpc_serve")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A CA with two servers and a client, and a stranger's CA with another client."""
    directory = tmp_path_factory.mktemp("certificates")
    make_ca(directory, "ca")
    make_ca(directory, "other")
    make_leaf(directory, "ca", "server", "/CN=localhost")
    make_leaf(directory, "ca", "renewed", "/CN=localhost")
    make_leaf(directory, "ca", "client", OWNER_SUBJECT, names=OWNER_NAMES)
    make_leaf(directory, "ca", "nameless", "/O=Fleet")
    make_leaf(directory, "other", "stranger", "/CN=agent-7")
    return directory


@pytest.fixture
def files(made, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(made, tmp_path / "tls")


def serve(program, files, **more):
    s = Served(program, cert=files / "server.pem", key=files / "server.key", **more)
    s.target = "localhost:%d" % s.port
    return s


def credentials(files, client=None):
    pair = ((files / (client + ext)).read_bytes() for ext in (".key", ".pem")) if client else (None, None)
    return grpc.ssl_channel_credentials((files / "ca.pem").read_bytes(), *pair)


def call(s, offered, **more):
    with s.channel(offered) as channel:
        return channel.unary_unary(ECHO)(b"hello", timeout=20, **more)


def shown(s):
    """The certificate that a new connection is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(("127.0.0.1", s.port)) as c, context.wrap_socket(c) as t:
        return ssl.DER_cert_to_PEM_cert(t.getpeercert(binary_form=True))


def der(path):
    return ssl.PEM_cert_to_DER_cert(path.read_text())


def shows(s, path):
    return ssl.PEM_cert_to_DER_cert(shown(s)) == der(path)


def test_a_call_over_tls(program, files):
    with serve(program, files) as s:
        answer = call(s, credentials(files))
        assert b"len=5" in answer and b"auth." not in answer


def test_a_plaintext_client_is_refused(program, files):
    with serve(program, files) as s:
        assert refusal(lambda: s.call(ECHO, b"x", timeout=20))[0] == grpc.StatusCode.UNAVAILABLE


def test_a_client_certificate_names_the_caller(program, files):
    with serve(program, files, client_ca=files / "ca.pem") as s:
        assert owner_shown(call(s, credentials(files, "client")).decode()) == OWNER_SHOWN
        assert owner_shown(call(s, credentials(files, "nameless")).decode()) == ["auth.dns=localhost",
                                                                                 "auth.subject=O=Fleet"]


@pytest.mark.parametrize("client", [None, "stranger"])
def test_a_client_without_the_right_certificate_is_refused(program, files, client):
    with serve(program, files, client_ca=files / "ca.pem") as s:
        assert refusal(lambda: call(s, credentials(files, client)))[0] == grpc.StatusCode.UNAVAILABLE
        assert s.count()["headers"] == 0


def renew(files, name):
    for ext in (".pem", ".key"):
        shutil.copy(files / (name + ext), files / ("server" + ext))


def test_a_renewed_certificate_is_shown_after_reload(program, files):
    old = (files / "server.pem").read_text()
    with serve(program, files) as s:
        renew(files, "renewed")
        assert ssl.PEM_cert_to_DER_cert(shown(s)) == ssl.PEM_cert_to_DER_cert(old)
        assert s.ask("reload") == "ok"
        assert shows(s, files / "renewed.pem")
        assert b"len=5" in call(s, credentials(files))


@pytest.mark.parametrize("name,text,error", [("server.pem", "no certificate", "chain"), ("server.key", "", "key"),
                                             ("server.key", None, "does not match"), ("ca.pem", "x", "CA file")])
def test_a_broken_file_keeps_the_old_certificate(program, files, name, text, error):
    with serve(program, files, client_ca=files / "ca.pem") as s:
        before, offered = shown_raw(files), credentials(files, "client")
        good = (files / name).read_text()
        (files / name).write_text((files / "renewed.key").read_text() if text is None else text)
        assert error in s.ask("reload")
        assert b"agent-7" in call(s, offered)
        (files / name).write_text(good)
        renew(files, "renewed")
        assert s.ask("reload") == "ok" and before != shown_raw(files)
        assert b"agent-7" in call(s, offered)


def shown_raw(files):
    return (files / "server.pem").read_text()


def test_a_changed_client_ca_holds_for_new_connections(program, files):
    with serve(program, files, client_ca=files / "ca.pem") as s:
        theirs, ours = credentials(files, "stranger"), credentials(files, "client")
        shutil.copy(files / "other.pem", files / "ca.pem")
        assert s.ask("reload") == "ok"
        assert b"agent-7" in call(s, theirs)
        assert refusal(lambda: call(s, ours))[0] == grpc.StatusCode.UNAVAILABLE


def test_files_are_read_again_at_the_interval(program, files, tmp_path):
    with open(tmp_path / "log", "wb") as log, serve(program, files, reload_interval=10 ** 8, log=log) as s:
        renew(files, "renewed")
        wait_for(lambda: shows(s, files / "renewed.pem"))
        (files / "server.key").write_text("broken")
        wait_for(lambda: "keeping the current ones" in (tmp_path / "log").read_text())
        assert shows(s, files / "renewed.pem")


def test_accepting_survives_a_want_of_descriptors_with_tls_too(program, files):
    with serve(program, files, descriptors=64) as s:
        renew(files, "renewed")
        assert s.ask("reload") == "ok"
        exhaust(lambda: socket.create_connection(("127.0.0.1", s.port)))
        assert b"len=5" in call(s, credentials(files), wait_for_ready=True)
        assert shows(s, files / "renewed.pem")


def test_a_server_without_its_files_does_not_start(program, files):
    (files / "server.key").unlink()
    s = Served(program, cert=files / "server.pem", key=files / "server.key")
    assert "cannot read" in s.greeting and s.process.wait() == 1


def records(context, **more):
    """A TLS client without a socket: the session, and what it has received and has to send."""
    received, sends = ssl.MemoryBIO(), ssl.MemoryBIO()
    return context.wrap_bio(received, sends, **more), received, sends


def shake_hands(c, session, received, sends):
    """All but the client's last flight, which is left to send."""
    while True:
        try:
            session.do_handshake()
            return
        except ssl.SSLWantReadError:
            c.sendall(sends.read())
            received.write(c.recv(65536))


def client_context(files, client=None, version=None):
    context = ssl.create_default_context(cafile=files / "ca.pem")
    context.set_alpn_protocols(["h2"])
    if client:
        context.load_cert_chain(files / (client + ".pem"), files / (client + ".key"))
    if version:
        context.maximum_version = version
    return context


def read_plain(c, session, received, until):
    got = b""
    while until not in got:
        try:
            got += session.read(65536)
        except ssl.SSLWantReadError:
            part = c.recv(65536)
            assert part, "closed after %r" % got
            received.write(part)
    return got


def echo_call():
    fields = [(b":method", b"POST"), (b":scheme", b"https"), (b":path", ECHO.encode()), (b":authority", b"x"),
              (b"te", b"trailers"), (b"content-type", b"application/grpc")]
    return (frame(1, 4, 1, b"".join(literal(*f) for f in fields)) + frame(0, 1, 1, b"\0\0\0\0\5hello"))


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")


def test_the_certificate_is_known_to_a_call_in_the_same_flight_as_the_end_of_the_handshake(program, files):
    with serve(program, files, client_ca=files / "ca.pem") as s:
        session, received, sends = records(client_context(files, "client"), server_hostname="localhost")
        with socket.create_connection(("127.0.0.1", s.port), timeout=20) as c:
            shake_hands(c, session, received, sends)
            session.write(PREFACE + echo_call())
            c.sendall(sends.read())
            assert b"auth.subject=" in read_plain(c, session, received, b"len=5")


def test_a_flood_of_tiny_records_is_ended(program, files):
    with serve(program, files) as s:
        session, received, sends = records(client_context(files), server_hostname="localhost")
        with socket.create_connection(("127.0.0.1", s.port), timeout=20) as c:
            shake_hands(c, session, received, sends)
            session.write(PREFACE + frame(0x77, 0, 0, bytes(2000))[:9])
            for _ in range(1000):
                session.write(b"\0")
            c.sendall(sends.read())
            read_plain(c, session, received, b"control_frames")


def test_some_tiny_records_are_no_flood(program, files):
    with serve(program, files) as s:
        session, received, sends = records(client_context(files), server_hostname="localhost")
        with socket.create_connection(("127.0.0.1", s.port), timeout=20) as c:
            shake_hands(c, session, received, sends)
            for byte in PREFACE + echo_call()[:50]:
                session.write(bytes([byte]))
            session.write(echo_call()[50:])
            c.sendall(sends.read())
            read_plain(c, session, received, b"len=5")


def test_what_follows_close_notify_is_not_heard(program, files):
    with serve(program, files) as s:
        session, received, sends = records(client_context(files, version=ssl.TLSVersion.TLSv1_2), server_hostname="localhost")
        with socket.create_connection(("127.0.0.1", s.port), timeout=20) as c:
            shake_hands(c, session, received, sends)
            session.write(PREFACE)
            try:
                session.unwrap()
            except ssl.SSLError:  # the server's part has not come, or its first frames have
                pass
            c.sendall(sends.read() + b"\x17\x03\x03\x00\x05hello")
            try:
                while c.recv(65536):
                    pass
            except ConnectionResetError:
                pass
        assert s.count()["headers"] == 0
        assert b"len=5" in call(s, credentials(files))
