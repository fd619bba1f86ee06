# SPDX-License-Identifier: Apache-2.0
"""The gateway among the partners: what comes from a partner goes through it, to another."""
import contextlib
import os
import pathlib
import subprocess

from harness.gateway import Gateway
from interop import process

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = ROOT / "build" / os.environ.get("MODE", "release") / "portcullis"


@contextlib.contextmanager
def gateway(text, env=None, **ports):
    """A running gateway whose {port:NAME} are these, and free ones otherwise; nothing of it is left afterwards. `env` is added
    to the environment."""
    for name, port in ports.items():
        text = text.replace("{port:%s}" % name, str(port))
    with process.directory() as place, Gateway(BINARY, text, env, cwd=place, guard=process.GUARD) as g:
        yield g


def flushed(g, exporter, pipeline="profiles"):
    """Waits until all that came in went out or was dropped, and every sample is accounted for."""
    def done():
        return (g.total("otelcol_ledger_batched_samples") == 0 and g.balanced(pipeline, exporter)
                and g.total("otelcol_ledger_queued_samples", exporter=exporter) == 0)
    g.until(done)


ASKING = """receivers: {nop: }
service:
  silence: [no-policy, otlp-to-parca]
  pipelines: {profiles: {receivers: [nop], exporters: [%s]}}
exporters:
"""


def connect(exporters):
    """What `validate --connect` says of exporters, {ID: the section}, without the places and paths."""
    with process.directory() as place:
        lines = ("  %s: {%s}\n" % item for item in exporters.items())
        (place / "c.yaml").write_text(ASKING % ", ".join(exporters) + "".join(lines))
        done = subprocess.run([BINARY, "validate", "--connect", "--timeout", "60s", place / "c.yaml"], capture_output=True, text=True,
                              timeout=120)
    assert done.stdout == "" and done.returncode == bool(done.stderr)
    return [line.split(": ", 3)[3] for line in done.stderr.splitlines()]
