# SPDX-License-Identifier: Apache-2.0
"""Stands between HTTP clients and their server, and keeps what was sent and answered."""
import collections
import email.parser
import gzip
import http.client
import http.server
import threading
import urllib.parse

import interop_stores_pb2 as messages

from harness import pprof

Exchange = collections.namedtuple("Exchange", "target path query headers body status answer")
HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def do_GET(self):
        self.do_POST()

    def do_POST(self):
        body = self.body()
        onward = http.client.HTTPConnection("127.0.0.1", self.server.to, timeout=60)
        onward.request(self.command, self.path, body, {k: v for k, v in self.headers.items() if k.lower() not in HOP})
        answer = onward.getresponse()
        text = answer.read()
        onward.close()
        path, _, query = self.path.partition("?")
        self.server.exchanges.append(Exchange(self.path, path, dict(urllib.parse.parse_qsl(query)), self.headers, body, answer.status, text))
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Recorder(http.server.ThreadingHTTPServer):
    """with Recorder(to) as r: clients of r.port, a free port unless given, reach the port `to`; r.exchanges are theirs, in
    order."""

    daemon_threads = True

    def __init__(self, to, port=0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.to, self.port, self.exchanges = to, self.server_address[1], []

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def pprofs(self):
        """Every pprof that was sent, parsed."""
        return [pprof.parse(body) for exchange in self.exchanges for body in _pprofs(exchange) if body]


def _pprofs(exchange):
    body, form = exchange.body, exchange.query.get("format")
    if exchange.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    if exchange.path.endswith("/Push"):
        return [sample.raw_profile for series in messages.PushRequest.FromString(body).series for sample in series.samples]
    kind = exchange.headers.get("Content-Type", "")
    if "multipart/form-data" in kind and form != "pprof":
        parts = email.parser.BytesParser().parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body)
        return [part.get_payload(decode=True) for part in parts.get_payload()
                if part.get_param("name", header="content-disposition") == "profile"]
    return [body] if form == "pprof" or exchange.path == "/v1/pprof" else []
