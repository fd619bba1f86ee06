# SPDX-License-Identifier: Apache-2.0
"""The manual's "See your first flame graph", done: `make run` with a Pyroscope at hand shows the gateway's own profile
under its service name, without what policy denies."""
import os
import shutil
import time

from interop import gate, process

PORTS = ["OTLP", "PPROF", "HEALTH", "SELF", "METRICS"]
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def test_the_gateways_own_profile_is_seen_under_its_name(pyroscope, gotool):
    env = dict(os.environ, CONFIG="docker/pyroscope.yaml",
               PYROSCOPE_URL="http://127.0.0.1:%d" % pyroscope.port["http"],
               **{"QUICKSTART_%s_PORT" % name: str(port) for name, port in zip(PORTS, process.free_ports(len(PORTS)))})
    with process.directory() as place:
        shutil.copytree(gate.ROOT / "docker", place / "docker")
        process.run(["docker/quickstart.sh", gate.BINARY], place / "log", 120, cwd=place, env=env)
    now = time.time_ns() // 10 ** 6
    window, mine = (now - 600 * 1000, now + 600 * 1000), {"service_name": "portcullis"}
    stacks = pyroscope.values(CPU, mine, *window)
    assert sum(stacks.values()) > 0
    functions = {frame[0] for stack in stacks for frame in stack}
    assert "file_send" in functions # the thread of main() mostly sleeps
    names = pyroscope.label_names(mine, *window)
    assert {"deployment_environment", "service_namespace"} <= set(names) and not {"host_name", "user_name"} & set(names)
    shown = [line.split()[5] for line in gotool.top(pyroscope.profile(CPU, mine, *window).SerializeToString())
             if len(line.split()) > 5 and line.split()[4].endswith("%")]
    assert len(functions.intersection(shown)) > 3
