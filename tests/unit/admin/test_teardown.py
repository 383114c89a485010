"""The plan of a destroy: copies that the state knows, and what counts as a change."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.slot_facts import IDLE
from walstream.admin.reset import KnownSource
from walstream.admin.teardown import Kept, Teardown, copies_of
from walstream.config import PostgresSource
from walstream.pipeline.ports import Position
from walstream.state.store import LmdbStore

SOURCE = PostgresSource(kind="postgres", dsn="host=a", sinks=["x"], slot="renamed")
PLAN = Teardown("app", origin="7/d", slot=IDLE, copies=["s_x"], folder=Path("app"))


def test_copies_have_the_names_that_were_noted(tmp_path: Path) -> None:
    for sink in ("noted", "kept", "empty"):
        (tmp_path / "away" / sink).mkdir(parents=True)
    with LmdbStore(tmp_path / "away" / "kept") as positions:
        positions.store(Position(1, 1, 1, "d", "first_kept"))
    known = KnownSource(slot="old", away={"noted": "first_noted"})
    found = copies_of(tmp_path, known, SOURCE)
    assert found == ["first_kept", "first_noted", "old_empty"]


def test_a_slot_that_is_to_stay_is_no_copy(tmp_path: Path) -> None:
    known = KnownSource(slot="old", away={"a": "renamed", "b": "old", "c": "old_c"})
    assert copies_of(tmp_path, known, SOURCE) == ["old_c"]


def test_wal_that_a_slot_holds_is_no_change() -> None:
    later = replace(PLAN, slot=replace(IDLE, held_bytes=9, lag_bytes=9))
    assert later.changes(PLAN) == []


@pytest.mark.parametrize(
    ("later", "what"),
    [
        (replace(PLAN, origin="8/d"), "server"),
        (replace(PLAN, slot=None), "slot"),
        (replace(PLAN, copies=[]), "slots of detached sinks"),
        (replace(PLAN, publications=["p"]), "publications"),
        (replace(PLAN, position=9), "position"),
        (replace(PLAN, folder=None), "state"),
        (replace(PLAN, stays=[Kept("slot o", "why")]), "what stays"),
    ],
)
def test_what_changed_is_named(later: Teardown, what: str) -> None:
    assert later.changes(PLAN) == [what]
