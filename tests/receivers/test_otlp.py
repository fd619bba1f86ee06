# SPDX-License-Identifier: Apache-2.0
"""The otlp receiver between a real gRPC client and a gate that only counts."""
import gzip
import shutil
import subprocess
import time

import grpc
import pytest
import snappy

from harness import codings, otlp
from harness.certificates import make_ca, make_leaf
from harness.served import Served, build, frame, raw_call, raw_connection, read_frames, refusal, status_of

EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
CODE = grpc.StatusCode
MIB = 1 << 20

pytestmark = pytest.mark.threads


@pytest.fixture(scope="module")
def program():
    return build("receivers/otlp_serve")


def serve(program, more="", limit=256 * MIB):
    return Served(program, yaml="protocols: {grpc: {endpoint: '127.0.0.1:0', %s}}" % more, limit=limit)


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout


def compressed_call(s, data, algorithm=grpc.Compression.Gzip):
    with s.channel(compression=algorithm) as channel:
        return channel.unary_unary(EXPORT)(data, timeout=30)


def charged(s):
    """(now, at most, reasons)"""
    now, most, *reasons = s.ask("charged").split()
    return int(now), int(most), reasons


BODY = b"0123456789" * 30000


def test_an_accepted_request_is_answered_with_an_empty_message(program):
    with serve(program) as s:
        assert s.call(EXPORT, BODY) == b""
        assert s.ask("last") == "otlp grpc len=300000 first=30 tenant=none peer=127.0.0.1 subject=none host=none"
        assert charged(s) == (0, 4096 + 300000, [])  # once: it is decoded from where it arrived


def test_the_empty_request_is_a_request(program):
    with serve(program) as s:
        assert s.call(EXPORT, b"") == b""


def test_gzip_and_deflate_are_inflated(program):
    with serve(program) as s:
        compressed_call(s, BODY)
        assert "len=300000" in s.ask("last")
        compressed_call(s, BODY[:-1], grpc.Compression.Deflate)
        assert "len=299999" in s.ask("last")
        s.call(EXPORT, gzip.compress(BODY[:-2]))  # told by nobody, seen by its first bytes
        assert "len=299998" in s.ask("last")


@pytest.mark.skipif(not shutil.which("zstd"), reason="no zstd command here")
def test_zstd_is_inflated(program):
    with serve(program) as s:
        s.call(EXPORT, zstd(BODY))
        assert "len=300000" in s.ask("last")


def test_snappy_is_inflated_framed_as_grpc_go_sends_it_and_raw(program):
    with serve(program) as s:
        s.call(EXPORT, codings.snappy_framed(BODY))
        assert "len=300000" in s.ask("last")
        packed, c = snappy.compress(b"twelve bytes"), raw_connection(s.port)
        raw_call(c, EXPORT, more=[(b"grpc-encoding", b"snappy")])
        c.sendall(frame(0, 1, 1, b"\1\0\0\0" + bytes([len(packed)]) + packed))
        next(kind for kind, _, stream, _ in read_frames(c) if kind == 1 and stream == 1)
        assert "len=12 first=74" in s.ask("last")
        c.close()


def test_what_a_body_inflates_to_is_charged(program):
    with serve(program) as s:
        compressed_call(s, BODY)
        now, most, _ = charged(s)
        assert now == 0 and 300000 < most <= 8 * 300000 + 65536


def test_a_bomb_stops_at_the_message_limit(program):
    with serve(program, "max_recv_msg_size_mib: 1") as s:
        code, text, error = refusal(lambda: s.call(EXPORT, gzip.compress(bytes(200 * MIB))))
        assert code == CODE.RESOURCE_EXHAUSTED and "1048576" in text
        assert not [m for m in error.trailing_metadata() if m.key == "grpc-status-details-bin"]
        assert charged(s)[0] == 0 and charged(s)[1] < 3 * MIB
        assert s.call(EXPORT, gzip.compress(bytes(MIB))) == b""


def test_a_bomb_is_refused_for_memory_before_it_grows(program):
    with serve(program, "max_recv_msg_size_mib: 64", limit=8 * MIB) as s:
        code, _, error = refusal(lambda: s.call(EXPORT, gzip.compress(bytes(60 * MIB))))
        assert code == CODE.UNAVAILABLE
        assert [m for m in error.trailing_metadata() if m.key == "grpc-status-details-bin"]
        assert charged(s)[1] <= 8 * MIB


@pytest.mark.parametrize("body,code", [
    (b"invalid", CODE.INVALID_ARGUMENT), (b"\x1f\x8b" + b"x" * 50, CODE.INVALID_ARGUMENT),
    (gzip.compress(BODY, mtime=0)[:-20], CODE.INVALID_ARGUMENT), (b"\x28\xb5\x2f\xfdxxxx", CODE.INVALID_ARGUMENT),
    (b"\xff\x06\x00\x00sNaPpY" + b"x" * 9, CODE.INVALID_ARGUMENT)])
def test_each_fault_has_its_code(program, body, code):
    with serve(program) as s:
        assert refusal(lambda: s.call(EXPORT, body))[0] == code
        assert s.call(EXPORT, b"next") == b"" and charged(s)[0] == 0


def test_a_partial_success_is_told(program):
    with serve(program) as s:
        reply = otlp.Response.FromString(s.call(EXPORT, b"partial 3"))
        assert reply.partial_success.rejected_profiles == 3
        assert reply.partial_success.error_message == "profiles[1]: no stack"


def test_a_full_gate_refuses_from_the_headers(program):
    with serve(program) as s:
        s.ask("limit 1000")
        code, text, error = refusal(lambda: s.call(EXPORT, b"x"))
        assert (code, text) == (CODE.UNAVAILABLE, "over the memory limit")
        assert [m for m in error.trailing_metadata() if m.key == "grpc-status-details-bin"]
        assert charged(s) == (0, 0, ["refused"])


def test_a_message_for_which_there_is_no_memory_is_refused_in_the_end(program):
    with serve(program, limit=280000) as s:
        code, _, error = refusal(lambda: s.call(EXPORT, BODY))
        assert code == CODE.UNAVAILABLE
        assert [m for m in error.trailing_metadata() if m.key == "grpc-status-details-bin"]
        now, most, reasons = charged(s)
        assert now == 0 and most <= 280000 and reasons == ["memory"]


def test_a_message_waits_for_memory_that_comes_soon(program):
    with serve(program, limit=150000) as s, s.channel() as channel:
        future = channel.unary_unary(EXPORT).future(BODY, timeout=30)
        while charged(s)[1] < 60000:
            time.sleep(0.01)
        assert not future.done()
        s.ask("limit 1000000")
        assert future.result() == b"" and charged(s)[2] == []


def test_a_large_message_does_not_shut_out_the_small_ones_behind_it(program):
    with serve(program, limit=200000) as s, s.channel() as channel:
        channel.unary_unary(EXPORT).future(BODY, timeout=30)
        for _ in range(20):
            assert s.call(EXPORT, b"x") == b""


def test_headers_alone_reserve_nothing(program):
    """A prefix that announces 4 MiB is charged like any call, until its bytes come."""
    with serve(program) as s:
        connections = []
        for _ in range(5):
            c = raw_connection(s.port)
            for stream in range(1, 200, 2):
                raw_call(c, EXPORT, stream)
                c.sendall(frame(0, 0, stream, b"\0\0\x3f\0\0"))
            connections.append(c)
        assert s.call(EXPORT, b"x") == b""
        assert charged(s)[1] <= 501 * (4096 + 16384)
        for c in connections:
            c.close()


def test_small_messages_are_run_by_the_thread_that_read_them(program):
    with serve(program) as s:
        s.call(EXPORT, BODY)
        compressed_call(s, BODY)
        assert s.ask("here") == "0"
        s.call(EXPORT, BODY[:60000])
        compressed_call(s, BODY[:60000])
        assert s.ask("here") == "2"
        s.call(EXPORT, zstd(BODY[:60000]))  # from a pipe: says nothing of its size
        assert s.ask("here") == "2"


def test_a_message_that_understates_its_size_moves_to_a_worker(program):
    """gzip's trailer is of the last member: nothing here."""
    with serve(program) as s:
        s.call(EXPORT, gzip.compress(BODY) + gzip.compress(b""))
        assert "len=300000" in s.ask("last") and s.ask("here") == "1"
        now, most, reasons = charged(s)
        assert now == 0 and not reasons


@pytest.mark.parametrize("encoding", [b"canary", b"lz4"])
def test_an_encoding_that_grpc_does_not_have_is_unimplemented(program, encoding):
    with serve(program) as s:
        c = raw_connection(s.port)
        raw_call(c, EXPORT, more=[(b"grpc-encoding", encoding)])
        c.sendall(frame(0, 1, 1, b"\1\0\0\0\1x"))
        assert status_of(c) == 12
        c.close()


def test_what_is_too_large_is_counted_and_gives_its_charge_back(program):
    with serve(program, "max_recv_msg_size_mib: 1") as s:
        assert refusal(lambda: s.call(EXPORT, bytes(MIB + 1)))[0] == CODE.RESOURCE_EXHAUSTED
        assert s.call(EXPORT, bytes(MIB)) == b""
        assert charged(s)[0] == 0 and charged(s)[2] == ["too_large"]


def test_metadata_is_known_only_where_it_is_asked_for(program):
    with serve(program, "include_metadata: true") as s:
        s.call(EXPORT, b"x", metadata=[("x-tenant", "a")])
        assert "tenant=a" in s.ask("last")
        assert "host=127.0.0.1:%d" % s.port in s.ask("last")
    with serve(program) as s:
        s.call(EXPORT, b"x", metadata=[("x-tenant", "a")])
        assert "tenant=none" in s.ask("last")


def test_tls_names_the_caller(program, tmp_path):
    make_ca(tmp_path, "ca")
    make_leaf(tmp_path, "ca", "server", "/CN=localhost")
    make_leaf(tmp_path, "ca", "client", "/CN=agent-7")
    tls = "tls: {cert_file: %s/server.pem, key_file: %s/server.key, client_ca_file: %s/ca.pem}" % ((tmp_path,) * 3)
    read = [(tmp_path / f).read_bytes() for f in ("ca.pem", "client.key", "client.pem")]
    with serve(program, tls) as s:
        with s.channel(grpc.ssl_channel_credentials(*read), target="localhost:%d" % s.port) as channel:
            assert channel.unary_unary(EXPORT)(b"x", timeout=30) == b""
        assert "agent-7" in s.ask("last")


def test_health_is_on_the_same_port(program):
    with serve(program) as s:
        assert s.call("/grpc.health.v1.Health/Check", b"") == b"\x08\x01"
