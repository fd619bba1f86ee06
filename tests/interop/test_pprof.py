# SPDX-License-Identifier: Apache-2.0
"""What the gateway writes as pprof, read by pprof's own program: it must see no difference from what came in."""
import gzip

import pytest

from harness import build as make
from harness import corpus, peers, pprof
from interop import gate

GATEWAY = """
receivers:
  pprof: {server: {endpoint: "127.0.0.1:{port:pprof}", max_request_body_size: 67108864}}
exporters:
  file: {directory: out, format: pprof}
service:
  pipelines:
    profiles: {receivers: [pprof], exporters: [file]}
"""
BODIES = {"made-%d" % seed: make.pprof(seed, labels=("thread", "other")).SerializeToString() for seed in range(3)}
BODIES.update((path.name, path.read_bytes()) for path in corpus.files("pprof/*"))


@pytest.fixture(scope="module")
def written(gotool):
    """name -> the pprof that the gateway wrote for it."""
    found = {}
    with gate.gateway(GATEWAY) as g:
        out = g.directory / "out"
        for name, body in BODIES.items():
            known = set(out.glob("*")) if out.exists() else set()
            assert peers.post(g.port["pprof"], body)[0] == 204
            g.until(lambda: len(set(out.glob("*")) - known) == 1)
            gate.flushed(g, "file")
            (path,) = set(out.glob("*")) - known
            found[name] = gzip.decompress(path.read_bytes())
    return found


@pytest.mark.parametrize("name", BODIES)
def test_go_tool_pprof_reads_the_same(gotool, written, name):
    assert gotool.raw(written[name]) == gotool.raw(BODIES[name])
    assert gotool.top(written[name]) == gotool.top(BODIES[name])


@pytest.mark.parametrize("name", BODIES)
def test_the_tables_are_in_the_order_that_stores_want(written, name):
    pprof.check_tables(pprof.parse(written[name]))
