# SPDX-License-Identifier: Apache-2.0
"""Clients of other people's HTTP/2 and gRPC: programs that are run once for a question, each in a language of its own."""
import functools
import pathlib
import re
import shutil
import subprocess
import xml.etree.ElementTree

from harness import otlp
from interop import cache, golang, process

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
PROTO = pathlib.Path(__file__).resolve().parent.parent / "proto"
DOWNLOAD_S, RUN_S = 300, 120


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


class Client:
    """`installed()` gives what a run needs, or raises Absent."""

    name, version, fixture = None, None, None

    @classmethod
    def shown_version(cls):
        return cls.version

    def run(self, *command, files=(), env=None):
        """Its output; each body of `files` is a file, by number, in its directory."""
        with process.directory() as place:
            for i, body in enumerate(files):
                (place / ("%03d" % i)).write_bytes(body)
            return process.run(command, place / "log", RUN_S, place, env)

    def statuses(self, bodies, *command, env=None):
        """The status codes that it prints, of one call for each body."""
        text = self.run(*command, *("%03d" % i for i in range(len(bodies))), files=bodies, env=env)
        return [int(line) for line in text.split()]


class Grpcurl(Client):
    """grpc-go, by hand."""

    name, version, fixture = "grpcurl", "1.9.3", "grpcurl"

    @classmethod
    def installed(cls):
        return golang.program(cls.fixture, cls.version, "github.com/fullstorydev/grpcurl/cmd/grpcurl")

    def export(self, port, messages):
        """Sends messages in JSON, in one stream of calls over one connection; its answers."""
        return self.run(self.installed(), "-plaintext", "-import-path", PROTO, "-proto", "otlp_collector.proto", "-d", messages,
                        "127.0.0.1:%d" % port, otlp.METHOD[1:])


class GrpcJava(Client):
    name, version, fixture = "grpc-java", "1.68.0", "grpcjava"
    PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

    @classmethod
    def installed(cls):
        def make(directory):
            (directory / "pom.xml").write_bytes((cache.RECIPES / "grpc-java.xml").read_bytes())
            fetched([tool("mvn"), "-q", "-B", cls.PLUGIN, "-DoutputDirectory=%s" % (directory / "lib")], directory)

        tool("javac")
        return cache.product("grpc-java", cls.version, "grpc-java.xml", make) / "lib"

    def export(self, port, bodies):
        return self.statuses(bodies, tool("java"), "-cp", "%s/*" % self.installed(), SCRIPTS / "Export.java",
                             "127.0.0.1:%d" % port)


class GrpcJs(Client):
    name, version, fixture = "grpc-js", "1.14.7", "grpcjs"

    @classmethod
    def installed(cls):
        def make(directory):
            (directory / "package.json").write_text('{"name": "grpc-js", "dependencies": {"@grpc/grpc-js": "%s"}}' % cls.version)
            (directory / "package-lock.json").write_bytes((cache.RECIPES / "grpc-js.json").read_bytes())
            fetched([tool("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], directory)

        tool("node")
        return cache.product("grpc-js", cls.version, "grpc-js.json", make) / "node_modules"

    def export(self, port, bodies):
        return self.statuses(bodies, "env", "NODE_PATH=%s" % self.installed(), tool("node"), SCRIPTS / "export.js",
                             "127.0.0.1:%d" % port)


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

    @staticmethod
    def framed(body):
        return b"\0" + len(body).to_bytes(4, "big") + body

    def load(self, port, body, requests, connections, calls):
        """How many of the requests were answered with status 200 of HTTP."""
        text = self.run("h2load", "-n", str(requests), "-c", str(connections), "-m", str(calls), *self.HEADERS, "-d", "000",
                        "http://127.0.0.1:%d%s" % (port, otlp.METHOD), files=[self.framed(body)])
        return int(re.search(r"status codes: (\d+) 2xx", text)[1])

    def export(self, port, body):
        """What nghttp shows of one call."""
        return self.run("nghttp", "-v", "-H", ":method: POST", *self.HEADERS, "-d", "000",
                        "http://127.0.0.1:%d%s" % (port, otlp.METHOD), files=[self.framed(body)])


class H2spec(Client):
    """The conformance tests of HTTP/2 and HPACK."""

    name, version, fixture = "h2spec", "2.2.1", "h2spec"

    @classmethod
    def installed(cls):
        return golang.program(cls.fixture, cls.version, "github.com/summerwind/h2spec/cmd/h2spec")

    def judge(self, port, path):
        """{section: {test: whether it passed}}; what it skipped is not there."""
        with process.directory() as place:
            # Its status says whether any test failed, which is for the caller to judge.
            process.run(["sh", "-c", '"$@"; [ -s report.xml ]', "sh", self.installed(), "-h", "127.0.0.1", "-p", str(port),
                         "-P", path, "-o", "2", "-j", "report.xml"], place / "log", RUN_S, place)
            found = {}
            for case in xml.etree.ElementTree.parse(place / "report.xml").iter("testcase"):
                if case.find("skipped") is None:
                    passed = case.find("failure") is None and case.find("error") is None
                    found.setdefault(case.get("package"), {})[case.get("classname")] = passed
            return found
