"""`handle_batch` with real servers: the database that one by one makes."""

import asyncio
import contextlib
import sys
import threading
from collections.abc import Sequence

import pytest

from consumer import (
    Fatal,
    HandlerFailed,
    Kind,
    Measure,
    Op,
    Retry,
    Transaction,
    TransactionEnded,
)
from tests.integration.test_consumer_basic import Basics, basics
from tests.support.deadline import wait_until
from tests.support.loads.op_record import Feed, truncate
from tests.support.programs.consumer_thread import AppliedBatches, Running, Setting

__all__ = ["basics"]
pytestmark = pytest.mark.same_on_15

_ITEMS = "SELECT id, n FROM item ORDER BY id, n"


class Troubled(AppliedBatches):
    """Fails at some ids: for good, for a time, or in PostgreSQL."""

    def __init__(self, *, fatal: int = -1, once: Sequence[int] = ()) -> None:
        super().__init__()
        self._fatal, self._once = str(fatal), {str(number) for number in once}
        self._lock = threading.Lock()

    def handle_batch(self, tx: Transaction, ops: Sequence[Op]) -> None:
        super().handle_batch(tx, ops)
        for op in ops:
            if op.kind is Kind.INSERT and op.new["id"] == self._fatal:
                raise Fatal("no such thing")
            with self._lock:
                again = op.kind is Kind.INSERT and op.new["id"] in self._once
                if again and len(ops) == 1:
                    self._once.discard(op.new["id"] or "")
            if again:
                raise Retry


def fill(feed: Feed, count: int, partitions: int = 2) -> None:
    """Send rows, with a TRUNCATE in the middle that all partitions have."""
    for number in range(count):
        if number == count // 2:
            gone = truncate(feed.next_lsn(), partitions)
            for partition in range(partitions):
                feed.send(gone, partition)
        feed.insert(number, number % partitions)
    feed.flush()


def test_batches_make_the_database_that_one_by_one_makes(on_both: Setting) -> None:
    setting = on_both
    feed = setting.make(partitions=2)
    fill(feed, 600)
    with setting.running() as one_by_one:
        one_by_one.until_read(2)
    expected = setting.database.fetch(_ITEMS)
    assert len(expected) == 300
    setting.database.execute("TRUNCATE item, applied")
    setting.group += "-batches"
    app = Troubled(once=[17, 401])
    with setting.running(app, batch=50) as batches:
        batches.until_read(2)
    assert setting.database.fetch(_ITEMS) == expected
    assert max(app.sizes) == 50
    assert setting.measures[Measure.RETRIED] > 1
    found = setting.database.fetch("SELECT count(*), count(DISTINCT lsn) FROM applied")
    assert found == [(601, 601)]
    for partition in (0, 1):
        order = setting.database.fetch(
            "SELECT lsn FROM applied WHERE partition = %s ORDER BY at", partition
        )
        assert order == sorted(order)


def test_the_op_that_fails_alone_stops_and_those_before_it_took_effect(
    setting: Setting,
) -> None:
    feed = setting.make()
    for number in range(40):
        feed.insert(number)
    feed.flush()
    with setting.consumer(Troubled(fatal=23)) as consumer:
        error = Running(consumer).fails(HandlerFailed)
    assert error.offset == 23
    assert "no such thing" in str(error)
    assert setting.count() == 23
    with setting.running(AppliedBatches()):
        setting.until(40)


def test_an_error_at_the_commit_is_the_op_s_that_made_it(setting: Setting) -> None:
    """A deferred constraint speaks after the handler returned."""
    feed = setting.make()
    setting.database.execute(
        "ALTER TABLE item ADD UNIQUE (id) DEFERRABLE INITIALLY DEFERRED"
    )
    for number in [*range(30), 7, *range(30, 40)]:
        feed.insert(number)
    feed.flush()
    with setting.consumer(AppliedBatches()) as consumer:
        error = Running(consumer).fails(HandlerFailed)
    assert error.offset == 30
    assert setting.count() == 30


def test_a_deadlock_of_a_batch_passes_by_itself(setting: Setting) -> None:
    """GIVEN a batch that PostgreSQL refuses once, THEN it is done again, in halves."""
    feed = setting.make()
    for number in range(20):
        feed.insert(number)
    feed.flush()
    left = [1]

    class Refused(AppliedBatches):
        def handle_batch(self, tx: Transaction, ops: Sequence[Op]) -> None:
            super().handle_batch(tx, ops)
            if left:
                left.pop()
                tx.execute("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$")

    with setting.running(Refused()):
        setting.until(20)
    assert setting.measures[Measure.RETRIED] == 1


def test_a_batch_that_ends_the_transaction_stops_at_once(setting: Setting) -> None:
    feed = setting.make()
    for number in range(20):
        feed.insert(number)
    feed.flush()
    calls: list[int] = []

    class Commits:
        def handle_batch(self, tx: Transaction, ops: Sequence[Op]) -> None:
            calls.append(len(ops))
            tx.execute("COMMIT")

    with setting.consumer(Commits()) as consumer:
        Running(consumer).fails(TransactionEnded)
    assert len(calls) == 1


def test_the_basic_consumer_hands_over_batches_of_a_partition_in_order(
    basics: Basics,
) -> None:
    feed = basics.make(partitions=2)
    fill(feed, 400)
    sizes: list[int] = []

    class App:
        def handle_batch(self, ops: Sequence[Op]) -> None:
            (partition,) = {op.record.partition for op in ops}
            basics.handled[partition] += [
                op.new.get("id", default="") or "" for op in ops
            ]
            sizes.append(len(ops))

    with basics.consumer(App(), batch=30) as consumer:
        running = Running(consumer)
        basics.until(402)
        running.until_read(2)
    running.join()
    for first in (0, 1):
        ids = [str(number) for number in range(first, 400, 2)]
        assert basics.handled[first] == [*ids[:100], "", *ids[100:]]
    assert max(sizes) == 30
    assert basics.stored(0) == 201


def test_a_batch_waits_for_its_ops(setting: Setting) -> None:
    """GIVEN ops that come one by one, THEN they are one batch once there are enough."""
    feed, app = setting.make(), AppliedBatches()
    with setting.running(app, batch=30, linger=60.0):
        for number in range(30):
            feed.insert(number)
            feed.flush()
        setting.until(30)
    assert app.sizes == [30]


def test_a_batch_that_does_not_fill_comes_when_its_time_is_up(basics: Basics) -> None:
    feed = basics.make()
    sizes: list[int] = []

    class App:
        def handle_batch(self, ops: Sequence[Op]) -> None:
            sizes.append(len(ops))

    with basics.consumer(App(), linger=3) as consumer:
        running = Running(consumer)
        running.until_read(1)
        for number in range(7):
            feed.insert(number)
        feed.flush()
        wait_until(lambda: sum(sizes) == 7, 30, "they are handled")
    running.join()
    assert sizes == [7]


def test_a_coroutine_handler_keeps_the_order_of_its_partition(basics: Basics) -> None:
    feed = basics.make(partitions=2)
    for number in range(100):
        feed.insert(number, number % 2)
    feed.flush()

    async def handle(op: Op) -> None:
        await asyncio.sleep(0)  # others may run
        basics.note(op)

    with basics.consumer(handle) as consumer:
        running = Running(consumer)
        basics.until(100)
    running.join()
    assert basics.handled == {
        first: [str(number) for number in range(first, 100, 2)] for first in (0, 1)
    }
    assert "consumer-asyncio" not in {one.name for one in threading.enumerate()}


def test_a_coroutine_that_does_not_return_is_cancelled_and_counts_for_nothing(
    basics: Basics,
) -> None:
    feed = basics.make()
    feed.insert(0)
    feed.insert(1)
    feed.flush()
    begun, ends = threading.Event(), list[str]()

    async def handle(op: Op) -> None:
        if op.record.offset == 0:
            return
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    with basics.consumer(handle, stop_timeout=0.5) as consumer:
        running = Running(consumer)
        assert begun.wait(60)
    running.join()
    assert ends == ["cancelled"]
    assert basics.stored() == 1


@pytest.mark.parametrize("coroutine", [False, True])
def test_an_exit_ends_the_consumer_with_the_batch_that_it_came_from(
    basics: Basics, coroutine: bool
) -> None:
    feed = basics.make()
    for number in range(40):
        feed.insert(number)
    feed.flush()
    sizes: list[int] = []

    class Blocking:
        def handle_batch(self, ops: Sequence[Op]) -> None:
            sizes.append(len(ops))
            sys.exit(3)

    class Concurrent:
        async def handle_batch(self, ops: Sequence[Op]) -> None:
            sizes.append(len(ops))
            sys.exit(3)

    app = Concurrent() if coroutine else Blocking()
    error = Running(basics.consumer(app, batch=40)).fails(HandlerFailed)
    assert isinstance(error.__cause__, SystemExit)
    assert error.__cause__.code == 3
    assert len(sizes) == 1
    assert basics.stored() == 0


def test_an_op_whose_coroutine_swallows_its_cancellation_is_not_handled(
    basics: Basics,
) -> None:
    feed = basics.make(partitions=2)
    feed.insert(0, 0)
    feed.insert(1, 1)
    feed.flush()
    begun = threading.Event()

    async def handle(op: Op) -> None:
        if op.record.partition == 1:
            begun.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
            return
        assert await asyncio.to_thread(begun.wait, 30)
        task = asyncio.create_task(leave())
        try:
            await asyncio.sleep(60)
        finally:
            task.exception()

    async def leave() -> None:
        sys.exit(3)

    Running(basics.consumer(handle)).fails(HandlerFailed)
    assert (basics.stored(0), basics.stored(1)) == (0, 0)
