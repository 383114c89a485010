"""The alert rules: each rings when it should, and is silent when all is well."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support.project.own_coverage import ROOT
from walstream.service.http.catalog import METRICS

CASES: Final = ROOT / "tests" / "data" / "prometheus"
RULES: Final = ROOT / "packaging" / "prometheus" / "walstream.rules.yml"
OPERATIONS: Final = ROOT / "docs" / "operations.md"

OF_PROMETHEUS: Final = {"job", "instance", "alertname", "alertstate"}

Prove = Callable[[str, str], subprocess.CompletedProcess[str]]


@pytest.fixture
def prove(tmp_path: Path) -> Prove:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: apt-get install prometheus")

    def run(name: str, rules: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / f"{name}.rules.yml").write_text(rules, "utf-8")
        cases = f"{name}.test.yml"
        shutil.copy(CASES / cases, tmp_path)
        return subprocess.run(
            [promtool, "test", "rules", cases],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def of_document() -> str:
    """Give the rules that docs/operations.md has on postgres_exporter's metrics."""
    found = re.findall(r"(?ms)^```yaml\n(groups:\n.*?)^```", OPERATIONS.read_text())
    assert len(found) == 1
    return str(found[0])


def alerts(rules: str) -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(rules)["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def given() -> dict[str, str]:
    return {"walstream": RULES.read_text("utf-8"), "slots": of_document()}


@pytest.mark.parametrize("name", ["walstream", "slots"])
def test_rules_ring_when_they_should_and_then_alone(prove: Prove, name: str) -> None:
    done = prove(name, given()[name])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["walstream", "slots"])
def test_no_rule_can_be_mute_unseen(prove: Prove, name: str) -> None:
    rules = given()[name]
    for alert, rule in alerts(rules).items():
        mute = yaml.safe_load(rules)
        for group in mute["groups"]:
            for one in group["rules"]:
                if one["alert"] == alert:
                    one["expr"] = f"({rule['expr']}) and on () vector(1) > 2"
        done = prove(name, yaml.safe_dump(mute))
        assert done.returncode != 0, f"{alert} never rings, and no case sees it"


def test_the_rules_ask_for_what_is_served() -> None:
    for alert, rule in alerts(RULES.read_text("utf-8")).items():
        asked = set(re.findall(r"\bwalstream_\w+", rule["expr"]))
        assert asked <= METRICS.keys(), alert
        labels = OF_PROMETHEUS.union(*(METRICS[name].labels for name in asked))
        told = re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])
        kept = re.findall(r"\b(?:on|by) \((.*?)\)", rule["expr"])
        used = {*told, *(one for names in kept for one in names.split(", "))}
        assert used - {""} <= labels, alert


def test_the_cases_give_what_is_served() -> None:
    cases = yaml.safe_load((CASES / "walstream.test.yml").read_text("utf-8"))
    for case in cases["tests"]:
        for one in case["input_series"]:
            name, _, braced = one["series"].partition("{")
            if name == "up":
                continue
            labels = set(re.findall(r"(\w+)=", braced)) - OF_PROMETHEUS
            assert labels <= set(METRICS[name].labels), one["series"]


def test_the_document_tells_of_every_alert() -> None:
    told = re.findall(r"(?m)^\| `(Walstream\w+)` \|", OPERATIONS.read_text("utf-8"))
    assert sorted(told) == sorted(alerts(RULES.read_text("utf-8")))
