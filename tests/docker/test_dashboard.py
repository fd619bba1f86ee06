# SPDX-License-Identifier: Apache-2.0
"""The dashboard and the alert rules ask for nothing that a running gateway does not have."""
import json
import pathlib
import re

import pytest
import yaml

from harness import book, build as make, peers
from harness.gateway import Gateway, free_port

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
REFERENCE = (ROOT / book.REFERENCE).read_text()
DASHBOARD, ALERTS = ROOT / "docker/monitoring/dashboard.json", ROOT / "docker/monitoring/alerts.yaml"
# Prometheus adds these to what it scrapes.
OF_TARGETS, METRICS_OF_TARGETS = {"instance", "job"}, {"up"}
SELECTOR = re.compile(r"(?<![\w$])((?:otelcol|target)_\w+|up)\b(?:\{([^}]*)\})?")
CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: '127.0.0.1:{port:otlp}'}}}}
exporters: {pyroscope: {endpoint: 'http://127.0.0.1:{port:closed}', limits: {max_age: 876000h}}}
service:
  kill_switch: {file: rules}
  pipelines: {profiles: {receivers: [otlp], exporters: [pyroscope]}}
"""


def expressions():
    """(name, expression, labels that texts beside it name) of both files."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"], set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"], set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    for variable in json.loads(DASHBOARD.read_text())["templating"]["list"]:
        if variable["type"] == "query":
            expression, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()
            yield variable["name"], expression, {label}


ALL = list(expressions())


@pytest.fixture(scope="module")
def labels(build, tmp_path_factory):
    """{metric: the labels of its series} of a gateway whose destination is down."""
    directory = tmp_path_factory.mktemp("gateway")
    (directory / "rules").write_text("")
    with Gateway(build / "portcullis", CONFIG.replace("{port:closed}", str(free_port())), cwd=directory) as g:
        with peers.Client(g.port["otlp"]) as client:
            client.send(make.request(1))
        g.until(lambda: g.total("otelcol_exporter_last_error") == 1)
        found = {}
        for (name, pairs), _ in g.metrics().items():
            found.setdefault(name, set()).update(key for key, _ in pairs)
        return found


@pytest.mark.parametrize("name, expression, named", ALL, ids=["%s, %d" % (row[0], i) for i, row in enumerate(ALL)])
def test_an_expression_names_metrics_and_labels_that_exist(labels, name, expression, named):
    selectors = SELECTOR.findall(expression)
    assert selectors and expression.count("(") == expression.count(")")
    grouped = [set(re.findall(r"\w+", names)) for names in re.findall(r"\bby \(([^)]*)\)", expression)]
    for metric, matchers in selectors:
        if metric in METRICS_OF_TARGETS:
            continue
        has = labels[metric] | OF_TARGETS
        assert "| `%s` |" % metric in REFERENCE
        assert set(re.findall(r'(\w+)(?:=~|!~|!=|=)"', matchers)) <= has, metric
        assert set().union(*grouped) <= has, metric
        assert named <= (grouped[0] if grouped else has), metric


def test_a_name_that_does_not_exist_is_found(labels):
    for wrong in ("otelcol_exporter_uptime == 0", 'otelcol_exporter_up{destination="x"}', "sum by (store) (otelcol_exporter_up)"):
        with pytest.raises((AssertionError, KeyError)):
            test_an_expression_names_metrics_and_labels_that_exist(labels, "", wrong, set())
    with pytest.raises(AssertionError):
        test_an_expression_names_metrics_and_labels_that_exist(labels, "", "otelcol_exporter_up", {"store"})


def test_the_rules_are_of_the_form_that_prometheus_reads():
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        names = [rule["alert"] for rule in group["rules"]]
        assert len(names) == len(set(names)) > 8
        for rule in group["rules"]:
            assert set(rule) - {"for"} == {"alert", "expr", "labels", "annotations"}, rule
            assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m")) and rule["labels"]["severity"] in ("page", "ticket")


def test_the_panels_of_the_dashboard_have_places_of_their_own():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    cells = [(x, y) for p in panels for x in range(p["gridPos"]["x"], p["gridPos"]["x"] + p["gridPos"]["w"])
             for y in range(p["gridPos"]["y"], p["gridPos"]["y"] + p["gridPos"]["h"])]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24
    assert len({p["id"] for p in panels}) == len(panels)
