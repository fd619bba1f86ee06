# SPDX-License-Identifier: Apache-2.0
"""What `make run` starts, on the configuration that a stranger gets."""
import os
import pathlib
import shutil
import socket
import subprocess

import pytest

from harness import corpus, pprof
from harness.gateway import free_port

PORTS = ["OTLP", "PPROF", "HEALTH", "SELF", "METRICS"]


@pytest.fixture
def place(root, tmp_path):
    shutil.copytree(root / "docker", tmp_path / "docker")
    return tmp_path


def free_ports():
    return {"QUICKSTART_%s_PORT" % name: str(free_port()) for name in PORTS}


def run(build, place, **env):
    """ASan's quarantine would fill the 512 MiB of the quickstart's limit, and senders be refused."""
    env["ASAN_OPTIONS"] = "quarantine_size_mb=8"
    return subprocess.run(["docker/quickstart.sh", (build / "portcullis").resolve()], cwd=place, capture_output=True, text=True,
                          env=dict(os.environ, **env), timeout=300)


def test_its_own_profile_comes_in_is_stripped_and_arrives(build, place):
    done = run(build, place, **free_ports())
    assert done.returncode == 0, done.stdout + done.stderr
    shown = [line for line in done.stdout.splitlines() if line.startswith("Look at it:")]
    profile = pprof.parse(corpus.inflate((place / pathlib.Path(shown[0].split()[-1])).read_bytes()))
    assert sum(s.value[0] for s in profile.sample) > 0
    assert "file_send" in profile.string_table
    host, lines = os.uname().nodename, (place / "out/profiles.jsonl").read_text()
    assert '"service.namespace"' in lines and '"quickstart"' in lines and '"host.name"' not in lines and host not in lines
    assert "host.name" in done.stdout and host not in done.stdout.split("What the policy", 1)[1]


def test_a_taken_port_is_told_whatever_an_earlier_run_left(build, place):
    (place / "out").mkdir()
    (place / "out/gateway.log").write_text("Everything is ready. Begin running and processing data.\n")
    ports = free_ports()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(ports["QUICKSTART_PPROF_PORT"])))
        taken.listen()
        done = run(build, place, **ports)
    assert done.returncode == 1
    assert "the gateway did not start:\nError: " in done.stderr and "Address already in use" in done.stderr
    assert "QUICKSTART_{OTLP,PPROF,HEALTH,SELF,METRICS}_PORT choose other ports" in done.stderr


def test_a_configuration_that_is_not_there_is_named(build, place):
    done = run(build, place, CONFIG="nowhere.yaml")
    assert (done.returncode, done.stderr) == (1, "CONFIG: cannot read nowhere.yaml\n")
