# SPDX-License-Identifier: Apache-2.0
"""Real clients and servers of the protocols: grpcio for OTLP, plain sockets for HTTP."""
import gzip
import http.client
import threading
from concurrent import futures

import grpc

from harness import otlp

LIMIT = [("grpc.max_receive_message_length", 1 << 30), ("grpc.max_send_message_length", 1 << 30)]


class Sink:
    """A server of one method, OTLP's unless told otherwise, that keeps what it gets. `answer` may be replaced: it gets
    (request bytes, context). `limit`: the largest message in bytes, None: the library's own 4 MiB."""

    def __init__(self, port=0, threads=8, method=otlp.METHOD, credentials=None, limit=1 << 30, address="127.0.0.1"):
        self.port, self.threads, self.method, self.credentials, self.host = port, threads, method, credentials, address
        self.options = [("grpc.so_reuseport", 0)]
        if limit:
            self.options.append(("grpc.max_receive_message_length", limit))
        self.lock = threading.Lock()
        self.received, self.metadata = [], []
        self.answer = lambda data, context: b""
        self.server = None

    def start(self):
        self.server = grpc.server(futures.ThreadPoolExecutor(self.threads),
                                  options=self.options)
        self.server.add_generic_rpc_handlers((_Handler(self),))
        address = "%s:%d" % (self.host, self.port)
        self.port = (self.server.add_secure_port(address, self.credentials) if self.credentials
                     else self.server.add_insecure_port(address))
        self.server.start()
        return self

    def stop(self):
        if self.server:
            self.server.stop(None).wait()
            self.server = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def export(self, data, context):
        result = self.answer(data, context)
        with self.lock:
            self.received.append(data)
            self.metadata.append(context.invocation_metadata())
        return result

    def samples(self):
        with self.lock:
            taken = list(self.received)
        return otlp.all_samples(taken)


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, sink):
        self.sink = sink

    def service(self, details):
        if details.method != self.sink.method:
            return None
        return grpc.unary_unary_rpc_method_handler(self.sink.export)


class Client:
    """An OTLP sender."""

    def __init__(self, port, compression=None, credentials=None, options=()):
        target, options = "127.0.0.1:%d" % port, LIMIT + list(options)
        self.channel = (grpc.secure_channel(target, credentials, options) if credentials
                        else grpc.insecure_channel(target, options))
        self.compression = compression
        self.call = self.channel.unary_unary(otlp.METHOD)

    def send(self, data, metadata=None, timeout=60):
        """Bytes or a Request; the decoded response."""
        data = data if isinstance(data, bytes) else data.SerializeToString()
        return otlp.Response.FromString(
            self.call(data, metadata=metadata, timeout=timeout, compression=self.compression))

    def close(self):
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def refused(client, data, **keywords):
    """The error of a call that must fail."""
    try:
        client.send(data, **keywords)
    except grpc.RpcError as error:
        return error
    raise AssertionError("was accepted")


def post(port, body, path="/v1/pprof", headers=None, zipped=False, method="POST"):
    """(status, headers, body) of one HTTP request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = dict(headers or {})
    if zipped:
        body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
    try:
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()
