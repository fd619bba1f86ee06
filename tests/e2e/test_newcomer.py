# SPDX-License-Identifier: Apache-2.0
"""The newcomer's path: a copy of exporters/debug.c under a new name and one line make a component of one's own."""
import subprocess

import pytest

from harness import build as make
from harness import peers
from harness.gateway import Gateway
from harness.newcomer import build_with

CONFIG = """
receivers:
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
exporters:
  newcomer: {}
service:
  pipelines:
    profiles: {receivers: [pprof], exporters: [newcomer]}
"""


@pytest.fixture(scope="module")
def built(root, build, tmp_path_factory):
    """The program of a copy of the sources with what the newcomer added."""
    text = (root / "exporters/debug.c").read_text().replace("debug", "newcomer")
    return build_with(root, build, tmp_path_factory.mktemp("newcomer"), {"exporters/newcomer.c": text},
                      ["newcomer_exporter"])


def test_a_copied_file_and_one_line_make_a_component(built):
    program, _ = built
    described = subprocess.run([program, "components", "newcomer"], capture_output=True, text=True, check=True).stdout
    assert described.startswith("### exporter `newcomer`\n") and "| `verbosity` |" in described


def test_only_what_is_new_is_compiled(built):
    compiled = [line.split()[-1] for line in built[1].splitlines() if " -c " in line]
    assert sorted(compiled) == ["exporters/newcomer.c", "gateway/components.c"]


def test_it_takes_part_in_a_pipeline(built):
    with Gateway(built[0], CONFIG) as gateway:
        assert peers.post(gateway.port["pprof"], make.pprof(1).SerializeToString())[0] == 204
        gateway.until(lambda: '"otelcol.component.id": "newcomer"' in gateway.log() and "sample records" in gateway.log())
        gateway.until(lambda: gateway.total("otelcol_exporter_sent_profile_samples", exporter="newcomer") == 60)
