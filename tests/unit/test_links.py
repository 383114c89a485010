"""Links between the documents lead to what is there, and README to all of them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cover_own import ROOT
from tests.reference import anchor

_DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
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


def test_readme_leads_to_every_document() -> None:
    linked = {target.partition("#")[0] for target in targets(ROOT / "README.md")}
    documents = {_name(path) for path in ROOT.glob("docs/*.md")}
    assert documents <= linked


def test_each_cell_about_another_program_has_its_source() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    table = text.partition("## Beside others")[2].partition("Speed beside")[0]
    rows = re.findall(r"(?m)^\| (?!\|)(.+) \|$", table)
    assert len(rows) >= 8
    for row in rows:
        _, _own, *cells = row.split(" | ")
        assert len(cells) == 7, row
        for cell in cells:
            assert cell == "?" or re.fullmatch(r"(\[[^]]+\]\[[\w-]+\](; )?)+", cell), (
                cell
            )
    for name in set(re.findall(r"\]\[([\w-]+)\]", text)):
        assert f"\n[{name}]: https://" in text, name
