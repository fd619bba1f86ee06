# SPDX-License-Identifier: Apache-2.0
"""`go tool pprof`, the reference reader of pprof, as the judge of what we write."""
import functools
import re

from harness import corpus
from interop import golang, process


class GoPprof:
    """No server: each question is one run. It reads the file alone, and looks for no program on this machine."""

    name, version, fixture = "go tool pprof", None, "gotool"

    @classmethod
    def shown_version(cls):
        return golang.version().removeprefix("go")

    @classmethod
    def installed(cls):
        return golang.version()

    @functools.cached_property
    def program(self):
        """Built by the first use, and kept in the cache of builds."""
        with process.directory() as scratch:
            golang.go(scratch, "tool", "pprof", "-help")
            return golang.go(scratch, "tool", "-n", "pprof").split()[-1]

    def ask(self, question, body):
        """What it prints about this pprof."""
        with process.directory() as scratch:
            (scratch / "profile.pb").write_bytes(corpus.inflate(body))
            return process.run([self.program, "-symbolize=none", question, scratch / "profile.pb"], scratch / "log", 60,
                               env=dict(golang.environment(), PPROF_TMPDIR=str(scratch)))

    def top(self, body):
        """Its table of functions, without the names of the file."""
        return self.ask("-top", body).splitlines()

    def raw(self, body):
        """(heading, samples in order), every id resolved: ids are the writer's choice."""
        parts = re.split(r"^(Samples:|Locations|Mappings)\n", self.ask("-raw", body), flags=re.M)
        parts = dict(zip(parts[1::2], parts[2::2]), heading=parts[0])
        mappings = {i: rest for i, rest in re.findall(r"^(\d+): (.*)$", parts["Mappings"], re.M)}
        locations = {i: re.sub(r"\bM=(\d+)", lambda m: "M=" + mappings[m[1]], lines) for i, lines in
                     re.findall(r"^ *(\d+): (.*\n(?: {13}.*\n)*)", parts["Locations"], re.M)}
        types, *rows = parts["Samples:"].splitlines()
        samples = []
        for row in rows:
            ids = re.fullmatch(r"((?: *-?\d+)+):((?: \d+)*) ?", row)
            if ids:
                samples.append((ids[1], tuple(locations[i] for i in ids[2].split()), []))
            else:
                samples[-1][2].append(row)
        return parts["heading"], types, samples
