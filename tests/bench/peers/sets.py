# SPDX-License-Identifier: Apache-2.0
"""The sets of bodies of the bench, as files, made once and kept in build/."""
import gzip
import hashlib
import json
import pathlib
import shutil

import bodies
from harness import build, corpus, otlp

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
TOOL = ROOT / "build/release/tests/support/pprof_tool"
AGENT = "made eBPF agent"
# name: size, number of bodies, resources
LADDER = {"9 KB": (9000, 96, 1), "60 KB": (60000, 48, 1), "300 KB": (300000, 16, 1), "3 MB": (3000000, 5, 1),
          "300 KB, 10 resources": (300000, 16, 10), "300 KB, 100 resources": (300000, 16, 100)}
NAMED_SIZE, NAMED_COUNT = 300000, 12
OVER_HTTP = ("9 KB", "300 KB")
PROTOBUF, JSON = "application/x-protobuf", "application/json"


class Bodies:
    """One set in one coding. ladder: one of the ladder of sizes, not one of the five that the bars are judged by. media:
    for HTTP."""

    def __init__(self, directory, name, coding, ladder, media=None):
        self.name, self.coding, self.ladder, self.media = name, coding, ladder, media
        self.zipped = coding == "gzip"
        self.counts = json.loads((directory / "counts.json").read_text())
        suffix = "json" if media == JSON else "pb.gz" if self.zipped else "pb"
        self.files = [directory / ("%03d.%s" % (i, suffix)) for i in range(len(self.counts))]
        self.mean = sum(c["bytes"] for c in self.counts) // len(self.counts)

    def expected(self, requests):
        """What so many requests hold, sent in turn: bytes, uncompressed; samples; timestamps; the sum of the values."""
        whole, rest = divmod(requests, len(self.counts))
        total = {what: sum(c[what] * (whole + (i < rest)) for i, c in enumerate(self.counts)) for what in self.counts[0]}
        return {**total, "values": total["values"] % (1 << 64)}


def count(data):
    """By an independent decoder."""
    message = otlp.parse(data)
    samples = [s for rp in message.resource_profiles for sp in rp.scope_profiles for p in sp.profiles for s in p.samples]
    return {"bytes": len(data), "samples": len(samples), "timestamps": sum(len(s.timestamps_unix_nano) for s in samples),
            "values": sum(sum(s.values) for s in samples)}


def save(directory, made):
    directory.mkdir(parents=True)
    for i, data in enumerate(made):
        (directory / ("%03d.pb" % i)).write_bytes(data)
        (directory / ("%03d.pb.gz" % i)).write_bytes(gzip.compress(data, 6))
        if directory.name in OVER_HTTP:
            (directory / ("%03d.json" % i)).write_bytes(otlp.to_json(data))
    (directory / "counts.json").write_text(json.dumps([count(data) for data in made]))


def cache():
    """The directory of all sets, made if need be; another one when the code that makes them changes."""
    code = b"".join(pathlib.Path(file).read_bytes() for file in (bodies.__file__, build.__file__, __file__))
    place = ROOT / "build/bench-bodies" / hashlib.sha256(code + str(corpus.directory()).encode()).hexdigest()[:16]
    if not place.is_dir():
        shutil.rmtree(place.parent, ignore_errors=True)
        making = place.with_suffix(".new")
        for name, (size, number, resources) in LADDER.items():
            save(making / "ladder" / name, bodies.made(AGENT, size, number, resources))
        five = bodies.real(TOOL) or {name: bodies.made(name, NAMED_SIZE, NAMED_COUNT, seed=2) for name in bodies.MADE}
        for name, made in five.items():
            save(making / "named" / name, made)
        making.rename(place)
    return place


def all(directory, quick):
    """Plain first, then gzip."""
    ladder = ["9 KB", "300 KB"] if quick else list(LADDER)
    named = sorted(p.name for p in (directory / "named").iterdir())
    for coding in ("none", "gzip"):
        for name in ladder:
            yield Bodies(directory / "ladder" / name, name, coding, True)
        for name in named[:2] if quick else named:
            yield Bodies(directory / "named" / name, name, coding, False)


def of_connections(directory):
    """What is measured by the number of connections."""
    for name in ("9 KB", "60 KB", "300 KB"):
        yield Bodies(directory / "ladder" / name, name, "none", True)


def over_http(directory):
    """In protobuf, with gzip, and in JSON."""
    for media, coding in ((PROTOBUF, "none"), (PROTOBUF, "gzip"), (JSON, "none")):
        for name in OVER_HTTP:
            yield Bodies(directory / "ladder" / name, name, coding, True, media)


def zipped_over_http(directory):
    """What arrives with gzip."""
    for name in OVER_HTTP:
        yield Bodies(directory / "ladder" / name, name, "gzip", True, PROTOBUF)


def to_kafka(directory):
    """What fits into a message: the Collector splits none."""
    for name in ("60 KB", "300 KB"):
        yield Bodies(directory / "ladder" / name, name, "none", True)
