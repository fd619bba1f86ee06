# SPDX-License-Identifier: Apache-2.0
"""The agents of docs/manual/agents.md."""
import collections
import contextlib
import gzip
import json
import time

import yaml

from harness import build, otlp, peers, pprof
from harness.otlp import node
from interop import golang, process, sdks
from interop.agent import CONFIGURATION, NOTHING, RUN_S, Agent, Shell, difference, virtualenv
from interop.collector import Collector
from interop.recorder import Recorder

SERVE = """package main

import (
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"sync"
	"time"
%s)

var mutex sync.Mutex
var kept [64][]byte

func burn() (sum int) {
	for i := 0; ; i++ {
		sum += i * i
		if i%%10000000 == 0 {
			runtime.Gosched()
		}
	}
}

func work() {
	for i := 0; ; i++ {
		mutex.Lock()
		time.Sleep(time.Millisecond)
		kept[i%%len(kept)] = make([]byte, 1<<16)
		mutex.Unlock()
	}
}

func main() {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	go burn()
	go work()
	go work()
	panic(http.ListenAndServe(os.Args[1], nil))
}
"""


class Service(Agent):
    """A Go service on port 6060, behind a recorder."""

    name, section, as_direct = "net/http/pprof", "Go services with net/http/pprof", False
    recipe, imported = "go-service", ""

    @classmethod
    def installed(cls):
        with process.directory() as place:
            source = place / "main.go"
            source.write_text(SERVE % cls.imported)
            return golang.program(cls.recipe, cls.shown_version(), source=source)

    @classmethod
    def shown_version(cls):
        return cls.version or golang.version().removeprefix("go")

    @contextlib.contextmanager
    def running(self):
        """Its port."""
        with process.directory() as place:
            [port] = process.free_ports(1)
            service = process.Process([self.installed(), "127.0.0.1:%d" % port], place / "service.log")
            with contextlib.ExitStack() as held:
                held.callback(service.kill)
                service.until(lambda: process.taken(port), "a Go service")
                yield port


class GoService(Service, Shell):
    """It is read by a command, which posts what it gets."""

    def send(self, ports):
        with self.running() as port:
            super().send({**ports, 6060: port})

    def check(self, found, exchanges):
        [exchange] = exchanges
        sent = pprof.parse(exchange.body)
        for kind, stacks in found.items():
            assert difference(stacks, pprof.values(sent, place_of(sent, kind))) == NOTHING


def place_of(profile, kind):
    """Of a store's type, among the values of a pprof."""
    return [":".join(kind) for kind in map(pprof.Reader(profile).kind, profile.sample_type)].index(":".join(kind.split(":")[1:3]))


class ScrapedService(Service):
    """The gateway scrapes it, until it has read every profile twice."""

    name, language = "net/http/pprof, scraped", "yml"
    # {name of the series: path}; of those in `counted`, the gateway sends what was added.
    paths = {"process_cpu": "profile", "memory": "allocs", "mutex": "mutex", "block": "block", "goroutine": "goroutine"}
    counted = {"memory", "mutex", "block"}

    def configuration(self):
        [block] = self.blocks()
        whole, more = yaml.safe_load(CONFIGURATION), yaml.safe_load(block)
        whole["receivers"].update(more["receivers"])
        whole["service"]["pipelines"]["profiles"]["receivers"] += list(more["receivers"])
        return yaml.safe_dump(whole)

    def send(self, ports):
        with self.running() as port, Recorder(port, ports[6060]) as recorder:
            end = time.monotonic() + RUN_S
            while not all(len(self.scrapes(recorder.exchanges, name)) >= 2 for name in self.paths):
                assert time.monotonic() < end, [exchange.target for exchange in recorder.exchanges]
                time.sleep(0.1)
            # A scrape that is in progress now fails.
        self.exchanges = recorder.exchanges

    def settle(self, gateway, _):
        """The first of a profile whose differences it computes is skipped."""
        gateway.until(lambda: sum(gateway.total("otelcol_scraper_scrapes", outcome=outcome) for outcome in ("success", "skipped"))
                      == len(self.exchanges))

    def scrapes(self, exchanges, name):
        """The profiles of this name, in order."""
        return [pprof.parse(x.answer) for x in exchanges if x.path == "/debug/pprof/" + self.paths[name] and x.status == 200]

    def sent(self, name):
        """{(type, unit): {stack: number}} of what the gateway had to send. The store drops what has no stack."""
        profiles, found = self.scrapes(self.exchanges, name), {}
        for place, kind in enumerate(map(pprof.Reader(profiles[0]).kind, profiles[0].sample_type)):
            numbers = [pprof.values(profile, place) for profile in profiles]
            if name not in self.counted:
                found[kind] = sum(numbers, collections.Counter())
            elif kind[0].startswith("inuse_"):
                found[kind] = sum(numbers[1:], collections.Counter())
            else:
                found[kind] = numbers[-1] - numbers[0]
            found[kind].pop(node(), None)
        return found

    def expected(self, *_):
        total = collections.Counter()
        for name in self.paths:
            for kind, numbers in self.sent(name).items():
                total[kind] += sum(numbers.values())
        return +total

    def check(self, found, _):
        for name in self.paths:
            for kind, want in self.sent(name).items():
                have = collections.Counter()
                for known, numbers in found.items():
                    if known.split(":")[0] == name and tuple(known.split(":")[1:3]) == kind:
                        have.update(numbers)
                odd = difference(have, want)
                assert odd == NOTHING, (name, kind, odd)


class Godeltaprof(ScrapedService):
    """It computes differences itself."""

    name, version, section, recipe = "godeltaprof", "0.1.11", "godeltaprof", "godeltaprof"
    imported = '\n\t_ "github.com/grafana/pyroscope-go/godeltaprof/http/pprof"\n'
    paths = {"process_cpu": "profile", "memory": "delta_heap", "mutex": "delta_mutex", "block": "delta_block",
             "goroutine": "goroutine"}
    counted = set()


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
            assert difference(have[kind], want[kind]) == NOTHING, kind

    def written(self, form):
        """What py-spy writes in this format about a process."""
        with process.directory() as place:
            self.run_block(place, "py-spy record --duration 1 --format %s --output out -- python3 work.py" % form)
            return (place / "out").read_bytes()


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


ALL = [*sdks.ALL, GoService, ScrapedService, Godeltaprof, PySpy, Profilecli, CollectorAgent]
