# SPDX-License-Identifier: Apache-2.0
"""What a destination does not get becomes a dead letter. How it is sent again is in test_replay.py."""
import base64
import random
import resource
import signal
import threading
import time

import grpc
import pytest

from harness import build as make
from harness import kafka, otlp, parca, peers
from harness.durable import expected, set_file_limit
from harness.letters import BUSY, CONFIG, REFUSE, SAMPLES, Rig, lose, requests, take
from harness.push import PushSink, refusal, reply


@pytest.mark.threads
def test_what_is_rejected_is_kept_and_sent_again(build, tmp_path):
    with Rig(build, tmp_path) as rig:
        sent = rig.send(*requests(5))
        rig.settle()
        assert rig.dead_samples() == 5 * SAMPLES
        assert rig.gateway.total("otelcol_ledger_dropped_samples", exporter="otlp_grpc") == 0
        assert rig.gateway.total("otelcol_exporter_dead_letters", reason="permanent") == 5
        rig.stop()
        assert '"lost_samples": 0' in rig.gateway.log()
        assert rig.letters() == expected(sent)
        reason = rig.reasons()[0]
        assert (reason["destination"], reason["pipeline"], reason["reason"], reason["error"], reason["attempts"], reason["samples"]) == (
            "otlp_grpc", "profiles", "permanent", "invalid_argument", 1, SAMPLES)
        assert rig.dead.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in rig.dead.iterdir()} == {0o600}
        assert not any(b"a secret of the destination" in path.read_bytes() for path in rig.dead.iterdir())

        rig.sink.received.clear()
        rig.sink.answer = take
        tried = rig.replay("--dry-run")
        assert tried.returncode == 0 and tried.stdout.count("would be sent") == 5 and not rig.sink.received
        done = rig.replay()
        assert done.returncode == 0, done.stderr
        assert "[5/5]" in done.stdout and "no processor runs again" in done.stdout and "5 sent" in done.stdout
        assert rig.sink.samples() == expected(sent)
        assert not list(rig.dead.iterdir())


TOPIC_DENIED = 29  # of Kafka's protocol


def old(request):
    for p in (p for r in request.resource_profiles for s in r.scope_profiles for p in s.profiles):
        p.time_unix_nano = (time.time_ns() - 3600 * 10 ** 9)
    return request


NO_RETRY = "retry_on_failure: {enabled: false}"
RETRY = "retry_on_failure: {initial_interval: 10ms, max_interval: 10ms, max_elapsed_time: 200ms}"
LONG = "retry_on_failure: {initial_interval: 50ms, max_interval: 50ms}"


@pytest.mark.parametrize("reason, answer, change", [
    ("permanent", REFUSE, NO_RETRY),
    ("no_retry", BUSY, NO_RETRY),
    ("retries_exhausted", BUSY, RETRY),
    ("expired", BUSY, LONG + "\n    sending_queue: {max_age: 300ms}"),
    ("too_old", take, NO_RETRY + "\n    limits: {max_age: 1m}"),
])
@pytest.mark.threads
def test_every_kind_of_loss_is_kept(build, tmp_path, reason, answer, change):
    with Rig(build, tmp_path, (NO_RETRY, change), answer=answer) as rig:
        request = old(make.request(1, samples=SAMPLES))
        lose(rig, request)
        assert rig.dead_samples() == SAMPLES
        assert [found["reason"] for found in rig.reasons()] == [reason]
        assert rig.letters() == expected([request])


def test_a_full_queue_and_a_shutdown_lose_nothing(build, tmp_path):
    change = LONG + "\n    sending_queue: {queue_size: 3, num_consumers: 1}\n    required: false"
    with Rig(build, tmp_path, (NO_RETRY, change), answer=BUSY) as rig:
        sent = rig.send(*requests(10))
        rig.gateway.until(lambda: rig.dead_samples() == 7 * SAMPLES)
        assert [found["reason"] for found in rig.reasons()] == ["queue_full"] * 7
        rig.stop()
        assert [found["reason"] for found in rig.reasons()].count("shutdown") == 3
        report = rig.gateway.log()
        assert '"lost_samples": 0, "dead_letter_samples": %d' % (3 * SAMPLES) in report
        assert "Shutdown dropped data" not in report
        assert rig.letters() == expected(sent)


def test_what_waits_becomes_letters_before_the_deadline(build, tmp_path):
    """Letters need time. What is in flight may still be accepted."""
    change = LONG + "\n    timeout: 60s\n    sending_queue: {num_consumers: 1}"
    answers = threading.Event()
    with Rig(build, tmp_path, (NO_RETRY, change), ("service:\n", "service:\n  shutdown: {timeout: 16s}\n"),
             answer=lambda data, context: answers.wait(60) and b"") as rig:
        sent = rig.send(*requests(40))
        rig.gateway.process.terminate()
        rig.gateway.until(lambda: len(rig.reasons()) == 39)
        answers.set()
        assert rig.gateway.process.wait(60) == 0
        assert len(rig.reasons()) == 39 and {found["reason"] for found in rig.reasons()} == {"shutdown"}
        assert '"sent_samples": %d, "kept_samples": 0, "lost_samples": 0, "dead_letter_samples": %d' % (
            SAMPLES, 39 * SAMPLES) in rig.gateway.log()
        assert rig.letters() + rig.sink.samples() == expected(sent)


@pytest.mark.parametrize("size", ["queue_size: 3", "queue_size: %d, sizer: items" % (3 * SAMPLES + 10)])
@pytest.mark.parametrize("first", ["a", "b"])
def test_what_one_queue_refuses_and_another_pipeline_accepts_is_kept(build, tmp_path, first, size):
    """Its sender gets a success, and does not send it again. With the second size, the queue has room, but not for the request."""
    with peers.Sink() as other:
        two = "\n  otlp_grpc/other: {endpoint: 127.0.0.1:%d, tls: {insecure: true}}\nservice:" % other.port
        change = LONG + "\n    sending_queue: {%s, num_consumers: 1}" % size
        paths = {"a": "profiles", "b": "profiles/z"} if first == "a" else {"a": "profiles/z", "b": "profiles"}
        pipelines = "".join("    %s: {receivers: [otlp], exporters: [%s]}\n" % pair for pair in sorted(
            [(paths["a"], "otlp_grpc"), (paths["b"], "otlp_grpc/other")]))
        with Rig(build, tmp_path, (NO_RETRY, change), ("\nservice:", two),
                 ("    profiles: {receivers: [otlp], exporters: [otlp_grpc]}\n", pipelines), answer=BUSY) as rig:
            sent = rig.send(*requests(10))
            rig.gateway.until(lambda: rig.dead_samples() == 7 * SAMPLES)
            assert [found["reason"] for found in rig.reasons()] == ["queue_full"] * 7
            rig.gateway.until(lambda: other.samples() == expected(sent))
            rig.stop()
            assert rig.letters() == expected(sent)


def test_a_sample_that_is_too_large_is_kept_alone(build, tmp_path):
    """Its neighbours are delivered."""
    m = make.Maker()
    resource = m.resource({"service.name": "checkout"})
    profile = m.profile(m.scope(resource))
    for size in (10, 200000, 10):
        stack = m.stack([m.location([m.function("x" * size + str(size))])])
        profile.samples.add(stack_index=stack, values=[size])
    with Rig(build, tmp_path, (NO_RETRY, NO_RETRY + "\n    limits: {max_bytes: 50000}"), answer=take) as rig:
        lose(rig, m.message)
        assert rig.dead_samples() == 1
        whole = expected([m.message])
        assert sum(rig.sink.samples().values()) == 2 and whole == rig.sink.samples() + rig.letters()
        assert all(len(data) <= 50000 for data in rig.sink.received)
        assert [(found["reason"], found["samples"]) for found in rig.reasons()] == [("too_large", 1)]
        assert "x" * 200000 in str(rig.letters())


def partial(data, context):
    return otlp.Response(partial_success={"rejected_profiles": 1, "error_message": "x"}).SerializeToString()


def test_partial_success_is_kept_but_not_sent_twice_unasked(build, tmp_path):
    with Rig(build, tmp_path, answer=partial) as rig:
        request = make.request(3, samples=SAMPLES)
        lose(rig, request)
        rig.gateway.until(lambda: rig.reasons())
        assert rig.gateway.ledger("profiles", "otlp_grpc")["out"] == SAMPLES and rig.dead_samples() == 0
        assert [(found["reason"], found["rejected_profiles"]) for found in rig.reasons()] == [("partial_success", 1)]
        rig.sink.answer = take
        done = rig.replay()
        assert done.returncode == 1 and "1 skipped" in done.stdout and "--include-partial" in done.stdout
        rig.sink.answer = partial
        done = rig.replay("--include-partial")
        assert done.returncode == 1 and "1 accepted in part" in done.stdout and len(rig.reasons()) == 1
        rig.sink.answer = take
        assert rig.replay("--include-partial").returncode == 0 and not rig.reasons()


def test_what_is_accepted_in_part_by_a_replay_says_so(build, tmp_path):
    with Rig(build, tmp_path) as rig:
        lose(rig, make.request(3, samples=SAMPLES))
        rig.sink.answer = partial
        assert rig.replay().returncode == 1
        assert [(found["reason"], found["rejected_profiles"]) for found in rig.reasons()] == [("partial_success", 1)]
        assert "1 skipped" in rig.replay().stdout


def test_senders_that_will_retry_leave_no_letter(build, tmp_path):
    change = NO_RETRY + "\n    sending_queue: {wait_for_result: true}"
    with Rig(build, tmp_path, (NO_RETRY, change), answer=BUSY) as rig:
        with pytest.raises(grpc.RpcError):
            rig.send(make.request(1, samples=SAMPLES))
        rig.settle()
        assert rig.dead_samples() == 0 and not rig.reasons()
        rig.sink.answer = REFUSE
        with pytest.raises(grpc.RpcError):
            rig.send(make.request(1, samples=SAMPLES))
        rig.settle()
        assert rig.dead_samples() == SAMPLES


@pytest.mark.parametrize("bound", ["max_letters: 3", "max_size_mib: 1"])
def test_a_full_directory_keeps_what_it_has(build, tmp_path, bound):
    samples = 20 if "letters" in bound else 9000
    with Rig(build, tmp_path, ("{directory: dead}", "{directory: dead, %s}" % bound)) as rig:
        rig.send(*requests(8, samples))
        rig.settle()
        kept = len(rig.reasons())
        assert 0 < kept < 8
        assert rig.dead_samples() == kept * samples
        assert rig.gateway.total("otelcol_ledger_dropped_samples", reason="permanent") == (8 - kept) * samples
        assert rig.gateway.total("otelcol_exporter_dead_letters_failed", reason="full") == 8 - kept
        assert sum(path.stat().st_size for path in rig.dead.iterdir()) <= 1 << 20
        assert rig.gateway.log().count("Dead letters cannot be written") == 1
        rig.sink.answer = take
        assert rig.replay().returncode == 0
        rig.sink.answer = REFUSE

        def again():
            rig.send(make.request(50, samples=20))
            return rig.reasons()
        rig.gateway.until(again)
        rig.gateway.until(lambda: "Dead letters are written again." in rig.gateway.log())


def test_a_full_disk_costs_letters_and_nothing_else(build, tmp_path):
    with Rig(build, tmp_path) as rig:
        set_file_limit(rig.gateway.process, 100)
        rig.send(*requests(3))
        rig.settle()
        assert rig.gateway.total("otelcol_exporter_dead_letters_failed", reason="error") == 3
        assert rig.gateway.total("otelcol_ledger_dropped_samples", reason="permanent") == 3 * SAMPLES
        assert not list(rig.dead.iterdir())
        rig.sink.answer = take
        sent = rig.send(*requests(3))
        rig.gateway.until(lambda: rig.sink.samples() >= expected(sent))
        set_file_limit(rig.gateway.process, resource.RLIM_INFINITY)
        rig.sink.answer = REFUSE
        rig.send(*requests(1))
        rig.settle()
        assert rig.dead_samples() == SAMPLES and "Dead letters are written again." in rig.gateway.log()


def test_a_directory_that_was_removed_is_made_again(build, tmp_path):
    with Rig(build, tmp_path) as rig:
        rig.dead.rmdir()
        lose(rig, make.request(1, samples=SAMPLES))
        assert rig.dead_samples() == SAMPLES and len(rig.reasons()) == 1


def test_the_kill_switch_leaves_no_letter(build, tmp_path):
    (tmp_path / "rules.txt").write_text("kill destination otlp_grpc\n")
    rules = "service:\n  kill_switch: {file: rules.txt, destinations: drop}\n"
    with Rig(build, tmp_path, ("service:\n", rules), answer=take) as rig:
        rig.gateway.until(lambda: rig.gateway.total("otelcol_exporter_killed") == 1)
        rig.send(make.request(1, samples=SAMPLES))
        rig.settle()
        assert rig.gateway.total("otelcol_ledger_dropped_samples", reason="killed") == SAMPLES
        assert not rig.reasons()


def test_a_queue_on_disk_gives_up_its_record_for_the_letter(build, tmp_path):
    changes = ((NO_RETRY, NO_RETRY + "\n    sending_queue: {storage: file_storage}"),
               ("service:\n", "extensions:\n  file_storage: {directory: queue, create_directory: true}\n"
                              "service:\n  extensions: [file_storage]\n"))
    with Rig(build, tmp_path, *changes) as rig:
        sent = rig.send(*requests(5))
        rig.settle()
        rig.stop()
        assert rig.letters() == expected(sent)
    with Rig(build, tmp_path, *changes) as rig:
        assert rig.gateway.total("otelcol_ledger_restored_samples") == 0
        rig.sink.answer = take
        assert rig.replay().returncode == 0  # while the gateway has the storage
        assert rig.sink.samples() == expected(sent)


def test_a_kill_loses_nothing_between_the_queue_on_disk_and_the_letter(build, tmp_path):
    """A packet leaves the queue when its letter is complete."""
    changes = ((NO_RETRY, NO_RETRY + "\n    sending_queue: {storage: file_storage}"),
               ("{port:otlp}}}}", "{port:otlp}}}, ack: durable}"),
               ("service:\n", "extensions:\n  file_storage: {directory: queue, create_directory: true}\n"
                              "service:\n  extensions: [file_storage]\n"))
    sent, chance = [], random.Random(11)
    for turn in range(8):
        with Rig(build, tmp_path, *changes) as rig:
            for seed in range(6):
                sent += rig.send(make.request(100 * turn + seed, samples=SAMPLES))
            time.sleep(chance.uniform(0, 0.05))
            rig.gateway.stop(signal.SIGKILL)
    with Rig(build, tmp_path, *changes) as rig:
        rig.gateway.until(lambda: not rig.gateway.ledger("profiles", "otlp_grpc")["queued"])
        assert not expected(sent) - rig.letters()
        assert len(rig.reasons()) >= len(sent)
        assert rig.gateway.balanced("profiles", "otlp_grpc")


def test_the_tenant_and_the_metadata_are_kept(build, tmp_path):
    changes = (("service:\n", "extensions:\n  headers_setter: {headers: [{key: x-scope-orgid, from_context: x-team}]}\n"
                              "service:\n  extensions: [headers_setter]\n  tenant: {header: x-team}\n"),
               ("{port:otlp}", "{port:otlp}, include_metadata: true"), (NO_RETRY, NO_RETRY + "\n    auth: {authenticator: headers_setter}"))
    with Rig(build, tmp_path, *changes) as rig:
        for team in ("blue", "green"):
            rig.send(make.request(len(team), samples=SAMPLES), metadata=[("x-team", team)])
            rig.settle()
        assert [found["tenant"] for found in rig.reasons()] == ["blue", "green"]
        rig.sink.answer = take
        rig.sink.metadata.clear()
        assert rig.replay().returncode == 0
        assert [dict(m)["x-scope-orgid"] for m in rig.sink.metadata] == ["blue", "green"]


# A gateway that splits batches by a credential, and passes another one on.
CREDENTIALS = (
    ("service:\n", "processors: {batch: {metadata_keys: [authorization, x-team]}}\n"
                   "extensions:\n  headers_setter: {headers: [{key: x-api-key, from_context: x-api-key}]}\n"
                   "service:\n  extensions: [headers_setter]\n"),
    ("receivers: [otlp],", "receivers: [otlp], processors: [batch],"),
    ("{port:otlp}", "{port:otlp}, include_metadata: true"), (NO_RETRY, NO_RETRY + "\n    auth: {authenticator: headers_setter}"))


def written(rig):
    """All bytes of the letters, with what is in base64."""
    return b"".join(path.read_bytes() for path in rig.dead.iterdir()) + b"".join(
        base64.b64decode(reason["record"]) for reason in rig.reasons())


def test_credentials_are_left_out_unless_the_authenticator_sends_them(build, tmp_path):
    with Rig(build, tmp_path, *CREDENTIALS) as rig:
        sent = rig.send(make.request(1, samples=SAMPLES), metadata=[
            ("authorization", "Bearer s3cret"), ("x-team", "blue-team"), ("x-api-key", "passed-on")])
        rig.gateway.until(lambda: rig.dead_samples() == SAMPLES)
        data = written(rig)
        assert b"s3cret" not in data and b"blue-team" in data and b"passed-on" in data
        rig.sink.answer = take
        rig.sink.metadata.clear()
        rig.sink.received.clear()
        assert rig.replay().returncode == 0
        assert [dict(m)["x-api-key"] for m in rig.sink.metadata] == ["passed-on"] and rig.sink.samples() == expected(sent)


def test_a_message_of_kafka_is_replayed_without_the_credential_of_its_sender(build, tmp_path):
    config = CONFIG.replace("{port:otlp}", "{port:otlp}, include_metadata: true").replace("otlp_grpc", "kafka")
    with kafka.Broker(build) as broker:
        config = config.replace("    endpoint: 127.0.0.1:{port:sink}\n    tls: {insecure: true}\n",
                                "    brokers: ['%s']\n    include_metadata_keys: [authorization, x-team]\n" % broker.address)
        broker.command("errors %d 1 %d" % (kafka.PRODUCE, TOPIC_DENIED))
        with Rig(build, tmp_path, config=config) as rig, broker.reader("otlp_profiles") as reader:
            rig.send(make.request(1, samples=SAMPLES), metadata=[("authorization", "Bearer s3cret"), ("x-team", "blue-team")])
            rig.gateway.until(lambda: len(rig.reasons()) == 1)
            assert b"s3cret" not in written(rig)
            done = rig.replay(to="kafka")
            assert done.returncode == 0, done.stderr
            [message] = reader.until(lambda messages: messages)
            assert [value for name, value in message.headers if name != "idempotency-key"] == [b"blue-team"]


def test_what_was_made_for_a_store_goes_to_such_a_store_only(build, tmp_path):
    config = CONFIG.replace("  otlp_grpc:\n", "  otlp_grpc: {endpoint: 127.0.0.1:1, tls: {insecure: true}}\n  parca:\n").replace(
        "exporters: [otlp_grpc]", "exporters: [parca]")
    rig = Rig(build, tmp_path, config=config)
    rig.sink = peers.Sink(rig.gateway.port["sink"], method=parca.METHOD)
    rig.sink.answer = REFUSE
    with rig:
        rig.send(make.request(1, samples=SAMPLES))
        rig.gateway.until(lambda: rig.dead_samples() == SAMPLES)
        assert rig.reasons()[0]["made_for"] == "parca"
        done = rig.replay()
        assert done.returncode == 1 and "made for an exporter of type parca" in done.stdout
        first = rig.sink.received
        rig.sink.received = []
        rig.sink.answer = take
        assert rig.replay(to="parca").returncode == 0 and not rig.reasons()
        assert len(rig.sink.received) == 1 and not first


def test_what_was_made_for_pyroscope_is_sent_again_as_it_was(build, tmp_path):
    """One request for each series, with its labels, values and times."""
    bodies, refuse = [], [True]

    def answer(taken, number):
        bodies.append(taken.body)
        return refusal(400, "invalid_argument", "no") if refuse[0] else reply(200)
    with PushSink() as store:
        store.answer = answer
        config = CONFIG.replace("  otlp_grpc:\n    endpoint: 127.0.0.1:{port:sink}\n    tls: {insecure: true}\n",
                                "  pyroscope:\n    endpoint: http://127.0.0.1:%d\n    limits: {max_age: 876000h}\n" % store.port)
        with Rig(build, tmp_path, config=config.replace("exporters: [otlp_grpc]", "exporters: [pyroscope]")) as rig:
            rig.send(make.request(1, samples=SAMPLES), make.request(2, samples=SAMPLES, service="other", profiles=2))
            rig.gateway.until(lambda: rig.dead_samples() == 3 * SAMPLES)
            assert {found["made_for"] for found in rig.reasons()} == {"pyroscope"}
            first, refuse[0] = sorted(bodies), False
            bodies.clear()
            done = rig.replay(to="pyroscope")
            assert done.returncode == 0, done.stdout + done.stderr
            assert sorted(bodies) == first and not rig.reasons()
