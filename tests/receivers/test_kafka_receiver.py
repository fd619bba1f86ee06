# SPDX-License-Identifier: Apache-2.0
"""The receiver kafka against librdkafka's mock cluster: what a message becomes, when its offset is committed, and what
happens when it is refused."""
import gzip
import os
import signal
import subprocess
import threading
import time

import grpc
import pytest

from harness import build as make
from harness import kafka, otlp, peers
from harness.gateway import Gateway
from harness.shortage import Holder

TOPIC = "otlp_profiles"
CONFIG = """
receivers:
  kafka:
    brokers: ["%(broker)s"]
    initial_offset: earliest
    autocommit: {interval: 100ms}
    error_backoff: {initial_interval: 50ms, max_interval: 100ms, %(backoff)s}
    session_timeout: 6s
    heartbeat_interval: 200ms
    %(receiver)s
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:%(sink)d
    tls: {insecure: true}
    %(exporter)s
    retry_on_failure: {initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 0s}
%(more)s
service:
  %(service)s
  pipelines:
    profiles: {receivers: [kafka], %(processors)s exporters: [otlp_grpc]}
"""


class Rig:
    """A broker, a gateway that reads from it, and a sink."""

    def __init__(self, build, broker, sink, *receiver, exporter="", service="", more="", processors="", backoff="max_elapsed_time: 0s", arguments=(),
                 text=CONFIG):
        text = text % {"broker": broker.address, "sink": sink.port, "receiver": "\n    ".join(receiver), "exporter": exporter,
                         "service": service, "more": more, "processors": processors, "backoff": backoff}
        self.broker, self.sink, self.gateway = broker, sink, Gateway(build / "portcullis", text, arguments=arguments)

    def __enter__(self):
        self.gateway.__enter__()
        return self

    def __exit__(self, *failure):
        self.gateway.__exit__(*failure)

    def messages(self, outcome):
        return self.gateway.total("otelcol_kafka_receiver_messages", outcome=outcome)

    def until(self, condition, seconds=30):
        self.gateway.until(condition, seconds)

    def arrived(self, count):
        self.until(lambda: sum(self.sink.samples().values()) >= count)

    def committed(self, group="otel-collector", topic=TOPIC):
        return sum(offset or 0 for offset in self.broker.committed(group, topic))


@pytest.fixture
def broker(build):
    with kafka.Broker(build) as b:
        yield b


@pytest.fixture
def sink():
    with peers.Sink() as s:
        yield s


def send(broker, messages, topic=TOPIC, **keywords):
    with broker.writer() as writer:
        for message in messages:
            writer.send(topic, message if isinstance(message, bytes) else message.SerializeToString(), **keywords)


def requests(count, samples=10):
    return [make.request(seed, samples=samples) for seed in range(count)]


def total(messages):
    return otlp.all_samples(messages)


def test_what_arrives_is_what_was_sent(build, broker, sink):
    sent = requests(40)
    send(broker, sent)
    with Rig(build, broker, sink) as rig:
        rig.arrived(400)
        assert sink.samples() == total(sent)
        assert rig.messages("success") == 40 and rig.messages("failed") == 0
        rig.until(lambda: rig.committed() == 40)
        assert rig.gateway.total("otelcol_kafka_receiver_partitions") == kafka.PARTITIONS
        rig.until(lambda: rig.gateway.total("otelcol_kafka_receiver_offset_lag") == 0)
        assert rig.gateway.total("otelcol_receiver_accepted_profile_samples", transport="kafka") == 400
        assert rig.gateway.balanced("profiles", "otlp_grpc")


def test_json(build, broker, sink):
    message = make.request(3, samples=10)
    send(broker, [otlp.to_json(message.SerializeToString())])
    with Rig(build, broker, sink, "profiles: {encoding: otlp_json}") as rig:
        rig.arrived(10)
        assert sink.samples() == otlp.samples(message)


def test_another_group_member_takes_over(build, broker, sink):
    """The partitions move to the second member and back; what both have accepted is what was sent."""
    sent = requests(60)
    with Rig(build, broker, sink) as first:
        send(broker, sent[:20])
        first.arrived(200)
        with Rig(build, broker, sink) as second:
            second.until(lambda: second.gateway.total("otelcol_kafka_receiver_partitions") > 0)
            first.until(lambda: first.gateway.total("otelcol_kafka_receiver_partitions")
                        + second.gateway.total("otelcol_kafka_receiver_partitions") == kafka.PARTITIONS)
            send(broker, sent[20:40])
            first.arrived(400)
            assert second.messages("success") > 0
        first.until(lambda: first.gateway.total("otelcol_kafka_receiver_partitions") == kafka.PARTITIONS)
        send(broker, sent[40:])
        first.arrived(600)
    assert sink.samples() == total(sent)


def test_only_what_was_delivered_is_committed(build, broker):
    """With `ack: delivered` and a sink that is away, nothing is committed; the next process reads it all again."""
    sent = requests(8)
    with peers.Sink() as away:
        port = away.port
    send(broker, sent)
    with peers.Sink() as sink:
        dead = type("Dead", (), {"port": port})
        with Rig(build, broker, dead, "ack: delivered") as rig:
            rig.until(lambda: rig.gateway.total("otelcol_ledger_in_samples") >= 80)
            time.sleep(0.5)
            assert rig.committed() == 0 and rig.messages("success") == 0
            rig.gateway.stop(signal.SIGKILL)
        with Rig(build, broker, sink, "ack: delivered") as rig:
            rig.arrived(80)
            rig.until(lambda: rig.committed() == 8)
            assert sink.samples() == total(sent)


def test_a_full_queue_pauses_and_loses_nothing(build, broker, sink):
    answers = [False]
    sink.answer = lambda data, context: b"" if answers[0] else context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
    sent = requests(50)
    send(broker, sent)
    with Rig(build, broker, sink, exporter="sending_queue: {queue_size: 5, num_consumers: 1}") as rig:
        rig.until(lambda: rig.messages("postponed") > 3)
        assert rig.committed() < 10
        assert rig.gateway.log().count("Consumption pauses") == 1
        answers[0] = True
        rig.until(lambda: rig.messages("success") == 50)
        rig.until(lambda: rig.committed() == 50)
        rig.until(lambda: sink.samples() == total(sent))
        assert rig.gateway.balanced("profiles", "otlp_grpc")
        assert "Consumption continues" in rig.gateway.log()


def test_the_smallest_fetch_still_reads_messages_that_are_larger(build, broker, sink):
    sent = requests(5, samples=200)
    assert min(len(message.SerializeToString()) for message in sent) > 1024
    send(broker, sent)
    with Rig(build, broker, sink, "max_fetch_size: 1024\n    max_partition_fetch_size: 1024") as rig:
        rig.until(lambda: sink.samples() == total(sent))


FETCH = 1 << 20  # the default of max_fetch_size


def test_messages_that_wait_are_within_what_is_charged(build, broker):
    """A destination that fails sends all messages in processing back, where they wait for hours. They were never more than what is
    charged for them from the start: twice max_fetch_size. The other half of the charge is for what the client fetches."""
    entered, fails = [], threading.Event()

    def answer(data, context):
        entered.append(len(data))
        fails.wait(60)
        context.abort(grpc.StatusCode.UNAVAILABLE, "not now")

    sent = [make.request(seed, samples=12000).SerializeToString() for seed in range(30)]
    most = -(-2 * FETCH // min(map(len, sent)))  # messages until these bytes are reached
    assert 4 < most < 20
    send(broker, sent)
    text = CONFIG.replace("initial_interval: 50ms, max_interval: 100ms", "initial_interval: 1h, max_interval: 1h").replace(
        "retry_on_failure: {initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 0s}", "retry_on_failure: {enabled: false}")
    with peers.Sink(threads=64) as sink:
        sink.answer = answer
        with Rig(build, broker, sink, "ack: delivered", exporter="sending_queue: {num_consumers: 64}", text=text) as rig:
            rig.until(lambda: len(entered) >= most - 1)
            fails.set()
            rig.until(lambda: rig.messages("postponed") >= most - 1)
            assert len(entered) <= most + 2 and rig.messages("postponed") <= most + 2  # some may be on their way when it pauses
            assert rig.gateway.total("otelcol_memory_charged_bytes") >= 4 * FETCH


SHORT = """
receivers:
  otlp: {protocols: {http: {endpoint: 127.0.0.1:{port:http}, max_request_body_size: 268435456, write_timeout: 120s, read_timeout: 120s}}}
  kafka: {brokers: ["BROKER"], initial_offset: earliest, autocommit: {interval: 100ms}, error_backoff: {initial_interval: 50ms, max_interval: 100ms}}
processors: {memory_limiter: {check_interval: 200ms, limit_mib: 160, spike_limit_mib: 32}}
exporters: {otlp_grpc: {endpoint: 127.0.0.1:SINK, tls: {insecure: true}}}
service: {pipelines: {profiles: {receivers: [otlp, kafka], processors: [memory_limiter], exporters: [otlp_grpc]}}}
"""


@pytest.mark.skipif(os.environ.get("MODE") in ("asan", "tsan"), reason="the sanitizers' memory is not ours to bound")
def test_reading_pauses_while_memory_is_short(build, broker, sink):
    """The gate has room for one message at a time, and refuses the others until there is more: nothing is lost or fails, and
    the resident memory stays within the limit."""
    sent = [make.request(seed, samples=60000, functions=5000).SerializeToString() for seed in range(6)]
    with Gateway(build / "portcullis", SHORT.replace("BROKER", broker.address).replace("SINK", str(sink.port))) as g:
        def messages(outcome):
            return g.total("otelcol_kafka_receiver_messages", outcome=outcome)
        g.until(lambda: g.total("otelcol_kafka_receiver_partitions") == kafka.PARTITIONS)
        with Holder(g):
            send(broker, sent)
            g.until(lambda: messages("postponed"))
            assert g.total("otelcol_kafka_receiver_partitions") == kafka.PARTITIONS
            (line,) = [line for line in g.log().splitlines() if "Consumption pauses" in line]
            assert "memory" in line
        g.until(lambda: g.total("otelcol_ledger_out_samples", exporter="otlp_grpc") == 60000 * len(sent))
        g.until(lambda: sum(n or 0 for n in broker.committed("otel-collector", TOPIC)) == len(sent))
        assert messages("failed") == 0 and "Consumption continues" in g.log()
        assert g.rss()["VmHWM"] < 160 << 20


def test_a_poisoned_message_is_skipped_and_named(build, broker, sink):
    sent = requests(2)
    send(broker, [sent[0], b"\xff\xff\xff poison", sent[1]], partition=1)
    with Rig(build, broker, sink) as rig:
        rig.arrived(20)
        rig.until(lambda: rig.committed() == 3)
        assert rig.messages("failed") == 1 and sink.samples() == total(sent)
        assert rig.gateway.total("otelcol_kafka_receiver_unmarshal_failed_profiles") == 1
        (line,) = [line for line in rig.gateway.log().splitlines() if "A message was rejected" in line]
        assert '"partition":1' in line.replace(" ", "") and '"offset":1' in line.replace(" ", "") and "poison" not in line


@pytest.mark.parametrize("headers, messages", [
    ([], [b"\xff\xff\xff poison", *requests(1)]),
    ([("h%d" % i, b"v") for i in range(65)], requests(1)),
])
def test_a_poisoned_message_can_be_waited_for(build, broker, sink, headers, messages):
    """It is as bad at each attempt."""
    send(broker, messages, partition=0, headers=headers)
    with Rig(build, broker, sink, "message_marking: {on_permanent_error: false}") as rig:
        rig.until(lambda: rig.messages("postponed") > 2)
        assert rig.messages("failed") == 0 and rig.committed() == 0 and rig.messages("success") < len(messages)


@pytest.mark.parametrize("gives_up", [True, False])
def test_a_message_is_given_up_only_if_the_operator_says_so(build, broker, sink, gives_up):
    sink.answer = lambda data, context: context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
    send(broker, requests(8))
    lines = ["message_marking: {on_error: true}"] if gives_up else []
    with Rig(build, broker, sink, *lines, exporter="sending_queue: {queue_size: 1, num_consumers: 1}",
             backoff="max_elapsed_time: 100ms") as rig:
        if gives_up:
            rig.until(lambda: rig.committed() == 8)
            assert rig.messages("failed") == 8 - rig.messages("success") > 0
        else:
            rig.until(lambda: rig.messages("postponed") > 8)
            assert rig.messages("failed") == 0 and rig.committed() < 8


def test_an_oversized_message_is_skipped(build, broker, sink):
    sent = make.request(1, samples=2000)
    assert len(sent.SerializeToString()) > 4096
    send(broker, [sent, *requests(1)], partition=0)
    with Rig(build, broker, sink, "max_message_bytes: 4096") as rig:
        rig.arrived(10)
        rig.until(lambda: rig.committed() == 2)
        assert rig.messages("failed") == 1 and "max_message_bytes" in rig.gateway.log()


def test_an_empty_message_is_accepted(build, broker, sink):
    send(broker, [b""])
    with Rig(build, broker, sink) as rig:
        rig.until(lambda: rig.committed() == 1)
        assert rig.messages("success") == 1


def resource_attributes(data):
    message = data if isinstance(data, otlp.Request) else otlp.Request.FromString(data)
    return [{a.key: a.value.string_value for a in r.resource.attributes} for r in message.resource_profiles]


def test_headers_are_metadata_and_attributes(build, broker, sink):
    send(broker, requests(1), headers=[("Team", b"blue"), ("binary", b"\x00\xff"), ("other", b"x")])
    with Rig(build, broker, sink, "header_extraction: {extract_headers: true, headers: [team, binary, absent]}",
             service="tenant: {required: true, header: team}", exporter="headers: {}") as rig:
        rig.arrived(10)
        (attributes,) = resource_attributes(sink.received[0])
        assert attributes["kafka.header.team"] == "blue" and not [k for k in attributes if "binary" in k or "other" in k]
        assert rig.gateway.total("otelcol_tenant_samples", tenant="blue") == 10


def test_a_required_tenant_is_required(build, broker, sink):
    send(broker, requests(1))
    with Rig(build, broker, sink, service="tenant: {required: true, header: team}") as rig:
        rig.until(lambda: rig.messages("failed") == 1)
        assert not sink.received


def test_too_many_headers_are_refused(build, broker, sink):
    send(broker, requests(1), headers=[("h%d" % i, b"v") for i in range(65)])
    with Rig(build, broker, sink) as rig:
        rig.until(lambda: rig.messages("failed") == 1)
        rig.until(lambda: rig.committed() == 1)


def test_repeated_messages_are_dropped(build, broker, sink):
    key = ("Idempotency-Key", b'"0123456789abcdef0123456789abcdef"')
    send(broker, requests(1) * 3, headers=[key])
    with Rig(build, broker, sink, "deduplicate: {}", "max_in_flight: 1") as rig:
        rig.until(lambda: rig.messages("success") == 3)
        rig.arrived(10)
        assert sum(sink.samples().values()) == 10


def test_pprof_with_attributes_from_headers(build, broker, sink):
    body = make.pprof(7).SerializeToString()
    send(broker, [body, gzip.compress(body)], headers=[("service.name", b"shop"), ("idempotency-key", b"0123456789abcdef01")])
    with Rig(build, broker, sink, "profiles: {encoding: pprof}") as rig:
        rig.until(lambda: rig.messages("success") == 2)
        rig.until(lambda: len(sink.received) == 2)
        assert all(a["service.name"] == "shop" and len([k for k in a if "idempotency" in k]) == 0
                   for data in sink.received for a in resource_attributes(data))


def test_topics_by_pattern(build, broker, sink):
    for topic in "team.a", "team.b", "team.secret", "other":
        send(broker, requests(1), topic=topic)
    with Rig(build, broker, sink, "profiles: {topics: ['^team[.]'], exclude_topics: ['^team[.]secret']}") as rig:
        rig.arrived(20)
        rig.until(lambda: rig.committed(topic="team.a") == 1 and rig.committed(topic="team.b") == 1)
        assert rig.messages("success") == 2


def test_a_broker_that_is_away_delays_neither_start_nor_stop(build, broker, sink):
    broker.command("down 1")
    with Rig(build, broker, sink) as rig:
        begun = time.monotonic()
        assert rig.gateway.stop(signal.SIGTERM) == 0
        assert time.monotonic() - begun < 20


def test_shutdown_does_not_wait_for_a_dead_destination(build, broker):
    """The messages in processing are not acknowledged, so the next process reads them."""
    sent = requests(8)
    with peers.Sink() as away:
        port = away.port
    send(broker, sent)
    dead = type("Dead", (), {"port": port})
    with Rig(build, broker, dead, "ack: delivered", arguments=["--shutdown-timeout", "3s"]) as rig:
        rig.until(lambda: rig.gateway.total("otelcol_ledger_in_samples") >= 80)
        begun = time.monotonic()
        rig.gateway.stop(signal.SIGTERM)
        assert time.monotonic() - begun < 30
    assert not any(broker.committed("otel-collector", TOPIC))
    with peers.Sink() as sink, Rig(build, broker, sink, "ack: delivered") as rig:
        rig.arrived(80)
        assert sink.samples() == total(sent)


def test_what_is_delivered_during_the_stop_is_committed(build, broker, sink):
    """Consumption is paused and would continue with the second message of partition 0, while the first is on its way. It does
    not: the third one would come, would not be processed, and nothing before it could be committed any more."""
    ends, begun = {size: threading.Event() for size in (11, 12, 13)}, set()

    def answer(data, context):
        size = otlp.samples(data).total()
        begun.add(size)
        ends.get(size, ends[11]).wait(60)
        return b""
    sink.answer = answer
    with Rig(build, broker, sink, "ack: delivered", exporter="sending_queue: {queue_size: 2, num_consumers: 2}") as rig:
        def write(size, partition):
            send(broker, [make.request(size, samples=size)], partition=partition)
        for size, partition in (11, 1), (12, 0):
            write(size, partition)
            rig.until(lambda: size in begun)
        write(13, 0)
        rig.until(lambda: rig.messages("postponed"))
        write(14, 0)
        ends[11].set()
        rig.until(lambda: 13 in begun)
        rig.gateway.process.send_signal(signal.SIGTERM)
        rig.until(lambda: "Starting shutdown..." in rig.gateway.log())
        time.sleep(.3)
        ends[13].set()
        time.sleep(.7)
        ends[12].set()
        assert rig.gateway.process.wait(60) == 0
    first, second, *_ = broker.committed("otel-collector", TOPIC)
    assert (first or 0) >= 2 and second == 1


def test_commits_that_fail_are_counted_and_repeated(build, broker, sink):
    broker.command("errors %d 1 30" % kafka.OFFSET_COMMIT)
    send(broker, requests(4))
    with Rig(build, broker, sink) as rig:
        rig.until(lambda: rig.gateway.total("otelcol_kafka_receiver_client_errors", receiver="kafka", error="permission_denied"))
        rig.until(lambda: rig.committed() == 4)
        assert rig.messages("success") == 4


def errors(rig):
    return [line for line in rig.gateway.log().splitlines() if "The Kafka client reports an error" in line]


def test_errors_of_connections_are_explained_and_counted(build, broker, sink):
    """The broker does not speak TLS: it closes the connection."""
    with Rig(build, broker, sink, "tls: {}") as rig:
        rig.until(lambda: rig.gateway.total("otelcol_kafka_receiver_client_errors", receiver="kafka", error="tls"))
        rig.until(lambda: errors(rig))
        (line,) = errors(rig)
        assert ('"endpoint": "%s", "error": "tls", "code": "_SSL", "cause": "connection closed in the TLS handshake", '
                '"stage": "tls_handshake"' % broker.address) in line


def test_a_broker_that_comes_back(build, broker, sink):
    sent = requests(20)
    send(broker, sent[:10])
    with Rig(build, broker, sink) as rig:
        rig.arrived(100)
        broker.command("down 1")
        rig.until(lambda: errors(rig))
        broker.command("up 1")
        send(broker, sent[10:])
        rig.arrived(200)
        rig.until(lambda: "The Kafka client works again." in rig.gateway.log())
        rig.until(lambda: rig.committed() == 20)
        assert sink.samples() == total(sent)


def test_a_reload_keeps_what_it_reads(build, broker, sink, tmp_path):
    """A changed configuration hands the partitions over to the successor; nothing is lost, and little is read twice."""
    sent = requests(40)
    with Rig(build, broker, sink) as rig:
        send(broker, sent[:20])
        rig.arrived(200)
        rig.until(lambda: rig.committed() == 20)
        rig.gateway.config.write_text(rig.gateway.config.read_text().replace("interval: 100ms}", "interval: 90ms}"))
        rig.gateway.process.send_signal(signal.SIGHUP)
        send(broker, sent[20:])
        rig.arrived(400)
        rig.until(lambda: rig.committed() == 40)
        assert sink.samples() == total(sent)


@pytest.mark.parametrize("lines, reason", [
    ("profiles: {topics: []}", "topics must be specified"),
    ("profiles: {topics: [a/b]}", "topics[0]: must be 1 to 249"),
    ("profiles: {topics: ['^(']}", "regular expression"),
    ("profiles: {exclude_topics: [a]}", "needs a regular expression in topics"),
    ("profiles: {encoding: jaeger}", "encoding"),
    ("initial_offset: middle", "earliest or latest"),
    ("group_id: ''", "group_id must be specified"),
    ("session_timeout: 10ms", "session_timeout: must be from 1s to 5m"),
    ("heartbeat_interval: 20s", "less than session_timeout"),
    ("autocommit: {enable: false}", "must be true"),
    ("autocommit: {interval: 0s}", "from 1ms to 24h"),
    ("group_rebalance_strategies: [sticky]", "cooperative-sticky, range or roundrobin"),
    ("group_rebalance_strategies: [range, cooperative-sticky]", "must be [cooperative-sticky]"),
    ("header_extraction: {extract_headers: true}", "headers must be specified"),
    ("error_backoff: {randomization_factor: 2}", "must be within [0, 1]"),
    ("partition_processing: {independent: true}", "independent: must be false"),
    ("nonsense: 1", "invalid keys: nonsense"),
])
def test_what_cannot_be_honoured_is_an_error(build, tmp_path, lines, reason):
    (tmp_path / "c.yaml").write_text("""
receivers: {kafka: {%s}}
exporters: {debug: {}}
service: {pipelines: {profiles: {receivers: [kafka], exporters: [debug]}}}
""" % lines)
    run = subprocess.run([build / "portcullis", "validate", "--config", tmp_path / "c.yaml"], capture_output=True, text=True)
    assert run.returncode and reason in run.stderr + run.stdout


def test_keys_of_the_collector_for_other_signals_are_taken(build, tmp_path):
    (tmp_path / "c.yaml").write_text("""
receivers:
  kafka:
    rack_id: a
    conn_idle_timeout: 9m
    use_leader_epoch: false
    traces: {topics: [spans]}
    metrics: {topics: [metrics]}
    logs: {topics: [logs], encoding: text}
    telemetry: {metrics: {kafka_receiver_records_delay: {enabled: true}}}
    partition_processing: {independent: false, max_buffered_batches: 2}
exporters: {debug: {}}
service: {pipelines: {profiles: {receivers: [kafka], exporters: [debug]}}}
""")
    subprocess.run([build / "portcullis", "validate", "--config", tmp_path / "c.yaml"], check=True)
