"""The formats of older tools, by a real run: every type, streamed and backfilled."""

# ruff: noqa: S608 - SQL of constants

import csv
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.integration.test_beside import ask
from tests.integration.test_types import (
    PRINTED_UNDER,
    PUBLICATION,
    TYPES,
    columns,
    printed,
    session,
)
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer
from tests.support.fixtures.spark import Backfill
from tests.support.fixtures.walstream import Stream, streamed
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.plugin_package import example, install
from walstream.formats.event import EventRecord, Number, decode
from walstream.op import Kind
from walstream.records.partitioner import fnv1a

pytestmark = pytest.mark.same_on_15

OWN_TYPES = """
CREATE DOMAIN counter AS int8 CHECK (value > 0);
CREATE DOMAIN counters AS int4[];
CREATE DOMAIN moods AS mood[];
"""
OWN = [
    ("counter", "9007199254740993"),
    ("counters", "{1,NULL}"),
    ("moods", '{sad,"so so"}'),
    ("int8[]", "{9007199254740993}"),
    ("numeric[]", "{1.10,NaN}"),
    ("jsonb[]", '{"{\\"a\\": 1.50}",NULL}'),
    ("box[]", "{(2,2),(1,0.1);NULL}"),
    ("date[]", "{2024-02-29,-infinity}"),
    ("boolean[]", "{t,f,NULL}"),
    ("json", '{"a":\n 1e400}'),
]
NUMBERS = {"int2", "int4", "int8", "float4", "float8", "counter"}
RFC_3339 = {
    "2024-02-29": "2024-02-29T00:00:00Z",
    "2024-07-05 01:02:03.4": "2024-07-05T01:02:03.4Z",
    "2024-07-04 23:02:03.456789+00": "2024-07-04T23:02:03.456789Z",
}
ARRAYS = {
    "int4[]": ["[]", "[1,null,-3]", "[[1,2],[3,4]]", "[5,6]"],
    "text[]": [r'["",null,"NULL","a b","c\"d","e\\f","{g}","h,i"]'],
    "timestamptz[]": ['["2024-07-04T23:02:03Z","infinity"]'],
    "bytea[]": [r'["\\x00ff"]'],
    "float8[]": ['[0.1,"NaN"]'],
    "interval[]": ['["1 day 02:00:00"]'],
    "mood[]": [r'["sad","so so","qu\"ote"]'],
    "pair[]": ['["(1,x)",null]'],
    "short[]": ['["a",null]'],
    "counters": ["[1,null]"],
    "moods": ['["sad","so so"]'],
    "int8[]": ["[9007199254740993]"],
    "numeric[]": ['["1.10","NaN"]'],
    "jsonb[]": ['[{"a":1.50},null]'],
    "box[]": ['["(2,2),(1,0.1)",null]'],
    "date[]": ['["2024-02-29T00:00:00Z","-infinity"]'],
    "boolean[]": ["[true,false,null]"],
}


def exact(text: str) -> Any:
    return json.loads(text, parse_int=Number, parse_float=Number)


def expected(kinds: list[str], texts: list[str | None]) -> dict[str, Any]:
    """Say what a row's columns are, by the document's table of types."""
    arrays = {kind: iter(values) for kind, values in ARRAYS.items()}
    found: dict[str, Any] = {}
    for index, (kind, text) in enumerate(zip(kinds, texts, strict=True)):
        value: Any = text
        if kind in arrays:
            value = exact(next(arrays[kind]))
        elif kind == "boolean":
            value = text == "t"
        elif kind in {"json", "jsonb"}:
            value = exact(text or "")
        elif kind in {"date", "timestamp", "timestamptz"}:
            value = RFC_3339.get(text or "", text)
        elif kind in NUMBERS and text not in {"NaN", "Infinity", "-Infinity"}:
            value = Number(text)
        found[f"c{index}"] = value
    return found


def differing(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Compare what is printed: a Number is also a str, and 1 is also True."""
    return {
        name: (found.get(name), value)
        for name, value in wanted.items()
        if repr(found.get(name)) != repr(value)
    }


def body(record: Record) -> bytes:
    """Give the columns' own bytes."""
    return record.value.partition(b'"Columns":')[2]


def event(record: Record) -> EventRecord:
    return cast("EventRecord", record.op)


def of(stream: Stream, table: str) -> list[Record]:
    return [one for one in stream.reader.records if event(one).table == table]


def test_every_type_arrives_as_an_event_streamed_and_backfilled(
    postgres: PostgresServer,
    kafka: KafkaServer,
    tmp_path: Path,
    backfills: Callable[..., Backfill],
) -> None:
    every = columns(postgres.version) + OWN
    kinds = [kind for kind, _ in every]
    sink = {"format": "event", "key": "event", "partitioner": "fnv1a"}

    def prepare(database: Database) -> None:
        made = ", ".join(f"c{index} {kind}" for index, kind in enumerate(kinds))
        database.execute(TYPES + OWN_TYPES)
        database.execute(f"CREATE TABLE every_type (id int PRIMARY KEY, {made})")

    with streamed(
        postgres,
        kafka,
        tmp_path,
        before=prepare,
        decode=decode,
        sink={**sink, "topic_partitions": 4},
    ) as stream:
        stream.walstream.streaming_said()
        with session(stream.database, **PRINTED_UNDER) as connection:
            marks = ", ".join(["%s"] * len(every))
            for key in (1, 2):
                values = [text if key == 1 else None for _, text in every]
                connection.execute(
                    f"INSERT INTO public.every_type VALUES ({key}, {marks})", values
                )
            ((_, *texts),) = printed(
                connection, "SELECT * FROM public.every_type WHERE id = 1"
            )
            connection.execute("UPDATE public.every_type SET c0 = c0 WHERE id = 1")
        stream.reader.until(lambda _: len(of(stream, "every_type")) == 3)
        first, nulls, update = sorted(
            of(stream, "every_type"), key=lambda record: event(record).row_lsn
        )

        wanted = {**expected(kinds, texts), "id": Number("1")}
        assert not differing(event(first).columns(), wanted)
        assert list(event(first).columns()) == sorted(wanted)
        updated = event(update).columns()
        assert len(wanted) // 2 < len(updated) < len(wanted)  # some are toasted
        assert not differing(wanted, updated)
        assert event(nulls).columns() == {**dict.fromkeys(wanted), "id": Number("2")}
        check_envelope(stream, event(first), first.key)
        assert first.partition == fnv1a(first.key, 4)
        assert len({event(record).uuid for record in (first, nulls, update)}) == 3

        ask(stream.walstream, "public.every_type")
        stream.reader.until(lambda _: len(of(stream, "every_type")) == 5)
        prefix = f"test_{token_hex(6)}."
        backfills(
            stream.walstream.dsn,
            publications=(PUBLICATION,),
            prefix=prefix,
            sink=sink,
        ).read("public.every_type")
        with Reader(kafka.bootstrap, prefix, decode) as reader:
            beside = of(stream, "every_type")[-2:]
            for again in (beside, reader.count(2)):
                assert sorted(map(body, again)) == sorted(map(body, (first, nulls)))
                assert all(r.key.endswith(b":every_type:insert") for r in again)
                assert all(event(record).kind is Kind.INSERT for record in again)
                assert all(event(record).row_lsn for record in again)

        stream.database.execute("DELETE FROM every_type WHERE id = 1")
        stream.database.execute("TRUNCATE every_type")
        stream.reader.until(lambda _: len(of(stream, "every_type")) == 10)
        last = of(stream, "every_type")[5:]
        (delete,) = [one for one in last if event(one).kind is Kind.DELETE]
        truncates = [one for one in last if one is not delete]
        assert event(delete).columns() == {**dict.fromkeys(wanted), "id": Number("1")}
        assert {event(record).kind for record in truncates} == {Kind.TRUNCATE}
        assert {record.partition for record in truncates} == {0, 1, 2, 3}
        assert len({event(record).uuid for record in truncates}) == 1


def check_envelope(stream: Stream, op: EventRecord, key: bytes) -> None:
    named = conninfo_to_dict(stream.database.dsn)
    assert (op.host, op.database) == (named["host"], stream.database.name)
    assert op.kind is Kind.INSERT
    assert key.decode() == f"{op.host}:{op.database}:every_type:insert"
    age = datetime.now(UTC) - datetime.fromisoformat(op.timestamp)
    assert 0 <= age.total_seconds() < 60


def fields(record: Record) -> dict[str, Any]:
    return cast("dict[str, Any]", record.op)


def test_tungsten_records_tell_a_transaction_as_its_applier_does(
    postgres18: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    prefix = f"test_{token_hex(6)}_"
    with streamed(
        postgres18,
        kafka,
        tmp_path,
        prefix=prefix,
        before="CREATE TABLE msg (note text, id int PRIMARY KEY, big text);"
        "ALTER TABLE msg ALTER big SET STORAGE EXTERNAL",
        decode=json.loads,
        sink={
            "format": "tungsten",
            "key": "tspkeyus",
            "topic": prefix + "{schema}_{table}",
            "partitioner": "crc32",
        },
    ) as stream:
        big = "x" * 3000
        for statement in (
            f"INSERT INTO msg VALUES ('a', 1, '{big}'), (NULL, 2, 'b')",
            "TRUNCATE msg",
            f"INSERT INTO msg VALUES ('c', 3, '{big}')",
            "UPDATE msg SET note = 'd' WHERE id = 3",
            "UPDATE msg SET id = 4 WHERE id = 3",
        ):
            stream.database.execute(statement)
        stream.reader.count(6)  # a toasted value was read from the row while it stood
        stream.database.execute("DELETE FROM msg WHERE id = 4")
        records = stream.reader.count(7)
        said = [entry for entry in stream.walstream.log if "TRUNCATE" in entry["event"]]

    assert [(fields(r)["_optype"], fields(r)["record"]) for r in records] == [
        ("INSERT", {"note": "a", "id": "1", "big": big}),
        ("INSERT", {"note": None, "id": "2", "big": "b"}),
        ("INSERT", {"note": "c", "id": "3", "big": big}),
        ("UPDATE", {"note": "d", "id": "3"}),
        ("DELETE", {"id": "3"}),
        ("INSERT", {"note": "d", "id": "4", "big": big}),
        ("DELETE", {"id": "4"}),
    ]
    assert {record.topic for record in records} == {f"{prefix}public_msg"}
    assert records[0].key == b"public_msg_1"
    assert records[4].key == b"public_msg_3"
    numbers = [int(fields(record)["_seqno"]) for record in records]
    assert numbers == sorted(numbers)
    assert [numbers.count(number) for number in numbers] == [2, 2, 1, 1, 2, 2, 1]
    for record in records:
        named = fields(record)["_source_schema"], fields(record)["_source_table"]
        assert named == ("public", "msg")
        committed = datetime.fromisoformat(f"{fields(record)['_committime']}+00:00")
        since = committed - datetime.fromtimestamp(0, UTC)
        assert since // timedelta(milliseconds=1) == record.timestamp
    assert len(said) == 1


def test_a_transaction_is_told_in_its_records_or_in_a_topic_of_its_own(
    postgres18: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    prefix = f"test_{token_hex(6)}."
    topic = f"{prefix}transactions"
    with streamed(
        postgres18,
        kafka,
        tmp_path,
        prefix=prefix,
        before="CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int)",
        decode=json.loads,
        sink={"format": "tungsten", "txinfo": "records", "txinfo_max_rows": 3},
    ) as stream:
        stream.database.execute(
            "BEGIN; INSERT INTO t VALUES (1), (2); INSERT INTO u VALUES (1); COMMIT"
        )
        stream.database.execute("INSERT INTO t SELECT generate_series(3, 6)")
        records = stream.reader.count(7)
        told = {"txinfo_rowcount": "3"}
        told |= {"txinfo_rowcount_public.t": "2", "txinfo_rowcount_public.u": "1"}
        by_number: dict[str, list[Any]] = {}
        for record in records:
            infos = by_number.setdefault(fields(record)["_seqno"], [])
            infos.append(fields(record).get("txinfo"))
        assert sorted(by_number.values(), key=len) == [[told] * 3, [None] * 4]

        assert stream.walstream.terminate() == 0
        stream.walstream.sink = {"txinfo": topic}
        stream.walstream.start().streaming()
        stream.database.execute(
            "BEGIN; DELETE FROM t WHERE id < 3; INSERT INTO u VALUES (2); COMMIT"
        )
        records = stream.reader.count(11)[7:]
        (own,) = [record for record in records if record.topic == topic]
        (number,) = {fields(r)["lsn"] for r in records if r.topic != topic}
        assert own.key.decode() == fields(own)["_seqno"] == str(number)
        assert fields(own)["txinfo"] == told
        assert stream.walstream.terminate() == 0


def test_a_format_of_ones_own_is_sent_by_its_name(
    postgres18: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    install(
        installed,
        "walstream.formats",
        "csv = own_format:CsvEncoder",
        example("own_format"),
    )
    with streamed(
        postgres18,
        kafka,
        tmp_path / "run",
        before="CREATE TABLE t (id int PRIMARY KEY, v text)",
        decode=lambda value: next(csv.reader([value.decode()])),
        sink={"format": "csv"},
        environment={"PYTHONPATH": str(installed)},
    ) as stream:
        stream.database.execute("INSERT INTO t VALUES (1, 'a,b'), (2, NULL)")
        rows = [cast("list[str]", record.op) for record in stream.reader.count(2)]
    assert [row[1:] for row in rows] == [
        ["0", "Insert", "public.t", "1", "a,b"],
        ["1", "Insert", "public.t", "2", ""],
    ]
