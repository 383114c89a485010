"""Each type's values, as a server prints them, written in each mode and read back.

What comes back is compared by the server itself, as a value of the type.
"""

# ruff: noqa: S608 - SQL of constants

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import psycopg
import pytest
from psycopg import sql

from tests.integration.test_types import PRINTED_UNDER, TYPES, VALUES
from tests.support.fixtures.postgres import Database
from tests.support.oracles.column_facts import facts_now
from walstream.formats.debezium import DebeziumOptions, EnvelopeEncoder, SinkTurn
from walstream.formats.debezium.columns import UNSENT
from walstream.formats.debezium.decode import EnvelopeDecoder
from walstream.op import ColumnFacts, Kind, ReplicationOp, Table

pytestmark = [pytest.mark.postgres, pytest.mark.same_on_15]

_OPTIONS: Final = DebeziumOptions("app", schemas=True)
MODES: Final = {
    "default": _OPTIONS,
    "texts": replace(
        _OPTIONS, decimal="string", time="isostring", interval="string", hstore="map"
    ),
    "connect": replace(
        _OPTIONS, decimal="double", time="connect", binary="hex", unknown=True
    ),
    "nanoseconds": replace(_OPTIONS, time="nanoseconds", binary="base64-url-safe"),
}
EXTENSIONS: Final = ("citext", "ltree", "isn", "postgis", "vector")
OWN: Final = """
CREATE TYPE label AS ENUM ('o,k', 'x');
CREATE DOMAIN amount AS numeric(10,2);
CREATE DOMAIN amounts AS amount CHECK (value > -1000000);
CREATE DOMAIN counters AS int4[] NOT NULL;
"""
RANDOM: Final = {
    "int2": "(random() * 65535 - 32768)::int::int2",
    "int8": "((random() - 0.5) * 1.8e19)::numeric(20)::int8",
    "oid": "(random() * 4e9)::int8::oid",
    "float4": "((random() - 0.5) * 10 ^ (random() * 60 - 30))::float4",
    "float8": "(random() - 0.5) * 10 ^ (random() * 600 - 300)",
    "numeric": "(random()::numeric - 0.5) * 10 ^ (random() * 60 - 30)::int",
    "numeric(12,5)": "((random() - 0.5) * 1e6)::numeric(12,5)",
    "amounts": "((random() - 0.5) * 1e5)::numeric(10,2)",
    "money": "((random() - 0.5) * 1e12)::numeric::money",
    "text": "repeat(chr((random() * 50000)::int + 1), (random() * 3)::int)",
    "varchar(7)": "left(md5(random()::text), 7)",
    "char(9)": "left(md5(random()::text), (random() * 9)::int)",
    "bytea": "decode(md5(random()::text), 'hex')",
    "date": "'2000-01-01'::date + ((random() - 0.32) * 2200000)::int",
    "time": "(random() * 86400 || ' s')::interval::time",
    "time(2)": "(random() * 86400 || ' s')::interval::time(2)",
    "timetz": "(random() * 86400 || ' s')::interval::time AT TIME ZONE '-04:30'",
    "timestamp": "'2000-01-01'::timestamp + (random() - 0.02) * '270000 y'::interval",
    "timestamp(3)": "(now() - random() * '80 y'::interval)::timestamp(3)",
    "timestamptz": "now() + (random() - 0.5) * '4000 y'::interval",
    "timestamptz(2)": "(now() - random() * '80 y'::interval)::timestamptz(2)",
    "interval": "(random() - 0.5) * '9000 y 7 mons 5 d 4 h'::interval",
    "uuid": "md5(random()::text)::uuid",
    "jsonb": "jsonb_build_object('a', random(), E'\\u00e9\"', md5(random()::text))",
    "inet": "'10.0.0.0/8'::inet + (random() * 1e6)::int",
    "int4range": "int4range((random() * 9)::int, 9 + (random() * 9)::int)",
    "bit(11)": "((random() * 2047)::int)::bit(11)",
    "point": "point(random() * 1e9, -random())",
    "mood": "(enum_range(NULL::mood))[1 + (random() * 2)::int]",
    "int4[]": "ARRAY[(random() * 9)::int, NULL, -(random() * 9)::int]",
    "text[]": "ARRAY[chr((random() * 90)::int + 32), NULL, '', 'NULL', 'a b']",
    "numeric(8,3)[]": "ARRAY[random() * 9999, NULL]::numeric(8,3)[]",
    "timestamptz[]": "ARRAY[now(), now() - random() * '80 y'::interval]",
    "date[]": "ARRAY[current_date - (random() * 9999)::int]",
    "mood[]": "ARRAY['qu\"ote', 'sad']::mood[]",
    "counters": "ARRAY[(random() * 9)::int]",
    "hstore": "hstore(md5(random()::text), chr((random() * 90)::int + 32))",
    "citext": "md5(random()::text)::citext",
    "ltree": "md5(random()::text)::ltree",
    "isbn": "isbn('978-0-393-04002-9')",
    "geometry": "ST_SetSRID(ST_MakePoint(random() * 180, random() * 90), 4326)",
    "geography": "ST_MakePoint(random() * 180, random() * 90)::geography",
    "vector(3)": "ARRAY[random(), -random(), 1e9]::vector(3)",
    "halfvec(2)": "ARRAY[random(), 1]::vector::halfvec(2)",
    "sparsevec(5)": "'{1:0.5,4:-2}/5'::sparsevec",
}  # fmt: skip
LOSSY: Final = {
    "default": {"interval", "hstore", "money"},
    "texts": set(),
    "connect": {
        *("interval", "hstore", "bytea", "float", "numeric", "money", "amounts"),
        *("time", "timestamp", "numeric(8,3)[]"),
    },
    "nanoseconds": {"interval", "hstore", "bytea", "timestamp", "money"},
}
"""Types whose values have other forms in a mode, or fewer digits."""
SAME: Final = {
    "point": "{} ~= {}",
    "timetz": "({} AT TIME ZONE 'UTC') = ({} AT TIME ZONE 'UTC')",
    "geometry": "ST_OrderingEquals({}, {})",
    "geography": "{}::text = {}::text",
}
"""What compares two values of a type, where it is not `=`."""
_ROWS: Final = 40


@pytest.fixture
def connection(database: Database) -> Iterator[psycopg.Connection[Any]]:
    settings = {**PRINTED_UNDER, "search_path": "public"}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    with psycopg.connect(database.dsn, autocommit=True, options=options) as made:
        made.execute((TYPES + OWN).encode())
        for name in EXTENSIONS:
            found = made.execute(
                "SELECT FROM pg_available_extensions WHERE name = %s", (name,)
            )
            if found.fetchone() is not None:
                create = sql.SQL("CREATE EXTENSION {}").format(sql.Identifier(name))
                made.execute(create)
        yield made


def knows(connection: psycopg.Connection[Any], name: str) -> bool:
    bare = name.partition("(")[0].partition("[")[0]
    row = connection.execute("SELECT to_regtype(%s)", (bare,)).fetchone()
    return row is not None and row[0] is not None


def table_of(connection: psycopg.Connection[Any], name: str) -> Table:
    """Return the table with what stream and catalog say of its columns."""
    facts = facts_now(connection)["public", name]
    rows = connection.execute(
        "SELECT attname, atttypid::int8, atttypmod FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
        (name,),
    ).fetchall()
    names, oids, modifiers = zip(*rows, strict=True)
    told: tuple[ColumnFacts, ...] = tuple(facts[one] for one in names)
    return Table("public", name, names, (0,), oids, (), 1, modifiers, told)


def printed(connection: psycopg.Connection[Any], table: Table) -> list[list[str]]:
    """Read the rows as texts, by the types' output functions: a cast prints others."""
    names = sql.SQL(", ").join(
        sql.SQL("CASE WHEN {0} IS NOT NULL THEN format('%s', {0}) END").format(
            sql.Identifier(one)
        )
        for one in table.columns
    )
    query = sql.SQL("SELECT {} FROM {} AS found ORDER BY found.id").format(
        names, sql.Identifier(table.name)
    )
    return [list(row) for row in connection.execute(query)]


@pytest.mark.parametrize("mode", MODES)
def test_random_values_come_back_as_the_same_values(
    connection: psycopg.Connection[Any], mode: str
) -> None:
    types = [name for name in RANDOM if knows(connection, name)]
    columns = ", ".join(f'"c{index}" {one}' for index, one in enumerate(types))
    connection.execute(f"CREATE TABLE r (id int PRIMARY KEY, {columns})".encode())
    values = ", ".join(RANDOM[one] for one in types)
    connection.execute("SELECT setseed(0.25)")
    connection.execute(
        f"INSERT INTO r SELECT n, {values} FROM generate_series(1, {_ROWS}) n".encode()
    )
    table = table_of(connection, "r")
    encoder = EnvelopeEncoder(table, MODES[mode], SinkTurn())
    assert encoder.columns.left_out == ()
    decoder = EnvelopeDecoder()
    for number, row in enumerate(printed(connection, table), 1):
        op = ReplicationOp(Kind.INSERT, table, 5, 0, new=row)
        found = decoder.read(encoder.encode(op))
        assert found is not None
        back = found.op.new
        assert back is not None
        for index, one in enumerate(types):
            bare = one.partition("(")[0] if one[-1] != "]" else one
            if {one, bare, bare.rstrip("48")} & LOSSY[mode]:
                continue
            equal = SAME.get(one, "{} = {}").format(f'"c{index}"', f"%s::{one}")
            query = f'SELECT {equal}, "c{index}"::text FROM r WHERE id = %s'
            same, shown = connection.execute(
                query.encode(), (back[index + 1], number)
            ).fetchone() or (False, "")
            assert same, f"{one}: {shown!r} became {back[index + 1]!r}"
    assert not encoder.columns.lost or mode == "nanoseconds"


@pytest.mark.parametrize("mode", MODES)
def test_extreme_values_are_written_in_each_mode(
    connection: psycopg.Connection[Any], mode: str
) -> None:
    """NaN, infinities, years BC, 24:00: the documented value, never an exception."""
    for index, (name, texts) in enumerate(VALUES.items()):
        if not knows(connection, name):
            continue
        connection.execute(
            f'CREATE TABLE "e{index}" (id int PRIMARY KEY, v {name})'.encode()
        )
        for number, text in enumerate(texts):
            connection.execute(
                f'INSERT INTO "e{index}" VALUES (%s, %s)'.encode(), (number, text)
            )
        table = table_of(connection, f"e{index}")
        encoder = EnvelopeEncoder(table, MODES[mode], SinkTurn())
        for row in printed(connection, table):
            op = ReplicationOp(Kind.INSERT, table, 5, 0, new=row)
            found = json.loads(encoder.encode(op))
            assert list(found["payload"]["after"]) in (["id"], ["id", "v"])
        reasons = {reason for _, reason in encoder.columns.lost}
        assert UNSENT not in reasons
        if name == "numeric" and mode != "default":
            continue
        lost = {"numeric", "numeric(10,2)", "timestamp", "interval", "timestamp[]"}
        assert not reasons or name in lost or "[]" in name, f"{name}: {reasons}"


def test_defaults_are_read_from_what_the_server_prints(
    connection: psycopg.Connection[Any],
) -> None:
    told = {
        "int4 DEFAULT -1": "-1",
        "serial": "0",
        "numeric(5,2) DEFAULT 1.5": '"AJY="',
        "numeric DEFAULT 1.5": "",
        "text DEFAULT 'it''s'": '"it\'s"',
        "text DEFAULT E'a\\\\b\\n'": '"a\\\\b\\n"',
        "text DEFAULT CURRENT_USER": "",
        "text DEFAULT 'a' || 'b'": "",
        "varchar(5) DEFAULT 'x'": '"x"',
        "char(3) DEFAULT 'x'": '"x"',
        "bool DEFAULT true": "true",
        "date DEFAULT '2020-02-29'": "18321",
        "date DEFAULT CURRENT_DATE": "0",
        "time DEFAULT '12:00'": "43200000000",
        "timestamp DEFAULT now()": "0",
        "timestamp(3) DEFAULT '2020-01-01'": "1577836800000",
        "timestamptz DEFAULT '2020-01-01 00:00+00'": '"2020-01-01T00:00:00.000000Z"',
        "interval DEFAULT '1 day'": "86400000000",
        "uuid DEFAULT gen_random_uuid()": '"00000000-0000-0000-0000-000000000000"',
        "jsonb DEFAULT '{}'": '"{}"',
        "bit(3) DEFAULT B'101'": '"BQ=="',
        "float8 DEFAULT 'NaN'": '"NaN"',
        "label DEFAULT 'o,k'": '"o,k"',
        "amount DEFAULT 5": "",
        "int4[] DEFAULT '{1}'": "",
        "int8 GENERATED ALWAYS AS IDENTITY": "",
        "int4 GENERATED ALWAYS AS (1 + 1) STORED": "",
    }
    columns = ", ".join(f"c{index} {one}" for index, one in enumerate(told))
    connection.execute(f"CREATE TABLE d (id int PRIMARY KEY, {columns})".encode())
    found = EnvelopeEncoder(table_of(connection, "d"), _OPTIONS, SinkTurn()).columns
    shown = {name: schema.default for name, schema in found.fields.values()}
    assert {one: shown[f"c{index}"] for index, one in enumerate(told)} == told
    assert not found.fields[2][1].optional  # serial is NOT NULL
