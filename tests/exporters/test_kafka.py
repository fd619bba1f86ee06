# SPDX-License-Identifier: Apache-2.0
"""The exporter kafka against librdkafka's mock cluster: what a message is, where it goes, and what becomes of each error."""
import contextlib
import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from harness import build as make
from harness import kafka, otlp, peers, pprof, preload
from harness.failures import ALERTS, TLS, Nobody, make_keys, tls_keys
from harness.gateway import Gateway
from harness.misconfigured import Mute, TlsServer
from harness.references import read

TOPIC = "otlp_profiles"
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, include_metadata: true}}}
processors:
  batch: {send_batch_size: 0, timeout: 10ms}
exporters:
  kafka:
    brokers: ["%s"]
    timeout: 2s
    retry_on_failure: {initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 60s}
    %s
service:
  pipelines:
    profiles: {receivers: [otlp], %s exporters: [kafka]}
"""


class Rig:
    def __init__(self, build, broker, *lines, batch=False, timeout="2s"):
        text = CONFIG % (broker.address, "\n    ".join(lines), "processors: [batch]," if batch else "")
        self.gateway = Gateway(build / "portcullis", text.replace("timeout: 2s", "timeout: " + timeout))

    def __enter__(self):
        self.gateway.__enter__()
        self.client = peers.Client(self.gateway.port["otlp"])
        return self

    def __exit__(self, *failure):
        self.client.close()
        self.gateway.__exit__(*failure)

    def send(self, seed=1, samples=10, **keywords):
        message = make.request(seed, samples=samples)
        self.client.send(message, **keywords)
        return message

    def total(self, what, **labels):
        return self.gateway.total("otelcol_ledger_%s_samples" % what, exporter="kafka", **labels)

    def settle(self, samples):
        """Until so many samples are out or dropped; nothing may be missing from the ledger."""
        self.gateway.until(lambda: self.total("out") + self.total("dropped") == samples)
        assert self.gateway.balanced("profiles", "kafka")


@pytest.fixture
def broker(build):
    with kafka.Broker(build) as b:
        yield b


def samples(messages):
    return sum((otlp.samples(read(m)) for m in messages), type(otlp.samples(otlp.Request()))())


COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_arrives_is_what_was_sent(build, broker, encoding, compression):
    lines = "profiles: {encoding: %s}" % encoding, "producer: {compression: %s}" % compression
    with Rig(build, broker, *lines) as rig, broker.reader(TOPIC) as reader:
        sent = rig.send(samples=300)
        rig.settle(300)
        (message,) = reader.until(lambda m: m)
        ((name, key),) = message.headers
        assert message.key is None and name == "idempotency-key" and re.fullmatch(rb'"[0-9a-f]{32}"', key)
        assert (message.value[:1] == b"{") == (encoding == "otlp_json")
        assert otlp.samples(read(message)) == otlp.samples(sent)


def test_a_large_request_is_split_below_the_limit(build, broker):
    for encoding in "otlp_proto", "otlp_json":
        topic = "split." + encoding
        lines = "profiles: {encoding: %s, topic: %s}" % (encoding, topic), "producer: {max_message_bytes: 16384}"
        with Rig(build, broker, *lines) as rig, broker.reader(topic) as reader:
            sent = rig.send(samples=3000)
            rig.settle(3000)
            messages = reader.until(lambda m: sum(sum(otlp.samples(read(x)).values()) for x in m)
                                    == sum(otlp.samples(sent).values()))
            assert len(messages) > 2 and max(len(m.value) for m in messages) < 16384
            assert samples(messages) == otlp.samples(sent)
            assert rig.total("dropped") == 0


def test_a_message_that_the_broker_finds_too_large_is_split(build, broker):
    broker.command("errors %d 1 10" % kafka.PRODUCE)
    with Rig(build, broker) as rig, broker.reader(TOPIC) as reader:
        sent = rig.send(samples=3000)
        rig.settle(3000)
        messages = reader.until(lambda m: len(m) > 1)
        assert samples(messages) == otlp.samples(sent)
        assert rig.gateway.total("otelcol_exporter_oversized_requests", exporter="kafka") == 1


def test_a_broker_that_finds_everything_too_large_gets_an_end(build, broker):
    broker.command("errors %d 2000 10" % kafka.PRODUCE)
    with Rig(build, broker) as rig:
        rig.send(samples=300)
        rig.settle(300)
        assert rig.total("dropped") == 300


@pytest.mark.parametrize("code", [3, 6, 7, 19, 20, 56])
def test_a_retriable_error_costs_nothing(build, broker, code):
    broker.command("errors %d 3 %d" % (kafka.PRODUCE, code))
    with Rig(build, broker) as rig, broker.reader(TOPIC) as reader:
        sent = rig.send()
        rig.settle(10)
        assert rig.total("out") == 10
        assert samples(reader.until(lambda m: m)) == otlp.samples(sent)


@pytest.mark.parametrize("code", [29, 44, 87])
def test_a_permanent_error_drops_and_counts(build, broker, code):
    broker.command("errors %d 1 %d" % (kafka.PRODUCE, code))
    with Rig(build, broker, "producer: {required_acks: 1}") as rig:
        rig.send()
        rig.settle(10)
        assert rig.total("dropped") == 10
        assert rig.gateway.total("otelcol_exporter_send_failed_profile_samples", exporter="kafka") == 10
        if code == 29:
            return  # librdkafka asks for the topic again before it sends there
        rig.send(2)
        rig.settle(20)
        assert rig.total("out") == 10


@pytest.mark.parametrize("batch, more", [(True, ""), (False, ""), (False, "sending_queue: {batch: {min_size: 0, flush_timeout: 10ms}}")])
def test_topic_and_key_from_metadata(build, broker, batch, more):
    """The batches of the pipeline or of the exporter keep what the exporter needs, and so does a request without a batch."""
    lines = ("profiles: {topic_from_metadata_key: x-topic, message_key_from_metadata_key: X-Team}",
             "include_metadata_keys: [x-team]", "record_headers: {Source: shop}", more)
    with Rig(build, broker, *lines, batch=batch) as rig, broker.reader("team.a", TOPIC) as reader:
        for seed in 1, 2, 3:
            rig.send(seed, metadata=(("x-topic", "team.a"), ("x-team", "blue")))
        rig.send(4)
        rig.settle(40)
        messages = reader.until(lambda m: len(m) == 4)
        named = [m for m in messages if m.topic == "team.a"]
        assert len(named) == 3 and {m.key for m in named} == {b"blue"} and len({m.partition for m in named}) == 1
        assert all(m.headers[:-1] == [("Source", b"shop"), ("x-team", b"blue")] for m in named)
        (other,) = [m for m in messages if m.topic == TOPIC]
        assert other.key is None and other.headers[:-1] == [("Source", b"shop")]
        assert len({m.headers[-1] for m in messages}) == 4


def test_topic_and_key_from_a_resource(build, broker):
    """Each resource goes its own way, with the dictionary that it needs and no other strings."""
    maker = make.Maker()
    for name in "apple", "pear":
        stack = maker.stack([maker.location([maker.function("only in " + name)])])
        profile = maker.profile(maker.scope(maker.resource({"service.name": name, "list": [{"in." + name: 1}]})))
        for _ in range(5):
            profile.samples.add(stack_index=stack, values=[1])
    lines = "topic_from_attribute: service.name", "profiles: {message_key_from_attribute: service.name}"
    with Rig(build, broker, *lines, batch=True) as rig, broker.reader("apple", "pear") as reader:
        rig.client.send(maker.message)
        rig.settle(10)
        messages = reader.until(lambda m: len(m) == 2)
        for m in messages:
            other = {"apple": "pear", "pear": "apple"}[m.topic]
            assert m.key == m.topic.encode()
            assert ("only in " + m.topic).encode() in m.value and other.encode() not in m.value
        assert samples(messages) == otlp.samples(maker.message)


def test_a_sender_cannot_name_any_topic(build, broker):
    lines = ("profiles: {topic_from_metadata_key: x-topic, max_topics: 1}",)
    with Rig(build, broker, *lines, batch=True) as rig:
        for seed, topic in enumerate(("good", "../bad", "another", "good")):
            rig.send(seed, metadata=(("x-topic", topic),))
            rig.settle(10 * (seed + 1))  # one after another: the first topic is the one that max_topics permits
        assert rig.total("dropped") == 20


def test_a_broker_that_is_down_costs_nothing(build, broker):
    with Rig(build, broker) as rig, broker.reader(TOPIC) as reader:
        first = rig.send(1)
        rig.settle(10)
        broker.command("down 1")
        second = rig.send(2)
        rig.gateway.until(lambda: rig.gateway.total("otelcol_exporter_retries", exporter="kafka") or "timeout" in rig.gateway.log())
        assert rig.total("dropped") == 0
        broker.command("up 1")
        rig.settle(20)
        rig.gateway.until(lambda: "Exporting works again." in rig.gateway.log())
        log = rig.gateway.log()
        assert [log.count(text) for text in (WILL_RETRY, "The Kafka client works again.", "Exporting works again.")] == [1, 1, 1]
        messages = reader.until(lambda m: len(m) >= 2)
        got = {tuple(sorted(map(str, otlp.samples(read(m)).items()))) for m in messages}
        assert got == {tuple(sorted(map(str, otlp.samples(m).items()))) for m in (first, second)}


def cpu_of_threads(gateway, name):
    """Seconds that threads whose name begins so have used."""
    ticks = 0
    for task in pathlib.Path("/proc/%d/task" % gateway.process.pid).iterdir():
        if (task / "comm").read_text().startswith(name):
            ticks += sum(int(n) for n in (task / "stat").read_text().rpartition(")")[2].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def test_a_slow_broker_costs_no_processor(build, broker):
    """More messages than one partition may have in flight; librdkafka would call poll() without a pause."""
    lines = ("sending_queue: {num_consumers: 20}", "profiles: {message_key_from_attribute: service.name}")
    with Rig(build, broker, *lines) as rig:
        rig.send(0)
        rig.settle(10)
        broker.command("delay 500")
        used, begun = cpu_of_threads(rig.gateway, "rdk:"), time.monotonic()
        for seed in range(1, 41):
            rig.send(seed)
        rig.settle(410)
        used, seconds = cpu_of_threads(rig.gateway, "rdk:") - used, time.monotonic() - begun
        assert used < .3 * seconds
    broker.command("delay 0")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return make_keys(tmp_path_factory.mktemp("keys"))


class Answering:
    """A broker that obeys these commands."""

    def __init__(self, build, *commands):
        self.broker = kafka.Broker(build)
        self.port = int(self.broker.address.rpartition(":")[2])
        for command in commands:
            self.broker.command(command)

    def stop(self):
        self.broker.__exit__()


def tls_cause(cause, stage="tls_handshake"):
    return {"error": "tls", "stage": stage, "cause": cause}


def answers(error, code, cause, more=()):
    """The case of a broker that answers each message with this code."""
    return (lambda build, keys: Answering(build, "errors %d 2000 %d" % (kafka.PRODUCE, code)), False,
            {"error": error, "stage": "broker", "cause": cause, "kafka_status": code, **dict(more)})


REFUSED = {"cause": "connection refused", "errno": "ECONNREFUSED"}
WILL_RETRY, DROPS = "Exporting failed. Will retry the request after interval.", "Exporting failed. Dropping data."
# name of the case: (server, is TLS expected?, fields of the line)
CASES = {
    "closed-port": (lambda build, keys: Nobody(), False, {"error": "unavailable", "stage": "connect", **REFUSED}),
    "mute": (lambda build, keys: Mute(), False, {"error": "timeout", "stage": "exchange", "cause": "no response within the timeout"}),
    "closing": (lambda build, keys: Mute(b""), False, {"error": "unavailable", "stage": "exchange", "cause": "connection closed without a response"}),
    "expects-tls": (lambda build, keys: TlsServer(keys, "good"), False, {"error": "unavailable", "stage": "exchange"}),
    "expired": (lambda build, keys: TlsServer(keys, "expired"), True, tls_cause("certificate expired", "tls_verify")),
    "foreign": (lambda build, keys: TlsServer(keys, "foreign-leaf"), True, tls_cause("unknown authority", "tls_verify")),
    "name": (lambda build, keys: TlsServer(keys, "elsewhere"), True, tls_cause("name mismatch", "tls_verify")),
    "plain-http": (lambda build, keys: Mute(b"HTTP/1.1 400 Bad Request\r\n\r\n"), True, tls_cause("not a TLS server")),
    "plain-kafka": (lambda build, keys: Answering(build), True, tls_cause("connection closed in the TLS handshake")),
    "replicas": answers("not_enough_replicas", 19, "not enough in-sync replicas"),
    "disk": answers("disk", 56, "disk of the broker failed"),
    "record": answers("invalid", 87, "record rejected by the broker", {"msg": DROPS}),
    "size": answers("too_large", 10, "message too large for the broker", {"msg": DROPS}),
    "denied": answers("permission_denied", 29, "topic not permitted for the user", {"msg": DROPS}),
    "topic": (lambda build, keys: Answering(build, "refuse %s 3" % TOPIC), False,
              {"error": "unknown_topic", "stage": "broker", "cause": "topic does not exist"}),
}
# Brokers are known by address, so no server can reject a name.
CASES |= {"%s-%s" % (name, v): (lambda build, keys, s=server, v=v: s(keys, v), secure, tls_cause(cause))
          for name, (server, secure, cause) in ALERTS.items() if name != "server-name" for v in TLS}
# librdkafka gives up a broker that does not answer after 10 s.
EXPORTER = """
  kafka/%s:
    brokers: ["127.0.0.1:%d"]
    timeout: 8s
    retry_on_failure: {initial_interval: 30s, max_interval: 30s}
    %s
"""
ALL = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
service:
  telemetry: {logs: {encoding: json, sampling: {enabled: false}}}
  pipelines:
    profiles: {receivers: [otlp], exporters: [%s]}
exporters:
"""


def lines(g, message):
    found = [json.loads(line) for line in g.log().splitlines() if line.startswith("{")]
    return [line for line in found if message in line["msg"]]


def test_the_cause_of_each_failure_is_named(build, keys):
    """All at once, by one gateway: each exporter has a broker of its own."""
    expected, text = {}, ""
    with contextlib.ExitStack() as held:
        for name, (server, secure, fields) in CASES.items():
            s = server(build, keys)
            held.callback(s.stop)
            text += EXPORTER % (name, s.port, "tls: {%s}" % tls_keys(keys, secure) if secure else "")
            expected["kafka/" + name] = {"msg": WILL_RETRY, "endpoint": "127.0.0.1:%d" % s.port, "queue_percent": 0, **fields}
        with Gateway(build / "portcullis", ALL % ", ".join(expected) + text) as g, peers.Client(g.port["otlp"]) as client:
            client.send(make.request(1, samples=10))
            g.until(lambda: {line["otelcol.component.id"] for line in lines(g, "Exporting failed.")} == set(expected))
            found = {line["otelcol.component.id"]: line for line in lines(g, "Exporting failed.")}
            assert {name: {key: found[name].get(key) for key in fields} for name, fields in expected.items()} == expected
            for name, fields in expected.items():
                labels = {"exporter": name, "error": fields["error"], "cause": found[name].get("cause", "")}
                assert g.total("otelcol_exporter_last_error", **labels) == 1, labels
            g.process.kill()


def test_shutdown_sends_what_is_in_flight(build, broker):
    with Rig(build, broker, "producer: {linger: 500ms}") as rig, broker.reader(TOPIC) as reader:
        sent = rig.send()
        assert rig.gateway.stop(signal.SIGTERM) == 0
        assert samples(reader.until(lambda m: m)) == otlp.samples(sent)


def test_a_timeout_of_less_than_a_millisecond_ends_an_attempt(build, broker):
    """To librdkafka, 0 ms are no limit."""
    broker.command("down 1")
    with Rig(build, broker, "producer: {linger: 0s}", timeout="500us") as rig:
        rig.send()
        rig.gateway.until(lambda: rig.gateway.total("otelcol_exporter_retries", exporter="kafka") > 1)


def test_shutdown_does_not_wait_for_a_dead_broker(build, broker):
    with Rig(build, broker) as rig:
        broker.command("down 1")
        rig.send()
        assert rig.gateway.stop(signal.SIGTERM) in (0, 1)


BOTH = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
  kafka: {brokers: ["store.test:9092"]}
exporters:
  kafka: {brokers: ["store.test:9092"], timeout: 100ms}
service:
  pipelines:
    profiles: {receivers: [otlp, kafka], exporters: [kafka]}
"""


def test_shutdown_does_not_wait_for_a_name_whose_look_up_hangs(build, tmp_path):
    """The addresses are in a pipe that nobody writes to."""
    os.mkfifo(tmp_path / "addresses")
    env = preload.env(build, "names", NAME="store.test", ADDRESSES=str(tmp_path / "addresses"))
    with Gateway(build / "portcullis", BOTH, env=env) as g, peers.Client(g.port["otlp"]) as client:
        client.send(make.request(1))
        g.until(lambda: g.total("otelcol_exporter_retries", exporter="kafka") > 0)
        assert g.stop() == 0 and "did not finish in time" not in g.log()


@pytest.mark.parametrize("lines, reason", [
    ("auth: {kerberos: {realm: x}}", "kerberos: not supported"),
    ("auth: {sasl: {mechanism: AWS_MSK_IAM_OAUTHBEARER, username: u, password: p}}", "must be PLAIN"),
    ("auth: {sasl: {mechanism: OAUTHBEARER}}", "no extension of this build provides tokens"),
    ("auth: {sasl: {mechanism: PLAIN, username: u, password: p, oauthbearer_token_source: oauth2client}}",
     "oauthbearer_token_source: no extension"),
    ("auth: {sasl: {username: u}}", "password must be specified"),
    ("record_partitioner: {round_robin: {}}", "only sticky_key is supported"),
    ("tls: {server_name_override: x}", "librdkafka verifies the name"),
    ("producer: {required_acks: 2}", "must be all, -1, 0 or 1"),
    ("producer: {compression: gzip, compression_params: {level: 10}}", "levels up to 9"),
    ("profiles: {topic: a/b}", "topic: must be"),
    ("profiles: {encoding: jaeger}", "encoding"),
    ("timeout: 5ms", "longer than producer::linger"),
    ("timeout: 25h", "timeout: must be at most 24h"),
    ("signal_header: true\n    record_headers: {otelcol.signal: x}", "signal_header: the header otelcol.signal"),
    ("signal_header: true\n    include_metadata_keys: [otelcol.signal]", "signal_header: the header otelcol.signal"),
    ("resolve_canonical_bootstrap_servers_only: true", "does not support it"),
    ("nonsense: 1", "invalid keys: nonsense"),
])
def test_what_cannot_be_honoured_is_an_error(build, tmp_path, lines, reason):
    text = CONFIG.replace("{port:otlp}", "4317") % ("127.0.0.1:9092", "", "")
    if lines.startswith("timeout"):
        text = text.replace("    timeout: 2s\n", "")
    (tmp_path / "c.yaml").write_text(text.replace("    brokers", "    %s\n    brokers" % lines))
    run = subprocess.run([build / "portcullis", "validate", "--config", tmp_path / "c.yaml"], capture_output=True, text=True)
    assert run.returncode and reason in run.stderr + run.stdout


OF_THE_COLLECTOR = """
    rack_id: a
    conn_idle_timeout: 9m
    use_leader_epoch: true
    traces: {topic: spans, encoding: otlp_proto}
    metrics: {topic: metrics}
    logs: {topic: logs}
    partition_traces_by_id: true
    partition_metrics_by_resource_attributes: true
    partition_logs_by_resource_attributes: true
    partition_logs_by_trace_id: false
    signal_header: true
    record_headers: {source: x}
"""


def test_keys_of_the_collector_without_effect_are_taken_and_named(build, broker):
    with Rig(build, broker, OF_THE_COLLECTOR.strip()) as rig, broker.reader(TOPIC) as reader:
        rig.send()
        rig.settle(10)
        (message,) = reader.until(lambda m: m)
        assert dict(message.headers)["otelcol.signal"] == b"profiles" and dict(message.headers)["source"] == b"x"
        for key in "rack_id", "conn_idle_timeout", "use_leader_epoch", "traces", "metrics", "logs", "partition_traces_by_id":
            assert "exporters::kafka::" + key in rig.gateway.log()


def test_validate_does_not_connect(build, tmp_path):
    lines = "auth: {sasl: {mechanism: SCRAM-SHA-512, username: u, password: p}}\n    tls: {}"
    (tmp_path / "c.yaml").write_text(CONFIG.replace("{port:otlp}", "4317") % ("192.0.2.1:9092", lines, ""))
    subprocess.run([build / "portcullis", "validate", "--config", tmp_path / "c.yaml"], check=True, timeout=30)


# ---- pprof

PPROF = "profiles: {encoding: pprof}"


def attributes_of(message):
    return {name: value for name, value in message.headers if name != "idempotency-key"}


def parsed(message):
    assert message.value[:2] == b"\x1f\x8b"
    return pprof.parse(gzip.decompress(message.value))


def test_each_profile_is_one_pprof_as_its_sender_made_it(build, broker):
    originals = {"%d" % seed: make.pprof(seed) for seed in range(5)}
    text = """
receivers: {pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}}
exporters: {kafka: {brokers: ["%s"], %s}}
service: {pipelines: {profiles: {receivers: [pprof], exporters: [kafka]}}}
""" % (broker.address, PPROF)
    with Gateway(build / "portcullis", text) as gateway, broker.reader(TOPIC) as reader:
        for name, original in originals.items():
            path = "/v1/pprof?service.name=" + name
            assert peers.post(gateway.port["pprof"], original.SerializeToString(), path=path)[0] == 204
        messages = reader.until(lambda m: len(m) == 5)
        for message in messages:
            name = attributes_of(message)["service.name"].decode()
            pprof.check_equal(originals.pop(name), parsed(message))


def test_resource_attributes_are_headers(build, broker):
    sent = make.Maker()
    for name, attributes in {"a": {"service.name": "shop", "k8s.podName": "x-1", "number": 5, "ratio": 0.5, "list": ["a", 1], "no": False},
                             "b": {"service.name": "cart"}}.items():
        profile = sent.profile(sent.scope(sent.resource(attributes)))
        profile.samples.add(stack_index=sent.stack([sent.location([sent.function(name)])]), values=[5])
    with Rig(build, broker, PPROF, "record_headers: {team: payments}") as rig, broker.reader(TOPIC) as reader:
        rig.client.send(sent.message)
        rig.settle(2)
        found = sorted((attributes_of(m) for m in reader.until(lambda m: len(m) == 2)), key=len)
        assert found == [{"service.name": b"cart", "team": b"payments"},
                         {"service.name": b"shop", "k8s.podName": b"x-1", "number": b"5", "ratio": b"0.5", "list": b'["a",1]',
                          "no": b"false", "team": b"payments"}]
        assert rig.gateway.total("otelcol_exporter_unsupported_items", exporter="kafka", kind="resource_attribute") == 0


def test_attributes_that_no_header_can_carry_are_counted(build, broker):
    many = {"key.%02d" % i: "v" for i in range(60)}
    odd = {"service.name": "shop", "": "no name", "nul": "a\0b", "Idempotency-Key": "forged", "long": "x" * 4097, "k" * 257: "long name"}
    full = {"big.%d" % i: "x" * 4000 for i in range(4)}
    with Rig(build, broker, PPROF) as rig, broker.reader(TOPIC) as reader:
        for number, (attributes, kept) in enumerate(((many, 48), (odd, 1), (full, 3)), 1):
            sent = make.Maker()
            profile = sent.profile(sent.scope(sent.resource(attributes)))
            profile.samples.add(stack_index=sent.stack([sent.location([sent.function("main")])]), values=[5])
            before = rig.gateway.total("otelcol_exporter_unsupported_items", exporter="kafka", kind="resource_attribute")
            rig.client.send(sent.message)
            rig.settle(number)
            message = reader.until(lambda m: len(m) == number)[-1]
            assert len(attributes_of(message)) == kept and {n for n, _ in message.headers} <= {*attributes, "idempotency-key"}
            assert rig.gateway.total("otelcol_exporter_unsupported_items", exporter="kafka",
                                     kind="resource_attribute") - before == len(attributes) - kept


def test_a_large_pprof_is_split_below_the_limit(build, broker):
    with Rig(build, broker, PPROF, "producer: {max_message_bytes: 16384}") as rig, broker.reader(TOPIC) as reader:
        sent = rig.send(samples=6000)
        rig.settle(6000)
        total = sum(sum(s.values) for rp in sent.resource_profiles for sp in rp.scope_profiles for p in sp.profiles for s in p.samples)
        messages = reader.until(lambda m: sum(s.value[0] for x in m for s in parsed(x).sample) == total)
        assert len(messages) > 2 and max(len(m.value) for m in messages) < 16384
        assert rig.total("dropped") == 0


def test_what_the_exporter_wrote_the_receiver_reads(build, broker):
    text = """
receivers: {kafka: {brokers: ["%s"], %s, initial_offset: earliest}}
exporters: {otlp_grpc: {endpoint: 127.0.0.1:%d, tls: {insecure: true}}}
service: {pipelines: {profiles: {receivers: [kafka], exporters: [otlp_grpc]}}}
"""
    with Rig(build, broker, PPROF) as rig, peers.Sink() as sink:
        sent = [make.request(seed, samples=50, service="Shop %d" % seed) for seed in range(3)]
        for message in sent:
            rig.client.send(message)
        rig.settle(150)
        profiles = PPROF.replace("profiles: {", "profiles: {topics: [%s], " % TOPIC)
        with Gateway(build / "portcullis", text % (broker.address, profiles, sink.port)) as second:
            second.until(lambda: sum(sink.samples().values()) == 150)
        assert {kv.key for data in sink.received for rp in otlp.parse(data).resource_profiles for kv in rp.resource.attributes} == {
            kv.key for message in sent for rp in message.resource_profiles for kv in rp.resource.attributes}
        assert sorted(sum(s.values) for data in sink.received for rp in otlp.parse(data).resource_profiles for sp in rp.scope_profiles
                      for p in sp.profiles for s in p.samples) == sorted(
            sum(s.values) for message in sent for rp in message.resource_profiles for sp in rp.scope_profiles for p in sp.profiles
            for s in p.samples)
