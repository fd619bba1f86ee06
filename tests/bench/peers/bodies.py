# SPDX-License-Identifier: Apache-2.0
"""Request bodies for the bench: many different ones of a kind, the same for the same seed.

Made ones imitate what profilers send: an eBPF agent (timestamps, no values, thread and process on every sample, kernel
frames), Go's heap and CPU profiles, a JVM (deep stacks, long names). Every body belongs to another process of another
service: some frames are everybody's (kernel, runtime), the rest its own, so that merging bodies saves what it would in a
fleet and not more. Real ones are the corpus's, where it is present, each body with names, values and times of its own.

A set has more bodies than a batch of Portcullis can hold of them (8192 samples, 3 MiB), so that none meets its copy there.
"""
import copy
import random
import struct
import subprocess

from harness import build, corpus, otlp

WORDS = ("cart order price stock user token route batch frame shard quota index cache queue lease trace block chunk page "
         "event state group rule match score sample ledger invoice basket session upload replica tenant window").split()
VERBS = "get put load store parse merge flush apply encode decode handle resolve collect observe acquire release".split()
ORGANISATIONS = "acme globex initech umbrella hooli stark wayne cyberdyne".split()
KERNEL = ["%s%s_%s" % (p, v, n) for p in ("", "__", "do_", "__x64_sys_")
          for v in ("read", "write", "poll", "futex", "send", "map")
          for n in ("fault", "wait", "wake", "page", "slab", "queue")]
RUNTIME = ["runtime.%s%s" % (a, b) for a in ("gc", "malloc", "sched", "chan", "map", "find") for b in
           ("Drain", "Object", "Runnable", "assign", "send", "recv", "sweep", "mark")]


def camel(rng, count):
    return "".join(rng.choice(WORDS).title() for _ in range(count))


def go_frame(rng, service):
    package = "%s/%s" % (service, rng.choice(WORDS))
    name = rng.choice(("%s.(*%s).%s", "%s.%s.%s.func1")) % (package, camel(rng, 2), camel(rng, 2))
    return name, "%s@v1.%d.%d/%s_%s.go" % (
        package, rng.randrange(30), rng.randrange(9), rng.choice(WORDS), rng.choice(VERBS))


def jvm_frame(rng, service):
    package = service.replace("/", ".").replace("-", "") + "." + rng.choice(WORDS)
    kind = camel(rng, 3) + rng.choice(("", "", "$Builder", "$$Lambda.0x%012x" % rng.getrandbits(47)))
    return "%s.%s.%s%s" % (package, kind, rng.choice(VERBS), camel(rng, 1)), kind.split("$")[0] + ".java"


class Process:
    """One process with its functions, who calls whom, and their places in the dictionary of one request."""

    def __init__(self, maker, rng, functions, frame, depth, common=.3):
        self.m, self.rng, self.depth = maker, rng, depth
        self.service = "%s.example/%s-%s-%d" % (
            rng.choice(ORGANISATIONS), rng.choice(WORDS), rng.choice(WORDS), rng.randrange(1000))
        self.native = maker.attribute("profile.frame.type", "native")
        self.kernel = maker.attribute("profile.frame.type", "kernel")
        self.mapping = maker.mapping("/usr/bin/" + self.service.split("/")[1], 0x400000, 0x4000000, [
            maker.attribute("process.executable.build_id.gnu", "%040x" % rng.getrandbits(160))])
        self.frame, self.common, self.locations = frame, common, {}
        self.callees = [sorted(rng.sample(range(functions), min(functions, rng.randint(1, 6)))) for _ in range(functions)]
        self.roots = rng.sample(range(functions), min(functions, 12))

    def location(self, number):
        if number not in self.locations:
            self.locations[number] = self.new_location(number)
        return self.locations[number]

    def new_location(self, number):
        rng, m, frame = self.rng, self.m, self.frame
        shared = rng.random() < self.common
        if shared and rng.random() < .5:
            return m.location([m.function(rng.choice(KERNEL))], rng.getrandbits(23), 0, [self.kernel])
        name, file = (rng.choice(RUNTIME), "runtime/%s.go" % rng.choice(WORDS)) if shared else frame(rng, self.service)
        lines = [m.function(name, file, start_line=rng.randrange(900))]
        if rng.random() < .15:
            lines.insert(0, m.function(frame(rng, self.service)[0], file))
        return m.location(lines, 0x400000 + 64 * number + rng.randrange(64), self.mapping, [self.native])

    def stack(self):
        """A walk down the call graph, leaf first, often the same way."""
        at, walk = self.rng.choice(self.roots), []
        for _ in range(self.rng.randint(*self.depth)):
            walk.append(self.location(at))
            callees = self.callees[at]
            at = callees[min(int(self.rng.expovariate(1)), len(callees) - 1)]
        return self.m.stack(walk[::-1])


def attributes(rng, process):
    namespace, deployment = process.service.split("/")
    return {"service.name": process.service, "service.version": "1.%d.%d" % (rng.randrange(40), rng.randrange(10)),
            "k8s.namespace.name": namespace, "k8s.deployment.name": deployment, "k8s.pod.name": "%s-%010x-%05x" % (
                deployment, rng.getrandbits(40), rng.getrandbits(20)), "container.id": "%064x" % rng.getrandbits(256),
            "host.name": "node-%d.internal" % rng.randrange(500), "telemetry.sdk.language": "go"}


class Shape:
    """How requests of one kind are made. names: the share of the bytes that goes to functions and their names."""

    def __init__(self, frame, depth, names, kinds, labels, stamped):
        self.frame, self.depth, self.names = frame, depth, names
        self.kinds, self.labels, self.stamped = kinds, labels, stamped

    def request(self, rng, size, resources=1):
        m = build.Maker()
        functions = max(8, int(size * self.names / 150 / resources))
        for _ in range(resources):
            self.resource(m, rng, Process(m, rng, functions, self.frame, self.depth), size / resources, resources)
        return m.message

    def resource(self, m, rng, process, size, resources):
        rp = m.resource(attributes(rng, process))
        scope = m.scope(rp, "example/profiler", "0.%d" % rng.randrange(9))
        profiles = [m.profile(scope, kind, ("cpu", "nanoseconds"), 1763042778 * 10 ** 9 + rng.getrandbits(40))
                    for kind in self.kinds]
        tags = [[m.attribute(key, value(rng)) for _ in range(max(2, count // resources))]
                for key, value, count in self.labels]
        left = size - size * self.names
        while left > 0:
            stack = process.stack()
            left -= len(m.d.stack_table[stack].location_indices) * 1.6 + 4
            for _ in range(rng.choice((1, 1, 1, 2, 4))):
                left -= self.sample(rng, profiles, stack, tags)

    def sample(self, rng, profiles, stack, tags):
        """Into each profile; how many bytes that took."""
        indices = [rng.choice(t) for t in tags]
        before = profiles[-1].samples
        for p in profiles:
            s = p.samples.add(stack_index=stack, attribute_indices=indices)
            if self.stamped:
                s.timestamps_unix_nano.extend(
                    p.time_unix_nano + rng.randrange(10 ** 9) for _ in range(1 + (rng.random() < .1)))
            else:
                s.values.append(int(rng.paretovariate(.7) * 1000) % 10 ** 9)
        return len(profiles) * (before[-1].ByteSize() + 2)


THREAD = [("thread.name", lambda r: "%s-%d" % (r.choice(WORDS), r.randrange(64)), 24),
          ("thread.id", lambda r: r.randrange(1 << 22), 24), ("process.pid", lambda r: r.randrange(1 << 22), 2),
          ("cpu.logical_number", lambda r: r.randrange(64), 16),
          ("process.executable.name", lambda r: r.choice(WORDS), 2)]
LABELS = [("endpoint", lambda r: "/api/v1/%s/%s" % (r.choice(WORDS), r.choice(VERBS)), 12)]
HEAP = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
CPU = [("samples", "count"), ("cpu", "nanoseconds")]
EVENTS = [("samples", "count")]
MADE = {
    "made eBPF agent": Shape(go_frame, (4, 40), .35, EVENTS, THREAD, True),
    "made eBPF agent, new names": Shape(go_frame, (4, 40), .8, EVENTS, THREAD, True),
    "made Go heap": Shape(go_frame, (3, 32), .3, HEAP, [], False),
    "made Go CPU": Shape(go_frame, (3, 32), .4, CPU, LABELS, False),
    "made JVM": Shape(jvm_frame, (20, 90), .4, CPU, LABELS, False),
}


def made(name, size, count, resources=1, seed=1):
    """Requests of about this size."""
    rng = random.Random("%s %d %d %d" % (name, size, resources, seed))
    return [MADE[name].request(rng, size, resources).SerializeToString() for _ in range(count)]


# ---- real ones

FIXED = ("process.", "thread.", "profile.", "container.", "host.", "cpu", "service.", "samples", "nanoseconds", "count",
         "bytes", "pprof.", "alloc_", "inuse_", "wall", "telemetry.")


def rename(rng, m, share):
    """Gives a share of the strings an end of their own; keys, types and units stay."""
    for i, text in enumerate(m.dictionary.string_table):
        if len(text) > 5 and rng.random() < share and not text.startswith(FIXED):
            m.dictionary.string_table[i] = "%s%s%02x" % (text[:-2], rng.choice(WORDS)[:3], rng.randrange(256))


def renumber(rng, m):
    """New times, ids and values."""
    for rp in m.resource_profiles:
        for a in rp.resource.attributes:
            if len(a.value.string_value) > 12:
                a.value.string_value = "%s%06x" % (a.value.string_value[:-6], rng.getrandbits(24))
        for p in (p for sp in rp.scope_profiles for p in sp.profiles):
            p.time_unix_nano += rng.getrandbits(40)
            for s in p.samples:
                s.timestamps_unix_nano[:] = [t + rng.getrandbits(30) for t in s.timestamps_unix_nano]
                s.values[:] = [max(1, int(v * rng.uniform(.3, 3))) if v > 1000 else v for v in s.values]


def grow(rng, m, size):
    """More resources, on the same dictionary, with stacks that are crossed from its stacks."""
    stacks, first = m.dictionary.stack_table, [copy.deepcopy(rp) for rp in m.resource_profiles]
    known, now = len(stacks), m.ByteSize()
    while now < size:
        rp = copy.deepcopy(rng.choice(first))
        for s in (s for sp in rp.scope_profiles for p in sp.profiles for s in p.samples):
            one, other = (list(stacks[rng.randrange(1, known)].location_indices) for _ in range(2))
            if len(one) > 2 and rng.random() < .6:
                stacks.add(location_indices=one[:rng.randrange(1, len(one))] + other[-3:])
                s.stack_index = len(stacks) - 1
                now += stacks[-1].ByteSize() + 2
        m.resource_profiles.append(rp)
        now += rp.ByteSize() + 4


def varied(rng, messages, count, size=0, share=.3):
    for i in range(count):
        m = otlp.Request()
        m.CopyFrom(messages[i % len(messages)])
        rename(rng, m, share)
        grow(rng, m, size)
        renumber(rng, m)
        yield m.SerializeToString()


def converted(tool, path):
    """A pprof as the OTLP that Portcullis makes of it."""
    out = subprocess.run([tool, "sealed"], stdin=open(path, "rb"), capture_output=True, check=True).stdout
    skip = 4 + struct.unpack(">I", out[:4])[0]
    size = struct.unpack(">I", out[skip:skip + 4])[0]
    return otlp.parse(out[skip + 4:skip + 4 + size])


def real(tool):
    """{name: bodies} of five kinds from the corpus; empty where it is not present. tool: tests/support/pprof_tool."""
    rng = random.Random(7)
    read = lambda pattern: [otlp.parse(p.read_bytes()) for p in corpus.files(pattern)]
    pprofs = lambda *patterns: [converted(tool, p) for pattern in patterns for p in corpus.files("pprof/" + pattern)]
    agents, nodes = read("otlp/*elastic*-v111.pb"), read("otlp/*k8s?-v111.pb")
    if not agents or not nodes:
        return {}
    runtimes = pprofs("python*", "ruby*", "rust-cpu*8ab3*", "php*", "node*", "ebpf*", "julia*", "cairo*")
    return {
        "eBPF agent, 6 KB": list(varied(rng, agents, 1024)),
        "eBPF node, 60 KB": list(varied(rng, nodes, 128)),
        "eBPF node, 300 KB": list(varied(rng, nodes[-1:], 24, 300000)),
        "Go CPU and heap": list(varied(rng, pprofs("go-cpu-parca-series*", "go-heap-parca-heapseries*",
                                                   "go-heap-ddtracego-big*"), 192)),
        "other runtimes": list(varied(rng, runtimes, 96)),
    }
