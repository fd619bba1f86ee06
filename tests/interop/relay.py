# SPDX-License-Identifier: Apache-2.0
"""Stands between a client and a server, and sees which frames the client sends."""
import collections
import socket
import threading
import time

from harness import h2
from harness.listener import Listener

PREFACE_LEN, HEAD_LEN = 24, 9


class Frames:
    """Counts the frames of a client by kind, those with the flag ACK apart: {(kind, whether ACK): count}."""

    def __init__(self):
        self.counts, self.held, self.skip = collections.Counter(), b"", PREFACE_LEN

    def see(self, data):
        while data:
            passed = min(self.skip, len(data))
            self.skip -= passed
            head = (self.held + data[passed:])[:HEAD_LEN]
            data = data[passed + len(head) - len(self.held):]
            self.held = head
            if len(head) == HEAD_LEN:
                self.counts[head[3], head[3] in (h2.SETTINGS, h2.PING) and bool(head[4] & h2.ACK)] += 1
                self.skip, self.held = int.from_bytes(head[:3], "big"), b""


class Relay(Listener):
    """with Relay(port) as r: clients of r.port reach `port`. `gather`: what a client writes within so many seconds arrives
    at once."""

    def __init__(self, port, gather=0):
        self.to, self.gather, self.frames = port, gather, []
        super().__init__()

    def serve(self, client):
        server, seen = socket.create_connection(("127.0.0.1", self.to)), Frames()
        self.frames.append(seen)
        for ends in ((client, server, seen), (server, client, None)):
            ends[0].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.pump, args=ends, daemon=True).start()

    def pump(self, source, sink, frames):
        try:
            while data := source.recv(1 << 18):
                if frames:
                    data = self.gathered(source, data)
                    frames.see(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def gathered(self, source, data):
        if not self.gather:
            return data
        time.sleep(self.gather)
        try:
            return data + source.recv(1 << 18, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return data

    def sent(self, kind, ack=False):
        """Over all connections."""
        return sum(frames.counts[kind, ack] for frames in self.frames)
