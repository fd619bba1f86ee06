# SPDX-License-Identifier: Apache-2.0
"""The image cannot be built here; its root filesystem can be staged and entered."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = ROOT / "build/release/portcullis"


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    directory = tmp_path_factory.mktemp("image") / "root"
    subprocess.run([ROOT / "docker/stage.sh", BINARY, directory], check=True)
    return directory


def enter(directory, *arguments):
    """Runs the program with the staged directory as its whole filesystem, as nobody."""
    command = ["chroot", "--userspec=65532:65532", str(directory), "/usr/bin/portcullis", *arguments]
    if os.geteuid() != 0:
        command = ["unshare", "--user", "--map-root-user", "chroot", *command[2:]]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_program_runs_with_nothing_but_the_staged_files(staged):
    assert enter(staged, "--version").stdout.startswith("portcullis version ")


def test_the_image_s_configuration_is_valid_there(staged):
    done = enter(staged, "validate", "--config", "/etc/portcullis/gateway.yaml")
    assert (done.returncode, done.stderr) == (0, "")


def test_there_is_no_shell_and_nothing_setuid(staged):
    names = {p.name for p in staged.rglob("*")}
    assert not names & {"sh", "bash", "dash", "busybox"}
    assert not [p for p in staged.rglob("*") if p.stat().st_mode & 0o6000]


def test_the_dockerfile_is_multi_stage_without_root_and_copies_only_the_staged_root():
    text = (ROOT / "docker/Dockerfile").read_text()
    stages = re.split(r"^FROM ", text, flags=re.M)[1:]
    assert len(stages) == 2 and stages[1].startswith("scratch")
    assert re.search(r"^USER 65532:65532$", stages[1], re.M) and "RUN" not in stages[1]
    for source in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M):
        for name in source.split():
            assert (ROOT / name).exists(), name
