# SPDX-License-Identifier: Apache-2.0
"""docs/BENCHMARKS.md: each bench writes its own section and leaves the others as they are. A bench whose results belong to
another page writes between two marks there."""
import datetime
import os
import pathlib
import platform
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/BENCHMARKS.md"
SECTIONS = {"peers": "make bench-peers", "http": "make bench-peers PARTS=http",
            "zstd": "make bench-peers PARTS=zstd", "kafka": "make bench-peers PARTS=kafka", "leak": "make bench-leak",
            "failing": "make bench-failing", "push": "make bench-push", "durable": "make bench-durable",
            "soak": "make bench-soak", "fleet": "make bench-fleet"}
HEAD = """# Beside the Collector

Portcullis and the OpenTelemetry Collector on the same requests, on the same machine, in one run. Every word and number
below this paragraph was written by the commands that make it; to repeat them, on Debian 12 with Go on the path:

    make bench-peers        # what it costs; QUICK=1 for a first look; PARTS=http, zstd or kafka for one way alone
    make bench-leak         # what gets through
    make bench-failing      # what a failing destination costs the others (without the Collector)
    make bench-push         # what a Push request costs, beside Pyroscope
    make bench-durable      # what a queue on disk and a long backlog cost
    make bench-soak         # what grows in an hour at half load
    make bench-fleet        # what several gateways on one topic of Kafka cost (without the Collector; needs Java 17 and Maven)

Nothing else is needed: the Collector is built from its published modules (`tests/interop/recipes/collector.yaml`) and kept
in `~/.cache/portcullis`. The method stands with each table, the code in `tests/bench`.
Ratios are the result; absolute times are notes about one machine on one day.
"""


def _marks(name, command):
    return "<!-- %s: written by `%s` -->" % (name, command), "<!-- end of %s -->" % name


def _search(marks, text):
    return re.search("%s\n(.*?)\n?%s" % tuple(map(re.escape, marks)), text, re.S)


def _find(name, text):
    found = _search(_marks(name, SECTIONS[name]), text)
    return found[1] if found else "\nNot run yet.\n"


def write(name, lines):
    """Replaces the section of this name."""
    old = PAGE.read_text() if PAGE.exists() else ""
    texts = {section: _find(section, old) for section in SECTIONS}
    texts[name] = "\n" + "\n".join(lines) + "\n"
    parts = [HEAD]
    for section, text in texts.items():
        begin, end = _marks(section, SECTIONS[section])
        parts.append("%s\n%s\n%s\n" % (begin, text, end))
    PAGE.write_text("\n".join(parts))


def write_between(page, name, command, lines):
    """Replaces what stands between the marks of this name on a page that something else writes."""
    marks, old = _marks(name, command), page.read_text()
    found = _search(marks, old)
    if not found:
        raise ValueError("%s has no section %s" % (page.name, name))
    page.write_text("%s%s\n\n%s\n\n%s%s" % (old[:found.start()], marks[0], "\n".join(lines), marks[1], old[found.end():]))


def table(head, rows, left=1):
    """Lines of a table; columns but the first `left` are numbers."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * left + "---:|" * (len(head) - left)
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"


def _first(pattern, text, default="unknown"):
    found = re.search(pattern, text, re.M)
    return found[1].strip() if found else default


def _output(*command):
    try:
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    except OSError:
        return ""


def circumstances(gateway, collector=None):
    """When, where and with what: the programs' paths are given."""
    cpu = _first(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(), platform.machine())
    memory = int(_first(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text(), "0")) / (1 << 20)
    system = _first(r'PRETTY_NAME="(.*)"', pathlib.Path("/etc/os-release").read_text())
    changed = _output("git", "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    now = datetime.datetime.now(datetime.timezone.utc)
    lines = [
        "- Date: %s UTC; load average before: %.1f" % (now.strftime("%Y-%m-%d %H:%M"), os.getloadavg()[0]),
        "- Machine: %s, %d processors, %.0f GB; %s, Linux %s" % (
            cpu, os.cpu_count(), memory, system, platform.release()),
        "- Portcullis: %s at %s%s" % (
            _output(gateway, "--version").splitlines()[0], _output("git", "rev-parse", "--short", "HEAD"), ", with changes" * bool(changed)),
    ]
    if collector:
        lines.append("- Collector: %s, %s" % (
            _output(collector, "--version"), _first(r": (go[\d.]+)", _output("go", "version", collector))))
    return lines
