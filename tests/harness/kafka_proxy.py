# SPDX-License-Identifier: Apache-2.0
"""A proxy between a client of Kafka and the one broker of harness/kafka.py that spoils replies which the broker has sent."""
import contextlib
import socket
import struct
import threading

from harness.faults import close, read
from harness.listener import Listener

HOST = b"127.0.0.1"


def place(port):
    """As replies have it: a host without its length, and a port."""
    return HOST + struct.pack(">i", port)


def framed(body):
    return struct.pack(">i", len(body)) + body


class KafkaProxy(Listener):
    """with KafkaProxy(port of the broker) as p: clients use p.address, also after the broker has told them where it is.
    `faults`: what becomes of the next replies to requests with the API key `spoils`: functions of (connection, reply), where
    the reply begins with its length. A fault that closes the connection ends both directions."""

    def __init__(self, target, spoils):
        self.target, self.spoils, self.faults = target, spoils, []
        super().__init__()
        self.address = "127.0.0.1:%d" % self.port

    def serve(self, client):
        try:
            broker = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            return client.close()
        asked = {}  # by correlation ID
        for ends in ((self.requests, client, broker, asked), (self.replies, broker, client, asked)):
            threading.Thread(target=self.pump, args=ends, daemon=True).start()

    def pump(self, forward, source, sink, asked):
        with contextlib.suppress(OSError, EOFError):
            forward(source, sink, asked)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                close(end, None)

    def body(self, source):
        return read(source, *struct.unpack(">i", read(source, 4)))

    def requests(self, client, broker, asked):
        while True:
            body = self.body(client)
            api, _, correlation = struct.unpack(">hhi", body[:8])
            asked[correlation] = api
            broker.sendall(framed(body))

    def replies(self, broker, client, asked):
        while True:
            body = self.body(broker).replace(place(self.target), place(self.port))
            api = asked.pop(struct.unpack(">i", body[:4])[0])
            if api == self.spoils and self.faults:
                self.faults.pop(0)(client, framed(body))
            else:
                client.sendall(framed(body))
