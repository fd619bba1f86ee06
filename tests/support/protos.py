# SPDX-License-Identifier: Apache-2.0
"""The messages of tests/proto as Python classes, made by protoc into the build folder."""

import importlib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build/dev")


def corpus():
    """The folder of real profiles, or None where there is none."""
    folder = pathlib.Path(os.environ.get("PORTCULLIS_CORPUS", ROOT.parent / "shared" / "corpus"))
    return folder if folder.is_dir() else None


def program(path):
    """A test program of the build folder, made if need be."""
    target = BUILD / path
    mode = BUILD.name
    subprocess.run(["make", "-s", f"MODE={mode}", os.path.relpath(target, ROOT)], cwd=ROOT, check=True)
    return str(target)


def load(name):
    """The generated module of tests/proto/NAME.proto."""
    source, out = ROOT / "tests" / "proto", BUILD / "python"
    out.mkdir(parents=True, exist_ok=True)
    protos = sorted(source.glob("*.proto"))
    made = out / f"{name}_pb2.py"
    if not made.exists() or made.stat().st_mtime < max(p.stat().st_mtime for p in protos):
        subprocess.run(["protoc", f"-I{source}", f"--python_out={out}", *map(str, protos)], check=True)
    if str(out) not in sys.path:
        sys.path.insert(0, str(out))
    return importlib.import_module(f"{name}_pb2")
