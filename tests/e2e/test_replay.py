# SPDX-License-Identifier: Apache-2.0
"""`portcullis replay` sends dead letters again."""
import json
import os
import random
import signal
import subprocess
import time

import pytest

from harness import build as make
from harness import otlp
from harness.durable import expected
from harness.gateway import Gateway
from harness.letters import BUSY, CONFIG, REFUSE, SAMPLES, Rig, lose, requests, take


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


def split(rig):
    """From now on, the exporter makes a request of each Profile."""
    config = rig.gateway.config
    config.write_text(config.read_text().replace("    dead_letter:", "    limits: {max_samples: %d}\n    dead_letter:" % SAMPLES))


def test_a_letter_of_which_a_part_is_rejected_becomes_that_part(build, tmp_path):
    """The exporter splits the letter, and the destination accepts one part of it."""
    with Rig(build, tmp_path) as rig:
        request = make.request(1, samples=SAMPLES, profiles=2)
        lose(rig, request)
        rig.stop()
        split(rig)
        rig.sink.received.clear()
        rig.sink.answer = lambda data, context: REFUSE(data, context) if rig.sink.received else b""
        done = rig.replay()
        assert done.returncode == 1 and "1 accepted in part" in done.stdout, done.stdout + done.stderr
        assert [(found["reason"], found["samples"]) for found in rig.reasons()] == [("permanent", SAMPLES)]
        assert rig.sink.samples() + rig.letters() == expected([request])
        assert "1 rejected" in rig.replay().stdout and len(rig.sink.received) == 1
        rig.sink.answer = take
        assert rig.replay().returncode == 0
        assert rig.sink.samples() == expected([request]) and not list(rig.dead.iterdir())


def test_what_was_accepted_of_a_letter_is_not_sent_again(build, tmp_path):
    """The destination accepts one part, rejects one, and then accepts nothing for some time."""
    keys, refusals = [], [None, REFUSE, BUSY, BUSY]

    def answer(data, context):
        keys.append(dict(context.invocation_metadata())["idempotency-key"])
        return refusals[len(keys) - 1](data, context) if refusals[len(keys) - 1] else b""
    with Rig(build, tmp_path) as rig:
        request = make.request(1, samples=SAMPLES, profiles=4)
        lose(rig, request)
        rig.stop()
        split(rig)
        rig.sink.received.clear()
        rig.sink.answer = answer
        done = rig.replay()
        assert done.returncode == 1 and "does not accept data now" in done.stderr, done.stdout + done.stderr
        assert [(found["reason"], found["samples"]) for found in rig.reasons()] == [
            ("permanent", SAMPLES), ("no_retry", SAMPLES), ("no_retry", SAMPLES)]
        assert len({found["arrived"] for found in rig.reasons()}) == 1
        assert len(rig.sink.received) == 1 and len(keys) == 4
        refusals.extend([None] * 3)
        assert rig.replay().returncode == 0
        assert rig.sink.samples() == expected([request])
        assert keys[4:] == keys[1:4]  # receivers recognise a request that they have after all
        assert not list(rig.dead.iterdir())


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
