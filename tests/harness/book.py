# SPDX-License-Identifier: Apache-2.0
"""Reads README and manual: their fenced blocks, tables, links and headings. And `Stage`, the one place that says how a
command or configuration is changed before a test runs it."""
import os
import pathlib
import re
import shutil
import subprocess

from harness.gateway import free_port

REFERENCE = "docs/manual/reference.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


class Block:
    """A fenced block: its page, the heading above it, its language and text."""

    def __init__(self, page, text, match):
        headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text[:match.start()]), re.M)
        self.page, self.heading = page, headings[-1] if headings else ""
        self.language, self.text = match[1], match[2]

    def __repr__(self):
        return "%s#%s" % (self.page, self.heading.replace(" ", "-").lower())


def pages(root):
    """What people read, in order; the reference is generated and checked by `make manual-check`."""
    chapters = sorted(str(path.relative_to(root)) for path in (root / "docs/manual").glob("*.md"))
    return ["README.md", "docs/MANUAL.md", *(name for name in chapters if name != REFERENCE)]


def blocks(root, page):
    text = (root / page).read_text()
    return [Block(page, text, match) for match in FENCE.finditer(text)]


def recipes(root):
    return [block for page in pages(root) for block in blocks(root, page) if block.language == "yaml"]


def rows(text):
    """The cells of all rows of all Markdown tables."""
    for line in re.findall(r"^\| .* \|$", text, re.M):
        yield [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def section(text, heading):
    """What stands between this heading and the next one of its rank."""
    match = re.search(r"^(#+) %s$(.*?)(?=^\1 |\Z)" % re.escape(heading), text, re.M | re.S)
    return match[2]


def anchors(text):
    """As GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-").lower()
            for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M)}


MAKE = """#!/bin/sh
# `make run CONFIG=...` is run without installing and building; of other targets it is shown that they exist. The plain
# `make run` is the matter of tests/e2e/test_quickstart.py.
case "$*" in
"run CONFIG="*) CONFIG=${2#CONFIG=} exec docker/quickstart.sh build/release/portcullis ;;
*) exec %s -n -C %s "$@" >/dev/null ;;
esac
"""

SYSTEMCTL = """#!/bin/sh
case "$*" in
daemon-reload | "enable --now portcullis") ;;
*) echo "systemctl: $*" >&2 && exit 1 ;;
esac
"""


class Stage:
    """A directory that looks like a checkout after `make run`, for commands and configurations as they are printed. These
    are the changes:

    - ports of loopback and of all interfaces become free ports of loopback, the same one everywhere on the stage;
    - /etc/portcullis and /var/lib/portcullis become directories of the stage;
    - `places` replaces the addresses of servers by those of the test's own;
    - build/release/portcullis is the program under test; `make` and `systemctl` are the scripts above."""

    def __init__(self, root, program, directory, profile, places=()):
        self.directory, self.places, self.ports = pathlib.Path(directory), dict(places), {}
        for name in ("bin", "etc", "var", "out", "build/release"):
            (self.directory / name).mkdir(parents=True)
        (self.directory / "build/release/portcullis").symlink_to(pathlib.Path(program).resolve())
        (self.directory / "out/portcullis.pb.gz").write_bytes(profile)
        shutil.copytree(root / "docker", self.directory / "docker")
        for name, script in ("make", MAKE % (shutil.which("make"), root)), ("systemctl", SYSTEMCTL):
            (self.directory / "bin" / name).write_text(script)
            (self.directory / "bin" / name).chmod(0o755)

    def port(self, number):
        return self.ports.setdefault(int(number), free_port())

    def adapt(self, text):
        for name, place in self.places.items():
            text = text.replace(name, place)
        text = text.replace("/etc/portcullis", str(self.directory / "etc"))
        text = text.replace("/var/lib/portcullis", str(self.directory / "var"))
        taken = {place for place in self.places.values()}
        return re.sub(r"\b(?:0\.0\.0\.0|127\.0\.0\.1|localhost):(\d+)\b",
                      lambda m: m[0] if any(m[0] in place for place in taken) else "127.0.0.1:%d" % self.port(m[1]), text)

    def configure(self, text):
        """Saves a configuration as gateway.yaml, as the text above it says."""
        (self.directory / "gateway.yaml").write_text(self.adapt(text))

    def run(self, text, **environment):
        """The output of commands; the first that fails is an error."""
        names = {"OTLP": 4317, "PPROF": 4041, "HEALTH": 13133, "SELF": 1777, "METRICS": 8888}
        ports = {"QUICKSTART_%s_PORT" % name: str(self.port(number)) for name, number in names.items()}
        path = "%s:%s" % (self.directory / "bin", os.environ["PATH"])
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", self.adapt(text) + "\nwait\n"], cwd=self.directory,
                              env=dict(os.environ, MAKEFLAGS="", PATH=path, **ports, **environment), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, text + done.stdout + done.stderr
        return done.stdout
