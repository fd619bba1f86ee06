# SPDX-License-Identifier: Apache-2.0
"""The table of failures: `make chaos` prints it and writes docs/RELIABILITY.md.

Each file is one failure: its docstring is the failure, ORACLE what must hold, and its tests record figures with
record_property("figure", text)."""
import datetime
import os
import pathlib
import re
import subprocess

HEAD = """<!-- Written by `make chaos`. -->

# Reliability

Failures that users of gateways have met in production, each as a test in `tests/chaos`. Real clients send to the program, and
independent readers check what arrives. Every test ends with the ledger: in = merged + dropped + batched + out + queued, for each
destination.

Run on %s at revision %s. `make chaos` runs them again.

| No. | Failure | What must hold | Result | Measured |
|---|---|---|---|---|
"""
rows = {}


def pytest_collection_modifyitems(items):
    for item in items:
        number = re.match(r"test_(\d\d)_", item.path.name)
        if number and "tests/chaos" in str(item.path):
            text = " ".join(item.module.__doc__.split())
            rows.setdefault(item.nodeid.split("::")[0], [number[1], text, " ".join(item.module.ORACLE.split()), [], []])


def pytest_runtest_logreport(report):
    row = rows.get(report.nodeid.split("::")[0])
    if row and (report.when == "call" or not report.passed):
        row[3].append(report.outcome)
        row[4] += [text for key, text in report.user_properties if key == "figure"]


def table():
    for number, failure, oracle, outcomes, figures in sorted(rows.values()):
        if outcomes:
            result = next((x for x in ("failed", "skipped") if x in outcomes), "passed")
            yield "| %s | %s | %s | %s | %s |" % (number, failure, oracle, result, "; ".join(figures).replace("|", "\\|"))


def pytest_terminal_summary(terminalreporter):
    path = os.environ.get("CHAOS_TABLE")
    if not path:
        return
    lines = list(table())
    terminalreporter.write_line("\n".join(lines))
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip() or "unknown"
    pathlib.Path(path).write_text(HEAD % (datetime.date.today(), revision) + "\n".join(lines) + "\n")
