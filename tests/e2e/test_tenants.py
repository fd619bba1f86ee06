# SPDX-License-Identifier: Apache-2.0
"""Tenants: where a request's tenant comes from, and that two never share anything on the way to a store."""
import base64
import time

import grpc
import pytest

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway
from harness.push import PushSink

CONFIG = """
extensions:
  basicauth: {htpasswd: {inline: "alice:secret"}}
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}}}}
  pprof: {server: {endpoint: 127.0.0.1:{port:http}}}
  pprof/auth: {server: {endpoint: 127.0.0.1:{port:auth}, auth: {authenticator: basicauth}}}
processors:
  batch: {timeout: 200ms, send_batch_size: 1000000}
  allowlist: {keys: [service.name, thread.name]}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:SINK, tls: {insecure: true}}
  pyroscope: {endpoint: http://127.0.0.1:PUSH}
service:
  extensions: [basicauth]
  tenant: TENANT
  pipelines:
    profiles: {receivers: [otlp, pprof, pprof/auth], processors: [allowlist, batch], exporters: [otlp_grpc, pyroscope]}
"""
CANARY = "canary-tenant-4711"


class Rig:
    def __init__(self, build, tenant, config=CONFIG):
        self.build, self.tenant, self.config = build, tenant, config

    def __enter__(self):
        self.sink, self.push = peers.Sink().start(), PushSink().start()
        text = (self.config.replace("TENANT", self.tenant).replace("SINK", str(self.sink.port))
                .replace("PUSH", str(self.push.port)))
        self.gateway = Gateway(self.build / "portcullis", text).__enter__()
        return self

    def __exit__(self, *error):
        self.gateway.__exit__(*error)
        self.sink.stop()
        self.push.stop()

    def grpc(self, service, **metadata):
        with peers.Client(self.gateway.port["grpc"]) as client:
            return client.send(recent(make.request(7, service=service)), metadata=list(metadata.items()))

    def http(self, service, port="http", **headers):
        profile = make.pprof(samples=10)
        profile.time_nanos = time.time_ns()
        return peers.post(self.gateway.port[port], profile.SerializeToString(), "/v1/pprof?service.name=" + service, headers)

    def stored(self, services):
        """{tenant: services} at Pyroscope, and the services of each batch at the OTLP store."""
        def found():
            tenants = {}
            for taken in list(self.push.taken):
                tenants.setdefault(taken.headers.get("X-Scope-OrgID"), set()).update(
                    labels["service_name"] for labels in map(dict, taken.label_lists))
            return tenants
        self.gateway.until(lambda: set().union(*found().values(), set()) >= set(services)
                           and set().union(*self.batches(), set()) >= set(services))
        return found()

    def batches(self):
        return [{a.value.string_value for r in otlp.parse(data).resource_profiles for a in r.resource.attributes
                 if a.key == "service.name"} for data in list(self.sink.received)]


def recent(request):
    for p in (p for r in request.resource_profiles for s in r.scope_profiles for p in s.profiles):
        p.time_unix_nano = time.time_ns()
    return request


def basic(user, password):
    return "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()


def values_of(received):
    return [v for data in received for r in otlp.parse(data).resource_profiles for s in r.scope_profiles for p in s.profiles
            for x in p.samples for v in x.values]


def strings_of(data):
    return set(otlp.parse(data).dictionary.string_table)


@pytest.mark.threads
def test_two_tenants_share_no_batch_and_no_dictionary(build):
    with Rig(build, "{}") as rig:
        for i in range(3):
            rig.grpc("red-%d" % i, **{"x-scope-orgid": "red"})
            rig.grpc("blue-%d" % i, **{"x-scope-orgid": "blue"})
            assert rig.http("none-%d" % i)[0] == 204
        names = {tenant: {"%s-%d" % (tenant, i) for i in range(3)} for tenant in ("red", "blue", "none")}
        assert rig.stored(set().union(*names.values())) == {"red": names["red"], "blue": names["blue"], None: names["none"]}
        for services in rig.batches():
            assert len({s.split("-")[0] for s in services}) == 1
        for data in rig.sink.received:
            assert sum(any(s.startswith(t) for s in strings_of(data)) for t in ("red", "blue", "none")) <= 1
        assert rig.gateway.total("otelcol_tenant_samples", tenant="red") == rig.gateway.total(
            "otelcol_tenant_samples", tenant="blue") > 0


def test_the_sources_take_precedence_in_order(build):
    with Rig(build, "{identity: username, attribute: team}") as rig:
        authorization = basic("alice", "secret")
        assert rig.http("of-identity", "auth", Authorization=authorization)[0] == 204
        assert rig.http("of-header", "auth", Authorization=authorization, **{"X-Scope-OrgID": "red"})[0] == 204
        assert rig.http("of-attribute&team=green")[0] == 204
        assert rig.http("of-header-too&team=green", **{"X-Scope-OrgID": "red"})[0] == 204
        assert rig.http("of-nobody")[0] == 204
        assert rig.stored({"of-identity", "of-header", "of-attribute", "of-header-too", "of-nobody"}) == {
            "alice": {"of-identity"}, "red": {"of-header", "of-header-too"}, "green": {"of-attribute"}, None: {"of-nobody"}}


@pytest.mark.threads
def test_each_resource_of_a_request_may_have_another_tenant(build):
    request = recent(make.request(3, resources=6, service="svc"))
    for i, resource in enumerate(request.resource_profiles):
        if i < 5:
            make.set_value(resource.resource.attributes.add(key="team").value, ("red", "blue")[i % 2])
    with Rig(build, '{header: "", attribute: team}') as rig:
        with peers.Client(rig.gateway.port["grpc"]) as client:
            client.send(request)
        stored = rig.stored({"svc-%d" % i for i in range(6)})
        assert stored == {"red": {"svc-0", "svc-2", "svc-4"}, "blue": {"svc-1", "svc-3"}, None: {"svc-5"}}
        assert sorted(map(sorted, rig.batches())) == sorted(map(sorted, stored.values()))
        # The policy has removed the attribute itself.
        assert all("team" not in strings_of(data) for data in rig.sink.received)
        sent = [v for r in request.resource_profiles for s in r.scope_profiles for p in s.profiles for x in p.samples
                for v in x.values]
        assert sum(values_of(rig.sink.received)) == sum(sent)
        rig.gateway.until(lambda: rig.gateway.balanced("profiles", "otlp_grpc"))


def test_who_must_have_a_tenant_and_has_none_is_refused(build):
    with Rig(build, "{required: true}") as rig:
        with pytest.raises(grpc.RpcError) as error:
            rig.grpc("nobody")
        assert error.value.code() == grpc.StatusCode.UNAUTHENTICATED and "X-Scope-OrgID" in error.value.details()
        status, _, body = rig.http("nobody")
        assert status == 401 and b"X-Scope-OrgID" in body
        assert rig.gateway.total("otelcol_receiver_refused_requests", reason="unauthenticated") == 2
        rig.grpc("somebody", **{"x-scope-orgid": "red"})
        assert rig.stored({"somebody"}) == {"red": {"somebody"}}


@pytest.mark.parametrize("tenant", [CANARY + "/../x", CANARY + "|other", "x" * 151, "..", ""])
def test_what_is_no_tenant_is_refused_and_not_repeated(build, tenant):
    with Rig(build, "{}") as rig:
        status, _, body = rig.http("nobody", **{"X-Scope-OrgID": tenant})
        assert status == 400 and CANARY.encode() not in body
        assert CANARY not in rig.gateway.log()


def test_two_headers_are_ambiguous(build):
    with Rig(build, "{}") as rig, peers.Client(rig.gateway.port["grpc"]) as client:
        with pytest.raises(grpc.RpcError) as error:
            client.send(make.request(), metadata=[("x-scope-orgid", "red"), ("x-scope-orgid", "blue")])
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_resources_without_a_required_tenant_are_rejected_alone(build):
    request = recent(make.request(3, resources=3, service="svc"))
    make.set_value(request.resource_profiles[1].resource.attributes.add(key="team").value, "red")
    with Rig(build, '{header: "", attribute: team, required: true}') as rig:
        with peers.Client(rig.gateway.port["grpc"]) as client:
            answer = client.send(request)
            assert answer.partial_success.rejected_profiles == 2
            assert answer.partial_success.error_message == "resource_profiles[0]: no tenant"
            del request.resource_profiles[1]
            with pytest.raises(grpc.RpcError) as error:
                client.send(request)
            assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert rig.http("nobody")[0] == 400
        assert rig.stored({"svc-1"}) == {"red": {"svc-1"}}


def test_the_number_of_tenants_with_metrics_is_bounded(build):
    with Rig(build, "{metrics_limit: 2}") as rig:
        for i in range(5):
            rig.grpc("s%d" % i, **{"x-scope-orgid": "t%d" % i})
        counted = {t: rig.gateway.total("otelcol_tenant_samples", tenant=t) for t in ("t0", "t1", "t2", "t3", "t4", "other")}
        assert counted["t0"] == counted["t1"] > 0 == counted["t2"] == counted["t3"] == counted["t4"]
        assert counted["other"] == 3 * counted["t0"]


def test_a_tenant_that_the_exporter_names_overrides_that_of_the_data(build):
    for more in "tenant: fixed", "headers: {x-scope-orgid: fixed}":
        config = CONFIG.replace("127.0.0.1:PUSH}", "127.0.0.1:PUSH, %s}" % more)
        with Rig(build, "{}", config) as rig:
            rig.grpc("svc", **{"x-scope-orgid": "red"})
            assert rig.stored({"svc"}) == {"fixed": {"svc"}}


def test_without_the_section_a_header_has_no_meaning(build):
    with Rig(build, "", CONFIG.replace("  tenant: TENANT\n", "")) as rig:
        rig.grpc("one", **{"x-scope-orgid": "red"})
        rig.grpc("two", **{"x-scope-orgid": "blue"})
        assert rig.stored({"one", "two"}) == {None: {"one", "two"}}
