# SPDX-License-Identifier: Apache-2.0
"""What a command prints is whole, or it fails."""
import subprocess

import pytest

CONFIG = """
receivers: {nop: }
exporters: {nop: }
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [nop], exporters: [nop]}}
"""


@pytest.mark.parametrize("command", ["print-config c.yaml", "explain --config c.yaml -", "components", "components nop", "featuregate", "manual", "man",
                                     "completion bash", "help", "help validate", "--help", "--version"])
def test_output_that_does_not_fit_is_an_error(build, tmp_path, command):
    (tmp_path / "c.yaml").write_text(CONFIG)
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([build / "portcullis", *command.split()], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Error: cannot write to standard output: No space left on device\n")
