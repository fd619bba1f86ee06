# SPDX-License-Identifier: Apache-2.0
"""What a destination does not get becomes a dead letter, and `portcullis replay` sends it again."""
import json
import os
import random
import resource
import signal
import subprocess
import time

import grpc
import pytest

from harness import build as make
from harness import otlp, parca, peers
from harness.durable import expected, set_file_limit
from harness.gateway import Gateway
from harness.push import PushSink, refusal, reply

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:{port:sink}
    tls: {insecure: true}
    retry_on_failure: {enabled: false}
    dead_letter: {directory: dead}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc]}
"""
SAMPLES = 20


def abort(status):
    def answer(data, context):
        context.abort(status, "a secret of the destination")
    return answer


REFUSE, BUSY = abort(grpc.StatusCode.INVALID_ARGUMENT), abort(grpc.StatusCode.UNAVAILABLE)


class Rig:
    """A gateway with a destination. Leaves the files when it ends."""

    def __init__(self, build, directory, *changes, config=CONFIG, answer=REFUSE):
        for was, now in changes:
            assert was in config
            config = config.replace(was, now)
        self.build, self.directory, self.dead = build, directory, directory / "dead"
        self.gateway = Gateway(build / "portcullis", config, cwd=directory)
        self.sink = peers.Sink(self.gateway.port.get("sink", 0))
        self.sink.answer = answer

    def __enter__(self):
        self.sink.start()
        self.gateway.__enter__()
        return self

    def __exit__(self, *error):
        self.gateway.__exit__(*error)
        self.sink.stop()

    def send(self, *requests, **keywords):
        with peers.Client(self.gateway.port["otlp"]) as client:
            for request in requests:
                client.send(request, **keywords)
        return requests

    def dead_samples(self):
        return self.gateway.total("otelcol_ledger_dead_letter_samples")

    def settle(self):
        """Everything has ended, and every sample is accounted for."""
        self.gateway.until(lambda: not self.gateway.ledger("profiles", "otlp_grpc")["queued"]
                           and self.gateway.balanced("profiles", "otlp_grpc"))

    def stop(self):
        assert self.gateway.stop() == 0, self.gateway.log()

    def reasons(self):
        return [json.loads(path.read_text()) for path in sorted(self.dead.glob("*.json"))]

    def letters(self):
        """The samples in all letters."""
        return sum((otlp.samples(path.read_bytes()) for path in self.dead.glob("*.otlp")), start=otlp.Counter())

    def replay(self, *arguments, to="otlp_grpc", directory="dead"):
        return subprocess.run([self.gateway.binary, "replay", directory, "--to", to, "--config", str(self.gateway.config), *arguments],
                              cwd=self.directory, capture_output=True, text=True, timeout=120)


def take(data, context):
    return b""


def requests(count, samples=SAMPLES):
    return [make.request(seed, samples=samples) for seed in range(count)]


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


def lose(rig, request):
    rig.send(request)
    rig.settle()


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


# ---- replay

def test_a_replay_has_the_key_of_the_first_attempt(build, tmp_path):
    """So receivers that drop repetitions recognise it."""
    keys = []

    def answer(data, context):
        keys.append(dict(context.invocation_metadata())["idempotency-key"])
        if len(keys) == 1:
            REFUSE(data, context)
        return b""
    with Rig(build, tmp_path, answer=answer) as rig:
        lose(rig, make.request(1, samples=SAMPLES))
        assert rig.replay().returncode == 0
        assert keys[0] and keys == keys[:1] * 2


def test_a_replay_stops_while_the_destination_is_down_and_can_be_repeated(build, tmp_path):
    with Rig(build, tmp_path) as rig:
        sent = rig.send(*requests(6))
        rig.settle()
        rig.sink.received.clear()
        rig.sink.answer = lambda data, context: b"" if len(rig.sink.received) < 2 else BUSY(data, context)
        done = rig.replay()
        assert done.returncode == 1 and "4 of 6 dead letters remain" in done.stderr and "4 not tried" in done.stdout
        assert len(rig.reasons()) == 4
        rig.sink.answer = REFUSE
        done = rig.replay()
        assert done.returncode == 1 and "4 rejected" in done.stdout and len(rig.reasons()) == 4
        rig.sink.answer = take
        assert rig.replay().returncode == 0
        assert rig.sink.samples() == expected(sent)


def test_a_replay_that_is_killed_at_any_time_loses_nothing(build, tmp_path):
    with Rig(build, tmp_path) as rig:
        sent = rig.send(*requests(30))
        rig.settle()
        rig.stop()
        rig.sink.received.clear()
        rig.sink.answer = lambda data, context: time.sleep(0.005) or b""
        chance, kills = random.Random(7), 0
        command = [rig.gateway.binary, "replay", "dead", "--to", "otlp_grpc", "--config", str(rig.gateway.config)]
        while rig.reasons():
            process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
            try:
                assert process.wait(chance.uniform(0.02, 0.25) if kills < 25 else 120) == 0
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
        assert kills
        found = rig.sink.samples()
        assert not expected(sent) - found
        assert len(rig.sink.received) <= 30 + kills
        assert rig.replay().returncode == 0
        assert not list(rig.dead.glob("*.otlp"))


NAME = "20260102T150405.123456789-%06d"


def spoil(dead, good):
    """Files that are no letters. Returns the number of them that seem to be."""
    body, reason = good.read_bytes(), json.loads(good.with_suffix(".json").read_text())

    def put(number, body=body, reason=reason):
        path = dead / (NAME % number)
        path.with_name(path.name + ".otlp").write_bytes(body)
        path.with_name(path.name + ".json").write_text(reason if isinstance(reason, str) else json.dumps(reason))
    flipped = bytearray(body)
    flipped[len(flipped) // 2] ^= 1
    put(1, body=body[:-1])
    put(2, body=body + b"x")
    put(3, body=bytes(flipped))
    put(4, body=b"")
    put(5, reason="")
    put(6, reason="{")
    put(7, reason="[" * 1000)
    put(8, reason="{}")
    put(9, reason={**reason, "record": "!!!"})
    put(10, reason={**reason, "record": reason["record"][:-8]})
    put(11, reason={**reason, "record": "A" * 400})
    put(12, reason={**reason, "format": 2})
    put(13, reason={**reason, "reason": "../../etc/passwd"})
    put(14, reason={**reason, "record": [1]})
    put(15, reason=" " * (2 << 20))
    put(16)
    put(17)
    put(18)
    put(19)
    for number, target in ((16, "otlp"), (17, "json")):
        link = dead / ("%s.%s" % (NAME % number, target))
        link.unlink()
        link.symlink_to("/etc/passwd")
    pipe = dead / ((NAME % 18) + ".otlp")
    pipe.unlink()
    os.mkfifo(pipe)
    os.truncate(dead / ((NAME % 19) + ".otlp"), 1 << 40)
    (dead / ((NAME % 20) + ".json")).mkdir()
    (dead / ((NAME % 20) + ".otlp")).mkdir()
    (dead / "notes.txt").write_text("mine")
    (dead / ((NAME % 21) + ".otlp")).write_bytes(body)
    (dead / ((NAME % 22) + ".json")).write_text(json.dumps(reason))
    return 20


def test_hostile_files_are_named_and_left_alone(build, tmp_path):
    with Rig(build, tmp_path) as rig:
        sent = rig.send(*requests(2))
        rig.settle()
        rig.sink.received.clear()
        rig.sink.answer = take
        seeming = spoil(rig.dead, sorted(rig.dead.glob("*.otlp"))[0])
        for arguments in (["--dry-run"], []):
            done = rig.replay(*arguments)
            assert done.returncode == 1, done.stderr
            assert done.stdout.count(": skipped: ") == seeming, done.stdout
            assert all((NAME % i) + ": skipped" in done.stdout for i in range(1, seeming + 1))
            assert "root:" not in done.stdout + done.stderr
        assert rig.sink.samples() == expected(sent)
        assert "2 other files are left alone" in done.stdout
        assert (rig.dead / "notes.txt").read_text() == "mine"
        assert len(list(rig.dead.glob("*.json"))) == seeming  # and nothing that is done


def test_a_letter_with_valid_checksums_holds_what_it_says(build, tmp_path):
    """Only what the decoder accepts is sent, without what OTLP does not know."""
    with Rig(build, tmp_path) as rig:
        request = make.request(1, samples=SAMPLES)
        lose(rig, request)
        assert otlp.samples(next(rig.dead.glob("*.otlp")).read_bytes()) == expected([request])
        rig.sink.answer, rig.sink.received = take, []
        before = next(rig.dead.glob("*.otlp")).read_bytes()
        assert rig.replay().returncode == 0
        assert rig.sink.received == [before]  # the same bytes


@pytest.mark.parametrize("rule, status, words", [
    ("kill everything", 1, "the kill switch stops this destination"),
    ("kill destination otlp_grpc", 1, "the kill switch stops this destination"),
    ("kill service checkout", 1, "skipped: the kill switch stops its data"),
    ("kill service other", 0, "2 sent"),
])
def test_a_replay_obeys_the_kill_switch(build, tmp_path, rule, status, words):
    with Rig(build, tmp_path, ("service:\n", "service:\n  kill_switch: {file: rules.txt}\n")) as rig:
        rig.send(*requests(2))
        rig.settle()
        rig.stop()
        rig.sink.received.clear()
        rig.sink.answer = take
        (tmp_path / "rules.txt").write_text(rule + "\n")
        done = rig.replay()
        assert done.returncode == status and words in done.stdout + done.stderr, done.stdout + done.stderr
        assert len(rig.sink.received) == (0 if status else 2) and len(rig.reasons()) == (2 if status else 0)


@pytest.mark.parametrize("arguments, words", [
    (("dead", "--to", "otlp_http"), 'there is no exporter "otlp_http"'),
    (("dead", "--to", "file"), "would be overwritten"),
    (("dead",), "--to"),
    (("nowhere", "--to", "otlp_grpc"), "cannot open the directory nowhere"),
    (("open", "--to", "otlp_grpc"), "must not be writable by other users"),
])
def test_errors_of_the_command(build, tmp_path, arguments, words):
    (tmp_path / "c.yaml").write_text(CONFIG.replace("{port:otlp}", "4317").replace("{port:sink}", "4318").replace(
        "exporters:\n", "exporters:\n  file: {path: out.json}\n", 1))
    (tmp_path / "dead").mkdir(mode=0o700)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    done = subprocess.run([build / "portcullis", "replay", *arguments, "--config", "c.yaml"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 1 and words in done.stderr, done.stderr


@pytest.mark.parametrize("change, words", [
    (("{directory: dead}", "{max_letters: 5}"), "`directory` must be non-empty"),
    (("{directory: dead}", "{directory: dead, max_letters: 0}"), "max_letters"),
    (("service:\n", "  otlp_grpc/b: {endpoint: localhost:1, dead_letter: {directory: ./dead/}}\nservice:\n"), "writes to the same place"),
])
def test_errors_of_the_configuration(build, tmp_path, change, words):
    text = CONFIG.replace("{port:otlp}", "4317").replace("{port:sink}", "4318").replace(*change).replace(
        "exporters: [otlp_grpc]", "exporters: [otlp_grpc, otlp_grpc/b]" if "/b" in change[1] else "exporters: [otlp_grpc]")
    (tmp_path / "c.yaml").write_text(text)
    done = subprocess.run([build / "portcullis", "validate", "--config", tmp_path / "c.yaml"], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and words in done.stderr, done.stderr


def test_a_directory_that_others_can_write_to_stops_the_start(build, tmp_path):
    (tmp_path / "dead").mkdir()
    (tmp_path / "dead").chmod(0o770)
    g = Gateway(build / "portcullis", CONFIG, cwd=tmp_path, ready=False)
    with g:
        assert g.process.wait(60) != 0
    assert "must not be writable by other users" in g.log()


def test_two_replays_do_not_meet(build, tmp_path):
    with Rig(build, tmp_path) as rig:
        rig.send(*requests(3))
        rig.settle()
        rig.sink.answer = lambda data, context: time.sleep(1) or b""
        rig.sink.received.clear()
        command = [rig.gateway.binary, "replay", "dead", "--to", "otlp_grpc", "--config", str(rig.gateway.config)]
        first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        assert "3 dead letters" in first.stdout.readline()
        second = rig.replay()
        assert second.returncode == 1 and "another replay is running" in second.stderr
        first.communicate(timeout=60)
        assert first.returncode == 0
