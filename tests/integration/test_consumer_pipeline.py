"""`pipeline=True` with real servers: the same takes effect, whatever fails."""

import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count

import psycopg
import pytest
from psycopg.errors import UniqueViolation
from psycopg.pq import PipelineStatus

from consumer import (
    Fatal,
    HandlerFailed,
    Measure,
    Op,
    Retry,
    Transaction,
    TransactionEnded,
)
from tests.support.programs.consumer_thread import Setting, apply

pytestmark = pytest.mark.same_on_15

_OPS = 100


def filled(setting: Setting, ops: int = _OPS) -> None:
    feed = setting.make()
    for number in range(ops):
        feed.insert(number)
    feed.flush()


def ids(setting: Setting) -> list[int]:
    return [row[0] for row in setting.database.fetch("SELECT id FROM item ORDER BY n")]


def fails_at(
    number: int, action: Callable[[Transaction], object]
) -> Callable[..., None]:
    def handle(tx: Transaction, op: Op) -> None:
        if op.new["id"] == str(number):
            action(tx)
        apply(tx, op)

    return handle


def test_ops_of_a_batch_wait_for_no_statement_but_commit_together(
    on_both: Setting,
) -> None:
    setting, ahead = on_both, 0
    filled(setting)

    def handle(tx: Transaction, op: Op) -> None:
        nonlocal ahead
        apply(tx, op)
        ahead += tx.pgconn.pipeline_status == PipelineStatus.ON

    with setting.running(handle, pipeline=True):
        setting.until(_OPS)
    assert ids(setting) == [*range(_OPS)]
    assert ahead > _OPS / 2, "all but those that were alone"
    assert setting.measures[Measure.RETRIED] == 0
    assert setting.measures[Measure.HANDLED] == _OPS


def test_a_refused_statement_is_blamed_on_its_own_op(setting: Setting) -> None:
    filled(setting)
    handle = fails_at(41, lambda tx: tx.execute("SELECT 1 / 0"))
    with setting.running(handle, pipeline=True) as running:
        error = running.fails(HandlerFailed)
    assert (error.offset, error.table) == (41, "public.item")
    assert isinstance(error.__cause__, psycopg.errors.DivisionByZero)
    assert ids(setting) == [*range(41)], "what came before took effect"


@pytest.mark.parametrize("raised", [ValueError, Fatal])
def test_what_a_handler_raises_is_blamed_on_its_own_op(
    setting: Setting, raised: type[Exception]
) -> None:
    filled(setting)

    def fail(_: Transaction) -> None:
        raise raised

    with setting.running(fails_at(41, fail), pipeline=True) as running:
        error = running.fails(HandlerFailed)
    assert error.offset == 41
    assert ids(setting) == [*range(41)]


def test_a_retry_makes_its_op_wait_after_those_before_it(setting: Setting) -> None:
    filled(setting)
    tries = count()

    def perhaps(_: Transaction) -> None:
        if next(tries) < 3:
            raise Retry

    with setting.running(fails_at(41, perhaps), pipeline=True):
        setting.until(_OPS)
    assert ids(setting) == [*range(_OPS)]


def test_an_exit_of_a_handler_stops_the_consumer_at_its_op(setting: Setting) -> None:
    filled(setting)
    handle = fails_at(41, lambda _: sys.exit(3))
    with setting.running(handle, pipeline=True) as running:
        assert running.fails(HandlerFailed).offset == 41
    assert ids(setting) == [*range(41)]


def test_what_passes_is_done_again(setting: Setting) -> None:
    filled(setting)
    tries = count()

    def perhaps(tx: Transaction) -> None:
        if next(tries) < 2:
            tx.execute(
                "DO $$ BEGIN RAISE SQLSTATE '40001'; END $$"
            )  # serialization_failure

    with setting.running(fails_at(41, perhaps), pipeline=True):
        setting.until(_OPS)
    assert ids(setting) == [*range(_OPS)]


def test_results_that_a_handler_looks_at_are_there(setting: Setting) -> None:
    filled(setting)
    seen: list[tuple[int, object, str | None, bool]] = []

    def handle(tx: Transaction, op: Op) -> None:
        apply(tx, op)
        done = tx.execute("UPDATE item SET n = n WHERE id = %s", (op.new["id"],))
        row = tx.execute("SELECT count(*) FROM item").fetchone()
        named = tx.execute("SELECT 1 AS one").description
        seen.append(
            (done.rowcount, row and row[0], done.statusmessage, named is not None)
        )

    with setting.running(handle, pipeline=True):
        setting.until(_OPS)
    assert seen == [(1, number + 1, "UPDATE 1", True) for number in range(_OPS)]


def test_an_error_that_a_handler_catches_behind_a_savepoint_is_its_own(
    setting: Setting,
) -> None:
    """The batch is handled again without a pipeline, and it is caught there, too."""
    filled(setting)
    setting.database.execute("CREATE TABLE one (id int PRIMARY KEY)")
    setting.database.execute("INSERT INTO one VALUES (41)")
    caught: list[str | None] = []

    def handle(tx: Transaction, op: Op) -> None:
        apply(tx, op)
        try:
            with tx.transaction():
                tx.execute("INSERT INTO one VALUES (%s)", (op.new["id"],))
        except UniqueViolation:
            caught.append(op.new["id"])

    with setting.running(handle, pipeline=True):
        setting.until(_OPS)
    assert set(caught) == {"41"}
    assert setting.count("one") == _OPS
    assert ids(setting) == [*range(_OPS)]


def test_an_error_that_a_later_op_catches_is_not_lost(setting: Setting) -> None:
    """Of savepoints by hand: the one before it would be rolled back with it."""
    filled(setting)

    def handle(tx: Transaction, op: Op) -> None:
        number = op.new["id"]
        with suppress(psycopg.Error):
            tx.execute("SAVEPOINT mine")
        with suppress(psycopg.Error):
            if number == "41":
                tx.execute("SELECT 1 / 0")  # and no way back: the handler's mistake
        with suppress(psycopg.Error):
            apply(tx, op)
        for _ in range(9 * (number == "42")):
            with suppress(psycopg.Error):  # what stood between is answered first
                tx.execute("ROLLBACK TO mine")
                tx.execute("SELECT 1").fetchone()
                break

    with setting.running(handle, pipeline=True) as running:
        error = running.fails(TransactionEnded)
    assert error.offset == 41
    assert ids(setting) == [*range(41)]


def test_copy_is_done_without_a_pipeline(setting: Setting) -> None:
    filled(setting)

    def handle(tx: Transaction, op: Op) -> None:
        with tx.cursor().copy("COPY item FROM STDIN") as rows:
            rows.write_row((op.new["id"], op.new["n"]))
        tx.execute("INSERT INTO applied VALUES (%s, 0)", (op.lsn,))

    with setting.running(handle, pipeline=True):
        setting.until(_OPS)
    assert ids(setting) == [*range(_OPS)]
    assert setting.measures[Measure.RETRIED]


def test_a_handler_that_commits_stops_the_consumer(setting: Setting) -> None:
    filled(setting)
    handle = fails_at(41, lambda tx: tx.execute("COMMIT"))
    with setting.running(handle, pipeline=True) as running:
        error = running.fails(TransactionEnded)
    assert "one of the" in str(error) or error.offset == 41


def test_a_constraint_checked_at_the_commit_is_blamed_on_its_op(
    setting: Setting,
) -> None:
    filled(setting)
    setting.database.execute(
        "CREATE TABLE late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)"
    )
    setting.database.execute("INSERT INTO late VALUES (41)")

    def handle(tx: Transaction, op: Op) -> None:
        apply(tx, op)
        tx.execute("INSERT INTO late VALUES (%s)", (op.new["id"],))

    with setting.running(handle, pipeline=True) as running:
        error = running.fails(HandlerFailed)
    assert error.offset == 41
    assert ids(setting) == [*range(41)]


def test_slow_statements_are_cut_by_the_time_of_a_batch(setting: Setting) -> None:
    filled(setting)

    def handle(tx: Transaction, op: Op) -> None:
        tx.execute("SELECT pg_sleep(0.01)")
        apply(tx, op)

    with setting.running(handle, pipeline=True, batch_seconds=0.2):
        setting.until(_OPS)
    assert ids(setting) == [*range(_OPS)]
    # its statements take a second at least
    batches = "SELECT count(DISTINCT xmin::text) FROM item"
    assert setting.database.fetch(batches) >= [(4,)]


def test_a_session_that_is_killed_in_mid_batch_loses_and_repeats_nothing(
    setting: Setting,
) -> None:
    filled(setting)
    kills = count()

    def kill(tx: Transaction) -> None:
        if next(kills) < 2:
            tx.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with setting.running(fails_at(41, kill), pipeline=True):
        setting.until(_OPS)
    assert ids(setting) == [*range(_OPS)]
    assert next(kills) > 2
