# SPDX-License-Identifier: Apache-2.0
"""A broker of Apache Kafka from Maven Central: one node, KRaft, no ZooKeeper."""
import base64
import socket

from interop import cache
from interop.clients import fetched, said, tool, verified
from interop.partner import Partner

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
# Clients use `broker`, the broker itself `controller`.
CONFIG = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%(controller)d
listeners=CLIENTS://127.0.0.1:%(broker)d,INTERNAL://127.0.0.1:%(internal)d,CONTROLLER://127.0.0.1:%(controller)d
advertised.listeners=CLIENTS://127.0.0.1:%(broker)d,INTERNAL://127.0.0.1:%(internal)d
controller.listener.names=CONTROLLER
inter.broker.listener.name=INTERNAL
listener.security.protocol.map=CLIENTS:%(protocol)s,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=%(directory)s
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512,PLAIN
listener.name.clients.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.clients.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.clients.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";
auto.create.topics.enable=true
num.partitions=2
%(more)s
"""


USERS = "".join(" --add-scram '%s=[name=alice,password=secret]'" % mechanism for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"))


class Kafka(Partner):
    """with Kafka(more="message.max.bytes=20000") as broker: ... restarts keep the log in `data`. `protocol`: of the
    listener for clients, whose user is alice, with the password secret. `before`: commands that run first, in the shell that
    starts the broker; `again`: commands that run when the broker has ended for itself, before it is started once more."""

    name, version, fixture = "Apache Kafka", "4.1.0", "kafka"
    recipe = "kafka"
    PORTS = ("broker", "internal", "controller")

    def __init__(self, data=None, more="", protocol="PLAINTEXT", before="", again="", guard=(), **ports):
        super().__init__(**ports)
        self.data, self.more, self.protocol, self.before, self.again = data, more, protocol, before, again
        self.guard = list(guard)

    @classmethod
    def installed(cls):
        def make(directory):
            (directory / "pom.xml").write_bytes((cache.RECIPES / (cls.recipe + ".xml")).read_bytes())
            fetched([tool("mvn"), "-q", "-B", PLUGIN, "-DincludeScope=runtime", "-DoutputDirectory=%s" % (directory / "lib")], directory)
            verified(directory / "lib", cls.recipe + ".sha256")

        tools = said("java", "--version") + (cache.RECIPES / (cls.recipe + ".sha256")).read_text()
        return cache.product("kafka", cls.version, cls.recipe + ".xml", make, tools) / "lib"

    @property
    def address(self):
        return "127.0.0.1:%d" % self.port["broker"]

    def command(self, program):
        data = self.data or self.directory / "data"
        config = self.directory / "server.properties"
        config.write_text(CONFIG % {"directory": data, "more": self.more, "protocol": self.protocol, **self.port})
        java = "%s -Xms256m -Xmx384m -XX:+UseSerialGC -cp '%s/*'" % (tool("java"), program)
        cluster = base64.urlsafe_b64encode(bytes(15) + b"\x01").decode()[:22]
        run = "%s kafka.Kafka %s" % (java, config)
        script = "%s kafka.tools.StorageTool format --ignore-formatted -t %s -c %s%s && " % (java, cluster, config, USERS)
        script += "%s; %s; exec %s" % (run, self.again, run) if self.again else "exec " + run
        return [*self.guard, "/bin/sh", "-c", self.before % {"data": data} + script]

    def ready(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port["broker"])) == 0


class OldKafka(Kafka):
    """The newest that accepts SCRAM of librdkafka before 2.6.1, which Debian 12 has."""

    version, fixture = "3.9.1", "old_kafka"
    recipe = "kafka-3.9.1"
