# SPDX-License-Identifier: Apache-2.0
"""One logical request in the messages of each generation of OTLP, and what must become of it in the current layout.

The messages are made by python-protobuf from the definitions of each release (tests/interop/proto/otlp_v*.proto). What must
become of them is written with the messages of the current release, by the rules of profile/otlp/bridge.h.
"""
import importlib
import random
from dataclasses import dataclass, field

import otlp_collector_pb2 as collector
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from harness import build

# What the gateway calls the generation -> the releases whose messages are made of it.
RELEASES = {"1.3": ["1_3"], "1.4": ["1_4", "1_5"], "1.6": ["1_6"], "1.7": ["1_7"], "1.8": ["1_8"], "1.9": ["1_9"], "1.10": ["1_10"]}
GENERATIONS = {release: generation for generation, releases in RELEASES.items() for release in releases}
OLD = [release for release, generation in GENERATIONS.items() if generation != "1.10"]
FLAGS = ("has_functions", "has_filenames", "has_line_numbers", "has_inline_frames")
TEMPORALITY = {0: None, 1: "delta", 2: "cumulative"}


@dataclass(frozen=True)
class Mapping:
    filename: str
    start: int = 0x1000
    limit: int = 0x9000
    offset: int = 0
    build_id: str = ""
    build_id_kind: int = 0
    flags: tuple = ()
    attributes: tuple = ()


@dataclass(frozen=True)
class Frame:
    lines: tuple  # of ((name, system name, file, start line), line, column); the innermost first
    address: int = 0
    mapping: Mapping = None
    folded: bool = False
    kind: str = ""
    attributes: tuple = ()


@dataclass
class Sample:
    stack: list
    values: list  # one for each type; or none
    attributes: tuple = ()  # of (key, value, unit)
    labels: tuple = ()  # of (key, string or number, unit)
    link: tuple = None
    timestamps: list = field(default_factory=list)


@dataclass
class Profile:
    types: list  # of (type, unit, temporality)
    samples: list
    period_type: tuple = ("cpu", "nanoseconds")
    period: int = 10 ** 7
    time: int = 10 ** 18
    duration: int = 10 ** 9
    id: bytes = b""
    dropped: int = 0
    default: int = 0
    comments: list = field(default_factory=list)
    drop_frames: str = ""
    keep_frames: str = ""
    attributes: tuple = ()


@dataclass
class Request:
    profiles: list
    resource: dict
    scope: str = "profiler"


def module(release):
    return collector if release == "1_10" else importlib.import_module("otlp_v%s_pb2" % release)


# ---- the messages of a generation

class Tables:
    """Interns into the tables of one message, each with its own name and zero entries or none."""

    def __init__(self, names, zero):
        self.tables, self.places = names, {}
        self.zero = zero
        if "string" in names and not names["string"]:
            names["string"].append("")
        for kind in names if zero else ():
            if kind not in ("string", "unit"):
                names[kind].add()

    def text(self, text):
        return self.intern("string", text, None) if text else 0

    def intern(self, kind, key, fill):
        place = (kind, repr(key))
        if place not in self.places:
            table = self.tables[kind]
            self.places[place] = len(table)
            if fill is None:
                table.append(key)
            else:
                fill(table.add())
        return self.places[place]


class Writer:
    """Writes requests of 1.4 to 1.7: each Profile has tables, or the request has."""

    per_profile, stacks, has_units, folded, zero = True, False, True, True, False
    mapping_fields = {"start": "memory_start", "limit": "memory_limit", "offset": "file_offset", "filename": "filename_strindex",
                      "attributes": "attribute_indices"}

    def __init__(self, release):
        self.release, self.proto = release, module(release)

    def request(self, logical):
        message = self.new_request()
        self.tables = None if self.per_profile else self.tables_of(message)
        rp = message.resource_profiles.add(schema_url="https://example.com/1")
        rp.resource.dropped_attributes_count = 3
        for key, value in logical.resource.items():
            build.set_value(rp.resource.attributes.add(key=key).value, value)
        sp = rp.scope_profiles.add(schema_url="https://example.com/2")
        sp.scope.name, sp.scope.version = logical.scope, "7"
        for profile in logical.profiles:
            self.profile(sp.profiles.add(), profile)
        return message.SerializeToString()

    def new_request(self):
        return self.proto.ProfilesData() if self.release == "1_6" else self.proto.ExportProfilesServiceRequest()

    def tables_of(self, owner):
        place = owner.dictionary if hasattr(owner, "dictionary") else owner
        names = {kind: getattr(place, kind + "_table") for kind in ("mapping", "location", "function", "link", "string", "attribute")}
        if self.stacks:
            names["stack"] = place.stack_table
        if self.has_units:
            names["unit"] = place.attribute_units
        return Tables(names, self.zero)

    def text(self, text):
        return self.tables.text(text)

    def attribute(self, key, value, unit=""):
        if unit:
            self.tables.intern("unit", key, lambda u: self.fill_unit(u, key, unit))

        def fill(a):
            a.key = key
            build.set_value(a.value, value)
        return self.tables.intern("attribute", (key, repr(value)), fill)

    def fill_unit(self, u, key, unit):
        u.attribute_key_strindex, u.unit_strindex = self.text(key), self.text(unit)

    def attributes(self, attributes):
        return [self.attribute(*a) for a in attributes]

    def mapping(self, m):
        def fill(x):
            x.memory_start, x.memory_limit, x.file_offset = m.start, m.limit, m.offset
            x.filename_strindex = self.text(m.filename)
            x.attribute_indices.extend(self.attributes(m.attributes))
            for flag in m.flags:
                setattr(x, flag, True)
        return self.tables.intern("mapping", m, fill)

    def function(self, f):
        def fill(x):
            x.name_strindex, x.system_name_strindex, x.filename_strindex = map(self.text, f[:3])
            x.start_line = f[3]
        return self.tables.intern("function", f, fill)

    def lines(self, table, lines):
        for function, line, column in lines:
            table.add(function_index=self.function(function), line=line, column=column)

    def location(self, frame):
        def fill(x):
            if frame.mapping:
                x.mapping_index = self.mapping(frame.mapping)
            x.address, x.is_folded = frame.address, frame.folded
            self.lines(x.line, frame.lines)
            x.attribute_indices.extend(self.attributes(frame.attributes))
        return self.tables.intern("location", frame, fill)

    def link(self, link):
        def fill(x):
            x.trace_id, x.span_id = link
        return self.tables.intern("link", link, fill)

    def value_type(self, message, kind):
        message.type_strindex, message.unit_strindex = self.text(kind[0]), self.text(kind[1])
        if len(kind) > 2 and kind[2]:
            message.aggregation_temporality = kind[2]

    def profile(self, message, p):
        if self.per_profile:
            self.tables = self.tables_of(message)
        for kind in p.types:
            self.value_type(message.sample_type.add(), kind)
        self.value_type(message.period_type, p.period_type)
        message.time_nanos, message.duration_nanos, message.period = p.time, p.duration, p.period
        message.profile_id, message.dropped_attributes_count = p.id, p.dropped
        message.comment_strindices.extend(map(self.text, p.comments))
        message.original_payload_format, message.original_payload = "canary-format", b"canary-payload"
        if hasattr(message, "default_sample_type_strindex"):
            message.default_sample_type_strindex = self.text(p.types[p.default][0]) if p.default else 0
        else:
            message.default_sample_type_index = p.default
        if self.release == "1_4":
            for key, value, _ in p.attributes:
                build.set_value(message.attributes.add(key=key).value, value)
        else:
            message.attribute_indices.extend(self.attributes(p.attributes))
        for s in p.samples:
            self.sample(message, message.sample.add(), s)

    def sample(self, profile, message, s):
        message.locations_start_index = len(profile.location_indices)
        message.locations_length = len(s.stack)
        profile.location_indices.extend(map(self.location, s.stack))
        message.value.extend(s.values)
        message.attribute_indices.extend(self.attributes(s.attributes))
        message.timestamps_unix_nano.extend(s.timestamps)
        if s.link:
            message.link_index = self.link(s.link)


class SharedTables(Writer):
    """1.6 and 1.7."""

    per_profile = False


class Experimental(Writer):
    """1.3: the container around pprof's messages with more fields."""

    def profile(self, container, p):
        container.profile_id, container.dropped_attributes_count = p.id, p.dropped
        container.start_time_unix_nano, container.end_time_unix_nano = p.time, p.time + p.duration
        container.original_payload_format, container.original_payload = "canary-format", b"canary-payload"
        for key, value, _ in p.attributes:
            build.set_value(container.attributes.add(key=key).value, value)
        message = container.profile
        self.tables = Tables({"mapping": message.mapping, "location": message.location, "function": message.function,
                              "link": message.link_table, "string": message.string_table, "attribute": message.attribute_table,
                              "unit": message.attribute_units}, False)
        # The index 0 of a mapping may not be on the wire, so no location can be without one.
        self.mapping(Mapping("", 0, 0))
        for kind in p.types:
            self.value_type(message.sample_type.add(), kind)
        self.value_type(message.period_type, p.period_type)
        message.time_nanos, message.duration_nanos, message.period = p.time, p.duration, p.period
        message.comment.extend(map(self.text, p.comments))
        message.drop_frames, message.keep_frames = self.text(p.drop_frames), self.text(p.keep_frames)
        message.default_sample_type = self.text(p.types[p.default][0]) if p.default else 0
        for s in p.samples:
            self.sample(message, message.sample.add(), s)

    def value_type(self, message, kind):
        message.type, message.unit = self.text(kind[0]), self.text(kind[1])
        if len(kind) > 2:
            message.aggregation_temporality = kind[2]

    def fill_unit(self, u, key, unit):
        u.attribute_key, u.unit = self.text(key), self.text(unit)

    def mapping(self, m):
        def fill(x):
            x.id, x.memory_start, x.memory_limit, x.file_offset = len(self.tables.tables["mapping"]), m.start, m.limit, m.offset
            x.filename, x.build_id, x.build_id_kind = self.text(m.filename), self.text(m.build_id), m.build_id_kind
            x.attributes.extend(self.attributes(m.attributes))
            for flag in m.flags:
                setattr(x, flag, True)
        return self.tables.intern("mapping", m, fill)

    def function(self, f):
        def fill(x):
            x.id = len(self.tables.tables["function"])
            x.name, x.system_name, x.filename = map(self.text, f[:3])
            x.start_line = f[3]
        return self.tables.intern("function", f, fill)

    def location(self, frame):
        def fill(x):
            x.id = len(self.tables.tables["location"])
            x.mapping_index = self.mapping(frame.mapping or Mapping("", 0, 0))
            x.address, x.is_folded, x.type_index = frame.address, frame.folded, self.text(frame.kind)
            self.lines(x.line, frame.lines)
            x.attributes.extend(self.attributes(frame.attributes))
        return self.tables.intern("location", frame, fill)

    def sample(self, profile, message, s):
        locations = list(map(self.location, s.stack))
        if len(s.stack) % 2:  # both forms
            message.location_index.extend(locations)
        else:
            message.locations_start_index = len(profile.location_indices)
            message.locations_length = len(s.stack)
            profile.location_indices.extend(locations)
        message.value.extend(s.values)
        message.attributes.extend(self.attributes(s.attributes))
        message.timestamps_unix_nano.extend(s.timestamps)
        message.stacktrace_id_index = self.text("canary-stacktrace-id")
        for key, value, unit in s.labels:
            if isinstance(value, str):
                message.label.add(key=self.text(key), str=self.text(value))
            else:
                message.label.add(key=self.text(key), num=value, num_unit=self.text(unit))
        if s.link:
            # Index 0 cannot be told from no link.
            self.link((b"\1" * 16, b"\1" * 8))
            message.link = self.link(s.link)


class Newer(Writer):
    """1.8, 1.9 and the current one; there is one type in a Profile."""

    per_profile, stacks, has_units, folded, zero = False, True, False, False, True

    def attribute(self, key, value, unit=""):
        def fill(a):
            a.key_strindex, a.unit_strindex = self.text(key), self.text(unit)
            build.set_value(a.value, value)
        return self.tables.intern("attribute", (key, repr(value), unit), fill)

    def mapping(self, m):
        def fill(x):
            x.memory_start, x.memory_limit, x.file_offset = m.start, m.limit, m.offset
            x.filename_strindex = self.text(m.filename)
            x.attribute_indices.extend(self.attributes(m.attributes))
        return self.tables.intern("mapping", m, fill)

    def location(self, frame):
        def fill(x):
            x.mapping_index = self.mapping(frame.mapping) if frame.mapping else 0
            x.address = frame.address
            self.lines(x.line if self.release == "1_8" else x.lines, frame.lines)
            x.attribute_indices.extend(self.attributes(frame.attributes))
        return self.tables.intern("location", frame, fill)

    def profile(self, message, p):
        (kind,) = p.types
        self.value_type(message.sample_type, kind if self.release == "1_8" else kind[:2])
        self.value_type(message.period_type, p.period_type)
        message.time_unix_nano, message.duration_nano, message.period = p.time, p.duration, p.period
        message.profile_id, message.dropped_attributes_count = p.id, p.dropped
        message.original_payload_format, message.original_payload = "canary-format", b"canary-payload"
        message.attribute_indices.extend(self.attributes(p.attributes))
        if self.release == "1_8":
            message.comment_strindices.extend(map(self.text, p.comments))
        for s in p.samples:
            self.sample(message, (message.sample if self.release == "1_8" else message.samples).add(), s)

    def sample(self, profile, message, s):
        locations = tuple(map(self.location, s.stack))
        message.stack_index = self.tables.intern("stack", locations, lambda x: x.location_indices.extend(locations)) if locations else 0
        message.values.extend(s.values)
        message.attribute_indices.extend(self.attributes(s.attributes))
        message.timestamps_unix_nano.extend(s.timestamps)
        message.link_index = self.link(s.link) if s.link else 0


def write(release, logical):
    """The bytes of a request in that release."""
    kind = {"1_3": Experimental, "1_4": Writer, "1_5": Writer, "1_6": SharedTables, "1_7": SharedTables}.get(release, Newer)
    return kind(release).request(logical)


# ---- what must become of it

def _true(key):
    return (key, True, "")


def _shared(total, timestamps):
    """The values of a sample that had one total for all of its timestamps."""
    count = len(timestamps)
    if not count:
        return [total]
    if total == count:
        return []
    each = abs(total) // count * (1 if total >= 0 else -1)
    return [total - each * (count - 1)] + [each] * (count - 1)


def _labels(labels):
    keys = {}
    for key, value, unit in labels:
        keys.setdefault(key, []).append((value, unit))
    for key, values in keys.items():
        if len(values) == 1:
            yield (key, *values[0])
        else:
            unit = next((u for v, u in values if not isinstance(v, str)), "")
            yield key, [v if isinstance(v, str) or u == unit else [v, u] for v, u in values], unit


def _current_mapping(m, release):
    if m is None:
        return None
    attributes = list(m.attributes) + [_true("pprof.mapping." + flag) for flag in m.flags]
    if release == "1_3" and m.build_id:
        kind = "htlhash" if m.build_id_kind else "go" if "/" in m.build_id else "gnu"
        attributes.append(("process.executable.build_id." + kind, m.build_id, ""))
    return Mapping(m.filename, m.start, m.limit, m.offset, attributes=tuple(attributes))


def _current_frame(f, release):
    attributes = list(f.attributes) + ([_true("pprof.location.is_folded")] if f.folded else [])
    if release == "1_3" and f.kind:
        attributes.append(("profile.frame.type", f.kind, ""))
    return Frame(f.lines, f.address, _current_mapping(f.mapping, release), attributes=tuple(attributes))


def _profiles(p, release):
    """One for each type, with the scope's attributes."""
    attributes = [(k, v, "" if release in ("1_3", "1_4") else u) for k, v, u in p.attributes]
    if p.comments:
        attributes.append(("pprof.profile.comment", p.comments, ""))
    if release == "1_3":
        attributes += [("pprof.profile." + k, v, "") for k, v in (("drop_frames", p.drop_frames), ("keep_frames", p.keep_frames)) if v]
    order = [p.default] + [i for i in range(len(p.types)) if i != p.default]
    scope = {"pprof.scope.default_sample_type": p.types[p.default][0],
             "pprof.scope.sample_type_order": order} if p.default else {}
    for i in order:
        temporality = TEMPORALITY[p.types[i][2]]
        own = attributes + ([("otlp.profile.aggregation_temporality", temporality, "")] if temporality else [])
        samples = [Sample([_current_frame(f, release) for f in s.stack],
                          _shared(s.values[i], s.timestamps) if s.values else [],
                          tuple(s.attributes) + tuple(_labels(s.labels) if release == "1_3" else ()), (), s.link, s.timestamps)
                   for s in p.samples]
        yield scope, Profile([p.types[i]], samples, p.period_type, p.period, p.time, p.duration, p.id, p.dropped, attributes=tuple(own))


def expected(release, logical):
    """The request in the current layout."""
    writer = Newer("1_10")
    message = writer.new_request()
    writer.tables = writer.tables_of(message)
    rp = message.resource_profiles.add(schema_url="https://example.com/1")
    rp.resource.dropped_attributes_count = 3
    for key, value in logical.resource.items():
        build.set_value(rp.resource.attributes.add(key=key).value, value)
    for profile in logical.profiles:
        sp, old = None, GENERATIONS[release] < "1.8" and GENERATIONS[release] != "1.10"
        if old:
            split = _profiles(profile, release)
        else:
            more = []
            if release == "1_8":
                more = ([("pprof.profile.comment", profile.comments, "")] if profile.comments else []) + (
                    [("otlp.profile.aggregation_temporality", TEMPORALITY[profile.types[0][2]], "")] if profile.types[0][2] else [])
            split = [({}, Profile(profile.types, profile.samples, profile.period_type, profile.period, profile.time, profile.duration,
                                  profile.id, profile.dropped, attributes=tuple(profile.attributes) + tuple(more)))]
        for attributes, p in split:
            if sp is None:
                sp = rp.scope_profiles.add(schema_url="https://example.com/2")
                sp.scope.name, sp.scope.version = logical.scope, "7"
                for key, value in attributes.items():
                    build.set_value(sp.scope.attributes.add(key=key).value, value)
            writer.profile(sp.profiles.add(), p)
    return message


# ---- requests that use everything that a release has

def logical(release, seed=1, samples=20, profiles=2):
    rng = random.Random(seed)
    old = GENERATIONS[release] in ("1.3", "1.4", "1.6", "1.7")
    units = release not in ("1_3", "1_4")

    def attributes(count):
        keys = rng.sample(["thread.name", "pid", "cpu", "deep", "size"], rng.randint(0, count))
        return tuple((k, {"thread.name": "worker-é-%d" % rng.randint(0, 3), "pid": rng.randint(0, 5), "cpu": rng.random() > .5,
                          "deep": ["a", {"b": [1, 2.5, b"\0\1"]}], "size": rng.randint(0, 3)}[k],
                      "bytes" if k == "size" else "") for k in keys)

    mappings = [Mapping("/usr/lib/lib%d.so" % i, 4096 * (i + 1), 4096 * (i + 2), i * 64,
                        ["a1b2c3d4", "aa/bb-c", "", "feedfeed"][i % 4] if release == "1_3" else "", int(i % 4 == 3),
                        tuple(rng.sample(FLAGS, rng.randint(0, 4))) if old else (), attributes(1)) for i in range(5)]
    functions = [("f%d" % i, "_Zf%d" % i if i % 2 else "", "src/%d.c" % (i % 7), i) for i in range(30)]
    frames = [Frame(tuple((rng.choice(functions), rng.randint(0, 500), rng.randint(0, 80)) for _ in range(rng.randint(0, 3))),
                    rng.getrandbits(40), rng.choice(mappings + ([] if release == "1_3" else [None])), old and rng.random() < .2,
                    rng.choice(["", "native", "kernel"]), attributes(1)) for _ in range(40)]
    types = [("samples", "count", 0), ("cpu", "nanoseconds", 1), ("alloc_space", "bytes", 2)]

    def sample(count, shape):
        stamps = [] if shape == "values" else [10 ** 18 + rng.randrange(10 ** 9) for _ in range(rng.randint(1, 4))]
        values = [rng.choice([rng.randint(0, 10 ** 6), len(stamps) or 1, -rng.randint(0, 99)]) for _ in range(count)]
        if stamps and not old:
            values = [rng.randint(1, 10 ** 6) for _ in stamps]
        if shape == "timestamps":
            values = []
        labels = (("tid", 7, ""), ("kind", "x", "")) + rng.choice([(), (("tid", 8, "threads"), ("kind", "y", ""))])
        link = (rng.randbytes(16), rng.randbytes(8)) if rng.random() < .3 else None
        return Sample([rng.choice(frames) for _ in range(rng.randint(0, 9))], values, attributes(3),
                      labels if rng.random() < .3 else (), link, stamps)

    def profile(i):
        count = rng.randint(1, 3) if old else 1
        kinds = rng.sample(types, count)
        if release in ("1_9", "1_10"):
            kinds = [k[:2] + (0,) for k in kinds]
        shape = rng.choice(["values", "both"] + (["timestamps"] if count == 1 else []))
        return Profile(kinds, [sample(count, shape) for _ in range(samples)], time=10 ** 18 + i, id=rng.randbytes(16),
                       dropped=rng.randint(0, 9), default=rng.randrange(count) if old else 0,
                       comments=["first é", "second"][:rng.randint(0, 2)] if old or release == "1_8" else [],
                       drop_frames="^drop$" if rng.random() < .5 else "", keep_frames="^keep$" if rng.random() < .5 else "",
                       attributes=tuple(a if units or a[2] == "" else a[:2] + ("",) for a in attributes(3)))

    return Request([profile(i) for i in range(profiles)], {"service.name": "checkout", "host.id": 7})


# ---- real requests

def renamed(release, body):
    """A request of 1.8 or 1.9 in the current messages, by the names of the fields. Its Profiles must have no comments and no
    temporality."""
    old = module(release).ExportProfilesServiceRequest.FromString(body)
    new = collector.ExportProfilesServiceRequest()
    _rename(old, new)
    return new


def _rename(old, new):
    for descriptor, value in old.ListFields():
        name = descriptor.name
        if descriptor.message_type is not None:
            name = {"sample": "samples", "line": "lines"}.get(name, name)
        if descriptor.message_type is None:
            if descriptor.label == descriptor.LABEL_REPEATED:
                getattr(new, name).extend(value)
            else:
                setattr(new, name, value)
        elif descriptor.label == descriptor.LABEL_REPEATED:
            for entry in value:
                _rename(entry, getattr(new, name).add())
        else:
            getattr(new, name).SetInParent()
            _rename(value, getattr(new, name))


def ordinary(seed=1, samples=600):
    """What profilers send: one type, stacks of 5 to 40 frames, a thread and a process, a timestamp."""
    rng = random.Random(seed)
    mappings = [Mapping("/usr/lib/lib%d.so" % i, 4096 * (i + 1), 4096 * (i + 2)) for i in range(8)]
    functions = [("service.package%d.Class.method%d" % (i % 9, i), "", "src/package%d/file.c" % (i % 9), i) for i in range(400)]
    frames = [Frame(((f, rng.randint(1, 999), 0),), rng.getrandbits(40), rng.choice(mappings)) for f in functions for _ in range(2)]
    stacks = [[rng.choice(frames) for _ in range(rng.randint(5, 40))] for _ in range(samples // 2)]
    return Request([Profile([("samples", "count", 0)], [
        Sample(rng.choice(stacks), [1], (("thread.name", "worker-%d" % rng.randint(0, 20), ""), ("pid", rng.randint(1, 30), "")), (), None,
               [10 ** 18 + rng.randrange(10 ** 9)]) for _ in range(samples)], id=rng.randbytes(16))], {"service.name": "checkout"})


def unpacked(release, body):
    """The same request from a writer that does not pack repeated numbers."""
    old = module(release)
    file = descriptor_pb2.FileDescriptorProto()
    old.DESCRIPTOR.CopyToProto(file)
    name = "ProfilesData" if release == "1_6" else "ExportProfilesServiceRequest"
    _unpack(file.message_type)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kind = message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(file.package + "." + name))
    return kind.FromString(body).SerializeToString()


def _unpack(messages):
    for message in messages:
        _unpack(message.nested_type)
        for f in message.field:
            if f.label == f.LABEL_REPEATED and f.type not in (f.TYPE_MESSAGE, f.TYPE_STRING, f.TYPE_BYTES):
                f.options.packed = False


NAMES_OF_1_8 = {"sample": "samples", "line": "lines"}


def with_names_of_today(node):
    """The JSON of 1.8, parsed; `line` is also a number in Line."""
    if isinstance(node, list):
        return [with_names_of_today(x) for x in node]
    if not isinstance(node, dict):
        return node
    return {NAMES_OF_1_8.get(k, k) if isinstance(v, list) else k: with_names_of_today(v) for k, v in node.items()}
