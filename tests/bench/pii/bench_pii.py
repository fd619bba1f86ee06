#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-pii: what the detectors of `pii` find in strings whose labels are known, and what they spoil.

Writes its section of docs/POLICY.md.

The strings are those of tests/pii_set: the half that is kept apart from tuning, and the symbols of languages. Ours go through
the real program as OTLP, at the site of their role; the Collector's `redaction` gets them as attributes of log records; two
open detectors of PyPI get them as they are. Then each real profile of the corpus, where there is one, is compared before and
after `pii: {}`.

The bench fails when a symbol is changed, or a flame graph that is not listed by name (flames.py).
"""
import collections
import math
import pathlib
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "build/python"), str(ROOT / "tests"), str(ROOT / "tests/bench")]

import report  # noqa: E402 (the paths come first)
from harness import corpus, scrubbed  # noqa: E402
from interop import process  # noqa: E402
from interop.collector import RedactionCollector  # noqa: E402
from pii import flames, others  # noqa: E402
import pii_set  # noqa: E402
from pii_set import real  # noqa: E402

GATEWAY = ROOT / "build/release/portcullis"
Z = 1.959963984540054  # of 95 %


def wilson(right, count):
    """The interval of Wilson's score for a share, and the share itself."""
    share, z2 = right / count, Z * Z
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = Z / (1 + z2 / count) * math.sqrt(share * (1 - share) / count + z2 / (4 * count * count))
    return share, max(0.0, middle - half), min(1.0, middle + half)


def shown(right, count):
    return "%.3f (%.3f–%.3f)" % wilson(right, count) if count else "–"


class Tool:
    """What one tool found in each entry: [[(what, start, end)]]."""

    def __init__(self, name, found, alone=None, absent=None):
        self.name, self.found, self.absent = name, found, absent
        self.alone = alone or {}  # of ours: detector -> the same with this one detector

    def spans(self, i):
        return [(start, end) for _, start, end in self.found[i]]

    def recall(self, entries, kind):
        """(strings in which all of this kind is gone, strings that have it)"""
        caught = [scrubbed.caught(entry, merged(self.spans(i)), kind) for i, entry in entries if kind in entry.kinds]
        return sum(caught), len(caught)

    def changed(self, entries):
        return sum(bool(self.found[i]) for i, _ in entries)

    def precision(self, entries):
        """{detector: (strings of which nothing went that should have stayed, strings changed)}"""
        counts = collections.defaultdict(lambda: [0, 0])
        sources = self.alone or {what: [[f for f in found if f[0] == what] for found in self.found]
                                 for what in {f[0] for found in self.found for f in found}}
        for what, found in sources.items():
            for i, entry in labelled(entries, what):
                spans = [(start, end) for _, start, end in found[i]]
                if spans:
                    counts[what][0] += not scrubbed.spoilt(entry, spans)
                    counts[what][1] += 1
        return counts


def labelled(entries, what):
    """Those whose label says what a detector may take. Of an optional one these are the strings of its own kind and those in
    which nothing is personal: in others, the label says nothing of the arguments or values around the personal part."""
    if what not in pii_set.OPTIONAL:
        return entries
    return [(i, entry) for i, entry in entries if entry.kinds <= {what}]


def merged(spans):
    """Spans that touch are one: whoever removes a string in two pieces has removed it."""
    found = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def ours(entries):
    names = scrubbed.detectors(GATEWAY)
    measured = {*scrubbed.on_by_default(GATEWAY), *pii_set.OPTIONAL}
    policies = {"all": "{}", **{name: scrubbed.alone(names, name) for name in names if name in measured},
                "workspace": "{detectors: {%s}}" % ", ".join("%s: {enabled: false}" % name for name in names)}
    became = scrubbed.through(GATEWAY, entries, policies)
    found = {policy: [[(policy, *span) for span in scrubbed.spans(entry, text)] for entry, text in zip(entries, texts)]
             for policy, texts in became.items()}
    return Tool("Portcullis", found.pop("all"), found)


def other(name, find, entries):
    try:
        return Tool(name, find(entries))
    except (process.Absent, process.Unready) as reason:
        return Tool(name, [[] for _ in entries], absent=str(reason))


def tools(entries):
    return [ours(entries),
            other("`redaction`", others.redaction, entries),
            other("scrubadub", lambda e: others.scanner("scrubadub", e), entries),
            other("detect-secrets", lambda e: others.scanner("detect-secrets", e), entries)]


# ---- tables

def recall_table(all_tools, entries):
    kinds = sorted({kind for _, entry in entries for kind in entry.kinds})
    rows = []
    for kind in kinds:
        cells = [tool.recall(entries, kind) for tool in all_tools]
        alone = all_tools[0].alone.get(kind)
        if kind in pii_set.OPTIONAL and alone:
            cells[0] = Tool("", alone).recall(entries, kind)
        rows.append([("`%s`" + " (enabled)" * (kind in pii_set.OPTIONAL)) % kind, cells[0][1],
                     *("absent" if tool.absent else shown(*cell) for tool, cell in zip(all_tools, cells))])
    return report.table(["Kind", "Strings", *(tool.name for tool in all_tools)], rows)


def precision_table(all_tools, entries):
    rows = []
    for tool in all_tools:
        for what, (right, count) in sorted(tool.precision(entries).items()):
            rows.append([tool.name, "`%s`" % what, count, count - right, shown(right, count)])
    return report.table(["Tool", "Detector", "Strings changed", "Of them wrongly", "Precision"], rows, 2)


def stay_table(all_tools, entries, symbols):
    groups = collections.defaultdict(list)
    for i, entry in [*entries, *symbols]:
        if not entry.kinds - pii_set.OPTIONAL:
            near = entry.source == "row" or entry.source.startswith("near ")
            groups["near misses" if near and not entry.kinds else "of optional kinds" if entry.kinds else
                   "symbols: " + entry.source].append((i, entry))
    rows = [[group, len(groups[group]), *("absent" if tool.absent else tool.changed(groups[group]) for tool in all_tools)]
            for group in sorted(groups)]
    return report.table(["Strings that must stay", "Number", *("%s changes" % tool.name for tool in all_tools)], rows)


def flame_lines():
    """(lines, was one changed that is not listed?)"""
    rows = list(flames.compare(GATEWAY))
    if not rows:
        return ["There was no corpus beside the checkout in this run."], False
    differ = [row for row in rows if row[1] != row[2]]
    lines = ["Of %d files, %d have the same number of distinct frames and of distinct stacks before and after `pii: {}`: "
             "%d frames and %d stacks in all. The others:" % (
                 len(rows), len(rows) - len(differ), sum(row[1][0] for row in rows), sum(row[1][1] for row in rows)), "",
             *report.table(["File", "Frames before", "after", "Stacks before", "after", "Why"], [
                 [name, before[0], after[0], before[1], after[1], flames.CHANGED.get(name, "**not expected**")]
                 for name, before, after in differ])]
    return lines if differ else [lines[0].replace(" The others:", "")], any(row[0] not in flames.CHANGED for row in differ)


METHOD = """The strings are those of `tests/pii_set`. Their labels come from how they were made: by rules, with valid check digits where the
kind has them, or by hand. A label says which characters must go, and which may go with them. A hash of the string decides which
half it belongs to. **All numbers here are from the half that is kept apart**: while the detectors were written, tests showed the
failures of the other half only. The rules make both halves, so both have the same surroundings; the rows written by hand differ.

*Recall*: the share of strings of a kind in which everything that must go is gone. *Precision*: of the strings that a detector
changes when it runs alone, the share in which nothing went that should have stayed. In brackets: the interval of 95 % (Wilson).

- Portcullis: the real program, `pii: {}`; each string in an OTLP profile, as an attribute of a sample, as the name or the file of
  a function or as the file of a mapping. The row of an optional kind has its detector enabled, and no other one; its precision
  is that on the strings of this kind and on those in which nothing is personal.
- `redaction`: the Collector's processor, with all the patterns and switches that its documentation shows; each string is an
  attribute of a log record, because the processor does not run on profiles. Operators add patterns of their own.
- scrubadub and detect-secrets: two open detectors of PyPI with their default settings. The first looks for personal data in
  prose, the second for secrets in source code; neither was made for profiles."""


def section(circumstances, all_tools, entries, symbols, flame, seconds):
    apart = [(i, entry) for i, entry in entries if entry.half == "apart"]
    absent = ["- %s: %s" % (tool.name, tool.absent) for tool in all_tools if tool.absent]
    return [*METHOD.split("\n"), "", *circumstances, *absent,
            "- %d strings, of which %d are kept apart; %d symbols. The run took %.0f seconds." % (
                len(entries), len(apart), len(symbols), seconds), "",
            "### Recall", "", *recall_table(all_tools, apart), "",
            "### Precision", "", *precision_table(all_tools, apart), "",
            "### What must stay", "", "The near misses of the half that is kept apart, and all symbols: those of the set, and the names of functions",
            "in the corpus, but for names that hold the path of a home.", "",
            *stay_table(all_tools, apart, symbols), "",
            "### Flame graphs", "", *flame]


def main():
    begun = time.monotonic()
    try:
        circumstances = report.circumstances(GATEWAY, RedactionCollector.installed())
    except process.Absent:
        circumstances = report.circumstances(GATEWAY)
    everything = [*pii_set.entries(), *pii_set.all_symbols(), *(entry for entry in real.entries(corpus.directory()) if not entry.spans)]
    all_tools = tools(everything)
    numbered = list(enumerate(everything))
    entries, symbols = numbered[:len(pii_set.entries())], numbered[len(pii_set.entries()):]
    flame, unexpected = flame_lines()
    lines = section(circumstances, all_tools, entries, symbols, flame, time.monotonic() - begun)
    print("\n".join(lines))
    report.write_between(ROOT / "docs/POLICY.md", "measured", "make bench-pii", lines)
    return 1 if unexpected or all_tools[0].changed(symbols) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # unwinds, and ends what was started
    sys.exit(main())
