"""A table of the target that is altered while mirrors write to it."""

import psycopg
import pytest
from psycopg.errors import SerializationFailure

from consumer.handler import Retry, isolation_of
from consumer.mirror import PostgresMirror, TransactionMirror
from consumer.op import Op
from consumer.state.connection_pool import Connections
from consumer.whole.transaction import WholeTransaction
from tests.support.fixtures.postgres import Database
from tests.support.loads.op import make
from tests.support.oracles.key_mirror import apply
from walstream.op import Kind

# before, after; a text that both types take, and one that only the new one keeps
ALTERED = [
    ("real", "double precision", "0.5", "0.123456789012345"),
    ("date", "timestamp", "2020-01-01", "2020-01-01 12:34:56"),
    ("timestamp", "timestamptz", "2020-01-01 00:00:00", "2020-01-01 12:00:00+05"),
    ("int", "text", "1", "007"),
    ("int", "bigint", "1", "5000000000"),
    ("int", "numeric", "1", "1.5"),
    ("char(4)", "text", "ab", "cd  "),
    ("varchar(3)", "varchar(30)", "ab", "abcdef"),
]


def inserted(lsn: int, key: tuple[str, ...] = ("id",), /, **row: str) -> Op:
    return make(
        Kind.INSERT, "public.t", new=row, key=[row[one] for one in key], lsn=lsn
    )


def until_done(tx: psycopg.Connection, mirror: PostgresMirror, ops: list[Op]) -> None:
    """Apply a batch as a consumer does: again where the mirror says so."""
    for _ in range(3):
        try:
            apply(tx, mirror, ops)
        except (Retry, SerializationFailure):
            tx.rollback()
        else:
            tx.commit()
            return
    raise AssertionError("it is not done")


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("before", "after", "one", "two"), ALTERED)
def test_a_value_is_read_by_the_type_that_its_column_has_now(  # noqa: PLR0913, PLR0917 - a table's row
    database: Database, before: str, after: str, one: str, two: str, batch: int
) -> None:
    database.execute(f"CREATE TABLE t (id int PRIMARY KEY, v {before})")
    mirror = PostgresMirror(database.dsn)
    with psycopg.connect(database.dsn) as tx:
        tx.execute("SET TimeZone = 'Europe/Berlin'")
        tx.commit()
        old = [inserted(1000 + n, id=str(n), v=one) for n in range(batch)]
        until_done(tx, mirror, old)
        database.execute(f"ALTER TABLE t ALTER v TYPE {after}")
        new = [inserted(2000 + n, id=str(10 + n), v=two) for n in range(batch)]
        until_done(tx, mirror, new)
    found = database.fetch("SELECT DISTINCT format('%s', v) FROM t WHERE id >= 10")
    assert found == database.fetch(f"SELECT format('%s', '{two}'::{after})")


@pytest.mark.parametrize("batch", [1, 2])
def test_whole_transactions_read_values_by_the_types_of_now(
    database: Database, batch: int
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v real)")
    mirror = TransactionMirror(database.dsn)

    def handle(tx: psycopg.Connection, ops: list[Op]) -> None:
        with tx.transaction():
            mirror.handle_transaction(tx, WholeTransaction(ops[0].lsn, ops))

    with psycopg.connect(database.dsn, autocommit=True) as tx:
        handle(tx, [inserted(1000, id=str(n), v="0.5") for n in range(batch)])
        database.execute("ALTER TABLE t ALTER v TYPE double precision")
        new = [inserted(2000, id=str(10 + n), v="0.123456789") for n in range(batch)]
        with pytest.raises(SerializationFailure):
            handle(tx, new)
        handle(tx, new)
    found = database.fetch("SELECT DISTINCT v FROM t WHERE id >= 10")
    assert found == [(0.123456789,)]


def test_a_row_is_found_by_the_key_of_now(database: Database) -> None:
    """Another member's table has another key, which this one has not met yet."""
    database.execute("CREATE TABLE t (tenant int, id int PRIMARY KEY)")
    members = [PostgresMirror(database.dsn) for _ in range(2)]
    with (
        psycopg.connect(database.dsn) as first,
        psycopg.connect(database.dsn) as second,
    ):
        until_done(first, members[0], [inserted(1000, tenant="1", id="5")])
        until_done(second, members[1], [inserted(1008, tenant="1", id="6")])
        database.execute(
            "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (tenant, id)"
        )
        both = ("tenant", "id")
        until_done(first, members[0], [inserted(1016, both, tenant="2", id="5")])
        old = {"tenant": "1", "id": "5"}
        gone = make(
            Kind.DELETE, "public.t", old=old, columns=both, key=["1", "5"], lsn=1024
        )
        until_done(second, members[1], [gone])
    assert database.fetch("SELECT tenant, id FROM t ORDER BY 1, 2") == [(1, 6), (2, 5)]


@pytest.mark.parametrize("batch", [1, 2])
def test_a_schema_that_took_anothers_name_is_seen(
    database: Database, batch: int
) -> None:
    """No table of it was altered, and the one of before is still there."""
    database.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.t (id int PRIMARY KEY, v real);"
        "CREATE SCHEMA fresh;"
        "CREATE TABLE fresh.t (id int PRIMARY KEY, v double precision)"
    )
    mirror = PostgresMirror(database.dsn)

    def insert(lsn: int, key: int, text: str) -> Op:
        row = {"id": str(key), "v": text}
        return make(Kind.INSERT, "shop.t", new=row, key=[str(key)], lsn=lsn)

    with psycopg.connect(database.dsn) as tx:
        until_done(tx, mirror, [insert(1000 + n, n, "0.5") for n in range(batch)])
        database.execute(
            "ALTER SCHEMA shop RENAME TO past; ALTER SCHEMA fresh RENAME TO shop"
        )
        new = [insert(2000 + n, 10 + n, "0.123456789") for n in range(batch)]
        until_done(tx, mirror, new)
    assert database.fetch("SELECT DISTINCT v FROM shop.t") == [(0.123456789,)]


def test_a_change_is_seen_whatever_isolation_is_the_databases_default(
    database: Database,
) -> None:
    """The snapshot of a transaction has the catalog of its begin."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v real)")
    level = "default_transaction_isolation = 'repeatable read'"
    database.execute(f"ALTER DATABASE {database.name} SET {level}")
    mirror = PostgresMirror(database.dsn)
    sessions = Connections(database.dsn, "mirror", isolation_of(mirror))
    tx = sessions.take()

    def write(first: int, text: str, between: str = "SELECT 1") -> None:
        ops = [inserted(first + n, id=str(first + n), v=text) for n in range(2)]
        with tx.transaction():
            mirror.begin_batch(tx, ops)
            database.execute(between)
            for op in ops:
                mirror.handle_message(tx, op)
            mirror.end_batch(tx)

    write(1, "0.5")
    with pytest.raises(SerializationFailure, match="was altered"):
        write(11, "0.123456789", "ALTER TABLE t ALTER v TYPE double precision")
    write(11, "0.123456789")
    sessions.close()
    tx.close()
    assert database.fetch("SELECT v FROM t WHERE id > 10") == [(0.123456789,)] * 2


def test_an_op_alone_is_proved_too(database: Database) -> None:
    """A handler may give a mirror one op after the other, without a batch."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v real)")
    mirror = PostgresMirror(database.dsn)
    with psycopg.connect(database.dsn) as tx:
        mirror.handle_message(tx, inserted(1000, id="1", v="0.5"))
        tx.commit()
        database.execute("ALTER TABLE t ALTER v TYPE double precision")
        op = inserted(1008, id="2", v="0.123456789")
        with pytest.raises(SerializationFailure):
            mirror.handle_message(tx, op)
        tx.rollback()
        mirror.handle_message(tx, op)
        tx.commit()
    assert database.fetch("SELECT v FROM t WHERE id = 2") == [(0.123456789,)]
