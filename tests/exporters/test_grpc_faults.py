# SPDX-License-Identifier: Apache-2.0
"""Exporters over gRPC before servers that refuse, dawdle, break off and lie.

What becomes of the data is what the Collector makes of the status (its grpc_util; a refusal without a gRPC status by the
table of the gRPC specification): tried again, given up, or taken.
"""
import base64
import contextlib
import struct

import pytest

from harness import build as make
from harness import faults, h2, otlp, outcomes, peers
from harness.gateway import Gateway
from harness.outcomes import CANARY, EXHAUSTED, RETRIES, Fault
from support.grpc_peer import field, status_details

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  EXPORTER:
    endpoint: 127.0.0.1:PORT
    tls: {insecure: true}
    timeout: 2s
    sending_queue: {num_consumers: 1}
    retry_on_failure: {enabled: false}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [EXPORTER]}
"""
OK, RETRY, PERMANENT, TOO_LARGE = "out", "no_retry", "permanent", "too_large"


class Bed:
    """One gateway with one exporter before a fault sink."""

    def __init__(self, build, exporter, more=""):
        self.exporter, self.sink = exporter, faults.FaultSink()
        text = CONFIG.replace("timeout: 2s", "timeout: 2s\n    " + more) if more else CONFIG
        self.gateway = Gateway(build / "portcullis", text.replace("EXPORTER", exporter).replace("PORT", str(self.sink.port)))

    def __enter__(self):
        self.gateway.__enter__()
        return self

    def __exit__(self, *error):
        self.gateway.__exit__(*error)
        self.sink.__exit__(*error)

    def counts(self):
        """{what became of it: samples}"""
        found = {}
        for (name, labels), value in self.gateway.metrics().items():
            labels = dict(labels)
            if labels.get("exporter") == self.exporter and name == "otelcol_ledger_dropped_samples":
                found[labels["reason"]] = int(value)
            if labels.get("exporter") == self.exporter and name == "otelcol_ledger_out_samples":
                found[OK] = int(value)
        return found

    def outcome(self, script=None, greeting=None):
        """What becomes of one request."""
        self.sink.script, self.sink.greeting = script, greeting
        if greeting is not None:
            self.sink.cut()
        before = self.counts()
        with peers.Client(self.gateway.port["otlp"]) as client:
            client.send(make.request(1, samples=10))
        self.gateway.until(lambda: sum(self.counts().values()) == sum(before.values()) + 10)
        assert self.gateway.balanced("profiles", self.exporter), self.gateway.ledger("profiles", self.exporter)
        after = self.counts()
        ((found, _),) = {k: after[k] for k in after if after[k] != before.get(k, 0)}.items()
        return found

    def recover(self):
        """The connection is whole again."""
        self.sink.greeting = None
        self.gateway.until(lambda: self.outcome(faults.answer()) == OK)


EXPORTERS = ["otlp_grpc", "parca"]


@pytest.fixture(scope="module", params=EXPORTERS)
def bed(request, build):
    with Bed(build, request.param) as bed:
        yield bed
        assert CANARY not in bed.gateway.log() + bed.gateway.metrics_text()


def details(status, ms):
    return "grpc-status-details-bin", base64.b64encode(status_details(status, CANARY, ms)).decode().rstrip("=")


RETRYABLE = {1, 4, 10, 11, 14, 15}
STATUSES = [(status, RETRY if status in RETRYABLE else PERMANENT) for status in range(1, 17)]


@pytest.mark.parametrize("status, expected", STATUSES + [(17, PERMANENT), (99, PERMANENT), ("-1", PERMANENT),
                                                        ("x", PERMANENT)])
def test_each_status(bed, status, expected):
    assert bed.outcome(faults.refusal(status, ("grpc-message", CANARY))) == expected
    assert bed.outcome([faults.OPEN, faults.trailers(status, ("grpc-message", CANARY))]) == expected
    assert bed.outcome([faults.OPEN, faults.data(faults.message()), faults.trailers(status)]) == expected, "with a message"


@pytest.mark.parametrize("status, expected", [(8, RETRY), (14, RETRY), (3, PERMANENT)])
def test_a_retry_hint_makes_exhaustion_pass(bed, status, expected):
    assert bed.outcome(faults.refusal(status, details(status, 10))) == expected


def test_a_hint_that_cannot_be_read_is_none(bed):
    for value in ("AAAA", "!!", base64.b64encode(b"\xff" * 40).decode()):
        assert bed.outcome(faults.refusal(8, ("grpc-status-details-bin", value))) == PERMANENT


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_what_is_too_large_and_cannot_be_split_is_said_to_be(build, exporter):
    with Bed(build, exporter) as bed:  # of its own: it learns
        assert bed.outcome(faults.refusal(8, ("grpc-message", "received message larger than max (9 vs. 4)"))) == TOO_LARGE


HTTP = [(400, PERMANENT), (401, PERMANENT), (403, PERMANENT), (404, PERMANENT), (418, PERMANENT), (429, RETRY), (500, PERMANENT),
        (502, RETRY), (503, RETRY), (504, RETRY)]


@pytest.mark.parametrize("status, expected", HTTP)
def test_an_http_status_without_a_grpc_status(bed, status, expected):
    plain = ("content-type", "text/html")
    assert bed.outcome([faults.headers((":status", status), plain, end=True)]) == expected
    assert bed.outcome([faults.headers((":status", status), plain), faults.data(CANARY.encode(), end=True)]) == expected


def test_an_answer_without_any_status(bed):
    assert bed.outcome([faults.OPEN, faults.data(faults.message(), end=True)]) == PERMANENT
    assert bed.outcome([faults.headers((":status", 200), ("content-type", "text/html"), end=True)]) == PERMANENT


# ---- answers

def test_an_answer_that_takes_its_time_is_taken(bed):
    assert bed.outcome([faults.pause(.3), faults.OPEN, faults.pause(.3), *faults.answer()[1:]]) == OK


def test_an_answer_that_comes_too_late_is_none(bed):
    assert bed.outcome([faults.OPEN, faults.data(faults.message()), faults.pause(3), faults.trailers(0)]) == RETRY
    bed.recover()


@pytest.mark.parametrize("payload", [b"", b"\x0a\x00", b"\x0a\x02\x08\x00", b"\xff\xff", field(9, CANARY.encode())])
@pytest.mark.parametrize("zipped", [False, True])
def test_answers_are_read_also_when_compressed_unasked(bed, payload, zipped):
    before = bed.gateway.log().count("Partial success")
    assert bed.outcome(faults.answer(payload, zipped)) == OK
    assert bed.gateway.log().count("Partial success") == before, "an empty partial_success says nothing"
    assert bed.gateway.total("otelcol_exporter_rejected_profiles") == 0


def test_an_answer_in_pieces_is_one(bed):
    body = faults.message(b"\x0a\x00")
    pieces = [faults.data(body[i:i + 1]) for i in range(len(body))]
    assert bed.outcome([faults.OPEN, *pieces, faults.data(b""), faults.trailers(0)]) == OK


# The status says that the data was taken, whatever is wrong with the answer. Core waits in vain for what follows a second
# message.
WRONG = {
    "longer than it is": ([faults.OPEN, faults.data(faults.message(b"ab", length=9)), faults.trailers(0)], OK),
    "shorter than it is": ([faults.OPEN, faults.data(faults.message(b"abcd", length=2)), faults.trailers(0)], RETRY),
    "cut in its head": ([faults.OPEN, faults.data(b"\0\0\0"), faults.trailers(0)], OK),
    "4 GiB": ([faults.OPEN, faults.data(faults.message(b"", length=0xffffffff)), faults.trailers(0)], OK),
    "no gzip": ([faults.ZIPPED, faults.data(faults.message(b"ab", flag=1)), faults.trailers(0)], OK),
    "compressed by nothing named": ([faults.OPEN, faults.data(faults.message(b"ab", flag=1)), faults.trailers(0)], OK),
    "an unknown flag": ([faults.OPEN, faults.data(faults.message(b"ab", flag=7)), faults.trailers(0)], OK),
    "two messages": ([faults.OPEN, faults.data(2 * faults.message(b"")), faults.trailers(0)], RETRY),
    "not there": (faults.refusal(0), OK),
    "wrong, and so is the status": ([faults.OPEN, faults.data(b"\0\0\0"), faults.trailers(13)], PERMANENT),
    "longer than it is, to be tried again": (
        [faults.OPEN, faults.data(faults.message(b"ab", length=9)), faults.trailers(14)], RETRY),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_answer_whose_frame_is_wrong(bed, what):
    script, expected = WRONG[what]
    got = bed.outcome(script)
    bed.recover()
    assert got == expected


# ---- connections

BROKEN = {
    "closed at once": [faults.close],
    "reset at once": [faults.abort],
    "closed behind the headers": [faults.OPEN, faults.close],
    "closed in the message": [faults.OPEN, faults.data(faults.message(b"ab", length=9)), faults.close],
    "closed in a frame": [faults.OPEN, faults.raw(struct.pack(">IBI", 100 << 8, 0, 1)[:9]), faults.close],
    "closed before the status": [faults.OPEN, faults.data(faults.message()), faults.close],
    "reset before the status": [faults.OPEN, faults.data(faults.message()), faults.abort],
    "GOAWAY and closed": [faults.frame(h2.GOAWAY, 0, bytes(8), 0), faults.close],
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_connection_that_breaks_is_tried_again(bed, what):
    got = bed.outcome(BROKEN[what])
    bed.recover()
    assert got == RETRY


@pytest.fixture(scope="module")
def once(build):
    with Bed(build, "parca", "retry_unknown: false") as bed:
        yield bed


@pytest.mark.parametrize("what", BROKEN)
def test_at_most_once_nothing_that_may_have_arrived_is_tried_again(once, what):
    got = once.outcome(BROKEN[what])
    once.recover()
    assert got == PERMANENT


def test_at_most_once_what_was_not_taken_is_tried_again(once):
    assert once.outcome(faults.refusal(8, details(8, 10))) == RETRY
    assert once.outcome(greeting=b"HTTP/1.1 400 Bad Request\r\n\r\n") == RETRY
    once.recover()


def test_a_connection_that_is_no_http_2_any_more_is_an_internal_error(bed):
    assert bed.outcome([faults.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), faults.close]) == PERMANENT
    bed.recover()


# RFC 9113 §7, and what the gRPC specification makes of each.
CANCELLED, REFUSED, CALM, INADEQUATE = 8, 7, 11, 12


@pytest.mark.parametrize("code, expected", [(0, PERMANENT), (1, PERMANENT), (2, PERMANENT), (REFUSED, RETRY), (CANCELLED, RETRY),
                                            (CALM, PERMANENT), (INADEQUATE, PERMANENT)])
def test_a_stream_that_is_reset(bed, code, expected):
    assert bed.outcome([faults.frame(faults.RST_STREAM, 0, code.to_bytes(4, "big"))]) == expected


@pytest.mark.parametrize("greeting", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x01\x00\x02\x02\x46", bytes(100)],
                         ids=["nothing", "HTTP/1.1", "TLS alert", "zeros"])
def test_a_port_where_no_grpc_is_spoken_is_tried_again(bed, greeting):
    got = bed.outcome(greeting=greeting)
    bed.recover()
    assert got == RETRY


@pytest.mark.parametrize("endpoint, tls, reason", [
    ("127.0.0.1:1", "{insecure: true}", "unavailable"),
    ("no..name:4317", "{insecure: true}", "unresolved"), # no query leaves for it
    ("127.0.0.1:{port:otlp}", "{insecure_skip_verify: true}", "tls"),
])
def test_why_there_is_no_connection_is_told(build, endpoint, tls, reason):
    text = CONFIG.replace("EXPORTER", "otlp_grpc").replace("127.0.0.1:PORT", endpoint).replace("{insecure: true}", tls)
    with Gateway(build / "portcullis", text) as gateway, peers.Client(gateway.port["otlp"]) as client:
        client.send(make.request(1))
        gateway.until(lambda: "Exporting failed." in gateway.log())
        assert '"error": "%s"' % reason in gateway.log()


# ---- what is tried again arrives: with retries, one request meets a fault and the next one does not

WORDS = ("cancelled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists", "permission_denied",
         "resource_exhausted", "failed_precondition", "aborted", "out_of_range", "unimplemented", "internal", "unavailable",
         "data_loss", "unauthenticated")


def refused(status, outcome, hint=None, **more):
    trailer = [("grpc-status-details-bin", base64.b64encode(hint).decode().rstrip("="))] if hint else []
    return Fault(faults.refusal(status, ("grpc-message", CANARY), *trailer), outcome, WORDS[status - 1], **more)


def hint(seconds, nanos=0):
    """google.rpc.Status with RetryInfo."""
    delay = b"".join(field(n, value % 2 ** 64) for n, value in ((1, seconds), (2, nanos)) if value)
    info = field(1, b"type.googleapis.com/google.rpc.RetryInfo") + field(2, field(1, delay))
    return field(1, 8) + field(3, info)


def other_details():
    """RetryInfo without a delay, behind another detail."""
    other, info = (field(1, b"type.googleapis.com/google.rpc." + name) for name in (b"DebugInfo", b"RetryInfo"))
    return field(3, other) + field(3, info + field(2, b""))


def partial(count):
    return faults.answer(otlp.Response(partial_success={"rejected_profiles": count, "error_message": CANARY}).SerializeToString())


RETRIED = outcomes.RETRY
EACH_STATUS = {"status %d" % status: refused(status, RETRIED if status in RETRYABLE else outcomes.PERMANENT)
               for status in range(1, 17)}
HINTS = {
    "a hint of none": refused(8, RETRIED, hint(0)), "a hint without a delay": refused(8, RETRIED, other_details()),
    "a hint of the past": refused(8, RETRIED, hint(-3600)), "a hint of less than nothing": refused(14, RETRIED, hint(0, -1)),
    "a hint of a nanosecond": refused(8, RETRIED, hint(0, 1)), "a hint where nothing is tried again": refused(3, outcomes.PERMANENT, hint(1)),
}
WAITS = {
    "exhausted, a second": refused(8, RETRIED, hint(1), wait=1), "unavailable, a second": refused(14, RETRIED, hint(1), wait=1),
    "aborted, in nanoseconds": refused(10, RETRIED, hint(0, 900000000), wait=.9),
}
# Longer than data is retried for.
ABSURD = {"%d s" % seconds: refused(8, EXHAUSTED, hint(seconds)) for seconds in (3600, 2 ** 31, 2 ** 63 - 1)}
LOST = {name: Fault(script, RETRIED, "unavailable") for name, script in BROKEN.items()}
DELAYS = {
    "too late": Fault([faults.pause(1.5), *faults.answer()], RETRIED, "deadline_exceeded"),
    "too late behind the message": Fault([*faults.answer()[:2], faults.pause(1.5), faults.trailers(0)], RETRIED, "deadline_exceeded"),
    "slow": Fault([faults.pause(.3), *faults.answer()], outcomes.OK),
}
PARTIAL = {"partial, %d" % count: Fault(partial(count), outcomes.OK, rejected=rejected) for count, rejected in (
    (0, 0), (1, 1), (2, 1), (2 ** 63 - 1, 1), (-1, 0), (-2 ** 63, 0))}
PATIENT = (RETRIES, "timeout: 30s")
HURRIED = (RETRIES, "timeout: 1s")
SOON_OVER = (RETRIES.replace("60s", "500ms"), "timeout: 30s")
COMMON = {**EACH_STATUS, **HINTS, **LOST}
TABLES = [(("otlp_grpc", *PATIENT), {**COMMON, **PARTIAL}), (("parca", *PATIENT), COMMON)]
for exporter in EXPORTERS:
    TABLES += [((exporter, *HURRIED), {**DELAYS, **WAITS}), ((exporter, *SOON_OVER), ABSURD)]


@contextlib.contextmanager
def begin(build, exporter, *lines):
    with faults.FaultSink() as sink:
        lines = ("endpoint: 127.0.0.1:%d" % sink.port, "tls: {insecure: true}", *lines)
        with outcomes.Bed(build, sink, exporter, *lines) as found:
            yield found


@pytest.fixture(scope="module")
def beds(build):
    with outcomes.beds(lambda key: begin(build, *key)) as found:
        yield found


@pytest.mark.parametrize("key, fault", outcomes.cases(TABLES))
def test_each_fault_has_its_outcome_and_the_next_request_is_delivered(beds, key, fault):
    beds(key).meets(fault)
