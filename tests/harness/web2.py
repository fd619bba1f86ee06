# SPDX-License-Identifier: Apache-2.0
"""An HTTP/2 client for tests, on python3-h2 (another implementation than the server's)."""
import socket
import ssl
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from harness.web import WAIT_S, Answer, ask


class Lasting(h2.connection.H2Connection):
    """The library takes a GOAWAY for the end of the connection; it is only the end of new streams."""

    def _receive_goaway_frame(self, frame):
        event = h2.events.ConnectionTerminated()
        event.error_code, event.last_stream_id, event.additional_data = frame.error_code, frame.last_stream_id, None
        return [], [event]


class Http2:
    """with Http2(port) as c: c.ask("POST", "/echo", b"...")

    `context`: of TLS; `window`: of each stream, that the server may fill before the client reads on; `strict`: refuses to
    send what the protocol forbids.
    """

    def __init__(self, port, context=None, source="127.0.0.1", window=1 << 20, strict=True, host="127.0.0.1"):
        self.socket = socket.create_connection((host, port), WAIT_S, source_address=(source, 0) if source else None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            context.set_alpn_protocols(["h2", "http/1.1"])
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
            assert self.socket.selected_alpn_protocol() == "h2"
        self.h2 = Lasting(h2.config.H2Configuration(
            header_encoding="utf-8", validate_outbound_headers=strict, normalize_outbound_headers=strict))
        self.h2.local_settings = h2.settings.Settings(initial_values={
            h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window, h2.settings.SettingCodes.ENABLE_PUSH: 0})
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window((1 << 26))
        self.answers, self.reset, self.interim, self.done = {}, {}, set(), set()
        self.goaway = self.closed = None
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def read(self):
        """Takes what the server sends next. False: it has closed."""
        try:
            data = self.socket.recv(1 << 18)
        except (ConnectionResetError, ssl.SSLError):
            data = b""
        if not data:
            self.closed = True
            return False
        for event in self.h2.receive_data(data):
            self._take(event)
        try:
            self.flush()
        except OSError:
            pass
        return True

    def _take(self, event):
        if isinstance(event, h2.events.InformationalResponseReceived):
            self.interim.add(event.stream_id)
        elif isinstance(event, h2.events.ResponseReceived):
            headers = dict(event.headers)
            self.answers[event.stream_id] = Answer(int(headers.pop(":status")), headers, bytearray())
        elif isinstance(event, h2.events.DataReceived):
            self.answers[event.stream_id].body += event.data
            if event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self.done.add(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            self.reset[event.stream_id] = event.error_code
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = event

    def wait(self, condition):
        """Reads until it is true; false if the server closes first."""
        end = time.monotonic() + WAIT_S
        while not condition():
            if self.closed or not self.read():
                return bool(condition())
            assert time.monotonic() < end
        return True

    def begin(self, method="POST", path="/echo", headers=(), end=False, authority="x", scheme="http"):
        """Sends the headers of a request; the number of its stream."""
        stream = self.h2.get_next_available_stream_id()
        first = [(":method", method), (":scheme", scheme), (":path", path)]
        if authority is not None:
            first.append((":authority", authority))
        self.h2.send_headers(stream, first + [tuple(h.split(": ", 1)) if isinstance(h, str) else h for h in headers],
                             end_stream=end)
        self.flush()
        return stream

    def send(self, stream, data, end=True):
        """Sends as the server opens its windows. False: it answered, reset or closed first."""
        view = memoryview(data)
        while view:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(view))
            if stream in self.done or stream in self.reset or self.closed:
                return False
            if not room:
                self.read()
                continue
            self.h2.send_data(stream, bytes(view[:room]))
            view = view[room:]
            self.flush()
        if end:
            self.h2.end_stream(stream)
            self.flush()
        return True

    def answer(self, stream):
        """The complete response; None when there is none, because of a reset or the connection's end."""
        self.wait(lambda: stream in self.done or stream in self.reset)
        return self.answers.get(stream) if stream in self.done else None

    def ask(self, method="POST", path="/echo", body=b"", headers=(), **more):
        stream = self.begin(method, path, headers, end=not body, **more)
        if body:
            self.send(stream, body)
        return self.answer(stream)


def ask2(port, *arguments, **more):
    """One request on a connection of its own."""
    with Http2(port) as client:
        return client.ask(*arguments, **more)


def translated(data):
    """The arguments of Http2.ask for the bytes of an HTTP/1.1 request (harness.web.request)."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = [tuple(line.split(": ", 1)) for line in lines]
    if ("Transfer-Encoding", "chunked") in headers:
        body = unchunked(body)
    return {"method": method, "path": path, "body": body, "headers": [
        (name.lower(), value) for name, value in headers if name.lower() not in ("host", "transfer-encoding", "connection")]}


def unchunked(data):
    out = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        if not int(size, 16):
            return out
        out, data = out + data[:int(size, 16)], data[int(size, 16) + 2:]


def ask_by(version, port, data):
    """As harness.web.ask, by this version of HTTP; a request of HTTP/1.1 is translated."""
    return ask(port, data) if version == "1.1" else (ask2(port, **translated(data)), None)
