# SPDX-License-Identifier: Apache-2.0
"""What an allow-list must do to resolved profiles, written from the manual and not from the program."""
import ast
import re
from collections import defaultdict

from harness.otlp import node

FRAME_TYPES = set("dotnet jvm kernel native perl php cpython ruby v8js beam go rust luajit unknown "
                  "abort-marker".split())


def _text(value):
    return ast.literal_eval(value[1]) if value[0] == "string_value" else None


def _matches(pattern):
    def check(value, _):
        text = _text(value)
        return text is not None and len(text) <= 128 and bool(re.fullmatch(pattern, text))
    return check


def _is_bool(value, _):
    return value[0] == "bool_value"


def _is_order(value, types):
    if value[0] != "array_value" or len(value[1]) > 128:
        return False
    places = [int(v[1]) if v[0] == "int_value" else -1 for v in value[1]]
    return len(set(places)) == len(places) and all(0 <= x < min(len(types), 128) for x in places)


def _is_type(value, types):
    return value[0] == "string_value" and _text(value) in {kind and kind[0] for kind in types}


STRUCTURAL = {
    "mapping": {
        "process.executable.build_id.gnu": _matches("([0-9a-fA-F]{16}){1,2}|[0-9a-fA-F]{40}|[0-9a-fA-F]{64}"),
        "process.executable.build_id.htlhash": _matches("[0-9a-fA-F]{32}"),
        "process.executable.build_id.go": _matches("[0-9A-Za-z_-]{20}(/[0-9A-Za-z_-]{20}|(/[0-9A-Za-z_-]{20}){3})"),
        **{"pprof.mapping." + flag: _is_bool
           for flag in ("has_functions", "has_filenames", "has_line_numbers", "has_inline_frames", "is_main")}},
    "location": {"profile.frame.type": lambda value, _: _text(value) in FRAME_TYPES,
                 "pprof.location.is_folded": _is_bool},
    "scope": {"pprof.scope.sample_type_order": _is_order, "pprof.scope.default_sample_type": _is_type},
}


class Allowlist:
    """Keys permitted everywhere, and the structural attributes."""

    def __init__(self, keys):
        self.keys = set(keys)
        self.known = {}

    def nested(self, value):
        if value[0] == "kvlist_value":
            return value[0], tuple((k, self.nested(v)) for k, v in value[1] if k in self.keys)
        if value[0] == "array_value":
            return value[0], tuple(self.nested(v) for v in value[1])
        return value

    def pairs(self, pairs, site, types=()):
        """Of resources and scopes: (key, value)."""
        rules = STRUCTURAL.get(site, {})
        return frozenset((k, self.nested(v)) for k, v in pairs
                         if k in self.keys or (k in rules and rules[k](v, types)))

    def attributes(self, attributes, site):
        """Of the dictionary: (key, (value, unit))."""
        rules = STRUCTURAL.get(site, {})
        return frozenset((k, (self.nested(v), unit)) for k, (v, unit) in attributes
                         if k in self.keys or (k in rules and not unit and rules[k](v, ())))

    def mapping(self, m):
        return m and node(*m[:4], self.attributes(m[4], "mapping"))

    def location(self, x):
        mapping, address, lines, attributes = x
        return node(self.mapping(mapping), address, lines, self.attributes(attributes, "location"))

    def once(self, make, what, *more):
        """Stacks and lists of attributes stand on many samples."""
        if (make, what) not in self.known:
            self.known[make, what] = make(self, what, *more)
        return self.known[make, what]

    def stack(self, stack):
        return node(*(self.once(Allowlist.location, x) for x in stack))

    def sample(self, sample):
        stack, attributes, link, values, timestamps = sample
        return (self.once(Allowlist.stack, stack), self.once(Allowlist.attributes, attributes, "sample"),
                link if {"trace_id", "span_id"} <= self.keys else None, values, timestamps)

    def resource(self, resource):
        pairs, dropped, schema_url, entities = resource
        left = self.pairs(pairs, "resource")
        keys = {k for k, _ in left}
        return left, dropped, schema_url, tuple(
            e for e in entities if e[2] and set(e[2]) | set(e[3]) <= self.keys & keys)

    def permit(self, profiles):
        """[(resource, scope, head, samples)] as otlp.profiles has them, without what is denied."""
        types = defaultdict(list)
        for resource, scope, head, _ in profiles:
            types[resource, scope].append(head[0])
        for resource, scope, head, samples in profiles:
            name, version, pairs, dropped, schema_url = scope
            own = (name, version, self.pairs(pairs, "scope", types[resource, scope]), dropped, schema_url)
            profile_id = head[5] if "profile_id" in self.keys else b""
            yield (self.resource(resource), own,
                   (*head[:5], profile_id, head[6], self.attributes(head[7], "profile")),
                   [self.sample(s) for s in samples])


def merged(profiles):
    """{what a sample belongs to: {place: sum of the values there, (timestamp, value): how often}}: the same before and
    after samples that became identical are merged."""
    found = {}
    for resource, scope, head, samples in profiles:
        own = found.setdefault((resource, scope, head), {})
        for stack, attributes, link, values, timestamps in samples:
            sums = own.setdefault((stack, attributes, link), {})
            counted = enumerate(values)
            if timestamps:
                paired = values if len(values) == len(timestamps) else [None] * len(timestamps)
                counted = ((at, 1) for at in zip(timestamps, paired))
            for place, value in counted:
                sums[place] = sums.get(place, 0) + value
    return {(*head, *sample): sums for head, own in found.items() for sample, sums in own.items()}
