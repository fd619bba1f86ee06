# SPDX-License-Identifier: Apache-2.0
"""Starts one partner by hand, built if need be, until Ctrl-C. From the root of the repository:

    make build/python/made    # the messages, once
    /usr/bin/python3 -m tests.interop.run pyroscope http=4040
    /usr/bin/python3 -m tests.interop.run parca http=7070
    /usr/bin/python3 -m tests.interop.run collector otlp=4317

Of several versions the newest is started; pyroscope-1.12.0 is that one. Ports that are not named are chosen. `build`
instead of a name builds them all and starts none.
"""
import pathlib
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "build" / "python"), str(ROOT / "tests")]

from interop import partners, process, table  # noqa: E402 (the paths come first)


SERVERS = {name: partner for partner in partners.ALL if hasattr(partner, "PORTS")
           for name in (partner.fixture, "%s-%s" % (partner.fixture, partner.version))}


def build():
    for partner in partners.ALL:
        print("%s %s: " % (partner.name, table.version(partner)), end="", flush=True)
        try:
            partner.installed()
            print("is there", flush=True)
        except process.Absent as reason:
            print(reason, flush=True)
    return 0


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in [*SERVERS, "build"]:
        sys.exit(__doc__)
    if sys.argv[1] == "build":
        return build()
    ports = {name: int(port) for name, port in (argument.split("=") for argument in sys.argv[2:])}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with SERVERS[sys.argv[1]](**ports) as partner:
            print("%s %s, process %d: %s" % (partner.name, partner.version, partner.process.pid,
                                             ", ".join("%s 127.0.0.1:%d" % p for p in partner.port.items())), flush=True)
            partner.process.popen.wait()
            print(partner.log())
            return 1
    except KeyboardInterrupt:
        return 0
    except (process.Absent, process.Unready) as reason:
        print(reason, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
