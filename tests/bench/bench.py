#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make bench: what it costs, as instruction counts and ratios in one run; fails when a bar is missed.

Real profiles are taken from the corpus where it is present; else requests of the same shape are made. The series of
consecutive profiles is recorded by the gateway from itself, under load.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/release"
sys.path[:0] = [str(ROOT / "build/python"), str(ROOT / "tests")]

from harness import build as make  # noqa: E402
from harness import corpus, generations, otlp, peers, profcheck  # noqa: E402
from harness.gateway import Gateway  # noqa: E402

RATIO_MAX, PIPELINE_MAX, RSS_MAX, READY_CPU_MAX, SIZE_MAX = 0.33, 65.0, 32 << 20, 0.050, 1.02
SPLIT_GROWTH_MAX = 1.1
GENERATION_MAX = 2.0  # of what a request in the current layout costs
CALL_MAX = 48000
JSON_MAX = 32.0
missed = []


def row(name, value, limit, unit):
    ok = value <= limit
    print("%-58s %10.3f %-14s bar %-8g %s" % (name, value, unit, limit, "ok" if ok else "MISSED"))
    if not ok:
        missed.append(name)


def instructions(program, *arguments, passes=2):
    """(instructions of one pass, its printed line); a difference of two runs is free of what surrounds the pass."""
    def run(passes):
        with tempfile.NamedTemporaryFile() as out:
            done = subprocess.run(
                ["valgrind", "--tool=callgrind", "--toggle-collect=bench_pass", "--callgrind-out-file=" + out.name,
                 str(BUILD / "tests/bench" / program), "-n", str(passes), *map(str, arguments)],
                capture_output=True, text=True, check=True)
        return int(re.search(r"Collected : (\d+)", done.stderr)[1]), done.stdout
    counted, line = run(passes)
    return counted / passes, dict(re.findall(r"(\w+) ([\d.e+]+)", line))


def five_files(directory):
    """Five real messages of different shape, or five made ones."""
    real = corpus.files("otlp/*k8s*-v111.pb") + corpus.files("otlp/*elastic*-v111.pb")[::3]
    if len(real) >= 5:
        return real[:5]
    shapes = [dict(samples=50), dict(samples=2000), dict(samples=300, resources=20), dict(samples=300, profiles=4),
              dict(samples=100, functions=1500)]
    paths = []
    for i, shape in enumerate(shapes):
        paths.append(directory / ("made-%d.pb" % i))
        paths[-1].write_bytes(make.request(i, **shape).SerializeToString())
    return paths


def bench_codec(files):
    for path in files:
        theirs, _ = instructions("bench_collect", "-p", path)
        resources = len(otlp.parse(path.read_bytes()).resource_profiles)
        for what, options in ("decode+collect", []), ("decode+policy+collect", ["-a"]):
            ours, line = instructions("bench_collect", *options, path)
            row("%s / protobuf-c: %s" % (what, path.name[:22]), ours / theirs, RATIO_MAX,
                "(%.1f Ir/B)" % (ours / int(line["in"])))
            row("  heap allocations a request", float(line["allocations"]), 8 + resources, "")


def bench_generations(directory):
    """A request of an older generation, and the request in the current layout that it becomes."""
    for release in generations.OLD:
        logical = generations.ordinary()
        old, current = directory / (release + "-old.pb"), directory / (release + "-current.pb")
        old.write_bytes(generations.write(release, logical))
        current.write_bytes(generations.expected(release, logical).SerializeToString())
        theirs, ours = (instructions("bench_collect", "-a", path)[0] for path in (old, current))
        row("decode+policy+collect: OTLP %s / current" % release.replace("_", "."), theirs / ours, GENERATION_MAX,
            "(%.1f Ir/B)" % (theirs / old.stat().st_size))


def bench_json(files, directory):
    """The same messages as OTLP/JSON, which is about three times as long."""
    for path in files[:3]:
        text = directory / (path.name + ".json")
        text.write_bytes(otlp.to_json(path.read_bytes()))
        ours, line = instructions("bench_collect", text)
        row("OTLP/JSON: translate+decode+collect: %s" % path.name[:22], ours / int(line["in"]), JSON_MAX, "Ir/B")


def bench_pipeline(series):
    ours, line = instructions("bench_pipeline", *series)
    row("gzip, allowlist, pii, batch 10, zstd-1: %d requests" % len(series), ours / int(line["in"]), PIPELINE_MAX,
        "Ir/B")


def bench_split():
    """Parts stay as they are while packet and tables grow tenfold and hundredfold: so must the cost of each byte."""
    for limit in ("-b8000", "-s150", "-p1"):
        each = []
        for scale in (1, 10, 100):
            counted, line = instructions("bench_split", limit, scale, passes=1)
            each.append(counted / int(line["in"]))
        row("splitting by %s: 10x / 1x" % limit, each[1] / each[0], SPLIT_GROWTH_MAX, "(%.0f Ir/B)" % each[0])
        row("splitting by %s: 100x / 1x" % limit, each[2] / each[0], SPLIT_GROWTH_MAX, "(%s parts)" % line["parts"])


def instructions_of_calls(endpoint, calls):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(BUILD / "tests/bench/bench_calls"),
                           "-n", str(calls), "-k", "8", "-b", "9000", endpoint], capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def bench_calls():
    """A call of the gRPC client, the C core's part included: the difference of two runs."""
    with subprocess.Popen([BUILD / "tests/bench/peers/sink", "-t"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sink:
        endpoint = "127.0.0.1:" + sink.stdout.readline().split()[1]
        few, many = (instructions_of_calls(endpoint, calls) for calls in (200, 1200))
        sink.stdin.close()
    row("a call of the gRPC client, 9 KB, 8 in flight", (many - few) / 1000, CALL_MAX, "Ir")


def cpu_seconds(pid):
    fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 512, spike_limit_mib: 128}
  resource: {attributes: [{key: service.namespace, value: payments, action: upsert}]}
  allowlist: {keys: [service.name]}
  pii: {}
  batch: {timeout: 1s}
exporters:
  file: {path: out.pb, format: proto}
  debug: {}
extensions:
  pprof: {endpoint: 127.0.0.1:{port:self}}
service:
  extensions: [pprof]
  pipelines:
    profiles: {receivers: [otlp, pprof], processors: [memory_limiter, resource, allowlist, pii, batch], exporters: [file, debug]}
"""


def bench_start():
    with Gateway(BUILD / "portcullis", CONFIG) as gateway:
        row("CPU from start to ready", cpu_seconds(gateway.process.pid), READY_CPU_MAX, "s")
        time.sleep(1)
        row("resident memory, idle", gateway.rss()["VmRSS"] / (1 << 20), RSS_MAX / (1 << 20), "MiB")


def record(gateway, count):
    """Consecutive profiles of the gateway under load, taken by itself, a second each."""
    body = make.pprof(1, samples=2000, functions=500).SerializeToString()
    loading = True

    def load():
        while loading:
            peers.post(gateway.port["pprof"], body, path="/v1/pprof?service.name=load")
    threads = [threading.Thread(target=load) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for _ in range(count):
            status, _, profile = peers.post(gateway.port["self"], None, path="/debug/pprof/profile?seconds=1",
                                            method="GET")
            assert status == 200, (status, profile)
            yield profile
    finally:
        loading = False
        for t in threads:
            t.join()


PLAIN = """
receivers:
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:{port:sink}, tls: {insecure: true}, compression: none}
service:
  pipelines:
    profiles: {receivers: [pprof], exporters: [otlp_grpc]}
"""


def bench_series(directory, count=100):
    """A series of profiles as OTLP files: what the whole way costs on it, and how small a batch of it is."""
    with Gateway(BUILD / "portcullis", CONFIG) as gateway:
        profiles = list(record(gateway, count))
    gateway = Gateway(BUILD / "portcullis", PLAIN)
    with peers.Sink(gateway.port["sink"]) as sink, gateway:
        for profile in profiles:
            assert peers.post(gateway.port["pprof"], profile, path="/v1/pprof?service.name=portcullis")[0] == 204
        gateway.until(lambda: len(sink.received) == count)
    paths = []
    for i, data in enumerate(sink.received):
        paths.append(directory / ("series-%03d.pb" % i))
        paths[-1].write_bytes(data)
    bench_pipeline(paths)
    subprocess.run([BUILD / "tests/support/collect_tool", "-b", str(count), directory / "batch", *paths], check=True,
                   stdout=subprocess.DEVNULL)
    message = otlp.parse((directory / "batch.0").read_bytes())
    if faults := profcheck.structure(message):
        sys.exit("the batch is not sound: %s" % faults)
    alone = sum(p.stat().st_size for p in paths)
    row("a batch of %d recorded profiles / its smallest encoding" % count, message.ByteSize() / otlp.smallest(message),
        SIZE_MAX, "(%.2f of alone)" % (message.ByteSize() / alone))


def main():
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        bench_codec(five_files(directory))
        bench_generations(directory)
        bench_json(five_files(directory), directory)
        bench_split()
        bench_calls()
        bench_series(directory)
        bench_start()
    if missed:
        print("missed: " + "; ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
