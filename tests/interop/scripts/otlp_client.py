# SPDX-License-Identifier: Apache-2.0
"""An OTLP client without a line of ours: sends messages read by its own classes, and one that it makes itself.

    otlp_client.py TARGET none|gzip FILE...    prints one line of JSON for each answer
"""
import json
import sys
import time

import grpc
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2_grpc as service_grpc
from opentelemetry.proto.profiles.v1development import profiles_pb2 as profiles

LIMIT = [("grpc.max_send_message_length", 1 << 30)]


def own():
    """A profile as a program would write it that has only the messages' documentation."""
    request = service.ExportProfilesServiceRequest()
    d = request.dictionary
    d.string_table.extend(["", "cpu", "nanoseconds", "main", "main.c", "compute", "thread.name", "worker", "/bin/app"])
    d.mapping_table.extend([profiles.Mapping(), profiles.Mapping(memory_start=4096, memory_limit=8192, filename_strindex=8)])
    d.function_table.extend([profiles.Function(), profiles.Function(name_strindex=3, filename_strindex=4, start_line=1),
                             profiles.Function(name_strindex=5, filename_strindex=4, start_line=9)])
    d.location_table.extend([profiles.Location(),
                             profiles.Location(mapping_index=1, address=5000, lines=[profiles.Line(function_index=1, line=3)]),
                             profiles.Location(mapping_index=1, address=5100, lines=[profiles.Line(function_index=2, line=12)])])
    d.stack_table.extend([profiles.Stack(), profiles.Stack(location_indices=[2, 1]), profiles.Stack(location_indices=[1])])
    d.link_table.extend([profiles.Link(), profiles.Link(trace_id=bytes(range(16)), span_id=bytes(range(8)))])
    d.attribute_table.add()
    d.attribute_table.add(key_strindex=6).value.string_value = "worker"
    resource = request.resource_profiles.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "foreign"
    scope = resource.scope_profiles.add()
    scope.scope.name = "by.hand"
    profile = scope.profiles.add(time_unix_nano=time.time_ns(), duration_nano=10 ** 9, period=10 ** 7, profile_id=bytes(range(16)))
    for kind in (profile.sample_type, profile.period_type):
        kind.type_strindex, kind.unit_strindex = 1, 2
    profile.samples.add(stack_index=1, values=[70], attribute_indices=[1], link_index=1)
    profile.samples.add(stack_index=2, values=[30])
    return request


def main(target, compression, *files):
    requests = [own()]
    for name in files:
        with open(name, "rb") as file:
            requests.append(service.ExportProfilesServiceRequest.FromString(file.read()))
    with grpc.insecure_channel(target, LIMIT) as channel:
        stub = service_grpc.ProfilesServiceStub(channel)
        kind = grpc.Compression.Gzip if compression == "gzip" else grpc.Compression.NoCompression
        for request in requests:
            answer = stub.Export(request, timeout=60, compression=kind)
            print(json.dumps(MessageToDict(answer)), flush=True)


main(*sys.argv[1:])
