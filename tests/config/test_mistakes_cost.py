# SPDX-License-Identifier: Apache-2.0
"""Twice as many mistakes cost about twice the instructions, whatever they are compared with (counted by callgrind)."""
import re
import subprocess

import pytest

COUNT, GROWTH_MAX = 150, 2.5
# what the exporters of the configuration are, while the pipeline names others: an ID may be the mistake of another
EXPORTERS = {"declared": "nop/%05dname: {}", "of an unknown type": "nope/%05dname: {}"}


def instructions(build, directory, entry, count):
    declared = "".join("  %s\n" % (entry % i) for i in range(count))
    named = ", ".join("nop/%05dother" % i for i in range(count))
    (directory / "c.yaml").write_text("receivers: {nop: }\nexporters:\n%sservice: {pipelines: {profiles: {receivers: [nop], exporters: [%s]}}}\n" % (
        declared, named))
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", build / "portcullis", "validate", "c.yaml"],
                          cwd=directory, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and ("more errors" in done.stderr) == (count > 1)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


@pytest.mark.parametrize("what", EXPORTERS)
def test_names_that_are_not_declared_cost_linear_time(build, tmp_path, what):
    if build.name != "release":
        pytest.skip("instructions are counted in the optimised build")
    base, once, twice = (instructions(build, tmp_path, EXPORTERS[what], n) for n in (1, COUNT, 2 * COUNT))
    assert twice - base < GROWTH_MAX * (once - base)
