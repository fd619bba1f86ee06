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
        for name in ("mapping", "location", "function", "link", "attribute", "stack"):
            getattr(self.d, name + "_table").add()

    def text(self, text):
        if text in self.d.string_table:
            return list(self.d.string_table).index(text)
        self.d.string_table.append(text)
        return len(self.d.string_table) - 1

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
