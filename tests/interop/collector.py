# SPDX-License-Identifier: Apache-2.0
"""The OpenTelemetry Collector, in front of the gateway or behind it."""
import json
import pathlib
import re
import textwrap

from interop import cache, golang, partner, process

BUILDER = "go.opentelemetry.io/collector/cmd/builder"
# Its own metrics have a fixed port; nobody asks for them here.
QUIET = "service: {telemetry: {metrics: {level: none}}}\n"


class Collector(partner.Partner):
    """Collector(text): {port:NAME} in its configuration becomes a free port, port[NAME]; it runs in `directory`."""

    name, version, fixture = "OpenTelemetry Collector", "0.161.0", "collector"
    recipe = "collector.yaml"
    PORTS = ("otlp",)
    TEXT = """
        receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}"}}}}
        exporters: {debug: {verbosity: detailed}}
        service: {pipelines: {profiles: {receivers: [otlp], exporters: [debug]}}}
        """

    def __init__(self, text=TEXT, **ports):
        self.text = textwrap.dedent(text)
        self.PORTS = sorted(set(re.findall(r"\{port:(\w+)\}", text)) - set(ports)) + sorted(ports)
        super().__init__(**ports)

    @classmethod
    def installed(cls):
        def make(directory):
            golang.install(directory, BUILDER, "v" + cls.version)
            golang.run(directory, directory / "builder", "--config", cache.RECIPES / cls.recipe)

        return cache.product(pathlib.Path(cls.recipe).stem, cls.version, cls.recipe, make, golang.version()) / "collector"

    def command(self, program):
        body = self.text
        for name, port in self.port.items():
            body = body.replace("{port:%s}" % name, str(port))
        (self.directory / "collector.yaml").write_text(body)
        (self.directory / "quiet.yaml").write_text(QUIET)
        return [program, "--config=collector.yaml", "--config=quiet.yaml", "--feature-gates=service.profilesSupport"]

    def ready(self):
        return "Everything is ready" in self.process.log(None)


class KafkaCollector(Collector):
    """With the components of Kafka."""

    name, version, fixture = "OpenTelemetry Collector, Kafka", "0.160.0", "collector_kafka"
    recipe = "collector-kafka.yaml"


class RedactionProcessor:
    """Its processor `redaction` alone, which supports logs and no profiles: no server, one run for all questions."""

    name, version, fixture = "OpenTelemetry Collector, redaction", Collector.version, "redaction_processor"
    SOURCE = pathlib.Path(__file__).resolve().parent / "scripts" / "redaction.go"

    @classmethod
    def shown_version(cls):
        return cls.version

    @classmethod
    def installed(cls):
        return golang.program("redaction", cls.version, source=cls.SOURCE)

    def logs(self, tasks):
        """[(configuration, logs in OTLP/JSON)] -> the logs that it passes on, or {"error": ...}."""
        with process.directory() as scratch:
            lines = "".join(json.dumps({"config": config, "logs": logs}) + "\n" for config, logs in tasks)
            (scratch / "in").write_text(lines)
            command = ["sh", "-c", 'exec "$0" <in', self.installed()]
            return [json.loads(line) for line in process.run(command, scratch / "log", 120, scratch).splitlines()]


class RedactionCollector(Collector):
    """With the processor that masks values in logs, spans and metrics."""

    name, fixture = "OpenTelemetry Collector, redaction", "collector_redaction"
    recipe = "collector-redaction.yaml"
