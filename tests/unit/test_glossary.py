"""docs/glossary.md: what its tables name is there, and each word stands once."""

import re
from collections import Counter
from typing import Final

import pytest

from tests.support.project.own_coverage import ROOT
from tests.support.project.reference import model
from walstream.service.http.catalog import METRICS
from walstream.telemetry import fields

_PAGE: Final = ROOT / "docs" / "glossary.md"
_HEAD: Final = ["word", "meaning", "code", "TOML", "log", "metric", "test"]
_ROWS: Final = [
    [cell.strip() for cell in row.split("|")]
    for row in re.findall(r"(?m)^\|(?! word |---)(.+)\|$", _PAGE.read_text("utf-8"))
]
_KEYS: Final = {key for section in model().values() for key in section}
_FIELDS: Final = {value for name, value in vars(fields).items() if name.isupper()}


def _word(row: list[str]) -> str:
    return row[0]


def named(cell: str) -> list[str]:
    """Give what a cell names; a cell without names is a dash."""
    names = re.findall(r"`(.+?)`", cell)
    assert cell == (", ".join(f"`{name}`" for name in names) or "-"), cell
    return names


@pytest.mark.parametrize("row", _ROWS, ids=_word)
def test_what_a_row_names_is_there(row: list[str]) -> None:
    _, meaning, code, keys, log, metrics, tests = row
    assert meaning.endswith(".")
    modules, files = named(code), named(tests)
    assert modules
    assert files
    for name in modules:
        folder = ROOT if name.startswith("consumer/") else ROOT / "walstream"
        assert (folder / name).is_file(), name
    for name in files:
        assert (ROOT / "tests" / name).is_file(), name
    assert set(named(keys)) <= _KEYS
    assert set(named(log)) <= _FIELDS
    assert set(named(metrics)) <= METRICS.keys()


def test_each_word_stands_once() -> None:
    words = Counter(word for row in _ROWS for word in row[0].split(", "))
    assert [word for word, count in words.items() if count > 1] == []
    assert len(words) > 60


def test_every_table_has_the_same_columns() -> None:
    text = _PAGE.read_text("utf-8")
    heads = re.findall(r"(?m)^\| word .+$", text)
    assert set(heads) == {f"| {' | '.join(_HEAD)} |"}
    assert len(heads) == len(re.findall(r"(?m)^## ", text))
