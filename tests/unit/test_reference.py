"""docs/reference.md is what the code says, and misses nothing of it."""

import re

import pytest

from tests.support.project import reference
from tests.support.project.reference import (
    PAGE,
    SECTIONS,
    anchor,
    exit_codes,
    model,
    page,
    walk,
)
from tests.unit.cli.test_main import COMMANDS, VERBS
from tests.unit.config.test_documentation import DOCUMENT
from walstream import errors
from walstream.errors import WalstreamError
from walstream.service.http.catalog import METRICS, Metric


def section(title: str) -> str:
    """Give what stands under a heading of the page."""
    found = re.search(rf"(?ms)^#+ `?{re.escape(title)}`?$(.*?)(?=^#|\Z)", page())
    assert found is not None, title
    return found[1]


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `make reference`"


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_command_is_there_with_its_options(path: tuple[str, ...]) -> None:
    command = dict(walk(COMMANDS))[path]
    text = section(" ".join(("walstream", *path)))
    assert f"    walstream {' '.join(path)}" in text
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        shown = parameter.metavar or parameter.name.upper()
        for name in (
            [shown] if parameter.param_type_name == "argument" else parameter.opts
        ):
            assert re.search(rf"(?m)^\| `.*{re.escape(name)}", text), name


def test_every_key_is_there_and_its_link_leads_to_it() -> None:
    text = section("Configuration")
    headings = re.findall(r"(?m)^## (.+)$", DOCUMENT.read_text("utf-8"))
    for heading in headings:
        found = re.search(
            rf"(?m)^\| \[.*\]\(configuration\.md#{anchor(heading)}\) \| (.+) \|$", text
        )
        assert found is not None, heading
        keys = set(re.findall(r"`(\w+)`", found[1]))
        assert keys == model()[SECTIONS[heading]].keys()


def test_every_metric_is_there() -> None:
    assert re.findall(r"(?m)^\| `(\w+)`", section("Metrics")) == list(METRICS)


def test_every_exit_code_is_there_with_its_errors() -> None:
    rows = dict(re.findall(r"(?m)^\| (\d+) \| (.+) \|$", section("Exit codes")))
    assert {0, *exit_codes()} <= {int(code) for code in rows}
    for one in vars(errors).values():
        if isinstance(one, type) and issubclass(one, WalstreamError):
            assert (one.__doc__ or "").splitlines()[0] in rows[str(one.exit_code)]


def test_what_is_new_changes_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    before = page()
    added = Metric("walstream_x", "gauge", "1", (), "X.")
    monkeypatch.setattr(reference, "METRICS", {**METRICS, added.name: added})
    assert page() != before
