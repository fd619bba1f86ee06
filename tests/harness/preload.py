# SPDX-License-Identifier: Apache-2.0
"""Starts the program with one of tests/support/preload in front of the C library."""
import re
import subprocess


def env(build, name, **more):
    """A sanitizer's runtime must come first, or it ends the program."""
    libraries = subprocess.run(["ldd", build / "portcullis"], capture_output=True, text=True, check=True).stdout
    runtimes = re.findall(r"=> (\S*/lib[at]san\.so\S*)", libraries)
    return {"LD_PRELOAD": ":".join([*runtimes, str(build / "tests/support/preload" / (name + ".so"))]), **more}
