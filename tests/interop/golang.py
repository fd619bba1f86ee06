# SPDX-License-Identifier: Apache-2.0
"""Builds partners that are Go programs.

A store is built from a wrapper module that is made here and not committed: a copy of the store's own go.mod and go.sum
with another name, which requires the store (its `replace` lines count only in the main module, so `go install` cannot).
What is committed is the recipe, NAME-VERSION.toml: module and the checksum of its source. The go.sum in that source pins all
that it needs, so one line pins everything, and no file of the store is in this repository.
"""
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tomllib

from interop import cache, process

# Two compilers at once, in the background: the machine has other work.
FLAGS = "-p=2 -mod=mod -buildvcs=false"
BUILD_S, DOWNLOAD_S = 1200, 300


@functools.lru_cache(maxsize=None)
def version():
    """Of the compiler; Absent where there is none."""
    if not shutil.which("go"):
        raise process.Absent("there is no go on the PATH")
    return subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout.strip()


def environment():
    """Modules and objects in our cache; where modules come from is the machine's affair."""
    version()
    go = cache.place() / "go"
    return dict(os.environ, GOMODCACHE=str(go / "mod"), GOCACHE=str(go / "build"), GOFLAGS=FLAGS, GOTOOLCHAIN="local",
                GOWORK="off", CGO_ENABLED="0")


def run(directory, *command, seconds=BUILD_S):
    """A command that builds or downloads; its output."""
    with process.directory() as scratch:
        return process.run(["nice", "-n", "10", *command], scratch / "log", seconds, directory, environment())


def go(directory, *arguments, seconds=BUILD_S):
    return run(directory, "go", *arguments, seconds=seconds)


def install(directory, package, version):
    """A program that can be had without a wrapper, into the directory."""
    return run(directory, "env", "GOBIN=%s" % directory, "go", "install", "%s@%s" % (package, version))


def recipe(name):
    return tomllib.loads((cache.RECIPES / name).read_text())


def source(directory, module, version, checksum):
    """The directory of a module's source, which must have this checksum."""
    found = json.loads(go(directory, "mod", "download", "-json", "%s@%s" % (module, version), seconds=DOWNLOAD_S))
    if found["Sum"] != checksum:
        raise AssertionError("%s@%s has the checksum %s, and the recipe says %s" % (
            module, version, found["Sum"], checksum))
    return pathlib.Path(found["Dir"])


def _wrapper(directory, r):
    """go.mod and go.sum of a module whose main program is the store's."""
    store = source(directory, r["module"], r["version"], r["checksum"])
    lines = (store / "go.mod").read_text().splitlines()
    (directory / "go.mod").write_text("\n".join(
        "module portcullis.test/" + r["name"] if line.startswith("module ") else line for line in lines) + "\n")
    sums = {line for name in r["sums"] for line in (store / name).read_text().splitlines()}
    (directory / "go.sum").write_text("\n".join(sorted(sums)) + "\n")
    edits = ["-require=%s@%s" % (r["module"], r["version"])]
    edits += ["-replace=%s=%s" % pair for pair in r.get("replace", {}).items()]
    go(directory, "mod", "edit", *edits)


def store(name, version_of_it):
    """The path of the store's program, built if need be."""
    file = "%s-%s.toml" % (name, version_of_it)
    r = dict(recipe(file), name=name, version="v" + version_of_it)

    def make(directory):
        _wrapper(directory, r)
        go(directory, "build", "-ldflags=" + r["ldflags"], "-o", name, r["module"] + "/" + r["program"])

    return cache.product(name, version_of_it, file, make, version()) / name


def program(name, version_of_it, package=".", source=None):
    """The path of a program whose recipe is a whole go.mod, NAME.mod with NAME.sum: a package of what that requires, or
    `source`, a file of ours."""
    recipes = [cache.RECIPES / (name + end) for end in (".mod", ".sum")]

    def make(directory):
        for recipe, made in zip(recipes, ("go.mod", "go.sum")):
            (directory / made).write_bytes(recipe.read_bytes())
        if source:
            (directory / "main.go").write_bytes(source.read_bytes())
        go(directory, "build", "-ldflags=-s -w", "-o", name, package)

    tools = version() + recipes[1].read_text() + (source.read_text() if source else "")
    return cache.product(name, version_of_it, recipes[0].name, make, tools) / name
