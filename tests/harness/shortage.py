# SPDX-License-Identifier: Apache-2.0
"""Memory that is short: requests whose last byte is missing hold a part of what the gateway has for requests."""
import socket

PATH = "/v1development/profiles"


class Holder:
    """Requests to the receiver otlp of several peers, so that 22 % of the room for requests are left."""
    SHARES = {"127.0.0.2": .38, "127.0.0.3": .31, "127.0.0.4": .18, "127.0.0.5": .13}

    def __init__(self, gateway):
        self.gateway, self.sockets = gateway, []

    def __enter__(self):
        g = self.gateway
        room = g.total("otelcol_memory_soft_limit_bytes") - g.total("otelcol_memory_baseline_bytes")
        free = 0.78 * room - g.total("otelcol_memory_charged_bytes")
        for address, share in self.SHARES.items():
            size = int(free * share)
            s = socket.create_connection(("127.0.0.1", g.port["http"]), source_address=(address, 0))
            self.sockets.append(s)
            s.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nx-tenant: holder\r\n"
                      b"Content-Length: %d\r\n\r\n" % (PATH.encode(), size) + bytes(size - 1))
        g.until(lambda: g.total("otelcol_memory_charged_bytes") > 0.75 * room)
        return self

    def __exit__(self, *_):
        for s in self.sockets:
            s.close()
