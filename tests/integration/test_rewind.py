"""`walstream positions rewind`: what was sent comes again, whole, under its names."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.verb import Terminal, verb
from tests.support.programs.walstream import SOURCE, Walstream
from walstream.admin import rewind as rewinding
from walstream.config import load
from walstream.errors import ConfigError, SlotLost
from walstream.lsn import parse, show
from walstream.state.store import LmdbStore

pytestmark = pytest.mark.same_on_15

_TABLE = "CREATE TABLE t (id serial PRIMARY KEY, v text)"
_INSERT = "INSERT INTO t (v) SELECT 'x' FROM generate_series(1, 3)"
_RETAIN = {"retain": "64MiB"}


@pytest.fixture
def newest(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as fresh:
        yield fresh


def rewind(walstream: Walstream, to: str, *flags: str) -> Any:
    arguments = ("positions", "rewind", SOURCE, "--to", to, *flags)
    return verb(walstream.configuration, *arguments)


def agree(_planned: rewinding.Rewind) -> bool:
    return True


def resume(walstream: Walstream) -> int:
    with LmdbStore.open_read_only(walstream.state) as positions:
        assert positions is not None
        position = positions.position()
    assert position is not None
    return position.resume


def transactions(records: list[Record]) -> list[int]:
    """Give their commit LSNs, in stream order."""
    return list(dict.fromkeys(record.op.lsn for record in records))


def test_exactly_what_lies_from_there_on_comes_again(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn, source=_RETAIN)
    with walstream:
        for _ in range(4):
            database.execute(_INSERT)
        first = reader.count(12)[:12]
        assert walstream.terminate() == 0
    lsns = transactions(first)
    done = rewind(walstream, show(lsns[2]), "--yes")
    assert done.returncode == 0, done.stderr
    assert "the next run streams from there" in done.stdout
    assert resume(walstream) == lsns[2]
    with walstream:
        again = reader.count(18)[12:]
        assert [one.name for one in again] == [one.name for one in first[6:]]
        assert [one.value for one in again] == [one.value for one in first[6:]]

        # one byte further the transaction is behind it; an instance runs
        done = rewind(walstream, show(lsns[2] + 1), "--yes")
        assert done.returncode == 0, done.stderr
        assert "streams again from there" in done.stdout
        again = reader.count(21)[18:]
        assert [one.name for one in again] == [one.name for one in first[9:]]
        assert len(walstream.said("streaming")) == 2
        database.execute(_INSERT)
        reader.count(24)  # and goes on


def test_what_cannot_be_reached_is_refused_with_what_can(
    newest: Database, runs: Runs, reader: Reader
) -> None:
    newest.execute(_TABLE)
    walstream = runs(newest.dsn, source=_RETAIN)
    with walstream:
        newest.execute(_INSERT)
        reader.count(3)
        assert walstream.terminate() == 0
    query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
    ((confirmed,),) = newest.fetch(f"{query} WHERE slot_name = %s", walstream.slot)
    at = resume(walstream)
    config = load(walstream.configuration, {})
    for wrong in (parse(confirmed) - 1, at + 1):
        with pytest.raises(ConfigError) as refused:
            rewinding.rewind(config, SOURCE, wrong, agree)
        assert f"any LSN from {confirmed} to {show(at)}" in refused.value.hint
    assert "nothing was changed" in rewinding.rewind(config, SOURCE, at, agree)
    malformed = rewind(walstream, "16B3748", "--yes")
    assert malformed.returncode == 2
    assert "0/16B3748" in malformed.stderr
    unanswered = rewind(walstream, confirmed)
    assert unanswered.returncode == 2
    assert "--yes" in unanswered.stderr

    assert resume(walstream) == at
    command = ("positions", "rewind", SOURCE, "--to", confirmed)
    code, text = (
        Terminal(walstream.configuration, *command).types("y", at="Continue").ends()
    )
    assert (code, resume(walstream)) == (0, parse(confirmed)), text
    assert "under the same (lsn, seq_id)" in " ".join(text.split())

    newest.fetch("SELECT pg_drop_replication_slot(%s)", walstream.slot)
    with pytest.raises(SlotLost, match="is gone"):
        rewinding.rewind(config, SOURCE, parse(confirmed), agree)


def test_keys_that_changed_since_are_those_of_then(
    newest: Database, runs: Runs, reader: Reader
) -> None:
    newest.execute(
        "CREATE TABLE t (id int PRIMARY KEY, a int NOT NULL, b int NOT NULL);"
        " ALTER TABLE t REPLICA IDENTITY FULL; INSERT INTO t VALUES (1, 1, 1)"
    )
    walstream = runs(newest.dsn, source=_RETAIN)
    wanted = 0
    for number, key in enumerate(["a", "b", "a"]):
        topic = {"name": f"{walstream.prefix}t", "partition_key": [key]}
        walstream.sink = {"topics": {"public.t": topic}}
        with walstream:
            # one of them changes the key, and becomes two ops
            newest.execute(f"UPDATE t SET a = {number + 2}")  # noqa: S608 - a number
            newest.execute(f"UPDATE t SET b = {number + 2}")  # noqa: S608 - likewise
            wanted += 3
            first = list(reader.count(wanted))
            assert walstream.terminate() == 0
    config = load(walstream.configuration, {})
    rewinding.rewind(config, SOURCE, first[0].op.lsn, agree)
    with walstream:
        again = reader.count(2 * wanted)[wanted:]
        assert [(one.name, one.value) for one in again] == [
            (one.name, one.value) for one in first
        ]
