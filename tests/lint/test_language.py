# SPDX-License-Identifier: Apache-2.0
"""The glossary's check finds its words in strings and prose, wherever they wrap, and nowhere else."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import language  # noqa: E402

BAD = {
    "the destination is ill": "unhealthy",
    "the server told us": "reports",
    "this key goes\nbefore that one": "takes precedence",
    "Every so many-th line": "the number of",
    "dropped for good": "permanently",
    "labels that it has no place for": "unsupported",
    "3 is no index of a table": "out of range",
    "texts of a sender": "strings",
    "they lose their root side": "truncated",
    "the exit status is 0 all the same": "anyway",
}
GOOD = ["it is still filled", "a hotel", "a foretold", "we tell apart two of them", "a key that tells their senders apart", "the text of a reply", "go ahead before it",
        "recommend"]


@pytest.mark.parametrize("words", BAD)
def test_each_word_of_the_glossary_is_found_with_what_to_write_instead(words):
    (_, message), = language.findings(words)
    assert BAD[words] in message


@pytest.mark.parametrize("words", GOOD)
def test_other_words_are_left_alone(words):
    assert not list(language.findings(words))


def test_a_phrase_is_found_in_strings_that_adjoin_but_not_in_comments_and_code():
    source = '/* told */\n#include "told/by.h"\nint told; // told\nconst char *s = "given up for "\n\t"good %s", c = \'"\';\nf("`told`", "fine");\n'
    assert [line for line, _ in language.in_c(source)] == [4]
    assert [line for line, _ in language.in_c('#define X \\\n\t"so " \\\n\t"many"\n')] == [2]


def test_prose_is_checked_but_not_its_code():
    assert [line for line, _ in language.in_markdown("# Told\n\n`told`\n\n```\ntold\n```\n\nfor\ngood\n")] == [1, 9]
