"""`walstream destroy`: slot, publications and state go; nothing else does."""

import subprocess
from pathlib import Path

import pytest

from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.verb import Terminal, verb
from tests.support.programs.walstream import SOURCE, Walstream

pytestmark = [pytest.mark.same_on_15]

_TABLES = "CREATE TABLE t (id serial PRIMARY KEY); CREATE TABLE keyless (v int)"
_INSERT = "INSERT INTO t DEFAULT VALUES"
_PUBLICATIONS = "SELECT pubname FROM pg_publication ORDER BY 1"


def destroy(walstream: Walstream, *flags: str) -> "subprocess.CompletedProcess[str]":
    return verb(walstream.configuration, "destroy", SOURCE, *flags)


def slots(database: Database) -> list[str]:
    """Name the slots of this database."""
    query = "SELECT slot_name FROM pg_replication_slots WHERE database = %s"
    return [name for (name,) in database.fetch(query, database.name)]


def publications(database: Database) -> list[str]:
    return [name for (name,) in database.fetch(_PUBLICATIONS)]


@pytest.fixture
def stopped(database: Database, runs: Runs, reader: Reader) -> Walstream:
    """Give a source that streamed a row, and was stopped."""
    database.execute(_TABLES)
    walstream = runs(database.dsn)
    with walstream:
        database.execute(_INSERT)
        reader.count(1)
        assert walstream.terminate() == 0
    assert slots(database) == [walstream.slot]
    assert publications(database) == ["walstream", "walstream_insert"]
    return walstream


def test_slot_publications_and_state_go_and_a_start_begins_again(
    stopped: Walstream, database: Database, reader: Reader
) -> None:
    done = destroy(stopped, "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    for dropped in (
        f"slot {stopped.slot}, which holds",
        "publication walstream\n",
        "publication walstream_insert\n",
        "cannot be undone",
        f"{stopped.prefix}public.t), consumers' tables",
    ):
        assert dropped in done.stdout.replace("\n  ", "\n"), done.stdout
    assert slots(database) == []
    assert publications(database) == []
    assert not stopped.state.exists()

    again = destroy(stopped, "--yes")
    assert again.returncode == 0
    assert "has no slot, no publication and no state" in again.stdout

    with stopped:
        database.execute(_INSERT)
        reader.count(2)
        assert stopped.terminate() == 0


def test_what_a_crash_left_goes_with_the_next_call(
    stopped: Walstream, database: Database
) -> None:
    database.fetch("SELECT pg_drop_replication_slot(%s)", stopped.slot)
    database.execute("DROP PUBLICATION walstream")
    assert destroy(stopped, "--yes").returncode == 0
    assert publications(database) == []
    assert not stopped.state.exists()


def test_nothing_goes_without_consent(stopped: Walstream, database: Database) -> None:
    asked = destroy(stopped)
    assert asked.returncode == 2
    assert "add --yes" in asked.stderr
    typed = Terminal(stopped.configuration, "destroy", SOURCE)
    code, said = typed.types("another", at="Type the source's name").ends()
    assert (code, said.splitlines()[-1]) == (0, "nothing was changed")
    assert slots(database) == [stopped.slot]
    assert publications(database) == ["walstream", "walstream_insert"]
    assert stopped.state.is_dir()
    typed = Terminal(stopped.configuration, "destroy", SOURCE)
    assert typed.types(SOURCE, at="Type the source's name").ends()[0] == 0
    assert slots(database) == []


def test_a_running_instance_and_another_reader_are_named(
    database: Database, runs: Runs, reader: Reader, tmp_path: Path
) -> None:
    database.execute(_TABLES)
    walstream = runs(database.dsn)
    with walstream:
        database.execute(_INSERT)
        reader.count(1)
        beside = destroy(walstream, "--yes")
        assert beside.returncode == 5
        assert f"as process {walstream.pid}" in beside.stderr
        assert f"kill {walstream.pid}" in beside.stderr

        # another state folder, the same slot
        other = tmp_path / "other.toml"
        text = walstream.configuration.read_text()
        other.write_text(
            text.replace(str(walstream.folder / "state"), str(tmp_path / "elsewhere"))
        )
        in_use = verb(other, "destroy", SOURCE, "--yes")
        assert in_use.returncode == 5
        assert f"slot '{walstream.slot}' is in use by pid" in in_use.stderr
        assert publications(database) == ["walstream", "walstream_insert"]
        database.execute(_INSERT)
        reader.count(2)
        assert walstream.terminate() == 0


def test_publications_that_others_may_read_or_made_stay(
    stopped: Walstream, database: Database
) -> None:
    other = f"{stopped.slot}_other"
    make = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
    database.fetch(make, other)
    try:
        done = destroy(stopped, "--yes")
    finally:
        database.fetch("SELECT pg_drop_replication_slot(%s)", other)
    assert done.returncode == 0, done.stderr
    assert f"publication walstream stays: slot {other} may read it" in done.stdout
    assert 'SQL> DROP PUBLICATION "walstream";' in done.stdout
    assert slots(database) == []
    assert publications(database) == ["walstream", "walstream_insert"]
    assert not stopped.state.exists()


def test_a_publication_that_is_used_as_it_is_stays(
    database: Database, runs: Runs
) -> None:
    database.execute(_TABLES)
    database.execute("CREATE PUBLICATION mine FOR TABLE t")
    walstream = runs(database.dsn, source={"publication": "mine", "tables": []})
    with walstream:
        assert walstream.terminate() == 0
    done = destroy(walstream, "--yes")
    assert done.returncode == 0, done.stderr
    assert "publication mine stays: walstream did not make it" in done.stdout
    assert publications(database) == ["mine"]
    assert slots(database) == []
