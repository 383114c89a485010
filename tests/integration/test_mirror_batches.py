"""Rows of a batch are written at once where nothing in the target sees their order."""

import os
import random
import time
from typing import Any

import psycopg
import pytest

from consumer.handler import Fatal
from consumer.mirror import PostgresMirror
from consumer.mirror.table_shape import TargetTable, load
from consumer.op import Op
from consumer.state.connection import connect
from tests.support.fixtures.postgres import Database
from tests.support.loads.op import make
from tests.support.oracles.key_mirror import apply
from walstream.op import Kind

pytestmark = pytest.mark.same_on_15

_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_DDL = """
CREATE TYPE mood AS ENUM ('so, so', 'NULL');
CREATE DOMAIN small AS int CHECK (value < 1000);
CREATE TABLE {0} (id int, sub text, words text, short varchar(5), fixed char(4),
  price numeric(9, 2), doc jsonb, raw bytea, mood mood, small small,
  bits bit(3), at timestamptz, PRIMARY KEY (id, sub))
"""
_VALUES: dict[str, list[str | None]] = {
    "words": ["", "NULL", '"', "\\", '{a,"b"}', "two\nlines", " ", "%s", None],
    "short": ["abcde", "abc  ", "", None],
    "fixed": ["ab  ", "abcd", None],
    "price": ["1.00", "-12.50", "NaN", None],
    "doc": ['{"a": [1, "x\\"y"]}', "null", None],
    "raw": ["\\x00ff", "\\x", None],
    "mood": ["so, so", "NULL", None],
    "small": ["999", None],
    "bits": ["101", None],
    "at": ["2020-01-02 03:04:05+00", "infinity", None],
}


class Changes:
    """Random changes of rows of two columns' keys."""

    def __init__(self, seed: int) -> None:
        self._choose = random.Random(seed)  # noqa: S311 - a test's data
        self._lsn = 1000

    def batch(self, size: int) -> list[dict[str, Any]]:
        return [self._one() for _ in range(size)]

    def _one(self) -> dict[str, Any]:
        choose = self._choose
        self._lsn += 8
        number = choose.randrange(8)
        key = {"id": str(number), "sub": choose.choice(['x"', "y\\"])}
        # no other column may have the key's text, lest it be the record's key
        row = {name: choose.choice(texts) for name, texts in _VALUES.items()}
        kind = choose.choice([Kind.INSERT, Kind.UPDATE, Kind.UPDATE, Kind.DELETE])
        fields = {"kind": kind, "lsn": self._lsn, "key": [*key.values()]}
        columns = (*key, *row)
        if kind is Kind.DELETE:
            return {**fields, "old": key, "columns": columns}
        if kind is Kind.UPDATE:
            for name in choose.sample(list(row), choose.choice([0, 0, 1, 3])):
                del row[name]
        return {**fields, "new": {**key, **row}, "columns": columns}


def shape_of(database: Database, name: str) -> TargetTable:
    with psycopg.connect(database.dsn) as connection:
        shape = load(connection, "public", name)
    assert shape is not None
    return shape


@pytest.mark.parametrize("positions", [None, True])
def test_many_at_once_come_to_the_same_as_one_by_one(
    database: Database, positions: bool | None
) -> None:
    print(f"seed {_SEED}")  # noqa: T201 - to replay a failure
    changes = Changes(_SEED)
    database.execute(_DDL.format("many"))
    database.execute("CREATE TABLE one (LIKE many INCLUDING ALL)")
    assert shape_of(database, "many").plain
    mirrors = [PostgresMirror(database.dsn, row_positions=positions) for _ in range(2)]
    with psycopg.connect(database.dsn) as tx:
        for size in (2, 5, 40, 200, 1, 200):
            batch = changes.batch(size)
            apply(tx, mirrors[0], ops("many", batch))
            for op in ops("one", batch):
                apply(tx, mirrors[1], [op])
            assert rows(tx, "many") == rows(tx, "one")


def ops(table: str, batch: list[dict[str, Any]]) -> list[Op]:
    made = []
    for fields in batch:
        others = {name: value for name, value in fields.items() if name != "kind"}
        made.append(make(fields["kind"], f"public.{table}", **others))
    return made


def rows(tx: psycopg.Connection[Any], table: str) -> list[tuple[Any, ...]]:
    query = f"SELECT t::text FROM {table} t ORDER BY id, sub"  # noqa: S608 - ours
    return tx.execute(query).fetchall()


def insert(number: int, text: str) -> Op:
    row = {"id": str(number), "v": text}
    return make(Kind.INSERT, "public.t", new=row, key=[str(number)], lsn=1000 + number)


@pytest.mark.parametrize(
    "sees",
    [
        "CREATE UNIQUE INDEX ON t (v)",
        "ALTER TABLE t ADD many text[]",  # no array type has arrays of its own
        "CREATE TYPE pair AS (a int, b text); ALTER TABLE t ADD ab pair",
        (
            "CREATE TYPE pair AS (a int, b text);"
            " CREATE DOMAIN checked AS pair; ALTER TABLE t ADD ab checked"
        ),
        "ALTER TABLE t ADD EXCLUDE (v WITH =)",
        "CREATE TABLE child (id int REFERENCES t)",
        "CREATE TABLE child () INHERITS (t)",
        "CREATE RULE seen AS ON UPDATE TO t DO ALSO NOTIFY t",
        (
            "CREATE TRIGGER seen BEFORE INSERT ON t"
            " EXECUTE FUNCTION suppress_redundant_updates_trigger()"
        ),
    ],
)
def test_what_sees_an_order_is_written_row_by_row(
    database: Database, sees: str
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    assert shape_of(database, "t").plain
    database.execute(sees)
    assert not shape_of(database, "t").plain


def test_nulls_stay_nulls_where_the_database_reads_arrays_without_them(
    database: Database,
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    database.execute(f"ALTER DATABASE {database.name} SET array_nulls = off")
    batch = [insert(1, "NULL"), insert(2, "NULL")]
    batch += [
        make(Kind.UPDATE, "public.t", new={"id": n, "v": None}, key=[n], lsn=2000)
        for n in "12"
    ]
    with psycopg.connect(database.dsn) as tx:
        apply(tx, PostgresMirror(database.dsn), batch)
    assert database.fetch("SELECT id FROM t WHERE v IS NULL ORDER BY 1") == [(1,), (2,)]


def test_a_table_may_be_named_excluded(database: Database) -> None:
    database.execute("CREATE TABLE excluded (id int PRIMARY KEY, v text)")
    sent = [
        make(Kind.INSERT, "public.excluded", new={"id": n, "v": n}, key=[n], lsn=lsn)
        for lsn, n in enumerate("121", 1000)
    ]
    with psycopg.connect(database.dsn) as tx:
        for batch in (sent, sent[:1]):
            apply(tx, PostgresMirror(database.dsn), batch)
    assert database.fetch("SELECT count(*) FROM excluded") == [(2,)]


def test_a_target_without_an_encoding_is_started(database: Database) -> None:
    name = f"{database.name}_ascii"
    database.execute(
        f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'"
        " TEMPLATE template0"
    )
    try:
        other = Database(database.server, name)
        other.execute("CREATE TABLE t (id int PRIMARY KEY, v text UNIQUE)")
        with connect(other.dsn, "g") as tx, tx.transaction():
            apply(tx, PostgresMirror(other.dsn), [insert(1, "é")])
        with connect(other.dsn, "g") as tx:
            assert tx.execute("TABLE t").fetchall() == [(1, "é")]
    finally:
        database.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_refused_batch_is_done_one_by_one_and_the_op_is_told(
    database: Database,
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(3))")
    mirror = PostgresMirror(database.dsn)
    batch = [insert(1, "abc"), insert(2, "abcd"), insert(3, "abc")]
    with psycopg.connect(database.dsn) as tx:
        with pytest.raises(psycopg.errors.SerializationFailure):
            apply(tx, mirror, batch)
        apply(tx, mirror, batch[:1])
        with pytest.raises(psycopg.errors.SerializationFailure, match="once more"):
            apply(tx, mirror, batch[1:2])
        with pytest.raises(Fatal) as refused:
            apply(tx, mirror, batch[1:2])
        assert "22001" in str(refused.value)
        apply(tx, mirror, batch[2:])
    assert database.fetch("SELECT id FROM t ORDER BY 1") == [(1,), (3,)]
