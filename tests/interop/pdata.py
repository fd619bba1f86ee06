# SPDX-License-Identifier: Apache-2.0
"""OTLP as Collectors of earlier releases read it: their own model of profiles, and a server of ours around it. A whole
Collector of that age is not to be had: some of its modules are served no more."""
from interop import golang, partner
from interop.foreign import SCRIPTS


class Pdata(partner.Partner):
    """The last one that has OTLP 1.9."""

    name, version, fixture = "OpenTelemetry Collector's pdata", "0.147.0", "pdata"
    schema = "v1.9"
    PORTS = ("grpc", "http")

    @classmethod
    def installed(cls):
        return golang.program("pdata-" + cls.version.removesuffix(".0"), cls.version, source=SCRIPTS / "pdata.go")

    def command(self, program):
        self.kept = self.directory / "received"
        self.kept.mkdir()
        return [program, str(self.port["grpc"]), str(self.port["http"]), self.kept]

    def ready(self):
        return "ready" in self.process.log()

    def received(self):
        """What it understood, in its JSON."""
        return [path.read_text() for path in sorted(self.kept.glob("*.json"))]


class OlderPdata(Pdata):
    """One that has OTLP 1.8."""

    version, schema = "0.138.0", "v1.8"
