"""Batch after batch, whatever fails: each op takes effect once, or the lane stops."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest
from confluent_kafka import Message
from psycopg import errors

from consumer.decoder import Decoder
from consumer.errors import (
    BarrierTimeout,
    HandlerFailed,
    PoisonRecord,
    SchemasAway,
    TopicReplaced,
)
from consumer.group.assigned_partition import AssignedPartition, Pause, Place
from consumer.handler import BatchHooks, Fatal, Retry
from consumer.op import ConsumerRecord, EnvelopeOp, Op
from consumer.state.handler_pipeline import HandlerPipeline
from consumer.state.partition import IdempotentWork, WorkOptions
from consumer.state.partition_state import PartitionState
from consumer.state.plan import Planner
from consumer.state.position import AppliedPosition
from consumer.state.schema import Tables
from consumer.state.truncate_barrier import Barrier, Crossings, Turn
from tests.support.consumer_partition import Surroundings
from tests.support.loads.envelope import envelope
from tests.support.loads.op_record import backfilled, insert, truncate
from tests.unit.consumer.state.test_plan import messages, rows_of
from walstream.errors import Transient
from walstream.op import ReplicationOp

_ROW = ["1", "1"]
RECORD = ConsumerRecord("t", 0, 0, None, b"")


@pytest.fixture
def around() -> Iterator[Surroundings]:
    around = Surroundings()
    with around.clock():
        yield around


def work(around: Surroundings, **options: Any) -> IdempotentWork:
    session = around.options(
        **{name: options.pop(name) for name in ("accept_source",) if name in options}
    )
    given: dict[str, Any] = {
        "handler": around.handle,
        "on_poison": "stop",
        "metrics": around.count,
        "batch": 10,
        "batch_s": 60.0,
        "barrier_s": 5.0,
        "linger_s": 0.0,
        "session": session,
        "decoder": Decoder(),
        **options,
    }
    tables = cast("Tables", around.database)
    made = IdempotentWork(around.lane, WorkOptions(**given), tables)
    made.begin()
    around.lane.sought_to  # noqa: B018 - and forget it
    return made


def ops(*lsns: int) -> list[ReplicationOp]:
    return [insert(lsn, 0, _ROW) for lsn in lsns]


def sent(found: Sequence[Any], first: int = 0, **sources: Any) -> list[Message]:
    """Make messages of ops, the first of which has this offset."""
    return messages([None] * first + list(found), **sources)[first:]


def all_of(done: IdempotentWork, read: list[Message]) -> list[float]:
    """Handle messages as a lane does; give the pauses."""
    pauses: list[float] = []
    for _ in range(100):
        if not read:
            return pauses
        try:
            read = read[done.handle(read) :]
        except Pause as pause:
            pauses.append(pause.seconds)
    raise AssertionError


def test_what_is_read_takes_effect_once_and_moves_the_state(
    around: Surroundings,
) -> None:
    done = work(around)
    read = sent([*ops(1, 2), None, *ops(2, 3)])
    assert done.handle(read) == 5
    assert around.applied == [0, 1, 4]
    row = around.database.row()
    assert (row.position, row.next_offset) == ((3, 0), 5)
    assert around.lane.handled == 5
    again = work(around)
    assert again.handle(read) == 5
    assert around.applied == [0, 1, 4]
    assert around.counts["handled"] == 3
    assert around.counts["skipped"] == 2 + 5


def test_a_batch_has_so_many_ops_and_no_more(around: Surroundings) -> None:
    done = work(around, batch=2)
    assert done.wanted == 2
    assert done.handle(sent(ops(1, 2, 3))) == 2
    assert around.applied == [0, 1]


def test_time_that_is_up_cuts_a_batch(around: Surroundings) -> None:
    def handle(tx: object, op: Op) -> None:
        around.handle(tx, op)
        around.now += 40

    done = work(around, handler=handle)
    read = sent([*ops(1, 2), None, *ops(3)])
    assert done.handle(read) == 3  # and what changes nothing behind them
    assert around.applied == [0, 1]
    assert around.counts["batch_seconds"] == 80
    assert done.handle(read[3:]) == 1
    assert around.applied == [0, 1, 3]


def test_a_turn_has_a_session_and_gives_it_back(around: Surroundings) -> None:
    done = work(around)
    assert around.sessions.returned == around.sessions.lent
    done.handle(sent(ops(1)))
    done.handle(sent([None], 1))
    held = done.holds
    done.end()
    assert (held, done.holds) == (True, False)
    assert around.database.row().next_offset == 2
    assert around.sessions.returned == around.sessions.lent
    with pytest.raises(HandlerFailed):
        work(around, handler=failing({0: Fatal()})).handle(sent(ops(9)))
    assert around.sessions.returned == around.sessions.lent


def test_full_batches_are_waited_for_where_that_was_wished(
    around: Surroundings,
) -> None:
    work(around)
    assert around.lane.linger is None
    work(around, linger_s=0.5)
    assert around.lane.linger is not None


def test_a_lane_that_stops_ends_its_batch(around: Surroundings) -> None:
    def handle(tx: object, op: Op) -> None:
        around.handle(tx, op)
        around.lane.stop()

    assert work(around, handler=handle).handle(sent(ops(1, 2))) == 1
    assert around.applied == [0]


def test_records_that_change_nothing_are_passed_over(around: Surroundings) -> None:
    done = work(around)
    assert done.handle(sent([None, None])) == 2
    assert around.lane.handled == 2
    assert around.counts == {"skipped": 2}


def failing(
    errors_of: dict[int, BaseException | list[BaseException]], *, around: Any = None
) -> Callable[[object, Op], None]:
    """Make a handler that raises at an offset: for good, or so many times."""

    def handle(tx: object, op: Op) -> None:
        found = errors_of.get(op.record.offset)
        if isinstance(found, list):
            found = found.pop(0) if found else None
        if found is not None:
            raise found
        if around is not None:
            around.handle(tx, op)

    return handle


def test_what_is_to_be_tried_again_waits_and_keeps_the_order(
    around: Surroundings,
) -> None:
    handler = failing({1: [Retry(), Retry(), Retry()]}, around=around)
    done = work(around, handler=handler)
    pauses = all_of(done, sent(ops(1, 2, 3)))
    # the first try was behind another op, which is done again at once
    assert pauses == [0.1, 0.2]
    assert around.applied == [0, 1, 2]
    assert around.handled == [0, 0, 1, 2]
    assert around.counts["retried"] == 3
    # a success ends it
    again = work(around, handler=failing({3: [Retry()]}, around=around))
    assert all_of(again, sent(ops(9), 3)) == [0.1]


def test_the_op_that_failed_alone_is_alone(around: Surroundings) -> None:
    done = work(around, handler=failing({1: [Retry()]}, around=around))
    read, sizes = sent(ops(1, 2, 3, 4)), []
    while read:
        sizes.append(done.handle(read))
        read = read[sizes[-1] :]
    assert sizes == [0, 1, 1, 2]


def test_waits_grow_up_to_half_a_minute_and_end_with_a_success(
    around: Surroundings,
) -> None:
    handler = failing(
        {0: [Retry() for _ in range(12)], 1: [Retry(), Retry()]}, around=around
    )
    done = work(around, handler=handler)
    pauses = all_of(done, sent(ops(1)))
    assert pauses == sorted(pauses)
    assert pauses[-1] == 30.0
    assert all_of(done, sent(ops(2), 1)) == [0.1, 0.2]


@pytest.mark.parametrize("error", [ValueError("4711"), Fatal(), SystemExit()])
def test_an_op_that_fails_stops_behind_those_before_it(
    around: Surroundings, error: BaseException
) -> None:
    done = work(around, handler=failing({2: error}, around=around))
    with pytest.raises(HandlerFailed, match="offset 2") as stopped:
        all_of(done, sent(ops(1, 2, 3, 4)))
    assert "4711" not in str(stopped.value)
    assert around.applied == [0, 1]
    assert around.database.row().next_offset == 2


def test_the_first_op_that_fails_stops_at_once(around: Surroundings) -> None:
    done = work(around, handler=failing({0: ValueError()}, around=around))
    with pytest.raises(HandlerFailed, match="offset 0"):
        done.handle(sent(ops(1, 2)))
    assert around.applied == []


def test_an_op_that_failed_behind_others_is_not_called_again(
    around: Surroundings,
) -> None:
    calls: list[int] = []

    def handle(tx: object, op: Op) -> None:
        calls.append(op.record.offset)
        if op.record.offset == 1:
            raise ValueError
        around.handle(tx, op)

    done = work(around, handler=handle)
    with pytest.raises(HandlerFailed):
        all_of(done, sent(ops(1, 2)))
    assert calls == [0, 1, 0]


def test_an_outage_of_the_database_is_waited_out(around: Surroundings) -> None:
    handler = failing({1: [errors.AdminShutdown()]}, around=around)
    done = work(around, handler=handler)
    assert all_of(done, sent(ops(1, 2, 3))) == [0.05]
    assert around.applied == [0, 1, 2]
    assert around.counts["retried"] == 1
    # whichever of them it was: each alone, until it is over
    assert around.handled == [0, 0, 1, 2]
    assert len(around.database.committed) >= 4


def test_an_outage_of_a_batch_of_one_is_waited_out(around: Surroundings) -> None:
    done = work(around, handler=failing({0: [errors.AdminShutdown()]}, around=around))
    assert all_of(done, sent(ops(1))) == [0.05]
    assert around.applied == [0]


def test_each_op_of_a_batch_that_met_an_outage_is_alone(around: Surroundings) -> None:
    done = work(around, handler=failing({1: [errors.AdminShutdown()]}, around=around))
    read = sent(ops(1, 2, 3, 4))
    with pytest.raises(Pause):
        done.handle(read[:3])
    sizes = []
    while read:
        sizes.append(done.handle(read))
        read = read[sizes[-1] :]
    assert sizes == [1, 1, 1, 1]


def test_what_the_handler_calls_fatal_is_not_tried_again(
    around: Surroundings,
) -> None:
    fatal = Fatal(errors.AdminShutdown())
    fatal.__cause__ = errors.AdminShutdown()
    done = work(around, handler=failing({0: fatal}))
    with pytest.raises(HandlerFailed):
        done.handle(sent(ops(1)))
    assert "retried" not in around.counts


def test_a_commit_that_is_refused_is_blamed_on_the_op_that_it_is_of(
    around: Surroundings,
) -> None:
    """A deferred constraint, for one."""
    done = work(around)
    read = sent(ops(1, 2))
    around.database.refused_commits = [errors.UniqueViolation("4711")]
    assert done.handle(read) == 0
    assert around.applied == []
    assert done.handle(read) == 1
    around.database.refused_commits = [errors.UniqueViolation("4711")]
    with pytest.raises(HandlerFailed, match="UniqueViolation, 23505") as stopped:
        done.handle(read[1:])
    assert stopped.value.offset == 1
    assert "4711" not in str(stopped.value)
    assert around.applied == [0]


def test_a_commit_that_may_succeed_is_tried_again(around: Surroundings) -> None:
    around.database.refused_commits = []
    done = work(around)
    around.database.refused_commits = [errors.SerializationFailure()]
    assert all_of(done, sent(ops(1, 2))) == [0.05]
    assert around.applied == [0, 1]
    assert around.counts["retried"] == 1


def test_an_error_without_a_code_is_told(around: Surroundings) -> None:
    done = work(around)
    around.database.refused_commits = [errors.InternalError()]
    with pytest.raises(HandlerFailed, match=r"InternalError, \w+"):
        done.handle(sent(ops(1)))


def test_a_partition_that_another_process_works_on_is_waited_for(
    around: Surroundings,
) -> None:
    done = work(around)
    around.database.holders = {7: False}
    with pytest.raises(Pause):
        done.handle(sent(ops(1)))
    assert around.applied == []


def test_a_state_that_another_member_moved_is_read_again(
    around: Surroundings,
) -> None:
    first, second = work(around), work(around)
    read = sent(ops(1, 2, 3))
    assert first.handle(read[:2]) == 2
    assert second.handle(read[:1]) == 0
    assert all_of(second, read) == []
    assert around.applied == [0, 1, 2]


def test_a_state_that_was_moved_back_by_hand_is_sought(around: Surroundings) -> None:
    done = work(around)
    done.handle(sent(ops(1, 2, 3)))
    row = around.database.row()
    around.database.put(
        row, replaced(row, next_offset=1, position=AppliedPosition(1, 0))
    )
    later = sent(ops(4), 3)
    assert done.handle(later) == 0
    assert done.handle(later) == 0  # it seeks: these come again, or never
    assert around.lane.sought_to == 1


def replaced(row: Any, **values: Any) -> Any:
    return type(row)(**{name: getattr(row, name) for name in row.__slots__} | values)


def sources(**by_offset: str) -> dict[int, bytes]:
    return {int(name[1:]): value.encode() for name, value in by_offset.items()}


def test_records_of_another_source_stop_in_front_of_them(
    around: Surroundings,
) -> None:
    read = messages(ops(1, 2), sources(_0="1/db/0", _1="1/db/1"))
    done = work(around)
    assert done.handle(read) == 0  # whose they are is noted
    assert done.handle(read) == 1
    with pytest.raises(Exception, match=r"t\[0\] offset 1 comes from source 1/db/1"):
        done.handle(read[1:])
    assert around.applied == [0]
    again = work(around, accept_source="1/db/1")
    assert all_of(again, read[1:]) == []
    assert around.applied == [0, 1]


def test_a_malformed_record_stops_behind_those_before_it(
    around: Surroundings,
) -> None:
    done = work(around)
    with pytest.raises(PoisonRecord) as stopped:
        all_of(done, sent([*ops(1), b"no op", *ops(2)]))
    assert stopped.value.offset == 1
    assert around.applied == [0]
    assert around.counts["poison"] == 1


def test_a_malformed_record_is_passed_over_where_that_was_wished(
    around: Surroundings,
) -> None:
    done = work(around, on_poison="skip")
    assert all_of(done, sent([*ops(1), b"no op", *ops(2)])) == []
    assert around.applied == [0, 2]
    assert around.counts["poison"] == 1
    assert around.database.row().next_offset == 3


def test_a_log_that_went_back_is_looked_into(around: Surroundings) -> None:
    done = work(around)
    done.handle(sent(ops(1, 2, 3)))
    before = len(around.guard.questions)
    done.handle(sent(ops(4), 3))
    assert len(around.guard.questions) == before
    around.guard.error = TopicReplaced("ends at 1")
    with pytest.raises(TopicReplaced):
        done.handle(sent(ops(5), 1))
    assert around.guard.questions[-1][0] == 4
    assert around.applied == [0, 1, 2, 3]


def test_debeziums_records_take_effect_once_where_kafka_goes_back(
    around: Surroundings,
) -> None:
    done = work(around, batch=3)
    read = rows_of(*[envelope("c", after={"id": 1}, lsn=900 - n) for n in range(9)])
    all_of(done, read)
    before = len(around.guard.questions)
    left = read
    while left:
        left = left[done.handle(left[:3]) :]
    assert around.applied == [*range(9)]
    assert len(around.guard.questions) == before + 1  # not for each batch
    assert around.database.row().next_offset == 9
    done.handle(read[:3])
    done.handle(read[2:3])  # once more, within what was read since
    assert len(around.guard.questions) == before + 3


def test_offsets_that_never_came_are_asked_for_in_time(around: Surroundings) -> None:
    done = work(around)
    done.handle(sent(ops(1)))
    around.now += 2
    before = len(around.guard.questions)
    done.handle(sent(ops(2), 1))
    assert len(around.guard.questions) == before
    done.handle(sent(ops(3), 5))
    assert [asked for asked, *_ in around.guard.questions[before:]] == [2]
    # not at each gap
    done.handle(sent(ops(4), 8))
    assert len(around.guard.questions) == before + 1
    assert done.rest() == 1.0
    around.now += 2
    done.rest()
    assert [asked for asked, *_ in around.guard.questions[before:]] == [2, 6]
    done.end()
    assert done.rest() is None
    assert len(around.guard.questions) == before + 2


def test_a_gap_is_asked_for_until_kafka_answers(around: Surroundings) -> None:
    done = work(around)
    done.handle(sent(ops(1)))
    around.now += 2
    around.guard.error = Transient("away")
    gap = sent(ops(2), 5)
    for _ in range(2):
        with pytest.raises(Pause):
            done.handle(gap)
    assert around.applied == [0]
    around.guard.error = None
    done.handle(gap)
    assert [asked for asked, *_ in around.guard.questions[1:]] == [1, 1, 1]
    assert around.applied == [0, 5]


def test_now_and_then_it_is_asked_whether_the_topic_is_the_same(
    around: Surroundings,
) -> None:
    """The client goes on in another one of its name, if that has such an offset."""
    done = work(around)
    for number in range(5):
        all_of(done, sent(ops(100 + number), number))
        around.now += 2
    assert len(around.guard.same) == 1
    around.guard.error = Transient("Kafka is away")
    around.now += 6
    all_of(done, sent(ops(110), 5))  # it was fetched
    assert len(around.guard.same) == 2
    around.guard.error = TopicReplaced("was created again")
    around.now += 6
    with pytest.raises(TopicReplaced):
        all_of(done, sent(ops(120), 6))
    assert around.applied == [0, 1, 2, 3, 4, 5]


def test_where_the_topic_was_begun_no_record_is_missing(around: Surroundings) -> None:
    around.guard.first = 5
    done = work(around)
    around.now += 2
    done.rest()
    before = len(around.guard.questions)
    done.handle(sent(ops(1), 5))
    assert len(around.guard.questions) == before
    done.handle(sent(ops(2), 7))
    assert [asked for asked, *_ in around.guard.questions[before:]] == [6]


def test_a_gap_in_front_of_the_first_record_is_asked_for(
    around: Surroundings,
) -> None:
    around.guard.first = 3
    done = work(around)
    around.now += 2
    done.handle(sent(ops(1), 5))
    assert around.guard.questions[-1][0] == 3


class AtOnce:
    """An application that gets its ops in batches, and fails at some."""

    def __init__(
        self, around: Surroundings, errors_of: dict[int, list[BaseException]]
    ) -> None:
        self._around = around
        self._errors = errors_of
        self.sizes: list[int] = []

    def __call__(self, tx: object, batch: Sequence[Op]) -> None:
        self.sizes.append(len(batch))
        for op in batch:
            if self._errors.get(op.record.offset):
                raise self._errors[op.record.offset].pop(0)
            self._around.handle(tx, op)


def test_a_batch_that_fails_comes_in_halves_till_the_op_is_alone(
    around: Surroundings,
) -> None:
    app = AtOnce(around, {5: [ValueError() for _ in range(9)]})
    done = work(around, batch=8, batch_handler=app)
    with pytest.raises(HandlerFailed, match="offset 5"):
        all_of(done, sent(ops(*range(1, 9))))
    assert around.applied == [0, 1, 2, 3, 4]
    assert app.sizes[0] == 8
    assert app.sizes[-1] == 1
    assert "retried" not in around.counts


def test_a_batch_to_be_tried_again_waits_and_grows_again(
    around: Surroundings,
) -> None:
    app = AtOnce(around, {1: [Retry(), Retry()]})
    done = work(around, batch=8, batch_handler=app)
    pauses = all_of(done, sent(ops(*range(1, 17))))
    assert pauses == [0.1, 0.2]
    assert app.sizes == [8, 4, 2, 4, 8, 2]
    assert around.applied == list(range(16))
    assert around.counts["retried"] == 2


def test_a_batch_that_met_an_outage_comes_in_halves(around: Surroundings) -> None:
    app = AtOnce(around, {1: [errors.AdminShutdown()]})
    done = work(around, batch=4, batch_handler=app)
    assert all_of(done, sent(ops(1, 2, 3, 4))) == [0.05]
    assert app.sizes == [4, 2, 2]
    assert around.applied == [0, 1, 2, 3]
    assert around.counts["retried"] == 1


def test_a_batch_whose_commit_is_refused_comes_in_halves(
    around: Surroundings,
) -> None:
    app = AtOnce(around, {})
    done = work(around, batch=4, batch_handler=app)
    around.database.refused_commits = [errors.UniqueViolation()]
    all_of(done, sent(ops(1, 2, 3, 4)))
    assert app.sizes == [4, 2, 2]
    around.database.refused_commits = [errors.UniqueViolation()]
    with pytest.raises(HandlerFailed, match="offset 4"):
        done.handle(sent(ops(5), 4))
    assert around.applied == [0, 1, 2, 3]


@pytest.mark.parametrize("error", [SystemExit(), KeyboardInterrupt()])
def test_a_batch_that_wants_to_end_is_not_halved(
    around: Surroundings, error: BaseException
) -> None:
    app = AtOnce(around, {1: [error]})
    done = work(around, batch=4, batch_handler=app)
    with pytest.raises(HandlerFailed):
        done.handle(sent(ops(1, 2, 3, 4)))
    assert app.sizes == [4]


def test_a_batch_of_one_that_fails_stops(around: Surroundings) -> None:
    app = AtOnce(around, {0: [Fatal(errors.AdminShutdown())]})
    done = work(around, batch_handler=app)
    with pytest.raises(HandlerFailed):
        done.handle(sent(ops(1)))
    assert app.sizes == [1]


def test_what_a_batch_handler_calls_fatal_is_not_waited_out(
    around: Surroundings,
) -> None:
    fatal = Fatal()
    fatal.__cause__ = errors.AdminShutdown()
    app = AtOnce(around, {0: [fatal, fatal, fatal]})
    done = work(around, batch=4, batch_handler=app)
    with pytest.raises(HandlerFailed):
        all_of(done, sent(ops(1, 2)))
    assert app.sizes == [2, 1]
    assert "retried" not in around.counts


def test_hooks_surround_each_batch(around: Surroundings) -> None:
    said: list[object] = []
    hooks = BatchHooks(
        lambda _tx, batch: said.append(len(batch)), lambda _tx: said.append("end")
    )
    all_of(work(around, hooks=hooks, batch=2), sent(ops(1, 2, 3)))
    assert said == [2, "end", 1, "end"]


def test_what_a_hook_does_to_its_ops_is_its_own(around: Surroundings) -> None:
    def begin(_: object, batch: Any) -> None:
        sorted(batch, key=lambda op: -op.lsn)
        assert isinstance(batch, tuple)

    hooks = BatchHooks(begin, lambda _: None)
    all_of(work(around, hooks=hooks), sent(ops(1, 2, 3)))
    assert around.applied == [0, 1, 2]


@pytest.mark.parametrize("name", ["begin", "end"])
def test_what_a_hook_raises_is_met_as_a_handlers(
    around: Surroundings, name: str
) -> None:
    def hooks(*raised: BaseException) -> BatchHooks:
        left = [*raised]

        def call(*_: object) -> None:
            if left:
                raise left.pop(0)

        one = {"begin": lambda *_: None, "end": lambda *_: None, name: call}
        return BatchHooks(one["begin"], one["end"])

    waits = all_of(work(around, hooks=hooks(Retry(), Retry())), sent(ops(1, 2)))
    assert len(waits) == 2
    assert around.applied == [0, 1]
    assert around.counts["retried"] == 2
    failing = ValueError(), ValueError()
    with pytest.raises(HandlerFailed, match="ValueError") as stopped:
        all_of(work(around, hooks=hooks(*failing)), sent(ops(5, 6), 2))
    assert (stopped.value.partition, stopped.value.offset) == (0, 2)
    with pytest.raises(HandlerFailed, match="SystemExit"):
        all_of(work(around, hooks=hooks(SystemExit())), sent(ops(5, 6), 2))
    assert around.applied == [0, 1]


def other(around: Surroundings, number: int) -> PartitionState:
    return PartitionState("g", Place("t", number), cast("Tables", around.database))


def arrive(around: Surroundings, number: int, lsn: int, partitions: int) -> Any:
    """Let another partition meet a Truncate."""
    op = Op.of(truncate(lsn, partitions), RECORD)
    barrier = Barrier(other(around, number), op, None)
    with around.database.transaction():
        return barrier.arrive(cast("Any", around.database))


def test_a_truncate_waits_until_all_partitions_have_met_it(
    around: Surroundings,
) -> None:
    done = work(around)
    around.lane.others = cast("Any", 20)
    read = sent([truncate(5, 3), *ops(6)])
    for number in (1, 2):
        with pytest.raises(Pause) as pause:
            done.handle(read)
        assert pause.value.seconds == 0.2  # many lanes ask no more often than few
        assert around.applied == []
        arrive(around, number, 5, 3)
    assert done.handle(read) == 1
    assert around.applied == [0]
    assert done.handle(read[1:]) == 1
    assert around.applied == [0, 1]
    assert around.counts["handled"] == 2


def test_few_lanes_ask_soon_and_never_later_than_the_wait_may_take(
    around: Surroundings,
) -> None:
    for barrier_s, expected in ((5.0, 0.03), (0.01, 0.01)):
        done = work(around, barrier_s=barrier_s)
        with pytest.raises(Pause) as pause:
            done.handle(sent([truncate(5, 2)]))
        assert pause.value.seconds == expected


def test_a_truncate_that_was_run_is_passed(around: Surroundings) -> None:
    done = work(around)
    read = sent([truncate(5, 2)])
    with pytest.raises(Pause):
        done.handle(read)
    elsewhere, op = other(around, 1), Op.of(truncate(5, 2), RECORD)
    barrier = Barrier(elsewhere, op, None)
    with around.database.transaction():
        barrier.arrive(cast("Any", around.database))
        barrier.ran(cast("Any", around.database))
    assert done.handle(read) == 1
    assert around.applied == []
    assert around.counts == {"skipped": 1}
    assert around.database.row().position == (5, 0)


def test_who_waits_too_long_at_a_truncate_names_what_is_missing(
    around: Surroundings,
) -> None:
    done = work(around)
    read = sent([truncate(5, 3)])
    arrive(around, 1, 5, 3)
    for _ in range(2):
        with pytest.raises(Pause):
            done.handle(read)
        around.now += 5
    around.now += 0.1
    with pytest.raises(BarrierTimeout, match=r"waited 5 s.* offset 0.*: \[2\]"):
        done.handle(read)


def test_each_truncate_has_its_own_wait(around: Surroundings) -> None:
    done = work(around)
    first, second = sent([truncate(5, 2), truncate(6, 2)])
    with pytest.raises(Pause):
        done.handle([first])
    arrive(around, 1, 5, 2)
    around.now += 4
    assert done.handle([first]) == 1
    with pytest.raises(Pause):
        done.handle([second])
    around.now += 4
    with pytest.raises(Pause):
        done.handle([second])


def test_a_truncate_that_another_partition_runs_is_waited_for(
    around: Surroundings,
) -> None:
    done = work(around)
    arrive(around, 1, 5, 2)
    around.database.truncating = True
    read = sent([truncate(5, 2)])
    with pytest.raises(Pause) as pause:
        done.handle(read)
    assert pause.value.seconds == 0.03
    assert around.applied == []
    around.database.truncating = False
    assert done.handle(read) == 1
    assert around.applied == [0]


def test_those_that_wait_here_are_told_when_a_truncate_was_run(
    around: Surroundings,
) -> None:
    crossings = Crossings()
    done = work(around, crossings=crossings)
    read = sent([truncate(5, 2)])
    with pytest.raises(Pause):
        done.handle(read)
    name = ("g", "t", "5", "0", "")
    crossings.run(name, cast("AssignedPartition", None))
    assert around.lane.urged == 1
    waiting = type(around.lane)()
    crossings.wait(name, waiting)
    arrive(around, 1, 5, 2)
    assert done.handle(read) == 1
    assert (waiting.urged, around.lane.urged) == (1, 1)


def test_a_truncate_of_one_record_needs_no_other_partition(
    around: Surroundings,
) -> None:
    """Debezium's own."""
    read = rows_of(envelope("t", lsn=5), envelope("c", after={"id": 1}, lsn=6))
    assert all_of(work(around), read) == []
    assert around.applied == [0, 1]


def test_ops_whose_order_depends_on_it_know_how_many_partitions_there_are(
    around: Surroundings,
) -> None:
    told: list[int] = []

    def handle(_: object, op: Op) -> None:
        assert isinstance(op, EnvelopeOp)
        told.append(op.topic_partitions)

    done = work(around, handler=handle)
    read = rows_of(
        envelope("t", lsn=5),
        envelope("c", after={"id": 1}, lsn=6),
        envelope("c", after={"id": 1}, lsn=7),
    )
    all_of(done, read)
    assert told == [3, 3, 3]
    keyed = [
        Message(
            topic="t",
            partition=0,
            offset=3,
            key=b'{"id":1}',
            value=json.dumps(envelope("c", after={"id": 1}, lsn=8)).encode(),
            headers=[],
            timestamp=(1, 5),
        )
    ]
    all_of(done, keyed)
    assert told[3:] == [0]


def test_kafka_is_asked_for_its_partitions_only_where_it_matters(
    around: Surroundings,
) -> None:
    work(around).handle(sent(ops(1)))
    assert around.guard.counted == 0


def test_rows_of_a_snapshot_take_effect_once(around: Surroundings) -> None:
    rows = [backfilled(9, 1, index, _ROW) for index in (0, 1)]
    read = sent([*rows, *ops(10), *rows])
    assert work(around).handle(read) == 5
    assert work(around).handle(read) == 5
    assert around.applied == [0, 1, 2]


def test_rows_of_a_snapshot_that_is_long_past_take_no_effect(
    around: Surroundings,
) -> None:
    new = backfilled(3 << 30, 1, 0, _ROW)
    work(around).handle(sent([new]))
    assert work(around).handle(sent([backfilled(9, 7, 0, _ROW)], 1)) == 1
    assert around.applied == [0]


def test_of_debeziums_records_each_takes_effect_once(around: Surroundings) -> None:
    """Their offset alone tells which did: their positions are no order."""
    read = rows_of(*[envelope("c", after={"id": 1}, lsn=lsn) for lsn in (50, 40, 40)])
    assert work(around).handle(read[:2]) == 2
    assert work(around).handle(read) == 3
    assert around.applied == [0, 1, 2]


def test_a_truncate_that_cannot_be_run_stops(
    around: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def arrive(self: Barrier, _: object) -> Turn:
        self.behind = [2]
        return Turn.BEHIND

    monkeypatch.setattr(Barrier, "arrive", arrive)
    done = work(around)
    with pytest.raises(TopicReplaced, match=r"from partitions \[2\]") as stopped:
        done.handle(sent([truncate(5, 3)]))
    assert stopped.value.partition == 2
    assert around.applied == []


def test_schemas_that_cannot_be_had_are_waited_for(
    around: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(*_: object) -> object:
        raise SchemasAway("the registry is away", wait_s=7.0)

    monkeypatch.setattr(Planner, "plan", plan)
    with pytest.raises(Pause) as pause:
        work(around).handle(sent(ops(1)))
    assert pause.value.seconds == 7.0


def test_a_batch_that_failed_in_a_pipeline_comes_again_without_it(
    around: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows which op it was, nor what was committed: the state is read again."""
    tries: list[int] = []

    def handle(_: object, __: object, ops: Sequence[Op], *___: object) -> Any:
        tries.append(len(ops))
        return 0, ValueError("4711")

    monkeypatch.setattr(HandlerPipeline, "handle", handle)
    done = work(around, pipeline=True)
    read = sent(ops(1, 2))
    before = around.database.asked("SELECT id, lsn")
    assert done.handle(read) == 0
    assert around.counts["retried"] == 1
    assert done.handle(read) == 2
    assert tries == [2]
    assert around.applied == [0, 1]
    assert around.database.asked("SELECT id, lsn") > before
