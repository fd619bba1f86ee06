# SPDX-License-Identifier: Apache-2.0
"""Builds and drives a small test program that serves gRPC and takes commands on stdin, one line each way."""
import fcntl
import os
import pathlib
import re
import struct
import socket
import subprocess
import sys

import grpc

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODE = os.environ.get("MODE", "release")
# C core is not instrumented: without the first TSan reports hundreds of races that are none.
os.environ["TSAN_OPTIONS"] = "ignore_noninstrumented_modules=1 halt_on_error=1"


def build(program):
    """The path of build/MODE/tests/PROGRAM, made if need be: by one test process at a time, since a program that is being
    written cannot be started."""
    path = "build/%s/tests/%s" % (MODE, program)
    os.makedirs(ROOT / "build" / MODE, exist_ok=True)
    with open(ROOT / "build" / MODE / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "-s", "MODE=" + MODE, path], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return str(ROOT / path)


def limited(command, descriptors):
    """The command with so many file descriptors. By the shell: a process with gRPC in it must not fork for itself."""
    if not descriptors:
        return command
    return ["/bin/sh", "-c", 'ulimit -n %d && exec "$@"' % descriptors, "sh", *command]


class Served:
    """with Served(program, endpoint="127.0.0.1:0") as s: s.call("/x.Y/Z", b"...")"""

    def __init__(self, program, descriptors=None, log=None, endpoint="127.0.0.1:0", **options):
        arguments = ["%s=%s" % option for option in dict(options, endpoint=endpoint).items()]
        self.process = subprocess.Popen(limited([program, *arguments], descriptors), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=log, text=True)
        self.greeting = self.process.stdout.readline().strip()
        port = re.search(r'port"?:? (\d+)|port"?:(\d+)', self.greeting)
        self.port = int(port[1] or port[2]) if port else None
        self.target = "127.0.0.1:%s" % self.port if self.port else endpoint

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        assert self.process.wait() in (0, -9), "the program ended with %d" % self.process.returncode

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line):
        self.tell(line)
        return self.process.stdout.readline().strip()

    def count(self):
        return {k: int(v) for k, v in (pair.split("=") for pair in self.ask("count").split())}

    def channel(self, credentials=None, compression=None, target=None, **options):
        """Each has a connection of its own. Option names: underscores become dots."""
        arguments = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1),
                     ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 300)]
        arguments += [("grpc." + k, v) for k, v in options.items()]
        target = target or self.target
        if credentials:
            return grpc.secure_channel(target, credentials, arguments, compression)
        return grpc.insecure_channel(target, arguments, compression)

    def call(self, method, body, timeout=30, **more):
        with self.channel() as channel:
            return channel.unary_unary(method)(body, timeout=timeout, **more)


def status_messages(directory):
    """status.proto as python, made in the directory."""
    subprocess.run(["protoc", "-Iproto", "--python_out", directory, "proto/status.proto"], cwd=ROOT, check=True)
    sys.path.insert(0, str(directory))
    import status_pb2
    return status_pb2


def refusal(act):
    """The (code, details, call) of a call that must fail."""
    try:
        answer = act()
    except grpc.RpcError as error:
        return error.code(), error.details(), error
    raise AssertionError("the call was answered: %r" % (answer,))


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def length(n):
    """HPACK's integer with a prefix of 7 bits."""
    if n < 127:
        return bytes([n])
    out, n = b"\x7f", n - 127
    while n >= 128:
        out, n = out + bytes([n % 128 + 128]), n // 128
    return out + bytes([n])


def literal(name, value):
    return b"\x00" + length(len(name)) + name + length(len(value)) + value


def raw_connection(port):
    """HTTP/2 by hand, for what no client library sends."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b""))
    return connection


def raw_call(connection, path, stream=1, more=()):
    """Opens a call; its message is yet to come."""
    headers = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()), (b":authority", b"x"),
               (b"te", b"trailers"), (b"content-type", b"application/grpc"), *more]
    connection.sendall(frame(1, 4, stream, b"".join(literal(*h) for h in headers)))


def read_until_closed(connection):
    received = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            part = b""
        if not part:
            return received
        received += part


def read_frames(connection):
    """(kind, flags, stream) of each frame until the peer closes."""
    with connection.makefile("rb") as stream:
        while head := stream.read(9):
            size, kind, flags, number = struct.unpack(">I", b"\0" + head[:3])[0], head[3], head[4], head[5:]
            yield kind, flags, struct.unpack(">I", number)[0], stream.read(size)


def status_of(connection):
    """The grpc-status of the first response, by a decoder of the same library that wrote it."""
    block = next(payload for kind, _, stream, payload in read_frames(connection) if kind == 1 and stream == 1)
    lines = subprocess.run([build("net/h2/hpack_tool")], input=block, capture_output=True, check=True).stdout
    return int(dict(line.split(b"=", 1) for line in lines.splitlines())[b"grpc-status"])
