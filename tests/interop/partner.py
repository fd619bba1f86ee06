# SPDX-License-Identifier: Apache-2.0
"""What all partners have in common: they are installed, started on free loopback ports, made ready, stopped."""
import contextlib
import http.client
import subprocess

import grpc

from interop import process


class Partner:
    """with Partner() as p: ... — a class for each partner says what differs.

    `installed()` gives the program's path or raises Absent. `PORTS` names the ports; `port[name]` is the number, chosen
    here unless given. `command()` and `ready()` may use `port` and `directory`, which is gone after the stop.
    """

    name, version = None, None
    fixture = None # several versions of a partner are one fixture, which takes each in turn
    PORTS = ("http",)

    def __init__(self, **ports):
        free = iter(process.free_ports(len(self.PORTS)))
        self.port = {name: ports.get(name) or next(free) for name in self.PORTS}
        self.process, self.directory, self.held = None, None, contextlib.ExitStack()

    @classmethod
    def installed(cls):
        raise NotImplementedError

    @classmethod
    def shown_version(cls):
        return cls.version

    def command(self, program):
        raise NotImplementedError

    def ready(self):
        raise NotImplementedError

    def __enter__(self):
        program = self.installed()
        for name, port in self.port.items():
            if process.taken(port):
                raise process.Unready("%s %s: the %s port %d is taken" % (self.name, self.version, name, port))
        try:
            self.directory = self.held.enter_context(process.directory())
            self.process = process.Process(self.command(program), self.directory / "log", self.directory)
            self.held.callback(self.process.kill)
            self.process.until(self.ready, "%s %s is not ready" % (self.name, self.version))
        except BaseException:
            self.held.close()
            raise
        return self

    def __exit__(self, *_):
        self.process.stop()
        self.held.close()

    @contextlib.contextmanager
    def explained(self):
        """A request that fails because the partner has died says so."""
        try:
            yield
        except (OSError, http.client.HTTPException, grpc.RpcError) as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.popen.wait(0.2)
            if self.process.ended() is None:
                raise
            raise process.Unready("%s %s ended with status %s\n%s" % (
                self.name, self.version, self.process.ended(), self.process.log())) from error
