# SPDX-License-Identifier: Apache-2.0
"""The image cannot be built here; its root filesystem can be staged and entered."""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from harness import build as make
from harness import peers
from harness.gateway import READY, free_port

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = ROOT / "build/release/portcullis"


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    directory = tmp_path_factory.mktemp("image") / "root"
    subprocess.run([ROOT / "docker/stage.sh", BINARY, directory], check=True)
    return directory


ROOT_USER = os.geteuid() == 0
UNSHARE = ["unshare", "--mount"] if ROOT_USER else ["unshare", "--user", "--map-root-user", "--mount"]
CHROOT = ["chroot", "--userspec=65532:65532"] if ROOT_USER else ["chroot"]
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && exec "$@"'
CONFIG = """
receivers:
  pprof: {server: {endpoint: 127.0.0.1:%d}}
processors:
  allowlist: {keys: [service.name]}
exporters:
  otlp_grpc: {endpoint: store.test:%d, tls: {insecure: true}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles: {receivers: [pprof], processors: [allowlist], exporters: [otlp_grpc]}
"""


def entering(directory, *arguments):
    """The command that runs the program with the staged directory as its whole filesystem, as nobody."""
    command = [*CHROOT, str(directory), "/usr/bin/portcullis", *arguments]
    return command if ROOT_USER else ["unshare", "--user", "--map-root-user", *command]


def entering_read_only(directory, *arguments):
    """The same on a read-only mount."""
    return [*UNSHARE, "sh", "-c", READ_ONLY, str(directory), *CHROOT, ".", "/usr/bin/portcullis", *arguments]


def enter(directory, *arguments, how=entering):
    return subprocess.run(how(directory, *arguments), capture_output=True, text=True)


def test_the_program_runs_with_nothing_but_the_staged_files(staged):
    assert enter(staged, "--version").stdout.startswith("portcullis version ")


def test_the_image_s_configuration_is_valid_there(staged):
    done = enter(staged, "validate", "--config", "/etc/portcullis/gateway.yaml")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def running(staged, tmp_path):
    """The daemon in a read-only root of its own, where a name stands in /etc/hosts; sends to a store by that name."""
    root = tmp_path / "root"
    shutil.copytree(staged, root, symlinks=True)
    port = free_port()
    if subprocess.run([*UNSHARE, "mount", "--bind", root, root], capture_output=True).returncode != 0:
        pytest.skip("mounting is not permitted here")
    with peers.Sink() as store:
        (root / "etc/hosts").write_text("127.0.0.1 store.test\n")
        (root / "etc/portcullis/gateway.yaml").write_text(CONFIG % (port, store.port))
        (root / "profile").write_bytes(gzip.compress(make.pprof(1).SerializeToString()))
        with open(tmp_path / "log", "wb") as log:
            process = subprocess.Popen(entering_read_only(root, "--config", "/etc/portcullis/gateway.yaml"), stderr=log)
        try:
            wait(lambda: READY in (tmp_path / "log").read_text() or process.poll() is not None)
            assert process.poll() is None, (tmp_path / "log").read_text()
            yield root, process.pid, "http://store.test:%d/v1/pprof?service.name=cart" % port, store
        finally:
            process.terminate()
            assert process.wait(60) == 0


def wait(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_daemon_resolves_names_and_delivers_on_a_read_only_root(running):
    root, pid, url, store = running
    sent = enter(root, "send", "/profile", url, how=entering_read_only)
    assert (sent.returncode, sent.stderr) == (0, "")
    wait(lambda: store.received)
    refused = enter(root, "send", "/profile", "/var/lib/portcullis/copy", how=entering_read_only)
    assert "Read-only file system" in refused.stderr
    if ROOT_USER:
        status = pathlib.Path("/proc/%d/status" % pid).read_text()
        assert re.search(r"^Uid:(\s65532){4}$", status, re.M) and re.search(r"^Gid:(\s65532){4}$", status, re.M)


def test_the_program_keeps_its_function_names(staged):
    """The gateway's own profile names functions that no other file sees."""
    names = subprocess.run(["nm", staged / "usr/bin/portcullis"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"^\w+ t ", names, re.M)


def test_there_is_no_shell_and_nothing_setuid(staged):
    names = {p.name for p in staged.rglob("*")}
    assert not names & {"sh", "bash", "dash", "busybox"}
    assert not [p for p in staged.rglob("*") if p.stat().st_mode & 0o6000]


def test_the_dockerfile_is_multi_stage_without_root_and_copies_only_the_staged_root():
    text = (ROOT / "docker/Dockerfile").read_text()
    stages = re.split(r"^FROM ", text, flags=re.M)[1:]
    assert len(stages) == 2 and stages[1].startswith("scratch")
    assert re.search(r"^USER 65532:65532$", stages[1], re.M) and "RUN" not in stages[1]
    assert {"build", "out", ".git"} <= set((ROOT / ".dockerignore").read_text().split())
    for source in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M):
        for name in source.split():
            assert (ROOT / name).exists(), name
