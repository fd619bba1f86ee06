# SPDX-License-Identifier: Apache-2.0
"""What bench_peers.py measured, as the section of docs/BENCHMARKS.md, with the bars."""
import statistics

import report

THEIRS, OURS, POLICY = ("collector", "bare"), ("portcullis", "bare"), ("portcullis", "policy")
NAMES = {THEIRS: "Collector", OURS: "Portcullis", POLICY: "Portcullis, all policy",
         ("collector", "limited"): "Collector, limiter", ("portcullis", "limited"): "Portcullis, limiter"}
# A share of the load generator's own best above which a program may have been faster than we could see.
NEAR = .8

IDLE_MB_MAX, IDLE_CONNECTIONS_MB_MAX = 16, 64
CONNECTIONS_JUDGED, CONNECTIONS_BAR = (8, 64), 2.7

METHOD = """## What it costs

A load generator (`load.c`, on nghttp2) sends OTLP requests over gRPC to the program under test, which forwards them to a sink
(`sink.c`, on gRPC's C core). Both tools are the same for both programs. Their own maximum, without a program in between, is
given below. Connections are open before a burst begins, and stay open.

The program has one processor, and the tools have another. In a row, all programs run and receive the same bodies in turn, %d
times. Each burst lasts about a second and is sent as fast as the program accepts it. Its cost is the program's user and system
time until everything is delivered. All bodies of a set are different. All samples, timestamps and values of the input must be
counted at the sink, or the run fails. Samples that policy makes identical are merged, and the program counts them.

*bare*: OTLP in, OTLP out. *limiter*: `memory_limiter` and `resource`. *all policy*: these, an allow-list, PII detection and
`batch`; the Collector has none of the latter three for profiles. gzip: in and out. The five sets that must meet the required
values are real profiles with varied names, times and values. If their collection is not next to the checkout, synthetic
profiles are used and labelled "made" (`bodies.py`). A ratio is the Collector's CPU seconds per GB (uncompressed) divided by
those of Portcullis: the median of the repetitions (minimum–maximum)."""

NOTES = """The columns are: CPU seconds per GB; requests per second at saturation (by the longer of the time until all were accepted and
the program's own CPU time until all were delivered, because it has one processor); latency at half of the Collector's bare
saturation, median and 99th percentile, in ms; peak resident memory in MB; bytes out per byte in, on the wire; samples out per
sample in (the program counts merged samples); requests that were refused and sent again."""

CONNECTIONS = """The same bodies, bare, with a number of connections and of calls in flight on each. The columns are the program's CPU time per
request, requests per second, peak resident memory in MB, and requests that were refused and sent again. Connections come from
several addresses of the loopback interface, at most 64 from each. The sending queues have room for 100,000 requests, so
neither program refuses requests because the sink is too slow."""

HTTP = """Bodies that arrive over HTTP/1.1 on connections that stay open, with one request in flight on each, and leave over gRPC, with
gzip if they arrived with gzip. Neither program has a processor. The columns are as above."""

IDLE = """Resident memory with this number of connections open, after the preface and both sides' SETTINGS, without further traffic. The
figure per connection is the increase over the idle program."""


ZSTD_BAR = 8
ZSTD = """OTLP over HTTP/1.1 in and out (`otlp_http`): bodies arrive with gzip, on eight connections, and leave with zstd at the default
level of each program, to a sink that speaks HTTP (`sink_http.c`). Neither program has a processor. The last column is the cost
of the same requests in Portcullis when they leave without compression: inflating, decoding, collecting and both HTTP sides. The
wanted value would need less than that, even if zstd were free."""

KAFKA = """OTLP over gRPC in, exporter `kafka` out, to one topic for each program on the same broker: `otlp_proto`, `required_acks: all`, and
otherwise the defaults of each program. What the topics contain is read by a gateway, counted by the sink, and must be what was sent.
Neither program has a processor. Broker and reader run on the tools' processor. Portcullis compresses in its Kafka client, like the
Collector."""


def cost(figures):
    return statistics.median(b["cpu_gb"] for b in figures["bursts"])


def ratios(found, theirs, ours):
    return [t["cpu_gb"] / o["cpu_gb"] for t, o in zip(found[theirs]["bursts"], found[ours]["bursts"])]


def spread(values):
    return "%.2f (%.2f–%.2f)" % (statistics.median(values), min(values), max(values))


def median(figures, what):
    return statistics.median(b[what] for b in figures["bursts"])


def progress(bodies, direct, found):
    parts = ["%s %.2f s/GB, %.0f/s, %.0f MB" % (NAMES[way], cost(f), median(f, "rate"), f["peak"] / 1e6)
             for way, f in found.items()]
    parts += ["%s %s" % (NAMES[way], spread(ratios(found, THEIRS, way))) for way in (OURS, POLICY)]
    return "%s, %s (direct %.0f/s): %s" % (bodies.name, bodies.coding, direct["rate"], "; ".join(parts))


class Bars:
    """What must hold, and whether it does."""

    def __init__(self):
        self.rows, self.missed = [], []

    def add(self, what, measured, bar, ok):
        self.rows.append((what, measured, bar, "yes" if ok else "**no**"))
        if not ok:
            self.missed.append(what)

    def five(self, what, values, bar):
        middle, least = statistics.median(values), min(values)
        self.add(what, "%.2f, least %.2f" % (middle, least), "%g, none below %.2f" % (bar, bar * 2 / 3),
                 middle >= bar and least >= bar * 2 / 3)


def named_table(rows, bars):
    """The five sets that the bars are judged by."""
    named = {(b.name, b.coding): f for b, _, f in rows if not b.ladder}
    sizes = {b.name: b.mean for b, _, _ in rows if not b.ladder}
    columns = [("bare", "none", OURS, 3), ("all policy / bare", "none", POLICY, 2), ("gzip, bare", "gzip", OURS, 7),
               ("gzip, all policy / bare", "gzip", POLICY, None)]
    yield from report.table(["Set", "Mean KB", *(c[0] for c in columns)], [
        [name, "%.0f" % (size / 1e3), *(spread(ratios(named[name, coding], THEIRS, way)) for _, coding, way, _ in columns)]
        for name, size in sizes.items()])
    for what, coding, way, bar in columns:
        if bar and sizes:
            bars.five("Five sets, %s: times cheaper" % what,
                      [statistics.median(ratios(named[name, coding], THEIRS, way)) for name in sizes], bar)


def ladder_table(rows, bars):
    limited = [(who, "limited") for who in ("collector", "portcullis")]
    columns = [(THEIRS, OURS), limited, (limited[0], POLICY), (THEIRS, POLICY)]
    ladder = [(b, f) for b, _, f in rows if b.ladder]
    yield from report.table(
        ["Made eBPF agent", "Coding", "bare / bare", "limiter / limiter", "limiter / all policy", "bare / all policy"],
        [[b.name, b.coding, *(spread(ratios(f, *pair)) for pair in columns)] for b, f in ladder], 2)
    for b, f in ladder:
        bar = {"9 KB": 2.5, "300 KB": 3.9}.get(b.name) if b.coding == "none" else None
        if bar:
            value = statistics.median(ratios(f, THEIRS, OURS))
            bars.add("%s, bare: times cheaper" % b.name, "%.2f" % value, "%g" % bar, value >= bar)


def notes_table(rows):
    for b, _, found in rows:
        for way, f in found.items():
            late = f.get("latency")
            yield [b.name, b.coding, NAMES[way], "%.2f" % cost(f), "%.0f" % median(f, "rate"),
                   "%.1f / %.1f" % (late["p50_ms"], late["p99_ms"]) if late else "", "%.0f" % (f["peak"] / 1e6),
                   "%.3f" % median(f, "out"), "%.3f" % median(f, "samples"), "%d" % sum(x["refused"] for x in f["bursts"])]


def tools_table(rows):
    for b, direct, found in rows:
        best = max(median(f, "rate") for f in found.values())
        yield [b.name, b.coding, "%.0f" % direct["rate"], "%.2f" % direct["cpu_gb"], "%.0f" % best,
               "%.2f" % (best / direct["rate"]) + (" (near the tools' best)" if best > NEAR * direct["rate"] else "")]


def idle_table(rows, bars):
    def of(kind, what):
        return [v for _, _, found in rows for way, f in found.items() if way[0] == kind for v in f[what]]
    idle = {kind: statistics.median(of(kind, "idle")) / 1e6 for kind in ("collector", "portcullis")}
    yield from report.table(["", "CPU from start to ready, ms", "Resident when idle, MB"], [
        [name, "%.0f (%.0f–%.0f)" % (statistics.median(start), min(start), max(start)), "%.1f" % idle[kind]]
        for kind, name in (("collector", "Collector"), ("portcullis", "Portcullis"))
        for start in [[1e3 * v for v in of(kind, "start")]]])
    bars.add("Resident when idle, MB", "%.1f" % idle["portcullis"], "%g" % IDLE_MB_MAX, idle["portcullis"] <= IDLE_MB_MAX)


def other_bars(rows, bars):
    worst = max((f[way]["peak"] / f[THEIRS]["peak"], b.name, b.coding)
                for b, _, f in rows for way in f if way[0] == "portcullis")
    bars.add("Peak resident, worst row (%s, %s): share of the Collector's" % worst[1:], "%.2f" % worst[0], "1",
             worst[0] <= 1)
    zipped = [(median(f[OURS], "out") / median(f[THEIRS], "out"), b.name) for b, _, f in rows if b.coding == "gzip"]
    if zipped:
        most, name = max(zipped)
        bars.add("Bytes out, gzip, worst row (%s): share of the Collector's" % name, "%.2f" % most, "1.12", most <= 1.12)


# ---- by connections

def shape(connections, calls):
    return "%s × %d" % ("{:,}".format(connections), calls // connections)


def connection_progress(bodies, connections, calls, found):
    per_request = ["%s %.0f µs a request, p50 %.1f ms, %d refused" % (
        NAMES[way], 1e6 * median(f, "cpu_request"), median(f, "p50_ms"), sum(b["refused"] for b in f["bursts"]))
        for way, f in found.items()]
    return "%s, %s: %s: %s" % (bodies.name, shape(connections, calls), spread(ratios(found, THEIRS, OURS)), "; ".join(per_request))


def request_figures(figures):
    return ["%.0f" % (1e6 * median(figures, "cpu_request")), "%.0f" % median(figures, "rate"), "%.0f" % (figures["peak"] / 1e6),
            "%d" % sum(b["refused"] for b in figures["bursts"])]


def connections_table(rows, bars):
    head = ["µs a request", "Requests/s", "Peak", "Refused"]
    yield from report.table(
        ["Made eBPF agent", "Connections × calls", "bare / bare", *(NAMES[w] + ": " + h for w in (THEIRS, OURS) for h in head)],
        [[b.name, shape(n, c), spread(ratios(f, THEIRS, OURS)), *request_figures(f[THEIRS]), *request_figures(f[OURS])]
         for b, n, c, f in rows], 2)
    for b, n, c, f in rows:
        if b.name == "9 KB" and n in CONNECTIONS_JUDGED:
            value = statistics.median(ratios(f, THEIRS, OURS))
            bars.add("9 KB, bare, %s connections: times cheaper" % shape(n, c), "%.2f" % value, "%g" % CONNECTIONS_BAR,
                     value >= CONNECTIONS_BAR)


# ---- over HTTP

HTTP_BARS = {"protobuf": 3, "protobuf, gzip": 6, "JSON": 3}


def encoding(bodies):
    return "JSON" if bodies.media.endswith("json") else "protobuf, gzip" if bodies.zipped else "protobuf"


def http_progress(bodies, connections, found):
    return "HTTP, %s, %s" % (encoding(bodies), connection_progress(bodies, connections, connections, found))


def http_table(rows, bars):
    yield from report.table(
        ["Made eBPF agent", "Encoding", "Connections", "bare / bare",
         *(NAMES[w] + ": " + h for w in (THEIRS, OURS) for h in ("µs a request", "Requests/s", "Peak", "Refused"))],
        [[b.name, encoding(b), str(n), spread(ratios(f, THEIRS, OURS)),
          *(cell for way in (THEIRS, OURS) for cell in request_figures(f[way]))] for b, n, f in rows], 3)
    for kind, bar in HTTP_BARS.items():
        values = [statistics.median(ratios(f, THEIRS, OURS)) for b, _, f in rows if encoding(b) == kind]
        if values:
            bars.add("Over HTTP, %s, worst row: times cheaper" % kind, "%.2f" % min(values), "%g" % bar, min(values) >= bar)


# ---- other ways out

def out_progress(what, bodies, found):
    return "%s, %s: %s" % (bodies.name, what, "; ".join(
        [spread(ratios(found, THEIRS, OURS)), *("%s %.2f s/GB, %.0f/s" % (NAMES[w], cost(f), median(f, "rate")) for w, f in found.items())]))


def out_figures(found):
    return [cell for way in (THEIRS, OURS) for cell in (
        "%.2f" % cost(found[way]), "%.0f" % median(found[way], "rate"), "%.0f" % (found[way]["peak"] / 1e6))]


OUT_HEAD = ["bare / bare", *(NAMES[w] + ": " + h for w in (THEIRS, OURS) for h in ("CPU-s/GB", "Requests/s", "Peak, MB"))]


def zstd_lines(rows, bars):
    yield from ["### How many times cheaper: over HTTP, from gzip to zstd", "", *ZSTD.split("\n"), ""]
    yield from report.table(["Made eBPF agent", *OUT_HEAD, "Portcullis, nothing compressed: CPU-s/GB"], [
        [b.name, spread(ratios(f, THEIRS, OURS)), *out_figures(f), "%.2f" % cost(plain[OURS])] for b, f, plain in rows])
    worst = min((statistics.median(ratios(f, THEIRS, OURS)) for _, f, _ in rows), default=0)
    bars.add("Over HTTP, gzip in and zstd out, worst row: times cheaper", "%.2f" % worst, "%g" % ZSTD_BAR, worst >= ZSTD_BAR)
    yield ""


def kafka_lines(rows, bars):
    yield from ["### How many times cheaper: to Kafka", "", *KAFKA.split("\n"), ""]
    yield from report.table(["Made eBPF agent", "Compression", *OUT_HEAD], [
        [b.name, compression, spread(ratios(f, THEIRS, OURS)), *out_figures(f)] for b, compression, f in rows], 2)
    yield ""


def idle_connections_table(found, bars):
    yield from report.table(
        ["Connections", *("%s: %s" % (NAMES[w], what) for w in (THEIRS, OURS) for what in ("MB", "KB a connection"))],
        [["{:,}".format(n), *(cell for way in (THEIRS, OURS) for cell in (
            "%.1f" % (ways[way][1] / 1e6), "%.1f" % ((ways[way][1] - ways[way][0]) / n / 1e3)))] for n, ways in found.items()])
    most = max(found)
    resident = found[most][OURS][1] / 1e6
    bars.add("Resident with {:,} idle connections, MB".format(most), "%.1f" % resident, "%g" % IDLE_CONNECTIONS_MB_MAX,
             resident <= IDLE_CONNECTIONS_MB_MAX)


# ---- the page

def sets_lines(rows, bars):
    named, ladder, idle = (list(made(rows, bars)) for made in (named_table, ladder_table, idle_table))
    other_bars(rows, bars)
    yield from ["### How many times cheaper: five sets of bodies", "", *named, ""]
    yield from ["### How many times cheaper: by size, resources and way", "", *ladder, ""]
    yield from ["### Start and idleness", "", *idle, ""]
    yield from ["### Notes: absolute figures of this machine", "", *NOTES.split("\n"), ""]
    head = ["Set", "Coding", "Program", "CPU-s/GB", "Requests/s", "Latency", "Peak", "Out", "Samples", "Refused"]
    yield from [*report.table(head, list(notes_table(rows)), 3), ""]
    head = ["Set", "Coding", "Requests/s", "CPU-s/GB, both", "Most of a program", "Share"]
    yield from ["### The tools themselves: from the load generator straight into the sink", "",
                *report.table(head, list(tools_table(rows)), 2), ""]


def connections_lines(rows, bars):
    yield from ["### How many times cheaper: by connections", "", *CONNECTIONS.split("\n"), "", *connections_table(rows, bars), ""]


def http_lines(rows, bars):
    yield from ["### How many times cheaper: over HTTP", "", *HTTP.split("\n"), "", *http_table(rows, bars), ""]


def idle_lines(found, bars):
    yield from ["### Idle connections", "", *IDLE.split("\n"), "", *idle_connections_table(found, bars), ""]


def section(circumstances, found, repeats, minutes):
    """(lines, what missed its bar) of the parts that were measured."""
    bars = Bars()
    parts = {"sets": sets_lines, "connections": connections_lines, "http": http_lines, "idle": idle_lines, "zstd": zstd_lines, "kafka": kafka_lines}
    below = [line for part, measured in found.items() for line in parts[part](measured, bars)]
    lines = [*(METHOD % repeats).split("\n"), "", *circumstances, "- The run took %.0f minutes." % minutes, ""]
    lines += [*report.table(["Bar", "Measured", "Wanted", "Holds"], bars.rows), "", *below]
    return lines[:-1], bars.missed
