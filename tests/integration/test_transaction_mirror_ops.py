"""What a mirror of whole transactions does at the target's constraints."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.errors import SerializationFailure

from consumer import TransactionMirror, WholeTransaction
from consumer.handler import Fatal
from consumer.mirror import MirrorError
from consumer.mirror.table_writer import Rows
from consumer.mirror.write_batch import Later
from consumer.op import Op
from tests.support.fixtures.postgres import Database
from tests.support.loads.op import Texts, make
from walstream.op import Kind

pytestmark = pytest.mark.same_on_15

PARENT, CHILD = "public.parent", "public.child"
TABLES = """
CREATE TABLE parent (id int PRIMARY KEY, boss int);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent {0});
ALTER TABLE parent ADD FOREIGN KEY (boss) REFERENCES parent {0}
"""


class Target:
    """A mirror, and the database that it writes to."""

    def __init__(self, database: Database, ddl: str) -> None:
        self.database = database
        database.execute(ddl)
        self.mirror = TransactionMirror(database.dsn)

    def apply(self, *ops: Op) -> None:
        """Apply a transaction as a consumer does: again where the mirror says so."""
        for may_fail in (True, False):
            try:
                with psycopg.connect(self.database.dsn) as tx:
                    self.mirror.handle_transaction(tx, WholeTransaction(10, ops))
            except SerializationFailure:
                assert may_fail
            else:
                return

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        query = f"SELECT * FROM {table} ORDER BY 1"  # noqa: S608 - a constant
        return self.database.fetch(query)

    @contextmanager
    def stops(self, *texts: str) -> Iterator[None]:
        with pytest.raises(Fatal) as caught:
            yield
        assert isinstance(caught.value.cause, MirrorError)
        for text in texts:
            assert text in str(caught.value.cause)


def insert(table: str, **row: str | None) -> Op:
    return make(Kind.INSERT, table, new=row, key=[row["id"]])


def delete(table: str, **row: str | None) -> Op:
    columns = ("id", "boss") if table == PARENT else ("id", "parent")
    return make(Kind.DELETE, table, old=row, key=[row["id"]], columns=columns)


def truncate(table: str) -> Op:
    return make(Kind.TRUNCATE, table, columns=("id",))


FAMILY: tuple[Texts, ...] = ({"id": "1", "boss": None}, {"id": "2", "boss": "1"})


def family() -> list[Op]:
    return [
        *(insert(PARENT, **row) for row in FAMILY),
        insert(CHILD, id="7", parent="2"),
    ]


def test_deferrable_keys_are_checked_at_the_commit(database: Database) -> None:
    target = Target(database, TABLES.format("DEFERRABLE"))
    target.apply(*reversed(family()))
    assert target.rows("parent") == [(1, None), (2, 1)]
    # a key that changed, as the sink splits it: what refers to it follows
    target.apply(
        delete(PARENT, id="2"),
        insert(PARENT, id="3", boss="1"),
        insert(CHILD, id="7", parent="3"),
    )
    assert target.rows("parent") == [(1, None), (3, 1)]
    assert target.rows("child") == [(7, 3)]


def test_what_does_not_hold_at_the_commit_is_refused(database: Database) -> None:
    target = Target(database, TABLES.format("DEFERRABLE"))
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        target.apply(insert(CHILD, id="7", parent="2"))
    assert target.rows("child") == []


def test_a_strict_key_that_refuses_a_row_is_named_with_its_cure(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    target = Target(database, TABLES.format(""))
    with target.stops('"child" ALTER CONSTRAINT "child_parent_fkey" DEFERRABLE;'):
        target.apply(*reversed(family()))
    cure = "ALTER TABLE public.child ALTER CONSTRAINT child_parent_fkey DEFERRABLE;"
    assert cure in caplog.text
    target.apply(*family())  # in the source's order it holds
    assert target.rows("child") == [(7, 2)]
    database.execute(cure)
    target.apply(*reversed([delete(CHILD, id="7"), delete(PARENT, id="2")]))
    assert target.rows("parent") == [(1, None)]


def test_tables_that_reference_each_other_are_emptied_together(
    database: Database,
) -> None:
    target = Target(database, TABLES.format(""))
    target.apply(*family())
    target.apply(truncate(PARENT), truncate(CHILD), insert(PARENT, id="9", boss=None))
    assert target.rows("parent") == [(9, None)]
    assert target.rows("child") == []


def test_a_table_that_another_one_references_is_emptied_all_the_same(
    database: Database,
) -> None:
    target = Target(
        database,
        TABLES.format("")
        + "; CREATE TABLE more (id int PRIMARY KEY, child int REFERENCES child)",
    )
    target.apply(*family())
    target.apply(truncate(PARENT), truncate(CHILD))
    assert target.rows("parent") == target.rows("child") == []


def test_keys_that_write_by_themselves_are_refused_at_the_start(
    database: Database,
) -> None:
    target = Target(database, TABLES.format("ON DELETE CASCADE DEFERRABLE"))
    with pytest.raises(MirrorError, match="DROP CONSTRAINT child_parent_fkey"):
        target.mirror.start()


def test_many_rows_of_which_one_is_refused_name_that_one(database: Database) -> None:
    target = Target(database, "CREATE TABLE parent (id int PRIMARY KEY, boss smallint)")
    ops = [insert(PARENT, id=str(number), boss="1") for number in range(100)]
    bad = make(
        Kind.INSERT,
        PARENT,
        new={"id": "500", "boss": "99999"},
        key=["500"],
        lsn=10,
        seq_id=77,
    )
    with target.stops("public.parent at 0/A, 77", "NumericValueOutOfRange"):
        target.apply(*ops, bad)
    assert target.rows("parent") == []
    target.apply(*ops)
    assert len(target.rows("parent")) == 100


def test_no_row_has_a_position(database: Database) -> None:
    target = Target(database, "CREATE TABLE parent (id numeric PRIMARY KEY, boss int)")
    target.apply(
        insert(PARENT, id="1.0", boss="1"), insert(PARENT, id="1.00", boss="2")
    )
    assert [boss for _, boss in target.rows("parent")] == [2]
    found = database.fetch(
        "SELECT count(*) FROM pg_class WHERE relname LIKE 'replication_mirror%'"
    )
    assert found == [(0,)]


@pytest.mark.parametrize("filled", [False, True])
def test_writes_of_wide_rows_wait_up_to_some_size(
    database: Database, monkeypatch: pytest.MonkeyPatch, *, filled: bool
) -> None:
    """PostgreSQL takes no statement of a gigabyte, and memory is for others, too."""
    written: list[int] = []
    write = Later._write  # noqa: SLF001 - one statement of it

    def note(self: Later, rows: Rows, one: Any) -> None:
        written.append(sum(map(len, one.upserts.values())))
        write(self, rows, one)

    monkeypatch.setattr(Later, "_write", note)
    target = Target(database, "CREATE TABLE parent (id int PRIMARY KEY, v text)")
    wide = "x" * (3 << 20)
    ops = [insert(PARENT, id=str(n), v="x" * 9) for n in range(9)]
    for n in range(9, 16):
        op = insert(PARENT, id=str(n), v="x" if filled else wide)
        if filled:
            op.fill({"v": wide})
        else:
            op.record = op.record._replace(value=wide.encode())
        ops.append(op)
    target.apply(*ops)
    assert written == [12, 3, 1]
    assert len(target.rows("parent")) == 16
