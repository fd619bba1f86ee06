# SPDX-License-Identifier: Apache-2.0
"""What README and manual say of log messages, metrics, reasons and other pages is so."""
import pathlib
import re
import subprocess

import pytest

from harness import book, build as make, peers, sources
from harness.gateway import Gateway

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OPERATING = (ROOT / "docs/manual/operating.md").read_text()
REFERENCE = (ROOT / book.REFERENCE).read_text()
RENAMED = [cells for cells in book.rows((ROOT / "docs/manual/renamed-metrics.md").read_text()) if cells[0].startswith("`")]
METRIC = r"\b(?:otelcol_|target_)\w+"
CONFIG = """
receivers:
  pprof: {server: {endpoint: 127.0.0.1:{port:pprof}}}
exporters:
  debug: {}
service:
  pipelines:
    profiles: {receivers: [pprof], exporters: [debug]}
"""
MISSING = {
    "Other authenticators": "extensions.oidc={}",
}


@pytest.mark.parametrize("name", MISSING)
def test_what_is_said_to_be_missing_is_missing(build, tmp_path, name):
    """Whoever builds one of these takes it off the list of what the gateway does not do yet."""
    assert "- **%s" % name in book.section((ROOT / "docs/manual/introduction.md").read_text(), "What it does not do yet")
    (tmp_path / "gateway.yaml").write_text(CONFIG.replace("{port:pprof}", "1"))
    command = [build / "portcullis", "validate", "--config", tmp_path / "gateway.yaml", "--set"]
    assert subprocess.run([*command, "exporters.debug.verbosity=basic"], capture_output=True).returncode == 0
    assert subprocess.run([*command, MISSING[name]], capture_output=True).returncode == 1


def test_every_log_message_is_explained():
    assert sources.log_calls(ROOT) == sources.understood_calls(ROOT)
    cells = [row for row in book.rows((ROOT / "docs/manual/logs.md").read_text()) if row[0] in ("info", "warn", "error")]
    explained = {(row[0], row[1].strip("`")) for row in cells}
    written = {(level, message) for message, levels in sources.log_messages(ROOT).items() for level in levels}
    assert len(cells) == len(explained), "each once"
    assert (sorted(written - explained), sorted(explained - written)) == ([], [])


def test_every_cause_of_a_failure_is_explained():
    """With the words that the log has, which tests/e2e/test_failures.py compares with what real servers cause."""
    source = (ROOT / "net/cause.c").read_text()
    stages = dict(re.findall(r'#define (\w+) "(\w+)"', source))
    written = [(stages[stage], text) for stage, text in re.findall(r'= \{ ([A-Z]+), "([^"]+)" \}', source)]
    explained = re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", book.section(OPERATING, "A destination is down"), re.M)[1:]
    assert len(written) > 20 and written == explained


def test_every_error_of_kafka_is_explained():
    """tests/exporters/test_kafka.py compares the words of the log with what brokers cause."""
    source = (ROOT / "net/kafka/kafka_client.c").read_text()
    given = set(re.findall(r'\bKAFKA_\w+, "(\w+)"|\b(?:RETRY|PERMANENT)\(\w+, "(\w+)"', source))
    tables = [book.section(OPERATING, title) for title in ("A destination is down", "A destination rejects data")]
    explained = {word for table in tables for row in book.rows(table) for word in re.findall(r"`(\w+)`", row[0])}
    words = {a or b for a, b in given} - {"ok"}
    assert len(words) > 15 and words - explained == set()


def test_every_metric_stands_in_the_reference():
    defined = sources.metrics(ROOT)
    assert len(defined) > 50
    assert defined == set(re.findall(r"^\| `(%s)` \|" % METRIC, REFERENCE, re.M))


@pytest.mark.parametrize("page", [page for page in book.pages(ROOT) if "renamed" not in page])
def test_metrics_that_a_page_names_exist(page):
    text = (ROOT / page).read_text()
    assert sorted(set(re.findall(METRIC, text)) - sources.metrics(ROOT)) == []


def test_renamed_metrics_have_one_of_their_names():
    defined = sources.metrics(ROOT)
    for old, new, why in RENAMED:
        old, new = (re.match(METRIC, name.strip("`"))[0] for name in (old, new))
        assert (old in defined) != (new in defined) and why, (old, new)


def test_every_reason_is_explained(build):
    with Gateway(build / "portcullis", CONFIG) as gateway:
        assert peers.post(gateway.port["pprof"], make.pprof(1).SerializeToString())[0] == 204
        gateway.until(lambda: gateway.total("otelcol_ledger_out_samples") > 0)
        found = gateway.metrics()
    refused, dropped = book.section(OPERATING, "Reasons").split("Why samples were dropped")
    for metric, text in (("otelcol_receiver_refused_requests", refused), ("otelcol_ledger_dropped_samples", dropped)):
        counted = {dict(labels)["reason"] for name, labels in found if name == metric}
        explained = {word for cells in book.rows(text) for word in re.findall(r"`(\w+)`", cells[0])}
        assert (sorted(counted - explained), sorted(explained - counted)) == ([], []), metric


def test_the_errors_that_are_quoted_are_those_of_the_program():
    """tests/config/mistakes.txt has the exact errors; those of destinations are the matter of tests/gateway/test_connect.py."""
    mistakes = (ROOT / "tests/config/mistakes.txt").read_text()
    quoted = re.findall(r"^Error: gateway\.yaml:\d+:\d+: (.*)$", OPERATING, re.M)
    assert quoted and [q for q in quoted if q not in mistakes and "does not accept data" not in q] == []
    table = book.section(OPERATING, "It does not start")
    parts = [part for cells in book.rows(table) for part in re.findall(r"`([^`]+)`", cells[0])]
    sources = "".join(path.read_text() for path in ROOT.glob("*/**/*.c") if path.parts[len(ROOT.parts)] not in ("tests", "build"))
    code = re.sub(r'"\s*(PRI\w+\s*)?"', "", sources)
    assert parts and [part for part in parts if part not in mistakes and part not in code] == []


@pytest.mark.parametrize("page", [*book.pages(ROOT), book.REFERENCE])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", (ROOT / page).read_text()):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.is_file(), target
        assert not anchor or anchor in book.anchors(file.read_text()), target


def test_the_index_names_every_chapter():
    index = (ROOT / "docs/MANUAL.md").read_text()
    for path in (ROOT / "docs/manual").glob("*.md"):
        assert "](manual/%s)" % path.name in index


def test_keys_that_are_compared_with_the_collectors_exist():
    keys = {key.rpartition(".")[2] for key in re.findall(r"^\| `([^`]+)` \|", REFERENCE, re.M)}
    components = set(re.findall(r"^### \w+ `(\w+)`", REFERENCE, re.M))
    table = book.section((ROOT / "docs/manual/collector.md").read_text(), "Keys")
    compared = {code for cells in book.rows(table) for code in re.findall(r"`([a-z][\w.]+)`", cells[0])}
    assert len(compared) > 30
    assert sorted(code for code in compared if code.rpartition(".")[2] not in keys | components) == []


def test_keys_that_components_share_are_printed_once():
    rows = re.findall(r"^\| `(client_ca_file|server_name_override|num_consumers|multiplier|max_series|max_header_count)`", REFERENCE, re.M)
    assert sorted(rows) == sorted(set(rows)) and len(rows) == 6
    for key in ("client_ca_file", "num_consumers", "multiplier", "max_header_count"):
        assert not re.search(r"^\| `[^`]*\.%s`" % key, REFERENCE, re.M), key
