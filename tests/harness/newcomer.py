# SPDX-License-Identifier: Apache-2.0
"""Builds the program with components added, in a copy of the sources."""
import calendar
import os
import re
import shutil
import subprocess
import time

FOLDERS = ("base", "profile", "config", "net", "pipeline", "receivers", "processors", "exporters", "connectors", "extensions", "gateway",
           "proto")


def same_build_info(root):
    """What the copy, which has no git, needs to be of the same commit."""
    printed = subprocess.run([root / "docker/build-info.sh"], check=True, capture_output=True, text=True).stdout
    commit, date = re.findall(r'= "(.*)";', printed)
    epoch = {} if date == "unknown" else {"SOURCE_DATE_EPOCH": str(calendar.timegm(time.strptime(date, "%Y-%m-%dT%H:%M:%SZ")))}
    return {"PORTCULLIS_COMMIT": commit, **epoch}


def build_with(root, build, copy, files, constants):
    """The binary, and the output of make. files: path -> text; constants: those that components.c lists. What is built
    already is not built again."""
    binary = os.path.relpath(build / "portcullis", root)
    environment = dict(os.environ, MAKEFLAGS="")
    subprocess.run(["make", "MODE=" + build.name, binary], cwd=root, check=True, capture_output=True, env=environment)
    shutil.copy2(root / "Makefile", copy)
    (copy / "docker").mkdir()
    shutil.copy2(root / "docker/build-info.sh", copy / "docker")
    for folder in FOLDERS:
        shutil.copytree(root / folder, copy / folder)
    shutil.copytree(build, copy / "build" / build.name,
                    ignore=shutil.ignore_patterns("tests", "replay", "*.gcda", "portcullis"))
    for path, text in files.items():
        (copy / path).write_text(text)
    table = copy / "gateway/components.c"
    line = next(line for line in table.read_text().splitlines() if "_(debug_exporter)" in line)
    lines = [line, *(line.replace("debug_exporter", name) for name in constants)]
    table.write_text(table.read_text().replace(line, "\n".join(lines)))
    done = subprocess.run(["make", "V=1", "MODE=" + build.name, binary], cwd=copy, check=True, capture_output=True, text=True,
                          env={**environment, **same_build_info(root)})
    return copy / binary, done.stdout
