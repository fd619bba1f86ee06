# SPDX-License-Identifier: Apache-2.0
"""The gateway among the partners: what comes from a partner goes through it, to another."""
import contextlib
import os
import pathlib

from harness.gateway import Gateway
from interop import process

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = ROOT / "build" / os.environ.get("MODE", "release") / "portcullis"


@contextlib.contextmanager
def gateway(text, **ports):
    """A running gateway whose {port:NAME} are these, and free ones otherwise; nothing of it is left afterwards."""
    for name, port in ports.items():
        text = text.replace("{port:%s}" % name, str(port))
    with process.directory() as place, Gateway(BINARY, text, cwd=place, guard=process.GUARD) as g:
        yield g


def flushed(g, exporter, pipeline="profiles"):
    """Waits until all that came in went out or was dropped, and every sample is accounted for."""
    def done():
        return (g.total("otelcol_ledger_batched_samples") == 0 and g.balanced(pipeline, exporter)
                and g.total("otelcol_ledger_queued_samples", exporter=exporter) == 0)
    g.until(done)
