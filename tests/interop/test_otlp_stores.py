# SPDX-License-Identifier: Apache-2.0
"""OTLP to the stores that take it in today's layout: they read what we write. They resolve no references, and one that is
not there ends Parca, so what leaves has its texts inline and its Resource and Scope always."""
import time
from collections import Counter

import pytest

from harness import build as make
from harness import corpus, otlp, peers
from interop import gate, partners

GATEWAY = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}", max_recv_msg_size_mib: 64}}}
exporters:
  EXPORTER: {ENDPOINT, retry_on_failure: {enabled: false}}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [EXPORTER]}
"""
OUT = {  # the exporter, and its settings
    "grpc": ("otlp_grpc", 'endpoint: "127.0.0.1:{port:next}", tls: {insecure: true}'),
    "http": ("otlp_http", 'endpoint: "http://127.0.0.1:{port:next}"'),
    "http-json": ("otlp_http", 'endpoint: "http://127.0.0.1:{port:next}", encoding: json'),
}
NOW = time.time_ns() // 10 ** 9 * 10 ** 9
WINDOW = (NOW // 10 ** 6 - 100000, NOW // 10 ** 6 + 100000)


def moved(message, service):
    """To this hour, which stores want, and to a service of its own."""
    for rp in message.resource_profiles:
        others = [a for a in rp.resource.attributes if a.key != "service.name"]
        del rp.resource.attributes[:]
        rp.resource.attributes.extend(others)
        rp.resource.attributes.add(key="service.name").value.string_value = service
        for p in (p for sp in rp.scope_profiles for p in sp.profiles):
            by, p.time_unix_nano = NOW - p.time_unix_nano, NOW
            for s in p.samples:
                s.timestamps_unix_nano[:] = [t + by for t in s.timestamps_unix_nano]
    return message


def bodies():
    """{service: request}, made ones always, recorded ones where they are."""
    found = {"made-%d" % seed: make.request(seed, samples=60, profiles=2) for seed in range(4)}
    found["made-by-reference"] = make.request(9, samples=60)
    for rp in found["made-by-reference"].resource_profiles:
        strings = found["made-by-reference"].dictionary.string_table
        strings.extend(["region", "eu-1"])
        rp.resource.attributes.add(key_strindex=len(strings) - 2).value.string_value_strindex = len(strings) - 1
    for path in corpus.files("otlp/*-v111.pb"):
        found[path.stem] = otlp.parse(path.read_bytes())
    return {service: moved(message, service) for service, message in found.items()}


def of_service(message, service):
    copy = otlp.Request()
    copy.CopyFrom(message)
    return moved(copy, service)


BODIES = bodies()


def nanoseconds(message):
    """All CPU time in it."""
    strings = message.dictionary.string_table
    return sum((sum(s.values) or len(s.timestamps_unix_nano)) * (p.period if strings[p.sample_type.unit_strindex] == "count"
                                                                else 1)
               for rp in message.resource_profiles for sp in rp.scope_profiles for p in sp.profiles for s in p.samples)


def config(way):
    exporter, settings = OUT[way]
    return GATEWAY.replace("EXPORTER", exporter).replace("ENDPOINT", settings)


def send_all(store, ways=None):
    for way, (exporter, _) in OUT.items():
        if ways and way not in ways:
            continue
        with gate.gateway(config(way), next=store.port["http"]) as g, peers.Client(g.port["otlp"]) as client:
            for service, message in BODIES.items():
                client.send(of_service(message, "%s.%s" % (service, way)))
            gate.flushed(g, exporter)
            assert not g.total("otelcol_ledger_dropped_samples"), g.log()


def taking_otlp(fixture):
    """Each version that takes today's layout, for the fixture: the old ones have none, or an older one."""
    taking = [partner for partner in partners.versions(fixture) if partner.takes_otlp]
    return pytest.mark.parametrize(fixture, taking, indirect=True, scope="module", ids=lambda partner: partner.version)


@pytest.fixture(scope="module")
def full(pyroscope):
    send_all(pyroscope)
    return pyroscope


@taking_otlp("pyroscope")
@pytest.mark.parametrize("way", OUT)
@pytest.mark.parametrize("service", BODIES)
def test_pyroscope_has_all_cpu_time(full, service, way):
    labels = {"service_name": "%s.%s" % (service, way)}
    kinds = {row["__profile_type__"] for row in full.series(labels, *WINDOW)}
    assert sum(sum(full.values(kind, labels, *WINDOW).values()) for kind in kinds) == nanoseconds(BODIES[service])


@taking_otlp("pyroscope")
@pytest.mark.parametrize("way", OUT)
def test_pyroscope_has_what_was_sent_by_reference(full, way):
    (row, *_) = full.series({"service_name": "made-by-reference." + way}, *WINDOW)
    assert row["region"] == "eu-1"


# What the libraries of these stores have registered with grpc-go.
KNOWN = {"pyroscope": {"none", "gzip", "snappy"}, "parca": {"none", "gzip"}}


def dropped_with(store, compression):
    """{error: samples} of one request."""
    text = config("grpc").replace("retry_on_failure", "compression: %s, retry_on_failure" % compression)
    with gate.gateway(text, next=store.port["http"]) as g, peers.Client(g.port["otlp"]) as client:
        client.send(moved(make.request(3, samples=60), "grpc-" + compression))
        g.until(lambda: not g.total("otelcol_ledger_queued_samples"))
        error = '"error": "unknown_compression"' in g.log()
        return {"unknown_compression" if error else None: g.total("otelcol_ledger_dropped_samples")}


@taking_otlp("pyroscope")
@pytest.mark.parametrize("compression", ["none", "gzip", "zstd", "snappy"])
def test_pyroscope_over_grpc_with_each_compression(pyroscope, compression):
    known = compression in KNOWN["pyroscope"]
    assert dropped_with(pyroscope, compression) == ({None: 0} if known else {"unknown_compression": 60})


@taking_otlp("parca")
@pytest.mark.parametrize("compression", ["none", "gzip", "zstd", "snappy"])
def test_parca_over_grpc_with_each_compression(parca, compression):
    known = compression in KNOWN["parca"]
    assert dropped_with(parca, compression) == ({None: 0} if known else {"unknown_compression": 60})


# ---- Collector -> Portcullis -> Pyroscope

SENDER = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}"}}}}
exporters: {EXPORTERS}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [IDS]}}}
"""
STORED = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:{port:otlp}", include_metadata: true}
      http: {endpoint: "127.0.0.1:{port:http}", include_metadata: true}
processors:
  resource: {attributes: [{key: way, from_context: metadata.x-way, action: upsert}]}
exporters:
  pyroscope: {endpoint: "http://127.0.0.1:{port:store}"}
service:
  pipelines:
    profiles: {receivers: [otlp], processors: [resource], exporters: [pyroscope]}
"""
# {way: (exporter, the gateway's port, settings)}
WAYS = {"%s-%s" % (encoding, coding): ("otlp_http", "http", 'endpoint: "http://127.0.0.1:%%d", encoding: %s, compression: %s' % (
            encoding, coding))
        for encoding in ("proto", "json")
        for coding in ("none", "gzip", "zstd", "zlib", "deflate", "snappy", "x-snappy-framed", "lz4")}
WAYS |= {"grpc-" + coding: ("otlp_grpc", "otlp", 'endpoint: "127.0.0.1:%%d", tls: {insecure: true}, compression: %s' % coding)
         for coding in ("none", "gzip", "zstd", "snappy")}


def functions(message):
    """{(type, unit, names of the functions from the leaf): sum}"""
    found = Counter()
    for _, _, head, samples in otlp.profiles(message):
        for stack, _, _, values, _ in samples:
            found[(*head[0], *(function[0] for _, _, lines, _ in stack for function, _, _ in lines))] += sum(values)
    return found


@pytest.fixture(scope="module")
def ways(pyroscope, collector):
    """What was sent, on each of the ways."""
    message = moved(make.request(5, samples=60), "ways")
    with gate.gateway(STORED, store=pyroscope.port["http"]) as g:
        exporters = {"%s/%s" % (kind, way): settings % g.port[port] for way, (kind, port, settings) in WAYS.items()}
        text = ", ".join("%s: {%s, headers: {x-way: %s}}" % (name, settings, name.partition("/")[2])
                         for name, settings in exporters.items())
        with collector(SENDER.replace("EXPORTERS", text).replace("IDS", ", ".join(exporters))) as front, \
                peers.Client(front.port["otlp"]) as client:
            client.send(message)
            g.until(lambda: g.total("otelcol_ledger_in_samples") == len(WAYS) * otlp.count(message.SerializeToString()))
        gate.flushed(g, "pyroscope")
    return message


@taking_otlp("pyroscope")
@pytest.mark.parametrize("way", WAYS)
def test_a_collector_reaches_pyroscope_in_each_encoding_and_coding(pyroscope, ways, way):
    labels, found = {"service_name": "ways", "way": way}, Counter()
    for kind in {row["__profile_type__"] for row in pyroscope.series(labels, *WINDOW)}:
        for stack, number in pyroscope.values(kind, labels, *WINDOW).items():
            found[(*kind.split(":")[1:3], *(frame[0] for frame in stack))] += number
    assert found == functions(ways)


@taking_otlp("parca")
def test_parca_takes_all_and_stays_well(parca):
    """It stores wrong functions of it; they are not ours. It takes OTLP over gRPC only."""
    send_all(parca, ["grpc"])
    assert parca.process.popen.poll() is None and parca.profile_types()
