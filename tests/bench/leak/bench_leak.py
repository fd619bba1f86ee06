#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-leak: which words that policy forbids come out of the Collector, and which of Portcullis.

Writes its section of docs/BENCHMARKS.md.

The requests of the leak oracle (tests/harness/poison.py): a random word, a canary, at every place where text can stand and
may not leave, once inline and once by reference, and a valid specimen of each kind of personal data wherever text stands
without a key. Both programs get the same bytes and the same policy; the Collector by every deletion that its processors
have for profiles. What then reaches the destination is searched for every canary.

The bench fails when a canary passes Portcullis, when a word that must arrive does not, and when it does not notice that a
protection is missing: it takes some out of a copy of the code, builds that, and looks again.
"""
import collections
import pathlib
import random
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "build/python"), str(ROOT / "tests"), str(ROOT / "tests/bench")]

import report  # noqa: E402 (the paths come first)
from e2e import mutations  # noqa: E402
from harness import canaries, peers, poison  # noqa: E402
from harness.gateway import Gateway  # noqa: E402
from interop import process  # noqa: E402
from interop.collector import Collector  # noqa: E402

GATEWAY = ROOT / "build/release/portcullis"
SEED = 1
SITES = ("resource", "scope", "profile", "sample", "location", "mapping")
FORMS = ("inline", "by reference")

ENDS = """
receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}}
exporters: {otlp_grpc: {endpoint: 127.0.0.1:{port:sink}, tls: {insecure: true}}}
service: {pipelines: {profiles: {receivers: [otlp], processors: [PROCESSORS], exporters: [otlp_grpc]}}}
"""
OURS = """
processors:
  allowlist:
    keys: [service.name, region, tier, note, size]
    key_patterns: ['^open\\..{1,24}$', 'part\\.[a-z]+']
    location: [process.executable.build_id.gnu, process.executable.build_id.go, trace_id, span_id]
    sample: [span_id]
    values: {tier: [gold, silver], size: ["5", MiB]}
  pii: {number_keys: [note]}
"""
# What can be said in the Collector: keep_matching_keys at every context that profiles have there, also in the maps whose
# keys are known beforehand; the payload emptied; known keys deleted; each kind of personal data replaced in every value and
# every text that a path leads to.
KEEP = r"^(service\\.name|region|tier|note|size|open\\..{1,24}|part\\.[a-z]+)$"
PERSONAL = [r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,}", r"[0-9]{1,3}(\\.[0-9]{1,3}){3}",
            r"([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}", r"eyJ[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+",
            r"AKIA[A-Z2-7]{16}", r"[0-9]{12,19}", r"[0-9]{3}-[0-9]{2}-[0-9]{4}", r"\\+[0-9]{8,15}",
            r"[A-Z]{5}[0-9]{4}[A-Z]", r"[0-9]{4} [0-9]{4} [0-9]{4}", r"Bearer [A-Za-z0-9._-]+", r"/home/[^/]+",
            r"\\?[^ ]+"]
TEXTS = {"resource": [], "scope": ["scope.name", "scope.version"],
         "profile": ["profile.%s.%s" % (kind, part) for kind in ("sample_type", "period_type") for part in ("type", "unit")]}


def statements(context):
    """Of the transform processor."""
    attributes = context + ".attributes"
    yield 'keep_matching_keys(%s, "%s")' % (attributes, KEEP)
    yield 'keep_matching_keys(%s["region"], "%s") where IsMap(%s["region"])' % (attributes, KEEP, attributes)
    yield 'delete_key(%s, "tier") where not IsMatch(%s["tier"], "^(gold|silver)$")' % (attributes, attributes)
    for pattern in PERSONAL:
        yield 'replace_all_patterns(%s, "value", "%s", "****")' % (attributes, pattern)
        for text in TEXTS[context]:
            yield 'replace_pattern(%s, "%s", "****")' % (text, pattern)
    if context == "profile":
        yield 'set(profile.original_payload_format, "")'
        yield 'set(profile.original_payload, 0x00)'


def theirs():
    deletions = "{pattern: '^denied\\..*', action: delete}, {key: service.name.x, action: delete}"
    lines = ["processors:", "  resource: {attributes: [%s]}" % deletions, "  transform:",
             "    error_mode: ignore", "    profile_statements:"]
    for context in ("resource", "scope", "profile"):
        lines += ["      - context: " + context, "        statements:"]
        lines += ["          - '%s'" % s for s in statements(context)]
    return "\n".join(lines) + "\n"


def requests():
    """{form: (its canaries, bodies)}"""
    made = {}
    for i, form in enumerate(FORMS):
        c = canaries.Canaries(SEED + i)
        made[form] = c, [poison.otlp(c, bool(i)), poison.specimens(c, bool(i))]
    return made


class Seen:
    """What a program let through of the requests: {form: {canary kind: how often}}, and what permitted did not arrive."""

    def __init__(self, binary, text, processors, arguments=()):
        self.found, self.missing = {}, {}
        for form, (c, bodies) in requests().items():
            data = self.through(binary, text + ENDS.replace("PROCESSORS", processors), arguments, bodies)
            self.found[form] = collections.Counter()
            for kind, count in c.found(data).items():
                self.found[form][kind.removesuffix(" in binary")] += count
            self.missing[form] = c.missing(data)

    def through(self, binary, text, arguments, bodies):
        with tempfile.TemporaryDirectory() as directory:
            gateway = Gateway(binary, text, arguments=arguments, cwd=directory)
            with peers.Sink(gateway.port["sink"]) as sink, gateway, peers.Client(gateway.port["otlp"]) as client:
                for body in bodies:
                    client.send(body)
                gateway.until(lambda: len(sink.received) >= len(bodies))
                assert "failed" not in gateway.log(), gateway.log()  # a deletion that does not work is no deletion
            return b"\n".join(sink.received)

    def total(self):
        return sum(len(found) for found in self.found.values())


PLACES = {"overwritten": "fields that are overwritten later in the message", "unknown field": "unknown fields",
          "orphan": "dictionary entries that nothing refers to", "entry 0": "entry 0 of the tables",
          "second dictionary": "dictionary entries that nothing refers to", "original_payload": "`original_payload`",
          "link": "links (trace and span ids)", "profile id": "profile ids"}
DETECTORS = canaries.specimens(random.Random(1), lambda: "word")
KEYLESS = ("schema", "name", "version", "type", "file", "system name")


def place(kind):
    """The row that a kind of canary belongs to."""
    kind = kind.removesuffix(" inline").removesuffix(" by reference")
    what, _, where = kind.rpartition(" at ")
    if what in DETECTORS:
        site, _, part = where.partition(" ")
        return "personal data: " + (where if part in KEYLESS or site == "period" else "permitted values at " + site)
    if kind == "card as a number":
        return "personal data: permitted values at resource"
    if where.endswith("that is no id"):
        return "personal data: permitted values at " + where.split(" ")[0]
    if where in SITES:
        return "what is denied at " + where
    for start, row in PLACES.items():
        if kind.startswith(start):
            return row
    return "denied entities" if kind.endswith("entity") else kind


def table_rows(theirs_seen, ours_seen):
    counts = collections.defaultdict(lambda: collections.defaultdict(list))
    for form, (c, _) in requests().items():
        for kind in set(c.denied.values()):
            counts[place(kind)][form].append(kind)
    for row in sorted(counts):
        yield [row, *(cell for form in FORMS for kinds in [counts[row][form]] for cell in (
            len(kinds), *(sum(kind in seen.found[form] for kind in kinds) for seen in (theirs_seen, ours_seen))))]


# Of tests/e2e/mutations.py, which has all.
TAKEN_OUT = ("entry 0 is read", "a denied key stays", "no PII at function name")


def self_check():
    """[(protection, canaries that pass without it)]"""
    with tempfile.TemporaryDirectory() as directory:
        scratch = mutations.copy(pathlib.Path(directory), "release")
        for name in TAKEN_OUT:
            with mutations.without(scratch, name, "release"):
                yield name, Seen(scratch / "build/release/portcullis", OURS, "allowlist, pii").total()


def summary(them, us):
    """How many of how many, what policy denies and personal data apart."""
    kinds = [(form, kind) for form, (c, _) in requests().items() for kind in set(c.denied.values())]
    for what, personal in (("words that stand where nothing may pass", False), ("specimens of personal data", True)):
        mine = [(form, kind) for form, kind in kinds if place(kind).startswith("personal") == personal]
        passed = [sum(kind in seen.found[form] for form, kind in mine) for seen in (them, us)]
        yield "Of **%d** %s the Collector let **%d** through, Portcullis **%d**." % (len(mine), what, *passed)
    lost = [sum(map(len, seen.missing.values())) for seen in (them, us)]
    yield "Words that must arrive and did not: %d and %d." % tuple(lost)


def section(circumstances, them, us, removed, seconds):
    lines = [*METHOD.split("\n"), "", *circumstances, "- The run took %.0f seconds." % seconds, "", *summary(them, us), ""]
    head = ["Where", *("%s: %s" % (form, what) for form in FORMS for what in ("canaries", "Collector", "Portcullis"))]
    lines += [*report.table(head, list(table_rows(them, us))), ""]
    lines += ["Each row is a build of Portcullis without one of its protections, to show that this bench would notice:", "",
              *report.table(["Taken out", "Canaries that pass"], removed)]
    return lines


METHOD = """## What gets through

The requests are those of the leak oracle (`tests/harness/poison.py`). They contain a random word, a canary, in every place that can
hold strings and must not leave, once inline and once by reference. They also contain a specimen of each kind of personal data in
every place that holds strings without a key, and in permitted values. Both programs receive the same bytes and apply the same
policy: an allow-list of keys and values, and no personal data. The data that reaches the destination is searched for every canary,
in plain text, hexadecimal, base64 and binary.

In Portcullis, the policy consists of `allowlist` and `pii`. In the Collector, it goes as far as its processors support profiles:
`resource` (delete by key and pattern) and `transform` in each of the contexts that exist for profiles (resource, scope, profile:
`keep_matching_keys`, also in maps at known positions, `delete_key`, `replace_all_patterns` over all values, `replace_pattern` over
scope names, types and units, `set` to empty the original payload). None of its processors reaches samples, locations, mappings,
functions or the dictionary. `filter` only drops whole Profiles. `redaction`, `attributes` and `batch` do not run in a profiles
pipeline."""


def main():
    try:
        collector = Collector.installed()
    except process.Absent as reason:
        print("bench-leak: there is no Collector to compare with: %s" % reason)
        return 1
    begun = time.monotonic()
    circumstances = report.circumstances(GATEWAY, collector)
    us = Seen(GATEWAY, OURS, "allowlist, pii")
    them = Seen(collector, theirs(), "resource, transform", ["--feature-gates=service.profilesSupport"])
    removed = list(self_check())
    lines = section(circumstances, them, us, removed, time.monotonic() - begun)
    print("\n".join(lines))
    report.write("leak", lines)
    failed = us.total() or any(us.missing.values()) or not all(count for _, count in removed)
    return 1 if failed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # unwinds, and ends what was started
    sys.exit(main())
