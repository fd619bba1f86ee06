# SPDX-License-Identifier: Apache-2.0
"""A Pyroscope that does what it is told: takes push.v1, keeps what it gets, and answers as the test says."""
import collections
import contextlib
import functools
import gzip
import http.server
import socket
import ssl
import threading
import time

import interop_stores_pb2 as messages

from harness import pprof

PATH = "/push.v1.PusherService/Push"


class Taken:
    """One request: headers, and the series (labels, pprofs) that it holds; decoded when a test asks."""

    def __init__(self, path, headers, wire):
        self.path, self.headers, self.at = path, headers, time.monotonic()
        self.wire, self.size = wire, len(wire)

    @functools.cached_property
    def body(self):
        return gzip.decompress(self.wire) if self.headers.get("Content-Encoding") == "gzip" else self.wire

    @property
    def plain_size(self):
        return len(self.body)

    @functools.cached_property
    def series(self):
        return [({x.name: x.value for x in row.labels}, [pprof.parse(s.raw_profile) for s in row.samples])
                for row in messages.PushRequest.FromString(self.body).series]

    @property
    def label_lists(self):
        return [[(x.name, x.value) for x in row.labels] for row in messages.PushRequest.FromString(self.body).series]

    @property
    def labels(self):
        return self.series[0][0]

    @property
    def profiles(self):
        return self.series[0][1]


class Answer(bytes):
    """The bytes of a good answer. After any others the connection is closed."""


def reply(status, body=b"", headers=()):
    lines = ["HTTP/1.1 %d X" % status, "Content-Length: %d" % len(body), *("%s: %s" % h for h in dict(headers).items())]
    return Answer(("\r\n".join(lines) + "\r\n\r\n").encode() + body)


OK = reply(200, gzip.compress(b""), {"Content-Type": "application/proto", "Content-Encoding": "gzip"})


def refusal(status, code, text, **headers):
    """As Connect says it."""
    body = ('{"code":"%s","message":"%s"}' % (code, text)).encode()
    return reply(status, body, dict({"Content-Type": "application/json"}, **headers))


class HttpSink:
    """A server that keeps the requests of `Request` and answers `ok`, unless a test says otherwise.

    with PushSink() as sink: sink.port, sink.taken. `answer(taken, number)` gives the bytes of an answer, None hangs up;
    it runs before the request counts as taken, which it does for the answers 200 alone. An answer can also be a function,
    which gets the connection and does with it what it likes before it is closed."""

    Request, ok = None, None

    def __init__(self, certificates=None, client_ca=None, address="127.0.0.1", port=0):
        self.answer = lambda taken, number: self.faults.pop(0) if self.faults else self.ok
        self.faults = []
        self.seen, self.taken, self.connections = [], [], set()
        self.lock = threading.Lock()
        self.certificates, self.client_ca, self.address, self.port = certificates, client_ca, address, port
        self.server = self.bind()

    def bind(self):
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                sink.connections.add(self.connection)

            def finish(self):
                sink.connections.discard(self.connection)
                super().finish()

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = sink.Request(self.path, self.headers, body)
                with sink.lock:
                    sink.seen.append(request)
                    number = len(sink.seen)
                answer = sink.answer(request, number)
                self.close_connection = not isinstance(answer, Answer)
                if callable(answer):
                    return answer(self.connection)
                if answer and answer.startswith(b"HTTP/1.1 200"):
                    with sink.lock:
                        sink.taken.append(request)
                if answer:
                    self.wfile.write(answer)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        server = Server((self.address, self.port), Handler)
        self.port = server.server_address[1]
        if self.certificates:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificates)
            if self.client_ca:
                context.load_verify_locations(self.client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        return server

    def fail(self, answer):
        """The next request gets this answer."""
        self.faults.append(answer)

    def start(self):
        """On the port that it had before."""
        self.server = self.server or self.bind()
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def stop(self):
        """As if its process had ended: its connections end too."""
        if not self.server:
            return
        self.server.shutdown()
        self.server.server_close()
        self.server = None
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


class PushSink(HttpSink):
    Request, ok = Taken, OK

    def values(self, kind):
        """{stack: sum} of a sample type ("cpu", "nanoseconds") over all that was taken."""
        total = collections.Counter()
        for request in list(self.taken):
            for profile in request.profiles:
                kinds = [pprof.Reader(profile).kind(t) for t in profile.sample_type]
                if kind in kinds:
                    total += pprof.values(profile, kinds.index(kind))
        return total
