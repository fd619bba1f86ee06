# SPDX-License-Identifier: Apache-2.0
"""What partners are made of: downloaded and built once, outside the tree, by recipes that stand in it.

A product lies in CACHE/NAME-VERSION/DIGEST, where DIGEST is that of its recipe: another recipe, another product. It is
made beside that place and renamed into it, so that it is whole or absent. A lock for each product: two runs do not build the
same, and a run does not wait for what it does not need.
"""
import contextlib
import fcntl
import hashlib
import os
import pathlib

from interop import process

RECIPES = pathlib.Path(__file__).resolve().parent / "recipes"


def place():
    """~/.cache/portcullis, or where XDG_CACHE_HOME says."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "portcullis"


@contextlib.contextmanager
def _locked(file):
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def product(name, version, recipe, make, tools=""):
    """The directory that make(directory) filled for this recipe (a file of recipes/) and these tools; made where it is
    missing."""
    text = (RECIPES / recipe).read_bytes() + tools.encode()
    home = place() / ("%s-%s" % (name, version))
    found = home / hashlib.sha256(text).hexdigest()[:16]
    if found.is_dir():
        return found
    with _locked(home.with_name(home.name + ".lock")):
        if not found.is_dir():
            home.mkdir(exist_ok=True)
            with process.directory(home) as made:
                make(made)
                made.rename(found)
    return found
