# SPDX-License-Identifier: Apache-2.0
"""The connector `routing`: each Profile reaches the pipelines of its route and no other, fail-closed; nothing of another
route leaves with it; tenants stay apart; every sample is accounted."""
import subprocess

import grpc
import pytest

from harness import build as make
from harness import ledger, otlp, peers
from harness.durable import absent_sink
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}, include_metadata: true}}}
processors:
  allowlist: {keys: [service.name, deployment.environment, secret, thread.name]}
  allowlist/few: {keys: [service.name, deployment.environment]}
  batch: {timeout: 50ms, send_batch_size: 1000000}
exporters:
  otlp_grpc/red: {endpoint: 127.0.0.1:RED, tls: {insecure: true}, QUEUE}
  otlp_grpc/blue: {endpoint: 127.0.0.1:BLUE, tls: {insecure: true}}
  otlp_grpc/rest: {endpoint: 127.0.0.1:REST, tls: {insecure: true}}
connectors:
  routing:
    DEFAULT
    table:
TABLE
service:
  tenant: TENANT
  pipelines:
    profiles/in: {receivers: [otlp], processors: [allowlist], exporters: [routing]}
    profiles/red: {receivers: [routing], processors: [batch], exporters: [otlp_grpc/red]}
    profiles/blue: {receivers: [routing], processors: [allowlist/few, batch], exporters: [otlp_grpc/blue]}
    profiles/rest: {receivers: [routing], processors: [batch], exporters: [otlp_grpc/rest]}
"""
DEFAULT = "default_pipelines: [profiles/rest]"
BY_RESOURCE = """      - {condition: 'attributes["deployment.environment"] == "red"', pipelines: [profiles/red]}
      - {statement: 'route() where attributes["deployment.environment"] == "blue"', pipelines: [profiles/blue]}"""
BY_REQUEST = """      - {context: request, condition: 'request["x-color"] == "red"', pipelines: [profiles/red]}
      - {context: request, condition: 'request["x-color"] == "blue"', pipelines: [profiles/blue]}"""
BY_TENANT = """      - {tenants: [red], pipelines: [profiles/red]}
      - {tenants: [blue], pipelines: [profiles/blue]}"""
BY_TYPE = """      - {sample_types: [red], pipelines: [profiles/red]}
      - {sample_types: ['blue:count'], pipelines: [profiles/blue]}"""
COLORS = ("red", "blue", "green")
SAMPLES = 10


def request(colors, kinds=None):
    """A resource for each color, whose strings nobody else has; ten samples each."""
    maker = make.Maker()
    for number, color in enumerate(colors):
        rp = maker.resource({"service.name": "service-" + color, "deployment.environment": color, "secret": "canary-" + color})
        stack = maker.stack([maker.location([maker.function("function-" + color)])])
        profile = maker.profile(maker.scope(rp, "scope-" + color), kind=(kinds[number] if kinds else "cpu", "count"))
        for i in range(SAMPLES):
            profile.samples.add(stack_index=stack, values=[i + 1],
                                attribute_indices=[maker.attribute("thread.name", "%s-%d" % (color, i))])
    return maker.message


class Rig:
    def __init__(self, build, table, default=DEFAULT, tenant="{}", queue="retry_on_failure: {enabled: true}", red=None):
        self.sinks = {"red": red or peers.Sink().start(), "blue": peers.Sink().start(), "rest": peers.Sink().start()}
        text = (CONFIG.replace("DEFAULT", default).replace("TABLE", table).replace("TENANT", tenant).replace("QUEUE", queue))
        for name, sink in self.sinks.items():
            text = text.replace(name.upper(), str(sink.port))
        self.gateway = Gateway(build / "portcullis", text)

    def __enter__(self):
        self.gateway.__enter__()
        self.client = peers.Client(self.gateway.port["grpc"])
        return self

    def __exit__(self, *failure):
        self.client.close()
        self.gateway.__exit__(*failure)
        for sink in self.sinks.values():
            sink.stop()

    def settled(self, **samples):
        """Waits until each store has its samples; returns the checked rows of the ledger."""
        self.gateway.until(lambda: all(self.gateway.total("otelcol_ledger_out_samples", exporter="otlp_grpc/" + name)
                                       + self.gateway.total("otelcol_ledger_merged_samples", pipeline="profiles/" + name)
                                       == count for name, count in samples.items()))
        rows = ledger.check(self.gateway.metrics())
        crossing = rows[("exporter", "routing"), ("pipeline", "profiles/in")]
        assert crossing["out"] == sum(rows[("pipeline", "profiles/" + name),]["in"] for name in self.sinks)
        assert crossing["entered"] == crossing["out"] + crossing["dropped"]
        return rows

    def strings(self, name):
        return {s for data in self.sinks[name].received for s in otlp.parse(data).dictionary.string_table} | {
            a.value.string_value for data in self.sinks[name].received for r in otlp.parse(data).resource_profiles
            for a in r.resource.attributes}


def foreign(strings, color):
    return {s for s in strings for other in COLORS if other != color and other in s}


ROUTES = [
    (BY_RESOURCE, "{}", [(list(COLORS), None, None)]),
    (BY_REQUEST, "{}", [([c], None, [("x-color", c)]) for c in COLORS]),
    (BY_TENANT, "{}", [([c], None, [("x-scope-orgid", c)]) for c in COLORS]),
    (BY_TENANT, "{attribute: deployment.environment}", [(list(COLORS), None, None)]),
    (BY_TYPE, "{}", [(list(COLORS), COLORS, None)]),
]


@pytest.mark.threads
@pytest.mark.parametrize("table, tenant, sent", ROUTES, ids=["resource", "request", "tenant", "attribute", "type"])
def test_nothing_of_one_route_reaches_another(build, table, tenant, sent):
    with Rig(build, table, tenant=tenant) as rig:
        for _ in range(3):
            for colors, kinds, metadata in sent:
                rig.client.send(request(colors, kinds), metadata=metadata)
        rows = rig.settled(red=3 * SAMPLES, blue=3 * SAMPLES, rest=3 * SAMPLES)
        assert rows[("exporter", "routing"), ("pipeline", "profiles/in")]["dropped"] == 0
        for name, color in (("red", "red"), ("blue", "blue"), ("rest", "green")):
            assert "function-" + color in rig.strings(name)
            assert not foreign(rig.strings(name), color)
            # and the policy of each pipeline applies to it
            assert ("canary-" + color in rig.strings(name)) == (name != "blue")


def test_what_takes_no_route_is_dropped_and_counted(build):
    with Rig(build, BY_RESOURCE, default="") as rig:
        rig.client.send(request(COLORS))
        rows = rig.settled(red=SAMPLES, blue=SAMPLES)
        assert rows[("exporter", "routing"), ("pipeline", "profiles/in")]["dropped"] == SAMPLES
        assert rig.gateway.total("otelcol_ledger_dropped_samples", reason="unrouted", exporter="routing") == SAMPLES
        assert not any("green" in s for name in rig.sinks for s in rig.strings(name))


def test_an_attribute_that_the_policy_removed_takes_the_default_route(build):
    table = """      - {condition: 'attributes["removed"] == "red"', pipelines: [profiles/red]}"""
    with Rig(build, table, default="") as rig:
        message = request(["red"])
        make.set_value(message.resource_profiles[0].resource.attributes.add(key="removed").value, "red")
        rig.client.send(message)
        assert rig.settled(red=0)[("exporter", "routing"), ("pipeline", "profiles/in")]["dropped"] == SAMPLES


@pytest.mark.threads
def test_a_route_without_room_refuses_only_requests_that_take_it(build):
    queue = "sending_queue: {queue_size: 1, num_consumers: 1, block_on_overflow: true}"
    with absent_sink() as red, Rig(build, BY_RESOURCE, queue=queue, red=red) as rig:
        refused = 0
        while refused < 3:
            try:
                rig.client.send(request(["red"]), timeout=20)
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.UNAVAILABLE
                refused += 1
        for _ in range(5):
            rig.client.send(request(["blue"]))
        rig.settled(blue=5 * SAMPLES)


WRONG = [
    ("[]", "connectors::routing: `table` must have an entry"),
    ("[{condition: 'attributes[\"a\"] == 1'}]", "connectors::routing::table[0]: `pipelines` must name at least one pipeline"),
    ("[{pipelines: [profiles/out]}]", "at least one of `condition`, `statement`, `tenants` and `sample_types` must be set"),
    ("[{condition: 'IsMatch(attributes[\"a\"], \"x\")', pipelines: [profiles/out]}]",
     "connectors::routing::table[0]::condition: at character 1: expected attributes[\"key\"] or resource.attributes[\"key\"]; "
     "functions and other paths are not supported"),
    ("[{statement: 'delete_key(attributes, \"a\")', pipelines: [profiles/out]}]", "other statements are not supported"),
    ("[{context: metric, condition: 'name == \"x\"', pipelines: [profiles/out]}]", "connectors::routing::table[0]::context"),
    ("[{action: copy, tenants: [a], pipelines: [profiles/out]}]", "connectors::routing::table[0]::action"),
    ("[{sample_types: [':count'], pipelines: [profiles/out]}]", "sample_types[0]: must be a type"),
    ("[{tenants: [a], pipelines: [profiles/other]}]", "connectors::routing: a route names a pipeline that does not exist"),
    ("[{tenants: [a], pipelines: [profiles/in]}]", "or that does not have this connector among its receivers"),
]
CHECKED = """
receivers: {nop: }
exporters: {nop/out: }
connectors: {routing: {table: TABLE}}
service:
  pipelines:
    profiles/in: {receivers: [nop], exporters: [routing]}
    profiles/out: {receivers: [routing], exporters: [nop/out]}
"""


@pytest.mark.parametrize("table, error", WRONG)
def test_validate_reports_what_cannot_be_routed(build, table, error):
    done = subprocess.run([build / "portcullis", "validate", "--config", "yaml:" + CHECKED.replace("TABLE", table)],
                          capture_output=True, text=True)
    assert done.returncode == 1 and error in done.stderr
