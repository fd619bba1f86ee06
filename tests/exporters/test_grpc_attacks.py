# SPDX-License-Identifier: Apache-2.0
"""A destination that attacks the gRPC client: it costs only itself.

Each attack goes on while requests arrive for two destinations. The healthy one gets all of them, memory and CPU stay
within bounds, and no request is split because of what the other one sent.
"""
import os
import pathlib
import statistics
import struct
import threading
import time

import pytest

from harness import build as make
from harness import faults, h2, peers
from harness.gateway import Gateway

SECONDS = 2
RSS_MAX, CPU_MAX, MEDIAN_MAX = 32 << 20, 1.0, .1
# A sanitizer's memory and time are no measure.
MEASURED = os.environ.get("MODE", "release") in ("release", "dev")
pytestmark = [pytest.mark.alone] if MEASURED else []
SAID = "said-by-the-destination"
REPLY_TOO_LARGE = "otelcol_exporter_oversized_responses"

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 1024, spike_limit_mib: 256}
exporters:
  otlp_grpc/attacker:
    endpoint: 127.0.0.1:ATTACKER
    tls: {insecure: true}
    timeout: 5s
    sending_queue: {num_consumers: 4}
    retry_on_failure: {initial_interval: 100ms, max_interval: 200ms, max_elapsed_time: 1h}
  otlp_grpc/healthy: {endpoint: 127.0.0.1:{port:healthy}, tls: {insecure: true}}
service:
  pipelines:
    profiles: {receivers: [otlp], processors: [memory_limiter], exporters: [otlp_grpc/attacker, otlp_grpc/healthy]}
"""


# ---- attacks: lists of steps of a FaultSink

def discard(connection):
    """Reads what the gateway sends, so that its writing never stops the attack."""
    def run():
        try:
            while connection.recv(1 << 16):
                pass
        except OSError:
            pass
    threading.Thread(target=run, daemon=True).start()


def flood(kind, payload, flags=0, stream=None):
    """The same frame again and again, until the connection is closed."""
    def step(connection, own):
        frame = h2.frame(kind, flags, payload, own if stream is None else stream)
        chunk = frame * max(1, 65536 // len(frame))
        discard(connection)
        while True:
            connection.sendall(chunk)
    return step


ANSWER = [(b":status", b"200"), (b"content-type", b"application/grpc")]
SMALL = h2.headers([(b"x", b"y")] * 3000)


def unfinished(block):
    """A header block that goes on in CONTINUATION."""
    return faults.frame(h2.HEADERS, 0, h2.headers(ANSWER) + block)


def message(length, sent):
    """A message in the windows that the gateway opens; its announced length need not be what is sent."""
    def step(connection, own):
        windows = {0: 65000, own: 65000}  # a little less than there is: the prefix, and replies before
        rest = bytes(1 << 14)
        connection.sendall(h2.frame(h2.DATA, 0, b"\0" + struct.pack(">I", length), own))
        done = 0
        while done < sent:
            room = min(*windows.values(), len(rest), sent - done)
            if room > 0:
                connection.sendall(h2.frame(h2.DATA, 0, rest[:room], own))
                done += room
                for number in windows:
                    windows[number] -= room
                continue
            head = faults.read(connection, 9)
            payload = faults.read(connection, int.from_bytes(head[:3], "big"))
            number = int.from_bytes(head[5:], "big")
            if head[3] == faults.WINDOW_UPDATE and number in windows:
                windows[number] += int.from_bytes(payload, "big")
    return step


FLOODS = {
    "CONTINUATION with small headers": [unfinished(b""), flood(h2.CONTINUATION, SMALL[:15000])],
    "empty CONTINUATION": [unfinished(b""), flood(h2.CONTINUATION, b"")],
    "a header of 1 GB": [unfinished(b"\0\x7f\x81\xff\xff\xff\x03"), flood(h2.CONTINUATION, b"a" * 1000)],
    "an endless varint": [unfinished(b"\0\x7f"), flood(h2.CONTINUATION, b"\x80" * 100)],
    "an endless varint in many frames": [unfinished(b"\0\x7f"), flood(h2.CONTINUATION, b"\x80" * 9)],
    "dynamic table updates": [unfinished(b""), flood(h2.CONTINUATION, b"\x3f\x01" * 5000)],
    "indexed headers": [unfinished(b"\x40\1x\x7f\xf1\x0f" + b"v" * 2160), flood(h2.CONTINUATION, b"\xbe" * 16000)],
    "empty DATA": [faults.OPEN, flood(h2.DATA, b"")],
    "DATA of one byte for no stream": [faults.OPEN, flood(h2.DATA, b"x", stream=99)],
    "frames of an unknown type": [flood(99, bytes(1000))],
    "SETTINGS": [flood(h2.SETTINGS, bytes([0, 4, 0, 0, 255, 255]), stream=0)],
    "PING": [flood(faults.PING, bytes(8), stream=0)],
    "GOAWAY": [flood(h2.GOAWAY, struct.pack(">II", 0x7fffffff, 0) + b"d" * 1000, stream=0)],
    "RST_STREAM": [flood(faults.RST_STREAM, struct.pack(">I", 8), stream=99)],
    "a reply of 30 MB": [faults.OPEN, message(30 << 20, 30 << 20), faults.trailers(0)],
    "a reply of 4 GB": [faults.OPEN, message(0xffffffff, 1 << 32)],
    "the greeting": None,  # in place of the server's SETTINGS
}


def cpu_seconds(pid):
    fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bed:
    """A gateway between senders, a destination that can attack, and a healthy one."""

    def __init__(self, build):
        self.sink = faults.FaultSink()
        self.gateway = Gateway(build / "portcullis", CONFIG.replace("ATTACKER", str(self.sink.port)))
        self.healthy = peers.Sink(self.gateway.port["healthy"])
        self.sent = 0

    def __enter__(self):
        self.healthy.start()
        self.gateway.__enter__()
        self.client = peers.Client(self.gateway.port["otlp"])
        for _ in range(20):
            self.send()
        pathlib.Path("/proc/%d/clear_refs" % self.gateway.process.pid).write_text("5")  # the peak begins anew
        return self

    def __exit__(self, *error):
        self.client.close()
        self.sink.__exit__()  # the gateway stops without waiting for it
        self.gateway.__exit__(*error)
        self.healthy.stop()

    def send(self):
        """One request, and how long it took to arrive at the healthy destination."""
        begun = time.monotonic()
        self.client.send(make.request(self.sent, samples=10))
        self.sent += 1
        self.gateway.until(lambda: len(self.healthy.received) == self.sent)
        return time.monotonic() - begun

    def cost_of(self, seconds):
        """(bytes of growth at the peak, CPU seconds, median time of a request) of some time of sending."""
        memory, cpu = self.gateway.rss()["VmRSS"], cpu_seconds(self.gateway.process.pid)
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            times.append(self.send())
            time.sleep(.02)
        return (self.gateway.rss()["VmHWM"] - memory, cpu_seconds(self.gateway.process.pid) - cpu,
                statistics.median(times))

    def total(self, name, **labels):
        return self.gateway.total(name, exporter="otlp_grpc/attacker", **labels)


@pytest.mark.parametrize("attack", FLOODS)
def test_a_flood_costs_only_the_destination_that_sends_it(build, attack):
    with Bed(build) as bed:
        if FLOODS[attack]:
            bed.sink.script = FLOODS[attack]
        else:
            bed.sink.greeting = h2.frame(99, 0, bytes(16000), 0) * 1000
            bed.sink.cut()
        growth, cpu, median = bed.cost_of(SECONDS)
        print("%s: +%.1f MB, %.2f s CPU, median %.1f ms" % (attack, growth / 1e6, cpu, median * 1e3))
        assert bed.total("otelcol_ledger_dropped_samples") == bed.total("otelcol_ledger_dropped_samples", reason="permanent")
        assert bed.total("otelcol_exporter_oversized_requests") == 0
        if MEASURED:
            assert growth < RSS_MAX and cpu < CPU_MAX and median < MEDIAN_MAX


def pieces(body, size=1 << 14):
    return [body[i:i + size] for i in range(0, len(body), size)]


def long_headers(*fields, end):
    """A header block of more than one frame."""
    first, *rest = pieces(h2.headers(fields))
    return [faults.frame(h2.HEADERS, h2.END_STREAM if end else 0, first),
            *[faults.frame(h2.CONTINUATION, 0, part) for part in rest[:-1]],
            faults.frame(h2.CONTINUATION, h2.END_HEADERS, rest[-1])]


OK = (b"grpc-status", b"0")
LONG = [(b"name-%d" % i, b"v" * 200) for i in range(100)]
TOO_LARGE = {
    "headers": [*long_headers(*ANSWER, *LONG, end=False), faults.trailers(0)],
    "trailers": [faults.OPEN, faults.data(faults.message()), *long_headers(OK, *LONG, end=True)],
    "a status message": long_headers(*ANSWER, (b"grpc-status", b"3"), (b"grpc-message", SAID.encode() * 1500), end=True),
    "a message": [faults.OPEN, message(30 << 20, 30 << 20), faults.trailers(0)],
}


@pytest.mark.parametrize("what", TOO_LARGE)
def test_a_reply_that_is_too_large_says_nothing_about_the_request(build, what):
    """It is sent again as it was: neither split, nor dropped, nor taken for too large."""
    with Bed(build) as bed:
        bed.sink.script = TOO_LARGE[what]
        bed.send()
        bed.gateway.until(lambda: bed.total(REPLY_TOO_LARGE) >= 1)
        bed.gateway.until(lambda: '"error": "reply_too_large"' in bed.gateway.log())
        bed.sink.script = faults.answer()
        bed.gateway.until(lambda: bed.total("otelcol_ledger_out_samples") == 10 * bed.sent)
        assert bed.total("otelcol_exporter_oversized_requests") == bed.total("otelcol_ledger_dropped_samples") == 0
        assert SAID not in bed.gateway.log() + bed.gateway.metrics_text()


def test_what_is_long_and_within_the_bounds_is_taken(build):
    """A message that is not read, a status message that is, and many of them one after the other."""
    with Bed(build) as bed:
        # One at a time, within the window of the connection: the client has to return what it does not read.
        bed.sink.script = [faults.OPEN, *[bed.sink.data(part) for part in pieces(faults.message(bytes(20000)))], faults.trailers(0)]
        for _ in range(30):
            bed.send()
            bed.gateway.until(lambda: bed.total("otelcol_ledger_out_samples") == 10 * bed.sent)
        bed.sink.script = faults.refusal(3, ("grpc-message", SAID * 500))
        bed.send()
        bed.gateway.until(lambda: bed.total("otelcol_ledger_dropped_samples", reason="permanent") == 10)
        assert bed.total(REPLY_TOO_LARGE) == 0
        assert SAID not in bed.gateway.log()
