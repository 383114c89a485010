"""A partition root's REPLICA IDENTITY or name that changes alone: no message says so.

pgoutput describes a root with a leaf, and knows of each leaf whether it was: so a new
connection describes the root as it is now, and an old one goes on as it was.
"""

from collections.abc import Sequence

import orjson
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.verb import verb
from tests.support.programs.walstream import SOURCE, Walstream
from walstream.lsn import show
from walstream.state.store import LmdbStore

pytestmark = pytest.mark.same_on_15

BOTH = "USING INDEX root_both"
TABLES = (
    "CREATE TABLE root (id int, code text NOT NULL, v text, PRIMARY KEY (id))"
    " PARTITION BY RANGE (id);"
    "CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (100);"
    "CREATE UNIQUE INDEX root_both ON root (id, code);"
    "CREATE UNIQUE INDEX leaf_both ON leaf (code, id);"
    "ALTER TABLE leaf REPLICA IDENTITY FULL;"
)
RETAIN = {"retain": "64MiB"}
CHANGES = [("DEFAULT", BOTH), ("DEFAULT", "FULL"), (BOTH, "FULL"), ("FULL", BOTH)]
changes = pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(*one, marks=[] if BOTH in one else pytest.mark.fault_long)
        for one in CHANGES
    ],
)


def identify(database: Database, how: str) -> None:
    database.execute(f"ALTER TABLE root REPLICA IDENTITY {how}")


def key(row: str, code: str, identity: str) -> list[str]:
    """Give the key of a row under a root's identity."""
    return [row, code] if identity == BOTH else [row]


def keys(records: Sequence[Record]) -> list[list[str]]:
    return [orjson.loads(record.key) for record in records]


def streaming(database: Database, runs: Runs, before: str) -> Walstream:
    """Stream a root with a row, and so with a leaf that pgoutput knows."""
    database.execute(TABLES)
    identify(database, before)
    walstream = runs(database.dsn, source=RETAIN).start().streaming()
    database.execute("INSERT INTO root VALUES (1, 'a', 'v')")
    return walstream


def kill_and_rewind(walstream: Walstream, sent: Sequence[Record]) -> None:
    """Kill it once its position covers these records, and have them sent again."""

    def is_covered() -> bool:
        with LmdbStore.open_read_only(walstream.state) as positions:
            position = positions.position() if positions else None
        return position is not None and position.resume > sent[-1].op.lsn

    wait_until(is_covered, 30, "the position covers them")
    walstream.kill()
    words = ("rewind", SOURCE, "--to", show(sent[0].op.lsn), "--yes")
    done = verb(walstream.configuration, "positions", *words)
    assert done.returncode == 0, done.stderr


@changes
def test_a_replay_after_a_kill_keeps_the_key_that_was_sent(
    database: Database, runs: Runs, reader: Reader, before: str, after: str
) -> None:
    walstream = streaming(database, runs, before)
    reader.count(1)
    identify(database, after)
    database.execute("INSERT INTO root VALUES (2, 'b', 'v')")
    database.execute("UPDATE root SET code = 'c' WHERE id = 2")
    database.execute("INSERT INTO root VALUES (3, 'd', 'v')")
    sent = [*reader.until(lambda found: found[-1].new.get("id") == "3")]
    # behind the change: pgoutput tells the new one
    kill_and_rewind(walstream, sent[1:])
    walstream.start().streaming()
    database.execute("INSERT INTO root VALUES (4, 'e', 'v')")
    found = reader.until(lambda found: found[-1].new.get("id") == "4")[len(sent) :]
    # a position before that, where the kill came so soon, has the first come again, too
    replayed = found[:-1][-len(sent[1:]) :]
    assert [(one.name, one.key, one.value) for one in replayed] == [
        (one.name, one.key, one.value) for one in sent[1:]
    ]
    assert keys(found[-1:]) == [key("4", "e", after)]


@changes
def test_the_watch_has_the_new_key_count(
    database: Database, runs: Runs, reader: Reader, before: str, after: str
) -> None:
    walstream = streaming(database, runs, before)
    reader.count(1)
    identify(database, after)
    walstream.until("'public.root' has another REPLICA IDENTITY")
    wait_until(lambda: len(walstream.said("streaming")) > 1, 30, "it streams again")
    database.execute("INSERT INTO root VALUES (2, 'b', 'v')")
    records = [*reader.until(lambda found: found[-1].new.get("id") == "2")]
    assert keys(records[-1:]) == [key("2", "b", after)]
    assert keys(records[:-1]) == [key("1", "a", before)] * (len(records) - 1)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_leaf_that_changes_with_its_root_tells_the_new_key_at_once(
    database: Database, runs: Runs, reader: Reader, *, stopped: bool
) -> None:
    walstream = streaming(database, runs, "DEFAULT")
    reader.count(1)
    if stopped:
        assert walstream.terminate() == 0
    database.execute("ALTER TABLE leaf REPLICA IDENTITY USING INDEX leaf_both")
    identify(database, BOTH)
    database.execute("INSERT INTO root VALUES (2, 'b', 'v')")
    database.execute("UPDATE root SET code = 'c' WHERE id = 1")
    database.execute("DELETE FROM root")
    if stopped:
        walstream.start().streaming()
    wanted = [("1", "a"), ("2", "b"), ("1", "a"), ("1", "c"), ("1", "c"), ("2", "b")]
    expected = [["1"], *(key(*one, BOTH) for one in wanted[1:])]
    assert sorted(keys(reader.count(6))) == sorted(expected)


RENAMES = [
    ("ALTER TABLE root RENAME TO renamed", "public.renamed"),
    ("CREATE SCHEMA other; ALTER TABLE root SET SCHEMA other", "other.root"),
]


def insert(database: Database, table: str, row: int) -> None:
    database.execute(f"INSERT INTO {table} VALUES ({row}, 'b', 'v')")  # noqa: S608


def topics(reader: Reader, row: int) -> list[str]:
    """Name the topic of each record of a row."""
    return [one.topic for one in reader.records if one.new.get("id") == str(row)]


def renamed(
    database: Database, runs: Runs, reader: Reader, rename: str, name: str
) -> tuple[Walstream, list[Record]]:
    """Stream a root, and a row each before and behind its renaming."""
    walstream = streaming(database, runs, "DEFAULT")
    reader.count(1)
    database.execute(rename)
    insert(database, name, 2)
    return walstream, [*reader.until(lambda found: found[-1].new.get("id") == "2")]


renames = pytest.mark.parametrize(("rename", "name"), RENAMES, ids=["name", "schema"])


@renames
def test_a_root_that_is_renamed_goes_by_its_new_name_from_the_next_stream_on(
    database: Database, runs: Runs, reader: Reader, rename: str, name: str
) -> None:
    walstream, sent = renamed(database, runs, reader, rename, name)
    # PostgreSQL 18 may describe the root anew at once, where its schema is another
    if sent[-1].topic == sent[0].topic:
        walstream.until(f"partition root 'public.root' is '{name}' now")
        wait_until(lambda: len(walstream.said("streaming")) > 1, 30, "it streams again")
    insert(database, name, 3)
    reader.until(lambda _: topics(reader, 3))
    assert topics(reader, 3) == [sent[0].topic.replace("public.root", name)]


@renames
def test_a_replay_after_a_kill_keeps_the_topic_that_was_sent_to(
    database: Database, runs: Runs, reader: Reader, rename: str, name: str
) -> None:
    walstream, sent = renamed(database, runs, reader, rename, name)
    # behind the change: pgoutput tells the new name
    kill_and_rewind(walstream, sent[-1:])
    walstream.start().streaming()
    insert(database, name, 3)
    # topics arrive in any order
    reader.until(lambda _: topics(reader, 3) and len(topics(reader, 2)) > 1)
    assert topics(reader, 2) == [sent[-1].topic] * 2
    assert topics(reader, 3) == [sent[0].topic.replace("public.root", name)]
