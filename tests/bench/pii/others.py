# SPDX-License-Identifier: Apache-2.0
"""What others find in the same strings: the Collector's processor `redaction`, and two open detectors of PyPI."""
import functools
import json
import pathlib
import subprocess
import sys
import urllib.request

from harness import scrubbed
from interop import cache, process
from interop.collector import RedactionCollector

SCAN = pathlib.Path(__file__).resolve().parent / "scan.py"
# The patterns and switches of the processor's documentation; keys are not what this is about, so all are allowed.
DOCUMENTED = r"""{allow_all_keys: true, redact_all_types: true, summary: silent, blocked_key_patterns: [".*token.*", ".*api_key.*"],
    blocked_values: ["4[0-9]{12}(?:[0-9]{3})?", "(5[1-5][0-9]{14})"]}"""
CONFIG = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:{port:http}"}}}}
processors: {redaction: %s}
exporters: {file: {path: out.jsonl}}
service: {pipelines: {logs: {receivers: [otlp], processors: [redaction], exporters: [file]}}}
"""


def _log(entry, place):
    value = {"intValue": entry.text} if entry.role == "integer" else {"stringValue": entry.text}
    return {"body": {"intValue": str(place)}, "attributes": [{"key": "value", "value": value}]}


def _records(lines):
    for line in lines:
        for resource in json.loads(line)["resourceLogs"]:
            for scope in resource["scopeLogs"]:
                yield from scope["logRecords"]


def redaction(entries):
    """[spans] of what the real processor masked, each string an attribute of a log record of its own. Raises process.Absent."""
    became = [None] * len(entries)
    with RedactionCollector(CONFIG % DOCUMENTED) as collector:
        for first in range(0, len(entries), 500):
            body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [
                _log(entry, first + i) for i, entry in enumerate(entries[first:first + 500])]}]}]}
            call = urllib.request.Request("http://127.0.0.1:%d/v1/logs" % collector.port["http"], json.dumps(body).encode(),
                                          {"Content-Type": "application/json"})
            with urllib.request.urlopen(call, timeout=60) as answer:
                assert answer.status == 200
        collector.process.stop()  # writes what is buffered
        lines = (collector.directory / "out.jsonl").read_text().splitlines()
    for record in _records(lines):
        value = record["attributes"][0]["value"]
        became[int(record["body"]["intValue"])] = str(value.get("stringValue", value.get("intValue", "")))
    assert None not in became
    return [[("redaction", *span) for span in scrubbed.removed(entry.text, text)] for entry, text in zip(entries, became)]


@functools.lru_cache(maxsize=None)
def environment():
    """The virtual environment's python."""
    def make(directory):
        def run(*command):
            with process.directory() as scratch:
                process.run(["nice", "-n", "10", *command], scratch / "log", 900)
        run("/usr/bin/python3", "-m", "venv", directory)
        run(directory / "bin/python", "-m", "pip", "install", "-q", "-r", cache.RECIPES / "scanners.txt")

    return cache.product("scanners", "1", "scanners.txt", make, "%d.%d" % sys.version_info[:2]) / "bin/python"


def scanner(name, entries):
    """[[(what, start, end)]]; integers are no strings for these tools, and stay out. Raises process.Absent."""
    texts = [entry.text for entry in entries if entry.role != "integer"]
    done = subprocess.run([environment(), "-I", SCAN, name], input=json.dumps(texts), capture_output=True, text=True)
    if done.returncode:
        raise process.Absent("%s failed: %s" % (name, done.stderr.strip().splitlines()[-1:]))
    found = iter(json.loads(done.stdout))
    return [[] if entry.role == "integer" else [tuple(one) for one in next(found)] for entry in entries]
