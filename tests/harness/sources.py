# SPDX-License-Identifier: Apache-2.0
"""What the C sources say to operators: log messages and metrics, read from the text of the files."""
import re

FOLDERS = ("base", "config", "exporters", "extensions", "gateway", "net", "pipeline", "processors", "profile", "receivers")
STRING = r'"(?:[^"\\]|\\.)*"'
CALL = re.compile(r"\blog_(info|warn|error)(?:_fields)?\(\s*((?:[^(),]|\([^()]*\))+),\s*((?:%s\s*)+|\w+)" % STRING)
METRIC = re.compile(r'"((?:otelcol_|target_)\w+)",\s*METRIC_')


def files(root):
    """(path, text) of every C file of the program."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.c")):
            yield path, path.read_text()


def joined(literals):
    """Adjacent string literals as one string; conversions become `...`."""
    text = "".join(x[1:-1] for x in re.findall(STRING, literals)).replace('\\"', '"')
    return re.sub(r"%[a-z]+", "...", text)


def message_of(text, call):
    """The message of a call: literals, or the format of the variable that was printed to just before."""
    if call[3].startswith('"'):
        return joined(call[3])
    formats = re.findall(r"\b%s = memory_format\(\s*((?:%s\s*)+)" % (call[3], STRING), text[:call.start()])
    assert formats, "a log message that nobody can look up: %r" % call[0]
    return joined(formats[-1])


def log_messages(root):
    """{message: set of levels} of every line that the program writes at level info or above."""
    found = {}
    for path, text in files(root):
        for call in CALL.finditer(text):
            found.setdefault(message_of(text, call), set()).add(call[1])
    return found


def log_calls(root):
    """How many calls there are, counted without understanding them."""
    return sum(len(re.findall(r"\blog_(?:info|warn|error)(?:_fields)?\(", text)) for _, text in files(root))


def understood_calls(root):
    return sum(len(CALL.findall(text)) for _, text in files(root))


def metrics(root):
    """The names of all metrics that the program defines."""
    return {name for _, text in files(root) for name in METRIC.findall(text)}
