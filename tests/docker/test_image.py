# SPDX-License-Identifier: Apache-2.0
"""The image cannot be built here; its root filesystem can be staged and entered."""
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from harness import build as make
from harness import peers
from harness.gateway import READY, Gateway, free_port

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = ROOT / "build/release/portcullis"


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    directory = tmp_path_factory.mktemp("image") / "root"
    subprocess.run([ROOT / "docker/stage.sh", BINARY, directory], check=True)
    return directory


ROOT_USER = os.geteuid() == 0
UNSHARE = ["unshare", "--mount"] if ROOT_USER else ["unshare", "--user", "--map-root-user", "--mount"]
CHROOT = ["chroot", "--userspec=65532:65532"] if ROOT_USER else ["chroot"]
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && exec "$@"'
CONFIG = """
receivers:
  pprof: {server: {endpoint: 127.0.0.1:%d}}
processors:
  allowlist: {keys: [service.name]}
exporters:
  otlp_grpc: {endpoint: store.test:%d, tls: {insecure: true}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles: {receivers: [pprof], processors: [allowlist], exporters: [otlp_grpc]}
"""


def entering(directory, *arguments):
    """The command that runs the program with the staged directory as its whole filesystem, as nobody."""
    command = [*CHROOT, str(directory), "/usr/bin/portcullis", *arguments]
    return command if ROOT_USER else ["unshare", "--user", "--map-root-user", *command]


def entering_read_only(directory, *arguments):
    """The same on a read-only mount."""
    return [*UNSHARE, "sh", "-c", READ_ONLY, str(directory), *CHROOT, ".", "/usr/bin/portcullis", *arguments]


def enter(directory, *arguments, how=entering, **env):
    return subprocess.run(how(directory, *arguments), capture_output=True, text=True, env=dict(os.environ, **env))


def test_the_program_runs_with_nothing_but_the_staged_files(staged):
    assert enter(staged, "--version").stdout.startswith("portcullis version ")


def test_the_image_s_configuration_is_valid_there(staged):
    done = enter(staged, "validate", "--config", "/etc/portcullis/gateway.yaml")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments, env, host", [
    ([], {}, "127.0.0.1"),
    (["--insecure-listen"], {}, "0.0.0.0"),
    ([], {"PORTCULLIS_INSECURE_LISTEN": "[::]"}, "[::]"),
    (["--insecure-listen"], {"PORTCULLIS_INSECURE_LISTEN": "10.0.0.1"}, "10.0.0.1"),
])
def test_the_image_s_configuration_listens_on_loopback_unless_it_is_told_otherwise(staged, arguments, env, host):
    done = enter(staged, "print-config", "--config", "/etc/portcullis/gateway.yaml", "--format", "json", "--mode", "unredacted", *arguments, **env)
    assert done.returncode == 0, done.stderr
    config = json.loads(done.stdout)
    told = [config["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"], config["receivers"]["pprof"]["server"]["endpoint"],
            config["extensions"]["health_check"]["endpoint"]]
    for reader in config["service"]["telemetry"]["metrics"]["readers"]:
        told.append("%(host)s:%(port)d" % reader["pull"]["exporter"]["prometheus"])
    assert told == [host + port for port in (":4317", ":4040", ":13133", ":8888")]
    assert enter(staged, "validate", "--config", "/etc/portcullis/gateway.yaml", *arguments, **env).returncode == 0


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def listening(port):
    """The addresses on which somebody accepts at this port, as the kernel writes them."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in pathlib.Path("/proc/net", name).read_text().splitlines()[1:]]
    return [local.split(":")[0] for _, local, _, state, *_ in lines if state == "0A" and int(local.split(":")[1], 16) == port]


def test_nobody_listens_beyond_loopback_by_default():
    text = (ROOT / "docker/image.yaml").read_text()
    for name in ("4317", "4040", "13133"):
        assert ":%s" % name in text
        text = text.replace(":" + name, ":{port:p%s}" % name)
    with Gateway(BINARY, text) as gateway:
        for port in gateway.port.values():
            assert listening(port) and set(listening(port)) <= LOOPBACK, listening(port)


@pytest.fixture
def running(staged, tmp_path):
    """The daemon in a read-only root of its own, where a name stands in /etc/hosts; sends to a store by that name."""
    root = tmp_path / "root"
    shutil.copytree(staged, root, symlinks=True)
    port = free_port()
    if subprocess.run([*UNSHARE, "mount", "--bind", root, root], capture_output=True).returncode != 0:
        pytest.skip("mounting is not permitted here")
    with peers.Sink() as store:
        (root / "etc/hosts").write_text("127.0.0.1 store.test\n")
        (root / "etc/portcullis/gateway.yaml").write_text(CONFIG % (port, store.port))
        (root / "profile").write_bytes(gzip.compress(make.pprof(1).SerializeToString()))
        with open(tmp_path / "log", "wb") as log:
            process = subprocess.Popen(entering_read_only(root, "--config", "/etc/portcullis/gateway.yaml"), stderr=log)
        try:
            wait(lambda: READY in (tmp_path / "log").read_text() or process.poll() is not None)
            assert process.poll() is None, (tmp_path / "log").read_text()
            yield root, process.pid, "http://store.test:%d/v1/pprof?service.name=cart" % port, store
        finally:
            process.terminate()
            assert process.wait(60) == 0


def wait(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_daemon_resolves_names_and_delivers_on_a_read_only_root(running):
    root, pid, url, store = running
    sent = enter(root, "send", "/profile", url, how=entering_read_only)
    assert (sent.returncode, sent.stderr) == (0, "")
    wait(lambda: store.received)
    refused = enter(root, "send", "/profile", "/var/lib/portcullis/copy", how=entering_read_only)
    assert "Read-only file system" in refused.stderr
    if ROOT_USER:
        status = pathlib.Path("/proc/%d/status" % pid).read_text()
        assert re.search(r"^Uid:(\s65532){4}$", status, re.M) and re.search(r"^Gid:(\s65532){4}$", status, re.M)


def test_the_program_keeps_its_function_names(staged):
    """The gateway's own profile names functions that no other file sees."""
    names = subprocess.run(["nm", staged / "usr/bin/portcullis"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"^\w+ t ", names, re.M)


def test_there_is_no_shell_and_nothing_setuid(staged):
    names = {p.name for p in staged.rglob("*")}
    assert not names & {"sh", "bash", "dash", "busybox"}
    assert not [p for p in staged.rglob("*") if p.stat().st_mode & 0o6000]


def package_of(path):
    """The line of dpkg about a file, whose directory it may know as a link."""
    names = [str(path), "/usr" + str(path), str(path).replace("/usr", "", 1)]
    found = subprocess.run(["dpkg", "-S", *names], capture_output=True, text=True).stdout
    assert found, path
    return found.split(":")[0]


def version_of(package):
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}\n", package], capture_output=True, text=True).stdout.split()[0]


@pytest.fixture(scope="module")
def sbom(staged):
    return json.loads((staged / "usr/share/sbom/portcullis.spdx.json").read_text())


def test_the_bill_of_materials_names_the_package_of_each_library_and_the_program(staged, sbom):
    program, *debian = sbom["packages"]
    assert program["name"] == "portcullis" and program["licenseDeclared"] == "Apache-2.0"
    assert enter(staged, "--version").stdout.splitlines()[0] == "portcullis version " + program["versionInfo"]
    assert program["checksums"] == [{"algorithm": "SHA256", "checksumValue":
                                     hashlib.sha256((staged / "usr/bin/portcullis").read_bytes()).hexdigest()}]
    libraries = ["/" + str(p.relative_to(staged)) for p in staged.rglob("*.so*")]
    wanted = {package_of(path) for path in libraries} | {"ca-certificates"}
    assert len(wanted) > 30
    assert {p["name"]: p["versionInfo"] for p in debian} == {name: version_of(name) for name in wanted}
    licences = {p["name"]: p["licenseDeclared"] for p in debian}
    assert (licences["libgrpc29"], licences["libuv1"], licences["zlib1g"]) == ("Apache-2.0", "MIT", "Zlib")
    assert licences["libzstd1"] == "BSD-3-Clause OR GPL-2.0-only"


def test_the_bill_of_materials_is_spdx_2_3(sbom):
    """What the specification demands of a document, its packages and relationships (clauses 6, 7 and 11)."""
    assert (sbom["spdxVersion"], sbom["dataLicense"], sbom["SPDXID"]) == ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT")
    assert sbom["name"] and re.fullmatch(r"https://[^#\s]+", sbom["documentNamespace"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", sbom["creationInfo"]["created"])
    assert all(re.match(r"(Tool|Organization|Person): ", c) for c in sbom["creationInfo"]["creators"])
    ids = [p["SPDXID"] for p in sbom["packages"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", i) for i in ids)
    for package in sbom["packages"]:
        assert package["name"] and package["downloadLocation"] == "NOASSERTION" and package["filesAnalyzed"] is False
        assert re.fullmatch(r"NOASSERTION|[A-Za-z0-9.-]+( (OR|AND) [A-Za-z0-9.-]+)*", package["licenseDeclared"])
        for reference in package.get("externalRefs", []):
            assert (reference["referenceCategory"], reference["referenceType"]) == ("PACKAGE-MANAGER", "purl")
            assert re.fullmatch(r"pkg:deb/debian/[a-z0-9.%B-]+@[^?+:]+\?arch=\w+&distro=debian-\d+", reference["referenceLocator"])
    related = {(r["spdxElementId"], r["relationshipType"], r["relatedSpdxElement"]) for r in sbom["relationships"]}
    assert related == {("SPDXRef-DOCUMENT", "DESCRIBES", ids[0])} | {(ids[0], "DEPENDS_ON", i) for i in ids[1:]}


def test_what_belongs_to_no_package_is_an_error_of_the_bill_of_materials():
    done = subprocess.run([ROOT / "docker/sbom.sh", BINARY, "/etc/hostname"], capture_output=True, text=True)
    assert done.returncode != 0 and "no package has /etc/hostname" in done.stderr and not done.stdout


def test_the_dockerfile_builds_on_a_base_that_cannot_change():
    bases = re.findall(r"^FROM (\S+)", (ROOT / "docker/Dockerfile").read_text(), re.M)
    assert bases[1:] == ["scratch", "scratch"]
    assert re.fullmatch(r"debian:bookworm-\d{8}-slim@sha256:[0-9a-f]{64}", bases[0])


def test_the_dockerfile_is_multi_stage_without_root_and_copies_only_the_staged_root():
    text = (ROOT / "docker/Dockerfile").read_text()
    *_, debug, image = re.split(r"^FROM ", text, flags=re.M)
    assert debug.startswith("scratch AS debug") and image.startswith("scratch\n")
    assert re.search(r"^USER 65532:65532$", image, re.M) and "RUN" not in image
    assert {"/root-fs", "/root-fs/var/lib/portcullis"} == set(re.findall(r"^COPY --from=build (?:--chown=\S+ )?(\S+)", image, re.M))
    assert {"build", "out", ".git"} <= set((ROOT / ".dockerignore").read_text().split())
    for source in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M):
        for name in source.split():
            assert (ROOT / name).exists(), name
