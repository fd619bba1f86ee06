# SPDX-License-Identifier: Apache-2.0
"""Senders of every generation of OTLP reach the same destination, which gets the current layout."""
import struct
import subprocess

import grpc
import otlp_collector_pb2 as collector
import pytest

from harness import corpus, generations, otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 64}}SCHEMA}
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:{port:sink}, tls: {insecure: true}}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_grpc]}
"""
EXPERIMENTAL = otlp.METHOD.replace("v1development", "v1experimental")


class Passage:
    def __init__(self, build, schema=None, text=CONFIG):
        self.gateway = Gateway(build / "portcullis", text.replace("SCHEMA", ", schema: " + schema if schema else ""))
        self.sink = peers.Sink(self.gateway.port["sink"])

    def __enter__(self):
        self.sink.start()
        self.gateway.__enter__()
        return self

    def __exit__(self, *error):
        self.gateway.__exit__(*error)
        self.sink.stop()

    def client(self):
        return peers.Client(self.gateway.port["otlp"])

    def carry(self, body, method=otlp.METHOD):
        """What arrives at the destination."""
        count = len(self.sink.received)
        with self.client() as client:
            answer = otlp.Response.FromString(client.channel.unary_unary(method)(body, timeout=60))
        assert not answer.HasField("partial_success"), answer
        self.gateway.until(lambda: len(self.sink.received) > count)
        return self.sink.received[count]

    def requests(self, generation):
        return self.gateway.total("otelcol_receiver_otlp_requests", receiver="otlp", generation=generation)


@pytest.fixture(scope="module")
def passage(build):
    with Passage(build) as p:
        yield p


@pytest.mark.parametrize("release", [*generations.OLD, "1_10"])
def test_every_generation_arrives_in_the_current_layout(passage, release):
    generation = generations.GENERATIONS[release]
    before = passage.requests(generation)
    for seed in range(3):
        request = generations.logical(release, seed)
        sent = passage.carry(generations.write(release, request))
        want = generations.expected(release, request) if release != "1_10" else generations.write(release, request)
        assert otlp.samples(sent) == otlp.samples(want)
    assert passage.requests(generation) == before + 3


def real_1_8():
    for path in corpus.files("otlp/*-v18.*"):
        parts = [path.read_bytes()] if path.suffix == ".pb" else list(otlp.framed(path.read_bytes()))
        yield from (pytest.param(part, id="%s#%d" % (path.name, i)) for i, part in enumerate(parts))


@pytest.mark.parametrize("body", real_1_8())
def test_real_requests_of_1_8_arrive_with_every_attribute_and_value(passage, body):
    assert otlp.samples(passage.carry(body)) == otlp.samples(generations.renamed("1_8", body))


def ambiguous(numbers):
    """A request whose samples have only the fields 1, 2 and 5; the dictionary has two attributes."""
    m = collector.ExportProfilesServiceRequest()
    m.dictionary.string_table.extend(["", "key"])
    for table in ("mapping", "location", "function", "link"):
        getattr(m.dictionary, table + "_table").add()
    m.dictionary.location_table.add(address=7)
    m.dictionary.stack_table.add()
    m.dictionary.stack_table.add(location_indices=[1])
    m.dictionary.attribute_table.add()
    m.dictionary.attribute_table.add(key_strindex=1).value.int_value = 1
    p = m.resource_profiles.add().scope_profiles.add().profiles.add()
    for number in numbers:
        p.samples.add(stack_index=1, attribute_indices=[number], timestamps_unix_nano=[5])
    return m.SerializeToString()


def value_of(sent):
    return [list(s.values) for _, _, p in otlp.Reader(otlp.parse(sent)).each_profile() for s in p.samples]


def refusal(client, body):
    with pytest.raises(grpc.RpcError) as error:
        client.send(body)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    return error.value.details()


def test_an_ambiguous_request_is_rejected_and_the_setting_is_named(build):
    with Passage(build) as p, p.client() as client:
        assert "OTLP 1.9 or of OTLP 1.10 or newer" in refusal(client, ambiguous([700]))
        assert "`schema`" in refusal(client, ambiguous([700]))
        assert p.requests("ambiguous") == 2


def test_the_setting_decides_about_an_ambiguous_request_only(build):
    with Passage(build, "v1.9") as p:
        assert value_of(p.carry(ambiguous([700]))) == [[700]]
        assert value_of(p.carry(ambiguous([1]))) == [[]]  # an index of the attribute table
        assert (p.requests("1.9"), p.requests("1.10")) == (1, 1)


def test_a_setting_that_is_impossible_decides_nothing(build):
    with Passage(build, "v1.7") as p, p.client() as client:
        assert "ambiguous" in refusal(client, ambiguous([700]))


def test_the_senders_earlier_verdict_decides(build):
    logical = generations.Request([generations.Profile([("cpu", "ns", 0)], [
        generations.Sample([], [3], (("pid", 1, ""),))])], {"service.name": "a"})
    with Passage(build) as p:
        p.carry(generations.write("1_9", logical))
        assert value_of(p.carry(ambiguous([700]))) == [[700]]
        assert p.requests("1.9") == 2


def test_a_sender_of_several_generations_is_not_guessed_about(build):
    logical = generations.Request([generations.Profile([("cpu", "ns", 0)], [
        generations.Sample([], [3], (("pid", 1, ""),))])], {"service.name": "a"})
    with Passage(build) as p, p.client() as client:
        p.carry(generations.write("1_9", logical))
        p.carry(generations.write("1_10", logical))
        assert "ambiguous" in refusal(client, ambiguous([700]))


def test_the_path_of_1_3_takes_every_generation(passage):
    for release in ("1_9", "1_10"):
        request = generations.logical(release, 1)
        assert otlp.samples(passage.carry(generations.write(release, request), EXPERIMENTAL)) == \
            otlp.samples(generations.expected(release, request))


def test_every_pipeline_of_the_receiver_gets_the_translation(build):
    with Passage(build, text=CONFIG.replace("pipelines:\n", "pipelines:\n    profiles/b: {receivers: [otlp], exporters: [otlp_grpc]}\n")) as p:
        request = generations.logical("1_7", 2)
        p.carry(generations.write("1_7", request))
        p.gateway.until(lambda: len(p.sink.received) == 2)
        want = otlp.samples(generations.expected("1_7", request))
        assert [otlp.samples(sent) for sent in p.sink.received] == [want, want]
        assert p.requests("1.7") == 1


def test_a_large_request_is_translated_by_a_worker(passage):
    request = generations.logical("1_9", 5, samples=3000)
    body = generations.write("1_9", request)
    assert len(body) > 65536
    assert otlp.samples(passage.carry(body)) == otlp.samples(generations.expected("1_9", request))


def test_garbage_in_an_older_layout_is_rejected_with_its_place(passage):
    body = generations.write("1_8", generations.logical("1_8", 1))
    # ValueType.aggregation_temporality as a string
    broken = b"\x0a" + struct.pack("B", 10) + b"\x12\x08\x12\x06" + b"\x0a\x02\x1a\x00" + b"\x42\x00"
    with passage.client() as client:
        assert refusal(client, body + broken) == \
            "resource_profiles[1].scope_profiles[0].profiles[0]: a ValueType contains a known field with the wrong wire type"


def broken(change):
    """Three Profiles in the messages of 1.7, the second with something wrong."""
    request = generations.logical("1_7", 4, samples=5, profiles=3)
    message = generations.module("1_7").ExportProfilesServiceRequest.FromString(generations.write("1_7", request))
    change(message.resource_profiles[0].scope_profiles[0].profiles[1].sample[2])
    return message.SerializeToString(), generations.expected("1_7", request)


def set_value(name, value):
    def change(sample):
        if isinstance(value, list):
            getattr(sample, name).extend(value)
        else:
            setattr(sample, name, value)
    return change


@pytest.mark.parametrize("name, value", [
    ("locations_length", 10 ** 6), ("locations_start_index", -1), ("locations_start_index", 2 ** 31 - 1),
    ("link_index", 10 ** 6), ("link_index", -1), ("attribute_indices", [10 ** 6]), ("attribute_indices", [-5]),
    ("value", [1, 2, 3, 4, 5])])
def test_a_mistake_in_a_sample_costs_its_profile_only(passage, name, value):
    body, want = broken(set_value(name, value))
    count = len(passage.sink.received)
    with passage.client() as client:
        answer = client.send(body)
    assert answer.partial_success.rejected_profiles >= 1 and "profiles[" in answer.partial_success.error_message
    passage.gateway.until(lambda: len(passage.sink.received) > count)
    arrived, wanted = otlp.profiles(passage.sink.received[count]), otlp.profiles(want)
    assert 0 < len(arrived) == len(wanted) - answer.partial_success.rejected_profiles
    assert all(profile in wanted for profile in arrived)


@pytest.mark.parametrize("release", [*generations.OLD, "1_10"])
def test_no_byte_of_what_is_left_out_arrives(passage, release):
    sent = passage.carry(generations.write(release, generations.logical(release, 6)))
    assert b"canary" not in sent


@pytest.mark.parametrize("release", generations.OLD)
def test_explain_reads_a_file_of_every_generation(build, tmp_path, release):
    body = generations.write(release, generations.logical(release, 1))
    (tmp_path / "body").write_bytes(body)
    (tmp_path / "config").write_text("""
receivers: {otlp: {protocols: {grpc: {endpoint: 127.0.0.1:4317}}}}
exporters: {debug: {}}
service: {pipelines: {profiles: {receivers: [otlp], exporters: [debug]}}}
""")
    done = subprocess.run([build / "portcullis", "explain", "--config", tmp_path / "config", tmp_path / "body"], capture_output=True,
                          text=True, check=True)
    want = generations.expected(release, generations.logical(release, 1))
    count = sum(len(sp.profiles) for rp in want.resource_profiles for sp in rp.scope_profiles)
    assert "in:  OTLP, %d bytes, %d profiles" % (len(body), count) in done.stdout
