# SPDX-License-Identifier: Apache-2.0
"""The harness itself: whatever happens to a partner or to the runner, there is a clear message, and no process and no
file is left. The partner here is a web server of python's, so that this needs none of the others."""
import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

from interop import cache, partner, process, table

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Web(partner.Partner):
    name, version = "Web", "1"

    @classmethod
    def installed(cls):
        return "/usr/bin/python3"

    def command(self, program):
        # A child of its own, as some servers have.
        return ["/bin/sh", "-c", "sleep 1000 & exec %s -m http.server --bind 127.0.0.1 %d" % (program, self.port["http"])]

    def ready(self):
        return process.taken(self.port["http"])

    def get(self):
        with self.explained():
            connection = http.client.HTTPConnection("127.0.0.1", self.port["http"], timeout=10)
            connection.request("GET", "/")
            return connection.getresponse().status


class Silent(Web):
    def command(self, program):
        return ["/bin/sh", "-c", "echo 'no such flag: -x' >&2; exit 3"]


def group(leader):
    """The processes of a group that still run."""
    lines = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if line.split()[0] == str(leader) and not line.split()[1].startswith("Z")]


def directories(owner=None):
    return set(pathlib.Path(tempfile.gettempdir()).glob("%s%d-*" % (process.PREFIX, owner or os.getpid())))


def eventually(condition):
    end = time.monotonic() + process.WAIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def nothing_left():
    before = directories()
    yield
    assert directories() == before


def test_a_partner_is_started_asked_and_ended_with_all_its_children(nothing_left):
    with Web() as web:
        assert web.get() == 200
        assert len(group(web.process.pid)) == 3, "with its child and the keeper"
    eventually(lambda: not group(web.process.pid))


def test_a_partner_that_is_killed_in_the_middle_is_named_with_its_status_and_log(nothing_left):
    with pytest.raises(process.Unready, match=r"Web 1 ended with status -9(.|\n)*GET / HTTP"):
        with Web() as web:
            web.get()
            os.kill(web.process.pid, signal.SIGKILL)
            web.get()
    eventually(lambda: not group(web.process.pid))


def test_a_partner_that_is_killed_while_a_test_waits_for_it_ends_the_wait(nothing_left):
    with pytest.raises(process.Unready, match="the answer: ended with status -9"):
        with Web() as web:
            os.kill(web.process.pid, signal.SIGKILL)
            web.process.until(lambda: False, "the answer")
    eventually(lambda: not group(web.process.pid))


def test_a_port_that_is_taken_is_named(nothing_left):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        with pytest.raises(process.Unready, match="Web 1: the http port %d is taken" % port):
            with Web(http=port):
                pass


def test_a_partner_that_does_not_start_says_why(nothing_left):
    with pytest.raises(process.Unready, match="ended with status 3\nno such flag: -x"):
        with Silent():
            pass


ORPHAN = """
import sys, time
sys.path[:0] = ["tests", "build/python"]
from interop.test_harness import Web
with Web() as web:
    print(web.process.pid, flush=True)
    time.sleep(1000)
"""


LONG = """
import os, sys, time
sys.path.insert(0, %r)
from interop.test_harness import Web
def test_long():
    with Web() as web:
        with open(%r + ".part", "w") as file:
            file.write(str(web.process.pid))
        os.rename(file.name, file.name[:-5])
        time.sleep(1000)
"""


def test_a_runner_that_is_killed_takes_its_partners_along_and_the_next_one_removes_its_files():
    runner = subprocess.Popen([sys.executable, "-c", ORPHAN], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    pid = int(runner.stdout.readline())
    assert len(directories(runner.pid)) == 1
    runner.kill()
    runner.wait()
    eventually(lambda: not group(pid))
    with process.directory():
        assert not directories(runner.pid)


def test_a_runner_that_is_told_to_end_leaves_nothing(tmp_path):
    (tmp_path / "test_long.py").write_text(LONG % (str(ROOT / "tests"), str(tmp_path / "pid")))
    runner = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "interop.conftest", str(tmp_path)],
        env=dict(os.environ, PYTHONPATH="%s:%s" % (ROOT / "tests", ROOT / "build" / "python")),
        stdout=subprocess.DEVNULL)
    eventually((tmp_path / "pid").exists)
    runner.terminate()
    assert runner.wait() == 2, "interrupted"
    eventually(lambda: not group(int((tmp_path / "pid").read_text())))
    assert not directories(runner.pid)


def no_go(tmp_path):
    """An environment of a machine without Go, and without what was built before."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("setpriv", "nice", "env", "ps"):
        (tools / tool).symlink_to("/usr/bin/" + tool)
    return dict(os.environ, PATH=str(tools), XDG_CACHE_HOME=str(tmp_path))


def test_without_go_its_partners_are_skipped_and_the_table_says_why(tmp_path):
    run = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/interop/test_stores.py"],
                         cwd=ROOT, env=dict(no_go(tmp_path), INTEROP_TABLE=str(tmp_path)), capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
    for text in run.stdout, (tmp_path / table.PAGE).read_text():
        for partner in r"Pyroscope \| 1.21.0", r"Parca \| 0.28.0":
            assert re.search(r"^\| %s \| stores \| 0 \| 0 \| 2 \| .* \| there is no go on the PATH \|$" % partner, text, re.M)
    assert not list((tmp_path).glob("portcullis/*"))


# ---- the table

def test_the_page_is_what_the_results_make_it():
    docs = ROOT / "docs"
    assert (docs / table.PAGE).read_text() == table.load(docs).page()
    assert table.load(docs).text() == (docs / table.RESULTS).read_text()


def row(partner, version, tests="stores", **more):
    return {"partner": partner, "version": version, "tests": tests, "passed": 1, "failed": 0, "skipped": 0, "reasons": [],
            "notes": [], "date": "2026-01-01", "revision": "abc", **more}


def test_a_run_replaces_what_it_repeated_and_nothing_else():
    results = table.Results()
    results.add([row("Parca", "0.28.0"), row("Parca", "0.21.0"), row("Parca", "0.28.0", "parca")], {"cells": []})
    results.add([row("Parca", "0.28.0", passed=2)], None)
    assert results.rows == [row("Parca", "0.21.0"), row("Parca", "0.28.0", "parca"), row("Parca", "0.28.0", passed=2)]
    assert table.Results.parse(results.text()).rows == results.rows


def test_what_there_is_no_more_loses_its_row():
    results = table.Results()
    results.add([row("Parca", "0.1.0"), row("Gone", "1"), row("Parca", "0.28.0", "gone")], None)
    assert not results.rows
    results.add([row("go tool pprof", "1.20"), row("go tool pprof", "1.26")], None)
    assert results.rows == [row("go tool pprof", "1.26")]


TWO = """
import pytest
def test_one(foreign):
    pass
def test_two(foreign):
    pass
"""


@pytest.mark.parametrize("words, whole", [([], True), (["-k", "one"], False), (["::test_one"], False), (["-x"], False)])
def test_only_files_that_were_run_whole_get_rows(tmp_path, words, whole):
    """Beside a real file, since others have no rows. A fixture of the same name stands for the partner."""
    stop = "import pytest\n@pytest.fixture\ndef foreign():\n    assert %r\n" % (words != ["-x"])
    file = tmp_path / "test_stores.py"
    file.write_text(stop + TWO)
    places = [str(file) + words.pop()] if words and words[0].startswith("::") else [str(file)]
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "interop.conftest", *words, *places],
                   env=dict(os.environ, PYTHONPATH="%s:%s" % (ROOT / "tests", ROOT / "build" / "python"), INTEROP_TABLE=str(tmp_path)),
                   stdout=subprocess.DEVNULL)
    assert [(found["partner"], found["passed"]) for found in table.load(tmp_path).rows] == (
        [("opentelemetry-proto with grpcio", 2)] if whole else [])


# ---- what is built

@pytest.fixture
def recipes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache, "RECIPES", tmp_path)
    (tmp_path / "recipe").write_text("one")
    return tmp_path


def test_a_product_is_made_once_for_each_recipe(recipes):
    made = []

    def make(directory):
        made.append(directory)
        (directory / "program").write_text("p")

    first = cache.product("x", "1", "recipe", make)
    assert cache.product("x", "1", "recipe", make) == first
    assert (first / "program").exists() and len(made) == 1
    (recipes / "recipe").write_text("two")
    assert cache.product("x", "1", "recipe", make) != first
    assert len(made) == 2


def test_a_build_that_fails_leaves_no_product_and_is_tried_again(recipes):
    def fail(directory):
        (directory / "half").write_text("p")
        process.run(["/bin/sh", "-c", "echo missing module >&2; exit 1"], directory / "log", 60)

    for _ in range(2):
        with pytest.raises(process.Absent, match="sh.* failed: missing module"):
            cache.product("x", "1", "recipe", fail)
        assert not list((recipes / "portcullis" / "x-1").iterdir())


def test_a_build_that_hangs_is_ended_with_its_children(tmp_path):
    with pytest.raises(process.Absent, match="more than 1 s"):
        process.run(["/bin/sh", "-c", "echo $$; sleep 1000 & wait"], tmp_path / "log", 1)
    eventually(lambda: not group(int((tmp_path / "log").read_text())))
