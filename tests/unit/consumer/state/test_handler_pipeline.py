"""What a pipelined batch is told of; with PostgreSQL: test_consumer_pipeline."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest

from consumer.handler import Fatal, Transaction
from consumer.op import Op
from consumer.state.handler_pipeline import HandlerPipeline, PipelineCursor
from consumer.state.plan import BatchPlan
from tests.unit.consumer.state.test_batch import plan_of
from walstream.telemetry import runtime


class Ahead:
    """A connection whose statements are refused when it is told so."""

    closed = False

    def __init__(self) -> None:
        self.cursor_factory: type[psycopg.Cursor[Any]] = psycopg.Cursor
        self.syncs: list[int] = []
        self.calls = 0
        self.at_end: psycopg.Error | None = None

    def wait(self, error: psycopg.Error | None) -> None:
        if error is not None:
            raise error

    def sync(self) -> None:
        self.syncs.append(self.calls)

    @contextmanager
    def pipeline(self) -> Iterator["Ahead"]:
        yield self
        if self.at_end is not None:
            raise self.at_end


def handled(
    tx: Ahead,
    handler: Callable[..., object],
    ops: int = 4,
    ends: Callable[[], bool] = lambda: False,
    pipeline: HandlerPipeline | None = None,
) -> tuple[int, BaseException | None]:
    def counted(given: Any, op: Op) -> object:
        tx.calls += 1
        return handler(given, op)

    plan = plan_of(ops)
    made = pipeline or HandlerPipeline()
    return made.handle(cast("Transaction", tx), plan.ops, counted, ends)


def test_all_is_handled_where_nothing_fails() -> None:
    tx = Ahead()
    assert handled(tx, lambda *_: None) == (4, None)
    assert tx.cursor_factory is psycopg.Cursor
    assert "wait" not in vars(tx), "it is as it was"


def test_an_error_that_the_handler_caught_is_told_all_the_same() -> None:
    """It may be that of an op before, which would be lost."""
    tx, first, second = Ahead(), psycopg.DataError("1"), psycopg.DataError("2")

    def handle(given: Ahead, _: Op) -> None:
        for error in (first, second):
            with suppress(psycopg.Error):
                given.wait(error)

    assert handled(tx, handle) == (4, first)


def test_what_the_server_said_comes_before_what_the_handler_raised() -> None:
    tx, refused = Ahead(), psycopg.DataError("1")

    def handle(given: Ahead, _: Op) -> None:
        try:
            given.wait(refused)
        except psycopg.Error:
            raise ValueError from None

    assert handled(tx, handle) == (1, refused)


def test_what_comes_when_the_pipeline_ends_is_told() -> None:
    tx = Ahead()
    tx.at_end = psycopg.DataError("1")
    assert handled(tx, lambda *_: None) == (4, tx.at_end)


@pytest.mark.parametrize("raised", [ValueError(), SystemExit(3), Fatal("no")])
def test_what_a_handler_raises_ends_it(raised: BaseException) -> None:
    def handle(_: object, op: Op) -> None:
        if op.record.offset == 2:
            raise raised

    tx = Ahead()
    tx.at_end = psycopg.DataError("1")
    assert handled(tx, handle) == (3, raised)
    assert tx.cursor_factory is psycopg.Cursor


def test_a_generator_that_is_returned_ends_it() -> None:
    count, failed = handled(Ahead(), lambda *_: (one for one in "ab"))
    assert count == 1
    assert isinstance(failed, Fatal)


def test_a_connection_that_the_handler_closed_ends_it() -> None:
    tx = Ahead()
    tx.closed = True
    count, failed = handled(tx, lambda *_: None)
    assert count == 1
    assert isinstance(failed, psycopg.OperationalError)


def test_what_became_of_the_ops_is_looked_at_less_and_less_often() -> None:
    tx = Ahead()
    assert handled(tx, lambda *_: None, 200) == (200, None)
    assert tx.syncs == [25, 75, 175]


def test_it_ends_at_a_look_when_time_is_up() -> None:
    tx = Ahead()
    ends = lambda: len(tx.syncs) == 2  # noqa: E731 - short
    assert handled(tx, lambda *_: None, 200, ends) == (75, None)


def test_cursors_tell_of_results_unless_the_handler_has_its_own() -> None:
    seen: list[type] = []
    tx = Ahead()
    handled(tx, lambda given, _: seen.append(given.cursor_factory))
    assert set(seen) == {PipelineCursor}
    seen.clear()
    tx.cursor_factory = psycopg.ClientCursor
    handled(tx, lambda given, _: seen.append(given.cursor_factory))
    assert set(seen) == {psycopg.ClientCursor}


def test_a_cursor_class_that_the_handler_sets_stays() -> None:
    tx = Ahead()

    def handle(given: Ahead, _: Op) -> None:
        given.cursor_factory = psycopg.ClientCursor

    handled(tx, handle)
    assert tx.cursor_factory is psycopg.ClientCursor


def test_no_op_of_a_plan_that_failed_is_tried_in_a_pipeline_again() -> None:
    pipeline, plan = HandlerPipeline(), plan_of(4)
    assert pipeline.takes(plan)
    assert not pipeline.takes(plan_of(1)), "alone, it would gain nothing"
    assert not pipeline.refuse(plan_of(1))
    assert pipeline.refuse(plan)
    assert not pipeline.takes(plan)
    assert not pipeline.refuse(plan), "so its errors are its ops' own now"
    assert not pipeline.takes(BatchPlan(plan.ops[2:], 2, 4))
    assert not pipeline.takes(BatchPlan(plan_of(6).ops[3:], 3, 6)), "one was in it"
    assert pipeline.takes(BatchPlan(plan_of(6).ops[4:], 2, 6))


def test_quick_batches_are_looked_at_later_until_one_is_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipeline, slow, now = HandlerPipeline(), False, 7.0
    monkeypatch.setattr(runtime, "monotonic", lambda: now)

    def handle(*_: object) -> None:
        nonlocal now
        now += 0.01 if slow else 0.0

    def looks(ops: int) -> list[int]:
        tx = Ahead()
        assert handled(tx, handle, ops, pipeline=pipeline) == (ops, None)
        return tx.syncs

    assert looks(24) == []
    assert looks(25) == [25]
    assert looks(60) == [50]
    assert looks(60) == []
    slow = True
    assert looks(110) == [100]
    slow = False
    assert looks(30) == [25]


def test_a_batch_of_a_tenth_of_a_second_is_quick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipeline, now = HandlerPipeline(), iter((0.0, 0.1, 0.0, 0.0))
    monkeypatch.setattr(runtime, "monotonic", lambda: next(now))
    for syncs in ([25], [50]):
        tx = Ahead()
        handled(tx, lambda *_: None, 60, pipeline=pipeline)
        assert tx.syncs == syncs


class Answers:
    """A connection that brings a cursor's result when a pipeline in it is left."""

    def __init__(self, *, on: bool) -> None:
        self.pgconn = SimpleNamespace(pipeline_status=int(on))
        self.waits = 0
        self.cursor = object.__new__(PipelineCursor)
        self.cursor.pgresult = None
        self.cursor._conn = cast("Any", self)  # noqa: SLF001 - psycopg's own

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        yield
        self.waits += 1
        self.cursor.pgresult = cast("Any", "told")


@pytest.mark.parametrize("name", ["rowcount", "description", "statusmessage"])
def test_what_is_asked_of_a_result_waits_for_it_once(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    told = property(lambda cursor: cursor.pgresult)
    monkeypatch.setattr(psycopg.Cursor, name, told)
    ahead = Answers(on=True)
    assert getattr(ahead.cursor, name) == getattr(ahead.cursor, name) == "told"
    assert ahead.waits == 1
    plain = Answers(on=False)
    assert getattr(plain.cursor, name) is None
    assert plain.waits == 0, "there is nothing to wait for"
