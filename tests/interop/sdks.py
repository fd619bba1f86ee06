# SPDX-License-Identifier: Apache-2.0
"""Pyroscope's SDKs and agents, of docs/manual/agents.md."""
import collections
import gzip

from harness import otlp, stacks
from harness.otlp import node
from interop import cache, golang, process
from interop.agent import NOTHING, WORK, Agent, difference, python, virtualenv
from interop.clients import fetched, said, tool, verified

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


class FirstPyroscopePython(PyroscopePython):
    """The last before the core in Rust: it posts tries, which Go wrote, at each tenth second."""

    version, section = "0.6.0", "Pyroscope SDK for Python before 0.7"

    @classmethod
    def installed(cls):
        return virtualenv(cls.name, cls.version, "pyroscope-python-0.6.0.txt", python("3.8")) / "python"

    def run_block(self, place, text):
        (place / "agent.py").write_text(text + WORK.replace("3)", "12)") + "pyroscope.stop()\n")
        self.do(place, self.installed(), "agent.py")

    @staticmethod
    def stacks(exchanges):
        """{stack: ns} of what was posted, 100 samples a second."""
        found = collections.Counter()
        for exchange in exchanges:
            assert exchange.headers["Content-Type"] == "binary/octet-stream+trie" and exchange.query["sampleRate"] == "100"
            for key, number in stacks.untrie(exchange.body).items():
                found[node(*(node(name, "", 0) for name in reversed(key)))] += number * 10**7
        return found

    def expected(self, exchanges, _):
        return collections.Counter({("cpu", "nanoseconds"): sum(self.stacks(exchanges).values())})

    def check(self, found, exchanges):
        [stacks] = found.values()
        assert difference(stacks, self.stacks(exchanges)) == NOTHING


JAVA = """
public class Work {
    static double burn(long end) {
        double sum = 0;
        while (System.nanoTime() < end)
            for (int i = 0; i < 100000; i++)
                sum += Math.sqrt(i);
        return sum;
    }

    public static void main(String[] args) {
        System.out.println(burn(System.nanoTime() + 8_000_000_000L));
    }
}
"""


class PyroscopeJava(Agent):
    """In its OTLP mode; it does not say in which service it runs."""

    name, version, section, language, as_direct = "pyroscope-java", "2.9.2", "Pyroscope's agent for Java", "bash", False
    PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"

    @classmethod
    def installed(cls):
        """A directory with the files that the page names."""
        def make(directory):
            fetched([tool("mvn"), "-q", "-B", cls.PLUGIN, "-Dartifact=io.pyroscope:agent:" + cls.version,
                     "-DoutputDirectory=%s" % directory], directory)
            verified(directory, "pyroscope-java.sha256")
            (directory / ("agent-%s.jar" % cls.version)).rename(directory / "pyroscope.jar")
            (directory / "Work.java").write_text(JAVA)
            fetched([tool("javac"), "Work.java"], directory)
            fetched([tool("jar"), "--create", "--file", "checkout.jar", "--main-class", "Work", "Work.class"], directory)

        return cache.product(cls.name, cls.version, "pyroscope-java.sha256", make, said("javac", "--version") + JAVA)

    def run_block(self, place, text):
        """With uploads that are more frequent than by default, since the work is short."""
        for name in "pyroscope.jar", "checkout.jar":
            (place / name).symlink_to(self.installed() / name)
        return self.do(place, "bash", "-e", "-c", text, env={"PYROSCOPE_UPLOAD_INTERVAL": "2s"})

    def refused(self, port):
        """What it prints in its default format, without the rest of the page's lines."""
        with process.directory() as place:
            return self.run_block(place, "PYROSCOPE_SERVER_ADDRESS=http://127.0.0.1:%d java -javaagent:pyroscope.jar "
                                         "-jar checkout.jar" % port)

    def expected(self, exchanges, _):
        total = collections.Counter()
        for exchange in exchanges:
            for resource, _, head, samples in otlp.profiles(gzip.decompress(exchange.body)):
                assert exchange.path == "/v1development/profiles" and not resource[0]
                assert head[0] == ("itimer", "ns")
                total[head[0]] += sum(sum(sample[3]) for sample in samples)
        return total

    def check(self, found, exchanges):
        want, have = collections.Counter(), collections.Counter()
        for exchange in exchanges:
            for _, _, _, samples in otlp.profiles(gzip.decompress(exchange.body)):
                for stack, _, _, values, _ in samples:
                    want[tuple(function[0] for _, _, lines, _ in stack for function, _, _ in lines)] += sum(values)
        for stack, number in (pair for stacks in found.values() for pair in stacks.items()):
            have[tuple(frame[0] for frame in stack)] += number
        assert difference(have, want) == NOTHING and any("Work.burn" in stack for stack in have)


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


ALL = [PyroscopeGo, OldPyroscopeNode, PyroscopeNode, FirstPyroscopePython, OldPyroscopePython, PyroscopePython, PyroscopeRust,
       PyroscopeJava]
