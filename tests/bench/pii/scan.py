# SPDX-License-Identifier: Apache-2.0
"""Runs in a virtual environment of its own, without anything of ours: strings as a JSON list on stdin, and for each of them
[[what, start, end]] of what the tool that the argument names finds, in its default settings."""
import json
import sys
import tempfile


def scrubadub_finds(texts):
    import scrubadub

    scrubber = scrubadub.Scrubber()
    for text in texts:
        yield [[filth.type, filth.beg, filth.end] for filth in scrubber.iter_filth(text)]


def detect_secrets_finds(texts):
    """All strings are lines of one file, for its thresholds apply to files only."""
    from detect_secrets.core import scan
    from detect_secrets.settings import default_settings

    lines = [(i, line) for i, text in enumerate(texts) for line in text.split("\n")]
    found = [[] for _ in texts]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file, default_settings():
        file.write("\n".join(line for _, line in lines) + "\n")
        file.flush()
        for secret in scan.scan_file(file.name):
            i, _ = lines[secret.line_number - 1]
            start = texts[i].find(secret.secret_value)
            if start >= 0:
                found[i].append([secret.type, start, start + len(secret.secret_value)])
    return found


if __name__ == "__main__":
    finds = {"scrubadub": scrubadub_finds, "detect-secrets": detect_secrets_finds}[sys.argv[1]]
    json.dump(list(finds(json.load(sys.stdin))), sys.stdout)
