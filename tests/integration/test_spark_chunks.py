"""Chunks on Spark: every row once, numbered, as the stream would send it."""

# ruff: noqa: S608 - SQL of constants

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from tests.support.fixtures.postgres import Database
from tests.support.fixtures.spark import HEADER, LSN, Backfill, OwnSpark
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.canary import Canaries
from walstream.errors import ConfigError, PermissionLacking
from walstream.op import Kind
from walstream.records.partitioner import murmur2
from walstream.sources.postgres.backfill.chunk import (
    Chunk,
    SnapshotGone,
    TableRewritten,
)
from walstream.spark.jobs import run
from walstream.spark.outcome import ChunkDone, ChunkFailed, ChunkPostponed
from walstream.spark.session import SparkRuntime

pytestmark = pytest.mark.same_on_15

Backfills = Callable[..., Backfill]
ROWS = 3000
ORDERS = f"""
CREATE TABLE orders (id bigint PRIMARY KEY, gone int, note text, at timestamptz);
ALTER TABLE orders DROP gone;
INSERT INTO orders SELECT i, CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN ''
  WHEN 2 THEN E'back\\\\slash \\t tab \\n line \\r' WHEN 3 THEN '\\N'
  ELSE 'ordinary ' || repeat('é"', i % 50) END, now() FROM generate_series(1, {ROWS}) i;
CREATE TABLE small (a int, b text, PRIMARY KEY (b, a));
INSERT INTO small VALUES (1, 'x'), (2, 'y');
CREATE PUBLICATION walstream FOR ALL TABLES;
"""


def of(records: list[Record], table: str) -> list[Record]:
    return [record for record in records if record.op.table.name == table]


def rows(records: list[Record]) -> list[tuple[Any, ...]]:
    return sorted(tuple(record.op.new or ()) for record in records)


def stored(database: Database, query: str) -> list[tuple[Any, ...]]:
    return sorted(database.fetch(query))


def test_every_row_arrives_once_numbered_by_chunk_and_index(
    database: Database, spark: SparkRuntime, backfills: Backfills, reader: Reader
) -> None:
    database.execute(ORDERS)
    backfill = backfills(database.dsn)
    began = time.time()
    done: list[ChunkDone] = []
    with backfill.holding() as snapshot:
        planned = backfill.plan("public.small", "public.orders", chunk_bytes=40_000)
        database.execute("DELETE FROM orders WHERE id % 2 = 0; DELETE FROM small")
        database.execute("INSERT INTO orders VALUES (-1)")
        task = backfill.task(snapshot, planned)
        run(spark, planned, task, done.append)
    records = reader.count(ROWS + 2)

    assert planned[-1].relation.name == "small"  # the biggest first
    assert len(planned) > 4
    assert sorted(one.number for one in done) == list(range(1, len(planned) + 1))
    assert {record.op.new[0] for record in of(records, "orders") if record.op.new} == {
        str(number) for number in range(1, ROWS + 1)
    }
    assert rows(of(records, "small")) == [("1", "x"), ("2", "y")]
    for record in records:
        assert record.kind is Kind.INSERT
        assert record.op.snapshot
        assert record.op.lsn == LSN
        assert record.partition == murmur2(record.key, 3)
        assert began - 1 < record.timestamp / 1000 < time.time() + 1
    assert of(records, "small")[0].key in {b'["1","x"]', b'["2","y"]'}
    numbers = sorted(record.op.seq_id for record in records)
    for one in done:
        mine = [number & 0xFFFFFFFF for number in numbers if number >> 32 == one.number]
        assert mine == list(range(one.rows))
    assert sum(one.rows for one in done) == ROWS + 2
    assert sum(one.bytes for one in done) == sum(
        len(record.key) + len(record.value) for record in records
    )


def test_each_partition_has_a_chunk_in_its_order_and_one_header_of_it(
    database: Database, spark: SparkRuntime, backfills: Backfills, reader: Reader
) -> None:
    database.execute(ORDERS)
    done = backfills(database.dsn).run(spark, "public.orders", chunk_bytes=80_000)
    records = reader.count(ROWS)
    last: dict[tuple[int, int], int] = {}
    for record in sorted(records, key=lambda record: record.offset):
        chunk, index = divmod(record.op.seq_id, 1 << 32)
        place = (record.partition, chunk)
        assert last.get(place, -1) < index
        headers = [] if place in last else [("walstream-source", HEADER)]
        assert record.headers == headers
        last[place] = index
    for one in done:
        assert one.last["k"] == {
            partition: max(
                record.offset
                for record in records
                if (record.partition, record.op.seq_id >> 32) == (partition, one.number)
            )
            for partition in {p for p, chunk in last if chunk == one.number}
        }


def test_a_chunk_repeats_byte_for_byte(
    database: Database, spark: SparkRuntime, backfills: Backfills, reader: Reader
) -> None:
    database.execute(ORDERS)
    backfill = backfills(database.dsn, partitions=1)
    with backfill.holding() as snapshot:
        planned = backfill.plan("public.orders", chunk_bytes=1 << 20)
        database.execute("UPDATE orders SET note = 'other' WHERE id % 3 = 0")
        task = backfill.task(snapshot, planned)
        for _ in range(2):
            run(spark, planned, task, lambda _done: None)
    records = sorted(reader.count(2 * ROWS), key=lambda record: record.offset)
    values = [record.value for record in records]
    assert values[:ROWS] == values[ROWS:]


def test_leaves_of_a_partition_root_go_out_as_the_root(
    database: Database, spark: SparkRuntime, backfills: Backfills, reader: Reader
) -> None:
    database.execute("""
CREATE TABLE root (id int, kind text, v text, PRIMARY KEY (id, kind))
  PARTITION BY LIST (kind);
CREATE TABLE leaf_a (v text, extra int, kind text NOT NULL, id int NOT NULL);
ALTER TABLE leaf_a DROP extra;
ALTER TABLE root ATTACH PARTITION leaf_a FOR VALUES IN ('a');
CREATE TABLE branch PARTITION OF root FOR VALUES IN ('b', 'c')
  PARTITION BY RANGE (id);
CREATE TABLE leaf_b PARTITION OF branch FOR VALUES FROM (0) TO (1000);
INSERT INTO root SELECT i, chr(97 + i % 3), 'v' || i FROM generate_series(1, 90) i;
CREATE PUBLICATION walstream FOR TABLE root WITH (publish_via_partition_root = true);
""")
    backfills(database.dsn).run(spark, "public.root")
    records = reader.count(90)
    assert {record.op.table.name for record in records} == {"root"}
    assert records[0].op.table.columns == ("id", "kind", "v")
    assert rows(records) == stored(database, "SELECT id::text, kind, v FROM root")


def test_what_the_publication_keeps_back_stays_back(
    database: Database, spark: SparkRuntime, backfills: Backfills, reader: Reader
) -> None:
    version = database.server.version
    generated = "PUBLICATION generated FOR TABLE made" + (
        " WITH (publish_generated_columns = stored)" if version >= 18 else ""
    )
    database.execute(
        "CREATE TABLE listed (id int PRIMARY KEY, open text, closed text);"
        "INSERT INTO listed SELECT i, 'o', 'c' FROM generate_series(1, 20) i;"
        "CREATE TABLE made (id int PRIMARY KEY,"
        " twice int GENERATED ALWAYS AS (id * 2) STORED, b text);"
        "INSERT INTO made VALUES (1, DEFAULT, 'x');"
        "CREATE PUBLICATION walstream FOR TABLE listed (id, open) WHERE (id > 15);"
        "CREATE PUBLICATION more FOR TABLE listed (id, open)"
        " WHERE (id < 3 AND open = '{o}' OR id = 1);"
        f"CREATE {generated}"
    )
    backfill = backfills(database.dsn, publications=("walstream", "more", "generated"))
    backfill.run(spark, "public.listed", "public.made")
    records = reader.count(7)
    assert rows(of(records, "listed")) == sorted(
        (str(number), "o") for number in (1, 16, 17, 18, 19, 20)
    )
    (made,) = of(records, "made")
    assert made.op.table.columns == (
        ("id", "twice", "b") if version >= 18 else ("id", "b")
    )


def test_key_ranges_hold_every_row_once(
    database: Database,
    spark: SparkRuntime,
    backfills: Backfills,
    reader: Reader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("walstream.sources.postgres.backfill.plan.CHUNK_ROWS", 100)
    database.execute(
        'CREATE TABLE "Keyed" (n int, "a{}b" char(9), v int,'
        ' PRIMARY KEY ("a{}b", n) INCLUDE (v));'
        """INSERT INTO "Keyed" SELECT i, 'k' || i % 4 FROM generate_series(1, 950) i;"""
        "CREATE PUBLICATION walstream FOR ALL TABLES"
    )
    done = backfills(database.dsn).run(spark, "public.Keyed", by_key=True)
    assert len(done) == 10
    assert max(one.rows for one in done) == 100
    records = reader.count(950)
    assert len({record.key for record in records}) == 950


def test_a_table_that_is_rewritten_is_void(
    database: Database, spark: SparkRuntime, backfills: Backfills
) -> None:
    database.execute(ORDERS)
    backfill = backfills(database.dsn)
    for statement in (
        "ALTER TABLE orders RENAME note TO former; ALTER TABLE orders ADD note text",
        "TRUNCATE orders",
        "VACUUM FULL small",
        "DROP TABLE orders",
    ):
        table = "small" if "small" in statement else "orders"
        with backfill.holding() as snapshot:
            planned = backfill.plan(f"public.{table}")
            database.execute(statement)
            task = backfill.task(snapshot, planned)
            with pytest.raises(TableRewritten, match=f"public.{table}"):
                run(spark, planned, task, lambda _done: None)


def test_a_snapshot_whose_holder_ended_is_gone(
    database: Database, spark: SparkRuntime, backfills: Backfills
) -> None:
    database.execute(ORDERS)
    backfill = backfills(database.dsn)
    with backfill.holding() as snapshot:
        planned = backfill.plan("public.small")
        task = backfill.task(snapshot, planned)
    with pytest.raises(SnapshotGone, match=snapshot):
        run(spark, planned, task, lambda _done: None)


def test_what_cannot_be_read_is_said_before_anything_runs(
    database: Database, backfills: Backfills
) -> None:
    role = f"reader_{database.name}"
    database.execute(f"{ORDERS} CREATE ROLE {role} LOGIN;")
    try:
        backfill = backfills(make_conninfo(database.dsn, user=role))
        with pytest.raises(PermissionLacking) as lacking:
            backfill.plan("public.orders")
        repair = lacking.value.repair.sql
        assert repair == f'GRANT SELECT ON "public"."orders" TO "{role}";'
        database.execute(repair)
        assert backfill.plan("public.orders")
        database.execute("ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
        with pytest.raises(PermissionLacking, match="row-level security") as hidden:
            backfill.plan("public.orders")
        database.execute(hidden.value.repair.sql)
        assert backfill.plan("public.orders")
        with pytest.raises(ConfigError, match="not in publication 'other'"):
            replace(backfill, publications=("other",)).plan("public.orders")
    finally:
        database.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_a_record_that_its_topic_does_not_take_is_refused_at_once(
    database: Database, spark: SparkRuntime, backfills: Backfills
) -> None:
    database.execute(f"{ORDERS} UPDATE small SET b = repeat('secret', 1000)||a")
    backfill = backfills(database.dsn, topic_config={"max_message_bytes": "5000"})
    with pytest.raises(ChunkFailed, match=r"chunk \d+: .*table 'public") as refused:
        backfill.run(spark, "public.small")
    assert "secret" not in str(refused.value)


def test_a_chunk_that_fails_each_time_is_named_with_its_cause(
    database: Database, spark: SparkRuntime, backfills: Backfills
) -> None:
    database.execute(ORDERS)
    backfill = backfills(database.dsn)
    done: list[ChunkDone] = []
    with backfill.holding() as snapshot:
        planned = backfill.plan("public.orders", chunk_bytes=80_000)
        task = backfill.task(snapshot, planned)

        def failing(chunk: Chunk) -> Any:
            if chunk.number == 2:
                raise OSError("a library's words")
            return task(chunk)

        with pytest.raises(ChunkFailed) as unknown:
            run(spark, planned, failing, done.append)
        nowhere = make_conninfo(database.dsn, host="127.0.0.1", port="1")
        away = replace(task.database, dsn=nowhere)
        put_back: list[Any] = []
        run(spark, planned[1:2], replace(task, database=away), put_back.append)
    assert str(unknown.value).startswith('chunk 2: table "public.orders", pages ')
    assert str(unknown.value).endswith(": OSError: a library's words")
    (postponed,) = put_back
    assert isinstance(postponed, ChunkPostponed)
    said = str(postponed.error)
    assert said.startswith('chunk 2: table "public.orders", pages ')
    assert "connecting to PostgreSQL" in said


def test_what_a_callback_raises_ends_the_run(
    database: Database, spark: SparkRuntime, backfills: Backfills
) -> None:
    database.execute(ORDERS)
    backfill = backfills(database.dsn)
    with backfill.holding() as snapshot:
        planned = backfill.plan("public.orders", chunk_bytes=40_000)
        task = backfill.task(snapshot, planned)

        def stop(_done: ChunkDone) -> None:
            raise InterruptedError

        with pytest.raises(InterruptedError):
            run(spark, planned, task, stop)
        assert not [
            thread for thread in threading.enumerate() if "_work" in thread.name
        ]


@pytest.mark.parametrize("connections", [1, 5])
def test_no_more_tasks_run_than_connections_are_allowed(
    spark: SparkRuntime, tmp_path: Path, connections: int
) -> None:
    relation = chunk_of_nothing().relation
    planned = [Chunk(number, relation, None) for number in range(1, 7)]
    folder, most = str(tmp_path), min(connections, 2)

    def touching(chunk: Chunk) -> ChunkDone:
        import os  # noqa: PLC0415 - runs in a worker
        import time  # noqa: PLC0415 - likewise

        from walstream.spark.outcome import ChunkDone  # noqa: PLC0415 - likewise

        path = f"{folder}/{chunk.number}"
        open(path, "w").close()  # noqa: PTH123 - likewise
        deadline = time.monotonic() + (0.1 if most == 1 else 60)
        count = 0
        while count < 2 and time.monotonic() < deadline:
            count = max(count, len(os.listdir(folder)))  # noqa: PTH208 - likewise
        time.sleep(0.05)
        os.unlink(path)  # noqa: PTH108 - likewise
        return ChunkDone(chunk.number, count, 0)

    done: list[ChunkDone] = []
    run(replace(spark, connections=connections), planned, touching, done.append)
    assert max(one.rows for one in done) == most


def chunk_of_nothing() -> Chunk:
    from walstream.op import Table  # noqa: PLC0415 - for this alone
    from walstream.sources.postgres.backfill.chunk import ChunkRelation  # noqa: PLC0415 - likewise

    return Chunk(1, ChunkRelation("s", "t", 1, Table("s", "t", ("a",))), None)


def test_secrets_show_nowhere(
    database: Database, own_spark: OwnSpark, backfills: Backfills
) -> None:
    canaries = Canaries()
    secret = canaries.plant("the password")
    role = f"secret_{database.name}"
    database.execute(f"{ORDERS} CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{secret}'")
    seen: list[str] = []
    try:
        dsn = make_conninfo(database.dsn, user=role, password=secret)
        backfill = backfills(dsn)
        with backfill.holding() as snapshot:
            planned = backfill.plan("public.orders", chunk_bytes=80_000)
            task = backfill.task(snapshot, planned)
            wrong = make_conninfo(dsn, port="1", host="127.0.0.1", dbname=secret)
            gone = replace(task.database, dsn=wrong)

            def look(_done: ChunkDone) -> None:
                seen.extend(arguments())

            run(own_spark.spark, planned, task, look)
            put_back: list[ChunkPostponed] = []
            away = replace(task, database=gone)
            run(own_spark.spark, planned[:1], away, put_back.append)
            failed = str(put_back[0].error)

            def failing(chunk: Chunk) -> Any:
                raise ChunkFailed(str(away(chunk).error.args[0]))  # type: ignore[union-attr]

            with pytest.raises(ChunkFailed):
                run(own_spark.spark, planned[:1], failing, look)
    finally:
        database.execute(f"DROP ROLE {role}")
    assert any("pyspark.daemon" in text for text in seen)
    options = [f"{k}={v}" for k, v in own_spark.spark.context.getConf().getAll()]
    written = [
        path.read_text("utf-8", errors="replace")
        for path in own_spark.events.rglob("*")
        if path.is_file()
    ]
    assert any("walstream: public.orders" in text for text in written)
    assert any("ChunkFailed: chunk 1" in text for text in written)
    for text in (*seen, *options, *written, failed, repr(task)):
        assert not canaries.found(text)  # in no spelling


def arguments() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
