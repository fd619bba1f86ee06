# SPDX-License-Identifier: Apache-2.0
"""A DNS server (RFC 1035) that answers every question for an address with those that a test sets."""
import contextlib
import socket
import struct
import threading

A, IN = 1, 1
RESPONSE, NO_SUCH_NAME = 0x8180, 3


def question_of(query):
    """(the question, its type): the name ends with an empty label, after which come type and class."""
    end = query.index(b"\0", 12) + 5
    return query[12:end], struct.unpack("!HH", query[end - 4:end])[0]


class NameServer:
    """with NameServer("127.0.0.1", ...) as names: names.port; names.addresses may be replaced at any time."""

    def __init__(self, *addresses):
        self.addresses, self.questions = list(addresses), 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.run, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.socket.close()

    def answer(self, query):
        question, kind = question_of(query)
        found = self.addresses if kind == A else []
        self.questions += kind == A
        flags = RESPONSE | (0 if self.addresses else NO_SUCH_NAME)
        records = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", A, IN, 0, 4) + socket.inet_aton(a) for a in found)
        return query[:2] + struct.pack("!HHHHH", flags, 1, len(found), 0, 0) + question + records

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                query, sender = self.socket.recvfrom(512)
                self.socket.sendto(self.answer(query), sender)
