# SPDX-License-Identifier: Apache-2.0
"""What the agents of the manual's page docs/manual/agents.md have in common: each runs its section's blocks as printed, with
work to profile behind them."""
import collections
import os
import pathlib
import re
import shutil
import subprocess

from harness import book
from interop import cache, process
from interop.clients import Client, fetched, said
from interop.gate import ROOT

PAGE = "docs/manual/agents.md"
RUN_S = 180
BLOCKS = [block for block in book.blocks(ROOT, PAGE) if block.language not in ("yaml", "text")]
[CONFIGURATION] = [block.text for block in book.blocks(ROOT, PAGE) if block.language == "yaml"]
[REFUSAL] = [block.text for block in book.blocks(ROOT, PAGE) if block.language == "text"]
# What the page's policy lets pass and a store shows as a label.
PERMITTED = [key for key in re.search(r"keys: \[(.*)\]", CONFIGURATION)[1].split(", ") if "__" not in key and "." not in key]


class Agent(Client):
    """`section` and `language` are the heading and the language of its blocks; `service` is the name that they give.
    `as_direct`: the store must have what it makes of the same requests itself."""

    fixture, section, language = "agent", None, None
    service, as_direct = "checkout", True

    @classmethod
    def blocks(cls):
        found = [block.text for block in BLOCKS if (block.heading, block.language) == (cls.section, cls.language)]
        assert found, "no block below %r" % cls.section
        return found

    def configuration(self):
        """Of the gateway."""
        return CONFIGURATION

    def send(self, ports):
        """Runs the blocks against these ports, instead of those that are printed: {4040: ...}."""
        with process.directory() as place:
            for block in self.blocks():
                self.run_block(place, re.sub(r"127\.0\.0\.1:(\d+)", lambda m: "127.0.0.1:%d" % ports[int(m[1])], block))

    def run_block(self, place, text):
        raise NotImplementedError

    def expected(self, exchanges, pprofs):
        """{(type, unit): sum} of what the store must have; `pprofs` is that of all pprofs that were sent."""
        return pprofs

    def settle(self, gateway, exchanges):
        """Waits until the gateway has all that was exchanged."""

    def check(self, found, exchanges):
        """What else must be true of {type: {stack: sum}}."""

    def do(self, place, *command, env=None):
        return process.run(command, place / "log", RUN_S, place, dict(os.environ, **env or {}))


def difference(found, wanted):
    """What stands in one of them only."""
    return found - wanted, wanted - found


NOTHING = (collections.Counter(), collections.Counter())


def python(version):
    """An interpreter of this version: on the PATH, or one of pyenv's."""
    name = "python" + version
    known = [shutil.which(name), *sorted((pathlib.Path.home() / ".pyenv" / "versions").glob(version + ".*/bin/" + name))]
    for program in filter(None, known):
        if subprocess.run([program, "-c", ""], capture_output=True).returncode == 0:
            return program
    raise process.Absent("there is no %s" % name)


def virtualenv(name, version, recipe, interpreter="/usr/bin/python3"):
    """The directory of a virtual environment's programs."""
    def make(directory):
        fetched([interpreter, "-m", "venv", directory], directory)
        fetched([directory / "bin" / "python", "-m", "pip", "install", "-q", "--only-binary=:all:", "-r",
                 cache.RECIPES / recipe], directory)

    return cache.product(name, version, recipe, make, said(str(interpreter), "--version")) / "bin"


WORK = """
import time


def burn(until):
    while time.time() < until:
        sum(i * i for i in range(1000))


burn(time.time() + 3)
"""


class Shell(Agent):
    """Agents that are commands."""

    language = "bash"

    def path(self):
        return []

    def run_block(self, place, text):
        (place / "work.py").write_text(WORK)
        path = ":".join([*map(str, self.path()), os.environ["PATH"]])
        self.do(place, "bash", "-e", "-o", "pipefail", "-c", text, env={"PATH": path})
