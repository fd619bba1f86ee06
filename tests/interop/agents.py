# SPDX-License-Identifier: Apache-2.0
"""The agents of the manual's page docs/manual/agents.md: each runs its section's blocks as printed, with work to profile
behind them."""
import collections
import contextlib
import gzip
import json
import os
import re
import sys
import time

import yaml

from harness import book, build, otlp, peers, pprof
from harness.otlp import node
from interop import cache, golang, process
from interop.collector import Collector
from interop.clients import Client, fetched, tool
from interop.gate import ROOT

PAGE = "docs/manual/agents.md"
RUN_S = 180
BLOCKS = [block for block in book.blocks(ROOT, PAGE) if block.language != "yaml"]
[CONFIGURATION] = [block.text for block in book.blocks(ROOT, PAGE) if block.language == "yaml"]
# What the page's policy lets pass and a store shows as a label.
PERMITTED = [key for key in re.search(r"keys: \[(.*)\]", CONFIGURATION)[1].split(", ") if "__" not in key and "." not in key]


class Agent(Client):
    """`section` is the heading of its blocks; `service` is the name that they give. `as_direct`: the store must have what it
    makes of the same requests itself."""

    fixture, section, language = "agent", None, None
    service, as_direct = "checkout", True

    @classmethod
    def blocks(cls):
        found = [block.text for block in BLOCKS if block.heading == cls.section]
        assert found, "no block below %r" % cls.section
        return found

    def send(self, ports):
        """Runs the blocks against these ports, instead of those that are printed: {4040: ...}."""
        with process.directory() as place:
            for block in self.blocks():
                self.run_block(place, re.sub(r"127\.0\.0\.1:(\d+)", lambda m: "127.0.0.1:%d" % ports[int(m[1])], block))

    def run_block(self, place, text):
        raise NotImplementedError

    def expected(self, exchanges, pprofs):
        """{(type, unit): sum} of what the store must have; `pprofs` is that of all pprofs that were sent."""
        return pprofs

    def check(self, found, exchanges):
        """What else must be true of {type: {stack: sum}}."""

    def do(self, place, *command, env=None):
        return process.run(command, place / "log", RUN_S, place, dict(os.environ, **env or {}))


def virtualenv(name, version, recipe):
    """The directory of a virtual environment's programs."""
    def make(directory):
        fetched(["/usr/bin/python3", "-m", "venv", directory], directory)
        fetched([directory / "bin" / "python", "-m", "pip", "install", "-q", "--only-binary=:all:", "-r",
                 cache.RECIPES / recipe], directory)

    return cache.product(name, version, recipe, make, "%d.%d" % sys.version_info[:2]) / "bin"


GO = """package main

import (
	"log"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/grafana/pyroscope-go"
)

var mutex sync.Mutex
var kept [][]byte

func burn(until time.Time) (sum int) {
	for time.Now().Before(until) {
		for i := 0; i < 100000; i++ {
			sum += i * i
		}
	}
	return
}

func wait() {
	mutex.Lock()
	time.Sleep(5 * time.Millisecond)
	kept = append(kept, make([]byte, 1<<20))
	mutex.Unlock()
}

func main() {
	runtime.MemProfileRate = 4096
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
%s
	if err != nil {
		log.Fatal(err)
	}
	var all sync.WaitGroup
	for i := 0; i < 20; i++ {
		all.Add(1)
		go func() { wait(); all.Done() }()
	}
	all.Wait()
	burn(time.Now().Add(2 * time.Second))
	profiler.Flush(true)
	if err = profiler.Stop(); err != nil {
		log.Fatal(err)
	}
}
"""


class Compiled(Agent):
    """Agents that are compiled into a program, which reads the address when it runs: it is built once."""

    def send(self, ports):
        with process.directory() as place:
            self.do(place, self.installed(), env={"SERVER_ADDRESS": "http://127.0.0.1:%d" % ports[4040]})


def compiled(template, text, address):
    return template % text.replace('"http://127.0.0.1:4040"', address)


class PyroscopeGo(Compiled):
    name, version, section, language = "pyroscope-go", "1.4.3", "Pyroscope SDK for Go", "go"

    @classmethod
    def installed(cls):
        with process.directory() as place:
            source = place / "agent.go"
            source.write_text(compiled(GO, *cls.blocks(), 'os.Getenv("SERVER_ADDRESS")'))
            return golang.program(cls.name, cls.version, source=source)


NODE = """
function burn() {
  const kept = [];
  for (const end = Date.now() + 2000; Date.now() < end; ) kept.push(JSON.stringify(process.versions));
  return kept.length;
}

(async () => {
  await new Promise((resolve) => setTimeout(resolve, 200));
  burn();
  await new Promise((resolve) => setTimeout(resolve, 200));
  await Pyroscope.stop();
})();
"""


class PyroscopeNode(Agent):
    name, version, section, language = "pyroscope-node", "0.6.4", "Pyroscope SDK for Node.js", "javascript"

    @classmethod
    def installed(cls):
        lock = "pyroscope-node-%s.json" % cls.version

        def make(directory):
            (directory / "package.json").write_text(
                '{"name": "pyroscope-node", "dependencies": {"@pyroscope/nodejs": "%s"}}' % cls.version)
            (directory / "package-lock.json").write_bytes((cache.RECIPES / lock).read_bytes())
            fetched([tool("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], directory)

        tool("node")
        return cache.product(cls.name, cls.version, lock, make) / "node_modules"

    def run_block(self, place, text):
        (place / "agent.js").write_text(text + NODE)
        self.do(place, tool("node"), "agent.js", env={"NODE_PATH": str(self.installed())})


class OldPyroscopeNode(PyroscopeNode):
    version = "0.4.13"


WORK = """
import time


def burn(until):
    while time.time() < until:
        sum(i * i for i in range(1000))


burn(time.time() + 3)
"""


class PyroscopePython(Agent):
    name, version, section, language = "pyroscope-python", "1.4.0", "Pyroscope SDK for Python", "python"

    @classmethod
    def installed(cls):
        return virtualenv(cls.name, cls.version, "pyroscope-python-%s.txt" % cls.version) / "python"

    def run_block(self, place, text):
        (place / "agent.py").write_text(text + WORK + "pyroscope.shutdown()\n")
        self.do(place, self.installed(), "agent.py")


class OldPyroscopePython(PyroscopePython):
    """It posts to /ingest."""

    version = "0.8.16"


RUST = """use pyroscope::backend::{pprof_backend, BackendConfig, PprofConfig};
use pyroscope::pyroscope::PyroscopeAgentBuilder;
use std::time::{Duration, Instant};

fn burn(end: Instant) -> u64 {
    let mut sum = 0u64;
    while Instant::now() < end {
        for i in 0..100000u64 {
            sum = std::hint::black_box(sum.wrapping_add(i * i));
        }
    }
    sum
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    %s
    burn(Instant::now() + Duration::from_secs(3));
    let ready = running.stop()?;
    ready.shutdown();
    Ok(())
}
"""


class PyroscopeRust(Compiled):
    name, version, section, language = "pyroscope-rust", "2.1.5", "Pyroscope SDK for Rust", "rust"

    @classmethod
    def installed(cls):
        source = compiled(RUST, *cls.blocks(), '&std::env::var("SERVER_ADDRESS")?')

        def make(directory):
            for recipe, made in ("pyroscope-rust.toml", "Cargo.toml"), ("pyroscope-rust.lock", "Cargo.lock"):
                (directory / made).write_bytes((cache.RECIPES / recipe).read_bytes())
            (directory / "src").mkdir()
            (directory / "src" / "main.rs").write_text(source)
            with process.directory() as scratch:
                process.run(["nice", "-n", "10", tool("cargo"), "build", "--locked", "--quiet"], scratch / "log", golang.BUILD_S,
                            directory)

        tools = (cache.RECIPES / "pyroscope-rust.lock").read_text() + source
        return cache.product(cls.name, cls.version, "pyroscope-rust.toml", make, tools) / "target" / "debug" / "agent"


class Shell(Agent):
    """Agents that are commands."""

    language = "bash"

    def path(self):
        return []

    def run_block(self, place, text):
        (place / "work.py").write_text(WORK)
        path = ":".join([*map(str, self.path()), os.environ["PATH"]])
        self.do(place, "bash", "-e", "-o", "pipefail", "-c", text, env={"PATH": path})


SERVE = """package main

import (
	"net/http"
	_ "net/http/pprof"
	"os"
)

func burn() (sum int) {
	for i := 0; ; i++ {
		sum += i * i
	}
}

func main() {
	go burn()
	panic(http.ListenAndServe(os.Args[1], nil))
}
"""


class GoService(Shell):
    name, section, as_direct = "net/http/pprof", "Go services with net/http/pprof", False

    @classmethod
    def installed(cls):
        with process.directory() as place:
            source = place / "main.go"
            source.write_text(SERVE)
            return golang.program("go-service", golang.version(), source=source)

    @classmethod
    def shown_version(cls):
        return golang.version().removeprefix("go")

    def send(self, ports):
        with process.directory() as place:
            [ports[6060]] = process.free_ports(1)
            service = process.Process([self.installed(), "127.0.0.1:%d" % ports[6060]], place / "service.log")
            with contextlib.ExitStack() as held:
                held.callback(service.kill)
                service.until(lambda: process.taken(ports[6060]), "a Go service")
                super().send(ports)

    def check(self, found, exchanges):
        [exchange] = exchanges
        sent = pprof.parse(exchange.body)
        for kind, stacks in found.items():
            place = [":".join(kind) for kind in map(pprof.Reader(sent).kind, sent.sample_type)].index(
                ":".join(kind.split(":")[1:3]))
            assert stacks == pprof.values(sent, place)


class PySpy(Shell):
    """Pyroscope drops fractions of a unit, which is all that speedscope's JSON of py-spy has: not as direct."""

    name, version, section, as_direct = "py-spy", "0.4.3", "py-spy", False

    @classmethod
    def installed(cls):
        return virtualenv(cls.name, cls.version, "py-spy.txt")

    def path(self):
        return [self.installed()]

    @staticmethod
    def stacks(exchange):
        """{type: {stack: ns}} as python reads what was posted; a stack as harness.pprof has it. The store drops what has no
        stack: a process that has just begun."""
        found = collections.defaultdict(collections.Counter)
        if exchange.query.get("format") != "speedscope":
            for line in exchange.body.decode().splitlines():
                names, _, number = line.rpartition(" ")
                if names:
                    found["wall"][node(*(node(name, "", 0) for name in reversed(names.split(";"))))] += int(number) * 10**7
            return found
        file = json.loads(exchange.body)
        frames = [node(frame["name"], frame["file"], frame["line"]) for frame in file["shared"]["frames"]]
        for profile in file["profiles"]:
            for sample, weight in zip(profile["samples"], profile["weights"]):
                stack = node(*(frames[i] for i in reversed(sample)))
                found["cpu" if len(file["profiles"]) == 1 else "wall"][stack] += round(weight * 10**9)
        for stacks in found.values():
            stacks.pop(node(), None)
        return found

    def expected(self, exchanges, _):
        total = collections.Counter()
        for exchange in exchanges:
            for kind, stacks in self.stacks(exchange).items():
                total[kind, "nanoseconds"] += sum(stacks.values())
        return total

    def check(self, found, exchanges):
        want, have = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        for exchange in exchanges:
            for kind, stacks in self.stacks(exchange).items():
                want[kind].update(stacks)
        for kind, stacks in found.items():
            have[kind.split(":")[1]].update(stacks)
        for kind in want:
            assert want[kind] - have[kind] == have[kind] - want[kind] == collections.Counter(), kind


class Profilecli(Shell):
    name, version, section = "profilecli", "1.21.0", "profilecli"

    @classmethod
    def installed(cls):
        return golang.store(cls.name, cls.version)

    def path(self):
        return [self.installed().parent]

    def run_block(self, place, text):
        (place / "cpu.pb.gz").write_bytes(gzip.compress(build.pprof(3).SerializeToString()))
        super().run_block(place, text)


class CollectorAgent(Agent):
    """A Collector with the exporter that is printed. What it is sent is OTLP of ours."""

    name, version, section, language, as_direct = "Collector's exporters", Collector.version, "OpenTelemetry Collector", "yml", False
    RECEIVER = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}"}}}}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [%s]}}}
"""

    @classmethod
    def installed(cls):
        Collector.installed()

    def run_block(self, place, text):
        [exporter] = yaml.safe_load(text)["exporters"]
        self.sent = getattr(self, "sent", []) + [build.request(len(text), service=self.service)]
        for profile in self.sent[-1].resource_profiles[0].scope_profiles[0].profiles:
            profile.time_unix_nano = time.time_ns()
        with Collector(text + self.RECEIVER % exporter) as collector, peers.Client(collector.port["otlp"]) as client:
            client.send(self.sent[-1])

    def expected(self, exchanges, pprofs):
        total = collections.Counter()
        for request in self.sent:
            for _, _, head, samples in otlp.profiles(request):
                total[head[0]] += sum(sum(sample[3]) for sample in samples)
        return total


ALL = [PyroscopeGo, OldPyroscopeNode, PyroscopeNode, OldPyroscopePython, PyroscopePython, PyroscopeRust, GoService, PySpy, Profilecli,
       CollectorAgent]
