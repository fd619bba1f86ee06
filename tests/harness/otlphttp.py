# SPDX-License-Identifier: Apache-2.0
"""A server of OTLP over HTTP that answers as a test says; it decodes with other implementations than ours."""
import functools
import json
import time

from harness import codings, otlp
from harness.push import HttpSink, reply

PATH = "/v1development/profiles"
PROTO, JSON = "application/x-protobuf", "application/json"
OK = reply(200, b"", {"Content-Type": PROTO})


class Taken:
    """One request: headers, and what it holds, decoded when a test asks."""

    def __init__(self, path, headers, wire):
        self.path, self.headers, self.at = path, headers, time.monotonic()
        self.wire, self.size = wire, len(wire)

    @functools.cached_property
    def body(self):
        return codings.DECODERS[self.headers["Content-Encoding"]](self.wire)

    @functools.cached_property
    def message(self):
        """In protobuf, whichever encoding was sent."""
        return {PROTO: bytes, JSON: otlp.parse_json}[self.headers["Content-Type"]](self.body)

    @property
    def samples(self):
        return otlp.samples(self.message)


class OtlpSink(HttpSink):
    Request, ok = Taken, OK

    def samples(self):
        return sum((request.samples for request in list(self.taken)), otlp.Counter())


def json_reply(status, body, headers=()):
    return reply(status, json.dumps(body).encode(), dict(headers, **{"Content-Type": JSON}))
