"""The Grafana dashboard: what it names is there, and what it asks can be answered."""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support.project.own_coverage import ROOT
from walstream.service.http.catalog import METRICS

BOARD: Final = json.loads(
    (ROOT / "packaging" / "grafana" / "walstream.json").read_text("utf-8")
)
PANELS: Final = BOARD["panels"]
_COLUMNS: Final = 24
_BUILT_IN: Final = {"__rate_interval"}  # what Grafana itself gives
_METRIC: Final = re.compile(r"\bwalstream_\w+")


def targets() -> Iterator[dict[str, Any]]:
    for panel in PANELS:
        yield from panel["targets"]


def asked(expression: str) -> list[str]:
    found = _METRIC.findall(expression)
    return [re.sub("_(bucket|sum|count)$", "", name) for name in found]


def test_it_has_what_grafana_wants_of_a_dashboard() -> None:
    assert BOARD["uid"] == "walstream"  # an address that stays; no `id` of one server
    assert "id" not in BOARD
    assert isinstance(BOARD["schemaVersion"], int)
    assert {panel["type"] for panel in PANELS} <= {"stat", "timeseries"}
    ids = [panel["id"] for panel in PANELS]
    assert len(set(ids)) == len(ids)
    for panel in PANELS:
        assert panel["title"], panel["id"]
        refs = [target["refId"] for target in panel["targets"]]
        assert refs, panel["title"]
        assert len(set(refs)) == len(refs), panel["title"]


def test_no_panel_covers_another() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in PANELS:
        at = panel["gridPos"]
        assert 0 <= at["x"] < at["x"] + at["w"] <= _COLUMNS
        columns = range(at["x"], at["x"] + at["w"])
        rows = range(at["y"], at["y"] + at["h"])
        for cell in itertools.product(columns, rows):
            assert cell not in taken, f"{panel['title']} covers {taken[cell]}"
            taken[cell] = panel["title"]


def test_every_variable_is_one() -> None:
    variables = {one["name"]: one for one in BOARD["templating"]["list"]}
    named = set(re.findall(r"\$\{?(\w+)", json.dumps(BOARD)))
    named -= {"__all"}  # a value, of all sources
    assert {"datasource", "source"} <= named
    assert named <= variables.keys() | _BUILT_IN
    of_data = variables["datasource"]
    assert (of_data["type"], of_data["query"]) == ("datasource", "prometheus")
    wanted = {"type": "prometheus", "uid": "${datasource}"}
    for holder in (*PANELS, variables["source"]):
        assert holder["datasource"] == wanted, holder.get("title")


def test_what_is_asked_has_the_labels_that_are_named() -> None:
    for target in targets():
        expression = target["expr"]
        labels = {label for name in asked(expression) for label in METRICS[name].labels}
        assert labels, expression
        braced = "".join(re.findall(r"\{(.*?)\}", expression))
        used = set(re.findall(r"(\w+)(?==~|=|!=)", braced))
        used |= set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        for grouped in re.findall(r"\bby \((.*?)\)", expression):
            used |= set(grouped.split(", ")) - {"le"}
        assert used <= labels, f"{expression}: {used - labels}"


def test_what_is_counted_is_asked_for_as_a_rate_and_nothing_else_is() -> None:
    for target in targets():
        for name in asked(target["expr"]):
            rated = re.search(rf"(rate|increase)\({name}", target["expr"])
            counts = METRICS[name].kind in {"counter", "histogram"}
            assert bool(rated) == counts, target["expr"]


def test_prometheus_understands_every_question(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: apt-get install prometheus")
    rules = [
        {
            "record": f"asked:{number}",
            "expr": target["expr"].replace("$__rate_interval", "5m"),
        }
        for number, target in enumerate(targets())
    ]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))
    done = subprocess.run(
        [promtool, "check", "rules", str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout
