"""What the state folder says, and how far back a source can go."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from walstream.pipeline.pgoutput import Column, Relation
from walstream.pipeline.ports import Position
from walstream.pipeline.root_key import ROOTS, RootKeys
from walstream.pipeline.row_key import KEYS, KeyHistory, KeySet
from walstream.postgres.slot import Slot
from walstream.sources.postgres.stored_state import (
    INTENT,
    SlotIntent,
    drained,
    may_repeat,
    sent_below,
    stored_of,
    take_unsent,
    window,
)
from walstream.state.store import LmdbStore

POSITION = Position(500, 7, 1, "shop", "s")
SLOT = Slot("s", "logical", "pgoutput", "shop", None, "reserved", None, 100)


@pytest.fixture
def positions(tmp_path: Path) -> Iterator[LmdbStore]:
    with LmdbStore(tmp_path / "app") as opened:
        yield opened


def test_an_intent_counts_for_its_own_slot_alone(positions: LmdbStore) -> None:
    assert stored_of(positions, "s").intent is False
    positions.write({"intent": {"slot": "s"}})
    assert stored_of(positions, "s").intent is True
    assert stored_of(positions, "other").intent is False


def test_an_intent_is_of_the_server_that_was_noted(positions: LmdbStore) -> None:
    positions.write({"intent": {"slot": "s"}})  # by an older walstream
    assert stored_of(positions, "s").origin == ""
    positions.write(INTENT.entry(SlotIntent("s", None, 7, "shop")))
    assert stored_of(positions, "s").origin == "7/shop"


def test_what_was_begun_and_reached_is_read(positions: LmdbStore) -> None:
    positions.write({"intent": {"slot": "s", "consistent_point": 9}})
    positions.store(POSITION)
    stored = stored_of(positions, "s")
    assert (stored.consistent_point, stored.position) == (9, POSITION)


def test_what_a_drained_stream_sent_ends_at_its_position_once(
    positions: LmdbStore,
) -> None:
    drained(positions)
    assert take_unsent(positions, 900) == 900
    positions.write({"sent": None})
    positions.store(POSITION)
    drained(positions)
    assert [take_unsent(positions, 900) for _ in range(2)] == [500, 900]


def test_a_stream_that_went_on_since_may_have_sent_more(
    positions: LmdbStore,
) -> None:
    positions.store(POSITION)
    drained(positions)
    positions.store(replace(POSITION, resume=600))
    assert take_unsent(positions, 900) == 900


def test_what_was_sent_before_a_rewind_was_sent(positions: LmdbStore) -> None:
    positions.store(POSITION)
    take_unsent(positions, 900)
    drained(positions)
    assert take_unsent(positions, 1000) == 900


def test_a_clean_stop_alone_repeats_nothing(positions: LmdbStore) -> None:
    assert may_repeat(positions)  # the state may be lost, and the slot not
    positions.store(POSITION)
    assert may_repeat(positions)
    take_unsent(positions, POSITION.resume)
    assert may_repeat(positions)
    drained(positions)
    for _ in range(2):
        assert not may_repeat(positions)
    positions.store(replace(POSITION, resume=600))
    assert may_repeat(positions)


def test_a_clean_stop_before_the_end_of_a_sink_that_came_back_says_nothing(
    positions: LmdbStore,
) -> None:
    """Its own worker sent more than the stream."""
    positions.store(POSITION)
    take_unsent(positions, POSITION.resume)
    for ended in (900, 700):
        positions.write(sent_below(positions, ended))
    drained(positions)
    assert may_repeat(positions)
    assert take_unsent(positions, 2000) == 900
    positions.store(replace(POSITION, resume=900))
    drained(positions)
    assert not may_repeat(positions)


def test_a_clean_stop_before_an_earlier_end_says_nothing_of_what_is_behind(
    positions: LmdbStore,
) -> None:
    """The one before was killed, and may have sent what the server had then."""
    positions.store(POSITION)
    for _ in range(2):
        take_unsent(positions, 900)
        drained(positions)
        assert may_repeat(positions)
    positions.store(replace(POSITION, resume=900))
    drained(positions)
    assert not may_repeat(positions)


def test_a_stream_that_began_may_have_sent(positions: LmdbStore) -> None:
    positions.store(POSITION)
    take_unsent(positions, 900)
    drained(positions)
    take_unsent(positions, 900)
    assert may_repeat(positions)


def test_it_reaches_from_what_the_slot_has_to_the_position(
    positions: LmdbStore,
) -> None:
    found = window(positions, POSITION, SLOT)
    assert found is not None
    assert (found.oldest, found.newest, found.size_bytes) == (100, 500, 400)
    assert [found.holds(lsn) for lsn in (99, 100, 500, 501)] == [
        False,
        True,
        True,
        False,
    ]


def test_it_does_not_reach_where_keys_are_forgotten(positions: LmdbStore) -> None:
    history = KeyHistory([KeySet(0), KeySet(200, ("a",)), KeySet(300, ("b",))])
    positions.write(KEYS.of("s.whole").entry(history.stored))
    found = window(positions, POSITION, SLOT)
    assert found is not None
    assert found.oldest == 100
    history.forget_below(250)
    positions.write(KEYS.of("s.cut").entry(history.stored))
    found = window(positions, POSITION, SLOT)
    assert found is not None
    assert found.oldest == 200
    assert window(positions, replace(POSITION, resume=150), SLOT) is None


def test_it_does_not_reach_where_keys_of_a_root_are_forgotten(
    positions: LmdbStore,
) -> None:
    root = RootKeys()
    for lsn, column in ((50, "a"), (200, "b")):
        columns = [Column(name == column, name, 25, -1) for name in "ab"]
        root.describe(Relation(1, "s", "root", "d", columns), (lsn, 0), lsn)
    positions.write(ROOTS.of("1").entry(root.stored))
    found = window(positions, POSITION, SLOT)
    assert found is not None
    assert found.oldest == 100
    root.forget_below(250)
    positions.write(ROOTS.of("1").entry(root.stored))
    found = window(positions, POSITION, SLOT)
    assert found is not None
    assert found.oldest == 200


def test_commit_times_that_lead_there_are_told(positions: LmdbStore) -> None:
    index = {"start": 50, "before": 9, "stretches": [[150, 30], [400, 20]]}
    documents = {"times": index, "times.open": {"end": 500, "latest": 1_000_040}}
    positions.store(POSITION, documents)
    found = window(positions, POSITION, SLOT)
    assert found is not None
    # of the first stretch some may lie below what the slot has
    assert (found.first_time, found.last_time) == (
        datetime(2000, 1, 1, microsecond=31, tzinfo=UTC),
        datetime(2000, 1, 1, second=1, microsecond=40, tzinfo=UTC),
    )
    earlier = window(positions, replace(POSITION, resume=400), SLOT)
    assert earlier is not None
    assert earlier.first_time is None  # of what is left all may come too late
