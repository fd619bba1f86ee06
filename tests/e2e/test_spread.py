# SPDX-License-Identifier: Apache-2.0
"""Connections are spread over the I/O threads, also those of servers that have only one each."""
import collections
import contextlib
import os
import pathlib
import re
import time

import pytest

from harness import h2
from harness.gateway import Gateway

THREADS, EPOLL = os.cpu_count(), "anon_inode:[eventpoll]"
RECEIVER = "  otlp/%d: {protocols: {%s: {endpoint: \"127.0.0.1:{port:p%d}\"}}}\n"
CONFIG = """
receivers:
%sexporters:
  file: {path: sent.binpb, format: proto}
service:
  pipelines:
    profiles: {receivers: [%s], exporters: [file]}
"""
SAY = {"grpc": h2.PREFACE, "http": b"G"}


def config(servers, protocol):
    return CONFIG % ("".join(RECEIVER % (i, protocol, i) for i in range(servers)),
                     ", ".join("otlp/%d" % i for i in range(servers)))


def inodes(connections):
    """Those of the server's ends."""
    ports = {"%04X" % c.getsockname()[1] for c in connections}
    lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {fields[9] for fields in lines if fields[2].rpartition(":")[2] in ports}


def watched(pid):
    """[inodes of the sockets that a thread's loop watches], for each loop. The loop may watch another epoll descriptor,
    libmicrohttpd's, which watches sockets."""
    targets, links, base = {}, {}, pathlib.Path("/proc/%d" % pid)
    for fd in os.listdir(base / "fd"):
        with contextlib.suppress(FileNotFoundError):
            links[fd] = os.readlink(base / "fd" / fd)
            if links[fd] == EPOLL:
                targets[fd] = re.findall(r"tfd: +(\d+)", (base / "fdinfo" / fd).read_text())
    inner = {t for fds in targets.values() for t in fds if links.get(t) == EPOLL}

    def sockets(fd):
        return [s for t in targets.get(fd, ()) for s in ([links.get(t, "")] if links.get(t) != EPOLL else sockets(t))]
    return [[s[len("socket:["):-1] for s in sockets(fd)] for fd in targets if fd not in inner]


def spread(g, connections):
    """How many of the connections each thread has that has any."""
    end = time.monotonic() + 10
    while True:
        ours = inodes(connections)
        counts = [sum(inode in ours for inode in loop) for loop in watched(g.process.pid)]
        if sum(counts) == len(connections) or time.monotonic() > end:
            return [n for n in counts if n]
        time.sleep(.05)


@pytest.mark.skipif(THREADS < 2, reason="one core has one thread of each kind")
@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("servers", [1, 8])
def test_idle_connections_are_spread_over_the_threads(build, protocol, servers):
    """64 of one server, or one of each of eight."""
    count = 64 if servers == 1 else servers
    with Gateway(build / "portcullis", config(servers, protocol)) as g, contextlib.ExitStack() as held:
        connections = [held.enter_context(h2.connected(g.port["p%d" % (i % servers)], "127.0.0.2")) for i in range(count)]
        for c in connections:
            c.sendall(SAY[protocol])
        counts = spread(g, connections)
    assert counts == [count // THREADS] * THREADS, counts
