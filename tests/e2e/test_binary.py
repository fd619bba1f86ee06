# SPDX-License-Identifier: Apache-2.0
"""The release binary itself: what the compiler and linker were told, what it exports, where its debug info is, and that no
memory of it is writable and executable at once."""
import gzip
import pathlib
import platform
import re
import shutil
import subprocess
import threading

import pytest

from harness import build as make
from harness import corpus, peers, pprof
from harness.gateway import Gateway

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/release"
BINARY = BUILD / "portcullis"
X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="of x86-64")


def shown(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, errors="replace", check=True).stdout


def readelf(*options, path=BINARY):
    return shown("readelf", "--wide", *options, path)


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]{40})", readelf("--notes", path=path))[1]


def test_it_is_position_independent_and_bound_before_it_runs():
    assert re.search(r"Type:\s+DYN \(Position-Independent Executable file\)", readelf("--file-header"))
    dynamic = readelf("--dynamic")
    assert re.search(r"FLAGS_1\).*\bNOW\b.*\bPIE\b", dynamic)
    assert not re.search(r"TEXTREL|RPATH|RUNPATH", dynamic)


def test_no_segment_is_writable_and_executable():
    segments = dict(re.findall(r"^ +(GNU_STACK|GNU_RELRO) .* ([R ][W ][E ]) +0x", readelf("--segments"), re.M))
    assert segments == {"GNU_STACK": "RW ", "GNU_RELRO": "R  "}
    assert not re.search(r"^ +LOAD .* RWE ", readelf("--segments"), re.M)


@X86
def test_every_object_is_made_for_control_flow_protection_and_the_program_for_shadow_stacks():
    assert re.search(r"x86 feature:.*SHSTK", readelf("--notes"))
    objects = readelf("--notes", path=BUILD / "libportcullis.a").split("\nFile: ")[1:]
    assert len(objects) > 100
    assert [o.split("\n")[0] for o in objects if "x86 feature: IBT, SHSTK" not in o] == []


def test_the_compiler_guarded_stacks_and_calls():
    imports = set(re.findall(r"UND (\w+)@GLIBC", readelf("--dyn-syms")))
    assert "__stack_chk_fail" in imports
    assert {"__memcpy_chk", "__snprintf_chk", "__vsnprintf_chk"} <= imports
    units = re.findall(r"DW_AT_producer.*: (GNU C.*)", readelf("--debug-dump=info", "--dwarf-depth=1", path=BUILD / "portcullis.debug"))
    assert len(units) > 100
    for unit in units:
        assert {"-fstack-clash-protection", "-fstack-protector-strong", "-fvisibility=hidden", "-fPIE"} <= set(unit.split()), unit


def test_it_exports_nothing_of_its_own():
    """But what must stand in front of functions of the C library (net/grpc/grpc_allowance.c), of OpenSSL
    (net/tls/tls_failure.c) and of the gRPC C core (net/grpc/grpc_coding.c). What is left are variables of libraries (stdout), which
    the linker copies into the program."""
    exported = [line.split()[1:] for line in shown("nm", "--dynamic", "--defined-only", BINARY).splitlines()]
    assert sorted(name for kind, name in exported if kind in "TtWi" or "@" not in name) == [
        "SSL_get_error", "_ZN9grpc_core25ParseCompressionAlgorithmEN4absl7debian311string_viewE",
        "_ZN9grpc_core28CompressionAlgorithmAsStringE26grpc_compression_algorithm", "gnutls_handshake", "recv", "recvmsg", "send",
        "sendmsg"]


def test_its_debug_info_is_a_file_of_its_own_and_its_symbols_stay():
    sections = readelf("--sections")
    assert ".debug_info" not in sections and ".symtab" in sections
    assert "portcullis.debug" in shown("readelf", "--string-dump=.gnu_debuglink", BINARY)
    debug = BUILD / "portcullis.debug"
    assert ".debug_info" in readelf("--sections", path=debug) and build_id(debug) == build_id(BINARY)
    assert re.search(r"^\w+ t file_send$", shown("nm", BINARY), re.M)


CONFIG = """
receivers:
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
processors:
  resource: {attributes: [{key: host.name, pattern: '^(?P<team>[a-z]+)-', action: extract}]}
  allowlist: {keys: [service.name], key_patterns: ['^k8s\\.[a-z]+\\.name$']}
  pii: {patterns: {ticket: {pattern: '\\bTICKET-[0-9]{4,9}\\b'}}}
exporters:
  file: {path: out.jsonl}
  otlp_grpc: {endpoint: 127.0.0.1:{port:sink}, tls: {insecure: true}}
extensions:
  pprof: {endpoint: 127.0.0.1:{port:self}}
service:
  extensions: [pprof]
  pipelines:
    profiles: {receivers: [pprof], processors: [resource, allowlist, pii], exporters: [file, otlp_grpc]}
"""


def send(gateway, body):
    return peers.post(gateway.port["pprof"], body, path="/v1/pprof?service.name=cart&host.name=web-1&k8s.pod.name=TICKET-12345")[0]


def profile_of(gateway):
    """Its own profile of a second in which it works."""
    body = gzip.compress(make.pprof(1, samples=2000, functions=500).SerializeToString())
    done = threading.Event()

    def work():
        while not done.is_set():
            send(gateway, body)
    worker = threading.Thread(target=work)
    worker.start()
    try:
        status, _, profile = peers.post(gateway.port["self"], None, path="/debug/pprof/profile?seconds=1", method="GET")
    finally:
        done.set()
        worker.join()
    assert status == 200
    return pprof.parse(corpus.inflate(profile))


def test_no_memory_of_the_process_is_writable_and_executable():
    """With regular expressions at work, and with all libraries that the program maps under way."""
    gateway = Gateway(BINARY, CONFIG)
    with peers.Sink(gateway.port["sink"]) as sink, gateway:
        assert send(gateway, gzip.compress(make.pprof(1).SerializeToString())) == 204
        gateway.until(lambda: sink.received)
        assert profile_of(gateway).sample
        maps = pathlib.Path("/proc/%d/maps" % gateway.process.pid).read_text()
    assert "libpcre2" in maps and "r-xp" in maps
    assert [line for line in maps.splitlines() if re.match(r"\S+ .wx", line)] == []


@pytest.mark.parametrize("beside", ["portcullis.debug", None, "another"])
def test_its_own_profile_has_names_always_and_files_where_the_debug_info_is_beside_it(tmp_path, beside):
    binary = shutil.copy(BINARY, tmp_path)
    if beside:
        shutil.copy(BUILD / beside if beside == "portcullis.debug" else "/usr/bin/env", tmp_path / "portcullis.debug")
    with Gateway(binary, CONFIG) as gateway:
        profile = profile_of(gateway)
    main = [m.id for m in profile.mapping if profile.string_table[m.filename] == str(binary)]
    ours = {line.function_id for l in profile.location if l.mapping_id in main for line in l.line}
    functions = [f for f in profile.function if f.id in ours]
    names = {profile.string_table[f.name] for f in functions}
    files = {profile.string_table[f.filename] for f in functions} - {""}
    assert len(names) > 10 and {"work", "decode_pprof"} & names, names
    assert bool(files) == (beside == "portcullis.debug"), files
