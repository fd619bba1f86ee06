#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A gRPC server that does what it is told, for tests of clients.

The script of a call is its metadata `x-script`, or else its message as text:
  echo                      the answer lists the metadata, the server's name and the message's length
  status N [retry MS] TEXT  fails so, with RetryInfo if asked
  partial N TEXT            an ExportProfilesServiceResponse with partial_success
  large N | zip N           an answer of N bytes, plain or compressed
  require-gzip 0|1          fails unless the message was (not) gzip on the wire; wants --raw
  hang                      answers only when the client has gone
Prints "port N" when it listens; ends with its standard input.
"""
import argparse
import gzip
import socket
import sys
import threading
from concurrent import futures

import grpc


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def status_details(code, text, retry_ms):
    delay = field(1, retry_ms // 1000) + field(2, retry_ms % 1000 * 1000000)
    info = field(1, b"type.googleapis.com/google.rpc.RetryInfo") + field(2, field(1, delay))
    other = field(1, b"type.googleapis.com/google.rpc.DebugInfo") + field(2, b"\x12\x03abc")
    return field(1, code) + field(2, text.encode()) + field(3, other) + field(3, info)


class Peer(grpc.GenericRpcHandler):
    def __init__(self, options):
        self.options = options

    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(self.answer)

    def answer(self, message, context):
        packed = message[:2] == b"\x1f\x8b"
        if self.options.raw and packed:
            message = gzip.decompress(message)
        metadata = context.invocation_metadata()
        script = dict(metadata).get("x-script") or message.decode(errors="replace")
        verb, _, rest = script.partition(" ")
        if verb == "echo":
            lines = [f"{k}={v}" for k, v in metadata]
            lines += [f"name={self.options.name}", f"length={len(message)}", f"packed={packed}"]
            lines += [f"{k}={v[0].decode()}" for k, v in context.auth_context().items()
                      if k == "x509_common_name"]
            return "\n".join(lines).encode()
        if verb == "require-gzip":
            if packed != (rest == "1"):
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, "it was not")
            return b""
        return getattr(self, verb)(rest, context)

    def status(self, rest, context):
        code, _, text = rest.partition(" ")
        if text.startswith("retry "):
            _, ms, text = text.split(" ", 2)
            context.set_trailing_metadata(
                (("grpc-status-details-bin", status_details(int(code), text, int(ms))),))
        context.abort(next(c for c in grpc.StatusCode if c.value[0] == int(code)), text)

    def partial(self, rest, context):
        count, _, text = rest.partition(" ")
        return field(1, field(1, int(count)) + field(2, text.encode()))

    def large(self, rest, context):
        return bytes(int(rest))

    def zip(self, rest, context):
        context.set_compression(grpc.Compression.Gzip)
        return bytes(int(rest))

    def hang(self, rest, context):
        gone = threading.Event()
        if context.add_callback(gone.set):
            gone.wait(60)
        return b""


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def exactly(connection, count):
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def refuse_plainly(connection, status):
    """HTTP/2 by hand: each stream gets an HTTP status and nothing of gRPC, as from a proxy."""
    exactly(connection, 24)
    connection.sendall(frame(4, 0, 0))
    while True:
        head = exactly(connection, 9)
        exactly(connection, int.from_bytes(head[:3], "big"))
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        if kind == 4 and not flags & 1:
            connection.sendall(frame(4, 1, 0))
        if kind == 1:
            connection.sendall(frame(1, 5, stream, b"\x08\x03" + str(status).encode()))


def serve_http(status):
    listener = socket.create_server(("127.0.0.1", 0))

    def run():
        while True:
            connection, _ = listener.accept()
            try:
                refuse_plainly(connection, status)
            except (EOFError, OSError):
                connection.close()
    threading.Thread(target=run, daemon=True).start()
    return listener.getsockname()[1]


def credentials_of(options):
    cert, key = (open(f, "rb").read() for f in options.tls)
    ca = open(options.client_ca, "rb").read() if options.client_ca else None
    return grpc.ssl_server_credentials([(key, cert)], ca, ca is not None)


def serve_grpc(options):
    settings = [("grpc.so_reuseport", 0)]
    if options.raw:
        settings.append(("grpc.per_message_decompression", 0))
    server = grpc.server(futures.ThreadPoolExecutor(16), options=settings)
    server.add_generic_rpc_handlers((Peer(options),))
    address = options.unix or f"127.0.0.1:{options.port}"
    if options.tls:
        port = server.add_secure_port(address, credentials_of(options))
    else:
        port = server.add_insecure_port(address)
    server.start()
    return server, port


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--unix")
    parser.add_argument("--name", default="")
    parser.add_argument("--tls", nargs=2)
    parser.add_argument("--client-ca")
    parser.add_argument("--raw", action="store_true", help="do not let core inflate requests")
    parser.add_argument("--http-status", type=int)
    options = parser.parse_args()
    if options.http_status:
        port = serve_http(options.http_status)
    else:
        server, port = serve_grpc(options)
    print("port", port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
