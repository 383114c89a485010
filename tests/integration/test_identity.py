"""What each REPLICA IDENTITY sends: old rows, key changes, values that stay away."""

# ruff: noqa: S608 - SQL of constants

from collections.abc import Iterator

import orjson
import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer
from tests.support.fixtures.walstream import Runs, Stream, streamed
from tests.support.oracles.topic_reader import Reader, Record
from walstream.op import Kind
from walstream.postgres import catalog
from walstream.postgres.connection import connect
from walstream.row import OMITTED

pytestmark = pytest.mark.same_on_15

LONG = "0123456789" * 1000  # toasted: its column is EXTERNAL

_TOASTED = "n int, v text); ALTER TABLE {t} ALTER v SET STORAGE EXTERNAL;"
TABLES = (
    "CREATE SCHEMA elsewhere; CREATE EXTENSION ltree SCHEMA elsewhere;"
    + "".join(
        (begin + _TOASTED).format(t=begin.split()[2])
        for begin in (
            "CREATE TABLE by_default (id int PRIMARY KEY, ",
            "CREATE TABLE by_full (id int PRIMARY KEY, ",
            "CREATE TABLE by_index (id int PRIMARY KEY, code text NOT NULL UNIQUE, ",
            "CREATE TABLE by_nothing (id int PRIMARY KEY, ",
            "CREATE TABLE moved (id int PRIMARY KEY, ",
            "CREATE TABLE moved_full (id int PRIMARY KEY, ",
            "CREATE TABLE moved_index (id int PRIMARY KEY, code text NOT NULL UNIQUE, ",
            "CREATE TABLE moved_padded (id char(8) PRIMARY KEY, p char(4000), ",
            "CREATE TABLE moved_tree (id elsewhere.ltree PRIMARY KEY, ",
            "CREATE TABLE moved_gone (id int PRIMARY KEY, ",
            "CREATE TABLE no_key (id int, ",
        )
    )
    + (
        "CREATE TABLE including (id int, n int, v text, PRIMARY KEY (id) INCLUDE (n));"
        "ALTER TABLE including REPLICA IDENTITY FULL;"
        "ALTER TABLE by_full REPLICA IDENTITY FULL;"
        "ALTER TABLE moved_full REPLICA IDENTITY FULL;"
        "ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_code_key;"
        "ALTER TABLE moved_index REPLICA IDENTITY USING INDEX moved_index_code_key;"
        "ALTER TABLE by_nothing REPLICA IDENTITY NOTHING;"
        "ALTER TABLE moved_padded ALTER p SET STORAGE EXTERNAL;"
    )
)


def _partitioned(name: str, *identities: str) -> str:
    """Write the SQL of a root and two leaves, with their identities."""
    parts = (name, f"{name}_east", f"{name}_west")
    return (
        f"CREATE TABLE {name} (id int, region text, n int, v text,"
        " PRIMARY KEY (id, region)) PARTITION BY LIST (region);"
        f"CREATE TABLE {parts[1]} PARTITION OF {name} FOR VALUES IN ('east');"
        # of other physical columns than its root
        f"CREATE TABLE {parts[2]} (v text, gone int, n int, region text NOT NULL,"
        " id int NOT NULL);"
        f"ALTER TABLE {parts[2]} DROP gone;"
        f"ALTER TABLE {name} ATTACH PARTITION {parts[2]} FOR VALUES IN ('west');"
        + "".join(
            f"ALTER TABLE {part} REPLICA IDENTITY {identity};"
            f"ALTER TABLE {part} ALTER v SET STORAGE EXTERNAL;"
            for part, identity in zip(parts, identities, strict=True)
        )
    )


PARTITIONED = (
    _partitioned("parts", "DEFAULT", "DEFAULT", "DEFAULT")
    + _partitioned("parts_root_full", "FULL", "DEFAULT", "DEFAULT")
    + _partitioned("parts_full", "FULL", "FULL", "FULL")
)


@pytest.fixture(scope="module")
def stream(
    postgres: PostgresServer,
    kafka: KafkaServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stream]:
    with streamed(
        postgres,
        kafka,
        tmp_path_factory.mktemp("identity"),
        before=TABLES + PARTITIONED,
        sink={"topic_partitions": 3},
    ) as running:
        yield running


def found(stream: Stream, table: str, count: int) -> list[Record]:
    stream.reader.until(lambda _: len(stream.reader.of(table)) >= count)
    stream.reader.read()
    records = stream.reader.of(table)
    assert len(records) == count, records
    return records


def absent(record: Record) -> object:
    return orjson.loads(record.value).get("absent")


def test_default_sends_no_old_row_and_names_what_is_unchanged(stream: Stream) -> None:
    write = stream.database.execute
    write("INSERT INTO by_default VALUES (1, 1, %s)", LONG)
    write("UPDATE by_default SET n = 2")
    write("UPDATE by_default SET v = ''")
    write("DELETE FROM by_default")

    inserted, counted, emptied, deleted = found(stream, "by_default", 4)
    assert inserted.op.new == ["1", "1", LONG]
    assert orjson.loads(counted.value)["op"] == {"Update": [None, ["1", "2", None]]}
    assert absent(counted) == {"new": ["v"]}
    assert emptied.op.new == ["1", "2", ""]
    assert absent(emptied) is None
    assert orjson.loads(deleted.value)["op"] == {"Delete": ["1", None, None]}
    assert absent(deleted) == {"old": ["n", "v"]}


def test_full_sends_whole_old_rows_and_leaves_nothing_out(stream: Stream) -> None:
    write = stream.database.execute
    write("INSERT INTO by_full VALUES (1, NULL, %s)", LONG)
    write("UPDATE by_full SET n = 2")
    write("DELETE FROM by_full")

    _, updated, deleted = found(stream, "by_full", 3)
    assert updated.op.old == ["1", None, LONG]
    assert updated.op.new == ["1", "2", LONG]
    assert deleted.op.old == ["1", "2", LONG]
    assert b"absent" not in updated.value + deleted.value
    assert {updated.key, deleted.key} == {b'["1"]'}


def test_what_a_key_only_includes_is_no_part_of_it(stream: Stream) -> None:
    stream.database.execute("INSERT INTO including VALUES (1, 1, 'v')")
    stream.database.execute("UPDATE including SET n = NULL")
    inserted, updated = found(stream, "including", 2)
    assert updated.kind is Kind.UPDATE
    assert {inserted.key, updated.key} == {b'["1"]'}
    stream.database.execute(
        "CREATE TABLE later (id int, n int NOT NULL, PRIMARY KEY (id) INCLUDE (n));"
        "CREATE UNIQUE INDEX by_n ON later (n) INCLUDE (id)"
    )
    for identity, name in (("DEFAULT", "id"), ("USING INDEX by_n", "n")):
        stream.database.execute(f"ALTER TABLE later REPLICA IDENTITY {identity}")
        with connect(stream.database.dsn) as connection:
            later = catalog.tables(connection, ("public", "later"))["public.later"]
        assert later.identity == (name,)
        assert later.primary_key == ("id",)


def test_an_index_as_identity_is_the_key(stream: Stream) -> None:
    write = stream.database.execute
    write("INSERT INTO by_index VALUES (1, 'one', 1, %s)", LONG)
    write("UPDATE by_index SET id = 2")
    write("DELETE FROM by_index")

    records = inserted, updated, deleted = found(stream, "by_index", 3)
    assert {record.key for record in records} == {b'["one"]'}
    assert inserted.op.new == ["1", "one", "1", LONG]
    assert updated.kind is Kind.UPDATE
    assert updated.op.new == ["2", "one", "1", OMITTED]
    assert deleted.op.old == [OMITTED, "one", OMITTED, OMITTED]


@pytest.mark.parametrize("table", ["by_nothing", "no_key"])
def test_without_identity_inserts_come_and_the_application_goes_on(
    stream: Stream, table: str
) -> None:
    write = stream.database.execute
    write(f"INSERT INTO {table} VALUES (1, 1, %s), (2, 2, 'short')", LONG)
    write(f"UPDATE {table} SET n = 5 WHERE id = 1")
    write(f"DELETE FROM {table} WHERE id = 2")
    write(f"INSERT INTO {table} VALUES (3, 3, '')")

    records = found(stream, table, 3)
    assert [record.op.new for record in records] == [
        ["1", "1", LONG],
        ["2", "2", "short"],
        ["3", "3", ""],
    ]
    assert {record.key for record in records} == {f'["public.{table}"]'.encode()}
    assert len({record.partition for record in records}) == 1
    published = stream.database.fetch(
        "SELECT pubname FROM pg_publication_tables WHERE tablename = %s", table
    )
    assert published == [("walstream_insert",)]
    (told,) = [e for e in stream.walstream.log if e.get("table") == f"public.{table}"]
    assert f'ALTER TABLE "public"."{table}" REPLICA IDENTITY' in told["repair"]


def test_a_key_change_is_a_delete_and_an_insert_of_the_whole_row(
    stream: Stream,
) -> None:
    write = stream.database.execute
    write("INSERT INTO moved VALUES (1, 1, %s)", LONG)
    write(
        "BEGIN; UPDATE moved SET n = 2; UPDATE moved SET id = 2;"
        "UPDATE moved SET n = 3; COMMIT"
    )
    _, before, deleted, inserted, after = found(stream, "moved", 5)
    assert [r.op.seq_id for r in (before, deleted, inserted, after)] == [0, 1, 2, 3]
    assert (deleted.kind, deleted.key) == (Kind.DELETE, b'["1"]')
    assert deleted.op.old == ["1", OMITTED, OMITTED]
    assert (inserted.kind, inserted.key) == (Kind.INSERT, b'["2"]')
    assert inserted.op.new == ["2", "2", LONG]  # read from the table
    assert absent(inserted) is None
    assert (after.kind, after.key) == (Kind.UPDATE, b'["2"]')


def test_a_key_change_under_full_splits_by_the_primary_key(stream: Stream) -> None:
    write = stream.database.execute
    write("INSERT INTO moved_full VALUES (1, 1, %s)", LONG)
    write("UPDATE moved_full SET n = 2; UPDATE moved_full SET id = 2")

    _, counted, deleted, inserted = found(stream, "moved_full", 4)
    assert counted.kind is Kind.UPDATE
    assert (deleted.key, deleted.op.old) == (b'["1"]', ["1", "2", LONG])
    assert (inserted.key, inserted.op.new) == (b'["2"]', ["2", "2", LONG])
    assert inserted.op.seq_id == deleted.op.seq_id + 1


def test_a_key_change_of_an_index_identity_splits_by_its_columns(
    stream: Stream,
) -> None:
    write = stream.database.execute
    write("INSERT INTO moved_index VALUES (1, 'it''s \"x\"', 1, %s)", LONG)
    write("UPDATE moved_index SET code = 'b\\'")

    _, deleted, inserted = found(stream, "moved_index", 3)
    assert deleted.op.old == [OMITTED, 'it\'s "x"', OMITTED, OMITTED]
    assert inserted.op.new == ["1", "b\\", "1", LONG]
    assert orjson.loads(inserted.key) == ["b\\"]


def test_a_key_change_of_padded_text_reads_it_as_it_is_printed(stream: Stream) -> None:
    write = stream.database.execute
    write("INSERT INTO moved_padded VALUES ('a', 'p', 1, %s)", LONG)
    write("UPDATE moved_padded SET id = 'b'")

    first, _, inserted = found(stream, "moved_padded", 3)
    assert first.op.new == ["a".ljust(8), "p".ljust(4000), "1", LONG]
    assert inserted.op.new == ["b".ljust(8), "p".ljust(4000), "1", LONG]


def test_a_key_of_an_extension_that_is_out_of_sight_is_found(stream: Stream) -> None:
    write = stream.database.execute
    write("INSERT INTO moved_tree VALUES ('a.b', 1, %s)", LONG)
    write("UPDATE moved_tree SET id = 'a.c'")

    _, _, inserted = found(stream, "moved_tree", 3)
    assert inserted.op.new == ["a.c", "1", LONG]


def test_a_row_that_is_gone_when_it_is_read_is_null_until_its_delete(
    stream: Stream,
) -> None:
    write = stream.database.execute
    write("INSERT INTO moved_gone VALUES (1, 1, %s)", LONG)
    write("BEGIN; UPDATE moved_gone SET id = 2; DELETE FROM moved_gone; COMMIT")

    _, _, inserted, deleted = found(stream, "moved_gone", 4)
    assert inserted.op.new == ["2", "1", None]
    assert absent(inserted) is None
    assert (deleted.kind, deleted.key) == (Kind.DELETE, inserted.key)


def test_partitions_come_as_their_root(stream: Stream) -> None:
    write = stream.database.execute
    write("INSERT INTO parts VALUES (1, 'east', 1, %s), (2, 'west', 2, %s)", LONG, LONG)
    write("UPDATE parts SET n = 5 WHERE id = 2")
    write("UPDATE parts SET region = 'west' WHERE id = 1")
    write("DELETE FROM parts WHERE id = 1")

    records = found(stream, "parts", 6)
    first, second, updated, left, came, deleted = records
    assert {r.topic for r in records} == {f"{stream.walstream.prefix}public.parts"}
    assert first.op.new == ["1", "east", "1", LONG]
    assert second.op.new == ["2", "west", "2", LONG]
    assert updated.op.new == ["2", "west", "5", OMITTED]
    assert (left.kind, left.key) == (Kind.DELETE, b'["1","east"]')
    assert (came.kind, came.key) == (Kind.INSERT, b'["1","west"]')
    assert came.op.new == ["1", "west", "1", LONG]
    assert [left.op.seq_id, came.op.seq_id] == [0, 1]
    assert deleted.op.old == ["1", "west", OMITTED, OMITTED]


def test_an_old_row_of_a_leaf_that_is_not_full_shows_no_false_null(
    stream: Stream,
) -> None:
    write = stream.database.execute
    write(
        "INSERT INTO parts_root_full VALUES (1, 'east', 1, %s), (2, 'west', NULL, %s)",
        LONG,
        LONG,
    )
    write("UPDATE parts_root_full SET n = 5")
    write("DELETE FROM parts_root_full WHERE id = 2")

    *_, one, two, deleted = found(stream, "parts_root_full", 5)
    for updated, new in ((one, ["1", "east", "5"]), (two, ["2", "west", "5"])):
        assert updated.kind is Kind.UPDATE
        assert updated.op.new == [*new, OMITTED]
        assert updated.op.old in (None, [*new[:2], OMITTED, OMITTED])
    assert deleted.op.old == ["2", "west", OMITTED, OMITTED]


def test_an_old_row_is_whole_where_every_leaf_is_full(stream: Stream) -> None:
    write = stream.database.execute
    write("INSERT INTO parts_full VALUES (1, 'east', NULL, %s)", LONG)
    write("UPDATE parts_full SET n = 5")
    write("UPDATE parts_full SET region = 'west'")

    _, updated, left, came = found(stream, "parts_full", 4)
    assert updated.op.old == ["1", "east", None, LONG]
    assert updated.op.new == ["1", "east", "5", LONG]
    assert left.op.old == ["1", "east", "5", LONG]
    assert came.op.new == ["1", "west", "5", LONG]
    assert b"absent" not in updated.value + left.value + came.value


def test_toast_on_key_change_may_stop(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(TABLES)
    walstream = runs(database.dsn, source={"toast_on_key_change": "stop"}).start()
    walstream.streaming()
    database.execute("INSERT INTO moved VALUES (1, 1, %s)", LONG)
    reader.count(1)
    database.execute("UPDATE moved SET id = 2")

    walstream.ends_with(3, "public.moved", "REPLICA IDENTITY FULL", "walstream run")
    assert [record.kind for record in reader.count(1)] == [Kind.INSERT]
