# SPDX-License-Identifier: Apache-2.0
"""Which tests passed, failed and were skipped with which partner."""
import pathlib

from interop import partners, process

HEAD = """<!-- Written by `make interop`. -->

# Beside real peers

The results of `make interop`: the gateway between and in front of independent programs. Each program is built or installed from its
published release, is started on loopback, and is queried through its own query interface. The tests are in `tests/interop`. A
partner that is unavailable on a machine is skipped, with the reason in this table.

| Partner | Version | Passed | Failed | Skipped | Why skipped |
|---|---|---|---|---|---|
"""


def version(partner):
    try:
        return partner.shown_version()
    except process.Absent:
        return "-"


class Table:
    """A plugin: counts every test for each partner among its fixtures."""

    def __init__(self, config, path):
        self.config, self.path = config, path
        self.counts = {partner: {"passed": 0, "failed": 0, "skipped": 0} for partner in partners.ALL}
        self.reasons = {partner: set() for partner in partners.ALL}
        self.members, self.otherwise, self.generations = {}, set(), {}

    def pytest_collection_modifyitems(self, items):
        for item in items:
            self.members[item.nodeid] = partners.of(item)

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.passed:
            return
        self.generations.update((text, report.outcome) for key, text in report.user_properties if key == "generation")
        for key, text in report.user_properties:
            if key == "otherwise":
                self.otherwise.update(("%s %s" % (partner.name, version(partner)), text)
                                      for partner in self.members.get(report.nodeid, []))
        for partner in self.members.get(report.nodeid, []):
            self.counts[partner][report.outcome] += 1
            if report.skipped:
                self.reasons[partner].add(report.longrepr[2].removeprefix("Skipped: "))

    def lines(self):
        for partner in partners.ALL:
            counts = self.counts[partner]
            yield "| %s | %s | %d | %d | %d | %s |" % (
                partner.name, version(partner), counts["passed"], counts["failed"], counts["skipped"],
                "; ".join(sorted(self.reasons[partner])).replace("\n", " ").replace("|", "\\|"))

    def matrix(self):
        """What tests said with record_property("generation", (release, transport, coding))."""
        if not self.generations:
            return
        codings = list(dict.fromkeys(coding for _, _, coding in self.generations))
        yield "\n## Generations of OTLP\n"
        yield "Requests of each release that arrived at the destination with every sample, value and attribute.\n"
        yield "| OTLP | Transport | %s |" % " | ".join(codings)
        yield "|---|---|%s" % ("---|" * len(codings))
        for release, transport in dict.fromkeys((r, t) for r, t, _ in self.generations):
            found = [self.generations.get((release, transport, coding)) for coding in codings]
            yield "| %s | %s | %s |" % (release.replace("_", "."), {"grpc": "gRPC", "http": "HTTP"}[transport], " | ".join(
                {None: "", "passed": "yes"}.get(outcome, "NO") for outcome in found))

    def notes(self):
        """What tests said with record_property("otherwise", text)."""
        if self.otherwise:
            yield "\n## Known differences\n"
            yield "All other data arrived as it was sent. In these cases too, sums, labels and times arrived as they were sent.\n"
        for name, text in sorted(self.otherwise):
            yield "- %s: %s" % (name, text)

    def pytest_terminal_summary(self, terminalreporter):
        text = HEAD + "\n".join([*self.lines(), *self.matrix(), *self.notes()]) + "\n"
        terminalreporter.write_line("\n" + text[text.index("| Partner"):])
        if self.path:
            pathlib.Path(self.path).write_text(text)
