# SPDX-License-Identifier: Apache-2.0
"""The glossary: words that user-visible text must not have, because the field has a standard term for each."""
import re

# Pattern -> what to write instead. A blank in a pattern is any white space: phrases wrap.
GLOSSARY = {
    r"ill": "unhealthy, failing",
    r"well destinations?": "healthy destination",
    r"tells?|told": "reports, returns, reported to",
    r"go(es)? before": "takes precedence over, overrides",
    r"(every )?so many(-th)?": "the number of, every Nth",
    r"for good": "permanently, after a permanent error",
    r"no place for|not kept": "unsupported by the destination",
    r"no index of": "index out of range for",
    r"would have more": "flushed before exceeding",
    r"what is behind|the door": "name the thing: backend, wrapper",
    r"mend(s|ed|ing)?": "fix",
    r"hurr(y|ies|ied)": "flush",
    r"texts|a text": "strings, a string",
    r"root side": "truncated at the root",
    r"all the same": "anyway, nevertheless",
}
# Phrases in which such a word is right, each with its reason.
ALLOWED = {
    r"(tells?|told) (\S+ ){0,5}apart": "the idiom for distinguishing",
    r"a text (file|format|editor)s?": "here text is an adjective",
}

LITERAL = r'"(?:\\.|[^"\\\n])*"'
TOKENS = re.compile(r"/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\\n])+'|#include[^\n]*|(?P<run>%s(?:(?:\s|\\\n)*%s)*)" % (LITERAL, LITERAL),
                    re.S)
BANNED = re.compile(r"\b(?:%s)\b" % "|".join("(?:%s)" % p.replace(" ", r"\s+") for p in GLOSSARY), re.I)
PERMITTED = re.compile(r"\b(?:%s)\b" % "|".join(p.replace(" ", r"\s+") for p in ALLOWED), re.I)


def instead(words):
    return next(term for pattern, term in GLOSSARY.items() if re.fullmatch(pattern.replace(" ", r"\s+"), words, re.I))


def findings(text):
    """(offset, message) of every banned word of a text."""
    text = PERMITTED.sub(lambda m: "_" * len(m[0]), text)
    for found in BANNED.finditer(text):
        yield found.start(), '"%s": write %s' % (" ".join(found[0].split()), instead(found[0]))


def in_c(text):
    """(line, message) of the string literals of a C file; adjoining ones are one text."""
    for token in TOKENS.finditer(text):
        if token["run"]:
            content = "".join(part[1:-1] for part in re.findall(LITERAL, token["run"]))
            content = re.sub(r"\\[nt]", "  ", content)
            for _, message in findings(re.sub(r"`[^`]*`", "``", content)):
                yield text.count("\n", 0, token.start()) + 1, message


def in_markdown(text):
    """(line, message) of the prose: code, in fences or between backticks, is not prose."""
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", lambda m: re.sub(r"[^\n]", "_", m[0]), text, flags=re.S | re.M)
    for offset, message in findings(prose):
        yield prose.count("\n", 0, offset) + 1, message
