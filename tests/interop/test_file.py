# SPDX-License-Identifier: Apache-2.0
"""The exporter `file` beside the Collector's, on the same requests: the same files with the same records, in each form; and what
the receiver `otlp_json_file` reads in the Collector's file.

With group_by, the Collector 0.161 writes profiles without their dictionary, so of those files only names and the number of
records can be compared. Its receiver of JSON files is not in its build: the module is not served in its version."""
import subprocess
from collections import Counter

import pytest

from harness import build as make
from harness import otlp, peers
from interop import gate

FORMS = {
    "json": "format: json",
    "json.zst": "format: json, compression: zstd",
    "pb": "format: proto",
    "pb.zst": "format: proto, compression: zstd",
}
GROUP = "group_by: {enabled: true, resource_attribute: service.name}"
SERVICES = [["checkout", "shop/cart", "checkout"], ["../outside/x"], ["/abs/olute", "a/../b", "./c"], ["checkout"], [None, "last"]]


def exporters():
    """Each form, in one file and in one for each service: {ID: settings}."""
    one = {"file/" + name: "path: one.%s, %s" % (name, keys) for name, keys in FORMS.items()}
    return one | {"file/grouped." + name: 'path: "by/*.%s", %s, %s' % (name, keys, GROUP) for name, keys in FORMS.items()}


def text(receivers, more):
    """A pipeline of these receivers to all forms; it is valid for both programs."""
    found = exporters() | more
    return "receivers: {%s}\nexporters: {%s}\nservice: {pipelines: {profiles: {receivers: [otlp], exporters: [%s]}}}\n" % (
        receivers, ", ".join("%s: {%s}" % item for item in found.items()), ", ".join(found))


OTLP = 'otlp: {protocols: {grpc: {endpoint: "127.0.0.1:{port:otlp}"}}}'


def bodies():
    for number, services in enumerate(SERVICES):
        message = make.request(number, samples=20, resources=len(services))
        for rp, service in zip(message.resource_profiles, services):
            assert rp.resource.attributes[0].key == "service.name"
            if service is None:
                del rp.resource.attributes[0]
            else:
                rp.resource.attributes[0].value.string_value = service
        yield message.SerializeToString()


def records(path):
    data = path.read_bytes()
    if path.name.endswith(".json"):
        return [line.encode() for line in data.decode().splitlines()]
    found = list(otlp.framed(data))
    if path.name.endswith(".zst"):
        found = [subprocess.run(["zstd", "-dc"], input=one, capture_output=True, check=True).stdout for one in found]
    return found


def documents(path):
    """The samples of each record."""
    json = ".json" in path.name
    return [otlp.samples(otlp.parse_json(record.decode()) if json else record) for record in records(path)]


def files(directory):
    """{name: path} of what the exporters wrote."""
    return {str(p.relative_to(directory)): p for p in [*directory.glob("one.*"), *directory.glob("by/**/*")] if p.is_file()}


def read(directory, grouped):
    """{name: documents}; if the grouped ones cannot be read, {name: number of records}."""
    return {name: documents(path) if grouped or name.startswith("one.") else len(records(path))
            for name, path in files(directory).items()}


@pytest.fixture(scope="module")
def written(collector):
    """What both programs wrote, and the Collector's file of JSON."""
    with collector(text(OTLP, {})) as theirs:
        sender = {"otlp_grpc": 'endpoint: "127.0.0.1:%d", tls: {insecure: true}, sending_queue: {num_consumers: 1}'
                  % theirs.port["otlp"]}
        with gate.gateway(text(OTLP, sender)) as g, peers.Client(g.port["otlp"]) as client:
            for body in bodies():
                client.send(body)
            for name in (*exporters(), "otlp_grpc"):
                gate.flushed(g, name)
            ours = read(g.directory, grouped=True)
        theirs.process.stop()
        return ours, read(theirs.directory, grouped=False), (theirs.directory / "one.json").read_bytes()


def test_the_files_have_the_same_names(written):
    ours, theirs, _ = written
    assert set(ours) == set(theirs)
    assert {name for name in ours if name.endswith(".json")} == {
        "one.json", "by/checkout.json", "by/shop/cart.json", "by/outside/x.json", "by/abs/olute.json", "by/b.json", "by/c.json",
        "by/last.json"}


@pytest.mark.parametrize("form", FORMS)
def test_the_files_have_the_same_records(written, form):
    ours, theirs, _ = written
    names = [name for name in theirs if name.startswith("by/") and name.endswith("." + form)]
    assert ours["one." + form] == theirs["one." + form] and len(theirs["one." + form]) == len(SERVICES)
    assert {name: len(ours[name]) for name in names} == {name: theirs[name] for name in names} and len(names) == 7


@pytest.mark.parametrize("form", FORMS)
def test_the_files_of_all_services_have_every_sample_once(written, form):
    """But for the resource without a name."""
    ours, _, _ = written
    found = sum((one for name in ours if name.startswith("by/") and name.endswith("." + form) for one in ours[name]), Counter())
    every = sum(ours["one." + form], Counter())
    assert found <= every and sum((every - found).values()) == 20
    assert all(key[0] == next(iter(every - found))[0] for key in every - found)


READER = """
receivers: {otlp_json_file: {include: [%s], start_at: beginning, poll_interval: 50ms}}
exporters: {file: {path: again.pb, format: proto}}
service: {pipelines: {profiles: {receivers: [otlp_json_file], exporters: [file]}}}
"""


def test_the_receiver_reads_the_file_of_the_collector(written, tmp_path):
    (tmp_path / "theirs.json").write_bytes(written[2])
    with gate.gateway(READER % (tmp_path / "theirs.json")) as g:
        g.until(lambda: g.total("otelcol_receiver_otlp_json_file_lines", outcome="success") == len(SERVICES))
        gate.flushed(g, "file")
        assert documents(g.directory / "again.pb") == written[1]["one.json"]
