# SPDX-License-Identifier: Apache-2.0
"""Servers that a destination should not be: with the wrong certificate, of the wrong protocol, silent, or none at all."""
import contextlib
import re
import socket
import ssl
import subprocess
import threading

RESET_AT_CLOSE = (socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


class TlsServer:
    """Does handshakes with a certificate, and then closes the connection. `knows_no_name`: rejects every name that a client
    sends. `resets`: resets the connection after an alert."""

    def __init__(self, directory, name, client_ca=None, protocols=("h2", "http/1.1"), versions=None, knows_no_name=False,
                 resets=False):
        self.resets = resets
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(directory / (name + ".pem"), directory / (name + ".key"))
        if protocols:
            self.context.set_alpn_protocols(list(protocols))
        if versions:
            self.context.minimum_version, self.context.maximum_version = versions
        if knows_no_name:
            self.context.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
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
        """Reads to the end, or the client would get a reset after the alert."""
        with connection.dup() as rest:
            with contextlib.suppress(OSError), self.context.wrap_socket(connection, server_side=True) as secure:
                secure.recv(1)
            with contextlib.suppress(OSError):
                if self.resets:
                    rest.setsockopt(*RESET_AT_CLOSE)
                    return
                rest.shutdown(socket.SHUT_WR)
                rest.settimeout(30)
                while rest.recv(65536):
                    pass

    def stop(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class OpensslServer:
    """`openssl s_server` with a certificate and these options. It ends by itself."""

    def __init__(self, directory, name, *options):
        command = ["timeout", "300", "openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-cert", name + ".pem",
                   "-key", name + ".key", *options]
        self.process = subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.port = next(int(found[1]) for line in self.process.stdout if (found := re.match(r"ACCEPT .*:(\d+)", line)))

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


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
                connection.setsockopt(*RESET_AT_CLOSE)
            else:
                connection.sendall(self.greeting)

    def stop(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            connection.close()


class Resetting:
    """Takes connections and resets them at once."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setsockopt(*RESET_AT_CLOSE)  # of each connection too
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                self.listener.accept()[0].close()

    def stop(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
