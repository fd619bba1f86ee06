# SPDX-License-Identifier: Apache-2.0
"""A server on loopback that gives each connection a thread."""
import contextlib
import socket
import threading


class Listener:
    """Listens from the start; `serve(connection)` is the server. with Listener() as l: l.port."""

    def __init__(self, port=0):
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()
