# SPDX-License-Identifier: Apache-2.0
"""Real profiles beside the checkout, where they are present."""
import gzip
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def directory():
    """The corpus, or None."""
    for place in (os.environ.get("PORTCULLIS_CORPUS"), ROOT.parent / "shared" / "corpus"):
        if place and pathlib.Path(place).is_dir():
            return pathlib.Path(place)
    return None


def files(pattern):
    """All files that match, sorted; none where there is no corpus."""
    place = directory()
    return sorted(place.glob(pattern)) if place else []


def inflate(data):
    """gzip, zstd or plain, by the first bytes."""
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return subprocess.run(["zstd", "-dc"], input=data, capture_output=True, check=True).stdout
    return data
