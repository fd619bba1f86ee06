# SPDX-License-Identifier: Apache-2.0
"""Hostile input is normal input: a clear error or what an independent reader makes of it, memory bounded, nobody else harmed.

After every test the program must serve good requests, on new connections and on those that were open before, and its peak
memory must have stayed below its limit.
"""
import gzip
import http.client
import os
import random
import socket
import subprocess
import threading
import zlib
from collections import Counter

import grpc
import pytest
from google.protobuf.message import DecodeError

from harness import build as make
from harness import codings, corpus, h2, otlp, peers, pprof, web
from harness.canaries import varint
from harness.gateway import Gateway
from harness.hostile import BOMBS, HTTP_CODINGS, hostile_indices, zstd
from harness.poison import field

MIB = 1 << 20
MESSAGE_MIB = 8
LIMIT_MIB = 256
# The sanitizers' own memory is not ours to bound: redzones, quarantine, shadows.
SANITIZED = os.environ.get("MODE") in ("asan", "tsan")
CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: %d}
      http: {endpoint: 127.0.0.1:{port:otlp_http}, max_request_body_size: %d}
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}, max_request_body_size: %d}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: %d, spike_limit_mib: 32}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:{port:sink}, tls: {insecure: true}}
service:
  pipelines:
    profiles: {receivers: [otlp, pprof], processors: [memory_limiter], exporters: [otlp_grpc]}
""" % (MESSAGE_MIB, MESSAGE_MIB * MIB, MESSAGE_MIB * MIB, 8 * LIMIT_MIB if SANITIZED else LIMIT_MIB)
REFUSALS = {grpc.StatusCode.INVALID_ARGUMENT: 400, grpc.StatusCode.RESOURCE_EXHAUSTED: 413}


class Target:
    """The program, a sink, and two neighbours with connections of their own that stay open."""

    def __init__(self, build):
        self.gateway = Gateway(build / "portcullis", CONFIG,
                               env={"ASAN_OPTIONS": "quarantine_size_mb=8"})
        self.sink = peers.Sink(self.gateway.port["sink"])
        self.seed = 0

    def __enter__(self):
        self.sink.start()
        self.gateway.__enter__()
        self.client, self.neighbour = (peers.Client(self.gateway.port["otlp"]) for _ in range(2))
        self.http, self.http_neighbour = (http.client.HTTPConnection("127.0.0.1", self.gateway.port["pprof"], timeout=60)
                                          for _ in range(2))
        self.good()
        self.before = self.gateway.rss()["VmHWM"]
        return self

    def __exit__(self, *error):
        for one in (self.client, self.neighbour, self.http, self.http_neighbour):
            one.close()
        self.gateway.__exit__(*error)
        self.sink.stop()

    # senders

    def otlp(self, data, client=None, **keywords):
        """None if it was taken whole, the response if in part, else the error."""
        try:
            answer = (client or self.client).send(data, **keywords)
        except grpc.RpcError as error:
            return error
        return answer if answer.HasField("partial_success") else None

    def pprof(self, data, connection=None, **headers):
        """(status, text), on a connection that is kept where the server keeps it."""
        connection = connection or self.http
        try:
            connection.request("POST", "/v1/pprof", body=data, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (ConnectionError, http.client.HTTPException):
            connection.close()  # refused before the whole body was read
            return self.in_pieces("pprof", "/v1/pprof", data, headers)

    def otlp_http(self, data, **headers):
        """The same for OTLP, on a connection of its own."""
        headers.setdefault("Content-Type", "application/x-protobuf")
        return self.in_pieces("otlp_http", "/v1development/profiles", data, headers)

    def in_pieces(self, port, path, data, headers):
        """Reads the answer though the server does not want the rest of the body."""
        with web.connect(self.gateway.port[port]) as sock:
            try:
                sock.sendall(web.request(path=path, body=data, headers=["%s: %s" % pair for pair in headers.items()]))
            except OSError:
                pass
            answer = web.read_answer(sock)
            return answer.status, answer.body.decode(errors="replace")

    def raw(self, port, data, seconds=20):
        """What comes back for these bytes."""
        got = b""
        with socket.create_connection(("127.0.0.1", self.gateway.port[port]), timeout=seconds) as s:
            try:
                s.sendall(data)
            except OSError:
                pass
            try:
                s.shutdown(socket.SHUT_WR)
                while part := s.recv(65536):
                    got += part
            except OSError:
                pass
        return got

    # judges

    def arrived(self, count):
        self.gateway.until(lambda: len(self.sink.received) > count)
        return self.sink.received[count]

    def good(self):
        """One good request on each of four connections; each must arrive whole."""
        for client in (self.client, self.neighbour):
            self.seed += 1
            message = make.request(self.seed, samples=3)
            self.check_otlp(message.SerializeToString(), client=client, taken=True)
        for connection in (self.http, self.http_neighbour):
            self.seed += 1
            self.check_pprof(make.pprof(self.seed, samples=3).SerializeToString(), connection, taken=True)

    def settle(self):
        """Waits until all that was taken arrived."""
        self.gateway.until(lambda: self.gateway.balanced("profiles", "otlp_grpc")
                           and not self.gateway.total("otelcol_ledger_queued_samples"))

    def check_otlp(self, data, client=None, taken=None):
        """A clear error, or what the independent reader finds. taken: which of both it must be. HTTP must do the same."""
        count = len(self.sink.received)
        answer = self.otlp(data, client)
        if not client:
            self.check_otlp_http(data, answer, count)
        if isinstance(answer, grpc.RpcError):
            assert not taken, answer
            clear(answer)
            assert len(self.sink.received) == count
            return False
        assert taken is not False, "was taken"
        found, faulty = readable(data)
        if found is None:  # repaired text: the independent reader does not read such messages
            self.settle()
            return True
        if answer is None:
            assert not faulty
        if found and (answer is None or answer.partial_success.rejected_profiles < len(found) + faulty):
            got = Counter(map(whole, otlp.profiles(self.arrived(count))))
            assert got == found if answer is None else not got - found
        return True

    def check_otlp_http(self, data, answer, count):
        """The same as over gRPC, from where `count` requests had arrived before; but HTTP does not guess that a body is
        compressed."""
        if data[:2] == b"\x1f\x8b" or data[:4] == b"\x28\xb5\x2f\xfd" or data[4:10] == b"sNaPpY":
            assert self.otlp_http(data)[0] in (400, 413)
        elif isinstance(answer, grpc.RpcError):
            status, text = self.otlp_http(data)
            assert status == REFUSALS[answer.code()], (answer, text)
        else:
            self.settle()
            arrived = self.sink.received[count:]
            assert self.otlp_http(data)[0] == 200
            self.settle()
            assert self.sink.received[count:] == arrived * 2
            del self.sink.received[count + len(arrived):]

    def check_pprof(self, data, connection=None, taken=None, **headers):
        count = len(self.sink.received)
        status, text = self.pprof(data, connection, **headers)
        if status != 204:
            assert not taken, text
            assert status in (400, 413, 415) and text.strip(), (status, text)
            assert len(self.sink.received) == count
            return False
        assert taken is not False, "was taken"
        got = self.arrived(count)
        try:
            profile = pprof.parse(data)
        except (DecodeError, zlib.error, OSError, subprocess.CalledProcessError):
            return True  # repaired text: the independent reader does not read such profiles
        pprof.check_translated(profile, got)
        return True

    def bounded(self):
        grown = self.gateway.rss()["VmHWM"] - self.before
        assert grown < LIMIT_MIB * MIB * (4 if SANITIZED else 1), "%d MiB more" % (grown >> 20)


def clear(error):
    """The code says whose fault it is, the text what and where."""
    assert error.code() in REFUSALS, error
    assert 10 < len(error.details()) < 400 and error.details().isprintable(), error.details()


def whole(profile):
    """Hashable: what it belongs to, and its samples in order."""
    resource, scope, head, samples = profile
    return resource, scope, head, tuple(samples)


def readable(data):
    """(Counter of the Profiles that an independent reader can resolve, how many it cannot), or (None, None)."""
    try:
        message = otlp.parse(data)
    except DecodeError:
        return None, None
    reader, found, faulty = otlp.Reader(message), Counter(), 0
    for rp in message.resource_profiles:
        alone = otlp.Request(resource_profiles=[rp])
        reader.message = alone
        for sp in rp.scope_profiles:
            for p in sp.profiles:
                one = otlp.Request()
                mine = one.resource_profiles.add()
                mine.CopyFrom(rp)
                del mine.scope_profiles[:]
                scope = mine.scope_profiles.add()
                scope.CopyFrom(sp)
                del scope.profiles[:]
                scope.profiles.add().CopyFrom(p)
                reader.message = one
                try:
                    found.update(whole((r, s, reader.profile(f), [reader.sample(x) for x in f.samples]))
                                 for r, s, f in reader.each_profile())
                except IndexError:
                    faulty += 1
    return found, faulty


@pytest.fixture(scope="module")
def running(build):
    with Target(build) as target:
        yield target


@pytest.fixture
def target(running):
    yield running
    running.good()
    running.bounded()


# ---- files that are not what they should be

MUST_PASS = ("valid protobuf",)
MAY_PASS = ("decodes with profile.proto", "binary pprof passed through")
MALFORMED = corpus.files("malformed/*")


def notes():
    lines = (corpus.directory() / "MANIFEST.tsv").read_text().splitlines()
    return {line.split("\t")[0]: line.split("\t")[-1] for line in lines[1:]}


@pytest.mark.parametrize("path", MALFORMED, ids=lambda path: path.name)
def test_a_malformed_file_is_refused_by_both_receivers(target, path):
    data, note = path.read_bytes(), notes()["malformed/" + path.name]
    taken = True if any(x in note for x in MUST_PASS) else None if any(x in note for x in MAY_PASS) else False
    target.check_pprof(data, taken=taken)
    target.check_otlp(data, taken=None if len(data) < 20 else False)


# ---- cut and bent

MADE_OTLP = make.request(1, samples=3, functions=3).SerializeToString()
MADE_PPROF = make.pprof(1, samples=3, functions=3).SerializeToString()
SMALL = 16 << 10


def boundaries(data):
    """Where a top-level field begins, and where fields of another number begin."""
    at, last, all_of_them, changes = 0, None, [], []
    while at < len(data):
        all_of_them.append(at)
        tag, at = read_varint(data, at)
        if tag >> 3 != last:
            changes.append(all_of_them[-1])
        last = tag >> 3
        kind = tag & 7
        if kind == 2:
            size, at = read_varint(data, at)
            at += size
        elif kind == 0:
            at = read_varint(data, at)[1]
        else:
            at += {1: 8, 5: 4}[kind]
    return all_of_them, changes


def read_varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return number, at


def cuts(data, budget=4 * MIB):
    """Around the boundaries where the field changes and around some others; of large messages not more than the budget."""
    rng = random.Random(len(data))
    every, changes = boundaries(data)
    places = set(changes) | set(rng.sample(every, min(len(every), 8)))
    found = sorted({at + by for at in places for by in (-1, 0, 1) if 0 < at + by < len(data)})
    return rng.sample(found, min(len(found), max(6, budget // len(data))))


def test_a_made_message_cut_at_every_byte(target):
    for at in range(len(MADE_OTLP)):
        target.check_otlp(MADE_OTLP[:at])
    for at in range(len(MADE_PPROF)):
        target.check_pprof(MADE_PPROF[:at])


@pytest.mark.parametrize("path", corpus.files("otlp/*-v111.pb"), ids=lambda path: path.name)
def test_real_otlp_cut_around_its_fields(target, path):
    data = path.read_bytes()
    for at in cuts(data):
        target.check_otlp(data[:at])


@pytest.mark.parametrize("path", corpus.files("pprof/*"), ids=lambda path: path.name)
def test_real_pprof_cut_around_its_fields(target, path):
    data = corpus.inflate(path.read_bytes())
    for at in cuts(data):
        target.check_pprof(data[:at])


def test_made_json_cut_at_every_byte(target):
    data = otlp.to_json(make.request(1, samples=1, functions=1).SerializeToString())
    for at in range(len(data)):
        status, text = target.otlp_http(data[:at], **{"Content-Type": "application/json"})
        assert status == 400 and '"code":3' in text
    assert target.otlp_http(data, **{"Content-Type": "application/json"})[0] == 200
    target.settle()
    target.sink.received.clear()


def flipped(data, seed):
    """One to three bits turned."""
    rng, bent = random.Random(seed), bytearray(data)
    for _ in range(rng.randint(1, 3)):
        bent[rng.randrange(len(bent))] ^= 1 << rng.randrange(8)
    return bytes(bent)


def small(pattern):
    return [data for data in (corpus.inflate(p.read_bytes()) for p in corpus.files(pattern)) if len(data) <= SMALL]


def test_flipped_bits_in_otlp(target):
    for data in [MADE_OTLP] * 20 + small("otlp/*-v111.pb"):
        for seed in range(15):
            target.check_otlp(flipped(data, seed * 1000 + len(data)))


def test_flipped_bits_in_pprof(target):
    for data in [MADE_PPROF] * 10 + small("pprof/*"):
        for seed in range(10):
            target.check_pprof(flipped(data, seed * 1000 + len(data)))


def test_flipped_bits_in_what_is_compressed(target):
    for seed in range(40):
        target.check_pprof(flipped(gzip.compress(MADE_PPROF), seed))
        target.check_pprof(flipped(zstd(MADE_PPROF), seed))
        target.check_otlp(flipped(gzip.compress(MADE_OTLP), seed), taken=None)


# ---- bombs

@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_stopped(target, name):
    data = BOMBS[name]()
    target.check_pprof(data, taken=False)
    if name in HTTP_CODINGS:
        assert target.otlp_http(data, **{"Content-Encoding": HTTP_CODINGS[name]})[0] in (
            (200,) if "tiny" in name else (400, 413))
        target.check_pprof(data, taken=False, **{"Content-Encoding": HTTP_CODINGS[name]})
    if name != "zlib":  # which has no magic number
        target.check_otlp(data, taken=None if "empty" in name or "tiny" in name or "skippable" in name else False)
    target.check_pprof(gzip.compress(data), taken=False, **{"Content-Encoding": "gzip"})


def test_a_bomb_that_grpc_calls_gzip_is_stopped(target):
    with peers.Client(target.gateway.port["otlp"], compression=grpc.Compression.Gzip) as client:
        error = target.otlp(bytes(100 * MIB), client)
        clear(error)
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert str(MESSAGE_MIB * MIB) in error.details(), "names the limit"


# ---- depth, emptiness, wire

def nested(numbers, levels, core=b""):
    """core inside so many levels of fields, whose numbers repeat; inside out without copying."""
    heads, size = [], len(core)
    for level in range(levels):
        head = varint(numbers[level % len(numbers)] << 3 | 2) + varint(size)
        heads.append(head)
        size += len(head)
    return b"".join(reversed(heads)) + core


ARRAYS, MAPS = [1, 5], [2, 1, 6]  # inside out: ArrayValue.values of AnyValue.array_value, ...
DEEP = 100000
DEEP_SITES = {
    "resource attribute": [1, 1, 1, 2], "scope attribute": [1, 2, 1, 3, 2], "dictionary": [2, 6, 2],
}


def inside(path, data):
    for number in reversed(path):
        data = field(number, data)
    return data


@pytest.mark.parametrize("site", DEEP_SITES)
@pytest.mark.parametrize("numbers", [ARRAYS, MAPS], ids=["arrays", "maps"])
def test_deep_nesting_is_refused(target, site, numbers):
    data = inside(DEEP_SITES[site], nested(numbers, DEEP * len(numbers)))
    if site == "dictionary":
        data = field(2, field(6, b"")) + data  # entry 0 is not read
    target.check_otlp(data, taken=False)
    error = target.otlp(data)
    assert "too deep" in error.details()


def test_deep_unknown_fields_and_groups(target):
    target.check_otlp(field(1000, nested([1], DEEP)))
    target.check_otlp(b"\x0b" * DEEP)  # groups: never closed
    target.check_otlp(b"\x0b" * DEEP + b"\x0c" * DEEP)
    target.check_pprof(b"\x0b" * DEEP + MADE_PPROF)
    target.check_pprof(MADE_PPROF + field(1000, nested([1], DEEP)))


EMPTY = {"resource_profiles": [1], "scope_profiles": [1, 2], "profiles": [1, 2, 2], "samples": [1, 2, 2, 2],
         "resource.attributes": [1, 1, 1], "entity_refs": [1, 1, 3], "id_keys": [1, 1, 3, 3],
         "scope.attributes": [1, 2, 1, 3], "mapping_table": [2, 1], "location_table": [2, 2], "lines": [2, 2, 3],
         "function_table": [2, 3], "link_table": [2, 4], "string_table": [2, 5], "attribute_table": [2, 6],
         "stack_table": [2, 7], "dictionary": [2], "array_value": [2, 6, 2, 5, 1], "kvlist_value": [2, 6, 2, 6, 1],
         "attribute_indices": [1, 2, 2, 11], "unpacked indices": None, "unpacked values": None}


def referring(where):
    """Two megabytes of text and a few bytes that refer to it 600 times: 1.2 GB, if it stood where it is referred to."""
    m = make.Maker()
    text = m.text("x" * 2 * MIB)
    many(m, 1)
    rp = m.message.resource_profiles[0]
    if where == "an array":
        values = rp.resource.attributes.add(key="k").value.array_value.values
        for _ in range(600):
            values.add().string_value_strindex = text
    elif where == "resources":
        for _ in range(600):
            again = m.message.resource_profiles.add()
            again.CopyFrom(rp)
            again.resource.attributes.add(key="k").value.string_value_strindex = text
    elif where == "keys":
        for _ in range(600):
            rp.resource.attributes.add(key_strindex=text).value.int_value = 1
    else:
        for i in range(600):
            a = m.d.attribute_table.add(key_strindex=m.text("k%d" % i))
            a.value.string_value_strindex = text
    return m.message.SerializeToString()


@pytest.mark.parametrize("where", ["an array", "resources", "keys", "the attribute table"])
def test_texts_that_are_referred_to_over_and_over_are_refused(target, where):
    data = referring(where)
    assert len(data) < 2.1 * MIB
    for _ in range(3):
        target.check_otlp(data, taken=False)
        target.good()
    target.settle()
    assert target.gateway.total("otelcol_memory_charged_bytes") < 32 * MIB, "no more than workers keep"


def test_a_label_that_refers_to_a_text_over_and_over_is_refused(target):
    p = pprof.parse(MADE_PPROF)
    p.string_table.extend(["k", "x" * 2 * MIB])
    for _ in range(600):
        p.sample[0].label.add(key=len(p.string_table) - 2, str=len(p.string_table) - 1)
    target.check_pprof(p.SerializeToString(), taken=False)
    target.check_pprof(gzip.compress(p.SerializeToString()), taken=False)


def test_a_fault_is_told_the_same_of_what_is_compressed(target):
    """Well compressed, so that the first guess of its size is too small."""
    m = make.Maker()
    many(m, 1)
    m.text("x" * 300000)
    m.message.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].stack_index = 7
    data = m.message.SerializeToString()
    plain = target.otlp(data)
    for packed in (gzip.compress(data), zstd(data)):
        error = target.otlp(packed)
        assert (error.code(), error.details()) == (plain.code(), plain.details())
    assert "stack_index" in plain.details()
    p = pprof.parse(MADE_PPROF)
    p.string_table.append("x" * 300000)
    p.sample[0].location_id[0] = 999
    data = p.SerializeToString()
    assert target.pprof(data) == target.pprof(gzip.compress(data))
    assert target.pprof(data)[0] == 400


@pytest.mark.parametrize("name", EMPTY)
def test_a_megabyte_of_empty_entries(target, name):
    if EMPTY[name]:
        *path, number = EMPTY[name]
        target.check_otlp(inside(path, (varint(number << 3 | 2) + b"\0") * (MIB // 2)))
        target.check_otlp(inside(path, (varint(number << 3 | 2) + b"\0") * (MIB // 2)) + MADE_OTLP)
    else:
        tag = b"\x10" if name == "unpacked indices" else b"\x20"
        target.check_otlp(inside([1, 2, 2, 2], (tag + b"\0") * (MIB // 2)) + MADE_OTLP)


@pytest.mark.parametrize("number", range(1, 16))
def test_a_megabyte_of_empty_entries_of_a_pprof(target, number):
    tag = varint(number << 3 | (2 if number < 7 or number in (11, 13) else 0))
    target.check_pprof((tag + b"\0") * (MIB // 2))
    target.check_pprof(MADE_PPROF + (tag + b"\0") * (MIB // 2))


def many(m, count, values=1):
    """Samples that share what they refer to: small on the wire, large when spread out."""
    stack = m.stack([m.location([m.function("f")])])
    p = m.profile(m.scope(m.resource({"service.name": "x"})))
    for _ in range(count):
        p.samples.add(stack_index=stack, values=[1] * values)
    return m.message.SerializeToString()


@pytest.mark.parametrize("types, samples", [(8, 5000), (24, 2000), (100, 500)])
def test_a_pprof_of_many_types_that_are_mostly_zero_is_taken(target, types, samples):
    """A zero is a byte in it, and a sample of its own in OTLP."""
    p = make.pprof(types=[("t%d" % i, "count") for i in range(types)], samples=0, labels=())
    for i in range(samples):
        p.sample.add(location_id=[1 + i % 3], value=[0] * types).value[i % types] = i
    target.check_pprof(p.SerializeToString(), taken=True)


def test_many_samples_of_one_stack(target):
    target.check_otlp(many(make.Maker(), 200000), taken=True)


def test_a_number_that_is_no_index_costs_its_profile_alone(target):
    for name, message in hostile_indices():
        count = len(target.sink.received)
        answer = target.otlp(message)
        assert answer is not None and not isinstance(answer, grpc.RpcError), (name, answer)
        assert answer.partial_success.rejected_profiles == 1, name
        assert "out of range" in answer.partial_success.error_message or "is invalid" in answer.partial_success.error_message, name
        (_, _, head, samples), = otlp.profiles(target.arrived(count))
        assert (head[2], samples[0][3]) == (1, (7,)), name


WIRE = {
    "varint of 11 bytes": b"\x0a" + b"\x80" * 10 + b"\x01", "varint that does not end": b"\x0a" + b"\xff" * 9,
    "varint beyond 64 bits": b"\x0a" + b"\xff" * 9 + b"\x7f", "length of 2 GiB": b"\x0a\xff\xff\xff\xff\x07",
    "length of 4 GiB": b"\x0a\xff\xff\xff\xff\x0f", "length of 2^63": b"\x0a" + b"\x80" * 9 + b"\x01",
    "negative length": b"\x0a" + b"\xff" * 9 + b"\x01", "field number 0": b"\x02\x00", "wire type 6": b"\x0e\x00",
    "wire type 7": b"\x0f\x00", "end of a group that was not begun": b"\x0c", "huge field number": b"\xfa\xff\xff\xff\x7f\x00",
    "a tag alone": b"\x0a", "fixed64 cut": b"\x09\x01\x02",
}
PLACES = {"request": [], "dictionary": [2], "attribute": [2, 6], "value": [2, 6, 2], "mapping": [2, 1], "location": [2, 2],
          "line": [2, 2, 3], "function": [2, 3], "link": [2, 4], "stack": [2, 7], "resource_profiles": [1], "resource": [1, 1],
          "scope_profiles": [1, 2], "scope": [1, 2, 1], "profile": [1, 2, 2], "sample": [1, 2, 2, 2]}
OF_PPROF = {"profile": [], "sample type": [1], "sample": [2], "label": [2, 3], "mapping": [3], "location": [4], "line": [4, 4],
            "function": [5], "period type": [11]}


@pytest.mark.parametrize("fault", WIRE)
def test_a_fault_of_the_wire_is_named_at_every_level(target, fault):
    dictionary = field(2, b"".join(varint(n << 3 | 2) + b"\0" for n in range(1, 8)))  # entries 0
    for path in PLACES.values():
        target.check_otlp(dictionary + inside(path, WIRE[fault]))
    for path in OF_PPROF.values():
        target.check_pprof(MADE_PPROF + inside(path, WIRE[fault]))


def test_hostile_packed_numbers(target):
    for number in (2, 3, 4, 5):
        for data in (b"\x80", b"\xff" * 11, b"\x80" * 9 + b"\x7f", b"\x01" * 7):
            target.check_otlp(inside([1, 2, 2, 2], field(number, data)) + MADE_OTLP)
    for number in (1, 2):
        for data in (b"\x80", b"\xff" * 11, b"\x80" * 9 + b"\x7f", b"\x01" * 7):
            target.check_pprof(MADE_PPROF + field(2, field(number, data)))


# ---- transports

LIARS_OF_HTTP = {
    "length of 2 GiB": (b"Content-Length: 2147483648\r\n\r\n", b"413"),
    "length of 2^64": (b"Content-Length: 18446744073709551616\r\n\r\n", b"4"),
    "negative length": (b"Content-Length: -1\r\n\r\n", b"4"),
    "chunk of 2 GiB": (b"Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n" + bytes(4096), None),
    "chunk that is no number": (b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", None),
    "two lengths": (b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", None),
    "headers without end": (b"X: " + b"x" * 200000, b"4"),
    "many headers": (b"".join(b"X-%d: y\r\n" % i for i in range(20000)) + b"\r\n", b"4"),
    "many cookies": (b"Cookie: " + b"; ".join(b"c%d=y" % i for i in range(2000)) + b"\r\n\r\n", b"4"),
    "many parameters": None,
}


@pytest.mark.parametrize("name", LIARS_OF_HTTP)
def test_a_liar_over_http_is_cut_off(target, name):
    if name == "many parameters":
        query = b"&".join(b"a%d=b" % i for i in range(500))
        got = target.raw("pprof", b"POST /v1/pprof?%s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n" % query)
        assert got.startswith(b"HTTP/1.1 4")
        return
    text, status = LIARS_OF_HTTP[name]
    got = target.raw("pprof", b"POST /v1/pprof HTTP/1.1\r\nHost: x\r\n" + text)
    if status:
        assert got.startswith(b"HTTP/1.1 " + status), got[:100]


LIARS_OF_GRPC = {
    "message of 2 GiB": h2.export(b"\0\x7f\xff\xff\xff" + bytes(64)),
    "message of 4 GiB": h2.export(b"\0\xff\xff\xff\xff" + bytes(64)),
    "compressed flag without coding": h2.export(b"\1\0\0\0\4aaaa"),
    "unknown flag": h2.export(b"\x7f\0\0\0\4aaaa"),
    "cut message": h2.export(b"\0\0\0\1\0abc"),
    "two messages": h2.export(b"\0\0\0\0\0" * 2),
    "no message": h2.export(b""),
    "large header beside a bad te": h2.PREFACE + h2.frame(
        h2.HEADERS, h2.END_HEADERS, h2.headers(h2.changed(b"te", b"x") + [(b"y", b"z" * 12000)])),
    "headers without end": h2.PREFACE + h2.frame(h2.HEADERS, 0, h2.headers(h2.EXPORT)) + b"".join(
        h2.frame(h2.CONTINUATION, 0, h2.headers([(b"k", b"v" * 1000)])) for _ in range(200)),
    "settings flood": h2.PREFACE + h2.frame(h2.SETTINGS, 0, b"", stream=0) * 5000,
    "reset flood": h2.PREFACE + b"".join(
        h2.frame(h2.HEADERS, h2.END_HEADERS, h2.headers(h2.EXPORT), stream=i)
        + h2.frame(3, 0, b"\0\0\0\x08", stream=i) for i in range(1, 2000, 2)),
    "frame of 16 MiB": h2.PREFACE + b"\xff\xff\xff\0\0\0\0\0\1" + bytes(1000),
}


@pytest.mark.parametrize("name", LIARS_OF_GRPC)
def test_a_liar_over_grpc_is_cut_off(target, name):
    target.raw("otlp", LIARS_OF_GRPC[name])


# ---- neighbours

@pytest.mark.threads
def test_neighbours_of_hostile_senders_lose_nothing(target):
    bombs = [BOMBS[name]() for name in ("gzip of many members", "zstd of many frames", "gzip of empty table entries")]
    deep = inside(DEEP_SITES["resource attribute"], nested(MAPS, 30000))
    failures, done = [], threading.Event()

    def hostile(seed):
        rng = random.Random(seed)
        with peers.Client(target.gateway.port["otlp"]) as client:
            while not done.is_set():
                target.otlp(rng.choice([*bombs, deep, flipped(MADE_OTLP, rng.random()), MADE_OTLP[:rng.randrange(500)]]), client)
                peers.post(target.gateway.port["pprof"], rng.choice([*bombs, flipped(MADE_PPROF, rng.random())]))
                target.raw("otlp", rng.choice(list(LIARS_OF_GRPC.values())), seconds=5)

    def good(seed):
        try:
            with peers.Client(target.gateway.port["otlp"]) as client:
                for i in range(40):
                    assert target.otlp(make.request(seed * 1000 + i, samples=5, service="neighbour"), client) is None
        except Exception as error:  # of a thread: told by the test
            failures.append(error)

    attackers = [threading.Thread(target=hostile, args=(i,)) for i in range(2)]
    neighbours = [threading.Thread(target=good, args=(i,)) for i in range(2)]
    for thread in attackers + neighbours:
        thread.start()
    for thread in neighbours:
        thread.join()
    done.set()
    for thread in attackers:
        thread.join()
    assert not failures
    target.gateway.until(lambda: mine(target.sink) == 2 * 40 * 5)
    target.gateway.until(lambda: target.gateway.balanced("profiles", "otlp_grpc"))


def mine(sink):
    return sum(len(samples) for data in list(sink.received) for resource, _, _, samples in otlp.profiles(data)
               if dict(resource[0]).get("service.name") == ("string_value", "'neighbour'"))
