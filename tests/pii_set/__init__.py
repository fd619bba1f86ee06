# SPDX-License-Identifier: Apache-2.0
"""Strings of which is known what in them is personal or secret: the labels come from how each string was made, never from a
detector.

Three sources: rules (made.py and the modules it imports), rows written by hand (rows.tsv), and symbols of languages, in
which nothing is personal (symbols/LANGUAGE.txt, made by collect_symbols.py). Rules are code and a seed, so that no file here
holds a string that a scanner would take for a live credential; rows.tsv has fills ({hex:32}) where a token stands.

A string is written with marks: «what must go» and, around it, ‹what may go with it›. What stands outside any mark must stay.

    https://example.com/pay?‹card=«4111 1111 1111 1111»&page=2›
"""
import dataclasses
import functools
import hashlib
import pathlib
import random
import re

HERE = pathlib.Path(__file__).resolve().parent
NONE = "-"  # the class of a string in which nothing is personal
# What the program leaves alone unless the operator enables it.
OPTIONAL = {"uuid", "generated_path", "sql", "command_line", "user_name"}
ROLES = ("value", "function", "file", "mapping", "integer")
HALVES = ("tuning", "apart")


@dataclasses.dataclass(frozen=True)
class Span:
    """Of one class: [start, end) must go, [low, high) may."""
    kind: str
    start: int
    end: int
    low: int
    high: int


@dataclasses.dataclass(frozen=True)
class Entry:
    text: str
    spans: tuple
    role: str    # where in a profile it stands
    source: str  # the rule, "row", or the language
    spare: tuple = ()  # (low, high) of what may go though nothing in it must

    @property
    def kinds(self):
        return {span.kind for span in self.spans}

    @property
    def stratum(self):
        return self.spans[0].kind if self.spans else self.source

    @property
    def half(self):
        """By a hash of the string alone: a string that is added moves no other from one half to the other."""
        return HALVES[hashlib.sha256(self.text.encode()).digest()[0] & 1]

    def allowed(self, start, end):
        """May this much be removed? Punctuation beside what may go is no loss."""
        ranges = [*self.spare, *((span.low, span.high) for span in self.spans)]
        return bool(ranges) and all(not self.text[i].isalnum() or any(low <= i < high for low, high in ranges) for i in range(start, end))


MARKS = re.compile("[«»‹›]")


def parse(marked, kinds, role, source):
    """An entry of a string with marks. kinds: of the marks in their order; the last one is that of all that follow."""
    text, spans, spare, open_must, open_may, within = "", [], [], None, None, []
    place = 0
    for mark in MARKS.finditer(marked):
        text += marked[place:mark.start()]
        place = mark.end()
        if mark[0] == "«":
            open_must = len(text)
        elif mark[0] == "‹":
            open_may = len(text)
        elif mark[0] == "»":
            within.append((open_must, len(text)))
            if open_may is None:
                spans += [(*within.pop(), open_must, len(text))]
        else:
            spans += [(start, end, open_may, len(text)) for start, end in within]
            spare += [] if within else [(open_may, len(text))]
            open_may, within = None, []
    text += marked[place:]
    assert not within and open_may is None, marked
    assert bool(spans) == (kinds != [NONE]), marked
    return Entry(text, tuple(Span(kinds[min(i, len(kinds) - 1)], *span) for i, span in enumerate(spans)), role, source, tuple(spare))


# ---- fills: what a token consists of, drawn when the set is loaded

ALPHABETS = {
    "digit": "0123456789", "hex": "0123456789abcdef", "HEX": "0123456789ABCDEF",
    "lower": "abcdefghijklmnopqrstuvwxyz", "upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "base32": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
}
ALPHABETS["letter"] = ALPHABETS["lower"] + ALPHABETS["upper"]
ALPHABETS["alnum"] = ALPHABETS["letter"] + ALPHABETS["digit"]
ALPHABETS["UPNUM"] = ALPHABETS["upper"] + ALPHABETS["digit"]
ALPHABETS["url64"] = ALPHABETS["alnum"] + "-_"
ALPHABETS["base64"] = ALPHABETS["alnum"] + "+/"
FILL = re.compile(r"\{(%s):(\d+)\}" % "|".join(ALPHABETS))


def fill(text, draw):
    """{hex:32} becomes 32 digits. The last one is a letter or digit, so that every detector agrees where a token ends."""
    def drawn(found):
        letters, count = ALPHABETS[found[1]], int(found[2])
        return "".join(draw.choices(letters, k=count - 1)) + draw.choice(letters.rstrip("-_+/"))
    return FILL.sub(drawn, text)


def rows(path=HERE / "rows.tsv"):
    """The entries of the table: classes, role, string with marks; ␊ is a newline, ␉ a tab, ␈ nothing."""
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            kinds, role, marked = line.split("\t")
            marked = fill(marked, random.Random("row " + marked)).replace("␊", "\n").replace("␉", "\t").replace("␈", "")
            yield parse(marked, kinds.split(","), role, "row")


def languages():
    return sorted(path.stem for path in (HERE / "symbols").glob("*.txt"))


def symbols(language):
    """The symbols of a language; lines that begin with # say where they come from."""
    for line in (HERE / "symbols" / (language + ".txt")).read_text().split("\n"):
        if line and not line.startswith("# "):
            yield Entry(line, (), "function", language)


@functools.lru_cache(maxsize=None)
def entries():
    """All of the set but the symbols, each string once at each role."""
    from pii_set import made
    found = {}
    for entry in [*rows(), *made.entries()]:
        found.setdefault((entry.text, entry.role), entry)
    return list(found.values())


@functools.lru_cache(maxsize=None)
def all_symbols():
    return [entry for language in languages() for entry in symbols(language)]
