# SPDX-License-Identifier: Apache-2.0
"""The independent reader: python3-protobuf resolves every index of a message and compares multisets of samples."""
import base64
import json
import struct
from collections import Counter

import otlp_collector_pb2 as collector
from google.protobuf import json_format

METHOD = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
Request = collector.ExportProfilesServiceRequest
Response = collector.ExportProfilesServiceResponse


def parse(data):
    message = Request()
    message.ParseFromString(data)
    return message


def framed(data):
    """Messages behind their lengths, as the file exporter and some recorders write them."""
    while data:
        (size,) = struct.unpack_from(">I", data)
        assert size <= len(data) - 4
        yield data[4:4 + size]
        data = data[4 + size:]


class Node:
    """A part of a profile, resolved. Equal ones are the same one, so that comparing and hashing two costs nothing: frames
    and stacks stand by the hundred thousand."""

    __slots__ = ("items",)
    all = {}

    def __iter__(self):
        return iter(self.items)

    def __getitem__(self, place):
        return self.items[place]

    def __len__(self):
        return len(self.items)

    def __repr__(self):
        return repr(self.items)


def node(*items):
    found = Node.all.get(items)
    if found is None:
        found = Node.all[items] = Node()
        found.items = items
    return found


def _ids_to_base64(node):
    """OTLP/JSON writes ids in hex where protobuf's JSON has base64."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if key in ("traceId", "spanId", "profileId"):
            node[key] = base64.b64encode(bytes.fromhex(value)).decode()
        elif isinstance(value, (dict, list)):
            _ids_to_base64(value)


def to_json(data):
    """A request in OTLP/JSON."""
    return json.dumps(_ids_to_hex(json_format.MessageToDict(parse(data))), separators=(",", ":")).encode()


def _ids_to_hex(node):
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if key in ("traceId", "spanId", "profileId"):
            node[key] = base64.b64decode(value).hex()
        elif isinstance(value, (dict, list)):
            _ids_to_hex(value)
    return node


def parse_json(line):
    """A request in OTLP/JSON; unknown names are errors."""
    node = json.loads(line)
    _ids_to_base64(node)
    return json_format.ParseDict(node, Request())


class Reader:
    """Resolves the indices of one message. Entry 0 of every table is the zero value, whatever stands there."""

    def __init__(self, message):
        self.message = message
        self.d = message.dictionary
        self.known = {}

    def once(self, resolve, index):
        """Resolved entries are compared often and made once."""
        if (resolve, index) not in self.known:
            self.known[resolve, index] = resolve(self, index)
        return self.known[resolve, index]

    def at(self, table, index):
        """Like other languages, and unlike python, a negative index is an error."""
        if index < 0:
            raise IndexError("%s[%d]" % (table, index))
        return getattr(self.d, table)[index]

    def text(self, index):
        return self.at("string_table", index) if index else ""

    def value(self, v):
        kind = v.WhichOneof("value")
        if kind == "string_value_strindex":
            return ("string_value", repr(self.text(v.string_value_strindex)))
        if kind == "array_value":
            return (kind, tuple(self.value(x) for x in v.array_value.values))
        if kind == "kvlist_value":
            return (kind, tuple((self.key(kv), self.value(kv.value)) for kv in v.kvlist_value.values))
        return (kind, repr(getattr(v, kind)) if kind else None)

    def key(self, kv):
        return self.text(kv.key_strindex) if kv.key_strindex else kv.key

    def pairs(self, kvs):
        """Of a resource or scope; the first of a repeated key counts."""
        seen = {}
        for kv in kvs:
            seen.setdefault(self.key(kv), self.value(kv.value))
        return frozenset(seen.items())

    def attribute(self, index):
        a = self.at("attribute_table", index)
        return self.text(a.key_strindex), (self.value(a.value), self.text(a.unit_strindex))

    def attributes(self, indices):
        seen = {}
        for key, value in (self.once(Reader.attribute, i) for i in indices if i):
            seen.setdefault(key, value)
        return frozenset(seen.items())

    def mapping(self, index):
        if not index:
            return None
        m = self.at("mapping_table", index)
        return node(m.memory_start, m.memory_limit, m.file_offset, self.text(m.filename_strindex),
                    self.attributes(m.attribute_indices))

    def function(self, index):
        if not index:
            return None
        f = self.at("function_table", index)
        return node(self.text(f.name_strindex), self.text(f.system_name_strindex), self.text(f.filename_strindex),
                    f.start_line)

    def location(self, index):
        if not index:
            return node(None, 0, (), frozenset())
        x = self.at("location_table", index)
        return node(self.once(Reader.mapping, x.mapping_index), x.address,
                    tuple((self.once(Reader.function, n.function_index), n.line, n.column) for n in x.lines),
                    self.attributes(x.attribute_indices))

    def stack(self, index):
        if not index:
            return node()
        return node(*(self.once(Reader.location, i) for i in self.at("stack_table", index).location_indices))

    def link(self, index):
        if not index:
            return None
        x = self.at("link_table", index)
        return (x.trace_id, x.span_id) if any(x.trace_id) or any(x.span_id) else None

    def kind(self, message, name):
        if not message.HasField(name):
            return None
        t = getattr(message, name)
        return (self.text(t.type_strindex), self.text(t.unit_strindex))

    def profile(self, p):
        return (self.kind(p, "sample_type"), self.kind(p, "period_type"), p.time_unix_nano, p.duration_nano,
                p.period, bytes(p.profile_id), p.dropped_attributes_count, self.attributes(p.attribute_indices))

    def sample(self, s):
        return (self.once(Reader.stack, s.stack_index), self.attributes(s.attribute_indices), self.link(s.link_index),
                tuple(s.values), tuple(s.timestamps_unix_nano))

    def each_profile(self):
        """(resource, scope, Profile): what it belongs to, resolved."""
        for rp in self.message.resource_profiles:
            r = rp.resource
            resource = (self.pairs(r.attributes), r.dropped_attributes_count, rp.schema_url,
                        tuple((e.schema_url, e.type, tuple(e.id_keys), tuple(e.description_keys))
                              for e in r.entity_refs))
            for sp in rp.scope_profiles:
                s = sp.scope
                scope = (s.name, s.version, self.pairs(s.attributes), s.dropped_attributes_count, sp.schema_url)
                for p in sp.profiles:
                    yield resource, scope, p


def samples(data):
    """The multiset of samples, each with all that it belongs to."""
    message = data if isinstance(data, Request) else parse(data)
    reader = Reader(message)
    found = Counter()
    for resource, scope, p in reader.each_profile():
        head = reader.profile(p)
        for s in p.samples:
            found[(resource, scope, head, reader.sample(s))] += 1
    return found


def all_samples(documents):
    """Those of all documents, in one multiset: to add multisets would copy the sum for each of many thousands."""
    found = Counter()
    for data in documents:
        found.update(samples(data))
    return found


def profiles(data):
    """The list of (resource, scope, profile head, samples in order)."""
    message = data if isinstance(data, Request) else parse(data)
    reader = Reader(message)
    return [(resource, scope, reader.profile(p), [reader.sample(s) for s in p.samples])
            for resource, scope, p in reader.each_profile()]


def count(data):
    return sum(samples(data).values())


TABLES = ("mapping", "location", "function", "link", "string", "attribute", "stack")


def _uses(message):
    """How often each entry of each table is referred to."""
    d, used = message.dictionary, {t: Counter() for t in TABLES}
    for rp in message.resource_profiles:
        for sp in rp.scope_profiles:
            for p in sp.profiles:
                used["attribute"].update(p.attribute_indices)
                for t in (p.sample_type, p.period_type):
                    used["string"].update((t.type_strindex, t.unit_strindex))
                for s in p.samples:
                    used["stack"][s.stack_index] += 1
                    used["link"][s.link_index] += 1
                    used["attribute"].update(s.attribute_indices)
    for s in d.stack_table:
        used["location"].update(s.location_indices)
    for x in d.location_table:
        used["mapping"][x.mapping_index] += 1
        used["function"].update(n.function_index for n in x.lines)
        used["attribute"].update(x.attribute_indices)
    for m in d.mapping_table:
        used["string"][m.filename_strindex] += 1
        used["attribute"].update(m.attribute_indices)
    for f in d.function_table:
        used["string"].update((f.name_strindex, f.system_name_strindex, f.filename_strindex))
    for a in d.attribute_table:
        used["string"].update((a.key_strindex, a.unit_strindex))
    return used


def smallest(message):
    """The size that the message would have with its most used entries first in every table. For one in which nothing stands
    twice or for nobody: profcheck.structure."""
    def cost(index):
        return 1 if index < 128 else 2 if index < 16384 else 3

    saved = 0
    for counter in _uses(message).values():
        counter.pop(0, None)
        ranked = sorted(counter.items(), key=lambda kv: -kv[1])
        saved += sum(n * (cost(index) - cost(rank + 1)) for rank, (index, n) in enumerate(ranked))
    return message.ByteSize() - saved
