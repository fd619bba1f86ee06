# SPDX-License-Identifier: Apache-2.0
"""The detectors on strings whose labels are known (tests/pii_set), through the program. Of the half that is kept apart from
tuning a failure shows only counts; make bench-pii measures on it."""
import collections
import random

import pytest

import pii_set
from harness import canaries, poison, scrubbed
from pii_set import real

RECALL_MIN = 0.98
# Of near misses. What is known to look the same: versions of four parts are addresses by their form.
CHANGED_MAX = 0.05


@pytest.fixture(scope="module")
def removed(build):
    """Of each entry of the set and each symbol, what `pii: {}` removed ("all"), and each optional detector alone."""
    entries = [*pii_set.entries(), *pii_set.all_symbols()]
    names = scrubbed.detectors(build / "portcullis")
    policies = {"all": "{}", **{name: scrubbed.alone(names, name) for name in pii_set.OPTIONAL}}
    found = scrubbed.through(build / "portcullis", entries, policies)
    return {policy: [(entry, scrubbed.spans(entry, text)) for entry, text in zip(entries, texts)] for policy, texts in found.items()}


@pytest.fixture(scope="module")
def became(removed):
    return removed["all"]


def shown(wrong):
    """Strings of the half for tuning, and how many more there are of the other one."""
    hidden = collections.Counter(entry.source for entry in wrong if entry.half == "apart")
    return [entry.text for entry in wrong if entry.half == "tuning"], dict(hidden)


# ---- the set

def test_the_set_is_large_and_its_halves_are_alike():
    entries = pii_set.entries()
    assert len(entries) >= 3000
    counts = collections.Counter((entry.stratum, entry.half) for entry in entries if entry.spans)
    for kind in {kind for kind, _ in counts}:
        halves = [counts[kind, half] for half in pii_set.HALVES]
        assert sum(halves) >= 100 and min(halves) >= 0.35 * sum(halves), (kind, halves)


def test_marks_say_what_must_go_and_what_may():
    entry = pii_set.parse("a ‹b=«c»&d› «e» ‹f›", ["x", "y"], "value", "row")
    assert entry.text == "a b=c&d e f" and entry.kinds == {"x", "y"}
    assert [entry.text[s.start:s.end] for s in entry.spans] == ["c", "e"]
    assert [entry.allowed(*span) for span in ((0, 1), (2, 7), (1, 8), (7, 9), (10, 11), (6, 9))] == [False, True, True, True, True, True]
    assert scrubbed.removed("x=1234, y", "x=****, y") == [(2, 6)]
    assert scrubbed.removed("int *a /home/b", "int *a /home/*") == [(13, 14)]
    assert not scrubbed.caught(entry, [(4, 5)]) and scrubbed.caught(entry, [(4, 5)], "x") and scrubbed.caught(entry, [(2, 7), (8, 9)])


def test_there_are_symbols_of_each_language():
    assert len(pii_set.languages()) >= 13
    for language in pii_set.languages():
        assert len(list(pii_set.symbols(language))) >= 200, language


# ---- the detectors

def test_the_optional_kinds_are_those_that_the_program_leaves_alone(build):
    binary = build / "portcullis"
    assert pii_set.OPTIONAL == set(scrubbed.detectors(binary)) - set(scrubbed.on_by_default(binary))


def test_no_symbol_is_changed(removed):
    changed = {policy: [entry.text for entry, spans in found if entry.source in pii_set.languages() and spans]
               for policy, found in removed.items()}
    assert changed == {policy: [] for policy in removed}


def test_of_function_names_in_real_profiles_only_users_go(build, corpus):
    if not corpus:
        pytest.skip("no corpus")
    entries = list(real.entries(corpus))
    texts = scrubbed.through(build / "portcullis", entries, {"all": "{}"})["all"]
    assert len(entries) > 20000
    assert any(entry.spans for entry in entries)
    found = [(entry, scrubbed.spans(entry, text)) for entry, text in zip(entries, texts)]
    assert [entry.text for entry, spans in found if scrubbed.spoilt(entry, spans)] == []
    assert [entry.text for entry, spans in found if not scrubbed.caught(entry, spans)] == []


def test_almost_every_string_of_each_kind_is_caught(removed):
    missed, counts = collections.defaultdict(list), collections.Counter()
    for policy, found in removed.items():
        for entry, spans in found:
            for kind in entry.kinds & {policy} if policy != "all" else entry.kinds - pii_set.OPTIONAL:
                counts[kind] += 1
                if not scrubbed.caught(entry, spans, kind):
                    missed[kind].append(entry)
    low = {kind: shown(missed[kind]) for kind in counts if len(missed[kind]) > (1 - RECALL_MIN) * counts[kind]}
    assert not low


def test_near_misses_stay(removed):
    """What an operator has not enabled is a near miss too."""
    for policy, found in removed.items():
        optional = pii_set.OPTIONAL if policy == "all" else set()
        near = [(entry, spans) for entry, spans in found if not entry.kinds - optional and entry.source not in pii_set.languages()]
        changed = [entry for entry, spans in near if scrubbed.spoilt(entry, spans)]
        assert len(near) > 1000 and len(changed) <= CHANGED_MAX * len(near), (policy, shown(changed))


def test_integers_stay(became):
    integers = [(entry, spans) for entry, spans in became if entry.role == "integer"]
    assert len(integers) > 50
    assert [entry.text for entry, spans in integers if spans] == []


# ---- the leak oracle

def test_each_detector_has_a_specimen_in_the_leak_oracle(build):
    rng, word = random.Random(1), canaries.Canaries(1).word
    binary = build / "portcullis"
    assert set(canaries.specimens(rng, word)) == {*scrubbed.on_by_default(binary), "workspace"}
    assert set(canaries.optional_specimens(rng, word)) == pii_set.OPTIONAL


def every_site(binary):
    """All places of strings, by the names of the oracle: the program's own list of sites without keys, and what attributes hold."""
    found = set()
    for site, role in scrubbed.sites(binary):
        name = site.replace("_type.", " ").replace("filename", "file").replace("schema_url", "schema").replace("_", " ").replace(".", " ")
        found.add((name, role))
    assert len(found) == 14
    for site in ("resource", "scope", "profile", "sample", "location", "mapping"):
        found |= {(site + what, "value") for what in (" value", " nested value", " array", " bytes")}
    return found | {(site + " unit of a value", "unit") for site in ("profile", "sample", "location", "mapping")}


@pytest.mark.parametrize("make", [canaries.specimens, canaries.optional_specimens])
@pytest.mark.parametrize("by_reference", [False, True])
def test_each_specimen_stands_at_every_site(build, make, by_reference):
    c = canaries.Canaries(1)
    poison.specimens(c, by_reference, make)
    sites = collections.defaultdict(set)
    for kind in c.denied.values():
        detector, _, site = kind.partition(" at ")
        sites[detector].add(site.replace(" by reference", "").replace(" inline", ""))
    for detector in make(c.random, c.word):
        roles = canaries.ROLES.get(detector)
        missing = {name for name, role in every_site(build / "portcullis") if not roles or role in roles} - sites[detector]
        assert not missing, detector
