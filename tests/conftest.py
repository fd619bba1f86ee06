# SPDX-License-Identifier: Apache-2.0
"""Paths for every python test: build/MODE, the generated message classes, the corpus where it is present."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / os.environ.get("MODE", "release")
sys.path[:0] = [str(ROOT / "build" / "python"), str(ROOT / "tests")]


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def build():
    """The directory of the build under test."""
    return BUILD


@pytest.fixture(scope="session")
def corpus():
    """The directory of real profiles, or None: tests on it run where it is, on made data everywhere."""
    from harness.corpus import directory

    return directory()
