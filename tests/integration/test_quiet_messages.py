"""What carries no row, or none that is wanted, never stops the stream."""

# ruff: noqa: S608 - SQL of constants

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, binaries, local_postgres
from tests.support.fixtures.server_origin import needs_own_servers
from tests.support.fixtures.walstream import Runs, Stream, streamed
from tests.support.oracles.topic_reader import Reader, Record, in_order
from walstream.op import Kind

SETTINGS = {
    "max_prepared_transactions": "5",
    "logical_decoding_work_mem": "64kB",  # what is larger is spilled to disk
}
BEFORE = """
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE DOMAIN short AS text CHECK (length(value) < 9);
CREATE TABLE mark (id int PRIMARY KEY, note text);
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent);
CREATE TABLE alone (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int);
CREATE TABLE typed (id int PRIMARY KEY, m mood, s short, c mark);
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY);
CREATE MATERIALIZED VIEW seen AS SELECT count(*) FROM mark;
"""


@pytest.fixture(scope="module", params=[15, 18], ids=["pg15", "pg18"])
def stream(
    request: pytest.FixtureRequest,
    kafka: KafkaServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stream]:
    needs_own_servers()
    binaries(request.param)
    with (
        local_postgres(request.param, **SETTINGS) as server,
        streamed(
            server,
            kafka,
            tmp_path_factory.mktemp("quiet"),
            before=BEFORE,
            sink={"topic_partitions": 3},
        ) as running,
    ):
        yield running


class Mark:
    """A row before and a row after: what came between them is all that came."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        taken = stream.database.fetch("SELECT coalesce(max(id), 0) FROM mark")
        self._id = taken[0][0] + 1
        self._pid = stream.walstream.worker_pid()
        self.write = stream.database.execute
        self.write("INSERT INTO mark VALUES (%s)", self._id)

    def between(self) -> list[Record]:
        self.write("INSERT INTO mark VALUES (%s)", self._id + 1)
        reader = self._stream.reader
        # the two marks may lie in different partitions, which come in any order
        reader.until(lambda _: all(map(self._named, (self._id, self._id + 1))))
        assert self._stream.walstream.worker_pid() == self._pid
        first, last = self._named(self._id)[0], self._named(self._id + 1)[0]
        # other partitions may be behind the mark's
        records = in_order(reader.read())
        return records[records.index(first) + 1 : records.index(last)]

    def _named(self, key: int) -> list[Record]:
        marks = self._stream.reader.of("mark")
        return [record for record in marks if record.op.new == [str(key), None]]


def test_truncate_goes_to_every_partition_of_each_table(stream: Stream) -> None:
    mark = Mark(stream)
    mark.write("INSERT INTO parent VALUES (1)")
    mark.write(
        "BEGIN; INSERT INTO alone (n) VALUES (1);"
        "TRUNCATE parent, alone RESTART IDENTITY CASCADE;"
        "INSERT INTO parent VALUES (2); COMMIT"
    )
    _, first, *truncates, last = mark.between()

    assert (first.op.seq_id, first.kind) == (0, Kind.INSERT)
    assert {record.kind for record in truncates} == {Kind.TRUNCATE}
    tables = {record.op.seq_id: record.op.table.name for record in truncates}
    assert sorted(tables) == [1, 2, 3]
    assert set(tables.values()) == {"parent", "alone", "child"}
    for name in tables.values():
        mine = [record for record in truncates if record.op.table.name == name]
        assert sorted(record.partition for record in mine) == [0, 1, 2]
        assert {record.key for record in mine} == {f'["public.{name}"]'.encode()}
        assert {record.op.partitions for record in mine} == {3}
    assert (last.op.seq_id, last.op.new) == (4, ["2"])


def test_logical_messages_pass(stream: Stream) -> None:
    mark = Mark(stream)
    mark.write("SELECT pg_logical_emit_message(true, 'walstream', 'in a transaction')")
    mark.write("SELECT pg_logical_emit_message(false, '', '\\x00ff'::bytea)")
    mark.write(
        "BEGIN; INSERT INTO alone (n) VALUES (1);"
        "SELECT pg_logical_emit_message(true, 'large', repeat('x', 1000000));"
        "SELECT pg_logical_emit_message(false, 'at once', 'x');"
        "INSERT INTO alone (n) VALUES (2); COMMIT"
    )
    mark.write("BEGIN; SELECT pg_logical_emit_message(true, 'x', 'y'); ROLLBACK")
    records = mark.between()
    assert [record.op.seq_id for record in records] == [0, 1]


def test_types_pass(stream: Stream) -> None:
    mark = Mark(stream)
    mark.write("INSERT INTO typed VALUES (1, 'sad', 'x', (1, 'y'))")
    mark.write("ALTER TYPE mood ADD VALUE 'so so'")
    mark.write("ALTER TYPE mood RENAME TO temper")
    mark.write("INSERT INTO typed VALUES (2, 'so so', NULL, NULL)")
    first, second = mark.between()
    assert first.op.new == ["1", "sad", "x", "(1,y)"]
    assert second.op.new == ["2", "so so", None, None]


def test_origins_pass(stream: Stream) -> None:
    mark = Mark(stream)
    mark.write(
        "SELECT pg_replication_origin_create('elsewhere');"
        "SELECT pg_replication_origin_session_setup('elsewhere');"
        "BEGIN; SELECT pg_replication_origin_xact_setup('0/1234', now());"
        "INSERT INTO alone (n) VALUES (1); COMMIT;"
        "SELECT pg_replication_origin_session_reset();"
        "SELECT pg_replication_origin_drop('elsewhere')"
    )
    (record,) = mark.between()
    assert record.op.new is not None
    assert record.op.new[1] == "1"


def test_two_phase_commits_come_at_their_commit(stream: Stream) -> None:
    mark = Mark(stream)
    for name in ("kept", "dropped"):
        mark.write(
            f"BEGIN; INSERT INTO child VALUES ({len(name)});"
            f"UPDATE child SET parent = NULL; PREPARE TRANSACTION '{name}'"
        )
    mark.write("INSERT INTO alone (n) VALUES (7)")
    mark.write("ROLLBACK PREPARED 'dropped'")
    mark.write("COMMIT PREPARED 'kept'")
    other, inserted, updated = mark.between()
    assert other.op.table.name == "alone"
    assert inserted.op.new == ["4", None]
    assert inserted.op.lsn == updated.op.lsn > other.op.lsn
    assert [inserted.op.seq_id, updated.op.seq_id] == [0, 1]


def test_rolled_back_subtransactions_take_no_number(stream: Stream) -> None:
    mark = Mark(stream)
    mark.write(
        "BEGIN; INSERT INTO alone (n) VALUES (1);"
        "SAVEPOINT a; INSERT INTO alone (n) SELECT generate_series(1, 2000);"
        "SAVEPOINT b; INSERT INTO alone (n) VALUES (5);"
        "ROLLBACK TO a; INSERT INTO alone (n) VALUES (2); RELEASE a;"
        "SAVEPOINT c; INSERT INTO alone (n) VALUES (3); RELEASE c; COMMIT"
    )
    mark.write(
        "DO $$ BEGIN FOR i IN 1..300 LOOP"
        " BEGIN INSERT INTO alone (n) VALUES (100 + i);"
        " IF i % 3 > 0 THEN RAISE EXCEPTION 'back'; END IF;"
        " EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END $$"
    )
    records = mark.between()
    numbers = [record.op.new[1] for record in records if record.op.new]
    assert numbers == ["1", "2", "3", *(str(100 + i) for i in range(3, 301, 3))]
    assert [record.op.seq_id for record in records] == [*range(3), *range(100)]


def test_what_writes_no_row_of_a_captured_table_passes(stream: Stream) -> None:
    mark = Mark(stream)
    mark.write("BEGIN; INSERT INTO alone (n) VALUES (1); ROLLBACK")
    mark.write("INSERT INTO unlogged VALUES (1) ON CONFLICT DO NOTHING")
    mark.write("REFRESH MATERIALIZED VIEW seen")
    mark.write("SELECT nextval('alone_id_seq')")
    mark.write("CREATE TEMP TABLE short_lived AS SELECT generate_series(1, 10)")
    mark.write(
        "CREATE TABLE made (id int); INSERT INTO made VALUES (1); DROP TABLE made"
    )
    mark.write("VACUUM FULL alone")
    mark.write("UPDATE alone SET n = 1 WHERE false")
    mark.write("SELECT pg_switch_wal()")
    mark.write("CHECKPOINT")
    assert mark.between() == []


def test_a_spilled_transaction_is_whole(stream: Stream) -> None:
    mark = Mark(stream)
    mark.write("INSERT INTO alone (n) SELECT generate_series(1, 20000)")
    records = mark.between()
    assert [record.op.seq_id for record in records] == list(range(20000))


def test_tables_without_a_topic_are_dropped_and_named_once(
    database: Database, runs: Runs, reader: Reader, topic_prefix: str
) -> None:
    database.execute(
        "CREATE TABLE mapped (id int PRIMARY KEY); CREATE SCHEMA other;"
        "CREATE TABLE unmapped (id int PRIMARY KEY);"
        "CREATE TABLE other.mapped (id int PRIMARY KEY);"
        "CREATE TABLE other.unpublished (id int PRIMARY KEY)"
    )
    topics = {"public.mapped": {"name": f"{topic_prefix}mapped"}}
    walstream = runs(
        database.dsn,
        source={"tables": ["*.*mapped"]},
        sink={"topic": "", "topics": topics},
    ).start()
    walstream.streaming()
    with psycopg.connect(database.dsn) as connection:
        for key in (1, 2, 3):
            for table in ("unmapped", "other.mapped", "other.unpublished", "mapped"):
                connection.execute(f"INSERT INTO {table} VALUES ({key})")

    records = reader.count(3)
    assert {record.topic for record in records} == {f"{topic_prefix}mapped"}
    # seq_id counts what the slot sends: the topic sees a part of it
    assert [record.op.seq_id for record in records] == [2, 5, 8]
    named = [entry["table"] for entry in walstream.said("dropped and counted")]
    assert sorted(named) == ["other.mapped", "public.unmapped"]
    assert walstream.terminate() == 0


def test_a_fallback_topic_takes_what_has_no_topic(
    database: Database, runs: Runs, reader: Reader, topic_prefix: str
) -> None:
    database.execute("CREATE TABLE unmapped (id int PRIMARY KEY)")
    fallback = f"{topic_prefix}fallback"
    sink = {"topic": "", "fallback_topic": fallback}
    runs(database.dsn, sink=sink).start().streaming()
    database.execute("INSERT INTO unmapped VALUES (1)")
    (record,) = reader.count(1)
    assert record.topic == fallback
