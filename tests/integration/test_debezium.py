"""The formats debezium and debezium_row, from a server's WAL into topics."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream, toml

pytestmark = pytest.mark.same_on_15

TABLE = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (id int PRIMARY KEY, v text, m mood DEFAULT 'ok', n numeric(6, 2));
ALTER TABLE t REPLICA IDENTITY FULL;
CREATE TABLE log (v text);
INSERT INTO t VALUES (1, 'before', 'sad', 1.5);
"""
CHANGES = """
INSERT INTO t VALUES (2, 'two', 'ok', 2);
UPDATE t SET v = 'one' WHERE id = 1;
UPDATE t SET id = 3 WHERE id = 2;
DELETE FROM t WHERE id = 1;
INSERT INTO log VALUES ('a');
TRUNCATE log;
INSERT INTO log VALUES ('b');
"""


def read(value: bytes | None) -> Any:
    return None if value is None else json.loads(value)


@pytest.fixture
def documents(kafka: KafkaServer, topic_prefix: str) -> Iterator[Reader]:
    with Reader(kafka.bootstrap, topic_prefix, read) as opened:
        yield opened


Run = Callable[..., Walstream]


@pytest.fixture
def run(database: Database, runs: Runs) -> Run:
    database.execute(TABLE)

    def made(form: str = "debezium", **debezium: Any) -> Walstream:
        sink = debezium.pop("sink", {})
        return runs(
            database.dsn,
            sink={"format": form, "debezium": {"name": "app", **debezium}, **sink},
            source={"backfill": "initial"},
        )

    return made


def document(record: Record) -> Any:
    """Return the record's value; None is a tombstone."""
    found: Any = record.op  # as `read` made it
    return found


def of(records: list[Record], table: str) -> list[Record]:
    found = [one for one in records if one.topic.endswith(f".{table}")]
    return sorted(found, key=lambda one: (one.partition, one.offset))


def shown(record: Record) -> tuple[Any, ...]:
    found = document(record)
    if found is None:
        return read(record.key), None
    return (
        read(record.key),
        found["op"],
        found["before"] and found["before"]["v"],
        found["after"] and found["after"]["v"],
    )


def test_changes_and_rows_of_before_are_debeziums_records(
    database: Database, run: Run, documents: Reader
) -> None:
    with run(sink={"topic_partitions": 1, "on_truncate": "send"}) as walstream:
        walstream.until("backfill ended")
        database.execute(CHANGES)
        documents.until(lambda records: len(records) >= 11)
    records = documents.records
    assert [shown(one) for one in of(records, "t")] == [
        ({"id": 1}, "r", None, "before"),
        ({"id": 2}, "c", None, "two"),
        ({"id": 1}, "u", "before", "one"),
        ({"id": 2}, "d", "two", None),
        ({"id": 2}, None),
        ({"id": 3}, "c", None, "two"),
        ({"id": 1}, "d", "one", None),
        ({"id": 1}, None),
    ]
    assert [shown(one) for one in of(records, "log")] == [
        (None, "c", None, "a"),
        (None, "t", None, None),
        (None, "c", None, "b"),
    ]
    first, *_ = of(records, "t")
    source = document(first)["source"]
    assert (source["snapshot"], source["name"], source["db"]) == (
        "true",
        "app",
        database.name,
    )
    moved = [dict(one.headers) for one in of(records, "t")[3:6]]
    assert [json.loads(one["__debezium.newkey"]) for one in moved[:2]] == [
        {"id": 3}
    ] * 2
    assert json.loads(moved[2]["__debezium.oldkey"]) == {"id": 2}
    positions = [dict(one.headers).get("walstream-position") for one in records]
    assert None not in positions
    lsn = int(positions[-1].split(b"/")[0]) if positions[-1] else 0
    assert lsn > source["lsn"] > 0


def test_a_killed_one_sends_the_same_bytes_but_for_the_time_of_processing(
    database: Database, run: Run, documents: Reader
) -> None:
    """Facts change in the middle, and the catalog is another by the replay."""
    walstream = run(schemas=True, transaction_block=True)
    with walstream:
        walstream.until("backfill ended")
        database.execute("INSERT INTO t VALUES (10, 'a', 'ok', 1)")
        documents.until(lambda records: len(records) >= 2)  # its facts are known
        database.execute("ALTER TABLE t ALTER v SET NOT NULL, ALTER v SET DEFAULT 'x'")
        database.execute("INSERT INTO t VALUES (11, 'b', 'ok', 1)")
        documents.until(lambda records: len(records) >= 3)
        database.execute("ALTER TYPE mood ADD VALUE 'glad'")
        database.execute("INSERT INTO t VALUES (12, 'c', 'glad', 1)")
        documents.until(lambda records: len(records) >= 4)
        walstream.kill()
    database.execute("ALTER TABLE t ALTER v DROP NOT NULL, ALTER v DROP DEFAULT")
    database.execute("ALTER TYPE mood ADD VALUE 'new'")
    with walstream:
        walstream.streaming()
        database.execute("INSERT INTO t VALUES (13, 'd', 'new', 1)")
        documents.until(
            lambda records: any(
                document(one)["payload"]["after"]["id"] == 13 for one in records
            )
        )
    written: dict[int, list[Any]] = {}
    for record in of(documents.records, "t"):
        payload = document(record)["payload"]
        for field in ("ts_ms", "ts_us", "ts_ns"):
            payload.pop(field)
        written.setdefault(payload["after"]["id"], []).append(document(record))
    for row, found in written.items():
        assert all(one == found[0] for one in found), row

    def column(row: int, name: str) -> Any:
        (after,) = (
            one
            for one in written[row][0]["schema"]["fields"]
            if one["field"] == "after"
        )
        (found,) = (one for one in after["fields"] if one["field"] == name)
        return found

    assert [column(row, "v")["optional"] for row in (1, 10, 11, 12, 13)] == [
        *(True, True, False, False, True)
    ]
    allowed = [column(row, "m")["parameters"]["allowed"] for row in (10, 11, 12, 13)]
    assert allowed == ["sad,ok", "sad,ok", "sad,ok,glad", "sad,ok,glad,new"]


def test_rows_alone_with_deletes_as_tombstones(
    database: Database, run: Run, documents: Reader
) -> None:
    with run("debezium_row", add_fields=["op", "source.snapshot"]) as walstream:
        walstream.until("backfill ended")
        database.execute(CHANGES)
        documents.until(lambda records: len(records) >= 7)
    found = [
        (read(one.key), (row := document(one)) and (row["v"], row["__op"]))
        for one in sorted(of(documents.records, "t"), key=lambda one: one.timestamp)
    ]
    assert sorted(map(str, found)) == sorted(
        map(
            str,
            [
                ({"id": 1}, ("before", "r")),
                ({"id": 2}, ("two", "c")),
                ({"id": 1}, ("one", "u")),
                ({"id": 2}, None),
                ({"id": 3}, ("two", "c")),
                ({"id": 1}, None),
            ],
        )
    )


def test_tables_that_debezium_spells_alike_are_refused(
    database: Database, run: Run
) -> None:
    database.execute(
        'CREATE TABLE "a b" (id int PRIMARY KEY); CREATE TABLE a_b (id int)'
    )
    walstream = run().start()
    assert walstream.wait() == 2
    assert "would share the topic" in walstream.text


LARGE = "x" * (2 << 20)  # such a row is not looked at where it is only passed on


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_a_large_row_is_deleted_and_moved_as_any_other(
    database: Database, run: Run, documents: Reader, identity: str
) -> None:
    database.execute(f"ALTER TABLE t REPLICA IDENTITY {identity}")
    sizes = {"max.message.bytes": "20000000"}
    with run("debezium_row", sink={"topic_partitions": 1, "topic_config": sizes}):
        documents.until(lambda records: len(records) >= 1)
        for statement in (
            "INSERT INTO t (id, v) VALUES (5, %s)",
            "UPDATE t SET id = 6, v = %s WHERE id = 5",
        ):
            database.execute(statement, LARGE)
        database.execute("DELETE FROM t WHERE id = 6")
        documents.until(lambda records: len(records) >= 5)
    found = [
        (read(one.key)["id"], (row := document(one)) and len(row["v"]))
        for one in of(documents.records, "t")[1:]
    ]
    assert found == [(5, 2 << 20), (5, None), (6, 2 << 20), (6, None)]


def test_the_key_of_another_sink_splits_no_update_of_this_one(
    database: Database, run: Run, documents: Reader, topic_prefix: str
) -> None:
    other = f"{topic_prefix}other"
    database.execute("ALTER TABLE t ALTER v SET NOT NULL")
    walstream = run(sink={"topic_partitions": 1})
    walstream.others = {
        "other": {
            "topic": "",
            "topics": {"public.t": {"name": other, "partition_key": ["v"]}},
        }
    }
    with walstream:
        walstream.until("backfill ended")
        database.execute("UPDATE t SET v = 'moved' WHERE id = 1")
        documents.until(lambda records: len(of(records, "t")) >= 2)
    _, update = of(documents.records, "t")
    assert shown(update) == ({"id": 1}, "u", "before", "moved")
    assert "__debezium.newkey" not in dict(update.headers)


def test_values_that_a_backfill_loses_are_logged_and_counted(
    database: Database, run: Run, documents: Reader
) -> None:
    database.execute(
        "INSERT INTO t SELECT i, 'v', 'ok', 'NaN' FROM generate_series(4, 6) i"
    )
    with run() as walstream:
        walstream.until("backfill ended")
        documents.until(lambda records: len(records) >= 4)
    (first,) = walstream.said("a value has no form in Debezium's records")
    (whole,) = walstream.said("values of the backfill had no form")
    assert (first["table"], first["column"], first["sink"]) == (
        "public.t",
        "n",
        "kafka",
    )
    assert (whole["column"], whole["count"]) == ("n", 3)
    assert [document(one)["after"]["n"] for one in of(documents.records, "t")].count(
        None
    ) == 3


def test_check_names_a_key_of_a_type_without_a_form(
    database: Database, run: Run
) -> None:
    database.execute(
        "CREATE TYPE pair AS (a int, b int);"
        "CREATE TABLE k (p pair PRIMARY KEY, m mood);"
        "CREATE TABLE plain (m mood PRIMARY KEY, l pg_lsn)"
    )
    (source,) = checked(run())
    found = [one for one in source["findings"] if one["code"] == "key-form"]
    assert [one["subject"] for one in found] == ["table public.k"]
    assert "column 'p' of the key" in found[0]["what"]
    assert source["exit_code"] == 3
    assert "key-form" not in str(checked(run(unknown=True)))


def checked(walstream: Walstream) -> Any:
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    done = verb(walstream.configuration, "check", "--json")
    return json.loads(done.stdout)["sources"]
