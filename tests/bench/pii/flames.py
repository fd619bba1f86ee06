# SPDX-License-Identifier: Apache-2.0
"""The flame graph of each real profile before and after `pii: {}`: distinct frames and distinct stacks."""
from harness import corpus, otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 64}}}
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}, max_request_body_size: 67108864}}
processors: {pii: {}}
exporters:
  file/before: {path: before.binpb, format: proto}
  file/after: {path: after.binpb, format: proto}
service:
  pipelines:
    profiles/before: {receivers: [otlp, pprof], exporters: [file/before]}
    profiles/after: {receivers: [otlp, pprof], processors: [pii], exporters: [file/after]}
"""
# Files whose graph may change, each with the reason.
CHANGED = {}


def bodies():
    """(name of the file, receiver, body)"""
    for path in corpus.files("otlp/*-v111.pb"):
        yield path.name, "otlp", path.read_bytes()
    for path in corpus.files("pprof/*"):
        yield path.name, "pprof", path.read_bytes()


def graph(data):
    """(frames, stacks): a frame is function, file and mapping; where there is no function, mapping and address."""
    d = otlp.parse(data).dictionary
    text = d.string_table
    functions = [(text[f.name_strindex], text[f.filename_strindex]) for f in d.function_table]
    mappings = [text[m.filename_strindex] for m in d.mapping_table]
    places = []
    for location in d.location_table:
        lines = [functions[line.function_index] for line in location.lines] or [location.address]
        places.append(tuple((mappings[location.mapping_index], line) for line in lines))
    stacks = {tuple(frame for place in stack.location_indices for frame in places[place]) for stack in d.stack_table[1:]}
    return {frame for stack in stacks for frame in stack}, stacks


class Frames:
    """The messages in a file that grows."""

    def __init__(self, path):
        self.path, self.place = path, 0

    def next(self):
        """The next message, or None if it is not there yet."""
        with open(self.path, "rb") as file:
            file.seek(self.place)
            data = file.read()
        if len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            return None
        self.place += 4 + int.from_bytes(data[:4], "big")
        return data[4:4 + int.from_bytes(data[:4], "big")]


def compare(binary):
    """Yields (file, (frames, stacks) before, the same after) for each file of the corpus."""
    with Gateway(binary, CONFIG) as gateway, peers.Client(gateway.port["otlp"]) as client:
        ends = [Frames(gateway.directory / name) for name in ("before.binpb", "after.binpb")]
        for name, receiver, body in bodies():
            if receiver == "otlp":
                client.send(body)
            else:
                status, _, text = peers.post(gateway.port["pprof"], body)
                assert status == 204, (name, text)
            got = [None, None]

            def arrived():
                for i, end in enumerate(ends):
                    got[i] = got[i] or end.next()
                return all(got)
            gateway.until(arrived)
            yield (name, *(tuple(map(len, graph(data))) for data in got))
