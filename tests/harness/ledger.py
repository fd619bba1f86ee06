# SPDX-License-Identifier: Apache-2.0
"""The ledger, as one scrape and as the last lines of the log show it, checked by rules of our own."""
import collections
import json
import re

SOURCES = {"in", "entered", "restored"}
PREFIX = {"receiver": "receiver_", "tenant": "tenant_"}


def rows(scrape):
    """{(("pipeline", p), ("exporter", e)): {column: samples}} of all rows; a dropped column is the sum of its reasons."""
    found = collections.defaultdict(collections.Counter)
    for (name, have), value in scrape.items():
        match = re.fullmatch("otelcol_ledger_(.*)_samples", name)
        if match:
            labels = {k: v for k, v in have if k != "reason"}
            column = match[1]
            for scope, prefix in PREFIX.items():
                if scope in labels:
                    assert column.startswith(prefix), name
                    column = column[len(prefix):]
            found[tuple(sorted(labels.items()))][column] += int(value)
    return found


def check(scrape):
    """Every row balances; and what the pipelines passed on is at their destinations. Returns the rows."""
    found = rows(scrape)
    for labels, row in found.items():
        assert all(v >= 0 for v in row.values()), (labels, row)
        assert sum(v if k in SOURCES else -v for k, v in row.items()) == 0, (labels, row)
        if "exporter" in dict(labels):
            pipeline = found[(("pipeline", dict(labels)["pipeline"]),)]
            assert pipeline["passed"] == row["entered"], (labels, row, pipeline)
    return found


def logged(log):
    """The same rows, from the lines that a shutdown writes: [(message, fields)]."""
    lines = [line.split("\t") for line in log.splitlines() if "\tLedger of " in line]
    return [(line[3], json.loads(line[4])) for line in lines]


def check_logged(log):
    found = logged(log)
    for message, fields in found:
        numbers = {k: v for k, v in fields.items() if isinstance(v, int) and k != "tenants"}
        assert sum(v if k in SOURCES else -v for k, v in numbers.items()) == 0, (message, fields)
    return found
