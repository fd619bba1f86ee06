# SPDX-License-Identifier: Apache-2.0
"""Secrets in every field that can hold a string: references, orphans, unknown fields, embedded payloads."""
import signal
from collections import Counter

import pytest

from harness import canaries, chaos, peers, poison

ORACLE = """No secret is found at a destination, in a queue on disk, in a log, in a metric or in a reply, and everything permitted
arrives."""
TEXT = chaos.RECEIVERS.replace("max_recv_msg_size_mib: 64", "max_recv_msg_size_mib: 1").replace("67108864", "1048576") + """
processors:
""" + poison.POLICY.replace("LINK", "[]").replace("PROFILE", "[]") + """
exporters:
  otlp_grpc/healthy: {endpoint: 127.0.0.1:{port:a}, tls: {insecure: true}}
  otlp_grpc/dead: {endpoint: 127.0.0.1:{port:nobody}, tls: {insecure: true}, sending_queue: {storage: file_storage}}
extensions:
  file_storage: {directory: queue, create_directory: true}
service:
  extensions: [file_storage]
  pipelines:
    profiles: {receivers: [otlp], processors: [allowlist, pii], exporters: [otlp_grpc/healthy, otlp_grpc/dead]}
"""


@pytest.mark.parametrize("by_reference", [False, True], ids=["inline", "by reference"])
def test_no_secret_is_found_anywhere(build, tmp_path, by_reference, record_property):
    c, sink, seen = canaries.Canaries(7), peers.Sink(), {}
    good = poison.otlp(c, by_reference)
    partly, bad = poison.partly_bad(c, by_reference)
    c.refusing = True
    with chaos.running(build, TEXT, ("a", sink), cwd=tmp_path) as gateway:
        replies = []
        for transport in ("grpc", "http"):
            replies.append(chaos.send(gateway, good, transport))
            replies.append(chaos.send(gateway, partly, transport))
            assert replies[-1].partial_success.rejected_profiles == bad
            replies += [chaos.send(gateway, body, transport) for _, body in poison.refused(c)]
        gateway.until(lambda: len(sink.received) >= 4)
        gateway.until(lambda: (tmp_path / "queue/queue.mdb").exists() and gateway.total("otelcol_storage_used_bytes"))
        seen["metrics"] = [gateway.metrics_text().encode()]
        gateway.stop(signal.SIGKILL)
        seen["log"] = [gateway.log_path.read_bytes()]
    seen["destination"] = list(sink.received)
    seen["replies"] = [str(r).encode() for r in replies]
    seen["queue"] = [path.read_bytes() for path in (tmp_path / "queue").iterdir()]
    for place, pieces in seen.items():
        found = sum((c.found(view) for piece in pieces for view in canaries.unpacked(piece)), Counter())
        assert not found, (place, found.most_common(10))
    stored = b"".join(seen["queue"])
    assert canaries.occurrences(c.permitted, stored), "what is permitted is in the queue"
    record_property("figure", "%d secrets, %d places" % (len(c.denied), len(seen)))
