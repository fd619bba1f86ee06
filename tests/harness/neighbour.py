# SPDX-License-Identifier: Apache-2.0
"""A well-behaved sender of OTLP, over gRPC or HTTP, in a process of its own, so that what the test does costs it nothing.

It sends a small request every 20 ms, whether or not the ones before were answered: who is shut out for a while has many
late calls, not one. Every tenth goes over a new connection.
"""
import concurrent.futures
import http.client
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
EVERY_S, TIMEOUT_S = .02, 20
WARM_UP, SAMPLES = 25, 5


class Neighbour:
    """with Neighbour(port) as n: n.begin() ... n.end() — the figures of the calls that were begun between the two."""

    def __init__(self, port, protocol="grpc"):
        self.port, self.protocol = port, protocol

    def __enter__(self):
        path = os.pathsep.join(str(p) for p in (TESTS, TESTS.parent / "build/python"))
        self.process = subprocess.Popen([sys.executable, "-P", __file__, str(self.port), self.protocol], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=path))
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def _say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def begin(self):
        self._say("begin")

    def end(self):
        """{calls, errors: a list, p50_ms, max_ms}; waits until all are answered."""
        self._say("end")
        return json.loads(self.process.stdout.readline())


class Calls:
    """What became of them."""

    def __init__(self):
        self.lock, self.latencies, self.errors, self.open = threading.Lock(), [], [], 0

    def send(self, client, body):
        begun = time.monotonic()
        with self.lock:
            self.open += 1
        future = client.call.future(body, timeout=TIMEOUT_S)
        future.add_done_callback(lambda f: self.done(f, time.monotonic() - begun))
        return future

    def done(self, future, seconds):
        with self.lock:
            self.open -= 1
            self.latencies.append(seconds)
            if future.exception():
                self.errors.append(str(future.exception()))

    def figures(self):
        while self.open:
            time.sleep(.01)
        ordered = sorted(self.latencies)
        return {"calls": len(ordered), "errors": self.errors, "p50_ms": 1e3 * ordered[len(ordered) // 2],
                "max_ms": 1e3 * ordered[-1]}


class Http:
    """Posts requests on connections of its own, one for each that is open at the same time."""

    def __init__(self, port):
        self.port, self.call, self.local = port, self, threading.local()
        self.pool = concurrent.futures.ThreadPoolExecutor(64)

    def future(self, body, timeout):
        return self.pool.submit(self.post, body, timeout)

    def post(self, body, timeout):
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        self.local.connection.request("POST", "/v1development/profiles", body, {"Content-Type": "application/x-protobuf"})
        answer = self.local.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError("%d %s" % (answer.status, text))

    def send(self, body):
        self.post(body, TIMEOUT_S)

    def close(self):
        self.pool.shutdown(wait=False)


def send_until(ended, client, fresh, body):
    calls, due, kept = Calls(), time.monotonic(), []
    for number in range(1 << 30):
        if number % 10 == 9:
            kept.append(fresh())
        calls.send(kept[-1] if number % 10 == 9 else client, body)
        due += EVERY_S
        if ended.wait(max(0, due - time.monotonic())):
            break
    figures = calls.figures()
    for one in kept:
        one.close()
    return figures


def main(port, protocol):
    from harness import build, peers

    def fresh():
        return Http(port) if protocol == "http" else peers.Client(port, options=[("grpc.use_local_subchannel_pool", 1)])

    body = build.request(samples=SAMPLES, functions=5).SerializeToString()
    client = fresh()
    for _ in range(WARM_UP):
        client.send(body)
    print("ready", flush=True)
    while sys.stdin.readline():
        ended = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.readline(), ended.set()), daemon=True).start()
        print(json.dumps(send_until(ended, client, fresh, body)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
