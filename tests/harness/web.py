# SPDX-License-Identifier: Apache-2.0
"""Builds and drives a small test program that serves HTTP and takes commands on stdin; raw sockets to talk to it."""
import queue
import socket
import subprocess
import threading

from harness.served import build, limited  # noqa: F401 (build: for those who import this)

WAIT_S = 60


class Program:
    """with Program(path, argument) as p: p.port; p.ask("stop 0", "stopped")"""

    def __init__(self, path, *arguments, descriptors=None):
        self.process = subprocess.Popen(limited([path, *arguments], descriptors), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines, self.log = queue.Queue(), []
        threading.Thread(target=self._read, daemon=True).start()
        self.logger = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self.logger.start()
        self.greeting = self.line()
        self.address = self.greeting.partition("listening ")[2]
        port = self.address.rpartition(":")[2]
        self.port = int(port) if port.isdigit() else None

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def line(self):
        return self.lines.get(timeout=WAIT_S)

    def wait(self, wanted):
        """Skips lines up to the wanted one."""
        while (line := self.line()) != wanted:
            assert line is not None, "the program ended:\n" + "".join(self.log)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line, wanted):
        self.tell(line)
        self.wait(wanted)

    def metric(self, text):
        """The value of the series whose line begins with the text."""
        self.tell("metrics")
        value = None
        while (line := self.line()) != ".":
            if line.startswith(text):
                value = int(line.rpartition(" ")[2])
        return value

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        self.logger.join(WAIT_S)
        if kind is None:
            assert self.process.returncode == 0, "ended with %d:\n%s" % (self.process.returncode, "".join(self.log))


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)


def request(method="POST", path="/echo", body=b"", headers=(), length=True):
    """The bytes of a request."""
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: x", *headers]
    if length and (body or method == "POST"):
        lines.append("Content-Length: %d" % len(body))
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(body, size=65536):
    parts = [body[i:i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body


def read_answer(sock, head_only=False):
    """One reply of a connection; None when it ends before one. Interim replies are skipped but remembered."""
    interim = False
    stream = sock.makefile("rb")
    while True:
        first = stream.readline()
        if not first:
            return None
        status, headers = int(first.split()[1]), {}
        while (line := stream.readline().strip()):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        if status != 100:
            break
        interim = True
    length = 0 if head_only or status == 204 else int(headers.get("content-length", 0))
    answer = Answer(status, headers, stream.read(length))
    answer.interim = interim
    return answer


def ended(sock):
    """Waits until the server ends the connection; false if it says more."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def ask(port, data):
    """Sends the bytes on a connection of their own; (reply, did the server close it)."""
    with connect(port) as sock:
        sock.sendall(data)
        answer = read_answer(sock)
        return answer, answer is None or answer.headers.get("connection") == "close" and ended(sock)
