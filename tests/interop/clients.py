# SPDX-License-Identifier: Apache-2.0
"""Clients of other people's HTTP/2 and gRPC: programs that are run once for a question, each in a language of its own."""
import collections
import contextlib
import functools
import hashlib
import re
import shutil
import subprocess
import xml.etree.ElementTree

from harness import otlp
from interop import cache, foreign, golang, process
from interop.foreign import SCRIPTS

TESTS = SCRIPTS.parent.parent
DOWNLOAD_S, RUN_S = 300, 120
HEALTH = "/grpc.health.v1.Health/Check"


def tool(name):
    """A program of the machine."""
    found = shutil.which(name)
    if not found:
        raise process.Absent("there is no %s on the PATH" % name)
    return found


@functools.lru_cache(maxsize=None)
def said(*command):
    """The first line that a program prints of itself."""
    return subprocess.run([tool(command[0]), *command[1:]], capture_output=True, text=True, check=True).stdout.split("\n")[0]


def fetched(command, directory):
    with process.directory() as scratch:
        process.run(["nice", "-n", "10", *command], scratch / "log", DOWNLOAD_S, directory)


def verified(directory, sums):
    """The files have the checksums of the recipe."""
    for line in (cache.RECIPES / sums).read_text().splitlines():
        checksum, name = line.split()
        found = hashlib.sha256((directory / name).read_bytes()).hexdigest()
        if found != checksum:
            raise AssertionError("%s has the checksum %s, and %s says %s" % (name, found, sums, checksum))


class Client:
    """`installed()` gives what a run needs, or raises Absent."""

    name, version, fixture = None, None, None

    @classmethod
    def shown_version(cls):
        return cls.version

    @contextlib.contextmanager
    def directory(self, files):
        """With each body as a file, by number."""
        with process.directory() as place:
            for i, body in enumerate(files):
                (place / str(i)).write_bytes(body)
            yield place

    def run(self, *command, files=(), env=None):
        """What it prints."""
        with self.directory(files) as place:
            return process.run(command, place / "log", RUN_S, place, env)


# ---- of gRPC: one program of ours for each implementation (scripts/export.*)

class GrpcClient(Client):
    """PROGRAM TARGET [NAME=VALUE]... [METHOD:FILE]... makes each call with the bytes of the file, all of them over one
    connection, and prints "COUNT STATUS REPLY" for each different answer (the reply in hex). Options: rounds (makes all the
    calls again), pause (seconds between rounds), calls (that are open at once), deadline (of each, in seconds), keepalive
    (seconds between pings, without calls too), gzip; ca, cert, key (files in PEM: TLS)."""

    fixture = "client"

    def program(self):
        """The words of its command."""
        raise NotImplementedError

    def words(self, target, methods, options):
        return [*self.program(), target, *("%s=%s" % option for option in options.items()),
                *("%s:%d" % (method, i) for i, method in enumerate(methods))]

    def export(self, port, bodies, health=True, **options):
        """{(status code, reply): how many calls}; `health` asks for that once in each round."""
        calls = [(otlp.METHOD, body) for body in bodies] + [(HEALTH, b"")] * health
        text = self.run(*self.words("127.0.0.1:%d" % port, [method for method, _ in calls], options),
                        files=[body for _, body in calls])
        found = collections.Counter()
        for count, status, reply in re.findall(r"^(\d+) (\d+) ?(.*)$", text, re.M):
            found[int(status), bytes.fromhex(reply)] += int(count)
        return found


class GrpcGo(GrpcClient):
    name, version = "grpc-go", "1.83.2"

    @classmethod
    def installed(cls):
        return golang.program(cls.name, cls.version, source=SCRIPTS / "export.go")

    def program(self):
        return [self.installed()]


class GrpcJava(GrpcClient):
    name, version = "grpc-java", "1.68.0"
    PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

    @classmethod
    def installed(cls):
        def make(directory):
            (directory / "pom.xml").write_bytes((cache.RECIPES / "grpc-java.xml").read_bytes())
            fetched([tool("mvn"), "-q", "-B", cls.PLUGIN, "-DoutputDirectory=%s" % (directory / "lib")], directory)
            verified(directory / "lib", "grpc-java.sha256")
            fetched([tool("javac"), "-cp", "lib/*", "-d", "lib", source], directory)

        source = SCRIPTS / "Export.java"
        tools = said("javac", "--version") + source.read_text() + (cache.RECIPES / "grpc-java.sha256").read_text()
        return cache.product("grpc-java", cls.version, "grpc-java.xml", make, tools) / "lib"

    def program(self):
        return [tool("java"), "-XX:TieredStopAtLevel=1", "-cp", "%s/*:%s" % (self.installed(), self.installed()), "Export"]


class GrpcJs(GrpcClient):
    name, version = "grpc-js", "1.14.7"

    @classmethod
    def installed(cls):
        def make(directory):
            (directory / "package.json").write_text('{"name": "grpc-js", "dependencies": {"@grpc/grpc-js": "%s"}}' % cls.version)
            (directory / "package-lock.json").write_bytes((cache.RECIPES / "grpc-js.json").read_bytes())
            fetched([tool("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], directory)

        tool("node")
        return cache.product("grpc-js", cls.version, "grpc-js.json", make) / "node_modules"

    def program(self):
        return ["env", "NODE_PATH=%s" % self.installed(), tool("node"), SCRIPTS / "export.js"]


class Grpcio(GrpcClient):
    """C core of today, beside the old one of Debian in the other tests."""

    name, version = "grpcio", "1.85.1"

    @classmethod
    def installed(cls):
        return foreign.Foreign.installed()

    def program(self):
        return [self.installed(), "-I", SCRIPTS / "export.py"]


class Grpcurl(Client):
    """grpc-go, by hand."""

    name, version, fixture = "grpcurl", "1.9.3", "grpcurl"

    @classmethod
    def installed(cls):
        return golang.store("grpcurl", cls.version)

    def call(self, port, method, messages, proto, *security):
        """Sends messages in JSON over one connection; its answers, in JSON too."""
        return self.run(self.installed(), *(security or ["-plaintext"]), "-import-path", TESTS / "proto",
                        "-import-path", TESTS / "interop" / "proto", "-proto", proto, "-d", messages, "127.0.0.1:%d" % port, method[1:])


# ---- of HTTP/2

class Nghttp2(Client):
    """h2load and nghttp, of Debian."""

    name, fixture = "nghttp2-client", "nghttp2"
    HEADERS = ("-H", "te: trailers", "-H", "content-type: application/grpc")

    @classmethod
    def installed(cls):
        return tool("h2load"), tool("nghttp")

    @classmethod
    def shown_version(cls):
        return re.search(r"nghttp2/(\S+)", said("nghttp", "--version"))[1]

    def send(self, program, options, port, body, scheme):
        framed = b"\0" + len(body).to_bytes(4, "big") + body
        return self.run(program, *options, *self.HEADERS, "-d", "0", "%s://127.0.0.1:%d%s" % (scheme, port, otlp.METHOD),
                        files=[framed])

    def load(self, port, body, requests, connections, calls, scheme="http"):
        """How many of the requests were answered with status 200 of HTTP."""
        text = self.send("h2load", ["-n", str(requests), "-c", str(connections), "-m", str(calls)], port, body, scheme)
        return int(re.search(r"status codes: (\d+) 2xx", text)[1])

    def export(self, port, body, scheme="http"):
        """What nghttp shows of one call."""
        return self.send("nghttp", ["-v", "-H", ":method: POST"], port, body, scheme)


class H2spec(Client):
    """The conformance tests of HTTP/2 and HPACK."""

    name, version, fixture = "h2spec", "2.2.1", "h2spec"

    @classmethod
    def installed(cls):
        return golang.program(cls.name, cls.version, package="github.com/summerwind/h2spec/cmd/h2spec")

    def judge(self, port, *options):
        """{(section, test): whether it passed}; what it skipped is not there."""
        with self.directory(()) as place:
            # Its status says whether any test failed, which is for the caller to judge.
            process.run(["sh", "-c", '"$@"; [ -s report.xml ]', "sh", self.installed(), "-h", "127.0.0.1", "-p", str(port),
                         "-P", HEALTH, "-o", "1", "-j", "report.xml", *options], place / "log", RUN_S, place)
            return {(case.get("package"), case.get("classname")): case.find("failure") is None and case.find("error") is None
                    for case in xml.etree.ElementTree.parse(place / "report.xml").iter("testcase")
                    if case.find("skipped") is None}
