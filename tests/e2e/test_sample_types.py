# SPDX-License-Identifier: Apache-2.0
"""Selection by sample type, in a pipeline and for one destination: nothing of what is left out leaves, every sample is
accounted, and what stays is as it was."""
import pytest

from harness import build as make
from harness import ledger, otlp, peers, profcheck
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}}}}
processors:
  sample_types: {exclude: ["space:bytes"]}
  batch: {timeout: 50ms, send_batch_size: 1000000}
exporters:
  otlp_grpc/all: {endpoint: 127.0.0.1:ALL, tls: {insecure: true}}
  otlp_grpc/cpu: {endpoint: 127.0.0.1:CPU, tls: {insecure: true}, sample_types: {include: [cpu]}}
service:
  TENANT
  pipelines:
    profiles: {receivers: [otlp], processors: [sample_types, batch], exporters: [EXPORTERS]}
"""
TYPES = (("cpu", "nanoseconds"), ("wall", "nanoseconds"), ("space", "bytes"), ("space", "pages"))


def request(tenants=("x",)):
    """For each tenant, a resource with a Profile of ten samples of each type, with stacks of their own."""
    maker = make.Maker()
    for tenant in tenants:
        sp = maker.scope(maker.resource({"service.name": "cart", "tenant": tenant}))
        for kind in TYPES:
            profile = maker.profile(sp, kind=kind, attributes=[maker.attribute("otlp.profile.aggregation_temporality", "delta")])
            for i in range(10):
                stack = maker.stack([maker.location([maker.function("%s-%s-%d" % (*kind, i))])])
                profile.samples.add(stack_index=stack, values=[i + 1])
    return maker.message


def run(build, exporters, tenants=("x",)):
    with peers.Sink() as every, peers.Sink() as cpu:
        text = (CONFIG.replace("ALL", str(every.port)).replace("CPU", str(cpu.port)).replace("EXPORTERS", exporters)
                .replace("TENANT", "tenant: {attribute: tenant}" if len(tenants) > 1 else ""))
        with Gateway(build / "portcullis", text) as gateway, peers.Client(gateway.port["grpc"]) as client:
            client.send(request(tenants))
            wanted = {"otlp_grpc/all": 30, "otlp_grpc/cpu": 10}
            for name in exporters.split(", "):
                gateway.until(lambda: gateway.total("otelcol_ledger_out_samples", exporter=name) == wanted[name] * len(tenants))
            return every.received, cpu.received, ledger.rows(gateway.metrics())


def content(received):
    """{(type, unit): [values]} and all strings; each request keeps the rules of OTLP's checker."""
    found, strings = {}, set()
    for data in received:
        assert not list(profcheck.check(data))
        message = otlp.parse(data)
        table = message.dictionary.string_table
        strings |= set(table)
        for p in (p for r in message.resource_profiles for s in r.scope_profiles for p in s.profiles):
            kind = table[p.sample_type.type_strindex], table[p.sample_type.unit_strindex]
            found.setdefault(kind, []).extend(v for x in p.samples for v in x.values)
            keys = {table[message.dictionary.attribute_table[i].key_strindex] for i in p.attribute_indices}
            assert keys == {"otlp.profile.aggregation_temporality"}
    return found, strings


def balanced(rows):
    for labels, row in rows.items():
        assert sum(v if k in ledger.SOURCES else -v for k, v in row.items()) == 0, (labels, row)


@pytest.mark.parametrize("tenants", [("x",), ("red", "blue")])
@pytest.mark.parametrize("exporters", ["otlp_grpc/all, otlp_grpc/cpu", "otlp_grpc/cpu"])
def test_each_destination_gets_its_types_and_nothing_of_others(build, exporters, tenants):
    every, cpu, rows = run(build, exporters, tenants)
    n = len(tenants)
    balanced(rows)
    pipeline = rows[("pipeline", "profiles"),]
    assert (pipeline["in"], pipeline["passed"], pipeline["dropped"]) == (40 * n, 30 * n, 10 * n)
    selecting = rows[("exporter", "otlp_grpc/cpu"), ("pipeline", "profiles")]
    assert (selecting["entered"], selecting["out"], selecting["dropped"]) == (30 * n, 10 * n, 20 * n)
    found, strings = content(cpu)
    assert {k: sorted(v) for k, v in found.items()} == {TYPES[0]: sorted(list(range(1, 11)) * n)}
    assert not {s for s in strings if s.startswith(("wall", "space"))}
    if "all" in exporters:
        found, strings = content(every)
        assert set(found) == {TYPES[0], TYPES[1], TYPES[3]} and "bytes" not in strings
        assert not {s for s in strings if s.startswith("space-bytes")}
