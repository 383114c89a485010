"""The document, the dashboard and the rules know the metrics that are served."""

import json
import re
from pathlib import Path
from typing import Any, Final

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.service.http.conftest import Change, told
from walstream.service.http import metrics
from walstream.service.http.catalog import METRICS

ROOT: Final = Path(__file__).parents[4]
DOCUMENT: Final = ROOT / "docs" / "metrics.md"
DASHBOARD: Final = ROOT / "packaging" / "grafana" / "walstream.json"
RULES: Final = ROOT / "packaging" / "prometheus" / "walstream.rules.yml"
_NAME: Final = re.compile(r"\b(?:walstream|source|sink)_[a-z_]+\b")
_LABELS: Final = {"source", "sink"}


def served(text: str) -> dict[str, tuple[str, set[str]]]:
    """Give type and labels of each metric in an exposition, by its name."""
    found = {}
    for family in text_string_to_metric_families(text):
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = {label for one in family.samples for label in one.labels} - {"le"}
        kind = "untyped" if family.type == "unknown" else family.type
        found[name] = (kind, labels)
    return found


def test_the_document_is_the_table() -> None:
    rows = re.findall(
        r"(?m)^\| `(\w+)` \| (\w+) \| (\w+) \| (.*?) \| (.+) \|$",
        DOCUMENT.read_text("utf-8"),
    )
    assert [(name, kind, unit, meaning) for name, kind, unit, _, meaning in rows] == [
        (one.name, one.kind, one.unit, one.meaning) for one in METRICS.values()
    ]
    for name, *_, labels, _meaning in rows:
        assert tuple(re.findall(r"`(\w+)`", labels)) == METRICS[name].labels


def test_what_is_served_is_in_the_table(board: Change) -> None:
    token = {"token": "0123456789abcdef"}
    health = {**told()["health"], "safe_wal_size": 1 << 30}
    beside = {"public.u": {"rows": 1, "state": "reading", "error": ""}}
    made = board(token, health=health, beside=beside)
    truth = made.truth()
    assert truth is not None
    text = metrics.write(made.config, truth, "")[0].decode()
    found = served(text)
    for name, (kind, labels) in found.items():
        assert (kind, labels) == (METRICS[name].kind, set(METRICS[name].labels)), name
    elsewhere = {"poll", "upstream", "poisoned"}  # of other kinds of sources
    missing = {
        name for name in METRICS.keys() - found if not set(name.split("_")) & elsewhere
    }
    assert not missing


def asked(expressions: list[str]) -> set[str]:
    """Name the metrics that expressions ask for."""
    names = {name for text in expressions for name in _NAME.findall(text)} - _LABELS
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}


def expressions(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [str(node[key]) for key in ("expr", "query") if key in node]
        return own + [text for child in node.values() for text in expressions(child)]
    if isinstance(node, list):
        return [text for child in node for text in expressions(child)]
    return []


def test_the_dashboard_asks_for_what_is_served() -> None:
    names = asked(expressions(json.loads(DASHBOARD.read_text("utf-8"))))
    assert "walstream_replication_lag_seconds" in names
    assert names <= METRICS.keys()


def test_the_rules_ask_for_what_is_served() -> None:
    rules = yaml.safe_load(RULES.read_text("utf-8"))
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert all(one["annotations"]["summary"] for one in alerts)
    names = asked(expressions(rules))
    limits = {"walstream_slot_alarm_wal_bytes", "walstream_slot_alarm_spill_bytes"}
    assert {"walstream_source_up", "walstream_slot_synchronous", *limits} <= names
    assert names <= METRICS.keys()
