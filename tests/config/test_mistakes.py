# SPDX-License-Identifier: Apache-2.0
"""mistakes.txt: each mistake is reported with file, line and column of the key, what is wrong and what is allowed."""
import os
import pathlib
import shlex
import subprocess

import pytest

TABLE = pathlib.Path(__file__).with_name("mistakes.txt")
BASE = """receivers: {nop: }
exporters: {debug: }
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [nop], exporters: [debug]}}
"""


def cases():
    """(title, YAML, arguments, errors)"""
    for block in TABLE.read_text().split("\n== ")[1:]:
        title, *lines = block.rstrip("\n").split("\n")
        errors = [line[2:].strip() for line in lines if line.startswith("--")]
        arguments = [line[1:] for line in lines if line.startswith("@")]
        text = [line for line in lines if not line.startswith(("--", "@"))]
        yield title, "\n".join(text).strip("\n") + "\n", " ".join(arguments), errors


CASES = list(cases())


def test_the_table_is_long_and_complete():
    assert len(CASES) >= 90
    assert len({title for title, *_ in CASES}) == len(CASES)
    assert all(errors and all(errors) for *_, errors in CASES)


def test_the_number_of_errors_is_limited(build, tmp_path):
    (tmp_path / "c.yaml").write_text(BASE.replace("{debug: }", "{debug: {%s}}" % ", ".join("x%d: 1" % i for i in range(150))))
    done = subprocess.run([build / "portcullis", "validate", "c.yaml"], cwd=tmp_path, capture_output=True, text=True)
    said = done.stderr.splitlines()
    assert done.returncode == 1 and said[100:] == ["Error: 50 more errors"]
    assert [line for line in said[:100] if "invalid keys: x" not in line] == []


@pytest.mark.parametrize("title, text, arguments, errors", CASES, ids=[title for title, *_ in CASES])
def test_a_mistake_is_reported_where_it_is(build, tmp_path, title, text, arguments, errors):
    (tmp_path / "c.yaml").write_text(text)
    (tmp_path / "base.yaml").write_text(BASE)
    given = shlex.split(arguments.replace("{file}", "c.yaml"))
    if "--config" not in given:
        given = ["--config", "base.yaml", "--config", "c.yaml", *given]
    done = subprocess.run([build / "portcullis", "validate", *given], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "MISTAKES_NUMBER": "5"})
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert said == ["Error: " + e.replace("{file}", "c.yaml") for e in errors]
