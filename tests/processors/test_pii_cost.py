# SPDX-License-Identifier: Apache-2.0
"""What a hostile string costs the detectors per byte, beside what real strings cost: instructions, counted by callgrind in
one run. The detectors stop when a string has had the effort that it is worth (PII_EFFORT). The most expensive inputs that
were found by searching (tests/bench/pii/search_cost.py, and the fuzz target `cost`) are among the seeds of the target, and so
are counted here."""
import itertools
import pathlib
import random
import re
import subprocess

import otlp_profiles_pb2 as pb
import pprof_pb2
import pytest
from google.protobuf.message import DecodeError

from harness.corpus import inflate

# Below so many bytes it is the string that costs, not its bytes: a short one may cost what one of this length may.
LENGTH_MIN = 64
# Instructions for a byte on average, of usual strings and of those among the real ones that are as long as the hostile ones.
AVERAGE_MAX = {"made": 30, "real": 25, "long": 33}
# And of a hostile string; how many times the average of long ones that may be.
HOSTILE_MAX = 93
HOSTILE_RATIO_MAX = 3.0
SEEDS = pathlib.Path(__file__).resolve().parent.parent / "fuzz" / "seeds" / "cost"

# Repeated, they are what the detectors' grammars are about; most are never quite a match.
UNITS = [
    "4", "41", "0", "4111111111111111", "4-", "4 ", "41 ", "411 ", "4111 ", "4111-", "41111 ", "411.", "37828224631000 ",
    "4111 1111 1111 1112 ", "1.1.1.1.", "256.1.1.1 ", "1.1.1.1 ", "202-555-", "(202)", "+1", "+1 2", "+1 202-555-0143-",
    "111-11-1111-", "000-00-0000 ", "2341 2341 2346 ", "2341", "ABCPE1234", "ABCPE1234F ", "f81d4fae-",
    "f81d4fae-7dec-11d0-a765-", ":", "f:", "ffff:", "f::", "abcd:", "2001:db8:", "a:a:a:a:a:a:a:ag ", "a:a:a:a:a:a:: ",
    "2001:2001::", "deadbeef", "aGVsbG8gd29ybGQ", "@", "a@", "a@b.", "@b.co", "a@b.co ", "a@v1.2 ", "a@b.service ", ".", "/",
    "/home/", "/home/a", "//home//", "/root/home/", "/Volumes/aaaaaaaa", "/Users/a", "\\users\\a", "c:/users/", "c:/a/b/",
    "c:", "c:/", "/home/x/build/a/", "/builds/", "/builds/a/", "/__w/a/", "/workspace/", "jenkins/workspace/",
    "jenkins", "/agent/", "/_bazel_", "/go-build1", "Bearer ", "bearer:x", "bearer ===", "bear", "%20", "%5B", "%2", "?",
    "?a", "?a=", "://", "://a?", "http://a/?a=b ", "ImFsZyI", "ImFsZyI.", "JhbGci", "iYWxnI", "AKIA", "A", "AIza", "gh",
    "ghp_", "github_pat_", "npm_", "sk_live_", "xoxb-", "glpat-", "sk-ant-", "sk-", "GOCSPX-", "ya29.", "SG.", "Key=",
    "AccountKey=", "1Q~", "aaa1Q~", "PRIVATE KEY", "-----BEGIN ", "-", "+", " ", "a", "\u00e9", "\0", "\n", "_",
    "@a.b:c-d/e\\f?g=h+i_j~A1 %20", "%40", "a%40b.", "&#64;", "&#0", "&#000064;", "&commat;", "%2540", "%25", "%252540a.", "\\x40", "\\\\", "\\\\u0040a.", "a@b.cc,", "://a:b@c.de,", "a.A@1f2e3.get ", "\\u0040", "\uff20", "a\uff20b\uff0e", "ip-", "ip-1-1-1-", "::1",
    "aa:bb:", "aa:bb:cc:dd:ee:ff:", "SA50", "3530", "password: ", ";pwd=", ";pwd=a/", "/a;pwd=b", "://a:" + 24 * "@b.co", "://a:" + 17 * "a@b.co,", "token: ", "token: a1a1a1a1a1a1a1a1", "?a=true&", "?v=", "a.js?v=1", "a.B$C@1f2e3d4.x ", "\\/home\\/", "\\Program Files\\a\\1.1.1.1\\",
    "aa-bb-cc-", "0a1b.2c3d.", "Key", "secret=", "password", "password=", "token%3D", "token%26",
    "\"token\":", "\"pwd\": \"", "-auth ", "a-key: ", "--token ", "://a:b@", "://a:", "a@a@:", "Basic ", "Basic YTpi", "basic%20",
    "GB82WEST", "GB82 WEST ", "NO9386011117947 ", "4111.", "4111.1111.1111.1112 ", "4111_", "4111%20", "1-202-555-", "%2B1202555",
    "%2Fhome%2F", "%5Cusers%5C", "\\\\a\\home\\b", "\\\\a\\b\\c\\users\\", "HarddiskVolume1\\users\\a", "/home/./", "/home/../",
    "/home/a/../", "GET /home/a ", "-I/home/a ", "/Users/a B ", "ssh://a/home/b ", "webpack://a.js?b ", "glsa_", "glc_", "hf_",
    "do", "dop_v1_", "hvs.", "shpat_", "dapi", "SK", "TT3", "ATATT3", "lin_api_", "hooks.slack.com/",
    "Users/", "LT20 ", "ZZ00 ", "GB82 ", "PL28 AAAA ", "A ", "AC ", "ACA ", "a:a:a:a:a:a:a.", "%40b.co", "E://a:b@", "1::1.", "Basic aaaaaaaa ",
    "00:11:22:3300:11:22:33::1.", "AIzaAIzaAIzaAIzaAIzaAIzaAIzaAIzaAI ", "-----BEGIN A ", "://a?b ", "a-1.1.1.1.a ", "\\u/u", "password: ",
    "pwd = ", "pwd : ", "pwd => ", " : ", " = ", "\"pwd\"=>", "\"pwd\" : \"a", "secret_key_base=", "sessid=", "token='b'=>'", "n1.1.1.1.\\", "%3D1.1.1.1 ", "\\n1.1.1.1 ",
    ":\\/\\/", ":\\/\\/a:b@", "/_work/", "/_work/a/a/", "\\_work\\", "gl", "glrt-", "%252Fhome%252F", "%2525252Fhome", "/home1/a", "\\\\?\\UNC\\a\\b\\users\\",
    "%SystemDrive%\\users\\a", "hooks.slack.com%2F", "hooks.slack.com\\/", "Bearer a%2F", "Bearer aaaaaaaa%2Faaaaaaa1", 32 * "a" + "AccountKey=", "%AKIA", "%3DAKIA", "%3DGB82",
    "?a=b://u:bearer=token=AIza-glpat-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ATCTT3-ImFsZyI-JhbGci-iYWxnI-" + 400 * "a",
]
# For pairs: what is dense for each detector. The tail has what the selection asks for.
DENSE = [
    "a@b.co ", "%40b.co", "1.1.1.1 ", "256.1.1.1 ", "ip-1-1-1-", "f:", "1::1.", "2001:db8:", "aa:bb:", "aa-bb-cc-", "ImFsZyI", "sk-", "AKIA", "Key=",
    "4111 ", "4111-", "4111_", "2341 2341 2346 ", "LT20 ", "111-11-1111-", "+1 202-555-0143-", "202-555-", "ABCPE1234F ", "Bearer ", "Basic QQ ",
    "pwd=", "--token ", "\"pwd\": \"", "X-Key: ", "://a:b@", "/home/", "Users/", "\\users\\", "%2Fhome%2F", "?a=b ", "://a?b ", "/builds/a/",
    "c:/a/b/", "/_bazel_", "work/", "pwd = ", "\"pwd\"=>\"", ":\\/\\/a:b@", "%3D1.1.1.1 ", "/_work/a/a/", "gl",
]
TAIL = " a@b.:-/\\?=+_~%\"'A1 ::::: ----- 123456789012 .."


def made():
    """Strings as profiles have them."""
    draw = random.Random(1)
    words = ["get", "Handler", "map", "Request", "node", "alloc", "Vec", "string", "value", "run", "Context", "poll", "io"]

    def word():
        return draw.choice(words)
    shapes = [
        lambda: "github.com/%s/%s/%s.(*%s).%s" % tuple(word() for _ in range(5)),
        lambda: "runtime.%s%s" % (word(), word()),
        lambda: "com.example.%s.%s$%s.%s" % tuple(word() for _ in range(4)),
        lambda: "std::%s<%s::%s, std::allocator<%s>>::%s(int)" % tuple(word() for _ in range(5)),
        lambda: "_ZN4core3ops8function6%s%s17h%016xE" % (word(), word(), draw.getrandbits(64)),
        lambda: "/usr/lib/go/src/%s/%s_%s.go" % (word(), word(), word()),
        lambda: "/app/node_modules/%s-%s/dist/%s.js:%d:%d" % (word(), word(), word(), draw.randrange(900), draw.randrange(90)),
        lambda: "%s_%s_%s" % (word(), word(), word()),
        lambda: "%040x" % draw.getrandbits(160),
        lambda: "%s-%s-%08x-%s" % (word(), word(), draw.getrandbits(32), word()),
        lambda: "v%d.%d.%d" % tuple(draw.randrange(30) for _ in range(3)),
    ]
    return sorted({draw.choice(shapes)() for _ in range(3000)})


def real(corpus):
    """All strings of the corpus."""
    texts = set()
    for path in sorted((corpus / "otlp").glob("*-v111.pb")):
        texts.update(pb.ProfilesData.FromString(path.read_bytes()).dictionary.string_table)
    for path in sorted((corpus / "pprof").glob("*.pb*")):
        try:
            texts.update(pprof_pb2.Profile.FromString(inflate(path.read_bytes())).string_table)
        except (DecodeError, UnicodeDecodeError):
            continue  # not every one is sound
    return sorted(texts - {""})


def hostile():
    """(name, text)"""
    for unit in UNITS:
        encoded = unit.encode()
        for length in (8, 24, 64, 512, 4096):
            yield "%r*%d" % (unit, length), (encoded * length)[:length]
    for pair in itertools.combinations(DENSE, 2):
        yield "%r%r" % pair, ("".join(pair) * 512)[:464].encode() + TAIL.encode()
    for path in sorted(SEEDS.iterdir()):
        yield path.name, path.read_bytes()


def count(tool, groups, directory):
    """Instructions of each group of texts."""
    data = b""
    for i, texts in enumerate(groups):
        data += b"%d %d\n" % (i, len(texts)) + b"".join(b"%d\n%s\n" % (len(t), t) for t in texts)
    subprocess.run(["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--callgrind-out-file={directory}/out", tool],
                   input=data, capture_output=True, check=True)
    counted = {}
    for path in directory.glob("out.*"):
        text = path.read_text(errors="replace")
        if group := re.search(r"Client Request: (\d+)", text):
            counted[int(group[1])] = int(re.search(r"^(?:summary|totals): (\d+)", text, re.M)[1])
    assert len(counted) == len(groups)
    return [counted[i] for i in range(len(groups))]


def test_no_string_is_expensive_for_its_length(build, corpus, tmp_path):
    if build.name != "release":
        pytest.skip("instructions are counted in the optimised build")
    usual = {"made": [t.encode() for t in made()]}
    if corpus:
        usual["real"] = [t.encode() for t in real(corpus)]
        usual["long"] = [t for t in usual["real"] if len(t) >= LENGTH_MIN]
    texts = list(hostile())
    counted = count(build / "tests/support/pii_cost_tool", [*usual.values(), *([text] for _, text in texts)], tmp_path)
    costs = sorted(((cost / max(len(text), LENGTH_MIN), name) for cost, (name, text) in zip(counted[len(usual):], texts)), reverse=True)
    for each, name in costs[:8]:
        print("%6.1f %s" % (each, name))
    averages = {kind: cost / sum(map(len, group)) for (kind, group), cost in zip(usual.items(), counted)}
    for kind, average in averages.items():
        print("%d %s strings, %.1f instructions per byte; the worst is %.1f times as much" %
              (len(usual[kind]), kind, average, costs[0][0] / average))
        assert average <= AVERAGE_MAX[kind]
    assert costs[0][0] <= HOSTILE_MAX, costs[:5]
    if corpus:
        assert costs[0][0] <= HOSTILE_RATIO_MAX * averages["long"], costs[:5]
