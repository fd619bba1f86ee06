# SPDX-License-Identifier: Apache-2.0
"""validate --environment: ports, certificates, files and names, each with the line of its key. validate alone looks at none."""
import os
import re
import socket
import subprocess

import pytest

from harness import certificates
from harness.gateway import Gateway, free_port

BASE = """receivers: {nop: }
exporters: {debug: }
service:
  silence: [no-policy]
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [nop], exporters: [debug]}}
"""


@pytest.fixture(scope="module")
def pems(tmp_path_factory):
    """ca, good (signed by it), other (another key) and expired."""
    directory = tmp_path_factory.mktemp("pems")
    certificates.make_ca(directory, "ca")
    for name in ("good", "other", "expired"):
        certificates.make_leaf(directory, "ca", name, "/CN=" + name)
    certificates.openssl(directory, "x509", "-req", "-in", "expired.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                         "-days", "-1", "-out", "expired.pem")
    return directory


def validate(build, directory, text, *arguments):
    (directory / "base.yaml").write_text(BASE)
    (directory / "c.yaml").write_text(text)
    return subprocess.run([build / "portcullis", "validate", *arguments, "base.yaml", "c.yaml"], cwd=directory,
                          capture_output=True, text=True)


def both(build, directory, text):
    """The errors that --environment adds."""
    plain = validate(build, directory, text)
    assert (plain.returncode, plain.stderr) == (0, "")
    done = validate(build, directory, text, "--environment")
    errors = [line[len("Error: "):] for line in done.stderr.splitlines()]
    assert done.returncode == (1 if errors else 0)
    return errors


PIPELINE = "service: {pipelines: {profiles: {receivers: [%s], exporters: [%s]}}}\n"


def test_ports_that_are_taken(build, tmp_path):
    with socket.socket() as first, socket.socket() as second:
        ports = []
        for taken in (first, second):
            taken.bind(("127.0.0.1", 0))
            taken.listen(1)
            ports.append(taken.getsockname()[1])
        text = """receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:%d"}
      http: {endpoint: "127.0.0.1:%d"}
""" % tuple(ports) + PIPELINE % ("otlp", "debug")
        said = "c.yaml:%s: receivers::otlp::protocols::%s::endpoint: cannot listen on 127.0.0.1:%d: Address already in use"
        assert both(build, tmp_path, text) == [said % ("4:14", "grpc", ports[0]), said % ("5:14", "http", ports[1])]
        gateway = Gateway(build / "portcullis", text.replace("service: {", "service: {telemetry: {metrics: {level: none}}, ") +
                          "exporters: {debug: }\n", ready=False)
        with gateway:
            assert gateway.process.wait(60) == 1
        assert (said % ("4:14", "grpc", ports[0])).replace("c.yaml", "gateway.yaml") in gateway.log()


def test_addresses_that_this_machine_lacks(build, tmp_path):
    text = """receivers:
  pyroscope: {endpoint: "no-such-host.invalid:4040"}
  pprof:
    server: {endpoint: "198.51.100.7:4041"}
""" + PIPELINE % ("pyroscope, pprof", "debug")
    first, second = both(build, tmp_path, text)
    assert re.fullmatch(r"c.yaml:2:15: receivers::pyroscope::endpoint: cannot resolve the host: .+", first)
    assert second == "c.yaml:4:14: receivers::pprof::server::endpoint: cannot listen on 198.51.100.7:4041: Cannot assign requested address"


@pytest.mark.parametrize("cert, key, error", [
    ("good.pem", "good.key", None),
    ("expired.pem", "expired.key", r"7:11: @::cert_file: the certificate expired on \d{4}-\d\d-\d\d"),
    ("good.pem", "other.key", "8:11: @::key_file: the key does not match the certificate"),
    ("absent.pem", "good.key", "7:11: @::cert_file: cannot read absent.pem: No such file or directory"),
    ("good.pem", "absent.key", "8:11: @::key_file: cannot read absent.key: No such file or directory"),
    ("good.key", "good.key", "7:11: @::cert_file: the certificate chain is not in PEM format"),
])
def test_certificates_of_a_server(build, pems, cert, key, error):
    text = """receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:0
        tls:
          cert_file: %s
          key_file: %s
""" % (cert, key) + PIPELINE % ("otlp", "debug")
    errors = both(build, pems, text)
    expected = [] if error is None else ["c.yaml:" + error.replace("@", "receivers::otlp::protocols::http::tls")]
    assert len(errors) == len(expected) and all(re.fullmatch(e, found) for e, found in zip(expected, errors)), errors


def test_the_start_says_the_same_of_a_certificate(build, pems):
    text = BASE.replace("{nop: }", "{pprof: {server: {endpoint: 'localhost:0', tls: {cert_file: %s, key_file: /absent.key}}}}"
                        % (pems / "good.pem")).replace("[nop]", "[pprof]")
    gateway = Gateway(build / "portcullis", text, ready=False)
    with gateway:
        assert gateway.process.wait(60) == 1
    assert re.search(r"Error: \S+gateway.yaml:1:\d+: receivers::pprof::server::tls::key_file: cannot read /absent.key: No such file",
                     gateway.log())


@pytest.mark.parametrize("text", [
    """receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:0", tls: {cert_file: /absent/a, key_file: /absent/a}}
      http: {endpoint: "127.0.0.1:0", tls: {cert_file: /absent/b, key_file: /absent/b}}
  pyroscope:
    endpoint: 127.0.0.1:0
    tls: {cert_file: /absent/c, key_file: /absent/c}
""" + PIPELINE % ("otlp, pyroscope", "debug"),
    """exporters:
  file: {path: /absent/out, create_directory: false}
""" + PIPELINE % ("nop", "file"),
    """exporters:
  file: {directory: c.yaml/out, format: pprof}
  file/b: {path: "/absent/*.jsonl", group_by: {enabled: true}, create_directory: false}
""" + PIPELINE % ("nop", "file, file/b"),
    """exporters:
  debug: {output_paths: [stdout, /absent/log]}
""" + PIPELINE % ("nop", "debug"),
    """extensions:
  file_storage: {directory: c.yaml}
service: {extensions: [file_storage]}
""",
    """extensions:
  file_storage: {directory: /absent}
service: {extensions: [file_storage]}
""",
    """extensions:
  file_storage:
service: {extensions: [file_storage]}
""",
], ids=["certificates", "a file", "directories", "an output", "a storage in a file", "a storage", "the default of a storage"])
def test_the_start_says_the_same(build, tmp_path, text):
    expected = both(build, tmp_path, text)
    assert expected
    done = subprocess.run([build / "portcullis", "--config", "base.yaml", "--config", "c.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert [line[len("Error: "):] for line in done.stderr.splitlines() if line.startswith("Error: ")] == expected


def test_certificates_and_names_of_destinations(build, pems):
    text = """exporters:
  otlp_grpc:
    endpoint: no-such-host.invalid:4317
    tls:
      ca_file: absent.pem
  otlp_http:
    endpoint: https://no-such-host.invalid:4318/x
    tls: {ca_file: ca.pem, cert_file: expired.pem, key_file: expired.key}
  pyroscope:
    endpoint: http://127.0.0.1:4040
  parca:
    endpoint: localhost:7070
    tls: {insecure: true, ca_file: absent.pem}
""" + PIPELINE % ("nop", "otlp_grpc, otlp_http, pyroscope, parca")
    errors = both(build, pems, text)
    places = [re.match(r"c.yaml:(\d+:\d+): ([\w:]+?): (cannot resolve the host|cannot read absent.pem|the certificate expired on)", e)
              for e in errors]
    assert all(places), errors
    assert {(m[1], m[2], m[3]) for m in places} == {
        ("3:5", "exporters::otlp_grpc::endpoint", "cannot resolve the host"),
        ("5:7", "exporters::otlp_grpc::tls::ca_file", "cannot read absent.pem"),
        ("7:5", "exporters::otlp_http::endpoint", "cannot resolve the host"),
        ("8:28", "exporters::otlp_http::tls::cert_file", "the certificate expired on")}


def test_places_of_files(build, tmp_path):
    (tmp_path / "plain").write_text("")
    text = """exporters:
  file/a: {path: plain/below}
  file/b: {path: absent/out, create_directory: false}
  file/c: {path: made/out, create_directory: true}
  debug:
    dead_letter: {directory: plain/letters}
extensions:
  file_storage: {directory: absent}
service:
  extensions: [file_storage]
  pipelines: {profiles: {exporters: [file/a, file/b, file/c, debug]}}
"""
    assert set(both(build, tmp_path, text)) == {
        "c.yaml:2:12: exporters::file/a::path: cannot write plain/below: Not a directory",
        "c.yaml:3:12: exporters::file/b::path: cannot write absent: No such file or directory; to have it created, set create_directory",
        "c.yaml:6:19: exporters::debug::dead_letter::directory: cannot write plain/letters: Not a directory",
        "c.yaml:8:18: extensions::file_storage::directory: cannot write absent: No such file or directory; to have it created, set "
        "create_directory"}
    assert sorted(os.listdir(tmp_path)) == ["base.yaml", "c.yaml", "plain"]


def test_places_of_the_log(build, tmp_path):
    """Of those that stand for files; directories are not created for a log."""
    text = """service:
  telemetry:
    logs:
      output_paths: [stderr, stdout, /dev/stderr, here.log, absent/x.log, absent/y.log]
"""
    said = "c.yaml:4:%d: service::telemetry::logs::output_paths[%d]: cannot write absent: No such file or directory"
    assert both(build, tmp_path, text) == [said % (61, 4), said % (75, 5)]
    assert both(build, tmp_path, text.replace(", absent/x.log, absent/y.log", "")) == []
    assert sorted(os.listdir(tmp_path)) == ["base.yaml", "c.yaml"]


def test_a_good_environment_has_no_errors_and_nothing_is_left(build, pems, tmp_path):
    text = """receivers:
  otlp:
    protocols:
      grpc: {endpoint: %s/socket, transport: unix}
      http: {endpoint: "127.0.0.1:%d", tls: {cert_file: %s/good.pem, key_file: %s/good.key, client_ca_file: %s/ca.pem}}
exporters:
  file: {path: out.jsonl}
  otlp_grpc: {endpoint: "localhost:4317"}
""" % (tmp_path, free_port(), pems, pems, pems) + PIPELINE % ("otlp", "file, otlp_grpc")
    assert both(build, tmp_path, text) == []
    assert sorted(os.listdir(tmp_path)) == ["base.yaml", "c.yaml"]
