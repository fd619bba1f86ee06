# SPDX-License-Identifier: Apache-2.0
"""The program around the pipeline: configuration errors, signals, health, metrics, commands."""
import json
import os
import re
import signal
import subprocess
import time

import grpc
import pytest

from harness import build as make
from harness import peers
from harness.gateway import Gateway

MINIMAL = """
receivers:
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
exporters:
  file: {path: out.jsonl, flush_interval: 10ms}
extensions:
  health_check: {endpoint: 127.0.0.1:{port:health}}
service:
  extensions: [health_check]
  pipelines:
    profiles: {receivers: [pprof], exporters: [file]}
"""


def validate(build, text, *arguments, **env):
    """Exit status and stderr."""
    done = subprocess.run([str(build / "portcullis"), "validate", "--config", "yaml:", "--config", "file:/dev/stdin",
                           *arguments], input=text, capture_output=True, text=True, env=dict(os.environ, **env))
    return done.returncode, done.stderr


WRONG = [
    ("{}", "empty configuration file"),
    ("receivers: {}", "no receiver configuration specified in config"),
    ("receivers: {nope: {}}", 'unknown type: "nope" for id: "nope" (valid values: ['),
    ("receivers: {pprof: {server: {endpoint: 1, wrong: 2}}}", "wrong"),
    ("colour: blue", "'' has invalid keys: colour"),
    ("receivers: {pprof: {server: {endpoint: 'localhost:1'}}}\nexporters: {debug: {verbosity: loud}}", "verbosity"),
    ("receivers: {pprof: {server: {endpoint: 'localhost:1'}}}\nexporters: {debug: {}}\nservice: {}",
     "service must have at least one pipeline"),
    ("receivers: {pprof: {server: {endpoint: 'localhost:1'}}}\nexporters: {debug: {}}\n"
     "service: {pipelines: {profiles: {receivers: [pprof], exporters: [otlp]}}}",
     'references exporter "otlp" which is not configured'),
    ("receivers: {pprof: {server: {endpoint: 'localhost:1'}}}\nexporters: {debug: {}}\n"
     "service: {pipelines: {traces: {receivers: [pprof], exporters: [debug]}}}", "profiles"),
    ("receivers: {otlp: {}}\nexporters: {debug: {}}", "must specify at least one protocol"),
    ("receivers: {otlp: {protocols: {grpc: {tls: {cert_file: a, key_file: b, min_version: '1.1'}}}}}\n"
     "exporters: {debug: {}}", "min_version"),
]


@pytest.mark.parametrize("text,expected", WRONG)
def test_what_is_wrong_is_named_with_its_place(build, text, expected):
    status, stderr = validate(build, text)
    assert status == 1
    assert stderr.startswith("Error: ") and expected in stderr, stderr


@pytest.mark.parametrize("first, second, shared", [
    ("path: out/a.jsonl", "path: ./out//x/../a.jsonl", True),
    ("format: pprof, directory: /out/", "format: pprof, directory: /out", True),
    ("path: a.jsonl", "path: b.jsonl", False),
    ("path: /dev/stdout", "path: //dev/./stdout", False),
    ("path: /dev/shm/a", "path: /dev/shm/a", True),
    ("path: /dev/../a", "path: /a", True),
])
def test_two_exporters_cannot_write_to_one_place(build, first, second, shared):
    text = MINIMAL.replace("{port:pprof}", "1").replace("{port:health}", "2").replace(
        "  file: {path: out.jsonl, flush_interval: 10ms}", "  file/a: {%s}\n  file/b: {%s}" % (first, second))
    status, stderr = validate(build, text.replace("exporters: [file]", "exporters: [file/a, file/b]"))
    if shared:
        assert status == 1
        assert "exporters::file/b: writes to the same place as exporters::file/a; each exporter needs its own" in stderr
    else:
        assert status == 0, stderr
    status, stderr = validate(build, text.replace("exporters: [file]", "exporters: [file/b]"))
    assert status == 0, "what no pipeline uses harms nobody: " + stderr


def test_an_unknown_key_is_named_with_line_and_column(build, tmp_path):
    (tmp_path / "c.yaml").write_text("receivers:\n  pprof:\n    server:\n      endpoint: localhost:1\n      colour: blue\n")
    done = subprocess.run([str(build / "portcullis"), "validate", "--config", str(tmp_path / "c.yaml")],
                          capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(r"c\.yaml:5:\d+: .*has invalid keys: colour", done.stderr), done.stderr


def test_environment_sets_and_several_files_are_merged(build, tmp_path):
    text = MINIMAL.replace("127.0.0.1:{port:pprof}", '"127.0.0.1:${env:THE_PORT}"').replace("{port:health}", "1")
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "b.yaml").write_text("exporters: {file: {path: second.jsonl}}\n")
    done = subprocess.run([str(build / "portcullis"), "print-config", "--config", str(tmp_path / "a.yaml"), "--config",
                           str(tmp_path / "b.yaml"), "--set", "exporters.file.format=proto"], capture_output=True,
                          text=True, env=dict(os.environ, THE_PORT="4711"))
    assert done.returncode == 0, done.stderr
    for piece in ('"127.0.0.1:${env:THE_PORT}"', "second.jsonl", "proto"):
        assert piece in done.stdout


def test_health_follows_readiness_and_metrics_are_prometheus_text(build):
    with Gateway(build / "portcullis", MINIMAL) as gateway:
        status, _, body = peers.post(gateway.port["health"], None, path="/", method="GET")
        assert status == 200 and json.loads(body)["status"] == "Server available"
        text = gateway.metrics_text()
        assert re.search(r"^# TYPE otelcol_process_memory_rss gauge$", text, re.M)
        assert re.search(r'^target_info\{.*service_name="portcullis".*\} 1$', text, re.M)


def test_sighup_reopens_the_file_of_the_exporter(build):
    with Gateway(build / "portcullis", MINIMAL) as gateway:
        body = make.pprof(1).SerializeToString()
        out = gateway.directory / "out.jsonl"
        assert peers.post(gateway.port["pprof"], body)[0] == 204
        gateway.until(lambda: out.exists() and out.read_text().count("\n") == 1)
        out.rename(gateway.directory / "old.jsonl")
        gateway.process.send_signal(signal.SIGHUP)
        gateway.until(lambda: reopened(gateway, "file"))
        assert peers.post(gateway.port["pprof"], body)[0] == 204
        gateway.until(lambda: out.exists() and out.read_text().count("\n") == 1)


def reopened(gateway, component):
    """The number of times that the log says so of the component."""
    return sum("Files and certificates reopened" in line and '"otelcol.component.id": "%s"' % component in line
               for line in gateway.log().splitlines())


def hang_up(gateway):
    """SIGHUP; returns when the last component was reopened."""
    times = reopened(gateway, "pprof")
    gateway.process.send_signal(signal.SIGHUP)
    gateway.until(lambda: reopened(gateway, "pprof") > times)


def test_sighup_names_every_component_and_log_file_that_it_reopened(build):
    with Gateway(build / "portcullis", MINIMAL + "  telemetry: {logs: {output_paths: [stderr, own.log]}}\n") as gateway:
        own = gateway.directory / "own.log"
        own.rename(gateway.directory / "moved.log")
        hang_up(gateway)
        assert [reopened(gateway, name) for name in ("health_check", "file", "pprof")] == [1, 1, 1]
        assert re.search(r'Log file reopened.*own\.log', gateway.log())
        assert "Reloaded" not in gateway.log() and "Log file reopened" in own.read_text()


def test_sighup_applies_a_file_that_the_configuration_includes(build):
    text = MINIMAL.replace("flush_interval: 10ms", "flush_interval: '${file:interval}'")
    gateway = Gateway(build / "portcullis", text)
    (gateway.directory / "interval").write_text("10ms")
    with gateway:
        (gateway.directory / "interval").write_text("20ms")
        hang_up(gateway)
        gateway.until(lambda: "Configuration reloaded" in gateway.log())


def test_sighup_changes_nothing_when_the_configuration_is_the_same(build):
    with Gateway(build / "portcullis", MINIMAL) as gateway:
        gateway.config.write_text(gateway.config.read_text())
        hang_up(gateway)
        hang_up(gateway)
        assert gateway.stop() == 0  # which waits for the comparison
        assert "Configuration reloaded" not in gateway.log() and "Failed to reload" not in gateway.log()


def test_a_source_that_hangs_delays_the_end_by_seconds_only(build):
    with Gateway(build / "portcullis", MINIMAL) as gateway:
        gateway.config.unlink()
        os.mkfifo(gateway.config)
        hang_up(gateway)
        begun = time.monotonic()
        assert gateway.stop() == 0
        assert time.monotonic() - begun < 10


@pytest.mark.threads
def test_sigterm_ends_it_in_order_and_with_status_0(build):
    with Gateway(build / "portcullis", MINIMAL) as gateway:
        assert gateway.stop() == 0
    log = gateway.log()
    order = ["Everything is ready", "Received signal from OS", "Starting shutdown...", "Shutdown complete."]
    assert sorted(order, key=log.index) == order


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_standard_stream_that_is_closed_is_nobodys(build, closed):
    text = MINIMAL.replace("file: {path: out.jsonl, flush_interval: 10ms}", "debug: {verbosity: detailed}").replace(
        "exporters: [file]", "exporters: [debug]")
    shell = ["sh", "-c", 'exec "$@" %s' % closed, "sh"]

    def healthy():
        try:
            return peers.post(gateway.port["health"], None, path="/", method="GET")[0] == 200
        except OSError:
            return False

    with Gateway(build / "portcullis", text, guard=shell, ready=False) as gateway:
        gateway.until(healthy)
        for fd in re.findall(r"([12]?)>", closed):
            assert os.readlink("/proc/%d/fd/%s" % (gateway.process.pid, fd or 1)) == "/dev/null"
        assert peers.post(gateway.port["pprof"], make.pprof(1).SerializeToString())[0] == 204
        assert gateway.stop() == 0


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/stderr", "/dev/fd/2", "/proc/self/fd/1"])
def test_standard_streams_are_outputs_though_their_names_are_links(build, path):
    text = MINIMAL.replace("path: out.jsonl", "append: true, path: " + path) + "  telemetry: {logs: {output_paths: [stderr, %s]}}\n" % path
    with Gateway(build / "portcullis", text) as gateway:
        assert peers.post(gateway.port["pprof"], make.pprof(1).SerializeToString())[0] == 204
        gateway.until(lambda: '{"resourceProfiles"' in gateway.log())
        assert gateway.log().count("Everything is ready") == 2


@pytest.mark.parametrize("where", ["path: link", "output_paths: [link]"])
def test_no_link_that_somebody_made_is_followed(build, where):
    text = MINIMAL.replace("path: out.jsonl", where) if where == "path: link" else MINIMAL + "  telemetry: {logs: {%s}}\n" % where
    gateway = Gateway(build / "portcullis", text, ready=False)
    (gateway.directory / "link").symlink_to("elsewhere")
    with gateway:
        assert gateway.process.wait(60) == 1
    assert "cannot open link: it is a symbolic link, which outputs do not follow" in gateway.log()
    assert not (gateway.directory / "elsewhere").exists()


def test_a_taken_port_is_a_clear_error(build):
    with Gateway(build / "portcullis", MINIMAL) as first:
        second = Gateway(build / "portcullis", MINIMAL, ready=False)
        second.config.write_text(first.config.read_text())
        with second:
            assert second.process.wait(60) == 1
        assert str(first.port["pprof"]) in second.log() or str(first.port["health"]) in second.log()
        assert "Error: " in second.log()


def test_json_logs_are_json(build):
    text = MINIMAL + "  telemetry: {logs: {encoding: json, level: debug}}\n"
    with Gateway(build / "portcullis", text) as gateway:
        gateway.stop()
    lines = gateway.log().splitlines()
    assert lines and all({"level", "ts", "msg"} <= set(json.loads(line)) for line in lines)


def test_every_metric_that_is_served_stands_in_the_manual(build, root):
    manual = (root / "docs/manual/reference.md").read_text()
    with Gateway(build / "portcullis", MINIMAL) as gateway:
        served = set(re.findall(r"^# HELP (\w+)", gateway.metrics_text(), re.M))
    assert len(served) >= 19
    assert [name for name in sorted(served) if "| `%s` |" % name not in manual] == []


def run_in(build, *arguments):
    return subprocess.run([str(build / "portcullis"), *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("arguments,expected", [
    (["--mode", "loud", "--config", "x"], '--mode: must be redacted or unredacted, got "loud"'),
    (["print-config", "--format=xml"], '--format: must be yaml or json, got "xml"'),
    (["--feature-gates=-service.profilesSupport"], "is stable, can not be disabled"),
    (["--colour"], "unknown flag: --colour"),
    (["send", "/nowhere", "x"], "cannot open /nowhere: No such file or directory"),
    (["send", "/dev/null", "/dev/../nowhere/x"], "cannot open /dev/../nowhere/x: No such file or directory"),
    (["send", "/dev/null", "http://127.0.0.1:1/"], "http://127.0.0.1:1/: "),
    (["send", "/dev/null", "http://user:secret@127.0.0.1:1/x?token=secret"], "Error: http://127.0.0.1:1/x: "),
    (["send", "http:/user:secret@127.0.0.1:1/x?token=secret", "/dev/null"], "Error: http:/127.0.0.1:1/x: "),
    (["components", "nonsense"], 'this build has no component of type "nonsense"'),
    (["components", "pii", "x"], 'too many arguments for "portcullis components": "x"'),
    (["send", "x", "y", "z"], 'too many arguments for "portcullis send": "z"'),
    (["valdiate"], 'unknown command "valdiate" for "portcullis" (did you mean `validate`?)'),
    (["help", "valdiate"], 'unknown command "valdiate" for "portcullis" (did you mean `validate`?)'),
    (["--confg", "x"], "unknown flag: --confg (did you mean `--config`?)"),
    (["completion", "csh"], "completion: the shell must be bash, zsh or fish"),
    (["explain", "--config", "x", "y", "z"], '"z" is not of the form NAME=VALUE'),
    (["explain", "--config", "x", "y", "=z"], '"=z" is not of the form NAME=VALUE'),
])
def test_a_wrong_command_line_is_named(build, arguments, expected):
    done = run_in(build, *arguments)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("Error: ") and expected in done.stderr
    assert "secret" not in done.stderr


def test_a_log_that_cannot_be_opened_has_its_place(build, tmp_path):
    (tmp_path / "c.yaml").write_text("""receivers: {nop: }
exporters: {debug: }
service:
  telemetry:
    logs: {output_paths: [absent/x.log]}
    metrics: {level: none}
  pipelines: {profiles: {receivers: [nop], exporters: [debug]}}
""")
    done = subprocess.run([build / "portcullis", "-c", "c.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == ("Error: c.yaml:5:12: service::telemetry::logs::output_paths: the log: "
                                            "cannot open absent/x.log: No such file or directory")


def test_explain_names_the_file_that_it_cannot_read(build, tmp_path):
    (tmp_path / "c.yaml").write_text(MINIMAL.replace("{port:pprof}", "1").replace("{port:health}", "2"))
    (tmp_path / "garbage").write_bytes(b"no profile")
    done = run_in(build, "explain", "--config", str(tmp_path / "c.yaml"), str(tmp_path / "garbage"))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: %s: the file is neither pprof nor OTLP: " % (tmp_path / "garbage"))
    done = run_in(build, "explain", "--config", str(tmp_path / "c.yaml"), str(tmp_path))
    assert (done.returncode, done.stderr) == (1, "Error: cannot read %s: Is a directory\n" % tmp_path)


def test_the_commands_answer(build):
    def run(*arguments):
        return run_in(build, *arguments)
    assert run("--version").stdout.startswith("portcullis version ")
    assert "allowlist" in run("components").stdout
    assert "    - scheme: https\n" in run("components").stdout
    assert "| `mapping` | `process.executable.build_id.gnu` | 8, 16, 20 or 32 bytes in hex, the lengths that linkers produce |" in run("components", "allowlist").stdout
    assert "### exporter `otlp_grpc`" in run("components", "otlp").stdout
    assert "portcullis explain --config FILE" in run("--help").stdout
    assert "service.profilesSupport" in run("featuregate").stdout
    assert run("nonsense").returncode == 1
    assert run("help").stdout == run("--help").stdout
    own = run("validate", "--help").stdout
    assert own == run("help", "validate").stdout and own.startswith("portcullis validate [FILE ...]\n")
    assert "-c, --config" in own and "--repeat" not in own and "--repeat" in run("send", "-h").stdout
    assert run("--feature-gates=service.profilesSupport", "--help").returncode == 0


def test_validate_takes_files(build, tmp_path):
    text = MINIMAL.replace("{port:pprof}", "1").replace("{port:health}", "2")
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "b.yaml").write_text("service: {ack: later}\n")
    (tmp_path / "quiet.yaml").write_text("service: {silence: [no-policy]}\n")
    for arguments in (["validate", "a.yaml", "quiet.yaml"], ["validate", "-c", "a.yaml", "quiet.yaml"], ["validate", "-c=a.yaml", "quiet.yaml"]):
        done = subprocess.run([build / "portcullis", *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = subprocess.run([build / "portcullis", "validate", "a.yaml", "b.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("Error: b.yaml:1:11: 'service::ack' unsupported value")


TELEMETRY = [
    ("logs: {level: INFO}", ""),
    ("logs: {level: dpanic}", ""),
    ("logs: {level: loud}", 'logs::level: unrecognized'),
    ("metrics: {level: Detailed, views: [{}]}", ""),
    ("metrics: {level: loud}", 'metrics::level: unknown'),
    ("metrics: {views: [{}]}", "views can only be set when service::telemetry::metrics::level is detailed"),
    ("metrics: {readers: []}", "metrics reader should exist when metric level is not none"),
    ("metrics: {readers: [], level: none}", ""),
]


@pytest.mark.parametrize("section,expected", TELEMETRY)
def test_telemetry_is_checked_in_the_collectors_words(build, section, expected):
    text = MINIMAL.replace("{port:pprof}", "1").replace("{port:health}", "2")
    status, stderr = validate(build, text + "  telemetry: {%s}\n" % section)
    assert (status, expected in stderr) == (1 if expected else 0, True), stderr


def test_validation_leaves_nothing_behind(build, tmp_path):
    text = MINIMAL.replace("{port:pprof}", "1").replace("{port:health}", "2").replace("out.jsonl", str(tmp_path / "out"))
    assert validate(build, text + "  silence: [no-policy]\n  telemetry: {logs: {output_paths: [%s]}}\n" % (tmp_path / "log")) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_what_print_config_prints_can_be_loaded_again(build, tmp_path):
    def show(path, *arguments):
        done = subprocess.run([str(build / "portcullis"), "print-config", "--config", str(path), *arguments],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(MINIMAL.replace("{port:pprof}", "1").replace("{port:health}", "2"))
    second.write_text(show(first))
    assert show(second) == second.read_text()
    whole = json.loads(show(first, "--format", "json"))
    assert whole["service"]["pipelines"]["profiles"]["exporters"] == ["file"]
    assert whole["service"]["telemetry"]["logs"]["level"] == "info"
    assert whole["receivers"]["pprof"]["server"]["endpoint"] == "127.0.0.1:1"


def test_aliases_and_keys_without_effect_are_told_once(build):
    text = MINIMAL.replace("exporters:\n", "exporters:\n  otlp: {endpoint: 'localhost:1', read_buffer_size: 7}\n", 1)
    text = text.replace("flush_interval: 10ms}", "timeout: 1s}")
    with Gateway(build / "portcullis", text + "  telemetry: {logs: {disable_caller: true}}\n") as gateway:
        gateway.stop()
    log = gateway.log()
    assert log.count('"otlp" alias is deprecated; use "otlp_grpc" instead') == 1
    for key in ("exporters::otlp::read_buffer_size", "exporters::file::timeout", "service::telemetry::logs::disable_caller"):
        assert len([line for line in log.splitlines() if "no effect" in line and '"%s"' % key in line]) == 1, log


def test_the_log_tells_the_stations_of_a_life(build):
    with Gateway(build / "portcullis", MINIMAL) as gateway:
        gateway.stop(signal.SIGINT)
    stations = ["Starting portcullis...", "Extension is starting...", "Extension started.", "Starting HTTP server",
                "Everything is ready. Begin running and processing data.", "Received signal from OS",
                "Starting shutdown...", "Shutdown complete."]
    places = [gateway.log().rindex(text) for text in stations if text != "Starting HTTP server"]
    assert places == sorted(places) and '"signal": "interrupt"' in gateway.log()
    assert "Starting HTTP server" in gateway.log()


def test_a_failed_start_ends_with_status_1_and_everything_stopped(build):
    text = MINIMAL.replace("127.0.0.1:{port:pprof}", "no-such-host.invalid:1")
    gateway = Gateway(build / "portcullis", text, ready=False)
    with gateway:
        assert gateway.process.wait(60) == 1
    assert "Shutdown complete." in gateway.log() and "gateway.yaml:3:20: receivers::pprof::server::endpoint: cannot resolve" in gateway.log()


def test_a_failed_start_takes_nothing_from_the_one_that_runs(build):
    with Gateway(build / "portcullis", MINIMAL) as first:
        assert peers.post(first.port["pprof"], make.pprof(1).SerializeToString())[0] == 204
        out = first.directory / "out.jsonl"
        first.until(lambda: out.exists() and out.read_text().count("\n") == 1)
        second = Gateway(build / "portcullis", MINIMAL, ready=False)
        second.config.write_text(first.config.read_text().replace("path: out.jsonl", "path: %s" % out))
        with second:
            assert second.process.wait(60) == 1
        assert out.read_text().count("\n") == 1


def test_what_goes_to_the_wrong_place_is_counted(build):
    text = MINIMAL.replace("receivers:", "receivers:\n  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}}}}", 1)
    with Gateway(build / "portcullis", text.replace("[pprof]", "[pprof, otlp]")) as gateway:
        assert peers.post(gateway.port["pprof"], b"", path="/ingest")[0] == 404
        assert peers.post(gateway.port["pprof"], None, method="GET")[0] == 405
        assert peers.post(gateway.port["pprof"], b"", path="/" + "x" * 9000)[0] == 414
        with grpc.insecure_channel("127.0.0.1:%d" % gateway.port["otlp"]) as channel:
            with pytest.raises(grpc.RpcError) as error:
                channel.unary_unary("/opentelemetry.proto.collector.profiles.v9.ProfilesService/Export")(b"")
        assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED
        for reason in "path", "method", "header":
            assert gateway.total("otelcol_http_server_refused_requests", receiver="pprof", reason=reason) == 1
        assert gateway.total("otelcol_grpc_server_refused_requests", receiver="otlp", reason="unknown_method") == 1


def test_every_shipped_configuration_is_valid(build, root):
    readme = re.search(r"```yaml\n(.*?)```", (root / "README.md").read_text(), re.S)[1]
    for text in [readme, *[p.read_text() for p in sorted((root / "docker").glob("*.yaml"))]]:
        status, stderr = validate(build, text)
        assert status == 0, stderr
