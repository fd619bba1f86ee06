# SPDX-License-Identifier: Apache-2.0
"""Servers that a destination should not be: with the wrong certificate, of the wrong protocol, silent, or none at all."""
import contextlib
import socket
import ssl
import threading


class TlsServer:
    """Does handshakes with a certificate, and then closes the connection."""

    def __init__(self, directory, name, client_ca=None, protocols=("h2", "http/1.1"), versions=None):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(directory / (name + ".pem"), directory / (name + ".key"))
        if protocols:
            self.context.set_alpn_protocols(list(protocols))
        if versions:
            self.context.minimum_version, self.context.maximum_version = versions
        if client_ca:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(directory / (client_ca + ".pem"))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        """Reads to the end, or the client would get a reset in place of the alert."""
        with connection.dup() as rest:
            with contextlib.suppress(OSError), self.context.wrap_socket(connection, server_side=True) as secure:
                secure.recv(1)
            with contextlib.suppress(OSError):
                rest.shutdown(socket.SHUT_WR)
                rest.settimeout(30)
                while rest.recv(65536):
                    pass

    def stop(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class BlackHole:
    """Nobody answers a SYN: the queue of the listener is full."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.port = self.listener.getsockname()[1]
        self.filling = []
        for _ in range(3):
            s = socket.socket()
            s.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                s.connect(("127.0.0.1", self.port))
            self.filling.append(s)

    def stop(self):
        for s in (self.listener, *self.filling):
            s.close()


class Mute:
    """Takes connections and never says a word. `greeting`: what each connection gets before it is closed or, with `reset`,
    reset."""

    def __init__(self, greeting=None, reset=False):
        self.greeting, self.reset = greeting, reset
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections.append(connection)
                if self.greeting is not None or self.reset:
                    threading.Thread(target=self.end, args=(connection,), daemon=True).start()

    def end(self, connection):
        with contextlib.suppress(OSError), connection:
            connection.recv(65536)
            if self.reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            else:
                connection.sendall(self.greeting)

    def stop(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            connection.close()
