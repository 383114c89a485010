"""What a state folder holds: declared once, documented, and stored as it ever was."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import state_schema
from tests.support.project.own_coverage import ROOT
from tests.unit.test_architecture import section
from walstream.pipeline.state_document import StateDocument
from walstream.state.store import LmdbStore
from walstream.testing import MemoryStore

# as they were written when the first of them was typed; a document may gain fields
STORED: dict[str, Any] = json.loads(
    (ROOT / "tests" / "data" / "state" / "documents.json").read_text("utf-8")
)
# whole folders, left by the last walstream whose documents had no types (a6a7731): one
# table's backfill half done, another's given up, a sink away, polls with missing keys,
# and a relay. They are LMDB's own compact copies
FOLDERS = sorted((ROOT / "tests" / "data" / "state" / "0.1.0").iterdir())
DECLARED = {document: path for path, document in state_schema.documents()}


def documents(name: str) -> list[StateDocument[Any]]:
    """Return the types that declare a document of this name."""
    return [
        one if isinstance(one, StateDocument) else one.of(one.key_of(name))
        for one in DECLARED
        if name == state_schema.name_of(one)
        or (not isinstance(one, StateDocument) and name.startswith(one.prefix))
    ]


@pytest.mark.parametrize("name", STORED)
def test_what_was_stored_is_read_and_stored_again_as_it_was(name: str) -> None:
    before = MemoryStore(STORED)
    found = [one for one in documents(name) if one.kind.__name__ != "RelayFigures"]
    assert len(found) == 1
    after = MemoryStore(found[0].entry(found[0].read(before)))
    assert json.dumps(after.read(name)) == json.dumps(before.read(name))


def is_kept(before: Any, after: Any) -> bool:
    """Return whether all that was there stands there again; fields may have come."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(
            key in after and is_kept(part, after[key]) for key, part in before.items()
        )
    return bool(before == after)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_folder_that_an_older_one_left_opens_and_keeps_all_that_it_holds(
    folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "app")
    with LmdbStore.open_read_only(copy) as positions:
        assert positions is not None
        beside = {name: positions.read(name) for name in positions.names("")}
    assert "format" in beside
    with LmdbStore(copy) as positions:
        stored = {name: positions.read(name) for name in positions.names("")}
        assert stored == beside
        for name, before in stored.items():
            # figures are of a stream or of a relay: one of both knows all of them
            assert any(
                is_kept(before, again.read(name))
                for one in documents(name)
                for again in [MemoryStore(one.entry(one.read(positions)))]
            ), name


def test_each_document_is_among_those_that_were_stored() -> None:
    stored = {one for name in STORED for one in documents(name)}
    assert {one.name for one in stored} == STORED.keys()
    kinds = {one.kind for one in stored}
    assert {one.kind for one in DECLARED} <= kinds


def test_the_page_lists_every_document_and_the_file_that_declares_it() -> None:
    rows = re.findall(
        r"(?m)^\| `([^`]+)` \| .+ \| `(walstream/[\w/]+\.py)` \|$",
        section("What the state folder holds"),
    )
    assert sorted(rows) == sorted(
        (state_schema.name_of(one), str(path)) for one, path in DECLARED.items()
    )


def test_the_schema_is_the_code_s() -> None:
    assert json.loads(state_schema.FILE.read_text("utf-8")) == state_schema.schema()
