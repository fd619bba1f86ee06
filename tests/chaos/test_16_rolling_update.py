# SPDX-License-Identifier: Apache-2.0
"""A rolling update: SIGTERM under load, again and again."""
import os
import signal
import threading

import pytest

from harness import peers
from harness.gateway import Gateway
from harness.reloading import CONFIG, Sender, over_grpc, over_http, received

ORACLE = """Readiness drops first, the drain ends by the deadline with a report of zero lost samples, and nothing that was acknowledged
is lost."""


@pytest.mark.threads
def test_rolling_shutdowns_under_load_lose_nothing_that_was_acknowledged(build, record_property):
    """Two gateways, one of which is replaced again and again; senders go to the one that is ready."""
    rounds, senders, ports = (20 if os.environ.get("LONG") else 3), [], {}
    text = CONFIG.replace("  admin:", "  shutdown: {delay: 200ms, timeout: 20s}\n  admin:")
    current, lock = [], threading.Lock()

    def through(kind):
        state = {}

        def send(body):
            with lock:
                port = current[-1][kind]
            if state.get("port") != port:
                state["port"], state["send"] = port, {"grpc": over_grpc, "http": over_http}[kind](port)
            try:
                state["send"](body)
            except Exception:
                state.clear()
                raise
        return send

    with peers.Sink() as sink:
        text = text.replace("{port:sink}", str(sink.port))
        running = Gateway(build / "portcullis", text).__enter__()
        current.append(running.port)
        senders = [Sender(kind + str(i), through(kind)) for i in range(2) for kind in ("grpc", "http")]
        try:
            for _ in range(rounds):
                following = Gateway(build / "portcullis", text).__enter__()
                before = sum(len(s.acked) for s in senders)
                running.process.send_signal(signal.SIGTERM)
                running.until(lambda: peers.post(running.port["health"], None, path="/", method="GET")[0] == 503)
                with lock:
                    current.append(following.port)
                assert running.process.wait(60) == 0
                report, = [line for line in running.log().splitlines() if "Shutdown report" in line]
                assert '"kept_samples": 0, "lost_samples": 0' in report
                running.__exit__()
                running = following
                running.until(lambda: sum(len(s.acked) for s in senders) > before + 20)
        finally:
            for sender in senders:
                sender.stopping = True
            for sender in senders:
                sender.join()
            running.__exit__()
        acked = {name for sender in senders for name in sender.acked}
        found = [a["request.id"] for a, _ in received(sink)]
        assert acked and acked <= set(found)
    record_property("figure", "%d updates, %d requests acknowledged and delivered" % (rounds, len(acked)))
