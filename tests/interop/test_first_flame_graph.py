# SPDX-License-Identifier: Apache-2.0
"""The manual's "See your first flame graph", done: `make run` with a Pyroscope at hand shows the gateway's own profile
under its service name, without what policy denies."""
import json
import os
import shutil
import subprocess
import time

from harness import book
from interop import gate, process

PORTS = ["OTLP", "PPROF", "HEALTH", "SELF", "METRICS"]
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def names_by_the_manuals_query(pyroscope):
    """What the command that the manual prints answers."""
    [command] = [b.text for b in book.blocks(gate.ROOT, "docs/manual/first-five-minutes.md") if "SelectMergeStacktraces" in b.text]
    command = command.replace("127.0.0.1:4040", "127.0.0.1:%d" % pyroscope.port["http"])
    answer = subprocess.run(["bash", "-e", "-c", command], capture_output=True, text=True, check=True).stdout
    return set(json.loads(answer)["flamegraph"]["names"])


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
    assert len(functions.intersection(names_by_the_manuals_query(pyroscope))) > 3
