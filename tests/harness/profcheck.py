# SPDX-License-Identifier: Apache-2.0
"""The rules of the profiling SIG's conformance checker, and those that the readers of stores add to them.

`structure` is what a writer answers for, whatever it was given: it must be empty for all that the gateway sends.
`contents` is what the sender said; the gateway invents nothing, so it may pass faults on and never add one.
"""
from harness import otlp

TABLES = ("mapping", "location", "function", "link", "string", "attribute", "stack")
# A reference is known by the name of its field, wherever it stands.
FIELDS = {"mapping_index": "mapping", "function_index": "function", "link_index": "link", "stack_index": "stack",
          "location_indices": "location", "attribute_indices": "attribute"}


def _table(field):
    return "string" if field.endswith("_strindex") else FIELDS.get(field)


def references(message):
    """(table, index) of every reference in a message and the messages within it, except the dictionary."""
    for field, value in message.ListFields():
        table = _table(field.name)
        if table:
            yield from ((table, i) for i in (value if field.label == field.LABEL_REPEATED else [value]))
        elif field.message_type and field.name != "dictionary":
            for child in value if field.label == field.LABEL_REPEATED else [value]:
                yield from references(child)


def _reached(message):
    """{table: indices}, of all that the profiles reach; an index out of bounds is reached too."""
    reached, ahead = {name: {0} for name in TABLES}, set(references(message))
    while ahead:
        table, index = ahead.pop()
        if index in reached[table]:
            continue
        reached[table].add(index)
        entries = getattr(message.dictionary, table + "_table")
        if table != "string" and 0 <= index < len(entries):
            ahead.update(references(entries[index]))
    return reached


def _dictionary(message):
    d = message.dictionary
    for name in TABLES:
        table = getattr(d, name + "_table")
        if not table or (table[0] if name == "string" else table[0].ByteSize()):
            yield "%s_table[0] is not the zero entry" % name
        # A sender may refer to an entry that says nothing, and a zero entry is not for that: there is another like it.
        plain = list(table) if name == "string" else [x.SerializeToString(deterministic=True) for x in table[1:]]
        if len(set(plain)) != len(plain):
            yield "equal entries in %s_table" % name
    for name, reached in _reached(message).items():
        size = len(getattr(d, name + "_table"))
        if min(reached) < 0 or max(reached) >= size:
            yield "a reference out of %s_table" % name
        if len(reached) < size:
            yield "%d entries of %s_table that nothing refers to" % (size - len(reached), name)
    for i, link in enumerate(d.link_table[1:], 1):
        if (len(link.trace_id), len(link.span_id)) != (16, 8):
            yield "link %d has ids of a wrong length" % i
    for i, stack in enumerate(d.stack_table):
        if 0 in stack.location_indices:
            yield "stack %d uses location 0" % i


def _key_twice(d, message):
    """In one attribute_indices list, anywhere."""
    holders = [*d.mapping_table, *d.location_table]
    for rp in message.resource_profiles:
        for sp in rp.scope_profiles:
            for p in sp.profiles:
                holders.append(p)
                holders.extend(p.samples)
    for holder in holders:
        keys = [d.attribute_table[i].key_strindex for i in holder.attribute_indices]
        if len(set(keys)) != len(keys):
            return True
    return False


def _profile(p):
    if p.original_payload or p.original_payload_format:
        yield "original_payload"
    if len(p.profile_id) not in (0, 16):
        yield "profile_id of a wrong length"
    if not all(s.stack_index for s in p.samples):
        yield "a sample uses stack 0"


def _tree(message):
    if not message.resource_profiles:
        yield "no resource_profiles"
    for rp in message.resource_profiles:
        if not rp.HasField("resource"):
            yield "a Resource is absent"
        if not rp.scope_profiles:
            yield "a resource without scopes"
        for kv in rp.resource.attributes:
            if kv.key_strindex or kv.value.WhichOneof("value") == "string_value_strindex":
                yield "a resource attribute by reference"
        for sp in rp.scope_profiles:
            if not sp.HasField("scope"):
                yield "a Scope is absent"
            if not sp.profiles:
                yield "a scope without profiles"
            for p in sp.profiles:
                yield from _profile(p)


def structure(data):
    """The faults of the writer, as texts."""
    message = data if isinstance(data, otlp.Request) else otlp.parse(data)
    wrong = [*_tree(message), *_dictionary(message)]
    if not any("out of" in fault for fault in wrong) and _key_twice(message.dictionary, message):
        wrong.append("a key twice in one list of attributes")
    return wrong


def _numbers(d):
    if any(m.memory_limit < m.memory_start or m.memory_start == m.memory_limit != 0 for m in d.mapping_table):
        yield "a mapping does not start before its limit"
    if any(n.line < 0 or n.column < 0 for x in d.location_table for n in x.lines):
        yield "a negative line or column"
    if any(f.start_line < 0 for f in d.function_table):
        yield "a negative start_line"


def _samples(p):
    end = p.time_unix_nano + p.duration_nano
    if not all(p.time_unix_nano <= t < end for s in p.samples for t in s.timestamps_unix_nano):
        yield "a timestamp outside of its profile"
    shapes = {(bool(s.values), bool(s.timestamps_unix_nano)) for s in p.samples}
    odd = any(len(s.values) != (len(s.timestamps_unix_nano) or 1) for s in p.samples if s.values)
    if len(shapes) > 1 or odd or (False, False) in shapes:
        yield "samples of another shape"


def contents(data):
    """The faults of the sender, as a set of texts."""
    message = data if isinstance(data, otlp.Request) else otlp.parse(data)
    return set(_numbers(message.dictionary)).union(*(
        _samples(p) for rp in message.resource_profiles for sp in rp.scope_profiles for p in sp.profiles))


def check(data):
    """All faults."""
    return structure(data) + sorted(contents(data))


def passed_on(sent, received):
    """What is wrong with `received`, both messages or lists of them, that the gateway has to answer for."""
    sent, received = ([x] if isinstance(x, (bytes, otlp.Request)) else x for x in (sent, received))
    came = set().union(*map(contents, sent))
    return [fault for data in received for fault in [*structure(data), *sorted(contents(data) - came)]]
