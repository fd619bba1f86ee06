# SPDX-License-Identifier: Apache-2.0
"""A proxy that knows every name as this machine: HTTP (requests with an absolute URL, and CONNECT) and SOCKS5."""
import contextlib
import socket
import threading

from harness.faults import close, read
from harness.listener import Listener


class Asked:
    """The first request of a connection: its line, and its headers with names in lower case."""

    def __init__(self, head):
        self.line, *lines = head.decode().split("\r\n")
        self.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines if line)}

    def port(self):
        place = self.line.split()[1].removeprefix("http://").split("/")[0]
        return int(place.rpartition(":")[2])


class Proxy(Listener):
    """with Proxy() as proxy: proxy.port, proxy.asked. `refusal`: the bytes that answer a request instead."""

    def __init__(self, port=0):
        self.asked, self.refusal = [], None
        super().__init__(port)

    def serve(self, client):
        with contextlib.suppress(OSError, EOFError), client:
            server = self.open(client)
            if server:
                join(client, server)

    def open(self, client):
        """The connection to the server, to which everything else goes; None: refused."""
        head = read_head(client)
        asked = Asked(head)
        self.asked.append(asked)
        if self.refusal:
            client.sendall(self.refusal)
            return None
        server = socket.create_connection(("127.0.0.1", asked.port()))
        if asked.line.startswith("CONNECT "):
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            server.sendall(head)
        return server


class Socks(Proxy):
    """RFC 1928, without authentication; `asked` are names and ports."""

    def open(self, client):
        methods = read(client, 2)[1]
        assert b"\0" in read(client, methods)
        client.sendall(b"\5\0")
        kind = read(client, 4)[3]
        assert kind == 3, "a name"
        name = read(client, read(client, 1)[0]).decode()
        port = int.from_bytes(read(client, 2), "big")
        self.asked.append((name, port))
        server = socket.create_connection(("127.0.0.1", port))
        client.sendall(b"\5\0\0\1" + bytes(6))
        return server


def read_head(client):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += read(client, 1)
    return head


def join(*ends):
    """Until both sides have ended."""
    threads = [threading.Thread(target=pump, args=pair, daemon=True) for pair in (ends, ends[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            close(end, None)
