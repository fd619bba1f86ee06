# SPDX-License-Identifier: Apache-2.0
"""The configuration is reloaded under load, with policies that alternate, and with invalid ones."""
import os
import re

import pytest

from harness import peers
from harness.gateway import Gateway
from harness.reloading import (CONFIG, Sender, check_delivered, ended, other, over_grpc, over_http, over_http2, process, reload)

ORACLE = """Nothing that was acknowledged is lost, no connection breaks, each request is processed by one policy only, an invalid
configuration changes nothing and is reported, and nothing grows."""
RELOADS = 500 if os.environ.get("LONG") else 40


@pytest.fixture
def gateway(build):
    with Gateway(build / "portcullis", CONFIG) as gateway:
        yield gateway


@pytest.mark.threads
def test_reloads_under_load_lose_nothing_and_never_mix_policies(gateway, record_property):
    senders, text = [], gateway.config.read_text()
    http_port, grpc_port = gateway.port["http"], gateway.port["grpc"]
    with peers.Sink(gateway.port["sink"]) as sink:
        senders = [Sender("http", over_http(http_port)), Sender("h2", over_http2(http_port)),
                   Sender("grpc", over_grpc(grpc_port)), Sender("grpc2", over_grpc(grpc_port))]
        try:
            warm = None
            for i in range(RELOADS):
                if i % 2:
                    status, result = reload(gateway, text + "broken: [\n" if i % 4 == 1 else text.replace(
                        "keys:", "kays:"))
                    assert status == 400 and result["result"] == "failed", result
                    assert re.match(r".*gateway\.yaml:\d+:\d+: ", result["lastReload"]["error"]), result
                else:
                    text = other(text)
                    status, result = reload(gateway, text)
                    assert status == 200 and result["result"] == "applied", result
                before = [len(sender.acked) for sender in senders]
                gateway.until(lambda: all(len(s.acked) > n or s.failed for s, n in zip(senders, before)))
                if i == RELOADS // 4:
                    gateway.until(lambda: ended(gateway))
                    warm = process(gateway)
            gateway.until(lambda: ended(gateway))
            cool = process(gateway)
        finally:
            for sender in senders:
                sender.stopping = True
            for sender in senders:
                sender.join()
        assert [sender.failed for sender in senders] == [[]] * len(senders)
        assert check_delivered(gateway, sink, senders) == {"A", "B"}
    assert gateway.total("otelcol_config_generation") == 1 + (RELOADS + 1) // 2
    assert gateway.total("otelcol_config_reloads", result="failed") == RELOADS // 2
    assert cool[1] <= warm[1] + 2 and cool[2] <= warm[2] + 2, (warm, cool)
    if "asan" not in gateway.binary and "tsan" not in gateway.binary:
        assert cool[0] <= warm[0] * 1.15 + (4 << 20), (warm, cool)
    record_property("figure", "%d reloads, %d requests acknowledged and delivered; RSS %.1f to %.1f MiB, descriptors %d to %d, threads %d to %d" % (
        RELOADS, sum(len(s.acked) for s in senders), warm[0] / 2 ** 20, cool[0] / 2 ** 20, warm[1], cool[1], warm[2], cool[2]))
