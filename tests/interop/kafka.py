# SPDX-License-Identifier: Apache-2.0
"""A broker of Apache Kafka from Maven Central: one node, KRaft, no ZooKeeper."""
import base64
import socket

from interop import cache
from interop.clients import fetched, said, tool, verified
from interop.partner import Partner

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
CONFIG = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%(controller)d
listeners=PLAINTEXT://127.0.0.1:%(broker)d,CONTROLLER://127.0.0.1:%(controller)d
advertised.listeners=PLAINTEXT://127.0.0.1:%(broker)d
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=%(directory)s
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=true
num.partitions=2
%(more)s
"""


class Kafka(Partner):
    """with Kafka(more="message.max.bytes=20000") as broker: ... restarts keep the log in `data`."""

    name, version, fixture = "Apache Kafka", "4.1.0", "kafka"
    PORTS = ("broker", "controller")

    def __init__(self, data=None, more="", **ports):
        super().__init__(**ports)
        self.data, self.more = data, more

    @classmethod
    def installed(cls):
        def make(directory):
            (directory / "pom.xml").write_bytes((cache.RECIPES / "kafka.xml").read_bytes())
            fetched([tool("mvn"), "-q", "-B", PLUGIN, "-DincludeScope=runtime", "-DoutputDirectory=%s" % (directory / "lib")], directory)
            verified(directory / "lib", "kafka.sha256")

        tools = said("java", "--version") + (cache.RECIPES / "kafka.sha256").read_text()
        return cache.product("kafka", cls.version, "kafka.xml", make, tools) / "lib"

    @property
    def address(self):
        return "127.0.0.1:%d" % self.port["broker"]

    def command(self, program):
        data = self.data or self.directory / "data"
        config = self.directory / "server.properties"
        config.write_text(CONFIG % {"directory": data, "more": self.more, **self.port})
        java = "%s -Xms256m -Xmx384m -XX:+UseSerialGC -cp '%s/*'" % (tool("java"), program)
        cluster = base64.urlsafe_b64encode(bytes(15) + b"\x01").decode()[:22]
        script = "%s kafka.tools.StorageTool format --ignore-formatted -t %s -c %s && exec %s kafka.Kafka %s" % (
            java, cluster, config, java, config)
        return ["/bin/sh", "-c", script]

    def ready(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port["broker"])) == 0
