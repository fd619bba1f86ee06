# SPDX-License-Identifier: Apache-2.0
"""Which tests passed, failed and were skipped with which partner.

A run replaces the results of those files of tests that it ran whole, and of the partners that took part; all others stay
as an earlier run has left them. docs/interop.json has the results, and docs/INTEROP.md shows them.
"""
import collections
import datetime
import json
import pathlib
import subprocess

import pytest

from interop import partners, process

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGE, RESULTS = "INTEROP.md", "interop.json"
# What the program is made of: its newest commit is the revision that was tested.
PROGRAM = ["base", "config", "connectors", "exporters", "extensions", "gateway", "net", "pipeline", "processors", "profile", "proto", "receivers"]

HEAD = """<!-- Written by `make interop` from interop.json. -->

# Beside real peers

The results of `make interop`: the gateway between and in front of independent programs. Each program is built or installed from its
published release, is started on loopback, and is queried through its own query interface. The tests are in `tests/interop`. A
partner that is unavailable on a machine is skipped, with the reason in this table.

Each row is the last complete run of one file of tests with one partner: its date, and the last commit of the program's
source at that time (`+`: with changes that were not committed).

| Partner | Version | Tests | Passed | Failed | Skipped | Date | Revision | Why skipped |
|---|---|---|---|---|---|---|---|---|
"""
TRANSPORTS = {"grpc": "gRPC", "http": "HTTP"}


def version(partner):
    try:
        return partner.shown_version()
    except process.Absent:
        return "-"


def _git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def revision():
    """Of the program; "-" outside a repository."""
    try:
        return _git("log", "-1", "--format=%h", "--abbrev=8", "--", *PROGRAM) + "+" * bool(_git("status", "--porcelain", "--", *PROGRAM))
    except (OSError, subprocess.CalledProcessError):
        return "-"


class Results:
    """`rows` has {partner, version, tests, passed, failed, skipped, reasons, notes, date, revision}, of each partner,
    version and file once. `generations` is {date, revision, cells: [[release, transport, coding, outcome], ...]}, or
    empty."""

    def __init__(self, rows=(), generations=()):
        self.rows, self.generations = list(rows), dict(generations)

    @classmethod
    def parse(cls, text):
        return cls(**json.loads(text))

    def text(self):
        """A line for each row and each cell, so that changes are seen."""
        lines = ",\n".join(map(_json, self.rows))
        cells = ",\n".join(map(_json, self.generations.get("cells", [])))
        head = "".join('"%s": %s, ' % (key, _json(self.generations[key])) for key in ("date", "revision") if key in self.generations)
        return '{"rows": [\n%s\n], "generations": {%s"cells": [\n%s\n]}}\n' % (lines, head, cells)

    def add(self, rows, generations):
        """Takes the place of what stands about the same."""
        self.rows = self._ordered([*self.rows, *rows])
        self.generations = generations or self.generations

    @staticmethod
    def _ordered(rows):
        """The last of each, in the order of the list of partners. A partner whose version is that of the machine has one
        row for a file; what there is no more has none."""
        order = {(partner.name, partner.version): place for place, partner in enumerate(partners.EVERY)}
        last = {}
        for row in rows:
            key = row["partner"], None if (row["partner"], None) in order else row["version"]
            if key in order and (HERE / ("test_%s.py" % row["tests"])).exists():
                last[order[key], row["tests"]] = row
        return [last[key] for key in sorted(last)]

    def page(self):
        return HEAD + "\n".join([*self.lines(), *self.matrix(), *self.notes()]) + "\n"

    def lines(self):
        for row in self.rows:
            yield "| %s | %s | %s | %d | %d | %d | %s | %s | %s |" % (
                *(row[key] for key in ("partner", "version", "tests", "passed", "failed", "skipped", "date", "revision")),
                "; ".join(row["reasons"]).replace("\n", " ").replace("|", "\\|"))

    def matrix(self):
        """What tests said with record_property("generation", (release, transport, coding))."""
        found = {(r, t, coding): outcome for r, t, coding, outcome in self.generations.get("cells", [])}
        if not found:
            return
        codings = list(dict.fromkeys(coding for _, _, coding in found))
        yield "\n## Generations of OTLP\n"
        yield "Requests of each release that arrived at the destination with every sample, value and attribute (%s, %s).\n" % (
            self.generations["date"], self.generations["revision"])
        yield "| OTLP | Transport | %s |" % " | ".join(codings)
        yield "|---|---|%s" % ("---|" * len(codings))
        for release, transport in dict.fromkeys((r, t) for r, t, _ in found):
            outcomes = [found.get((release, transport, coding)) for coding in codings]
            yield "| %s | %s | %s |" % (release.replace("_", "."), TRANSPORTS[transport], " | ".join(
                {None: "", "passed": "yes"}.get(outcome, "NO") for outcome in outcomes))

    def notes(self):
        """What tests said with record_property("otherwise", text)."""
        found = sorted({("%s %s" % (row["partner"], row["version"]), note) for row in self.rows for note in row["notes"]})
        if found:
            yield "\n## Known differences\n"
            yield "All other data arrived as it was sent. In these cases too, sums, labels and times arrived as they were sent.\n"
        for name, text in found:
            yield "- %s: %s" % (name, text)


def _json(value):
    return json.dumps(value, ensure_ascii=False)


def load(directory):
    path = pathlib.Path(directory, RESULTS)
    return Results.parse(path.read_text()) if path.exists() else Results()


def store(results, directory):
    pathlib.Path(directory, RESULTS).write_text(results.text())
    pathlib.Path(directory, PAGE).write_text(results.page())


def _stamp():
    """Of a run that begins now."""
    return {"date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(), "revision": revision()}


def _file(nodeid):
    return pathlib.PurePath(nodeid.split("::")[0]).stem.removeprefix("test_")


class Table:
    """A plugin: counts every test for each partner among its fixtures. `directory` has the two files; without it, the
    results are shown only."""

    def __init__(self, config, directory):
        self.config, self.directory, self.stamp = config, directory, _stamp()
        self.members, self.unreported, self.cells = {}, set(), []
        self.counts = collections.defaultdict(collections.Counter)
        self.reasons, self.differences = collections.defaultdict(set), collections.defaultdict(set)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        """Before others deselect some."""
        self.members = {item.nodeid: partners.of(item) for item in items}
        self.unreported = set(self.members)

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.passed:
            return
        self.unreported.discard(report.nodeid)
        self.cells += [[*cell, report.outcome] for key, cell in report.user_properties if key == "generation"]
        for partner in self.members.get(report.nodeid, []):
            place = partner, _file(report.nodeid)
            self.counts[place][report.outcome] += 1
            self.differences[place].update(text for key, text in report.user_properties if key == "otherwise")
            if report.skipped:
                self.reasons[place].add(report.longrepr[2].removeprefix("Skipped: "))

    def whole(self):
        """The files of which every test has run."""
        named = {_file(word) for word in self.config.args if "::" in word}
        return {_file(name) for name in self.members} - {_file(name) for name in self.unreported} - named

    def rows(self, files):
        for (partner, file), counts in self.counts.items():
            if file in files:
                yield {"partner": partner.name, "version": version(partner), "tests": file,
                       **{outcome: counts[outcome] for outcome in ("passed", "failed", "skipped")},
                       "reasons": sorted(self.reasons[partner, file]), "notes": sorted(self.differences[partner, file]), **self.stamp}

    def results(self, files, before=()):
        found = Results(**dict(before))
        cells = {"cells": self.cells, **self.stamp} if self.cells and "generations" in files else None
        found.add(self.rows(files), cells)
        return found

    def pytest_terminal_summary(self, terminalreporter):
        text = self.results({_file(name) for name in self.members}).page()
        terminalreporter.write_line("\n" + text[text.index("| Partner"):])
        if self.directory:
            store(self.results(self.whole(), vars(load(self.directory))), self.directory)
