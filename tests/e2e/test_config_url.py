# SPDX-License-Identifier: Apache-2.0
"""Configuration behind http URLs: whole, and in ${...}; and what is wrong with them, without their secrets."""
import http.server
import subprocess
import threading

import pytest

CONFIG = """
receivers: {pprof: {server: {endpoint: "127.0.0.1:4040"}}}
exporters: {debug: {verbosity: "${http://127.0.0.1:PORT/verbosity}"}}
service: {pipelines: {profiles: {receivers: [pprof], exporters: [debug]}}}
"""


@pytest.fixture(scope="module")
def server():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            port = self.server.server_address[1]
            pages = {"/gateway.yaml?token=secret": CONFIG.replace("PORT", str(port)), "/verbosity": "normal",
                     "/more.yaml": "exporters: {debug: {verbosity: detailed}}", "/bad.yaml": "receivers: [",
                     "/large": "x" * (17 << 20), "/nothing": ""}
            text = pages.get(self.path)
            self.send_response(404 if text is None else 200)
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield "http://user:secret@127.0.0.1:%d" % httpd.server_address[1]
        httpd.shutdown()


def run(build, command, *locations, mode="redacted"):
    arguments = [word for location in locations for word in ("--config", location)]
    done = subprocess.run([str(build / "portcullis"), command, "--mode", mode, *arguments], capture_output=True, text=True)
    assert "secret" not in done.stdout + done.stderr
    return done.returncode, done.stdout, done.stderr


def test_a_configuration_is_fetched_with_what_it_refers_to(build, server):
    status, printed, errors = run(build, "print-config", server + "/gateway.yaml?token=secret")
    assert status == 0, errors
    assert 'verbosity: "${http:...}"' in printed
    status, printed, errors = run(build, "print-config", server + "/gateway.yaml?token=secret", mode="unredacted")
    assert status == 0, errors
    assert "verbosity: normal" in printed


def test_urls_merge_like_files(build, server):
    status, printed, errors = run(build, "print-config", server + "/gateway.yaml?token=secret", server + "/more.yaml")
    assert status == 0, errors
    assert "verbosity: detailed" in printed


@pytest.mark.parametrize("path, text", [
    ("/absent?token=secret", 'failed to load resource from uri "http://127.0.0.1:PORT/absent". status code: 404'),
    ("/bad.yaml", "http://127.0.0.1:PORT/bad.yaml:2:1: not valid YAML"),
    ("/large", 'unable to fetch "http://127.0.0.1:PORT/large"'),
    ("/nothing", "empty configuration file"),
])
def test_what_is_wrong_is_told(build, server, path, text):
    status, _, errors = run(build, "validate", server + path)
    assert status == 1
    assert text.replace("PORT", server.rsplit(":", 1)[1]) in errors


@pytest.mark.parametrize("location", [
    "http:/user:secret@127.0.0.1:1/x?secret", "http:user:secret@127.0.0.1:1/x", "http:///user:secret@127.0.0.1:1/x?secret",
    "HTTP://user:secret@127.0.0.1:1/x", "s3://user:secret@bucket/x?secret", "http://user:sec/secret@127.0.0.1:1/x",
    "http://user:a?secret@127.0.0.1:1/x", "yaml:a: ${http:/user:secret@127.0.0.1:1/x}",
    "yaml:a: ${HTTP://user:secret@127.0.0.1:1/x}", "yaml:a: ${http://user:a/secret@127.0.0.1:1/x}",
    "yaml:a: ${http://user:$$secret@127.0.0.1:1/x?k=secret}"])
def test_what_is_wrong_with_a_url_is_told_without_its_secrets(build, location):
    status, _, errors = run(build, "validate", location)
    assert status == 1 and errors.startswith("Error: ")


def test_nobody_there_is_told(build):
    status, _, errors = run(build, "validate", "http://user:secret@127.0.0.1:1/x")
    assert status == 1
    assert 'unable to fetch "http://127.0.0.1:1/x": ' in errors
