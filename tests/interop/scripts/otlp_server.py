# SPDX-License-Identifier: Apache-2.0
"""An OTLP server without a line of ours: keeps what it understood, written again by its own classes.

    otlp_server.py PORT DIRECTORY    prints "ready"; the files are DIRECTORY/000000.pb and so on, each whole
"""
import itertools
import os
import sys
from concurrent import futures

import grpc
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2_grpc as service_grpc

LIMIT = [("grpc.max_receive_message_length", 1 << 30)]


class Profiles(service_grpc.ProfilesServiceServicer):
    def __init__(self, directory):
        self.directory, self.number = directory, itertools.count()

    def Export(self, request, context):
        request.DiscardUnknownFields()
        path = os.path.join(self.directory, "%06d.pb" % next(self.number))
        with open(path + ".part", "wb") as file:
            file.write(request.SerializeToString())
        os.rename(path + ".part", path)
        return service.ExportProfilesServiceResponse()


def main(port, directory):
    server = grpc.server(futures.ThreadPoolExecutor(4), options=LIMIT)
    service_grpc.add_ProfilesServiceServicer_to_server(Profiles(directory), server)
    server.add_insecure_port("127.0.0.1:" + port)
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()


main(*sys.argv[1:])
