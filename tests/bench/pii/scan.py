# SPDX-License-Identifier: Apache-2.0
"""Runs in a virtual environment of its own, without anything of ours: strings as a JSON list on stdin, and for each of them
[[what, start, end]] of what the tool that the argument names finds, in its default settings."""
import json
import sys


def scrubadub_finds(texts):
    import scrubadub

    scrubber = scrubadub.Scrubber()
    for text in texts:
        yield [[filth.type, filth.beg, filth.end] for filth in scrubber.iter_filth(text)]


def detect_secrets_finds(texts):
    from detect_secrets.core import scan
    from detect_secrets.settings import default_settings

    with default_settings():
        for text in texts:
            found = []
            for line in text.split("\n"):
                for secret in scan.scan_line(line):
                    start = text.find(secret.secret_value)
                    if start >= 0:
                        found.append([secret.type, start, start + len(secret.secret_value)])
            yield found


if __name__ == "__main__":
    finds = {"scrubadub": scrubadub_finds, "detect-secrets": detect_secrets_finds}[sys.argv[1]]
    json.dump(list(finds(json.load(sys.stdin))), sys.stdout)
