"""Partitions that write the same rows at once: the newest op wins, and none waits."""

import random

from consumer import Kind, Measure, Op, PostgresMirror, Transaction
from tests.support.loads.op_record import ITEM
from tests.support.programs.consumer_thread import Setting
from walstream.op import ReplicationOp

_ROWS = 60
_PARTITIONS = 4


def test_hot_rows_of_several_partitions_cost_no_retry(setting: Setting) -> None:
    """Each op is written to another partition than the one before of its row."""
    feed = setting.make(_PARTITIONS)
    setting.database.execute("ALTER TABLE item ADD PRIMARY KEY (id)")
    choose = random.Random(7)  # noqa: S311 - a test's order
    last: dict[int, int] = {}
    for number in range(6000):
        key, lsn = choose.randrange(_ROWS), feed.next_lsn()
        row = [str(key), str(number)]
        op = ReplicationOp(Kind.UPDATE, ITEM, lsn, 0, new=row)
        feed.send(op, choose.randrange(_PARTITIONS))
        last[key] = number
    feed.flush()
    mirror = PostgresMirror(setting.database.dsn, row_positions=True)
    with setting.running(mirror, batch=100) as running:
        running.until_read(_PARTITIONS)
    assert setting.database.fetch("SELECT id, n FROM item ORDER BY id") == [
        (key, last[key]) for key in sorted(last)
    ]
    assert setting.measures[Measure.HANDLED] == 6000
    assert setting.measures[Measure.RETRIED] == 0


class _Tripping(PostgresMirror):
    """Raises once, at an op in the middle of a batch."""

    tripped = False

    def handle_message(self, tx: Transaction, op: Op, /) -> None:
        super().handle_message(tx, op)
        if op.new["id"] == "7" and not self.tripped:
            self.tripped = True
            tx.execute("DO $$BEGIN RAISE SQLSTATE '40P01'; END$$")


def test_a_batch_that_was_rolled_back_leaves_no_position(setting: Setting) -> None:
    """The ops of a batch that failed are done again, each in a transaction alone."""
    feed = setting.make()
    setting.database.execute("ALTER TABLE item ADD PRIMARY KEY (id)")
    for number in range(10):
        feed.insert(number)
    feed.flush()
    mirror = _Tripping(setting.database.dsn, row_positions=True)
    with setting.running(mirror) as running:
        running.until_read(1)
    assert setting.measures[Measure.RETRIED] == 1
    assert setting.count("item") == 10
