# SPDX-License-Identifier: Apache-2.0
"""The message of the leak oracle says where a word is."""
import base64

from harness import canaries, finding, poison


def test_a_word_in_an_unknown_field_is_located():
    c = canaries.Canaries(1)
    piece = poison.otlp(c, False)
    word = next(w for w, kind in c.denied.items() if kind == "unknown field of KeyValue" and w.isalpha() and len(w) == 16)
    (line,) = [x for x in finding.describe(Only(word, c.denied[word]), "somewhere", [b"other", piece])]
    assert line.startswith("somewhere, piece 1 of 2, unknown field of KeyValue (%r): at byte %d of %d, ExportProfiles"
                           % (word, piece.index(word.encode()), len(piece)))
    assert ".attributes[" in line and line.split(": ")[1].endswith(".1000") and ">>b'%s'<<" % word in line


def test_other_places_of_a_word():
    describe = lambda data: finding.describe(Only("abcdefghijklmnop", "kind"), "x", [data])
    assert "in base64 or hexadecimal" in describe(b'"' + base64.b64encode(b"-- abcdefghijklmnop --") + b'"')[0]
    assert "at byte 3 of 19, no protobuf: b'<->'" in describe(b"<->ABCDEFGHIJKLMNOP")[0]
    assert describe(b"nothing") == []


def test_no_permitted_word_can_hold_a_denied_one():
    c = canaries.Canaries(1)
    for body in (poison.otlp, poison.specimens, poison.partly_bad):
        body(c, False)
    poison.pprof(c)
    short = [word for word in c.denied if word.isalpha() and len(word) < 16]
    assert len(short) > 1000 and c.permitted
    assert all("q" in word for word in short) and not any("q" in word for word in c.permitted)


class Only:
    """One denied word."""

    def __init__(self, word, kind):
        self.denied, self.numbers = {word: kind}, {}
