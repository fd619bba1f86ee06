# SPDX-License-Identifier: Apache-2.0
"""Starts the real program, waits until it is ready, talks to it, ends it by its own process id."""
import atexit
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import textwrap
import time
import urllib.request

READY = "Everything is ready"
WAIT_S = float(os.environ.get("WAIT_S", "60"))


GIVEN = set()


# Processes of one run of pytest-xdist; each has ports of its own.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % WORKERS  # one that took the place of a crashed one


def free_port():
    """A loopback port that nobody has now, and nobody gets by chance until it is used: the kernel draws from higher ones
    for whoever connects, and none is given twice."""
    highest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]) - 1
    while True:
        port = random.SystemRandom().randint(10240, max(highest, 20480))
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in GIVEN and port % WORKERS == WORKER:
            GIVEN.add(port)
            return port


class Gateway:
    """with Gateway(binary, yaml_text) as g: ... — {port:name} in the text becomes a free port, g.port[name]. `guard` is a
    command that runs the program. Its directory lives as long as this process; KEEP=1 in the environment leaves it."""

    def __init__(self, binary, text, env=None, arguments=(), ready=True, cwd=None, guard=()):
        self.port = {}
        self.directory = pathlib.Path(cwd or tempfile.mkdtemp(prefix="gateway-"))
        if not cwd and not os.environ.get("KEEP"):
            atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
        self.binary, self.wait_ready = str(binary), ready
        body = textwrap.dedent(text)
        for name in sorted(set(re.findall(r"\{port:(\w+)\}", body)) | {"metrics"}):
            self.port[name] = free_port()
        for name, port in self.port.items():
            body = body.replace("{port:%s}" % name, str(port))
        self.config = self.directory / "gateway.yaml"
        self.config.write_text(body)
        self.telemetry = self.directory / "telemetry.yaml"
        self.telemetry.write_text(
            "service: {telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: "
            "{host: 127.0.0.1, port: %d}}}}]}}}\n" % self.port["metrics"])
        self.log_path = self.directory / "gateway.log"
        self.env = dict(os.environ, **(env or {}))
        self.arguments, self.guard = list(arguments), list(guard)
        self.process = None

    def __enter__(self):
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [*self.guard, self.binary, "--config", str(self.config), "--config", str(self.telemetry), *self.arguments],
                stdout=log, stderr=subprocess.STDOUT, env=self.env, cwd=self.directory)
        if self.wait_ready:
            self.until(lambda: READY in self.log())
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError("did not stop:\n" + self.log())
        log = self.log()
        assert "Sanitizer" not in log and "runtime error:" not in log, log

    def log(self):
        """Whole lines only, as long as the program runs: a reader can see the beginning of a line that is being written."""
        ended = self.process.poll() is not None
        text = self.log_path.read_text(errors="replace")
        return text if ended else text[:text.rfind("\n") + 1]

    def until(self, condition, seconds=WAIT_S):
        """Waits for something that must become true; the log tells why it did not."""
        end = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None and not condition():
                raise AssertionError("exited with %s:\n%s" % (self.process.returncode, self.log()))
            if time.monotonic() > end:
                raise AssertionError("never came true:\n" + self.log())
            time.sleep(0.01)

    def stop(self, number=signal.SIGTERM):
        """Ends it and returns the exit status."""
        self.process.send_signal(number)
        return self.process.wait(WAIT_S)

    def metrics_text(self):
        url = "http://127.0.0.1:%d/metrics" % self.port["metrics"]
        with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
            return answer.read().decode()

    def metrics(self):
        """{(name, frozenset of labels): value}"""
        found = {}
        for line in self.metrics_text().splitlines():
            match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if match and not line.startswith("#"):
                labels = frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
                found[match[1], labels] = float(match[3])
        return found

    def total(self, name, **labels):
        """The sum over all series of the metric that carry these labels."""
        want = set(labels.items())
        return int(sum(v for (n, have), v in self.metrics().items() if n == name and want <= have))

    def rss(self):
        """Resident and peak bytes, from the kernel."""
        text = pathlib.Path("/proc/%d/status" % self.process.pid).read_text()
        return {k: int(re.search(k + r":\s+(\d+)", text)[1]) * 1024 for k in ("VmRSS", "VmHWM")}

    def ledger(self, pipeline, exporter):
        """The terms of the conservation law, all of one scrape."""
        scrape = self.metrics()

        def of(what, **labels):
            want = {"pipeline": pipeline, **labels}
            return int(sum(v for (n, have), v in scrape.items() if n == "otelcol_ledger_%s_samples" % what
                           and {k: v for k, v in have if k != "reason"} == want))
        terms = {what: of(what) for what in ("in", "processing", "merged", "batched", "dropped")}
        terms.update({what: of(what, exporter=exporter) for what in ("out", "dead_letter", "queued", "restored")})
        terms["dropped_there"] = of("dropped", exporter=exporter)
        return terms

    def balanced(self, pipeline, exporter):
        t = self.ledger(pipeline, exporter)
        return t["in"] + t["restored"] == sum(v for k, v in t.items() if k not in ("in", "restored"))
