# SPDX-License-Identifier: Apache-2.0
"""What hostile senders send: bombs in every coding, and numbers that are no index."""
import gzip
import subprocess
import zlib

import lz4.frame
import snappy

from harness import build as make
from harness import codings
from harness.poison import field

MIB = 1 << 20


def zstd(data):
    return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout


def zeros(command, mib):
    """Compressed zeros, made as a stream."""
    with subprocess.Popen(["head", "-c", str(mib * MIB), "/dev/zero"], stdout=subprocess.PIPE) as source:
        return subprocess.run(command, stdin=source.stdout, capture_output=True, check=True).stdout


BOMBS = {
    "gzip": lambda: zeros(["gzip", "-9"], 200),
    "gzip of many members": lambda: zeros(["gzip", "-9"], 4) * 50,
    "gzip of tiny members": lambda: gzip.compress(b"") * 50000,
    "gzip in gzip": lambda: gzip.compress(zeros(["gzip", "-9"], 200)),
    "gzip in zstd": lambda: zstd(zeros(["gzip", "-9"], 200)),
    "zstd": lambda: zeros(["zstd", "-19", "-c"], 1024),
    "zstd of many frames": lambda: zeros(["zstd", "-c"], 4) * 50,
    "zstd of tiny frames": lambda: zstd(b"") * 50000,
    "zstd of skippable frames": lambda: (b"\x50\x2a\x4d\x18" + b"\0\0\0\0") * 50000,
    "zstd with a huge window": lambda: zeros(["zstd", "--ultra", "--long=31", "-c"], 64),
    "zstd that claims a huge size": lambda: b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 7 + b"\x7f" + b"\x01\0\0",
    "zlib": lambda: zlib.compress(bytes(200 * MIB), 9),
    "snappy": lambda: snappy.compress(bytes(200 * MIB)),
    "snappy that claims a huge size": lambda: b"\xff\xff\xff\xff\x0f\0a",
    "framed snappy": lambda: codings.snappy_framed(bytes(65536))[:10] + codings.snappy_framed(bytes(65536))[10:] * 3200,
    "framed snappy of empty chunks": lambda: b"\xff\x06\0\0sNaPpY" + b"\x80\0\0\0" * 500000,
    "lz4": lambda: lz4.frame.compress(bytes(200 * MIB)),
    "lz4 of tiny frames": lambda: lz4.frame.compress(b"") * 50000,
    "gzip of empty table entries": lambda: gzip.compress(field(2, b"\x32\0" * (3 * MIB)), 9),
    "gzip of empty strings of a pprof": lambda: gzip.compress(b"\x32\0" * (3 * MIB), 9),
}
HTTP_CODINGS = {"gzip": "gzip", "zstd": "zstd", "zlib": "deflate", "snappy": "snappy", "framed snappy": "x-snappy-framed", "lz4": "lz4",
                "lz4 of tiny frames": "lz4", "snappy that claims a huge size": "snappy"}


def hostile_indices():
    """(name, message) with numbers that are no index."""
    for number in (-1, -2 ** 31, 2 ** 31 - 1, 10 ** 6):
        for name in ("stack", "link", "attribute", "location", "function", "mapping", "string", "unit", "key", "type"):
            m = make.Maker()
            f = m.function("f")
            if name == "function":
                f = number
            x = m.location([f], mapping=number if name == "mapping" else 0)
            if name == "string":
                m.d.function_table[1].name_strindex = number
            a = m.attribute("thread", "x")
            if name == "unit":
                m.d.attribute_table[a].unit_strindex = number
            if name == "key":
                m.d.attribute_table[a].key_strindex = number
            stack = m.stack([number if name == "location" else x])
            sp = m.scope(m.resource({"service.name": "x"}))
            good = m.profile(sp, time=1)
            good.samples.add(stack_index=m.stack([m.location([m.function("good")])]), values=[7])
            p = m.profile(sp, time=2)
            if name == "type":
                p.sample_type.type_strindex = number
            p.samples.add(stack_index=number if name == "stack" else stack, link_index=number if name == "link" else 0,
                          attribute_indices=[number if name == "attribute" else a], values=[1])
            yield "%s %d" % (name, number), m.message
