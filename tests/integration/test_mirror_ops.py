"""What PostgresMirror does to the target's rows, op by op."""

# ruff: noqa: S608 - SQL of constants

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.errors import SerializationFailure

from consumer import __main__ as command
from consumer.handler import Fatal, Retry
from consumer.mirror import MirrorError, PostgresMirror
from consumer.op import Op
from consumer.state.schema import make_tables
from tests.support.fixtures.postgres import Database
from tests.support.loads.op import Texts, make
from walstream.op import Kind

pytestmark = pytest.mark.same_on_15

T = "public.t"
TABLE = "CREATE TABLE t (id int PRIMARY KEY, n numeric, note text)"


class Target:
    """A mirror, and the database that it writes to."""

    def __init__(self, database: Database, ddl: str = TABLE, **options: Any) -> None:
        self.database = database
        database.execute(ddl)
        self.mirror = PostgresMirror(database.dsn, **options)

    def apply(self, *ops: Op) -> None:
        """Handle ops in one transaction, as a batch is; again where it says so."""
        try:
            self._apply(ops)
        except SerializationFailure:
            self._apply(ops)

    def _apply(self, ops: Sequence[Op]) -> None:
        with psycopg.connect(self.database.dsn) as tx:
            for op in ops:
                self.mirror.handle_message(tx, op)

    def rows(self, table: str = "t") -> list[tuple[Any, ...]]:
        return self.database.fetch(f"SELECT * FROM {table} ORDER BY 1, 2")

    @contextmanager
    def stops(self, *texts: str) -> Iterator[None]:
        with pytest.raises(Fatal) as caught:
            yield
        assert isinstance(caught.value.cause, MirrorError)
        for text in texts:
            assert text in str(caught.value.cause)


def insert(row: Texts, table: str = T, **fields: Any) -> Op:
    return make(Kind.INSERT, table, new=row, **{"key": [row.get("id")], **fields})


def update(row: Texts, old: Texts | None = None, table: str = T, **fields: Any) -> Op:
    fields = {"key": [row.get("id")], **fields}
    return make(Kind.UPDATE, table, new=row, old=old, **fields)


def delete(row: Texts, table: str = T, **fields: Any) -> Op:
    return make(Kind.DELETE, table, old=row, **{"key": [row.get("id")], **fields})


def row(key: str, n: str | None = "1", note: str | None = "x") -> dict[str, str | None]:
    return {"id": key, "n": n, "note": note}


def test_rows_are_inserted_updated_and_deleted(database: Database) -> None:
    target = Target(database)
    target.apply(
        insert(row("1")),
        insert(row("2", None, "quo\"te 'x' \\ % %s")),
        insert(row("3")),
        update(row("1", "2.50")),
        delete({"id": "3"}, columns=("id", "n", "note")),
    )
    texts = database.fetch("SELECT id, n::text, note FROM t ORDER BY id")
    assert texts == [(1, "2.50", "x"), (2, None, "quo\"te 'x' \\ % %s")]


def test_a_row_inserted_again_takes_the_new_values(database: Database) -> None:
    target = Target(database)
    target.apply(insert(row("1")), insert(row("1", "7", "again"), snapshot=True))
    assert [(r[0], int(r[1]), r[2]) for r in target.rows()] == [(1, 7, "again")]


def test_absent_columns_are_left_alone(database: Database) -> None:
    target = Target(database)
    sent = {"id": "1", "n": "2"}
    target.apply(insert(row("1")), update(sent, columns=("id", "n", "note")))
    assert [(r[0], int(r[1]), r[2]) for r in target.rows()] == [(1, 2, "x")]


def test_an_update_of_a_missing_row_inserts_it(database: Database) -> None:
    target = Target(database)
    target.apply(update(row("1")))
    assert [r[0] for r in target.rows()] == [1]


def test_an_update_of_a_missing_row_that_is_not_whole_is_left_to_the_backfill(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    target = Target(database)
    part = update({"id": "1", "n": "2"}, columns=("id", "n", "note"))
    with caplog.at_level(logging.WARNING):
        target.apply(part, part)
    assert target.rows() == []
    assert caplog.text.count("walstream backfill") == 1
    target.apply(insert(row("1")), part)
    assert [(r[0], int(r[1]), r[2]) for r in target.rows()] == [(1, 2, "x")]


def test_an_insert_with_absent_columns_stops_with_the_remedy(
    database: Database,
) -> None:
    target = Target(database)
    op = insert({"id": "1", "n": "2"}, columns=("id", "n", "note"), lsn=0x1F, seq_id=4)
    with target.stops("public.t at 0/1F, 4", "note", "REPLICA IDENTITY FULL"):
        target.apply(op)


@pytest.mark.parametrize("old", [{"id": "1"}, row("1")], ids=["key", "full"])
def test_one_update_that_moves_the_key_moves_the_row(
    database: Database, old: Texts
) -> None:
    target = Target(database)
    columns = ("id", "n", "note")
    moved = update(row("2", "5"), old, columns=columns, seq_id=1)
    target.apply(insert(row("1")), moved)
    assert [(r[0], int(r[1])) for r in target.rows()] == [(2, 5)]
    target.apply(
        update({"id": "3", "n": "6"}, {"id": "2"}, columns=columns, seq_id=2),
    )
    assert [(r[0], int(r[1]), r[2]) for r in target.rows()] == [(3, 6, "x")]


def test_truncate_empties_that_table_alone(database: Database) -> None:
    ddl = f"""{TABLE}; CREATE TABLE child (id int PRIMARY KEY) INHERITS (t);
    INSERT INTO t VALUES (1); INSERT INTO child VALUES (2);
    CREATE TABLE parent (id int PRIMARY KEY);
    CREATE TABLE refers (id int REFERENCES parent); INSERT INTO parent VALUES (1);
    CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id);
    CREATE TABLE part PARTITION OF parts DEFAULT; INSERT INTO parts VALUES (1)"""
    target = Target(database, ddl)
    for table in ("t", "parent", "parts"):
        target.apply(
            make(Kind.TRUNCATE, f"public.{table}", columns=("id",), partitions=4)
        )
    assert target.rows("child") == [(2, None, None)]
    assert database.fetch("SELECT FROM ONLY t") == []
    assert target.rows("(SELECT id, id FROM parent) AS p") == []
    assert target.rows("(SELECT id, id FROM parts) AS p") == []


CHILD = "CREATE TABLE child (LIKE t INCLUDING ALL) INHERITS (t)"
ROUTED = """CREATE FUNCTION routed() RETURNS trigger LANGUAGE plpgsql AS
 'BEGIN INSERT INTO child SELECT NEW.*; RETURN NULL; END';
CREATE TRIGGER routed BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION routed();
ALTER TABLE t ENABLE ALWAYS TRIGGER routed"""


@pytest.mark.parametrize("key", [" PRIMARY KEY", ""])
def test_rows_of_a_child_are_left_alone(database: Database, key: str) -> None:
    ddl = f"""{TABLE.replace(" PRIMARY KEY", key)}; {CHILD};
    INSERT INTO child VALUES (1, 1, 'x'), (2, 1, 'x'), (3, 1, 'x')"""
    target = Target(database, ddl)
    target.apply(*(insert(row(one)) for one in "123"))
    old = None if key else row("1")
    target.apply(update(row("1", "2"), old), delete({"id": "2"} if key else row("2")))
    if key:  # a column's value that was not sent, and another key
        moved = {"id": "4", "n": "1"}
        target.apply(update(moved, {"id": "3"}, columns=("id", "n", "note")))
    else:
        target.apply(update(row("4"), row("3")))
    assert target.rows("ONLY t") == [(1, 2, "x"), (4, 1, "x")]
    assert target.rows("child") == [(1, 1, "x"), (2, 1, "x"), (3, 1, "x")]


MOVED = """CREATE FUNCTION routed() RETURNS trigger LANGUAGE plpgsql AS
 'BEGIN INSERT INTO child SELECT NEW.*; DELETE FROM ONLY t WHERE id = NEW.id;
  RETURN NULL; END';
CREATE TRIGGER routed AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION routed();
ALTER TABLE t ENABLE ALWAYS TRIGGER routed"""
MADE = """CREATE FUNCTION routed() RETURNS trigger LANGUAGE plpgsql AS
 'BEGIN CREATE TABLE IF NOT EXISTS child (LIKE t INCLUDING ALL) INHERITS (t);
  INSERT INTO child SELECT NEW.*; RETURN NULL; END';
CREATE TRIGGER routed BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION routed();
ALTER TABLE t ENABLE ALWAYS TRIGGER routed"""


@pytest.mark.parametrize(
    "ddl",
    [f"{CHILD}; {ROUTED}", f"{CHILD}; {MOVED}", MADE],
    ids=["before", "after", "made"],
)
def test_rows_that_a_trigger_puts_into_children_are_found(
    database: Database, ddl: str
) -> None:
    target = Target(database, f"{TABLE}; {ddl}")
    target.apply(insert({"id": "1", "n": "1", "note": "x"}))
    target.apply(update({"id": "1", "n": "2", "note": "y"}, seq_id=1))
    assert target.rows("child") == [(1, 2, "y")]
    target.apply(delete({"id": "1"}, seq_id=2))
    assert target.rows() == []


def test_tables_that_an_extension_owns_are_no_hazard(database: Database) -> None:
    """As those of TimescaleDB's catalog, whose foreign keys cascade."""
    database.execute(
        """CREATE EXTENSION hstore; CREATE TABLE one (id int PRIMARY KEY);
        CREATE TABLE two (id int REFERENCES one ON DELETE CASCADE);
        ALTER EXTENSION hstore ADD TABLE one; ALTER EXTENSION hstore ADD TABLE two"""
    )
    Target(database, TABLE).apply(insert({"id": "1", "n": "1", "note": "x"}))
    database.execute("ALTER EXTENSION hstore DROP TABLE two")
    with pytest.raises(MirrorError, match="DROP CONSTRAINT two_id_fkey"):
        Target(database, "").apply(insert({"id": "2", "n": "1", "note": "x"}))
    database.execute("ALTER EXTENSION hstore DROP TABLE one")


KEYLESS = """CREATE TABLE t (a float8, b numeric, c json, d text, e timestamptz,
  f interval, g bytea, h char(4), i bool, j int[])"""
ODD = {
    "a": "0.1",
    "b": "1.00",
    "c": '{"a": 1}',
    "d": None,
    "e": "2024-07-05 01:02:03.4+00",
    "f": "-1 days +02:03:00",
    "g": "\\x00ff",
    "h": "ab  ",
    "i": "t",
    "j": "{1,NULL}",
}


def test_without_a_key_one_of_the_rows_that_look_alike_changes(
    database: Database,
) -> None:
    database.execute(
        f"ALTER DATABASE {database.name} SET DateStyle = 'German';"
        f"ALTER DATABASE {database.name} SET TimeZone = 'Asia/Kolkata';"
        f"ALTER DATABASE {database.name} SET IntervalStyle = 'sql_standard';"
        f"ALTER DATABASE {database.name} SET bytea_output = 'escape'"
    )
    target = Target(database, KEYLESS)
    other = {**ODD, "b": "1.0"}  # equal, and not the same
    key: dict[str, Any] = {"key": [T]}
    target.apply(*(insert(one, **key) for one in (ODD, other, ODD, ODD)))
    target.apply(delete(ODD, **key), update({**ODD, "d": "new"}, ODD, **key))
    found = database.fetch("SELECT b::text, d FROM t ORDER BY 1, 2")
    assert found == [("1.0", None), ("1.00", "new"), ("1.00", None)]
    target.apply(delete(ODD, **key), delete(ODD, **key), delete(other, **key))
    assert database.fetch("SELECT b::text, d FROM t") == [("1.00", "new")]


def test_a_keyless_row_in_a_partitioned_target_is_one_row(database: Database) -> None:
    ddl = """CREATE TABLE t (id int) PARTITION BY LIST (id);
    CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);
    CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2)"""
    target = Target(database, ddl)
    one, two = {"id": "1"}, {"id": "2"}
    key: dict[str, Any] = {"key": [T]}
    target.apply(insert(one, **key), insert(two, **key), delete(two, **key))
    assert database.fetch("SELECT id FROM t") == [(1,)]


def test_another_index_than_the_key_may_tell_the_old_row(database: Database) -> None:
    target = Target(database, "CREATE TABLE t (id int PRIMARY KEY, mail text UNIQUE)")
    columns = ("id", "mail")
    target.apply(
        insert({"id": "1", "mail": "a"}, key=["a"]),
        insert({"id": "2", "mail": "b"}, key=["b"], seq_id=1),
        delete({"mail": "a"}, columns=columns, key=["a"], seq_id=2),
        update({"id": "3", "mail": "b"}, {"mail": "b"}, key=["b"], seq_id=3),
    )
    assert target.rows() == [(3, "b")]


def test_generated_and_identity_columns_are_minded(database: Database) -> None:
    ddl = """CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int,
      twice int GENERATED ALWAYS AS (n * 2) STORED, serial int GENERATED BY DEFAULT
      AS IDENTITY)"""
    target = Target(database, ddl)
    first = {"id": "7", "n": "1", "twice": "2", "serial": "5"}
    second = {"id": "7", "n": "4", "twice": "8", "serial": "6"}
    target.apply(insert(first), update(second), insert(second))
    assert target.rows() == [(7, 4, 8, 6)]


def test_an_identity_that_no_update_can_set_stops_at_another_value(
    database: Database,
) -> None:
    ddl = """CREATE TABLE t (id int PRIMARY KEY, n int,
      version bigint GENERATED ALWAYS AS IDENTITY)"""
    target = Target(database, ddl)
    first = {"id": "1", "n": "1", "version": "5"}
    target.apply(insert(first), update({**first, "n": "2"}), insert(first))
    cure = 'ALTER TABLE "public"."t" ALTER COLUMN "version" SET GENERATED BY DEFAULT;'
    other = {"id": "1", "n": "3", "version": "6"}
    alone = {"id": "1", "version": "6"}  # the others are as they were
    for op in (update(other, lsn=30), insert(other, lsn=31), update(alone, lsn=32)):
        with target.stops("public.t", cure):
            target.apply(op)
        assert target.rows() == [(1, 1, 5)]
    database.execute(cure)
    target.apply(update(other, lsn=30))
    assert target.rows() == [(1, 3, 6)]


def test_an_identity_of_a_table_without_a_key_stops_likewise(
    database: Database,
) -> None:
    ddl = "CREATE TABLE t (n int, version bigint GENERATED ALWAYS AS IDENTITY)"
    target = Target(database, ddl)
    first = {"n": "1", "version": "5"}
    second = {**first, "n": "2"}
    target.apply(insert(first), update(second, first))
    with target.stops("public.t", 'ALTER COLUMN "version"'):
        target.apply(update({**second, "version": "6"}, second, lsn=30))
    assert target.rows() == [(2, 5)]


def test_names_are_quoted(database: Database) -> None:
    ddl = """CREATE SCHEMA "a.b%s"; CREATE TABLE "a.b%s"."t""; DROP" (
      "%s" int PRIMARY KEY, "q'""%%" text)"""
    target = Target(database, ddl)
    table, columns = 'a.b%s.t"; DROP', ("%s", "q'\"%%")
    one = dict(zip(columns, ("1", "x"), strict=True))
    made = insert(one, table, key=["1"])
    made.table.schema, made.table.name = "a.b%s", 't"; DROP'
    target.apply(made)
    assert database.fetch('TABLE "a.b%s"."t""; DROP"') == [(1, "x")]


def test_a_deferrable_key_takes_plain_inserts(database: Database) -> None:
    target = Target(database, "CREATE TABLE t (id int PRIMARY KEY DEFERRABLE, n int)")
    target.apply(insert({"id": "1", "n": "2"}))
    assert target.rows() == [(1, 2)]


def test_tables_that_no_pattern_names_are_passed_over(database: Database) -> None:
    target = Target(database, tables=["public.t?", "other.*"])
    target.apply(insert(row("1")))
    assert target.rows() == []


def test_a_missing_table_stops_with_what_makes_it(database: Database) -> None:
    with Target(database).stops("no such table", "pg_dump"):
        Target(database, "SELECT").apply(insert(row("1"), "public.gone"))


def test_a_missing_column_stops_with_what_adds_it(database: Database) -> None:
    target = Target(database)
    target.apply(insert(row("1")))
    wider = {**row("1"), "More": "1"}
    with target.stops('ALTER TABLE "public"."t" ADD COLUMN "More"'):
        target.apply(insert(wider))
    database.execute('ALTER TABLE t ADD COLUMN "More" int')
    target.apply(insert(wider, lsn=2))
    assert [r[3] for r in target.rows()] == [1]


def test_what_the_target_refuses_waits_and_then_stops_without_a_value(
    database: Database,
) -> None:
    ddl = f"{TABLE}; CREATE UNIQUE INDEX only_one ON t (note)"
    target = Target(database, ddl, patience_s=0)
    target.apply(insert(row("1", "1", "secret")))
    with target.stops("public.t at 0/5, 0", "UniqueViolation", "only_one"):
        target.apply(insert(row("2", "1", "secret"), lsn=5))
    with target.stops("InvalidTextRepresentation") as caught:
        target.apply(insert(row("none", "1", "y")))
    assert "none" not in str(caught)
    patient = Target(database, "SELECT")
    with pytest.raises(Retry, match="only_one"):
        patient.apply(insert(row("2", "1", "secret")))


def test_an_older_op_of_another_partition_takes_no_effect(database: Database) -> None:
    """Records are keyed by a column that is not the key: rows change partitions."""
    target = Target(database)
    ins = insert(row("1", "1", "a"), key=["a"], lsn=10, partition=0)
    moved_out = delete(row("1", "1", "a"), key=["a"], lsn=20, partition=0)
    moved_in = insert(row("1", "2", "b"), key=["b"], lsn=20, seq_id=1, partition=1)
    back_out = delete(row("1", "2", "b"), key=["b"], lsn=30, partition=1)
    back_in = insert(row("1", "3", "a"), key=["a"], lsn=30, seq_id=1, partition=0)
    target.apply(ins, moved_in)
    target.apply(moved_out)
    assert [r[2] for r in target.rows()] == ["b"]
    target.apply(back_in, back_out)
    assert [r[2] for r in target.rows()] == ["a"]
    target.apply(ins, moved_in, moved_out, back_out, back_in)
    assert [r[2] for r in target.rows()] == ["a"]


def test_a_new_history_of_the_source_may_begin_lower(database: Database) -> None:
    target = Target(database)
    header = (("walstream-source", b"71/app/1"),)
    target.apply(insert(row("1", "1", "a"), key=["a"], lsn=1000))
    target.apply(insert(row("1", "1", "b"), key=["b"], lsn=10))
    assert [r[2] for r in target.rows()] == ["a"]
    target.apply(insert(row("1", "1", "c"), key=["c"], lsn=10, headers=header))
    target.apply(insert(row("1", "1", "d"), key=["d"], lsn=11))
    assert [r[2] for r in target.rows()] == ["d"]


def test_a_truncate_tells_its_source_for_the_partitions_that_pass_it(
    database: Database,
) -> None:
    target = Target(database)
    header = (("walstream-source", b"71/app/1"),)
    truncate = make(
        Kind.TRUNCATE, T, columns=("id",), lsn=5, partitions=2, headers=header
    )
    target.apply(truncate)
    target.apply(insert(row("1", "1", "a"), key=["a"], lsn=10))
    target.apply(
        delete(row("1", "1", "a"), key=["a"], lsn=20),
        insert(row("1", "1", "b"), key=["b"], lsn=20, seq_id=1, partition=1),
    )
    assert [r[2] for r in target.rows()] == ["b"]


def test_a_truncate_that_names_no_source_tells_what_its_partition_knows(
    database: Database,
) -> None:
    target = Target(database)
    header = (("walstream-source", b"71/app/1"),)
    target.apply(insert(row("1", "1", "a"), key=["a"], lsn=1, headers=header))
    target.apply(make(Kind.TRUNCATE, T, columns=("id",), lsn=5, partitions=2))
    target.apply(insert(row("1", "1", "a"), key=["a"], lsn=10))
    target.apply(insert(row("1", "1", "b"), key=["b"], lsn=20, partition=1))
    assert [r[2] for r in target.rows()] == ["b"]


def test_one_update_under_the_new_key_outlives_the_old_keys_late_insert(
    database: Database,
) -> None:
    target = Target(database)
    columns = ("id", "n", "note")
    target.apply(update(row("2"), {"id": "1"}, columns=columns, lsn=20, partition=1))
    target.apply(insert(row("1"), lsn=10, partition=0))
    assert [r[0] for r in target.rows()] == [2]


def test_a_truncate_forgets_the_rows_positions(database: Database) -> None:
    target = Target(database, row_positions=True)
    target.apply(insert(row("1"), lsn=10))
    kept = "SELECT key FROM replication_mirror_row WHERE key <> 'table'"
    assert database.fetch(kept) == [('["1"]',)]
    target.apply(make(Kind.TRUNCATE, T, columns=("id",), lsn=20))
    assert database.fetch(kept) == []


def test_ordinary_keys_keep_no_positions(database: Database) -> None:
    target = Target(database)
    target.apply(insert(row("3")), update(row("3", "2")), delete(row("3")))
    assert database.fetch("TABLE replication_mirror_row") == []


def test_the_start_names_what_may_refuse_or_double_changes(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute(f"""{TABLE}; ALTER TABLE t ADD CONSTRAINT notes UNIQUE (note);
    CREATE UNIQUE INDEX numbers ON t (n) WHERE n > 0;
    CREATE TABLE child (id int REFERENCES t); CREATE TABLE other (id int UNIQUE);
    CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
    CREATE TRIGGER fires BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()""")
    with caplog.at_level(logging.WARNING, "consumer.mirror"):
        PostgresMirror(database.dsn, tables=["public.t", "public.child"]).start()
    text = caplog.text
    for name in ("notes", "numbers", "child_id_fkey", "fires"):
        assert name in text
    assert "other" not in text
    caplog.clear()
    replica = make_conninfo(database.dsn, options="-c session_replication_role=replica")
    PostgresMirror(replica, tables=["public.t", "public.child"]).start()
    assert "notes" in caplog.text
    assert "fkey" not in caplog.text
    assert "fires" not in caplog.text


@pytest.mark.parametrize(
    ("action", "wanted"),
    [
        ("DELETE CASCADE", "public.t"),
        ("DELETE SET NULL", "public.child"),
        ("UPDATE CASCADE", "public.part"),
        ("UPDATE SET DEFAULT", "public.t"),
    ],
)
def test_a_foreign_key_that_changes_rows_is_refused_at_the_start(
    database: Database, action: str, wanted: str
) -> None:
    database.execute(f"""{TABLE};
    CREATE TABLE child (id int CONSTRAINT eats REFERENCES t ON {action})
      PARTITION BY RANGE (id);
    CREATE TABLE part PARTITION OF child DEFAULT""")
    drop = "ALTER TABLE public[.]child DROP CONSTRAINT eats;"
    with pytest.raises(MirrorError, match=drop):
        PostgresMirror(database.dsn, tables=[wanted]).start()
    PostgresMirror(database.dsn, tables=["public.other"]).start()
    replica = make_conninfo(database.dsn, options="-c session_replication_role=replica")
    PostgresMirror(replica, tables=[wanted]).start()


@pytest.mark.parametrize("option", ["UNIQUE", "REFERENCES parent"])
def test_a_deferred_constraint_refuses_the_op_and_not_the_commit(
    database: Database, option: str
) -> None:
    ddl = f"""CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1);
    CREATE TABLE t (id int PRIMARY KEY, n int {option} DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO t VALUES (1, 1)"""
    target = Target(database, ddl)
    bad = {"UNIQUE": "1"}.get(option, "2")
    with pytest.raises(Retry, match="t_n_"):
        target.apply(insert({"id": "2", "n": bad}))
    target.apply(insert({"id": "2", "n": None}), insert({"id": "3", "n": None}))
    assert [r[0] for r in target.rows()] == [1, 2, 3]


def test_a_deferred_foreign_key_refuses_the_parents_delete(database: Database) -> None:
    ddl = """CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1);
    CREATE TABLE t (id int PRIMARY KEY REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO t VALUES (1)"""
    target = Target(database, ddl)
    with pytest.raises(Retry, match="t_id_fkey"):
        target.apply(delete({"id": "1"}, "public.parent"))


def test_the_consumers_own_tables_are_passed_over(database: Database) -> None:
    target = Target(
        database, "CREATE TABLE replication_consumer_state (id int PRIMARY KEY)"
    )
    target.apply(
        insert({"id": "1"}, "public.replication_consumer_state"),
        insert({"relation": "x"}, "public.replication_mirror_row"),
    )
    assert database.fetch("SELECT FROM replication_consumer_state") == []


def test_the_servers_own_tables_are_refused(database: Database) -> None:
    target = Target(database)
    for schema in ("pg_catalog", "information_schema", "pg_toast"):
        with target.stops("the server's own"):
            target.apply(delete({"aggfnoid": "1"}, f"{schema}.pg_aggregate"))


def test_another_database_than_the_consumers_is_refused(
    database: Database,
) -> None:
    database.execute(TABLE)
    mirror = PostgresMirror(database.server.dsn("template1"), row_positions=False)
    with (
        psycopg.connect(database.dsn) as tx,
        pytest.raises(MirrorError, match="another database"),
    ):
        mirror.handle_message(tx, insert(row("1")))


def test_the_command_tells_a_right_that_the_role_lacks(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"role_{database.name}"
    database.execute(
        f"CREATE ROLE {name} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC"
    )
    try:
        dsn = make_conninfo(database.dsn, user=name)
        assert command.main(["mirror", "t", "--group", "g", "--target", dsn]) == 4
        text = capsys.readouterr().err
        assert "may not create its tables replication_consumer_*" in text
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            make_tables(connection)
        assert command.main(["mirror", "t", "--group", "g", "--target", dsn]) == 4
        text = capsys.readouterr().err
        assert text == (
            "error: the target's role lacks a right:"
            " permission denied for schema public\n"
        )
    finally:
        database.execute(f"DROP ROLE {name}")


def test_an_ordinary_role_may_mirror(database: Database) -> None:
    name = f"role_{database.name}"
    target = Target(database)
    database.execute(
        f"CREATE ROLE {name} LOGIN; GRANT CREATE ON SCHEMA public TO {name};"
        f"GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON t TO {name}"
    )
    try:
        dsn = make_conninfo(database.dsn, user=name)
        mirror = PostgresMirror(dsn)
        with psycopg.connect(dsn) as tx:
            mirror.handle_message(tx, insert(row("1"), key=["else"]))
        assert [r[0] for r in target.rows()] == [1]
    finally:
        database.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_rows_that_a_policy_hides_stop_the_mirror(database: Database) -> None:
    name = f"role_{database.name}"
    target = Target(database)
    target.apply(insert(row("1")), insert(row("2")))
    database.execute(
        f"CREATE ROLE {name} LOGIN; GRANT SELECT, UPDATE, DELETE ON t TO {name};"
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY;"
        f"CREATE POLICY odd ON t TO {name} USING (id = 1)"
    )
    try:
        dsn = make_conninfo(database.dsn, user=name)
        mirror = PostgresMirror(dsn, row_positions=False)
        gone = delete({"id": "2"}, columns=("id", "n", "note"))
        for op in (gone, update(row("2", "9"))):
            with (
                target.stops("public.t", "row-level security", "BYPASSRLS"),
                psycopg.connect(dsn) as tx,
            ):
                mirror.handle_message(tx, op)
        with (
            target.stops("public.t", "BYPASSRLS"),
            psycopg.connect(dsn) as tx,
        ):
            mirror.begin_batch(tx, [gone])
            mirror.handle_message(tx, gone)
        database.execute(f"ALTER ROLE {name} BYPASSRLS")
        with psycopg.connect(dsn) as tx:
            mirror.begin_batch(tx, [gone])
            mirror.handle_message(tx, gone)
            mirror.end_batch(tx)
            tx.commit()
            kept = tx.execute("SHOW row_security").fetchone()
        assert kept == ("on",)  # of the transaction alone
        assert [r[0] for r in target.rows()] == [1]
    finally:
        database.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_what_an_update_left_out_is_read_from_the_target(database: Database) -> None:
    target = Target(database, f"{TABLE}; ALTER TABLE t ADD at interval")
    whole = {**row("1", "1.50", "long"), "at": "1 day 02:00:00"}
    target.apply(insert(whole))
    some, gone = (
        update({"id": number, "n": "2"}, columns=[*whole]) for number in ("1", "2")
    )
    with psycopg.connect(database.dsn) as tx:
        tx.execute("SET IntervalStyle = 'iso_8601'")
        target.mirror.begin_batch(tx, [some, gone])
        for op in (some, gone):
            target.mirror.handle_message(tx, op)
            target.mirror.fill(tx, op)
        target.mirror.end_batch(tx)
    assert dict(some.new) == {**whole, "n": "2"}
    assert some.new.filled == {"note", "at"}
    assert gone.new.absent == {"note", "at"}


def test_null_in_the_target_stands_for_no_value_that_was_left_out(
    database: Database,
) -> None:
    target = Target(database)
    target.apply(insert(row("1", note=None)))
    op = update({"id": "1", "n": "2"}, columns=["id", "n", "note"])
    with psycopg.connect(database.dsn) as tx:
        target.mirror.handle_message(tx, op)
        target.mirror.fill(tx, op)
    assert op.new.absent == {"note"}
