# SPDX-License-Identifier: Apache-2.0
"""The gRPC server against Debian's Python client and raw sockets. MODE picks the build (asan and tsan too)."""
import concurrent.futures
import os
import pathlib
import random
import socket
import struct
import subprocess
import threading
import time

import grpc
import pytest

from harness.served import (Served, build, frame, literal, raw_call, raw_connection, read_frames, read_until_closed,
                            refusal, status_messages, status_of)

ECHO, BUSY, HOLD = "/test.Test/Echo", "/test.Test/Busy", "/test.Test/Hold"
HEALTH = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
HEADERS, GOAWAY, WINDOW_UPDATE = 1, 7, 8
SECOND = 10 ** 9
ZSTD = bytes.fromhex("28b52ffd")

pytestmark = pytest.mark.threads


@pytest.fixture(scope="module")
def program():
    return build("net/h2/rpc_serve")


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    return status_messages(tmp_path_factory.mktemp("proto"))


def wait_for(condition, seconds=30):
    for _ in range(seconds * 20):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it never happened")


def test_a_call_is_answered_by_another_thread_with_what_is_known_of_it(program):
    with Served(program) as s:
        text = s.call(ECHO, b"hello", metadata=[("x-tenant", "a"), ("x-raw-bin", b"\0\1")]).decode()
        assert "len=5 first=68 peer=127.0.0.1" in text and "auth." not in text
        assert "\nx-tenant=a" in text and "x-raw-bin" not in text


def test_there_are_as_many_io_threads_as_were_asked_for(program):
    with Served(program) as s:
        s.call(ECHO, b"x")  # so that the threads have come past their beginning
        threads = pathlib.Path("/proc/%d/task" % s.process.pid)
        assert [(t / "comm").read_text() for t in threads.iterdir()].count("io\n") == 2


def test_the_empty_message_is_a_message(program):
    with Served(program) as s:
        assert b"len=0" in s.call(ECHO, b"")


def test_a_compressed_message_arrives_compressed(program):
    with Served(program) as s, s.channel(compression=grpc.Compression.Gzip) as gzip:
        assert b"coding=1 len=" in gzip.unary_unary(ECHO)(b"x" * 100000)
        assert b"first=1f" in gzip.unary_unary(ECHO)(b"x" * 100000)
        assert b"coding=0 len=20 first=28" in s.call(ECHO, ZSTD + b"x" * 16)


@pytest.mark.parametrize("encoding,coding", [(b"zstd", 3), (b"gzip", 1), (b"deflate", 2), (b"snappy", 4), (b"lz4", 7), (b"canary4711", 7)])
def test_the_encoding_that_the_headers_name_is_known(program, tmp_path, encoding, coding):
    """And no name that a client made up is logged."""
    with open(tmp_path / "log", "wb") as log, Served(program, log=log) as s:
        c = raw_connection(s.port)
        raw_call(c, ECHO, more=[(b"grpc-encoding", encoding)])
        c.sendall(frame(0, 1, 1, b"\1" + struct.pack(">I", 8) + ZSTD + b"abcd"))
        wait_for(lambda: s.count()["replied"] == 1)
        received = b""
        while b"len=8" not in received:
            received += c.recv(65536)
        assert b"coding=%d len=8" % coding in received
        c.close()
    assert "canary" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("data,code", [(b"\7\0\0\0\1x", 13), (b"\0\0\0\0\1x\0\0\0\0\1y", 12), (b"\0\0\0\0\2x", 3),
                                       (b"\0\0", 3), (b"", 3)])
def test_what_is_no_single_message_is_refused(program, data, code):
    """A wrong flag, two messages, a message that is cut, a prefix that is cut, none."""
    with Served(program) as s:
        c = raw_connection(s.port)
        raw_call(c, ECHO)
        c.sendall(frame(0, 1, 1, data))
        assert status_of(c) == code
        assert s.count() == {"headers": 1, "messages": 0, "lost": 1, "too_large": 0, "replied": 0}
        c.close()


def test_a_message_over_the_limit_is_refused_and_seen(program):
    with Served(program, max_message=100000) as s:
        code, text, _ = refusal(lambda: s.call(ECHO, b"x" * 100001))
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and text == "the message has 100001 bytes; max_message is 100000"
        wait_for(lambda: s.count()["too_large"] == 1)
        assert s.count()["lost"] == 0
        assert b"len=100000" in s.call(ECHO, b"x" * 100000)


def test_a_message_of_any_claimed_length_takes_bounded_memory(program):
    with Served(program) as s, s.channel() as channel:
        refusal(lambda: channel.unary_unary(ECHO)(bytes(300 << 20)))
        peak = [x for x in open("/proc/%d/status" % s.process.pid) if x.startswith("VmHWM")][0]
        if os.environ.get("MODE") not in ("asan", "tsan"):
            assert int(peak.split()[1]) < 150 << 10
        assert b"len=5" in s.call(ECHO, b"hello")


def test_a_call_without_a_message_is_invalid(program):
    with Served(program) as s, s.channel() as channel:
        code, text, _ = refusal(lambda: channel.stream_unary(ECHO)(iter([])))
        assert code == grpc.StatusCode.INVALID_ARGUMENT and "without a complete message" in text
        wait_for(lambda: s.count()["lost"] == 1)


def test_what_is_cut_before_the_message_is_lost_once(program):
    with Served(program) as s:
        for data in (b"\0" + struct.pack(">I", 1000) + b"x", b"\7" + struct.pack(">I", 1000) + b"x", b"\0\0"):
            c = raw_connection(s.port)
            raw_call(c, ECHO)
            c.sendall(frame(0, 0, 1, data))
            time.sleep(0.1)
            c.close()
        wait_for(lambda: s.count()["lost"] == 3)
        assert s.count() == {"headers": 3, "messages": 0, "lost": 3, "too_large": 0, "replied": 0}


@pytest.mark.parametrize("large, answered", [(1024, True), (512, False)])
def test_a_large_message_may_have_small_frames_between_its_large_ones(program, large, answered):
    with Served(program) as s, raw_connection(s.port) as c:
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw_call(c, ECHO)
        frames, window, first = read_frames(c), 65535 - 5, None
        c.sendall(frame(0, 0, 1, b"\0" + (300 * (large + 1)).to_bytes(4, "big")))
        for i in range(300):
            while window < large + 1 and first != GOAWAY:
                first, _, stream, payload = next(frames)
                window += int.from_bytes(payload, "big") if (first, stream) == (WINDOW_UPDATE, 1) else 0
            if first == GOAWAY:
                break
            window -= large + 1
            c.sendall(frame(0, 0, 1, b"x" * large) + frame(0, i == 299, 1, b"x"))
        if first != GOAWAY:
            first = next(kind for kind, _, stream, _ in frames if kind == GOAWAY or (kind, stream) == (HEADERS, 1))
        assert first == (HEADERS if answered else GOAWAY)
        frames.close()


def test_a_message_that_drips_is_ended(program):
    with Served(program, message_timeout=SECOND // 2) as s:
        c = raw_connection(s.port)
        raw_call(c, ECHO)
        c.sendall(frame(0, 0, 1, b"\0" + struct.pack(">I", 1000) + b"x"))
        wait_for(lambda: s.count()["lost"] == 1)
        c.close()
        with s.channel() as channel:
            code, text, _ = refusal(lambda: channel.stream_unary(ECHO)(never(), timeout=20))
        assert code == grpc.StatusCode.DEADLINE_EXCEEDED and text == (
            "timed out waiting for the message: 0 bytes have arrived in 0.5 s; the maximum is 0.5 s")


def test_a_reply_after_the_deadline_or_a_cancel_is_harmless(program):
    with Served(program) as s, s.channel() as channel:
        assert refusal(lambda: s.call(HOLD, b"x", timeout=0.2))[0] == grpc.StatusCode.DEADLINE_EXCEEDED
        future = channel.unary_unary(HOLD).future(b"x")
        wait_for(lambda: s.count()["messages"] == 2)
        future.cancel()
        s.ask("release")
        wait_for(lambda: s.count()["replied"] == 2)
        assert s.count()["lost"] == 0
        assert b"len=1" in s.call(ECHO, b"x")


def never():
    threading.Event().wait(5)
    return
    yield


def test_a_refusal_comes_from_the_headers_with_a_retry_hint(program, messages):
    with Served(program) as s, s.channel() as channel:
        code, text, error = refusal(lambda: channel.stream_unary(BUSY)(never(), timeout=20))
        assert code == grpc.StatusCode.UNAVAILABLE and text == "the memory limit is reached"
        details = dict(error.trailing_metadata())["grpc-status-details-bin"]
        status, retry = messages.Status.FromString(details), messages.RetryInfo()
        assert (status.code, status.message) == (14, text)
        assert status.details[0].type_url == "type.googleapis.com/google.rpc.RetryInfo"
        retry = messages.RetryInfo.FromString(status.details[0].value)
        assert 1.5 <= retry.retry_delay.seconds + retry.retry_delay.nanos / SECOND <= 2.25
        assert s.count()["messages"] == 0


def test_a_thousand_refusals_of_large_messages_take_no_memory(program):
    with Served(program) as s, s.channel() as channel:
        refusal(lambda: channel.unary_unary(BUSY)(b"x" * 2000000))
        before = int(s.ask("rss"))
        futures = [channel.unary_unary(BUSY).future(b"x" * 2000000) for _ in range(200)]
        assert {f.code() for f in futures} == {grpc.StatusCode.UNAVAILABLE}
        if os.environ.get("MODE") not in ("asan", "tsan"):
            assert int(s.ask("rss")) < before + (32 << 10)


@pytest.mark.parametrize("method, cut_off", [(BUSY, False), ("/canary.Canary/Sing", True)])
def test_refusals_with_a_retry_hint_cost_no_client_its_connection(program, method, cut_off):
    with Served(program) as s, raw_connection(s.port) as c:
        frames, ends = read_frames(c), []
        for stream in range(1, 3001, 2):
            raw_call(c, method, stream)
            ends.append(next(kind for kind, flags, _, _ in frames if kind == 7 or (kind == 1 and flags & 1)))
            if ends[-1] == 7:
                break
        frames.close()
        assert (ends[-1] == 7) == cut_off and len(ends) >= 1000


def test_metadata_is_limited(program):
    with Served(program) as s:
        code, _, _ = refusal(lambda: s.call(ECHO, b"x", metadata=[("x-long", "v" * 20000)]))
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert b"x-long=vvv" in s.call(ECHO, b"x", metadata=[("x-long", "v" * 6000)])


def test_settings_offer_small_windows_and_few_streams(program):
    with Served(program, streams=7) as s:
        c = raw_connection(s.port)
        head = c.recv(9, socket.MSG_WAITALL)
        body = c.recv(struct.unpack(">I", b"\0" + head[:3])[0], socket.MSG_WAITALL)
        settings = dict(struct.unpack(">HI", body[i:i + 6]) for i in range(0, len(body), 6))
        assert head[3] == 4 and settings[3] == 7
        assert settings.get(4, 65535) <= 65536 and settings[6] <= 16384
        c.close()


def test_health(program):
    with Served(program) as s:
        assert s.call(HEALTH, b"") == b"\x08\x01"
        assert s.call(HEALTH, b"\x0a\x09test.Test") == b"\x08\x01"
        assert refusal(lambda: s.call(HEALTH, b"\x0a\x04test"))[0] == grpc.StatusCode.NOT_FOUND
        assert refusal(lambda: s.call(HEALTH, b"\xff"))[0] == grpc.StatusCode.INVALID_ARGUMENT
        assert refusal(lambda: s.call(HEALTH, b"x" * 5000))[0] == grpc.StatusCode.INVALID_ARGUMENT
        s.ask("serving 0")
        assert s.call(HEALTH, b"") == b"\x08\x02"


@pytest.mark.parametrize("algorithm", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_health_is_asked_for_compressed(program, algorithm):
    with Served(program) as s, s.channel(compression=algorithm) as channel:
        ask = channel.unary_unary(HEALTH)
        # Long enough for C core to find that it pays.
        assert ask(b"\x0a\x09test.Test" + b"\x0a\x09test.Test" * 50) == b"\x08\x01"
        assert refusal(lambda: ask(b"x" * 100000))[0] == grpc.StatusCode.INVALID_ARGUMENT


def test_a_watcher_of_health_hears_of_it_at_once_and_of_every_change(program):
    with Served(program) as s, s.channel() as channel:
        statuses = channel.unary_stream(WATCH)(b"\x0a\x09test.Test", timeout=30)
        unknown = channel.unary_stream(WATCH)(b"\x0a\x04test", timeout=30)
        assert next(statuses) == b"\x08\x01"
        assert next(unknown) == b"\x08\x03"
        s.ask("serving 0")
        assert next(statuses) == b"\x08\x02"
        s.ask("serving 1")
        assert next(statuses) == b"\x08\x01"
        unknown.cancel()
        assert channel.unary_unary(HEALTH)(b"") == b"\x08\x01"


def messages_of(frames, stream, count):
    """So many messages of a call's response."""
    body = b""
    while len(body) < 7 * count:
        kind, _, number, payload = next(frames)
        body += payload if (kind, number) == (0, stream) else b""
    return [body[at + 5:at + 7] for at in range(0, 7 * count, 7)]


def test_a_watcher_who_reads_late_hears_of_what_changed_meanwhile(program):
    """Only of the last change: one message waits for him."""
    with Served(program) as s, raw_connection(s.port) as c:
        c.sendall(frame(4, 0, 0, struct.pack(">HI", 4, 0)))  # INITIAL_WINDOW_SIZE 0
        raw_call(c, WATCH)
        c.sendall(frame(0, 1, 1, bytes(5)))
        frames = read_frames(c)
        assert next(kind for kind, _, stream, _ in frames if stream == 1) == 1
        for serving in "010":
            s.ask("serving " + serving)
        c.sendall(frame(8, 0, 1, struct.pack(">I", 1000)))
        assert messages_of(frames, 1, 2) == [b"\x08\x01", b"\x08\x02"]
        s.ask("serving 1")
        assert messages_of(frames, 1, 1) == [b"\x08\x01"]
        frames.close()


def test_a_stop_tells_watchers_and_ends_them(program):
    with Served(program) as s, s.channel() as channel:
        statuses = channel.unary_stream(WATCH)(b"", timeout=30)
        assert next(statuses) == b"\x08\x01"
        s.tell("stop 20000")
        assert next(statuses) == b"\x08\x02"
        assert refusal(lambda: next(statuses))[0] == grpc.StatusCode.UNAVAILABLE
        assert s.process.wait(30) == 0


def test_watchers_of_one_connection_are_bounded_and_their_places_come_free(program):
    with Served(program) as s, s.channel() as channel, s.channel() as other:
        watchers = [channel.unary_stream(WATCH)(b"", timeout=60) for _ in range(8)]
        assert all(next(w) == b"\x08\x01" for w in watchers)
        code, *_ = refusal(lambda: next(channel.unary_stream(WATCH)(b"", timeout=30)))
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert next(other.unary_stream(WATCH)(b"", timeout=30)) == b"\x08\x01", "nobody else is shut out"
        watchers[0].cancel()

        def watches():
            try:
                return next(channel.unary_stream(WATCH)(b"", timeout=30)) == b"\x08\x01"
            except grpc.RpcError:
                return False

        wait_for(watches)


@pytest.mark.parametrize("kind,served", [(b"application/grpc", True), (b"application/grpc+proto", True),
                                         (b"application/grpc;x=y", True), (b"application/grpc-web+proto", False),
                                         (b"application/json", False)])
def test_only_grpc_is_taken_for_grpc(program, kind, served):
    with Served(program) as s:
        c = raw_connection(s.port)
        headers = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", ECHO.encode()), (b":authority", b"x"),
                   (b"content-type", kind)]
        c.sendall(frame(1, 4, 1, b"".join(literal(*h) for h in headers)) + frame(0, 1, 1, bytes(5)))
        block = next(payload for number, _, stream, payload in read_frames(c) if (number, stream) == (1, 1))
        lines = subprocess.run([build("net/h2/hpack_tool")], input=block, capture_output=True, check=True).stdout
        assert lines.startswith(b":status=200" if served else b":status=404")
        assert s.count()["headers"] == served
        c.close()


def exchange(c, stream, path, kind, body):
    """(header blocks, body) of the response to a request by hand."""
    headers = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"x"), (b"content-type", kind)]
    c.sendall(frame(1, 4, stream, b"".join(literal(*h) for h in headers)) + frame(0, 1, stream, body))
    block, data = b"", b""
    frames = read_frames(c)
    for number, flags, at, payload in frames:
        block += payload if (number, at) == (1, stream) else b""
        data += payload if (number, at) == (0, stream) else b""
        if at == stream and flags & 1:
            break
    frames.close()
    return block, data


@pytest.mark.parametrize("path, kind, status, found", [
    (b"/text", b"text/plain", 200, b"text: hello"), (b"/text", b"text/plain; charset=utf-8", 200, b"text: hello"),
    (b"/text", b"text/html", 415, b""), (b"/other", b"text/plain", 415, b""), (b"/text", b"application/json", 404, b"")])
def test_another_service_shares_the_listener_by_path_and_media_type(program, path, kind, status, found):
    with Served(program) as s:
        with raw_connection(s.port) as c:
            block, data = exchange(c, 1, path, kind, b"hello")
            lines = subprocess.run([build("net/h2/hpack_tool")], input=block, capture_output=True, check=True).stdout
            assert b":status=%d" % status in lines.splitlines() and data.startswith(found)
        with s.channel() as channel:
            assert b"len=5" in channel.unary_unary(ECHO)(b"hello")
            assert refusal(lambda: channel.unary_unary("/text")(b""))[0] == grpc.StatusCode.UNIMPLEMENTED
        assert s.count()["headers"] == 1


def test_both_services_answer_on_one_connection(program):
    with Served(program) as s, raw_connection(s.port) as c:
        for stream in range(1, 21, 4):
            assert exchange(c, stream, b"/text", b"text/plain", b"x" * stream)[1] == b"text: " + b"x" * stream
            assert b"len=1" in exchange(c, stream + 2, ECHO.encode(), b"application/grpc", b"\0\0\0\0\1x")[1]


@pytest.mark.parametrize("size, expected", [(0, 262144), (100000, 100000), (400000, 400000)])
def test_buffers_have_the_size_that_was_asked_for(program, size, expected):
    """Forty replies of 15 KB wait for the connection's window, and leave together when it opens."""
    with Served(program, read_buffer=size, write_buffer=size, limits="{max_outbound_bytes: 4194304}") as s:
        with raw_connection(s.port) as c:
            for stream in range(1, 81, 2):
                raw_call(c, ECHO, stream, [(b"x-filler", b"f" * 15000)])
                c.sendall(frame(0, 1, stream, bytes(5)))
            wait_for(lambda: s.count()["replied"] == 40)
            frames, seen = read_frames(c), 0
            while seen < 65535:
                kind, _, _, payload = next(frames)
                seen += len(payload) if kind == 0 else 0
            c.sendall(frame(8, 0, 0, struct.pack(">I", 1 << 20)))
            while seen < 40 * 15000:
                kind, _, _, payload = next(frames)
                seen += len(payload) if kind == 0 else 0
            frames.close()
        largest = {k: int(v) for k, v in (pair.split("=") for pair in s.ask("io").split())}
        assert largest["recv"] == expected and expected - 16500 < largest["send"] <= expected


def test_binary_metadata_is_decoded_where_it_is_text_and_the_authority_is_known(program):
    with Served(program) as s:
        text = s.call(ECHO, b"", metadata=[("x-text-bin", "Zürich".encode()), ("x-raw-bin", b"\xff\0")]).decode()
        assert "\nx-text-bin=Zürich" in text and "x-raw-bin" not in text
        assert "\n:authority=127.0.0.1:%d" % s.port in text and "\nhost=127.0.0.1:%d" % s.port in text


def test_watchers_that_vanish_do_no_harm(program):
    with Served(program) as s:
        for _ in range(5):
            with s.channel() as channel:
                watchers = [channel.unary_stream(WATCH)(b"", timeout=30) for _ in range(8)]
                assert next(watchers[0]) == b"\x08\x01"
                s.ask("serving 0")
                s.ask("serving 1")
        assert s.call(HEALTH, b"") == b"\x08\x01"


def test_an_unknown_method_is_unimplemented_and_those_that_work_are_named(program):
    with Served(program) as s:
        for _ in range(10):
            code, text, _ = refusal(lambda: s.call("/canary.Canary/Sing", b"x"))
            assert code == grpc.StatusCode.UNIMPLEMENTED and "canary" not in text.lower()
            assert text.startswith("unknown method, supported: [/") and HEALTH in text


def test_two_hundred_connections(program):
    with Served(program) as s:
        channels = [s.channel() for _ in range(200)]
        futures = [c.unary_unary(ECHO).future(b"x" * 1000, timeout=60) for c in channels for _ in range(3)]
        assert all(b"len=1000" in f.result() for f in futures)
        for c in channels:
            c.close()


def test_connection_age_loses_no_call_under_load(program):
    with Served(program, age=SECOND // 2, age_grace=SECOND // 2) as s, s.channel() as channel:
        end = time.monotonic() + 3

        def work(_):
            done = 0
            while time.monotonic() < end:
                assert b"len=20000" in channel.unary_unary(ECHO)(b"x" * 20000, timeout=20)
                done += 1
            return done

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            done = sum(pool.map(work, range(8)))
        assert s.count()["replied"] == done > 0


def test_idle_connections_and_silent_peers_are_closed(program):
    with Served(program, idle=SECOND // 2) as s:
        assert b"idle" in read_until_closed(raw_connection(s.port))
    with Served(program, keepalive_time=SECOND // 2, keepalive_timeout=SECOND // 2) as s:
        read_until_closed(raw_connection(s.port))  # answers no ping


def test_a_client_that_pings_too_often_is_cut_off(program):
    ping = frame(6, 0, 0, b"12345678")
    with Served(program) as s:
        c = raw_connection(s.port)
        c.sendall(ping * 5)
        assert b"too_many_pings" in read_until_closed(c)
    with Served(program, min_ping=SECOND // 1000) as s:
        c = raw_connection(s.port)
        for _ in range(5):
            c.sendall(ping)
            time.sleep(0.02)
        c.settimeout(0.5)
        with pytest.raises(TimeoutError):
            read_until_closed(c)
        c.close()


def hold(s, channel, count):
    futures = [channel.unary_unary(HOLD).future(b"x", timeout=60) for _ in range(count)]
    wait_for(lambda: s.count()["messages"] == count)
    return futures


def stop_with_held_calls(program):
    """How many of twenty held calls ended well after the stop."""
    with Served(program) as s, s.channel() as channel:
        futures = hold(s, channel, 20)
        s.tell("stop_held 20000")
        ended = sum(f.exception() is None and b"len=1" in f.result() for f in futures)
        assert s.process.wait(30) == 0
        return ended


def test_a_graceful_stop_finishes_held_calls(program):
    assert stop_with_held_calls(program) == 20


def test_a_stop_says_goaway_after_the_replies_and_closes_when_the_client_has_read_it(program):
    data, headers, ping, goaway, end_stream, ack = 0, 1, 6, 7, 1, 1
    with Served(program) as s:
        c = raw_connection(s.port)
        raw_call(c, HOLD)
        c.sendall(frame(data, end_stream, 1, b"\0" + struct.pack(">I", 1) + b"x"))
        wait_for(lambda: s.count()["messages"] == 1)
        s.tell("stop_held 20000")
        frames, seen = read_frames(c), []
        for kind, flags, _, payload in frames:
            seen.append((kind, flags & end_stream if kind == headers else 0))
            if kind == ping and not flags & ack:
                break
        assert seen.index((headers, end_stream)) < seen.index((goaway, 0))
        c.sendall(frame(ping, 0, 0, b"12345678"))  # not the answer: the server still reads
        assert any(kind == ping and flags & ack for kind, flags, _, _ in frames)
        c.sendall(frame(ping, ack, 0, payload))
        assert not list(frames)
        assert s.process.wait(30) == 0
        c.close()


def test_past_the_grace_held_calls_are_cancelled_and_nothing_aborts(program):
    with Served(program) as s, s.channel() as channel:
        futures = hold(s, channel, 20)
        s.tell("stop_held 50")
        assert {f.code() for f in futures} == {grpc.StatusCode.UNAVAILABLE}
        assert s.process.wait(30) == 0


def test_a_stop_refuses_new_calls_while_held_ones_finish(program):
    with Served(program) as s, s.channel() as channel:
        futures = hold(s, channel, 1)
        s.tell("stop_held 20000")
        time.sleep(0.1)
        code, details, _ = refusal(lambda: channel.unary_unary(ECHO)(b"x", timeout=10))
        assert code == grpc.StatusCode.UNAVAILABLE, details
        assert b"len=1" in futures[0].result()
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", s.port)) != 0)


def exhaust(connect):
    """More connections than there are descriptors, all closed at last."""
    crowd = []
    for _ in range(120):
        try:
            crowd.append(connect())
        except OSError:
            break
    time.sleep(0.5)
    for c in crowd:
        c.close()


@pytest.mark.parametrize("rounds", [1, 2])
def test_accepting_survives_a_want_of_descriptors(program, tmp_path, rounds):
    with open(tmp_path / "log", "wb") as log, Served(program, descriptors=64, log=log) as s:
        for _ in range(rounds):
            exhaust(lambda: socket.create_connection(("127.0.0.1", s.port)))
            assert b"len=5" in s.call(ECHO, b"hello", timeout=30, wait_for_ready=True)
    assert "Accepting connections again" in (tmp_path / "log").read_text()


def test_accepting_on_a_unix_socket_survives_it_too(program, tmp_path):
    path = str(tmp_path / "socket")

    def connect():
        c = socket.socket(socket.AF_UNIX)
        c.settimeout(1)
        c.connect(path)
        return c

    with Served(program, descriptors=64, endpoint=path, transport="unix") as s:
        s.target = "unix:" + path
        assert b"peer=\n" in s.call(ECHO, b"hello")
        exhaust(connect)
        assert b"len=5" in s.call(ECHO, b"hello", timeout=30, wait_for_ready=True)


def test_a_call_in_flight_survives_the_change_of_listeners(program):
    with Served(program, descriptors=64) as s, s.channel() as channel:
        futures = hold(s, channel, 1)
        exhaust(lambda: socket.create_connection(("127.0.0.1", s.port)))
        assert b"len=5" in s.call(ECHO, b"hello", timeout=30, wait_for_ready=True)
        s.ask("release")
        assert b"len=1" in futures[0].result()


def test_a_second_instance_on_the_port_is_refused(program, tmp_path):
    with Served(program) as s:
        for host in ("127.0.0.1", "0.0.0.0", ""):
            second = subprocess.run([program, "endpoint=%s:%d" % (host, s.port)], capture_output=True, text=True)
            assert "Address already in use" in second.stdout and second.returncode == 1
        assert b"len=5" in s.call(ECHO, b"hello")
    path = str(tmp_path / "socket")
    with Served(program, endpoint="unix:" + path):
        out = subprocess.run([program, "endpoint=unix:" + path], capture_output=True, text=True).stdout
        assert "Address already in use" in out


def test_a_stale_socket_file_is_no_hindrance(program, tmp_path):
    path = str(tmp_path / "socket")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(path)
    stale.close()
    with Served(program, endpoint="unix:" + path) as s:
        assert b"len=5" in s.call(ECHO, b"hello")


@pytest.mark.parametrize("endpoint,transport,text", [
    ("127.0.0.1", "tcp", "must be host:port"), ("127.0.0.1:99999", "tcp", "must be host:port"),
    ("::1:4317", "tcp", "must be host:port"), ("no.such.host.invalid:1", "tcp", "cannot resolve the host"),
    ("/" + "x" * 200, "unix", "107 bytes"),
    ("198.51.100.7:0", "tcp", "annot assign requested address")])
def test_what_cannot_be_listened_on_is_an_error(program, endpoint, transport, text):
    run = subprocess.run([program, "endpoint=" + endpoint, "transport=" + transport], capture_output=True, text=True)
    assert run.returncode == 1 and text in run.stdout


def test_localhost_listens_on_every_address_it_has(program):
    with Served(program, endpoint="localhost:0") as s:
        for address in {a[4][0] for a in socket.getaddrinfo("localhost", s.port, type=socket.SOCK_STREAM)}:
            socket.create_connection((address, s.port)).close()


def test_garbage_and_abrupt_ends_harm_nobody(program):
    noise = random.Random(1)
    with Served(program) as s, s.channel() as channel:
        for i in range(60):
            c = raw_connection(s.port) if i % 2 else socket.create_connection(("127.0.0.1", s.port))
            try:
                for _ in range(5):
                    c.sendall(frame(noise.randrange(12), noise.randrange(256), noise.randrange(4), noise.randbytes(40)))
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
            c.close()
        assert b"len=5" in channel.unary_unary(ECHO)(b"hello", timeout=30)


def test_a_bad_te_beside_a_large_header_is_survived(program):
    """The plain forms of CVE-2023-1428."""
    with Served(program) as s:
        for te in (b"x", b"trailers, x"):
            c = raw_connection(s.port)
            raw_call(c, ECHO, more=[(b"te", te), (b"x-long", b"v" * 9000)])
            c.sendall(frame(0, 1, 1, b"\0\0\0\0\0"))
            time.sleep(0.2)
            c.close()
        assert b"len=5" in s.call(ECHO, b"hello")


def test_streams_that_are_reset_at_once_leave_nothing_behind(program):
    """Rapid reset: each call is seen and lost, and the next one answered."""
    with Served(program) as s:
        c = raw_connection(s.port)
        for stream in range(1, 4001, 2):
            raw_call(c, ECHO, stream)
            c.sendall(frame(3, 0, stream, b"\0\0\0\x08"))
        assert b"len=5" in s.call(ECHO, b"hello")
        wait_for(lambda: s.count()["lost"] == s.count()["headers"] - 1)
        c.close()
        assert s.count()["replied"] == 1
