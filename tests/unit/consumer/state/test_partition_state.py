"""What is kept of a partition, and who may move it; integration tests ask servers."""

import re
import uuid
from dataclasses import replace
from typing import Any, cast

import psycopg
import pytest

from consumer.group.assigned_partition import Place
from consumer.handler import Transaction
from consumer.state.advisory_lock import lock_key
from consumer.state.partition_state import NEVER, UNREAD, PartitionState, StateRow
from consumer.state.position import NOTHING, AppliedPosition, SnapshotChunk
from consumer.state.schema import Tables
from tests.support.consumer_partition import PLACE, Database

_FIRST, _SECOND = SnapshotChunk(5000, 1), SnapshotChunk(7000, 2)
_GIB = 1 << 30


def of(database: Database) -> tuple[PartitionState, Transaction]:
    tables = cast("Tables", database)
    return PartitionState("g", PLACE, tables), cast("Transaction", database)


@pytest.fixture
def database() -> Database:
    return Database()


def test_a_partition_that_was_never_read_gets_a_row_of_its_own(
    database: Database,
) -> None:
    state, tx = of(database)
    row = state.read(tx)
    assert row == StateRow(row.id, NOTHING)
    assert (row.id.version, row.id.variant) == (4, uuid.RFC_4122)
    assert state.read(tx) == row
    elsewhere = PartitionState("g", Place("t", 1), cast("Tables", database)).read(tx)
    assert elsewhere.id != row.id
    assert UNREAD.id not in {row.id, elsewhere.id}


def test_a_row_that_vanishes_at_once_is_read_again_later() -> None:
    """By a person; begun again it may stay."""

    class Deleting(Database):
        def execute(self, _tx: object, statement: str, values: Any = ()) -> Any:
            if statement.startswith("INSERT"):
                return None
            return super().execute(_tx, statement, values)

    state, tx = of(Deleting())
    with pytest.raises(psycopg.errors.SerializationFailure):
        state.read(tx)


def test_a_row_is_moved_with_all_that_is_known(database: Database) -> None:
    state, tx = of(database)
    with database.transaction():
        xid = state.lock(tx)
        assert xid is not None
        before = state.read(tx)
        after = replace(
            before,
            position=AppliedPosition(2**64 - 1, 2**63),
            next_offset=7,
            topic_id="topic",
            source="1/db/0",
        )
        assert state.move(tx, xid, before, after)
    assert state.read(tx) == after


@pytest.mark.parametrize(
    "other",
    [
        {"position": AppliedPosition(9, 0)},
        {"position": AppliedPosition(0, 9)},
        {"next_offset": 9},
        {"id": uuid.UUID(int=9)},
    ],
)
def test_a_row_that_another_member_moved_is_not_moved(
    database: Database, other: dict[str, Any]
) -> None:
    state, tx = of(database)
    now = state.read(tx)
    assert not state.move(tx, "1", replace(now, **other), replace(now, next_offset=3))
    assert state.read(tx) == now


def test_a_partition_that_is_locked_is_told(database: Database) -> None:
    state, tx = of(database)
    with database.transaction():
        xid = state.lock(tx)
        assert xid is not None
        assert state.same_transaction(tx, xid) is True
        assert state.same_transaction(tx, "another") is False
        assert state.committed(tx, xid) is False
    assert state.committed(tx, xid) is True
    database.holders = {7: False}
    with database.transaction():
        assert state.lock(tx) is None


@pytest.mark.parametrize("question", ["lock", "same_transaction", "committed"])
def test_no_answer_is_taken_for_no(question: str) -> None:
    class Silent:
        closed = False

        def execute(self, *_: object) -> Any:
            return self

        def fetchone(self) -> None:
            return None

    silent = cast("Any", Silent())
    state = PartitionState("g", PLACE, silent)
    if question == "lock":
        assert state.lock(silent) is None
    else:
        assert getattr(state, question)(silent, "1") is False


def test_of_a_connection_that_was_lost_nothing_is_known_to_be_committed(
    database: Database,
) -> None:
    """Its ops come again: the row tells whether they took effect."""
    state, tx = of(database)
    database.committed.add("1")
    database.refusals = [psycopg.OperationalError("gone")]
    assert state.committed(tx, "1") is False
    database.closed = True
    assert state.committed(tx, "1") is False


def test_each_chunk_of_a_snapshot_has_a_position_of_its_own(
    database: Database,
) -> None:
    state, tx = of(database)
    assert state.read_chunk(tx, _FIRST) == NEVER
    known = {_FIRST: NEVER, _SECOND: NEVER}
    assert state.move_chunks(tx, known, {_FIRST: 0, _SECOND: 3})
    assert state.move_chunks(tx, {_FIRST: 0}, {_FIRST: 1})
    assert state.read_chunk(tx, _FIRST) == 1
    assert state.read_chunk(tx, _SECOND) == 3
    assert state.move_chunks(tx, {}, {})


@pytest.mark.parametrize("known", [NEVER, 0, 2])
def test_a_chunk_that_another_member_moved_is_not_moved(
    database: Database, known: int
) -> None:
    state, tx = of(database)
    state.move_chunks(tx, {_FIRST: NEVER}, {_FIRST: 1})
    assert not state.move_chunks(tx, {_FIRST: known}, {_FIRST: 5, _SECOND: 5})
    assert state.read_chunk(tx, _FIRST) == 1


def test_the_newest_snapshot_is_known_before_its_rows_come_again(
    database: Database,
) -> None:
    """Rows of one that is long past may come behind it, after a restart too."""
    state, tx = of(database)
    state.read(tx)
    assert state.reach == 0
    state.move_chunks(tx, {_SECOND: NEVER, _FIRST: NEVER}, {_SECOND: 0, _FIRST: 0})
    assert state.reach == _SECOND.lsn
    restarted, _ = of(database)
    assert restarted.reach == 0
    restarted.read(tx)
    assert restarted.reach == _SECOND.lsn
    restarted.forget_chunks(tx)
    assert restarted.reach == 0
    restarted.read(tx)
    assert restarted.reach == 0
    assert restarted.read_chunk(tx, _SECOND) == NEVER


def test_chunks_that_are_long_past_are_forgotten_now_and_then(
    database: Database,
) -> None:
    state, tx = of(database)
    for lsn in (5 * _GIB, 5 * _GIB + 1, 5 * _GIB + (_GIB >> 2), 6 * _GIB):
        state.clean(tx, AppliedPosition(lsn, 0))
    below = [at for at, _ in database.limits]
    assert below == [4 * _GIB, 4 * _GIB + (_GIB >> 2), 5 * _GIB]


def test_a_new_snapshot_ages_those_before_it(database: Database) -> None:
    state, tx = of(database)
    chunk = SnapshotChunk(9 * _GIB, 1)
    state.move_chunks(tx, {chunk: NEVER}, {chunk: 0})
    state.clean(tx, AppliedPosition(5, 0))
    assert [at for at, _ in database.limits] == [8 * _GIB]


def test_many_old_chunks_are_forgotten_over_several_batches(
    database: Database,
) -> None:
    """One statement would keep a batch waiting."""
    state, tx = of(database)
    far = AppliedPosition(5 * _GIB, 0)
    state.clean(tx, far)
    most = database.limits[0][1]
    state.read(tx)  # by another member, perhaps
    database.old_chunks = most
    state.clean(tx, far)
    state.clean(tx, far)
    database.old_chunks = most - 1
    state.clean(tx, far)
    state.clean(tx, far)
    assert len(database.limits) == 4
    assert 100 < most < 1_000_000


def test_only_who_is_frozen_loses_the_lock(database: Database) -> None:
    state, tx = of(database)
    database.holders = {7: True, 8: False}
    assert state.end_frozen_holders(tx, 60) == {7: True, 8: False}
    assert database.holders == {8: False}


def test_the_lock_is_asked_for_by_its_number() -> None:
    asked: list[Any] = []

    class Noting(Database):
        def execute(self, _tx: object, statement: str, values: Any = ()) -> Any:
            asked.append(values)
            return super().execute(_tx, statement, values)

    database = Noting()
    state, tx = of(database)
    state.lock(tx)
    number = lock_key("g", *PLACE)
    state.end_frozen_holders(tx, 60)
    assert asked == [(number,), (60, number, number)]


def test_a_state_is_shown_with_all_that_counts() -> None:
    row = StateRow(uuid.UUID(int=1), AppliedPosition(28318112, 3), 17)
    assert re.findall(r"\d+", str(row)) == ["28318112", "3", "17"]
