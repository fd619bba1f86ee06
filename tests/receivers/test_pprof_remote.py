# SPDX-License-Identifier: Apache-2.0
"""The pprof receiver's `remote`: the real program scrapes real Go programs, and servers that a test makes."""
import collections
import gzip
import json
import os
import socket
import ssl
import time
import urllib.request

import pprof_pb2
import pytest

from harness import build as make
from harness import pprof
from harness.canaries import Canaries
from harness.certificates import make_ca, make_leaf
from harness.gateway import Gateway
from harness.proxy import Proxy
from harness.target import HAS_GO, Target, go_program, packed, serve

SANITIZED = os.environ.get("MODE") in ("asan", "tsan", "cov")
MIB = 1 << 20

CONFIG = """
receivers:
  pprof: {remote: REMOTE}
processors:
  allowlist: {keys: [service.name, service.instance.id, env, bytes]}
exporters:
  file/json: {path: out/profiles.jsonl}
  file/pprof: {directory: out/pprof, format: pprof}
service:
  telemetry: {logs: {level: debug, sampling: {enabled: false}}}
  pipelines:
    profiles: {receivers: [pprof], processors: [allowlist], exporters: [file/json, file/pprof]}
"""
BUILTIN = ("process_cpu", "memory", "mutex", "block", "goroutine")


def only(**custom):
    """No built-in profile, and these."""
    return {"pprof_config": {**{name: {"enabled": False} for name in BUILTIN}, "custom": custom}}


def remote(targets=(), labels=None, **keys):
    keys = {"collection_interval": "200ms", "initial_delay": "0s", "jitter": "0s", "timeout": "5s", **keys}
    if targets:
        keys["static_configs"] = [{"targets": list(targets), "labels": labels or {}}]
    return keys


class Scraping(Gateway):
    def __init__(self, build, keys, text=CONFIG, **more):
        super().__init__(build / "portcullis", text.replace("REMOTE", json.dumps(keys)), **more)

    def resources(self):
        """The resource attributes of all that has arrived."""
        path = self.directory / "out/profiles.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        found = []
        for line in lines:
            for rp in json.loads(line).get("resourceProfiles", []):
                found.append({a["key"]: a["value"].get("stringValue") for a in rp["resource"].get("attributes", [])})
        return found

    def services(self):
        return {r.get("service.name") for r in self.resources()}

    def profiles(self):
        """All pprofs that have arrived, oldest first."""
        directory = self.directory / "out/pprof"
        paths = sorted(directory.glob("*.pb.gz"), key=lambda p: (p.stat().st_mtime_ns, p.name)) if directory.exists() else []
        return [pprof.parse(p.read_bytes()) for p in paths if not p.name.startswith(".")]

    def scrapes(self, **labels):
        return self.total("otelcol_scraper_scrapes", **labels)


def values(profiles):
    """{(sample type, frames, labels): sum} of what is not 0, read without our decoder."""
    sums = collections.Counter()
    for p in profiles:
        text = p.string_table
        functions = {f.id: text[f.name] for f in p.function}
        frames = {x.id: (x.address, tuple((functions[n.function_id], n.line) for n in x.line)) for x in p.location}
        for sample in p.sample:
            stack = tuple(frames[i] for i in sample.location_id)
            labels = tuple(sorted((text[x.key], text[x.str], x.num) for x in sample.label))
            for kind, value in zip(p.sample_type, sample.value):
                sums[text[kind.type], stack, labels] += value
    return {key: value for key, value in sums.items() if value}


def names_of(profiles):
    return {p.string_table[f.name] for p in profiles for f in p.function}


def fetch(port, path):
    with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=60) as answer:
        return answer.read()


def work(port, rounds):
    fetch(port, "/work?rounds=%d" % rounds)


# ---- real programs

@pytest.mark.skipif(not HAS_GO, reason="go is not installed")
@pytest.mark.threads
def test_the_profiles_of_a_go_program_arrive(build, root, tmp_path):
    with go_program(root, tmp_path) as port:
        keys = remote(["127.0.0.1:%d" % port], {"job": "checkout", "env": "prod"}, collection_interval="1s",
                      profiling_config={"pprof_config": {"process_cpu": {"seconds": 1}}})
        with Scraping(build, keys) as g:
            while g.scrapes(outcome="skipped", reason="first") < 3:
                time.sleep(0.05)
            work(port, 5)
            wanted = {"main.compute", "main.allocate", "main.contend.func1", "main.main"}
            g.until(lambda: wanted <= names_of(g.profiles()))
            g.until(lambda: {p.string_table[k.type] for p in g.profiles() for k in p.sample_type} == {
                "samples", "cpu", "alloc_objects", "alloc_space", "inuse_objects", "inuse_space", "contentions", "delay",
                "goroutine"})
            assert g.scrapes(outcome="failed") == 0
            g.until(lambda: g.total("otelcol_scraper_targets", state="up") == 1)
        assert all(r == {"service.name": "checkout", "service.instance.id": "127.0.0.1:%d" % port, "env": "prod"}
                   for r in g.resources())


@pytest.mark.skipif(not HAS_GO, reason="go is not installed")
@pytest.mark.parametrize("path", ["/debug/pprof/allocs", "/debug/pprof/mutex", "/debug/pprof/block"])
def test_deltas_of_real_profiles_equal_those_computed_here(build, root, tmp_path, path):
    """The target is a server that repeats what the Go program said, one profile after the other."""
    bodies = []
    with go_program(root, tmp_path) as port:
        for rounds in (2, 3, 1):
            work(port, rounds)
            bodies.append(fetch(port, path))
    whole = [pprof.parse(body) for body in bodies]
    want = collections.Counter()
    for before, after in zip(whole, whole[1:]):
        want.update(values([after]))
        want.subtract({k: v for k, v in values([before]).items() if not k[0].startswith("inuse_")})
    step = iter(range(10 ** 6))

    def answer(path, headers):
        return 200, {}, bodies[min(next(step), 2)]

    with Target(answer) as t:
        keys = remote([t.place], profiling_config=only(it={"path": path, "delta": True}))
        with Scraping(build, keys) as g:
            g.until(lambda: g.scrapes(outcome="success") >= 3)
            levels = path.endswith("allocs")
            g.until(lambda: len(g.profiles()) >= 2)
            first, second = g.profiles()[:2]
            got = collections.Counter(values([first]))
            got.update(values([second]))
            assert got == {k: v for k, v in want.items() if v}
            assert (first.time_nanos, first.duration_nanos) == (
                whole[0].time_nanos, whole[1].time_nanos - whole[0].time_nanos)
            if not levels:  # later scrapes bring nothing new
                time.sleep(0.5)
                assert len(g.profiles()) == 2


def test_the_gateway_scrapes_its_own_profile(build):
    """What the error message for `self` recommends."""
    text = CONFIG.replace("service:\n", "extensions: {pprof: {endpoint: 127.0.0.1:{port:own}}}\nservice:\n  extensions: [pprof]\n")
    text = text.replace("REMOTE", json.dumps(remote(endpoint="http://127.0.0.1:{port:own}/debug/pprof/profile?seconds=1")))
    with Scraping(build, {}, text) as g:
        g.until(lambda: g.scrapes(outcome="success") and g.profiles())
        assert g.scrapes(outcome="failed") == 0


# ---- deltas

def cumulative(functions, time_nanos, kinds=("contentions", "delay")):
    p = pprof_pb2.Profile(time_nanos=time_nanos, string_table=["", "count", *kinds, *functions])
    for kind in kinds:
        p.sample_type.add(type=list(p.string_table).index(kind), unit=1)
    for i, (name, value) in enumerate(functions.items(), 1):
        p.function.add(id=i, name=list(p.string_table).index(name))
        p.location.add(id=i).line.add(function_id=i, line=1)
        p.sample.add(location_id=[i], value=[value] * len(kinds))
    return packed(p)


def test_a_restart_and_a_failed_scrape_between_deltas(build):
    """A failed scrape loses nothing: the next difference spans both intervals. A restart is skipped."""
    answers = [cumulative({"a": 10}, 1000), cumulative({"a": 12}, 2000), b"not a profile", None,
               cumulative({"a": 20, "b": 5}, 3000), cumulative({"a": 3}, 4000), cumulative({"a": 4, "b": 1}, 5000)]
    step = iter(range(10 ** 6))

    def answer(path, headers):
        body = answers[min(next(step), len(answers) - 1)]
        return (500, {}, b"") if body is None else (200, {}, body)

    with Target(answer) as t:
        with Scraping(build, remote([t.place], profiling_config=only(it={"path": "/x", "delta": True}))) as g:
            g.until(lambda: len(g.profiles()) == 3)
            g.until(lambda: g.scrapes(reason="invalid") == 1 and g.scrapes(reason="http_status") == 1)
            got = [{k[1][0][1][0][0]: v for k, v in values([p]).items() if k[0] == "delay"} for p in g.profiles()]
            assert got == [{"a": 2}, {"a": 8, "b": 5}, {"a": 1, "b": 1}]
            assert [(p.time_nanos, p.duration_nanos) for p in g.profiles()] == [(1000, 1000), (2000, 1000), (4000, 1000)]
            assert g.scrapes(reason="first") == 1 and g.scrapes(reason="restarted") == 1
            g.until(lambda: g.total("otelcol_scraper_delta_state_bytes") > 0)


def test_without_delta_values_stay_as_they_are(build):
    with Target(serve(cumulative({"a": 10}, 1000))) as t:
        with Scraping(build, remote([t.place], profiling_config=only(it={"path": "/x"}))) as g:
            g.until(lambda: len(g.profiles()) >= 2)
            assert {tuple(values([p]).values()) for p in g.profiles()} == {(10, 10)}


# ---- what is asked

def test_the_paths_headers_and_credentials_of_requests(build):
    profile = make.pprof(samples=3).SerializeToString()

    def answer(path, headers):
        return (200, {}, profile) if headers["Authorization"] == "Bearer s3cret" else (401, {}, b"")

    with Target(answer) as t:
        keys = remote([t.place], headers={"X-Scope": "blue"}, bearer_token="s3cret", collection_interval="1s",
                      profiling_config={"path_prefix": "/app/", "pprof_config": {
                          "process_cpu": {"seconds": 7}, "goroutine": {"path": "/stacks?debug=0"}, "block": {"enabled": False},
                          "custom": {"fgprof": {"path": "/debug/fgprof?x=y", "seconds": 3}}}})
        with Scraping(build, keys) as g:
            g.until(lambda: len(t.seen) >= 5)
            assert {path for path, _ in t.seen} == {
                "/app/debug/pprof/profile?seconds=7", "/app/debug/pprof/allocs", "/app/debug/pprof/mutex",
                "/app/stacks?debug=0", "/app/debug/fgprof?x=y&seconds=3"}
            headers = t.seen[0][1]
            assert headers["X-Scope"] == "blue" and headers["User-Agent"].startswith("Portcullis/")
            g.until(lambda: g.scrapes() >= 5)
            assert g.scrapes(outcome="failed") == 0


def test_one_endpoint_as_in_the_collector(build):
    """One profile, with basic authentication; its body has a Content-Encoding."""
    body = gzip.compress(make.pprof(samples=3).SerializeToString())

    def answer(path, headers):
        return 200, {"Content-Encoding": "gzip"}, body

    with Target(answer) as t:
        keys = remote(endpoint="http://%s/debug/pprof/heap?gc=1" % t.place, basic_auth={"username": "u", "password": "p"})
        with Scraping(build, keys) as g:
            g.until(lambda: g.profiles())
            path, headers = t.seen[0]
            assert path == "/debug/pprof/heap?gc=1" and headers["Authorization"] == "Basic dTpw"
            assert g.resources()[0] == {"service.name": "pprof", "service.instance.id": t.place}


def with_extension(name, keys):
    """The configuration with an extension."""
    return CONFIG.replace("service:\n", "extensions: {%s: %s}\nservice:\n  extensions: [%s]\n" % (name, json.dumps(keys), name))


@pytest.mark.parametrize("name, extension, header, value", [
    ("basicauth", {"client_auth": {"username": "u", "password": "p"}}, "Authorization", "Basic dTpw"),
    ("bearertokenauth", {"token": "s3cret"}, "Authorization", "Bearer s3cret"),
    ("headers_setter", {"headers": [{"key": "X-Scope", "value": "red"}]}, "X-Scope", "red"),
], ids=["basic", "bearer", "setter"])
def test_an_extension_authenticates_the_scrapes(build, name, extension, header, value):
    with Target(serve(make.pprof(samples=3).SerializeToString())) as t:
        keys = remote([t.place], headers={"X-Scope": "blue", "X-Other": "kept"}, auth={"authenticator": name},
                      profiling_config=only(it={"path": "/p"}))
        with Scraping(build, keys, with_extension(name, extension)) as g:
            g.until(lambda: g.profiles())
            headers = {key.lower(): value for key, value in t.seen[0][1].items()}
            assert headers[header.lower()] == value and headers["x-other"] == "kept"
            assert header == "X-Scope" or headers["x-scope"] == "blue"
            assert "s3cret" not in g.log() and "dTpw" not in g.log()


def test_an_extension_for_servers_cannot_authenticate_scrapes(build):
    keys = remote(["127.0.0.1:1"], auth={"authenticator": "basicauth"})
    with Scraping(build, keys, with_extension("basicauth", {"htpasswd": {"inline": "u:p"}}), ready=False) as g:
        assert g.process.wait(60) == 1
        assert 'auth: "basicauth" authenticates senders only' in g.log()


@pytest.mark.parametrize("by", ["environment", "proxy_url"])
def test_targets_are_scraped_through_the_proxy(build, by):
    """The environment's is not for loopback; that of the configuration is for every target."""
    with Target(serve(make.pprof(samples=3).SerializeToString())) as t, Proxy() as proxy:
        url, named = "http://127.0.0.1:%d" % proxy.port, "store.test:%d" % t.port
        keys = remote([named, t.place], profiling_config=only(it={"path": "/p"}))
        env = {"HTTP_PROXY": url} if by == "environment" else {"NO_PROXY": "*"}
        if by == "proxy_url":
            keys["proxy_url"] = url
        with Scraping(build, keys, env={"http_proxy": "", "no_proxy": "", "NO_PROXY": "", **env}) as g:
            g.until(lambda: {r.get("service.instance.id") for r in g.resources()} == {named, t.place})
        asked = {a.line.split()[1] for a in proxy.asked}
        assert asked == {"http://%s/p" % place for place in ([named] if by == "environment" else [named, t.place])}


def test_credentials_that_cannot_be_sent_fail_the_scrape(build):
    with Target(serve(make.pprof(samples=3).SerializeToString())) as t:
        keys = remote([t.place], auth={"authenticator": "headers_setter"}, profiling_config=only(it={"path": "/p"}))
        setter = {"headers": [{"key": "X-Long", "value": "x" * 17000}]}
        with Scraping(build, keys, with_extension("headers_setter", setter)) as g:
            g.until(lambda: g.scrapes(outcome="failed", reason="auth") > 1)
            assert not t.seen


@pytest.mark.parametrize("keys, connections", [({}, 1), ({"disable_keep_alives": True}, 3), ({"idle_conn_timeout": "1s"}, 3)],
                         ids=["kept", "disabled", "idle"])
def test_connections_are_kept_as_configured(build, keys, connections):
    with Target(serve(make.pprof(samples=3).SerializeToString())) as t:
        keys = remote([t.place], profiling_config=only(it={"path": "/p"}), collection_interval="2500ms" if "idle_conn_timeout" in keys else "200ms",
                      **keys)
        with Scraping(build, keys) as g:
            g.until(lambda: len(t.seen) >= 3)
            assert min(t.connections, 3) == connections


def test_targets_with_tls_and_a_client_certificate(build, tmp_path):
    make_ca(tmp_path, "ca")
    make_leaf(tmp_path, "ca", "server", "/CN=server", "serverAuth")
    make_leaf(tmp_path, "ca", "client", "/CN=client", "clientAuth")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    context.load_verify_locations(tmp_path / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    tls = {name + "_file": str(tmp_path / path) for name, path in
           (("ca", "ca.pem"), ("cert", "client.pem"), ("key", "client.key"))}
    with Target(serve(make.pprof(samples=3).SerializeToString()), tls=context) as t:
        groups = [{"targets": [t.place], "labels": {"__scheme__": "https", "job": "secure"}},
                  {"targets": [t.place.replace("127.0.0.1", "127.0.0.2")], "labels": {"__scheme__": "https", "job": "gone"}}]
        keys = remote(static_configs=groups, tls=tls, profiling_config=only(it={"path": "/x"}))
        with Scraping(build, keys) as g:
            g.until(lambda: g.services() == {"secure"} and g.scrapes(reason="unavailable"))
        with Scraping(build, {**keys, "tls": {}}) as g:
            g.until(lambda: g.scrapes(reason="tls"))
            assert not g.resources()


# ---- targets

def test_target_files_are_read_again_when_they_change(build, tmp_path):
    secret = Canaries(7).word()
    groups = lambda *jobs: [{"targets": [t.place], "labels": {"job": job, "secret": secret}} for job in jobs]
    with Target(serve(make.pprof(samples=3).SerializeToString())) as t:
        keys = remote(file_sd_configs=[{"files": [str(tmp_path / "*.yaml"), str(tmp_path / "*.json")],
                                        "refresh_interval": "100ms"}],
                      profiling_config=only(it={"path": "/x"}))
        (tmp_path / "one.json").write_text(json.dumps(groups("a", "a", "b")))
        with Scraping(build, keys) as g:
            seen = lambda: {r["service.name"] for r in g.resources()[before:]}

            def until(wanted):
                nonlocal before
                g.until(lambda: settled() == wanted)

            def settled():
                nonlocal before
                before = len(g.resources())
                g.until(lambda: len(g.resources()) >= before + 6)
                return seen()
            before = 0
            until({"a", "b"})
            assert g.total("otelcol_scraper_targets") in (0, 2)
            (tmp_path / "two.yaml").write_text("- targets: [%s]\n  labels:\n    job: c\n" % t.place)
            until({"a", "b", "c"})
            bad = ["- targets: {%s: 1}" % secret, "[[%s" % secret, "- %s: []" % secret,
                   "- targets: [\"http://%s/x\"]" % secret,
                   json.dumps([{"targets": [], "labels": {secret: {"x": secret}}}]),
                   json.dumps([{"targets": [], "labels": {"x": secret * 300}}])]
            for i, text in enumerate(bad, 1):
                (tmp_path / "two.yaml").write_text(text)
                g.until(lambda: g.log().count("Target file cannot be read") == i)
            until({"a", "b", "c"})
            assert g.total("otelcol_scraper_failed_target_files") == 1
            assert g.log().count("Target file cannot be read") == len(bad)
            (tmp_path / "new").write_text(json.dumps(groups("d")))
            os.replace(tmp_path / "new", tmp_path / "one.json")
            (tmp_path / "two.yaml").unlink()
            until({"d"})
            (tmp_path / "one.json").unlink()
            g.until(lambda: g.total("otelcol_scraper_targets") == 0)
            assert secret not in g.log() and secret not in g.metrics_text()
            assert not any(secret in json.dumps(r) for r in g.resources())


def test_labels_become_attributes_by_the_table_of_the_manual(build):
    with Target(serve(make.pprof(samples=3).SerializeToString())) as t:
        groups = [{"targets": [t.place], "labels": {"env": "x", "__meta": "y", "denied": "z"}},
                  {"targets": [t.place], "labels": {"instance": "i", "job": "j"}},
                  {"targets": [t.place], "labels": {"service.name": "s", "job": "j"}}]
        keys = remote(static_configs=groups, job_name="default", profiling_config=only(it={"path": "/x"}))
        with Scraping(build, keys) as g:
            g.until(lambda: len({json.dumps(r) for r in g.resources()}) == 3)
            assert {tuple(sorted(r.items())) for r in g.resources()} == {
                (("env", "x"), ("service.instance.id", t.place), ("service.name", "default")),
                (("service.instance.id", "i"), ("service.name", "j")),
                (("service.instance.id", t.place), ("service.name", "s"))}


def test_each_profile_has_its_name(build):
    with Target(serve(make.pprof(samples=3).SerializeToString())) as t:
        keys = remote([t.place], {"__name__": "forged"}, profiling_config={"pprof_config": {"custom": {"mine": {"path": "/x"}}}})
        with Scraping(build, keys, CONFIG.replace("env, bytes", "__name__")) as g:
            g.until(lambda: {r["__name__"] for r in g.resources()} >= {"process_cpu", "goroutine", "mine"})
            assert "forged" not in str(g.resources())
        with Scraping(build, remote(endpoint="http://%s/x" % t.place), CONFIG.replace("env, bytes", "__name__")) as g:
            g.until(lambda: g.resources())
            assert "__name__" not in g.resources()[0]


# ---- bad targets

def endless(path, headers):
    def parts():
        while True:
            yield b"\0" * 65536
    return 200, {}, parts()


def trickle(path, headers):
    def parts():
        for _ in range(600):
            time.sleep(0.1)
            yield b"\0"
    return 200, {"Content-Length": "100000"}, parts()


def huge_headers(path, headers):
    return 200, {"X-%d" % i: "x" * 1000 for i in range(90)}, b"x"


def cut(path, headers):
    return 200, {"Content-Length": "1000"}, [b"x" * 10]


BOMB = gzip.compress(b"\0" * (64 * MIB))
HOSTILE = {
    "too_large": [endless, serve(BOMB), lambda p, h: (200, {"Content-Encoding": "gzip"}, BOMB)],
    "deadline_exceeded": [trickle],
    "unavailable": [huge_headers, None],
    "redirected": [lambda p, h: (302, {"Location": "http://127.0.0.1:1/"}, b"")],
    "http_status": [lambda p, h: (404, {}, b"x" * 10000), lambda p, h: (204, {}, b"")],
    "encoding": [lambda p, h: (200, {"Content-Encoding": "br"}, b"x")],
    "invalid": [serve(b"<html>hello</html>"), serve(b""), lambda p, h: (200, {"Content-Encoding": "gzip"}, b"x"),
                serve(gzip.compress(b"x" * 100)[:-9])],
    "cut": [cut],
}


@pytest.mark.threads
def test_hostile_targets_do_not_harm_their_neighbour(build):
    targets, reasons = [], collections.Counter()
    for reason, answers in HOSTILE.items():
        for answer in answers:
            targets.append(Target(answer) if answer else None)
            reasons[reason] += 1
    good = Target(serve(make.pprof(samples=3).SerializeToString()))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        places = [t.place if t else "127.0.0.1:%d" % nobody.getsockname()[1] for t in targets]
        for t in [*targets, good]:
            if t:
                t.__enter__()
        keys = remote(static_configs=[{"targets": places, "labels": {"job": "bad"}},
                                      {"targets": [good.place], "labels": {"job": "good"}}],
                      timeout="2s", max_body_size=8 * MIB, max_concurrent_scrapes=4, collection_interval="300ms",
                      profiling_config=only(it={"path": "/x"}))
        with Scraping(build, keys) as g:
            g.until(lambda: all(g.scrapes(reason=reason) >= count for reason, count in reasons.items()))
            before = len(g.resources())
            g.until(lambda: len(g.resources()) >= before + 5)
            assert g.services() == {"good"}
            assert g.log().count("Scrapes fail") <= len(places)
            g.until(lambda: g.total("otelcol_scraper_targets", state="down") == len(places))
            assert g.total("otelcol_scraper_targets", state="up") == 1
            if not SANITIZED:
                assert g.rss()["VmHWM"] < 150 * MIB
    for t in [*targets, good]:
        if t:
            t.__exit__()


def test_a_state_is_logged_when_it_changes_and_a_crowd_in_one_line(build):
    ok = [True]
    body = make.pprof(samples=3).SerializeToString()
    with Target(lambda p, h: (200, {}, body) if ok[0] else (503, {}, b"")) as t:
        groups = [{"targets": [t.place], "labels": {"instance": str(i)}} for i in range(50)]
        with Scraping(build, remote(static_configs=groups, profiling_config=only(it={"path": "/x"}))) as g:
            g.until(lambda: g.scrapes(outcome="success") >= 100)
            assert "Scrapes" not in g.log()
            ok[0] = False
            g.until(lambda: "More targets changed their state" in g.log())
            lines = [line for line in g.log().splitlines() if "Scrapes fail" in line]
            assert 10 <= len(lines) <= 20 and all('"status": 503' in line and t.place in line for line in lines)
            ok[0] = True
            g.until(lambda: "Scrapes succeed again" in g.log())


def test_scrapes_wait_when_memory_is_short(build):
    """64 targets that send 1 MiB each, slowly, into a budget that holds a part of them."""
    large = os.urandom(MIB)

    def answer(path, headers):
        def parts():
            for i in range(0, len(large), MIB // 4):
                yield large[i:i + MIB // 4]
                time.sleep(0.05)
        return 200, {"Content-Length": str(len(large))}, parts()

    text = CONFIG.replace("processors:", "processors:\n  memory_limiter: {check_interval: 1s, limit_mib: %d}" % (
        2048 if SANITIZED else 64), 1).replace("[allowlist]", "[memory_limiter, allowlist]")
    with Target(answer) as t:
        groups = [{"targets": [t.place], "labels": {"instance": str(i)}} for i in range(64)]
        keys = remote(static_configs=groups, profiling_config=only(it={"path": "/x"}))
        with Scraping(build, keys, text) as g:
            g.until(lambda: g.scrapes(reason="invalid") >= 20)
            if not SANITIZED:
                g.until(lambda: g.scrapes(outcome="postponed") >= 10)
                assert g.rss()["VmHWM"] < 80 * MIB


# ---- secrets

@pytest.mark.threads
def test_nothing_of_targets_and_requests_is_logged_or_counted(build, tmp_path):
    c = Canaries(11)
    deny = c.deny
    profile = make.pprof(samples=3).SerializeToString()
    answers = [lambda p, h: (200, {}, profile), lambda p, h: (500, {deny("header"): "x"}, deny("body").encode()),
               lambda p, h: (200, {}, deny("body that is no profile").encode()),
               lambda p, h: (302, {"Location": "http://%s/" % deny("location")}, b"")]
    targets = [Target(a) for a in answers]
    (tmp_path / "targets.json").write_text(json.dumps(
        [{"targets": [t.place], "labels": {deny("label"): deny("value"), "job": "good", "__x": deny("meta")}} for t in targets]))
    for t in targets:
        t.__enter__()
    keys = remote(file_sd_configs=[{"files": [str(tmp_path / "targets.json")], "refresh_interval": "100ms"}],
                  headers={"X-" + deny("own header"): deny("own value")},
                  basic_auth={"username": deny("user"), "password": deny("password")},
                  profiling_config=only(it={"path": "/" + deny("path") + "?q=" + deny("query"), "delta": False}))
    with Scraping(build, keys) as g:
        g.until(lambda: all(g.scrapes(reason=r) for r in ("none", "http_status", "invalid", "redirected")))
        (tmp_path / "targets.json").write_text("- " + deny("broken file"))
        g.until(lambda: "Target file cannot be read" in g.log())
        g.until(lambda: g.resources())
        metrics = g.metrics_text()
    out = b"".join(p.read_bytes() for p in (g.directory / "out").rglob("*") if p.is_file())
    for shown in (g.log().encode(), metrics.encode(), out):
        assert not c.found(shown)
    for t in targets:
        t.__exit__()


# ---- many

def targets_file(path, places, count):
    path.write_text(json.dumps([{"targets": [places[i % len(places)]], "labels": {"instance": "pod-%d" % i, "job": "fleet"}}
                                for i in range(count)]))


@pytest.mark.alone
@pytest.mark.skipif(SANITIZED, reason="the sanitizers' memory is not ours to bound")
def test_ten_thousand_idle_targets_take_little_memory_and_no_descriptor(build, tmp_path):
    count = 10000
    keys = remote(file_sd_configs=[{"files": [str(tmp_path / "t.json")], "refresh_interval": "100ms"}], initial_delay="10h")
    with Scraping(build, keys) as g:
        time.sleep(0.5)
        before, threads = g.rss()["VmRSS"], len(os.listdir("/proc/%d/task" % g.process.pid))
        fds = len(os.listdir("/proc/%d/fd" % g.process.pid))
        targets_file(tmp_path / "t.json", ["10.%d.%d.1:6060" % (i // 250, i % 250) for i in range(count)], count)
        g.until(lambda: g.total("otelcol_scraper_targets") == count)
        each = (g.rss()["VmRSS"] - before) / count
        print("bytes of each idle target, with five profiles:", each)
        assert each < 4096
        assert len(os.listdir("/proc/%d/task" % g.process.pid)) <= threads + 4  # libuv's pool
        assert len(os.listdir("/proc/%d/fd" % g.process.pid)) <= fds + 8


@pytest.mark.alone
def test_ten_thousand_targets_are_all_scraped(build, tmp_path):
    count, at_once = 2000 if SANITIZED else 10000, 50
    body = packed(make.pprof(samples=2, functions=2))
    with Target(serve(body)) as t:
        targets_file(tmp_path / "t.json", [t.place], count)
        keys = remote(file_sd_configs=[{"files": [str(tmp_path / "t.json")]}], max_concurrent_scrapes=at_once,
                      collection_interval="10h", initial_delay="1s", jitter="5s", profiling_config=only(it={"path": "/x"}))
        text = CONFIG.replace("exporters: [file/json, file/pprof]", "exporters: [file/json]")
        with Scraping(build, keys, text) as g:
            most = 0

            def done():
                nonlocal most
                most = max(most, len(os.listdir("/proc/%d/fd" % g.process.pid)))
                return g.scrapes(outcome="success") == count
            g.until(done, 300)
            assert g.scrapes(outcome="failed") == 0 and t.count() == count
            assert most < 200 + at_once
            g.until(lambda: g.total("otelcol_scraper_targets", state="up") == count)


# ---- configuration

@pytest.mark.parametrize("keys, error", [
    ({}, "endpoint must be specified, or static_configs or file_sd_configs"),
    ({"endpoint": "http://x:1/y", "static_configs": [{"targets": ["x:1"]}]}, "endpoint cannot be combined"),
    ({"endpoint": "ftp://x/y"}, "endpoint: must be http:// or https://"),
    ({"endpoint": "http://u:p@x/y"}, "endpoint: must be http:// or https://"),
    ({"static_configs": [{"targets": ["http://x"]}]}, "static_configs[0]::targets[0]: must be host:port"),
    ({"static_configs": [{"targets": []}, {"target": []}]}, "static_configs[1]: has a key that is neither"),
    ({"static_configs": [{"targets": ["x"], "labels": {"__scheme__": "ftp"}}]}, "__scheme__ must be http or https"),
    ({"file_sd_configs": [{"files": []}]}, "files: must not be empty"),
    ({"static_configs": [], "scheme": "gopher"}, "scheme: must be http or https"),
    ({"static_configs": [], "collection_interval": "1ms"}, "collection_interval: must be at least 100ms"),
    ({"static_configs": [], "profiling_config": {"pprof_config": {"memory": {"path": "x"}}}}, "path: must begin with /"),
    ({"static_configs": [], "profiling_config": {"pprof_config": {"process_cpu": {"delta": True}}}},
     "delta and seconds cannot be combined"),
    ({"static_configs": [], "basic_auth": {"username": "x"}, "bearer_token": "y"}, "either basic_auth or bearer_token"),
    ({"static_configs": [], "auth": {"authenticator": "x"}, "bearer_token": "y"}, "either auth or basic_auth and bearer_token"),
    ({"static_configs": [{"targets": ["a"]}], "auth": {"authenticator": "x"}}, "authenticator not found"),
    ({"static_configs": [{"targets": ["a", "b"]}], "max_targets": 1}, "more than max_targets (1)"),
])
def test_configurations_that_are_errors(build, keys, error):
    with Scraping(build, keys, ready=False) as g:
        assert g.process.wait(60) == 1
        assert error in g.log()
