"""Every value arrives as PostgreSQL prints it under the settings of docs/formats.md."""

# ruff: noqa: S608 - SQL of constants

import os
import random
from collections.abc import Callable, Iterator
from secrets import token_hex

import psycopg
import pytest
from psycopg import sql

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer
from tests.support.fixtures.spark import Backfill
from tests.support.fixtures.walstream import Stream, streamed
from tests.support.oracles.topic_reader import Reader, Record
from walstream.postgres.connection import connect

ROLE = f"hostile_{token_hex(4)}"  # a server may be shared
PUBLICATION = "walstream"
# of the role and of the database: none may change a byte
HOSTILE = {
    "DateStyle": "German, DMY",
    "bytea_output": "escape",
    "IntervalStyle": "sql_standard",
    "extra_float_digits": "0",
    "TimeZone": "Asia/Kolkata",
    "client_encoding": "LATIN1",
    "xmlbinary": "hex",
    "lc_monetary": "POSIX",
    "standard_conforming_strings": "off",
    "backslash_quote": "on",
    "search_path": "elsewhere, public",
    "client_min_messages": "error",
    "statement_timeout": "20s",
    "idle_in_transaction_session_timeout": "20s",
    "transform_null_equals": "on",
    "quote_all_identifiers": "on",
    "default_transaction_read_only": "off",
}
# what formats.md promises, written here a second time
PRINTED_UNDER = {
    "client_encoding": "UTF8",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "TimeZone": "UTC",
    "xmlbinary": "base64",
    "search_path": "pg_catalog,pg_temp",
    "lc_monetary": "C",
    "quote_all_identifiers": "off",
}
WRITTEN_UNDER = {**PRINTED_UNDER, "search_path": "public"}

TYPES = """
CREATE EXTENSION hstore;
CREATE TYPE mood AS ENUM ('sad', 'so so', 'qu"ote');
CREATE TYPE pair AS (left_side int, right_side text);
CREATE DOMAIN short AS varchar(5) CHECK (value <> 'no');
CREATE TABLE texts (id int PRIMARY KEY, t text, u text);
CREATE SCHEMA elsewhere;
CREATE DOMAIN elsewhere.kind AS int;
"""

VALUES: dict[str, list[str]] = {
    "int2": ["-32768", "32767", "0"],
    "int4": ["-2147483648", "2147483647"],
    "int8": ["-9223372036854775808", "9223372036854775807", "9007199254740993"],
    "numeric": [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e130000",
        "-1e-16000",
        "12.50",
        "0.000",
    ],
    "numeric(10,2)": ["12.5", "NaN"],
    "float4": ["1e-45", "3.4028235e38", "0.1", "NaN", "-Infinity", "-0", "16777217"],
    "float8": ["5e-324", "1.7976931348623157e308", "0.1", "NaN", "Infinity", "-0"],
    "boolean": ["true", "false"],
    "text": [
        "",
        " ",
        "\\N",
        "NULL",
        "quo\"te 'single' back\\slash / <&>",
        "".join(map(chr, range(1, 32))) + "\x7f",
        "h\u00e9 \u20ac \U0001f642 \u0301 \u200f\ufeff \u2028 \U0010ffff",
    ],
    "varchar(3)": ["abc"],
    "char(5)": ["ab", ""],
    '"char"': ["a", ""],
    "name": ["n\u00e4me"],
    "bytea": ["\\x", "\\x00ff5c27", "\\xdeadbeef"],
    "date": [
        "infinity",
        "-infinity",
        "0044-03-15 BC",
        "2024-02-29",
        "5874897-12-31",
        "4713-01-01 BC",
    ],
    "timestamp": [
        "infinity",
        "-infinity",
        "294276-12-31 23:59:59.999999",
        "4713-01-01 00:00:00 BC",
        "2024-07-05 01:02:03.4",
    ],
    "timestamptz": [
        "infinity",
        "-infinity",
        "294276-12-31 23:59:59.999999+00",
        "0001-01-01 00:00:00+05:53:28 BC",
        "2024-07-05 01:02:03.456789+02",
    ],
    "time": ["00:00:00", "24:00:00", "01:02:03.000004"],
    "timetz": ["01:02:03.4+05:30", "24:00:00-15:59:59"],
    "interval": [
        "1 year 2 months -3 days 04:05:06.000007",
        "-178000000 years",
        "0",
        "-1 day +02:03:00",
    ],
    "uuid": ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"],
    "inet": ["192.168.0.1", "192.168.0.1/24", "2001:DB8::1/64", "::ffff:1.2.3.4"],
    "cidr": ["10.0.0.0/8", "2001:db8::/32"],
    "macaddr": ["08:00:2B:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "bit(5)": ["10101"],
    "varbit": ["", "1", "0101010101"],
    "json": ['{"b": 1,  "a": [null, 1e5, "\\u00e9"], "b": 2}', "null", '"x"'],
    "jsonb": ['{"b": 1,  "a": [null, 1e5, "\\u00e9"], "b": 2}', "null", "12.50"],
    "jsonpath": ["$.a[*] ? (@ > 1)"],
    "int4[]": ["{}", "{1,NULL,-3}", "{{1,2},{3,4}}", "[0:1]={5,6}"],
    "text[]": ['{"",NULL,"NULL","a b","c\\"d","e\\\\f","{g}","h,i"}'],
    "timestamptz[]": ['{"2024-07-05 01:02:03+02",infinity}'],
    "bytea[]": ['{"\\\\x00ff"}'],
    "float8[]": ["{0.1,NaN}"],
    "interval[]": ['{"1 day 02:00:00"}'],
    "int4range": ["empty", "[1,5)", "(,)", "[3,3]"],
    "tstzrange": ['["2024-01-01 00:00:00+05:30",infinity]'],
    "daterange": ["[2024-01-01,2024-12-31]"],
    "numrange": ["(1.10,2.200)"],
    "int4multirange": ["{}", "{[1,2),[5,9)}"],
    "tsmultirange": ['{["2024-01-01 00:00:00","2024-01-02 00:00:00")}'],
    "mood": ["sad", "so so", 'qu"ote'],
    "mood[]": ['{sad,"so so","qu\\"ote"}'],
    "pair": ['(1,"a ""b"", c")', "(,)", '(,"")'],
    "pair[]": ['{"(1,x)",NULL}'],
    "short": ["yes", ""],
    "short[]": ["{a,NULL}"],
    "hstore": ['"a"=>"1", "b"=>NULL, "q"=>"x\\"y"', ""],
    "tsvector": ["fat:2A cat:1,3B 'quo''te'"],
    "tsquery": ["fat & (rat | !cat:*)"],
    "money": ["1234.56", "-0.01"],
    "point": ["(0.1,-0)", "(1e300,NaN)"],
    "line": ["{1,-1,0.5}"],
    "lseg": ["[(0,0),(1,1.5)]"],
    "box": ["(2,2),(1,0.1)"],
    "path": ["[(0,0),(1,1)]", "((0,0),(1,1),(2,0))"],
    "polygon": ["((0,0),(1,1),(2,0))"],
    "circle": ["<(1,2),3.25>"],
    "oid": ["4294967295"],
    "regclass": ["pg_catalog.pg_class", "public.texts"],
    "regtype": ["timestamp with time zone", "public.mood", "elsewhere.kind"],
    "regnamespace": ["elsewhere"],
    "pg_lsn": ["16/B374D848"],
    "xid8": ["18446744073709551615"],
    "tid": ["(4294967294,65535)"],
}
XML = {"xml": ['<a b="c">\u00e9<!-- x --></a>', "text & more".replace("&", "&amp;")]}


def columns(version: int) -> list[tuple[str, str]]:
    """Give (type, value) of each column c0, c1, ... of the table."""
    every = VALUES | (XML if version == 15 else {})  # the wheel's server has no XML
    return [(kind, text) for kind, texts in every.items() for text in texts]


def session(database: Database, **settings: str) -> psycopg.Connection:
    """Connect under these settings, which beat those of role and database."""
    wanted = {"search_path": "public", **settings}
    options = " ".join(f"-c {name}={text}" for name, text in wanted.items())
    return psycopg.connect(database.dsn, options=options, autocommit=True)


def printed(connection: psycopg.Connection, query: str) -> list[list[str | None]]:
    """Give rows in the texts of the types' own output functions."""
    result = connection.execute(query.encode()).pgresult
    assert result is not None
    rows = range(result.ntuples)
    return [
        [
            None if (value := result.get_value(row, column)) is None else value.decode()
            for column in range(result.nfields)
        ]
        for row in rows
    ]


@pytest.fixture(scope="module")
def stream(
    postgres: PostgresServer,
    kafka: KafkaServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stream]:
    """Stream as a hostile role out of a hostile database, for all tests here."""
    home = Database(postgres)
    home.execute(f"DROP ROLE IF EXISTS {ROLE}")
    home.execute(f"CREATE ROLE {ROLE} SUPERUSER LOGIN")

    def prepare(database: Database) -> None:
        database.execute(TYPES)
        kinds = [kind for kind, _ in columns(postgres.version)]
        made = ", ".join(f"c{index} {kind}" for index, kind in enumerate(kinds))
        database.execute(
            f"CREATE TABLE every_type (id int PRIMARY KEY, {made});"
            "ALTER TABLE every_type REPLICA IDENTITY FULL;"
            "CREATE TABLE names (id int PRIMARY KEY, c regclass)"
        )
        for name, text in HOSTILE.items():
            value = text if "," in text else f"'{text}'"
            for of in (f"ROLE {ROLE}", f"DATABASE {database.name}"):
                home.execute(f"ALTER {of} SET {name} = {value}")

    try:
        with streamed(
            postgres,
            kafka,
            tmp_path_factory.mktemp("types"),
            before=prepare,
            user=ROLE,
            sink={"topic_config": {"max.message.bytes": 12_000_000}},
            environment={"PGTZ": "Asia/Tokyo", "PGDATESTYLE": "SQL"},
        ) as running:
            yield running
    finally:
        home.execute(f"DROP ROLE {ROLE}")


@pytest.mark.parametrize("how", ["Insert", "Update", "Delete"])
def test_every_type_arrives_as_it_is_printed(stream: Stream, how: str) -> None:
    every = columns(stream.database.server.version)
    key = {"Insert": 1, "Update": 2, "Delete": 3}[how]
    with session(stream.database, **PRINTED_UNDER) as connection:
        marks = ", ".join(["%s"] * len(every))
        connection.execute(
            f"INSERT INTO public.every_type VALUES ({key}, {marks})",
            [text for _, text in every],
        )
        query = f"SELECT * FROM public.every_type WHERE id = {key}"
        (wanted,) = printed(connection, query)
        if how == "Update":
            connection.execute(f"UPDATE public.every_type SET id = id WHERE id = {key}")
        elif how == "Delete":
            connection.execute(f"DELETE FROM public.every_type WHERE id = {key}")

    number = 1 if how == "Insert" else 2
    stream.reader.until(lambda _: len(mine(stream, "every_type", key)) == number)
    op = mine(stream, "every_type", key)[-1].op
    assert op.kind.value == how
    rows = [row for row in (op.old, op.new) if row is not None]
    assert len(rows) == (2 if how == "Update" else 1)
    for row in rows:
        differing = [
            (kind, text, row[index], wanted[index])
            for index, (kind, text) in enumerate(every, 1)
            if row[index] != wanted[index]
        ]
        assert not differing
        assert len(row) == len(wanted)


def mine(stream: Stream, table: str, key: int) -> list[Record]:
    """Give the records of one row of a table, in order."""
    return [
        record
        for record in stream.reader.of(table)
        if (record.op.new or record.op.old or [None])[0] == str(key)
    ]


def test_the_hostile_settings_would_change_what_is_printed(stream: Stream) -> None:
    values = (
        "SELECT 'a'::bytea, now(), now()::date, '1 day 2 hours'::interval,"
        " 0.1::float8 + 0.2::float8"
    )
    with session(stream.database, **PRINTED_UNDER) as connection:
        promised = printed(connection, values)
    with psycopg.connect(stream.walstream.dsn) as connection:
        hostile = printed(connection, values)
    assert not set(promised[0]) & set(hostile[0])


def test_a_row_of_nulls_is_nulls(stream: Stream) -> None:
    stream.database.execute("INSERT INTO public.every_type (id) VALUES (10)")
    stream.reader.until(lambda _: mine(stream, "every_type", 10))
    (record,) = mine(stream, "every_type", 10)
    assert record.op.new == ["10"] + [None] * (len(record.op.table.columns) - 1)


def test_an_empty_string_and_null_stay_apart(stream: Stream) -> None:
    stream.database.execute("INSERT INTO public.texts VALUES (1, '', NULL)")
    stream.reader.until(lambda _: mine(stream, "texts", 1))
    (record,) = mine(stream, "texts", 1)
    assert record.value.endswith(b'{"Insert":["1","",null]}}')


def test_ten_megabytes_of_text_arrive_whole(stream: Stream) -> None:
    text = "0123456789 \u00e9\u20ac\U0001f642\n" * 530_000
    assert len(text.encode()) > 10 << 20
    with session(stream.database, client_encoding="UTF8") as connection:
        connection.execute("INSERT INTO texts VALUES (2, %s, 'x')", [text])
    stream.reader.until(lambda _: mine(stream, "texts", 2))
    (record,) = mine(stream, "texts", 2)
    assert record.op.new == ["2", text, "x"]


def test_a_search_path_changes_no_byte(stream: Stream) -> None:
    with session(stream.database) as connection:
        connection.execute("INSERT INTO texts VALUES (3, 'x')")
        connection.execute("INSERT INTO names VALUES (1, 'public.texts')")
    stream.reader.until(lambda _: mine(stream, "names", 1))
    (record,) = mine(stream, "names", 1)
    assert record.op.new == ["1", "public.texts"]


def test_a_session_prints_as_promised_whatever_role_and_database_say(
    stream: Stream,
) -> None:
    for connection in (
        connect(stream.walstream.dsn),
        connect(stream.walstream.dsn, replication=True),
    ):
        with connection:
            for name, text in PRINTED_UNDER.items():
                (shown,) = connection.execute(f"SHOW {name}".encode()).fetchone() or ()
                assert shown.partition(", MDY")[0].replace(", ", ",") == text, name


def test_a_snapshot_prints_every_type_as_the_stream_does(
    stream: Stream,
    backfills: Callable[..., Backfill],
    topic_prefix: str,
    kafka: KafkaServer,
) -> None:
    every = columns(stream.database.server.version)
    with session(stream.database, **PRINTED_UNDER) as connection:
        marks = ", ".join(["%s"] * len(every))
        for key in (20, 21):
            values = [text if key == 20 else None for _, text in every]
            connection.execute(
                f"INSERT INTO public.every_type VALUES ({key}, {marks})", values
            )
    stream.reader.until(lambda _: mine(stream, "every_type", 21))
    streamed_records = [mine(stream, "every_type", key)[0] for key in (20, 21)]
    backfills(stream.walstream.dsn, publications=(PUBLICATION,)).read(
        "public.every_type"
    )
    with Reader(kafka.bootstrap, topic_prefix) as reader:
        found = {
            record.key: record
            for record in reader.until(
                lambda records: {b'["20"]', b'["21"]'} <= {r.key for r in records}
            )
        }
    for record in streamed_records:
        read = found[record.key]
        assert read.op.table.columns == record.op.table.columns
        assert body(read) == body(record)


def body(record: Record) -> bytes:
    """Give the row's own bytes."""
    return record.value.partition(b'"op":')[2].replace(b',"snapshot":true}', b"}")


def generated(choose: random.Random, name: str, kinds: list[str]) -> tuple[str, str]:
    """Make up a table: its SQL, and that of its rows; any types, gaps and a key."""
    chosen = [choose.choice(kinds) for _ in range(choose.randint(1, 8))]
    made = [f'"c {index}" {kind}' for index, kind in enumerate(chosen)]
    ddl = f"CREATE TABLE {name} (id int, gone text, {', '.join(made)}"
    if choose.random() < 0.3:
        ddl += ", twice int GENERATED ALWAYS AS (id * 2) STORED"
    ddl += f", PRIMARY KEY (id)); ALTER TABLE {name} DROP gone;"
    if choose.random() < 0.5:
        ddl += f"ALTER TABLE {name} REPLICA IDENTITY FULL;"
    if choose.random() < 0.3:
        ddl += f"ALTER TABLE {name} ADD later text DEFAULT 'it was added';"
    listed = ", ".join(["id", *(f'"c {index}"' for index in range(len(chosen)))])
    rows = [
        [str(row), *(value_of(choose, kind) for kind in chosen)] for row in range(5)
    ]
    written = ", ".join(
        "(" + ", ".join("NULL" if v is None else quoted(v) for v in row) + ")"
        for row in rows
    )
    return ddl, f"INSERT INTO {name} ({listed}) VALUES {written};"


def value_of(choose: random.Random, kind: str) -> str | None:
    return None if choose.random() < 0.2 else choose.choice(VALUES[kind])


def quoted(text: str) -> str:
    return sql.Literal(text).as_string(None)


def test_tables_that_are_made_up_print_as_the_stream_does(
    stream: Stream,
    backfills: Callable[..., Backfill],
    topic_prefix: str,
    kafka: KafkaServer,
) -> None:
    seed = int(os.environ.get("WALSTREAM_TEST_SEED", "7"))
    choose = random.Random(seed)  # noqa: S311 - a test's tables
    kinds = sorted(VALUES)
    names = [f"made_{number}" for number in range(12)]
    with session(stream.database, **WRITTEN_UNDER) as connection:
        for name in names:
            ddl, rows = generated(choose, name, kinds)
            connection.execute(ddl.encode())
            connection.execute(f"ALTER PUBLICATION {PUBLICATION} ADD TABLE {name}")
            connection.execute(rows.encode())
    stream.reader.until(lambda _: all(mine(stream, name, 4) for name in names))
    backfills(stream.walstream.dsn, publications=(PUBLICATION,)).read(
        *(f"public.{name}" for name in names)
    )
    with Reader(kafka.bootstrap, topic_prefix) as reader:
        records = reader.count(5 * len(names))
    for name in names:
        for key in range(5):
            (read,) = [
                record
                for record in records
                if (record.op.table.name, record.key) == (name, f'["{key}"]'.encode())
            ]
            (streamed_record,) = mine(stream, name, key)
            assert read.op.table.columns == streamed_record.op.table.columns, seed
            assert body(read) == body(streamed_record), (seed, name)
