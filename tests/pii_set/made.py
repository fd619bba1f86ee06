# SPDX-License-Identifier: Apache-2.0
"""What rules make: the same strings in every run. A rule makes one marked string from a random source; it is called as often
as its table says, and each result is one class, or none for near misses."""
import random

from pii_set import NONE, fill, made_net, made_numbers, made_optional, made_paths, made_tokens, near, parse

POSITIVE = {**made_net.RULES, **made_numbers.RULES, **made_tokens.RULES, **made_paths.RULES, **made_optional.RULES}


def entries():
    for kind, rules in POSITIVE.items():
        for rule, count in rules:
            yield from _made(rule, count, [kind], rule.__name__)
    for rule, count in near.RULES:
        yield from _made(rule, count, [NONE], "near " + rule.__name__)


def _made(rule, count, kinds, source):
    draw = random.Random("%s %s" % (kinds[0], source))
    for _ in range(count):
        made = rule(draw)
        role, marked = made if isinstance(made, tuple) else ("value", made)
        yield parse(fill(marked, draw), kinds, role, source)
