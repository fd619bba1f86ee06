# SPDX-License-Identifier: Apache-2.0
"""`make install` into a directory: what is there runs, the unit and the man page are sound, and `make uninstall` leaves nothing."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from harness import build as make_profile
from harness.gateway import Gateway

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODE = os.environ.get("MODE", "release")
CONFIG = "etc/portcullis/gateway.yaml"
SCRIPTS = {"zsh": "zsh/site-functions/_portcullis", "fish": "fish/vendor_completions.d/portcullis.fish"}
INSTALLED = {"usr/local/bin/portcullis", "usr/local/share/man/man1/portcullis.1",
             "usr/local/lib/systemd/system/portcullis.service", "usr/local/share/bash-completion/completions/portcullis",
             *("usr/local/share/" + script for script in SCRIPTS.values()), CONFIG}
# What the unit forbids and any process can forbid itself: prctl(2), PR_SET_MDWE (Linux 6.3) and PR_SET_NO_NEW_PRIVS.
CONFINED = """
import ctypes, os, sys
prctl = ctypes.CDLL(None, use_errno=True).prctl
if prctl(65, 1, 0, 0, 0) and ctypes.get_errno() != 22 or prctl(38, 1, 0, 0, 0):
    sys.exit("prctl failed")
os.execv(sys.argv[1], sys.argv[1:])
"""


def make(target, **variables):
    command = ["make", "--no-print-directory", "MODE=" + MODE, target, *("%s=%s" % pair for pair in variables.items())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def files(directory):
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def quiet(*command, **how):
    done = subprocess.run(command, capture_output=True, text=True, **how)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def sections(binary):
    done = subprocess.run(["readelf", "--wide", "--section-headers", binary], capture_output=True, text=True, check=True)
    return set(re.findall(r"\] (\.\S+)", done.stdout))


@pytest.fixture
def there(tmp_path):
    make("install", DESTDIR=tmp_path)
    return tmp_path


def test_uninstall_removes_what_install_has_brought(there):
    assert files(there) == INSTALLED
    make("uninstall", DESTDIR=there)
    assert not files(there) and not (there / CONFIG).parent.exists()
    make("uninstall", DESTDIR=there)


def test_each_directory_can_be_chosen(tmp_path):
    where = {"prefix": "/a", "bindir": "/b", "mandir": "/c", "sysconfdir": "/d", "unitdir": "/e", "completionsdir": "/f",
             "zshdir": "/g", "fishdir": "/h"}
    make("install", DESTDIR=tmp_path, **where)
    assert files(tmp_path) == {"b/portcullis", "c/man1/portcullis.1", "d/portcullis/gateway.yaml", "e/portcullis.service",
                               "f/portcullis", "g/_portcullis", "h/portcullis.fish"}
    assert "ExecStart=/b/portcullis --config /d/portcullis/gateway.yaml\n" in (tmp_path / "e/portcullis.service").read_text()
    assert "/d/portcullis/gateway.yaml" in (tmp_path / "c/man1/portcullis.1").read_text()
    make("uninstall", DESTDIR=tmp_path, **where)
    assert not files(tmp_path)


def test_a_configuration_that_was_changed_stays(there):
    (there / CONFIG).write_text("# mine\n")
    make("install", DESTDIR=there)
    assert (there / CONFIG).read_text() == "# mine\n"
    make("uninstall", DESTDIR=there)
    assert files(there) == {CONFIG}


@pytest.mark.skipif(MODE != "release", reason="only the release has its debug info in a file of its own")
def test_debug_info_is_installed_separately(there):
    assert {".gnu_debuglink", ".debug_info"} & sections(there / "usr/local/bin/portcullis") == {".gnu_debuglink"}
    make("install-debug", DESTDIR=there)
    assert files(there) - INSTALLED == {"usr/lib/debug/usr/local/bin/portcullis.debug"}
    assert ".debug_info" in sections(there / "usr/lib/debug/usr/local/bin/portcullis.debug")
    make("uninstall", DESTDIR=there)
    assert not files(there)


def test_the_installed_program_runs_on_the_installed_configuration(there):
    binary, text = there / "usr/local/bin/portcullis", (there / CONFIG).read_text()
    quiet(binary, "validate", "--config", there / CONFIG)
    assert text.count("-127.0.0.1}") == 4, "every listener is on loopback"
    for name in ("4317", "4040", "13133"):
        text = text.replace(":" + name, ":{port:p%s}" % name)
    with Gateway(binary, text, guard=[sys.executable, "-c", CONFINED]) as g:
        (g.directory / "p").write_bytes(make_profile.pprof(1).SerializeToString())
        quiet(binary, "send", g.directory / "p", "http://127.0.0.1:%d/v1/pprof?service.name=cart" % g.port["p4040"])
        g.until(lambda: g.total("otelcol_ledger_out_samples", exporter="debug") > 0)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not here")
def test_the_unit_is_valid_and_hardened(tmp_path):
    """Without DESTDIR, so that the paths in it exist."""
    make("install", prefix=tmp_path / "usr", sysconfdir=tmp_path / "etc")
    unit = tmp_path / "usr/lib/systemd/system/portcullis.service"
    quiet("systemd-analyze", "verify", "--man=no", unit)
    report = quiet("systemd-analyze", "security", "--offline=yes", "--no-pager", unit)
    assert float(re.search(r"Overall exposure level for portcullis.service: (\S+)", report)[1]) <= 2.0, report


def pages():
    yield from ([name, *arguments] for name, *arguments in (
        ("mandoc", "-T", "lint", "-W", "error"), ("groff", "-ww", "-man", "-Tutf8"), ("man", "--warnings", "-l")) if shutil.which(name))


def test_the_man_page_has_every_command_and_option(there):
    page = (there / "usr/local/share/man/man1/portcullis.1").read_text()
    words = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "")
    usage = quiet(there / "usr/local/bin/portcullis", "--help")
    names = re.findall(r"^portcullis (?!-)(\S+)", usage, re.M) + re.findall(r"^(?:-\w, )?(--[\w-]+)", usage, re.M)
    assert len(names) > 15 and not [name for name in names if name not in words.split()]
    for checker in pages():
        quiet(*checker, there / "usr/local/share/man/man1/portcullis.1", env=dict(os.environ, LC_ALL="C.UTF-8"))


def completed(script, *words):
    """What bash offers for the last word."""
    run = '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _portcullis; printf "%s\\n" "${COMPREPLY[@]}"'
    return set(quiet("bash", "-c", run, script, "portcullis", *words).split())


def test_bash_completes_commands_options_and_values(there):
    script = there / "usr/local/share/bash-completion/completions/portcullis"
    assert completed(script, "va") == {"validate"}
    assert completed(script, "--conf") == {"--config"}
    assert completed(script, "validate", "--mo") == set()
    assert completed(script, "print-config", "--mo") == {"--mode"}
    assert completed(script, "print-config", "--mode", "re") == {"redacted"}
    assert completed(script, "-c", "x", "help", "rep") == {"replay"}
    assert completed(script, "components", "otlp_g") == {"otlp_grpc"}


def fields_of(script, shell):
    """(command, option) of each line with an option, and the names of the commands, as the script has them."""
    text = script.read_text()
    if shell == "zsh":
        parts = re.findall(r"^\t'([\w-]*)'\)\n(.*?)^\t\t;;", text, re.M | re.S)
        options = {(command, flag) for command, body in parts for flag in re.findall(r"'\*?(--[\w-]+)=?\[", body)}
        return options, set(re.findall(r"^\t\t'([\w-]+):", text, re.M))
    lines = re.findall(r"""-n "(?:not )?__fish_seen_subcommand_from (\S+)" -l (\S+)""", text)
    options = {("" if command.startswith("$") else command, "--" + flag) for command, flag in lines}
    return options, set(re.findall(r" -f -a ([\w-]+) -d ", text))


# zsh offers what it gives to _arguments; that needs a terminal, so a function prints it instead.
RUN = {
    "zsh": ["-f", "-c", '_arguments() { print -rl -- "$@" }; compdef() { }; . "$1"; shift; words=("$@"); CURRENT=$#words; _portcullis', "-"],
    "fish": ["--no-config", "-c", 'source $argv[1]; complete -C (string join -- " " $argv[2..])'],
}


def check_in(shell, script, home):
    """The script in the shell itself, where that is installed."""
    quiet(shell, "-n", script)
    said = quiet(shell, *RUN[shell], script, "portcullis", "print-config", "--mode", "un", env={**os.environ, "HOME": str(home)})
    assert "unredacted" in said and "--environment" not in said


@pytest.mark.parametrize("shell", SCRIPTS)
def test_other_shells_complete_what_the_help_of_each_command_has(there, shell):
    script = there / "usr/local/share" / SCRIPTS[shell]
    program = there / "usr/local/bin/portcullis"
    options, commands = fields_of(script, shell)
    usage = quiet(program, "--help")
    assert commands == set(re.findall(r"^portcullis (?!-)(\S+)", usage, re.M)) and len(commands) > 8
    for command in commands:
        own = re.findall(r"^(?:-\w, )?(--[\w-]+)", quiet(program, "help", command), re.M)
        assert {flag for name, flag in options if name == command} == set(own), command
    assert {flag for _, flag in options} == set(re.findall(r"^(?:-\w, )?(--[\w-]+)", usage, re.M))
    if shutil.which(shell):
        check_in(shell, script, there)


def commit_of(directory, **env):
    """What docker/build-info.sh says of the sources in this directory."""
    text = quiet(directory / "docker/build-info.sh", env={"PATH": os.environ["PATH"], "HOME": "/", **env})
    return re.search(r'build_info_commit\[\] = "(.*)"', text)[1], re.search(r'build_info_date\[\] = "(.*)"', text)[1]


def git(directory, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@t.test"]
    env = dict(os.environ, GIT_COMMITTER_DATE="1700000000 +0000", GIT_AUTHOR_DATE="1600000000 +0000")
    subprocess.run(["git", *identity, *arguments], cwd=directory, env=env, check=True, capture_output=True)


def test_the_commit_and_its_date_are_known_wherever_the_sources_are_built(tmp_path):
    tree, archive = tmp_path / "tree", tmp_path / "archive"
    (tree / "docker").mkdir(parents=True)
    for name in ("docker/build-info.sh", ".gitattributes"):
        (tree / name).write_bytes((ROOT / name).read_bytes())
    (tree / "docker/build-info.sh").chmod(0o755)
    assert commit_of(tree) == ("unknown", "unknown")
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "x")
    commit, date = commit_of(tree)
    assert re.fullmatch("[0-9a-f]{12}", commit) and date == "2023-11-14T22:13:20Z"
    assert commit_of(tree, SOURCE_DATE_EPOCH="0") == (commit, "1970-01-01T00:00:00Z")
    archive.mkdir()
    git(tree, "archive", "-o", str(tmp_path / "a.tar"), "HEAD")
    subprocess.run(["tar", "-xf", tmp_path / "a.tar", "-C", archive], check=True)
    short, date = commit_of(archive)
    assert commit.startswith(short) and date == "2023-11-14T22:13:20Z"
    (tree / "docker/build-info.sh").write_text((tree / "docker/build-info.sh").read_text() + "#\n")
    assert commit_of(tree)[0] == commit + "-dirty"
    assert commit_of(tree, PORTCULLIS_COMMIT="given")[0] == "given"


def test_the_version_names_the_commit(there):
    version, built = quiet(there / "usr/local/bin/portcullis", "--version").splitlines()
    assert re.fullmatch(r"portcullis version \d+\.\d+\.\d+", version)
    assert re.fullmatch(r"commit (\S+) of (unknown|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)", built)
