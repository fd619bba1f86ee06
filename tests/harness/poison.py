# SPDX-License-Identifier: Apache-2.0
"""Requests that hold a canary at every place where text can stand, and at every place where only a hostile or broken
sender would put some."""
import otlp_collector_pb2 as collector
import otlp_common_pb2 as common
import pprof_pb2
from google.protobuf.descriptor import FieldDescriptor

from harness import build, canaries

BUILD_ID = "process.executable.build_id."

# The policy that these are made for. LINK and PROFILE are lists of IDs: where canaries.ids says so, [trace_id, span_id] and
# [profile_id], otherwise empty.
POLICY = """\
  allowlist:
    keys: [service.name, region, tier, note, size]
    key_patterns: ['^open\\..{1,24}$', 'part\\.[a-z]+']
    location: [process.executable.build_id.gnu, process.executable.build_id.go, trace_id, span_id]
    sample: [span_id]
    values: {tier: [gold, silver], size: ["5", MiB]}
    link: LINK
    profile: PROFILE
  pii: {number_keys: [note]}
"""


# ---- the wire: fields that are overwritten, fields that nobody knows


def field(number, data):
    return canaries.varint(number << 3 | 2) + canaries.varint(len(data)) + data


def unknown(c, message):
    """Fields of numbers that the protocol does not have."""
    kind = "unknown field of " + message.DESCRIPTOR.name
    return (field(1000, c.deny(kind).encode()) + canaries.varint(1001 << 3) + canaries.varint(c.deny_number(kind))
            + canaries.varint(1002 << 3 | 1) + c.deny(kind, 8).encode())


def overwritten(c, message, descriptor, shadows):
    """The same field with a canary, before the one that counts."""
    kind = "overwritten %s.%s" % (message.DESCRIPTOR.name, descriptor.name)
    tag = canaries.varint(descriptor.number << 3)
    if descriptor.name in shadows:
        return tag + canaries.varint(shadows[descriptor.name])
    if descriptor.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        return field(descriptor.number, c.deny(kind, 8 if descriptor.name == "span_id" else 16).encode())
    return b""


def overwritten_value(c):
    """Of AnyValue's oneof the last counts."""
    kind = "overwritten AnyValue."
    pair = field(1, c.deny(kind + "kvlist_value").encode())
    return (field(1, c.deny(kind + "string_value").encode()) + field(7, c.deny(kind + "bytes_value").encode())
            + field(6, field(1, pair + field(2, field(1, c.deny(kind + "kvlist_value").encode()))))
            + field(5, field(1, field(1, c.deny(kind + "array_value").encode()))))


def serialize(c, message, shadows):
    """The message's own fields, each singular one behind its overwritten twin, then the unknown ones."""
    out = b""
    if message.DESCRIPTOR.name == "AnyValue" and message.WhichOneof("value"):
        out += overwritten_value(c)
    for descriptor, value in message.ListFields():
        repeated = descriptor.label == FieldDescriptor.LABEL_REPEATED
        if descriptor.type == FieldDescriptor.TYPE_MESSAGE:
            for one in value if repeated else [value]:
                out += field(descriptor.number, serialize(c, one, shadows))
            continue
        if not repeated and not descriptor.containing_oneof:
            out += overwritten(c, message, descriptor, shadows)
        alone = type(message)()
        if repeated:
            getattr(alone, descriptor.name).extend(value)
        else:
            setattr(alone, descriptor.name, value)
        out += alone.SerializeToString()
    return out + unknown(c, message)


# ---- OTLP

class Poisoner:
    """Makes one request. by_reference: keys and strings stand in the string table."""

    def __init__(self, c, by_reference):
        self.c, self.by_reference = c, by_reference
        self.how = " by reference" if by_reference else " inline"
        self.m = build.Maker()
        self.d = self.m.d

    # values

    def set_text(self, value, text):
        if self.by_reference:
            value.string_value_strindex = self.m.text(text)
        else:
            value.string_value = text

    def pair(self, kv, key, text=None):
        """Sets the key, and the text as value; returns the AnyValue."""
        if not isinstance(kv, common.KeyValue):
            kv.key_strindex = self.m.text(key)
        elif self.by_reference:
            kv.key_strindex = self.m.text(key)
        else:
            kv.key = key
        if text is not None:
            self.set_text(kv.value, text)
        return kv.value

    def denied_attributes(self, new, site):
        """`new` makes an empty attribute at the site."""
        c, at = self.c, " at " + site + self.how
        deny = lambda what: c.deny(what + at)
        self.pair(new(), c.deny_key("denied key" + at), deny("value of a denied key"))
        self.pair(new(), "service.name.x", deny("value of a longer key than a permitted one"))
        self.pair(new(), "region\n", deny("value of a permitted key with a newline"))
        self.pair(new(), "Region", deny("value of a permitted key in capitals"))
        self.pair(new(), "unpart.door", deny("value of a key that a pattern matches in part"))
        self.pair(new(), "part.door.2", deny("value of a key that a pattern matches in part"))
        self.pair(new(), "open.door\n", deny("value of a key that a pattern matches up to a newline"))
        self.pair(new(), "open.mendme", deny("value of a key that is not UTF-8"))
        self.pair(new(), "tier", deny("value that `values` does not list"))
        self.pair(new(), "denied.bytes").bytes_value = deny("bytes of a denied key").encode()
        self.pair(new(), "denied.int").int_value = c.deny_number("number of a denied key" + at)
        self.pair(new(), "denied.double").double_value = c.deny_double("number of a denied key" + at)
        array = self.pair(new(), "denied.array").array_value
        self.set_text(array.values.add(), deny("array of a denied key"))
        self.pair(self.pair(new(), "denied.map").kvlist_value.values.add(), "region", deny("map of a denied key"))
        self.nested(self.pair(new(), "region"), at)

    def nested(self, value, at):
        """A permitted key whose value is a map with denied keys, also in an array in it."""
        c, values = self.c, value.kvlist_value.values
        self.pair(values.add(), c.deny_key("nested key" + at), c.deny("value of a nested key" + at))
        self.pair(values.add(), "service.name", c.permit("permitted nested value" + at))
        element = self.pair(values.add(), "region").array_value.values.add()
        self.pair(element.kvlist_value.values.add(), c.deny_key("key of a map in an array" + at),
                  c.deny("value of a map in an array" + at))
        self.pair(element.kvlist_value.values.add(), "region", c.permit("permitted value in an array" + at))
        self.pair(values.add(), "tier", c.deny("nested value that `values` does not list" + at))

    def bad_structure(self, new, site):
        """What is structural only with its grammar, at its site, without unit."""
        c, at = self.c, " at " + site + self.how
        rows = [*self.bad_build_ids(site),
                ("profile.frame.type", c.deny("unknown frame type" + at)),
                ("pprof.mapping.has_functions", c.deny("flag that is text" + at)),
                ("pprof.mapping.is_main", c.deny("flag that is text" + at)),
                ("pprof.location.is_folded", c.deny("flag that is text" + at)),
                ("pprof.scope.default_sample_type", c.deny("default type that is none of the scope's" + at)),
                ("pprof.profile.comment", c.deny("comment" + at)),
                ("pprof.profile.drop_frames", c.deny("drop_frames" + at))]
        for key, text in rows:
            self.pair(new(), key, text)
        order = self.pair(new(), "pprof.scope.sample_type_order").array_value.values
        order.add().int_value = c.deny_number("order of sample types that is none" + at)

    def bad_build_ids(self, site):
        """One of each kind, for a list has a key once: at mappings with a form that none has, elsewhere with a good one."""
        c, at = self.c, " at " + site + self.how
        word = lambda what, length=16: c.deny(what + at, length)
        if site != "mapping":
            yield BUILD_ID + "htlhash", word("build id at a wrong site").encode().hex()
        if site not in ("mapping", "location"):  # at locations the keys are permitted
            yield BUILD_ID + "go", "/".join(word("Go build id at a wrong site", 20) for _ in range(2))
            yield BUILD_ID + "gnu", word("build id at a wrong site", 20).encode().hex()

    def mapping_build_ids(self):
        """[[(key, text)]] for mappings: what is a build id, and what is none."""
        c, at = self.c, " at mapping" + self.how
        words = lambda what, length, count: "/".join(c.deny(what + at, length) for _ in range(count))
        hexed = lambda what, length: c.deny(what + at, length).encode().hex()
        good = "/".join(c.permit("Go build id" + at, 20) for _ in range(4))
        gnu, go, htl = BUILD_ID + "gnu", BUILD_ID + "go", BUILD_ID + "htlhash"
        return [
            [(gnu, c.permit("build id" + at, 20).encode().hex()), (htl, c.permit("htlhash" + at).encode().hex()), (go, good)],
            # z is 7a: eight bytes without a letter in their digits may be the number of a card.
            [(gnu, (c.permit("build id" + at, 7) + "z").encode().hex()), (go, words("Go build id of one part", 20, 1))],
            [(gnu, c.permit("build id" + at, 32).encode().hex()), (go, words("Go build id of three parts", 20, 3))],
            [(gnu, c.deny("build id that is not hex" + at)), (go, words("Go build id of short parts", 16, 2))],
            [(gnu, hexed("build id of a wrong length", 15)), (go, words("Go build id of five parts", 20, 5))],
            [(gnu, hexed("build id of a wrong length", 24)), (go, "/" + c.deny("build id that is a path" + at) + "/x")],
            [(htl, hexed("htlhash of a wrong length", 20)), (go, words("Go build id of long parts", 21, 2))],
            [(htl, c.deny("htlhash that is not hex" + at)),
             (go, words("Go build id of uneven parts", 16, 1) + "/" + words("Go build id of uneven parts", 24, 1))],
        ]

    def build_ids(self):
        """Mappings with them."""
        for pairs in self.mapping_build_ids():
            first = len(self.d.attribute_table)
            for key, text in pairs:
                self.pair(self.entry(), key, text)
            yield self.m.mapping("file", attributes=range(first, len(self.d.attribute_table)))

    def permitted_attributes(self, new, site):
        at = " at " + site + self.how
        self.pair(new(), "service.name" if site != "resource" else "open.name", self.c.permit("value" + at))
        self.pair(new(), "open.door", self.c.permit("value of a key that a pattern permits" + at))

    def entry(self):
        """An empty attribute of the dictionary."""
        return self.d.attribute_table.add()

    def listed(self, site, structure=True):
        """Indices of attributes for a site that refers to the dictionary."""
        first = len(self.d.attribute_table)
        self.denied_attributes(self.entry, site)
        self.permitted_attributes(self.entry, site)
        a = self.entry()
        self.pair(a, self.c.deny_key("denied key with unit at " + site + self.how), "x")
        a.unit_strindex = self.m.text(self.c.deny("unit of a denied key at " + site + self.how))
        a = self.entry()
        self.pair(a, "note", "fine")
        a.unit_strindex = self.m.text(self.c.permit("unit at " + site + self.how))
        a = self.entry()
        self.pair(a, "size", "5")
        a.unit_strindex = self.m.text(self.c.deny("unit that `values` does not list at " + site + self.how))
        if structure:
            self.bad_structure(self.entry, site)
            a = self.entry()
            self.pair(a, "profile.frame.type", "go")
            a.unit_strindex = self.m.text(self.c.deny("unit of a structural attribute at " + site + self.how))
        return [0, *range(first, len(self.d.attribute_table)), 0]

    # tables

    def orphans(self):
        """Entries of every table that only each other refer to; {field name: index} of them."""
        c, m = self.c, self.m
        word = lambda table: c.deny("orphan of %s_table" % table)
        a = m.attribute("region", word("attribute"), word("attribute"))
        function = m.function(word("function"), word("function"), word("function"))
        mapping = m.mapping(word("mapping"), attributes=[a])
        location = m.location([function], mapping=mapping, attributes=[a])
        return {"stack_index": m.stack([location]), "function_index": function, "mapping_index": mapping,
                "link_index": m.link(word("link").encode(), c.deny("orphan of link_table", 8).encode()),
                "string": m.text(word("string"))}

    def entry_zero(self):
        """What stands at index 0 of each table; a good sender has the zero value there."""
        c, m, d = self.c, self.m, self.d
        word = lambda table: m.text(c.deny("entry 0 of %s_table" % table))
        d.attribute_table[0].key_strindex = m.text("region")
        d.attribute_table[0].value.string_value = c.deny("entry 0 of attribute_table")
        d.attribute_table[0].unit_strindex = word("attribute")
        f = d.function_table[0]
        f.name_strindex, f.system_name_strindex, f.filename_strindex = (word("function") for _ in range(3))
        d.mapping_table[0].filename_strindex = word("mapping")
        d.link_table[0].trace_id = c.deny("entry 0 of link_table").encode()
        d.link_table[0].span_id = c.deny("entry 0 of link_table", 8).encode()
        shown = m.function(c.deny("entry 0 of location_table"))
        d.location_table[0].lines.add(function_index=shown)
        d.stack_table[0].location_indices.append(m.location([m.function(c.deny("entry 0 of stack_table"))]))
        d.string_table[0] = c.deny("entry 0 of string_table")

    def frames(self, site="frame"):
        """A location with everything; its texts must arrive."""
        c, m = self.c, self.m
        f = m.function(*(c.permit("function " + what + self.how) for what in ("name", "file", "system name")))
        mapping = m.mapping(c.permit("mapping file" + self.how), attributes=self.listed("mapping"))
        return m.location([f, 0], address=7, mapping=mapping, attributes=self.listed("location"))

    # resources

    def entities(self, resource):
        c, add = self.c, resource.entity_refs.add
        deny = lambda what: c.deny("%s of a denied entity" % what + self.how)
        key = lambda: c.deny_key("key of a denied entity" + self.how)
        add(schema_url=deny("schema"), type=deny("type"), id_keys=[key()], description_keys=[key()])
        add(schema_url=deny("schema"), type=deny("type"), id_keys=["service.name"], description_keys=[key()])
        add(schema_url=deny("schema"), type=deny("type"), id_keys=["tier", "note"])
        add(schema_url=deny("schema"), type=deny("type"))
        add(schema_url=c.permit("entity schema" + self.how), type=c.permit("entity type" + self.how),
            id_keys=["service.name"], description_keys=["region"])

    def resource(self):
        c = self.c
        rp = self.m.resource({}, schema_url=c.permit("resource schema" + self.how))
        new = rp.resource.attributes.add
        self.pair(new(), "service.name", c.permit("service.name" + self.how))
        self.denied_attributes(new, "resource")
        self.bad_structure(new, "resource")
        self.permitted_attributes(new, "resource")
        self.entities(rp.resource)
        return rp

    def scope(self, rp):
        c = self.c
        sp = self.m.scope(rp, c.permit("scope name" + self.how), c.permit("scope version" + self.how))
        sp.schema_url = c.permit("scope schema" + self.how)
        self.denied_attributes(sp.scope.attributes.add, "scope")
        self.bad_structure(sp.scope.attributes.add, "scope")
        self.permitted_attributes(sp.scope.attributes.add, "scope")
        return sp

    def id(self, what, length=16):
        return (self.c.permit if self.c.ids else self.c.deny)(what + self.how, length).encode()

    def link(self):
        return self.m.link(self.id("link"), self.id("link", 8))

    def profile(self, sp):
        c, m = self.c, self.m
        permit = lambda what: c.permit(what + self.how)
        p = m.profile(sp, (permit("sample type"), permit("sample unit")), (permit("period type"), permit("period unit")),
                      attributes=self.listed("profile"))
        p.profile_id = self.id("profile id")
        p.original_payload_format = c.deny("original_payload_format")
        p.original_payload = c.deny("original_payload").encode()
        self.samples(p)
        return p

    def samples(self, p):
        stack = self.m.stack([self.frames(), 0, *(self.m.location([], mapping=m) for m in self.build_ids())])
        p.samples.add(stack_index=stack, values=[1], link_index=self.link(), attribute_indices=self.listed("sample"))
        p.samples.add(stack_index=stack, values=[2, 3])
        p.samples.add(values=[4])
        p.samples.add(stack_index=stack, timestamps_unix_nano=[p.time_unix_nano + 1])

    # the message

    def bytes(self):
        shadows = self.orphans()
        shadows.update({name: shadows["string"] for name in (
            "name_strindex", "system_name_strindex", "filename_strindex", "type_strindex", "unit_strindex",
            "key_strindex")})
        self.entry_zero()
        return self.bad_key(serialize(self.c, self.m.message, shadows)) + self.second_dictionary()

    def bad_key(self, data):
        """A key that a pattern would permit, were it not corrected; python itself writes no invalid UTF-8."""
        return data.replace(b"open.mendme", b"open.mend\xffe")

    def second_dictionary(self):
        """Tables go on in another occurrence of the dictionary; nothing refers to these entries."""
        c, more = self.c, collector.ExportProfilesServiceRequest()
        more.dictionary.string_table.append(c.deny("second dictionary"))
        more.dictionary.attribute_table.add(key_strindex=self.m.text("region")).value.string_value = c.deny(
            "second dictionary")
        return more.SerializeToString()


def otlp(c, by_reference):
    """A request that is good, with canaries wherever they fit."""
    p = Poisoner(c, by_reference)
    p.profile(p.scope(p.resource()))
    return p.bytes()


def partly_bad(c, by_reference):
    """A good Profile, and three that are not: (bytes, how many bad)."""
    p = Poisoner(c, by_reference)
    sp = p.scope(p.resource())
    p.profile(sp)
    bad = p.m.profile(sp, kind=(c.deny("rejected sample type"), c.deny("rejected sample unit")))
    bad.samples.add(stack_index=10 ** 6, values=[1])
    link = p.m.link(c.deny("trace id of a wrong length", 15).encode(), b"12345678")
    bad = p.m.profile(sp, attributes=[p.m.attribute("region", c.deny("rejected profile"))])
    bad.samples.add(stack_index=1, link_index=link, values=[1])
    bad = p.m.profile(sp)
    bad.profile_id = c.deny("profile id of a wrong length", 15).encode()
    bad.samples.add(stack_index=1, values=[1])
    return p.bytes(), 3


def searches(detector, site):
    """Does the detector search strings of this site, if an operator wants it everywhere?"""
    return detector not in canaries.ROLES or site.startswith(("function", "system name")) or site == "mapping file"


def specimens(c, by_reference, make=canaries.specimens):
    """A valid specimen of each detector at every keyless site and in permitted values."""
    p = Poisoner(c, by_reference)
    detectors = make(c.random, c.word)
    for detector in detectors:
        def at(site):
            text, secret = make(c.random, c.word)[detector]
            word = c.permit("text beside PII at " + site + p.how)
            if not searches(detector, site):
                return word + " and nothing else"
            c.deny_text("%s at %s%s" % (detector, site, p.how), secret)
            return text.replace("WORD", word) if "WORD" in text else word + " " + text
        _specimens(p, at, detector, detectors)
    return p.m.message.SerializeToString()


def _specimens(p, at, detector, detectors):
    m = p.m
    rp = m.resource({}, schema_url=at("resource schema"))
    rp.resource.entity_refs.add(schema_url=at("entity schema"), type=at("entity type"), id_keys=["service.name"])
    sp = m.scope(rp, at("scope name"), at("scope version"))
    sp.schema_url = at("scope schema")
    for site, new in (("resource", rp.resource.attributes.add), ("scope", sp.scope.attributes.add)):
        p.pair(new(), "service.name", at(site + " value"))
        _values(p, at, new, site)
    rows = {}
    for site in ("profile", "sample", "location", "mapping"):
        first = len(p.d.attribute_table)
        a = p.entry()
        p.pair(a, "service.name", at(site + " value"))
        a.unit_strindex = m.text(at(site + " unit of a value"))
        _values(p, at, p.entry, site)
        rows[site] = range(first, len(p.d.attribute_table))
    if detector == "card":
        _ids(p, rows)
        number = int(detectors["card"][0])
        p.c.deny_text("card as a number", str(number))
        p.pair(rp.resource.attributes.add(), "note").int_value = number
    f = m.function(at("function name"), at("function file"), at("function system name"))
    mapping = m.mapping(at("mapping file"), attributes=rows["mapping"])
    stack = m.stack([m.location([f], mapping=mapping, attributes=rows["location"])])
    profile = m.profile(sp, (at("sample type"), at("sample unit")), (at("period type"), at("period unit")),
                        attributes=rows["profile"])
    profile.samples.add(stack_index=stack, values=[1], attribute_indices=rows["sample"])


def _ids(p, rows):
    """What looks like an id, with something to mask: all decimal, of another form, at another site."""
    def add(site, key, secret, text):
        p.pair(p.entry(), key, text)
        p.c.deny_text("%s at %s that is no id%s" % (key, site, p.how), secret)
        rows[site] = [*rows[site], len(p.d.attribute_table) - 1]

    find = lambda detector: canaries.specimens(p.c.random, p.c.word)[detector]
    for site, key in (("mapping", BUILD_ID + "gnu"), ("location", BUILD_ID + "gnu"), ("location", "span_id")):
        number = find("card")[0]
        add(site, key, number, number)
    for site, key in (("location", "trace_id"), ("sample", "span_id")):
        add(site, key, *reversed(find("bearer")))
    access = find("access_key")[0]
    add("location", BUILD_ID + "go", access, access + "/" + access)


def _values(p, at, new, site):
    p.pair(p.pair(new(), "region").kvlist_value.values.add(), "service.name", at(site + " nested value"))
    p.set_text(p.pair(new(), "open.array").array_value.values.add(), at(site + " array"))
    p.pair(new(), "open.bytes").bytes_value = at(site + " bytes").encode()


# ---- pprof

PPROF_TEXTS = ("type", "unit", "key", "str", "num_unit", "filename", "build_id", "name", "system_name", "drop_frames",
               "keep_frames", "default_sample_type", "doc_url")


def pprof(c, detectors=True):
    """A pprof that is good, with canaries wherever they fit."""
    p = pprof_pb2.Profile()
    p.string_table.append("")

    def text(word):
        p.string_table.append(word)
        return len(p.string_table) - 1

    permit, deny = (lambda what: text(c.permit("pprof " + what))), (lambda what: text(c.deny("pprof " + what)))
    p.sample_type.add(type=permit("sample type"), unit=permit("sample unit"))
    p.sample_type.add(type=permit("sample type"), unit=permit("sample unit"))
    p.period_type.type, p.period_type.unit, p.period = permit("period type"), permit("period unit"), 5
    p.time_nanos, p.duration_nanos = 10 ** 18, 10 ** 9
    p.mapping.add(id=1, memory_start=1, memory_limit=2, filename=permit("mapping file"),
                  build_id=text("%s/%s" % (c.deny("pprof Go build id"), c.deny("pprof Go build id"))))
    p.mapping.add(id=3, memory_start=3, memory_limit=4, filename=permit("mapping file"), build_id=deny("build id"))
    p.mapping.add(id=4, memory_start=5, memory_limit=6, filename=permit("mapping file"),
                  build_id=text(c.permit("pprof build id", 20).encode().hex()))
    p.function.add(id=1, name=permit("function name"), system_name=permit("function system name"),
                   filename=permit("function file"))
    for i in (1, 3, 4):
        p.location.add(id=i, mapping_id=i, address=i).line.add(function_id=1, line=3)
    p.mapping.add(id=2, filename=deny("orphan mapping"), build_id=deny("orphan build id"))
    p.function.add(id=2, name=deny("orphan function"), filename=deny("orphan function"))
    p.location.add(id=2, mapping_id=2).line.add(function_id=2)
    s = p.sample.add(location_id=[1, 3, 4], value=[1, 2])
    s.label.add(key=text(c.deny_key("pprof denied label")), str=deny("value of a denied label"))
    s.label.add(key=text(c.deny_key("pprof denied number label")), num=c.deny_number("pprof number of a denied label"),
                num_unit=deny("unit of a denied label"))
    for key, length in (("trace_id", 16), ("span_id", 8)):
        word = (c.permit if c.ids else c.deny)("pprof " + key, length)
        s.label.add(key=text(key), str=text(word.encode().hex()))
    s.label.add(key=text("region"), str=permit("label"))
    s.label.add(key=text("note"), num=5, num_unit=permit("label unit"))
    p.comment.append(deny("comment"))
    p.drop_frames, p.keep_frames = deny("drop_frames"), deny("keep_frames")
    p.doc_url, p.default_sample_type = deny("doc_url"), deny("default sample type")
    deny("orphan string")
    if detectors:
        _pprof_specimens(c, p, text)
    p.string_table[0] = c.deny("entry 0 of string_table of a pprof")
    shadow = deny("overwritten string")
    return serialize(c, p, dict.fromkeys(PPROF_TEXTS, shadow))


def _pprof_specimens(c, p, text):
    for detector in canaries.specimens(c.random, c.word):
        def at(site):
            whole, secret = canaries.specimens(c.random, c.word)[detector]
            if searches(detector, site):
                c.deny_text("%s at pprof %s" % (detector, site), secret)
            return text(whole)
        i = len(p.mapping) + 1
        p.function.add(id=i, name=at("function name"), system_name=at("system name"), filename=at("function file"))
        p.mapping.add(id=i, filename=at("mapping file"))
        p.location.add(id=i, mapping_id=i, address=i).line.add(function_id=i)
        s = p.sample.add(location_id=[i], value=[1, 1])
        s.label.add(key=text("region"), str=at("label"))


# ---- refused

def refused(c):
    """(name, bytes) of requests of which nothing may be taken."""
    good = otlp(c, True)
    yield "cut off", good[:len(good) * 3 // 5]
    yield "no protobuf", b"\x07" + c.deny("body of text").encode() * 10  # some words are unknown fields, and sound
    yield "only bad Profiles", _only_bad(c)
    yield "too deep", _deep(c)
    yield "broken gzip", b"\x1f\x8b\x08\x00" + c.deny("body after gzip's magic").encode()
    yield "broken zstd", b"\x28\xb5\x2f\xfd" + c.deny("body after zstd's magic").encode()
    yield "too large", field(1000, c.deny("too large a body").encode() * 70000)
    yield "too many tables", otlp(c, False) + field(2, field(5, c.deny("one of many dictionaries").encode())) * 200


def _only_bad(c):
    p = Poisoner(c, False)
    bad = p.m.profile(p.scope(p.resource()), attributes=[p.m.attribute(c.deny("rejected key"), c.deny("rejected value"))])
    bad.profile_id = c.deny("profile id of a wrong length", 15).encode()
    bad.samples.add(stack_index=-1, values=[1])
    return p.bytes()


def _deep(c):
    value = field(1, c.deny("deep value").encode())
    for _ in range(200):
        value = field(6, field(1, field(1, c.deny("deep key").encode()) + field(2, value)))
    return field(1, field(1, field(1, field(1, b"region") + field(2, value))))


def refused_pprofs(c):
    """(name, bytes)"""
    good = pprof(c, False)
    yield "empty", b""
    yield "cut off", good[:len(good) * 3 // 5]
    yield "text", b"--- heapz 1 --- " + c.deny("body of text").encode() * 4
    yield "dangling", good + field(2, b"\x08\xff\x01" + field(3, b"\x08\x7f"))
    yield "broken gzip", b"\x1f\x8b\x08\x00" + c.deny("body after gzip's magic").encode()
    yield "broken zstd", b"\x28\xb5\x2f\xfd" + c.deny("body after zstd's magic").encode()
    yield "too large", field(1000, c.deny("too large a body").encode() * 70000)
