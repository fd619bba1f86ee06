# SPDX-License-Identifier: Apache-2.0
"""service::quotas: who sends too much is refused or sampled, others notice nothing, and every sample is accounted for."""
import concurrent.futures
import time

import grpc
import pytest

from harness import build as make
from harness import otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:grpc}, max_recv_msg_size_mib: 64}, http: {endpoint: 127.0.0.1:{port:http}}}}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:SINK, tls: {insecure: true}, sending_queue: {queue_size: 100000}}
service:
  tenant: {}
  quotas: QUOTAS
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc]}
"""
SLOW = 3600  # seconds until a bucket of this test has something again: longer than any test


class Rig:
    def __init__(self, build, quotas, config=CONFIG):
        self.build, self.text = build, config.replace("QUOTAS", quotas)

    def __enter__(self):
        self.sink = peers.Sink().start()
        self.gateway = Gateway(self.build / "portcullis", self.text.replace("SINK", str(self.sink.port))).__enter__()
        return self

    def __exit__(self, *error):
        self.gateway.__exit__(*error)
        self.sink.stop()

    def send(self, request, tenant=None):
        """None, or the error."""
        with peers.Client(self.gateway.port["grpc"]) as client:
            try:
                return client.send(request, metadata=[("x-scope-orgid", tenant)] if tenant else None) and None
            except grpc.RpcError as error:
                return error

    def answer(self, request, tenant=None):
        with peers.Client(self.gateway.port["grpc"]) as client:
            return client.send(request, metadata=[("x-scope-orgid", tenant)] if tenant else None)

    def post(self, request, tenant=None):
        headers = {"Content-Type": "application/x-protobuf", **({"X-Scope-OrgID": tenant} if tenant else {})}
        return peers.post(self.gateway.port["http"], request.SerializeToString(), "/v1development/profiles", headers)

    def samples(self):
        return sum(self.sink.samples().values())

    def arrived(self, count):
        self.gateway.until(lambda: self.samples() >= count)
        assert self.samples() == count

    def balanced(self):
        self.gateway.until(lambda: self.gateway.balanced("profiles", "otlp_grpc"))

    def refused(self, **labels):
        return self.gateway.total("otelcol_quota_refused_requests", **labels)


def retry_info(error):
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin":
            return b"google.rpc.RetryInfo" in value
    return False


def sums(received, kind=None):
    """{(service, function of the leaf): sum of values}"""
    found = {}
    for data in received:
        m = otlp.parse(data)
        d = m.dictionary
        for r in m.resource_profiles:
            service = next((a.value.string_value for a in r.resource.attributes if a.key == "service.name"), "")
            for p in (p for s in r.scope_profiles for p in s.profiles):
                for x in p.samples:
                    stack = tuple(d.stack_table[x.stack_index].location_indices)
                    found[service, len(stack)] = found.get((service, len(stack)), 0) + sum(x.values)
    return found


def total(received):
    return sum(sums(received).values())


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_tenant_over_its_quota_is_refused_with_a_hint_and_others_are_not(build, transport):
    with Rig(build, "{tenant: {samples_per_second: 1, samples_burst: 100}}") as rig:
        request = make.request(1, samples=100)
        assert rig.send(request, "noisy") is None
        if transport == "grpc":
            error = rig.send(request, "noisy")
            assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and retry_info(error)
            text = error.details()
        else:
            status, headers, body = rig.post(request, "noisy")
            assert status == 429 and 1 <= int(headers["Retry-After"]) <= 10
            text = body.decode(errors="replace")
        assert "service::quotas::tenant::samples_per_second is 1, with a burst of 100; 100 are used" in text
        for tenant in ("quiet", "other"):
            assert rig.send(request, tenant) is None
        rig.arrived(300)
        assert rig.refused(quota="tenant", unit="samples") == 1
        assert rig.gateway.total("otelcol_receiver_refused_requests", reason="quota") == 1
        rig.balanced()


def test_a_bucket_fills_again_and_the_hint_is_right(build):
    with Rig(build, "{tenant: {samples_per_second: 100, samples_burst: 50}}") as rig:
        request = make.request(1, samples=100)
        status, _, _ = rig.post(request, "a")
        assert status == 200
        status, headers, _ = rig.post(request, "a")
        assert status == 429
        time.sleep(int(headers["Retry-After"]))
        assert rig.post(request, "a")[0] == 200
        rig.arrived(200)


def test_bytes_are_refused_while_the_body_arrives(build):
    with Rig(build, "{peer: {bytes_per_second: 100, bytes_burst: 10000}}") as rig:
        large = make.request(1, samples=20000)
        assert len(large.SerializeToString()) > 100000
        assert rig.post(large)[0] == 200  # alone: one of any size
        status, headers, body = rig.post(make.request(2, samples=1))
        assert status == 429 and int(headers["Retry-After"]) > 60
        assert b"service::quotas::peer::bytes_per_second is 100" in body
        assert rig.refused(quota="peer", unit="bytes") == 1
        rig.arrived(20000)


def test_only_the_service_over_its_quota_is_rejected(build):
    with Rig(build, "{service: {samples_per_second: 1, samples_burst: 100}}") as rig:
        assert rig.send(make.request(1, samples=100, service="noisy")) is None
        both = make.Maker()
        for service in ("noisy", "quiet"):
            stack = both.stack([both.location([both.function(service)])])
            p = both.profile(both.scope(both.resource({"service.name": service})))
            for _ in range(30):
                p.samples.add(stack_index=stack, values=[1])
        answer = rig.answer(both.message)
        assert answer.partial_success.rejected_profiles == 1
        assert "resource_profiles[0]: quota used up: service::quotas::service::samples_per_second" in \
            answer.partial_success.error_message
        rig.arrived(130)
        assert {s for s, _ in sums(rig.sink.received)} == {"noisy", "quiet"}
        assert rig.gateway.total("otelcol_quota_rejected_samples", quota="service", unit="samples") == 30
        assert rig.gateway.total("otelcol_receiver_refused_profile_samples") == 30
        # a request of which nothing is left is refused as a whole
        error = rig.send(make.request(2, samples=10, service="noisy"))
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and retry_info(error)
        rig.balanced()


def test_sampling_keeps_the_totals_and_the_ledger(build):
    with Rig(build, "{service: {samples_per_second: 1, samples_burst: 200, on_exceeded: sample}}") as rig:
        sent = [make.request(i, samples=150, functions=5) for i in range(4)]
        for request in sent:
            assert rig.send(request) is None
        rig.gateway.until(lambda: len(rig.sink.received) == 4)
        assert total(rig.sink.received) == total(r.SerializeToString() for r in sent)
        kept = rig.samples()
        removed = rig.gateway.total("otelcol_quota_sampled_samples", quota="service", unit="samples")
        assert 200 <= kept <= 210 and kept + removed == 600
        assert rig.gateway.total("otelcol_ledger_dropped_samples", reason="quota", pipeline="profiles") == removed
        assert rig.gateway.total("otelcol_receiver_accepted_profile_samples") == 600
        rig.balanced()


def test_sampling_refuses_when_even_one_sample_of_each_profile_is_too_much(build):
    with Rig(build, "{service: {samples_per_second: 1, samples_burst: 10, on_exceeded: sample}}") as rig:
        many = make.request(1, samples=1, profiles=100)
        assert rig.send(many) is None
        error = rig.send(make.request(2, samples=1))
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert rig.gateway.total("otelcol_quota_rejected_samples") == 1
        rig.arrived(100)


def test_cumulative_types_are_rejected_rather_than_sampled(build):
    with Rig(build, "{service: {samples_per_second: 1, samples_burst: 10, on_exceeded: sample}}") as rig:
        m = make.Maker()
        scope = m.scope(m.resource({"service.name": "heap"}))
        stack = m.stack([m.location([m.function("f")])])
        for kind in (("alloc_space", "bytes"), ("inuse_space", "bytes")):
            p = m.profile(scope, kind)
            for i in range(50):
                p.samples.add(stack_index=stack, values=[i + 1])
        answer = rig.answer(m.message)
        assert answer.partial_success.rejected_profiles == 1
        assert "cannot be thinned" in answer.partial_success.error_message
        rig.gateway.until(lambda: rig.sink.received)
        assert total(rig.sink.received) == sum(range(1, 51))
        rig.balanced()


def test_all_pipelines_of_a_receiver_get_the_same_samples(build):
    config = CONFIG.replace("    profiles: {", "    profiles/b: {receivers: [otlp], exporters: [debug]}\n    profiles: {").replace(
        "exporters:\n", "exporters:\n  debug: {}\n", 1)
    with Rig(build, "{service: {samples_per_second: 1, samples_burst: 50, on_exceeded: sample}}", config) as rig:
        assert rig.send(make.request(1, samples=100)) is None
        rig.gateway.until(lambda: rig.sink.received)
        dropped = [rig.gateway.total("otelcol_ledger_dropped_samples", reason="quota", pipeline=p)
                   for p in ("profiles", "profiles/b")]
        assert dropped[0] == dropped[1] >= 50
        assert rig.gateway.total("otelcol_quota_sampled_samples") == dropped[0]
        rig.balanced()
        assert rig.gateway.balanced("profiles/b", "debug")


def test_overrides_take_the_place_of_the_limits_of_all(build):
    quotas = "{tenant: {samples_per_second: 1, samples_burst: 10, overrides: {vip: {}, small: {samples_per_second: 1, samples_burst: 1}}}}"
    with Rig(build, quotas) as rig:
        request = make.request(1, samples=8)
        for _ in range(20):
            assert rig.send(request, "vip") is None
        assert rig.send(request, "small") is None
        assert "service::quotas::tenant::overrides::samples_per_second is 1" in rig.send(request, "small").details()
        assert rig.send(request, "normal") is None
        assert rig.send(request, "normal") is None
        assert rig.send(request, "normal") is not None


@pytest.mark.threads
def test_a_noisy_neighbour_takes_nothing_from_the_others(build):
    with Rig(build, "{tenant: {samples_per_second: 1, samples_burst: 500}}") as rig:
        def send_all(tenant, count):
            outcomes = [rig.send(make.request(i, samples=50), tenant) for i in range(count)]
            return [o for o in outcomes if o]
        with concurrent.futures.ThreadPoolExecutor(9) as pool:
            noisy = [pool.submit(send_all, "noisy", 30) for _ in range(5)]
            quiet = [pool.submit(send_all, "quiet-%d" % i, 8) for i in range(4)]
            refused = [e for job in noisy for e in job.result()]
            assert all(job.result() == [] for job in quiet)
        assert refused and all(e.code() == grpc.StatusCode.RESOURCE_EXHAUSTED for e in refused)
        accepted = 150 - len(refused)
        # what was in progress at once, and a second or so of the rate, may exceed the burst
        assert 10 <= accepted <= 10 + 5 + 2
        rig.arrived(50 * (accepted + 32))
        assert rig.gateway.total("otelcol_tenant_samples", tenant="noisy") == 50 * accepted
        rig.balanced()


def names(prefix, count):
    m = make.Maker()
    stack = m.stack([m.location([m.function("f")])])
    for i in range(count):
        p = m.profile(m.scope(m.resource({"service.name": "%s-%d" % (prefix, i)})))
        p.samples.add(stack_index=stack, values=[1])
    return m.message


def test_invented_names_grow_neither_memory_nor_metrics(build):
    if build.name != "release":
        pytest.skip("memory is measured in the optimised build: a sanitizer keeps what is freed")
    # a service's bucket takes longer to fill than a slow machine needs for as many as there is room for
    quotas = "{tenant: {samples_per_second: 1, samples_burst: 1000}, service: {bytes_per_second: 1, bytes_burst: 3600}}"
    # empty batches of many tenants may keep a share of the memory
    config = CONFIG.replace("{receivers: [otlp], ", "{receivers: [otlp], processors: [memory_limiter], ").replace(
        "exporters:\n", "processors:\n  memory_limiter: {check_interval: 1s, limit_mib: 160, spike_limit_mib: 32}\nexporters:\n", 1)
    with Rig(build, quotas, config) as rig:
        outcomes = [rig.send(names("first-%d" % i, 2000), "first-%d" % i) for i in range(40)]
        assert outcomes[0] is None
        rig.gateway.until(lambda: rig.gateway.ledger("profiles", "otlp_grpc")["queued"] == 0)
        series, before = len(rig.gateway.metrics()), rig.gateway.rss()["VmRSS"]
        for i in range(80):
            rig.send(names("name-%d" % i, 2000), "invented-%d" % i)
        rig.gateway.until(lambda: rig.gateway.ledger("profiles", "otlp_grpc")["queued"] == 0)
        assert rig.gateway.total("otelcol_quota_buckets", quota="service") <= 16384
        assert rig.gateway.total("otelcol_quota_shared_bucket_uses", quota="service") > 0
        # a few series for each new tenant, up to service::tenant::metrics_limit
        assert len(rig.gateway.metrics()) - series <= 5 * 60
        assert rig.gateway.rss()["VmRSS"] < before * 1.25


def test_a_quota_that_makes_no_sense_is_an_error(build):
    for quotas, text in (("{tenant: {samples_burst: 5}}", "samples_burst requires samples_per_second"),
                         ("{peer: {bytes_per_second: 1, bytes_burst: 5000}}", "bytes_burst must not exceed"),
                         ("{service: {overrides: {a: {on_exceeded: maybe}}}}", "on_exceeded")):
        gateway = Gateway(build / "portcullis", CONFIG.replace("QUOTAS", quotas).replace("SINK", "1"), ready=False)
        with gateway:
            assert gateway.process.wait(60) == 1
            assert text in gateway.log()
