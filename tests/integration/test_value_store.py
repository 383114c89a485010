"""The table of kept values: what is read at once, by which index, and what is gone."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from consumer.group.assigned_partition import Place
from consumer.op import Op
from consumer.state.row_keys import RowKeys
from consumer.state.value_store import ValueStore, make_value_table
from consumer.whole.filled_ops import FilledOps
from tests.support.fixtures.postgres import Database
from tests.support.loads.op import make
from walstream.op import Kind

pytestmark = pytest.mark.same_on_15

T = "shop.docs"
COLUMNS = ["id", "n", "body", "note"]
COUNT = "SELECT count(*) FROM replication_consumer_value WHERE relation = %s"


@pytest.fixture
def tx(database: Database) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        yield connection


def store(
    tx: psycopg.Connection[Any], partition: int = 0, memory: int = 1 << 20
) -> ValueStore:
    keys, schema = RowKeys({T: "id"}), make_value_table(tx)
    return ValueStore("g", Place("t", partition), keys, schema, memory)


def insert(number: int, size: int = 1000) -> Op:
    row = {"id": str(number), "n": "0", "body": f"{number}" * size, "note": "x" * 900}
    return make(Kind.INSERT, T, new=row)


def update(number: int) -> Op:
    return make(Kind.UPDATE, T, new={"id": str(number), "n": "1"}, columns=COLUMNS)


def put(tx: psycopg.Connection[Any], values: ValueStore, *ops: Op) -> None:
    with tx.transaction():
        values.keep(tx, values.fill(tx, ops), len(ops))


def test_rows_that_take_too_much_memory_are_read_in_turns(
    tx: psycopg.Connection[Any],
) -> None:
    values = store(tx, memory=3000)
    put(tx, values, *map(insert, range(6)))
    ops = [make(Kind.DELETE, T, old={"id": "5"}, columns=COLUMNS)]
    ops += [update(number) for number in (0, 1, 0, 2, 3)]
    filling = values.fill(tx, ops)
    assert filling.count == 4  # 1,900 bytes each: the second one is over the limit
    assert [(op.new["body"] or "")[:1] for op in ops[1:4]] == ["0", "1", "0"]
    values.keep(tx, filling, 4)
    assert values.fill(tx, ops[4:]).count == 2


def test_a_row_larger_than_memory_is_filled_all_the_same(
    tx: psycopg.Connection[Any],
) -> None:
    values = store(tx, memory=1)
    put(tx, values, insert(7))
    op = update(7)
    assert values.fill(tx, [op, update(7)]).count == 2
    assert op.new["body"] == "7" * 1000
    assert op.new.filled == {"body", "note"}


def test_nothing_is_kept_of_ops_that_were_not_handled(
    tx: psycopg.Connection[Any],
) -> None:
    values = store(tx)
    with tx.transaction():
        values.keep(tx, values.fill(tx, [insert(1), insert(2)]), 1)
    ops = [update(1), update(2)]
    values.fill(tx, ops)
    assert not ops[0].new.absent
    assert ops[1].new.absent == {"body", "note"}


def test_each_partition_has_its_own_rows(tx: psycopg.Connection[Any]) -> None:
    one, other = store(tx), store(tx, partition=1)
    put(tx, one, insert(1))
    op = update(1)
    other.fill(tx, [op])
    assert op.new.absent == {"body", "note"}
    put(tx, other, make(Kind.TRUNCATE, T, columns=COLUMNS))
    one.fill(tx, [op])
    assert not op.new.absent


@pytest.mark.parametrize(
    ("op", "left"),
    [
        (make(Kind.DELETE, T, old={"id": "1"}, columns=COLUMNS), 2),
        (make(Kind.TRUNCATE, T, columns=COLUMNS), 0),
        (make(Kind.UPDATE, T, new={"id": "1", "n": "1", "body": "b", "note": None}), 2),
        (make(Kind.UPDATE, T, new={"id": "1", "n": "1"}, columns=COLUMNS), 4),
    ],
)
def test_what_is_gone_is_no_longer_kept(
    tx: psycopg.Connection[Any], op: Op, left: int
) -> None:
    values = store(tx)
    put(tx, values, insert(1), insert(2))
    put(tx, values, op)
    # and the rows that have the shape of the table, and the layout
    assert tx.execute(COUNT, (T,)).fetchone() == (left + 2,)


def test_all_is_looked_up_by_the_index_whatever_is_known_of_the_table(
    tx: psycopg.Connection[Any],
) -> None:
    values = store(tx)
    put(tx, values, *(insert(number, 30) for number in range(200)))
    tx.execute(
        "INSERT INTO replication_consumer_value SELECT 'g', 't', 0, 'shop.docs',"
        " '[\"' || n || '\"]', 'body', 'v' FROM generate_series(1000, 40000) n"
    )
    with tx.transaction():  # in which nothing is reported
        before = tx.execute(_SCANS).fetchone()
        for size in range(30, 38):  # prepared from the sixth time on
            put(tx, values, *(update(number) for number in range(200)))
            put(tx, values, *(insert(number, size) for number in range(200)))
            put(tx, values, *(insert(number, 0) for number in range(100)))
        assert tx.execute(_SCANS).fetchone() == before


_SCANS = (
    "SELECT seq_scan FROM pg_stat_xact_user_tables"
    " WHERE relname = 'replication_consumer_value'"
)


def test_ops_of_a_transaction_are_the_same_when_they_are_looked_at_again(
    tx: psycopg.Connection[Any],
) -> None:
    values = store(tx, memory=1)
    given = (
        insert(1),
        update(1),
        make(Kind.TRUNCATE, T, columns=COLUMNS),
        insert(1, 2000),
        update(1),
        make(Kind.UPDATE, "shop.other", new={"id": "1"}, columns=COLUMNS),
        make(Kind.DELETE, T, old={"id": "1"}, columns=COLUMNS),
    )
    ops = FilledOps(given)
    with tx.transaction():
        ops.look_up(tx, values)
    lengths = [len(op.new.get("body", default="") or "") for op in ops]
    assert lengths == [1000, 1000, 0, 2000, 2000, 0, 0]
    assert lengths == [len(op.new.get("body", default="") or "") for op in ops]
    assert given[1].new.absent == {"body", "note"}  # it may come again
    ops.close()


@pytest.mark.parametrize("partition", [0, -1])
def test_a_row_may_have_come_back_behind_two_changes_of_the_layout(
    tx: psycopg.Connection[Any], partition: int
) -> None:
    """It was changed in another partition meanwhile, unless all are kept together."""
    values = store(tx, partition)

    def changed(number: int, layout: int) -> Op:
        headers = (("walstream-layout", str(layout).encode()),)
        new = {"id": str(number), "n": "1"}
        return make(Kind.UPDATE, T, new=new, columns=COLUMNS, headers=headers)

    put(tx, values, insert(1), insert(2))
    second, third = changed(1, 2), changed(2, 3)
    put(tx, store(tx, partition), second)
    assert second.new["body"] == "1" * 1000  # it stayed
    put(tx, store(tx, partition), third)
    assert (third.new.filled == {"body", "note"}) == (partition < 0)
    again = changed(1, 3)
    put(tx, store(tx, partition), again, insert(2), changed(2, 4))
    assert bool(again.new.filled) == (partition < 0)
    last = changed(2, 4)
    put(tx, store(tx, partition), last)
    assert last.new["body"] == "2" * 1000
