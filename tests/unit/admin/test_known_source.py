"""What a state claims: its own slot, on its own server, and the copies of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from walstream.admin.known_source import (
    Kept,
    KnownSource,
    copies_of,
    known_source,
)
from walstream.config import PostgresSource
from walstream.errors import HistoryError, Repair
from walstream.pipeline.ports import Position
from walstream.postgres.server import Server
from walstream.postgres.start_table import StoredState
from walstream.sources.postgres.stored_state import INTENT, SlotIntent
from walstream.state.store import LmdbStore

SOURCE = PostgresSource(kind="postgres", dsn="host=a", sinks=["x"], slot="renamed")
SERVER = Server(7, 1, "shop", False, "logical", "UTF8", 60_000, True, 100)
POSITION = Position(1, 7, 1, "shop", "renamed")
INTENDED = SlotIntent("renamed", None, 7, "shop")


def at(position: Position) -> KnownSource:
    return KnownSource(StoredState(position=position))


def noted(**changes: str | int) -> KnownSource:
    """Give one whose state has an intent alone."""
    return KnownSource(intent=replace(INTENDED, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "claims"),
    [
        (KnownSource(), False),
        (at(POSITION), True),
        (at(replace(POSITION, slot="other")), False),
        (at(replace(POSITION, system_identifier=8)), False),
        (at(replace(POSITION, database="elsewhere")), False),
        (noted(), True),
        (noted(slot="other"), False),
        (noted(system_identifier=8), False),
        (noted(database="elsewhere"), False),
        (KnownSource(intent=SlotIntent("renamed")), False),  # of which server?
    ],
)
def test_a_slot_is_claimed_by_its_name_on_its_server(
    known: KnownSource, *, claims: bool
) -> None:
    assert known.claims(SOURCE, SERVER) is claims


@pytest.mark.parametrize(
    ("known", "what"),
    [
        (at(replace(POSITION, system_identifier=8)), "server 8, this is 7"),
        (noted(system_identifier=8), "'renamed' of the first start .* server 8"),
        (noted(database="elsewhere"), "database 'elsewhere', this is 'shop'"),
    ],
)
def test_another_server_is_refused(known: KnownSource, what: str) -> None:
    with pytest.raises(HistoryError, match=what):
        known.check_server(SERVER, "", Repair())


def test_a_server_that_may_be_the_one_is_not_refused() -> None:
    old = KnownSource(intent=SlotIntent("renamed"))
    for known in (KnownSource(), at(POSITION), noted(), old):
        known.check_server(SERVER, "", Repair())


def test_an_intent_says_of_which_server_it_is(tmp_path: Path) -> None:
    with LmdbStore(tmp_path) as positions:
        positions.write(INTENT.entry(INTENDED))
    found = known_source(tmp_path, SOURCE)
    assert (found.slot, found.claims(SOURCE, SERVER)) == ("renamed", True)
    with LmdbStore(tmp_path) as positions:
        positions.write({"intent": {"slot": "renamed"}})  # of an older walstream
    found = known_source(tmp_path, SOURCE)
    assert (found.slot, found.claims(SOURCE, SERVER)) == ("renamed", False)


def test_copies_have_the_names_that_were_noted(tmp_path: Path) -> None:
    for sink in ("noted", "kept", "empty"):
        (tmp_path / "away" / sink).mkdir(parents=True)
    with LmdbStore(tmp_path / "away" / "kept") as positions:
        positions.store(Position(1, 1, 1, "d", "first_kept"))
    known = replace(at(replace(POSITION, slot="old")), away={"noted": "first_noted"})
    assert copies_of(tmp_path, known, SOURCE) == {
        "kept": "first_kept",
        "noted": "first_noted",
        "empty": "old_empty",
    }


def test_a_slot_that_is_to_stay_is_no_copy(tmp_path: Path) -> None:
    known = replace(
        at(replace(POSITION, slot="old")),
        away={"a": "renamed", "b": "old", "c": "old_c"},
    )
    assert copies_of(tmp_path, known, SOURCE) == {"c": "old_c"}


def test_a_slot_that_stays_comes_with_what_drops_it() -> None:
    kept = Kept.slot("o'x", "why")
    assert kept.sql == "SELECT pg_drop_replication_slot('o''x');"
