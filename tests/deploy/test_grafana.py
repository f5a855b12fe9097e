"""Dashboard and alerting rules: all that they name exists."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import promql_parser
import pytest
import yaml
from promql_parser import AggregateExpr, BinaryExpr, VectorSelector

from tests.deploy.documented import README, documented_metrics, runbook_anchors

FOLDER = README.parent / "grafana"

DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))

RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]

VARIABLES: dict[str, Any] = {each["name"]: each for each in DASHBOARD["templating"]["list"]}

OTHER = {"datasource", "page"}
"""Variables that Prometheus does not fill."""

PANELS = [each for each in DASHBOARD["panels"] if each["type"] != "row"]

TARGET = {"job", "instance"}
"""Labels that Prometheus adds to everything."""

SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "gauge": ("",), "counter": ("",)}


def labels_of() -> dict[str, set[str]]:
    """Return each time series by its name, with its labels."""
    series = {"up": set(TARGET)}
    for name, documented in documented_metrics().items():
        for suffix in SUFFIXES[documented.type]:
            le = {"le"} if suffix == "_bucket" else set()
            series[name + suffix] = {*documented.labels, *TARGET, *le}
    return series


SERIES = labels_of()


def queries() -> Iterator[Any]:
    for panel in PANELS:
        for target in panel["targets"]:
            yield pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")
    for annotation in DASHBOARD["annotations"]["list"]:
        yield pytest.param(annotation["expr"], id=f"annotation {annotation['name']}")
    for rule in RULES:
        yield pytest.param(rule["expr"], id=rule["alert"])


def nodes(expression: str) -> list[Any]:
    """Return all parts of a query, which must parse; Grafana replaces its interval."""
    found: list[Any] = []
    parsed = promql_parser.parse(expression.replace("$__rate_interval", "5m"))
    promql_parser.walk(parsed, found.append)
    return found


def problems(expression: str) -> list[str]:
    """Return what a query names that does not exist."""
    selectors = [n for n in nodes(expression) if isinstance(n, VectorSelector)]
    wrong = [f"no metric {each.name}" for each in selectors if each.name not in SERIES]
    known: set[str] = set()
    for each in selectors:
        own = SERIES.get(each.name or "", set())
        known |= own
        asked = {matcher.name for matcher in each.matchers.matchers}
        wrong += [f"{each.name} has no label {name}" for name in asked - own]
    for node in nodes(expression):
        named: set[str] = set()
        if isinstance(node, AggregateExpr) and node.modifier:
            named = set(node.modifier.labels)
        elif isinstance(node, BinaryExpr) and node.modifier:
            on = node.modifier.matching
            named = {*(on.labels if on else ()), *(node.modifier.group_labels or ())}
        wrong += [f"no label {name} in {node.prettify()}" for name in named - known]
    return wrong


@pytest.mark.parametrize("expression", list(queries()))
def test_every_metric_and_label_of_a_query_exists(expression: str) -> None:
    assert not problems(expression)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("fluxplain_lags", "no metric fluxplain_lags"),
        ("fluxplain_step_seconds", "no metric fluxplain_step_seconds"),
        ('fluxplain_ready{feature="a"}', "fluxplain_ready has no label feature"),
        ("sum by (shard) (fluxplain_ready)", "no label shard"),
        ("fluxplain_ready * on (shard) fluxplain_ready", "no label shard"),
        (
            "fluxplain_ready * on (job) group_left (shard) fluxplain_build_info",
            "no label shard",
        ),
    ],
)
def test_what_does_not_exist_is_found(expression: str, problem: str) -> None:
    assert any(each.startswith(problem) for each in problems(expression))


def test_what_is_no_query_is_found() -> None:
    with pytest.raises(ValueError, match="unclosed"):
        nodes("sum(up")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_it_is_by_labels_that_it_has(rule: dict[str, Any]) -> None:
    notes = rule["annotations"]
    assert notes["summary"]
    assert notes["description"]
    assert rule["labels"]["severity"] in {"info", "warning", "critical"}
    parsed = nodes(rule["expr"])
    sums: list[Any] = [each.modifier for each in parsed if isinstance(each, AggregateExpr)]
    of_series = [SERIES[str(each.name)] for each in parsed if isinstance(each, VectorSelector)]
    left = set(sums[0].labels) if rule["expr"].startswith("sum by") else set.union(*of_series)
    assert set(re.findall(r"\$labels\.(\w+)", json.dumps(notes))) <= left


def test_the_runbook_has_an_entry_for_each_alert_and_no_other() -> None:
    named = [rule["annotations"]["runbook"].partition("#") for rule in RULES]
    assert {path for path, _, _ in named} == {"deploy/README.md"}
    assert [anchor for _, _, anchor in named] == runbook_anchors()


def test_of_each_alert_promtool_checks_when_it_fires() -> None:
    path = README.parents[1] / "tests" / "deploy" / "checkers" / "alerts.yaml"
    streams = yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]
    fired = {
        case["alertname"]
        for stream in streams
        for case in stream["alert_rule_test"]
        if case.get("exp_alerts")
    }
    assert fired == {rule["alert"] for rule in RULES}


def test_the_dashboard_takes_its_data_from_where_it_is_told() -> None:
    source = {"type": "prometheus", "uid": "${datasource}"}
    assert VARIABLES["datasource"]["query"] == "prometheus"
    chosen = [each["datasource"] for name, each in VARIABLES.items() if name not in OTHER]
    shown = [target["datasource"] for panel in PANELS for target in panel["targets"]]
    marked = [each["datasource"] for each in DASHBOARD["annotations"]["list"]]
    for each in (*chosen, *shown, *marked, *(panel["datasource"] for panel in PANELS)):
        assert each == source
    assert DASHBOARD["id"] is None, "else an import replaces somebody's dashboard"


def test_every_variable_exists_and_is_used() -> None:
    texts = [target["expr"] for panel in PANELS for target in panel["targets"]]
    texts += [each["query"]["query"] for each in VARIABLES.values() if each["type"] == "query"]
    texts += [each["expr"] for each in DASHBOARD["annotations"]["list"]]
    texts += [link["url"].partition("/")[0] for _, link in links()]
    named = {name for text in texts for name in re.findall(r"\$\{?(\w+)", text)}
    assert named - {"__rate_interval"} == set(VARIABLES) - {"datasource"}


def links() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for panel in PANELS:
        for link in panel["fieldConfig"].get("defaults", {}).get("links", []):
            yield panel, link


def test_a_point_leads_to_the_page_of_its_feature() -> None:
    assert {panel["title"] for panel, _ in links()} >= {"Importance over time", "Changes"}
    for panel, link in links():
        address, _, fragment = link["url"].partition("/#")
        assert address == "${page}"
        for part in fragment.split("&"):
            # the page reads stream, feature and method; else Grafana leaves the variable as it is
            name, _, value = part.partition("=")
            assert value == f"${{__field.labels.{name}:percentencode}}"
            assert all(name in labels_of_points(each) for each in panel["targets"])


def labels_of_points(target: dict[str, Any]) -> set[str]:
    [grouped] = re.findall(r"^\w+(?:\(\d+, \w+)? by \(([\w, ]+)\)", target["expr"])
    return set(grouped.split(", "))


@pytest.mark.parametrize("name", ["job", "stream", "feature", "method", "alpha"])
def test_a_variable_lists_the_values_of_a_label_that_exists(name: str) -> None:
    query = VARIABLES[name]["query"]["query"]
    found = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
    assert found
    assert not problems(found[1])
    assert found[2] == name
    assert name in SERIES[found[1].partition("{")[0]]


def test_a_legend_names_labels_that_exist() -> None:
    every = set.union(*SERIES.values())
    for panel in PANELS:
        for target in panel["targets"]:
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= every


def test_panels_have_names_and_meanings_and_do_not_overlap() -> None:
    assert all(panel["title"] and panel["description"] for panel in PANELS)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert all(0 <= x < 24 for x, _ in cells)
    assert all(a != b for a, b in pairwise(sorted(cells)))


def test_names_keep_to_the_conventions_of_prometheus() -> None:
    for name, documented in documented_metrics().items():
        assert re.fullmatch(r"(fluxplain|process|python)(_[a-z]+)+", name)
        assert name.endswith("_total") == (documented.type == "counter")
        assert not re.search(r"_(ms|millis|minutes|hours|kb|mb|percent)(_|$)", name)
        if documented.type == "histogram":
            assert name.endswith("_seconds")
