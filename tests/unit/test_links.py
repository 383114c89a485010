"""Links between the documents lead to what is there, and README to all of them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.project.own_coverage import ROOT
from tests.support.project.reference import anchor

_DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_INDEXES = sorted(ROOT.glob("docs/*/README.md"))
_RECORDS = sorted(ROOT.glob("docs/decisions/[0-9]*.md"))
_FOLDERS = r"walstream|consumer|tests|bench|docs|packaging"
_MADE = {"bench/results/small"}  # by a program, kept nowhere
_CODE = re.compile(r"(?ms)^```.*?^```$|^    .*?$")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def targets(path: Path) -> Iterator[str]:
    """Give what a document links to, but for addresses."""
    for target in re.findall(
        r"\]\(([^)\s]+)\)", _CODE.sub("", path.read_text("utf-8"))
    ):
        if "://" not in target:
            yield target


def anchors(path: Path) -> set[str]:
    text = re.sub(r"(?ms)^```.*?^```$", "", path.read_text("utf-8"))
    return {anchor(heading) for heading in re.findall(r"(?m)^#+ (.+)$", text)}


@pytest.mark.parametrize("path", _DOCUMENTS, ids=_name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in targets(path):
        name, _, place = target.partition("#")
        found = path.parent / name if name else path
        assert found.exists(), target
        assert not place or place in anchors(found), target


def _linked(path: Path) -> set[Path]:
    names = {target.partition("#")[0] for target in targets(path)}
    return {(path.parent / name).resolve() for name in names if name}


def test_readme_leads_to_every_document() -> None:
    documents = {*ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/README.md")}
    assert documents <= _linked(ROOT / "README.md")


@pytest.mark.parametrize("index", _INDEXES, ids=_name)
def test_an_index_leads_to_every_page_of_its_folder(index: Path) -> None:
    assert {*index.parent.glob("*.md")} - {index} <= _linked(index)


@pytest.mark.parametrize("path", _DOCUMENTS, ids=_name)
def test_a_file_that_is_named_is_there(path: Path) -> None:
    text = path.read_text("utf-8")
    for name in re.findall(rf"`((?:{_FOLDERS})/[\w./-]+)`", text):
        assert (ROOT / name).exists() or name in _MADE or "NAME" in name, name


@pytest.mark.parametrize("path", _RECORDS, ids=_name)
def test_a_decision_is_a_numbered_record_and_stands_in_the_index(path: Path) -> None:
    number = path.name[:4]
    assert int(number) == _RECORDS.index(path) + 1
    text = path.read_text("utf-8")
    head = re.match(rf"# {number}\. (.+)\n\n\d{{4}}-\d\d-\d\d, (.+)\.\n", text)
    assert head is not None
    assert re.findall(r"(?m)^## (.+)$", text) == ["Context", "Decision", "Consequence"]
    index = path.with_name("README.md").read_text("utf-8")
    row = f"| [{number}]({path.name}) | {head[1]} | {head[2].split()[0]} |"
    assert index.count(row) == 1


@pytest.mark.parametrize(
    ("document", "programs", "cells"), [("README.md", 4, 3), ("docs/compare.md", 8, 8)]
)
def test_each_cell_about_another_program_has_its_source(
    document: str, programs: int, cells: int
) -> None:
    """In README a program has a row, in the other table a column."""
    text = (ROOT / document).read_text("utf-8")
    rows = [
        row.split(" | ")[1:]
        for row in re.findall(r"(?m)^\| (?!\||walstream|for \|)(.+) \|$", text)
        if "][" in row
    ]
    assert len(rows) == programs
    for row in rows:
        assert len(row) == cells, row
        for cell in row if document == "README.md" else row[1:]:
            sourced = re.fullmatch(r"(\[[^]]+\]\[[\w-]+\](; )?)+", cell)
            assert cell == "?" or sourced, cell
    for name in set(re.findall(r"\]\[([\w-]+)\]", text)):
        assert f"\n[{name}]: https://" in text, name
