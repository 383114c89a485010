"""Each row carries the names that it was written with, whatever became of its table."""

# ruff: noqa: S608 - SQL of constants

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer
from tests.support.fixtures.walstream import Stream, streamed
from tests.support.oracles.topic_reader import Record, in_order
from walstream.op import Kind

pytestmark = pytest.mark.same_on_15


@dataclass(frozen=True)
class Change:
    ddl: str  # {t} is the table
    insert: str  # the values after it
    after: dict[str, str | None]
    renamed: str = "{t}"


CHANGES = {
    "add": Change(
        "ALTER TABLE {t} ADD c text DEFAULT 'filled'",
        "(2, 'a2', 'b2')",
        {"id": "2", "a": "a2", "b": "b2", "c": "filled"},
    ),
    "drop": Change("ALTER TABLE {t} DROP a", "(2, 'b2')", {"id": "2", "b": "b2"}),
    "rename": Change(
        "ALTER TABLE {t} RENAME a TO z",
        "(2, 'a2', 'b2')",
        {"id": "2", "z": "a2", "b": "b2"},
    ),
    "type": Change(
        "ALTER TABLE {t} ALTER a TYPE bytea USING a::bytea",
        "(2, '\\x00ff', 'b2')",
        {"id": "2", "a": "\\x00ff", "b": "b2"},
    ),
    "swap": Change(
        "ALTER TABLE {t} RENAME a TO c; ALTER TABLE {t} RENAME b TO a;"
        "ALTER TABLE {t} RENAME c TO b",
        "(2, 'was a', 'was b')",
        {"id": "2", "b": "was a", "a": "was b"},
    ),
    "again": Change(  # another column of the name of a dropped one
        "ALTER TABLE {t} DROP a; ALTER TABLE {t} ADD a int DEFAULT 7",
        "(2, 'b2')",
        {"id": "2", "b": "b2", "a": "7"},
    ),
    "table": Change(
        "ALTER TABLE {t} RENAME TO {t}_moved",
        "(2, 'a2', 'b2')",
        {"id": "2", "a": "a2", "b": "b2"},
        renamed="{t}_moved",
    ),
    "schema": Change(
        "ALTER TABLE {t} SET SCHEMA elsewhere",
        "(2, 'a2', 'b2')",
        {"id": "2", "a": "a2", "b": "b2"},
        renamed="elsewhere.{t}",
    ),
}
HOW = ["live", "backlog"]


@pytest.fixture(scope="module")
def stream(
    postgres: PostgresServer,
    kafka: KafkaServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stream]:
    """Make every change while it streams, and again while it is stopped."""
    before = "CREATE SCHEMA elsewhere;" + "".join(
        f"CREATE TABLE {case}_{how} (id int PRIMARY KEY, a text, b text);"
        for case in [*CHANGES, "inside", "gone"]
        for how in HOW
    )
    folder = tmp_path_factory.mktemp("schema")
    with streamed(postgres, kafka, folder, before=before) as running:
        write(running, "live")
        with running.stopped():
            write(running, "backlog")
        yield running


def write(stream: Stream, how: str) -> None:
    execute = stream.database.execute
    for name, change in CHANGES.items():
        table = f"{name}_{how}"
        renamed = change.renamed.format(t=table)
        execute(f"INSERT INTO {table} VALUES (1, 'a1', 'b1')")
        execute(change.ddl.format(t=table))
        execute(f"INSERT INTO {renamed} VALUES {change.insert}")
        execute(f"UPDATE {renamed} SET b = 'b3' WHERE id = 2")
        execute(f"DELETE FROM {renamed} WHERE id = 1")
    execute(
        f"BEGIN; INSERT INTO inside_{how} VALUES (1, 'a', 'b');"
        f"ALTER TABLE inside_{how} RENAME a TO z;"
        f"INSERT INTO inside_{how} VALUES (2, 'a', 'b');"
        f"ALTER TABLE inside_{how} ADD c int, DROP b;"
        f"INSERT INTO inside_{how} VALUES (3, 'a', 5); COMMIT"
    )
    execute(f"INSERT INTO gone_{how} VALUES (1, 'a', 'b')")
    execute(f"DROP TABLE gone_{how}")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", CHANGES)
def test_each_row_carries_the_names_it_was_written_with(
    stream: Stream, name: str, how: str
) -> None:
    change, table = CHANGES[name], f"{name}_{how}"
    before, inserted, updated, deleted = found(stream, table, 4)

    assert before.new == {"id": "1", "a": "a1", "b": "b1"}
    assert list(inserted.new.items()) == list(change.after.items())
    assert updated.new == {**change.after, "b": "b3"}
    assert deleted.old["id"] == "1"
    assert deleted.op.table.columns == inserted.op.table.columns

    renamed = change.renamed.format(t=table)
    moved = renamed if "." in renamed else f"public.{renamed}"
    assert before.op.table.full_name == f"public.{table}"
    assert {r.op.table.full_name for r in (inserted, updated, deleted)} == {moved}
    assert inserted.topic == f"{stream.walstream.prefix}{moved}"


@pytest.mark.parametrize("how", HOW)
def test_alter_table_inside_of_a_transaction_takes_no_number(
    stream: Stream, how: str
) -> None:
    records = found(stream, f"inside_{how}", 3)
    assert len({record.op.lsn for record in records}) == 1
    assert [record.op.seq_id for record in records] == [0, 1, 2]
    assert [record.new for record in records] == [
        {"id": "1", "a": "a", "b": "b"},
        {"id": "2", "z": "a", "b": "b"},
        {"id": "3", "z": "a", "c": "5"},
    ]


@pytest.mark.parametrize("how", HOW)
def test_rows_of_a_table_that_is_gone_arrive(stream: Stream, how: str) -> None:
    (record,) = found(stream, f"gone_{how}", 1)
    assert record.kind is Kind.INSERT
    assert record.key == b'["1"]'


def found(stream: Stream, table: str, count: int) -> list[Record]:
    def mine(records: list[Record]) -> list[Record]:
        return [r for r in records if r.op.table.name in (table, f"{table}_moved")]

    stream.reader.until(lambda records: len(mine(records)) >= count)
    records = mine(stream.reader.read())
    assert len(records) == count
    return in_order(records)
