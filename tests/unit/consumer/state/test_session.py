"""What one member knows of its partition: read, noted, doubted, waited for."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import psycopg
import pytest
from psycopg import errors

from consumer.errors import ForeignSource, TopicReplaced
from consumer.group.assigned_partition import Pause, Place
from consumer.group.settings import FirstOffset
from consumer.handler import Transaction
from consumer.state.batch import Batch, BatchOutcome
from consumer.state.partition_state import NEVER, PartitionState, StateRow
from consumer.state.position import NOTHING, AppliedPosition, SnapshotChunk
from consumer.state.session import PartitionSession
from tests.support.consumer_partition import PLACE, Surroundings
from walstream.errors import Transient

_CHUNK = SnapshotChunk(5000, 1)


@pytest.fixture
def around() -> Iterator[Surroundings]:
    around = Surroundings()
    with around.clock():
        yield around


def session(around: Surroundings, **options: Any) -> PartitionSession:
    batch = Batch(around.state(), around.handle, 60, lambda: False)
    return PartitionSession(around.lane, batch, around.options(**options))


def begun(around: Surroundings, **options: Any) -> PartitionSession:
    made = session(around, **options)
    made.begin()
    assert around.lane.sought_to is not None
    return made


def kept(around: Surroundings, **values: Any) -> StateRow:
    """Let the database have such a row."""
    before = around.database.row()
    after = replace(before, **values)
    around.database.put(before, after)
    return after


def test_it_begins_behind_what_took_effect(around: Surroundings) -> None:
    row = kept(around, next_offset=7, topic_id="first", position=AppliedPosition(5, 1))
    made = session(around)
    around.now += 60  # until its turn
    made.begin()
    assert around.lane.sought_to == 7
    assert (made.known.row, made.known.now) == (row, row)
    assert around.guard.expected == [PLACE]
    # as of when it was assigned: one question is for many partitions
    assert around.guard.questions == [(7, "first", 1000.0)]


@pytest.mark.parametrize("begin", [FirstOffset.EARLIEST, FirstOffset.LATEST])
def test_a_first_start_begins_the_topic_whole_before_it_reads(
    around: Surroundings, begin: FirstOffset
) -> None:
    around.guard.first = 4
    made = begun(around, begin=begin)
    assert made.known.row == around.database.row()
    for number in range(around.guard.count):
        row = around.database.row(Place(PLACE.topic, number))
        assert (row.next_offset, row.topic_id) == (4, "first")
    assert around.guard.begun == [begin is FirstOffset.LATEST]


def test_who_is_to_begin_nowhere_leaves_it_to_the_client(around: Surroundings) -> None:
    made = session(around, begin=FirstOffset.NOWHERE)
    made.begin()
    assert around.lane.sought_to is None
    assert around.guard.begun == []
    assert around.database.row().next_offset is None


def test_a_partition_that_was_added_is_read_from_its_first_record(
    around: Surroundings,
) -> None:
    """What was deleted of it since then is missed: the topic's check sees it."""
    around.guard.first, around.guard.count = 4, 3
    around.database.row(other := Place(PLACE.topic, 1))
    state = PartitionState("g", other, cast("Any", around.database))
    state.begin(cast("Any", around.database), {1: (4, 4)}, None)
    begun(around)
    assert around.guard.questions[0][0] == 0
    assert around.guard.begun == []


def test_a_topic_that_another_member_began_meanwhile_is_not_begun_again(
    around: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = around.guard.begins

    def late(topic: str, *, latest: bool) -> Any:
        found = real(topic, latest=latest)
        tx = cast("Any", around.database)
        around.state().begin(tx, dict.fromkeys(range(3), (7, 7)), "first")
        return found

    monkeypatch.setattr(around.guard, "begins", late)
    begun(around)
    assert {
        around.database.row(Place(PLACE.topic, number)).next_offset
        for number in range(3)
    } == {7}


def test_an_earlier_versions_row_without_an_offset_begins_alone(
    around: Surroundings,
) -> None:
    around.guard.first = 4
    own = around.database.row()  # of which nothing was read yet
    kept(around, position=AppliedPosition(0, 0), topic_id="first")
    tables = cast("Any", around.database)
    PartitionState("g", Place(PLACE.topic, 1), tables).begin(tables, {1: (9, 9)}, None)
    made = begun(around)
    assert (made.known.row.id, made.known.row.next_offset) == (own.id, 4)
    assert around.database.row(Place(PLACE.topic, 2)).next_offset == 0


def test_which_topic_it_was_is_remembered(around: Surroundings) -> None:
    kept(around, next_offset=0)
    made = begun(around)
    assert made.known.now.topic_id == "first"
    held = made.holds
    made.end()
    assert (held, made.holds) == (True, False)
    assert around.database.row().topic_id == "first"
    made.check_topic()
    assert around.guard.questions[-1] == (0, "first", around.now)


def test_another_topic_stops_it(around: Surroundings) -> None:
    around.guard.error = TopicReplaced("created again")
    with pytest.raises(TopicReplaced):
        session(around).begin()
    assert around.lane.sought_to is None


def test_what_is_asked_of_the_topic_is_the_offset_in_question(
    around: Surroundings,
) -> None:
    kept(around, next_offset=7)
    made = begun(around)
    around.now += 1
    made.check_topic(0)
    made.check_topic()
    asked = [(offset, since) for offset, _, since in around.guard.questions[1:]]
    assert asked == [(0, around.now), (7, around.now)]


def waits_of(action: Callable[[], object], times: int) -> list[float]:
    waits = []
    for _ in range(times):
        with pytest.raises(Pause) as pause:
            action()
        waits.append(pause.value.seconds)
    return waits


def test_a_database_that_is_away_is_waited_for(
    around: Surroundings, caplog: pytest.LogCaptureFixture
) -> None:
    around.sessions.away = True
    made = session(around)
    waits = waits_of(made.begin, 9)
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0.05, 5.0)
    assert "t[0]" in caplog.text
    assert "OperationalError" in caplog.text
    assert "4711" not in caplog.text  # the words of a server may hold a row's value
    around.sessions.away = False
    made.begin()
    assert around.lane.sought_to == 0


def test_a_kafka_that_is_away_is_waited_for(
    around: Surroundings, caplog: pytest.LogCaptureFixture
) -> None:
    around.guard.error = Transient("Kafka does not answer")
    made = session(around)
    assert waits_of(made.begin, 2) == [0.05, 0.1]
    assert "Kafka does not answer" in caplog.text
    assert around.lane.sought_to is None


def test_an_error_that_does_not_pass_stops_it(around: Surroundings) -> None:
    made = begun(around)
    around.database.refusals = [errors.UndefinedTable()]
    with pytest.raises(errors.UndefinedTable):
        made.index_of(_CHUNK)


@pytest.mark.parametrize(
    ("error", "closed", "passing"),
    [
        (Transient("away"), False, True),
        (errors.UndefinedTable(), False, False),
        (errors.DeadlockDetected(), False, True),
        (psycopg.OperationalError(), False, False),
        (psycopg.OperationalError(), True, True),
        (errors.UndefinedTable(), True, False),
        (ValueError(), False, False),
    ],
)
def test_what_may_succeed_the_next_time_passes(
    around: Surroundings, error: Exception, *, closed: bool, passing: bool
) -> None:
    made = session(around)
    cast("Any", made.tx).closed = closed
    assert made.passes(error) is passing


def test_without_a_session_the_error_was_that_of_connecting(
    around: Surroundings,
) -> None:
    assert session(around).passes(psycopg.OperationalError())
    assert session(around).passes(errors.InvalidPassword())


def test_a_turn_has_one_session_and_another_one_where_it_was_lost(
    around: Surroundings,
) -> None:
    made = session(around)
    first = made.tx
    assert made.tx is first
    first.close()
    second = made.tx
    assert second is not first
    assert around.sessions.returned == around.sessions.lent[:1]
    made.give_back()
    made.give_back()
    assert around.sessions.returned == around.sessions.lent
    assert made.tx not in {first, second}


def test_what_took_effect_is_known_from_the_commit_on(around: Surroundings) -> None:
    made = begun(around)
    waits_of(lambda: made.recover(errors.DeadlockDetected()), 3)
    row = replace(made.known.row, next_offset=9, position=AppliedPosition(8, 0))
    other = SnapshotChunk(5000, 2)
    for chunks in ({_CHUNK: 3}, {_CHUNK: 4, other: 0}, {}):
        made.committed(BatchOutcome(row, chunks))
    assert (made.known.row, made.known.now) == (row, row)
    assert made.known.chunks == {_CHUNK: 4, other: 0}
    assert around.lane.handled == 9
    assert not made.holds
    # the trouble is over: the next one is waited out from a short wait on
    assert waits_of(lambda: made.recover(errors.DeadlockDetected()), 1) == [0.05]


def test_known_chunks_do_not_fill_the_memory(around: Surroundings) -> None:
    made = begun(around)
    row = made.known.row
    for first in range(0, 40_000, 1_000):
        found = {SnapshotChunk(5000, first + number): 0 for number in range(1_000)}
        made.committed(BatchOutcome(row, found))
        assert made.known.chunks.items() >= found.items()
        assert len(made.known.chunks) < 20_000
    assert len(made.known.chunks) > 1_000


def test_a_chunk_is_read_once(around: Surroundings) -> None:
    made = begun(around)
    assert made.index_of(_CHUNK) == NEVER
    assert made.index_of(_CHUNK) == NEVER
    assert around.database.asked("SELECT idx") == 1
    made.committed(BatchOutcome(made.known.row, {_CHUNK: 6}))
    assert made.index_of(_CHUNK) == 6
    assert around.database.asked("SELECT idx") == 1


def test_how_many_partitions_there_are_is_asked_now_and_then(
    around: Surroundings,
) -> None:
    around.now = 1.0  # the machine was just started
    made = begun(around)
    around.guard.error = Transient("away")
    waits_of(made.topic_partitions, 1)
    around.guard.error = None
    found = []
    for seconds in (0, 4, 2, 4):
        around.now += seconds
        found.append(made.topic_partitions())
        around.guard.count += 1
    assert found == [3, 3, 5, 5]
    assert around.guard.counted == 3


def test_what_changes_nothing_is_noted_now_and_then(around: Surroundings) -> None:
    made = begun(around)
    noted = []
    for offset in range(1, 13):
        around.now += 1
        made.skipped(offset)
        assert around.lane.handled == offset
        assert made.known.now.next_offset == offset
        noted.append(around.database.row().next_offset)
    assert noted == [0] * 5 + [6] * 6 + [12]


@pytest.mark.parametrize(("known", "seen"), [(9, 9), (3, 4), (None, 4)])
def test_what_is_passed_over_leads_to_no_lower_offset(
    around: Surroundings, known: int | None, seen: int
) -> None:
    """Where the client went back, what is below took effect."""
    made = begun(around)
    made.known = replace(made.known, now=replace(made.known.now, next_offset=known))
    made.skipped(4)
    assert (made.known.now.next_offset, around.lane.handled) == (seen, seen)


def test_a_question_is_answered_by_the_session(around: Surroundings) -> None:
    made = session(around)
    assert made.ask(lambda tx: (tx, 7)) == (made.tx, 7)


def test_what_was_seen_is_noted_when_nothing_comes(around: Surroundings) -> None:
    made = begun(around)
    made.end()
    assert made.rest() is None
    around.now += 0.25
    made.skipped(4)
    assert around.database.row().next_offset == 0
    around.now += 0.5
    assert made.rest() == 0.25  # since it began
    around.now += 0.25
    assert made.rest() == 1.0
    assert around.database.row().next_offset == 4
    assert made.rest() is None
    made.skipped(5)
    around.now += 0.25
    assert made.rest() == 0.75


@pytest.mark.parametrize("trouble", ["away", "locked", "moved", "gone"])
def test_what_cannot_be_noted_disturbs_nobody(
    around: Surroundings, trouble: str
) -> None:
    made = begun(around)
    made.skipped(4)
    made.give_back()
    around.now += 9
    if trouble == "moved":
        kept(around, next_offset=77)
    elif trouble == "gone":
        around.database.refusals = [errors.UndefinedTable()]
    around.sessions.away = trouble == "away"
    around.database.holders = {7: False} if trouble == "locked" else {}
    assert made.rest() == 1.0
    assert made.holds
    made.skipped(5)
    made.end()
    around.database.holders = {}
    wanted = {"moved": 77, "gone": 5}
    assert around.database.row().next_offset == wanted.get(trouble, 0)


def test_nothing_is_written_where_nothing_was_seen(around: Surroundings) -> None:
    made = begun(around)
    made.end()
    around.database.refusals = [errors.UndefinedTable()]
    made.end()
    assert around.database.refusals


def test_a_state_that_nobody_doubts_is_not_read_again(around: Surroundings) -> None:
    made = begun(around)
    kept(around, next_offset=77)
    assert made.sure(5) is True
    assert made.known.row.next_offset == 0


def test_a_state_that_is_still_as_it_was_goes_on(
    around: Surroundings, caplog: pytest.LogCaptureFixture
) -> None:
    """But for chunks that another member may have moved."""
    made = begun(around)
    made.end()
    made.index_of(_CHUNK)
    made.doubt()
    assert made.sure(5) is True
    assert around.lane.sought_to is None
    assert made.known.chunks == {}
    kept(around, next_offset=77)
    assert made.sure(5) is True  # once
    assert "changed" not in caplog.text


@pytest.mark.parametrize(
    ("next_offset", "sure", "sought"),
    [
        (3, True, None),  # as before: another position alone
        (6, True, None),  # what lies between is skipped
        (5, True, None),
        (4, False, 4),
    ],
)
def test_a_state_that_was_moved_is_obeyed(
    around: Surroundings,
    caplog: pytest.LogCaptureFixture,
    next_offset: int,
    sure: bool,
    sought: int | None,
) -> None:
    kept(around, next_offset=3)
    made = begun(around)
    made.end()
    made.index_of(_CHUNK)
    row = kept(around, next_offset=next_offset, position=AppliedPosition(9, 0))
    made.doubt()
    with caplog.at_level(logging.WARNING):
        assert made.sure(5) is sure
    assert around.lane.sought_to == sought
    assert (made.known.row, made.known.now) == (row, row)
    assert made.known.chunks == {}
    assert "lsn 9" in caplog.text
    assert made.sure(5) is True


def test_a_state_that_was_deleted_is_begun_again(around: Surroundings) -> None:
    made = begun(around)
    made.skipped(9)
    made.end()
    around.guard.first = 6
    around.database.forget()
    made.doubt()
    assert made.sure(9) is False
    assert around.lane.sought_to == 6


def test_who_was_in_trouble_reads_the_state_again(
    around: Surroundings, caplog: pytest.LogCaptureFixture
) -> None:
    made = begun(around)
    made.end()
    tx = made.tx
    assert waits_of(lambda: made.recover(errors.DeadlockDetected("4711")), 2) == [
        0.05,
        0.1,
    ]
    assert not tx.closed
    row = kept(around, next_offset=77)
    assert made.sure(5) is True
    assert made.known.row == row
    assert "DeadlockDetected (40P01)" in caplog.text
    assert "4711" not in caplog.text
    waits_of(lambda: made.recover(ValueError("4711")), 1)
    assert "ValueError (no code)" in caplog.text
    assert "4711" not in caplog.text


def test_who_met_a_server_that_is_no_primary_any_more_connects_again(
    around: Surroundings,
) -> None:
    made = session(around)
    waits_of(lambda: made.recover(errors.ReadOnlySqlTransaction()), 1)
    tx = made.tx
    waits_of(lambda: made.recover(errors.ReadOnlySqlTransaction()), 1)
    assert tx.closed


def test_the_first_source_that_is_named_is_taken_for_ours(
    around: Surroundings,
) -> None:
    made = begun(around)
    made.meet_source("1/db/0", 5)
    assert made.known.now.source == "1/db/0"
    made.end()
    assert around.database.row().source == "1/db/0"


def test_another_source_stops_it(around: Surroundings) -> None:
    kept(around, source="1/db/0", position=AppliedPosition(9, 0))
    made = begun(around)
    with pytest.raises(ForeignSource, match=r"t\[0\] offset 5"):
        made.meet_source("1/db/1", 5)
    assert made.known.now.source == "1/db/0"


def test_a_source_that_is_accepted_begins_from_scratch(
    around: Surroundings, caplog: pytest.LogCaptureFixture
) -> None:
    """Its ops have positions of their own: none of them took effect."""
    before = kept(
        around, source="1/db/0", position=AppliedPosition(9, 0), next_offset=4
    )
    state, tx = around.state(), cast("Transaction", around.database)
    state.move_chunks(tx, {_CHUNK: NEVER}, {_CHUNK: 8})
    made = begun(around, accept_source="1/db/1")
    made.index_of(_CHUNK)
    made.meet_source("1/db/1", 5)
    row = around.database.row()
    assert row == replace(before, source="1/db/1", position=NOTHING, topic_id="first")
    assert (made.known.row, made.known.now) == (row, row)
    assert made.index_of(_CHUNK) == NEVER
    assert "1/db/1 after 1/db/0" in caplog.text


def test_a_source_is_not_changed_where_another_member_moved_the_state(
    around: Surroundings, caplog: pytest.LogCaptureFixture
) -> None:
    kept(around, source="1/db/0")
    made = begun(around, accept_source=True)
    row = kept(around, next_offset=77)
    made.meet_source("1/db/1", 5)
    assert "continuing with source" not in caplog.text
    assert around.database.row() == row
    assert made.sure(5)
    assert made.known.row == row


def test_a_source_is_not_changed_by_who_has_no_lock(around: Surroundings) -> None:
    row = kept(around, source="1/db/0", next_offset=0)
    made = begun(around, accept_source=True)
    around.database.holders = {7: False}
    assert waits_of(lambda: made.meet_source("1/db/1", 5), 1) == [0.05]
    assert around.database.row() == row


def test_a_frozen_holder_of_the_lock_is_ended_after_a_second(
    around: Surroundings, caplog: pytest.LogCaptureFixture
) -> None:
    made = session(around)
    around.database.holders = {7: True, 8: False}
    waited = 0
    while 7 in around.database.holders:
        assert waits_of(made.begin, 1) == [0.05]
        around.now += 0.25
        waited += 1
    assert waited == 6  # it was asked anew beyond one second
    assert "the session 7: it kept t[0] locked and did nothing for 7 s" in caplog.text
    assert "the session 8" not in caplog.text
    del around.database.holders[8]
    made.begin()


def test_patience_counts_from_the_last_success(around: Surroundings) -> None:
    made = session(around)
    around.database.holders = {7: False}
    waits_of(made.begin, 1)
    around.database.holders = {}
    made.begin()
    around.now += 60
    around.database.holders = {7: True}
    waits_of(lambda: made.wait_for_lock(), 2)  # noqa: PLW0108 - it never returns
    assert 7 in around.database.holders


def test_patience_counts_from_the_last_commit_too(around: Surroundings) -> None:
    made = begun(around)
    around.database.holders = {7: True}
    waits_of(lambda: made.wait_for_lock(), 1)  # noqa: PLW0108 - it never returns
    made.committed(BatchOutcome(made.known.row))
    around.now += 60
    waits_of(lambda: made.wait_for_lock(), 1)  # noqa: PLW0108 - it never returns
    assert 7 in around.database.holders


def test_a_lock_that_stays_taken_is_told_now_and_then(
    around: Surroundings, caplog: pytest.LogCaptureFixture
) -> None:
    made = session(around)
    around.database.holders = {7: False}
    for _ in range(70):
        waits_of(made.begin, 1)
        around.now += 1.5
    assert caplog.text.count("t[0] is locked by the sessions [7]") == 2


def test_holders_are_looked_at_once_a_second(around: Surroundings) -> None:
    made = session(around)
    around.database.holders = {7: False}
    for _ in range(40):
        waits_of(made.begin, 1)
        around.now += 0.25
    assert 5 <= around.database.asked("pg_stat_activity") <= 10


def test_who_may_not_end_sessions_waits_on(
    around: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise errors.InsufficientPrivilege

    monkeypatch.setattr(PartitionState, "end_frozen_holders", refuse)
    made = session(around)
    around.database.holders = {7: True}
    waits_of(made.begin, 1)
    around.now += 2
    assert waits_of(made.begin, 1) == [0.05]
