# SPDX-License-Identifier: Apache-2.0
"""HTTP content codings by other implementations than ours: python's zlib, lz4 and snappy, and the zstd program.

The framing of snappy is made here, because Debian 12's python3-snappy cannot compute its checksum."""
import gzip
import struct
import subprocess
import zlib

import lz4.frame
import snappy


def _crc32c_table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
        yield byte


CRC32C = list(_crc32c_table())


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


def snappy_chunk(kind, body):
    return bytes([kind]) + struct.pack("<I", len(body))[:3] + body


def snappy_framed(data):
    out = snappy_chunk(0xff, b"sNaPpY")
    for at in range(0, len(data), 65536):
        part = data[at:at + 65536]
        crc = crc32c(part)
        masked = ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff
        out += snappy_chunk(0, struct.pack("<I", masked) + snappy.compress(part))
    return out


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def raw_deflate(data):
    c = zlib.compressobj(wbits=-15)
    return c.compress(data) + c.flush()


# Content-Encoding -> encoder, as the Collector's confighttp names them.
ENCODERS = {
    "gzip": gzip.compress,
    "zstd": zstd,
    "zlib": zlib.compress,
    "deflate": zlib.compress,
    "snappy": snappy.compress,
    "x-snappy-framed": snappy_framed,
    "lz4": lz4.frame.compress,
}


def snappy_unframed(data):
    out, at = b"", 0
    while at < len(data):
        kind, length = data[at], int.from_bytes(data[at + 1:at + 4], "little")
        body, at = data[at + 4:at + 4 + length], at + 4 + length
        if kind == 0xff:
            assert body == b"sNaPpY"
            continue
        assert kind in (0, 1)
        plain = snappy.decompress(body[4:]) if kind == 0 else body[4:]
        crc = crc32c(plain)
        assert int.from_bytes(body[:4], "little") == ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff
        out += plain
    return out


def unzstd(data):
    return subprocess.run(["zstd", "-q", "-d", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


# Content-Encoding -> decoder; None: no such header.
DECODERS = {
    None: bytes,
    "gzip": gzip.decompress,
    "zstd": unzstd,
    "zlib": zlib.decompress,
    "deflate": zlib.decompress,
    "snappy": snappy.decompress,
    "x-snappy-framed": snappy_unframed,
    "lz4": lz4.frame.decompress,
}
