# SPDX-License-Identifier: Apache-2.0
"""Processes that cannot outlive the test run, and directories that go with them.

Each process leads a group of its own, and the group is ended by its id, also when the runner dies. A directory carries
the id of its runner in its name; what a killed runner left is removed by the next one.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from harness.gateway import free_port

WAIT_S = float(os.environ.get("WAIT_S", "60"))
PREFIX = "portcullis-interop-"
# For a program without children: the kernel kills it when the runner dies.
GUARD = ["setpriv", "--pdeathsig", "KILL", "--"]


class Unready(Exception):
    """A partner that did not start, or ended, or did not get ready: the text says which, why, and shows its log."""


class Absent(Exception):
    """A partner that this machine cannot have; the text is the reason of the skip."""


def alive(pid):
    return pathlib.Path("/proc/%d" % pid).exists()


def sweep(parent=None):
    """Removes the directories of runners that are gone."""
    for place in pathlib.Path(parent or tempfile.gettempdir()).glob(PREFIX + "*"):
        owner = re.match(PREFIX + r"(\d+)-", place.name)
        if owner and not alive(int(owner[1])):
            shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def directory(parent=None):
    """A fresh directory that is gone afterwards, whatever happens."""
    sweep(parent)
    place = pathlib.Path(tempfile.mkdtemp(prefix="%s%d-" % (PREFIX, os.getpid()), dir=parent))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def taken(port):
    """Whether somebody listens there already."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def free_ports(count):
    """So many different loopback ports that nobody has now."""
    return [free_port() for _ in range(count)]


class Process:
    """One program in a group of its own, its output in a file. A second process of the group, the keeper, sees the
    runner's end of a pipe close and kills the group."""

    def __init__(self, command, log, cwd=None, env=None):
        self.log_path = pathlib.Path(log)
        with open(self.log_path, "ab") as out:
            self.popen = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out,
                                          stderr=subprocess.STDOUT, cwd=cwd, env=env, process_group=0)
        self.pid = self.popen.pid
        self.keeper = subprocess.Popen(["/bin/sh", "-c", "read _; kill -9 0"], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=self.pid)

    def log(self, most=4000):
        """The end of what it wrote; all of it if `most` is None."""
        return self.log_path.read_text(errors="replace")[-most if most else 0:]

    def ended(self):
        """The exit status, or None while it runs."""
        return self.popen.poll()

    def kill(self):
        """At once, with all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait()
        self.keeper.wait()
        self.keeper.stdin.close()

    def stop(self, seconds=WAIT_S):
        """Politely, then not."""
        if self.ended() is None:
            self.popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(seconds)
        self.kill()
        return self.popen.returncode

    def until(self, condition, what, seconds=WAIT_S):
        """Waits for `condition` of a program that must go on running; its log tells why not."""
        end = time.monotonic() + seconds
        while not condition():
            if self.ended() is not None:
                raise Unready("%s: ended with status %s\n%s" % (what, self.ended(), self.log()))
            if time.monotonic() > end:
                raise Unready("%s: not within %d s\n%s" % (what, seconds, self.log()))
            time.sleep(0.02)


def _short(command):
    """The program and its verb, without the paths of this machine."""
    return " ".join(pathlib.PurePath(str(word)).name for word in command if not str(word).startswith("-"))[:80]


def run(command, log, seconds, cwd=None, env=None):
    """A program to its end; its log is in the error if it fails or takes too long."""
    process = Process(command, log, cwd, env)
    try:
        status = process.popen.wait(seconds)
    except subprocess.TimeoutExpired:
        raise Absent("%s: more than %d s" % (_short(command), seconds)) from None
    finally:
        process.kill()
    if status:
        raise Absent("%s failed: %s" % (_short(command), process.log(600).strip()))
    return process.log_path.read_text(errors="replace")
