# SPDX-License-Identifier: Apache-2.0
"""Senders that use another service name or path."""
import grpc

from harness import build as make
from harness import chaos, peers

ORACLE = "Every published service name and path works. Any other is refused with a message that names those that work."
SERVICE = "/opentelemetry.proto.collector.profiles.%s.ProfilesService/Export"


def test_every_known_place_works_and_others_are_named(build, record_property):
    sink, sent = peers.Sink(), 0
    paths = "/v1development/profiles", "/v1experimental/profiles", "/v1/profiles"
    text = chaos.one().replace("max_request_body_size", "profiles_url_paths: [%s], max_request_body_size" % ", ".join(paths))
    with chaos.running(build, text, ("a", sink)) as gateway, peers.Client(gateway.port["grpc"]) as client:
        for version in ("v1development", "v1experimental"):
            client.channel.unary_unary(SERVICE % version)(make.request(sent, samples=10).SerializeToString(), timeout=30)
            sent += 1
        for path in paths:
            status, _, body = peers.post(gateway.port["http"], make.request(sent, samples=10).SerializeToString(), path, chaos.PROTOBUF)
            assert status == 200, (path, status, body)
            sent += 1
        try:
            client.channel.unary_unary(SERVICE % "v9")(b"", timeout=30)
            raise AssertionError("was accepted")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNIMPLEMENTED
            assert all(SERVICE % version in error.details() for version in ("v1development", "v1experimental")), error.details()
        status, _, body = peers.post(gateway.port["http"], b"", "/v9/profiles", chaos.PROTOBUF)
        assert status == 404 and all(path.encode() in body for path in paths), (status, body)
        chaos.settled(gateway, "otlp_grpc")
        assert sum(sink.samples().values()) == 10 * sent
    record_property("figure", "%d places" % sent)
