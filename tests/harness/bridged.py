# SPDX-License-Identifier: Apache-2.0
"""What the translation of older generations makes of requests."""
import collections
import subprocess

Bridged = collections.namedtuple("Bridged", "generation body error")


def run(tool, files, generation=None, most=None):
    """A Bridged for each file; `generation`: what it is taken for, else what its content shows."""
    options = (["-g", generation] if generation else []) + (["-m", str(most)] if most else [])
    out = subprocess.run([tool, *options, *map(str, files)], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        name, rest = line.split(" ", 1)
        if rest == "ambiguous":
            yield Bridged(name, None, None)
        elif rest.startswith("error "):
            yield Bridged(name, None, rest[6:])
        else:
            yield Bridged(name, bytes.fromhex(rest), None)
