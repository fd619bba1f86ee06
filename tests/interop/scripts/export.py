# SPDX-License-Identifier: Apache-2.0
"""A client on grpcio; clients.py says what it is asked and what it prints."""
import collections
import concurrent.futures
import sys
import time

import grpc


def read(name):
    with open(name, "rb") as file:
        return file.read()


def channel(target, options):
    more = [("grpc.max_send_message_length", -1)]
    if "keepalive" in options:
        more += [("grpc.keepalive_time_ms", int(options["keepalive"]) * 1000), ("grpc.keepalive_permit_without_calls", 1),
                 ("grpc.http2.max_pings_without_data", 0)]
    kind = grpc.Compression.Gzip if "gzip" in options else grpc.Compression.NoCompression
    if "ca" not in options:
        return grpc.insecure_channel(target, more, kind)
    own = [read(options[name]) if name in options else None for name in ("key", "cert")]
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(read(options["ca"]), *own), more, kind)


def main(target, *words):
    calls = [word.split(":") for word in words if word[0] == "/"]
    calls = [(method, read(file)) for method, file in calls]
    options = dict(word.split("=") for word in words if word[0] != "/")
    deadline = int(options.get("deadline", 60))
    with channel(target, options) as opened, concurrent.futures.ThreadPoolExecutor(int(options.get("calls", 1))) as pool:
        def send(call):
            try:
                return "0 " + opened.unary_unary(call[0])(call[1], timeout=deadline).hex()
            except grpc.RpcError as error:
                return "%d " % error.code().value[0]

        answers = collections.Counter()
        for i in range(int(options.get("rounds", 1))):
            time.sleep(int(options.get("pause", 0)) if i else 0)
            answers.update(pool.map(send, calls))
    for answer, count in answers.items():
        print(count, answer)


main(*sys.argv[1:])
