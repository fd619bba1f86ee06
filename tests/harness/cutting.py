# SPDX-License-Identifier: Apache-2.0
"""A proxy between a sender and a server that loses replies: the server has processed the request, and its sender does not know."""
import contextlib
import socket
import threading

from harness import h2
from harness.faults import close, read
from harness.listener import Listener


class Cutter(Listener):
    """with Cutter(port) as c: c.port. `cuts`: the number of next replies at which the connection is closed instead; `holds`:
    replies are swallowed, and the connection stays. `lost`: the number of connections closed. `http2`: what the server speaks."""

    def __init__(self, target, http2=True):
        self.target, self.http2 = target, http2
        self.cuts, self.holds, self.lost = 0, False, 0
        self.lock = threading.Lock()
        super().__init__()

    def serve(self, sender):
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            return sender.close()
        for ends in ((self.requests, sender, server), (self.replies, server, sender)):
            threading.Thread(target=self.pump, args=ends, daemon=True).start()

    def pump(self, forward, source, sink):
        with contextlib.suppress(OSError, EOFError):
            forward(source, sink)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                close(end, None)

    def requests(self, sender, server):
        while (data := sender.recv(65536)):
            server.sendall(data)

    def replies(self, server, sender):
        while True:
            data = self.frame(server) if self.http2 else server.recv(65536)
            if not data or self.cut(data):
                return
            if not (self.holds and self.is_reply(data)):
                sender.sendall(data)

    def frame(self, server):
        head = read(server, 9)
        return head + read(server, int.from_bytes(head[:3], "big"))

    def is_reply(self, data):
        return not self.http2 or data[3] in (h2.HEADERS, h2.DATA)

    def cut(self, data):
        with self.lock:
            if not self.cuts or not self.is_reply(data):
                return False
            self.cuts, self.lost = self.cuts - 1, self.lost + 1
            return True
