# SPDX-License-Identifier: Apache-2.0
"""What becomes of a request whose destination has a fault: one row of a table of faults, and the one test of all rows."""
import contextlib
import functools
import typing
from collections import Counter

import pytest

from harness import build as make
from harness import peers
from harness.gateway import Gateway

# Outcomes. Any other one is the reason for which the samples are dropped.
OK = "out"          # accepted, and not sent again
RETRY = "retried"   # sent again by the exporter, and accepted then
REPEAT = "repeated"  # sent again by the transport's library, because the server has not processed it
PERMANENT, EXHAUSTED = "permanent", "retries_exhausted"

RETRIES = "retry_on_failure: {initial_interval: 20ms, max_interval: 50ms, max_elapsed_time: 60s}"
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
exporters:
  EXPORTER:
    LINES
service:
  telemetry: {logs: {sampling: {enabled: false}}}
  pipelines:
    profiles: {receivers: [otlp], exporters: [EXPORTER]}
"""
CANARY = "words-of-the-server"  # those of a fault never reach the log or the metrics
SAMPLES = 10


class Fault(typing.NamedTuple):
    fault: object      # what the sink does with the first request, in its own terms
    outcome: str
    word: str = ""     # the "error" of the failed attempts; empty where none has failed
    wait: float = 0    # the request is sent again this many seconds later, or later still
    rejected: int = 0  # Profiles, by the counter

    def requests(self):
        """How often the sink gets the request."""
        return 2 if self.outcome in (RETRY, REPEAT) else 1


def rows(outcome, table, word=""):
    """Faults with the same outcome: {name: what the sink does}."""
    return {name: Fault(fault, outcome, word) for name, fault in table.items()}


class Bed:
    """A gateway with one exporter before a sink. `sink.fail(fault)`: it has the fault for the next request; `sink.seen`: the
    requests that have arrived, with their bytes (`wire`) and times (`at`)."""

    def __init__(self, build, sink, exporter, *lines, **options):
        text = CONFIG.replace("EXPORTER", exporter).replace("LINES", "\n    ".join(lines))
        self.exporter, self.sink, self.seed = exporter, sink, 0
        self.gateway = Gateway(build / "portcullis", text, **options)

    def __enter__(self):
        self.gateway.__enter__()
        self.client = peers.Client(self.gateway.port["otlp"])
        self.after = self.counts()
        self.recovers()
        return self

    def __exit__(self, kind, *more):
        self.client.close()
        self.gateway.__exit__(kind, *more)
        assert kind or CANARY not in self.gateway.log()

    def send(self, samples=SAMPLES):
        self.seed += 1
        self.client.send(make.request(self.seed, samples=samples))

    def counts(self):
        """{what became of the samples: their number}, and the counters of the exporter by name."""
        found, prefix = Counter(), "otelcol_exporter_"
        for (name, labels), value in self.gateway.metrics().items():
            labels = dict(labels)
            if labels.get("exporter") != self.exporter:
                continue
            if name in ("otelcol_ledger_dropped_samples", "otelcol_ledger_out_samples"):
                found[labels.get("reason", OK)] += int(value)
            elif name.startswith(prefix):
                found[name[len(prefix):]] += int(value)
            if name == prefix + "failed_attempts":
                found["error " + labels["error"]] += int(value)
        return found

    def request(self):
        """Sends one, and waits until it is accounted for. What has changed since the one before."""
        def ended(counts):
            return sum(n for name, n in counts.items() if name == OK or name in DROPPED)

        def is_over():
            self.after = self.counts()
            return ended(self.after) >= ended(before) + SAMPLES
        before = self.after
        self.send()
        self.gateway.until(is_over)
        assert self.gateway.balanced("profiles", self.exporter), self.gateway.ledger("profiles", self.exporter)
        return {name: self.after[name] - before[name] for name in self.after if self.after[name] != before[name]}

    def meets(self, fault):
        """One request meets the fault. The next one does not, and is delivered."""
        first = len(self.sink.seen)
        self.sink.fail(fault.fault)
        change = self.request()
        seen = self.sink.seen[first:]
        end = OK if fault.outcome in (RETRY, REPEAT) else fault.outcome
        assert change.pop(end) == SAMPLES, (fault, change)
        assert change.get("sent_profile_samples", 0) == (SAMPLES if end == OK else 0), change
        assert change.get("send_failed_profile_samples", 0) == (0 if end == OK else SAMPLES), change
        assert change.get("rejected_profiles", 0) == fault.rejected, change
        assert (change.get("retries", 0) > 0) == (fault.outcome == RETRY), change
        assert len(seen) == fault.requests() and len({request.wire for request in seen}) == 1, (len(seen), change)
        assert not fault.wait or seen[1].at - seen[0].at >= fault.wait
        assert {name for name in change if name.startswith("error ")} == ({"error " + fault.word} if fault.word else set()), change
        self.recovers()

    def recovers(self):
        first = len(self.sink.seen)
        assert self.request()[OK] == SAMPLES
        assert len(self.sink.seen) == first + 1


@contextlib.contextmanager
def beds(begin):
    """`begin(key)` is a context that gives a Bed: each key has one, from its first use to the end of the whole."""
    with contextlib.ExitStack() as held:
        yield functools.cache(lambda key: held.enter_context(begin(key)))


def cases(tables):
    """The parameters (key, fault) of a test with these tables: [(key, {name: fault})]."""
    return [pytest.param(key, fault, id="%s, %s" % (key[0], name)) for key, table in tables for name, fault in table.items()]


DROPPED = {PERMANENT, EXHAUSTED, "too_large", "no_retry", "plan", "expired", "queue_full", "shutdown"}
