# SPDX-License-Identifier: Apache-2.0
"""Makes OTLP and pprof messages, small or large, always the same ones for the same seed."""
import random

import otlp_collector_pb2 as collector
import pprof_pb2


class Maker:
    """Interns into the dictionary of one request, with its zero entries in place."""

    def __init__(self):
        self.message = collector.ExportProfilesServiceRequest()
        self.d = self.message.dictionary
        self.d.string_table.append("")
        self.places = {"": 0}
        for name in ("mapping", "location", "function", "link", "attribute", "stack"):
            getattr(self.d, name + "_table").add()

    def text(self, text):
        if text not in self.places:
            self.places[text] = len(self.d.string_table)
            self.d.string_table.append(text)
        return self.places[text]

    def attribute(self, key, value, unit=""):
        a = self.d.attribute_table.add(key_strindex=self.text(key), unit_strindex=self.text(unit))
        set_value(a.value, value)
        return len(self.d.attribute_table) - 1

    def function(self, name, filename="", system_name="", start_line=0):
        self.d.function_table.add(name_strindex=self.text(name), filename_strindex=self.text(filename),
                                  system_name_strindex=self.text(system_name), start_line=start_line)
        return len(self.d.function_table) - 1

    def mapping(self, filename, start=0x1000, limit=0x2000, attributes=()):
        self.d.mapping_table.add(memory_start=start, memory_limit=limit, filename_strindex=self.text(filename),
                                 attribute_indices=attributes)
        return len(self.d.mapping_table) - 1

    def location(self, functions, address=0, mapping=0, attributes=()):
        x = self.d.location_table.add(address=address, mapping_index=mapping, attribute_indices=attributes)
        for f in functions:
            x.lines.add(function_index=f, line=f * 10)
        return len(self.d.location_table) - 1

    def stack(self, locations):
        self.d.stack_table.add(location_indices=locations)
        return len(self.d.stack_table) - 1

    def link(self, trace_id, span_id):
        self.d.link_table.add(trace_id=trace_id, span_id=span_id)
        return len(self.d.link_table) - 1

    def resource(self, attributes=None, schema_url=""):
        rp = self.message.resource_profiles.add(schema_url=schema_url)
        rp.resource.SetInParent()
        for key, value in (attributes or {}).items():
            set_value(rp.resource.attributes.add(key=key).value, value)
        return rp

    def scope(self, rp, name="", version=""):
        sp = rp.scope_profiles.add()
        sp.scope.SetInParent()
        sp.scope.name, sp.scope.version = name, version
        return sp

    def profile(self, sp, kind=("cpu", "nanoseconds"), period_type=("cpu", "nanoseconds"), time=10 ** 18,
                attributes=()):
        p = sp.profiles.add(time_unix_nano=time, duration_nano=10 ** 9, period=10 ** 7,
                            attribute_indices=attributes)
        p.sample_type.type_strindex, p.sample_type.unit_strindex = self.text(kind[0]), self.text(kind[1])
        if period_type:
            p.period_type.type_strindex = self.text(period_type[0])
            p.period_type.unit_strindex = self.text(period_type[1])
        return p


def set_value(value, x):
    """A python value into an AnyValue."""
    if isinstance(x, bool):
        value.bool_value = x
    elif isinstance(x, int):
        value.int_value = x
    elif isinstance(x, float):
        value.double_value = x
    elif isinstance(x, bytes):
        value.bytes_value = x
    elif isinstance(x, str):
        value.string_value = x
    elif isinstance(x, dict):
        value.kvlist_value.SetInParent()
        for k, v in x.items():
            set_value(value.kvlist_value.values.add(key=k).value, v)
    else:
        value.array_value.SetInParent()
        for v in x:
            set_value(value.array_value.values.add(), v)


def request(seed=1, samples=50, profiles=1, resources=1, functions=40, service="checkout"):
    """An ordinary request: services with k8s attributes, CPU profiles, thread names on the samples."""
    rng = random.Random(seed)
    m = Maker()
    mapping = m.mapping("/usr/bin/" + service)
    fs = [m.function("%s.handler%d" % (service, i), "src/%s/h%d.go" % (service, i)) for i in range(functions)]
    ls = [m.location([f], 0x1000 + 16 * f, mapping) for f in fs]
    threads = [m.attribute("thread.name", "worker-%d" % i) for i in range(4)]
    seconds = [m.attribute("pid", 1000 + i) for i in range(4)]
    stacks = [m.stack([rng.choice(ls) for _ in range(rng.randint(1, 12))]) for _ in range(max(4, samples // 3))]
    for r in range(resources):
        rp = m.resource({"service.name": service if resources == 1 else "%s-%d" % (service, r), "service.version": "1.2",
                         "k8s.pod.name": "pod-%d" % rng.randrange(10 ** 6), "region": "eu-1"})
        sp = m.scope(rp, "otel/profiler", "1.0")
        for i in range(profiles):
            p = m.profile(sp, time=10 ** 18 + i + seed * 1000)
            for _ in range(samples):
                p.samples.add(stack_index=rng.choice(stacks), values=[rng.randint(1, 10 ** 6)],
                              attribute_indices=[rng.choice(threads), rng.choice(seconds)])
    return m.message


def pprof(seed=1, samples=30, functions=20, labels=("thread",), types=(("samples", "count"), ("cpu", "nanoseconds")),
          prefix="main"):
    """An ordinary pprof with labels and two sample types."""
    rng = random.Random(seed)
    p = pprof_pb2.Profile()
    table = {"": 0}
    p.string_table.append("")

    def text(s):
        if s not in table:
            table[s] = len(table)
            p.string_table.append(s)
        return table[s]

    for kind, unit in types:
        p.sample_type.add(type=text(kind), unit=text(unit))
    p.mapping.add(id=1, memory_start=0x400000, memory_limit=0x500000, filename=text("/usr/bin/app"),
                  has_functions=True)
    for i in range(1, functions + 1):
        p.function.add(id=i, name=text("%s.f%d" % (prefix, i)), system_name=text("%s.f%d" % (prefix, i)),
                       filename=text("src/f%d.go" % i), start_line=i)
        p.location.add(id=i, mapping_id=1, address=0x400000 + i).line.add(function_id=i, line=i + 1)
    for _ in range(samples):
        s = p.sample.add(location_id=[rng.randint(1, functions) for _ in range(rng.randint(1, 8))],
                         value=[rng.randint(1, 1000) for _ in types])
        for label in labels:
            s.label.add(key=text(label), str=text("v%d" % rng.randint(1, 3)))
    p.time_nanos, p.duration_nanos, p.period = 10 ** 18 + seed, 10 ** 9, 10 ** 7
    p.period_type.type, p.period_type.unit = text("cpu"), text("nanoseconds")
    return p


VALUE_TYPES = ["string_value", "bool_value", "int_value", "double_value", "bytes_value", "array_value",
               "kvlist_value"]


class RandomRequest:
    """Random requests that are valid and use every field."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.request = collector.ExportProfilesServiceRequest()

    def index(self, table):
        return self.random.randrange(max(1, len(getattr(self.request.dictionary, table))))

    def indices(self, table, most):
        return [self.index(table) for _ in range(self.random.randrange(most + 1))]

    def text(self):
        return "".join(self.random.choice("abc.é€😀 /") for _ in range(self.random.randrange(40)))

    def number(self):
        return self.random.choice([0, 1, -1, 300, 2**31, -2**63, 2**63 - 1])

    def value(self, v, depth=0):
        kind = self.random.choice(VALUE_TYPES[:5] if depth > 3 else VALUE_TYPES + ["string_value_strindex"])
        if kind == "array_value":
            v.array_value.SetInParent()
            for _ in range(self.random.randrange(4)):
                self.value(v.array_value.values.add(), depth + 1)
        elif kind == "kvlist_value":
            v.kvlist_value.SetInParent()
            for _ in range(self.random.randrange(4)):
                self.key_value(v.kvlist_value.values.add(), depth + 1)
        else:
            setattr(v, kind, {"string_value": self.text, "bool_value": lambda: True,
                              "int_value": self.number, "double_value": self.random.random,
                              "bytes_value": lambda: self.text().encode(),
                              "string_value_strindex": lambda: self.index("string_table")}[kind]())

    def key_value(self, kv, depth=0):
        if self.random.random() < .5:
            kv.key_strindex = self.index("string_table")
        else:
            kv.key = self.text()
        if self.random.random() < .9:
            self.value(kv.value, depth)

    def dictionary(self):
        d = self.request.dictionary
        d.string_table.extend(["", *(self.text() for _ in range(self.random.randrange(200)))])
        for table in ("attribute_table", "function_table", "mapping_table", "link_table",
                      "location_table", "stack_table"):
            getattr(d, table).add()
            for _ in range(self.random.randrange(150)):
                getattr(self, table)(getattr(d, table).add())

    def attribute_table(self, a):
        a.key_strindex, a.unit_strindex = self.index("string_table"), self.index("string_table")
        self.value(a.value)

    def function_table(self, f):
        f.name_strindex, f.system_name_strindex = self.index("string_table"), self.index("string_table")
        f.filename_strindex, f.start_line = self.index("string_table"), self.number()

    def mapping_table(self, m):
        m.memory_start, m.memory_limit = self.random.getrandbits(64), self.random.getrandbits(40)
        m.file_offset, m.filename_strindex = self.random.getrandbits(20), self.index("string_table")
        m.attribute_indices.extend(self.indices("attribute_table", 3))

    def link_table(self, l):
        if self.random.random() < .8:
            l.trace_id, l.span_id = self.random.randbytes(16), self.random.randbytes(8)

    def location_table(self, l):
        l.mapping_index, l.address = self.index("mapping_table"), self.random.getrandbits(64)
        l.attribute_indices.extend(self.indices("attribute_table", 3))
        for _ in range(self.random.randrange(4)):
            l.lines.add(function_index=self.index("function_table"), line=self.number(),
                        column=self.number())

    def stack_table(self, s):
        s.location_indices.extend(self.indices("location_table", 60))

    def profile(self, f):
        for kind in (f.sample_type, f.period_type):
            if self.random.random() < .8:
                kind.type_strindex, kind.unit_strindex = self.index("string_table"), 0
        f.time_unix_nano, f.duration_nano = self.random.getrandbits(64), self.random.getrandbits(64)
        f.period, f.dropped_attributes_count = self.number(), self.random.getrandbits(32)
        f.profile_id = self.random.choice([b"", self.random.randbytes(16)])
        f.original_payload = self.random.randbytes(50)
        f.attribute_indices.extend(self.indices("attribute_table", 4))
        for _ in range(self.random.randrange(30)):
            s = f.samples.add(stack_index=self.index("stack_table"), link_index=self.index("link_table"),
                              attribute_indices=self.indices("attribute_table", 5))
            s.values.extend([self.number() for _ in range(1 + self.random.randrange(3))])
            s.timestamps_unix_nano.extend([self.random.getrandbits(64)] * self.random.randrange(3))

    def make(self):
        self.dictionary()
        for _ in range(self.random.randrange(4)):
            r = self.request.resource_profiles.add(schema_url=self.text())
            r.resource.dropped_attributes_count = self.random.getrandbits(32)
            for _ in range(self.random.randrange(5)):
                self.key_value(r.resource.attributes.add())
            keys = [kv.key for kv in r.resource.attributes if kv.key]
            for _ in range(self.random.randrange(3) if keys else 0):
                r.resource.entity_refs.add(type=self.text(), schema_url=self.text(), id_keys=[self.random.choice(keys)],
                                           description_keys=[self.random.choice(keys)] * 2)
            for _ in range(self.random.randrange(3)):
                s = r.scope_profiles.add(schema_url=self.text())
                s.scope.name, s.scope.version = self.text(), self.text()
                self.key_value(s.scope.attributes.add())
                for _ in range(self.random.randrange(4)):
                    self.profile(s.profiles.add())
        return self.request.SerializeToString()


class RandomPprof:
    """A random profile that uses every field, with all liberties that writers take."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.p = pprof_pb2.Profile()
        self.p.string_table.append("")
        self.texts = ["", "a", "cpu", "samples", "count", "ns", "thread", "trace_id", "span_id",
                      "0123456789abcdef0123456789abcdef", "0123456789abcdef", "f" * 32,
                      "F" * 16, "0" * 32, "bytes", "\u00e9", "/usr/lib/x.so", "G/o-_/id/9"]

    def text(self, empty=True):
        """An index; the same text may stand in the table more than once, the empty one too."""
        r = self.random
        if empty and r.random() < 0.2:
            return 0
        value = r.choice(self.texts if empty else self.texts[1:])
        if r.random() < 0.7 and value in self.p.string_table:
            return list(self.p.string_table).index(value)
        self.p.string_table.append(value)
        return len(self.p.string_table) - 1

    def index(self, value):
        if value not in self.p.string_table:
            self.p.string_table.append(value)
        return list(self.p.string_table).index(value)

    def number(self):
        return self.random.choice([0, 1, 2, 127, 128, 2**31, 2**63 - 1, -1, -(2**63)])

    def natural(self):
        return self.random.choice([0, 1, 4096, 2**32, 2**64 - 1])

    def ids(self, count):
        r = self.random
        return r.choice([lambda: list(range(1, count + 1)), lambda: [0] * count,
                         lambda: r.sample(range(1, 10 * count + 1), count),
                         lambda: [2**64 - 1 - i for i in range(count)]])()

    def label(self, label):
        r = self.random
        label.key = self.text()
        if r.random() < 0.5:
            label.str = self.text(empty=False)
        else:
            label.num = self.number()
            label.num_unit = self.text()

    def tables(self):
        r, p = self.random, self.p
        functions, mappings = self.ids(r.randrange(1, 8)), self.ids(r.randrange(1, 5))
        for i in functions:
            p.function.add(id=i, name=self.text(), system_name=self.text(), filename=self.text(),
                           start_line=self.number())
        for i in mappings:
            p.mapping.add(id=i, memory_start=self.natural(), memory_limit=self.natural(),
                          file_offset=self.natural(), filename=self.text(), build_id=self.text(),
                          has_functions=r.random() < .3, has_filenames=r.random() < .3,
                          has_line_numbers=r.random() < .3, has_inline_frames=r.random() < .3)
        for i in self.ids(r.randrange(1, 10)):
            location = p.location.add(id=i, address=self.natural(), is_folded=r.random() < .2)
            location.mapping_id = r.choice([0] + [m or n + 1 for n, m in enumerate(mappings)])
            for _ in range(r.randrange(4)):
                location.line.add(line=self.number(), column=self.number(), function_id=r.choice(
                    [0] + [f or n + 1 for n, f in enumerate(functions)]))

    def make(self):
        r, p = self.random, self.p
        self.tables()
        types = r.randrange(1, 5)
        for _ in range(types):
            p.sample_type.add(type=self.text(), unit=self.text())
        locations = [x.id or n + 1 for n, x in enumerate(p.location)]
        for _ in range(r.randrange(12)):
            sample = p.sample.add(location_id=r.choices(locations, k=r.randrange(6)),
                                  value=[self.number() for _ in range(types)])
            for _ in range(r.choice([0, 0, 1, 2, 5])):
                self.label(sample.label.add())
            if r.random() < .3:  # a Link, sometimes almost
                sample.label.add(key=self.index("trace_id"), str=self.index("%032x" % r.randrange(3)))
                sample.label.add(key=self.index("span_id"), str=self.index("%016x" % r.randrange(3)))
        for _ in range(r.randrange(3)):
            p.sample.extend(r.choices(p.sample) if p.sample else [])  # duplicates
        p.time_nanos, p.duration_nanos, p.period = self.number(), self.number(), self.number()
        p.drop_frames, p.keep_frames, p.doc_url = self.text(), self.text(), self.text()
        p.comment.extend(self.text() for _ in range(r.randrange(4)))
        if r.random() < .7:
            p.period_type.type, p.period_type.unit = self.text(), self.text()
        p.default_sample_type = r.choice([0, self.text(), r.choice(p.sample_type).type])
        return p
