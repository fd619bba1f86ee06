# SPDX-License-Identifier: Apache-2.0
"""A program that is scraped: a server on loopback whose answers a test decides, and one of Go."""
import contextlib
import gzip
import http.server
import shutil
import subprocess
import threading


class Target:
    """Answers GET by answer(path with query, headers) -> (status, headers, body); raises what answer raises as a closed
    connection. `seen` are the requests, `connections` the number of connections."""

    def __init__(self, answer, address="127.0.0.1", tls=None):
        self.seen, self.connections, target = [], 0, self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                target.connections += 1
                super().setup()

            def do_GET(self):
                target.seen.append((self.path, dict(self.headers)))
                try:
                    status, headers, body = answer(self.path, self.headers)
                except ConnectionError:
                    self.close_connection = True
                    return
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    if isinstance(body, bytes):
                        self.send_header("Content-Length", str(len(body)))
                        self.end_headers()
                        self.wfile.write(body)
                    else:  # parts, until the other side has enough
                        self.close_connection = True
                        self.end_headers()
                        for part in body:
                            self.wfile.write(part)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 1024

            def handle_error(self, *_):
                pass

        self.server = Server((address, 0), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.place = "%s:%d" % (address, self.port)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def count(self, path=""):
        return sum(seen.startswith(path) for seen, _ in list(self.seen))


def serve(body):
    """Always this profile."""
    return lambda path, headers: (200, {"Content-Type": "application/octet-stream"}, body)


@contextlib.contextmanager
def go_program(root, directory):
    """tests/receivers/scraped, with its port."""
    binary = directory / "scraped"
    subprocess.run(["go", "build", "-o", binary, root / "tests/receivers/scraped/main.go"], check=True)
    with subprocess.Popen([binary], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


HAS_GO = shutil.which("go") is not None


def packed(profile):
    return gzip.compress(profile.SerializeToString())
