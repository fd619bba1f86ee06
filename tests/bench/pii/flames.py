# SPDX-License-Identifier: Apache-2.0
"""The flame graph of each real profile before and after `pii: {}`: distinct frames and distinct stacks."""
from harness import corpus, otlp, peers
from harness.gateway import Gateway

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:{port:otlp}, max_recv_msg_size_mib: 64}
      http: {endpoint: 127.0.0.1:{port:http}, max_request_body_size: 67108864}
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
    """(name of the file, how it is sent, [bodies])"""
    for path in corpus.files("otlp/*-v111.pb"):
        yield path.name, "grpc", [path.read_bytes()]
    for path in corpus.files("otlp/*-v18.*"):
        yield path.name, "grpc", [path.read_bytes()] if path.suffix == ".pb" else list(otlp.framed(path.read_bytes()))
    for path in corpus.files("otlp/*-v111.json"):
        yield path.name, "http", [path.read_bytes()]
    for path in corpus.files("otlp/*.jsonl"):
        yield path.name, "http", path.read_bytes().splitlines()
    for path in corpus.files("pprof/*"):
        yield path.name, "pprof", [path.read_bytes()]


def send(gateway, client, how, body):
    """False if there was no sample in it: nothing will arrive."""
    if how == "grpc":
        client.send(body)
        return True
    if how == "pprof":
        status, _, text = peers.post(gateway.port["pprof"], body)
        assert status == 204, text
        return True
    status, _, text = peers.post(gateway.port["http"], body, path="/v1development/profiles", headers={"Content-Type": "application/json"})
    assert status == 200, text
    return bool(otlp.samples(otlp.parse_json(body).SerializeToString()))


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

    def wait(self, gateway):
        got = []
        gateway.until(lambda: got.append(self.next()) or got[-1])
        return got[-1]


def compare(binary):
    """Yields (file, (frames, stacks) before, the same after) for each file of the corpus."""
    with Gateway(binary, CONFIG) as gateway, peers.Client(gateway.port["otlp"]) as client:
        ends = [Frames(gateway.directory / name) for name in ("before.binpb", "after.binpb")]
        for name, how, parts in bodies():
            graphs = [(set(), set()), (set(), set())]
            for body in parts:
                if send(gateway, client, how, body):
                    for seen, end in zip(graphs, ends):
                        for all_of_it, more in zip(seen, graph(end.wait(gateway))):
                            all_of_it |= more
            yield (name, *(tuple(map(len, seen)) for seen in graphs))
