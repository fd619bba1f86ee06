# SPDX-License-Identifier: Apache-2.0
"""OTLP as others implement it: the published messages with grpcio, in a virtual environment of their own. The scripts in
scripts/ import nothing else; ours run isolated from it."""
import json
import pathlib
import sys

from interop import cache, partner, process

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"


class Foreign(partner.Partner):
    """The server; `send` is the client."""

    name, version, fixture = "opentelemetry-proto with grpcio", "1.45.2", "foreign"
    PORTS = ("otlp",)

    @classmethod
    def installed(cls):
        def make(directory):
            def run(*command):
                with process.directory() as scratch:
                    process.run(command, scratch / "log", 300)
            run("/usr/bin/python3", "-m", "venv", directory)
            run(directory / "bin" / "python", "-m", "pip", "install", "-q", "--only-binary=:all:",
                "-r", cache.RECIPES / "foreign.txt")

        python = "%d.%d" % sys.version_info[:2]
        return cache.product("foreign", cls.version, "foreign.txt", make, python) / "bin" / "python"

    def command(self, program):
        self.kept = self.directory / "received"
        self.kept.mkdir()
        return [program, "-I", SCRIPTS / "otlp_server.py", str(self.port["otlp"]), self.kept]

    def ready(self):
        return "ready" in self.process.log()

    def received(self):
        """The requests that the server understood, in their order."""
        return [path.read_bytes() for path in sorted(self.kept.glob("*.pb"))]

    def send(self, port, bodies, compression="none"):
        """The client's own message and these; the answers, as dicts."""
        with process.directory() as scratch:
            files = []
            for i, body in enumerate(bodies):
                files.append(scratch / ("%d.pb" % i))
                files[-1].write_bytes(body)
            text = process.run([self.installed(), "-I", SCRIPTS / "otlp_client.py", "127.0.0.1:%d" % port, compression, *files],
                               scratch / "log", 120)
        return [json.loads(line) for line in text.splitlines()]
