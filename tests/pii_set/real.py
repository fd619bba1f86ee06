# SPDX-License-Identifier: Apache-2.0
"""Names of functions in real profiles. What is personal in them is a user's name, where a profiler writes names with paths."""
import re

import otlp_profiles_pb2 as pb
import pprof_pb2
from google.protobuf.message import DecodeError

from harness.corpus import inflate
from pii_set import Entry, Span

HOME = re.compile(r"^(?:file://)?/(?:home|Users)/([^/]+)/")


def _dictionary(table, functions, name, system_name):
    return {table[i] for f in functions for i in (getattr(f, name), getattr(f, system_name))}


def _names(directory):
    found = set()
    for path in sorted((directory / "otlp").glob("*-v111.pb")):
        d = pb.ProfilesData.FromString(path.read_bytes()).dictionary
        found |= _dictionary(d.string_table, d.function_table, "name_strindex", "system_name_strindex")
    for path in sorted((directory / "pprof").glob("*.pb*")):
        try:
            p = pprof_pb2.Profile.FromString(inflate(path.read_bytes()))
        except (DecodeError, UnicodeDecodeError):
            continue  # not every one is sound
        found |= _dictionary(p.string_table, p.function, "name", "system_name")
    return sorted(found - {""})


def entries(directory):
    """Of a corpus; none without one."""
    for name in _names(directory) if directory else ():
        home = HOME.match(name)
        spans = (Span("home_directory", *home.span(1), *home.span(1)),) if home else ()
        yield Entry(name, spans, "function", "real profiles")
