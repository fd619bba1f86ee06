# SPDX-License-Identifier: Apache-2.0
"""Runs the decoders of profile/text on made documents, and reads what they make by python's protobuf."""
import subprocess

import pytest

from harness import profcheck, stacks
from harness.stacks import FROM, UNTIL


@pytest.fixture
def decode(build):
    def run(how, body, application="app", rate=100, start=FROM, until=UNTIL, **attributes):
        pairs = [word for pair in attributes.items() for word in pair]
        done = subprocess.run([build / "tests/support/text_tool", how, application, str(rate), str(start), str(until), *pairs],
                              input=body, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        assert not done.stdout or not profcheck.check(done.stdout)
        return stacks.parse(done.stdout)

    return run


@pytest.fixture
def refusal(build):
    def run(how, body):
        done = subprocess.run([build / "tests/support/text_tool", how, "app", "100", "0", "0"], input=body,
                              capture_output=True, timeout=120)
        assert done.returncode == 1 and done.stdout == b""
        return done.stderr.decode().strip()

    return run
