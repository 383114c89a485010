"""PostgresMirror of Debezium's records: the same values, or a stop that says why."""

# ruff: noqa: S608 - SQL of constants

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import psycopg
import pytest

from consumer.handler import Fatal
from consumer.mirror import MirrorError, PostgresMirror
from consumer.op import EnvelopeOp, Op
from tests.integration.test_debezium_types import (
    EXTENSIONS,
    OWN,
    RANDOM,
    knows,
    printed,
    table_of,
)
from tests.integration.test_types import PRINTED_UNDER, TYPES
from tests.support.fixtures.postgres import Database
from tests.support.loads.envelope import Document, envelope, read, record, with_schema
from tests.support.loads.registered_op import bare_op
from walstream.formats.debezium import (
    DebeziumKey,
    DebeziumOptions,
    EnvelopeEncoder,
    SinkTurn,
)
from walstream.op import Kind, ReplicationOp, Table

pytestmark = pytest.mark.same_on_15

_OPTIONS: Final = DebeziumOptions("app", schemas=True, interval="string", hstore="map")
MODES: Final = {
    "default": _OPTIONS,
    "texts": replace(_OPTIONS, decimal="string", time="isostring"),
    "nanoseconds": replace(_OPTIONS, time="nanoseconds"),
    "bare": replace(_OPTIONS, schemas=False),
}
_REFUSED: Final = {
    *("money", "numeric(8,3)[]", "timestamptz[]", "mood[]", "geometry", "geography"),
    *("vector(3)", "halfvec(2)", "sparsevec(5)"),
}
"""Types that no mode brings back, or whose unsent values look like NULL."""
_REFUSED_BARE: Final = {
    *("numeric", "numeric(12,5)", "amounts", "bytea", "time", "time(2)", "timestamp"),
    *("timestamp(3)", "interval", "bit(1)", "bit(11)", "point", "date[]", "hstore"),
}
_REFUSED_IN: Final = {
    "default": set[str](),
    "texts": {"date[]"},
    "nanoseconds": {"timestamp", "timestamp(3)"},  # not all years fit
    "bare": _REFUSED_BARE,
}
_MORE: Final = {
    "bit(1)": "(random() * 1)::int::bit(1)",
    "int8[]": "ARRAY[1, (random() * 1e9)::int8]",
    "uuid[]": "ARRAY[md5(random()::text)::uuid]",
    "jsonb[]": "ARRAY[jsonb_build_object('a', random()), NULL]",
    "inet": "'10.0.0.0/8'::inet + (random() * 1e6)::int",
    "tsvector": "to_tsvector('a b ' || md5(random()::text))",
    "bool": "random() < 0.5",
}


class Target:
    """A mirror, and the database that it writes to."""

    def __init__(self, database: Database, ddl: str, **options: Any) -> None:
        self.database = database
        database.execute(ddl)
        self.mirror = PostgresMirror(database.dsn, **options)

    def apply(self, *ops: Op) -> None:
        with psycopg.connect(self.database.dsn) as tx:
            self.mirror.begin_batch(tx, ops)
            for op in ops:
                self.mirror.handle_message(tx, op)
            self.mirror.end_batch(tx)

    @contextmanager
    def stops(self, *texts: str) -> Iterator[None]:
        with pytest.raises(Fatal) as caught:
            yield
        assert isinstance(caught.value.cause, MirrorError)
        for text in texts:
            assert text in str(caught.value.cause)


def op_of(
    letter: str,
    after: Document | None,
    columns: dict[str, Any] | None = None,
    *,
    key: Document | None = None,
    before: Document | None = None,
    **source: Any,
) -> EnvelopeOp:
    """Return the op of an envelope, with schemas where columns have some."""
    found = envelope(letter, after=after, before=before, **source)
    if columns is not None:
        found = with_schema(found, columns)
    made = read(record(found, key))
    made.topic_partitions = 1
    return made


def encoded(
    table: Table, options: DebeziumOptions, rows: list[list[str]]
) -> list[EnvelopeOp]:
    """Write rows as walstream does, and read them back."""
    encoder = EnvelopeEncoder(table, options, SinkTurn())
    keys = DebeziumKey(encoder.columns, options, table.key)
    ops = (
        ReplicationOp(Kind.INSERT, table, 5, number, new=row, row_lsn=number)
        for number, row in enumerate(rows, 1)
    )
    return [read(record(encoder.encode(op), keys.render(op))) for op in ops]


@pytest.fixture
def source(database: Database) -> Iterator[psycopg.Connection[Any]]:
    settings = {**PRINTED_UNDER, "search_path": "public"}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    with psycopg.connect(database.dsn, autocommit=True, options=options) as made:
        made.execute((TYPES + OWN).encode())
        for name in EXTENSIONS:
            found = made.execute(
                "SELECT FROM pg_available_extensions WHERE name = %s", (name,)
            )
            if found.fetchone() is not None:
                made.execute(f"CREATE EXTENSION {name}".encode())
        yield made


@pytest.mark.parametrize("mode", MODES)
def test_values_come_to_the_target_as_they_are(
    database: Database, source: psycopg.Connection[Any], mode: str
) -> None:
    """Each column alone in a table: a mode takes its type, or refuses it."""
    refused = set()
    for name, value in {**RANDOM, **_MORE}.items():
        if not knows(source, name):
            continue
        source.execute(
            f"DROP TABLE IF EXISTS s, r; SELECT setseed(0.5);"
            f"CREATE TABLE s (id int PRIMARY KEY, v {name});"
            "CREATE TABLE r (LIKE s INCLUDING ALL)".encode()
        )
        source.execute(
            f"INSERT INTO s SELECT n, {value} FROM generate_series(1, 20) n".encode()
        )
        source.execute("INSERT INTO s VALUES (0, NULL)") if name != "counters" else None
        found = table_of(source, "s")
        made = replace(found, name="r")
        ops = encoded(made, MODES[mode], printed(source, found))
        try:
            Target(database, "SELECT 1").apply(*ops)
        except Fatal:
            refused.add(name)
            continue
        same = "s.v::text IS NOT DISTINCT FROM r.v::text"
        if name == "numeric":  # without trailing zeros
            same = "s.v IS NOT DISTINCT FROM r.v"
        if name == "timetz":
            same = "s.v AT TIME ZONE 'UTC' IS NOT DISTINCT FROM r.v AT TIME ZONE 'UTC'"
        wrong = source.execute(
            f"SELECT s.v::text, r.v::text FROM s FULL JOIN r USING (id)"
            f" WHERE NOT ({same}) OR s.id IS NULL OR r.id IS NULL".encode()
        ).fetchall()
        assert not wrong, name
    known = {name for name in {**RANDOM, **_MORE} if knows(source, name)}
    assert refused == (_REFUSED | _REFUSED_IN[mode]) & known


T: Final = "CREATE TABLE t (id int PRIMARY KEY, v {})"
ID: Final = {"id": "int32"}
BITS: Final = {
    "type": "bytes",
    "name": "io.debezium.data.Bits",
    "parameters": {"length": "9"},
}


@pytest.mark.parametrize(
    ("ddl", "form", "value", "told"),
    [
        ("numeric", "double", 1.5, ("from double", "decimal.handling.mode")),
        ("numeric(6,2)", None, "AJY=", ("without a schema", "schemas = true")),
        ("interval", "int64 io.debezium.time.MicroDuration", 1, ("interval",)),
        ("time", "int32 org.apache.kafka.connect.data.Time", 1, ("time.precision",)),
        ("timestamp", "int64 io.debezium.time.Timestamp", 1, ("from io.debezium",)),
        ("timestamp(4)", "int64 io.debezium.time.Timestamp", 1, ("from io.debezium",)),
        ("bytea", "string", "AJY=", ("binary.handling.mode",)),
        ("hstore", "string io.debezium.data.Json", "{}", ("hstore.handling.mode",)),
        ("varbit", BITS, "AA==", ("or drop the column",)),
        ("money", "string", "1.50", ("or drop the column",)),
        ("int[][]", {"type": "array", "items": {"type": "int32"}}, [1], ("or drop",)),
        ("float8[]", {"type": "array", "items": {"type": "double"}}, [1], ("or drop",)),
        ("int", "string", "1", ("from string",)),
        ("box", "bytes", "AA==", ("or drop the column",)),
    ],
)
def test_what_would_be_another_value_is_refused(
    database: Database, ddl: str, form: Any, value: Any, told: tuple[str, ...]
) -> None:
    target = Target(database, f"CREATE EXTENSION hstore; {T.format(ddl)}")
    columns = None if form is None else {**ID, "v": form}
    with target.stops("public.t at 0/1, 0", "column v", *told):
        target.apply(op_of("c", {"id": 1, "v": value}, columns, key={"id": 1}))
    assert database.fetch("SELECT FROM t") == []


def test_a_column_that_the_records_lack_is_refused_where_they_never_have_it(
    database: Database,
) -> None:
    target = Target(database, T.format("box"))
    with target.stops("column v (box)", "drop the column"):
        target.apply(op_of("c", {"id": 1}, ID, key={"id": 1}))
    target = Target(database, "ALTER TABLE t DROP v, ADD w text DEFAULT 'new'")
    target.apply(op_of("c", {"id": 1}, ID, key={"id": 1}))
    assert database.fetch("SELECT * FROM t") == [(1, "new")]


def test_without_schemas_dates_and_moments_are_read_by_their_columns(
    database: Database,
) -> None:
    ddl = """CREATE TABLE t (id date PRIMARY KEY, v timestamptz, w date, x text,
      y timestamptz GENERATED ALWAYS AS (v) STORED)"""
    target = Target(database, ddl)
    row = {"id": 18321, "v": "-0043-03-15T00:00:00.500000Z", "w": "2020-02-29Z"}
    target.apply(op_of("c", {**row, "x": "18321"}, key={"id": 18321}))
    target.apply(op_of("u", {**row, "x": "7"}, key={"id": 18321}))
    found = database.fetch(
        "SELECT id::text, (v AT TIME ZONE 'UTC')::text, w::text, x FROM t"
    )
    assert found == [("2020-02-29", "0044-03-15 00:00:00.5 BC", "2020-02-29", "7")]
    target.apply(op_of("d", None, key={"id": 18321}, before={**row, "x": None}))
    assert database.fetch("SELECT FROM t") == []


FULL: Final = "CREATE TABLE t (id int PRIMARY KEY, a int NOT NULL, b text)"


def test_a_row_goes_by_the_key_of_its_record(database: Database) -> None:
    """What else an old row has may not have been sent: it is null there, or empty."""
    target = Target(database, FULL)
    keys: dict[str, Any] = {"key": {"id": 1}}
    target.apply(
        op_of("c", {"id": 1, "a": 7, "b": "x"}, **keys),
        op_of("c", {"id": 2, "a": 7, "b": "x"}, key={"id": 2}),
        op_of(
            "u",
            {"id": 1, "a": 8, "b": "y"},
            before={"id": 0, "a": 0, "b": None},
            **keys,
        ),
    )
    assert database.fetch("SELECT * FROM t ORDER BY 1") == [(1, 8, "y"), (2, 7, "x")]
    target.apply(op_of("d", None, before={"id": 1, "a": 0, "b": None}, **keys))
    assert database.fetch("SELECT * FROM t") == [(2, 7, "x")]


@pytest.mark.parametrize("letter", ["d", "u"])
def test_a_record_with_another_key_is_refused(database: Database, letter: str) -> None:
    target = Target(database, FULL)
    after = {"id": 1, "a": 7, "b": "x"}
    target.apply(op_of("c", after, key={"a": 7}))
    old = {"id": 0, "a": 7, "b": None}
    with target.stops("the record's key lacks id"):
        target.apply(
            op_of(letter, after if letter == "u" else None, before=old, key={"a": 7})
        )
    target.apply(op_of("u", {**after, "b": "new"}, key={"a": 7}, lsn=2))
    assert database.fetch("SELECT * FROM t") == [(1, 7, "new")]


def test_rows_without_a_key_go_by_their_texts(database: Database) -> None:
    target = Target(database, "CREATE TABLE t (a int, b text, c date, d float8)")
    columns = {"a": "int32", "b": "string", "c": "int32 io.debezium.time.Date"}
    columns["d"] = "double"
    rows: list[Document] = [{"a": 1, "b": "x", "c": day, "d": 1e20} for day in (1, 2)]
    target.apply(*(op_of("c", row, columns) for row in [*rows, *rows]))
    target.apply(
        op_of("d", None, columns, before=rows[0]),
        op_of("u", {**rows[1], "a": None}, columns, before=rows[1]),
    )
    found = database.fetch("SELECT a, c::text FROM t ORDER BY 2, 1")
    assert found == [(1, "1970-01-02"), (1, "1970-01-03"), (None, "1970-01-03")]
    with target.stops("the records have one", "primary key"):
        target.apply(op_of("d", None, columns, before=rows[1], key={"a": 1}))


@pytest.mark.parametrize(
    ("ddl", "form", "value"),
    [
        ("numeric", "string", "1.50"),
        ("float4", "float", 1e10),
        ("timetz", "string io.debezium.time.ZonedTime", "10:00:00Z"),
    ],
)
def test_a_row_without_a_key_is_not_looked_for_by_another_text(
    database: Database, ddl: str, form: str, value: Any
) -> None:
    target = Target(database, f"CREATE TABLE t (v {ddl})")
    target.apply(op_of("c", {"v": value}, {"v": form}))
    with target.stops("found by its texts", "create a key"):
        target.apply(op_of("d", None, {"v": form}, before={"v": value}))
    assert len(database.fetch("SELECT FROM t")) == 1


def test_rows_without_a_key_are_refused_where_debezium_spreads_them(
    database: Database,
) -> None:
    target = Target(database, "CREATE TABLE t (a int)")
    insert = op_of("c", {"a": 1}, {"a": "int32"})
    delete = op_of("d", None, {"a": "int32"}, before={"a": 1})
    for op in (insert, delete):
        assert op.scattered
        op.topic_partitions = 3
    target.apply(insert)
    with target.stops("no order", "one partition"):
        target.apply(delete)
    delete.topic_partitions = 1
    target.apply(delete)
    assert database.fetch("SELECT FROM t") == []


def test_a_truncate_is_refused_beside_other_partitions(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    target = Target(database, FULL)
    target.apply(op_of("c", {"id": 1, "a": 7, "b": "x"}, key={"id": 1}))
    truncate = op_of("t", None)
    for count, shown in ((0, "several"), (3, "3")):
        truncate.topic_partitions = count
        with target.stops(f"one of {shown} partitions of t", "--skip-truncates"):
            target.apply(truncate)
    skipping = Target(database, "SELECT 1", skip_truncates=True)
    with caplog.at_level(logging.WARNING):
        skipping.apply(truncate)
    assert "walstream backfill public.t" in caplog.text
    assert len(database.fetch("SELECT FROM t")) == 1
    truncate.topic_partitions = 1
    target.apply(truncate)
    assert database.fetch("SELECT FROM t") == []


def test_an_unchanged_toast_value_is_left_alone(database: Database) -> None:
    target = Target(database, FULL)
    big = {"id": 1, "a": 7, "b": "__debezium_unavailable_value"}
    target.apply(
        op_of("c", {**big, "b": "big"}, key={"id": 1}),
        op_of("u", {**big, "a": 8}, key={"id": 1}),
    )
    assert database.fetch("SELECT * FROM t") == [(1, 8, "big")]


def test_with_positions_a_row_keeps_the_newest_of_its_own_lsns(
    database: Database,
) -> None:
    """Of one row these are in the order of the commits, whatever the stream's is."""
    target = Target(database, FULL, row_positions=True)

    def row(letter: str, a: int, **source: Any) -> EnvelopeOp:
        return op_of(letter, {"id": 1, "a": a, "b": ""}, key={"id": 1}, **source)

    target.apply(row("c", 2, lsn=90), row("u", 1, lsn=50))
    assert database.fetch("SELECT a FROM t") == [(2,)]
    # read beside the stream: it has no place, and is as new as what came before it
    target.apply(row("r", 3, lsn=None, snapshot="incremental"))
    assert database.fetch("SELECT a FROM t") == [(3,)]
    target.apply(row("u", 4, lsn=91))
    assert database.fetch("SELECT a FROM t") == [(4,)]


def test_a_key_that_the_record_has_needs_no_positions(database: Database) -> None:
    target = Target(database, FULL)
    target.apply(op_of("c", {"id": 1, "a": 7, "b": "7"}, key={"id": 1}))
    assert database.fetch("SELECT FROM replication_mirror_row") == []
    target.apply(op_of("c", {"id": 2, "a": 7, "b": "7"}, key={"a": 7}))
    assert database.fetch("SELECT FROM replication_mirror_row")


@pytest.mark.parametrize("together", [True, False])
def test_a_key_that_is_written_anew_stays_one_row(
    database: Database, together: bool
) -> None:
    """Delete and Insert of a key change have one LSN, and here one row."""
    target = Target(database, "CREATE TABLE t (id numeric PRIMARY KEY, a int)")
    number = {"id": {"type": "string"}, "a": {"type": "int32"}}
    old, new = {"id": "1.0"}, {"id": "1.00"}
    written = {**new, "a": 7}
    changed = [
        op_of("d", None, number, before={**old, "a": 7}, key=old, lsn=60),
        op_of("c", written, number, key=new, lsn=60),
    ]
    target.apply(op_of("c", {**old, "a": 7}, number, key=old, lsn=50))
    for ops in (changed,) if together else ([one] for one in changed):
        target.apply(*ops)
    assert database.fetch("SELECT id::text, a FROM t") == [("1.00", 7)]
    # and it is older than what came after it, wherever that was read first
    target.apply(op_of("u", {**new, "a": 8}, number, key=new, lsn=61))
    target.apply(*reversed(changed))
    assert database.fetch("SELECT id::text, a FROM t") == [("1.00", 8)]


@pytest.mark.parametrize("told", [True, False])
def test_a_default_may_be_a_null(
    database: Database, caplog: pytest.LogCaptureFixture, told: bool
) -> None:
    target = Target(database, "CREATE TABLE t (id int PRIMARY KEY, a int, b text)")
    a = {"type": "int32", "default": 5, "optional": told}
    columns = {"id": "int32", "a": a, "b": "string"}
    row = {"id": 1, "a": 5, "b": ""}
    with caplog.at_level(logging.WARNING):
        target.apply(op_of("c", row, columns, key={"id": 1}))
        target.apply(op_of("u", row, columns, key={"id": 1}))
    expected = "public.t: a NULL of a comes as the column's default"
    assert caplog.text.count(expected) == int(told)


@pytest.mark.parametrize("kind", ["time", "date", "timestamp", "time[]"])
def test_an_op_whose_schema_has_no_units_is_no_time(
    database: Database, kind: str
) -> None:
    """As a registry that keeps no comments gives it: 123456 would be 12:34:56."""
    target = Target(database, f"CREATE TABLE t (id int PRIMARY KEY, v {kind}, w int)")
    oids = {"time": 1083, "date": 1082, "timestamp": 1114, "time[]": 1183}
    texts = {
        "time": "00:00:00.123456",
        "date": "2243-10-17",
        "timestamp": "1970-01-01 00:00:00.123456",
        "time[]": "{00:00:00.123456}",
    }
    whole = Table("public", "t", ("id", "v", "w"), (0,), (23, oids[kind], 23))
    one = bare_op(whole, ["1", texts[kind], "5"])
    with target.stops("column v", "no unit", "comments"):
        target.apply(one)
    assert database.fetch("SELECT v FROM t") == []
    database.execute("ALTER TABLE t ALTER v TYPE text")
    other = Table("public", "t", ("id", "w"), (0,), (23, 23))
    Target(database, "SELECT 1").apply(bare_op(other, ["1", "5"]))
    assert database.fetch("SELECT id, v, w FROM t") == [(1, None, 5)]
